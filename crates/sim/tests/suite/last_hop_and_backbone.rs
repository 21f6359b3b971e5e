//! Differentiators at the receiver on the two topologies of Cen, Cosman & Voelker 2003: a wireless last hop, which a flow has for itself,
//! and a wireless backbone, which all share.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use whyloss_sim::{Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, QueueLimit, Records, TcpFlow, Truth};
use whyloss_transport::differentiation::{Cause, AT_RECEIVER};
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topology {
    /// 10 Mbit/s shared by all, then 2 Mbit/s wireless for each.
    LastHop,
    /// 10 Mbit/s wireless, shared by all.
    Backbone,
}

fn link(kbps: u64, delay_ms: u64, queue: u32, erased: f64) -> LinkSpec {
    let errors = if erased > 0.0 { Errors::Packets { probability: erased } } else { Errors::None };
    LinkSpec {
        rate: BitRate::from_bps(kbps * 1000),
        delay: Duration::from_millis(delay_ms),
        queue: QueueLimit::Packets(queue),
        channel: ChannelSpec { errors, effect: Effect::Erase },
        ..LinkSpec::default()
    }
}

/// Flows of NewReno for 120 s, 1 % of whose packets the wireless links erase; every differentiator at the receiver listens.
fn run(topology: Topology, flows: u64) -> Records {
    let mut builder = Builder::new(3, flows);
    let (left, right) = (builder.router("left"), builder.router("right"));
    let lost = if topology == Topology::Backbone { 0.01 } else { 0.0 };
    builder.link(left, right, link(10_000, 20, 50, lost), link(10_000, 20, 1000, 0.0));
    let shadows: Vec<String> = AT_RECEIVER.iter().map(|part| part.name.to_owned()).collect();
    let selection = Selection { shadows, ..Selection::default() };
    for flow in 0..flows {
        let (from, to) = (builder.host(format!("s{flow}")), builder.host(format!("d{flow}")));
        builder.link(from, left, link(100_000, 1 + flow, 1000, 0.0), link(100_000, 1 + flow, 1000, 0.0));
        match topology {
            Topology::LastHop => builder.link(right, to, link(2_000, 1, 20, 0.01), link(2_000, 1, 1000, 0.0)),
            Topology::Backbone => builder.link(right, to, link(100_000, 1, 1000, 0.0), link(100_000, 1, 1000, 0.0)),
        };
        let end = || {
            let mut config = Config::modern();
            config.timestamp_tick = Duration::from_millis(1);
            let parts = selection.build(&mut config).unwrap();
            End::new(config, parts)
        };
        let start = Instant::ZERO + Duration::from_millis(100 * flow);
        let amount = Amount::Unlimited;
        builder.tcp(TcpFlow { name: format!("f{flow}"), from, to, start, amount, sender: end(), receiver: end() });
    }
    let mut simulation = builder.build().unwrap();
    let until = Some(Instant::ZERO + Duration::from_secs(120));
    simulation.run(&Limits { until }, |_| ControlFlow::Continue(())).unwrap();
    simulation.into_records()
}

/// Of the segments that a queue dropped, and of those that a link erased, the share that each differentiator judged so, and their numbers.
fn accuracies(records: &Records) -> (BTreeMap<String, [f64; 2]>, [u32; 2]) {
    let mut right = vec![[0u32; 2]; AT_RECEIVER.len()];
    let mut all = [0u32; 2];
    for loss in records.losses.iter().filter(|loss| loss.record.transmission == 0) {
        let Truth::Lost(cause) = loss.truth else { continue };
        let kind = usize::from(!cause.is_congestion());
        all[kind] += 1;
        for (right, verdict) in right.iter_mut().zip(&loss.record.shadows) {
            // Unknown is taken for congestion.
            right[kind] += u32::from((verdict.cause == Cause::Corruption) == (kind == 1));
        }
    }
    let share = |right: [u32; 2]| [0, 1].map(|kind| f64::from(right[kind]) / f64::from(all[kind]));
    (AT_RECEIVER.iter().zip(right).map(|(part, right)| (part.name.to_owned(), share(right))).collect(), all)
}

#[test]
fn each_works_where_its_assumption_holds() {
    let of = |topology, flows| accuracies(&run(topology, flows));
    let (alone, counts) = of(Topology::LastHop, 1);
    assert!(counts.iter().all(|&count| count > 30), "{counts:?}");
    let (shared, counts) = of(Topology::Backbone, 8);
    assert!(counts.iter().all(|&count| count > 300), "{counts:?}");

    // A wireless last hop that is the bottleneck of one flow is what Biaz is for; ZBS asks it there.
    for name in ["biaz", "mbiaz", "zbs"] {
        let [congestion, wireless] = alone[name];
        assert!(congestion > 0.9 && wireless > 0.8, "{name}: {congestion}, {wireless}");
    }
    // Where flows interleave, the time between two packets of one says nothing of the slots on the link.
    for name in ["biaz", "mbiaz"] {
        assert!(shared[name][1] < 0.3, "{name}: {:?}", shared[name]);
    }
    // ZigZag lets only trips a deviation below the mean be corruption when one packet is missing.
    for (of, topology) in [(&alone, "alone"), (&shared, "shared")] {
        assert!((0.05..0.4).contains(&of["zigzag"][1]), "{topology}: {:?}", of["zigzag"]);
        // The channel takes marked packets as often as any; a queue that looks at no marks does so too.
        assert!((of["casablanca"][1] - 0.75).abs() < 0.1, "{topology}: {:?}", of["casablanca"]);
    }
    // The drops of a lone flow may be in step with its marks: where slow start overflows the queue, an acknowledgement lets four segments
    // out of which the queue takes two, and one in four is marked. Those of eight flows are not.
    assert!(shared["casablanca"][0] < 0.5, "{:?}", shared["casablanca"]);
}
