//! Connections under the loader's hands: which control they get, what is counted, and that none suffers.
#![cfg(feature = "bpf")]

mod support;

use nix::sys::socket::{setsockopt, sockopt::ReceiveTimeout, SockaddrStorage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::thread;
use std::time::{Duration, Instant};
use support::middlebox::bed;
use support::path::{sample, Link};
use support::traffic::{carry, connect, connect_across, control_of, disconnect, set_control, Group, Traffic};
use support::{available, flows, repetitions, skip, soon, within, Loaded};
use whyloss_kernel::cgroup::Cgroups;
use whyloss_kernel::installed::{known, Installed};
use whyloss_kernel::select::{self, Match};
use whyloss_kernel::stat::{stat, Connection, REPORTS};
use whyloss_kernel::{load, Error};
use whyloss_net::namespace::Namespace;
use whyloss_sim::{ChannelSpec, Effect, Errors};

/// A namespace, a group and everything loaded. The group is that of the whole process, so there is one at a time.
struct Bed {
    group: Group,
    inside: Namespace,
    loaded: Loaded,
}

impl Bed {
    /// With `controls`, all if none is named.
    fn new(prefix: &str, controls: &[&str]) -> Option<Self> {
        if let Err(reason) = Cgroups::find() {
            skip(&reason.to_string());
            return None;
        }
        let loaded = Loaded::new(prefix, controls)?;
        Some(Self { group: Group::enter(prefix), inside: Namespace::new().expect("a namespace"), loaded })
    }

    /// From now on connections of this process that match take `control`.
    fn choose(&self, control: &str, port: Option<u16>, prefix: Option<&str>) {
        select::add(&self.loaded.place, control, &matching(port, prefix), Some(&self.group.folder)).expect("a rule");
    }

    fn take_back(&self, port: Option<u16>, prefix: Option<&str>) -> Result<(), Error> {
        select::take_back(&self.loaded.place, &matching(port, prefix), Some(&self.group.folder))
    }

    /// The controls of both ends of a new connection.
    fn controls(&self, listen: &str, to: &str) -> (String, String) {
        let (connected, accepted) = connect(&self.inside, listen, to).expect("connects");
        (control_of(&connected), control_of(&accepted))
    }

    fn connections(&self) -> Vec<Connection> {
        stat(&self.loaded.place).expect("counts").connections
    }
}

fn matching(port: Option<u16>, prefix: Option<&str>) -> Match {
    Match { port, prefix: prefix.map(|text| text.parse().expect("a prefix")) }
}

#[test]
fn rules_choose_the_control_of_new_connections() {
    let Some(bed) = Bed::new("t1_", &[]) else { return };
    let usual = bed.controls("127.0.0.1:0", "127.0.0.1:0");
    assert!(usual.0 == usual.1 && !usual.0.starts_with("t1_"), "{usual:?}");
    let both = ("t1_newreno".to_owned(), "t1_newreno".to_owned());

    // By the port of the service, at both ends, whatever the family.
    bed.choose("wl_newreno", Some(5301), None);
    assert_eq!(bed.controls("127.0.0.1:5301", "127.0.0.1:0"), both);
    assert_eq!(bed.controls("[::1]:5301", "[::1]:0"), both);
    assert_eq!(bed.controls("[::]:5301", "[::1]:0"), both);
    assert_eq!(bed.controls("[::]:5301", "127.0.0.1:0"), both, "an IPv4 connection to a dual-stack socket");
    assert_eq!(bed.controls("[::]:5301", "[::ffff:127.0.0.1]:0"), both, "IPv4 from an IPv6 socket");
    assert_eq!(bed.controls("127.0.0.1:5302", "127.0.0.1:0"), usual);

    // By the remote address: the end that connects has 127.0.0.9 there, the other 127.0.0.1.
    bed.choose("wl_newreno", None, Some("127.0.0.8/30"));
    let one = ("t1_newreno".to_owned(), usual.1.clone());
    assert_eq!(bed.controls("0.0.0.0:5302", "127.0.0.9:0").0, one.0);
    assert_eq!(bed.controls("0.0.0.0:5302", "127.0.0.12:0"), usual);
    bed.choose("wl_newreno", None, Some("::1"));
    assert_eq!(bed.controls("[::1]:5302", "[::1]:0"), both);

    // The more exact rule decides, and a rule can name a control that the kernel has.
    bed.choose("reno", Some(5303), None);
    bed.choose("wl_newreno", None, None);
    assert_eq!(bed.controls("127.0.0.1:5302", "127.0.0.1:0"), both);
    assert_eq!(bed.controls("127.0.0.1:5303", "127.0.0.1:0"), ("reno".to_owned(), "reno".to_owned()));

    let rules = select::list(&Installed::own(&bed.loaded.place).expect("is loaded")).expect("rules");
    let rule = rules.iter().find(|rule| rule.port == Some(5301)).expect("is listed");
    assert_eq!((rule.control.as_str(), rule.connections), ("t1_newreno", 10));
    assert_eq!(rules.len(), 5);

    // Every control goes by the name that `list` gives it, also where that is too long for the kernel.
    for control in known(&bed.loaded.place).expect("controls") {
        bed.choose(&control.name, Some(5304), None);
        assert_eq!(bed.controls("127.0.0.1:5304", "127.0.0.1:0").0, control.kernel_name);
    }
    bed.take_back(Some(5304), None).expect("is taken back");

    // And back.
    for (port, prefix) in
        [(Some(5301), None), (None, Some("127.0.0.8/30")), (None, Some("::1")), (Some(5303), None), (None, None)]
    {
        bed.take_back(port, prefix).expect("is taken back");
    }
    assert_eq!(bed.controls("127.0.0.1:5301", "127.0.0.1:0"), usual);
    assert!(bed.take_back(None, None).is_err_and(|error| error.is_refusal()));
    let wrong = select::add(&bed.loaded.place, "wl_nothing", &Match::default(), None).expect_err("no such control");
    assert!(wrong.is_refusal() && wrong.to_string().contains("t1_newreno"), "{wrong}");
}

#[test]
fn who_asks_for_a_control_gets_it() {
    let Some(bed) = Bed::new("t2_", &["wl_newreno"]) else { return };
    bed.choose("wl_newreno", None, None);
    let accepted = bed.inside.run(|| {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
        set_control(&listener, "reno").expect("a control that every kernel has");
        let _connected = TcpStream::connect(listener.local_addr().expect("has one")).expect("connects");
        listener.accept().expect("accepts").0
    });
    assert_eq!(control_of(&accepted), "reno");
}

/// A second connection of a socket is another one.
#[test]
fn a_socket_that_connects_again_gets_the_control_of_its_new_destination() {
    let Some(bed) = Bed::new("t11_", &["wl_newreno", "wl_veno"]) else { return };
    bed.choose("wl_newreno", Some(5311), None);
    bed.choose("wl_veno", Some(5312), None);
    bed.inside.run(|| {
        let listeners = [5311, 5312, 5313].map(|port| TcpListener::bind(("127.0.0.1", port)).expect("a port"));
        let usual = control_of(&TcpStream::connect(("127.0.0.1", 5313)).expect("connects"));
        let socket = TcpStream::connect(("127.0.0.1", 5311)).expect("connects");
        let again = |port: u16| {
            disconnect(&socket);
            let to = SockaddrStorage::from(SocketAddr::from(([127, 0, 0, 1], port)));
            nix::sys::socket::connect(socket.as_raw_fd(), &to).expect("connects again");
            control_of(&socket)
        };
        assert_eq!(control_of(&socket), "t11_newreno");
        let chosen = [5312, 5311, 5313, 5313, 5312, 5312].map(again);
        assert_eq!(chosen, ["t11_veno", "t11_newreno", &usual, &usual, "t11_veno", "t11_veno"]);
        // What the application asks for meanwhile it keeps.
        set_control(&socket, if usual == "reno" { "cubic" } else { "reno" }).expect("the kernel has it");
        let asked = control_of(&socket);
        assert_eq!([5311, 5312, 5313].map(again), [(); 3].map(|()| asked.clone()));
        drop(listeners);
    });
    let rules = select::list(&Installed::own(&bed.loaded.place).expect("is loaded")).expect("rules");
    let mut counted: Vec<_> = rules.iter().map(|rule| (rule.port, rule.connections)).collect();
    counted.sort_unstable();
    // With those that were accepted.
    assert_eq!(counted, [(Some(5311), 5), (Some(5312), 7)]);
}

#[test]
fn the_inner_group_decides_and_a_group_that_goes_takes_its_rules_along() {
    let Some(bed) = Bed::new("t3_", &["wl_newreno"]) else { return };
    bed.choose("reno", None, None);
    let inner = bed.group.folder.join("inner");
    std::fs::create_dir(&inner).expect("a group");
    select::add(&bed.loaded.place, "wl_newreno", &Match::default(), Some(&inner)).expect("a rule");
    let own = std::process::id().to_string();
    std::fs::write(inner.join("cgroup.procs"), &own).expect("moves");
    let inside = bed.controls("127.0.0.1:0", "127.0.0.1:0");
    std::fs::write(bed.group.folder.join("cgroup.procs"), &own).expect("moves back");
    let outside = bed.controls("127.0.0.1:0", "127.0.0.1:0");
    assert_eq!((inside.0.as_str(), outside.0.as_str()), ("t3_newreno", "reno"));
    std::fs::remove_dir(&inner).expect("is empty");
    assert!(soon(|| select::list(&Installed::own(&bed.loaded.place).expect("is loaded")).expect("rules").len() == 1));
}

#[test]
fn counters_tell_of_controls_and_connections() {
    let Some(bed) = Bed::new("t4_", &[]) else { return };
    bed.choose("wl_newreno", Some(5401), None);
    assert!(bed.connections().is_empty());
    let (connected, accepted) = connect(&bed.inside, "[::]:5401", "127.0.0.1:0").expect("connects");
    carry((&connected, &accepted), 100_000);
    let found = bed.connections();
    assert_eq!(found.len(), 2, "{found:?}");
    let local = connected.local_addr().expect("has one");
    let ours = found.iter().find(|connection| connection.local == local).expect("is listed");
    assert_eq!((ours.control.as_str(), ours.remote), ("t4_newreno", "127.0.0.1:5401".parse().expect("an address")));
    assert!((100_000..=100_001).contains(&ours.acked_bytes), "{ours:?}");
    assert!(ours.cwnd_segments >= 10 && ours.mss_bytes > 500 && ours.srtt_us > 0, "{ours:?}");
    assert_eq!((ours.counts["connections"], ours.counts["losses"]), (1, 0));
    let all = stat(&bed.loaded.place).expect("counts");
    assert_eq!(all.controls["t4_newreno"]["connections"], 2);
    assert_eq!((all.reports.len(), all.reports["damaged"]), (REPORTS.len(), 0));

    // Who takes another control is ours no more.
    set_control(&connected, "reno").expect("changes");
    assert_eq!(bed.connections().len(), 1);
    drop((connected, accepted));
    assert!(soon(|| bed.connections().is_empty()), "{:?}", bed.connections());
}

#[test]
fn ten_thousand_connections_leave_nothing_in_the_maps() {
    let Some(bed) = Bed::new("t5_", &["wl_newreno"]) else { return };
    bed.choose("wl_newreno", Some(5501), None);
    let count = 10_000;
    bed.inside.run(|| {
        let listener = std::net::TcpListener::bind("127.0.0.1:5501").expect("listens");
        for round in 0..count {
            let connected = TcpStream::connect("127.0.0.1:5501").expect("connects");
            let (accepted, _) = listener.accept().expect("accepts");
            // Whoever closes first has to wait before the port is free again: reset instead, so that the ports last.
            nix::sys::socket::setsockopt(
                &connected,
                nix::sys::socket::sockopt::Linger,
                &nix::libc::linger { l_onoff: 1, l_linger: 0 },
            )
            .expect("lingers");
            if round == count - 1 {
                assert_eq!(bed.connections().len(), 2);
            }
            drop((connected, accepted));
        }
    });
    assert!(soon(|| bed.connections().is_empty()), "{} are left", bed.connections().len());
    assert_eq!(stat(&bed.loaded.place).expect("counts").controls["t5_newreno"]["connections"], 2 * count);
}

#[test]
fn connections_live_through_loading_and_unloading() {
    let Some(bed) = Bed::new("t6_", &[]) else { return };
    let open = || connect(&bed.inside, "127.0.0.1:0", "127.0.0.1:0").expect("connects");
    let usual = control_of(&open().0);
    let steady = Traffic::over(open());
    let kept = open();
    set_control(&kept.0, "t6_newreno").expect("is loaded");
    let kept = Traffic::over(kept);

    for round in 0..repetitions(8) {
        // A connection takes the control and outlives it.
        bed.choose("wl_newreno", None, None);
        let chosen = open();
        assert_eq!(control_of(&chosen.0), "t6_newreno", "round {round}");
        carry((&chosen.0, &chosen.1), 10_000);
        let removed = load::unload(&bed.loaded.place).expect("unloads");
        assert!(available("t6_").is_empty() && !bed.loaded.place.folder.exists(), "round {round}");
        carry((&chosen.0, &chosen.1), 10_000);
        // Both ends of this one, and the one that asked for it in the first round.
        assert_eq!((removed.moved, removed.kept), (if round == 0 { 3 } else { 2 }, 0), "round {round}");
        assert_eq!(control_of(&chosen.0), usual, "round {round}");
        let after = open();
        assert!(set_control(&after.0, "t6_newreno").is_err(), "round {round}: still there");
        carry((&after.0, &after.1), 1000);
        load::load(&bed.loaded.place, &[]).unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
    assert!(steady.stop() > 0 && kept.stop() > 0);
}

#[test]
fn every_control_carries_over_ipv6() {
    let Some(loaded) = Loaded::new("t7_", &[]) else { return };
    let channel = ChannelSpec { errors: Errors::Packets { probability: 0.02 }, effect: Effect::Erase };
    let bed = bed(&Link { rate_bps: 100_000_000, queue_packets: 200, channel, ..Link::default() });
    let controls = known(&loaded.place).expect("controls");
    let counts = thread::scope(|scope| {
        let threads: Vec<_> = (5701..)
            .zip(&controls)
            .map(|(port, control)| {
                let (bed, loaded) = (&bed, &loaded);
                scope.spawn(move || {
                    let to = SocketAddr::new(bed.plan().address(1, true), port);
                    let (sender, receiver) = connect_across((bed.namespace(0), bed.namespace(1)), to, &control.kernel_name);
                    carry((&sender, &receiver), 1_000_000);
                    let open = stat(&loaded.place).expect("counts").connections;
                    open.into_iter().find(|connection| connection.remote == to).expect("is listed")
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a transfer")).collect::<Vec<_>>()
    });
    for (control, connection) in controls.iter().zip(counts) {
        assert_eq!(connection.control, control.kernel_name);
        assert!(connection.counts["losses"] > 0 && connection.acked_bytes >= 1_000_000, "{connection:?}");
    }
}

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends a request and checks the answer, which is the same.
fn ask(socket: &mut TcpStream, octets: &[u8]) -> io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(octets)?;
    socket.shutdown(Shutdown::Write)?;
    let mut answer = Vec::with_capacity(octets.len());
    socket.read_to_end(&mut answer)?;
    assert!(answer == octets, "{} octets, not what was sent", answer.len());
    Ok(())
}

fn answer(socket: &mut TcpStream) -> io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut octets = Vec::new();
    socket.read_to_end(&mut octets)?;
    socket.write_all(&octets)
}

#[test]
fn ten_thousand_connections_over_a_damaging_link_leave_nothing_and_lose_no_report_unseen() {
    let Some(loaded) = Loaded::new("t8_", &["wl_checksum"]) else { return };
    let channel = || ChannelSpec { errors: Errors::Packets { probability: 0.02 }, effect: Effect::Damage };
    let link = Link {
        rate_bps: 200_000_000,
        delay_ms: 2,
        queue_packets: 2000,
        channel: channel(),
        channel_back: channel(),
        ..Link::default()
    };
    let bed = bed(&link);
    let [v4, v6] = [false, true].map(|v6| bed.plan().address(1, v6));
    let control = "t8_checksum";
    // IPv4, IPv6, and IPv4 to a socket of both, in turn.
    let ways: [(SocketAddr, SocketAddr); 3] = [
        ((v4, 5801).into(), (v4, 5801).into()),
        ((v6, 5802).into(), (v6, 5802).into()),
        ((Ipv6Addr::UNSPECIFIED, 5803).into(), (v4, 5803).into()),
    ];
    let listeners = ways.map(|(listen, _)| {
        let listener = bed.namespace(1).run(|| TcpListener::bind(listen)).expect("a port");
        set_control(&listener, control).expect("is loaded");
        // Who waits in vain shall say so.
        setsockopt(&listener, ReceiveTimeout, &TimeVal::seconds(PATIENCE.as_secs() as i64)).expect("a timeout");
        listener
    });
    let octets: Vec<u8> = (0..10_000).map(|position: u32| (position % 251) as u8).collect();
    let clients = 60;
    let each = 10_000_usize.div_ceil(clients);
    let begin = Instant::now();
    thread::scope(|scope| {
        for listener in &listeners {
            for _ in 0..clients / 3 {
                scope.spawn(|| {
                    for _ in 0..each {
                        answer(&mut listener.accept().expect("accepts").0).expect("answers");
                    }
                });
            }
        }
        bed.namespace(0).run(|| {
            thread::scope(|scope| {
                for client in 0..clients {
                    let (octets, to) = (&octets, ways[client % 3].1);
                    scope.spawn(move || {
                        for _ in 0..each {
                            let mut socket = TcpStream::connect(to).expect("connects");
                            set_control(&socket, control).expect("is loaded");
                            ask(&mut socket, octets).expect("is answered");
                        }
                    });
                }
            });
        });
    });
    println!("{:.1} s", begin.elapsed().as_secs_f64());
    let told = || stat(&loaded.place).expect("counts").reports;
    assert!(
        within(Duration::from_secs(20), || flows(&loaded.place) == 0),
        "{} flows are left, {:?}",
        flows(&loaded.place),
        told()
    );
    let told = told();
    println!("{told:?}");
    let connections = (each * clients) as u64;
    // A SYN that was damaged twice, or its answer, goes without the option: 4 % of 4 %.
    assert!(told["agreed"] > connections * 2 * 99 / 100, "{told:?}");
    assert!(told["ended"] > connections * 2 * 99 / 100 && told["no_flow"] == 0, "{told:?}");
    assert_eq!(told["damaged"], told["queued"] + told["outside"] + told["overrun"], "{told:?}");
    // Of what waited to be reported, nearly nothing came too late, and nearly all was believed.
    assert!(told["queued"] > connections / 10, "{told:?}");
    assert!(100 * told["reported"] >= 97 * told["queued"] && 100 * told["believed"] >= 85 * told["queued"], "{told:?}");
    assert!(soon(|| stat(&loaded.place).expect("counts").connections.is_empty()));
}

/// Sends a lone segment after the other over 20 ms, there and back, where a quarter of them is lost. Gives how long those took that were sent again
/// once.
fn repairs(control: &str) -> Vec<Duration> {
    let channel = ChannelSpec { errors: Errors::Packets { probability: 0.25 }, effect: Effect::Erase };
    let bed = bed(&Link { channel, seed: 3, ..Link::default() });
    let to = SocketAddr::new(bed.plan().address(1, false), 5401);
    let (mut sender, mut receiver) = connect_across((bed.namespace(0), bed.namespace(1)), to, control);
    let mut times = Vec::new();
    for _ in 0..40 {
        let (before, start) = (sample(&sender, Duration::ZERO).retransmitted, Instant::now());
        sender.write_all(&[7; 100]).expect("sends");
        receiver.read_exact(&mut [0; 100]).expect("receives");
        let took = start.elapsed();
        // The acknowledgement comes 10 ms later, or 50.
        thread::sleep(Duration::from_millis(60));
        if sample(&sender, Duration::ZERO).retransmitted == before + 1 {
            times.push(took);
        }
    }
    times.sort_unstable();
    times
}

#[test]
fn auto_sends_a_lone_lost_segment_again_sooner_than_the_kernel() {
    let Some(loaded) = Loaded::new("t9_", &["wl_auto"]) else { return };
    let prefix = &loaded.place.prefix;
    let [ours, theirs] = [format!("{prefix}auto"), "reno".to_owned()].map(|control| repairs(&control));
    let median = |times: &[Duration]| times[times.len() / 2];
    assert!(ours.len() >= 3 && theirs.len() >= 3, "{ours:?} {theirs:?}");
    // 20 ms and 60 or 200, and half a round trip.
    assert!(median(&ours) < Duration::from_millis(170) && median(&theirs) > Duration::from_millis(200), "{ours:?} {theirs:?}");
    assert!(ours[0] > Duration::from_millis(70), "no sooner than an acknowledgement that the receiver delays: {ours:?}");
}

#[test]
fn the_timer_of_auto_leaves_a_long_round_trip_the_time_of_another() {
    let Some(loaded) = Loaded::new("t10_", &["wl_auto"]) else { return };
    let control = format!("{}auto", loaded.place.prefix);
    let timer = |delay_ms| {
        let bed = bed(&Link { delay_ms, ..Link::default() });
        let to = SocketAddr::new(bed.plan().address(1, false), 5402);
        let (mut sender, mut receiver) = connect_across((bed.namespace(0), bed.namespace(1)), to, &control);
        for _ in 0..12 {
            sender.write_all(&[7; 100]).expect("sends");
            receiver.read_exact(&mut [0; 100]).expect("receives");
            thread::sleep(Duration::from_millis(delay_ms + 60));
        }
        let told = sample(&sender, Duration::ZERO);
        (told.rto_us - told.rtt_us) / 1000
    };
    let (short, long) = (timer(10), timer(100));
    // What the kernel began with comes down by a quarter of the way a round trip.
    assert!((60..=90).contains(&short) && (190..=260).contains(&long), "{short} ms and {long} ms beyond the round trip");
}
