//! Files that are either whole or not there.

use crate::error::Error;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;
use whyloss_sim::WholeFile;

/// How the names of files begin that are not whole yet.
pub(crate) const TEMPORARY: &str = ".writing-";

/// Begins a file that is either whole or not there, whoever else writes it at this moment.
pub(crate) fn begin(path: &Path) -> Result<(WholeFile, File), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // Machines that share a folder can have processes of one number.
    static OWN: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
    let temporary = format!("{TEMPORARY}{:016x}-{}", *OWN, COUNTER.fetch_add(1, Ordering::Relaxed));
    WholeFile::create_as(path, temporary).map_err(|source| Error::Write { path: path.to_owned(), source })
}

/// Writes such a file at once.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (whole, mut file) = begin(path)?;
    let written = file.write_all(bytes).and_then(|()| whole.keep());
    written.map_err(|source| Error::Write { path: path.to_owned(), source })
}
