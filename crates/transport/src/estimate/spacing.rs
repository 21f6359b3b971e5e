//! The time that a packet takes on the slowest link: the shortest time between two packets that arrive in sequence.

use super::{Extremes, Remembered};
use crate::arrival::Arrival;
use crate::time::{Duration, Instant};

/// Samples whose median tells bursts from spacing.
const SAMPLES: usize = 63;
/// The median is computed again after this many samples.
const REFRESH: u64 = 8;

/// `T_min` of Biaz & Vaidya 1999. Only new full segments in sequence count. A windowed minimum ignores what is shorter than half the
/// median (our reading): links that deliver several frames at once would else destroy it.
#[derive(Clone, Debug)]
pub struct Spacing {
    remembered: Remembered,
    samples: u64,
    latest: [u64; SAMPLES],
    median: u64,
}

impl Spacing {
    /// An estimate without samples.
    pub fn new(extremes: Extremes) -> Self {
        Self { remembered: Remembered::new(extremes), samples: 0, latest: [0; SAMPLES], median: 0 }
    }

    /// Takes the spacing of a data segment that arrived.
    pub fn on_arrival(&mut self, arrival: &Arrival) {
        let view = &arrival.view;
        let newest = view.islands.last().map_or(view.next, |island| island.1);
        // A repair fills a gap below what has arrived.
        let newest = arrival.start + u64::from(arrival.len) == newest;
        let in_sequence = newest && arrival.gap.is_none() && !arrival.duplicate && arrival.len == view.full_segment;
        if let (true, Some(spacing)) = (in_sequence, arrival.spacing) {
            self.insert(spacing, view.now);
        }
    }

    fn insert(&mut self, spacing: Duration, now: Instant) {
        let nanos = spacing.as_nanos();
        if !self.remembered.forgets() || nanos >= self.median / 2 {
            self.remembered.insert(nanos, now);
        }
        self.latest[self.samples as usize % SAMPLES] = nanos;
        self.samples += 1;
        if self.remembered.forgets() && self.samples % REFRESH == 0 {
            let mut sorted = self.latest;
            let seen = &mut sorted[..SAMPLES.min(self.samples as usize)];
            self.median = *seen.select_nth_unstable(seen.len() / 2).1;
        }
    }

    /// `T_min`; `None` without samples or if it is zero.
    pub fn min(&self) -> Option<Duration> {
        self.remembered.extent().min().filter(|&min| min > 0).map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_do_not_destroy_a_windowed_minimum() {
        for (extremes, min) in [(Extremes::Lifetime, 20), (Extremes::Windowed(Duration::from_secs(60)), 900)] {
            let mut spacing = Spacing::new(extremes);
            assert_eq!(spacing.min(), None);
            for n in 0..100 {
                let micros = match n {
                    0..50 => 1000 + n,
                    50 => 900,
                    _ if n % 4 == 0 => 20,
                    _ => 1200,
                };
                spacing.insert(Duration::from_micros(micros), Instant::ZERO);
            }
            assert_eq!(spacing.min(), Some(Duration::from_micros(min)));
        }
    }

    #[test]
    fn a_slower_link_is_noticed_after_a_minute() {
        let mut spacing = Spacing::new(Extremes::Windowed(Duration::from_secs(60)));
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        spacing.insert(Duration::from_millis(1), at(0));
        spacing.insert(Duration::from_millis(4), at(30));
        assert_eq!(spacing.min(), Some(Duration::from_millis(1)));
        spacing.insert(Duration::from_millis(5), at(66));
        assert_eq!(spacing.min(), Some(Duration::from_millis(4)));
    }
}
