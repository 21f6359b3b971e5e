//! A plan on all cores.

use crate::control::{Cancel, Control};
use crate::error::Error;
use crate::key::{point_key, run_key};
use crate::labels::Labels;
use crate::patterns::{digests, Files};
use crate::store::{stem, Store};
use crate::sweep::Plan;
use crate::tables::Tables;
use crate::tree::Value;
use crate::work::{Place, Work};
use std::path::{Path, PathBuf};

/// How a plan is carried out. None of it changes a result.
#[derive(Clone, Debug, Default)]
pub struct ExecuteOptions {
    /// Folder in which results are kept and found again; nothing is kept without it.
    pub store: Option<PathBuf>,
    /// Number of threads; one for each core if nothing is said.
    pub threads: Option<usize>,
}

/// Carries out `plan`: takes from the store what is there, computes the rest on all cores, and keeps it. Tables hold all runs in the
/// order of the plan, whatever the number of threads.
///
/// When it fails or is cancelled, everything computed so far is kept in the store, if that can be written to.
pub fn execute(plan: &Plan, options: &ExecuteOptions, control: &mut Control<'_>) -> Result<Tables, Error> {
    let store = options.store.as_deref().map(Store::open).transpose()?;
    let work = Work::carry_out(plan, Place::Memory(store), options.threads, control)?;
    Ok(assemble(plan, &work.into_whole()))
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
    let mut listing = store.listing();
    let mut stretches: Vec<(u32, u32, u32)> = Vec::new();
    for point in &plan.points {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let key = point_key(&point.scenario.canonical());
        let kept = listing.keys(&key);
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

/// The points one after the other, with the columns of the sweep.
fn assemble(plan: &Plan, points: &[Option<Tables>]) -> Tables {
    let labels = Labels::of(plan);
    Tables::concat(&points.iter().flatten()).with_columns(&labels.fields(), |table| {
        let rows = |tables: &Option<Tables>| tables.as_ref().map_or(0, |tables| tables.all()[table].1.num_rows());
        let rows: Vec<(usize, usize)> = points.iter().map(rows).enumerate().collect();
        labels.arrays(&rows)
    })
}
