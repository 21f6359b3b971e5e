//! Selective-TCP where its assumption holds: a lossy last hop that is the bottleneck of one flow (Paul 2006, figure 12 without the other traffic).

use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, ChannelSpec, Discipline, Effect, End, Errors, Limits, LinkSpec, QueueLimit, Records, TcpFlow, Truth, Warn,
};
use whyloss_transport::differentiation::Cause;
use whyloss_transport::path::Trigger;
use whyloss_transport::scheme::{Selection, Value};
use whyloss_transport::tcp::{Config, Judgement};
use whyloss_transport::{BitRate, Duration, Instant};

const SECONDS: u64 = 60;

/// A path whose last hop is half as fast as the rest, takes 5 ms and erases packets of data.
#[derive(Clone)]
struct Dumbbell {
    /// Rate of the last hop in kbit/s.
    kbps: u64,
    /// One-way delay of each of the two hops before it.
    delay_ms: u64,
    /// Packets that wait for the last hop.
    queue: u32,
    erased: f64,
    discipline: Option<Discipline>,
    config: Config,
}

/// As published: 1 Mbit/s and round trips of 14 ms, a window of 20 segments of 1000 octets and nothing that a queue drops.
fn published() -> Dumbbell {
    Dumbbell { kbps: 1000, delay_ms: 1, queue: 50, erased: 0.03, discipline: None, config: Config::ns2() }
}

/// A pipe that holds 60 segments and a window to fill it, so that a halved window costs.
fn longer() -> Dumbbell {
    let config = Config { receive_buffer: 100_000, ..Config::ns2() };
    Dumbbell { kbps: 10_000, delay_ms: 10, queue: 200, erased: 0.01, discipline: None, config }
}

fn run(dumbbell: &Dumbbell, selection: &Selection, run: u64) -> Records {
    let Dumbbell { kbps, delay_ms, queue, erased, discipline, ref config } = *dumbbell;
    let mut builder = Builder::new(17, run);
    let (from, to) = (builder.host("source"), builder.host("sink"));
    let (router, station) = (builder.router("router"), builder.router("station"));
    let link = |kbps: u64, delay_ms, queue, erased: f64| LinkSpec {
        rate: BitRate::from_bps(kbps * 1000),
        delay: Duration::from_millis(delay_ms),
        queue: QueueLimit::Packets(queue),
        channel: ChannelSpec {
            errors: if erased > 0.0 { Errors::Packets { probability: erased } } else { Errors::None },
            effect: Effect::Erase,
        },
        ..LinkSpec::default()
    };
    for (a, b) in [(from, router), (router, station)] {
        builder.link(a, b, link(2 * kbps, delay_ms, 200, 0.0), link(2 * kbps, delay_ms, 200, 0.0));
    }
    builder.link(station, to, LinkSpec { discipline, ..link(kbps, 5, queue, erased) }, link(kbps, 5, 200, 0.0));
    let end = || {
        let mut config = config.clone();
        let parts = selection.build(&mut config).unwrap();
        End::new(config, parts)
    };
    let amount = Amount::Unlimited;
    builder.tcp(TcpFlow { name: "f".into(), from, to, start: Instant::ZERO, amount, sender: end(), receiver: end() });
    let mut simulation = builder.build().unwrap();
    let until = Some(Instant::ZERO + Duration::from_secs(SECONDS));
    simulation.run(&Limits { until }, |_| ControlFlow::Continue(())).unwrap();
    simulation.into_records()
}

/// Goodput in kbit/s.
fn goodput(records: &Records) -> f64 {
    records.flows[0].octets_delivered as f64 * 8.0 / 1000.0 / SECONDS as f64
}

/// What became of the losses of first transmissions whose true cause is `congestion` or else the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Fates {
    all: u32,
    /// The receiver asked for them, and the window stayed.
    asked: u32,
    /// The window fell on their account.
    reduced: u32,
}

fn fates(records: &Records, congestion: bool) -> Fates {
    let first = records.losses.iter().filter(|loss| loss.record.transmission == 0);
    let of_cause = first.filter(|loss| matches!(loss.truth, Truth::Lost(cause) if cause.is_congestion() == congestion));
    of_cause.fold(Fates::default(), |sum, loss| {
        let asked = loss.record.trigger == Trigger::Snack;
        assert!(!asked || loss.record.judgement == Judgement::Kept && loss.record.verdict.cause == Cause::Corruption);
        let reduced = loss.record.judgement == Judgement::Reduced;
        Fates { all: sum.all + 1, asked: sum.asked + u32::from(asked), reduced: sum.reduced + u32::from(reduced) }
    })
}

