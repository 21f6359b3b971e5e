//! Files that are either whole or not there.

use crate::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the names of files begin that are not whole yet.
pub(crate) const TEMPORARY: &str = ".writing-";

/// Writes a file so that it is either whole or not there: under another name first, in the same folder.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let temporary = path.with_file_name(format!("{TEMPORARY}{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
    let written = std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.flush()))
        .and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|source| {
        // Nothing more can be done about a file that cannot be removed either.
        let _ = std::fs::remove_file(&temporary);
        Error::Write { path: path.to_owned(), source }
    })
}
