//! What results are found by: digests of everything that decides them.

use blake3::Hash;

/// The version of everything that decides results: a digest over the sources of engine, simulator and lab.
pub const ENGINE: &str = env!("WHYLOSS_ENGINE");

/// The key of a point: the digest of what all its runs have in common.
pub(crate) fn point_key(canonical: &str) -> Hash {
    blake3::hash(format!("{ENGINE}\n{canonical}").as_bytes())
}

/// The key of a run of a point; `patterns` are the digests of its pattern files.
pub(crate) fn run_key(point: &Hash, run: u32, patterns: &str) -> Hash {
    blake3::hash(format!("{point} {run} {patterns}").as_bytes())
}
