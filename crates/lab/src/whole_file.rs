//! Files that are either whole or not there.

use crate::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::LazyLock;
use whyloss_sim::WholeFile;

/// How the names of files begin that are not whole yet.
pub(crate) const TEMPORARY: &str = ".writing-";

/// Writes a file so that it is either whole or not there, whoever else writes it at this moment.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // Machines that share a folder can have processes of one number.
    static OWN: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
    let temporary = format!("{TEMPORARY}{:016x}-{}", *OWN, COUNTER.fetch_add(1, Ordering::Relaxed));
    let written = WholeFile::create_as(path, temporary).and_then(|(whole, mut file)| {
        file.write_all(bytes)?;
        whole.keep()
    });
    written.map_err(|source| Error::Write { path: path.to_owned(), source })
}
