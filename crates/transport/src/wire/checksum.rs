//! The Internet checksum (RFC 1071).
//!
//! A one's-complement sum does not depend on the byte order in which it is formed, so octets are added in the order of the machine,
//! eight at a time, and only the folded result is turned into network order.

/// A one's-complement sum in progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds octets. They count as 16-bit words from their first octet on, so only the last part of a sum may have an odd length.
    ///
    /// Exact for up to 16 GiB in one sum.
    #[must_use]
    pub fn with(self, octets: &[u8]) -> Self {
        // Two 32-bit halves in a 64-bit accumulator need no carries, and compilers turn this loop into vector instructions.
        let halves = |word: u64| (word & 0xFFFF_FFFF) + (word >> 32);
        let word = |octets: &[u8]| {
            let mut word = [0; 8];
            word[..octets.len()].copy_from_slice(octets);
            u64::from_ne_bytes(word)
        };
        let words = octets.chunks_exact(8);
        let last = halves(word(words.remainder()));
        Self(words.fold(self.0 + last, |sum, octets| sum + halves(word(octets))))
    }

    /// Adds a 16-bit value.
    #[must_use]
    pub const fn with_u16(self, value: u16) -> Self {
        Self(self.0 + value.to_be() as u64)
    }

    /// The checksum: the complement of the folded sum, as it stands in a header. 0 if a valid checksum was part of the sum.
    pub const fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        u16::from_be(!(sum as u16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071, 1, word by word.
    fn reference(octets: &[u8]) -> u16 {
        let sum = octets.chunks(2).fold(0u32, |sum, pair| {
            let sum = sum + u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
            (sum & 0xFFFF) + (sum >> 16)
        });
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071() {
        let octets = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().with(&octets).finish(), !0xddf2);
    }

    #[test]
    fn every_length_agrees_with_the_definition() {
        let octets: Vec<u8> = (0..200u64).map(crate::segment::synthetic_octet).collect();
        for end in 0..=octets.len() {
            assert_eq!(Sum::default().with(&octets[..end]).finish(), reference(&octets[..end]), "{end} octets");
            let cut = end / 2 / 2 * 2;
            assert_eq!(Sum::default().with(&octets[..cut]).with(&octets[cut..end]).finish(), reference(&octets[..end]));
        }
    }

    #[test]
    fn carries_are_not_lost() {
        let ones = vec![0xFF; 65_534];
        assert_eq!(Sum::default().with(&ones).finish(), 0);
        assert_eq!(Sum::default().with(&ones).with_u16(1).finish(), 0xFFFE);
    }
}
