//! Networks with constant-rate datagrams only: what does not depend on a transport protocol.

use crate::shared::Shared;
use std::ops::ControlFlow;
use std::sync::Arc;
use whyloss_sim::{
    AtEnd, BuildError, Builder, CaptureSpec, Cause, CbrFlow, ChannelSpec, Effect, Errors, Limits, LinkSpec, NodeId, Pattern,
    QueueLimit, Records, Rhythm, RunError, RunOutcome, Step, Way,
};
use whyloss_transport::{BitRate, Duration, Instant};

const SECOND: u64 = 1_000_000_000;

fn link(bps: u64, queue: QueueLimit, errors: Errors, effect: Effect) -> LinkSpec {
    let channel = ChannelSpec { errors, effect };
    LinkSpec { rate: BitRate::from_bps(bps), delay: Duration::from_millis(5), queue, channel, ..LinkSpec::default() }
}

fn perfect() -> LinkSpec {
    link(10_000_000, QueueLimit::Unlimited, Errors::None, Effect::Erase)
}

fn cbr(name: &str, from: NodeId, to: NodeId, bps: u64, octets: u32) -> CbrFlow {
    let (start, stop) = (Instant::ZERO, Instant::from_nanos(10 * SECOND));
    CbrFlow { name: name.to_owned(), from, to, start, stop, rate: BitRate::from_bps(bps), octets, rhythm: Rhythm::default() }
}

fn until(seconds: u64) -> Limits {
    Limits { until: Some(Instant::from_nanos(seconds * SECOND)) }
}

fn run(builder: Builder, seconds: u64) -> Records {
    let mut simulation = builder.build().unwrap();
    assert_eq!(simulation.run(&until(seconds), |_| ControlFlow::Continue(())).unwrap(), RunOutcome::TimeLimit);
    simulation.into_records()
}

/// A host on each side of a bottleneck with the given channel; one flow of 500-octet datagrams, at 1 Mbit/s, each way.
fn dumbbell(errors: &Errors, effect: Effect) -> Builder {
    dumbbell_between(errors, effect).0
}

/// [`dumbbell`] and its hosts.
fn dumbbell_between(errors: &Errors, effect: Effect) -> (Builder, NodeId, NodeId) {
    let mut builder = Builder::new(1, 0);
    let (a, r, s, b) = (builder.host("a"), builder.router("r"), builder.router("s"), builder.host("b"));
    builder.link(a, r, perfect(), perfect());
    let middle = || link(2_000_000, QueueLimit::Packets(50), errors.clone(), effect);
    builder.link(r, s, middle(), middle());
    builder.link(s, b, perfect(), perfect());
    builder.cbr(cbr("there", a, b, 1_000_000, 500));
    builder.cbr(cbr("back", b, a, 1_000_000, 500));
    (builder, a, b)
}

#[test]
fn a_perfect_network_delivers_everything_on_time() {
    let records = run(dumbbell(&Errors::None, Effect::Erase), 20);
    for flow in &records.flows {
        assert_eq!((flow.forward.sent, flow.forward.delivered), (2500, 2500));
        assert_eq!(flow.octets_delivered, 2500 * 472);
        // 400 us on each access link, 2 ms on the bottleneck, 15 ms of delay.
        assert_eq!(flow.first_data, Some(Instant::from_nanos(17_800_000)));
        assert_eq!(flow.last_data, Some(Instant::from_nanos(2499 * 4_000_000 + 17_800_000)));
    }
    assert!(records.drops.is_empty());
    let bottleneck = &records.links[2];
    assert_eq!((bottleneck.name.as_str(), bottleneck.offered, bottleneck.delivered), ("r>s", 2500, 2500));
    assert_eq!(bottleneck.busy, Duration::from_secs(5));
    assert_eq!(bottleneck.mean_queue_packets, 0.0);
}

