//! How well the answer of a sweep is to be known: what a sweep file asks for, checked. Who runs it adds runs until it is so.

use crate::axis::Axis;
use crate::error::{nearest, InputError};
use crate::tables;
use crate::tree::Value;
use arrow_schema::DataType;
use whyloss_transport::quantity::Probability;

/// Runs of a sweep, at most: the results of all of them are held in memory, tens of kilobytes each.
pub const MOST_RUNS: usize = 1_000_000;

/// What is to be known if nothing is said.
pub const QUANTITY: &str = "transfers.goodput_bps";

/// Runs of each point before anybody looks, if a precision is asked for.
pub const FIRST_LOOK: u32 = 10;

/// How well a quantity is to be known at every point.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// Half the width of the interval, as a share of the mean; above 0 and below 1.
    pub share: f64,
    /// The table that has the quantity.
    pub table: &'static str,
    /// Its column there. Of several rows of a run, their mean counts.
    pub column: &'static str,
    /// Steps on some axes: what counts is how much each point differs, run by run, from the one with these steps that is like it
    /// otherwise. Empty: the points themselves count.
    pub against: Vec<(String, Value)>,
    /// Runs of all points together, at most.
    pub budget: usize,
}

impl Precision {
    /// Checks what is asked for in a sweep with these axes.
    ///
    /// # Errors
    /// Names the field if the share makes no sense, a quantity, an axis or a step does not exist, or the budget is too large.
    pub fn new(
        share: Probability,
        quantity: Option<&str>,
        against: Vec<(String, Value)>,
        budget: Option<u64>,
        axes: &[Axis],
    ) -> Result<Self, InputError> {
        if !(share.0 > 0.0 && share.0 < 1.0) {
            return Err(Self::no_share(format!("{} %", 100.0 * share.0)));
        }
        let (table, column) = quantity_column(quantity.unwrap_or(QUANTITY)).map_err(|error| error.at("quantity"))?;
        for (name, label) in &against {
            let at = format!("against.{name}");
            let Some(axis) = axes.iter().find(|axis| axis.name == *name) else {
                let names = || axes.iter().map(|axis| axis.name.as_str());
                let error = InputError::new("no such axis").at(at).nearest(nearest(name, names()));
                return Err(error.allowed(names().collect::<Vec<_>>().join(", ")));
            };
            if !axis.steps.iter().any(|step| step.label == *label) {
                let labels: Vec<String> = axis.steps.iter().map(|step| step.label.to_string()).collect();
                return Err(InputError::new("no such step").at(at).found(label.to_string()).allowed(labels.join(", ")));
            }
        }
        let points = axes.iter().fold(1_usize, |all, axis| all.saturating_mul(axis.steps.len()));
        let budget = budget.map_or(MOST_RUNS, |budget| usize::try_from(budget).unwrap_or(usize::MAX));
        // An interval takes two runs.
        if budget > MOST_RUNS || budget < points.saturating_mul(2) {
            let error = InputError::default().at("budget").found(budget.to_string());
            return Err(error.allowed(format!("runs of all points together: {} to {MOST_RUNS}", points.saturating_mul(2))));
        }
        Ok(Self { share: share.0, table, column, against, budget })
    }

    /// What is said of a share that makes no sense.
    pub fn no_share(found: impl Into<String>) -> InputError {
        InputError::default().at("precision").found(found).allowed("above 0 % and below 100 %, such as \"2 %\"")
    }
}

/// The table and column called `name`, such as `transfers.goodput_bps`, if it holds numbers.
fn quantity_column(name: &str) -> Result<(&'static str, &'static str), InputError> {
    let columns: Vec<(&str, &str)> = tables::columns()
        .into_iter()
        .flat_map(|(table, columns)| columns.into_iter().map(move |column| (table, column)))
        .filter(|(_, column)| column.kind == DataType::Boolean || column.kind.is_numeric())
        .map(|(table, column)| (table, column.name))
        .collect();
    columns
        .iter()
        .find(|(table, column)| name.strip_prefix(table).and_then(|rest| rest.strip_prefix('.')) == Some(column))
        .copied()
        .ok_or_else(|| {
            let names: Vec<String> = columns.iter().map(|(table, column)| format!("{table}.{column}")).collect();
            InputError::new("no such quantity")
                .found(format!("\"{name}\""))
                .nearest(nearest(name, names.iter().map(String::as_str)))
                .allowed(format!("TABLE.COLUMN of numbers, such as {QUANTITY}"))
        })
}
