//! What test beds and bridges have in common: what they are given, how they change, what they leave.

use crate::convert::to_python;
use crate::error::{raise, InputError, UnavailableError, WhylossError};
use crate::scenario::Scenario;
use crate::table::Table;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use whyloss_lab::tables::{packets, PacketFate, PacketRow, PacketWriter, RecordBatch};
use whyloss_lab::{Direction, Rewiring, Wires};
use whyloss_net::emulate::{
    Audit, Bounds, Chunk, CloseError, Collector, EmulateError, Options, PacketCapture, Record, Session, Sink, SinkError,
    FIFO_PRIORITY,
};

/// What both are given beside their scenario.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wishes {
    pub run: u32,
    /// Where the truth about each packet goes as Parquet.
    packets: Option<PathBuf>,
    /// Where the packets go as a capture, with what became of them as comments.
    capture: Option<PathBuf>,
    /// Keep the truth in memory.
    keep: bool,
    /// Bound of the 99th percentile of the delay error, in microseconds.
    max_p99_error_us: f64,
    realtime: bool,
    /// Links can be changed while they are at work.
    changeable: bool,
}

impl Wishes {
    /// The options of an emulator, and who collects what it records.
    fn options(&self, wires: &Wires, directions: &Arc<[Direction]>) -> PyResult<(Options, Option<Collector>)> {
        let mut options = Options::new(wires.seed, wires.run);
        options.bounds = Bounds { p99_error: (self.max_p99_error_us * 1000.0) as u64, ..Bounds::default() };
        options.fifo = self.realtime.then_some(FIFO_PRIORITY);
        options.changeable = self.changeable;
        if self.packets.is_none() && self.capture.is_none() && !self.keep {
            return Ok((options, None));
        }
        let start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start = start.as_nanos() as u64;
        let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
        if let Some(path) = &self.packets {
            let writer = PacketWriter::create(path, start).map_err(|error| raise(&error))?;
            sinks.push(Box::new(Parquet { directions: Arc::clone(directions), writer }));
        }
        if let Some(path) = &self.capture {
            let names: Vec<_> = directions.iter().map(|direction| direction.name.as_str()).collect();
            sinks.push(Box::new(PacketCapture::create(path, start, &names)?));
            options.snap = u32::MAX;
        }
        let (records, collector) = Collector::start(sinks, self.keep)?;
        options.records = Some(records);
        Ok((options, Some(collector)))
    }
}

/// The truth about packets as the lab's table in a file.
struct Parquet {
    directions: Arc<[Direction]>,
    writer: PacketWriter,
}

impl Sink for Parquet {
    fn take(&mut self, chunk: &Chunk) -> Result<(), SinkError> {
        Ok(self.writer.write(&table(&self.directions, &chunk.records))?)
    }

    fn finish(self: Box<Self>) -> Result<(), SinkError> {
        Ok(self.writer.finish()?)
    }
}

/// What the emulator calls a record, as the lab calls it.
fn table(directions: &[Direction], records: &[Record]) -> RecordBatch {
    packets(records.iter().map(|record| {
        let direction = &directions[usize::from(record.direction)];
        let header = &record.header;
        PacketRow {
            direction: &direction.name,
            link: &direction.links[usize::from(record.hop)],
            number: record.number,
            copy: record.copy,
            times: [record.came, record.due, record.left],
            octets: record.octets,
            found: (record.found_packets, record.found_octets),
            fate: PacketFate { name: record.fate.name(), cause: record.fate.cause() },
            agent: record.agent.map(|agent| (agent.kind, agent.made)),
            marked: record.marked,
            flipped: (record.flipped, record.first_flip),
            addresses: [header.src, header.dst],
            protocol: header.protocol,
            ports: [header.src_port, header.dst_port],
            tcp: (header.protocol == 6).then_some((header.seq, header.ack, header.flags)),
            id: header.id,
            data_octets: header.data_octets,
        }
    }))
}

/// An emulation, and the wires that it is made of now.
pub struct Emulation<E> {
    session: Session<E>,
    directions: Arc<[Direction]>,
    wires: Mutex<Wires>,
}

impl<E: Send + Sync> Emulation<E> {
    /// Begins what `start` makes of the options.
    pub fn start(wires: Wires, wishes: &Wishes, start: impl FnOnce(&Options) -> PyResult<E>) -> PyResult<Self> {
        let directions: Arc<[Direction]> = wires.directions().into();
        let (options, collector) = wishes.options(&wires, &directions)?;
        let session = Session::new(start(&options)?, collector);
        Ok(Self { session, directions, wires: Mutex::new(wires) })
    }

    /// What is at work, if it is.
    pub fn get(&self) -> PyResult<Arc<E>> {
        self.session.get().ok_or_else(|| PyRuntimeError::new_err("it has been closed"))
    }

    /// Becomes what `scenario` says; `tell` is told of each stretch that changes. Gives how many do.
    pub fn change(&self, py: Python<'_>, scenario: &Scenario, tell: impl Fn(&E, Rewiring) + Sync) -> PyResult<usize> {
        let it = self.get()?;
        py.detach(|| {
            let mut wires = self.wires.lock().unwrap_or_else(PoisonError::into_inner);
            let changes = wires.become_those_of(&scenario.0).map_err(|error| raise(&error))?;
            let count = changes.len();
            for change in changes {
                tell(&it, change);
            }
            Ok(count)
        })
    }

    /// What each direction has done so far, or had done at the end.
    pub fn audit<'py>(&self, py: Python<'py>, ask: impl FnOnce(&E) -> Vec<Audit> + Send) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &py.detach(|| self.session.audit(ask)))
    }

    /// The truth about each packet whose fate is known.
    pub fn truth(&self, py: Python<'_>) -> PyResult<Table> {
        let batch = py.detach(|| self.session.look(|records| table(&self.directions, records)));
        let unknown = || PyRuntimeError::new_err("the truth was not kept: it was said so when this was made");
        batch.map(Table::from).ok_or_else(unknown)
    }

    /// Ends it by `stop`, once others who use it at this moment have ended.
    pub fn close(&self, py: Python<'_>, stop: impl FnOnce(E) -> PyResult<Vec<Audit>> + Send) -> PyResult<()> {
        py.detach(|| self.session.close(stop)).map_err(|error| match error {
            CloseError::Emulation(error) => error,
            CloseError::Records(error) => unwritten(error),
        })
    }
}

/// The exception that says what a sink says.
fn unwritten(error: SinkError) -> PyErr {
    match error.downcast::<std::io::Error>() {
        Ok(error) => (*error).into(),
        Err(error) => match error.downcast::<whyloss_lab::Error>() {
            Ok(error) => raise(&error),
            Err(error) => WhylossError::new_err(error.to_string()),
        },
    }
}

/// The exception that says what `error` says.
pub fn refuse(error: &EmulateError) -> PyErr {
    match error {
        EmulateError::Link(_) | EmulateError::Agent(_) => InputError::new_err(error.to_string()),
        EmulateError::System { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            UnavailableError::new_err(format!("{error} (root is needed)"))
        }
        EmulateError::System { .. } => WhylossError::new_err(error.to_string()),
    }
}
