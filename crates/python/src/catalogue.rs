//! What there is to choose from, and what it means.

use crate::convert::to_python;
use crate::error::raise;
use pyo3::prelude::*;

/// All named schemes, as `describe` tells of them.
#[pyfunction]
pub fn schemes(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &whyloss_lab::schemes())
}

/// All parts of all roles.
#[pyfunction]
pub fn parts(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &whyloss_lab::parts())
}

/// Causes of losses, each with its class: name and `congestion` or `corruption`.
#[pyfunction]
pub fn causes() -> Vec<(&'static str, &'static str)> {
    whyloss_lab::causes()
}

/// All profiles, as `describe` tells of them.
#[pyfunction]
pub fn profiles(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &whyloss_lab::profiles())
}

/// Everything that is called `name`: schemes, parts, profiles, fields.
#[pyfunction]
pub fn describe<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &whyloss_lab::describe(name).map_err(|error| raise(&error))?)
}

/// The JSON Schema of a scenario file.
#[pyfunction]
pub fn scenario_schema(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &whyloss_lab::schema())
}

/// The JSON Schema of a sweep file.
#[pyfunction]
pub fn sweep_schema(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &whyloss_lab::sweep_schema())
}
