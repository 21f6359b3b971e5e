//! Random networks in the simulator: packets are conserved, octets arrive unchanged, runs repeat, observers change nothing.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config as Cases;
use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, CbrFlow, ChannelSpec, Effect, End, Errors, FlowRecord, Limits, LinkSpec, LogSpec, Middlebox, MiddleboxKind,
    Progress, QueueLimit, Records, Rhythm, RunOutcome, Settled, Step, TcpFlow,
};
use whyloss_transport::scheme::{Selection, SCHEMES};
use whyloss_transport::{differentiation, tcp, BitRate, Config, Duration, Instant};

/// A dumbbell: senders and receivers on either side of two routers.
#[derive(Clone, Debug)]
struct Dumbbell {
    seed: u64,
    bottleneck: (LinkPlan, LinkPlan),
    access: Vec<LinkPlan>,
    flows: Vec<FlowPlan>,
    datagrams_kbps: Option<u64>,
    overhead_us: u64,
    /// Agents at the router `right`, for the bottleneck or for the link to the first receiver, and when they forget everything.
    agents: Vec<(MiddleboxKind, bool, Option<u64>)>,
    /// Whether agents have room for next to nothing.
    tight: bool,
}

#[derive(Clone, Debug)]
struct LinkPlan {
    kbps: u64,
    delay_us: u64,
    queue: QueueLimit,
    errors: Errors,
    damages: bool,
}

#[derive(Clone, Debug)]
struct FlowPlan {
    profile: &'static str,
    scheme: &'static str,
    octets: u64,
    start_ms: u64,
}

/// Bounds of what agents remember.
const TIGHT: [(&str, f64); 5] = [("flows", 2.0), ("segments", 5.0), ("pieces", 5.0), ("octets", 16_384.0), ("buffer", 4096.0)];

/// Whether the run has an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    No,
    Yes,
    /// And its records are taken as soon as they are settled.
    Taken,
}

impl LinkPlan {
    fn spec(&self) -> LinkSpec {
        let effect = if self.damages { Effect::Damage } else { Effect::Erase };
        LinkSpec {
            rate: BitRate::from_bps(self.kbps * 1000),
            delay: Duration::from_micros(self.delay_us),
            queue: self.queue,
            channel: ChannelSpec { errors: self.errors.clone(), effect },
            ..LinkSpec::default()
        }
    }
}

