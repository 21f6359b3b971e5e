//! The tables of a plan or of a run as files, never held in memory.

use crate::control::Control;
use crate::error::Error;
use crate::labels::Labels;
use crate::run::{run_apart, RunOptions};
use crate::scenario::Scenario;
use crate::store::Store;
use crate::sweep::Plan;
use crate::tables::{with_fields, Saved, Tables, Writer, Written, NAMES, SERIES};
use crate::work::{Place, Work};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::path::Path;
use std::sync::Arc;
use whyloss_sim::RunOutcome;

/// Carries out `plan` as [`execute`](crate::execute()) does, and writes its tables into `folder` as [`Tables::write_parquet`] does: the same
/// files come out. It never holds them, only the runs of a few parts of the store, and the rows of a row group of each table.
///
/// # Errors
/// Beside those of [`execute`](crate::execute()): somebody took runs out of the store meanwhile. Files that were in `folder` are as they were then.
pub fn save(
    plan: &Plan,
    store: &Path,
    threads: Option<usize>,
    control: &mut Control<'_>,
    folder: &Path,
    notes: &[(&str, &str)],
) -> Result<[Saved; NAMES.len()], Error> {
    let store = Store::open(store)?;
    let work = Work::carry_out(plan, Place::Store(store.clone()), threads, control)?;
    let mut sheets = Sheets::create(folder, Labels::of(plan), work.schemas().united(), notes)?;
    let mut listing = store.listing();
    for (point, (key, runs)) in work.points().enumerate() {
        let mut kept = listing.runs(key);
        for run in runs {
            if control.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            sheets.add(point, kept.take(run).ok_or_else(|| store.lacks(key))?)?;
        }
    }
    sheets.finish()
}

/// A run that was written to files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedRun {
    /// It was not cancelled.
    pub complete: bool,
    /// What was written of each table.
    pub tables: [Saved; NAMES.len()],
}

/// Runs a scenario once as [`run`](crate::run) does, and writes its tables into `folder` as [`Tables::write_parquet`] does: the same files come out.
/// Rows are written while the run goes on, as soon as nothing can change them any more: a long run takes no more memory than a short one.
///
/// A run that is cancelled writes what it has simulated until then; its `outcome` is `cancelled`.
///
/// # Errors
/// Those of [`run`](crate::run), and if a file cannot be written. Then files that were in `folder` are as they were.
pub fn save_run(
    scenario: &Scenario,
    options: &RunOptions,
    control: &mut Control<'_>,
    folder: &Path,
    notes: &[(&str, &str)],
) -> Result<SavedRun, Error> {
    let mut series: Vec<Writer> = Vec::new();
    let write = |writers: &mut Vec<Writer>, rows: &[&RecordBatch]| {
        if writers.is_empty() {
            let create = |(name, rows): (&'static str, &&RecordBatch)| Writer::create(folder, name, &rows.schema(), notes);
            *writers = NAMES[SERIES].iter().copied().zip(rows).map(create).collect::<Result<_, _>>()?;
        }
        writers.iter_mut().zip(rows).try_for_each(|(writer, rows)| writer.write(rows))
    };
    let (outcome, rest) =
        run_apart(scenario, options, control, &mut |rows| write(&mut series, &rows.iter().collect::<Vec<_>>()))?;
    let tables = rest.all();
    write(&mut series, &tables[SERIES].iter().map(|(_, rows)| *rows).collect::<Vec<_>>())?;
    let mut series = series.into_iter();
    let mut written = Vec::with_capacity(NAMES.len());
    for (index, (name, rows)) in tables.into_iter().enumerate() {
        let writer = if SERIES.contains(&index) {
            series.next().expect("one for each")
        } else {
            let mut writer = Writer::create(folder, name, &rows.schema(), notes)?;
            writer.write(rows)?;
            writer
        };
        written.push(writer.finish()?);
    }
    let saved = written.into_iter().map(Written::keep).collect::<Result<Vec<_>, _>>()?;
    let tables = saved.try_into().expect("as many as there are names");
    Ok(SavedRun { complete: outcome != RunOutcome::Cancelled, tables })
}

/// The tables of a sweep on their way to files.
struct Sheets {
    writers: Vec<Writer>,
    labels: Labels,
    /// Columns of the tables, without those of the sweep.
    schemas: [SchemaRef; NAMES.len()],
    /// Runs that are written next, with their points: many columns with few rows take much longer than few with many.
    waiting: Vec<(usize, Tables)>,
    /// Rows in these.
    rows: usize,
}

/// Runs and rows that are written at once, at most.
const RUNS: usize = 512;
const ROWS: usize = 64 * 1024;

impl Sheets {
    fn create(folder: &Path, labels: Labels, schemas: [SchemaRef; NAMES.len()], notes: &[(&str, &str)]) -> Result<Self, Error> {
        let fields = labels.fields();
        let writer =
            |(name, schema): (_, &SchemaRef)| Writer::create(folder, name, &Arc::new(with_fields(schema, &fields)), notes);
        let writers = NAMES.into_iter().zip(&schemas).map(writer).collect::<Result<_, _>>()?;
        Ok(Self { writers, labels, schemas, waiting: Vec::new(), rows: 0 })
    }

    fn add(&mut self, point: usize, tables: Tables) -> Result<(), Error> {
        self.rows += tables.all().into_iter().map(|(_, table)| table.num_rows()).sum::<usize>();
        self.waiting.push((point, tables));
        if self.waiting.len() >= RUNS || self.rows >= ROWS {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        self.rows = 0;
        if waiting.is_empty() {
            return Ok(());
        }
        let together = Tables::concat(&waiting.iter().map(|(_, tables)| tables)).widened(&self.schemas);
        let labelled = together.with_columns(&self.labels.fields(), |table| {
            let rows: Vec<_> = waiting.iter().map(|(point, tables)| (*point, tables.all()[table].1.num_rows())).collect();
            self.labels.arrays(&rows)
        });
        for (writer, (_, table)) in self.writers.iter_mut().zip(labelled.all()) {
            writer.write(table)?;
        }
        Ok(())
    }

    /// Puts all files in their places, once all are whole.
    fn finish(mut self) -> Result<[Saved; NAMES.len()], Error> {
        self.write()?;
        let written = self.writers.into_iter().map(Writer::finish).collect::<Result<Vec<_>, _>>()?;
        let saved = written.into_iter().map(Written::keep).collect::<Result<Vec<_>, _>>()?;
        Ok(saved.try_into().expect("as many as there are names"))
    }
}
