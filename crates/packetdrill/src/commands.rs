//! Shell commands of scripts: the file that they come by, and their words.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

/// The most octets of commands that a script may give while it runs.
const MOST: u64 = 1 << 20;
/// A file that grows by the commands that a script gives while it runs.
#[derive(Debug)]
pub struct CommandFile {
    path: PathBuf,
    /// Octets that were followed.
    done: u64,
}

impl CommandFile {
    pub fn new(path: &str) -> Self {
        Self { path: path.into(), done: 0 }
    }

    /// What has been added since the last look, up to the last whole line.
    pub fn news(&mut self) -> Option<String> {
        let len = self.path.metadata().ok()?.len();
        if len <= self.done || len > MOST {
            return None;
        }
        let mut text = String::new();
        let mut file = File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(self.done)).ok()?;
        file.take(MOST).read_to_string(&mut text).ok()?;
        text.truncate(text.rfind('\n')? + 1);
        self.done += text.len() as u64;
        Some(text)
    }
}

/// The words of a command line; quotes keep blanks in a word.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut inside) = (Vec::<String>::new(), None, false);
    for letter in line.chars() {
        if quote.is_none() && letter.is_whitespace() {
            inside = false;
            continue;
        }
        if !std::mem::replace(&mut inside, true) {
            words.push(String::new());
        }
        match (quote, letter) {
            (Some(mark), letter) if letter == mark => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            _ => words.last_mut().expect("just pushed").push(letter),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_blanks() {
        assert_eq!(words("sysctl -q a='1 2  3' \"b c\"  d"), ["sysctl", "-q", "a=1 2  3", "b c", "d"]);
        assert!(words("  ").is_empty());
    }
}
