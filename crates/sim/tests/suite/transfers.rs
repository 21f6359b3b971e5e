//! TCP over networks that lose and damage packets.

use std::io;
use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, CaptureSpec, Cause, ChannelSpec, Effect, End, Errors, Limits, LinkId, LinkSpec, LogSpec, LossWatch, NodeId,
    Progress, QueueLimit, Records, Reorder, RunOutcome, StripedTransfer, TcpFlow, Truth, Way,
};
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::{Closing, Config};
use whyloss_transport::{BitRate, Duration, Instant};

const OCTETS: u64 = 1_000_000;

fn end(scheme: &str, change: impl Fn(&mut Config)) -> End {
    let mut config = Config::modern();
    let parts = Selection::scheme(scheme).build(&mut config).unwrap();
    change(&mut config);
    End::new(config, parts)
}

fn link(bps: u64, queue: u32, errors: Errors, effect: Effect) -> LinkSpec {
    let (rate, delay) = (BitRate::from_bps(bps), Duration::from_millis(10));
    LinkSpec { rate, delay, queue: QueueLimit::Packets(queue), channel: ChannelSpec { errors, effect }, ..LinkSpec::default() }
}

/// Host, router, host: the router's link to the receiver has the given channel in the direction of the data.
fn path(run: u64, errors: Errors, effect: Effect) -> (Builder, NodeId, NodeId) {
    let mut builder = Builder::new(1, run);
    let (a, r, b) = (builder.host("a"), builder.router("r"), builder.host("b"));
    builder.link(
        a,
        r,
        link(100_000_000, 1000, Errors::None, Effect::Erase),
        link(100_000_000, 1000, Errors::None, Effect::Erase),
    );
    builder.link(r, b, link(2_000_000, 20, errors, effect), link(2_000_000, 20, Errors::None, Effect::Erase));
    (builder, a, b)
}

fn transfer(scheme: &str, from: NodeId, to: NodeId, change: impl Fn(&mut Config)) -> TcpFlow {
    TcpFlow {
        name: scheme.to_owned(),
        from,
        to,
        start: Instant::ZERO,
        amount: Amount::Octets(OCTETS),
        sender: end(scheme, &change),
        receiver: end(scheme, &change),
    }
}

fn run(builder: Builder) -> (RunOutcome, Records) {
    let mut simulation = builder.build().unwrap();
    let limits = Limits { until: Some(Instant::from_nanos(600_000_000_000)) };
    let outcome = simulation.run(&limits, |_| ControlFlow::Continue(())).unwrap();
    (outcome, simulation.into_records())
}

/// A transfer over [`path`] that must come to its end with every octet right.
fn complete(scheme: &str, errors: Errors, effect: Effect, change: impl Fn(&mut Config)) -> Records {
    let (mut builder, a, b) = path(0, errors, effect);
    builder.tcp(transfer(scheme, a, b, change));
    let (outcome, records) = run(builder);
    assert_eq!(outcome, RunOutcome::Completed);
    let flow = &records.flows[0];
    assert_eq!((flow.octets_delivered, flow.octets_corrupted), (OCTETS, 0));
    assert_eq!(flow.finished, Some(records.ended_at));
    assert!(flow.connected < flow.first_data && flow.first_data < flow.last_data);
    assert!(matches!(flow.closing, None | Some(Closing::Normal)));
    records
}

#[test]
fn a_transfer_over_a_perfect_path_fills_it() {
    let records = complete("newreno", Errors::None, Effect::Erase, |_| {});
    // 1460 of 1500 octets, less 12 of timestamps, at 2 Mbit/s; some of it goes to slow start and its overshoot.
    let goodput = records.flows[0].goodput_bps;
    assert!((1.6e6..1.93e6).contains(&goodput), "{goodput}");
    assert!(records.drops.iter().all(|drop| drop.cause == Cause::QueueFull));
}

