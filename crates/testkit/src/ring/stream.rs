//! What one host of the ring sends to the other.

use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use whyloss_transport::segment::synthetic_octet;
use whyloss_transport::Payload;

/// The data of one direction.
#[derive(Clone, Debug)]
pub struct Stream {
    octets: Option<Bytes>,
    len: u64,
}

impl Stream {
    /// `len` random octets.
    pub fn random(len: u64, seed: u64) -> Self {
        let mut octets = vec![0; len as usize];
        Pcg64Mcg::seed_from_u64(seed).fill_bytes(&mut octets);
        Self { octets: Some(octets.into()), len }
    }

    /// `len` octets of the engine's synthetic stream.
    pub const fn synthetic(len: u64) -> Self {
        Self { octets: None, len }
    }

    /// Length of the stream in octets.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The octets from `start` up to `end`.
    pub fn slice(&self, start: u64, end: u64) -> Payload {
        match &self.octets {
            Some(octets) => Payload::Bytes(octets.slice(start as usize..end as usize)),
            None => Payload::Synthetic { offset: start, len: (end - start) as u32 },
        }
    }

    /// Whether `payload` is what stands at `offset`.
    pub fn matches(&self, offset: u64, payload: &Payload) -> bool {
        let end = offset + payload.len() as u64;
        if end > self.len {
            return false;
        }
        match (&self.octets, payload) {
            (Some(octets), _) => octets[offset as usize..end as usize] == payload.to_bytes()[..],
            (None, Payload::Synthetic { offset: found, .. }) => *found == offset,
            (None, _) => payload.to_bytes().iter().zip(offset..).all(|(octet, at)| *octet == synthetic_octet(at)),
        }
    }
}
