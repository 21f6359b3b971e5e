//! How many damaged segments are reported, and how soon.
//!
//! `make reporting` measures it on the paths of docs/kernel-checksum.md; the other tests hold what must be on a shorter one.
#![cfg(feature = "bpf")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};
use support::middlebox::bed;
use support::path::Link;
use support::traffic::connect_across;
use support::{soon, Loaded};
use whyloss_kernel::interfaces;
use whyloss_kernel::stat::{stat, Counts};
use whyloss_net::namespace::Namespace;
use whyloss_sim::{ChannelSpec, Effect, Errors, Step};
use whyloss_transport as transport;

/// What was counted while a transfer ran.
#[derive(Debug)]
struct Seen {
    mbps: f64,
    counts: Counts,
}

impl Seen {
    /// Damaged segments that could be reported: with data, of a connection, inside its window.
    fn damaged(&self) -> u64 {
        self.counts["damaged"] - self.counts["outside"]
    }

    /// The share of these that were reported within a round trip.
    fn in_time(&self) -> f64 {
        (self.counts["reported"] - self.counts["late"]) as f64 / self.damaged() as f64
    }

    /// The share of those reported that the sender believed.
    fn believed(&self) -> f64 {
        self.counts["believed"] as f64 / self.counts["reported"] as f64
    }
}

/// Sends over `link` for `time`, in both directions if `duplex`, with SACK blocks that give way to reports or not.
fn measure(loaded: &Loaded, link: &Link, duplex: bool, makes_room: bool, time: Duration) -> Seen {
    measure_over(false, loaded, link, duplex, makes_room, time)
}

/// As [`measure`], over IPv6 or IPv4.
fn measure_over(ipv6: bool, loaded: &Loaded, link: &Link, duplex: bool, makes_room: bool, time: Duration) -> Seen {
    let before = stat(&loaded.place).expect("counts").reports;
    let beds = bed(link);
    if makes_room {
        for node in 0..2 {
            let attached = beds.namespace(node).run(|| interfaces::attach(&loaded.place)).expect("attaches");
            assert_eq!(attached.len(), 1, "{attached:?}");
        }
    }
    let to = (beds.plan().address(1, ipv6), 5201).into();
    let control = format!("{}checksum", loaded.place.prefix);
    let (near, far) = connect_across((beds.namespace(0), beds.namespace(1)), to, &control);
    if duplex {
        support::traffic::set_control(&far, &control).expect("a control");
    }
    for end in [&near, &far] {
        end.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        end.set_write_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    }
    let end = Instant::now() + time;
    let sends = |mut socket: &TcpStream| {
        let octets = [7; 1 << 14];
        while Instant::now() < end && socket.write_all(&octets).is_ok() {}
        let _ = socket.shutdown(Shutdown::Write);
    };
    let receives = |mut socket: &TcpStream| {
        let (mut octets, mut received) = (vec![0; 1 << 16], 0);
        while let Ok(more @ 1..) = socket.read(&mut octets) {
            received += if Instant::now() < end { more as u64 } else { 0 };
        }
        received
    };
    let received = thread::scope(|scope| {
        scope.spawn(|| sends(&near));
        if duplex {
            scope.spawn(|| sends(&far));
            scope.spawn(|| receives(&near));
        } else {
            far.shutdown(Shutdown::Write).expect("nothing to send");
        }
        scope.spawn(|| receives(&far)).join().expect("it receives")
    });
    let after = stat(&loaded.place).expect("counts").reports;
    let counts = after.iter().map(|(&name, count)| (name, count - before[name])).collect();
    Seen { mbps: received as f64 * 8e-6 / time.as_secs_f64(), counts }
}

/// A path of `mbps` and a round trip of `rtt_ms` with a queue of its bandwidth-delay product, that damages what crosses it.
fn path(mbps: u64, rtt_ms: u64, errors: Errors, both_ways: bool) -> Link {
    let channel = ChannelSpec { errors, effect: Effect::Damage };
    Link {
        rate_bps: mbps * 1_000_000,
        delay_ms: rtt_ms / 2,
        queue_packets: ((mbps * rtt_ms * 1000 / 12_000) as u32).max(17),
        channel_back: if both_ways { channel.clone() } else { ChannelSpec::default() },
        channel,
        ..Link::default()
    }
}

