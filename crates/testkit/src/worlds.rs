//! Random worlds: two hosts with any configuration and any algorithms on any path, and what has to hold in every one of them.
//!
//! The [`Ring`] watches the octets and the conduct of every segment; a world adds what must hold at its end.

use crate::ring::{Closes, End, Failure, Fault, Link, Reads, Ring, Setup, Side, Strip};
use crate::settings::Settings;
use whyloss_transport::scheme::Selection;
use whyloss_transport::segment::Integrity;
use whyloss_transport::tcp::Closing;
use whyloss_transport::{BitRate, Duration, Instant};

/// Two hosts and the path between them, drawn at random.
#[derive(Clone, Debug)]
pub struct World {
    /// The seed of its chances.
    pub seed: u64,
    /// Both hosts: the client, the server.
    pub hosts: [HostPlan; 2],
    /// Both directions of the path: from the client, from the server.
    pub paths: [PathPlan; 2],
    /// Options that a middlebox removes in both directions.
    pub stripped: Strip,
    /// Differentiators that listen in shadow on both hosts.
    pub shadows: Vec<String>,
}

/// What one host does.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// `key=value` words, as [`Settings`] takes them; the profile first.
    pub settings: Vec<(String, String)>,
    /// Octets that it sends.
    pub sends: u64,
    /// Octets that it writes at a time.
    pub write_size: usize,
    /// Pause between two writes in milliseconds.
    pub write_pause_ms: u64,
    /// Whether its data is synthetic.
    pub produces: bool,
    /// Whether it waits for the peer's FIN before it closes.
    pub closes_after_peer: bool,
    /// When its application reads.
    pub reads: ReadPlan,
}

/// When a host reads.
#[derive(Clone, Copy, Debug)]
pub enum ReadPlan {
    /// As soon as there is something to read.
    AtOnce,
    /// Nothing before this many milliseconds.
    FromMs(u64),
    /// So many octets every so many milliseconds.
    Paced(usize, u64),
}

/// A direction of the path.
#[derive(Clone, Copy, Debug)]
pub struct PathPlan {
    /// Propagation delay in microseconds.
    pub delay_us: u64,
    /// Rate in kbit/s and queue in segments.
    pub bottleneck: Option<(u64, usize)>,
    /// Probability that a segment is lost.
    pub loss: f64,
    /// Probability of being late, and by how many microseconds.
    pub late: (f64, u64),
    /// Probability of being duplicated, and the copy's delay in microseconds.
    pub duplicate: (f64, u64),
    /// Probability of damage that leaves the header readable.
    pub payload_damage: f64,
    /// Probability of damage that does not.
    pub header_damage: f64,
    /// Probability of a CE mark; a drop for what is not ECN-capable.
    pub mark: f64,
    /// Probability that somebody forges reports in it.
    pub forged: f64,
    /// An outage: its start and its length in milliseconds.
    pub outage_ms: Option<(u64, u64)>,
}

/// What a world came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// A digest of all events.
    pub digest: u64,
    /// Time of the last event.
    pub ended: Instant,
    /// The longest time in which nothing moved.
    pub longest_pause: Duration,
}

/// With at most a fifth of the round trips failing, a dozen timeouts in a row happen once in 10^8 worlds.
const TIMEOUTS_IN_A_ROW: u64 = 12;

/// A world that ends does so in far fewer arrivals and timer calls.
const STEPS: u64 = 2_000_000;

