//! What a server offers: one file, or the files below a folder.

use nix::libc;
use percent_encoding::{percent_decode_str, utf8_percent_encode, AsciiSet, NON_ALPHANUMERIC};
use std::fmt::Write;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

/// What stands as itself in a path (RFC 3986, 2.3, and the slash).
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Entries of a folder that its page lists: pages are made and held for each who asks.
const MOST_LISTED: usize = 1000;

/// One file, or a folder.
#[derive(Clone, Debug)]
pub struct Files {
    root: PathBuf,
    is_folder: bool,
}

/// What a path leads to.
#[derive(Debug)]
pub enum Found {
    /// A file and its length in octets.
    File(File, u64),
    /// A folder: a page that lists it.
    Page(String),
    /// A folder whose path lacks the slash at its end.
    Slashless,
    /// Nothing that is offered.
    Nothing,
}

impl Files {
    /// Offers the file or folder at `path`.
    pub fn at(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        let is_folder = root.is_dir();
        if !is_folder {
            open_at_once(&root)?;
        }
        Ok(Self { root, is_folder })
    }

    /// A path under which something is offered.
    pub fn example(&self) -> String {
        match self.root.file_name() {
            Some(name) if !self.is_folder => format!("/{}", utf8_percent_encode(&name.to_string_lossy(), IN_PATH)),
            _ => "/".to_owned(),
        }
    }

    /// What `target`, the path of a request, leads to. Nothing outside of the folder is ever offered, by symbolic links neither.
    pub fn find(&self, target: &str) -> Found {
        self.look_up(target).unwrap_or(Found::Nothing)
    }

    fn look_up(&self, target: &str) -> io::Result<Found> {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let Ok(path) = percent_decode_str(path).decode_utf8() else { return Ok(Found::Nothing) };
        let Some(relative) = path.strip_prefix('/') else { return Ok(Found::Nothing) };
        if !self.is_folder {
            let own = self.root.file_name().is_some_and(|name| name.to_string_lossy() == relative);
            return if own || relative.is_empty() { open(&self.root) } else { Ok(Found::Nothing) };
        }
        if relative.contains('\0') || !Path::new(relative).components().all(|part| matches!(part, Component::Normal(_))) {
            return Ok(Found::Nothing);
        }
        let full = self.root.join(relative).canonicalize()?;
        if !full.starts_with(&self.root) {
            return Ok(Found::Nothing);
        }
        if !full.is_dir() {
            return open(&full);
        }
        if !path.ends_with('/') {
            return Ok(Found::Slashless);
        }
        let index = full.join("index.html");
        if index.is_file() {
            return open(&index);
        }
        page(&path, &full).map(Found::Page)
    }
}

/// A pipe would make whoever opens it wait for somebody at its other end.
fn open_at_once(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

fn open(path: &Path) -> io::Result<Found> {
    let file = open_at_once(path)?;
    let metadata = file.metadata()?;
    Ok(if metadata.is_file() { Found::File(file, metadata.len()) } else { Found::Nothing })
}

/// A list of what a folder holds.
fn page(path: &str, folder: &Path) -> io::Result<String> {
    let mut names = std::fs::read_dir(folder)?
        .map(|entry| {
            let entry = entry?;
            let slash = if entry.path().is_dir() { "/" } else { "" };
            Ok(format!("{}{slash}", entry.file_name().to_string_lossy()))
        })
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    let more = names.len().saturating_sub(MOST_LISTED);
    names.truncate(MOST_LISTED);
    let title = escape(path);
    let mut page = format!("<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n<h1>{title}</h1>\n<ul>\n");
    for name in names {
        let _ = writeln!(page, "<li><a href=\"{}\">{}</a>", utf8_percent_encode(&name, IN_PATH), escape(&name));
    }
    page.push_str("</ul>\n");
    if more > 0 {
        let _ = writeln!(page, "<p>and {more} more");
    }
    Ok(page)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn octets(found: Found) -> String {
        let Found::File(mut file, length) = found else { panic!("{found:?}") };
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text.len() as u64, length);
        text
    }

    #[test]
    fn only_what_lies_in_the_folder_is_offered() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = outside.path().join("offered");
        std::fs::create_dir_all(folder.join("sub dir")).unwrap();
        std::fs::write(folder.join("a&b"), "one").unwrap();
        std::fs::write(folder.join("sub dir/two"), "two").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("way out")).unwrap();
        nix::unistd::mkfifo(&folder.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let files = Files::at(&folder).unwrap();
        assert!(matches!(files.find("/pipe"), Found::Nothing), "and nobody waits for what comes through it");
        assert_eq!(octets(files.find("/a%26b?x=y")), "one");
        assert_eq!(octets(files.find("/sub%20dir/two")), "two");
        assert!(matches!(files.find("/sub%20dir"), Found::Slashless));
        let Found::Page(page) = files.find("/") else { panic!("no page") };
        assert!(page.contains("<a href=\"a%26b\">a&amp;b</a>") && page.contains("<a href=\"sub%20dir/\">"), "{page}");
        for target in
            ["/../secret", "/%2e%2e/secret", "/sub%20dir/../../secret", "/way%20out", "//etc/passwd", "", "a", "/%ff", "/a%00"]
        {
            assert!(matches!(files.find(target), Found::Nothing), "{target}");
        }
    }

    #[test]
    fn one_file_is_offered_by_its_name_and_as_the_root() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("one file"), "one").unwrap();
        std::fs::write(folder.path().join("other"), "other").unwrap();
        let files = Files::at(&folder.path().join("one file")).unwrap();
        assert_eq!(files.example(), "/one%20file");
        assert_eq!(octets(files.find("/")), "one");
        assert_eq!(octets(files.find("/one%20file")), "one");
        assert!(matches!(files.find("/other"), Found::Nothing));
        assert!(Files::at(&folder.path().join("missing")).is_err());
    }
}
