//! TCP-friendly rate control (RFC 5348): the equation and the loss event rate. The parts that do not depend on who carries them.

/// The loss intervals that are averaged (RFC 5348, 5.4).
pub const INTERVALS: usize = 8;
const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// The least factor by which the open interval discounts closed ones (RFC 5348, 5.5).
const LEAST_DISCOUNT: f64 = 0.5;

/// The rate of a TCP with packets of `size` octets, a round-trip time of `rtt` seconds and a loss event rate of `p`, in octets per
/// second: RFC 5348, 3.1 with `b = 1` and `t_RTO = 4 R`.
pub fn rate(size: f64, rtt: f64, p: f64) -> f64 {
    let timeouts = 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    size / (rtt * ((2.0 * p / 3.0).sqrt() + timeouts))
}

/// The loss event rate at which [`rate`] gives `rate` octets per second, between 10^-8 and 1.
pub fn loss_event_rate(size: f64, rtt: f64, rate: f64) -> f64 {
    let (mut low, mut high) = (1e-8, 1.0f64);
    // The rate falls with p; each step halves the range on a logarithmic scale.
    for _ in 0..60 {
        let middle = f64::sqrt(low * high);
        if self::rate(size, rtt, middle) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The factor by which an open interval of `open` packets discounts older ones with the mean `closed` (RFC 5348, 5.5).
pub fn discount(open: f64, closed: f64) -> f64 {
    if open > 2.0 * closed {
        (2.0 * closed / open).max(LEAST_DISCOUNT)
    } else {
        1.0
    }
}

/// The weighted mean of closed intervals, the newest first, each with its discount factor (RFC 5348, 5.4 and 5.5); `None` without any.
pub fn closed_mean(closed: &[(f64, f64)]) -> Option<f64> {
    mean(closed.iter().copied())
}

/// The mean that counts: with the open interval if that makes it longer. `general` is what the open interval discounts the others by.
pub fn mean_interval(open: f64, closed: &[(f64, f64)], general: f64) -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-3, "{found}, not {expected}");
    }

    #[test]
    fn the_equation_of_rfc_5348() {
        // p = 0.01: sqrt(0.02 / 3) = 0.081650; 12 sqrt(0.00375) 0.01 (1.0032) = 0.0073720.
        near(rate(1460.0, 0.1, 0.01), 164_004.0);
        // p = 0.1: 0.258199 + 12 * 0.193649 * 0.1 * 1.32 = 0.564939.
        near(rate(1000.0, 0.1, 0.1), 17_701.0);
    }

    #[test]
    fn the_inverse_undoes_it() {
        for p in [1e-6, 1e-4, 0.01, 0.1, 0.5] {
            near(loss_event_rate(1460.0, 0.08, rate(1460.0, 0.08, p)), p);
        }
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
