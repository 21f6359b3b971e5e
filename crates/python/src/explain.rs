//! Captures explained.

use crate::error::{told, InputError, WhylossError};
use crate::table::Table;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;
use whyloss_capture::analysis::{analyse, analyse_both_ends, Progress, Settings};
use whyloss_capture::connections::Place;
use whyloss_capture::detail::{self, Choice};
use whyloss_capture::records;
use whyloss_capture::replay::{self, Judges};
use whyloss_capture::report::Analysis;
use whyloss_capture::source::Source;
use whyloss_capture::{annotate, score, series, tables, CaptureError};

/// What is said of a capture.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Explanation(Analysis);

#[pymethods]
impl Explanation {
    /// The capture as a whole, as JSON.
    #[getter]
    fn facts(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.facts).map_err(|error| WhylossError::new_err(error.to_string()))
    }

    /// The table called `name`.
    fn table(&self, name: &str) -> PyResult<Table> {
        tables::get(&self.0, name).map(Table::from).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

/// Every segment of chosen connections of a capture.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Details(detail::Details);

#[pymethods]
impl Details {
    /// The table called `name`.
    fn table(&self, name: &str) -> PyResult<Table> {
        tables::detail(&self.0, name).map(Table::from).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    /// Segments that were not kept.
    #[getter]
    fn left_out(&self) -> u64 {
        self.0.left_out
    }
}

/// The names of the tables of an explanation.
#[pyfunction]
pub fn explanation_tables() -> Vec<&'static str> {
    tables::NAMES.to_vec()
}

/// The names of the tables of details.
#[pyfunction]
pub fn detail_tables() -> Vec<&'static str> {
    tables::DETAIL_NAMES.to_vec()
}

/// Captures as they are named on a command line: where they are, and what to call them.
type Captures = Vec<(PathBuf, Option<String>)>;

/// Explains captures, one after the other as if they were one; `-` is the standard input.
///
/// `watcher(packets)` is called now and then; if it returns false, what was read is explained. `judges` names the differentiator of the engine
/// that judges the losses, too, or is `all`. With `both_ends`, two captures are of the two ends of the same connections.
#[pyfunction]
#[pyo3(signature = (captures, at = None, watcher = None, judges = None, both_ends = false))]
pub fn explain(
    py: Python<'_>,
    captures: Captures,
    at: Option<&str>,
    watcher: Option<Py<PyAny>>,
    judges: Option<&str>,
    both_ends: bool,
) -> PyResult<Explanation> {
    let at = at.map(place).transpose()?;
    let judges = judges.map_or(Ok(Judges::None), named)?;
    let settings = Settings { at, judges, ..Settings::default() };
    if both_ends && captures.len() != 2 {
        let found = captures.len();
        return Err(InputError::new_err(format!("both_ends: found {found} captures; allowed are two, one of each end")));
    }
    let analysis = watched(py, watcher, |watch| {
        let mut watch = |progress: Progress| watch(progress.packets);
        if both_ends {
            return analyse_both_ends(&|end| Source::open(&captures[end as usize].0), &settings, &mut watch);
        }
        analyse(open(captures)?, &settings, &mut watch)
    })?;
    Ok(Explanation(analysis))
}

