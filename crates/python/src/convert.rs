//! Values between Python and the lab, by way of JSON: it is the lab's own second notation, so both sides agree on it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use whyloss_lab::{Located, Value};

/// What messages call values that come from Python.
const ORIGIN: &str = "";

/// The JSON document `text`.
pub fn json(text: &str) -> PyResult<serde_json::Value> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The JSON document `text` as a value of a field.
pub fn node(text: &str) -> PyResult<Located> {
    Ok(Located::from_json(&json(text)?, ORIGIN))
}

/// The JSON document `text` as a label.
pub fn value(text: &str) -> PyResult<Value> {
    Ok(node(text)?.value)
}

/// `value` as plain Python lists, dictionaries, strings and numbers.
pub fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

/// A label as Python has it: a number, a flag or a text.
pub fn label<'py>(py: Python<'py>, label: &Value) -> PyResult<Bound<'py, PyAny>> {
    to_python(py, &Located::new(label.clone(), ORIGIN).to_json())
}
