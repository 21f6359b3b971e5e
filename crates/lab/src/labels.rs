//! The columns that tables of a sweep have beside those of a run: the number of the point, and the steps on the axes.

use crate::sweep::{numbers, numeric, Plan};
use crate::tree::Value;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field};
use std::sync::Arc;

/// These columns, and the cell of each point.
#[derive(Debug)]
pub(crate) struct Labels(Vec<(Field, Vec<Cell>)>);

/// A value in a column of the sweep.
#[derive(Clone, Debug)]
enum Cell {
    Index(u32),
    Count(u64),
    Number(f64),
    Flag(bool),
    Text(String),
}

impl Labels {
    /// Of the points of `plan`.
    pub fn of(plan: &Plan) -> Self {
        let index = |point: &crate::sweep::Point| Cell::Index(point.index);
        let mut columns = vec![(Field::new("point", DataType::UInt32, false), plan.points.iter().map(index).collect())];
        for (axis, name) in plan.axes.iter().enumerate() {
            let labels: Vec<&Value> = plan.points.iter().map(|point| &point.labels[axis]).collect();
            columns.push(column(name, &labels));
            if let Some((unit, values)) = numeric(&labels) {
                let name = numbers(name, unit);
                columns.push((Field::new(name, DataType::UInt64, false), values.into_iter().map(Cell::Count).collect()));
            }
        }
        Self(columns)
    }

    /// Their names and types.
    pub fn fields(&self) -> Vec<Field> {
        self.0.iter().map(|(field, _)| field.clone()).collect()
    }

    /// Their values in so many rows of one point, of the next point, and so on.
    pub fn arrays(&self, rows: &[(usize, usize)]) -> Vec<ArrayRef> {
        self.0.iter().map(|(_, cells)| array(cells, rows)).collect()
    }
}

fn column(name: &str, labels: &[&Value]) -> (Field, Vec<Cell>) {
    let number = |label: &&Value| match label {
        Value::Integer(number) => Some(Cell::Number(*number as f64)),
        Value::Float(number) => Some(Cell::Number(*number)),
        _ => None,
    };
    let flag = |label: &&Value| if let Value::Bool(flag) = label { Some(Cell::Flag(*flag)) } else { None };
    if let Some(cells) = labels.iter().map(number).collect() {
        return (Field::new(name, DataType::Float64, false), cells);
    }
    if let Some(cells) = labels.iter().map(flag).collect() {
        return (Field::new(name, DataType::Boolean, false), cells);
    }
    let text = |label: &&Value| match label {
        Value::String(text) => Cell::Text(text.clone()),
        other => Cell::Text(other.to_string()),
    };
    (Field::new(name, DataType::Utf8, false), labels.iter().map(text).collect())
}

/// The cell of each point, as often as it has rows.
fn array(cells: &[Cell], rows: &[(usize, usize)]) -> ArrayRef {
    let repeated = || rows.iter().flat_map(|(point, count)| std::iter::repeat_n(&cells[*point], *count));
    macro_rules! array {
        ($array:ty, $variant:ident) => {
            Arc::new(
                repeated()
                    .map(|cell| if let Cell::$variant(value) = cell { Some(value.clone()) } else { None })
                    .collect::<$array>(),
            )
        };
    }
    match cells.first() {
        Some(Cell::Count(_)) => array!(UInt64Array, Count),
        Some(Cell::Number(_)) => array!(Float64Array, Number),
        Some(Cell::Flag(_)) => array!(BooleanArray, Flag),
        Some(Cell::Text(_)) => array!(StringArray, Text),
        Some(Cell::Index(_)) | None => array!(UInt32Array, Index),
    }
}
