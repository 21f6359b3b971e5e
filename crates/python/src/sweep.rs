//! Sweeps for Python.

use crate::convert::{json, label, node, value};
use crate::error::raise;
use crate::interrupt;
use crate::scenario::Scenario;
use crate::table::Results;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use whyloss_lab::{Axis, AxisStep, ExecuteOptions, Located, Plan, Precision as LabPrecision, Sweep as LabSweep, Value};

/// A scenario, changed along axes, each point run several times. It never changes.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Sweep {
    whole: LabSweep,
    /// Axis and labels that the points are restricted to.
    only: Vec<(String, Vec<Value>)>,
    /// Numbers of the points that it is restricted to, if it is.
    at: Option<BTreeSet<u32>>,
}

/// How well the answer of a sweep is to be known.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Precision(LabPrecision);

#[pymethods]
impl Precision {
    /// Half the width of the interval, as a share of the mean.
    #[getter]
    const fn share(&self) -> f64 {
        self.0.share
    }

    /// The table that has what is to be known.
    #[getter]
    const fn table(&self) -> &str {
        self.0.table
    }

    /// Its column there.
    #[getter]
    const fn column(&self) -> &str {
        self.0.column
    }

    /// The label of the step on some axes that others are compared with, by the axis.
    #[getter]
    fn against<'py>(&self, py: Python<'py>) -> PyResult<BTreeMap<String, Bound<'py, PyAny>>> {
        self.0.against.iter().map(|(axis, step)| Ok((axis.clone(), label(py, step)?))).collect()
    }

    /// Runs of all points together, at most.
    #[getter]
    const fn budget(&self) -> usize {
        self.0.budget
    }
}