#[test]
fn an_overloaded_queue_drops_the_excess_and_says_so() {
    let (mut builder, a, b) = dumbbell_between(&Errors::None, Effect::Erase);
    builder.cbr(cbr("more", a, b, 3_000_000, 500));
    let records = run(builder, 10);
    let bottleneck = &records.links[2];
    assert_eq!(bottleneck.max_queue_packets, 50);
    assert_eq!(bottleneck.dropped.total(), bottleneck.dropped.get(Cause::QueueFull));
    // 4 Mbit/s want to cross 2 Mbit/s for 10 s: 5000 of 10,000 packets, less what the queue and the wires still hold.
    let dropped = bottleneck.dropped.get(Cause::QueueFull);
    assert!((4900..5000).contains(&dropped), "{dropped}");
    assert_eq!(records.drops.len() as u64, dropped);
    assert!(records
        .drops
        .iter()
        .all(|drop| drop.cause == Cause::QueueFull && drop.link.index() == 1 && drop.link_way == Way::Forward));
    assert!(bottleneck.in_flight > 0);
    assert_eq!(records.packets.in_flight, records.links.iter().map(|link| link.in_flight).sum::<u64>());
}

#[test]
fn erased_packets_have_used_their_airtime() {
    let records = run(dumbbell(&Errors::Packets { probability: 0.2 }, Effect::Erase), 20);
    for (link, flow) in [(2, 0), (3, 1)] {
        let (link, flow) = (&records.links[link], &records.flows[flow]);
        assert_eq!(link.busy, Duration::from_secs(5));
        assert_eq!(link.dropped.get(Cause::Erased), flow.forward.dropped.get(Cause::Erased));
        // 500 of 2500, standard deviation 20.
        assert!((420..580).contains(&link.dropped.get(Cause::Erased)), "{:?}", link.dropped);
    }
    assert_ne!(records.links[2].dropped, records.links[3].dropped, "the directions have streams of their own");
}

#[test]
fn damage_is_found_where_it_is() {
    // 472 octets of data, 8 of UDP and 20 of IP: one bit in 4000 at random, seen by the next node or by the host.
    let records = run(dumbbell(&Errors::Packets { probability: 1.0 }, Effect::Damage), 20);
    let dropped = |cause| records.packets.dropped.get(cause);
    assert_eq!(records.packets.delivered, 0);
    // 5000 packets: 200 in the IP header, 40 in the ports and 40 in the rest of the UDP header.
    assert!((150..250).contains(&dropped(Cause::IpHeaderDamaged)), "{}", dropped(Cause::IpHeaderDamaged));
    assert!((20..60).contains(&dropped(Cause::NoFlow)), "{}", dropped(Cause::NoFlow));
    assert!((20..60).contains(&dropped(Cause::TransportHeaderDamaged)), "{}", dropped(Cause::TransportHeaderDamaged));
    assert_eq!(records.packets.dropped.total(), 5000);
    assert_eq!(records.links[2].damaged + records.links[3].damaged, 5000);
    // A damaged IP header ends at the next node, the rest at the host; all of them crossed the lossy link.
    assert_eq!(records.links[2].delivered, 2500);
    assert!(records.links[4].delivered < 2500);
}

#[test]
fn a_pattern_hits_the_bits_it_names() {
    let pattern = Arc::new(Pattern::generate(1e-5, 20_000_000, 3));
    let errors = Errors::Pattern { pattern: pattern.clone(), at_end: AtEnd::Clean };
    let records = run(dumbbell(&errors, Effect::Erase), 20);
    // Packets of 4000 bits, one after the other: those that a position falls into.
    let mut hit: Vec<_> = pattern.offsets().iter().map(|offset| offset / 4000).filter(|&packet| packet < 2500).collect();
    hit.dedup();
    let lost: Vec<_> = records.drops.iter().filter(|drop| drop.flow == 0).map(|drop| drop.offset / 472).collect();
    assert!(!hit.is_empty());
    assert_eq!(lost, hit);
    assert_eq!(records.links[2].pattern_ends, 0);
}

#[test]
fn a_burst_by_time_takes_every_packet_of_both_flows() {
    let gilbert =
        Errors::Gilbert { stay_good: 0.99, stay_bad: 0.9, hits: Errors::IN_BAD, step: Step::Time(Duration::from_millis(20)) };
    let records = run(dumbbell(&gilbert, Effect::Erase), 20);
    let lost: Vec<_> = records.drops.iter().filter(|drop| drop.flow == 0).map(|drop| drop.offset / 472).collect();
    assert!(!lost.is_empty());
    // 5 packets of 4 ms a step: losses come in runs of whole steps.
    let runs = lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count() + 1;
    assert!(lost.len() >= 4 * runs, "{} in {runs} runs", lost.len());
}

