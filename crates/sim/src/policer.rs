//! A token bucket that drops what exceeds it, and lets nothing wait.

use crate::error::Flaw;
use whyloss_transport::BitRate;

/// A policer in front of the queue of a link: a single rate and two colours, of which red is dropped (RFC 2697 without an excess burst).
///
/// Tokens come at `rate` until there are `burst` of them, and a packet that passes takes one for each of its octets. One that finds
/// fewer is dropped and takes none. The bucket is full when the run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Policer {
    /// Bit rate over all octets of the IP packets that it lets pass (committed information rate).
    pub rate: BitRate,
    /// Octets that may pass at once: the depth of the bucket (committed burst size). One below the length of a packet never lets it pass.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::size"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Size"))]
    pub burst: u64,
}

/// The deepest bucket.
const MAX_BURST: u64 = 1 << 30;
/// Parts of a token: what one bit per second brings in a nanosecond.
const PARTS: u64 = 8_000_000_000;

impl Policer {
    /// The first value that makes no sense.
    pub fn flaw(&self) -> Option<Flaw> {
        if self.rate.as_bps() == 0 {
            return Some(("policer.rate", self.rate.to_string(), "a rate above 0 bps"));
        }
        (!(1..=MAX_BURST).contains(&self.burst)).then(|| ("policer.burst", format!("{} B", self.burst), "1 B to 1 GiB"))
    }
}

/// A policer at work. It counts in parts of a token, so that nothing is rounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    rate: u64,
    depth: u64,
    tokens: u64,
    /// When tokens came last, in nanoseconds.
    at: u64,
}

impl Bucket {
    /// A full bucket of a policer without flaw.
    pub const fn new(policer: &Policer) -> Self {
        let depth = policer.burst * PARTS;
        Self { rate: policer.rate.as_bps(), depth, tokens: depth, at: 0 }
    }

    /// A packet of so many octets comes at `now`, in nanoseconds. Returns whether it passes.
    pub fn passes(&mut self, now: u64, octets: u32) -> bool {
        let new = self.rate.saturating_mul(now.saturating_sub(self.at));
        self.tokens = self.tokens.saturating_add(new).min(self.depth);
        self.at = self.at.max(now);
        let left = self.tokens.checked_sub(u64::from(octets) * PARTS);
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICER: Policer = Policer { rate: BitRate::from_bps(3_000_001), burst: 30_000 };
    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_full_bucket_lets_its_depth_pass_at_once_and_then_its_rate() {
        let mut bucket = Bucket::new(&POLICER);
        assert_eq!((0..30).filter(|_| bucket.passes(SECOND, 1500)).count(), 20, "30,000 octets, no more");
        // 1500 octets are 12,000 bits: at 3,000,001 bit/s, 3,999,998.67 ns.
        assert!(!bucket.passes(SECOND + 3_999_998, 1500));
        assert!(bucket.passes(SECOND + 3_999_999, 1500));
    }

    #[test]
    fn a_shorter_packet_passes_where_a_longer_one_does_not() {
        let mut bucket = Bucket::new(&Policer { burst: 1000, ..POLICER });
        assert_eq!([1001, 600, 500, 400, 1].map(|octets| bucket.passes(0, octets)), [false, true, false, true, false]);
    }

    #[test]
    fn in_the_long_run_it_passes_its_depth_and_its_rate_to_the_octet() {
        let mut bucket = Bucket::new(&POLICER);
        // 4 Mbit/s of two lengths for 100 s. At most a packet found too little, and at most a packet was coming at the end.
        let (mut passed, mut now) = (0_u64, 0);
        while now < 100 * SECOND {
            let octets = if now % 7 < 3 { 1500 } else { 40 };
            passed += if bucket.passes(now, octets) { u64::from(octets) } else { 0 };
            now += u64::from(octets) * 2000;
        }
        let allowed = 30_000 + 100 * 3_000_001 / 8;
        assert!((allowed - 3000..=allowed).contains(&passed), "{passed} of {allowed}");
    }

    #[test]
    fn an_idle_bucket_fills_to_its_depth_and_time_does_not_run_back() {
        let mut bucket = Bucket::new(&POLICER);
        assert!(bucket.passes(0, 30_000) && !bucket.passes(0, 1));
        assert!(bucket.passes(u64::MAX / 2, 30_000) && !bucket.passes(u64::MAX / 2, 1));
        assert!(!bucket.passes(0, 1) && !bucket.passes(u64::MAX / 2, 1), "an earlier time brings nothing");
    }

    #[test]
    fn senseless_values_are_found() {
        assert_eq!(POLICER.flaw(), None);
        for (policer, field) in [
            (Policer { rate: BitRate::from_bps(0), ..POLICER }, "policer.rate"),
            (Policer { burst: 0, ..POLICER }, "policer.burst"),
            (Policer { burst: MAX_BURST + 1, ..POLICER }, "policer.burst"),
        ] {
            assert_eq!(policer.flaw().map(|(field, ..)| field), Some(field));
        }
    }
}
