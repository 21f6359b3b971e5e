//! Captures given together that have the same packets: one of them begins in the midst of the other, or both were taken at once in one place.

use crate::records::Record;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Packets that are remembered of all files. Of more, every second is, then every fourth, and so on, chosen by what they hold.
const REMEMBERED: usize = 1 << 18;
/// Octets that are compared: the headers. What lies behind them one of the captures may have cut off.
const COMPARED: usize = 64;
/// So many packets of a file are in an earlier one by no chance, nor because a file ended between two records of one packet.
const SEVERAL: u32 = 4;

/// Packets of the files read so far.
#[derive(Debug, Default)]
pub struct Overlaps {
    /// Their hashes, and the first file with each.
    seen: HashMap<u64, usize>,
    /// Hashes with one of these bits are not remembered.
    passed_over: u64,
    /// The file at hand, and how many of its packets each earlier one has.
    file: usize,
    repeated: HashMap<usize, u32>,
}

impl Overlaps {
    /// The next record of a file, which is the one before or a later one; gives the earlier file with the same packets at the same times, once it is
    /// clear that there is one.
    pub fn note(&mut self, file: usize, record: &Record) -> Option<usize> {
        if self.file != file {
            self.file = file;
            self.repeated.clear();
        }
        let hash = hash(record);
        if hash & self.passed_over != 0 {
            return None;
        }
        let first = *self.seen.entry(hash).or_insert(file);
        if first != file {
            let repeated = self.repeated.entry(first).or_insert(0);
            *repeated += 1;
            return (*repeated >= SEVERAL).then_some(first);
        }
        if self.seen.len() > REMEMBERED {
            self.passed_over = self.passed_over << 1 | 1;
            let passed_over = self.passed_over;
            self.seen.retain(|hash, _| hash & passed_over == 0);
        }
        None
    }
}

/// What makes a packet and its time the same, by a clock of microseconds.
fn hash(record: &Record) -> u64 {
    let mut hasher = DefaultHasher::new();
    (record.at.as_nanos() / 1000, record.original_len).hash(&mut hasher);
    hasher.write(&record.octets[..record.octets.len().min(COMPARED)]);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;
    use whyloss_transport::time::Instant;

    /// The file that has packets of the next ones' too, where the files have these packets of a series.
    fn found(files: &[Range<u64>]) -> Option<(usize, usize)> {
        let mut overlaps = Overlaps::default();
        for (file, packets) in files.iter().enumerate() {
            for number in packets.clone() {
                let octets = number.to_be_bytes();
                let record = Record::of(number, Instant::from_nanos(number * 1000), &octets);
                if let Some(other) = overlaps.note(file, &record) {
                    return Some((other, file));
                }
            }
        }
        None
    }

    #[test]
    fn packets_that_come_again_in_another_file_are_found_among_any_number() {
        assert_eq!(found(&[0..100, 100..200]), None);
        assert_eq!(found(&[0..100, 97..200]), None, "the records of one packet at the end of a file");
        assert_eq!(found(&[0..100, 96..200]), Some((0, 1)));
        assert_eq!(found(&[0..100, 100..200, 50..60]), Some((0, 2)));
        assert_eq!(found(&[50..60, 0..100]), Some((0, 1)));
        // Three quarters are not remembered.
        let many = 3 * REMEMBERED as u64;
        assert_eq!(found(&[0..many, many / 2..many / 2 + 1000]), Some((0, 1)));
        assert_eq!(found(&[0..many, many..many + 1000]), None);
    }
}
