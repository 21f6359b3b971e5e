//! Bit-error patterns: which bits that cross a channel are in error.
//!
//! A pattern file is text, one item a line:
//!
//! ```text
//! whyloss bit-error pattern 1
//! total_bits 12000000
//! ber 0.0000083333
//! seed 7
//! count 3
//! 118321
//! 240077
//! 11999999
//! ```
//!
//! `total_bits` is the number of bits that the pattern describes, `ber` the bit error ratio and `seed` the seed that it was drawn
//! with (both for the reader only), `count` the number of positions that follow. A position counts bits from 0, the first bit that
//! crosses the channel; within an octet the most significant bit comes first. Positions ascend. Empty lines and lines that begin
//! with `#` are skipped.

use crate::random::Stream;
use crate::text::{FileError, Lines};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

const MAGIC: &str = "whyloss bit-error pattern 1";

/// Positions of the bits in error, ascending, counted from the first bit that crosses the channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    total_bits: u64,
    ber: f64,
    seed: u64,
    offsets: Vec<u64>,
}

impl Pattern {
    /// Draws a pattern for `total_bits` bits, each in error independently with probability `ber` in `[0, 1)`.
    ///
    /// # Panics
    /// If `ber` is not in `[0, 1)`.
    pub fn generate(ber: f64, total_bits: u64, seed: u64) -> Self {
        assert!((0.0..1.0).contains(&ber), "a bit error ratio of {ber}");
        let mut offsets = Vec::new();
        if ber > 0.0 {
            let mut stream = Stream::new(seed, 0, "pattern", "gaps");
            let mut next = stream.geometric(ber);
            while next < total_bits {
                offsets.push(next);
                next = next.saturating_add(1).saturating_add(stream.geometric(ber));
            }
        }
        Self { total_bits, ber, seed, offsets }
    }

    /// Number of bits that the pattern describes.
    pub const fn total_bits(&self) -> u64 {
        self.total_bits
    }

    /// The bit error ratio that it was drawn with.
    pub const fn ber(&self) -> f64 {
        self.ber
    }

    /// The seed that it was drawn with.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Positions of the bits in error, ascending.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Reads a pattern file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| FileError::Io { path: path.to_owned(), source })?;
        Self::parse(BufReader::new(file), path)
    }

    /// Writes a pattern file.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        File::create(path)
            .and_then(|file| self.write_to(BufWriter::new(file)))
            .map_err(|source| FileError::Io { path: path.to_owned(), source })
    }

    /// Writes the pattern in the format of its files.
    pub fn write_to(&self, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "{MAGIC}")?;
        writeln!(out, "total_bits {}\nber {}\nseed {}", self.total_bits, self.ber, self.seed)?;
        writeln!(out, "count {}", self.offsets.len())?;
        self.offsets.iter().try_for_each(|offset| writeln!(out, "{offset}"))?;
        out.flush()
    }

    /// Reads a pattern in the format of its files; `path` is only for messages.
    pub fn parse(input: impl BufRead, path: &Path) -> Result<Self, FileError> {
        let mut lines = Lines::new(input, path);
        let magic = lines.next("first line")?;
        if magic != MAGIC {
            let found = format!("`{magic}`");
            return Err(lines.unfit("first line", found, format!("`{MAGIC}`")));
        }
        let total_bits = lines.header("total_bits", "a number of bits", |_: &u64| true)?;
        let ber = lines.header("ber", "a number from 0 to below 1", |ber| (0.0..1.0).contains(ber))?;
        let seed = lines.header("seed", "a whole number", |_| true)?;
        let count: u64 = lines.header("count", "a number of positions, at most total_bits", |&count| count <= total_bits)?;
        // A count that lies must not make us reserve memory that the file does not fill.
        let mut offsets = Vec::with_capacity(count.min(1 << 16) as usize);
        while (offsets.len() as u64) < count {
            let at_least = offsets.last().map_or(0, |last| last + 1);
            let allowed = || format!("a position from {at_least} (ascending) to {} (total_bits)", total_bits.saturating_sub(1));
            let Some(text) = lines.next_or_end()? else {
                let found = format!("the end of the file after {} of {count} positions", offsets.len());
                return Err(lines.unfit("position", found, allowed()));
            };
            match text.parse::<u64>() {
                Ok(offset) if (at_least..total_bits).contains(&offset) => offsets.push(offset),
                _ => {
                    let found = format!("`{text}`");
                    return Err(lines.unfit("position", found, allowed()));
                }
            }
        }
        if let Some(text) = lines.next_or_end()? {
            let found = format!("`{text}`");
            return Err(lines.unfit("line", found, format!("the end of the file after {count} positions (count)")));
        }
        Ok(Self { total_bits, ber, seed, offsets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Pattern, String> {
        Pattern::parse(text.as_bytes(), Path::new("p.txt")).map_err(|error| error.to_string())
    }

    fn file(positions: &str) -> String {
        format!("{MAGIC}\ntotal_bits 100\nber 0.01\nseed 7\ncount 3\n{positions}")
    }

    #[test]
    fn what_is_written_can_be_read() {
        let pattern = Pattern::generate(1e-3, 1_000_000, 42);
        let mut text = Vec::new();
        pattern.write_to(&mut text).unwrap();
        assert_eq!(Pattern::parse(&text[..], Path::new("p.txt")).unwrap(), pattern);
        // 1000 expected, standard deviation 32.
        assert!((900..1100).contains(&pattern.offsets().len()), "{}", pattern.offsets().len());
        assert!(pattern.offsets().windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn no_errors_is_a_pattern_too() {
        assert!(Pattern::generate(0.0, 1000, 1).offsets().is_empty());
    }

    #[test]
    fn comments_are_skipped() {
        assert_eq!(parse(&file("1\n# two\n\n2\n99\n")).unwrap().offsets(), [1, 2, 99]);
    }

    #[test]
    fn bad_files_are_refused_with_line_and_value() {
        for (text, message) in [
            (file("1\n5\n5\n"), "p.txt, line 8: position is `5`; allowed is a position from 6 (ascending) to 99 (total_bits)"),
            (
                file("1\n5\n"),
                "p.txt, line 8: position is the end of the file after 2 of 3 positions; \
                 allowed is a position from 6 (ascending) to 99 (total_bits)",
            ),
            (
                file("1\n5\n100\n"),
                "p.txt, line 8: position is `100`; allowed is a position from 6 (ascending) to 99 (total_bits)",
            ),
            (
                file("1\n-5\n100\n"),
                "p.txt, line 7: position is `-5`; allowed is a position from 2 (ascending) to 99 (total_bits)",
            ),
            (file("1\n2\n3\n4\n"), "p.txt, line 9: line is `4`; allowed is the end of the file after 3 positions (count)"),
            ("PK\n".to_owned(), "p.txt, line 1: first line is `PK`; allowed is `whyloss bit-error pattern 1`"),
            (
                format!("{MAGIC}\ntotal_bits 100\nber 1.5\n"),
                "p.txt, line 3: ber is `ber 1.5`; allowed is `ber N` with N a number from 0 to below 1",
            ),
            (format!("{MAGIC}\n"), "p.txt, line 2: total_bits is missing: the file ends here; allowed is `total_bits`"),
        ] {
            assert_eq!(parse(&text).unwrap_err(), message);
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        assert!(Pattern::read("/nonexistent/p.txt").unwrap_err().to_string().starts_with("/nonexistent/p.txt: "));
    }
}
