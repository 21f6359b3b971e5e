//! Errors at distances counted in packets.

use super::spec::Spacing;
use crate::random::Stream;

/// Counts down to the next packet in error.
#[derive(Debug)]
pub(super) struct Spaced {
    rate: f64,
    spacing: Spacing,
    stream: Stream,
    /// Packets up to and with the next one in error; `u64::MAX` if there is none.
    left: u64,
}

impl Spaced {
    pub fn new(rate: f64, spacing: Spacing, stream: Stream) -> Self {
        let mut spaced = Self { rate, spacing, stream, left: 0 };
        spaced.left = spaced.next();
        spaced
    }

    /// The next distance, at least 1.
    fn next(&mut self) -> u64 {
        if self.rate == 0.0 {
            return u64::MAX;
        }
        let mean = 1.0 / self.rate;
        let distance = match self.spacing {
            Spacing::Deterministic => rounded(mean),
            Spacing::Uniform => 1 + self.stream.below(rounded(2.0 * mean - 1.0)),
            // 1 - u lies in (0, 1], so the logarithm is finite and not positive.
            Spacing::Exponential => libm::ceil(-libm::log(1.0 - self.stream.unit()) * mean) as u64,
        };
        distance.max(1)
    }

    /// Whether the next packet is in error.
    pub fn hits(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            return false;
        }
        self.left = self.next();
        true
    }
}

fn rounded(value: f64) -> u64 {
    (value + 0.5) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distances between the first 100,000 errors.
    fn distances(rate: f64, spacing: Spacing) -> Vec<u64> {
        let mut spaced = Spaced::new(rate, spacing, Stream::new(1, 0, "test", "errors"));
        (0..100_000).map(|_| 1 + std::iter::repeat_with(|| spaced.hits()).take_while(|hit| !hit).count() as u64).collect()
    }

    fn mean(distances: &[u64]) -> f64 {
        distances.iter().sum::<u64>() as f64 / distances.len() as f64
    }

    #[test]
    fn regular_errors_come_every_so_many_packets() {
        // 1/0.03 is 33.3.
        assert!(distances(0.03, Spacing::Deterministic).iter().all(|&distance| distance == 33));
        assert!(distances(1.0, Spacing::Deterministic).iter().all(|&distance| distance == 1));
    }

    #[test]
    fn uniform_distances_end_at_twice_the_mean() {
        let distances = distances(0.02, Spacing::Uniform);
        assert_eq!((distances.iter().min(), distances.iter().max()), (Some(&1), Some(&99)));
        // Mean 50, standard deviation of the mean sqrt((99^2 - 1) / 12 / 100,000) = 0.09.
        assert!((mean(&distances) - 50.0).abs() < 0.4, "{}", mean(&distances));
    }

    #[test]
    fn exponential_distances_are_geometric() {
        let distances = distances(0.05, Spacing::Exponential);
        // Rounded up, an exponential with mean 20 is geometric with 1 - exp(-0.05) = 0.04877: mean 20.504, deviation of the mean 0.06.
        assert!((mean(&distances) - 20.504).abs() < 0.25, "{}", mean(&distances));
        let ones = distances.iter().filter(|&&distance| distance == 1).count();
        assert!((4_600..5_150).contains(&ones), "{ones}");
    }

    #[test]
    fn without_a_rate_there_are_no_errors() {
        let mut spaced = Spaced::new(0.0, Spacing::Uniform, Stream::new(1, 0, "test", "errors"));
        assert!((0..100_000).all(|_| !spaced.hits()));
    }
}
