//! Bulk transfers of synthetic data between two hosts of the engine, each on a thread of its own, with their progress to be read meanwhile.

use crate::host::{Application, Host};
use nix::time::{clock_gettime, ClockId};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use whyloss_transport::scheme::Selection;
use whyloss_transport::stack::{ConnectionId, Listener, Notice, Stack, StackError};
use whyloss_transport::tcp::{Closing, Command, Config, Event, Stats};
use whyloss_transport::{Duration, Instant, Payload};

/// Data is taken from its connection in pieces of up to this many octets.
const PIECE: usize = 1 << 16;
/// How often a host checks whether it shall stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What a transfer sends.
#[derive(Clone, Debug)]
pub struct Load {
    /// How many octets to send; `None`: until it is stopped.
    pub octets: Option<u64>,
    /// Number of connections in parallel.
    pub connections: u32,
    /// Octets of a write; the connections take turns.
    pub chunk: u32,
    /// Algorithms of both ends.
    pub selection: Selection,
    /// Configuration of both ends.
    pub config: Config,
}

/// What can be seen of a transfer while it runs.
#[derive(Debug, Default)]
struct Progress {
    stopped: AtomicBool,
    delivered: AtomicU64,
    started: AtomicU64,
    finished: AtomicU64,
}

/// A transfer, before it starts, while it runs and after it. Its hosts stop when it is dropped.
#[derive(Debug)]
pub struct BulkTransfer {
    progress: Arc<Progress>,
    stage: Mutex<Stage>,
}

/// A thread that runs one end, and what it leaves.
type Thread = JoinHandle<Result<Stats, BulkTransferError>>;

#[derive(Debug)]
enum Stage {
    Ready(Box<Prepared>),
    /// The threads of receiver and sender.
    Running(Vec<Thread>),
    Ended,
}

/// What a transfer needs to start.
#[derive(Debug)]
struct Prepared {
    sender: Host,
    receiver: Host,
    address: SocketAddr,
    load: Load,
}

/// Why a transfer does not begin, or ends before its time.
#[derive(Debug, thiserror::Error)]
pub enum BulkTransferError {
    /// The engine refuses to listen or to connect.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The system refuses a thread or a packet.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl BulkTransfer {
    /// A transfer of `load` from `sender` to `address` of `receiver`, which does nothing yet.
    pub fn new(sender: Host, receiver: Host, address: SocketAddr, load: Load) -> Self {
        let prepared = Prepared { sender, receiver, address, load };
        Self { progress: Arc::default(), stage: Mutex::new(Stage::Ready(Box::new(prepared))) }
    }

    /// Lets the receiver listen, and the sender connect at `at` nanoseconds of the system's monotonic clock. Does nothing if it was
    /// started or stopped before. After an error it has ended.
    pub fn start(&self, at: u64) -> Result<(), BulkTransferError> {
        let mut stage = self.stage();
        match std::mem::replace(&mut *stage, Stage::Ended) {
            Stage::Ready(prepared) => {
                let mut ends = Vec::new();
                let started = prepared.start(at, &self.progress, &mut ends);
                if started.is_err() {
                    self.progress.stopped.store(true, Ordering::Relaxed);
                }
                *stage = Stage::Running(ends);
                started
            }
            other => {
                *stage = other;
                Ok(())
            }
        }
    }

    /// Octets that have arrived in order.
    pub fn delivered(&self) -> u64 {
        self.progress.delivered.load(Ordering::Relaxed)
    }

    /// When the connections were opened, in nanoseconds of the system's monotonic clock; 0 before.
    pub fn started_ns(&self) -> u64 {
        self.progress.started.load(Ordering::Relaxed)
    }

    /// When everything had arrived, in nanoseconds of the system's monotonic clock.
    pub fn finished_ns(&self) -> Option<u64> {
        Some(self.progress.finished.load(Ordering::Acquire)).filter(|&at| at > 0)
    }

