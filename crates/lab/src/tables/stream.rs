//! Tables for other languages.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};

/// `table` as an Arrow C stream, which shares the columns with whoever takes it.
pub fn stream(table: &RecordBatch) -> FFI_ArrowArrayStream {
    FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(table.clone())], table.schema())))
}