impl Dumbbell {
    fn run(&self, watched: Watched) -> Records {
        let mut builder = Builder::new(self.seed, 0);
        let (left, right) = (builder.router("left"), builder.router("right"));
        let bottleneck = builder.link(left, right, self.bottleneck.0.spec(), self.bottleneck.1.spec());
        let shadows: Vec<String> = match watched {
            Watched::No => Vec::new(),
            Watched::Yes | Watched::Taken => {
                let at_receiver = differentiation::AT_RECEIVER.iter().map(|part| part.name);
                differentiation::TABLE.iter().map(|part| part.name).chain(at_receiver).map(str::to_owned).collect()
            }
        };
        let (mut ends, mut first_receiver) = (None, None);
        for (nth, plan) in self.flows.iter().enumerate() {
            let access = self.access[nth % self.access.len()].spec();
            let (from, to) = (builder.host(format!("from{nth}")), builder.host(format!("to{nth}")));
            builder.link(from, left, access.clone(), access.clone());
            let last = builder.link(right, to, access.clone(), access);
            first_receiver.get_or_insert(last);
            let end = || {
                let mut config =
                    Config { max_retransmissions: None, ..Config::profile(plan.profile).expect("it is in the table") };
                let selection = Selection { shadows: shadows.clone(), ..Selection::scheme(plan.scheme) };
                let parts = selection.build(&mut config).expect("it is in the table");
                End::new(config, parts)
            };
            builder.tcp(TcpFlow {
                name: format!("flow{nth}"),
                from,
                to,
                start: Instant::ZERO + Duration::from_millis(plan.start_ms),
                amount: Amount::Octets(plan.octets),
                sender: end(),
                receiver: end(),
            });
            ends.get_or_insert((from, to));
        }
        if let (Some((from, to)), Some(kbps)) = (ends, self.datagrams_kbps) {
            builder.cbr(CbrFlow {
                name: "datagrams".to_owned(),
                from,
                to,
                start: Instant::ZERO,
                stop: Instant::ZERO + Duration::from_secs(5),
                rate: BitRate::from_bps(kbps * 1000),
                octets: 500,
                rhythm: Rhythm::default(),
            });
        }
        for &(agent, last_hop, restart_ms) in &self.agents {
            let link = first_receiver.filter(|_| last_hop).unwrap_or(bottleneck);
            // Who acknowledges what it still holds loses it with its memory.
            let restart_ms = restart_ms.filter(|_| agent.name() != "i-tcp");
            let restart = restart_ms.map(|ms| Instant::ZERO + Duration::from_millis(ms)).into_iter().collect();
            let bounds =
                TIGHT.iter().filter(|(name, _)| self.tight && agent.part().parameters.iter().any(|own| own.name == *name));
            let parameters = bounds.map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
            builder.middlebox(Middlebox { restart, parameters, ..Middlebox::new(right, link, agent) });
        }
        builder.send_overhead(Duration::from_micros(self.overhead_us));
        if watched != Watched::No {
            builder.sample_every(Duration::from_millis(50));
            builder.log_packets(LogSpec { from: Instant::ZERO, until: Instant::MAX, at_most: 20_000 });
        }
        let mut simulation = builder.build().expect("the network fits together");
        // `run` itself fails if a packet is missing anywhere.
        // Timers that have backed off to two minutes need long to lead a chain that steps by packets out of its bad state.
        let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(48 * 3600)) };
        let mut parts: Vec<Settled> = Vec::new();
        let take = |progress: &mut Progress<'_>| {
            if watched == Watched::Taken {
                parts.push(progress.take_settled());
            }
            ControlFlow::Continue(())
        };
        let outcome = simulation.run(&limits, take).expect("it runs");
        let records = whole(parts, simulation.into_records());
        assert!(outcome == RunOutcome::Completed || records.flows.iter().any(deceived), "after two days: {:?}", records.flows);
        records
    }
}

/// The records of a run, with those that were taken before.
fn whole(parts: Vec<Settled>, mut records: Records) -> Records {
    let rest = records.take_settled();
    for part in parts.into_iter().chain([rest]) {
        records.losses.extend(part.losses);
        records.timeouts.extend(part.timeouts);
        records.drops.extend(part.drops);
        records.log.extend(part.log);
        records.flow_samples.extend(part.flow_samples);
        records.link_samples.extend(part.link_samples);
    }
    records
}

/// Whether damage slipped through the checksums. It may wreck a connection for good: a timestamp that jumps ahead makes PAWS refuse
/// all that follows.
fn deceived(flow: &FlowRecord) -> bool {
    flow.forward.damaged_unnoticed + flow.reverse.damaged_unnoticed > 0
}

/// What stays of the records when everything that only an observer sees is taken out.
fn unobserved(mut records: Records) -> Records {
    records.flow_samples.clear();
    records.link_samples.clear();
    records.log.clear();
    records.log_left_out = 0;
    records.events = 0;
    for flow in &mut records.flows {
        flow.shadows.clear();
    }
    for loss in &mut records.losses {
        loss.record.shadows.clear();
    }
    records
}

