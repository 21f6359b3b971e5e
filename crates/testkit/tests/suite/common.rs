//! One bulk flow over one link in the simulator.

use std::ops::ControlFlow;
use whyloss_sim::{Amount, Builder, ChannelSpec, End, Errors, FlowRecord, Limits, LinkSpec, QueueLimit, Records, TcpFlow};
use whyloss_transport::scheme::Selection;
use whyloss_transport::{BitRate, Config, Duration, Instant};

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

    /// The mean goodput of `runs` runs in bit/s.
    pub fn goodput(&self, runs: u64) -> f64 {
        (0..runs).map(|run| self.run(run).goodput_bps).sum::<f64>() / runs as f64
    }
}
