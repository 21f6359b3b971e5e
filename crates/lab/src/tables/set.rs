//! All tables together: joined, written, cut.

use super::parquet::Writer;
use crate::error::Error;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
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
        let mut written = Vec::with_capacity(NAMES.len());
        for (name, table) in self.all() {
            let mut writer = Writer::create(dir.as_ref(), name, &table.schema(), notes)?;
            writer.write(table)?;
            written.push(writer.finish()?);
        }
        written.into_iter().try_for_each(|file| file.keep().map(drop))
    }

    pub(crate) fn from_array(tables: [RecordBatch; NAMES.len()]) -> Self {
        let [runs, transfers, protocols, flows, losses, timeouts, drops, segments, samples, queues, links, middleboxes] = tables;
        Self { runs, transfers, protocols, flows, losses, timeouts, drops, segments, samples, queues, links, middleboxes }
    }

    /// Octets of memory that they take.
    pub(crate) fn octets(&self) -> usize {
        self.all().into_iter().map(|(_, table)| table.get_array_memory_size()).sum()
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

    /// The tables with the columns `fields` put in after the first column; `make` gives their values in the table with this index.
    pub(crate) fn with_columns(&self, fields: &[Field], mut make: impl FnMut(usize) -> Vec<ArrayRef>) -> Self {
        let all = self.all();
        let tables: Vec<_> = (0..NAMES.len())
            .map(|table| {
                let batch = all[table].1;
                let mut arrays = batch.columns().to_vec();
                arrays.splice(1..1, make(table));
                let schema = with_fields(&batch.schema(), fields);
                RecordBatch::try_new(Arc::new(schema), arrays).expect("columns of one length")
            })
            .collect();
        Self::from_array(tables.try_into().expect("as many as there are names"))
    }

    /// The tables with all columns of `schemas`, null where they do not have them.
    pub(crate) fn widened(&self, schemas: &[SchemaRef; NAMES.len()]) -> Self {
        let tables: Vec<_> = self.all().into_iter().zip(schemas).map(|((_, batch), schema)| widen(batch, schema)).collect();
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
    let schema: SchemaRef = if batches.iter().all(|batch| batch.schema() == first) {
        first
    } else {
        Arc::new(union(batches.iter().map(|batch| batch.schema())))
    };
    let widened: Vec<RecordBatch> = batches.iter().map(|batch| widen(batch, &schema)).collect();
    arrow_select::concat::concat_batches(&schema, &widened).expect("batches of one schema")
}

/// `schema` with `fields` put in after the first.
pub(crate) fn with_fields(schema: &Schema, fields: &[Field]) -> Schema {
    let mut all: Vec<Arc<Field>> = schema.fields().to_vec();
    all.splice(1..1, fields.iter().cloned().map(Arc::new));
    Schema::new(all)
}

/// The columns that the tables of many runs have together, although a run may lack some.
#[derive(Debug, Default)]
pub(crate) struct Schemas([Vec<(usize, SchemaRef)>; NAMES.len()]);

impl Schemas {
    /// Takes notice of the run with this place among all.
    pub fn see(&mut self, place: usize, tables: &Tables) {
        for (known, (_, table)) in self.0.iter_mut().zip(tables.all()) {
            match known.iter_mut().find(|(_, schema)| *schema == table.schema()) {
                Some((first, _)) => *first = place.min(*first),
                None => known.push((place, table.schema())),
            }
        }
    }

    /// The columns of each table, in the order in which the runs bring them.
    pub fn united(&self) -> [SchemaRef; NAMES.len()] {
        self.0.each_ref().map(|known| {
            let mut known = known.clone();
            known.sort_by_key(|(first, _)| *first);
            Arc::new(union(known.into_iter().map(|(_, schema)| schema)))
        })
    }
}

/// All fields of all tables: those that are not in every one are nullable. Score columns come from shadows and so may differ.
fn union(schemas: impl Iterator<Item = SchemaRef>) -> Schema {
    let mut fields: Vec<Arc<Field>> = Vec::new();
    for schema in schemas {
        for field in schema.fields() {
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