#[test]
fn every_loss_has_its_truth() {
    for scheme in ["reno", "newreno", "sack", "cubic"] {
        let records = complete(scheme, Errors::Packets { probability: 0.02 }, Effect::Erase, |_| {});
        let lost = |cause| records.losses.iter().filter(|loss| loss.truth == Truth::Lost(cause)).count() as u64;
        let dropped = records.flows[0].forward.dropped;
        assert!(lost(Cause::Erased) > 0, "{scheme}");
        assert!(lost(Cause::Erased) <= dropped.get(Cause::Erased), "{scheme}");
        // Nearly everything that was lost was noticed as what it was, and little else was taken for lost.
        assert!(10 * lost(Cause::Erased) >= 8 * dropped.get(Cause::Erased), "{scheme}: {dropped:?}");
        for loss in &records.losses {
            match loss.truth {
                Truth::Lost(Cause::Erased) => {
                    assert_eq!(loss.dropped.map(|(_, link, way)| (link, way)), Some((LinkId::new(1), Way::Forward)));
                }
                Truth::Lost(_) => {}
                Truth::Arrived | Truth::InFlight | Truth::Suppressed => assert_eq!(loss.dropped, None),
            }
            assert!(loss.dropped.is_none_or(|(at, ..)| at > loss.record.sent_at), "{scheme}");
        }
    }
}

#[test]
fn damage_reaches_the_receiver_that_can_report_it() {
    let records = complete("checksum-ld", Errors::Bits { ber: 5e-6 }, Effect::Damage, |_| {});
    let flow = &records.flows[0];
    let dropped = |cause| flow.forward.dropped.get(cause);
    let seen = dropped(Cause::TransportHeaderDamaged) + dropped(Cause::PayloadDamaged);
    assert!(dropped(Cause::PayloadDamaged) > 20);
    assert_eq!(flow.receiver.unwrap().damaged_received, seen);
    assert!(flow.receiver.unwrap().reports_sent > 0);
    assert_eq!(dropped(Cause::Erased), 0);
    let found = records.losses.iter().filter(|loss| loss.truth == Truth::Lost(Cause::PayloadDamaged)).count() as u64;
    assert!(10 * found >= 8 * dropped(Cause::PayloadDamaged), "{found} of {}", dropped(Cause::PayloadDamaged));
}

#[test]
fn damage_works_over_ipv6_too() {
    let records = complete("newreno", Errors::Bits { ber: 5e-6 }, Effect::Damage, |config| config.ip_header = 40);
    assert!(records.flows[0].forward.dropped.get(Cause::PayloadDamaged) > 20);
}

#[test]
fn true_causes_are_known_while_the_run_goes_on() {
    let (mut builder, a, b) = (Builder::new(1, 7), "a", "b");
    let (a, b) = (builder.host(a), builder.host(b));
    let errors = Errors::Packets { probability: 0.02 };
    // Some come so late that the sender takes them for lost while they are still under way.
    let late = Some(Reorder::late(0.02, Duration::from_millis(60)));
    builder.link(
        a,
        b,
        LinkSpec { reorder: late, ..link(2_000_000, 20, errors, Effect::Erase) },
        link(2_000_000, 20, Errors::None, Effect::Erase),
    );
    builder.tcp(transfer("newreno", a, b, |_| {}));
    builder.sample_every(Duration::from_millis(1));
    let mut simulation = builder.build().unwrap();
    let (mut watch, mut told, mut longest) = (LossWatch::default(), Vec::new(), Duration::ZERO);
    let limits = Limits { until: Some(Instant::from_nanos(600_000_000_000)) };
    let mut look = |progress: &mut Progress<'_>| {
        let news = progress.losses(&mut watch);
        longest = news.iter().map(|loss| progress.now.since(loss.at)).fold(longest, Duration::max);
        told.extend(news.iter().map(|loss| (loss.at, loss.truth)));
        ControlFlow::Continue(())
    };
    simulation.run(&limits, &mut look).unwrap();
    let last = told.iter().map(|(at, _)| *at).max().unwrap();
    let losses = simulation.into_records().losses;
    let mut known: Vec<_> = losses.iter().map(|loss| (loss.record.at, loss.truth)).filter(|(at, _)| *at <= last).collect();
    assert!(losses.len() - known.len() <= 2, "{} of {}", known.len(), losses.len());
    for truth in [Truth::Lost(Cause::Erased), Truth::Lost(Cause::QueueFull), Truth::Arrived] {
        assert!(known.iter().filter(|(_, found)| *found == truth).count() >= 2, "{truth:?}");
    }
    // One that was under way waits until it has arrived; nobody is told what may still change.
    assert!(longest > Duration::from_millis(10) && longest < Duration::from_millis(200), "{longest:?}");
    known.sort_unstable_by_key(|(at, truth)| (*at, truth.name()));
    told.sort_unstable_by_key(|(at, truth)| (*at, truth.name()));
    assert_eq!(told, known);
}

