//! All tables together: joined, written, cut.

use super::digest::rows_digest;
use crate::error::Error;
use crate::key::ENGINE;
use crate::whole_file::write_whole;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::file::metadata::KeyValue;
use std::path::Path;
use std::sync::Arc;

/// The tables of one run or of many.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    /// One row a run.
    pub runs: RecordBatch,
    /// One row a transfer: what an application sees, over one connection or striped over several.
    pub transfers: RecordBatch,
    /// One row a scheme: what its transfers got together.
    pub protocols: RecordBatch,
    /// One row a connection or stream of datagrams.
    pub flows: RecordBatch,
    /// One row a loss that a sender noticed, with its true cause and all verdicts.
    pub losses: RecordBatch,
    /// One row an expired retransmission timer.
    pub timeouts: RecordBatch,
    /// One row a packet that did not arrive; empty unless the scenario asks for it.
    pub drops: RecordBatch,
    /// One row a packet that an endpoint sent; empty unless the scenario asks for it.
    pub segments: RecordBatch,
    /// Time series of the senders; empty unless the scenario asks for it.
    pub samples: RecordBatch,
    /// Time series of the queues; empty unless the scenario asks for it.
    pub queues: RecordBatch,
    /// One row a direction of a link.
    pub links: RecordBatch,
    /// One row an agent at a router.
    pub middleboxes: RecordBatch,
}

/// The names of the tables, in the order of [`Tables::all`].
pub const NAMES: [&str; 12] = [
    "runs",
    "transfers",
    "protocols",
    "flows",
    "losses",
    "timeouts",
    "drops",
    "segments",
    "samples",
    "queues",
    "links",
    "middleboxes",
];

impl Tables {
    /// All tables with their names.
    pub fn all(&self) -> [(&'static str, &RecordBatch); NAMES.len()] {
        [
            (NAMES[0], &self.runs),
            (NAMES[1], &self.transfers),
            (NAMES[2], &self.protocols),
            (NAMES[3], &self.flows),
            (NAMES[4], &self.losses),
            (NAMES[5], &self.timeouts),
            (NAMES[6], &self.drops),
            (NAMES[7], &self.segments),
            (NAMES[8], &self.samples),
            (NAMES[9], &self.queues),
            (NAMES[10], &self.links),
            (NAMES[11], &self.middleboxes),
        ]
    }

    /// The table called `name`.
    pub fn get(&self, name: &str) -> Option<&RecordBatch> {
        self.all().into_iter().find(|(own, _)| *own == name).map(|(_, table)| table)
    }

    /// Writes one Parquet file a table into the folder `dir`, which is made if need be. Each file is whole or not there, and says in its
    /// metadata what engine made it, what the digest of its rows is, and what else is in `notes`.
    pub fn write_parquet(&self, dir: impl AsRef<Path>, notes: &[(&str, &str)]) -> Result<(), Error> {
        let dir = dir.as_ref();
        std::fs::create_dir_all(dir).map_err(|source| Error::Write { path: dir.to_owned(), source })?;
        for (name, table) in self.all() {
            write_whole(&dir.join(format!("{name}.parquet")), &parquet_bytes(table, notes))?;
        }
        Ok(())
    }

    pub(crate) fn from_array(tables: [RecordBatch; NAMES.len()]) -> Self {
        let [runs, transfers, protocols, flows, losses, timeouts, drops, segments, samples, queues, links, middleboxes] = tables;
        Self { runs, transfers, protocols, flows, losses, timeouts, drops, segments, samples, queues, links, middleboxes }
    }

    /// The tables of `parts` one after the other. Columns that a part does not have are null there.
    pub(crate) fn concat<'a>(parts: &(impl Iterator<Item = &'a Self> + Clone)) -> Self {
        let mut tables = Vec::with_capacity(NAMES.len());
        for index in 0..NAMES.len() {
            let batches: Vec<&RecordBatch> = parts.clone().map(|part| part.all()[index].1).collect();
            tables.push(concat(&batches));
        }
        Self::from_array(tables.try_into().expect("as many as there are names"))
    }

    /// The tables with `columns` put in after the first column; `make` builds one column's array for the table with this index.
    pub(crate) fn with_columns(&self, fields: &[Field], mut make: impl FnMut(usize, usize) -> ArrayRef) -> Self {
        let all = self.all();
        let tables: Vec<_> = (0..NAMES.len())
            .map(|table| {
                let batch = all[table].1;
                let schema = batch.schema();
                let mut names: Vec<Arc<Field>> = schema.fields().to_vec();
                let mut arrays = batch.columns().to_vec();
                for (column, field) in fields.iter().enumerate() {
                    names.insert(1 + column, Arc::new(field.clone()));
                    arrays.insert(1 + column, make(table, column));
                }
                RecordBatch::try_new(Arc::new(Schema::new(names)), arrays).expect("columns of one length")
            })
            .collect();
        Self::from_array(tables.try_into().expect("as many as there are names"))
    }

    /// Rows `offset..offset + len` of each table.
    pub(crate) fn slice(&self, ranges: &[(usize, usize); NAMES.len()]) -> Self {
        let all = self.all();
        let tables: Vec<_> = (0..NAMES.len()).map(|index| all[index].1.slice(ranges[index].0, ranges[index].1)).collect();
        Self::from_array(tables.try_into().expect("as many as there are names"))
    }
}

fn concat(batches: &[&RecordBatch]) -> RecordBatch {
    let first = batches.first().expect("at least one part").schema();
    let schema: SchemaRef = if batches.iter().all(|batch| batch.schema() == first) { first } else { Arc::new(union(batches)) };
    let widened: Vec<RecordBatch> = batches.iter().map(|batch| widen(batch, &schema)).collect();
    arrow_select::concat::concat_batches(&schema, &widened).expect("batches of one schema")
}

/// All fields of all batches: those that are not in every batch are nullable. Score columns come from shadows and so may differ.
fn union(batches: &[&RecordBatch]) -> Schema {
    let mut fields: Vec<Arc<Field>> = Vec::new();
    for batch in batches {
        for field in batch.schema().fields() {
            if !fields.iter().any(|known| known.name() == field.name()) {
                fields.push(field.clone());
            }
        }
    }
    Schema::new(fields)
}

fn widen(batch: &RecordBatch, schema: &SchemaRef) -> RecordBatch {
    if batch.schema() == *schema {
        return batch.clone();
    }
    let arrays = schema
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            Some(array) => array.clone(),
            None => arrow_array::new_null_array(field.data_type(), batch.num_rows()),
        })
        .collect();
    RecordBatch::try_new(schema.clone(), arrays).expect("missing columns are nullable")
}

fn parquet_bytes(table: &RecordBatch, notes: &[(&str, &str)]) -> Vec<u8> {
    let rows = rows_digest(table);
    let own = [("whyloss.engine", ENGINE), ("whyloss.rows", &*rows)];
    let said = own.iter().chain(notes).map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned())).collect();
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_compression(parquet::basic::Compression::SNAPPY)
        .set_created_by(format!("whyloss {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(said))
        .build();
    let mut bytes = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties)).expect("plain columns");
    writer.write(table).expect("memory takes everything");
    writer.close().expect("memory takes everything");
    bytes
}
