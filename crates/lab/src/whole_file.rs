//! Files that are either whole or not there.

use crate::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use whyloss_sim::WholeFile;

/// How the names of files begin that are not whole yet.
pub(crate) const TEMPORARY: &str = ".writing-";

/// Writes a file so that it is either whole or not there, whoever else writes it at this moment.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let temporary = format!("{TEMPORARY}{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let written = WholeFile::create_as(path, temporary).and_then(|(whole, mut file)| {
        file.write_all(bytes)?;
        whole.keep()
    });
    written.map_err(|source| Error::Write { path: path.to_owned(), source })
}
