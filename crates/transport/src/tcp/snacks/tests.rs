//! Holes that are asked for: honestly, by a receiver that lies, and without an agreement.

use super::super::tests::{secs, Pair};
use super::super::{Command, Config, Endpoint, Event, Input, Judgement, LossRecord, Ports, State};
use super::{FREE, MOST_TRANSMISSIONS};
use crate::arrival::{Arrival, Gap};
use crate::differentiation::{Cause, GapDifferentiator, Verdict};
use crate::path::Trigger;
use crate::scheme::{Selection, Value};
use crate::segment::{Flags, Options, RareOptions, ScpsCapabilities, Segment, Snack};
use crate::time::{Duration, Instant};
use crate::Integrity;
use bytes::Bytes;
use std::collections::BTreeMap;

/// 64 KiB windows without SACK; the stream passes the end of the sequence numbers.
fn config() -> Config {
    Config { auto_read: true, initial_seq: u32::MAX - 60_000, ..Config::freebsd45() }
}

fn producing(scheme: &str, lost: &[u64], octets: u64) -> Pair {
    let mut pair = Pair::new(scheme, &config(), lost);
    pair.run(secs(1));
    pair.ends[0].handle(pair.now, Input::Command(Command::Produce(octets)));
    pair
}

/// When the last octet was acknowledged.
fn finish(pair: &mut Pair, octets: u64) -> Instant {
    while pair.ends[0].octets_acknowledged() < octets {
        assert!(pair.now < secs(60), "{:?}", pair.ends[0]);
        pair.run(pair.now + Duration::from_millis(10));
    }
    assert_eq!(pair.ends[1].stats().octets_delivered, octets);
    pair.now
}

fn losses(end: &mut Endpoint) -> Vec<LossRecord> {
    let events = std::iter::from_fn(|| end.poll_event());
    events.filter_map(|event| if let Event::Loss(record) = event { Some(*record) } else { None }).collect()
}

/// Lists that were sent, by whomever.
fn snacks_in(pair: &Pair) -> u64 {
    let options = |segment: &Segment| segment.options.rare.as_ref().map_or(0, |rare| rare.snacks.len());
    pair.trace.iter().map(|(_, _, segment)| options(segment) as u64).sum()
}

const LOST: [u64; 5] = [60, 64, 68, 72, 76];

#[test]
fn one_list_has_all_holes_repaired_together() {
    // All in one flight, and three segments behind the first one.
    const LOST: [u64; 5] = [50, 54, 58, 62, 66];
    let one_by_one = finish(&mut producing("newreno", &LOST, 300_000), 300_000);
    for form in ["bits", "holes"] {
        let mut pair = Pair::new("snack", &config(), &LOST);
        let mut own = config();
        let given = BTreeMap::from([("form".to_owned(), Value::Word(form.to_owned()))]);
        let selection = Selection { parameters: BTreeMap::from([("snack".to_owned(), given)]), ..Selection::scheme("snack") };
        let parts = selection.build(&mut own).unwrap();
        pair.ends[1] = Endpoint::new(own, parts, Ports { local: 2, remote: 1 });
        pair.ends[1].handle(Instant::ZERO, Input::Command(Command::Listen));
        pair.run(secs(1));
        pair.ends[0].handle(pair.now, Input::Command(Command::Produce(300_000)));
        let together = finish(&mut pair, 300_000);
        assert!(together + Duration::from_millis(100) < one_by_one, "{form}: {together:?} against {one_by_one:?}");
        let stats = pair.ends[0].stats();
        assert_eq!((stats.retransmissions, stats.timeouts, stats.reductions), (5, 0, 1), "{form}");
        let triggers: Vec<_> = losses(&mut pair.ends[0]).iter().map(|loss| loss.trigger).collect();
        let asked = triggers.iter().filter(|trigger| **trigger == Trigger::Snack).count();
        assert!(
            triggers[0] == Trigger::DuplicateAcks && asked >= 3,
            "{form}: three duplicates come before the list: {triggers:?}"
        );
        let told = [0, 1].map(|who| *pair.ends[who].stats());
        assert_eq!(told[0].snack_retransmissions, asked as u64, "{form}");
        assert_eq!((told[0].snacks_received, told[1].snacks_sent), (snacks_in(&pair), snacks_in(&pair)), "{form}");
        let (lists, holes) = (told[1].snacks_sent, told[1].snack_holes_sent);
        assert!(holes >= 4 && if form == "holes" { lists == holes } else { 2 * lists <= holes }, "{form}: {lists} with {holes}");
        let syn = |who| pair.trace.iter().find(|(_, from, s)| *from == who && s.flags.contains(Flags::SYN)).unwrap().2.clone();
        for who in [0, 1] {
            let scps = syn(who).options.rare.and_then(|rare| rare.scps);
            assert_eq!(scps, Some(ScpsCapabilities { flags: ScpsCapabilities::SNACK, connection: 0 }));
        }
    }
}

