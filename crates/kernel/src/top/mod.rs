//! Watches every TCP connection of the machine, in all its network namespaces, and why it loses. Nothing is changed, and nothing is left
//! when the observer goes, however it goes: all that it has in the kernel hangs on its file descriptors.

mod connection;
mod decisions;
mod row;

pub use connection::{Connection, Named, Said, Tally};
pub use row::{CAUSES, DIFFERENTIATORS};

use crate::cgroup::Paths;
use crate::object::{said, Loaded, Options};
use crate::place::Place;
use crate::sockets::{attach, Sockets};
use crate::{check, Error, Result};
use decisions::Decisions;
use libbpf_rs::{Link, MapCore as _, MapFlags, RingBuffer, RingBufferBuilder};
use row::Row;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long it takes at least until processes are looked for again.
const OWNERS_EVERY: Duration = Duration::from_secs(2);

/// What is attached as long as the observer lives.
const TRACEPOINTS: [&str; 4] = ["wl_segment", "wl_congestion_state", "wl_state", "wl_bad_checksum"];

/// All connections at one moment.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Snapshot {
    /// Those that there are.
    pub connections: Vec<Connection>,
    /// Those that have ended since the snapshot before.
    pub closed: Vec<Connection>,
    /// Ended connections that could not be reported, since the observer began: too many ended between two snapshots.
    pub unreported: u64,
    /// Received segments that failed their checksum, since the observer began; of some, no connection is known, because the damage hit their headers.
    pub damaged_in: u64,
}

/// The programs in the kernel, for as long as the value lives.
pub struct Observer {
    // Fields are dropped in this order.
    closed_rows: RingBuffer<'static>,
    sockets: Sockets,
    _tracepoints: Vec<Link>,
    loaded: Loaded,
    closed: Arc<Mutex<Vec<Row>>>,
    owned_at: Option<Instant>,
    /// Whether processes held connections in a network namespace that cannot be entered, when they were last looked for.
    out_of_reach: bool,
    cgroups: Paths,
    decisions: Decisions,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Observer").field("loaded", &self.loaded).finish_non_exhaustive()
    }
}

impl Observer {
    /// Loads the programs, attaches them, and finds the connections that there are already. What controls of this package have decided
    /// is read if they are at `place`.
    pub fn new(place: Place) -> Result<Self> {
        check::loadable()?;
        let loaded = Loaded::new("top", &Options::default())?;
        let mut tracepoints = Vec::new();
        for name in TRACEPOINTS {
            tracepoints.push(attach(&loaded, name)?);
        }
        let mut sockets = Sockets::of(&loaded)?;
        // From now on they are watched.
        sockets.of_namespaces()?;

        let closed = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&closed);
        let ring = loaded.object.maps().find(|map| map.name() == "wl_closed");
        let ring = ring.ok_or_else(|| Error::NoObject("wl_closed".to_owned()))?;
        let mut builder = RingBufferBuilder::new();
        let closed_rows = said("listening for connections that end", || {
            builder.add(&ring, move |octets| {
                into.lock().unwrap_or_else(PoisonError::into_inner).extend(Row::all(octets));
                0
            })?;
            builder.build()
        })?;
        Ok(Self {
            closed_rows,
            sockets,
            _tracepoints: tracepoints,
            loaded,
            closed,
            owned_at: None,
            out_of_reach: false,
            cgroups: Paths::find(),
            decisions: Decisions::of(place),
        })
    }

    /// Takes in the connections that have ended, so that their buffer does not overflow until the next snapshot.
    pub fn drain(&self) -> Result<()> {
        said("reading connections that have ended", || self.closed_rows.consume())
    }

    /// All connections as they are now, and those that have ended since the last call.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        let mut rows = by_cookie(&self.sockets.of_namespaces()?);
        if self.out_of_reach || self.owned_at.is_none_or(|at| at.elapsed() >= OWNERS_EVERY) {
            let found = rows.len();
            // Their rows tell whose the connections are.
            rows.extend(by_cookie(&self.sockets.of_files()?));
            self.out_of_reach = rows.len() > found;
            self.owned_at = Some(Instant::now());
        }
        // Before the ended ones are taken in: one that ends in between is reported by the next snapshot, and was seen by this look.
        self.decisions.look()?;
        self.drain()?;
        let closed = std::mem::take(&mut *self.closed.lock().unwrap_or_else(PoisonError::into_inner));
        // One that ended while the rows were read is in both.
        let ended: HashSet<u64> = closed.iter().map(|row| row.cookie).collect();
        let snapshot = Snapshot {
            connections: rows.values().filter(|row| !ended.contains(&row.cookie)).map(|row| self.see(row)).collect(),
            closed: closed.iter().map(|row| self.see(row)).collect(),
            unreported: self.total(1)?,
            damaged_in: self.total(0)?,
        };
        self.cgroups.forget_others();
        Ok(snapshot)
    }

    fn see(&mut self, row: &Row) -> Connection {
        Connection::new(row, self.cgroups.of(row.cgroup).to_owned(), self.decisions.counts(row.cookie).cloned())
    }

    /// The entry `which` of the map of totals.
    fn total(&self, which: u32) -> Result<u64> {
        let Some(map) = self.loaded.object.maps().find(|map| map.name() == "wl_totals") else { return Ok(0) };
        let value = said("reading the totals", || map.lookup(&which.to_ne_bytes(), MapFlags::ANY))?;
        Ok(value.and_then(|octets| octets.try_into().ok()).map_or(0, u64::from_ne_bytes))
    }
}

fn by_cookie(octets: &[u8]) -> HashMap<u64, Row> {
    Row::all(octets).map(|row| (row.cookie, row)).collect()
}
