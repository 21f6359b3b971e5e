//! A plan on all cores.

use crate::control::{Cancel, Control, Progress};
use crate::error::Error;
use crate::key::{point_key, run_key};
use crate::patterns::{digests, Files, LinkFiles};
use crate::run::{simulate, RunOptions};
use crate::store::{stem, Store};
use crate::sweep::{numeric, Plan};
use crate::tables::{Tables, NAMES};
use crate::tree::Value;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field};
use blake3::Hash;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

/// How a plan is carried out. None of it changes a result.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// Folder in which results are kept and found again; nothing is kept without it.
    pub store: Option<PathBuf>,
    /// Number of threads; one for each core if nothing is said.
    pub threads: Option<usize>,
}

/// Results are written at least this often.
const FLUSH_EVERY: Duration = Duration::from_secs(3);

/// Carries out `plan`: takes from the store what is there, computes the rest on all cores, and keeps it. Tables hold all runs in the
/// order of the plan, whatever the number of threads.
///
/// When it fails or is cancelled, everything computed so far is kept in the store.
pub fn execute(plan: &Plan, options: &ExecuteOptions, control: &mut Control<'_>) -> Result<Tables, Error> {
    let started = Instant::now();
    let store = options.store.as_deref().map(Store::open).transpose()?;
    let mut work = Work::prepare(plan, store, &control.cancel)?;
    let total = plan.total();
    let found = total - work.missing.len();
    control.tell(&Progress::of_sweep(found, total, found, started.elapsed()));
    let result = work.compute(plan, options.threads, control, |done| Progress::of_sweep(done, total, found, started.elapsed()));
    // What is computed is kept whatever happened; the first failure is the one that is told.
    let kept = work.flush_all();
    result.and(kept)?;
    control.tell(&Progress::of_sweep(total, total, found, started.elapsed()));
    Ok(assemble(plan, &work.whole))
}