/// Takes every gap for the same.
#[derive(Debug)]
struct Always(Cause);

impl GapDifferentiator for Always {
    fn judge(&mut self, _gap: &Gap, _arrival: &Arrival) -> Verdict {
        Verdict { cause: self.0, score: 0.5 }
    }
}

fn selective(scheme: &str, cause: Cause) -> Pair {
    let mut pair = Pair::new(scheme, &config(), &LOST);
    pair.ends[1].parts.receiver.judge_by(Box::new(Always(cause)));
    pair.run(secs(1));
    pair.ends[0].handle(pair.now, Input::Command(Command::Produce(300_000)));
    pair
}

#[test]
fn what_was_corrupted_costs_no_window() {
    for scheme in ["selective", "selective-reno", "selective-sack", "selective-cubic"] {
        let mut pair = selective(scheme, Cause::Corruption);
        let mut window = 0;
        while pair.ends[0].octets_acknowledged() < 300_000 {
            pair.run(pair.now + Duration::from_millis(10));
            assert!(pair.ends[0].window().cwnd() >= window, "{scheme}: the window never falls");
            window = pair.ends[0].window().cwnd();
        }
        let stats = pair.ends[0].stats();
        assert_eq!((stats.retransmissions, stats.fast_retransmits, stats.timeouts), (5, 0, 0), "{scheme}");
        assert_eq!(stats.snack_retransmissions, 5, "{scheme}");
        assert_eq!(stats.duplicate_acks, 0, "{scheme}: the receiver keeps them back");
        let losses = losses(&mut pair.ends[0]);
        assert_eq!(losses.len(), 5, "{scheme}");
        for loss in losses {
            assert_eq!((loss.trigger, loss.judgement, loss.verdict.cause), (Trigger::Snack, Judgement::Kept, Cause::Corruption));
        }
    }
}

#[test]
fn what_was_dropped_is_newreno_with_a_report() {
    let mut pair = selective("selective", Cause::Congestion);
    finish(&mut pair, 300_000);
    let stats = pair.ends[0].stats();
    assert!(stats.reductions == 1 && stats.duplicate_acks >= 3, "{stats:?}");
    assert!(losses(&mut pair.ends[0]).iter().all(|loss| loss.verdict.cause != Cause::Corruption));
    assert!(pair.ends[0].stats().reports_received >= 1, "more than ten came out of order");
}

#[test]
fn without_the_peer_it_is_newreno() {
    for (client, server) in [("snack", "newreno"), ("newreno", "snack"), ("selective", "newreno"), ("newreno", "selective")] {
        let mut pair = Pair::new(client, &config(), &LOST);
        let parts = Selection::scheme(server).build(&mut config()).unwrap();
        pair.ends[1] = Endpoint::new(Config { sack: false, ..config() }, parts, Ports { local: 2, remote: 1 });
        pair.ends[1].parts.receiver.judge_by(Box::new(Always(Cause::Corruption)));
        pair.ends[1].handle(Instant::ZERO, Input::Command(Command::Listen));
        pair.run(secs(1));
        pair.ends[0].handle(pair.now, Input::Command(Command::Produce(300_000)));
        let end = finish(&mut pair, 300_000);
        let mut plain = producing("newreno", &LOST, 300_000);
        assert_eq!(end, finish(&mut plain, 300_000), "{client} and {server}");
        assert_eq!(snacks_in(&pair), 0);
        for end in &pair.ends {
            let stats = end.stats();
            assert_eq!((stats.snacks_sent, stats.snacks_received, stats.snack_retransmissions), (0, 0, 0));
        }
        assert!(pair.trace.iter().all(|(_, who, s)| *who == 0 || s.options.rare.as_ref().is_none_or(|rare| rare.scps.is_none())));
    }
}

#[test]
fn the_end_of_the_stream_asks_for_a_lost_tail() {
    let timeouts = ["newreno", "snack"].map(|scheme| {
        let mut pair = producing(scheme, &[9, 10], 10 * 1448);
        // The FIN comes by itself, before the timer expires.
        pair.run(pair.now + Duration::from_millis(800));
        assert_eq!((pair.data_sent, pair.ends[0].stats().timeouts), (10, 0));
        pair.ends[0].handle(pair.now, Input::Command(Command::Close));
        pair.run(secs(30));
        assert_eq!(pair.ends[1].stats().octets_delivered, 10 * 1448, "{scheme}");
        pair.ends[0].stats().timeouts
    });
    assert_eq!(timeouts, [1, 0], "nothing else follows that could tell");
}

