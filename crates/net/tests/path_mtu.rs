//! Paths that carry smaller packets than both ends do: with routers that say so, with routers that do not, and with routers that cut.

mod support;

use serde_json::Value;
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::{Duration, Instant};
use support::bed::{accept, connect, listen, Bed, Family};
use support::relay::Impairment;
use support::skip::skip;
use support::stream::{exchange, octets, sha256, synthetic, CloseOrder};
use whyloss_net::namespace::missing_tool;

const OCTETS: usize = 4 << 20;
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

fn good() -> Impairment {
    Impairment { delay: Duration::from_millis(5), ..Impairment::default() }
}

/// Moves data both ways between the kernel and the engine, which opens the connection or accepts it. Gives the engine's report and the time
/// that it took.
fn transfer(bed: &Bed, family: Family, opens: bool) -> (Value, Duration) {
    let data = octets(7, OCTETS);
    let common = format!("exchange --time-wait 0 --send-octets {OCTETS}");
    let start = Instant::now();
    let (got, engine) = if opens {
        let to = SocketAddr::new(family.peer(), 80);
        let listener = listen(&bed.peer, to.ip(), to.port());
        let engine = bed.engine(&format!("{common} --connect {to}"));
        (accept(&listener).and_then(|stream| exchange(stream, &data, CloseOrder::WhenSent)), engine)
    } else {
        let to = SocketAddr::new(family.engine(), 80);
        let engine = bed.engine(&format!("{common} --listen {to}"));
        (connect(&bed.peer, to).and_then(|stream| exchange(stream, &data, CloseOrder::WhenSent)), engine)
    };
    let took = start.elapsed();
    let (report, _) = engine.report();
    let got = got.unwrap_or_else(|error| panic!("the kernel's end: {error}; the engine's: {report:#}"));
    assert_eq!(got, (sha256(&synthetic(OCTETS)), OCTETS as u64), "{report:#}");
    assert_eq!(report["received"]["sha256"], sha256(&data), "{report:#}");
    (report, took)
}

#[test]
fn a_router_that_says_its_mtu_is_heeded() {
    let Some(bed) = Bed::new([good(); 2], 31) else { return };
    bed.near.ip("link set path mtu 1400").unwrap();
    for family in FAMILIES {
        for opens in [true, false] {
            let (report, took) = transfer(&bed, family, opens);
            println!("{family:?} {opens}: {took:?}");
            assert_eq!(report["tcp"]["mtu_reductions"], 1, "{report:#}");
            assert_eq!(report["tcp"]["timeouts"], 0, "{report:#}");
            assert!(report["device"]["too_big"].as_u64() > Some(0), "{report:#}");
        }
    }
}

#[test]
fn a_path_that_swallows_large_packets_is_found_out() {
    let swallowing = Impairment { swallow_beyond: Some(1400), ..good() };
    let Some(bed) = Bed::new([good(), swallowing], 32) else { return };
    for family in FAMILIES {
        for opens in [true, false] {
            let (report, took) = transfer(&bed, family, opens);
            println!("{family:?} {opens}: {took:?}");
            assert_eq!((&report["tcp"]["mtu_reductions"], &report["device"]["too_big"]), (&1.into(), &0.into()), "{report:#}");
            assert!(report["tcp"]["mtu_probes"].as_u64() > Some(3), "{report:#}");
            assert!(took < Duration::from_secs(15), "{took:?} {report:#}");
        }
    }
}

/// A kernel without path MTU discovery lets routers cut its packets.
#[test]
fn packets_that_a_router_cuts_are_put_together() {
    let Some(bed) = Bed::new([good(); 2], 33) else { return };
    bed.peer.sysctl("ipv4/ip_no_pmtu_disc", "1").unwrap();
    bed.near.ip("link set engine mtu 1000").unwrap();
    let (report, _) = transfer(&bed, Family::V4, true);
    assert!(report["device"]["fragments"].as_u64() > Some(OCTETS as u64 / 1000), "{report:#}");
}

/// IPv6 senders cut their packets themselves, though not those of TCP.
#[test]
fn a_ping_in_fragments_is_answered() {
    const PING: &str = "
import socket, sys
ping = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
ping.settimeout(20)
data = bytes(range(200)) * 7
ping.sendto(bytes([128, 0, 0, 0, 0, 1, 0, 1]) + data, (sys.argv[1], 0))
while True:
    answer = ping.recv(65536)
    if answer[0] == 129:
        sys.exit(answer[8:] != data)
";
    let Some(bed) = Bed::new([good(); 2], 34) else { return };
    if let Some(reason) = missing_tool(&[("python3", "python3")]) {
        skip(&reason);
        return;
    }
    bed.peer.ip("link set path mtu 1280").unwrap();
    let to: IpAddr = Family::V6.engine();
    let engine = bed.engine(&format!("exchange --listen {}", SocketAddr::new(to, 80)));
    let ping = bed.peer.run(|| Command::new("python3").args(["-c", PING, &to.to_string()]).status()).unwrap();
    assert!(ping.success(), "{ping}");
    drop(engine);
}
