//! Text files that say one thing a line, and what is wrong with them.
//!
//! Empty lines and lines that begin with `#` are skipped.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line is not what the format asks for.
    #[error("{}, line {line}: {field} is {found}; allowed is {allowed}", .path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Which value of the line.
        field: &'static str,
        /// What was found.
        found: String,
        /// What is allowed.
        allowed: String,
    },
}

/// The lines of a file, with their numbers.
pub(crate) struct Lines<'a, R> {
    input: R,
    path: &'a Path,
    number: u64,
    text: String,
}

impl<'a, R: BufRead> Lines<'a, R> {
    /// The lines of `input`; `path` is only for messages.
    pub fn new(input: R, path: &'a Path) -> Self {
        Self { input, path, number: 0, text: String::new() }
    }

    /// The next line that says something, without its end.
    pub fn next_or_end(&mut self) -> Result<Option<&str>, FileError> {
        loop {
            self.text.clear();
            self.number += 1;
            let read = self.input.read_line(&mut self.text);
            let read = read.map_err(|source| FileError::Io { path: self.path.to_owned(), source })?;
            if read == 0 {
                return Ok(None);
            }
            let text = self.text.trim();
            if !text.is_empty() && !text.starts_with('#') {
                break;
            }
        }
        Ok(Some(self.text.trim()))
    }

    /// The next line that says something; there has to be one.
    pub fn next(&mut self, field: &'static str) -> Result<String, FileError> {
        match self.next_or_end()? {
            Some(text) => Ok(text.to_owned()),
            None => Err(self.unfit(field, "missing: the file ends here".to_owned(), format!("`{field}`"))),
        }
    }

    /// The value of a line `field value`.
    pub fn header<T: FromStr>(&mut self, field: &'static str, allowed: &str, fits: impl Fn(&T) -> bool) -> Result<T, FileError> {
        let text = self.next(field)?;
        let value = text.strip_prefix(field).filter(|rest| rest.starts_with(char::is_whitespace)).map(str::trim);
        match value.and_then(|value| value.parse().ok()) {
            Some(value) if fits(&value) => Ok(value),
            _ => Err(self.unfit(field, format!("`{text}`"), format!("`{field} N` with N {allowed}"))),
        }
    }

    /// The line that was read last is not what the format asks for.
    pub fn unfit(&self, field: &'static str, found: String, allowed: String) -> FileError {
        FileError::Line { path: self.path.to_owned(), line: self.number, field, found, allowed }
    }
}
