//! Differentiators at the sender and at the receiver judge the same losses, and the oracle knows the truth.

use std::ops::ControlFlow;
use whyloss_sim::{Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, QueueLimit, Records, TcpFlow, Truth};
use whyloss_transport::differentiation::Cause;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant};

/// One flow for 60 s over a short queue and then over a slower last hop that erases 1 % of the packets.
fn run(selection: &Selection) -> Records {
    let mut builder = Builder::new(7, 0);
    let (from, middle, to) = (builder.host("a"), builder.router("m"), builder.host("b"));
    let link = |mbps: u64, queue: u32, per: f64| LinkSpec {
        rate: BitRate::from_bps(mbps * 1_000_000),
        delay: Duration::from_millis(10),
        queue: QueueLimit::Packets(queue),
        channel: ChannelSpec { errors: Errors::Packets { probability: per }, effect: Effect::Erase },
        ..LinkSpec::default()
    };
    builder.link(from, middle, link(100, 1000, 0.0), link(100, 1000, 0.0));
    builder.link(middle, to, link(10, 20, 0.01), link(10, 1000, 0.0));
    let end = || {
        let mut config = Config::modern();
        let parts = selection.build(&mut config).unwrap();
        End { config, parts }
    };
    let amount = Amount::Unlimited;
    builder.tcp(TcpFlow { name: "f".into(), from, to, start: Instant::ZERO, amount, sender: end(), receiver: end() });
    let mut simulation = builder.build().unwrap();
    simulation.run(&Limits { until: Some(Instant::ZERO + Duration::from_secs(60)) }, |_| ControlFlow::Continue(())).unwrap();
    simulation.into_records()
}

fn truth(truth: Truth) -> Cause {
    match truth {
        Truth::Lost(cause) if cause.is_congestion() => Cause::Congestion,
        _ => Cause::Corruption,
    }
}

#[test]
fn the_oracle_is_always_right() {
    let records = run(&Selection { shadows: vec!["oracle".into()], ..Selection::scheme("newreno") });
    let causes: Vec<_> = records.losses.iter().map(|loss| truth(loss.truth)).collect();
    assert!(causes.contains(&Cause::Congestion) && causes.contains(&Cause::Corruption));
    for (loss, cause) in records.losses.iter().zip(causes) {
        assert_eq!(loss.record.shadows[0].cause, cause, "{loss:?}");
    }
}

#[test]
fn the_receiver_s_verdict_reaches_the_sender() {
    let selection = Selection { differentiator: Some("biaz".into()), shadows: vec!["biaz".into()], ..Selection::default() };
    let records = run(&selection);
    let first = records.losses.iter().filter(|loss| loss.record.transmission == 0);
    let (heard, said): (Vec<_>, Vec<_>) = first.map(|loss| (loss.record.verdict.cause, loss.record.shadows[0].cause)).unzip();
    assert!(said.contains(&Cause::Corruption));
    let same = heard.iter().zip(&said).filter(|(heard, said)| heard == said).count();
    // A second hole that opens before the first is filled inherits its verdict until it is the lowest.
    assert!(same as f64 > 0.9 * said.len() as f64, "{same} of {}", said.len());
    assert_eq!(records.flows[0].shadows, ["biaz"]);
}