/// A client in the middle of a transfer and the acknowledgement of its first octet of data, from where the peer lies.
fn betrayed() -> (Endpoint, Instant, Segment) {
    let mut pair = producing("snack", &[], 100_000_000);
    pair.run(secs(2));
    assert_eq!(pair.ends[0].state(), State::Established);
    let (_, _, last) = pair.trace.iter().rev().find(|(_, who, _)| *who == 1).unwrap();
    // Everything that is under way is lost.
    let parts = Selection::scheme("newreno").build(&mut config()).unwrap();
    let blank = Endpoint::new(config(), parts, Ports { local: 1, remote: 2 });
    let last = last.clone();
    let Pair { ends: [ref mut client, _], now, .. } = pair;
    let mut client = std::mem::replace(client, blank);
    client.handle(now, Input::Segment(&last, Integrity::Intact));
    while client.poll_transmit(now).is_some() {}
    (client, now, last)
}

/// Lists everything that there can be.
fn all_missing(mut ack: Segment) -> Segment {
    let hole = |offset| Snack { hole1_offset: offset, hole1_size: u16::MAX, bits: Bytes::from_static(&[0, 1]) };
    let rare = RareOptions { snacks: vec![hole(0), hole(0), hole(7)], ..RareOptions::default() };
    ack.options = Options { timestamps: ack.options.timestamps, rare: Some(Box::new(rare)), ..Options::default() };
    ack
}

#[test]
fn a_receiver_that_lies_has_each_segment_sent_once_a_round_trip_and_not_for_ever() {
    let (mut client, begin, last) = betrayed();
    let lie = all_missing(last);
    let outstanding = client.outstanding().segments as usize;
    assert!(outstanding > 30, "{outstanding}");
    let base = client.path().min_rtt.unwrap();
    let mut sent: BTreeMap<u32, Vec<Instant>> = BTreeMap::new();
    for ms in 0..10_000 {
        let now = begin + Duration::from_millis(ms);
        if client.poll_timeout().is_some_and(|at| at <= now) {
            break; // the retransmission timer gets its turn
        }
        client.handle(now, Input::Segment(&lie, Integrity::Intact));
        while let Some(segment) = client.poll_transmit(now) {
            if !segment.payload.is_empty() {
                sent.entry(segment.seq.0).or_default().push(now);
            }
        }
    }
    assert_eq!(sent.len(), outstanding, "nothing new leaves");
    for times in sent.values() {
        assert!(times.len() < usize::from(MOST_TRANSMISSIONS));
        assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= base), "{times:?}");
    }
    let repeated: u64 = client.stats().retransmitted_octets;
    let acknowledged = client.octets_acknowledged();
    assert!(repeated > 10 * 1448 * outstanding as u64 && repeated <= acknowledged + FREE + 1, "{repeated} of {acknowledged}");
    assert!(client.poll_timeout().is_some_and(|at| at < begin + Duration::from_secs(10)), "the timer is not put off for ever");
    assert_eq!(client.stats().reductions, 0);
}

#[test]
fn what_is_repeated_on_request_is_paid_for_by_what_was_acknowledged() {
    let mut pair = producing("snack", &[], 100_000_000);
    // Early, when next to nothing has been acknowledged.
    pair.run(secs(1) + Duration::from_millis(350));
    let (_, _, last) = pair.trace.iter().rev().find(|(_, who, _)| *who == 1).unwrap().clone();
    let lie = all_missing(last);
    let (begin, client) = (pair.now, &mut pair.ends[0]);
    for ms in 0..60_000 {
        let now = begin + Duration::from_millis(ms * 10);
        client.handle_timeout(now);
        client.handle(now, Input::Segment(&lie, Integrity::Intact));
        while client.poll_transmit(now).is_some() {}
        if client.state() == State::Closed {
            break;
        }
    }
    let (stats, acknowledged) = (client.stats(), client.octets_acknowledged());
    let by_timer = stats.timeouts * 1448;
    assert!(stats.retransmitted_octets <= acknowledged + FREE + by_timer + 1448, "{stats:?} {acknowledged}");
}

#[test]
fn lists_of_what_is_not_outstanding_ask_for_nothing() {
    let (mut client, begin, last) = betrayed();
    let ask = |offset, size, ack_less: u32| {
        let rare = RareOptions {
            snacks: vec![Snack { hole1_offset: offset, hole1_size: size, bits: Bytes::new() }],
            ..RareOptions::default()
        };
        let options = Options { timestamps: last.options.timestamps, rare: Some(Box::new(rare)), ..Options::default() };
        Segment { ack: crate::seq::Seq(last.ack.0.wrapping_sub(ack_less)), options, ..last.clone() }
    };
    let now = begin + Duration::from_millis(200);
    for lie in [ask(60_000, u16::MAX, 0), ask(0, 0, 0), ask(0, 3, 10 * 1448)] {
        client.handle(now, Input::Segment(&lie, Integrity::Intact));
        assert!(client.poll_transmit(now).is_none(), "{:?}", lie.options);
    }
    client.handle(now, Input::Segment(&ask(2, 1, 0), Integrity::Intact));
    let segment = client.poll_transmit(now).unwrap();
    assert_eq!(segment.seq.0, last.ack.0.wrapping_add(2 * 1448));
    assert!(client.poll_transmit(now).is_none());
}
