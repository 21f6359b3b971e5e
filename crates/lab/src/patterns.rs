//! The files that links name: bit-error patterns, drawn once, and delivery traces. Each is read once.

use crate::error::{Error, InputError};
use crate::whole_file::write_whole;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use whyloss_sim::{FileError, Pattern, Trace};

/// Draws a pattern for `bits` bits, each in error independently with probability `ber` in `[0, 1)`, and writes it to `path`: whole, or
/// not at all. The same arguments give the same file.
pub fn generate(path: impl AsRef<Path>, ber: f64, bits: u64, seed: u64) -> Result<(), Error> {
    if !(0.0..1.0).contains(&ber) {
        return Err(InputError::new("no bit error ratio").found(format!("{ber:?}")).allowed("a number from 0 to below 1").into());
    }
    let mut text = Vec::new();
    Pattern::generate(ber, bits, seed).write_to(&mut text).expect("memory takes everything");
    write_whole(path.as_ref(), &text)
}

/// Files that have been read, with the digests of their contents.
#[derive(Debug)]
struct Cache<T>(Mutex<HashMap<PathBuf, (Arc<T>, blake3::Hash)>>);

/// The files that links name.
#[derive(Debug, Default)]
pub(crate) struct Files {
    patterns: Cache<Pattern>,
    traces: Cache<Trace>,
}

impl Files {
    /// The pattern in the file `path`.
    pub fn pattern(&self, path: &Path) -> Result<(Arc<Pattern>, blake3::Hash), InputError> {
        let (pattern, digest) = self.patterns.get(path, "pattern", |bytes| Pattern::parse(bytes, path))?;
        check_ratio(&pattern, path)?;
        Ok((pattern, digest))
    }

    /// The delivery trace in the file `path`.
    pub fn trace(&self, path: &Path) -> Result<(Arc<Trace>, blake3::Hash), InputError> {
        self.traces.get(path, "trace", |bytes| Trace::parse(bytes, path))
    }
}

/// Whether such a pattern can be drawn at the ratio that it says: within six standard deviations, and six bits.
fn check_ratio(pattern: &Pattern, path: &Path) -> Result<(), InputError> {
    let (ber, bits, count) = (pattern.ber(), pattern.total_bits(), pattern.offsets().len());
    let expected = ber * bits as f64;
    let spread = if ber > 0.0 { 6.0 * expected.sqrt() + 6.0 } else { 0.0 };
    if (count as f64 - expected).abs() <= spread {
        return Ok(());
    }
    Err(InputError::new(format!("{}: its `ber` is not that of its positions", path.display()))
        .found(format!("{ber:?} with {count} of {bits} bits in error"))
        .allowed(format!("about {:.3e}", count as f64 / bits.max(1) as f64)))
}

/// The contents of the files that one direction of a link names.
#[derive(Clone, Debug)]
pub(crate) struct LinkFiles {
    pub link: usize,
    pub way: usize,
    pub pattern: Option<Arc<Pattern>>,
    pub trace: Option<Arc<Trace>>,
    pub digest: String,
}

impl LinkFiles {
    /// Those of one direction of a link; `files` are in the order of links and ways.
    pub fn of(files: &[Self], link: usize, way: usize) -> Option<&Self> {
        files.binary_search_by_key(&(link, way), |files| (files.link, files.way)).ok().map(|found| &files[found])
    }
}

/// What tells `files` of a run from others.
pub(crate) fn digests(files: &[LinkFiles]) -> String {
    let digests: Vec<_> = files.iter().map(|file| format!("{}/{}:{}", file.link, file.way, file.digest)).collect();
    digests.join(" ")
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Cache<T> {
    fn get(
        &self,
        path: &Path,
        kind: &str,
        parse: impl FnOnce(&[u8]) -> Result<T, FileError>,
    ) -> Result<(Arc<T>, blake3::Hash), InputError> {
        if let Some(known) = self.lock().get(path) {
            return Ok(known.clone());
        }
        let bytes = std::fs::read(path).map_err(|error| {
            InputError::new(format!("cannot read the {kind} file: {error}")).found(format!("\"{}\"", path.display()))
        })?;
        let content = parse(&bytes[..]).map_err(|error| match error {
            FileError::Line { path, line, field, found, allowed } => {
                InputError::new(format!("{}, line {line}: {field}", path.display())).found(found).allowed(allowed)
            }
            other @ FileError::Io { .. } => InputError::new(other.to_string()),
        })?;
        let entry = (Arc::new(content), blake3::hash(&bytes));
        self.lock().insert(path.to_owned(), entry.clone());
        Ok(entry)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, (Arc<T>, blake3::Hash)>> {
        // Entries are inserted whole, so a panic elsewhere cannot have left one half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
