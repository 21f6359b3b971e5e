//! Points and spans of time in whole nanoseconds.
//!
//! The engine has no clock: whoever drives it says what time it is. An [`Instant`] counts nanoseconds from an origin that the
//! driver chooses (the start of a simulation, the start of a process).

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in time: nanoseconds since the driver's origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The driver's origin of time.
    pub const ZERO: Self = Self(0);
    /// Later than every instant that a run can reach.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span: 2^64 - 1 nanoseconds.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A span of `micros` microseconds; they have to fit [`Duration::MAX`].
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }

    /// A span of `millis` milliseconds; they have to fit [`Duration::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }

    /// A span of `secs` seconds; they have to fit [`Duration::MAX`].
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }

    /// `secs` seconds, rounded to the nearest nanosecond; negative and non-finite values give zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        // A float-to-integer cast saturates and sends NaN to zero.
        Self((secs * 1e9 + 0.5) as u64)
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The span in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The distance between two spans, whichever is longer.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// The span times `factor`, rounded to the nearest nanosecond.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor + 0.5) as u64)
    }

    /// The smallest multiple of `tick` that is not shorter than `self`; `self` itself if `tick` is zero.
    pub const fn round_up_to(self, tick: Self) -> Self {
        if tick.0 == 0 {
            return self;
        }
        Self(self.0.div_ceil(tick.0) * tick.0)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9} s", self.as_secs_f64())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("0 s"),
            n if n % 1_000_000_000 == 0 => write!(f, "{} s", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => write!(f, "{} ms", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{} us", n / 1_000),
            n => write!(f, "{n} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_up_to_a_tick_never_shortens() {
        let tick = Duration::from_millis(10);
        assert_eq!(Duration::from_millis(11).round_up_to(tick), Duration::from_millis(20));
        assert_eq!(Duration::from_millis(20).round_up_to(tick), Duration::from_millis(20));
        assert_eq!(Duration::from_nanos(7).round_up_to(Duration::ZERO), Duration::from_nanos(7));
    }

    #[test]
    fn spans_show_themselves_in_their_largest_whole_unit() {
        assert_eq!(Duration::from_millis(1500).to_string(), "1500 ms");
        assert_eq!(Duration::from_secs(2).to_string(), "2 s");
        assert_eq!(Duration::from_nanos(1).to_string(), "1 ns");
    }
}
