//! A link in real time, between two TUN devices.
//!
//! Each direction is a chain of [`Crossing`](whyloss_sim::Crossing)s — the simulator's own queues, transmitters and channels — and a
//! thread that reads packets from one device, asks the chain what becomes of them, and writes those that arrive to the other device when
//! they are due. Bits that a channel flips are flipped in the packet.

mod audit;
mod collect;
mod direction;
mod packet;
mod pcapng;
mod record;
mod session;
mod station;

pub use audit::{Audit, Bar, Bounds, ErrorSummary, HopAudit, MiddleboxAudit, MAX_P99_ERROR, MAX_REFUSED};
pub use collect::{Collector, Sink, SinkError};
pub use packet::Header;
pub use pcapng::PacketCapture;
pub use record::{Chunk, PacketFate, Record, Touch};
pub use session::{CloseError, Session};

use crate::clock::Clock;
use crate::tun::Tun;
use direction::{Direction, Gate, Shared};
use station::Station;
use std::io;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use whyloss_sim::middlebox::Side;
use whyloss_sim::{BuildError, Change, Downtime, Turns};
use whyloss_transport::kit::ArgumentError;

/// One link of a chain, in one direction.
pub use whyloss_sim::{Stretch, WireAgent};

/// The real-time priority that the threads ask for. Those of the kernel that handle interrupts have 50.
pub const FIFO_PRIORITY: u8 = 20;

/// What can be said about an emulator beside its links.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed and the run that random streams follow from.
    pub seed: u64,
    /// Number of the run; streams of two runs differ.
    pub run: u64,
    /// The clock of all times in records and audits.
    pub clock: Clock,
    /// The number of the first direction in records; the second has the next.
    pub first_direction: u16,
    /// What it may get wrong.
    pub bounds: Bounds,
    /// The real-time priority to ask for, 1 to 99; `None` to stay an ordinary thread.
    pub fifo: Option<u8>,
    /// Where the truth about each packet goes, some packets at a time. Packets do not wait for it: where there is no room, records are left
    /// out, and the audit has a flaw that says how many.
    pub records: Option<SyncSender<Chunk>>,
    /// How many octets of each packet go with its record.
    pub snap: u32,
    /// Links can be changed while they are at work, which costs a little time for each packet.
    pub changeable: bool,
}

impl Options {
    /// No records, default bounds, and [`FIFO_PRIORITY`].
    pub fn new(seed: u64, run: u64) -> Self {
        let clock = Clock::start();
        let (bounds, fifo) = (Bounds::default(), Some(FIFO_PRIORITY));
        Self { seed, run, clock, first_direction: 0, bounds, fifo, records: None, snap: 0, changeable: false }
    }
}

/// Why there is no emulator, or no more.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// A link makes no sense.
    #[error(transparent)]
    Link(#[from] BuildError),
    /// A parameter of the agent makes no sense.
    #[error(transparent)]
    Agent(#[from] ArgumentError),
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried, in words.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl EmulateError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::System { what, source }
    }
}

/// A link at work; it stops when dropped.
#[derive(Debug)]
pub struct Emulator {
    directions: Vec<Running>,
    bounds: Bounds,
}

