//! Test beds for Python: the wires of a scenario between real hosts.

use super::emulation::{refuse as refuse_link, Emulation, Wishes};
use crate::error::{raise, InputError, UnavailableError, WhylossError};
use crate::scenario::Scenario;
use crate::table::Table;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use std::net::IpAddr;
use std::path::PathBuf;
use whyloss_net::testbed::{Plan, Testbed, TestbedError};
use whyloss_net::Tun;

/// A test bed. The Python class around it has the words for people.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Bed {
    emulation: Emulation<Testbed>,
    plan: Plan,
}

impl Bed {
    /// A guest behind a node: a device that leads to it, and its address.
    pub fn add_guest(&self, name: &str, guest: u8) -> PyResult<(Tun, IpAddr)> {
        self.emulation.get()?.add_guest(self.find(name)?, guest).map_err(refuse)
    }

    /// The longest IP packet that a link takes, in octets.
    pub fn mtu(&self) -> u16 {
        self.plan.mtu
    }

    fn find(&self, name: &str) -> PyResult<usize> {
        self.plan.find(name).ok_or_else(|| {
            let names: Vec<_> = self.plan.nodes.iter().map(|node| node.name.as_str()).collect();
            PyKeyError::new_err(format!("there is no host or router `{name}`; there are {}", names.join(", ")))
        })
    }

    fn names(&self, routers: bool) -> Vec<&str> {
        self.plan.nodes.iter().filter(|node| node.router == routers).map(|node| node.name.as_str()).collect()
    }
}

#[pymethods]
impl Bed {
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, wishes: Wishes, mtu: u16) -> PyResult<Self> {
        let wires = scenario.0.wires(wishes.run).map_err(|error| raise(&error))?;
        let plan = Plan { nodes: wires.nodes.clone(), links: wires.links.clone(), mtu };
        let emulation =
            Emulation::start(wires, &wishes, |options| py.detach(|| Testbed::new(plan.clone(), options)).map_err(refuse))?;
        Ok(Self { emulation, plan })
    }

    /// Names of the hosts.
    #[getter]
    fn hosts(&self) -> Vec<&str> {
        self.names(false)
    }

    /// Names of the routers.
    #[getter]
    fn routers(&self) -> Vec<&str> {
        self.names(true)
    }

    /// An address of a node.
    fn address(&self, name: &str, v6: bool) -> PyResult<String> {
        Ok(self.plan.address(self.find(name)?, v6).to_string())
    }

    /// Where its network namespace can be entered.
    fn namespace_path(&self, name: &str) -> PyResult<PathBuf> {
        Ok(self.emulation.get()?.namespace_path(self.find(name)?))
    }

    /// Calls `start()` where processes of a node are started, and gives what it gives.
    fn start(&self, py: Python<'_>, name: &str, start: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let (bed, node) = (self.emulation.get()?, self.find(name)?);
        let started = py.detach(|| bed.start_by(node, move || Python::attach(|py| start.call0(py))));
        started.map_err(|error| WhylossError::new_err(error.to_string()))?
    }

    /// Calls `job()` on a thread of its own in the network of a node, and gives what it gives.
    fn inside(&self, py: Python<'_>, name: &str, job: Py<PyAny>) -> PyResult<Py<PyAny>> {
        let (bed, node) = (self.emulation.get()?, self.find(name)?);
        py.detach(|| bed.namespace(node).run(|| Python::attach(|py| job.call0(py))))
    }

    /// Makes the links those of another scenario; gives the number of changes.
    fn change(&self, py: Python<'_>, scenario: Py<Scenario>) -> PyResult<usize> {
        self.emulation.change(py, scenario.get(), |bed, one| bed.emulators()[one.link].change(one.way, one.hop, one.change))
    }

    /// What each direction of each link has done so far, or had done at the end.
    fn audit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.emulation.audit(py, Testbed::audit)
    }

    /// The truth about each packet whose fate is known.
    fn truth(&self, py: Python<'_>) -> PyResult<Table> {
        self.emulation.truth(py)
    }

    /// Ends all processes and links. What was counted stays.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.emulation.close(py, |bed| bed.stop().map_err(refuse))
    }
}

fn refuse(error: TestbedError) -> PyErr {
    match error {
        TestbedError::Unavailable(_) => UnavailableError::new_err(error.to_string()),
        TestbedError::Plan(_) => InputError::new_err(error.to_string()),
        TestbedError::Emulate(error) => refuse_link(&error),
        TestbedError::System { .. } => WhylossError::new_err(error.to_string()),
    }
}
