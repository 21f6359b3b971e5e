//! A [`Crossing`] against the same link in a simulation.

use std::ops::ControlFlow;
use whyloss_sim::{
    AdaptiveRed, Arrival, Builder, Cause, CbrFlow, Change, ChannelSpec, Crossing, Discipline, Effect, Errors, Limits, LinkId,
    LinkNames, LinkSpec, Packet, Policer, QueueLimit, Records, Red, Rhythm, Step, Warn,
};
use whyloss_transport::segment::{Dscp, Ecn};
use whyloss_transport::{BitRate, Duration, Instant};

const OCTETS: u32 = 500;
const PACKETS: u64 = 4000;
/// 500 octets at 4 Mbit/s.
const SPACING: u64 = 1_000_000;

fn spec(queue: QueueLimit, errors: Errors, effect: Effect) -> LinkSpec {
    let (rate, delay) = (BitRate::from_bps(3_500_000), Duration::from_millis(5));
    LinkSpec { rate, delay, queue, channel: ChannelSpec { errors, effect }, ..LinkSpec::default() }
}

fn simulate(spec: &LinkSpec) -> Records {
    let mut builder = Builder::new(7, 3);
    let (from, to) = (builder.host("a"), builder.host("b"));
    builder.link(from, to, spec.clone(), LinkSpec { discipline: None, ..spec.clone() });
    let (start, stop) = (Instant::ZERO, Instant::from_nanos(PACKETS * SPACING));
    let rate = BitRate::from_bps(4_000_000);
    builder.cbr(CbrFlow { name: "there".to_owned(), from, to, start, stop, rate, octets: OCTETS, rhythm: Rhythm::default() });
    let mut simulation = builder.build().unwrap();
    simulation.run(&Limits { until: Some(Instant::from_nanos(60_000_000_000)) }, |_| ControlFlow::Continue(())).unwrap();
    simulation.into_records()
}

/// Offers the packets of [`simulate`], and polls in the rhythm `every`, as a driver would that sleeps and is woken late.
fn cross(spec: &LinkSpec, every: u64) -> (Crossing, Vec<(u64, Instant, Cause)>) {
    let name = LinkNames::default().name("a", "b");
    let mut crossing = Crossing::new(spec, 7, 3, &name).unwrap();
    let mut lost = Vec::new();
    let mut arrived = Instant::ZERO;
    let mut poll = |crossing: &mut Crossing, now| {
        while let Some(passage) = crossing.poll(now) {
            assert!(passage.at <= now && passage.last);
            match passage.arrival {
                Arrival::Lost(cause) => lost.push((passage.token, passage.at, cause)),
                Arrival::Here { .. } => {
                    assert!(arrived < passage.at, "in order");
                    arrived = passage.at;
                }
            }
        }
    };
    for token in 0..PACKETS {
        let now = Instant::from_nanos(token * SPACING);
        // What is due comes before what arrives; a late driver does otherwise and it does not matter.
        if token % every == 0 {
            poll(&mut crossing, now);
        }
        crossing.offer(now, Packet { token, octets: OCTETS, ecn: Ecn::NotCapable, dscp: Dscp::DEFAULT, flow: 0 });
    }
    while let Some(at) = crossing.next_event() {
        poll(&mut crossing, at);
    }
    assert_eq!(crossing.under_way(), 0);
    (crossing, lost)
}

#[test]
fn the_same_packets_meet_the_same_fate_as_in_the_simulator() {
    let queue = QueueLimit::Packets(20);
    let gilbert =
        Errors::Gilbert { stay_good: 0.99, stay_bad: 0.6, hits: Errors::IN_BAD, step: Step::Time(Duration::from_millis(2)) };
    let red = Discipline::Red(Red { weight: 0.05, ..Red::default() });
    let octets = Discipline::Red(Red { weight: 0.05, bytes: true, queue_in_bytes: true, wait: false, ..Red::default() });
    let adaptive = Discipline::AdaptiveRed(AdaptiveRed::default());
    let policed = |queue| LinkSpec {
        policer: Some(Policer { rate: BitRate::from_bps(3_400_000), burst: 20_000 }),
        ..spec(queue, Errors::Packets { probability: 0.01 }, Effect::Erase)
    };
    for (spec, discipline, causes) in [
        (spec(queue, Errors::None, Effect::Erase), None, &[Cause::QueueFull][..]),
        (spec(queue, Errors::Packets { probability: 0.01 }, Effect::Erase), None, &[Cause::QueueFull, Cause::Erased]),
        (spec(QueueLimit::Octets(9000), gilbert, Effect::Erase), None, &[Cause::QueueFull, Cause::Erased]),
        (spec(QueueLimit::Unlimited, Errors::Bits { ber: 1e-5 }, Effect::Erase), Some(red), &[Cause::Aqm, Cause::Erased]),
        (policed(queue), None, &[Cause::Policer, Cause::Erased]),
        (policed(QueueLimit::Unlimited), Some(red), &[Cause::Policer, Cause::Erased]),
        (spec(queue, Errors::None, Effect::Erase), Some(octets), &[Cause::Aqm]),
        (spec(queue, Errors::None, Effect::Erase), Some(adaptive), &[Cause::Aqm]),
    ] {
        let spec = LinkSpec { discipline, ..spec };
        let records = simulate(&spec);
        let mut expected: Vec<_> =
            records.drops.iter().map(|drop| (drop.sent_at.as_nanos() / SPACING, drop.at, drop.cause)).collect();
        expected.sort_unstable_by_key(|&(number, ..)| number);
        assert!(records.drops.iter().all(|drop| drop.link == LinkId::new(0)));
        for cause in causes {
            assert!(expected.iter().any(|(.., found)| found == cause), "{cause:?} in {spec:?}");
        }
        for every in [1, 7] {
            let (crossing, mut lost) = cross(&spec, every);
            lost.sort_unstable_by_key(|&(number, ..)| number);
            assert_eq!(lost, expected, "{spec:?}, polled every {every}");
            let (counts, link) = (crossing.counts(), &records.links[0]);
            assert_eq!((counts.offered, counts.delivered, counts.dropped), (link.offered, link.delivered, link.dropped));
            assert_eq!(counts.max_packets, link.max_queue_packets);
        }
    }
}

