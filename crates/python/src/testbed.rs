//! Emulated links and test beds for Python: the wires of a scenario between real hosts.

use crate::convert::to_python;
use crate::error::{raise, InputError, UnavailableError, WhylossError};
use crate::scenario::Scenario;
use crate::table::Table;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use std::fs::File;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use whyloss_lab::tables::{packets, PacketFate, PacketRow, PacketWriter, RecordBatch};
use whyloss_lab::{Stretch, Wires};
use whyloss_net::emulate::{Audit, Bounds, Chunk, EmulateError, Emulator, Hop, Options, Record, FIFO_PRIORITY};
use whyloss_net::testbed::{Link, Node, Plan, Testbed, TestbedError};
use whyloss_net::Tun;
use whyloss_sim::{Capture, Change, LinkSpec};

/// What both kinds of emulation are given beside their scenario.
#[derive(Clone, Debug, FromPyObject)]
#[pyo3(from_item_all)]
struct Wishes {
    run: u32,
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
    fn options(&self, wires: &Wires) -> PyResult<(Options, Option<Collector>)> {
        let mut options = Options::new(wires.seed, wires.run);
        options.bounds = Bounds { p99_error: (self.max_p99_error_us * 1000.0) as u64, ..Bounds::default() };
        options.fifo = self.realtime.then_some(FIFO_PRIORITY);
        options.changeable = self.changeable;
        if self.packets.is_none() && self.capture.is_none() && !self.keep {
            return Ok((options, None));
        }
        let names: Vec<_> = wires.links.iter().flat_map(|link| &link.ways).map(|way| Names::new(way)).collect();
        let (sender, records) = channel();
        let start = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start = start.as_nanos() as u64;
        let writer = self.packets.as_ref().map(|path| PacketWriter::create(path, start)).transpose();
        let writer = writer.map_err(|error| raise(&error))?;
        let capture = self.capture.as_ref().map(|path| PacketCapture::create(path, start, &names)).transpose()?;
        if capture.is_some() {
            options.snap = u32::MAX;
        }
        let collector = Collector::start(names, records, writer, capture, self.keep);
        options.records = Some(sender);
        Ok((options, Some(collector)))
    }
}

/// What the directions and their links are called.
#[derive(Clone, Debug)]
struct Names {
    direction: String,
    links: Vec<String>,
}

impl Names {
    fn new(way: &[Stretch]) -> Self {
        let links: Vec<_> = way.iter().map(|stretch| stretch.name.clone()).collect();
        let end = |link: Option<&String>, first: bool| {
            let (from, to) = link.and_then(|name| name.split_once('>')).unwrap_or_default();
            if first {
                from.to_owned()
            } else {
                to.to_owned()
            }
        };
        Self { direction: format!("{}>{}", end(links.first(), true), end(links.last(), false)), links }
    }
}

/// Takes the records of emulators on a thread of its own.
struct Collector {
    names: Arc<Vec<Names>>,
    kept: Arc<Mutex<Vec<Record>>>,
    thread: JoinHandle<PyResult<()>>,
}

/// A capture that grows. The file has its name only when it is whole.
struct PacketCapture {
    path: PathBuf,
    temporary: PathBuf,
    start: u64,
    capture: Capture,
}

impl PacketCapture {
    fn create(path: &Path, start: u64, names: &[Names]) -> PyResult<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let temporary = path.with_extension("pcapng.part");
        let file = File::create(&temporary)?;
        let names: Vec<_> = names.iter().map(|names| names.direction.as_str()).collect();
        let capture = Capture::new(path.display().to_string(), &names, Box::new(file))?;
        Ok(Self { path: path.to_owned(), temporary, start, capture })
    }

    fn write(&mut self, chunk: &Chunk) {
        for (record, octets) in chunk.packets() {
            let interface = u32::from(record.direction);
            self.capture.write(interface, self.start + record.left, octets, record.comment().as_deref());
        }
    }

    fn finish(mut self) -> PyResult<()> {
        self.capture.finish()?;
        Ok(std::fs::rename(&self.temporary, &self.path)?)
    }
}

