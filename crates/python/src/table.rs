//! Tables for Python, handed over by the Arrow C stream interface without a copy.

use crate::error::raise;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::path::PathBuf;
use std::sync::Arc;
use whyloss_lab::tables::{rows_digest, stream, RecordBatch, Tables, NAMES};

/// The tables of one run or of many.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Results(Arc<Tables>);

/// A table that polars, pandas and pyarrow take without a copy.
#[pyclass(frozen, module = "whyloss._native")]
pub struct Table(RecordBatch);

/// The names of all tables.
#[pyfunction]
pub fn table_names() -> Vec<&'static str> {
    NAMES.to_vec()
}

/// The digest of the rows of the table in a Parquet file of ours.
#[pyfunction]
pub fn file_digest(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| whyloss_lab::tables::file_digest(&path)).map_err(|error| raise(&error))
}

/// The table in a Parquet file of ours.
#[pyfunction]
pub fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    py.detach(|| whyloss_lab::tables::read(&path)).map(Table).map_err(|error| raise(&error))
}

impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Self {
        Self(batch)
    }
}

impl From<Tables> for Results {
    fn from(tables: Tables) -> Self {
        Self(Arc::new(tables))
    }
}

#[pymethods]
impl Results {
    /// The table called `name`.
    fn table(&self, name: &str) -> PyResult<Table> {
        self.0.get(name).cloned().map(Table).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }

    /// Writes one Parquet file a table into `folder`, each with `notes` in its metadata.
    fn write_parquet(&self, py: Python<'_>, folder: PathBuf, notes: Vec<(String, String)>) -> PyResult<()> {
        let notes: Vec<(&str, &str)> = notes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        py.detach(|| self.0.write_parquet(folder, &notes)).map_err(|error| raise(&error))
    }
}

#[pymethods]
impl Table {
    /// The Arrow C stream interface. `requested_schema` is a wish that a producer need not fulfil; the columns keep their types.
    #[pyo3(signature = (requested_schema = None))]
    #[allow(unused_variables)]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Dropping the stream releases what its consumer has not taken.
        PyCapsule::new_with_value_and_destructor(py, stream(&self.0), c"arrow_array_stream", |_, _| ())
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The digest of its rows.
    fn digest(&self, py: Python<'_>) -> String {
        py.detach(|| rows_digest(&self.0))
    }

    /// Number of its rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }
}
