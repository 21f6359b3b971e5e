//! A connection whose path carries less than both ends take, with routers that say so and routers that do not.

use super::super::tests::{data, secs, Pair};
use super::super::{Command, Config, Endpoint, FastOpenRequest, Input, Ports, State};
use super::{BASE, FLOOR};
use crate::scheme::Selection;
use crate::segment::{Flags, Options, Payload, Segment, Timestamps};
use crate::seq::Seq;
use crate::time::Duration;
use crate::Integrity;
use bytes::Bytes;

const V4: u8 = 20;
const V6: u8 = 40;

fn config(ip_header: u8, mtu_probing: bool) -> Config {
    Config { ip_header, mss: 1500 - u16::from(ip_header) - 20, mtu_probing, ..Config::modern() }
}

/// A connection with `octets` to send.
fn sending(scheme: &str, config: &Config, octets: usize) -> Pair {
    let mut pair = Pair::new(scheme, config, &[]);
    pair.run(secs(1));
    assert_eq!(pair.ends[0].state(), State::Established);
    pair.ends[0].handle(pair.now, Input::Command(Command::Send(Payload::Bytes(Bytes::from(data(octets))))));
    pair
}

fn too_big(pair: &mut Pair, seq: Seq, mtu: u16) {
    pair.ends[0].handle(pair.now, Input::PacketTooBig { seq, mtu: Some(mtu) });
}

#[test]
fn a_router_that_says_its_mtu_costs_no_timeout_and_no_window() {
    for scheme in ["newreno", "sack"] {
        for header in [V4, V6] {
            for mtu in [1280, 1400, 1499] {
                let mut pair = sending(scheme, &config(header, false), 1_000_000);
                pair.router = (mtu, true);
                let begin = pair.now;
                while pair.ends[0].octets_acknowledged() < 1_000_000 {
                    pair.run(pair.now + Duration::from_millis(10));
                    assert!(pair.now < begin + Duration::from_secs(5), "{scheme} {header} {mtu}: {:?}", pair.ends[0]);
                }
                assert_eq!(pair.received(), data(1_000_000));
                let stats = pair.ends[0].stats();
                assert_eq!((stats.timeouts, stats.reductions, stats.losses), (0, 0, 0), "{scheme} {header} {mtu}");
                assert_eq!((stats.mtu_reductions, pair.ends[0].path_mtu() as usize), (1, mtu), "{scheme} {header}");
                // The first flight of ten went twice, cut in two.
                assert!(stats.retransmissions <= 20, "{}", stats.retransmissions);
            }
        }
    }
}

/// RFC 5927, 4.1 and 7.2.
#[test]
fn a_forged_message_makes_nothing_smaller() {
    let mut pair = sending("sack", &config(V4, true), 3_000_000);
    pair.run(pair.now + Duration::from_millis(150));
    let (una, nxt) = (pair.ends[0].path().una, pair.ends[0].path().nxt);
    assert!(nxt > una);
    for seq in [una - 1, nxt, nxt + 100_000, una.wrapping_sub(1 << 31)] {
        too_big(&mut pair, Seq::from(seq), 600);
    }
    // In flight, and larger packets have arrived before: only a connection that is stuck would believe it.
    too_big(&mut pair, Seq::from(una), 600);
    assert_eq!(pair.ends[0].path_mtu(), 1500);
    pair.run(pair.now + Duration::from_secs(20));
    let end = &pair.ends[0];
    assert_eq!((end.path_mtu(), end.octets_acknowledged(), end.stats().mtu_reductions), (1500, 3_000_000, 0));
}

/// RFC 5681, 4.2: every second full segment is acknowledged.
#[test]
fn a_narrower_path_brings_no_fewer_acknowledgements() {
    let mut pair = sending("sack", &config(V4, false), 1_000_000);
    pair.run(pair.now + Duration::from_millis(250));
    pair.router = (600, true);
    pair.run(pair.now + Duration::from_secs(20));
    assert_eq!((pair.ends[0].path_mtu(), pair.ends[0].octets_acknowledged()), (600, 1_000_000));
    let sent =
        |end, data| pair.trace.iter().filter(move |(_, from, segment)| (*from, !segment.payload.is_empty()) == (end, data));
    let narrow: Vec<_> = sent(0, true).filter(|(_, _, segment)| segment.payload.len() == 600 - 20 - 32).collect();
    // The later half: what came together with larger ones, and in slow start, is acknowledged sooner.
    let (begin, _, _) = narrow[narrow.len() / 2];
    let segments = narrow.len() - narrow.len() / 2;
    let acknowledgements = sent(1, false).filter(|(at, _, _)| at > begin).count();
    assert!(acknowledgements * 2 + 20 >= segments, "{acknowledgements} of {segments}");
}

