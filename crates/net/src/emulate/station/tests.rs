use super::flows::{MOST_BY_ADDRESS, MOST_FLOWS};
use super::*;
use std::net::Ipv4Addr;
use whyloss_sim::{Downtime, MiddleboxKind, Outage};
use whyloss_transport::segment::{Flags, Options, RareOptions};
use whyloss_transport::{Duration, Payload, Seq};

const FIXED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

fn never() -> Turns {
    Turns::new(Downtime::default())
}

fn station(kind: &str) -> Station {
    Station::new(&Middlebox::new(0, 0, MiddleboxKind::named(kind).unwrap()), never()).unwrap()
}

fn packet([src, dst]: [Ipv4Addr; 2], hop_limit: u8, segment: &Segment) -> Vec<u8> {
    let mut octets = Vec::new();
    let addresses = ip::Addresses::V4 { src, dst };
    wire::emit(&ip::Header { addresses, hop_limit }, segment, &mut octets).unwrap();
    octets
}

fn data(port: u16, n: u32) -> Segment {
    let payload = Payload::Bytes(Bytes::from(vec![n as u8; 100]));
    let (src_port, dst_port) = (80, port);
    Segment { src_port, dst_port, seq: Seq(n * 100), flags: Flags::ACK, window: 500, payload, ..Segment::default() }
}

