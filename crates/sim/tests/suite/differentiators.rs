//! Differentiators at the sender and at the receiver judge the same losses, and the oracle knows the truth.

use std::ops::ControlFlow;
use whyloss_sim::{Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, QueueLimit, Records, TcpFlow, Truth};
use whyloss_transport::differentiation::Cause;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant};

/// One flow for 300 s over a short queue and then over a slower last hop that erases packets with probability `per`.
fn run(selection: &Selection, per: f64) -> Records {
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
    builder.link(middle, to, link(10, 20, per), link(10, 1000, 0.0));
    let end = || {
        let mut config = Config::modern();
        let parts = selection.build(&mut config).unwrap();
        End::new(config, parts)
    };
    let amount = Amount::Unlimited;
    builder.tcp(TcpFlow { name: "f".into(), from, to, start: Instant::ZERO, amount, sender: end(), receiver: end() });
    let mut simulation = builder.build().unwrap();
    simulation.run(&Limits { until: Some(Instant::ZERO + Duration::from_secs(300)) }, |_| ControlFlow::Continue(())).unwrap();
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
    let records = run(&Selection { shadows: vec!["oracle".into()], ..Selection::scheme("newreno") }, 0.01);
    let causes: Vec<_> = records.losses.iter().map(|loss| truth(loss.truth)).collect();
    assert!(causes.contains(&Cause::Congestion) && causes.contains(&Cause::Corruption));
    for (loss, cause) in records.losses.iter().zip(causes) {
        assert_eq!(loss.record.shadows[0].cause, cause, "{loss:?}");
    }
}

/// What the sender heard and what the receiver said of each lost first transmission on which the receiver had an opinion.
fn heard_and_said(differentiator: &str, per: f64) -> Vec<(Truth, Cause, Cause)> {
    let (shadows, reaction) = (vec![differentiator.to_owned()], Some("keep".to_owned()));
    let records = run(&Selection { differentiator: Some(differentiator.into()), shadows, reaction, ..Selection::default() }, per);
    assert_eq!(records.flows[0].shadows, [differentiator]);
    let first = records.losses.iter().filter(|loss| loss.record.transmission == 0 && loss.truth != Truth::Arrived);
    let opinions = first.map(|loss| (loss.truth, loss.record.verdict.cause, loss.record.shadows[0].cause));
    opinions.filter(|(.., said)| *said != Cause::Unknown).collect()
}

#[test]
fn the_receiver_s_verdict_reaches_the_sender_for_the_loss_that_it_is_about() {
    for (differentiator, per) in [("biaz", 0.01), ("mbiaz", 0.02)] {
        let opinions = heard_and_said(differentiator, per);
        let corruption = opinions.iter().filter(|(.., said)| *said == Cause::Corruption).count();
        let dropped: Vec<_> = opinions.iter().filter(|(lost, ..)| truth(*lost) == Cause::Congestion).collect();
        let congestion = dropped.iter().filter(|(.., said)| *said == Cause::Congestion).count();
        let wrong = dropped.iter().filter(|(_, heard, said)| *said == Cause::Congestion && *heard == Cause::Corruption).count();
        let same = opinions.iter().filter(|(_, heard, said)| heard == said).count();
        assert!(corruption > 100 && congestion > 5, "{differentiator}: {corruption} and {congestion}");
        assert_eq!(wrong, 0, "{differentiator}: of {congestion} queue drops that the receiver called congestion");
        // The others are noticed by the sender before the acknowledgement with the verdict comes.
        assert!(same as f64 > 0.98 * opinions.len() as f64, "{differentiator}: {same} of {}", opinions.len());
    }
}
