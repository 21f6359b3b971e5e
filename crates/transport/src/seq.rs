//! Sequence numbers: 32 bits on the wire, 64 bits inside.
//!
//! The wire carries 32-bit numbers that wrap (RFC 9293, 3.4). Inside the engine a position in the stream is a `u64` whose low 32
//! bits equal the wire's number, so that order is plain `<` and nothing ever wraps. [`Seq::near`] does the translation.

use std::fmt;
use std::ops::{Add, Sub};

/// A 32-bit sequence number as it stands in a TCP header. Serial arithmetic modulo 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(pub u32);

impl Seq {
    /// The 64-bit position nearest to `reference` whose low 32 bits are this number.
    ///
    /// Right for every number within 2^31 of `reference`, which is what the protocol guarantees.
    pub const fn near(self, reference: u64) -> u64 {
        let distance = self.0.wrapping_sub(reference as u32) as i32;
        reference.wrapping_add(distance as i64 as u64)
    }

    /// Whether this number precedes `other` in serial order.
    pub const fn precedes(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }
}

impl From<u64> for Seq {
    fn from(position: u64) -> Self {
        Self(position as u32)
    }
}

impl Add<u32> for Seq {
    type Output = Self;
    fn add(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }
}

/// The signed distance in octets from `other` to `self`.
impl Sub for Seq {
    type Output = i32;
    fn sub(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_finds_its_position_across_the_wrap() {
        let reference = (1u64 << 32) + 5;
        assert_eq!(Seq(3).near(reference), (1 << 32) + 3);
        assert_eq!(Seq(u32::MAX).near(reference), u64::from(u32::MAX));
        assert_eq!(Seq(1000).near(reference), (1 << 32) + 1000);
    }

    #[test]
    fn serial_order_wraps() {
        assert!(Seq(u32::MAX).precedes(Seq(0)));
        assert!(!Seq(0).precedes(Seq(u32::MAX)));
        assert_eq!(Seq(2) - Seq(u32::MAX), 3);
    }
}
