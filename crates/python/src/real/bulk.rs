//! Transfers between two hosts of the engine in a test bed.

use super::testbed::Bed;
use crate::error::{raise, WhylossError};
use crate::scenario::Scenario;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::net::SocketAddr;
use whyloss_net::bulk::{BulkTransferError, Load};
use whyloss_net::Host;
use whyloss_transport::stack::Settings;

const PORT: u16 = 5000;

/// A TCP transfer of a scenario, carried by the engine between guests of the hosts that it names.
#[pyclass(frozen, module = "whyloss._native")]
pub struct BulkTransfer(whyloss_net::bulk::BulkTransfer);

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
        Ok(Self(whyloss_net::bulk::BulkTransfer::new(sender, receiver, SocketAddr::new(address, PORT), load)))
    }

    /// Starts it at `at_ns` of the system's monotonic clock.
    fn start(&self, at_ns: u64) -> PyResult<()> {
        self.0.start(at_ns).map_err(|error| refuse(&error))
    }

    /// When the connections were opened, in nanoseconds of the system's monotonic clock; 0 before.
    #[getter]
    fn started_ns(&self) -> u64 {
        self.0.started_ns()
    }

    /// When everything had arrived, in nanoseconds of the system's monotonic clock.
    #[getter]
    fn finished_ns(&self) -> Option<u64> {
        self.0.finished_ns()
    }

    /// Octets that have arrived in order.
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered()
    }

    /// Ends it and gives the number of retransmissions.
    fn stop(&self, py: Python<'_>) -> PyResult<u64> {
        let stats = py.detach(|| self.0.stop()).map_err(|error| refuse(&error))?;
        Ok(stats.retransmissions)
    }
}

fn refuse(error: &BulkTransferError) -> PyErr {
    WhylossError::new_err(error.to_string())
}
