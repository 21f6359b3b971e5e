//! The engine against the Linux kernel's TCP.

mod support;

use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;
use support::bed::{accept, connect, listen, Bed, Family};
use support::relay::Impairment;
use support::skip::skip;
use support::stream::{exchange, octets, sha256, synthetic, CloseOrder};
use support::web::{curl, Folder, WebServer};
use whyloss_net::namespace::missing_tool;

/// A path that does everything a path should not.
fn bad() -> Impairment {
    Impairment {
        lose: 0.001,
        flip: 0.001,
        duplicate: 0.002,
        reorder: 0.005,
        hold: Duration::from_millis(2),
        delay: Duration::from_millis(1),
        ..Impairment::default()
    }
}

/// A path that only takes time.
fn good() -> Impairment {
    Impairment { delay: Duration::from_millis(1), ..Impairment::default() }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

/// Who sends its FIN first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Engine,
    Kernel,
    Both,
}

/// Moves `count` octets each way between the engine and the kernel across the bed, and checks every octet. Gives the engine's report.
fn transfer(bed: &Bed, role: Role, family: Family, first: First, count: usize, options: &str) -> Value {
    let close = if first == First::Kernel { "after-peer" } else { "when-sent" };
    let order = if first == First::Engine { CloseOrder::AfterPeer } else { CloseOrder::WhenSent };
    let data = octets(7, count);
    let common = format!("exchange {options} --send-octets {count} --close {close}");
    let (got, (report, complete)) = match role {
        Role::Client => {
            let to = SocketAddr::new(family.peer(), 80);
            let listener = listen(&bed.peer, to.ip(), to.port());
            let engine = bed.engine(&format!("{common} --connect {to}"));
            let got = accept(&listener).and_then(|stream| exchange(stream, &data, order));
            (got, engine.report())
        }
        Role::Server => {
            let to = SocketAddr::new(family.engine(), 80);
            let engine = bed.engine(&format!("{common} --listen {to}"));
            let got = connect(&bed.peer, to).and_then(|stream| exchange(stream, &data, order));
            (got, engine.report())
        }
    };
    let got = got.unwrap_or_else(|error| panic!("the kernel's end: {error}; the engine's: {report:#}"));
    assert_eq!(got, (sha256(&synthetic(count)), count as u64), "what the kernel received; the engine says {report:#}");
    assert_eq!(report["received"]["octets"], count, "{report:#}");
    assert_eq!(report["received"]["sha256"], sha256(&data), "{report:#}");
    assert_eq!(report["closing"], "normal", "{report:#}");
    assert!(complete);
    report
}

/// 64 MiB each way over a path that loses, damages, duplicates and reorders.
fn bulk(role: Role, family: Family, first: First, seed: u64) {
    let Some(bed) = Bed::new([bad(); 2], seed) else { return };
    let report = transfer(&bed, role, family, first, 64 << 20, "");
    for direction in bed.finish() {
        assert!(
            [direction.lost, direction.flipped, direction.duplicated, direction.reordered].iter().all(|&count| count > 0),
            "{direction:?}"
        );
    }
    assert!(report["tcp"]["retransmissions"].as_u64() > Some(0), "{report:#}");
    assert!(report["device"]["damaged"].as_u64() > Some(0), "{report:#}");
    println!("{role:?} {family:?}: {report:#}");
}

#[test]
fn bulk_as_client_over_ipv4() {
    bulk(Role::Client, Family::V4, First::Both, 1);
}

#[test]
fn bulk_as_client_over_ipv6() {
    bulk(Role::Client, Family::V6, First::Kernel, 2);
}

#[test]
fn bulk_as_server_over_ipv4() {
    bulk(Role::Server, Family::V4, First::Engine, 3);
}

#[test]
fn bulk_as_server_over_ipv6() {
    bulk(Role::Server, Family::V6, First::Both, 4);
}

#[test]
fn either_side_can_close_first_with_and_without_data() {
    let Some(bed) = Bed::new([good(); 2], 5) else { return };
    for first in [First::Engine, First::Kernel, First::Both] {
        for count in [0, 1, 1 << 20] {
            transfer(&bed, Role::Client, Family::V4, first, count, "--time-wait 0");
            transfer(&bed, Role::Server, Family::V6, first, count, "--time-wait 0");
        }
    }
}

#[test]
fn options_that_the_kernel_does_not_offer_are_done_without() {
    let Some(bed) = Bed::new([bad(); 2], 6) else { return };
    for off in
        [&["tcp_sack"][..], &["tcp_timestamps"], &["tcp_window_scaling"], &["tcp_sack", "tcp_timestamps", "tcp_window_scaling"]]
    {
        for key in ["tcp_sack", "tcp_timestamps", "tcp_window_scaling"] {
            bed.peer.sysctl(&format!("ipv4/{key}"), if off.contains(&key) { "0" } else { "1" }).unwrap();
        }
        transfer(&bed, Role::Client, Family::V4, First::Both, 1 << 20, "--time-wait 0");
        transfer(&bed, Role::Server, Family::V4, First::Both, 1 << 20, "--time-wait 0");
    }
}