#[test]
fn sack_blocks_give_way_to_reports_where_the_program_is_attached() {
    let Some(loaded) = Loaded::new("r2_", &["wl_checksum"]) else { return };
    let link = path(10, 20, Errors::Packets { probability: 0.05 }, false);
    let [without, with] = [false, true].map(|makes_room| measure(&loaded, &link, false, makes_room, Duration::from_millis(1300)));
    println!("without: {:.1} %, {without:?}", 100.0 * without.in_time());
    println!("with: {:.1} %, {with:?}", 100.0 * with.in_time());
    for seen in [&without, &with] {
        assert!(seen.damaged() > 20 && seen.counts["reported"] > 10, "{seen:?}");
        assert!(seen.believed() > 0.8 && seen.mbps > 2.0, "{seen:?}");
    }
    assert!(without.counts["answered"] == 0 && without.counts["made_room"] == 0, "{without:?}");
    // What the SACK blocks of all acknowledgements leave no room for gets it.
    assert!(with.counts["made_room"] > 3 && with.counts["answered"] > 10, "{with:?}");
    assert!(with.in_time() > 0.9, "{with:?}");
}

/// Bursts that damage 20 packets at 10 Mbit/s, on average, and this share of the time.
fn bursts(share: f64) -> Errors {
    Errors::Gilbert {
        stay_good: 1.0 - share / 20.0 / (1.0 - share),
        stay_bad: 0.95,
        hits: Errors::IN_BAD,
        step: Step::Time(transport::Duration::from_micros(1200)),
    }
}

#[test]
fn what_a_burst_damages_is_reported_while_it_lasts() {
    let Some(loaded) = Loaded::new("r5_", &["wl_checksum"]) else { return };
    let seen = measure(&loaded, &path(10, 20, bursts(0.1), false), false, true, Duration::from_secs(3));
    println!("{:.1} %, {seen:?}", 100.0 * seen.in_time());
    // Nothing is acknowledged meanwhile: without an answer to each of them half wait longer than a round trip.
    assert!(seen.damaged() > 10 && seen.counts["answered"] > 10, "{seen:?}");
    assert!(seen.in_time() > 0.97 && seen.believed() > 0.95, "{seen:?}");
}

#[test]
fn damage_in_both_directions_is_reported_at_once() {
    let Some(loaded) = Loaded::new("r6_", &["wl_checksum"]) else { return };
    let link = path(10, 20, Errors::Packets { probability: 0.05 }, true);
    let seen = measure(&loaded, &link, true, true, Duration::from_secs(3));
    println!("{:.1} %, {:.1} % believed, {seen:?}", 100.0 * seen.in_time(), 100.0 * seen.believed());
    assert!(seen.damaged() > 50, "{seen:?}");
    assert!(seen.in_time() > 0.97 && seen.believed() > 0.95, "{seen:?}");
}

#[test]
fn the_end_of_a_flight_is_reported_when_it_comes() {
    let Some(loaded) = Loaded::new("r7_", &["wl_checksum"]) else { return };
    let beds = bed(&path(10, 20, Errors::Packets { probability: 0.15 }, false));
    let hosts = [0, 1].map(|node| beds.namespace(node));
    for host in hosts {
        host.run(|| interfaces::attach(&loaded.place)).expect("attaches");
    }
    let to = (beds.plan().address(1, false), 5201).into();
    let (mut near, mut far) = connect_across((hosts[0], hosts[1]), to, &format!("{}checksum", loaded.place.prefix));
    near.set_nodelay(true).expect("no delay");
    far.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    let mut octets = [7; 1000];
    for _ in 0..80 {
        // One segment and nothing behind it.
        near.write_all(&octets).expect("sends");
        far.read_exact(&mut octets).expect("receives");
    }
    let counts = stat(&loaded.place).expect("counts").reports;
    println!("{counts:?}");
    let damaged = counts["damaged"] - counts["outside"];
    assert!(damaged >= 5, "{counts:?}");
    // After two timeouts in a row what is sent has no nonce.
    assert!(counts["answered"] * 4 >= damaged * 3 && counts["late"] <= damaged - counts["answered"], "{counts:?}");
    assert!(counts["believed"] * 4 >= damaged * 3, "{counts:?}");
}

