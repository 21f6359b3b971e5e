//! What stands for real packets on systems other than Linux: the same classes, of which none can be made.

use crate::error::UnavailableError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::convert::Infallible;

const MESSAGE: &str =
    "real packets need Linux, its TUN devices and network namespaces; simulations and captures need nothing of it";

macro_rules! absent {
    ($($name:ident)+) => {$(
        /// It cannot be made here, and says so.
        #[pyclass(frozen, module = "whyloss._native")]
        pub struct $name(#[allow(dead_code, reason = "there is none")] Infallible);

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (*_given, **_named))]
            fn new(_given: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                Err(UnavailableError::new_err(MESSAGE))
            }
        }
    )+};
}

absent! { Bed Bridge BulkTransfer WireHost }
