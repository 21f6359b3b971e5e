//! Tables, defined column by column.

use arrow_schema::DataType;

/// A column of a table, for the documentation.
#[derive(Clone, Debug)]
pub struct Column {
    /// Name, with its unit.
    pub name: &'static str,
    /// Type of its values.
    pub kind: DataType,
    /// Whether it can be null.
    pub nullable: bool,
    /// What its values mean, with their unit, for readers of `docs/results.md`.
    pub meaning: &'static str,
}

macro_rules! builder {
    (u32, $n:expr) => {
        UInt32Builder::with_capacity($n)
    };
    (u64, $n:expr) => {
        UInt64Builder::with_capacity($n)
    };
    (f64, $n:expr) => {
        Float64Builder::with_capacity($n)
    };
    (flag, $n:expr) => {
        BooleanBuilder::with_capacity($n)
    };
    (text, $n:expr) => {
        StringBuilder::with_capacity($n, 16 * $n)
    };
}

macro_rules! data_type {
    (u32) => {
        DataType::UInt32
    };
    (u64) => {
        DataType::UInt64
    };
    (f64) => {
        DataType::Float64
    };
    (flag) => {
        DataType::Boolean
    };
    (text) => {
        DataType::Utf8
    };
}

macro_rules! nullable {
    (always) => {
        false
    };
    (maybe) => {
        true
    };
}

macro_rules! append {
    (always, $builder:expr, $value:expr) => {
        $builder.append_value($value)
    };
    (maybe, $builder:expr, $value:expr) => {
        $builder.append_option($value)
    };
}

/// Defines a table: for documentation, `columns()`; for results, `batch(rows)`.
macro_rules! table {
    (
        $(#[$doc:meta])* $module:ident |$row:ident: $row_type:ty| {
            $($column:ident: $presence:ident $kind:ident = $value:expr, $meaning:literal;)*
        }
    ) => {
        $(#[$doc])*
        pub struct $module;

        impl $module {
            pub fn columns() -> Vec<Column> {
                vec![$(Column {
                    name: stringify!($column),
                    kind: data_type!($kind),
                    nullable: nullable!($presence),
                    meaning: $meaning,
                },)*]
            }

            pub fn batch<'a>(rows: impl ExactSizeIterator<Item = $row_type>) -> (Vec<Field>, Vec<ArrayRef>) {
                let _count = rows.len();
                $(let mut $column = builder!($kind, _count);)*
                for $row in rows {
                    $(append!($presence, $column, $value);)*
                }
                (
                    Self::columns().iter().map(|column| Field::new(column.name, column.kind.clone(), column.nullable)).collect(),
                    vec![$(Arc::new($column.finish()) as ArrayRef,)*],
                )
            }
        }
    };
}
