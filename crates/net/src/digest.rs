//! Octets with a fingerprint.

use sha2::{Digest, Sha256};

/// Counts octets and hashes them.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    octets: u64,
    hash: Sha256,
}

impl Tally {
    /// Adds octets at the end.
    pub fn add(&mut self, octets: &[u8]) {
        self.octets += octets.len() as u64;
        self.hash.update(octets);
    }

    /// How many octets there were.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Their SHA-256 in hexadecimal digits.
    pub fn sha256(&self) -> String {
        format!("{:x}", self.hash.clone().finalize())
    }
}