#[test]
fn damaged_bits_are_those_of_the_simulator() {
    let spec = spec(QueueLimit::Unlimited, Errors::Bits { ber: 1e-5 }, Effect::Damage);
    let damaged = simulate(&spec).links[0].damaged;
    // 16 Mbit at a ratio of 1e-5: 160 errors, in hardly fewer packets.
    assert!((120..200).contains(&damaged), "{damaged}");
    assert_eq!(cross(&spec, 3).0.counts().damaged, damaged);
}

#[test]
fn only_what_is_capable_is_marked() {
    let warn = Discipline::Warn(Warn { threshold: 2.5, weight: 1.0 });
    let spec = LinkSpec { discipline: Some(warn), ..spec(QueueLimit::Unlimited, Errors::None, Effect::Erase) };
    let mut crossing = Crossing::new(&spec, 1, 0, "a>b").unwrap();
    for (token, ecn) in [Ecn::Capable0, Ecn::NotCapable].into_iter().cycle().take(10).enumerate() {
        crossing.offer(Instant::ZERO, Packet { token: token as u64, octets: 100, ecn, dscp: Dscp::DEFAULT, flow: 0 });
    }
    assert_eq!(crossing.waiting(Instant::ZERO), (9, 900));
    let far = Instant::from_nanos(1_000_000_000);
    let mut marked = Vec::new();
    while let Some(passage) = crossing.poll(far) {
        if passage.arrival == (Arrival::Here { marked: true, flips: &[] }) {
            marked.push(passage.token);
        }
    }
    // The first is in transmission; the fifth finds three waiting and is the first to find more than 2.5.
    assert_eq!(marked, [4, 6, 8]);
    assert_eq!(crossing.counts().marked, 3);
}

#[test]
fn bad_links_are_refused() {
    let bad = LinkSpec { rate: BitRate::from_bps(0), ..spec(QueueLimit::Unlimited, Errors::None, Effect::Erase) };
    let error = Crossing::new(&bad, 1, 0, "a>b").unwrap_err();
    assert!(error.to_string().contains("link a>b"), "{error}");
}

#[test]
fn what_changes_while_it_runs_holds_from_then_on() {
    let spec = LinkSpec {
        rate: BitRate::from_bps(8_000_000),
        delay: Duration::from_millis(5),
        queue: QueueLimit::Packets(3),
        ..LinkSpec::default()
    };
    let ms = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    let mut crossing = Crossing::changeable(&spec, 1, 0, "a>b").unwrap();
    let offer = |crossing: &mut Crossing, at, token| {
        crossing.offer(at, Packet { token, octets: 1000, ecn: Ecn::NotCapable, dscp: Dscp::DEFAULT, flow: 0 });
    };
    // A millisecond each; the third begins when the rate has halved, and ends when the delay is longer.
    (0..3).for_each(|token| offer(&mut crossing, ms(0), token));
    let change = Change { rate: Some(BitRate::from_bps(4_000_000)), queue: Some(QueueLimit::Packets(1)), ..Change::default() };
    crossing.change(Instant::from_nanos(1_500_000), &change).unwrap();
    crossing.change(ms(3), &Change { delay: Some(Duration::from_millis(7)), ..Change::default() }).unwrap();
    // One waits: there is no more room.
    (3..5).for_each(|token| offer(&mut crossing, ms(3), token));
    let channel = ChannelSpec { errors: Errors::Packets { probability: 1.0 }, effect: Effect::Erase };
    crossing.change(ms(5), &Change { channel: Some(channel), ..Change::default() }).unwrap();
    let mut told = Vec::new();
    while let Some(passage) = crossing.poll(ms(100)) {
        let lost = if let Arrival::Lost(cause) = passage.arrival { Some(cause) } else { None };
        told.push((passage.token, passage.at.as_nanos() / 1_000_000, lost));
    }
    told.sort_unstable_by_key(|&(token, ..)| token);
    let expected = [(0, 6, None), (1, 7, None), (2, 11, None), (3, 13, Some(Cause::Erased)), (4, 3, Some(Cause::QueueFull))];
    assert_eq!(told, expected);
    let still = crossing.change(ms(100), &Change::default()).unwrap_err();
    assert!(still.to_string().contains("nothing but a time"), "{still}");
    let mut fixed = Crossing::new(&spec, 1, 0, "a>b").unwrap();
    assert!(fixed.change(ms(0), &change).is_err());
}