#[derive(Debug)]
struct Running {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Running {
    fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Emulator {
    /// Puts a link between two devices: `chains[0]` is what packets cross from the first to the second, link by link.
    pub fn start(ends: [Tun; 2], chains: [Vec<Stretch>; 2], options: &Options) -> Result<Self, EmulateError> {
        Self::start_assisted(ends, chains, None, options)
    }

    /// As [`start`](Self::start), with an agent at the link.
    pub fn start_assisted(
        ends: [Tun; 2],
        chains: [Vec<Stretch>; 2],
        agent: Option<&WireAgent>,
        options: &Options,
    ) -> Result<Self, EmulateError> {
        let [a, b] = ends.map(Arc::new);
        let link = agent.and_then(|placement| chains[placement.away].get(placement.hop));
        let downtime = link.map(|Stretch { name, spec }| Downtime::new(&spec.outage, options.seed, options.run, name));
        let [there, back] = chains;
        let mut directions = [
            Direction::new(Arc::clone(&a), Arc::clone(&b), there, options, options.first_direction)?,
            Direction::new(b, a, back, options, options.first_direction + 1)?,
        ];
        if let Some(WireAgent { middlebox, away, hop }) = agent {
            let station = Arc::new(Station::new(middlebox, Turns::new(downtime.unwrap_or_default()))?);
            let links = directions[*away].links();
            let peers = directions.each_ref().map(Direction::shared);
            for (way, direction) in directions.iter_mut().enumerate() {
                let peer = Arc::clone(&peers[1 - way]);
                let (side, before) = if way == *away { (Side::Fixed, *hop) } else { (Side::Mobile, links - hop) };
                direction.assist(Gate { station: Arc::clone(&station), side, before, peer });
            }
        }
        let mut emulator = Self { directions: Vec::new(), bounds: options.bounds };
        for (number, direction) in (options.first_direction..).zip(directions) {
            let shared = direction.shared();
            let thread = std::thread::Builder::new()
                .name(format!("link {number}"))
                .spawn(move || direction.run())
                .map_err(EmulateError::system("starting a thread"))?;
            emulator.directions.push(Running { shared, thread: Some(thread) });
        }
        Ok(emulator)
    }

    /// Makes something different from now on: in direction `way`, 0 or 1, at link `hop` of its chain. Packets in transmission go on at
    /// their old rate. What a link refuses stands among the flaws of its audit.
    pub fn change(&self, way: usize, hop: usize, change: Change) {
        if let Some(direction) = self.directions.get(way) {
            direction.shared.change(hop, change);
        }
    }

    /// What both directions have done so far.
    pub fn audit(&self) -> Vec<Audit> {
        self.directions.iter().map(|direction| direction.shared.latest(direction.is_running()).judge(&self.bounds)).collect()
    }

    /// Whether both directions are at work. They end by themselves only if a device fails.
    pub fn is_running(&self) -> bool {
        self.directions.iter().all(Running::is_running)
    }

    /// Stops and says what was done. What is still under way does not arrive.
    pub fn stop(mut self) -> Result<Vec<Audit>, EmulateError> {
        for direction in &self.directions {
            direction.shared.stop();
        }
        for direction in &mut self.directions {
            let Some(thread) = direction.thread.take() else { continue };
            match thread.join() {
                Ok(ended) => ended.map_err(EmulateError::system("carrying packets from device to device"))?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(self.audit())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        for direction in &self.directions {
            direction.shared.stop();
        }
        for direction in &mut self.directions {
            if let Some(thread) = direction.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

/// A lock whose holder has panicked: counters are as good as they were.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::sync::mpsc::sync_channel;
    use std::time::{Duration, Instant};
    use whyloss_sim::{LinkSpec, QueueLimit};
    use whyloss_transport::BitRate;

    /// A link between two devices that always have a packet, and take all.
    fn busy(options: &Options) -> Emulator {
        let device = || Tun::of(File::options().read(true).write(true).open("/dev/zero").unwrap());
        let chain = |name: &str| {
            let spec = LinkSpec { rate: BitRate::from_bps(1_000_000_000), queue: QueueLimit::Packets(10), ..LinkSpec::default() };
            vec![Stretch { name: name.to_owned(), spec }]
        };
        Emulator::start([device(), device()], [chain("a>b"), chain("b>a")], &Options { fifo: None, ..options.clone() }).unwrap()
    }

    /// Waits until `done`, for some seconds at most.
    fn waited(emulator: &Emulator, done: impl Fn(&[Audit]) -> bool) -> bool {
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            if done(&emulator.audit()) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    #[test]
    fn a_link_changes_though_packets_never_cease_to_come() {
        let emulator = busy(&Options { changeable: true, ..Options::new(1, 0) });
        assert!(waited(&emulator, |audits| audits.iter().all(|audit| audit.received > 1000)));
        let rate = BitRate::from_bps(50_000_000);
        emulator.change(0, 0, Change { rate: Some(rate), ..Change::default() });
        assert!(waited(&emulator, |audits| audits[0].hops[0].rate_bps == Some(rate.as_bps())));
        let audits = emulator.stop().unwrap();
        assert_eq!(audits[1].hops[0].rate_bps, Some(1_000_000_000), "the other direction stays as it is");
    }

    #[test]
    fn records_that_nobody_takes_are_left_out_and_counted() {
        let (sender, chunks) = sync_channel(2);
        let emulator = busy(&Options { records: Some(sender), ..Options::new(1, 0) });
        // Goes first if the test fails: an emulator that waits for it would not end.
        let chunks = chunks;
        // Packets do not wait for who does not take their records.
        assert!(waited(&emulator, |audits| audits.iter().all(|audit| audit.received > 50_000)));
        assert!(emulator.audit().iter().any(|audit| audit.flaws.iter().any(|flaw| flaw.contains("records of"))));
        let taken = std::thread::spawn(move || chunks.iter().map(|chunk| chunk.records.len() as u64).sum::<u64>());
        let audits = emulator.stop().unwrap();
        let left_out = audits
            .iter()
            .flat_map(|audit| &audit.flaws)
            .map(|flaw| flaw.split("records of ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0));
        let left_out: u64 = left_out.sum();
        assert!(left_out > 0);
        assert_eq!(taken.join().unwrap() + left_out, audits.iter().map(|audit| audit.received).sum::<u64>());
    }
}
