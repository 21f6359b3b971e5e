//! A file that travels over several connections at once.

use std::collections::VecDeque;

/// Which connection has which part of the file, and how much of it is in order at the receiver.
#[derive(Debug)]
pub(crate) struct Striped {
    octets: u64,
    chunk: u32,
    /// First octet of the file that no connection has taken.
    next: u64,
    /// What each connection has taken and not yet delivered: position in the file and length, in the order of its stream.
    taken: Vec<VecDeque<(u64, u64)>>,
    delivered: u64,
    pub max_reordered: u64,
}

impl Striped {
    pub fn new(octets: u64, chunk: u32, connections: usize) -> Self {
        Self { octets, chunk, next: 0, taken: vec![VecDeque::new(); connections], delivered: 0, max_reordered: 0 }
    }

    /// Length of a full chunk in octets.
    pub const fn chunk(&self) -> u32 {
        self.chunk
    }

    /// The next chunk, for a connection whose send buffer has room for `space` octets: position in the file and length.
    pub fn take(&mut self, connection: usize, space: u64) -> Option<(u64, u32)> {
        let len = u64::from(self.chunk).min(self.octets - self.next);
        if len == 0 || space < len {
            return None;
        }
        let start = self.next;
        self.next += len;
        self.taken[connection].push_back((start, len));
        Some((start, len as u32))
    }

    /// Whether every octet has been taken.
    pub const fn exhausted(&self) -> bool {
        self.next == self.octets
    }

    /// A connection has delivered some octets; they may span chunks. Calls `check` with the length of each stretch and the position in
    /// the file that it must come from.
    pub fn deliver(&mut self, connection: usize, mut len: u64, mut check: impl FnMut(u64, u64)) {
        self.delivered += len;
        while len > 0 {
            let Some((start, left)) = self.taken[connection].front_mut() else { break };
            let stretch = len.min(*left);
            check(stretch, *start);
            *start += stretch;
            *left -= stretch;
            len -= stretch;
            if *left == 0 {
                self.taken[connection].pop_front();
            }
        }
        self.max_reordered = self.max_reordered.max(self.delivered - self.in_order());
    }

    /// Octets of the file that have arrived without a gap from its beginning.
    pub fn in_order(&self) -> u64 {
        let missing = self.taken.iter().filter_map(|chunks| chunks.front()).map(|&(start, _)| start);
        missing.min().unwrap_or(self.next)
    }

    /// Whether the whole file is in order.
    pub fn complete(&self) -> bool {
        self.delivered == self.octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_together_in_order() {
        let mut file = Striped::new(25, 10, 2);
        assert_eq!(file.take(0, 9), None);
        assert_eq!(file.take(0, 10), Some((0, 10)));
        assert_eq!(file.take(1, 99), Some((10, 10)));
        assert_eq!(file.take(1, 5), Some((20, 5)));
        assert_eq!(file.take(0, 99), None);
        assert!(file.exhausted());
        let mut seen = Vec::new();
        file.deliver(1, 12, |len, start| seen.push((start, len)));
        assert_eq!(seen, [(10, 10), (20, 2)]);
        assert_eq!((file.in_order(), file.max_reordered), (0, 12));
        file.deliver(0, 4, |_, _| {});
        assert_eq!(file.in_order(), 4);
        file.deliver(0, 6, |_, _| {});
        assert_eq!((file.in_order(), file.complete()), (22, false));
        file.deliver(1, 3, |_, _| {});
        assert_eq!((file.in_order(), file.complete(), file.max_reordered), (25, true, 12));
    }
}
