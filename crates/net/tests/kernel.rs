//! The kernel's TCP by itself: over the relay, which proves the test bed, and what the profile `linux` says of it.

mod support;

use bytes::Bytes;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use support::relay::{Impairment, Relay};
use support::skip::skip;
use support::stream::{exchange, octets, sha256, CloseOrder};
use whyloss_net::namespace::{missing_capability, Namespace};
use whyloss_net::Tun;
use whyloss_transport::segment::{Flags, Options, Segment};
use whyloss_transport::wire::{emit, ip::Header, parse, Packet};

#[test]
fn the_kernel_talks_to_itself_over_a_bad_path() {
    if let Some(reason) = missing_capability() {
        skip(&reason);
        return;
    }
    let (left, right) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    let a = left.run(|| Tun::open("path")).unwrap();
    let b = right.run(|| Tun::open("path")).unwrap();
    for (ns, host, peer) in [(&left, 1, 2), (&right, 2, 1)] {
        ns.ip(&format!("addr add 10.7.0.{host} peer 10.7.0.{peer} dev path")).unwrap();
        ns.ip("link set path up").unwrap();
    }
    let impairment = Impairment {
        lose: 0.001,
        flip: 0.001,
        duplicate: 0.002,
        reorder: 0.005,
        hold: Duration::from_millis(2),
        delay: Duration::from_millis(1),
        ..Impairment::default()
    };
    let relay = Relay::start(a, b, [impairment; 2], 1);
    let listener = right.run(|| TcpListener::bind("10.7.0.2:80")).unwrap();
    let (one, two) = (octets(1, 16 << 20), octets(2, 16 << 20));
    let (got_left, got_right) = std::thread::scope(|scope| {
        let server = scope.spawn(|| exchange(listener.accept().unwrap().0, &two, CloseOrder::WhenSent));
        let client = left.run(|| TcpStream::connect("10.7.0.2:80")).unwrap();
        let got = exchange(client, &one, CloseOrder::AfterPeer);
        (got.unwrap(), server.join().unwrap().unwrap())
    });
    assert_eq!(got_left, (sha256(&two), two.len() as u64));
    assert_eq!(got_right, (sha256(&one), one.len() as u64));
    println!("{:#?}", relay.stop());
}

/// The next packet of TCP that comes out of the kernel before `until`.
fn next(tun: &Tun, until: Instant) -> Option<Packet> {
    let mut buffer = vec![0; 2000];
    while Instant::now() < until {
        match tun.receive(&mut buffer).unwrap() {
            Some(length) => {
                if let Ok(packet) = parse(&Bytes::copy_from_slice(&buffer[..length])) {
                    return Some(packet);
                }
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

/// Segments that the kernel sends before it hears of any, where so many of its SYNs were lost.
fn first_flight(ns: &Namespace, tun: &Tun, lost: usize, port: u16) -> usize {
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let mut stream = ns.run(|| TcpStream::connect(("10.7.0.2", port))).unwrap();
            stream.write_all(&octets(1, 20_000)).unwrap();
            stream
        });
        let seconds = |seconds| Instant::now() + Duration::from_secs(seconds);
        let mut syns =
            std::iter::repeat_with(|| next(tun, seconds(10)).expect("a SYN")).filter(|packet| packet.segment.flags == Flags::SYN);
        let syn = syns.nth(lost).unwrap();
        let answer = Segment {
            src_port: syn.segment.dst_port,
            dst_port: syn.segment.src_port,
            ack: syn.segment.seq + 1,
            flags: Flags(Flags::SYN.0 | Flags::ACK.0),
            window: 65535,
            options: Options { mss: Some(1000), ..Options::default() },
            ..Segment::default()
        };
        let mut octets = Vec::new();
        emit(&Header { addresses: syn.header.addresses.reversed(), hop_limit: 64 }, &answer, &mut octets).unwrap();
        assert!(tun.send(&octets).unwrap());
        // Shorter than its least retransmission timeout.
        let until = Instant::now() + Duration::from_millis(150);
        let data = std::iter::from_fn(|| next(tun, until)).filter(|packet| !packet.segment.is_empty());
        let sent: BTreeSet<u32> = data.map(|packet| packet.segment.seq.0).collect();
        drop(sender.join().unwrap());
        sent.len()
    })
}

/// `forgiven_syn_losses` of the profile.
#[test]
fn the_kernel_begins_with_a_whole_window_after_one_lost_syn_and_with_a_segment_after_two() {
    if let Some(reason) = missing_capability() {
        skip(&reason);
        return;
    }
    let ns = Namespace::new().unwrap();
    let tun = ns.run(|| Tun::open("path")).unwrap();
    ns.ip("addr add 10.7.0.1 peer 10.7.0.2 dev path").unwrap();
    ns.ip("link set path up").unwrap();
    ns.sysctl("ipv4/tcp_ecn", "0").unwrap();
    let flights: Vec<usize> = (0..3).map(|lost| first_flight(&ns, &tun, lost, 80 + lost as u16)).collect();
    assert_eq!(flights, [10, 10, 1]);
}
