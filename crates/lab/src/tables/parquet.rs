//! Tables as Parquet files, written as their rows come.

use super::digest::RowsDigest;
use crate::error::Error;
use crate::key::ENGINE;
use crate::whole_file::begin;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::coalesce::BatchCoalescer;
use arrow_select::concat::concat_batches;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use whyloss_sim::WholeFile;

/// Rows that are encoded together: a file has the same octets, however its rows come.
const ROWS: usize = 16 * 1024;

/// Rows of a row group: a writer holds as many.
const GROUP: usize = 8 * ROWS;

/// A table on its way to a file. The file is not there before it is [kept](Written::keep).
pub(crate) struct Writer {
    name: &'static str,
    path: PathBuf,
    whole: WholeFile,
    waiting: BatchCoalescer,
    parquet: ArrowWriter<File>,
    digest: RowsDigest,
    rows: u64,
}

/// A table of which all rows are written.
pub(crate) struct Written {
    path: PathBuf,
    whole: WholeFile,
    saved: Saved,
}

/// What was written of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Its name.
    pub name: &'static str,
    /// Number of its rows.
    pub rows: u64,
    /// The digest of its rows, as [`rows_digest`](super::rows_digest) has it.
    pub digest: String,
}

impl Writer {
    /// Begins the table `name` with these columns in the folder `dir`, which is made if need be. The file says what engine made it, what the
    /// digest of its rows is, and what else is in `notes`.
    pub fn create(dir: &Path, name: &'static str, schema: &SchemaRef, notes: &[(&str, &str)]) -> Result<Self, Error> {
        std::fs::create_dir_all(dir).map_err(|source| Error::Write { path: dir.to_owned(), source })?;
        let path = dir.join(format!("{name}.parquet"));
        let (whole, file) = begin(&path)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("whyloss {}", env!("CARGO_PKG_VERSION")))
            .set_max_row_group_row_count(Some(GROUP))
            .build();
        let mut parquet = ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(|error| failed(&path, error))?;
        for (key, value) in [("whyloss.engine", ENGINE)].iter().chain(notes) {
            parquet.append_key_value_metadata(KeyValue::new((*key).to_owned(), (*value).to_owned()));
        }
        let waiting = BatchCoalescer::new(schema.clone(), ROWS);
        Ok(Self { name, path, whole, waiting, parquet, digest: RowsDigest::new(schema), rows: 0 })
    }

    /// Adds rows. They have the columns of the table.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<(), Error> {
        self.digest.add(rows);
        self.rows += rows.num_rows() as u64;
        self.waiting.push_batch(rows.clone()).expect("columns of the table");
        self.encode()
    }

    /// Ends the table.
    pub fn finish(mut self) -> Result<Written, Error> {
        self.waiting.finish_buffered_batch().expect("columns of the table");
        self.encode()?;
        let digest = self.digest.finish();
        self.parquet.append_key_value_metadata(KeyValue::new("whyloss.rows".to_owned(), digest.clone()));
        self.parquet.close().map_err(|error| failed(&self.path, error))?;
        Ok(Written { path: self.path, whole: self.whole, saved: Saved { name: self.name, rows: self.rows, digest } })
    }

    fn encode(&mut self) -> Result<(), Error> {
        while let Some(rows) = self.waiting.next_completed_batch() {
            self.parquet.write(&rows).map_err(|error| failed(&self.path, error))?;
        }
        Ok(())
    }
}

impl Written {
    /// Puts the file in its place.
    pub fn keep(self) -> Result<Saved, Error> {
        self.whole.keep().map_err(|source| Error::Write { path: self.path, source })?;
        Ok(self.saved)
    }
}

/// The table in a Parquet file of ours.
///
/// # Errors
/// If the file cannot be read.
pub fn read(path: &Path) -> Result<RecordBatch, Error> {
    let (schema, batches) = open(path)?;
    let batches = batches.collect::<Result<Vec<_>, Error>>()?;
    Ok(concat_batches(&schema, &batches).expect("batches of one schema"))
}

/// The digest of the rows in a Parquet file of ours, however large it is.
///
/// # Errors
/// If the file cannot be read.
pub fn file_digest(path: &Path) -> Result<String, Error> {
    let (schema, batches) = open(path)?;
    let mut digest = RowsDigest::new(&schema);
    for batch in batches {
        digest.add(&batch?);
    }
    Ok(digest.finish())
}

/// The columns of the table in a Parquet file, and its rows in pieces.
fn open(path: &Path) -> Result<(SchemaRef, impl Iterator<Item = Result<RecordBatch, Error>> + '_), Error> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Read {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, source),
    };
    let file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| failed(error.into()))?;
    // What was written says which Arrow schema it had; metadata beside it is no column.
    let schema = Arc::new(builder.schema().as_ref().clone().with_metadata(HashMap::new()));
    let batches = builder.with_batch_size(ROWS).build().map_err(|error| failed(error.into()))?;
    let own = schema.clone();
    let batches = batches.map(move |batch| {
        let batch = batch.map_err(|error| failed(error.into()))?;
        Ok(batch.with_schema(own.clone()).expect("the same columns"))
    });
    Ok((schema, batches))
}

fn failed(path: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(source) => source.downcast::<io::Error>().map_or_else(io::Error::other, |source| *source),
        other => io::Error::other(other),
    };
    Error::Write { path: path.to_owned(), source }
}
