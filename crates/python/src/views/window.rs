//! The window of a congestion control in Python.

use super::events::PathInfo;
use super::numbers::octets as whole;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use whyloss_transport::congestion::Window as EngineWindow;

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
        let octets = whole(given)?;
        self.open()?.set_cwnd(octets as u64);
        Ok(())
    }
    #[getter]
    fn ssthresh(&self) -> u64 {
        self.engine.ssthresh()
    }
    #[setter]
    fn set_ssthresh(&mut self, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let octets = whole(given)?;
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
    fn grow(&mut self, octets: &Bound<'_, PyAny>) -> PyResult<()> {
        let octets = whole(octets)?;
        self.open()?.grow(octets);
        Ok(())
    }
}
