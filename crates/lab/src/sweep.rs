//! A sweep: one scenario, changed along axes, each point run several times.

use crate::axis::{overrides, Axis, AxisDocument, AxisStep};
use crate::control::Cancel;
use crate::decode::decode;
use crate::error::{nearest, Error, InputError, Place};
use crate::precision::{Precision, FIRST_LOOK, MOST_RUNS};
use crate::scenario::{read_tree, Scenario};
use crate::tables;
use crate::tree::{Located, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use whyloss_transport::quantity::{Probability, Rate, Size, Span};

/// A sweep file: the scenario `base`, changed along every `[[axis]]`; each point is run `runs` times.
///
/// The points are all combinations of the axes, the last axis changing fastest. Run `n` of every point has the same random numbers,
/// so variants meet the same channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepDocument {
    /// Its name, its scenario and its runs.
    pub sweep: SweepHeader,
    /// What is different from the base at every point: field path = value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, serde_json::Value>,
    /// The axes: every combination of their values is a point.
    #[serde(default)]
    pub axis: Vec<AxisDocument>,
}

/// Name and size of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepHeader {
    /// What tables and reports call it; the name of the file if nothing is said.
    #[serde(default)]
    pub name: String,
    /// What it is for, in a sentence or two.
    #[serde(default)]
    pub description: String,
    /// The scenario: a file, relative to the sweep's.
    pub base: String,
    /// Runs of each point, 1 if nothing is said. It does not go with `precision`, which takes as many as it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Number of the first run.
    #[serde(default)]
    pub first_run: u32,
    /// Runs are added to each point until half of its interval is this share of its mean, such as `2 %`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Probability>,
    /// What is to be known so well, with `precision`: table and column, `transfers.goodput_bps` if nothing is said. Of several rows of a
    /// run, their mean counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<String>,
    /// With `precision`: axis = step. What counts is then how much each point differs, run by run, from the one that has these steps and
    /// is like it otherwise, as a share of that one's mean.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub against: BTreeMap<String, serde_json::Value>,
    /// With `precision`: runs of all points together, at most; 1,000,000 if nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
}

/// The JSON Schema of a sweep file.
pub fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(SweepDocument).to_value();
    schema["title"] = "whyloss sweep".into();
    schema
}

/// A scenario, changed along axes, each point run several times.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) base: Scenario,
    pub(crate) axes: Vec<Axis>,
    pub(crate) set: Vec<(String, Located)>,
    pub(crate) runs: Range<u32>,
    /// How many runs single points have, where it is not as many as `runs` says.
    pub(crate) counts: BTreeMap<u32, u32>,
    pub(crate) precision: Option<Precision>,
}

impl SweepHeader {
    /// How well the answer is to be known, if the file says so.
    fn precision(&self, tree: &Located, axes: &[Axis]) -> Result<Option<Precision>, InputError> {
        let Some(share) = self.precision else {
            let alone =
                [("quantity", self.quantity.is_some()), ("against", !self.against.is_empty()), ("budget", self.budget.is_some())];
            return match alone.into_iter().find(|(_, given)| *given) {
                Some((name, _)) => Err(InputError::new("this goes with `precision` only").at(name)),
                None => Ok(None),
            };
        };
        if self.runs.is_some() {
            let error = InputError::new("with `precision` there are as many runs as it takes").at("runs");
            return Err(error.allowed("one of `runs` and `precision`"));
        }
        let steps = tree.nearest_to("sweep.against");
        let against = self.against.keys().filter_map(|axis| Some((axis.clone(), steps.field(axis)?.value.clone())));
        Precision::new(share, self.quantity.as_deref(), against.collect(), self.budget, axes).map(Some)
    }
}

/// All points of a sweep, checked.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the sweep.
    pub name: String,
    /// Names of the axes.
    pub axes: Vec<String>,
    /// The points, in order.
    pub points: Vec<Point>,
}

/// A point of a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its number in the whole sweep, from 0.
    pub index: u32,
    /// What tables call its step on each axis.
    pub labels: Vec<Value>,
    /// The base with the changes of this point.
    pub scenario: Scenario,
    /// Numbers of its runs.
    pub runs: Range<u32>,
}