#[test]
fn a_path_that_changes_is_believed_once_nothing_arrives() {
    let mut pair = sending("sack", &config(V4, false), 3_000_000);
    pair.run(pair.now + Duration::from_millis(250));
    pair.router = (1300, true);
    pair.run(pair.now + Duration::from_secs(20));
    let end = &pair.ends[0];
    assert_eq!((end.path_mtu(), end.octets_acknowledged()), (1300, 3_000_000));
    assert_eq!((end.stats().mtu_reductions, end.stats().timeouts), (1, 1));
}

#[test]
fn nobody_makes_segments_smaller_than_every_host_takes() {
    for (header, least) in [(V4, FLOOR[0]), (V6, FLOOR[1])] {
        let mut pair = sending("sack", &config(header, false), 100_000);
        let seq = Seq::from(pair.ends[0].path().una + 1);
        while pair.ends[0].poll_transmit(pair.now).is_some() {}
        too_big(&mut pair, seq, 68);
        // RFC 8201, 4: what says less than 1280 is discarded.
        assert_eq!(pair.ends[0].path_mtu(), if header == V6 { 1500 } else { least });
        too_big(&mut pair, seq, 1280);
        assert_eq!(pair.ends[0].path_mtu(), least.min(1280));
    }
}

#[test]
fn a_router_that_does_not_say_its_mtu_is_taken_to_have_a_common_one() {
    let mut pair = sending("sack", &config(V4, false), 100_000);
    let seq = Seq::from(pair.ends[0].path().una);
    while pair.ends[0].poll_transmit(pair.now).is_some() {}
    for expected in [1492, 1006, 576] {
        let seq = Seq::from(pair.ends[0].path().una.max(u64::from(seq.0)));
        pair.ends[0].handle(pair.now, Input::PacketTooBig { seq, mtu: None });
        assert_eq!(pair.ends[0].path_mtu(), expected);
    }
}

/// RFC 4821, 7.7, and the search after it.
#[test]
fn a_black_hole_is_noticed_and_its_size_found() {
    for scheme in ["newreno", "sack"] {
        for (header, mtu) in [(V4, 1400), (V6, 1400), (V4, 1000), (V6, 1280), (V4, 1499)] {
            let mut pair = sending(scheme, &config(header, true), 3_000_000);
            pair.router = (mtu, false);
            pair.run(pair.now + Duration::from_secs(60));
            let end = &pair.ends[0];
            assert_eq!(end.octets_acknowledged(), 3_000_000, "{scheme} {header} {mtu}");
            let found = end.path_mtu() as usize;
            let least = match scheme {
                "sack" => mtu - 7,
                _ if mtu < 1200 => 576,
                _ => 1200,
            };
            assert!((least..=mtu).contains(&found), "{scheme} {header}: {found} of {mtu}");
            assert!(end.stats().timeouts <= 4, "{scheme} {header} {mtu}: {:?}", end.stats());
            assert_eq!(end.stats().reductions, 0, "{scheme} {header} {mtu}: a probe that is lost is no congestion");
            let octets = pair.received();
            assert!(octets == data(3_000_000), "{scheme} {header} {mtu}");
        }
    }
}

#[test]
fn without_probing_a_black_hole_stays_one() {
    let mut pair = sending("sack", &config(V4, false), 100_000);
    pair.router = (1400, false);
    pair.run(pair.now + Duration::from_secs(30));
    assert_eq!((pair.ends[0].octets_acknowledged(), pair.ends[0].path_mtu()), (0, 1500));
}

#[test]
fn an_interruption_leaves_segments_as_large_as_they_were() {
    let mut pair = sending("sack", &config(V4, true), 3_000_000);
    pair.run(pair.now + Duration::from_millis(250));
    pair.router = (100, false);
    pair.run(pair.now + Duration::from_secs(4));
    assert!(pair.ends[0].path_mtu() <= BASE[0]);
    pair.router = (usize::MAX, false);
    pair.run(pair.now + Duration::from_secs(60));
    let end = &pair.ends[0];
    assert_eq!((end.path_mtu(), end.octets_acknowledged(), end.stats().mtu_probes), (1500, 3_000_000, 1));
}

/// RFC 1191, 6.3.
#[test]
fn after_ten_minutes_larger_segments_are_tried_again() {
    let mut pair = sending("sack", &config(V4, true), 100_000);
    pair.router = (1300, true);
    pair.run(pair.now + Duration::from_secs(500));
    assert_eq!(pair.ends[0].path_mtu(), 1300);
    pair.router = (usize::MAX, false);
    for expected in [1300, 1500] {
        let bytes = Payload::Bytes(Bytes::from(data(500_000)));
        pair.ends[0].handle(pair.now, Input::Command(Command::Send(bytes)));
        pair.run(pair.now + Duration::from_secs(10));
        assert_eq!(pair.ends[0].path_mtu(), expected);
        pair.run(secs(700));
        pair.now = pair.now.max(secs(700));
    }
}

