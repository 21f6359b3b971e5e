//! Computing what a plan lacks: on all cores, kept in the store as it comes.

use crate::control::{Cancel, Control, Progress};
use crate::error::Error;
use crate::key::{point_key, run_key};
use crate::patterns::{digests, Files, LinkFiles};
use crate::room::{check_runs, check_tables, Growth};
use crate::run::{simulate, RunOptions};
use crate::store::Store;
use crate::sweep::Plan;
use crate::tables::{Schemas, Tables};
use blake3::Hash;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Results are written at least this often.
const FLUSH_EVERY: Duration = Duration::from_secs(3);

/// Results are written at the latest when they take so many octets of memory.
const FLUSH_OCTETS: usize = 32 << 20;

/// Where the runs of a plan are while it is carried out.
#[derive(Debug)]
pub(crate) enum Place {
    /// In memory, and in a store too if there is one.
    Memory(Option<Store>),
    /// In a store alone: what is in it is let go of.
    Store(Store),
}

impl Place {
    const fn store(&self) -> Option<&Store> {
        match self {
            Self::Memory(store) => store.as_ref(),
            Self::Store(store) => Some(store),
        }
    }

    const fn holds(&self) -> bool {
        matches!(self, Self::Memory(_))
    }
}

/// A run that has to be computed.
#[derive(Debug)]
struct Job {
    point: usize,
    run: u32,
    slot: usize,
    files: Vec<LinkFiles>,
}

/// A plan and what there is of it. Its runs have slots, in the order of the plan.
#[derive(Debug)]
pub(crate) struct Work {
    place: Place,
    /// Keys of the points.
    points: Vec<Hash>,
    /// Keys of the runs, by slot.
    keys: Vec<Hash>,
    missing: Vec<Job>,
    /// What is held of single runs, by slot. Few are: this is a pointer each.
    results: Vec<Option<Box<Tables>>>,
    /// The first slot of each point, and one past the last of all.
    slots: Vec<usize>,
    /// All runs of each point together, if they are held and it has any: tables of single runs take much more memory than their rows.
    whole: Vec<Option<Tables>>,
    /// Columns of all runs, if these are in the store alone.
    schemas: Schemas,
    /// Slots that are computed but not yet kept, by point.
    unkept: BTreeMap<usize, Vec<usize>>,
    /// Octets of memory that these take.
    unkept_octets: usize,
    /// Runs of each point that are still to come.
    open: Vec<usize>,
    /// How large they get in the store.
    growth: Growth,
}

impl Work {
    /// Computes what is missing, and tells how far it is.
    ///
    /// When it fails or is cancelled, everything computed so far is kept in the store, if there is one and it can be written to.
    pub fn carry_out(plan: &Plan, place: Place, threads: Option<usize>, control: &mut Control<'_>) -> Result<Self, Error> {
        let started = Instant::now();
        if place.holds() {
            check_held(plan)?;
        }
        let mut work = Self::prepare(plan, place, &control.cancel)?;
        let largest = work.missing.iter().map(|job| transfers(plan, job.point)).max().unwrap_or(0);
        check_runs(largest, cores_or(threads).min(work.missing.len()))?;
        let total = work.keys.len();
        let found = total - work.missing.len();
        let progress = |done| Progress::of_sweep(done, total, found, started.elapsed());
        control.tell(&progress(found));
        work.compute(plan, threads, control, progress)?;
        control.tell(&progress(total));
        Ok(work)
    }

    /// Finds out what is missing.
    fn prepare(plan: &Plan, place: Place, cancel: &Cancel) -> Result<Self, Error> {
        let cache = Files::default();
        let mut work = Self {
            points: Vec::with_capacity(plan.points.len()),
            keys: Vec::with_capacity(plan.total()),
            missing: Vec::new(),
            results: Vec::with_capacity(plan.total()),
            slots: vec![0],
            whole: vec![None; plan.points.len()],
            schemas: Schemas::default(),
            unkept: BTreeMap::new(),
            unkept_octets: 0,
            open: vec![0; plan.points.len()],
            growth: Growth::default(),
            place,
        };
        // Not a part of the work: it would be old when the work is done.
        let store = work.place.store().cloned();
        let mut listing = store.as_ref().map(Store::listing);
        for (index, point) in plan.points.iter().enumerate() {
            let key = point_key(&point.scenario.canonical());
            let mut found = listing.as_mut().map(|listing| listing.runs(&key));
            for run in point.runs.clone() {
                if cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                let files = point.scenario.files(run, &cache)?;
                let run_key = run_key(&key, run, &digests(&files));
                let slot = work.results.len();
                work.keys.push(run_key);
                work.results.push(None);
                if let Some(tables) = found.as_mut().and_then(|found| found.take(&run_key)) {
                    work.found(slot, tables);
                } else {
                    work.missing.push(Job { point: index, run, slot, files });
                    work.open[index] += 1;
                    work.growth.expect(transfers(plan, index));
                }
            }
            work.points.push(key);
            work.slots.push(work.results.len());
            work.unite(index);
        }
        Ok(work)
    }

    fn found(&mut self, slot: usize, tables: Tables) {
        if self.place.holds() {
            self.results[slot] = Some(Box::new(tables));
        } else {
            self.schemas.see(slot, &tables);
        }
    }

    /// All runs of each point, as far as they are held and the point has any.
    pub fn into_whole(self) -> Vec<Option<Tables>> {
        self.whole
    }