/// A digest of everything that decides the tables of `plan`: the keys of all runs, in order, and the names of points.
pub fn inputs_digest(plan: &Plan, cancel: &Cancel) -> Result<String, Error> {
    let cache = Files::default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(plan.axes.join("\n").as_bytes());
    for point in &plan.points {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let labels: Vec<String> = point.labels.iter().map(Value::to_string).collect();
        hasher.update(format!("\n{} {}\n", point.index, labels.join("\n")).as_bytes());
        let key = point_key(&point.scenario.canonical());
        for run in point.runs.clone() {
            hasher.update(run_key(&key, run, &digests(&point.scenario.files(run, &cache)?)).as_bytes());
        }
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// What the names of the parts in a store begin with that hold runs of `plan`, in the order of its points.
pub fn part_stems(plan: &Plan) -> Vec<String> {
    plan.points.iter().map(|point| stem(&point_key(&point.scenario.canonical()))).collect()
}

/// The runs of `plan` that are not in the store: the number of the point, the first run and how many follow each other.
pub fn missing(plan: &Plan, store: &Path, cancel: &Cancel) -> Result<Vec<(u32, u32, u32)>, Error> {
    let (store, cache) = (Store::open(store)?, Files::default());
    let mut stretches: Vec<(u32, u32, u32)> = Vec::new();
    for point in &plan.points {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let key = point_key(&point.scenario.canonical());
        let kept = store.keys(&key);
        for run in point.runs.clone() {
            if kept.contains(&run_key(&key, run, &digests(&point.scenario.files(run, &cache)?))) {
                continue;
            }
            match stretches.last_mut() {
                Some((index, first, count)) if *index == point.index && *first + *count == run => *count += 1,
                _ => stretches.push((point.index, run, 1)),
            }
        }
    }
    Ok(stretches)
}

/// A run that has to be computed.
#[derive(Debug)]
struct Job {
    point: usize,
    run: u32,
    slot: usize,
    files: Vec<LinkFiles>,
}

#[derive(Debug)]
struct Work {
    store: Option<Store>,
    points: Vec<Hash>,
    keys: Vec<Hash>,
    missing: Vec<Job>,
    /// One entry for each run of each point, in the order of the plan; empty again once the point is whole.
    results: Vec<Option<Tables>>,
    /// The first slot of each point, and one past the last of all.
    slots: Vec<usize>,
    /// All runs of each point together, if it has any: tables of single runs take much more memory than their rows.
    whole: Vec<Option<Tables>>,
    /// Slots that are computed but not yet kept, by point.
    unkept: BTreeMap<usize, Vec<usize>>,
    /// Runs of each point that are still to come.
    open: Vec<usize>,
}

impl Work {
    fn prepare(plan: &Plan, store: Option<Store>, cancel: &Cancel) -> Result<Self, Error> {
        let cache = Files::default();
        let mut work = Self {
            store,
            points: Vec::with_capacity(plan.points.len()),
            keys: Vec::with_capacity(plan.total()),
            missing: Vec::new(),
            results: Vec::with_capacity(plan.total()),
            slots: vec![0],
            whole: vec![None; plan.points.len()],
            unkept: BTreeMap::new(),
            open: vec![0; plan.points.len()],
        };
        for (index, point) in plan.points.iter().enumerate() {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let key = point_key(&point.scenario.canonical());
            let mut found = work.store.as_ref().map(|store| store.find(&key)).unwrap_or_default();
            for run in point.runs.clone() {
                let files = point.scenario.files(run, &cache)?;
                let run_key = run_key(&key, run, &digests(&files));
                let slot = work.results.len();
                let known = found.remove(&run_key);
                if known.is_none() {
                    work.missing.push(Job { point: index, run, slot, files });
                    work.open[index] += 1;
                }
                work.keys.push(run_key);
                work.results.push(known);
            }
            work.points.push(key);
            work.slots.push(work.results.len());
            work.unite(index);
        }
        Ok(work)
    }

    /// Puts the runs of a point together if all of them are there.
    fn unite(&mut self, point: usize) {
        let runs = &mut self.results[self.slots[point]..self.slots[point + 1]];
        if self.open[point] == 0 && !runs.is_empty() {
            self.whole[point] = Some(Tables::concat(&runs.iter().map(|tables| tables.as_ref().expect("it is there"))));
            runs.fill(None);
        }
    }

    /// Computes what is missing. This thread collects and keeps results and reports progress; the others compute.
    fn compute(
        &mut self,
        plan: &Plan,
        threads: Option<usize>,
        control: &mut Control<'_>,
        progress: impl Fn(usize) -> Progress,
    ) -> Result<(), Error> {
        let jobs = std::mem::take(&mut self.missing);
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = threads.unwrap_or_else(cores).clamp(1, jobs.len().max(1));
        let next = AtomicUsize::new(0);
        let (stop, around) = (control.cancel.clone(), control.around);
        let failed = Cancel::default();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..threads {
                let sender = sender.clone();
                let (jobs, next, stop, failed) = (&jobs, &next, &stop, &failed);
                scope.spawn(move || {
                    let stopped = || stop.is_cancelled() || failed.is_cancelled();
                    let mut work = || {
                        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !stopped()) {
                            let scenario = &plan.points[job.point].scenario;
                            let options = RunOptions { run: job.run, captures: None };
                            let result = simulate(scenario, &options, &job.files, |_| stopped());
                            if sender.send((job.slot, job.point, result)).is_err() {
                                return;
                            }
                        }
                    };
                    match around {
                        Some(around) => around(&mut work),
                        None => work(),
                    }
                });
            }
            drop(sender);
            let mut outcome = Ok(());
            let (mut told, mut flushed) = (Instant::now(), Instant::now());
            let mut done = self.results.len() - jobs.len();
            loop {
                let mut tell = false;
                match receiver.recv_timeout(Duration::from_millis(50)) {
                    Ok((slot, point, Ok(tables))) => {
                        done += 1;
                        tell = true;
                        self.results[slot] = Some(tables);
                        self.unkept.entry(point).or_default().push(slot);
                        self.open[point] -= 1;
                        if self.open[point] == 0 {
                            outcome = outcome.and(self.flush(point));
                            self.unite(point);
                        }
                    }
                    // A run that was stopped because another failed is not the failure to tell.
                    Ok((_, _, Err(error))) => outcome = if outcome.is_ok() { Err(error) } else { outcome },
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
                if flushed.elapsed() >= FLUSH_EVERY {
                    flushed = Instant::now();
                    outcome = outcome.and(self.flush_all());
                }
                if outcome.is_err() {
                    failed.cancel();
                }
                if tell || told.elapsed() >= Duration::from_millis(100) {
                    told = Instant::now();
                    control.tell(&progress(done));
                }
            }
            if outcome.is_ok() && done < self.results.len() {
                outcome = Err(Error::Cancelled);
            }
            outcome
        })
    }

    fn flush_all(&mut self) -> Result<(), Error> {
        let points: Vec<usize> = self.unkept.keys().copied().collect();
        points.into_iter().try_for_each(|point| self.flush(point))
    }

    fn flush(&mut self, point: usize) -> Result<(), Error> {
        let (Some(store), Some(mut slots)) = (&self.store, self.unkept.remove(&point)) else { return Ok(()) };
        slots.sort_unstable();
        let runs: Vec<(Hash, &Tables)> =
            slots.iter().map(|slot| (self.keys[*slot], self.results[*slot].as_ref().expect("computed"))).collect();
        store.keep(&self.points[point], &runs)
    }
}

