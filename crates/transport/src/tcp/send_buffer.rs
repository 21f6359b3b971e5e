//! The octets that the application has handed over and the peer has not yet acknowledged.

use crate::segment::Payload;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Pieces are joined up to so many octets: each takes memory beside its octets, and many are small where an application writes little at a time.
const SMALL: usize = 512;

/// A stretch of the stream.
#[derive(Debug)]
struct Chunk {
    start: u64,
    end: u64,
    /// The octets; `None` if synthetic.
    bytes: Option<Bytes>,
}

/// The outgoing stream from the first unacknowledged octet on.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// Position of the first octet of the stream.
    base: u64,
    end: u64,
    chunks: VecDeque<Chunk>,
    /// Where records end that are not acknowledged yet.
    records: VecDeque<u64>,
}

impl SendBuffer {
    /// An empty stream whose first octet has position `base`.
    pub const fn new(base: u64) -> Self {
        Self { base, end: base, chunks: VecDeque::new(), records: VecDeque::new() }
    }

    /// Position behind the last octet.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Position of the first octet of the stream.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Appends `payload`. A synthetic payload is taken for its length: the stream's own octets are sent.
    pub fn append(&mut self, payload: Payload) {
        match payload {
            Payload::Empty => {}
            Payload::Synthetic { len, .. } => self.produce(u64::from(len)),
            Payload::Bytes(bytes) => {
                let start = self.end;
                self.end += bytes.len() as u64;
                match self.chunks.back_mut() {
                    Some(Chunk { end, bytes: Some(last), .. }) if last.len() + bytes.len() <= SMALL => {
                        *last = [&last[..], &bytes].concat().into();
                        *end = self.end;
                    }
                    _ => self.chunks.push_back(Chunk { start, end: self.end, bytes: Some(bytes) }),
                }
            }
        }
    }

    /// Appends `octets` of the synthetic stream; `u64::MAX` never ends.
    pub fn produce(&mut self, octets: u64) {
        let start = self.end;
        // Half of the space is more than any run sends and leaves room for arithmetic.
        self.end = self.end.saturating_add(octets).min(u64::MAX / 2);
        match self.chunks.back_mut() {
            Some(Chunk { end, bytes: None, .. }) => *end = self.end,
            _ => self.chunks.push_back(Chunk { start, end: self.end, bytes: None }),
        }
    }

    /// A record ends here, unless everything below is acknowledged.
    pub fn end_record(&mut self, una: u64) {
        if self.end > una.max(self.base) && self.records.back() != Some(&self.end) {
            self.records.push_back(self.end);
        }
    }

    /// Whether records end in what is not acknowledged.
    #[inline]
    pub fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// Where the record ends that has the octet at `position`, if that is known.
    #[inline]
    pub fn record_end(&self, position: u64) -> Option<u64> {
        if self.records.is_empty() {
            return None; // as with nearly every connection
        }
        let index = self.records.partition_point(|end| *end <= position);
        self.records.get(index).copied()
    }

    /// Whether a record ends at `position`.
    #[inline]
    pub fn ends_record(&self, position: u64) -> bool {
        !self.records.is_empty() && self.records.binary_search(&position).is_ok()
    }

    /// Forgets everything below `una`.
    #[inline]
    pub fn release(&mut self, una: u64) {
        while self.records.front().is_some_and(|end| *end <= una) {
            self.records.pop_front();
        }
        while self.chunks.front().is_some_and(|chunk| chunk.end <= una) {
            self.chunks.pop_front();
        }
    }

    /// `len` octets from `position` on, which must lie in the buffer. Copies only across chunks.
    #[inline]
    pub fn slice(&self, position: u64, len: u32) -> Payload {
        if len == 0 {
            return Payload::Empty;
        }
        let end = position + u64::from(len);
        let index = if self.chunks.len() == 1 { 0 } else { self.chunks.partition_point(|chunk| chunk.end <= position) };
        let chunk = &self.chunks[index];
        if end <= chunk.end {
            return self.part(chunk, position, end);
        }
        self.gather(index, position, end)
    }

    /// A copy of what lies in several chunks, from the one at `index` on.
    #[cold]
    fn gather(&self, index: usize, position: u64, end: u64) -> Payload {
        let len = (end - position) as usize;
        let mut octets = BytesMut::with_capacity(len);
        let mut from = position;
        for chunk in self.chunks.range(index..) {
            let to = end.min(chunk.end);
            octets.extend_from_slice(&self.part(chunk, from, to).to_bytes());
            from = to;
            if from == end {
                break;
            }
        }
        Payload::Bytes(octets.freeze())
    }

    #[inline]
    fn part(&self, chunk: &Chunk, from: u64, to: u64) -> Payload {
        match &chunk.bytes {
            None => Payload::Synthetic { offset: from - self.base, len: (to - from) as u32 },
            Some(bytes) => Payload::Bytes(bytes.slice((from - chunk.start) as usize..(to - chunk.start) as usize)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::synthetic_octet;

    #[test]
    fn slices_cross_chunks() {
        let mut buffer = SendBuffer::new(1000);
        buffer.append(Payload::Bytes(Bytes::from_static(b"abc")));
        buffer.produce(2);
        buffer.append(Payload::Bytes(Bytes::from_static(b"xyz")));
        let expected = [b'b', b'c', synthetic_octet(3), synthetic_octet(4), b'x'];
        assert_eq!(&buffer.slice(1001, 5).to_bytes()[..], &expected);
        buffer.release(1005);
        assert_eq!(buffer.slice(1005, 3).to_bytes(), Bytes::from_static(b"xyz"));
        assert_eq!(buffer.end(), 1008);
    }

    #[test]
    fn many_small_pieces_are_few_chunks() {
        let mut buffer = SendBuffer::new(0);
        let octet = |at: u64| (at % 251) as u8;
        for at in 0..10_000 {
            buffer.append(Payload::Bytes(Bytes::from(vec![octet(at)])));
            if at == 300 {
                buffer.release(200);
            }
        }
        assert!(buffer.chunks.len() <= 10_000 / SMALL + 1, "{}", buffer.chunks.len());
        let expected: Vec<_> = (500..9000).map(octet).collect();
        assert_eq!(&buffer.slice(500, 8500).to_bytes()[..], &expected);
        // A large piece is not copied.
        let large = Bytes::from(vec![7; 2000]);
        let place = large.as_ptr();
        buffer.append(Payload::Bytes(large));
        let Payload::Bytes(sent) = buffer.slice(10_000, 2000) else { panic!("octets") };
        assert_eq!(sent.as_ptr(), place);
    }

    #[test]
    fn an_endless_stream_stays_one_chunk() {
        let mut buffer = SendBuffer::new(1);
        buffer.produce(10);
        buffer.produce(u64::MAX);
        assert_eq!(buffer.slice(5, 20), Payload::Synthetic { offset: 4, len: 20 });
    }
}