#[test]
fn observers_change_nothing() {
    let make = || {
        let (mut builder, a, b) = path(3, Errors::Bits { ber: 3e-6 }, Effect::Damage);
        builder.tcp(transfer("sack", a, b, |_| {}));
        (builder, [a, b])
    };
    let (_, plain) = run(make().0);
    let (mut builder, nodes) = make();
    builder.sample_every(Duration::from_millis(3));
    for node in nodes {
        let (name, out) = ("test".to_owned(), Box::new(io::sink()));
        builder.capture(CaptureSpec { name, node, link: None, behind_queue: false, snaplen: 0, digits: 9, holes: 0.1, out });
    }
    let (_, mut watched) = run(builder);
    assert!(watched.flow_samples.iter().any(|sample| sample.srtt.is_some() && sample.pipe > 0));
    // Beyond the SYN: before the first acknowledgement the initial window is in the network.
    let first = watched.flow_samples.iter().find(|sample| sample.pipe > 1).unwrap();
    assert_eq!((first.octets_delivered, first.pipe), (0, 10 * 1448));
    watched.flow_samples.clear();
    watched.link_samples.clear();
    assert_eq!(plain, watched);
}

#[test]
fn a_send_overhead_keeps_each_flow_in_order() {
    let (mut builder, a, b) = path(0, Errors::None, Effect::Erase);
    builder.send_overhead(Duration::from_millis(5));
    builder.tcp(transfer("newreno", a, b, |config| config.max_window = Some(20_000)));
    let (outcome, records) = run(builder);
    assert_eq!(outcome, RunOutcome::Completed);
    assert_eq!(records.flows[0].sender.unwrap().duplicate_acks, 0);
}

fn striped(connections: usize, send_buffer: u64, errors: Errors, effect: Effect) -> Records {
    let (mut builder, from, to) = path(0, errors, effect);
    let change = |config: &mut Config| config.send_buffer = send_buffer;
    builder.striped(StripedTransfer {
        name: "file".to_owned(),
        from,
        to,
        start: Instant::from_nanos(1_000_000),
        octets: OCTETS,
        chunk: 14_600,
        connections: (0..connections).map(|_| (end("newreno", change), end("newreno", change))).collect(),
    });
    let (outcome, records) = run(builder);
    assert_eq!(outcome, RunOutcome::Completed);
    let file = &records.striped[0];
    assert_eq!((file.octets_delivered, file.finished), (OCTETS, Some(records.ended_at)));
    assert_eq!(records.flows.iter().map(|flow| flow.octets_delivered).sum::<u64>(), OCTETS);
    assert!(records.flows.iter().all(|flow| flow.octets_corrupted == 0 && flow.octets_delivered > 0 && flow.striped == Some(0)));
    records
}

#[test]
fn a_striped_file_is_put_together_in_order() {
    assert_eq!(striped(1, 65_536, Errors::None, Effect::Erase).striped[0].max_reordered, 0);
    let records = striped(5, 65_536, Errors::Bits { ber: 4e-6 }, Effect::Damage);
    assert_eq!(records.flows.len(), 5);
    assert_eq!(records.flows[4].name, "file/4");
    assert!(records.striped[0].max_reordered > 0);
}

#[test]
fn a_send_buffer_that_could_hold_the_file_does_not_keep_it_from_other_connections() {
    let records = striped(4, 4 * OCTETS, Errors::None, Effect::Erase);
    assert!(records.flows.iter().all(|flow| flow.octets_delivered > OCTETS / 8), "{:?}", records.flows);
}

#[test]
fn a_transfer_that_fails_is_over() {
    let (mut builder, a, b) = path(0, Errors::Packets { probability: 1.0 }, Effect::Erase);
    builder.tcp(transfer("newreno", a, b, |config| config.max_syn_retransmissions = Some(2)));
    let (outcome, records) = run(builder);
    assert_eq!(outcome, RunOutcome::Completed);
    let flow = &records.flows[0];
    assert_eq!((flow.closing, flow.finished, flow.octets_delivered), (Some(Closing::TimedOut), None, 0));
}

