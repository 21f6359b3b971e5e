//! Exchanges out of the ordinary: repeated ends, clocks that go back, directions that nobody answers.

use crate::records::{explain, pcap, Packet, RAW};
use etherparse::PacketBuilder;
use pcap_file::Endianness;
use whyloss_capture::connections::Place;
use whyloss_capture::half::Trigger;
use whyloss_capture::report::Analysis;

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
        let mut builder = PacketBuilder::ipv4(from, to, 64).tcp(ports.0, ports.1, FIRST[me] + seq, 60_000);
        if flags.contains('S') {
            builder = builder.syn();
        }
        if flags.contains('A') {
            builder = builder.ack(FIRST[other] + ack);
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