/// The points one after the other, with the columns of the sweep.
fn assemble(plan: &Plan, points: &[Option<Tables>]) -> Tables {
    let whole = Tables::concat(&points.iter().flatten());
    // For each table, how many rows each point has.
    let mut rows = vec![vec![0_usize; plan.points.len()]; NAMES.len()];
    for (point, tables) in points.iter().enumerate().filter_map(|(point, tables)| Some((point, tables.as_ref()?))) {
        for (table, (_, batch)) in tables.all().into_iter().enumerate() {
            rows[table][point] = batch.num_rows();
        }
    }
    let mut columns: Vec<(Field, Vec<Cell>)> = Vec::new();
    let index = |point: &crate::sweep::Point| Cell::Index(point.index);
    columns.push((Field::new("point", DataType::UInt32, false), plan.points.iter().map(index).collect()));
    for (axis, name) in plan.axes.iter().enumerate() {
        let labels: Vec<&Value> = plan.points.iter().map(|point| &point.labels[axis]).collect();
        columns.push(column(name, &labels));
        if let Some((unit, numbers)) = numeric(&labels) {
            let name = format!("{name}_{unit}");
            columns.push((Field::new(name, DataType::UInt64, false), numbers.into_iter().map(Cell::Count).collect()));
        }
    }
    let fields: Vec<Field> = columns.iter().map(|(field, _)| field.clone()).collect();
    whole.with_columns(&fields, |table, column| stretch(&columns[column].1, &rows[table]))
}

/// A value in a column of the sweep.
#[derive(Clone, Debug)]
enum Cell {
    Index(u32),
    Count(u64),
    Number(f64),
    Flag(bool),
    Text(String),
}

fn column(name: &str, labels: &[&Value]) -> (Field, Vec<Cell>) {
    let number = |label: &&Value| match label {
        Value::Integer(number) => Some(Cell::Number(*number as f64)),
        Value::Float(number) => Some(Cell::Number(*number)),
        _ => None,
    };
    let flag = |label: &&Value| if let Value::Bool(flag) = label { Some(Cell::Flag(*flag)) } else { None };
    if let Some(cells) = labels.iter().map(number).collect() {
        return (Field::new(name, DataType::Float64, false), cells);
    }
    if let Some(cells) = labels.iter().map(flag).collect() {
        return (Field::new(name, DataType::Boolean, false), cells);
    }
    let text = |label: &&Value| match label {
        Value::String(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    };
    (Field::new(name, DataType::Utf8, false), labels.iter().map(text).collect())
}

/// Repeats the cell of each point as often as the point has rows.
fn stretch(cells: &[Cell], rows: &[usize]) -> ArrayRef {
    let repeated = || cells.iter().zip(rows).flat_map(|(cell, count)| std::iter::repeat_n(cell, *count));
    macro_rules! array {
        ($array:ty, $variant:ident) => {
            Arc::new(
                repeated()
                    .map(|cell| if let Cell::$variant(value) = cell { Some(value.clone()) } else { None })
                    .collect::<$array>(),
            )
        };
    }
    match cells.first() {
        Some(Cell::Count(_)) => array!(UInt64Array, Count),
        Some(Cell::Number(_)) => array!(Float64Array, Number),
        Some(Cell::Flag(_)) => array!(BooleanArray, Flag),
        Some(Cell::Text(_)) => array!(StringArray, Text),
        Some(Cell::Index(_)) | None => array!(UInt32Array, Index),
    }
}