#[test]
fn another_flow_moves_nobody_elses_errors() {
    let errors = Errors::Packets { probability: 0.1 };
    let alone = run(dumbbell(&errors, Effect::Erase), 20);
    let mut builder = dumbbell(&errors, Effect::Erase);
    // A third flow on links of its own.
    let (x, y) = (builder.host("x"), builder.host("y"));
    builder.link(x, y, link(1_000_000, QueueLimit::Unlimited, errors.clone(), Effect::Erase), perfect());
    builder.cbr(cbr("aside", x, y, 500_000, 100));
    let together = run(builder, 20);
    let of_first = |records: &Records| records.drops.iter().filter(|drop| drop.flow < 2).copied().collect::<Vec<_>>();
    assert_eq!(of_first(&alone), of_first(&together));
    assert!(together.flows[2].forward.dropped.get(Cause::Erased) > 0);
}

#[test]
fn runs_differ_and_repeat() {
    let make = |run| {
        let mut builder = Builder::new(9, run);
        let (a, b) = (builder.host("a"), builder.host("b"));
        let lossy = || link(1_000_000, QueueLimit::Packets(5), Errors::Bits { ber: 1e-5 }, Effect::Damage);
        builder.link(a, b, lossy(), lossy());
        builder.cbr(cbr("flow", a, b, 500_000, 1000));
        builder
    };
    let (first, again, other) = (run(make(1), 20), run(make(1), 20), run(make(2), 20));
    assert_eq!(first, again);
    assert_ne!(first.drops, other.drops);
}

#[test]
fn observers_change_nothing() {
    let errors = Errors::Bits { ber: 2e-5 };
    let plain = run(dumbbell(&errors, Effect::Damage), 20);
    let file = Shared::default();
    let (mut builder, a, _) = dumbbell_between(&errors, Effect::Damage);
    builder.sample_every(Duration::from_millis(7));
    let out = Box::new(file.clone());
    builder.capture(CaptureSpec {
        name: "a".to_owned(),
        node: a,
        link: None,
        behind_queue: false,
        snaplen: 0,
        digits: 9,
        holes: 0.0,
        out,
    });
    let mut watched = run(builder, 20);
    assert_eq!(watched.link_samples.len(), 6 * (20_000_u64.div_ceil(7)) as usize);
    assert!(file.0.lock().unwrap().len() > 2_500_000);
    watched.link_samples.clear();
    assert_eq!(plain, watched);
}

#[test]
fn a_send_overhead_keeps_the_order_and_is_recorded() {
    let mut builder = dumbbell(&Errors::None, Effect::Erase);
    builder.send_overhead(Duration::from_millis(30));
    let records = run(builder, 20);
    assert_eq!(records.send_overhead, Duration::from_millis(30));
    assert_eq!(records.packets.delivered, 5000);
    // Up to 30 ms for packets 4 ms apart: those behind a late one catch up with it and arrive in bunches.
    assert!(records.links[2].max_queue_packets > 0);
    assert!(records.flows.iter().all(|flow| flow.octets_delivered == 2500 * 472));
}

#[test]
fn a_run_can_be_stopped_and_continued() {
    let whole = run(dumbbell(&Errors::Packets { probability: 0.1 }, Effect::Erase), 20);
    let mut simulation = dumbbell(&Errors::Packets { probability: 0.1 }, Effect::Erase).build().unwrap();
    for second in [1, 2, 7, 20] {
        assert_eq!(simulation.run(&until(second), |_| ControlFlow::Continue(())).unwrap(), RunOutcome::TimeLimit);
    }
    assert_eq!(simulation.into_records(), whole);
}

