//! Three differentiators that cut the same statistic at nearly the same place, on the same losses of a simulated path.

use std::ops::ControlFlow;

use whyloss_sim::{Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, QueueLimit, TcpFlow, Truth};
use whyloss_transport::differentiation::{Cause, Verdict};
use whyloss_transport::path::TrueCause;
use whyloss_transport::scheme::Selection;
use whyloss_transport::{BitRate, Config, Duration, Instant};

const NAMES: [&str; 3] = ["lda-eq", "cerl", "west"];

/// What `LDA_EQ(0.5)`, CERL(0.55) and West(1/2, 1/2) thought of each loss of three flows through a bottleneck of 2 Mbps whose access
/// links lose 1 % of the packets, with what it really was.
fn opinions() -> Vec<([Verdict; 3], TrueCause)> {
    let mut net = Builder::new(11, 0);
    let (left, right) = (net.router("left"), net.router("right"));
    let link = |kbps: u64, delay_ms, loss| LinkSpec {
        rate: BitRate::from_bps(kbps * 1000),
        delay: Duration::from_millis(delay_ms),
        queue: QueueLimit::Packets(25),
        channel: ChannelSpec { errors: Errors::Packets { probability: loss }, effect: Effect::Erase },
        ..LinkSpec::default()
    };
    net.link(left, right, link(2000, 20, 0.0), link(2000, 20, 0.0));
    let shadows = NAMES.map(str::to_owned).to_vec();
    let halves = [("alpha".to_owned(), 0.5.into()), ("beta".to_owned(), 0.5.into())].into();
    let selection = Selection { shadows, parameters: [("west".to_owned(), halves)].into(), ..Selection::scheme("sack") };
    for n in 0..3 {
        let (from, to) = (net.host(format!("from{n}")), net.host(format!("to{n}")));
        net.link(from, left, link(10_000, 2, 0.0), link(10_000, 2, 0.0));
        net.link(right, to, link(10_000, 2, 0.01), link(10_000, 2, 0.0));
        let end = || {
            let mut config = Config::modern();
            let parts = selection.build(&mut config).expect("they are in the table");
            End::new(config, parts)
        };
        net.tcp(TcpFlow {
            name: format!("flow{n}"),
            from,
            to,
            start: Instant::ZERO + Duration::from_millis(300 * n),
            amount: Amount::Unlimited,
            sender: end(),
            receiver: end(),
        });
    }
    let mut simulation = net.build().expect("the network fits together");
    let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(600)) };
    simulation.run(&limits, |_| ControlFlow::Continue(())).expect("it runs");
    let losses = simulation.into_records().losses.into_iter();
    let judged = losses.filter_map(|loss| match loss.truth {
        Truth::Lost(cause) => Some(([0, 1, 2].map(|nth| loss.record.shadows[nth]), cause.true_cause())),
        _ => None,
    });
    judged.filter(|(verdicts, _)| verdicts.iter().all(|verdict| verdict.cause != Cause::Unknown)).collect()
}

#[test]
fn nearly_the_same_test_gives_nearly_the_same_verdicts() {
    let opinions = opinions();
    let of = |truth| opinions.iter().filter(move |(_, cause)| *cause == truth);
    let (congestion, corruption) = (of(TrueCause::Congestion).count(), of(TrueCause::Corruption).count());
    assert!(congestion > 100 && corruption > 300, "{congestion} and {corruption}");

    // West whose spikes end where they begin is LDA_EQ.
    assert!(opinions.iter().all(|([eq, _, west], _)| eq.cause == west.cause));

    // CERL's threshold is 0.05 of the range higher. Were the queue anywhere in its range with equal chance, they would differ on one loss
    // in twenty; twice as many are allowed. And they may differ nowhere else.
    let differ: Vec<_> = opinions.iter().filter(|([eq, cerl, _], _)| eq.cause != cerl.cause).collect();
    assert!(differ.iter().all(|([eq, ..], _)| eq.cause == Cause::Congestion && (0.45..0.5).contains(&eq.score)), "{differ:?}");
    assert!(!differ.is_empty() && differ.len() * 10 <= opinions.len(), "{} of {}", differ.len(), opinions.len());

    // The statistic tells full queues from others where one bottleneck holds all the queue there is.
    let called = |truth, as_cause| of(truth).filter(|([eq, ..], _)| eq.cause == as_cause).count();
    let right = [
        called(TrueCause::Congestion, Cause::Congestion) as f64 / congestion as f64,
        called(TrueCause::Corruption, Cause::Corruption) as f64 / corruption as f64,
    ];
    assert!(right[0] > 0.9 && right[0] + right[1] > 1.2, "A_c and A_w: {right:?}");
}
