//! Scenarios for Python.

use crate::convert::{json, value};
use crate::error::raise;
use crate::interrupt;
use crate::table::Results;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::path::PathBuf;
use whyloss_lab::{Control, RunOptions, Scenario as LabScenario, TcpTransfer};

/// A network, what is sent over it, and what is written down: checked and complete. It never changes.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Scenario(pub LabScenario);

impl From<LabScenario> for Scenario {
    fn from(scenario: LabScenario) -> Self {
        Self(scenario)
    }
}

#[pymethods]
impl Scenario {
    /// Reads a scenario file.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        LabScenario::load(path).map(Self).map_err(|error| raise(&error))
    }

    /// Reads a scenario from TOML text.
    #[staticmethod]
    fn from_toml(text: &str, origin: &str) -> PyResult<Self> {
        LabScenario::from_toml(text, origin).map(Self).map_err(|error| raise(&error))
    }

    /// Takes over a scenario from JSON text with the fields of the file.
    #[staticmethod]
    fn from_json(text: &str, origin: &str) -> PyResult<Self> {
        LabScenario::from_json(&json(text)?, origin).map(Self).map_err(|error| raise(&error))
    }

    /// The scenario with other values in some fields: path and value as JSON.
    fn with_values(&self, values: Vec<(String, String)>) -> PyResult<Self> {
        let overrides = values.iter().map(|(field, text)| Ok((field.as_str(), value(text)?)));
        let overrides = overrides.collect::<PyResult<Vec<_>>>()?;
        self.0.with_overrides(overrides).map(Self).map_err(|error| raise(&error))
    }

    /// The scenario with overrides as on the command line, each `FIELD=VALUE`.
    fn with_arguments(&self, arguments: Vec<String>) -> PyResult<Self> {
        self.0.with_arguments(arguments.iter().map(String::as_str)).map(Self).map_err(|error| raise(&error))
    }

    /// The scenario with relative paths starting at `folder`.
    fn with_base(&self, folder: PathBuf) -> Self {
        Self(self.0.clone().with_base(folder))
    }

    /// Name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// All fields as JSON, defaults included.
    fn to_json(&self) -> String {
        self.0.to_json().to_string()
    }

    /// A digest of everything that decides run `run`, with the contents of the files that it names.
    fn digest(&self, run: u32) -> PyResult<String> {
        self.0.digest(run).map_err(|error| raise(&error))
    }

    /// When a run ends at the latest, in seconds.
    fn duration_s(&self) -> f64 {
        self.0.duration().as_secs_f64()
    }

    /// What is sent in run `run`: one dictionary a transfer.
    fn agenda<'py>(&self, py: Python<'py>, run: u32) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let transfers = self.0.tcp_transfers(run).map_err(|error| raise(&error.into()))?;
        transfers.iter().map(|transfer| describe(py, transfer)).collect()
    }

    /// Runs number `run` of the scenario.
    #[pyo3(signature = (run, captures = None, progress = None, pace = None))]
    fn run(
        &self,
        py: Python<'_>,
        run: u32,
        captures: Option<PathBuf>,
        progress: Option<&Bound<'_, PyAny>>,
        pace: Option<f64>,
    ) -> PyResult<Results> {
        let options = RunOptions { run, captures };
        let work = |control: &mut Control<'_>| {
            control.pace = pace;
            whyloss_lab::run(&self.0, &options, control)
        };
        interrupt::run(py, progress, work).map(Results::from)
    }

    /// Runs number `run` of the scenario, and writes the tables into `folder` while it runs, each with `notes` in its metadata. Gives the digest of
    /// each. A run that Ctrl-C stops has written what it has simulated until then.
    #[pyo3(signature = (folder, notes, run, captures = None, progress = None, pace = None))]
    #[allow(clippy::too_many_arguments)]
    fn save(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        notes: Vec<(String, String)>,
        run: u32,
        captures: Option<PathBuf>,
        progress: Option<&Bound<'_, PyAny>>,
        pace: Option<f64>,
    ) -> PyResult<BTreeMap<&'static str, String>> {
        let options = RunOptions { run, captures };
        let notes: Vec<(&str, &str)> = notes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let work = |control: &mut Control<'_>| {
            control.pace = pace;
            whyloss_lab::save_run(&self.0, &options, control, &folder, &notes)
        };
        let saved = interrupt::run(py, progress, work)?;
        Ok(saved.tables.into_iter().map(|table| (table.name, table.digest)).collect())
    }
}

fn describe<'py>(py: Python<'py>, transfer: &TcpTransfer) -> PyResult<Bound<'py, PyDict>> {
    let config = &transfer.config;
    let tcp = PyDict::new(py);
    tcp.set_item("mss", config.mss)?;
    tcp.set_item("initial_window", config.initial_window)?;
    tcp.set_item("receive_buffer", config.receive_buffer)?;
    tcp.set_item("send_buffer", config.send_buffer)?;
    tcp.set_item("min_rto_s", config.min_rto.as_secs_f64())?;
    for (name, switch) in [
        ("sack", config.sack),
        ("dsack", config.dsack),
        ("timestamps", config.timestamps),
        ("window_scaling", config.window_scaling),
        ("rack", config.rack),
        ("tlp", config.tlp),
        ("undo", config.undo),
        ("ecn", config.ecn),
    ] {
        tcp.set_item(name, switch)?;
    }
    let row = PyDict::new(py);
    row.set_item("name", &transfer.name)?;
    row.set_item("entry", transfer.entry)?;
    row.set_item("from", &transfer.from)?;
    row.set_item("to", &transfer.to)?;
    row.set_item("start_s", transfer.start.as_secs_f64())?;
    row.set_item("octets", transfer.octets)?;
    row.set_item("connections", transfer.connections)?;
    row.set_item("chunk", transfer.chunk)?;
    row.set_item("scheme", &transfer.scheme)?;
    row.set_item("tcp", tcp)?;
    Ok(row)
}
