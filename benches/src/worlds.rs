//! The worlds that are measured.

use crate::clock;
use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, QueueLimit, Records, Simulation, TcpFlow,
};
use whyloss_transport::scheme::Selection;
use whyloss_transport::{BitRate, Config, Duration, Instant};

/// A dumbbell of bulk flows: every packet crosses three links, every acknowledgement three links back.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    pub name: &'static str,
    pub what: &'static str,
    pub scheme: &'static str,
    pub config: fn() -> Config,
    pub flows: u32,
    pub mbps: u64,
    pub bottleneck_ms: u64,
    pub access_ms: u64,
    pub queue: u32,
    pub loss: f64,
    pub seconds: u64,
}

/// Congestion and corruption at once, few flows.
pub const W1: Dumbbell = Dumbbell {
    name: "W1",
    what: "10 Mbps dumbbell, 10 SACK flows, 1 % packet errors each way on the sink links, 300 s",
    scheme: "sack",
    config: Config::ns2,
    flows: 10,
    mbps: 10,
    bottleneck_ms: 25,
    access_ms: 5,
    queue: 50,
    loss: 0.01,
    seconds: 300,
};

/// Many flows at a high rate.
pub const W2: Dumbbell = Dumbbell {
    name: "W2",
    what: "1 Gbps dumbbell, 10 ms round trip, 100 NewReno flows, queue of 1000 packets, 30 s",
    scheme: "newreno",
    config: Config::ns2,
    flows: 100,
    mbps: 1000,
    bottleneck_ms: 3,
    access_ms: 1,
    queue: 1000,
    loss: 0.0,
    seconds: 30,
};

/// One flow that fills a long path on which one packet in twenty is lost: 100 Mbit/s over 200 ms hold some 1,700 packets.
pub const fn long(mbps: u64) -> Dumbbell {
    Dumbbell {
        name: "long",
        what: "one flow of `auto` over 200 ms, 5 % packet errors each way, 20 s",
        scheme: "auto",
        config: Config::linux,
        flows: 1,
        mbps,
        bottleneck_ms: 96,
        access_ms: 2,
        queue: 10_000,
        loss: 0.05,
        seconds: 20,
    }
}

/// Lets worlds pass that are none of the measured ones, with few flows and many, with losses of each kind or both.
pub fn train() {
    let world = |scheme, flows, mbps, bottleneck_ms, queue, loss, seconds| {
        Dumbbell { scheme, flows, mbps, bottleneck_ms, queue, loss, seconds, ..W2 }.run(seconds, &[])
    };
    world("reno", 8, 20, 20, 60, 0.005, 200);
    world("sack", 30, 200, 8, 300, 0.0, 30);
    world("sack", 5, 5, 40, 40, 0.02, 500);
    world("newreno", 50, 500, 5, 500, 0.0, 15);
    world("cubic", 20, 100, 15, 200, 0.001, 40);
    world("newreno", 3_000, 1_000, 5, 2_000, 0.0, 3);
}

/// What one run of a world took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// Packets that left the bottleneck in the direction of the data.
    pub packets: u64,
    /// Number of events.
    pub events: u64,
    /// Processor time in seconds, without the set-up.
    pub cpu_s: f64,
}

impl Dumbbell {
    /// Builds the world, with these differentiators in shadow on every flow.
    pub fn build(&self, shadows: &[String]) -> Simulation {
        let rate = BitRate::from_bps(self.mbps * 1_000_000);
        let link = |delay_ms, loss| LinkSpec {
            rate,
            delay: Duration::from_millis(delay_ms),
            queue: QueueLimit::Packets(self.queue),
            channel: ChannelSpec {
                errors: if loss > 0.0 { Errors::Packets { probability: loss } } else { Errors::None },
                effect: Effect::Erase,
            },
            ..LinkSpec::default()
        };
        let mut net = Builder::new(1, 0);
        let (left, right) = (net.router("left"), net.router("right"));
        net.link(left, right, link(self.bottleneck_ms, 0.0), link(self.bottleneck_ms, 0.0));
        for i in 0..self.flows {
            let (from, to) = (net.host(format!("s{i}")), net.host(format!("d{i}")));
            net.link(from, left, link(self.access_ms, 0.0), link(self.access_ms, 0.0));
            net.link(right, to, link(self.access_ms, self.loss), link(self.access_ms, self.loss));
            let end = |shadows: &[String]| {
                // Eight times what the path holds at least.
                let receive_buffer = (self.mbps * (self.bottleneck_ms + 2 * self.access_ms) * 2_000).max(10_000_000);
                let mut config = Config { receive_buffer, send_buffer: receive_buffer, auto_read: true, ..(self.config)() };
                let selection = Selection { shadows: shadows.to_vec(), ..Selection::scheme(self.scheme) };
                let parts = selection.build(&mut config).expect("the scheme exists");
                End::new(config, parts)
            };
            net.tcp(TcpFlow {
                name: format!("f{i}"),
                from,
                to,
                // Multiples of the golden ratio spread over the first second and keep in step with nothing.
                start: Instant::ZERO + Duration::from_nanos(u64::from(i) * 618_033_989 % 1_000_000_000),
                amount: Amount::Unlimited,
                sender: end(shadows),
                receiver: end(&[]),
            });
        }
        net.build().expect("the world is sound")
    }

    /// Lets `seconds` of the world pass.
    pub fn run(&self, seconds: u64, shadows: &[String]) -> (Took, Records) {
        let mut world = self.build(shadows);
        let before = clock::own();
        let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(seconds)) };
        world.run(&limits, |_| ControlFlow::Continue(())).expect("the run ends");
        let cpu_s = clock::own() - before;
        let records = world.into_records();
        (Took { packets: records.links[0].delivered, events: records.events, cpu_s }, records)
    }
}
