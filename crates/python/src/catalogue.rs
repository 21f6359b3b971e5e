//! The engine's tables of schemes, parts and profiles as plain Python values.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use whyloss_transport::scheme::{Parameter, Part, Value, SCHEMES};
use whyloss_transport::tcp::PROFILES;
use whyloss_transport::{congestion, differentiation, reaction, receiver, timeout};

/// All named schemes: one dictionary each, with `name`, `summary`, `reference` and the name of its part in each role.
#[pyfunction]
pub fn schemes(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    SCHEMES
        .iter()
        .map(|scheme| {
            let row = PyDict::new(py);
            row.set_item("name", scheme.name)?;
            row.set_item("summary", scheme.summary)?;
            row.set_item("reference", scheme.reference)?;
            row.set_item("congestion", scheme.congestion)?;
            row.set_item("differentiator", scheme.differentiator)?;
            row.set_item("reaction", scheme.reaction)?;
            row.set_item("timeout", scheme.timeout)?;
            row.set_item("receiver", scheme.receiver)?;
            Ok(row)
        })
        .collect()
}

/// All parts: one dictionary each, with `role`, `name`, `summary`, `reference` and `parameters`.
#[pyfunction]
pub fn parts(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let mut rows = Vec::new();
    add(py, &mut rows, "congestion", congestion::TABLE)?;
    add(py, &mut rows, "differentiator", differentiation::TABLE)?;
    add(py, &mut rows, "reaction", reaction::TABLE)?;
    add(py, &mut rows, "timeout", timeout::TABLE)?;
    add(py, &mut rows, "receiver", receiver::TABLE)?;
    Ok(rows)
}

/// The names of the profiles of the engine's configuration.
#[pyfunction]
pub fn profiles() -> Vec<&'static str> {
    PROFILES.iter().map(|(name, _)| *name).collect()
}

fn add<'py, T: ?Sized>(py: Python<'py>, rows: &mut Vec<Bound<'py, PyDict>>, role: &str, table: &[Part<T>]) -> PyResult<()> {
    for part in table {
        let row = PyDict::new(py);
        row.set_item("role", role)?;
        row.set_item("name", part.name)?;
        row.set_item("summary", part.summary)?;
        row.set_item("reference", part.reference)?;
        row.set_item("parameters", part.parameters.iter().map(|p| parameter(py, p)).collect::<PyResult<Vec<_>>>()?)?;
        rows.push(row);
    }
    Ok(())
}

fn parameter<'py>(py: Python<'py>, parameter: &Parameter) -> PyResult<Bound<'py, PyDict>> {
    let row = PyDict::new(py);
    row.set_item("name", parameter.name)?;
    row.set_item("summary", parameter.summary)?;
    row.set_item("allowed", parameter.kind.to_string())?;
    match parameter.kind.default_value() {
        Value::Number(number) => row.set_item("default", number)?,
        Value::Flag(flag) => row.set_item("default", flag)?,
        Value::Word(word) => row.set_item("default", word)?,
    }
    Ok(row)
}