impl World {
    /// Lets the world run to its end and checks what must hold there. The error says what does not, with a trace.
    pub fn run(&self) -> Result<Summary, String> {
        let mut setups = Vec::new();
        let mut longest_timeout = Duration::ZERO;
        for (plan, connects) in self.hosts.iter().zip([true, false]) {
            let setup = self.setup(plan, connects)?;
            longest_timeout = longest_timeout.max(setup.config.max_rto);
            setups.push(setup);
        }
        let server = setups.pop().expect("there are two");
        let client = setups.pop().expect("there are two");
        let [forward, backward] = self.paths.map(|path| path.link(self.stripped));
        let mut ring = Ring::new(self.seed, client, server, forward, backward).map_err(|error| error.to_string())?;
        ring.forbid_stalls(longest_timeout * TIMEOUTS_IN_A_ROW);
        ring.limit_steps(STEPS);
        let end = ring.run().map_err(|failure: Failure| failure.to_string())?;
        check(&ring, end).map_err(|what| format!("{what}\n{}", ring.trace()))?;
        Ok(Summary { digest: ring.digest(), ended: ring.now(), longest_pause: ring.longest_pause() })
    }

    fn setup(&self, plan: &HostPlan, connects: bool) -> Result<Setup, String> {
        let mut settings = Settings::profile("modern").map_err(|error| error.to_string())?;
        for (key, value) in &plan.settings {
            settings.set(key, value).map_err(|error| error.to_string())?;
        }
        let selection = Selection { shadows: self.shadows.clone(), ..settings.selection };
        Ok(Setup {
            config: settings.config,
            selection,
            connects,
            sends: plan.sends,
            write_size: plan.write_size,
            write_pause: Duration::from_millis(plan.write_pause_ms),
            produces: plan.produces,
            closes: if plan.closes_after_peer { Closes::AfterPeer } else { Closes::AfterWriting },
            reads: match plan.reads {
                ReadPlan::AtOnce => Reads::AtOnce,
                ReadPlan::FromMs(at) => Reads::From(Instant::ZERO + Duration::from_millis(at)),
                ReadPlan::Paced(octets, period) => Reads::Paced(octets, Duration::from_millis(period)),
            },
        })
    }
}

/// What must hold at the end of every world.
fn check(ring: &Ring, end: End) -> Result<(), String> {
    if end != End::Quiet {
        return Err(format!("the world does not come to rest: {end:?}"));
    }
    for side in [Side::Client, Side::Server] {
        let (host, peer) = (ring.host(side), ring.host(side.peer()));
        match host.told.closed {
            Some((_, Closing::Normal)) => {}
            other => return Err(format!("{side:?} ends as {other:?} in {:?}", host.endpoint.state())),
        }
        if host.received() != peer.written() {
            return Err(format!("{side:?} read {} of the {} octets that its peer wrote", host.received(), peer.written()));
        }
        if host.endpoint.stats().octets_delivered != host.received() {
            return Err(format!(
                "{side:?} counts {} octets, but read {}",
                host.endpoint.stats().octets_delivered,
                host.received()
            ));
        }
        let count = ring.link(side).count();
        if count.entered + count.copies != count.delivered + count.dropped + count.overflowed || ring.in_flight() != 0 {
            return Err(format!("the link from {side:?} lost count: {count:?}, {} on the way", ring.in_flight()));
        }
    }
    Ok(())
}

impl PathPlan {
    fn link(self, stripped: Strip) -> Link {
        let micros = Duration::from_micros;
        let mut link = Link::new(micros(self.delay_us))
            .fault_randomly(Fault::Drop, self.loss)
            .fault_randomly(Fault::Delay(micros(self.late.1)), self.late.0)
            .fault_randomly(Fault::Duplicate(micros(self.duplicate.1)), self.duplicate.0)
            .fault_data_randomly(Fault::Damage(Integrity::PayloadDamaged), self.payload_damage)
            .fault_randomly(Fault::Damage(Integrity::HeaderSuspect), self.header_damage)
            .fault_data_randomly(Fault::Mark, self.mark)
            .fault_randomly(Fault::Forge, self.forged)
            .fault(Fault::Strip(stripped), move |_| stripped != Strip::default());
        if let Some((rate, queue)) = self.bottleneck {
            link = link.bottleneck(BitRate::from_bps(rate * 1000), queue);
        }
        if let Some((start, length)) = self.outage_ms {
            let from = Instant::ZERO + Duration::from_millis(start);
            link = link.down(from, from + Duration::from_millis(length));
        }
        link
    }
}