#[pymethods]
impl Sweep {
    /// Reads a sweep file.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Self> {
        LabSweep::load(path).map(Self::of).map_err(|error| raise(&error))
    }

    /// Reads a sweep from TOML text; relative paths in it start at `folder`.
    #[staticmethod]
    fn from_toml(text: &str, origin: &str, folder: PathBuf) -> PyResult<Self> {
        LabSweep::from_toml(text, origin, folder).map(Self::of).map_err(|error| raise(&error))
    }

    /// A scenario run `runs` times.
    #[staticmethod]
    fn repeat(scenario: &Scenario, runs: u32) -> Self {
        Self::of(LabSweep::repeat(scenario.0.clone(), runs))
    }

    /// Adds an axis: its steps, each with its label as JSON and the fields that it changes with their values as JSON.
    fn with_axis(&self, name: String, steps: Vec<(String, Vec<(String, String)>)>) -> PyResult<Self> {
        let steps = steps
            .into_iter()
            .map(|(label, fields)| {
                let set = fields.into_iter().map(|(field, json)| Ok((field, node(&json)?))).collect::<PyResult<_>>()?;
                Ok(AxisStep { label: value(&label)?, set })
            })
            .collect::<PyResult<_>>()?;
        Ok(self.with(self.whole.clone().with_axis(Axis { name, steps })))
    }

    /// The sweep with overrides as on the command line, each `FIELD=VALUE`.
    fn with_arguments(&self, arguments: Vec<String>) -> PyResult<Self> {
        let sweep = arguments.iter().try_fold(self.whole.clone(), |sweep, argument| sweep.with_argument(argument));
        Ok(self.with(sweep.map_err(|error| raise(&error))?))
    }

    /// The sweep with the runs `first` to `first + count - 1` of each point.
    fn with_runs(&self, first: u32, count: u32) -> PyResult<Self> {
        Ok(self.with(self.whole.clone().with_runs_from(first, count).map_err(|error| raise(&error))?))
    }

    /// The sweep with so many runs of each point that `counts` has by its number.
    fn with_run_counts(&self, counts: BTreeMap<u32, u32>) -> Self {
        self.with(self.whole.clone().with_run_counts(counts))
    }

    /// The sweep, whose `quantity` is to be known by `share` of its mean, a number or such as `"2 %"`, both as JSON; `against` has
    /// the label of a step on some axes, as JSON.
    #[pyo3(signature = (share, quantity = None, against = Vec::new(), budget = None))]
    fn with_precision(
        &self,
        share: &str,
        quantity: Option<&str>,
        against: Vec<(String, String)>,
        budget: Option<u64>,
    ) -> PyResult<Self> {
        let share = serde_json::from_str(share).map_err(|_| raise(&LabPrecision::no_share(share).into()))?;
        let against = against.into_iter().map(|(axis, label)| Ok((axis, value(&label)?))).collect::<PyResult<_>>()?;
        let precision = LabPrecision::new(share, quantity, against, budget, self.whole.axes());
        Ok(self.with(self.whole.clone().with_precision(Some(precision.map_err(|error| raise(&error.into()))?))))
    }

    /// The sweep with the runs that it has, however well its answer is known then.
    fn without_precision(&self) -> Self {
        self.with(self.whole.clone().with_precision(None))
    }

    /// How well its answer is to be known, if anybody has asked for it.
    #[getter]
    fn precision(&self) -> Option<Precision> {
        self.whole.precision().cloned().map(Precision)
    }

    /// The runs of all points: number of the point, first run, how many follow each other.
    fn stretches(&self, py: Python<'_>) -> PyResult<Vec<(u32, u32, u32)>> {
        Ok(self.plan(py)?.points.iter().map(|point| (point.index, point.runs.start, point.runs.len() as u32)).collect())
    }

    /// Only the points whose step on the axis `name` is called one of `labels`, each as JSON.
    fn only(&self, py: Python<'_>, name: String, labels: Vec<String>) -> PyResult<Self> {
        let labels = labels.iter().map(|label| value(label)).collect::<PyResult<_>>()?;
        let mut only = self.only.clone();
        only.push((name, labels));
        let narrowed = Self { whole: self.whole.clone(), only, at: self.at.clone() };
        narrowed.plan(py)?;
        Ok(narrowed)
    }

    /// Only the points with these numbers, counted over all axes.
    fn at(&self, points: BTreeSet<u32>) -> Self {
        Self { whole: self.whole.clone(), only: self.only.clone(), at: Some(points) }
    }

    /// Name of the sweep.
    #[getter]
    fn name(&self) -> &str {
        self.whole.name()
    }

    /// What it is for.
    #[getter]
    fn description(&self) -> &str {
        self.whole.description()
    }

    /// Number of the first run of each point.
    #[getter]
    fn first_run(&self) -> u32 {
        self.whole.runs().start
    }

    /// Names of its axes.
    #[getter]
    fn axes(&self) -> Vec<String> {
        self.whole.axes().iter().map(|axis| axis.name.clone()).collect()
    }

    /// What tables call the steps of the axis `name`; nothing if there is no such axis.
    fn labels<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let axis = self.whole.axes().iter().find(|axis| axis.name == name);
        let steps = axis.map_or(&[][..], |axis| &axis.steps);
        steps.iter().map(|step| label(py, &step.label)).collect()
    }

    /// The scenario of each point.
    fn scenarios(&self, py: Python<'_>) -> PyResult<Vec<Scenario>> {
        Ok(self.plan(py)?.points.into_iter().map(|point| Scenario::from(point.scenario)).collect())
    }

    /// Number of runs of all points; an error if a point is no valid scenario.
    fn total(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.plan(py)?.total())
    }

    /// Everything that it is made of, as JSON; [`Sweep::from_recipe`] takes it back anywhere.
    fn to_recipe(&self) -> String {
        let labels = |labels: &[Value]| labels.iter().map(|label| Located::new(label.clone(), "").to_json()).collect();
        let only: Vec<(&str, Vec<serde_json::Value>)> =
            self.only.iter().map(|(axis, only)| (axis.as_str(), labels(only))).collect();
        serde_json::json!({ "sweep": self.whole.to_recipe(), "only": only, "at": self.at }).to_string()
    }

    /// The sweep that was written down as `text`; messages call it `origin`.
    #[staticmethod]
    fn from_recipe(text: &str, origin: &str) -> PyResult<Self> {
        let whole = json(text)?;
        let sweep = LabSweep::from_recipe(&whole["sweep"], origin).map_err(|error| raise(&error))?;
        let only: Vec<(String, Vec<serde_json::Value>)> =
            serde_json::from_value(whole["only"].clone()).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let at = serde_json::from_value(whole["at"].clone()).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let values =
            |labels: Vec<serde_json::Value>| labels.iter().map(|label| Located::from_json(label, origin).value).collect();
        Ok(Self { whole: sweep, only: only.into_iter().map(|(axis, labels)| (axis, values(labels))).collect(), at })
    }

    /// The point number `index`, counted over all axes, alone: a sweep without axes.
    fn point(&self, index: usize) -> PyResult<Self> {
        let point = self.whole.point(index).map_err(|error| raise(&error))?;
        Ok(Self::of(LabSweep::repeat(point.scenario, 1)))
    }

    /// Numbers of its points, counted over all axes.
    fn points(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.plan(py)?.points.iter().map(|point| point.index).collect())
    }

    /// A digest of everything that decides its tables.
    fn inputs(&self, py: Python<'_>) -> PyResult<String> {
        let plan = self.plan(py)?;
        interrupt::run(py, None, |control| whyloss_lab::inputs_digest(&plan, &control.cancel))
    }

    /// The runs that are not in `store`: number of the point, first run, how many follow each other.
    fn missing(&self, py: Python<'_>, store: PathBuf) -> PyResult<Vec<(u32, u32, u32)>> {
        let plan = self.plan(py)?;
        interrupt::run(py, None, |control| whyloss_lab::missing(&plan, &store, &control.cancel))
    }

    /// What the names of the parts in a store begin with that hold runs of it.
    fn part_stems(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(whyloss_lab::part_stems(&self.plan(py)?))
    }

    /// Raises an error if its tables cannot be held in memory.
    fn check_held(&self, py: Python<'_>) -> PyResult<()> {
        whyloss_lab::check_held(&self.plan(py)?).map_err(|error| raise(&error))
    }

    /// Runs what is not in the store yet, on `threads` threads.
    #[pyo3(signature = (store = None, threads = None, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        store: Option<PathBuf>,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Results> {
        let plan = self.plan(py)?;
        let options = ExecuteOptions { store, threads };
        interrupt::run(py, progress, |control| whyloss_lab::execute(&plan, &options, control)).map(Results::from)
    }

    /// Runs what is not in `store` yet, and writes the tables into `folder` without holding them. Gives the digest of each table.
    #[pyo3(signature = (store, folder, notes, threads = None, progress = None))]
    fn save(
        &self,
        py: Python<'_>,
        store: PathBuf,
        folder: PathBuf,
        notes: Vec<(String, String)>,
        threads: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<BTreeMap<&'static str, String>> {
        let plan = self.plan(py)?;
        let notes: Vec<(&str, &str)> = notes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let saved = interrupt::run(py, progress, |control| whyloss_lab::save(&plan, &store, threads, control, &folder, &notes))?;
        Ok(saved.into_iter().map(|table| (table.name, table.digest)).collect())
    }
}

impl Sweep {
    fn of(sweep: LabSweep) -> Self {
        Self { whole: sweep, only: Vec::new(), at: None }
    }

    /// The same points of another sweep.
    fn with(&self, whole: LabSweep) -> Self {
        Self { whole, only: self.only.clone(), at: self.at.clone() }
    }

    /// All points; Ctrl-C is honoured meanwhile.
    fn plan(&self, py: Python<'_>) -> PyResult<Plan> {
        interrupt::run(py, None, |control| {
            let plan = self.whole.plan_unless(&control.cancel)?;
            let plan = self.only.iter().try_fold(plan, |plan, (name, labels)| plan.only(name, labels))?;
            self.at.iter().try_fold(plan, Plan::at)
        })
    }
}
