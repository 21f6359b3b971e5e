//! Queues that choose or mark, and the differentiators that rely on them.

use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, ChannelSpec, Discipline, Effect, End, Errors, Limits, LinkSpec, QueueLimit, Records, Red, TcpFlow, Truth,
    Warn,
};
use whyloss_transport::differentiation::Cause;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::{Config, Judgement};
use whyloss_transport::{BitRate, Duration, Instant};

/// Four flows for 60 s through one queue, then over links that erase 1 % of the packets.
fn run(selection: &Selection, discipline: Option<Discipline>, ecn: bool) -> Records {
    let mut builder = Builder::new(3, 0);
    let (left, right) = (builder.router("left"), builder.router("right"));
    let link = |mbps: u64, packets: u32, probability: f64| LinkSpec {
        rate: BitRate::from_bps(mbps * 1_000_000),
        delay: Duration::from_millis(5),
        queue: QueueLimit::Packets(packets),
        channel: ChannelSpec { errors: Errors::Packets { probability }, effect: Effect::Erase },
        ..LinkSpec::default()
    };
    builder.link(left, right, LinkSpec { discipline, ..link(10, 30, 0.0) }, link(10, 1000, 0.0));
    for n in 0..4 {
        let (from, to) = (builder.host(format!("a{n}")), builder.host(format!("b{n}")));
        builder.link(from, left, link(100, 1000, 0.0), link(100, 1000, 0.0));
        builder.link(right, to, link(100, 1000, 0.01), link(100, 1000, 0.0));
        let end = || {
            let mut config = Config { ecn, ..Config::modern() };
            let parts = selection.build(&mut config).unwrap();
            End::new(config, parts)
        };
        let start = Instant::ZERO + Duration::from_millis(50 * n);
        let (sender, receiver) = (end(), end());
        builder.tcp(TcpFlow { name: format!("f{n}"), from, to, start, amount: Amount::Unlimited, sender, receiver });
    }
    let mut simulation = builder.build().unwrap();
    simulation.run(&Limits { until: Some(Instant::ZERO + Duration::from_secs(60)) }, |_| ControlFlow::Continue(())).unwrap();
    simulation.into_records()
}

/// `A_c` and `A_w` of the ruling differentiator on lost first transmissions.
fn accuracies(records: &Records) -> (f64, f64) {
    let share = |congestion: bool, right: Cause| {
        let of_cause = records.losses.iter().filter(|loss| loss.record.transmission == 0);
        let of_cause: Vec<_> =
            of_cause.filter(|loss| matches!(loss.truth, Truth::Lost(cause) if cause.is_congestion() == congestion)).collect();
        assert!(of_cause.len() > 100, "{} losses", of_cause.len());
        let counted =
            of_cause.iter().filter(|loss| (loss.record.verdict.cause == Cause::Corruption) == (right == Cause::Corruption));
        counted.count() as f64 / of_cause.len() as f64
    };
    (share(true, Cause::Congestion), share(false, Cause::Corruption))
}

/// Octets that all flows got.
fn delivered(records: &Records) -> u64 {
    records.flows.iter().map(|flow| flow.octets_delivered).sum()
}

#[test]
fn jersey_keeps_its_window_for_losses_without_a_warning() {
    let warn = Discipline::Warn(Warn { threshold: 25.0, weight: 0.2 });
    let [jersey, newreno] = ["jersey", "newreno"].map(|scheme| run(&Selection::scheme(scheme), Some(warn), true));
    assert!(delivered(&jersey) > delivered(&newreno), "{} and {}", delivered(&jersey), delivered(&newreno));
    // Of what the links erased, how many reduced a window, and how many there are.
    let reduced = |records: &Records| {
        let erased = records.losses.iter().filter(|loss| matches!(loss.truth, Truth::Lost(cause) if !cause.is_congestion()));
        erased.fold((0, 0), |(reduced, all), loss| (reduced + u32::from(loss.record.judgement == Judgement::Reduced), all + 1))
    };
    let [(jersey_reduced, jersey_all), (newreno_reduced, newreno_all)] = [&jersey, &newreno].map(reduced);
    println!(
        "{} and {} octets; {jersey_reduced} of {jersey_all}, {newreno_reduced} of {newreno_all}",
        delivered(&jersey),
        delivered(&newreno)
    );
    assert!(jersey_all > 100 && newreno_all > 100);
    assert!(
        jersey_reduced * 4 < jersey_all && newreno_reduced * 2 > newreno_all,
        "{jersey_reduced} of {jersey_all}, {newreno_reduced} of {newreno_all}"
    );
}

#[test]
fn a_biased_queue_gives_casablanca_its_accuracy() {
    let casablanca = Selection::scheme("casablanca");
    let (with, _) = accuracies(&run(&casablanca, Some(Discipline::Biased), false));
    let (without, a_w) = accuracies(&run(&casablanca, None, false));
    // Biaz & Vaidya 2005 have more than 95 % on paths with light congestion; four flows in slow start find the queue without an OUT
    // packet now and then (92.7 %). Without routers that take part the marks say nothing: one packet in four is OUT, and several missing
    // at once often include one.
    assert!(with > 0.9, "{with}");
    assert!(without < 0.8, "{without}");
    assert!(a_w > 0.5, "{a_w}");
}

#[test]
fn where_queues_mark_before_they_drop_the_silence_of_marks_means_corruption() {
    let ecn = Selection { differentiator: Some("ecn".into()), reaction: Some("keep".into()), ..Selection::scheme("sack") };
    let red = Discipline::Red(Red { mark: true, ..Red::default() });
    let records = run(&ecn, Some(red), true);
    let corrupted = records.losses.iter().filter(|loss| matches!(loss.truth, Truth::Lost(cause) if !cause.is_congestion()));
    let right = corrupted.clone().filter(|loss| loss.record.verdict.cause == Cause::Corruption).count();
    let share = right as f64 / corrupted.count() as f64;
    assert!(records.flows.iter().all(|flow| flow.sender.is_some_and(|stats| stats.ecn_reductions > 0)));
    // Marks come about once in ten round trips of a flow, and one hides the losses of a round trip.
    assert!(share > 0.6, "{share}");
}
