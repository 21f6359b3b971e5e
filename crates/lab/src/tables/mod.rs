//! What runs leave behind, as Arrow tables with stable schemas.
//!
//! Each table is defined once, column by column, in `columns`; `docs/results.md` is generated from the same definitions. Units stand
//! in the names of columns. Tables of a sweep have one more column for each axis, right after `run`.

mod columns;
mod digest;
mod docs;
mod packets;
mod parquet;
mod series;
mod set;

pub use arrow_array::RecordBatch;
pub use digest::{rows_digest, RowsDigest};
pub use docs::{markdown, packets_markdown};
pub use packets::{batch as packets, PacketFate, PacketRow, PacketWriter};
pub use parquet::{file_digest, read, Saved};
pub use set::{Tables, NAMES};
pub use whyloss_tables::stream;

pub(crate) use columns::{all as columns, batches, Origin};
pub(crate) use parquet::{Writer, Written};
pub(crate) use series::{series, Names, SERIES, SHADOWS};
pub(crate) use set::{with_fields, Schemas};
