//! The window of a congestion control in Python.

use super::events::PathInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use whyloss_transport::congestion::Window as EngineWindow;

/// Octets that a part may name: beyond them a window means nothing.
pub const MOST_OCTETS: f64 = 1e15;

/// A number of octets that a part names.
pub fn octets(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    let number = given.extract::<f64>().ok().filter(|number| (0.0..=MOST_OCTETS).contains(number));
    number.ok_or_else(|| PyValueError::new_err(format!("{given:?} is no number of octets; allowed: 0 to 1e15")))
}

/// Congestion window and slow-start threshold, in octets. Never less than one segment and two.
#[pyclass(module = "whyloss.parts")]
pub struct Window {
    pub engine: EngineWindow,
    /// Whether it can be read only.
    pub locked: bool,
}

impl Window {
    fn open(&mut self) -> PyResult<&mut EngineWindow> {
        if self.locked {
            return Err(PyTypeError::new_err(
                "the window cannot be changed here: only in on_established, on_ack, on_timeout and on_undo",
            ));
        }
        Ok(&mut self.engine)
    }
}

#[pymethods]
impl Window {
    #[getter]
    fn cwnd(&self) -> u64 {
        self.engine.cwnd()
    }
    #[setter]
    fn set_cwnd(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let octets = octets(given)?;
        self.open()?.set_cwnd(octets as u64);
        Ok(())
    }
    #[getter]
    fn ssthresh(&self) -> u64 {
        self.engine.ssthresh()
    }
    #[setter]
    fn set_ssthresh(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let octets = octets(given)?;
        self.open()?.set_ssthresh(octets as u64);
        Ok(())
    }
    #[getter]
    fn mss(&self) -> u32 {
        self.engine.mss()
    }
    #[getter]
    fn in_slow_start(&self) -> bool {
        self.engine.in_slow_start()
    }
    #[getter]
    fn slow_start_limit(&self) -> Option<u32> {
        self.engine.slow_start_limit()
    }
    fn used(&self, path: &PathInfo) -> u64 {
        self.engine.used(&path.0)
    }
    fn grow(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let octets = octets(given)?;
        self.open()?.grow(octets);
        Ok(())
    }
}
