//! Exchanges out of the ordinary: repeated ends, clocks that go back, directions that nobody answers.

use crate::records::{explain, pcap, Packet, RAW};
use etherparse::PacketBuilder;
use pcap_file::Endianness;
use std::io::Cursor;
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::connections::Place;
use whyloss_capture::half::Trigger;
use whyloss_capture::report::Analysis;
use whyloss_capture::source::Source;

const MS: u64 = 1_000_000;
/// What a client sends first, and its server.
const FIRST: [u32; 2] = [100, 500];

/// A connection from this port, to write down what its ends send.
#[derive(Clone, Copy)]
struct End {
    port: u16,
    is_client: bool,
}

impl End {
    /// A segment with `len` octets, captured after `us` microseconds; `seq` and `ack` are counted from the first numbers.
    fn segment(self, us: u64, flags: &str, (seq, ack): (u32, u32), len: usize) -> Packet {
        let Self { port, is_client } = self;
        let (me, other) = (usize::from(!is_client), usize::from(is_client));
        let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let ((from, to), ports) = if is_client { ((client, server), (port, 80)) } else { ((server, client), (80, port)) };
        // 'Z' closes the window.
        let window = if flags.contains('Z') { 0 } else { 60_000 };
        let mut builder = PacketBuilder::ipv4(from, to, 64).tcp(ports.0, ports.1, FIRST[me].wrapping_add(seq), window);
        if flags.contains('S') {
            builder = builder.syn();
        }
        if flags.contains('A') {
            builder = builder.ack(FIRST[other].wrapping_add(ack));
        }
        if flags.contains('R') {
            builder = builder.rst();
        }
        if flags.contains('F') {
            builder = builder.fin();
        }
        let mut octets = Vec::new();
        builder.write(&mut octets, &vec![7; len]).unwrap();
        let original_len = octets.len() as u32;
        Packet { at: 1_700_000_000_000 * MS + us * 1000, octets, original_len, comment: None }
    }
}

fn ends(port: u16) -> [End; 2] {
    [true, false].map(|is_client| End { port, is_client })
}

/// A handshake, captured at the server or at the client, 20 ms from the other one.
fn opening(port: u16, at_server: bool) -> Vec<Packet> {
    let [client, server] = ends(port);
    let (answered, confirmed) = if at_server { (100, 20_000) } else { (20_000, 20_100) };
    vec![client.segment(0, "S", (0, 0), 0), server.segment(answered, "SA", (0, 1), 0), client.segment(confirmed, "A", (1, 1), 0)]
}

fn explained(packets: &[Packet]) -> Analysis {
    explain(&pcap(packets, RAW, Endianness::Little)).0
}

#[test]
fn a_fin_that_is_sent_again_is_no_keep_alive() {
    let [client, server] = ends(4000);
    let mut packets = opening(4000, true);
    for number in 0..20 {
        let (us, seq) = (30_000 + u64::from(number) * 20_000, 1 + number * 1000);
        packets.push(client.segment(us, "A", (seq, 1), 1000));
        packets.push(server.segment(us + 100, "A", (1, seq + 1000), 0));
    }
    for us in [500_000, 750_000] {
        packets.push(client.segment(us, "FA", (20_001, 1), 0));
        packets.push(server.segment(us + 100, "A", (1, 20_002), 0));
    }
    let analysis = explained(&packets);
    let counts = analysis.flows[0].counts;
    assert_eq!((counts.probes, counts.retransmissions), (0, 1));
    assert_eq!(analysis.retransmissions[0].what.trigger, Trigger::Timeout);
}

