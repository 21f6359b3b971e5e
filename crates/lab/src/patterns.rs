//! Bit-error pattern files: drawn once, read once.

use crate::error::{Error, InputError};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use whyloss_sim::{FileError, Pattern};

/// Draws a pattern for `bits` bits, each in error independently with probability `ber` in `[0, 1)`, and writes it to `path`: whole, or
/// not at all. The same arguments give the same file.
pub fn generate(path: impl AsRef<Path>, ber: f64, bits: u64, seed: u64) -> Result<(), Error> {
    if !(0.0..1.0).contains(&ber) {
        return Err(InputError::new("no bit error ratio").found(format!("{ber:?}")).allowed("a number from 0 to below 1").into());
    }
    let mut text = Vec::new();
    Pattern::generate(ber, bits, seed).write_to(&mut text).expect("memory takes everything");
    crate::store::write_whole(path.as_ref(), &text)
}

/// Pattern files that have been read, with the digests of their contents.
#[derive(Debug, Default)]
pub(crate) struct Patterns(Mutex<HashMap<PathBuf, (Arc<Pattern>, blake3::Hash)>>);

impl Patterns {
    /// The pattern in the file `path`.
    pub fn get(&self, path: &Path) -> Result<(Arc<Pattern>, blake3::Hash), InputError> {
        if let Some(known) = self.lock().get(path) {
            return Ok(known.clone());
        }
        let bytes = std::fs::read(path).map_err(|error| {
            InputError::new(format!("cannot read the pattern file: {error}")).found(format!("\"{}\"", path.display()))
        })?;
        let pattern = Pattern::parse(&bytes[..], path).map_err(|error| match error {
            FileError::Line { path, line, field, found, allowed } => {
                InputError::new(format!("{}, line {line}: {field}", path.display())).found(found).allowed(allowed)
            }
            other @ FileError::Io { .. } => InputError::new(other.to_string()),
        })?;
        let entry = (Arc::new(pattern), blake3::hash(&bytes));
        self.lock().insert(path.to_owned(), entry.clone());
        Ok(entry)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Arc<Pattern>, blake3::Hash)>> {
        // Entries are inserted whole, so a panic elsewhere cannot have left one half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
