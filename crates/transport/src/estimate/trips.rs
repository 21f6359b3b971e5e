//! The relative one-way trip times that a receiver sees, between their extremes.

use super::{Extremes, Remembered};
use crate::time::{Duration, Instant};

/// Trips are relative to the first one. This many nanoseconds are added so that they are positive: twelve days.
const ORIGIN: i64 = 1 << 50;

/// Samples before their variation says what an outlier is.
const TRUSTED: u64 = 16;

/// The trip time of the latest packet and the extremes of all. As in the queue usage of a sender, a windowed maximum takes no notice of a
/// single sample beyond the smoothed one plus eight variations.
#[derive(Clone, Debug)]
pub struct Trips {
    remembered: Remembered,
    latest: Option<i64>,
    samples: u64,
    smoothed: f64,
    variation: f64,
    suspicion: bool,
}

impl Trips {
    /// An estimate without samples.
    pub fn new(extremes: Extremes) -> Self {
        let remembered = Remembered::new(extremes);
        Self { remembered, latest: None, samples: 0, smoothed: 0.0, variation: 0.0, suspicion: false }
    }

    /// A packet arrived after a relative trip of `trip` nanoseconds.
    pub fn insert(&mut self, trip: i64, now: Instant) {
        let number = trip.clamp(-ORIGIN, ORIGIN).saturating_add(ORIGIN) as u64;
        let sample = trip as f64;
        let suspicious = self.samples >= TRUSTED && sample > self.smoothed + 8.0 * self.variation;
        if suspicious && !self.suspicion && self.remembered.forgets() {
            self.remembered.insert_low(number, now);
        } else {
            self.remembered.insert(number, now);
        }
        self.suspicion = suspicious;
        // The gains of RFC 6298, 2.3.
        if self.samples == 0 {
            self.smoothed = sample;
        } else {
            self.variation += ((sample - self.smoothed).abs() - self.variation) / 4.0;
            self.smoothed += (sample - self.smoothed) / 8.0;
        }
        self.latest = Some(trip);
        self.samples += 1;
    }

    /// Number of samples since the connection began.
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// What lies between the extremes.
    pub fn range(&self) -> Duration {
        let extent = self.remembered.extent();
        extent.min().map_or(Duration::ZERO, |min| Duration::from_nanos(extent.max().saturating_sub(min)))
    }

    /// What the latest packet waited: its distance from the shortest trip. `None` before the first sample.
    pub fn waiting(&self) -> Option<Duration> {
        let min = self.remembered.extent().min()? as i64 - ORIGIN;
        Some(Duration::from_nanos(self.latest?.saturating_sub(min).max(0) as u64))
    }

    /// Where the latest trip stands between the extremes, in `[0, 1]`; `None` if those are equal.
    pub fn usage(&self) -> Option<f64> {
        let range = self.range();
        let usage = self.waiting()?.as_nanos() as f64 / range.as_nanos() as f64;
        (range > Duration::ZERO).then_some(usage.min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(trips: &mut Trips, at_s: u64, ms: i64) {
        trips.insert(ms * 1_000_000, Instant::ZERO + Duration::from_secs(at_s));
    }

    #[test]
    fn usage_is_the_place_between_the_extremes_and_trips_may_be_negative() {
        let mut trips = Trips::new(Extremes::Lifetime);
        assert_eq!((trips.usage(), trips.waiting(), trips.range()), (None, None, Duration::ZERO));
        for (ms, usage) in [(0, None), (-20, Some(0.0)), (60, Some(1.0)), (0, Some(0.25))] {
            insert(&mut trips, 1, ms);
            assert_eq!(trips.usage(), usage);
        }
        assert_eq!((trips.range(), trips.waiting()), (Duration::from_millis(80), Some(Duration::from_millis(20))));
        trips.insert(i64::MIN, Instant::ZERO);
        trips.insert(i64::MAX, Instant::ZERO);
        assert_eq!(trips.usage(), Some(1.0));
    }

    #[test]
    fn a_window_forgets_and_one_spike_is_no_maximum() {
        let mut trips = Trips::new(Extremes::Windowed(Duration::from_secs(60)));
        for n in 0..100 {
            insert(&mut trips, 1, 10 + n % 2);
        }
        insert(&mut trips, 1, 500);
        assert_eq!(trips.range(), Duration::from_millis(1));
        assert_eq!(trips.usage(), Some(1.0), "never beyond full");
        insert(&mut trips, 70, 30);
        insert(&mut trips, 70, 40);
        assert_eq!(trips.range(), Duration::from_millis(10), "the first minute is forgotten");
    }
}
