//! The TCP segments in the records of a capture, and which of their checksums are to be believed.

use crate::headers::{Checksum, Segment};
use crate::link;
use crate::records::Record;
use std::net::IpAddr;

/// Places for what is known of hosts. Hosts that share one are judged together.
const HOSTS: usize = 1 << 12;

/// So many checksums of a host tell of it; before, those of the whole capture do.
const ENOUGH: u32 = 8;

/// Checksums that were looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    right: u32,
    /// Wrong, or not computed yet.
    others: u32,
}

impl Seen {
    fn note(&mut self, is_right: bool) {
        let count = if is_right { &mut self.right } else { &mut self.others };
        *count = count.saturating_add(1);
    }

    /// Most are right, so one that is wrong means something.
    fn tells(self) -> bool {
        self.right > self.others
    }
}

/// Reads the segments of a capture, in the order of its records.
///
/// A wrong checksum means damage only if most of that host's are right: addresses that somebody changed afterwards and network cards that
/// complete large segments leave all of them wrong.
#[derive(Debug)]
pub struct Segments {
    hosts: Box<[Seen]>,
    all: Seen,
    /// Segments whose checksum is wrong, and means nothing.
    pub disbelieved: u64,
}

impl Default for Segments {
    fn default() -> Self {
        Self { hosts: vec![Seen::default(); HOSTS].into_boxed_slice(), all: Seen::default(), disbelieved: 0 }
    }
}

impl Segments {
    /// The segment in a record; `None` if there is none, or too little of it.
    pub fn read(&mut self, record: &Record) -> Option<Segment> {
        let found = link::ip_packet(record.link, record.octets).ok()?;
        let mut segment = Segment::read(record, &found)?;
        self.weigh(&mut segment);
        Some(segment)
    }

    fn weigh(&mut self, segment: &mut Segment) {
        if segment.checksum == Checksum::Unknown {
            return;
        }
        let host = &mut self.hosts[place(segment.src.ip())];
        let known = if host.right > 0 || host.others >= ENOUGH { *host } else { self.all };
        let is_right = segment.checksum == Checksum::Right;
        host.note(is_right);
        self.all.note(is_right);
        if segment.checksum == Checksum::Wrong && !known.tells() {
            segment.checksum = Checksum::Unknown;
            self.disbelieved += 1;
        }
    }
}

fn place(host: IpAddr) -> usize {
    // Any odd number whose bits look random; this is 2^64 over the golden ratio.
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let bits = match host {
        IpAddr::V4(host) => u64::from(host.to_bits()),
        IpAddr::V6(host) => (host.to_bits() >> 64) as u64 ^ host.to_bits() as u64,
    };
    (bits.wrapping_mul(MIX) >> 52) as usize % HOSTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers;
    use std::net::SocketAddr;

    fn segment(host: u8, checksum: Checksum) -> Segment {
        Segment { src: SocketAddr::from(([10, 0, 0, host], 1)), checksum, ..headers::tests::segment() }
    }

    /// How many of the segments with these checksums are taken for damaged.
    fn damaged(segments: &mut Segments, host: u8, checksums: &[Checksum]) -> usize {
        let judged = checksums.iter().map(|checksum| {
            let mut segment = segment(host, *checksum);
            segments.weigh(&mut segment);
            segment.is_damaged()
        });
        judged.filter(|damaged| *damaged).count()
    }

    #[test]
    fn a_wrong_checksum_means_damage_only_where_most_are_right() {
        use Checksum::{Offloaded, Right, Wrong};
        let mut segments = Segments::default();
        assert_eq!(damaged(&mut segments, 1, &[Right, Right, Wrong, Right, Wrong]), 2);
        // A host that was not seen before: the capture as a whole tells. Once it is known it tells itself.
        segments.all.right += 100;
        assert_eq!(damaged(&mut segments, 2, &[Wrong; 20]), 8);
        assert_eq!(damaged(&mut segments, 3, &[Offloaded; 20]), 0);
        assert_eq!(damaged(&mut segments, 3, &[Wrong; 20]), 0);
        assert_eq!(segments.disbelieved, 32);
        // All addresses were changed afterwards.
        assert_eq!(damaged(&mut Segments::default(), 1, &[Wrong; 100]), 0);
    }
}
