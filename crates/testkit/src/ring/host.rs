//! A host of the ring: an endpoint with a scripted application.

use super::conduct::Conduct;
use super::stream::Stream;
use crate::settings::SettingError;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::{Closing, LossRecord, TimeoutRecord};
use whyloss_transport::timeout::TimeoutOutcome;
use whyloss_transport::{Config, Duration, Endpoint, Instant, Ports};

/// What a host is and what its application does.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Configuration of the endpoint, before the scheme's adjustments.
    pub config: Config,
    /// Names of the algorithms.
    pub selection: Selection,
    /// Whether it connects; otherwise it listens.
    pub connects: bool,
    /// Octets of random data that it sends.
    pub sends: u64,
    /// Octets that it writes at a time.
    pub write_size: usize,
    /// Pause between two writes; zero writes as fast as there is room.
    pub write_pause: Duration,
    /// Whether the data comes from [`Command::Produce`](whyloss_transport::Command::Produce) instead of writes.
    pub produces: bool,
    /// When the application closes.
    pub closes: Closes,
    /// When the application reads.
    pub reads: Reads,
}

/// When an application closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closes {
    /// When all its data is written.
    AfterWriting,
    /// When all its data is written and the peer has closed.
    AfterPeer,
    /// The application never closes.
    Never,
}

/// When an application reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// As soon as there is something to read.
    AtOnce,
    /// Nothing before this time, then at once.
    From(Instant),
    /// This many octets once a period.
    Paced(usize, Duration),
}

impl Setup {
    /// A host that connects, sends `octets` and closes.
    pub fn sender(config: Config, octets: u64) -> Self {
        Self {
            config,
            selection: Selection::default(),
            connects: true,
            sends: octets,
            write_size: usize::MAX,
            write_pause: Duration::ZERO,
            produces: false,
            closes: Closes::AfterWriting,
            reads: Reads::AtOnce,
        }
    }

    /// A host that listens, reads, and closes after its peer.
    pub fn receiver(config: Config) -> Self {
        Self { connects: false, closes: Closes::AfterPeer, ..Self::sender(config, 0) }
    }

    /// The same host with other algorithms.
    pub fn with(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }
}

/// What an endpoint has told so far.
#[derive(Debug, Default)]
pub struct Told {
    /// When it said that it was connected.
    pub connected: Option<Instant>,
    /// When the peer's FIN was in order.
    pub peer_closed: Option<Instant>,
    /// When everything sent was acknowledged.
    pub send_finished: Option<Instant>,
    /// When and how the connection ended.
    pub closed: Option<(Instant, Closing)>,
    /// Every segment taken for lost.
    pub losses: Vec<LossRecord>,
    /// Every retransmission timeout.
    pub timeouts: Vec<TimeoutRecord>,
    /// What became of them: one entry a repair.
    pub outcomes: Vec<TimeoutOutcome>,
    /// When reductions were undone.
    pub undone: Vec<Instant>,
}

/// A host of the ring.
#[derive(Debug)]
pub struct Host {
    /// The engine's endpoint under test.
    pub endpoint: Endpoint,
    /// What the endpoint has told.
    pub told: Told,
    pub(super) setup: Setup,
    pub(super) stream: Stream,
    pub(super) written: u64,
    pub(super) next_write: Instant,
    pub(super) next_read: Instant,
    pub(super) closed: bool,
    pub(super) received: u64,
    pub(super) budget: usize,
    pub(super) conduct: Conduct,
}

impl Host {
    pub(super) fn new(setup: Setup, ports: Ports, seed: u64) -> Result<Self, SettingError> {
        let mut config = setup.config.clone();
        let parts = setup.selection.build(&mut config)?;
        config.check()?;
        let stream = if setup.produces { Stream::synthetic(setup.sends) } else { Stream::random(setup.sends, seed) };
        Ok(Self {
            endpoint: Endpoint::new(config, parts, ports),
            told: Told::default(),
            stream,
            written: 0,
            next_write: Instant::ZERO,
            next_read: Instant::ZERO,
            closed: false,
            received: 0,
            budget: 0,
            conduct: Conduct::default(),
            setup,
        })
    }

    /// Octets read so far, each checked against what the peer wrote.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Octets that the endpoint has taken from the application so far.
    pub const fn written(&self) -> u64 {
        self.written
    }
}