impl Sweep {
    /// Reads a sweep file. Relative paths in it start at its folder.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let (tree, folder) = read_tree(path)?;
        let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        Self::new(&tree, &folder, &stem)
    }

    /// Reads a sweep from TOML text; messages call it `origin`. Relative paths in it start at `folder`.
    pub fn from_toml(text: &str, origin: &str, folder: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::new(&Located::from_toml(text, origin)?, &folder.into(), "sweep")
    }

    /// Takes over a sweep from JSON with the fields of the file; messages call it `origin`. Relative paths in it start at `folder`.
    pub fn from_json(json: &serde_json::Value, origin: &str, folder: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::new(&Located::from_json(json, origin), &folder.into(), "sweep")
    }

    /// A scenario run several times.
    pub fn repeat(scenario: Scenario, runs: u32) -> Self {
        Self {
            name: scenario.name().to_owned(),
            description: scenario.document().scenario.description.clone(),
            base: scenario,
            axes: Vec::new(),
            set: Vec::new(),
            runs: 0..runs,
            counts: BTreeMap::new(),
            precision: None,
        }
    }

    fn new(tree: &Located, folder: &Path, default_name: &str) -> Result<Self, Error> {
        let placed = |error: InputError| place(error, tree);
        let document: SweepDocument = decode(tree).map_err(placed)?;
        let header = &document.sweep;
        if header.runs == Some(0) {
            return Err(placed(InputError::default().at("sweep.runs").found("0").allowed("1 or more")).into());
        }
        let count = header.runs.unwrap_or(if header.precision.is_some() { FIRST_LOOK } else { 1 });
        let runs = header.first_run..header.first_run.checked_add(count).ok_or_else(|| {
            placed(
                InputError::default().at("sweep.first_run").found(header.first_run.to_string()).allowed("runs up to 4294967295"),
            )
        })?;
        let file = folder.join(&header.base);
        if !file.exists() {
            let found = format!("\"{}\"", file.display());
            return Err(placed(InputError::new("there is no such file").at("sweep.base").found(found)).into());
        }
        let base = Scenario::load(file)?;
        let mut axes: Vec<Axis> = Vec::new();
        for (index, axis) in document.axis.iter().enumerate() {
            let field = format!("axis[{index}]");
            let axis = axis.expand(&field, tree, folder).map_err(placed)?;
            fresh(&axis.name, &axes).map_err(|error| placed(error.at(format!("{field}.name"))))?;
            axes.push(axis);
        }
        let precision = header.precision(tree, &axes).map_err(|error| {
            let field = format!("sweep.{}", error.field);
            placed(error.at(field))
        })?;
        let sweep = Self {
            name: if header.name.is_empty() { default_name.to_owned() } else { header.name.clone() },
            description: header.description.clone(),
            base,
            axes,
            set: overrides(tree, folder),
            runs,
            counts: BTreeMap::new(),
            precision,
        };
        sweep.check().map_err(|error| placed(if error.field.is_empty() { error.at("sweep.runs") } else { error }))?;
        Ok(sweep)
    }

    /// Adds an axis; its steps change fastest.
    pub fn with_axis(mut self, axis: Axis) -> Self {
        self.axes.push(axis);
        self
    }

    /// The same sweep with the runs `runs` of each point.
    pub fn with_runs(mut self, runs: Range<u32>) -> Self {
        self.runs = runs;
        self.counts.clear();
        self
    }

    /// The same sweep with so many runs of each point that `counts` has by its number, from the first one on.
    pub fn with_run_counts(mut self, counts: BTreeMap<u32, u32>) -> Self {
        self.counts = counts;
        self
    }

    /// The same sweep, whose answer is to be known so well.
    pub fn with_precision(mut self, precision: Option<Precision>) -> Self {
        self.precision = precision;
        self
    }

    /// How well its answer is to be known, if anybody has asked for it.
    pub const fn precision(&self) -> Option<&Precision> {
        self.precision.as_ref()
    }

    /// The same sweep over a changed base, by an override from a command line: see [`Scenario::with_argument`].
    pub fn with_argument(mut self, argument: &str) -> Result<Self, Error> {
        self.base = self.base.with_argument(argument)?;
        Ok(self)
    }

    /// What tables and reports call it: its own name, or that of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The scenario before any change.
    pub fn base(&self) -> &Scenario {
        &self.base
    }

    /// What it changes, the last changing fastest.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Numbers of the runs of each point.
    pub fn runs(&self) -> Range<u32> {
        self.runs.clone()
    }

    /// Writes out all points and checks each of them.
    pub fn plan(&self) -> Result<Plan, Error> {
        self.plan_unless(&Cancel::default())
    }

    /// The same, until `cancel` says so.
    pub fn plan_unless(&self, cancel: &Cancel) -> Result<Plan, Error> {
        self.check()?;
        let count: usize = self.axes.iter().map(|axis| axis.steps.len()).product();
        let mut points = Vec::with_capacity(count);
        for index in 0..count {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            points.push(self.point(index)?);
        }
        Ok(Plan { name: self.name.clone(), axes: self.axes.iter().map(|axis| axis.name.clone()).collect(), points })
    }

    /// Writes out the point number `index`, counted over all axes, and checks it.
    pub fn point(&self, index: usize) -> Result<Point, Error> {
        let mut rest = index;
        let mut steps: Vec<&AxisStep> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            steps.push(&axis.steps[rest % axis.steps.len()]);
            rest /= axis.steps.len();
        }
        steps.reverse();
        let labels: Vec<Value> = steps.iter().map(|step| step.label.clone()).collect();
        let names: Vec<_> = self.axes.iter().map(|axis| axis.name.as_str()).zip(&labels).collect();
        let all = self.set.iter().chain(steps.iter().flat_map(|step| &step.set));
        let scenario = self.base.with_nodes(all.map(|(field, value)| (field.as_str(), fill_in(value.clone(), &names))))?;
        scenario.check_something_is_sent()?;
        let index = index as u32;
        Ok(Point { index, labels, scenario, runs: self.runs_of(index) })
    }
}

