//! A cursor over the bits that cross a channel.

use super::pattern::Pattern;
use super::spec::AtEnd;
use crate::random::Stream;
use std::sync::Arc;

/// Where the distances between bits in error come from.
#[derive(Debug)]
pub(super) enum Gaps {
    /// Independent errors: geometric distances.
    Random { ber: f64, stream: Stream },
    /// A list. `next` is the index of the position that the next distance leads to.
    Pattern { pattern: Arc<Pattern>, next: usize, at_end: AtEnd },
}

/// Counts down to the next bit in error.
#[derive(Debug)]
pub(super) struct NextError {
    gaps: Gaps,
    /// Good bits before the next bad one; `u64::MAX` if there is none.
    good: u64,
    /// Bits that have crossed.
    crossed: u64,
}

impl Gaps {
    pub fn pattern(pattern: Arc<Pattern>, at_end: AtEnd) -> Self {
        Self::Pattern { pattern, next: 0, at_end }
    }

    /// Good bits between the last bad bit (or the beginning) and the next one.
    fn next(&mut self) -> u64 {
        match self {
            Self::Random { ber, .. } if *ber == 0.0 => u64::MAX,
            Self::Random { ber, stream } => stream.geometric(*ber),
            Self::Pattern { pattern, next, at_end } => {
                let offsets = pattern.offsets();
                let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return u64::MAX };
                let index = *next;
                if index == offsets.len() {
                    *next = 1;
                    return match at_end {
                        AtEnd::Repeat => pattern.total_bits() - last - 1 + first,
                        AtEnd::Clean => u64::MAX,
                    };
                }
                *next += 1;
                if index == 0 {
                    first
                } else {
                    offsets[index] - offsets[index - 1] - 1
                }
            }
        }
    }
}

impl NextError {
    pub fn new(mut gaps: Gaps) -> Self {
        let good = gaps.next();
        Self { gaps, good, crossed: 0 }
    }

    /// Moves over `bits` bits, appends the bad ones among them to `bad`, and returns whether there are any.
    pub fn cross(&mut self, bits: u32, bad: &mut Vec<u32>) -> bool {
        self.crossed += u64::from(bits);
        let mut position = 0;
        while self.good < u64::from(bits) - position {
            position += self.good;
            bad.push(position as u32);
            position += 1;
            self.good = self.gaps.next();
        }
        // A channel without further errors stays at the top.
        if self.good != u64::MAX {
            self.good -= u64::from(bits) - position;
        }
        !bad.is_empty()
    }

    pub fn pattern_ends(&self) -> u64 {
        match &self.gaps {
            Gaps::Random { .. } => 0,
            Gaps::Pattern { pattern, at_end: AtEnd::Repeat, .. } => self.crossed / pattern.total_bits(),
            Gaps::Pattern { pattern, at_end: AtEnd::Clean, .. } => u64::from(self.crossed >= pattern.total_bits()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn pattern(total_bits: u64, offsets: &[u64]) -> Arc<Pattern> {
        let header = format!("whyloss bit-error pattern 1\ntotal_bits {total_bits}\nber 0.1\nseed 1\ncount {}", offsets.len());
        let lines: Vec<_> = std::iter::once(header).chain(offsets.iter().map(u64::to_string)).collect();
        let text = lines.join("\n");
        Arc::new(Pattern::parse(text.as_bytes(), Path::new("test")).unwrap())
    }

    /// Crosses packets of the given lengths and returns the absolute positions of the bad bits.
    fn positions(mut next: NextError, lengths: impl IntoIterator<Item = u32>) -> (Vec<u64>, u64) {
        let (mut found, mut base) = (Vec::new(), 0);
        for bits in lengths {
            let mut bad = Vec::new();
            let hit = next.cross(bits, &mut bad);
            assert_eq!(hit, !bad.is_empty());
            assert!(bad.iter().all(|&bit| bit < bits));
            found.extend(bad.iter().map(|&bit| base + u64::from(bit)));
            base += u64::from(bits);
        }
        (found, next.pattern_ends())
    }

    #[test]
    fn a_pattern_is_found_whatever_the_packets() {
        let offsets = [0, 7, 8, 15, 16, 40, 41, 99];
        for lengths in [vec![100], vec![8; 13], vec![1; 100], vec![16, 3, 40, 41]] {
            let (found, _) = positions(NextError::new(Gaps::pattern(pattern(100, &offsets), AtEnd::Clean)), lengths);
            assert_eq!(found, offsets);
        }
    }

    #[test]
    fn a_pattern_repeats_or_ends() {
        let offsets = [3, 9];
        let repeat = NextError::new(Gaps::pattern(pattern(10, &offsets), AtEnd::Repeat));
        assert_eq!(positions(repeat, [8; 4]), (vec![3, 9, 13, 19, 23, 29], 3));
        let clean = NextError::new(Gaps::pattern(pattern(10, &offsets), AtEnd::Clean));
        assert_eq!(positions(clean, [8; 4]), (vec![3, 9], 1));
        let empty = NextError::new(Gaps::pattern(pattern(10, &[]), AtEnd::Repeat));
        assert_eq!(positions(empty, [8; 4]), (vec![], 3));
    }

    #[test]
    fn random_errors_have_their_rate_and_do_not_depend_on_packet_sizes() {
        let make = || NextError::new(Gaps::Random { ber: 1e-3, stream: Stream::new(1, 0, "test", "errors") });
        let (small, _) = positions(make(), vec![320; 30_000]);
        let (large, _) = positions(make(), vec![12_000; 800]);
        assert_eq!(small, large);
        // 9600 expected, standard deviation 98.
        assert!((9_300..9_900).contains(&small.len()), "{}", small.len());
    }
}
