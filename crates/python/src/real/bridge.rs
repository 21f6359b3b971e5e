//! A link between two TUN devices for Python.

use super::emulation::{refuse, Emulation, Wishes};
use crate::error::{raise, InputError, UnavailableError, WhylossError};
use crate::scenario::Scenario;
use crate::table::Table;
use pyo3::prelude::*;
use std::io::ErrorKind;
use whyloss_net::{Emulator, Tun};

/// The `[path]` of a scenario between two TUN devices of this machine.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Bridge {
    emulation: Emulation<Emulator>,
    ends: [String; 2],
}

#[pymethods]
impl Bridge {
    #[new]
    fn new(scenario: &Scenario, wishes: Wishes, devices: [String; 2]) -> PyResult<Self> {
        let wires = scenario.0.wires(wishes.run).map_err(|error| raise(&error))?;
        let [link] = &wires.links[..] else {
            let (name, found) = (scenario.0.name(), wires.links.len());
            return Err(InputError::new_err(format!(
                "{name}: there are {found} links; allowed is a [path] or one [[link]] between two devices, more make a test bed",
            )));
        };
        let ends = link.ends.map(|end| wires.nodes[end].name.clone());
        let (chains, agent) = (link.ways.clone(), link.agent.clone());
        let emulation = Emulation::start(wires, &wishes, |options| {
            let tuns = [open(&devices[0])?, open(&devices[1])?];
            Emulator::start_assisted(tuns, chains, agent.as_ref(), options).map_err(|error| refuse(&error))
        })?;
        Ok(Self { emulation, ends })
    }

    /// What the scenario calls the hosts at the two ends.
    #[getter]
    fn ends(&self) -> [&str; 2] {
        [&self.ends[0], &self.ends[1]]
    }

    /// Whether it is at work.
    #[getter]
    fn running(&self) -> bool {
        self.emulation.get().is_ok_and(|emulator| emulator.is_running())
    }

    /// Makes the link that of another scenario; gives the number of changes.
    fn change(&self, py: Python<'_>, scenario: Py<Scenario>) -> PyResult<usize> {
        self.emulation.change(py, scenario.get(), |emulator, one| emulator.change(one.way, one.hop, one.change))
    }

    /// What each direction has done so far, or had done at the end.
    fn audit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.emulation.audit(py, Emulator::audit)
    }

    /// The truth about each packet whose fate is known.
    fn truth(&self, py: Python<'_>) -> PyResult<Table> {
        self.emulation.truth(py)
    }

    /// Ends it: the devices forward no more packets. What was counted stays.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.emulation.close(py, |emulator| emulator.stop().map_err(|error| refuse(&error)))
    }
}

fn open(name: &str) -> PyResult<Tun> {
    Tun::open(name).map_err(|error| {
        let message = format!("TUN device `{name}`: {error}");
        match error.kind() {
            ErrorKind::PermissionDenied => UnavailableError::new_err(format!("{message} (root is needed)")),
            ErrorKind::NotFound => UnavailableError::new_err(format!("{message} (/dev/net/tun is missing)")),
            _ => WhylossError::new_err(message),
        }
    })
}