/// Goodputs over ten runs, in how many of them Selective-TCP's was larger, and the fates of what the channel took.
fn compare(dumbbell: &Dumbbell) -> ([f64; 2], u32, [Fates; 2]) {
    let (mut goodputs, mut larger, mut sums) = ([0.0; 2], 0, [Fates::default(); 2]);
    for number in 0..10 {
        let records = ["selective", "newreno"].map(|scheme| run(dumbbell, &Selection::scheme(scheme), number));
        let [selective, newreno] = [0, 1].map(|at| goodput(&records[at]));
        larger += u32::from(selective > newreno);
        goodputs = [goodputs[0] + selective, goodputs[1] + newreno];
        for (sum, records) in sums.iter_mut().zip(&records) {
            assert_eq!(fates(records, true).all, 0, "no queue drops anything");
            let Fates { all, asked, reduced } = fates(records, false);
            *sum = Fates { all: sum.all + all, asked: sum.asked + asked, reduced: sum.reduced + reduced };
        }
    }
    println!("{goodputs:.0?} kbit/s in ten runs, {larger} larger; {sums:?}");
    (goodputs, larger, sums)
}

#[test]
fn where_a_halved_window_costs_it_beats_newreno_because_errors_reduce_nothing() {
    let ([selective, newreno], larger, [of_selective, of_newreno]) = compare(&longer());
    assert!(larger == 10 && selective > 1.2 * newreno, "{selective:.0} and {newreno:.0} kbit/s, {larger} of 10");
    assert!(of_selective.asked * 10 > of_selective.all * 7 && of_selective.reduced * 5 < of_selective.all, "{of_selective:?}");
    assert!(of_newreno.asked == 0 && of_newreno.reduced * 3 > of_newreno.all, "{of_newreno:?}");
}

/// Four segments fill the published path, and half of a window of twenty is more.
#[test]
fn where_half_a_window_is_enough_it_does_as_newreno_does() {
    let ([selective, newreno], _, [of_selective, of_newreno]) = compare(&published());
    assert!((selective / newreno - 1.0).abs() < 0.05, "{selective:.0} and {newreno:.0} kbit/s");
    assert!(of_selective.asked * 10 > of_selective.all * 7, "{of_selective:?}");
    assert!(of_newreno.reduced * 2 > of_newreno.all, "{of_newreno:?}");
}

#[test]
fn what_a_queue_drops_reduces_the_window_and_brings_reports() {
    let config = Config { receive_buffer: 100_000, ..Config::ns2() };
    let records = run(&Dumbbell { queue: 20, erased: 0.0, config, ..published() }, &Selection::scheme("selective"), 0);
    let Fates { all, asked, reduced } = fates(&records, true);
    assert!(all > 20 && asked * 4 < all && reduced > 5, "{reduced} and {asked} of {all}");
    assert!(records.flows[0].sender.unwrap().reports_received > 3, "{:?}", records.flows[0]);
}

/// A differentiator that sees only which packets are missing takes three of four drops of a plain queue for corruption. Marks know better.
#[test]
fn marks_of_routers_overrule_the_differentiator() {
    // Slow start overshoots by as much as the queue holds, before a mark can have come back.
    let config = Config { receive_buffer: 400_000, initial_ssthresh: None, ecn: true, ..Config::ns2() };
    let discipline = Some(Discipline::Warn(Warn { threshold: 15.0, weight: 1.0 }));
    let dumbbell = Dumbbell { queue: 20, erased: 0.0, discipline, config, ..published() };
    let [without, with] = [false, true].map(|marks| {
        let mut selection = Selection { differentiator: Some("casablanca".into()), ..Selection::scheme("selective") };
        selection.parameters.entry("selective".into()).or_default().insert("marks".into(), Value::Flag(marks));
        let fates = fates(&run(&dumbbell, &selection, 0), true);
        println!("marks {marks}: {fates:?}");
        fates
    });
    assert!(without.all > 20 && without.asked * 2 > without.all, "{without:?}");
    assert!(with.all > 20 && with.asked * 10 < with.all, "{with:?}");
}
