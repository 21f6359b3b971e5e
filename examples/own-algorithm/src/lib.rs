//! An algorithm of one's own, in the simulator and on real packets, without a change to whyloss.

mod scalable;

pub use scalable::PART;

/// What stored results of this crate's algorithms are found by: they are computed again when the version changes.
pub const DIGEST: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));
