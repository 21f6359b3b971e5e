//! Numbers that parts in Python name.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Octets that a part may name: beyond them a window means nothing.
pub const MOST_OCTETS: f64 = 1e15;

/// A number of octets that a part names.
pub fn octets(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    let number = given.extract::<f64>().ok().filter(|number| (0.0..=MOST_OCTETS).contains(number));
    number.ok_or_else(|| PyValueError::new_err(format!("{given:?} is no number of octets; allowed: 0 to 1e15")))
}
