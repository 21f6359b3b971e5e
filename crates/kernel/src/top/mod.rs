//! Watches every TCP connection of the machine, in all its network namespaces, and why it loses. Nothing is changed, and nothing is left
//! when the observer goes, however it goes: all that it has in the kernel hangs on its file descriptors.

mod connection;
mod decisions;
mod namespaces;
mod row;

pub use connection::{Connection, Named, Said, Tally};
pub use row::{CAUSES, DIFFERENTIATORS};

use crate::cgroup::Cgroups;
use crate::object::{said, Loaded, Options};
use crate::place::Place;
use crate::{check, Error, Result};
use decisions::Decisions;
use libbpf_rs::{Iter, Link, MapCore as _, MapFlags, RingBuffer, RingBufferBuilder};
use row::Row;
use std::collections::HashMap;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
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
    owners: Link,
    rows: Link,
    _tracepoints: Vec<Link>,
    loaded: Loaded,
    closed: Arc<Mutex<Vec<Row>>>,
    owned_at: Option<Instant>,
    cgroups: Option<Cgroups>,
    cgroup_paths: HashMap<u64, String>,
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
        let mut loaded = Loaded::new("top", &Options::default())?;
        let mut tracepoints = Vec::new();
        for name in TRACEPOINTS {
            tracepoints.push(attach(&mut loaded, name, None)?);
        }
        let find = attach(&mut loaded, "wl_find", None)?;
        namespaces::in_each(move || run(&find, &mut Vec::new()))?;
        let owners = attach(&mut loaded, "wl_own", None)?;
        let map = loaded.object.maps().find(|map| map.name() == "wl_watched").map(|map| map.as_fd().try_clone_to_owned());
        let map = map.ok_or_else(|| Error::NoObject("wl_watched".to_owned()))?;
        let map = map.map_err(|source| Error::Io { doing: "keeping a map".to_owned(), source })?;
        let rows = attach(&mut loaded, "wl_tell", Some(map.as_fd()))?;

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
        let cgroups = Cgroups::find().ok();
        Ok(Self {
            closed_rows,
            owners,
            rows,
            _tracepoints: tracepoints,
            loaded,
            closed,
            owned_at: None,
            cgroups,
            cgroup_paths: HashMap::new(),
            decisions: Decisions::of(place),
        })
    }

    /// Takes in the connections that have ended, so that their buffer does not overflow until the next snapshot.
    pub fn drain(&self) -> Result<()> {
        said("reading connections that have ended", || self.closed_rows.consume())
    }

    /// All connections as they are now, and those that have ended since the last call.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        if self.owned_at.is_none_or(|at| at.elapsed() >= OWNERS_EVERY) {
            run(&self.owners, &mut Vec::new())?;
            self.owned_at = Some(Instant::now());
        }
        let mut octets = Vec::new();
        run(&self.rows, &mut octets)?;
        self.drain()?;
        self.decisions.look()?;
        let closed = std::mem::take(&mut *self.closed.lock().unwrap_or_else(PoisonError::into_inner));
        let rows: HashMap<u64, Row> = Row::all(&octets).map(|row| (row.cookie, row)).collect();
        // One that ended while the rows were read is in both.
        let ended: std::collections::HashSet<u64> = closed.iter().map(|row| row.cookie).collect();
        Ok(Snapshot {
            connections: rows.values().filter(|row| !ended.contains(&row.cookie)).map(|row| self.see(row)).collect(),
            closed: closed.iter().map(|row| self.see(row)).collect(),
            unreported: self.total(1)?,
            damaged_in: self.total(0)?,
        })
    }

    fn see(&mut self, row: &Row) -> Connection {
        let cgroups = &self.cgroups;
        let path = self.cgroup_paths.entry(row.cgroup).or_insert_with(|| {
            let path = cgroups.as_ref().and_then(|cgroups| cgroups.path_of(row.cgroup));
            path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
        });
        Connection::new(row, path.clone(), self.decisions.counts(row.cookie).cloned())
    }

    /// The entry `which` of the map of totals.
    fn total(&self, which: u32) -> Result<u64> {
        let Some(map) = self.loaded.object.maps().find(|map| map.name() == "wl_totals") else { return Ok(0) };
        let value = said("reading the totals", || map.lookup(&which.to_ne_bytes(), MapFlags::ANY))?;
        Ok(value.and_then(|octets| octets.try_into().ok()).map_or(0, u64::from_ne_bytes))
    }
}

/// Attaches the program `name`; an iterator over what a map holds wants that map.
fn attach(loaded: &mut Loaded, name: &str, map: Option<BorrowedFd<'_>>) -> Result<Link> {
    let program = loaded.object.progs_mut().find(|program| program.name() == name);
    let program = program.ok_or_else(|| Error::NoObject(name.to_owned()))?;
    said(&format!("attaching {name}"), || match map {
        Some(map) => program.attach_iter(map),
        None => program.attach(),
    })
}

/// Runs an iterator to its end; `into` gets what it writes.
fn run(link: &Link, into: &mut Vec<u8>) -> Result<()> {
    let mut iterator = said("beginning to read connections", || Iter::new(link))?;
    iterator.read_to_end(into).map_err(|source| Error::Io { doing: "reading connections".to_owned(), source })?;
    Ok(())
}