#[test]
fn every_profile_gets_through() {
    let Some(bed) = Bed::new([bad(); 2], 7) else { return };
    for profile in ["modern", "linux", "ns2", "freebsd45", "qualnet"] {
        transfer(&bed, Role::Client, Family::V4, First::Both, 1 << 18, &format!("--profile {profile} --time-wait 0"));
    }
}

#[test]
fn congestion_marks_slow_the_engine_down_if_and_only_if_ecn_is_negotiated() {
    let marking = Impairment { mark: 0.01, ..good() };
    for (ours, theirs) in [(true, "1"), (true, "0"), (false, "1")] {
        let Some(bed) = Bed::new([marking; 2], 8) else { return };
        bed.peer.sysctl("ipv4/tcp_ecn", theirs).unwrap();
        let negotiated = ours && theirs == "1";
        for role in [Role::Client, Role::Server] {
            let option = if ours { "--ecn --time-wait 0" } else { "--time-wait 0" };
            let report = transfer(&bed, role, Family::V4, First::Both, 4 << 20, option);
            assert_eq!(report["tcp"]["ecn_reductions"].as_u64() > Some(0), negotiated, "{role:?} {report:#}");
        }
        assert_eq!(bed.finish().iter().any(|direction| direction.marked > 0), negotiated);
    }
}

/// Tsaoussidis & Badr 2000 with real packets: two engines probe after a loss; a kernel permits no reports, and it is NewReno.
#[test]
fn losses_are_probed_where_the_peer_agrees() {
    let losing = Impairment { lose: 0.01, ..good() };
    let count = 4 << 20;
    let Some(bed) = Bed::new([good(), losing], 21) else { return };
    let to = SocketAddr::new(Family::V4.far_engine(), 80);
    let far = bed.far_engine(&format!("exchange --scheme tcp-probing --listen {to}"));
    let near = bed.engine(&format!("exchange --scheme tcp-probing --send-octets {count} --connect {to}"));
    let ((sent, sent_all), (received, received_all)) = (near.report(), far.report());
    assert!(sent_all && received_all, "{sent:#} {received:#}");
    assert_eq!((&received["received"], &received["received"]["octets"]), (&sent["sent"], &count.into()));
    let tcp = |report: &Value, name: &str| report["tcp"][name].as_u64().unwrap();
    assert!(tcp(&sent, "probe_cycles") > 5 && tcp(&sent, "fast_retransmits") > 5, "{sent:#}");
    drop(bed);
    let Some(bed) = Bed::new([losing; 2], 22) else { return };
    let report = transfer(&bed, Role::Client, Family::V4, First::Both, count, "--scheme tcp-probing");
    assert_eq!(tcp(&report, "probe_cycles"), 0, "{report:#}");
    assert!(tcp(&report, "fast_retransmits") > 5 && tcp(&report, "reductions") > 5, "{report:#}");
}

/// Tsaoussidis & Zhang 2002 with real packets: with a stock peer it is a TCP without waves, and between two engines the options of waves do no harm. (Whether
/// rates excuse a loss is left open: in real time they vary by the load of the machine.)
#[test]
fn tcp_real_gets_through_to_a_stock_peer_and_between_engines() {
    let losing = Impairment { lose: 0.01, ..good() };
    let Some(bed) = Bed::new([good(), losing], 13) else { return };
    for scheme in ["tcp-real", "tcp-real-2004"] {
        let options = format!("--scheme {scheme} --time-wait 0");
        transfer(&bed, Role::Client, Family::V4, First::Both, 1 << 20, &options);
        transfer(&bed, Role::Server, Family::V6, First::Both, 1 << 20, &options);
    }
    let (to, count) = (SocketAddr::new(Family::V4.far_engine(), 80), 8 << 20);
    let far = bed.far_engine(&format!("exchange --scheme tcp-real --listen {to}"));
    let near = bed.engine(&format!("exchange --scheme tcp-real --send-octets {count} --connect {to}"));
    let ((sent, sent_all), (received, received_all)) = (near.report(), far.report());
    assert!(sent_all && received_all, "{sent:#} {received:#}");
    assert_eq!((&received["received"], &received["received"]["octets"]), (&sent["sent"], &count.into()));
    assert!(sent["tcp"]["fast_retransmits"].as_u64() > Some(10), "{sent:#}");
}

