//! A sweep as one JSON document that says everything: for another process, another machine, or another day.

use crate::axis::{Axis, AxisStep};
use crate::error::{Error, InputError};
use crate::scenario::{anchor, Scenario};
use crate::sweep::Sweep;
use crate::tree::Located;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a sweep is made of, files left where they are.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    name: String,
    description: String,
    /// Where relative paths of the scenario start.
    folder: PathBuf,
    scenario: serde_json::Value,
    set: Vec<(String, serde_json::Value)>,
    axes: Vec<RecipeAxis>,
    first_run: u32,
    runs: u32,
    /// Points with another number of runs, and how many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    counts: BTreeMap<u32, u32>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeAxis {
    name: String,
    steps: Vec<RecipeStep>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeStep {
    label: serde_json::Value,
    set: Vec<(String, serde_json::Value)>,
}

impl Sweep {
    /// Everything that its tables are made of, for the runs that it has. Paths in it are absolute.
    pub fn to_recipe(&self) -> serde_json::Value {
        let here = std::env::current_dir().unwrap_or_default();
        let set =
            |set: &[(String, Located)]| set.iter().map(|(field, node)| (field.clone(), absolute(field, node, &here))).collect();
        let step = |step: &AxisStep| RecipeStep { label: Located::new(step.label.clone(), "").to_json(), set: set(&step.set) };
        let recipe = Recipe {
            name: self.name.clone(),
            description: self.description.clone(),
            folder: here.join(self.base.folder()),
            scenario: self.base.to_json(),
            set: set(&[&self.set[..], &self.arguments].concat()),
            axes: self
                .axes
                .iter()
                .map(|axis| RecipeAxis { name: axis.name.clone(), steps: axis.steps.iter().map(step).collect() })
                .collect(),
            first_run: self.runs.start,
            runs: self.runs.end - self.runs.start,
            counts: self.counts.clone(),
        };
        serde_json::to_value(recipe).expect("only string keys and finite numbers")
    }

    /// The sweep that was written down as `recipe`; messages call it `origin`.
    ///
    /// # Errors
    /// If it is no recipe, or what it says is no sweep.
    pub fn from_recipe(recipe: &serde_json::Value, origin: &str) -> Result<Self, Error> {
        let recipe = Recipe::deserialize(recipe)
            .map_err(|error| InputError::new(format!("this is no recipe of a sweep: {error}")).at(origin))?;
        let nodes = |set: Vec<(String, serde_json::Value)>| {
            set.into_iter().map(|(field, json)| (field, Located::from_json(&json, origin))).collect::<Vec<_>>()
        };
        let axes = recipe.axes.into_iter().map(|axis| Axis {
            name: axis.name,
            steps: axis
                .steps
                .into_iter()
                .map(|step| AxisStep { label: Located::from_json(&step.label, origin).value, set: nodes(step.set) })
                .collect(),
        });
        let base = Scenario::from_json(&recipe.scenario, origin)?.with_base(recipe.folder);
        let runs = recipe.first_run..recipe.first_run.saturating_add(recipe.runs);
        Ok(Self {
            name: recipe.name,
            description: recipe.description,
            axes: axes.collect(),
            set: nodes(recipe.set),
            ..Self::repeat(base, 1).with_runs(runs).with_run_counts(recipe.counts)
        })
    }
}

fn absolute(field: &str, node: &Located, here: &Path) -> serde_json::Value {
    let mut node = node.clone();
    anchor(field, &mut node, here);
    node.to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_makes_the_same_points_with_the_same_digests() {
        let scenario = "[path]\nrate = '1 Mbps'\ndelay = '10 ms'\nqueue = '99 pkt'\n[[flow]]\nsize = '1 MB'\n";
        let scenario = Scenario::from_toml(scenario, "t").unwrap();
        // Digits that a reader who rounds twice gets wrong.
        let values = [5.324_756_284_913e-7, 0.300_000_000_000_000_04, 7.038_531e-26, 1e-5];
        let step = |value: &f64| AxisStep {
            label: (*value).into(),
            set: vec![("path.forward.channel.ber".to_owned(), Located::new(*value, "t"))],
        };
        let axis = Axis { name: "errors".to_owned(), steps: values.iter().map(step).collect() };
        let sweep = Sweep::repeat(scenario, 3).with_axis(axis).with_runs(2..5).with_run_counts(BTreeMap::from([(3, 7)]));
        let text = sweep.to_recipe().to_string();
        let again = Sweep::from_recipe(&serde_json::from_str(&text).unwrap(), "r").unwrap();
        assert_eq!(again.runs(), 2..5);
        for index in 0..values.len() {
            let (one, other) = (sweep.point(index).unwrap(), again.point(index).unwrap());
            assert_eq!(one.runs, if index == 3 { 2..9 } else { 2..5 });
            assert_eq!(one.runs, other.runs);
            assert_eq!((one.labels, one.scenario.digest(2).unwrap()), (other.labels, other.scenario.digest(2).unwrap()));
        }
        assert!(Sweep::from_recipe(&serde_json::json!({ "name": "x" }), "r").is_err());
    }
}
