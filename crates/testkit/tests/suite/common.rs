//! Bulk flows over one link in the simulator.

use std::ops::ControlFlow;
use whyloss_sim::{Amount, Builder, ChannelSpec, End, Errors, FlowRecord, Limits, LinkSpec, QueueLimit, Records, TcpFlow};
use whyloss_transport::scheme::Selection;
use whyloss_transport::{BitRate, Config, Duration, Instant};

/// Payload and headers of a full segment with timestamps.
pub const SHARE: f64 = 1448.0 / 1500.0;

/// Packets that a path holds.
pub fn product(mbps: u64, rtt_ms: u64) -> f64 {
    (mbps * rtt_ms) as f64 * 1000.0 / 12_000.0
}

/// A flow from one host to another.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// Configuration of both ends.
    pub config: Config,
    /// Names of the sender's algorithms.
    pub selection: Selection,
    /// Rate of the link.
    pub rate: BitRate,
    /// Round-trip time without queue or serialisation.
    pub rtt: Duration,
    /// Packets that wait for the link.
    pub queue: u32,
    /// Probability that a packet of the flow is erased.
    pub loss: f64,
    /// How long it lasts.
    pub lasts: Duration,
}

impl Bulk {
    /// What came of run `run`.
    pub fn run(&self, run: u64) -> FlowRecord {
        self.records(run, |_| ()).flows.remove(0)
    }

    /// All records of run `run` over a link whose forward direction `change` has changed.
    pub fn records(&self, run: u64, change: impl FnOnce(&mut LinkSpec)) -> Records {
        let mut builder = Builder::new(7, run);
        let (from, to) = (builder.host("from"), builder.host("to"));
        let way = |errors| LinkSpec {
            rate: self.rate,
            delay: self.rtt / 2,
            queue: QueueLimit::Packets(self.queue),
            channel: ChannelSpec { errors, ..ChannelSpec::default() },
            ..LinkSpec::default()
        };
        let mut forward = way(Errors::Packets { probability: self.loss });
        change(&mut forward);
        builder.link(from, to, forward, way(Errors::None));
        let end = |selection: &Selection| {
            let mut config = self.config.clone();
            let parts = selection.build(&mut config).expect("the parts exist");
            End::new(config, parts)
        };
        builder.tcp(TcpFlow {
            name: "bulk".to_owned(),
            from,
            to,
            start: Instant::ZERO,
            amount: Amount::Unlimited,
            sender: end(&self.selection),
            receiver: end(&self.selection),
        });
        let mut simulation = builder.build().expect("the network fits together");
        simulation.run(&Limits { until: Some(Instant::ZERO + self.lasts) }, |_| ControlFlow::Continue(())).expect("it runs");
        simulation.into_records()
    }

    /// All records of flows side by side over the link without errors, one for each scheme, which begin `apart` from each other.
    pub fn side_by_side(&self, seed: u64, schemes: &[&str], apart: Duration) -> Records {
        let named: Vec<_> = schemes.iter().map(|scheme| (*scheme, Selection::scheme(scheme))).collect();
        self.flows_side_by_side(seed, &named, apart, Duration::ZERO, |_| ())
    }

    /// As [`Self::side_by_side`], of flows with these names; each packet leaves up to `overhead` late, by chance, over a link whose forward direction
    /// `change` has changed.
    pub fn flows_side_by_side(
        &self,
        seed: u64,
        flows: &[(&str, Selection)],
        apart: Duration,
        overhead: Duration,
        change: impl FnOnce(&mut LinkSpec),
    ) -> Records {
        let mut builder = Builder::new(seed, 0);
        builder.send_overhead(overhead);
        let (from, to) = (builder.host("from"), builder.host("to"));
        let queue = QueueLimit::Packets(self.queue);
        let way = || LinkSpec { rate: self.rate, delay: self.rtt / 2, queue, ..LinkSpec::default() };
        let mut forward = way();
        change(&mut forward);
        builder.link(from, to, forward, way());
        for (n, (name, selection)) in flows.iter().enumerate() {
            let end = || {
                let mut config = self.config.clone();
                let parts = selection.build(&mut config).expect("the scheme exists");
                End::new(config, parts)
            };
            builder.tcp(TcpFlow {
                name: format!("{name} {n}"),
                from,
                to,
                start: Instant::ZERO + apart * n as u64,
                amount: Amount::Unlimited,
                sender: end(),
                receiver: end(),
            });
        }
        builder.sample_every(Duration::from_millis(10));
        let mut simulation = builder.build().expect("the network fits together");
        simulation.run(&Limits { until: Some(Instant::ZERO + self.lasts) }, |_| ControlFlow::Continue(())).expect("it runs");
        simulation.into_records()
    }

    /// The mean goodput of `runs` runs in bit/s.
    pub fn goodput(&self, runs: u64) -> f64 {
        (0..runs).map(|run| self.run(run).goodput_bps).sum::<f64>() / runs as f64
    }
}
