//! A sweep: one scenario, changed along axes, each point run several times.

use crate::axis::{overrides, Axis, AxisDocument, AxisStep};
use crate::control::Cancel;
use crate::decode::decode;
use crate::error::{nearest, Error, InputError, Place};
use crate::precision::{Precision, FIRST_LOOK, MOST_RUNS};
use crate::scenario::{argument, read_tree, Scenario};
use crate::tables;
use crate::tree::{Located, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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
    /// What a command line sets over that.
    pub(crate) arguments: Vec<(String, Located)>,
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
            arguments: Vec::new(),
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
        let runs = runs_from(header.first_run, count).map_err(|error| placed(error.at("sweep.first_run")))?;
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
            fresh(&axis, &axes).map_err(|error| placed(error.at(format!("{field}.name"))))?;
            axes.push(axis);
        }
        let name = if header.name.is_empty() { default_name } else { &header.name };
        check_name(name).map_err(|error| placed(error.at("sweep.name")))?;
        let precision = header.precision(tree, &axes).map_err(|error| {
            let field = format!("sweep.{}", error.field);
            placed(error.at(field))
        })?;
        let sweep = Self {
            name: name.to_owned(),
            description: header.description.clone(),
            base,
            axes,
            set: overrides(tree, folder),
            arguments: Vec::new(),
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

    /// The same sweep with `count` runs of each point, from run `first` on.
    ///
    /// # Errors
    /// If runs cannot have such numbers.
    pub fn with_runs_from(self, first: u32, count: u32) -> Result<Self, Error> {
        let runs = runs_from(first, count).map_err(|error| error.at(RUNS))?;
        Ok(self.with_runs(runs))
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

    /// The same sweep with an override from a command line, see [`Scenario::with_argument`], over its base and what it sets itself.
    /// [`Sweep::plan`] refuses it where an axis sets the field.
    pub fn with_argument(mut self, text: &str) -> Result<Self, Error> {
        let (field, value) = argument(text)?;
        self.arguments.push((field.to_owned(), value));
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
        let filled = |changes: &[(String, Located)]| -> Vec<(String, Located)> {
            changes.iter().map(|(field, value)| (field.clone(), fill_in(value.clone(), &names))).collect()
        };
        let set = filled(&self.set);
        let layers = std::iter::once(&self.arguments).chain(steps.iter().map(|step| &step.set));
        let layers: Vec<_> = layers.map(|layer| filled(layer)).collect();
        let all = set.iter().chain(layers.iter().flatten());
        let scenario = self.base.with_nodes(all.map(|(field, value)| (field.as_str(), value.clone())))?;
        self.check_lasting(&layers, &scenario)?;
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

    /// Whether what a command line and the axes set, in this order, is still said by `scenario`, which has all of it: a column would
    /// tell what no run had. An axis may set a field inside of what is set before it.
    fn check_lasting(&self, layers: &[Vec<(String, Located)>], scenario: &Scenario) -> Result<(), InputError> {
        let name = |layer: usize| &self.axes[layer - 1].name;
        let said = |value: &Value| if *value == Value::Null { "nothing".to_owned() } else { value.found() };
        for (layer, set) in layers.iter().enumerate() {
            for (field, value) in set.iter().filter(|(field, value)| *scenario.says(field) != value.value) {
                let replaces = |set: &Vec<(String, Located)>| set.iter().any(|(over, _)| scenario.replaces(over, field));
                let Some(by) = (layer + 1..layers.len()).rev().find(|by| replaces(&layers[*by])) else { continue };
                let error = match layer {
                    0 => InputError::new(format!("axis `{}` replaces it at its steps", name(by)))
                        .found(value.value.found())
                        .allowed("fields that no axis sets"),
                    _ => InputError::new(format!("axis `{}` replaces what axis `{}` sets", name(by), name(layer)))
                        .found(format!("{}, then {}", value.value.found(), said(scenario.says(field))))
                        .allowed("a field on one axis"),
                };
                return Err(InputError { place: value.place.clone(), ..error.at(field) });
            }
        }
        Ok(())
    }

    /// Axes with names and steps of their own, and no more runs than can be held.
    fn check(&self) -> Result<(), InputError> {
        for (index, axis) in self.axes.iter().enumerate() {
            fresh(axis, &self.axes[..index]).map_err(|error| error.at("the name of an axis"))?;
            axis.check(&format!("axis `{}`", axis.name))?;
        }
        if self.runs.is_empty() {
            return Err(InputError::default().at(RUNS).found("0").allowed("1 or more"));
        }
        let points = self.axes.iter().fold(1_usize, |all, axis| all.saturating_mul(axis.steps.len()));
        for (point, count) in &self.counts {
            let at = format!("the runs of point {point}");
            if *point as usize >= points {
                return Err(InputError::new("no such point").at(at).allowed(format!("points from 0 to {}", points - 1)));
            }
            if *count == 0 {
                return Err(InputError::default().at(at).found("0").allowed("1 or more"));
            }
            runs_from(self.runs.start, *count).map_err(|error| error.at(at))?;
        }
        let more = self.counts.values().fold(0, |all: usize, count| all.saturating_add(*count as usize));
        if points.saturating_sub(self.counts.len()).saturating_mul(self.runs.len()).saturating_add(more) > MOST_RUNS {
            return Err(InputError::new("too many runs: the results of all of them are held in memory")
                .found(format!("{points} points of {} runs each", self.runs.len()))
                .allowed(format!("{MOST_RUNS} runs")));
        }
        Ok(())
    }
}

/// Where messages say that there are not so many runs.
const RUNS: &str = "the runs of each point";

/// The numbers of `count` runs from `first` on.
fn runs_from(first: u32, count: u32) -> Result<Range<u32>, InputError> {
    let end = first.checked_add(count).ok_or_else(|| {
        let error = InputError::default().found(format!("{count} from number {first} on"));
        error.allowed(format!("numbers from 0 to {}", u32::MAX - 1))
    })?;
    Ok(first..end)
}

/// The folder beside those that are called like sweeps, in which finished runs are kept.
const STORE: &str = "store";

/// Octets that the name of a folder has at most.
const LONGEST_NAME: usize = 255;

/// Checks that a folder can be called like the sweep.
fn check_name(name: &str) -> Result<(), InputError> {
    let plain = Path::new(name).file_name().is_some_and(|own| own == name) && !name.contains(char::is_control);
    if plain && name != STORE && name.len() <= LONGEST_NAME {
        return Ok(());
    }
    let allowed = format!("what a folder can be called, other than \"{STORE}\", which is that of finished runs");
    Err(InputError::default().found(format!("{name:?}")).allowed(allowed))
}

/// Checks that tables have no column called as one of `axis` before they get those of the axes `before` and this one.
fn fresh(axis: &Axis, before: &[Axis]) -> Result<(), InputError> {
    let tables = tables::columns();
    let taken = |name: &str| {
        let mut columns = tables.iter().flat_map(|(_, columns)| columns).map(|column| column.name);
        name == "point"
            || columns.any(|column| column == name)
            || tables::SHADOWS.iter().any(|prefix| name.starts_with(prefix))
            || before.iter().flat_map(columns_of).any(|column| column == name)
    };
    let Some(name) = columns_of(axis).find(|name| taken(name)) else { return Ok(()) };
    let of = if name == axis.name { String::new() } else { format!(", which has the values of \"{}\" as numbers", axis.name) };
    let error = InputError::new("this column exists already").found(format!("\"{name}\"{of}"));
    Err(error.allowed("a name of its own for each axis: name = \"…\""))
}

/// The columns that an axis can bring to tables: which unit there is depends on the steps that are run.
fn columns_of(axis: &Axis) -> impl Iterator<Item = String> + '_ {
    let units: BTreeSet<&str> = axis.steps.iter().filter_map(|step| numeric(&[&step.label])).map(|(unit, _)| unit).collect();
    std::iter::once(axis.name.clone()).chain(units.into_iter().map(|unit| numbers(&axis.name, unit)))
}

/// The column that has the values of the axis `name` as numbers.
pub(crate) fn numbers(name: &str, unit: &str) -> String {
    format!("{name}_{unit}")
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
    ///
    /// # Errors
    /// If there is no such axis, no point with such a step, or no label.
    pub fn only(mut self, name: &str, labels: &[Value]) -> Result<Self, Error> {
        let axis = self.axes.iter().position(|axis| axis == name).ok_or_else(|| {
            InputError::new("no such axis")
                .found(format!("\"{name}\""))
                .nearest(nearest(name, self.axes.iter().map(String::as_str)))
                .allowed(self.axes.join(", "))
        })?;
        let steps: Vec<&Value> = self.points.iter().map(|point| &point.labels[axis]).collect();
        let unknown = labels.iter().find(|label| !steps.contains(label));
        if labels.is_empty() || unknown.is_some() {
            let mut names: Vec<String> = steps.iter().map(|step| (*step).to_string()).collect();
            let mut seen = BTreeSet::new();
            names.retain(|name| seen.insert(name.clone()));
            let error = match unknown {
                Some(label) => InputError::new("no such step").found(label.to_string()),
                None => InputError::default().found("no step"),
            }
            .at(format!("axis `{name}`"));
            return Err(error.allowed(names.join(", ")).into());
        }
        self.points.retain(|point| labels.contains(&point.labels[axis]));
        Ok(self)
    }

    /// Keeps the points with these numbers.
    ///
    /// # Errors
    /// If there is no point with such a number, or no number.
    pub fn at(mut self, numbers: &BTreeSet<u32>) -> Result<Self, Error> {
        let own: BTreeSet<u32> = self.points.iter().map(|point| point.index).collect();
        let unknown = numbers.difference(&own).next();
        if numbers.is_empty() || unknown.is_some() {
            let error = match unknown {
                Some(number) => InputError::new("no such point").found(number.to_string()),
                None => InputError::default().found("no point"),
            };
            let (first, last) = own.first().zip(own.last()).expect("a plan has a point");
            let allowed = format!("numbers of its {} points, from {first} to {last}", own.len());
            return Err(error.allowed(allowed).into());
        }
        self.points.retain(|point| numbers.contains(&point.index));
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