    /// The key of each point with those of its runs.
    pub fn points(&self) -> impl Iterator<Item = (&Hash, &[Hash])> {
        let slots = self.slots.windows(2).map(|slots| &self.keys[slots[0]..slots[1]]);
        self.points.iter().zip(slots)
    }

    /// Columns of all runs, if these are in the store alone.
    pub const fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    fn slots(&self, point: usize) -> Range<usize> {
        self.slots[point]..self.slots[point + 1]
    }

    /// Puts the runs of a point together if they are held and all are there.
    fn unite(&mut self, point: usize) {
        let slots = self.slots(point);
        let runs = &mut self.results[slots];
        if self.place.holds() && self.open[point] == 0 && !runs.is_empty() {
            self.whole[point] = Some(Tables::concat(&runs.iter().map(|tables| &**tables.as_ref().expect("it is there"))));
            runs.fill(None);
        }
    }

    fn compute(
        &mut self,
        plan: &Plan,
        threads: Option<usize>,
        control: &mut Control<'_>,
        progress: impl Fn(usize) -> Progress,
    ) -> Result<(), Error> {
        let lacking = self.missing.len();
        let mut computed = 0;
        let outcome = self.compute_all(plan, threads, control, progress, &mut computed);
        // What is computed is kept whatever happened; the first failure is the one that is told.
        let error = match (outcome, self.flush_all(plan)) {
            (Ok(()), Ok(())) => return Ok(()),
            // These say that what is computed is kept.
            (Ok(()) | Err(Error::Cancelled | Error::Room { .. }), Err(error)) | (Err(error), _) => error,
        };
        let Error::Write { path, source } = error else { return Err(error) };
        let lost = self.unkept.values().map(Vec::len).sum();
        let total = self.keys.len();
        Err(Error::Keep { path, source, kept: total - lacking + computed - lost, lost, total })
    }

    /// This thread collects and keeps results, counts what is `computed` and reports progress; the others compute.
    fn compute_all(
        &mut self,
        plan: &Plan,
        threads: Option<usize>,
        control: &mut Control<'_>,
        progress: impl Fn(usize) -> Progress,
        computed: &mut usize,
    ) -> Result<(), Error> {
        let jobs = std::mem::take(&mut self.missing);
        let threads = cores_or(threads).clamp(1, jobs.len().max(1));
        let next = AtomicUsize::new(0);
        let (stop, around) = (control.cancel.clone(), control.around);
        let failed = Cancel::default();
        std::thread::scope(|scope| {
            // Where writing is slow, the others wait: what is computed and not written is bounded.
            let (sender, receiver) = mpsc::sync_channel(2 * threads);
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
                        *computed += 1;
                        tell = true;
                        if !self.place.holds() {
                            self.schemas.see(slot, &tables);
                        }
                        if self.place.store().is_some() {
                            self.unkept_octets += tables.octets();
                            self.unkept.entry(point).or_default().push(slot);
                        }
                        self.results[slot] = Some(Box::new(tables));
                        self.open[point] -= 1;
                        if self.open[point] == 0 {
                            let flushed = self.flush(plan, point);
                            // What could not be written is tried again, run by run.
                            if flushed.is_ok() {
                                self.unite(point);
                            }
                            outcome = outcome.and(flushed);
                        }
                    }
                    // A run that was stopped because another failed is not the failure to tell.
                    Ok((_, _, Err(error))) => outcome = if outcome.is_ok() { Err(error) } else { outcome },
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) => break,
                }
                if flushed.elapsed() >= FLUSH_EVERY || self.unkept_octets >= FLUSH_OCTETS {
                    flushed = Instant::now();
                    outcome = outcome.and(self.flush_all(plan)).and_then(|()| self.check_room());
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

    /// Whether the store can take what is to come.
    fn check_room(&self) -> Result<(), Error> {
        self.place.store().map_or(Ok(()), |store| self.growth.check(store.place()))
    }

    /// Keeps what can be kept; what cannot is tried again the next time. Says what failed first.
    fn flush_all(&mut self, plan: &Plan) -> Result<(), Error> {
        let points: Vec<usize> = self.unkept.keys().copied().collect();
        let mut outcome = Ok(());
        for point in points {
            outcome = outcome.and(self.flush(plan, point));
        }
        outcome
    }

    fn flush(&mut self, plan: &Plan, point: usize) -> Result<(), Error> {
        let (Some(store), Some(slots)) = (self.place.store(), self.unkept.get_mut(&point)) else { return Ok(()) };
        slots.sort_unstable();
        let runs: Vec<(Hash, &Tables)> =
            slots.iter().map(|slot| (self.keys[*slot], &**self.results[*slot].as_ref().expect("computed"))).collect();
        let octets = store.keep(&self.points[point], &runs)?;
        self.growth.wrote(runs.len() * transfers(plan, point), octets);
        let slots = self.unkept.remove(&point).unwrap_or_default();
        self.unkept_octets -=
            slots.iter().filter_map(|slot| self.results[*slot].as_ref()).map(|tables| tables.octets()).sum::<usize>();
        if !self.place.holds() {
            for slot in slots {
                self.results[slot] = None;
            }
        }
        Ok(())
    }
}

/// Runs at a time.
fn cores_or(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}

/// Refuses a plan whose tables cannot be held in memory.
pub fn check_held(plan: &Plan) -> Result<(), Error> {
    check_tables((0..plan.points.len()).map(|point| plan.points[point].runs.len() * transfers(plan, point)).sum())
}

/// Transfers in each run of a point.
fn transfers(plan: &Plan, point: usize) -> usize {
    plan.points[point].scenario.network().transfers.len()
}
