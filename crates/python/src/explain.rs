//! Captures explained.

use crate::error::{InputError, WhylossError};
use crate::table::Table;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::path::PathBuf;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::connections::Place;
use whyloss_capture::replay::{self, Judges};
use whyloss_capture::report::Analysis;
use whyloss_capture::source::Source;
use whyloss_capture::{tables, CaptureError};

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

/// The names of the tables of an explanation.
#[pyfunction]
pub fn explanation_tables() -> Vec<&'static str> {
    tables::NAMES.to_vec()
}

/// Explains captures, one after the other as if they were one; `-` is the standard input.
///
/// `watcher(packets)` is called now and then; if it returns false, what was read is explained. `judges` names the differentiator of the engine
/// that judges the losses, too, or is `all`.
#[pyfunction]
#[pyo3(signature = (paths, at = None, watcher = None, judges = None))]
pub fn explain(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    at: Option<&str>,
    watcher: Option<Py<PyAny>>,
    judges: Option<&str>,
) -> PyResult<Explanation> {
    let at = at.map(place).transpose()?;
    let judges = judges.map_or(Ok(Judges::None), named)?;
    let sources = paths.iter().map(|path| Source::open(path)).collect::<Result<Vec<_>, _>>().map_err(|error| refuse(&error))?;
    let settings = Settings { at, judges, ..Settings::default() };
    let mut raised = None;
    let analysis = py.detach(|| {
        analyse(sources, &settings, &mut |progress| {
            let go_on = Python::attach(|py| {
                py.check_signals()?;
                watcher.as_ref().map_or(Ok(true), |watcher| watcher.bind(py).call1((progress.packets,))?.extract())
            });
            match go_on {
                Ok(true) => ControlFlow::Continue(()),
                Ok(false) => ControlFlow::Break(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
    });
    match raised {
        Some(error) => Err(error),
        None => analysis.map(Explanation).map_err(|error| refuse(&error)),
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
    InputError::new_err(error.to_string())
}
