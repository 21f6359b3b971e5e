//! A chain of radio stations with one bulk flow from end to end: the world W3, and the table that stands beside ns-3's.

use crate::clock;
use crate::peers::{self, Ns3Chain, Ns3Radio};
use std::ops::ControlFlow;
use whyloss_sim::{Amount, Builder, End, Limits, Locking, RadioSpec, Records, Simulation, TcpFlow};
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::AckPolicy;
use whyloss_transport::{Config, Duration, Instant};

/// A chain of stations to simulate.
#[derive(Clone, Debug)]
pub struct Chain {
    pub name: &'static str,
    pub what: &'static str,
    pub hops: u32,
    pub rts: bool,
    /// Send and receive buffer in octets.
    pub window: u64,
    pub radio: RadioSpec,
    pub seconds: u64,
}

/// Seconds before goodput counts.
const WARM_UP: u64 = 35;

/// What one run took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Packets that arrived at the far end.
    pub packets: u64,
    pub events: u64,
    /// Processor time in seconds, without the set-up.
    pub cpu_s: f64,
    /// Octets in order at the receiver after the warm-up, in kbit/s.
    pub goodput_kbps: f64,
}

impl Chain {
    /// W3: every packet competes with those before and behind it, and with the acknowledgements.
    pub fn w3() -> Self {
        Self {
            name: "W3",
            what: "chain of 5 hops of 802.11b at 2 Mbps, RTS/CTS, one NewReno flow, 200 s",
            hops: 5,
            rts: true,
            window: 65_535,
            radio: RadioSpec::default(),
            seconds: 200,
        }
    }

    /// Builds the world of run `run`.
    pub fn build(&self, run: u64) -> Simulation {
        let mut net = Builder::new(1, run);
        let last = self.hops;
        let stations: Vec<_> = (0..=last)
            .map(|i| {
                let name = format!("n{i}");
                let node = if i == 0 || i == last { net.host(name) } else { net.router(name) };
                (node, [200.0 * f64::from(i), 0.0])
            })
            .collect();
        let (from, to) = (stations[0].0, stations[last as usize].0);
        net.radio(RadioSpec { rts: self.rts.then_some(1), ..self.radio.clone() }, &stations);
        // ns-3's TCP: 1024 octets of data beside 12 of timestamps, SACK, every segment acknowledged, RTO from 1 s.
        let end = || {
            let mut config = Config {
                mss: 1036,
                receive_buffer: self.window,
                send_buffer: self.window,
                dsack: false,
                rack: false,
                tlp: false,
                undo: false,
                nagle: false,
                ack_policy: AckPolicy::Immediate,
                min_rto: Duration::from_secs(1),
                ..Config::modern()
            };
            let parts = Selection::scheme("newreno").build(&mut config).expect("the scheme exists");
            End::new(config, parts)
        };
        net.tcp(TcpFlow {
            name: "bulk".to_owned(),
            from,
            to,
            start: Instant::ZERO + Duration::from_secs(1),
            amount: Amount::Unlimited,
            sender: end(),
            receiver: end(),
        });
        net.sample_every(Duration::from_secs(WARM_UP));
        net.build().expect("the world is sound")
    }

    /// Lets `seconds` of the world pass.
    pub fn run(&self, run: u64, seconds: u64) -> (Took, Records) {
        let mut world = self.build(run);
        let before = clock::own();
        let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(seconds)) };
        world.run(&limits, |_| ControlFlow::Continue(())).expect("the run ends");
        let cpu_s = clock::own() - before;
        let records = world.into_records();
        let warm = records.flow_samples.get(1).map_or(0, |sample| sample.octets_delivered);
        let flow = &records.flows[0];
        let goodput_kbps = (flow.octets_delivered - warm) as f64 * 8e-3 / seconds.saturating_sub(WARM_UP) as f64;
        (Took { packets: flow.forward.delivered, events: records.events, cpu_s, goodput_kbps }, records)
    }
}

/// A radio that hears and suffers nothing that it cannot decode, as an ns-3 station whose sensitivity is set to its reception
/// range; and that notices a signal at once.
fn deaf() -> RadioSpec {
    let base = RadioSpec::default();
    RadioSpec {
        sense_w: base.receive_w,
        floor_w: base.receive_w,
        locking: Locking::Decodable,
        cca: Duration::ZERO,
        short_retries: Some(7),
        long_retries: Some(7),
        ..base
    }
}

/// Prints mean goodput in kbit/s by hops, beside ns-3's where it is installed.
pub fn table(runs: u64) {
    let radios = [
        ("sensed", RadioSpec::default()),
        ("decodable", RadioSpec { locking: Locking::Decodable, ..RadioSpec::default() }),
        ("250 m", deaf()),
        ("250 m, 0 dB", RadioSpec { capture: 0.9, ..deaf() }),
    ];
    println!("window,rts,radio,hops,goodput_kbps,deviation,given_up,collided,cpu_s");
    for window in [65_535, 4096] {
        for rts in [false, true] {
            for (name, radio) in &radios {
                for hops in 1..=5 {
                    let chain = Chain { hops, rts, window, radio: radio.clone(), ..Chain::w3() };
                    let results: Vec<_> = (0..runs).map(|run| chain.run(run, chain.seconds)).collect();
                    let goodputs: Vec<_> = results.iter().map(|(took, _)| took.goodput_kbps).collect();
                    let mean_of = |f: &dyn Fn(&(Took, Records)) -> f64| results.iter().map(f).sum::<f64>() / runs as f64;
                    let given_up = mean_of(&|(_, r)| r.packets.dropped.get(whyloss_sim::Cause::Collision) as f64);
                    let collided =
                        mean_of(&|(_, r)| r.links.iter().filter_map(|link| link.air).map(|air| air.collided as f64).sum());
                    let (mean, deviation) = moments(&goodputs);
                    let cpu = mean_of(&|(took, _)| took.cpu_s);
                    println!("{window},{rts},{name},{hops},{mean:.1},{deviation:.1},{given_up:.1},{collided:.0},{cpu:.3}");
                }
            }
            for (name, threshold, sense) in
                [("ns-3, 250 m", false, false), ("ns-3, 250 m, 10 dB", true, false), ("ns-3, 550 m, 10 dB", true, true)]
            {
                for hops in 1..=5 {
                    let chain = Chain { hops, rts, window, ..Chain::w3() };
                    let radio = Ns3Radio { threshold, sense };
                    let results: Option<Vec<_>> =
                        (0..runs).map(|run| peers::ns3_chain(&chain, radio, chain.seconds, run)).collect();
                    let Some(results) = results else { break };
                    let (mean, deviation) = moments(&results.iter().map(|ns3: &Ns3Chain| ns3.goodput_kbps).collect::<Vec<_>>());
                    let cpu = results.iter().map(|ns3| ns3.cpu_s).sum::<f64>() / runs as f64;
                    println!("{window},{rts},{name},{hops},{mean:.1},{deviation:.1},,,{cpu:.3}");
                }
            }
        }
    }
}

/// Mean and standard deviation.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}