/// An opening with 5000 octets at hand, of which the first 1000 go with the SYN.
fn opening(ip_header: u8) -> Endpoint {
    let mut config = config(ip_header, false);
    let parts = Selection::scheme("sack").build(&mut config).unwrap();
    let mut end = Endpoint::new(config, parts, Ports { local: 1, remote: 2 });
    let request = FastOpenRequest { option: None, room: 1000 };
    end.handle(secs(1), Input::Command(Command::Send(Payload::Bytes(Bytes::from(data(5000))))));
    end.handle(secs(1), Input::Command(Command::ConnectFast(request)));
    end
}

fn syn_ack(syn: &Segment, mss: u16) -> Segment {
    let options = Options { mss: Some(mss), sack_permitted: true, ..Options::default() };
    let flags = Flags::SYN | Flags::ACK;
    Segment { src_port: 2, dst_port: 1, ack: syn.seq + 1, flags, window: 65_535, options, ..Segment::default() }
}

#[test]
fn a_syn_whose_data_does_not_fit_goes_again_without_and_announces_less() {
    for (header, mtu) in [(V4, 800), (V6, FLOOR[1])] {
        let mut end = opening(header);
        let syn = end.poll_transmit(secs(1)).unwrap();
        let too_big = |end: &mut Endpoint, seq, mtu| end.handle(secs(1), Input::PacketTooBig { seq, mtu: Some(mtu) });
        // A message that quotes something else, or a size that the SYN had not, is none of ours.
        too_big(&mut end, syn.seq + 1, mtu as u16);
        too_big(&mut end, syn.seq, 1300);
        assert_eq!(end.poll_transmit(secs(1)), None);
        too_big(&mut end, syn.seq, mtu as u16);
        let again = end.poll_transmit(secs(1));
        if header == V6 {
            // Every link of IPv6 carries 1280 octets, and so this SYN.
            assert_eq!(again, None);
            continue;
        }
        let again = again.unwrap();
        assert_eq!((again.seq, again.len(), again.options.mss), (syn.seq, 20 + again.options.encoded_len(), Some(760)));
        too_big(&mut end, syn.seq, 600);
        assert_eq!(end.poll_transmit(secs(1)), None, "once");
        end.handle(secs(2), Input::Segment(&syn_ack(&syn, 1460), Integrity::Intact));
        let sizes: Vec<_> = std::iter::from_fn(|| end.poll_transmit(secs(2))).map(|segment| segment.payload.len()).collect();
        assert!(sizes.iter().all(|&size| size <= 760), "{sizes:?}");
        assert_eq!(end.stats().timeouts, 0);
    }
}

#[test]
fn data_of_a_syn_that_was_not_taken_goes_again_as_it_was() {
    let mut end = opening(V4);
    let syn = end.poll_transmit(secs(1)).unwrap();
    assert_eq!(syn.payload.len(), 1000);
    end.handle(secs(2), Input::Segment(&syn_ack(&syn, 1460), Integrity::Intact));
    let sent: Vec<_> = std::iter::from_fn(|| end.poll_transmit(secs(2))).collect();
    let sizes: Vec<_> = sent.iter().map(|segment| segment.payload.len()).collect();
    // The rest waits for a full segment (RFC 9293, 3.7.4).
    assert_eq!(sizes, [1000, 1460, 1460]);
    assert!(sent[0].flags.contains(Flags::PSH), "as the write that began the connection");
}

/// The answer to a SYN may still be one to the SYN that was too big: its echo is older than the second one.
#[test]
fn the_answer_to_a_syn_that_was_too_big_is_one_to_ours() {
    let mut end = opening(V4);
    let syn = end.poll_transmit(secs(1)).unwrap();
    end.handle(secs(2), Input::PacketTooBig { seq: syn.seq, mtu: Some(800) });
    let again = end.poll_transmit(secs(2)).unwrap();
    let (first, second) = (syn.options.timestamps.unwrap(), again.options.timestamps.unwrap());
    assert_ne!(first.value, second.value);
    let mut answer = syn_ack(&syn, 1460);
    answer.options.timestamps = Some(Timestamps { value: 1, echo: first.value });
    end.handle(secs(3), Input::Segment(&answer, Integrity::Intact));
    assert_eq!(end.state(), State::Established);
}
