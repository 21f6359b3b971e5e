//! Files that bear their name only once they are whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Links that are followed one after the other, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// A file that is being written under another name beside its own. What is not [kept](Self::keep) goes away when dropped, and a file
/// that was there before stays as it was.
///
/// A link stays, and what it leads to is replaced. What is there and is no regular file, such as a pipe or a device, is written to straight.
#[derive(Debug)]
pub struct WholeFile {
    path: PathBuf,
    /// None where it is written to straight.
    temporary: Option<PathBuf>,
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
        if fs::metadata(&path).is_ok_and(|there| !there.is_file()) {
            let file = File::options().write(true).open(&path)?;
            return Ok((Self { path, temporary: None }, file));
        }
        let path = where_it_leads(path)?;
        let temporary = path.with_file_name(temporary.as_ref());
        let file = File::create(&temporary)?;
        Ok((Self { path, temporary: Some(temporary) }, file))
    }

    /// Its name once it is kept.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name. All of it has been written.
    pub fn keep(self) -> io::Result<()> {
        self.temporary.as_ref().map_or(Ok(()), |temporary| fs::rename(temporary, &self.path))
    }
}

/// What a link leads to in the end, there or not; the path itself if it is none.
fn where_it_leads(mut path: PathBuf) -> io::Result<PathBuf> {
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&path) else { return Ok(path) };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    Err(io::Error::other(format!("it leads over more than {MAX_LINKS} links")))
}

impl Drop for WholeFile {
    fn drop(&mut self) {
        // Once kept it is no longer there; nothing more can be done about one that cannot be removed.
        let _ = self.temporary.as_ref().map(fs::remove_file);
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

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_what_it_leads_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [link, other, file] = ["link", "other", "below/file"].map(|name| folder.path().join(name));
        fs::create_dir(folder.path().join("below")).unwrap();
        std::os::unix::fs::symlink("other", &link).unwrap();
        std::os::unix::fs::symlink("below/file", &other).unwrap();
        for content in ["new", "newer"] {
            let (whole, mut made) = WholeFile::create(&link).unwrap();
            made.write_all(content.as_bytes()).unwrap();
            whole.keep().unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), content);
            assert!(link.is_symlink() && other.is_symlink());
        }
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("../link", &file).unwrap();
        assert!(WholeFile::create(&link).unwrap_err().to_string().contains("more than 40 links"));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_written_to_straight() {
        use std::os::unix::fs::FileTypeExt;
        use std::process::{Command, Stdio};

        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = Command::new("cat").arg(&pipe).stdout(Stdio::piped()).spawn().unwrap();
        let (whole, mut made) = WholeFile::create(&pipe).unwrap();
        made.write_all(b"all of it").unwrap();
        drop(made);
        whole.keep().unwrap();
        assert_eq!(reader.wait_with_output().unwrap().stdout, b"all of it");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(names(folder.path()), ["pipe"]);
    }
}
