//! The kernel part: what `whyloss kernel` stands on. In a package without it every function but the counters' says so.

use crate::convert::to_python;
use crate::error::{InputError, WhylossError};
use pyo3::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use whyloss_kernel::{commands, Error, Result};

fn done<T: Serialize + Send>(py: Python<'_>, job: impl FnOnce() -> Result<T> + Send) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &py.detach(job).map_err(|error| raise(&error))?)
}

pub(crate) fn raise(error: &Error) -> PyErr {
    if error.is_refusal() {
        InputError::new_err(error.to_string())
    } else {
        WhylossError::new_err(error.to_string())
    }
}

/// What this kernel and this user can do.
#[pyfunction]
pub fn kernel_check(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    done(py, commands::check)
}

/// Loads controls, all if none is named.
#[pyfunction]
pub fn kernel_load(py: Python<'_>, controls: Vec<String>) -> PyResult<Bound<'_, PyAny>> {
    done(py, move || commands::load(&controls))
}

/// Controls that are loaded for as long as the object lives, or until `close`, and go with the process however that ends. No other command
/// sees them unless they are lent.
#[pyclass(frozen)]
pub struct KernelHeld(Mutex<Option<commands::Held>>);

#[pymethods]
impl KernelHeld {
    #[new]
    #[pyo3(signature = (controls, lend=false))]
    fn new(py: Python<'_>, controls: Vec<String>, lend: bool) -> PyResult<Self> {
        let load = move || if lend { commands::lend(&controls) } else { commands::hold(&controls) };
        let held = py.detach(load).map_err(|error| raise(&error))?;
        Ok(Self(Mutex::new(Some(held))))
    }

    /// Whether they are there: others can unload what is lent.
    fn is_there(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_some_and(commands::Held::is_there)
    }

    /// Takes them out of the kernel.
    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// Takes all programs of ours out of the kernel; those of another user, or of another process that runs, only by force.
#[pyfunction]
#[pyo3(signature = (force=false))]
pub fn kernel_unload(py: Python<'_>, force: bool) -> PyResult<Bound<'_, PyAny>> {
    done(py, move || commands::unload(force))
}

/// What taking them out would change, for whom.
#[pyfunction]
pub fn kernel_consequences(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    done(py, commands::consequences_of_unload)
}

/// What there is and what of it is loaded.
#[pyfunction]
pub fn kernel_list(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    done(py, commands::list)
}

/// Chooses the control of new connections.
#[pyfunction]
pub fn kernel_use(
    py: Python<'_>,
    control: String,
    port: Option<u16>,
    prefix: Option<String>,
    cgroup: Option<PathBuf>,
) -> PyResult<()> {
    done(py, move || commands::choose(Some(&control), port, prefix.as_deref(), cgroup.as_deref()))?;
    Ok(())
}

/// Takes such a choice back.
#[pyfunction]
pub fn kernel_take_back(py: Python<'_>, port: Option<u16>, prefix: Option<String>, cgroup: Option<PathBuf>) -> PyResult<()> {
    done(py, move || commands::choose(None, port, prefix.as_deref(), cgroup.as_deref()))?;
    Ok(())
}

/// What has been counted.
#[pyfunction]
pub fn kernel_stat(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    done(py, commands::stat)
}

/// The control that carries out each of the engine's schemes that one does, by the scheme's name.
#[pyfunction]
pub fn kernel_schemes() -> BTreeMap<&'static str, &'static str> {
    whyloss_kernel::controls::by_scheme().collect()
}

/// What each counter of a control counts.
#[pyfunction]
pub fn kernel_counters() -> Vec<(&'static str, &'static str)> {
    commands::counters()
}

/// What each counter of reports counts.
#[pyfunction]
pub fn kernel_report_counters() -> Vec<(&'static str, &'static str)> {
    commands::report_counters()
}