#[test]
fn the_caller_can_cancel() {
    let mut builder = dumbbell(&Errors::None, Effect::Erase);
    builder.sample_every(Duration::from_secs(1));
    let mut simulation = builder.build().unwrap();
    let outcome = simulation.run(&until(20), |progress| {
        if progress.now >= Instant::from_nanos(3 * SECOND) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(outcome.unwrap(), RunOutcome::Cancelled);
}

#[test]
fn a_run_without_an_end_is_refused() {
    let mut simulation = dumbbell(&Errors::None, Effect::Erase).build().unwrap();
    let error = simulation.run(&Limits::default(), |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, RunError::NeverEnds));
}

#[test]
fn bad_networks_are_refused_with_their_reason() {
    let message = |change: &dyn Fn(&mut Builder, NodeId, NodeId, NodeId)| {
        let mut builder = Builder::new(1, 0);
        let (a, r, b) = (builder.host("a"), builder.router("r"), builder.host("b"));
        change(&mut builder, a, r, b);
        builder.build().unwrap_err().to_string()
    };
    let zero = |queue| link(1_000_000, queue, Errors::None, Effect::Erase);
    for (found, expected) in [
        (
            message(&|builder, a, r, _| {
                builder.link(a, r, link(0, QueueLimit::Unlimited, Errors::None, Effect::Erase), perfect());
            }),
            "link a>r: rate is 0 bps; allowed is a rate above 0 bps",
        ),
        (
            message(&|builder, a, r, _| {
                builder.link(a, r, perfect(), zero(QueueLimit::Packets(0)));
            }),
            "link r>a: queue is 0 packets; allowed is at least 1 packet",
        ),
        (
            message(&|builder, a, r, _| {
                builder.link(
                    a,
                    r,
                    link(1, QueueLimit::Unlimited, Errors::Packets { probability: 1.5 }, Effect::Erase),
                    perfect(),
                );
            }),
            "link a>r: probability is 1.5; allowed is a number from 0 to 1",
        ),
        (
            message(&|builder, a, _, _| {
                builder.link(a, a, perfect(), perfect());
            }),
            "link a>a: ends is one node twice; allowed is two nodes",
        ),
        (
            message(&|builder, a, r, b| {
                builder.link(a, r, perfect(), perfect());
                builder.cbr(cbr("lost", a, b, 1000, 100));
            }),
            "flow `lost`: no way leads from `a` to `b`",
        ),
        (
            message(&|builder, a, r, _| {
                builder.link(a, r, perfect(), perfect());
                builder.cbr(cbr("lost", a, r, 1000, 100));
            }),
            "flow lost: end is router `r`; allowed is a host",
        ),
        (
            message(&|builder, a, _, b| {
                builder.link(a, b, perfect(), perfect());
                builder.cbr(cbr("small", a, b, 1000, 28));
            }),
            "flow small: octets is 28; allowed is 29 to 65,535",
        ),
        (
            message(&|builder, a, _, b| {
                builder.link(a, b, perfect(), perfect());
                builder.cbr(cbr("twin", a, b, 1000, 100));
                builder.cbr(cbr("twin", b, a, 1000, 100));
            }),
            "there are two flows called `twin`",
        ),
    ] {
        assert_eq!(found, expected);
    }
    let mut builder = Builder::new(1, 0);
    builder.host("x");
    builder.host("x");
    assert_eq!(builder.build().unwrap_err(), BuildError::SameName { kind: "node", name: "x".to_owned() });
}

#[test]
fn hosts_do_not_forward() {
    let mut builder = Builder::new(1, 0);
    let (a, b, c) = (builder.host("a"), builder.host("b"), builder.host("c"));
    builder.link(a, b, perfect(), perfect());
    builder.link(b, c, perfect(), perfect());
    builder.cbr(cbr("through", a, c, 1000, 100));
    assert!(matches!(builder.build().unwrap_err(), BuildError::NoWay { .. }));
}

#[test]
fn the_shortest_way_is_taken() {
    let mut builder = Builder::new(1, 0);
    let (a, b) = (builder.host("a"), builder.host("b"));
    let routers = [builder.router("r"), builder.router("s"), builder.router("t")];
    builder.link(a, routers[0], perfect(), perfect());
    // A detour, added first.
    builder.link(routers[0], routers[1], perfect(), perfect());
    builder.link(routers[1], routers[2], perfect(), perfect());
    builder.link(routers[0], routers[2], perfect(), perfect());
    builder.link(routers[2], b, perfect(), perfect());
    builder.cbr(cbr("flow", a, b, 100_000, 1000));
    let records = run(builder, 20);
    assert_eq!(records.links.iter().map(|link| (link.delivered > 0) as u8).collect::<Vec<_>>(), [1, 0, 0, 0, 0, 0, 1, 0, 1, 0]);
}
