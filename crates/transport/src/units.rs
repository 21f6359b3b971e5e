//! Units that are not time.

use crate::time::Duration;
use std::fmt;

/// A bit rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }

    /// The rate in bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// The time that `octets` octets take, rounded down, and the remainder of the division in units of 1/rate nanoseconds.
    ///
    /// A link that carries the remainder over from packet to packet never drifts from its rate.
    pub const fn serialise(self, octets: u64, carried: u64) -> (Duration, u64) {
        let numerator = octets as u128 * 8_000_000_000 + carried as u128;
        let rate = self.0 as u128;
        (Duration::from_nanos((numerator / rate) as u64), (numerator % rate) as u64)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 && n % 1_000_000_000 == 0 => write!(f, "{} Gbps", n / 1_000_000_000),
            n if n >= 1_000_000 && n % 1_000_000 == 0 => write!(f, "{} Mbps", n / 1_000_000),
            n if n >= 1_000 && n % 1_000 == 0 => write!(f, "{} kbps", n / 1_000),
            n => write!(f, "{n} bps"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_does_not_drift() {
        let rate = BitRate::from_bps(3_000_001);
        let (mut total, mut carried) = (0, 0);
        for _ in 0..3_000_001 {
            let (span, rest) = rate.serialise(1, carried);
            total += span.as_nanos();
            carried = rest;
        }
        assert_eq!((total, carried), (8_000_000_000, 0));
    }
}
