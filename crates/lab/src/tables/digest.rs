//! What is in a table, as one number: the same on every machine, however the table is cut or packed.
//!
//! The digest is BLAKE3 over the name, the type and the values of each column, one column after the other. Numbers go in as
//! little-endian octets, text as its length and its UTF-8, and each value after an octet that says whether there is one.

use arrow_array::{Array, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::SchemaRef;
use blake3::Hasher;

/// The digest of the rows of a table that comes in pieces.
#[derive(Debug)]
pub struct RowsDigest {
    rows: u64,
    columns: Vec<Hasher>,
}

impl RowsDigest {
    /// Of a table with these columns and no rows yet.
    pub fn new(schema: &SchemaRef) -> Self {
        let begin = |field: &arrow_schema::FieldRef| {
            let mut hasher = Hasher::new();
            hasher.update(format!("{} {:?}\n", field.name(), field.data_type()).as_bytes());
            hasher
        };
        Self { rows: 0, columns: schema.fields().iter().map(begin).collect() }
    }

    /// Adds rows.
    pub fn add(&mut self, batch: &RecordBatch) {
        self.rows += batch.num_rows() as u64;
        for (hasher, column) in self.columns.iter_mut().zip(batch.columns()) {
            add(hasher, column.as_ref());
        }
    }

    /// The digest, in hexadecimal digits.
    pub fn finish(self) -> String {
        let mut whole = Hasher::new();
        whole.update(&self.rows.to_le_bytes());
        for column in &self.columns {
            whole.update(column.finalize().as_bytes());
        }
        whole.finalize().to_hex().to_string()
    }
}

/// The digest of the rows of `table`.
pub fn rows_digest(table: &RecordBatch) -> String {
    let mut digest = RowsDigest::new(&table.schema());
    digest.add(table);
    digest.finish()
}

fn add(hasher: &mut Hasher, column: &dyn Array) {
    // A column is hashed in pieces of some size: an octet at a time takes long.
    let mut octets = Vec::with_capacity(column.len() * 9);
    macro_rules! values {
        ($array:ty, $put:expr) => {
            if let Some(array) = column.as_any().downcast_ref::<$array>() {
                for value in array {
                    octets.push(u8::from(value.is_some()));
                    if let Some(value) = value {
                        $put(&mut octets, value);
                    }
                }
                hasher.update(&octets);
                return;
            }
        };
    }
    values!(UInt64Array, |octets: &mut Vec<u8>, value: u64| octets.extend(value.to_le_bytes()));
    values!(UInt32Array, |octets: &mut Vec<u8>, value: u32| octets.extend(value.to_le_bytes()));
    values!(Float64Array, |octets: &mut Vec<u8>, value: f64| octets.extend(value.to_bits().to_le_bytes()));
    values!(BooleanArray, |octets: &mut Vec<u8>, value: bool| octets.push(u8::from(value)));
    values!(StringArray, |octets: &mut Vec<u8>, value: &str| {
        octets.extend((value.len() as u64).to_le_bytes());
        octets.extend(value.as_bytes());
    });
    // Tables of ours have no other types: whoever wrote this one, the name of the type has made another digest of it already.
    hasher.update(&(column.len() as u64).to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::ArrayRef;
    use std::sync::Arc;

    fn table(numbers: Vec<Option<u64>>, texts: Vec<Option<&str>>) -> RecordBatch {
        let columns: [(&str, ArrayRef); 2] =
            [("n", Arc::new(UInt64Array::from(numbers))), ("t", Arc::new(StringArray::from(texts)))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn the_digest_is_that_of_the_values_however_they_are_cut() {
        let whole = table(vec![Some(1), None, Some(3)], vec![Some("a"), Some(""), None]);
        let mut pieces = RowsDigest::new(&whole.schema());
        pieces.add(&whole.slice(0, 1));
        pieces.add(&whole.slice(1, 2));
        assert_eq!(pieces.finish(), rows_digest(&whole));
    }

    #[test]
    fn another_value_place_or_gap_is_another_digest() {
        let one = rows_digest(&table(vec![Some(0), None], vec![Some("ab"), Some("c")]));
        for other in [
            table(vec![None, Some(0)], vec![Some("ab"), Some("c")]),
            table(vec![Some(0), None], vec![Some("a"), Some("bc")]),
            table(vec![Some(0), Some(0)], vec![Some("ab"), Some("c")]),
            table(vec![Some(0), None, None], vec![Some("ab"), Some("c"), None]),
        ] {
            assert_ne!(rows_digest(&other), one);
        }
    }
}
