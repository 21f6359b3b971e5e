//! DCCP and TFRC in the simulator: a golden table for each congestion control, and random networks.

use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use whyloss_sim::{
    Builder, Cause, ChannelSpec, DatagramFlow, Effect, Errors, Limits, LinkSpec, NodeId, QueueLimit, Records, Step, Supply, Truth,
};
use whyloss_transport::datagram;
use whyloss_transport::differentiation;
use whyloss_transport::path::Trigger;
use whyloss_transport::scheme::{Arguments, Part, Value};
use whyloss_transport::{BitRate, Duration, Instant};

/// The parameter of which both values are tried, and the values.
fn modes(row: &Part<datagram::Config>) -> (&'static str, [&'static str; 2]) {
    match row.name {
        "tfrc" => ("version", ["rfc5348", "sigcomm2000"]),
        _ => ("mode", ["rfc", "differentiating"]),
    }
}

fn config(row: &Part<datagram::Config>, mode: &str) -> datagram::Config {
    let given = BTreeMap::from([(modes(row).0.to_owned(), Value::Word(mode.to_owned()))]);
    *row.build(&Arguments::check(row, &given).expect("each has its modes"))
}

fn flow(name: String, [from, to]: [NodeId; 2], config: &datagram::Config) -> DatagramFlow {
    DatagramFlow {
        name,
        from,
        to,
        start: Instant::ZERO,
        stop: Instant::MAX,
        supply: Supply::Saturated,
        sender: config.clone(),
        receiver: config.clone(),
    }
}

fn run(builder: Builder, lasts: Duration) -> Records {
    let mut simulation = builder.build().expect("the network fits together");
    // `run` itself fails if a packet is missing anywhere.
    simulation.run(&Limits { until: Some(Instant::ZERO + lasts) }, |_| ControlFlow::Continue(())).expect("it runs");
    simulation.into_records()
}

/// Goodput over 10 Mbit/s with packets damaged at random, in kbit/s.
fn goodput(row: &Part<datagram::Config>, mode: &str, damage: f64, rtt: Duration) -> f64 {
    let mut builder = Builder::new(7, 1);
    let ends = [builder.host("from"), builder.host("to")];
    let way = |probability| LinkSpec {
        rate: BitRate::from_bps(10_000_000),
        delay: rtt / 2,
        queue: QueueLimit::Packets(60),
        channel: ChannelSpec { errors: Errors::Packets { probability }, effect: Effect::Damage },
        ..LinkSpec::default()
    };
    builder.link(ends[0], ends[1], way(damage), way(0.0));
    builder.datagrams(flow("bulk".to_owned(), ends, &config(row, mode)));
    run(builder, Duration::from_secs(20)).flows[0].goodput_bps / 1000.0
}

/// A snapshot: a change in a number is not a mistake by itself, but somebody has to look at it and say why.
#[test]
fn every_congestion_control_keeps_its_goodput() {
    for row in datagram::TABLE {
        let mut table = format!("goodput of {} in kbit/s over 10 Mbit/s, 20 s\ndamage            mode |", row.name);
        for rtt in [10, 80, 300] {
            write!(table, " {rtt:>4} ms").unwrap();
        }
        for damage in [0.0, 0.001, 0.01, 0.05] {
            for mode in modes(row).1 {
                write!(table, "\n{:>5.1}% {mode:>15} |", damage * 100.0).unwrap();
                for rtt in [10, 80, 300] {
                    write!(table, " {:>7.0}", goodput(row, mode, damage, Duration::from_millis(rtt))).unwrap();
                }
            }
        }
        insta::assert_snapshot!(format!("goodput_{}", row.name), table);
    }
}

#[derive(Clone, Debug)]
struct Plan {
    kbps: u64,
    delay_us: u64,
    queue: u32,
    errors: Errors,
    damages: bool,
}