#[test]
fn a_clock_that_is_set_back_moves_the_capture_nowhere() {
    for at_server in [true, false] {
        let [client, server] = ends(4000);
        let places = [0, 50].map(|set_back| {
            let mut packets = opening(4000, at_server);
            for number in 0..200 {
                let (step, seq) = (u64::from(number), 1 + number * 1000);
                let us = 10_000_000 + step * 20_000 - if number >= 100 { set_back * 100_000 } else { 0 };
                packets.push(client.segment(us, "A", (seq, 1), 1000));
                // What the capture has of the round trip: next to nothing, or nearly all.
                let answered = if at_server { 100 } else { 19_900 };
                packets.push(server.segment(us + answered, "A", (1, seq + 1000), 0));
            }
            explained(&packets).flows[0].place
        });
        assert_eq!(places, [if at_server { Place::Receiver } else { Place::Sender }; 2]);
    }
}

#[test]
fn what_goes_unanswered_does_not_depend_on_where_a_connection_is_followed() {
    let mut packets = Vec::new();
    for port in 4000..4016 {
        packets.extend(opening(port, false));
        packets.push(ends(port)[0].segment(30_000, "A", (1, 1), 1000));
    }
    packets.sort_by_key(|packet| packet.at);
    packets.push(ends(5000)[0].segment(30_000_000, "S", (0, 0), 0));
    let analysis = explained(&packets);
    let unanswered: Vec<u64> = analysis.flows.iter().map(|flow| flow.counts.unanswered).collect();
    assert_eq!(unanswered, [1; 16]);
}

#[test]
fn of_a_direction_whose_answers_were_not_captured_nothing_is_lost() {
    let client = ends(4000)[0];
    let mut packets = vec![client.segment(0, "S", (0, 0), 0)];
    packets.extend((0..200).map(|number| client.segment(100_000 + u64::from(number) * 2000, "A", (1 + number * 1000, 1), 1000)));
    packets.push(client.segment(30_000_000, "A", (200_001, 1), 0));
    let analysis = explained(&packets);
    assert_eq!(analysis.flows[0].counts.segments, 200);
    assert_eq!(analysis.losses.len(), 0);
}

/// Ten segments of 1000 octets from `us` on and their acknowledgements, whose numbers begin with these.
fn exchange([client, server]: [End; 2], us: u64, seq: u32, ack: u32) -> Vec<Packet> {
    let one = |number: u32| {
        let (us, seq) = (us + u64::from(number) * 20_000, seq + number * 1000);
        [client.segment(us, "A", (seq, ack), 1000), server.segment(us + 100, "A", (ack, seq + 1000), 0)]
    };
    (0..10).flat_map(one).collect()
}

/// Connections, stretches that the capture missed and losses, where other packets follow an exchange whose numbers end with 10001 and 1.
fn after_an_exchange(others: &[Packet]) -> (u64, u64, usize) {
    let mut packets = opening(4000, true);
    packets.extend(exchange(ends(4000), 30_000, 1, 1));
    packets.extend_from_slice(others);
    let analysis = explained(&packets);
    let holes = analysis.flows.iter().map(|flow| flow.counts.holes).sum();
    (analysis.facts.connections, holes, analysis.losses.len())
}

#[test]
fn the_next_connection_of_a_port_is_another_though_its_opening_was_not_captured() {
    let [client, server] = ends(4000);
    let fins = [
        client.segment(250_000, "FA", (10_001, 1), 0),
        server.segment(250_100, "FA", (1, 10_002), 0),
        client.segment(270_000, "A", (10_002, 2), 0),
    ];
    let reset = [server.segment(250_000, "RA", (1, 10_001), 0)];
    let (seq, ack) = (0x5000_0000, 0x9000_0000);
    for (end, pause) in [(&fins[..], 1_000_000), (&reset, 1_000_000), (&[], 120_000_000)] {
        let next = [end, &exchange(ends(4000), pause, seq, ack)].concat();
        assert_eq!(after_an_exchange(&next), (2, 0, 0));
    }
    // An answer to the opening tells at once.
    let mut next = vec![server.segment(1_000_000, "SA", (ack - 1, seq), 0)];
    next.extend(exchange(ends(4000), 1_030_000, seq, ack));
    assert_eq!(after_an_exchange(&next), (2, 0, 0));
    // What goes on, be it after a long silence, is the same, and so it is where a stray segment has other numbers.
    let mut next = vec![client.segment(300_000, "A", (seq, ack), 0)];
    next.extend(exchange(ends(4000), 120_000_000, 10_001, 1));
    assert_eq!(after_an_exchange(&next).0, 1);
    assert_eq!(after_an_exchange(&[&fins[..], &[client.segment(2_000_000, "A", (10_002, 2), 0)]].concat()), (1, 0, 0));
}

