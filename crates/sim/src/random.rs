//! Random streams.
//!
//! Every component that needs randomness has a stream of its own, named by the seed, the run, the component and the purpose. So a
//! flow more or less moves nobody else's numbers, and two algorithms meet the same channel.

use rand_pcg::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::Hasher;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64);

impl Stream {
    /// The stream of `component` for `purpose` in run `run` of seed `seed`.
    pub fn new(seed: u64, run: u64, component: &str, purpose: &str) -> Self {
        let mut state = [0; 32];
        for (half, bytes) in state.chunks_exact_mut(16).enumerate() {
            let mut hasher = SipHasher24::new_with_keys(seed, run);
            hasher.write_u8(half as u8);
            hasher.write(&(component.len() as u64).to_le_bytes());
            hasher.write(component.as_bytes());
            hasher.write(purpose.as_bytes());
            bytes.copy_from_slice(&hasher.finish128().as_u128().to_le_bytes());
        }
        Self(Pcg64::from_seed(state))
    }

    /// The next 64 bits of the stream, uniformly distributed.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `[0, 1)`: a multiple of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An integer in `[0, bound)`; 0 if `bound` is 0. Lemire's multiplication; its bias is below `bound`/2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from the standard normal law (Box & Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// The number of failures before the first success, each trial succeeding with probability `p` in `(0, 1)`.
    pub fn geometric(&mut self, p: f64) -> u64 {
        // Inversion; 1 - u lies in (0, 1], so the logarithm is finite and not positive.
        (libm::log(1.0 - self.unit()) / libm::log1p(-p)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, run: u64, component: &str, purpose: &str) -> u64 {
        Stream::new(seed, run, component, purpose).bits()
    }

    #[test]
    fn every_part_of_the_name_matters() {
        let base = first(1, 2, "link a>b", "errors");
        assert_eq!(base, first(1, 2, "link a>b", "errors"));
        assert_ne!(base, first(2, 2, "link a>b", "errors"));
        assert_ne!(base, first(1, 3, "link a>b", "errors"));
        assert_ne!(base, first(1, 2, "link a>c", "errors"));
        assert_ne!(base, first(1, 2, "link a>b", "bits"));
        assert_ne!(first(1, 2, "ab", "c"), first(1, 2, "a", "bc"));
    }

    #[test]
    fn geometric_gaps_have_the_right_mean() {
        let mut stream = Stream::new(1, 0, "test", "gaps");
        let p = 0.01;
        let n = 200_000;
        let mean = (0..n).map(|_| stream.geometric(p) as f64).sum::<f64>() / f64::from(n);
        // Mean (1-p)/p = 99, standard deviation of the mean sqrt(1-p)/p/sqrt(n) = 0.22.
        assert!((mean - 99.0).abs() < 0.9, "{mean}");
    }

    #[test]
    fn the_stream_is_the_same_on_every_machine() {
        assert_eq!(first(1, 0, "link a>b", "errors"), 1_914_958_452_886_158_955);
    }
}
