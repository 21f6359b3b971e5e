//! Arrow tables that are defined once, column by column: their schema, their values and what they mean.
#![forbid(unsafe_code)]

pub use arrow_array;
pub use arrow_schema;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{DataType, Field, Schema};
use std::fmt::Write;
use std::sync::Arc;

/// A column of a table, for the documentation.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name, with its unit.
    pub name: &'static str,
    /// Type of its values.
    pub kind: DataType,
    /// Whether it can be null.
    pub nullable: bool,
    /// What its values mean, with their unit, for readers of the documentation.
    pub meaning: &'static str,
}

/// A table of these columns.
///
/// # Panics
/// If the columns are not of one length.
pub fn batch((fields, arrays): (Vec<Field>, Vec<ArrayRef>)) -> RecordBatch {
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one length")
}

/// `table` as an Arrow C stream, which shares the columns with whoever takes it.
pub fn stream(table: &RecordBatch) -> FFI_ArrowArrayStream {
    FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(table.clone())], table.schema())))
}

/// Appends the columns as rows of a Markdown table with the columns "column", "type" and "meaning".
pub fn describe(text: &mut String, columns: &[Column]) {
    for column in columns {
        let kind = match column.kind {
            DataType::UInt32 => "u32",
            DataType::UInt64 => "u64",
            DataType::Float64 => "f64",
            DataType::Boolean => "bool",
            _ => "text",
        };
        let null = if column.nullable { " or null" } else { "" };
        writeln!(text, "| `{}` | {kind}{null} | {} |", column.name, column.meaning).expect("a string takes all");
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! column_builder {
    (u32, $n:expr) => {
        $crate::arrow_array::builder::UInt32Builder::with_capacity($n)
    };
    (u64, $n:expr) => {
        $crate::arrow_array::builder::UInt64Builder::with_capacity($n)
    };
    (f64, $n:expr) => {
        $crate::arrow_array::builder::Float64Builder::with_capacity($n)
    };
    (flag, $n:expr) => {
        $crate::arrow_array::builder::BooleanBuilder::with_capacity($n)
    };
    (text, $n:expr) => {
        $crate::arrow_array::builder::StringBuilder::with_capacity($n, 16 * $n)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! column_type {
    (u32) => {
        $crate::arrow_schema::DataType::UInt32
    };
    (u64) => {
        $crate::arrow_schema::DataType::UInt64
    };
    (f64) => {
        $crate::arrow_schema::DataType::Float64
    };
    (flag) => {
        $crate::arrow_schema::DataType::Boolean
    };
    (text) => {
        $crate::arrow_schema::DataType::Utf8
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! column_nullable {
    (always) => {
        false
    };
    (maybe) => {
        true
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! column_append {
    (always, $builder:expr, $value:expr) => {
        $builder.append_value($value)
    };
    (maybe, $builder:expr, $value:expr) => {
        $builder.append_option($value)
    };
}

/// Defines a table: for documentation, `columns()`; for results, `batch(rows)`.
///
/// ```
/// whyloss_tables::table! {
///     /// One row a packet.
///     Packets |row: &'a (u64, Option<f64>)| {
///         number: always u64 = row.0, "Its number.";
///         delay_s: maybe f64 = row.1, "How long it took, seconds; null if it did not arrive.";
///     }
/// }
/// let table = whyloss_tables::batch(Packets::batch([(1, Some(0.5)), (2, None)].iter()));
/// assert_eq!((table.num_rows(), Packets::columns()[1].nullable), (2, true));
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[$doc:meta])* $module:ident |$row:ident: $row_type:ty| {
            $($column:ident: $presence:ident $kind:ident = $value:expr, $meaning:literal;)*
        }
    ) => {
        $(#[$doc])*
        pub struct $module;

        impl $module {
            /// Its columns.
            pub fn columns() -> Vec<$crate::Column> {
                vec![$($crate::Column {
                    name: stringify!($column),
                    kind: $crate::column_type!($kind),
                    nullable: $crate::column_nullable!($presence),
                    meaning: $meaning,
                },)*]
            }

            /// Fields and values of `rows`.
            pub fn batch<'a>(
                rows: impl ExactSizeIterator<Item = $row_type>,
            ) -> (Vec<$crate::arrow_schema::Field>, Vec<$crate::arrow_array::ArrayRef>) {
                let _count = rows.len();
                $(let mut $column = $crate::column_builder!($kind, _count);)*
                for $row in rows {
                    $($crate::column_append!($presence, $column, $value);)*
                }
                (
                    Self::columns()
                        .iter()
                        .map(|column| $crate::arrow_schema::Field::new(column.name, column.kind.clone(), column.nullable))
                        .collect(),
                    vec![$(::std::sync::Arc::new($column.finish()) as $crate::arrow_array::ArrayRef,)*],
                )
            }
        }
    };
}
