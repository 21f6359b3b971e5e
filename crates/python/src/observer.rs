//! The observer of this machine's connections, for `whyloss top`. In a package without the kernel part there is none, and it says so.

use crate::convert::to_python;
use crate::kernel::raise;
use pyo3::prelude::*;
use std::cell::RefCell;

#[cfg(feature = "kernel")]
mod watching {
    use whyloss_kernel::place::Place;
    pub use whyloss_kernel::top::{Observer as Watching, Snapshot};
    use whyloss_kernel::Result;

    pub fn begin() -> Result<Watching> {
        Watching::new(Place::default())
    }

    pub fn drain(watching: &Watching) -> Result<()> {
        watching.drain()
    }

    pub fn snapshot(watching: &mut Watching) -> Result<Snapshot> {
        watching.snapshot()
    }
}

#[cfg(not(feature = "kernel"))]
mod watching {
    pub use std::convert::Infallible as Watching;
    use whyloss_kernel::{Error, Result};

    pub fn begin() -> Result<Watching> {
        Err(Error::NotBuilt)
    }

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "as the function that it stands for")]
    pub fn drain(watching: &Watching) -> Result<()> {
        match *watching {}
    }

    pub fn snapshot(watching: &mut Watching) -> Result<()> {
        match *watching {}
    }
}

/// Watches every TCP connection of the machine for as long as the object lives, or until `close`.
#[pyclass(unsendable, frozen)]
pub struct Observer(RefCell<Option<watching::Watching>>);

#[pymethods]
impl Observer {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(RefCell::new(Some(watching::begin().map_err(|error| raise(&error))?))))
    }

    /// Takes in connections that have ended.
    fn drain(&self) -> PyResult<()> {
        self.0.borrow().as_ref().map_or(Ok(()), watching::drain).map_err(|error| raise(&error))
    }

    /// All connections now, and those that have ended since the last call; `None` after `close`.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let seen = self.0.borrow_mut().as_mut().map(watching::snapshot).transpose();
        to_python(py, &seen.map_err(|error| raise(&error))?)
    }

    /// Takes the programs out of the kernel.
    fn close(&self) {
        self.0.borrow_mut().take();
    }
}