/// Garcia & Brunstrom 2004 with real packets: the receiver reports what arrives damaged, and the sender keeps its window.
#[test]
fn two_engines_tell_corruption_from_congestion() {
    let damaging = Impairment { flip: 0.01, ..good() };
    let count = 8 << 20;
    let kept = ["sack", "checksum-ld", "checksum-ld-hardened"].map(|scheme| {
        let bed = Bed::new([good(), damaging], 12)?;
        let to = SocketAddr::new(Family::V4.far_engine(), 80);
        let far = bed.far_engine(&format!("exchange --scheme {scheme} --listen {to}"));
        let near = bed.engine(&format!("exchange --scheme {scheme} --send-octets {count} --connect {to}"));
        let ((sent, sent_all), (received, received_all)) = (near.report(), far.report());
        assert!(sent_all && received_all, "{sent:#} {received:#}");
        assert_eq!((&received["received"], &received["received"]["octets"]), (&sent["sent"], &count.into()));
        let tcp = |name: &str| sent["tcp"][name].as_u64().unwrap();
        assert!(tcp("fast_retransmits") > 10, "{sent:#}");
        assert_eq!(tcp("reports_received") > 0, scheme != "sack", "{sent:#}");
        Some(tcp("fast_retransmits") - tcp("reductions"))
    });
    if let [Some(sack), Some(checksum), Some(hardened)] = kept {
        assert!(sack == 0 && checksum > 10 && hardened > 10, "episodes that kept the window: {kept:?}");
    }
}

#[test]
fn a_reader_that_pauses_closes_the_window_and_opens_it_again() {
    let Some(bed) = Bed::new([bad(); 2], 9) else { return };
    let count = 16 << 20;
    let listener = listen(&bed.peer, Family::V4.peer(), 80);
    let engine = bed.engine(&format!("exchange --connect {} --send-octets {count}", listener.local_addr().unwrap()));
    let mut stream = accept(&listener).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut got = vec![0; count / 2];
    stream.read_exact(&mut got).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    stream.read_to_end(&mut got).unwrap();
    drop(stream);
    assert_eq!(sha256(&got), sha256(&synthetic(count)));
    let (report, complete) = engine.report();
    assert!(complete, "{report:#}");
}

#[test]
fn resets_are_understood_and_given() {
    let Some(bed) = Bed::new([good(); 2], 10) else { return };
    for family in [Family::V4, Family::V6] {
        // The kernel refuses.
        let (report, complete) = bed.engine(&format!("exchange --connect {}", SocketAddr::new(family.peer(), 9))).report();
        assert_eq!((report["closing"].as_str(), complete), (Some("refused"), false), "{report:#}");

        // The engine refuses.
        let engine = bed.engine(&format!("exchange --listen {}", SocketAddr::new(family.engine(), 80)));
        let error = connect(&bed.peer, SocketAddr::new(family.engine(), 81)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);

        // The kernel closes with data unread, and says so by a reset.
        let mut stream = connect(&bed.peer, SocketAddr::new(family.engine(), 80)).unwrap();
        stream.write_all(b"hello").unwrap();
        drop(engine);

        let engine = bed.engine(&format!("exchange --send-octets 1000000 --listen {}", SocketAddr::new(family.engine(), 80)));
        let mut stream = connect(&bed.peer, SocketAddr::new(family.engine(), 80)).unwrap();
        stream.read_exact(&mut [0; 1000]).unwrap();
        drop(stream);
        let (report, complete) = engine.report();
        assert_eq!((report["closing"].as_str(), complete), (Some("reset"), false), "{report:#}");
    }
}

/// `curl` and a web server of the kernel's, each with its own connection to the engine between them.
#[test]
fn curl_fetches_from_a_kernel_web_server_through_the_engine() {
    let Some(bed) = Bed::new([bad(); 2], 11) else { return };
    if let Some(reason) = missing_tool(&[("curl", "curl"), ("python3", "python3")]) {
        skip(&reason);
        return;
    }
    let folder = Folder::new("whyloss-curl");
    let page = octets(12, 8 << 20);
    std::fs::write(folder.path().join("page.bin"), &page).unwrap();
    for family in [Family::V4, Family::V6] {
        let server = WebServer::start(&bed.peer, SocketAddr::new(family.peer(), 8000), folder.path());
        let proxy = SocketAddr::new(family.engine(), 80);
        let engine = bed.engine(&format!("proxy --limit 3 --listen {proxy} --connect {}", server.address()));
        for _ in 0..2 {
            assert_eq!(sha256(&curl(&bed.near, &format!("http://{proxy}/page.bin")).unwrap()), sha256(&page));
        }
        assert_eq!(curl(&bed.near, &format!("http://{proxy}/nothing")), Err("404".to_owned()));
        let (report, complete) = engine.report();
        assert!(complete, "{report:#}");
        assert_eq!((&report["finished"], &report["broken"]), (&3.into(), &0.into()), "{report:#}");
        assert!(report["backward_octets"].as_u64() > Some(2 * page.len() as u64), "{report:#}");
    }
}
