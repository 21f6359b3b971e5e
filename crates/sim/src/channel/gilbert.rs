//! A two-state Markov chain: bursts of errors.

use super::spec::Step;
use crate::random::Stream;
use whyloss_transport::Instant;

/// The chain, in one of its two states.
#[derive(Debug)]
pub(super) struct Chain {
    stay_good: f64,
    stay_bad: f64,
    step: Step,
    bad: bool,
    /// Steps that the clock has made, with [`Step::Time`].
    steps: u64,
    stream: Stream,
}

impl Chain {
    pub const fn new(stay_good: f64, stay_bad: f64, step: Step, stream: Stream) -> Self {
        Self { stay_good, stay_bad, step, bad: false, steps: 0, stream }
    }

    /// Steps as far as a packet that ends at `end` asks for, and returns whether the state is bad. `end` never goes back.
    pub fn is_bad(&mut self, end: Instant) -> bool {
        let steps = match self.step {
            Step::Packet => 1,
            Step::Time(length) => {
                let now = end.as_nanos() / length.as_nanos();
                now - std::mem::replace(&mut self.steps, now)
            }
        };
        if steps > 0 {
            self.bad = self.stream.unit() < self.bad_after(steps);
        }
        self.bad
    }

    /// Probability to be in the bad state `steps` steps from now.
    fn bad_after(&self, steps: u64) -> f64 {
        let leave = 1.0 - self.stay_good;
        if steps == 1 {
            return if self.bad { self.stay_bad } else { leave };
        }
        // The chain forgets its state with the power of its second eigenvalue.
        let rate = leave + (1.0 - self.stay_bad);
        if rate == 0.0 {
            return if self.bad { 1.0 } else { 0.0 };
        }
        let share = leave / rate;
        share + (f64::from(u8::from(self.bad)) - share) * power(self.stay_good + self.stay_bad - 1.0, steps)
    }
}

/// `base` to the power of `exponent` by squaring: multiplications only, so the same on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::Duration;

    fn chain(step: Step) -> Chain {
        Chain::new(0.9913, 0.8509, step, Stream::new(1, 0, "test", "errors"))
    }

    /// Share of bad steps and mean lengths of good and bad runs over `steps` steps.
    fn statistics(mut next: impl FnMut() -> bool, steps: u64) -> (f64, f64, f64) {
        let (mut bad, mut bursts, mut last) = (0u64, 0u64, false);
        for _ in 0..steps {
            let state = next();
            bad += u64::from(state);
            bursts += u64::from(state && !last);
            last = state;
        }
        (bad as f64 / steps as f64, (steps - bad) as f64 / bursts as f64, bad as f64 / bursts as f64)
    }

    /// For stay-probabilities 0.9913 and 0.8509: share bad 0.0087/0.1578, mean lengths 1/0.0087 and 1/0.1491.
    fn assert_statistics((share, good, bad): (f64, f64, f64)) {
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        assert!(near(share, 0.055_133), "share {share}");
        assert!(near(good, 114.942_5), "good {good}");
        assert!(near(bad, 6.706_9), "bad {bad}");
    }

    #[test]
    fn bursts_have_their_lengths_by_packet() {
        let mut chain = chain(Step::Packet);
        assert_statistics(statistics(|| chain.is_bad(Instant::ZERO), 10_000_000));
    }

    #[test]
    fn bursts_have_their_lengths_by_time() {
        let mut chain = chain(Step::Time(Duration::from_millis(10)));
        let mut now = Instant::ZERO;
        assert_statistics(statistics(
            || {
                now += Duration::from_millis(10);
                chain.is_bad(now)
            },
            10_000_000,
        ));
    }

    #[test]
    fn many_steps_at_once_are_as_good_as_one_by_one() {
        // Asked every 7 steps, the chain must be bad with the same share, and twice in a row with p + (1-p)·λ^7.
        let mut chain = chain(Step::Time(Duration::from_millis(1)));
        let (mut now, mut bad, mut both, mut last) = (Instant::ZERO, 0u32, 0u32, false);
        for _ in 0..2_000_000 {
            now += Duration::from_millis(7);
            let state = chain.is_bad(now);
            bad += u32::from(state);
            both += u32::from(state && last);
            last = state;
        }
        let share = f64::from(bad) / 2e6;
        let stay = f64::from(both) / f64::from(bad);
        let lambda: f64 = 0.8422;
        let expected = 0.055_133 + (1.0 - 0.055_133) * libm::pow(lambda, 7.0);
        assert!((share / 0.055_133 - 1.0).abs() < 0.02, "{share}");
        assert!((stay / expected - 1.0).abs() < 0.02, "{stay} {expected}");
    }

    #[test]
    fn within_a_time_step_the_state_stands() {
        let mut chain = chain(Step::Time(Duration::from_secs(1000)));
        let first = chain.is_bad(Instant::from_nanos(1));
        assert!((0..100_000).all(|n| chain.is_bad(Instant::from_nanos(n + 2)) == first));
    }
}