#[test]
fn an_octet_beyond_a_closed_window_that_the_receiver_takes_was_not_missed() {
    let [client, server] = ends(4000);
    let mut others = vec![server.segment(240_000, "AZ", (1, 10_001), 0)];
    // The first probe is not taken, the next two are.
    others.push(client.segment(1_000_000, "A", (10_001, 1), 1));
    others.push(server.segment(1_000_100, "AZ", (1, 10_001), 0));
    for number in 0..2 {
        let (us, seq) = (2_000_000 + u64::from(number) * 1_000_000, 10_001 + number);
        others.push(client.segment(us, "A", (seq, 1), 1));
        others.push(server.segment(us + 100, "AZ", (1, seq + 1), 0));
    }
    others.push(server.segment(4_000_000, "A", (1, 10_003), 0));
    others.extend(exchange(ends(4000), 4_020_000, 10_003, 1));
    assert_eq!(after_an_exchange(&others), (1, 0, 0));
    // An octet that nobody saw is missed as before.
    others.retain(|packet| packet.octets.len() != 41);
    assert_eq!(after_an_exchange(&others).1, 2);
}

#[test]
fn ends_that_open_at_once_have_one_connection() {
    let [client, server] = ends(4000);
    let syns = [client.segment(0, "S", (0, 0), 0), server.segment(1_000, "S", (0, 0), 0)];
    // Each answers the SYN of the other by its own, now with an acknowledgement.
    let answers = [server.segment(20_000, "SA", (0, 1), 0), client.segment(21_000, "SA", (0, 1), 0)];
    let later = [client.segment(41_000, "A", (1, 1), 0), server.segment(41_100, "A", (1, 1), 0)];
    let told = |again: Option<Packet>| {
        let opening = syns.iter().cloned().chain(again).chain(answers.iter().cloned()).chain(later.iter().cloned());
        let mut packets: Vec<Packet> = opening.collect();
        packets.extend(exchange([client, server], 50_000, 1, 1));
        packets.push(server.segment(400_000, "A", (1, 10_001), 1000));
        let analysis = explained(&packets);
        let sides: Vec<(u64, bool)> = analysis.flows.iter().map(|flow| (flow.counts.segments, flow.opened)).collect();
        let triggers: Vec<Trigger> = analysis.retransmissions.iter().map(|row| row.what.trigger).collect();
        (analysis.facts.connections, sides, triggers)
    };
    let sides = || vec![(10, true), (1, true)];
    assert_eq!(told(None), (1, sides(), vec![]));
    // A SYN that was lost behind the capture comes again before.
    assert_eq!(told(Some(server.segment(19_000, "S", (0, 0), 0))), (1, sides(), vec![Trigger::Handshake]));
    // Where the first one was refused, the other end opens another connection.
    let refused = [syns[0].clone(), server.segment(100, "RA", (0, 1), 0), syns[1].clone()];
    assert_eq!(explained(&refused).facts.connections, 2);
}

/// The fragments of a packet, the first with so many octets behind the IP header.
fn fragments(packet: &Packet, first: usize) -> [Packet; 2] {
    let part = |offset: usize, body: &[u8], more: u16| {
        let mut octets = [&packet.octets[..20], body].concat();
        let len = octets.len() as u16;
        octets[2..4].copy_from_slice(&len.to_be_bytes());
        octets[6..8].copy_from_slice(&((more << 13) | (offset as u16 / 8)).to_be_bytes());
        Packet { original_len: octets.len() as u32, octets, ..packet.clone() }
    };
    let body = &packet.octets[20..];
    [part(0, &body[..first], 1), part(first, &body[first..], 0)]
}

