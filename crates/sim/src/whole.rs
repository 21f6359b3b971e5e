//! Files that bear their name only once they are whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// A file that is being written under another name beside its own. What is not [kept](Self::keep) goes away when dropped, and a file
/// that was there before stays as it was.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    temporary: PathBuf,
}

impl WholeFile {
    /// Begins the file at `path`. Until it is kept its name ends in `.part`.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<(Self, File)> {
        let path = path.into();
        let mut name = OsString::from(path.file_name().unwrap_or_default());
        name.push(".part");
        Self::create_as(path, &name)
    }

    /// Begins the file at `path` with the name `temporary` until it is kept: for those who may write one file at the same time.
    pub fn create_as(path: impl Into<PathBuf>, temporary: impl AsRef<Path>) -> io::Result<(Self, File)> {
        let path = path.into();
        let temporary = path.with_file_name(temporary.as_ref());
        let file = File::create(&temporary)?;
        Ok((Self { path, temporary }, file))
    }

    /// Its name once it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name. All of it has been written.
    pub fn keep(self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.path)
    }
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // Once kept it is no longer there; nothing more can be done about one that cannot be removed.
        let _ = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_a_whole_file_replaces_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path();
        let path = inside.join("table.parquet");
        let begin = |octets: &[u8]| {
            let (whole, mut file) = WholeFile::create(&path).unwrap();
            file.write_all(octets).unwrap();
            assert!(names(inside).contains(&"table.parquet.part".to_owned()));
            whole
        };
        drop(begin(b"half"));
        assert_eq!(names(inside), [""; 0]);
        begin(b"old").keep().unwrap();
        drop(begin(b"half"));
        assert_eq!((fs::read(&path).unwrap(), names(inside)), (b"old".to_vec(), vec!["table.parquet".to_owned()]));
        begin(b"new").keep().unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(inside)), (b"new".to_vec(), vec!["table.parquet".to_owned()]));
    }

    #[test]
    fn two_may_write_one_file_under_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let [first, second] = ["a", "b"].map(|name| {
            let (whole, mut file) = WholeFile::create_as(&path, name).unwrap();
            file.write_all(name.as_bytes()).unwrap();
            whole
        });
        second.keep().unwrap();
        first.keep().unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (b"a".to_vec(), vec!["file".to_owned()]));
    }
}
