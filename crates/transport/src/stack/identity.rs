//! Numbers that nobody off the path shall guess: initial sequence numbers, ephemeral ports, nonce keys.

use super::FourTuple;
use crate::seq::Seq;
use crate::time::Instant;
use siphasher::sip::SipHasher24;
use std::hash::{Hash, Hasher};

/// The dynamic ports (RFC 6335, 6).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// A keyed hash over the names of connections. The key is the driver's secret.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    hasher: SipHasher24,
    /// Connections opened so far; makes every attempt start elsewhere.
    opened: u64,
}

impl Identity {
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self { hasher: SipHasher24::new_with_key(&key), opened: 0 }
    }

    /// The initial sequence number: a clock of 4 µs plus a secret offset of the connection's own (RFC 6528, 3).
    pub(super) fn initial_seq(&self, tuple: &FourTuple, now: Instant) -> u32 {
        let clock = (now.as_nanos() / 4_000) as u32;
        clock.wrapping_add(self.hash(0, tuple) as u32)
    }

    /// The key of the nonces of one connection.
    pub(super) fn nonce_key(&mut self, tuple: &FourTuple) -> u64 {
        self.opened += 1;
        self.hash(1, &(tuple, self.opened))
    }

    /// What nobody but us can say of a connection whose peer began with `peer`, and of `data` about it.
    pub(super) fn proof(&self, tuple: &FourTuple, peer: Seq, data: u32) -> u32 {
        self.hash(3, &(tuple, peer, data)) as u32
    }

    /// The key of Fast Open cookies, until the driver gives one.
    pub(super) fn cookie_key(&self) -> [u8; 16] {
        let mut key = [0; 16];
        for (half, part) in key.chunks_exact_mut(8).zip([0u8, 1]) {
            half.copy_from_slice(&self.hash(4, &part).to_le_bytes());
        }
        key
    }

    /// The candidates for a local port towards a destination: all ephemeral ports, from a place that differs by destination and moves
    /// with every connection (RFC 6056, 3.3.3).
    pub(super) fn ports(&self, destination: &impl Hash) -> impl Iterator<Item = u16> {
        let count = u64::from(EPHEMERAL.end() - EPHEMERAL.start()) + 1;
        let start = self.hash(2, destination) % count + self.opened;
        (0..count).map(move |step| EPHEMERAL.start() + ((start + step) % count) as u16)
    }

    fn hash(&self, purpose: u8, of: &impl Hash) -> u64 {
        let mut hasher = self.hasher;
        hasher.write_u8(purpose);
        of.hash(&mut hasher);
        hasher.finish()
    }
}
