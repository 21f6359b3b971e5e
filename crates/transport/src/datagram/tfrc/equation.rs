//! The rate of a TCP with a loss event rate, and its inverse.

use crate::choices;

choices! {
    /// Which text is followed.
    pub enum Version {
        /// RFC 5348.
        Rfc5348 = "rfc5348",
        /// Floyd, Handley, Padhye & Widmer, SIGCOMM 2000, and the draft that became RFC 3448.
        Sigcomm2000 = "sigcomm2000",
    }
}

impl Version {
    /// The rate of a TCP with packets of `size` octets, a round-trip time of `rtt` seconds and a loss event rate of `p`, in octets per second, with `b = 1`
    /// and `t_RTO = 4 R`. The older text bounds the probability of a timeout by one.
    pub fn rate(self, size: f64, rtt: f64, p: f64) -> f64 {
        let bound = match self {
            Self::Rfc5348 => f64::INFINITY,
            Self::Sigcomm2000 => 1.0,
        };
        let timeouts = 4.0 * (3.0 * (3.0 * p / 8.0).sqrt()).min(bound) * p * (1.0 + 32.0 * p * p);
        size / (rtt * ((2.0 * p / 3.0).sqrt() + timeouts))
    }

    /// The loss event rate at which [`rate`](Self::rate) gives `rate` octets per second, between 10^-8 and 1.
    pub fn loss_event_rate(self, size: f64, rtt: f64, rate: f64) -> f64 {
        let (mut low, mut high) = (1e-8, 1.0f64);
        // The rate falls with p; each step halves the range on a logarithmic scale.
        for _ in 0..60 {
            let middle = f64::sqrt(low * high);
            if self.rate(size, rtt, middle) > rate {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The rate of RFC 5348, 3.1 in octets per second: see [`Version::rate`].
pub fn rate(size: f64, rtt: f64, p: f64) -> f64 {
    Version::Rfc5348.rate(size, rtt, p)
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
    fn the_older_one_bounds_the_probability_of_a_timeout() {
        // 3 sqrt(3 p / 8) is 1 at p = 8 / 27; at p = 0.5 it would be 1.299. 0.577350 + 4 * 0.5 * 9 = 18.577.
        near(Version::Sigcomm2000.rate(1000.0, 0.1, 0.5), 538.3);
        near(rate(1000.0, 0.1, 0.5), 1000.0 / (0.1 * (0.577_350 + 18.0 * 1.299_038)));
        near(Version::Sigcomm2000.rate(1000.0, 0.1, 0.1), rate(1000.0, 0.1, 0.1));
    }

    #[test]
    fn the_inverse_undoes_it() {
        for version in [Version::Rfc5348, Version::Sigcomm2000] {
            for p in [1e-6, 1e-4, 0.01, 0.1, 0.5] {
                near(version.loss_event_rate(1460.0, 0.08, version.rate(1460.0, 0.08, p)), p);
            }
        }
    }
}