impl Sweep {
    /// Numbers of the runs of the point number `index`.
    fn runs_of(&self, index: u32) -> Range<u32> {
        let start = self.runs.start;
        self.counts.get(&index).map_or_else(|| self.runs.clone(), |count| start..start.saturating_add(*count))
    }

    /// Axes with names and steps of their own, and no more runs than can be held.
    fn check(&self) -> Result<(), InputError> {
        for (index, axis) in self.axes.iter().enumerate() {
            fresh(&axis.name, &self.axes[..index]).map_err(|error| error.at("the name of an axis"))?;
            axis.check(&format!("axis `{}`", axis.name))?;
        }
        if self.runs.is_empty() {
            return Err(InputError::default().at("the runs of each point").found("0").allowed("1 or more"));
        }
        let points = self.axes.iter().fold(1_usize, |all, axis| all.saturating_mul(axis.steps.len()));
        let more = self.counts.values().fold(0, |all: usize, count| all.saturating_add(*count as usize));
        if points.saturating_sub(self.counts.len()).saturating_mul(self.runs.len()).saturating_add(more) > MOST_RUNS {
            return Err(InputError::new("too many runs: the results of all of them are held in memory")
                .found(format!("{points} points of {} runs each", self.runs.len()))
                .allowed(format!("{MOST_RUNS} runs")));
        }
        Ok(())
    }
}

/// Checks that tables have no column called `name` before an axis after `axes` gets one.
fn fresh(name: &str, axes: &[Axis]) -> Result<(), InputError> {
    let tables = tables::columns();
    let mut columns = tables.iter().flat_map(|(_, columns)| columns).map(|column| column.name);
    if name == "point" || columns.any(|column| column == name) || axes.iter().any(|axis| axis.name == name) {
        let error = InputError::new("this column exists already").found(format!("\"{name}\""));
        return Err(error.allowed("a name of its own for each axis"));
    }
    Ok(())
}

/// Puts the values of axes into strings: `{ber}`.
fn fill_in(mut node: Located, labels: &[(&str, &Value)]) -> Located {
    match &mut node.value {
        Value::String(text) if text.contains('{') => {
            for (name, label) in labels {
                let shown = match label {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                *text = text.replace(&format!("{{{name}}}"), &shown);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = fill_in(item.clone(), labels)),
        Value::Table(fields) => fields.values_mut().for_each(|field| *field = fill_in(field.clone(), labels)),
        _ => {}
    }
    node
}

fn place(error: InputError, tree: &Located) -> InputError {
    if error.place != Place::default() {
        return error;
    }
    InputError { place: tree.nearest_to(&error.field).place.clone(), ..error }
}

impl Plan {
    /// Keeps the points whose step on the axis `name` is called one of `labels`.
    pub fn only(mut self, name: &str, labels: &[Value]) -> Result<Self, Error> {
        let axis = self.axes.iter().position(|axis| axis == name).ok_or_else(|| {
            InputError::new("no such axis")
                .found(format!("\"{name}\""))
                .nearest(nearest(name, self.axes.iter().map(String::as_str)))
                .allowed(self.axes.join(", "))
        })?;
        self.points.retain(|point| labels.contains(&point.labels[axis]));
        Ok(self)
    }

    /// Number of runs of all points.
    pub fn total(&self) -> usize {
        self.points.iter().map(|point| point.runs.len()).sum()
    }
}

/// The values of an axis as a column of numbers, with the suffix of its unit.
pub(crate) fn numeric(labels: &[&Value]) -> Option<(&'static str, Vec<u64>)> {
    fn all(labels: &[&Value], parse: impl Fn(&str) -> Option<u64>) -> Option<Vec<u64>> {
        labels.iter().map(|label| if let Value::String(text) = label { parse(text) } else { None }).collect()
    }
    let rate = all(labels, |text| Rate::parse(text).ok().map(|q| q.0)).map(|v| ("bps", v));
    let span = || all(labels, |text| Span::parse(text).ok().map(|q| q.0)).map(|v| ("ns", v));
    let size = || all(labels, |text| Size::parse(text).ok().map(|q| q.0)).map(|v| ("octets", v));
    rate.or_else(span).or_else(size)
}
