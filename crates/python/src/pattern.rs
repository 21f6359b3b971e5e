//! Bit-error pattern files.

use crate::error::raise;
use pyo3::prelude::*;
use std::path::PathBuf;

/// Draws a pattern for `bits` bits, each in error independently with probability `ber`, and writes it to `path`: whole, or not at all.
#[pyfunction]
pub fn write_pattern(py: Python<'_>, path: PathBuf, ber: f64, bits: u64, seed: u64) -> PyResult<()> {
    py.detach(|| whyloss_lab::patterns::generate(path, ber, bits, seed)).map_err(|error| raise(&error))
}