impl Drop for PacketCapture {
    fn drop(&mut self) {
        // Once complete it is no longer there.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

impl Collector {
    fn start(
        names: Vec<Names>,
        records: Receiver<Chunk>,
        mut writer: Option<PacketWriter>,
        mut capture: Option<PacketCapture>,
        keep: bool,
    ) -> Self {
        let (names, kept) = (Arc::new(names), Arc::new(Mutex::new(Vec::new())));
        let (own_names, own_kept) = (Arc::clone(&names), Arc::clone(&kept));
        let thread = std::thread::spawn(move || {
            // Until the last emulator has gone.
            for chunk in records {
                if let Some(writer) = &mut writer {
                    writer.write(&table(&own_names, &chunk.records)).map_err(|error| raise(&error))?;
                }
                if let Some(capture) = &mut capture {
                    capture.write(&chunk);
                }
                if keep {
                    lock(&own_kept).extend(chunk.records);
                }
            }
            capture.map_or(Ok(()), PacketCapture::finish)?;
            writer.map_or(Ok(()), PacketWriter::finish).map_err(|error| raise(&error))
        });
        Self { names, kept, thread }
    }

    fn table(&self) -> RecordBatch {
        table(&self.names, &lock(&self.kept))
    }
}

fn table(names: &[Names], records: &[Record]) -> RecordBatch {
    packets(records.iter().map(|record| {
        let names = &names[usize::from(record.direction)];
        let header = &record.header;
        PacketRow {
            direction: &names.direction,
            link: &names.links[usize::from(record.hop)],
            number: record.number,
            copy: record.copy,
            times: [record.came, record.due, record.left],
            octets: record.octets,
            found: (record.found_packets, record.found_octets),
            fate: PacketFate { name: record.fate.name(), cause: record.fate.cause() },
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What of the links is different in another scenario: number of the link, direction, number of the stretch, and the change.
fn differences(before: &Wires, after: &Wires) -> PyResult<Vec<(usize, usize, usize, Change)>> {
    let refuse = |what: String| {
        InputError::new_err(format!("{what} cannot change while it is at work; rate, delay, queue and channel can"))
    };
    let same = before.nodes == after.nodes
        && before.links.len() == after.links.len()
        && before.links.iter().zip(&after.links).all(|(old, new)| old.ends == new.ends);
    if !same {
        return Err(refuse("the network".to_owned()));
    }
    let mut found = Vec::new();
    for (link, (old, new)) in before.links.iter().zip(&after.links).enumerate() {
        for way in 0..2 {
            for (hop, (old, new)) in old.ways[way].iter().zip(&new.ways[way]).enumerate() {
                let (from, to) = (&old.spec, &new.spec);
                let change = Change {
                    rate: (from.rate != to.rate).then_some(to.rate),
                    delay: (from.delay != to.delay).then_some(to.delay),
                    queue: (from.queue != to.queue).then_some(to.queue),
                    channel: (from.channel != to.channel).then(|| to.channel.clone()),
                    ..Change::default()
                };
                let (rate, delay, queue, channel) = (to.rate, to.delay, to.queue, to.channel.clone());
                if (LinkSpec { rate, delay, queue, channel, ..from.clone() }) != *to || old.discipline != new.discipline {
                    return Err(refuse(format!("what else link {} says", new.name)));
                }
                if change != Change::default() {
                    found.push((link, way, hop, change));
                }
            }
        }
    }
    Ok(found)
}

/// The wires of a running emulation, which may become those of another scenario.
struct Current {
    wires: Wires,
    run: u32,
}

impl Current {
    /// Becomes the wires of `scenario`; `tell` hears of each difference.
    fn become_those_of(&mut self, scenario: &Scenario, mut tell: impl FnMut(usize, usize, usize, Change)) -> PyResult<usize> {
        let wires = scenario.0.wires(self.run).map_err(|error| raise(&error))?;
        let changes = differences(&self.wires, &wires)?;
        let count = changes.len();
        self.wires = wires;
        for (link, way, hop, change) in changes {
            tell(link, way, hop, change);
        }
        Ok(count)
    }
}

fn chain(way: Vec<Stretch>) -> Vec<Hop> {
    way.into_iter().map(|Stretch { name, spec, discipline }| Hop { name, spec, discipline }).collect()
}

fn refuse(error: TestbedError) -> PyErr {
    match error {
        TestbedError::Unavailable(_) => UnavailableError::new_err(error.to_string()),
        TestbedError::Plan(_) => InputError::new_err(error.to_string()),
        TestbedError::Emulate(error) => refuse_link(&error),
        TestbedError::System { .. } => WhylossError::new_err(error.to_string()),
    }
}

fn refuse_link(error: &EmulateError) -> PyErr {
    match error {
        EmulateError::Link(_) => InputError::new_err(error.to_string()),
        EmulateError::System { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            UnavailableError::new_err(format!("{error} (root is needed)"))
        }
        EmulateError::System { .. } => WhylossError::new_err(error.to_string()),
    }
}

fn gone() -> PyErr {
    PyRuntimeError::new_err("it has been closed")
}

/// What is left when an emulation has ended.
#[derive(Default)]
struct Ended {
    audits: Vec<Audit>,
    truth: Option<RecordBatch>,
}

impl Ended {
    /// Waits for the collector, whose emulators have stopped.
    fn new(audits: Vec<Audit>, collector: Option<Collector>, keep: bool) -> PyResult<Self> {
        let Some(Collector { names, kept, thread }) = collector else { return Ok(Self { audits, truth: None }) };
        match thread.join() {
            Ok(written) => written?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(Self { audits, truth: keep.then(|| table(&names, &lock(&kept))) })
    }
}

fn no_truth() -> PyErr {
    PyRuntimeError::new_err("the truth was not kept: it was said so when this was made")
}

/// A test bed. The Python class around it has the words for people.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Bed {
    running: Mutex<Option<(Arc<Testbed>, Option<Collector>)>>,
    ended: Mutex<Ended>,
    keep: bool,
    plan: Plan,
    hosts: Vec<bool>,
    current: Mutex<Current>,
}

impl Bed {
    fn bed(&self) -> PyResult<Arc<Testbed>> {
        lock(&self.running).as_ref().map(|(bed, _)| Arc::clone(bed)).ok_or_else(gone)
    }

    fn find(&self, name: &str) -> PyResult<usize> {
        self.plan.find(name).ok_or_else(|| {
            let names: Vec<_> = self.plan.nodes.iter().map(|node| node.name.as_str()).collect();
            PyKeyError::new_err(format!("there is no host or router `{name}`; there are {}", names.join(", ")))
        })
    }
}

impl Bed {
    /// A guest behind a node: a device that leads to it, and its address.
    pub fn add_guest(&self, name: &str, guest: u8) -> PyResult<(Tun, IpAddr)> {
        self.bed()?.add_guest(self.find(name)?, guest).map_err(refuse)
    }

    /// The longest IP packet that a link takes, in octets.
    pub fn mtu(&self) -> u16 {
        self.plan.mtu
    }
}

#[pymethods]
impl Bed {
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, wishes: Wishes, mtu: u16) -> PyResult<Self> {
        let wires = scenario.0.wires(wishes.run).map_err(|error| raise(&error))?;
        let (options, collector) = wishes.options(&wires)?;
        let current = Mutex::new(Current { wires: wires.clone(), run: wishes.run });
        let hosts = wires.nodes.iter().map(|node| node.host).collect();
        let nodes = wires.nodes.into_iter().map(|node| Node { name: node.name, router: !node.host }).collect();
        let link = |link: whyloss_lab::WireLink| Link { ends: link.ends, chains: link.ways.map(chain) };
        let plan = Plan { nodes, links: wires.links.into_iter().map(link).collect(), mtu };
        let bed = py.detach(|| Testbed::new(plan.clone(), &options)).map_err(refuse)?;
        let running = Mutex::new(Some((Arc::new(bed), collector)));
        Ok(Self { running, ended: Mutex::default(), keep: wishes.keep, plan, hosts, current })
    }

    /// Names of the hosts.
    #[getter]
    fn hosts(&self) -> Vec<&str> {
        self.plan.nodes.iter().zip(&self.hosts).filter(|(_, host)| **host).map(|(node, _)| node.name.as_str()).collect()
    }

    /// Names of the routers.
    #[getter]
    fn routers(&self) -> Vec<&str> {
        self.plan.nodes.iter().zip(&self.hosts).filter(|(_, host)| !**host).map(|(node, _)| node.name.as_str()).collect()
    }

    /// An address of a node.
    fn address(&self, name: &str, v6: bool) -> PyResult<String> {
        Ok(self.plan.address(self.find(name)?, v6).to_string())
    }

    /// Where its network namespace can be entered.
    fn namespace_path(&self, name: &str) -> PyResult<PathBuf> {
        Ok(self.bed()?.namespace_path(self.find(name)?))
    }

    /// Calls `start()` where processes of a node are started, and gives what it gives.
    fn start(&self, py: Python<'_>, name: &str, start: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let (bed, node) = (self.bed()?, self.find(name)?);
        let started = py.detach(|| bed.start_by(node, move || Python::attach(|py| start.call0(py))));
        started.map_err(|error| WhylossError::new_err(error.to_string()))?
    }

    /// Calls `job()` on a thread of its own in the network of a node, and gives what it gives.
    fn inside(&self, py: Python<'_>, name: &str, job: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let (bed, node) = (self.bed()?, self.find(name)?);
        py.detach(|| bed.namespace(node).run(|| Python::attach(|py| job.call0(py))))
    }

    /// Makes the links those of another scenario; gives the number of changes.
    fn change(&self, py: Python<'_>, scenario: Py<Scenario>) -> PyResult<usize> {
        let bed = self.bed()?;
        py.detach(|| {
            lock(&self.current)
                .become_those_of(scenario.get(), |link, way, hop, change| bed.emulators()[link].change(way, hop, change))
        })
    }

    /// What each direction of each link has done so far, or had done at the end.
    fn audit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let audits = match self.bed() {
            Ok(bed) => py.detach(|| bed.audit()),
            Err(_) => lock(&self.ended).audits.clone(),
        };
        to_python(py, &audits)
    }

    /// The truth about each packet whose fate is known.
    fn truth(&self, py: Python<'_>) -> PyResult<Table> {
        if !self.keep {
            return Err(no_truth());
        }
        let running = lock(&self.running);
        let batch = match &*running {
            Some((_, Some(collector))) => py.detach(|| collector.table()),
            _ => lock(&self.ended).truth.clone().ok_or_else(no_truth)?,
        };
        Ok(batch.into())
    }

    /// Ends everything.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some((bed, collector)) = lock(&self.running).take() else { return Ok(()) };
        // Others who use it at this moment end first.
        let mut bed = bed;
        let bed = loop {
            match Arc::try_unwrap(bed) {
                Ok(bed) => break bed,
                Err(shared) => bed = shared,
            }
            py.detach(|| std::thread::sleep(Duration::from_millis(1)));
        };
        let audits = py.detach(|| bed.stop()).map_err(refuse)?;
        *lock(&self.ended) = py.detach(|| Ended::new(audits, collector, self.keep))?;
        Ok(())
    }
}

/// The `[path]` of a scenario between two TUN devices of this machine.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Bridge {
    emulator: Mutex<Option<(Emulator, Option<Collector>)>>,
    ended: Mutex<Ended>,
    keep: bool,
    ends: [String; 2],
    current: Mutex<Current>,
}

#[pymethods]
impl Bridge {
    #[new]
    fn new(scenario: &Scenario, wishes: Wishes, devices: [String; 2]) -> PyResult<Self> {
        let mut wires = scenario.0.wires(wishes.run).map_err(|error| raise(&error))?;
        if wires.links.len() != 1 {
            let found = wires.links.len();
            return Err(InputError::new_err(format!(
                "{}: there are {found} links; allowed is a [path] or one [[link]] between two devices, more make a test bed",
                scenario.0.name()
            )));
        }
        let (options, collector) = wishes.options(&wires)?;
        let current = Mutex::new(Current { wires: wires.clone(), run: wishes.run });
        let link = wires.links.remove(0);
        let ends = link.ends.map(|end| wires.nodes[end].name.clone());
        let open = |name: &String| {
            Tun::open(name).map_err(|error| {
                let message = format!("TUN device `{name}`: {error}");
                match error.kind() {
                    std::io::ErrorKind::PermissionDenied => UnavailableError::new_err(format!("{message} (root is needed)")),
                    std::io::ErrorKind::NotFound => UnavailableError::new_err(format!("{message} (/dev/net/tun is missing)")),
                    _ => WhylossError::new_err(message),
                }
            })
        };
        let tuns = [open(&devices[0])?, open(&devices[1])?];
        let emulator = Emulator::start(tuns, link.ways.map(chain), &options).map_err(|error| refuse_link(&error))?;
        let emulator = Mutex::new(Some((emulator, collector)));
        Ok(Self { emulator, ended: Mutex::default(), keep: wishes.keep, ends, current })
    }

    /// What the scenario calls the hosts at the two ends.
    #[getter]
    fn ends(&self) -> [&str; 2] {
        [&self.ends[0], &self.ends[1]]
    }

    /// Whether it is at work.
    #[getter]
    fn running(&self) -> bool {
        lock(&self.emulator).as_ref().is_some_and(|(emulator, _)| emulator.is_running())
    }

    /// Makes the link that of another scenario; gives the number of changes.
    fn change(&self, py: Python<'_>, scenario: Py<Scenario>) -> PyResult<usize> {
        py.detach(|| match &*lock(&self.emulator) {
            Some((emulator, _)) => {
                lock(&self.current).become_those_of(scenario.get(), |_, way, hop, change| emulator.change(way, hop, change))
            }
            None => Err(gone()),
        })
    }

    /// What each direction has done so far, or had done at the end.
    fn audit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let audits = py.detach(|| match &*lock(&self.emulator) {
            Some((emulator, _)) => emulator.audit(),
            None => lock(&self.ended).audits.clone(),
        });
        to_python(py, &audits)
    }

    /// The truth about each packet whose fate is known.
    fn truth(&self, py: Python<'_>) -> PyResult<Table> {
        if !self.keep {
            return Err(no_truth());
        }
        let batch = py.detach(|| match &*lock(&self.emulator) {
            Some((_, Some(collector))) => Some(collector.table()),
            _ => lock(&self.ended).truth.clone(),
        });
        batch.map(Table::from).ok_or_else(no_truth)
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some((emulator, collector)) = lock(&self.emulator).take() else { return Ok(()) };
        let audits = py.detach(|| emulator.stop()).map_err(|error| refuse_link(&error))?;
        *lock(&self.ended) = py.detach(|| Ended::new(audits, collector, self.keep))?;
        Ok(())
    }
}