#[test]
fn acknowledgements_that_were_changed_arrive_intact_over_ipv6_too() {
    let Some(loaded) = Loaded::new("r4_", &["wl_checksum"]) else { return };
    let link = path(10, 20, Errors::Packets { probability: 0.05 }, false);
    let seen = measure_over(true, &loaded, &link, false, true, Duration::from_millis(1300));
    println!("{:.1} %, {seen:?}", 100.0 * seen.in_time());
    let counts = &seen.counts;
    // A checksum that does not hold would be one more damaged segment, and its report would be lost.
    assert!(counts["made_room"] > 3 && seen.believed() > 0.8, "{seen:?}");
    assert!(seen.damaged() > 20 && counts["foreign"] + counts["outside"] < seen.damaged() / 2, "{seen:?}");
}

#[test]
fn a_program_at_an_interface_goes_with_the_rest() {
    let Some(loaded) = Loaded::new("r3_", &["wl_checksum"]) else { return };
    let inside = Namespace::new().expect("a namespace");
    inside.ip("link add one type veth peer name other").expect("two interfaces");
    let attach = || inside.run(|| interfaces::attach(&loaded.place)).expect("attaches");
    assert_eq!(programs(&inside), 0);
    let mut names = attach();
    names.sort();
    assert_eq!(names, ["one", "other"]);
    assert_eq!(attach(), [""; 0], "they have it");
    assert_eq!(programs(&inside), 1);
    // One that comes later, and one that goes: the number of its link may be given again.
    inside.ip("link add third type veth peer name fourth").expect("two interfaces");
    assert_eq!(attach().len(), 2);
    inside.ip("link del third").expect("no interface");
    drop(loaded);
    assert!(soon(|| programs(&inside) == 0), "{} programs are left", programs(&inside));
}

/// Programs that see what leaves the interface `one`.
fn programs(inside: &Namespace) -> u32 {
    inside.run(|| {
        let index = nix::net::if_::if_nametoindex("one").expect("an interface");
        let (mut flags, mut ids, mut count) = (0, [0; 8], 8);
        // SAFETY: the kernel writes two numbers and as many identifiers as there is room for.
        let result = unsafe {
            libbpf_sys::bpf_prog_query(
                index as i32,
                libbpf_sys::BPF_TCX_EGRESS,
                0,
                &raw mut flags,
                ids.as_mut_ptr(),
                &raw mut count,
            )
        };
        assert_eq!(result, 0, "asks the kernel");
        count
    })
}

#[test]
#[ignore = "takes a minute; run by `make reporting`"]
fn the_paths_of_the_documentation() {
    let Some(loaded) = Loaded::new("r1_", &["wl_checksum"]) else { return };
    let each = |probability| Errors::Packets { probability };
    let paths = [
        ("100 Mbit/s, 50 ms, 1 %", path(100, 50, each(0.01), false), false),
        ("100 Mbit/s, 50 ms, 5 %", path(100, 50, each(0.05), false), false),
        ("10 Mbit/s, 20 ms, 5 %", path(10, 20, each(0.05), false), false),
        ("10 Mbit/s, 20 ms, bursts of 20, 2 %", path(10, 20, bursts(0.02), false), false),
        ("10 Mbit/s, 20 ms, duplex, 5 %", path(10, 20, each(0.05), true), true),
    ];
    println!("| path | SACK gives way | Mbit/s | damaged | reported in a round trip | answered | believed of them | no room | made | queue full | mean wait, ms |");
    println!("| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |");
    let both = paths.iter().flat_map(|path| [false, true].map(|makes_room| (path, makes_room)));
    for ((name, link, duplex), makes_room) in both {
        let seen = measure(&loaded, link, *duplex, makes_room, Duration::from_secs(8));
        let counts = &seen.counts;
        let wait = counts["late_us"] as f64 / 1000.0 / counts["reported"] as f64;
        println!(
            "| {name} | {} | {:.1} | {} | {:.1} % | {} | {:.1} % | {} | {} | {} | {wait:.1} |",
            if makes_room { "yes" } else { "no" },
            seen.mbps,
            seen.damaged(),
            100.0 * seen.in_time(),
            counts["answered"],
            100.0 * seen.believed(),
            counts["no_room"],
            counts["made_room"],
            counts["overrun"],
        );
        println!("{counts:?}");
    }
}
