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
    #[inline]
    pub fn with(self, octets: &[u8]) -> Self {
        // The sum of the words' upper halves, and that of the whole words modulo 2^64, from which that of the lower halves follows:
        // no carries, and compilers turn this loop into vector instructions.
        let words = octets.chunks_exact(8);
        let mut rest = words.remainder();
        let (upper, whole) = words.fold((0u64, 0u64), |(upper, whole), octets| {
            let word = u64::from_ne_bytes(octets.try_into().expect("eight octets"));
            (upper + (word >> 32), whole.wrapping_add(word))
        });
        let mut sum = self.0 + upper + whole.wrapping_sub(upper << 32);
        // In steps of known length: a copy of unknown length costs more than the whole sum over a header.
        if let Some((four, others)) = rest.split_first_chunk() {
            sum += u64::from(u32::from_ne_bytes(*four));
            rest = others;
        }
        if let Some((two, others)) = rest.split_first_chunk() {
            sum += u64::from(u16::from_ne_bytes(*two));
            rest = others;
        }
        if let [last] = rest {
            sum += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        Self(sum)
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
