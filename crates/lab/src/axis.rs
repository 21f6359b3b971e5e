//! What a sweep changes: its axes, and their steps.

use crate::error::InputError;
use crate::scenario::anchor;
use crate::tree::{Located, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// An axis: `field` with `values`; or `fields`, several lists that advance together; or `variant`s with a name and any changes.
/// A string may hold `{name}` for the value of another axis, and `{run}` in paths of patterns. No two axes set one field, but an axis may
/// set a field inside of what an axis before it sets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AxisDocument {
    /// Name of its column in the tables; the last part of the field's path if nothing is said.
    #[serde(default)]
    pub name: String,
    /// The field that changes, such as `path.forward.channel.ber`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The values that it has, one at each step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<serde_json::Value>,
    /// Fields that change together, each with its list of values, all of one length.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, Vec<serde_json::Value>>,
    /// What tables call the steps of `fields`; the values of its first field if nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<serde_json::Value>,
    /// Steps that have a name and change any fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variant: Vec<Variant>,
}

/// A named set of changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// What the column of the axis says at this step.
    pub name: String,
    /// The fields that are different there: field path = value.
    #[serde(default)]
    pub set: BTreeMap<String, serde_json::Value>,
}

/// A dimension of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of its column.
    pub name: String,
    /// What it steps through, in order.
    pub steps: Vec<AxisStep>,
}

/// A step of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisStep {
    /// What tables call it.
    pub label: Value,
    /// What changes: field path and value.
    pub set: Vec<(String, Located)>,
}

impl Axis {
    pub(crate) fn check(&self, at: &str) -> Result<(), InputError> {
        if self.steps.is_empty() {
            return Err(InputError::new("an axis without values").at(at).allowed("at least one value"));
        }
        let mut seen = BTreeSet::new();
        match self.steps.iter().find(|step| !seen.insert(step.label.to_string())) {
            Some(twice) => Err(InputError::new("two steps of one name")
                .at(at)
                .found(twice.label.to_string())
                .allowed("steps that tables can tell apart")),
            None => Ok(()),
        }
    }
}

impl AxisDocument {
    pub(crate) fn expand(&self, at: &str, tree: &Located, folder: &Path) -> Result<Axis, InputError> {
        let given = [self.field.is_some(), !self.fields.is_empty(), !self.variant.is_empty()];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(InputError::new("an axis needs one kind of steps")
                .at(at)
                .allowed("one of `field` with `values`, `fields`, `variant`"));
        }
        if let Some(field) = &self.field {
            let nodes = list(tree, &format!("{at}.values"));
            let steps = nodes
                .iter()
                .map(|node| AxisStep { label: node.value.clone(), set: vec![(field.clone(), anchored(field, node, folder))] })
                .collect();
            return self.axis(field, steps, at);
        }
        if !self.fields.is_empty() {
            let tables = tree.nearest_to(&format!("{at}.fields"));
            let lists: Vec<(&String, &[Located])> =
                self.fields.keys().map(|field| (field, tables.field(field).map_or(&[][..], Located::items))).collect();
            let length = lists[0].1.len();
            if let Some((field, other)) = lists.iter().find(|(_, other)| other.len() != length) {
                return Err(InputError::new("lists that advance together are of different length")
                    .at(format!("{at}.fields"))
                    .found(format!("{length} values of {} and {} of {field}", lists[0].0, other.len())));
            }
            if !self.labels.is_empty() && self.labels.len() != length {
                return Err(InputError::default()
                    .at(format!("{at}.labels"))
                    .found(format!("{} labels", self.labels.len()))
                    .allowed(format!("{length}, one for each value")));
            }
            let labels = list(tree, &format!("{at}.labels"));
            let steps = (0..length)
                .map(|step| AxisStep {
                    label: labels.get(step).unwrap_or(&lists[0].1[step]).value.clone(),
                    set: lists.iter().map(|(field, l)| ((*field).clone(), anchored(field, &l[step], folder))).collect(),
                })
                .collect();
            return self.axis(lists[0].0, steps, at);
        }
        if self.name.is_empty() {
            return Err(InputError::new("missing").at(format!("{at}.name")).allowed("a name for the column of the variants"));
        }
        let steps = self
            .variant
            .iter()
            .enumerate()
            .map(|(index, variant)| AxisStep {
                label: Value::String(variant.name.clone()),
                set: overrides(tree.nearest_to(&format!("{at}.variant[{index}]")), folder),
            })
            .collect();
        self.axis("", steps, at)
    }

    fn axis(&self, field: &str, steps: Vec<AxisStep>, at: &str) -> Result<Axis, InputError> {
        let last = field.rsplit('.').next().unwrap_or(field);
        let name = if self.name.is_empty() { last.to_owned() } else { self.name.clone() };
        let axis = Axis { name, steps };
        axis.check(at)?;
        Ok(axis)
    }
}

fn list<'a>(tree: &'a Located, path: &str) -> &'a [Located] {
    tree.nearest_to(path).items()
}

fn anchored(field: &str, node: &Located, folder: &Path) -> Located {
    let mut node = node.clone();
    anchor(field, &mut node, folder);
    node
}

/// The values of the table `set` in `table`, with their places. JSON's null is one of them: it takes a field away.
pub(crate) fn overrides(table: &Located, folder: &Path) -> Vec<(String, Located)> {
    match table.field("set").map(|set| &set.value) {
        Some(Value::Table(fields)) => fields.iter().map(|(field, node)| (field.clone(), anchored(field, node, folder))).collect(),
        _ => Vec::new(),
    }
}
