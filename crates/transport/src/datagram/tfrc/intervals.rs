//! Loss intervals: from one loss event to the next (RFC 5348, 5.4 and 5.5).

/// The loss intervals that are averaged (RFC 5348, 5.4).
pub const INTERVALS: usize = 8;
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// The least factor by which the open interval discounts closed ones (RFC 5348, 5.5).
const LEAST_DISCOUNT: f64 = 0.5;

/// The factor by which an open interval of `open` packets discounts older ones with the mean `closed` (RFC 5348, 5.5).
fn discount(open: f64, closed: f64) -> f64 {
    if open > 2.0 * closed {
        (2.0 * closed / open).max(LEAST_DISCOUNT)
    } else {
        1.0
    }
}

/// The weighted mean of closed intervals, the newest first, each with its discount factor (RFC 5348, 5.4 and 5.5); `None` without any.
fn closed_mean(closed: &[(f64, f64)]) -> Option<f64> {
    mean(closed.iter().copied())
}

/// The mean that counts: with the open interval if that makes it longer. `general` is what the open interval discounts the others by.
fn mean_interval(open: f64, closed: &[(f64, f64)], general: f64) -> Option<f64> {
    let without = closed_mean(closed)?;
    let older = closed.iter().map(|(length, factor)| (*length, factor * general));
    let with = mean(std::iter::once((open, 1.0)).chain(older).take(closed.len().min(INTERVALS)))?;
    Some(with.max(without))
}

fn mean(intervals: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for ((length, factor), weight) in intervals.zip(WEIGHTS) {
        sum += length * factor * weight;
        weights += factor * weight;
    }
    (weights > 0.0).then(|| sum / weights)
}

/// The latest loss intervals, and the loss event rate that they mean.
#[derive(Clone, Debug, Default)]
pub struct LossIntervals {
    /// Packets since the last loss event, its first one included.
    pub open: f64,
    /// Closed ones, the newest first, with their discount factors.
    closed: Vec<(f64, f64)>,
}

impl LossIntervals {
    /// Before a new loss event: the open interval may discount the closed ones for good.
    pub fn age(&mut self, discounting: bool) {
        let factor = self.factor(discounting);
        self.closed.iter_mut().for_each(|(_, own)| *own *= factor);
    }

    /// An interval of `length` packets has ended.
    pub fn close(&mut self, length: f64) {
        self.closed.insert(0, (length, 1.0));
        self.closed.truncate(INTERVALS);
    }

    /// Whether there was no loss event.
    pub fn is_empty(&self) -> bool {
        self.closed.is_empty()
    }

    /// The loss event rate; 0 before the first loss event.
    pub fn rate(&self, discounting: bool) -> f64 {
        mean_interval(self.open, &self.closed, self.factor(discounting)).map_or(0.0, |mean| 1.0 / mean.max(1.0))
    }

    fn factor(&self, discounting: bool) -> f64 {
        let closed = if discounting { closed_mean(&self.closed) } else { None };
        closed.map_or(1.0, |closed| discount(self.open, closed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-3, "{found}, not {expected}");
    }

    #[test]
    fn eight_intervals_count_and_the_open_one_if_it_is_long() {
        let plain = |lengths: &[f64]| lengths.iter().map(|length| (*length, 1.0)).collect::<Vec<_>>();
        // (4 * 10 + 20 * (0.8 + 0.6 + 0.4 + 0.2)) / 6
        let closed = plain(&[10.0, 10.0, 10.0, 10.0, 20.0, 20.0, 20.0, 20.0, 1e9]);
        near(closed_mean(&closed).unwrap(), 80.0 / 6.0);
        near(mean_interval(5.0, &closed, 1.0).unwrap(), 80.0 / 6.0);
        // (50 + 3 * 10 + 0.8 * 10 + 1.2 * 20) / 6
        near(mean_interval(50.0, &closed, 1.0).unwrap(), 112.0 / 6.0);
        // Few intervals: (30 + 10) / 2 against (10 + 14) / 2.
        near(mean_interval(30.0, &plain(&[10.0, 14.0]), 1.0).unwrap(), 20.0);
        assert_eq!(mean_interval(100.0, &[], 1.0), None);
    }

    #[test]
    fn a_long_open_interval_discounts_the_others() {
        assert_eq!(discount(20.0, 10.0), 1.0);
        assert_eq!(discount(25.0, 10.0), 0.8);
        assert_eq!(discount(1e6, 10.0), 0.5);
        let closed = [(10.0, 1.0), (10.0, 1.0)];
        // (40 + 0.5 * 10) / (1 + 0.5)
        near(mean_interval(40.0, &closed, 0.5).unwrap(), 30.0);
    }
}