impl Plan {
    fn spec(&self) -> LinkSpec {
        let effect = if self.damages { Effect::Damage } else { Effect::Erase };
        LinkSpec {
            rate: BitRate::from_bps(self.kbps * 1000),
            delay: Duration::from_micros(self.delay_us),
            queue: QueueLimit::Packets(self.queue),
            channel: ChannelSpec { errors: self.errors.clone(), effect },
            ..LinkSpec::default()
        }
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let errors = prop_oneof![
        2 => Just(Errors::None),
        2 => (0.0..1e-5f64).prop_map(|ber| Errors::Bits { ber }),
        1 => (0.0..0.05f64).prop_map(|probability| Errors::Packets { probability }),
        1 => (0.95..0.999f64, 0.0..0.7f64).prop_map(|(stay_good, stay_bad)| Errors::Gilbert { stay_good, stay_bad, hits: Errors::IN_BAD, step: Step::Packet }),
    ];
    (200u64..10_000, 0u64..80_000, 2u32..60, errors, any::<bool>()).prop_map(|(kbps, delay_us, queue, errors, damages)| Plan {
        kbps,
        delay_us,
        queue,
        errors,
        damages,
    })
}

#[derive(Clone, Debug)]
struct World {
    seed: u64,
    links: [Plan; 4],
    /// Congestion control, mode, coverage, rate, IPv6.
    flows: Vec<(usize, usize, u8, Option<u64>, bool)>,
}

fn world() -> impl Strategy<Value = World> {
    let flow = (0..datagram::TABLE.len(), 0..2usize, 0u8..4, proptest::option::of(20_000u64..2_000_000), any::<bool>());
    (any::<u64>(), [plan(), plan(), plan(), plan()], proptest::collection::vec(flow, 1..4))
        .prop_map(|(seed, links, flows)| World { seed, links, flows })
}

impl World {
    fn run(&self) -> Records {
        let mut builder = Builder::new(self.seed, 0);
        let (from, middle, to) = (builder.host("from"), builder.router("middle"), builder.host("to"));
        builder.link(from, middle, self.links[0].spec(), self.links[1].spec());
        builder.link(middle, to, self.links[2].spec(), self.links[3].spec());
        for (nth, (row, mode, coverage, rate, v6)) in self.flows.iter().enumerate() {
            let ip_header = if *v6 { 40 } else { 20 };
            let row = &datagram::TABLE[*row];
            let mut config = config(row, modes(row).1[*mode]);
            if let datagram::Config::Dccp(config) = &mut config {
                (config.coverage, config.ip_header) = (*coverage, ip_header);
            }
            let supply = rate.map_or(Supply::Saturated, |rate| Supply::Rate(BitRate::from_bps(rate)));
            let stop = Instant::ZERO + Duration::from_secs(12);
            builder.datagrams(DatagramFlow { supply, stop, ..flow(format!("flow{nth}"), [from, to], &config) });
        }
        run(builder, Duration::from_secs(20))
    }
}

proptest! {
    #![proptest_config(Cases { cases: 60, failure_persistence: None, ..Cases::default() })]

    #[test]
    fn nothing_is_lost_count_of(world in world()) {
        let records = world.run();
        prop_assert!(records.packets.balanced(), "{:?}", records.packets);
        prop_assert_eq!(records.packets.dropped.total() as usize, records.drops.len());
        // A damaged header that passes for sound may name another packet, or another flow's port.
        let deceived = records.packets.damaged_unnoticed > 0;
        for flow in &records.flows {
            prop_assert!(flow.forward.balanced() && flow.reverse.balanced(), "{:?}", flow);
            let sent = flow.sender.map_or(0, |stats| stats.data_octets_sent);
            prop_assert!(flow.octets_delivered <= sent || deceived, "{:?}", flow);
            // Data beyond the coverage has its Data Checksum: CRC-32c misses next to nothing.
            prop_assert!(flow.octets_corrupted == 0 || deceived, "{:?}", flow);
        }
        for loss in &records.losses {
            // What a sender takes for damage was damage to the data, and to nothing else.
            if loss.record.trigger == Trigger::Report && loss.record.verdict.cause == differentiation::Cause::Corruption {
                prop_assert!(deceived || matches!(loss.truth, Truth::Lost(Cause::PayloadDamaged)), "{:?}", loss);
            }
        }
        prop_assert_eq!(records, world.run(), "the same world again");
    }
}