    /// Stops both ends and gives the counters of the sender's connections, added up: zeros if it was never started, or has been stopped.
    pub fn stop(&self) -> Result<Stats, BulkTransferError> {
        self.progress.stopped.store(true, Ordering::Relaxed);
        let stage = std::mem::replace(&mut *self.stage(), Stage::Ended);
        let Stage::Running(ends) = stage else { return Ok(Stats::default()) };
        let results: Vec<_> = ends.into_iter().map(JoinHandle::join).collect();
        let mut sender = Stats::default();
        for result in results {
            sender = result.map_err(|_| io::Error::other("a host of the engine panicked"))??;
        }
        Ok(sender)
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BulkTransfer {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

impl Prepared {
    /// Starts both ends on threads of their own, which are added to `ends`.
    fn start(self, at: u64, progress: &Arc<Progress>, ends: &mut Vec<Thread>) -> Result<(), BulkTransferError> {
        let Self { sender, mut receiver, address, load } = self;
        let Load { octets, connections, chunk, selection, config } = load;
        let listener = Listener { config: config.clone(), selection: selection.clone(), backlog: connections as usize + 1 };
        receiver.stack().listen(address, listener)?;
        let receiving = Receiving { progress: progress.clone(), octets, open: connections, stats: Stats::default() };
        ends.push(spawn("receiver", receiver, progress, |_| Ok(receiving))?);
        let opening = progress.clone();
        ends.push(spawn("sender", sender, progress, move |host| {
            while let Some(left) = at.checked_sub(monotonic_ns()).filter(|_| !opening.stopped.load(Ordering::Relaxed)) {
                std::thread::sleep(std::time::Duration::from_nanos(left.min(POLL_INTERVAL.as_nanos())));
            }
            opening.started.store(monotonic_ns(), Ordering::Relaxed);
            let now = host.now();
            let open = (0..connections)
                .map(|_| Ok((host.stack().connect(now, address, config.clone(), &selection)?, 0)))
                .collect::<Result<Vec<_>, StackError>>()?;
            Ok(Sending { left: octets, chunk, closed: 0, open, stats: Stats::default() })
        })?);
        Ok(())
    }
}

/// Runs one end on a thread of its own until it is done or the transfer is stopped.
fn spawn<E: End>(
    name: &str,
    mut host: Host,
    progress: &Arc<Progress>,
    begin: impl FnOnce(&mut Host) -> Result<E, BulkTransferError> + Send + 'static,
) -> io::Result<Thread> {
    let progress = progress.clone();
    let work = move || {
        let mut end = begin(&mut host)?;
        while !progress.stopped.load(Ordering::Relaxed) {
            let next_poll = host.now() + POLL_INTERVAL;
            if host.run(&mut end, next_poll)? {
                break;
            }
        }
        Ok(end.stats())
    };
    std::thread::Builder::new().name(name.to_owned()).spawn(work)
}

/// One side of a transfer.
trait End: Application + Send + 'static {
    fn stats(&self) -> Stats;
}

#[derive(Debug)]
struct Receiving {
    progress: Arc<Progress>,
    octets: Option<u64>,
    /// Connections that have not ended.
    open: u32,
    stats: Stats,
}

impl Application for Receiving {
    fn notice(&mut self, now: Instant, stack: &mut Stack, notice: Notice) {
        let Notice::Event(id, event) = notice else { return };
        while let Some(data) = stack.read(now, id, PIECE) {
            let delivered = self.progress.delivered.fetch_add(data.len() as u64, Ordering::Relaxed) + data.len() as u64;
            if self.octets == Some(delivered) {
                self.progress.finished.store(monotonic_ns(), Ordering::Release);
            }
        }
        match event {
            Event::PeerClosed => stack.command(now, id, Command::Close),
            Event::Closed(_) => self.open = self.open.saturating_sub(1),
            _ => {}
        }
    }

    fn is_done(&self, _stack: &Stack) -> bool {
        self.open == 0
    }
}

impl End for Receiving {
    fn stats(&self) -> Stats {
        self.stats
    }
}

#[derive(Debug)]
struct Sending {
    /// Octets that no connection has taken yet.
    left: Option<u64>,
    chunk: u32,
    closed: usize,
    /// Each connection, and how much it has taken.
    open: Vec<(ConnectionId, u64)>,
    stats: Stats,
}

impl Sending {
    /// Gives the next pieces to a connection that has room.
    fn pump(&mut self, now: Instant, stack: &mut Stack, id: ConnectionId) {
        let Some((_, taken)) = self.open.iter_mut().find(|(connection, _)| *connection == id) else { return };
        loop {
            let piece = self.left.map_or(self.chunk, |left| left.min(u64::from(self.chunk)) as u32);
            if piece == 0 {
                stack.command(now, id, Command::Close);
                return;
            }
            if stack.endpoint(id).is_none_or(|endpoint| endpoint.send_space() < u64::from(piece)) {
                return;
            }
            stack.command(now, id, Command::Send(Payload::Synthetic { offset: *taken, len: piece }));
            *taken += u64::from(piece);
            self.left = self.left.map(|left| left - u64::from(piece));
        }
    }
}

impl Application for Sending {
    fn notice(&mut self, now: Instant, stack: &mut Stack, notice: Notice) {
        let Notice::Event(id, event) = notice else { return };
        match event {
            Event::Connected | Event::Writable => self.pump(now, stack, id),
            Event::Closed(closing) => {
                self.closed += 1;
                debug_assert!(closing != Closing::Refused, "the receiver listens before the sender starts");
            }
            _ => {}
        }
        let mut stats = Stats::default();
        for endpoint in self.open.iter().filter_map(|(id, _)| stack.endpoint(*id)) {
            let own = endpoint.stats();
            stats.retransmissions += own.retransmissions;
            stats.timeouts += own.timeouts;
            stats.losses += own.losses;
            stats.reductions += own.reductions;
        }
        self.stats = stats;
    }

    fn is_done(&self, _stack: &Stack) -> bool {
        self.closed == self.open.len()
    }
}

impl End for Sending {
    fn stats(&self) -> Stats {
        self.stats
    }
}

/// Nanoseconds of the system's monotonic clock, which other programs read too.
fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| std::time::Duration::from(now).as_nanos() as u64)
}