fn link(fastest: u64) -> impl Strategy<Value = LinkPlan> {
    let chance = |most: f64| 0.0..most;
    let errors = prop_oneof![
        3 => Just(Errors::None),
        1 => chance(1e-5).prop_map(|ber| Errors::Bits { ber }),
        1 => chance(0.03).prop_map(|probability| Errors::Packets { probability }),
        1 => (0.95..0.999f64, 0.0..0.7f64).prop_map(|(stay_good, stay_bad)| Errors::Gilbert { stay_good, stay_bad, hits: Errors::IN_BAD, step: Step::Packet }),
    ];
    let queue = prop_oneof![
        1 => Just(QueueLimit::Unlimited),
        3 => (2u32..60).prop_map(QueueLimit::Packets),
        1 => (5_000u64..100_000).prop_map(QueueLimit::Octets),
    ];
    (200..fastest, 0u64..80_000, queue, errors, any::<bool>()).prop_map(|(kbps, delay_us, queue, errors, damages)| LinkPlan {
        kbps,
        delay_us,
        queue,
        errors,
        damages,
    })
}

fn dumbbell() -> impl Strategy<Value = Dumbbell> {
    let flow = (
        select(tcp::PROFILES.iter().map(|(name, _)| *name).collect::<Vec<_>>()),
        select(SCHEMES.iter().map(|scheme| scheme.name).collect::<Vec<_>>()),
        1u64..150_000,
        0u64..2000,
    )
        .prop_map(|(profile, scheme, octets, start_ms)| FlowPlan { profile, scheme, octets, start_ms });
    let flows = proptest::collection::vec(flow, 1..5);
    let access = proptest::collection::vec(link(50_000), 1..4);
    let agents = proptest::collection::vec(
        (select(MiddleboxKind::all().collect::<Vec<_>>()), any::<bool>(), proptest::option::weighted(0.3, 0u64..5000)),
        0..3,
    );
    (
        any::<u64>(),
        (link(5_000), link(5_000)),
        access,
        flows,
        proptest::option::of(50u64..300),
        select(vec![0u64, 500]),
        (agents, any::<bool>()),
    )
        .prop_map(|(seed, bottleneck, access, flows, datagrams_kbps, overhead_us, (agents, tight))| Dumbbell {
            seed,
            bottleneck,
            access,
            flows,
            datagrams_kbps,
            overhead_us,
            agents,
            tight,
        })
}

proptest! {
    #![proptest_config(Cases { cases: 400, failure_persistence: None, ..Cases::default() })]

    #[test]
    fn nothing_is_lost_count_of_and_nobody_disturbs(world in dumbbell()) {
        let records = world.run(Watched::No);
        prop_assert!(records.packets.balanced(), "{:?}", records.packets);
        prop_assert_eq!(records.packets.dropped.total() as usize, records.drops.len());
        for middlebox in records.middleboxes.iter().filter(|_| world.tight) {
            // Two flows, each with five segments or pieces a direction, or with four buffers.
            let peak = middlebox.peak;
            prop_assert!(peak.flows <= 2 && peak.segments <= 20 && peak.octets <= 60_000, "{:?}", middlebox);
        }
        for (flow, plan) in records.flows.iter().zip(&world.flows) {
            // In a channel that is bad for long a connection may rightly give up.
            let gave_up = flow.closing == Some(tcp::Closing::TimedOut);
            // A split connection whose opening takes very long makes room for another if the station has none left.
            let made_room = world.tight && flow.octets_delivered == 0 && flow.closing == Some(tcp::Closing::Reset);
            prop_assert!(flow.octets_delivered == plan.octets || gave_up || made_room || deceived(flow), "{:?}", flow);
            // Only damage that no checksum notices can change an octet, and the books know of it.
            prop_assert!(flow.octets_corrupted == 0 || flow.forward.damaged_unnoticed > 0, "{:?}", flow);
            prop_assert!(flow.forward.balanced() && flow.reverse.balanced(), "{:?}", flow);
        }
        prop_assert_eq!(&records, &world.run(Watched::No), "the same world again");
        let observed = world.run(Watched::Yes);
        prop_assert_eq!(&observed, &world.run(Watched::Taken), "with records that are taken while it runs");
        prop_assert_eq!(unobserved(records), unobserved(observed), "with observers");
    }
}