#[test]
fn fragments_of_segments_were_not_missed() {
    let [client, server] = ends(4000);
    // Of a filter for ports only the first fragments come to the capture.
    for kept in [1, 2] {
        let mut others = Vec::new();
        for packet in exchange(ends(4000), 300_000, 10_001, 1) {
            if packet.octets.len() > 1000 {
                others.extend_from_slice(&fragments(&packet, 520)[..kept]);
            } else {
                others.push(packet);
            }
        }
        // Several before an acknowledgement, one of them sent again, and the end.
        for (us, seq) in [(1_000_000, 20_001), (1_001_000, 21_001), (1_002_000, 22_001), (1_300_000, 20_001)] {
            others.extend_from_slice(&fragments(&client.segment(us, "A", (seq, 1), 1000), 520)[..kept]);
        }
        others.push(server.segment(1_400_000, "A", (1, 23_001), 0));
        others.extend_from_slice(&fragments(&client.segment(1_500_000, "FA", (23_001, 1), 1000), 520)[..kept]);
        others.push(server.segment(1_500_100, "FA", (1, 24_002), 0));
        others.push(client.segment(1_500_200, "A", (24_002, 2), 0));
        let (connections, holes, _) = after_an_exchange(&others);
        assert_eq!((connections, holes), (1, 0), "{kept} of two fragments");
        // Ten segments of the exchange before, ten and five in fragments.
        let packets: Vec<_> = opening(4000, true).into_iter().chain(exchange(ends(4000), 30_000, 1, 1)).chain(others).collect();
        let counts = explained(&packets).flows[0].counts;
        assert_eq!((counts.segments, counts.octets), (25, 25_000), "{kept} of two fragments");
    }
}

#[test]
fn what_lies_behind_the_segment_of_a_fragment_is_missed_as_before() {
    let [client, server] = ends(4000);
    let mut packets = opening(4000, true);
    for packet in &mut packets[..2] {
        // The largest segment that both take: 1000 octets.
        packet.octets.extend([2, 4, 3, 232]);
        (packet.octets[3], packet.octets[32]) = (44, 0x60);
        packet.original_len += 4;
    }
    packets.extend(fragments(&client.segment(30_000, "A", (1, 1), 1000), 520));
    packets.push(client.segment(60_000, "A", (3001, 1), 1000));
    packets.push(server.segment(60_100, "A", (1, 4001), 0));
    let counts = explained(&packets).flows[0].counts;
    assert_eq!((counts.holes, counts.unseen_octets), (1, 2000));
}

#[test]
fn captures_that_have_the_same_packets_are_refused() {
    let mut packets = opening(4000, true);
    packets.extend(exchange(ends(4000), 30_000, 1, 1));
    let together = |files: &[&[Packet]]| {
        let source = |(name, packets): (&str, &&[Packet])| {
            Source::new(name.to_owned(), Box::new(Cursor::new(pcap(packets, RAW, Endianness::Little)))).unwrap()
        };
        let sources = ["one.pcap", "it's.pcap"].into_iter().zip(files).map(source).collect();
        analyse(sources, &Settings::default(), &mut |_| ControlFlow::Continue(())).map_err(|error| error.to_string())
    };
    assert_eq!(together(&[&packets[..10], &packets[10..]]).unwrap().facts.segments, 23);
    let said = "it's.pcap: up to packet 4, several packets stand at the same times in one.pcap; allowed is each packet once, as in once.pcapng after: \
                mergecap -w both.pcapng 'one.pcap' 'it'\\''s.pcap' && editcap -d both.pcapng once.pcapng";
    assert_eq!(together(&[&packets[..14], &packets[10..]]).unwrap_err(), said);
    // The same packets, cut to their headers.
    let cut: Vec<Packet> = packets
        .iter()
        .cloned()
        .map(|mut packet| {
            packet.octets.truncate(64);
            packet
        })
        .collect();
    assert!(together(&[&packets, &cut[5..]]).is_err());
}
