//! Transfers between two hosts of the engine in a test bed.

use crate::error::{raise, WhylossError};
use crate::scenario::Scenario;
use crate::testbed::Bed;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::net::SocketAddr;
use std::sync::Mutex;
use whyloss_net::bulk::{BulkTransfer as Running, BulkTransferError, Load};
use whyloss_net::Host;
use whyloss_transport::stack::Settings;

const PORT: u16 = 5000;

/// A TCP transfer of a scenario, carried by the engine between guests of the hosts that it names.
#[pyclass(frozen, module = "whyloss._native")]
pub struct BulkTransfer(Mutex<Stage>);

enum Stage {
    Ready { ends: Box<[Host; 2]>, address: SocketAddr, load: Box<Load> },
    Running(Running),
    Ended { started_ns: u64, finished_ns: Option<u64>, delivered: u64 },
}

#[pymethods]
impl BulkTransfer {
    #[new]
    fn new(bed: &Bed, scenario: &Scenario, run: u32, number: usize) -> PyResult<Self> {
        let transfers = scenario.0.tcp_transfers(run).map_err(|error| raise(&error.into()))?;
        let count = transfers.len();
        let outside = || PyIndexError::new_err(format!("transfer {number} of {count}"));
        let transfer = transfers.into_iter().nth(number).ok_or_else(outside)?;
        let guest = u8::try_from(number + 1).ok().filter(|&guest| guest < 255).ok_or_else(outside)?;
        let host = |name: &str| {
            let (tun, address) = bed.add_guest(name, guest)?;
            let settings = Settings { addresses: vec![address], mtu: bed.mtu(), key: [guest; 16] };
            PyResult::Ok((Host::new(tun, settings), address))
        };
        let (sender, _) = host(&transfer.from)?;
        let (receiver, address) = host(&transfer.to)?;
        let load = Load {
            octets: transfer.octets,
            connections: transfer.connections,
            chunk: transfer.chunk as u32,
            selection: transfer.selection,
            config: transfer.config,
        };
        Ok(Self(Mutex::new(Stage::Ready {
            ends: Box::new([sender, receiver]),
            address: SocketAddr::new(address, PORT),
            load: Box::new(load),
        })))
    }

    /// Starts it at `at_ns` of the system's monotonic clock.
    fn start(&self, at_ns: u64) -> PyResult<()> {
        let mut stage = self.stage();
        let begun = Stage::Ended { started_ns: at_ns, finished_ns: None, delivered: 0 };
        match std::mem::replace(&mut *stage, begun) {
            Stage::Ready { ends, address, load } => {
                let [sender, receiver] = *ends;
                *stage = Stage::Running(Running::start(sender, receiver, address, at_ns, &load).map_err(|error| refuse(&error))?);
            }
            other => *stage = other,
        }
        Ok(())
    }

    /// When the connections were opened, in nanoseconds of the system's monotonic clock; 0 before.
    #[getter]
    fn started_ns(&self) -> u64 {
        match &*self.stage() {
            Stage::Ready { .. } => 0,
            Stage::Running(running) => running.started_ns(),
            Stage::Ended { started_ns, .. } => *started_ns,
        }
    }

    /// When everything had arrived, in nanoseconds of the system's monotonic clock.
    #[getter]
    fn finished_ns(&self) -> Option<u64> {
        match &*self.stage() {
            Stage::Ready { .. } => None,
            Stage::Running(running) => running.finished_ns(),
            Stage::Ended { finished_ns, .. } => *finished_ns,
        }
    }

    /// Octets that have arrived in order.
    #[getter]
    fn delivered(&self) -> u64 {
        match &*self.stage() {
            Stage::Ready { .. } => 0,
            Stage::Running(running) => running.delivered(),
            Stage::Ended { delivered, .. } => *delivered,
        }
    }

    /// Ends it and gives the number of retransmissions.
    fn stop(&self, py: Python<'_>) -> PyResult<u64> {
        let mut stage = self.stage();
        let ended = Stage::Ended { started_ns: 0, finished_ns: None, delivered: 0 };
        let Stage::Running(running) = std::mem::replace(&mut *stage, ended) else { return Ok(0) };
        let (started_ns, finished_ns, delivered) = (running.started_ns(), running.finished_ns(), running.delivered());
        *stage = Stage::Ended { started_ns, finished_ns, delivered };
        drop(stage);
        let stats = py.detach(|| running.stop()).map_err(|error| refuse(&error))?;
        Ok(stats.retransmissions)
    }
}

impl BulkTransfer {
    fn stage(&self) -> std::sync::MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn refuse(error: &BulkTransferError) -> PyErr {
    WhylossError::new_err(error.to_string())
}