fn ack(port: u16, n: u32) -> Segment {
    let (src_port, dst_port) = (port, 80);
    Segment { src_port, dst_port, ack: Seq(n * 100), flags: Flags::ACK, window: 900, ..Segment::default() }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn down(station: &Station, ms: u64, octets: &mut Vec<u8>) -> (AgentOutcome, Work) {
    station.pass(Side::Fixed, at(ms), false, octets)
}

fn up(station: &Station, ms: u64, segment: &Segment) -> (AgentOutcome, Work) {
    station.pass(Side::Mobile, at(ms), false, &mut packet([MOBILE, FIXED], 60, segment))
}

/// A snoop agent that has seen three segments, of which the first has come.
fn begun() -> Station {
    let station = station("snoop");
    for n in 0..3 {
        assert_eq!(down(&station, 0, &mut packet([FIXED, MOBILE], 61, &data(5000, n))).0, AgentOutcome::Untouched);
    }
    assert_eq!(up(&station, 5, &ack(5000, 1)).0, AgentOutcome::Untouched);
    station
}

#[test]
fn what_is_sent_again_is_the_packet_that_came() {
    let station = begun();
    let (outcome, work) = up(&station, 6, &ack(5000, 1));
    assert_eq!(outcome, AgentOutcome::Ended);
    let [away, back] = work.made;
    assert!(back.is_empty());
    assert_eq!(away.len(), 1);
    assert!(away[0].urgent);
    assert_eq!(away[0].octets, packet([FIXED, MOBILE], 61, &data(5000, 1)));
    let audit = station.audit();
    assert_eq!((audit.seen, audit.suppressed, audit.sent, audit.changed), (5, 1, 1, 0));
    assert_eq!((audit.flows, audit.segments, audit.connection_segments), (1, 3, 3));
}

#[test]
fn the_timer_sends_without_a_packet_and_wakes_who_sleeps() {
    let station = begun();
    let due = station.arm().unwrap();
    assert!(due >= at(105));
    assert!(station.advance(at(100)).made[0].is_empty());
    assert_eq!(station.advance(due).made[0][0].octets, packet([FIXED, MOBILE], 61, &data(5000, 1)));
    // Nobody waits for anything: the first timer of a connection is news.
    let quiet = self::station("snoop");
    assert_eq!(quiet.arm(), None);
    down(&quiet, 0, &mut packet([FIXED, MOBILE], 61, &Segment { flags: Flags::SYN, ..data(5000, 0) }));
    assert!(down(&quiet, 0, &mut packet([FIXED, MOBILE], 61, &Segment { seq: Seq(1), ..data(5000, 0) })).1.wake);
}

#[test]
fn what_is_no_whole_intact_segment_passes_unseen() {
    let station = begun();
    let whole = packet([FIXED, MOBILE], 61, &data(5000, 3));
    let damaged = |octet: usize| {
        let mut octets = whole.clone();
        octets[octet] ^= 1;
        octets
    };
    let mut udp = whole.clone();
    udp[9] = 17;
    // Damage to data, to the TCP header, to the IP header; a reserved bit, another protocol, a part, nothing.
    for octets in [damaged(70), damaged(25), damaged(15), damaged(32), udp, whole[..30].to_vec(), whole[..8].to_vec(), vec![]] {
        let mut same = octets.clone();
        assert_eq!(down(&station, 7, &mut same).0, AgentOutcome::Untouched);
        assert_eq!(same, octets);
    }
    assert_eq!(station.audit().seen, 4);
}

#[test]
fn options_that_nobody_knows_stay_and_go_with_what_is_sent_again() {
    let station = begun();
    let rare = RareOptions { unknown: vec![(200, Bytes::from_static(&[1, 2, 3]))], ..RareOptions::default() };
    let mut segment = data(5000, 3);
    segment.options.rare = Some(Box::new(rare));
    let first = packet([FIXED, MOBILE], 61, &segment);
    let mut octets = first.clone();
    assert_eq!(down(&station, 6, &mut octets).0, AgentOutcome::Untouched);
    assert_eq!(octets, first);
    up(&station, 7, &ack(5000, 3));
    let again = up(&station, 8, &ack(5000, 3)).1.made;
    assert_eq!(again[0][0].octets, first);
}

#[test]
fn connections_are_bounded_in_all_and_by_address() {
    let station = station("snoop");
    let host = |n: u32| Ipv4Addr::from(0x0a00_0000 + n);
    for port in 0..2 * MOST_BY_ADDRESS as u16 {
        down(&station, 0, &mut packet([FIXED, MOBILE], 61, &data(port, 0)));
    }
    assert_eq!(station.audit().flows, MOST_BY_ADDRESS as u64);
    assert_eq!(station.audit().evicted, MOST_BY_ADDRESS as u64);
    for n in 0..2 * MOST_FLOWS as u32 {
        down(&station, 0, &mut packet([host(1000 + n), host(100_000 + n)], 61, &data(5000, 0)));
    }
    let state = lock(&station.state);
    assert_eq!((state.flows.known.len(), state.flows.ends.len()), (MOST_FLOWS, MOST_FLOWS));
    let held = state.agent.held();
    assert_eq!((held.flows, held.segments), (MOST_FLOWS as u64, MOST_FLOWS as u64));
}

#[test]
fn a_restart_forgets_everything() {
    let kind = MiddleboxKind::named("snoop").unwrap();
    let station = Station::new(&Middlebox { restart: vec![at(10)], ..Middlebox::new(0, 0, kind) }, never()).unwrap();
    down(&station, 0, &mut packet([FIXED, MOBILE], 61, &data(5000, 0)));
    assert_eq!(station.arm(), Some(at(10)));
    station.advance(at(10));
    assert_eq!(lock(&station.state).agent.held().flows, 0);
    assert_eq!(up(&station, 11, &ack(5000, 0)).0, AgentOutcome::Untouched);
    assert_eq!(up(&station, 11, &ack(5000, 0)).0, AgentOutcome::Untouched);
}

/// A station with a connection from the fixed to the mobile host that stands and is split; the far end has said nothing but its SYN.
fn split() -> Station {
    let station = station("i-tcp");
    let options = || Options { mss: Some(1460), ..Options::default() };
    let syn = Segment { flags: Flags::SYN, payload: Payload::Empty, seq: Seq(99), options: options(), ..data(5000, 0) };
    let (outcome, work) = down(&station, 0, &mut packet([FIXED, MOBILE], 61, &syn));
    assert_eq!((outcome, work.made[0].len(), work.made[1].len()), (AgentOutcome::Ended, 1, 0));
    let syn_ack = Segment { flags: Flags::SYN | Flags::ACK, seq: Seq(999), options: options(), ..ack(5000, 1) };
    let (outcome, work) = up(&station, 1, &syn_ack);
    assert_eq!((outcome, work.made[0].len(), work.made[1].len()), (AgentOutcome::Ended, 0, 1));
    let established = Segment { payload: Payload::Empty, ack: Seq(1000), ..data(5000, 1) };
    let (outcome, work) = down(&station, 2, &mut packet([FIXED, MOBILE], 61, &established));
    assert_eq!((outcome, work.made[0].len(), work.made[1].len()), (AgentOutcome::Ended, 1, 0));
    station
}

#[test]
fn the_halves_speak_with_the_addresses_ports_and_hop_limits_of_the_ends() {
    let station = split();
    let (outcome, work) = down(&station, 10, &mut packet([FIXED, MOBILE], 59, &Segment { ack: Seq(1000), ..data(5000, 1) }));
    assert_eq!(outcome, AgentOutcome::Ended);
    let made = wire::parse(&Bytes::from(work.made[0][0].octets.clone())).unwrap();
    assert_eq!(made.header, ip::Header { addresses: ip::Addresses::V4 { src: FIXED, dst: MOBILE }, hop_limit: 59 });
    assert_eq!(
        (made.segment.src_port, made.segment.dst_port, made.segment.seq, made.segment.ack),
        (80, 5000, Seq(100), Seq(1000))
    );
    assert_eq!(made.segment.payload.to_bytes(), data(5000, 1).payload.to_bytes());
    // It is acknowledged in the name of the mobile host, which has not got it yet.
    let due = station.arm().unwrap();
    let work = station.advance(due);
    let acknowledged = wire::parse(&Bytes::from(work.made[1][0].octets.clone())).unwrap();
    assert_eq!((acknowledged.header.addresses.src(), acknowledged.header.hop_limit), (MOBILE.into(), 60));
    assert_eq!(acknowledged.segment.ack, Seq(200));
    let audit = station.audit();
    assert_eq!((audit.accepted, audit.suppressed, audit.flows), (4, 0, 1));
    assert!(audit.connection_octets > 100);
}

#[test]
fn of_a_split_connection_nothing_passes_unseen() {
    let station = split();
    let segment = Segment { ack: Seq(1000), ..data(5000, 1) };
    let whole = packet([FIXED, MOBILE], 61, &segment);
    let mut damaged = whole.clone();
    damaged[70] ^= 1;
    assert_eq!(down(&station, 10, &mut damaged).0, AgentOutcome::Ended);
    assert_eq!(station.audit().suppressed, 1);
    // A reserved bit is no reason not to take it (RFC 9293, 3.1).
    let mut reserved = whole;
    reserved[32] ^= 1;
    let sum = u16::from_be_bytes([reserved[36], reserved[37]]);
    reserved[36..38].copy_from_slice(&(sum - 0x100).to_be_bytes());
    let (outcome, work) = down(&station, 11, &mut reserved.clone());
    assert_eq!((outcome, work.made[0].len()), (AgentOutcome::Ended, 1));
    // Of another connection both pass.
    let mut other = reserved;
    other[21] ^= 1;
    assert_eq!(down(&station, 12, &mut other).0, AgentOutcome::Untouched);
}

#[test]
fn a_flood_of_syns_leaves_a_connection_that_stands() {
    let station = split();
    let host = |n: u32| Ipv4Addr::from(0x0a01_0000 + n);
    let began = std::time::Instant::now();
    for n in 0..20_000_u32 {
        let syn = Segment { flags: Flags::SYN, payload: Payload::Empty, ..data(5000 + (n % 7) as u16, n) };
        // Half of them to the host that has the connection, half to any.
        let to = if n % 2 == 0 { MOBILE } else { host(100_000 + n) };
        down(&station, 10 + u64::from(n) / 100, &mut packet([host(n), to], 61, &syn));
    }
    println!("{:?} a SYN", began.elapsed() / 20_000);
    assert!(began.elapsed() < std::time::Duration::from_secs(5), "a flood is not work for the emulator");
    let state = lock(&station.state);
    assert!(state.flows.known.len() <= MOST_FLOWS && state.agent.held().flows <= MOST_FLOWS as u64);
    assert!(state.agent.held().octets < 16 << 20, "{:?}", state.agent.held());
    drop(state);
    let (outcome, work) = down(&station, 300, &mut packet([FIXED, MOBILE], 61, &Segment { ack: Seq(1000), ..data(5000, 1) }));
    assert_eq!(outcome, AgentOutcome::Ended);
    assert_eq!(work.made[0].last().unwrap().octets, {
        let segment = Segment { ack: Seq(1000), window: 65_535, ..data(5000, 1) };
        packet([FIXED, MOBILE], 61, &Segment { flags: Flags::ACK | Flags::PSH, ..segment })
    });
}

#[test]
fn as_many_connections_of_one_address_are_split_as_are_known_and_others_pass() {
    let station = station("i-tcp");
    for port in 0..2 * MOST_BY_ADDRESS as u16 {
        let port = 5000 + port;
        let syn = Segment { flags: Flags::SYN, payload: Payload::Empty, seq: Seq(99), ..data(port, 0) };
        let split = down(&station, 0, &mut packet([FIXED, MOBILE], 61, &syn)).0 == AgentOutcome::Ended;
        assert_eq!(split, port < 5000 + MOST_BY_ADDRESS as u16, "{port}");
        up(&station, 1, &Segment { flags: Flags::SYN | Flags::ACK, seq: Seq(999), ..ack(port, 1) });
        let established = Segment { payload: Payload::Empty, ack: Seq(1000), ..data(port, 1) };
        down(&station, 2, &mut packet([FIXED, MOBILE], 61, &established));
    }
    let audit = station.audit();
    assert_eq!((audit.flows, audit.evicted), (MOST_BY_ADDRESS as u64, 0));
    assert_eq!(audit.unremembered, 3 * MOST_BY_ADDRESS as u64);
}

#[test]
fn a_router_s_word_on_a_packet_of_the_agent_ends_here() {
    let station = split();
    let long = Segment { payload: Payload::Bytes(Bytes::from(vec![7; 800])), ack: Seq(1000), ..data(5000, 1) };
    let (_, work) = down(&station, 10, &mut packet([FIXED, MOBILE], 61, &long));
    let sent = &work.made[0][0].octets;
    assert_eq!(sent.len(), 840);
    for (about, ended) in [([FIXED, MOBILE], true), ([Ipv4Addr::new(10, 0, 0, 7), MOBILE], false)] {
        let mut quoted = sent.clone();
        quoted[12..16].copy_from_slice(&about[0].octets());
        let mut message = too_big(about[0], &quoted, 600);
        let (outcome, work) = station.pass(Side::Mobile, at(11), false, &mut message);
        assert_eq!(outcome == AgentOutcome::Ended, ended);
        assert_eq!(work.made[0].iter().map(|made| made.octets.len()).max(), ended.then_some(600));
    }
}

/// "Fragmentation needed" (RFC 792; RFC 1191, 4).
fn too_big(to: Ipv4Addr, quoted: &[u8], mtu: u16) -> Vec<u8> {
    let mut message = vec![3, 4, 0, 0, 0, 0, 0, 0];
    message[6..8].copy_from_slice(&mtu.to_be_bytes());
    message.extend(&quoted[..28]);
    let sum = wire::checksum::Sum::default().with(&message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut octets = vec![0x45, 0, 0, 20 + message.len() as u8, 0, 0, 0, 0, 64, icmp::V4, 0, 0, 10, 9, 9, 9];
    octets.extend(to.octets());
    let sum = wire::checksum::Sum::default().with(&octets).finish();
    octets[10..12].copy_from_slice(&sum.to_be_bytes());
    octets.extend(message);
    octets
}

#[test]
fn m_tcp_hears_of_outages_and_holds_back_the_last_octet() {
    let kind = MiddleboxKind::named("m-tcp").unwrap();
    let outage = Outage::once(at(50), Duration::from_millis(100));
    let turns = Turns::new(Downtime::new(&[outage], 1, 0, "station>mobile"));
    let station = Station::new(&Middlebox::new(0, 0, kind), turns).unwrap();
    for n in 0..3 {
        down(&station, 0, &mut packet([FIXED, MOBILE], 61, &data(5000, n)));
    }
    up(&station, 5, &ack(5000, 1));
    let mut octets = packet([MOBILE, FIXED], 60, &ack(5000, 2));
    assert_eq!(station.pass(Side::Mobile, at(6), false, &mut octets).0, AgentOutcome::Changed);
    assert_eq!(wire::parse(&Bytes::from(octets)).unwrap().segment.ack, Seq(199));
    assert_eq!(station.arm(), Some(at(50)));
    let told = |ms: u64| {
        let [away, back] = station.advance(at(ms)).made;
        assert!(away.is_empty());
        let segments = back.into_iter().map(|made| wire::parse(&Bytes::from(made.octets)).unwrap().segment);
        segments.map(|segment| (segment.ack.0, segment.window)).collect::<Vec<_>>()
    };
    assert_eq!(told(50)[0], (200, 0));
    assert_eq!((station.arm(), told(150)), (Some(at(150)), vec![(200, 900)]));
}