/// The files of a set in the order of their first packets.
#[pyfunction]
pub fn in_time_order(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<PathBuf>> {
    py.detach(|| records::in_time_order(paths)).map_err(|error| refuse(&error))
}

/// Reads captures again and keeps the segments of the connections with these numbers.
#[pyfunction]
#[pyo3(signature = (captures, explanation, connections, watcher = None))]
pub fn explain_details(
    py: Python<'_>,
    captures: Captures,
    explanation: &Explanation,
    connections: Vec<u64>,
    watcher: Option<Py<PyAny>>,
) -> PyResult<Details> {
    let wanted: HashSet<u64> = connections.into_iter().collect();
    let flows = explanation.0.flows.iter().filter(|flow| wanted.contains(&flow.connection));
    let chosen: Vec<_> =
        flows.map(|flow| Choice { connection: flow.connection, ends: (flow.sender, flow.receiver), began: flow.began }).collect();
    Ok(Details(watched(py, watcher, |watch| detail::record(open(captures)?, &chosen, watch))?))
}

/// Writes the packets of captures into a pcapng file, with the verdicts as comments; returns how many.
#[pyfunction]
#[pyo3(signature = (captures, explanation, summary, out, watcher = None))]
pub fn explain_annotate(
    py: Python<'_>,
    captures: Captures,
    explanation: &Explanation,
    summary: &str,
    out: PathBuf,
    watcher: Option<Py<PyAny>>,
) -> PyResult<u64> {
    let comments = annotate::comments(&explanation.0);
    let file = Box::new(File::create(&out)?);
    let name = out.display().to_string();
    watched(py, watcher, |watch| annotate::annotate(open(captures)?, &comments, summary, (&name, file), watch))
}

/// Reads captures again and compares what is said of them with what comments of ours hold: the counts and shares as JSON, and lines to print.
#[pyfunction]
#[pyo3(signature = (captures, explanation, watcher = None))]
pub fn explain_score(
    py: Python<'_>,
    captures: Captures,
    explanation: &Explanation,
    watcher: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let score = watched(py, watcher, |watch| score::score(open(captures)?, &explanation.0, watch))?;
    let shares: BTreeMap<_, _> = score.ratios().into_iter().collect();
    let told = serde_json::json!({ "shares": shares, "counts": score });
    Ok((told.to_string(), score.lines()))
}

/// Every copy of every data segment in captures, read one after the other as if they were one: a table of copies, one of directions of connections, and
/// how many copies were left out to keep `rows` at most.
#[pyfunction]
#[pyo3(signature = (captures, rows, watcher = None))]
pub fn capture_series(
    py: Python<'_>,
    captures: Captures,
    rows: usize,
    watcher: Option<Py<PyAny>>,
) -> PyResult<(Table, Table, u64)> {
    let series = watched(py, watcher, |watch| series::read(open(captures)?, rows, watch))?;
    Ok((series.copies().into(), series.ways().into(), series.left_out))
}

/// A pipe is read for it, which the interpreter may have to fill.
fn open(captures: Captures) -> Result<Vec<Source>, CaptureError> {
    let sources = captures.into_iter().map(|(path, name)| match name {
        Some(name) => Source::open_as(&path, name),
        None => Source::open(&path),
    });
    sources.collect()
}

/// Work without the interpreter, which is asked now and then whether to go on.
fn watched<T: Send>(
    py: Python<'_>,
    watcher: Option<Py<PyAny>>,
    work: impl Send + FnOnce(&mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<T, CaptureError>,
) -> PyResult<T> {
    let (result, raised) = py.detach(|| {
        let mut raised = None;
        let result = work(&mut |packets| {
            let go_on = Python::attach(|py| {
                py.check_signals()?;
                watcher.as_ref().map_or(Ok(true), |watcher| watcher.bind(py).call1((packets,))?.extract())
            });
            match go_on {
                Ok(true) => ControlFlow::Continue(()),
                Ok(false) => ControlFlow::Break(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        (result, raised)
    });
    match raised {
        Some(error) => Err(error),
        None => result.map_err(|error| refuse(&error)),
    }
}

/// Names of the differentiators that can judge captures.
#[pyfunction]
pub fn explanation_judges() -> Vec<&'static str> {
    replay::names().collect()
}

/// The differentiator called so, or `all`.
fn named(name: &str) -> PyResult<Judges> {
    if name == "all" {
        return Ok(Judges::All);
    }
    Judges::named(name).ok_or_else(|| {
        let names: Vec<_> = replay::names().collect();
        InputError::new_err(format!("differentiator: found `{name}`; allowed are `all`, `{}`", names.join("`, `")))
    })
}

fn place(name: &str) -> PyResult<Place> {
    Place::named(name)
        .ok_or_else(|| InputError::new_err(format!("at: found `{name}`; allowed are `sender`, `receiver` and `middle`")))
}

fn refuse(error: &CaptureError) -> PyErr {
    InputError::new_err(told(error))
}