#[test]
fn the_log_has_every_packet_and_its_fate() {
    let (mut builder, a, b) = path(0, Errors::Packets { probability: 0.02 }, Effect::Erase);
    builder.tcp(transfer("sack", a, b, |_| {}));
    let everything = LogSpec { from: Instant::ZERO, until: Instant::MAX, at_most: 1_000_000 };
    builder.log_packets(everything);
    let (_, records) = run(builder);
    let flow = &records.flows[0];
    let stats = flow.sender.as_ref().unwrap();
    let rows = |way: Way| records.log.iter().filter(move |row| row.way == way);
    assert_eq!(rows(Way::Forward).count() as u64, flow.forward.sent);
    assert_eq!(rows(Way::Reverse).count() as u64, flow.reverse.sent);
    assert_eq!(rows(Way::Forward).filter(|row| row.len > 0).count() as u64, stats.data_segments_sent);
    assert_eq!(rows(Way::Forward).filter(|row| row.retransmission).count() as u64, stats.retransmissions);
    assert!(stats.retransmissions > 10);
    for (truth, expected) in [
        (Truth::Arrived, flow.forward.delivered),
        (Truth::InFlight, flow.forward.in_flight),
        (Truth::Lost(Cause::Erased), flow.forward.dropped.get(Cause::Erased)),
        (Truth::Lost(Cause::QueueFull), flow.forward.dropped.get(Cause::QueueFull)),
    ] {
        assert_eq!(rows(Way::Forward).filter(|row| row.truth == truth).count() as u64, expected, "{truth:?}");
    }
    // Each loss that the sender noticed is the row of that transmission.
    for loss in &records.losses {
        let row = rows(Way::Forward).find(|row| (row.offset, row.sent_at) == (loss.record.offset, loss.record.sent_at)).unwrap();
        assert_eq!((row.truth, row.len, row.retransmission), (loss.truth, loss.record.len, loss.record.transmission > 0));
    }
    // What arrives at the sender acknowledges ever more, never beyond the data and its FIN, and every SACK block lies beyond.
    let mut acks: Vec<_> = rows(Way::Reverse).filter(|row| row.truth == Truth::Arrived).collect();
    acks.sort_by_key(|row| row.ended);
    assert!(acks.windows(2).all(|pair| pair[0].ack <= pair[1].ack));
    // The run ends when the last octet is there; the acknowledgement that says so is still under way.
    assert!((OCTETS..=OCTETS + 1).contains(&rows(Way::Reverse).filter_map(|row| row.ack).max().unwrap()));
    assert!(acks.iter().any(|row| !row.sack.is_empty()));
    assert!(acks.iter().flat_map(|row| &row.sack).all(|(start, end)| start < end && *end <= OCTETS));
    // A scaled window: more than the field of a header can say.
    assert!(acks.last().unwrap().window.unwrap() > u64::from(u16::MAX));
    // Nothing of it changes the run.
    let same = complete("sack", Errors::Packets { probability: 0.02 }, Effect::Erase, |_| {});
    assert_eq!(Records { log: Vec::new(), ..records }, same);
}

#[test]
fn the_log_keeps_to_its_bounds() {
    let logged = |spec: LogSpec| {
        let (mut builder, a, b) = path(0, Errors::Packets { probability: 0.02 }, Effect::Erase);
        builder.tcp(transfer("sack", a, b, |_| {}));
        builder.log_packets(spec);
        run(builder).1
    };
    let whole = logged(LogSpec { from: Instant::ZERO, until: Instant::MAX, at_most: 1_000_000 });
    let [from, until] = [1_000_000_000, 2_000_000_000].map(Instant::from_nanos);
    let within: Vec<_> = whole.log.iter().filter(|row| (from..until).contains(&row.sent_at)).cloned().collect();
    let second = logged(LogSpec { from, until, at_most: 1_000_000 });
    assert!(second.log.len() > 100);
    assert_eq!((second.log, second.log_left_out), (within, 0));
    let few = logged(LogSpec { from: Instant::ZERO, until: Instant::MAX, at_most: 10 });
    assert_eq!((&few.log[..], few.log_left_out), (&whole.log[..10], whole.log.len() as u64 - 10));
}
