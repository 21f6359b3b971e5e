//! What happens to packets between two nodes, apart from queueing.
//!
//! A channel looks at every packet after its serialisation: a packet that it spoils has used its airtime. Nothing here knows of
//! events or nodes, so that a real-time emulator can use the same channels.

mod bits;
mod gilbert;
mod pattern;
mod spaced;

pub use pattern::Pattern;

use crate::random::Stream;
use bits::{Gaps, NextError};
use gilbert::Chain;
use spaced::Spaced;
use std::sync::Arc;
use whyloss_transport::{Duration, Instant};

/// What a channel does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelSpec {
    /// Where errors fall.
    pub errors: Errors,
    /// What an error does to its packet.
    pub effect: Effect,
}

/// Where errors fall.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Errors {
    /// Nowhere.
    #[default]
    None,
    /// On each bit independently with probability `ber`.
    Bits {
        /// Bit error ratio, in `[0, 1)`.
        ber: f64,
    },
    /// On the bits that a file names, counted over all bits that cross the channel.
    Pattern {
        /// The positions.
        pattern: Arc<Pattern>,
        /// What comes after the pattern's last bit.
        at_end: AtEnd,
    },
    /// On each packet independently with probability `probability`, whatever its length.
    Packets {
        /// Packet error ratio, in `[0, 1]`.
        probability: f64,
    },
    /// On packets at distances of `1/rate` in the mean, counted in packets.
    Spaced {
        /// Share of packets in error, in `[0, 1]`; with [`Spacing::Exponential`] a little less.
        rate: f64,
        /// The law of the distances.
        spacing: Spacing,
    },
    /// On every packet that finds a two-state Markov chain (Gilbert 1960) in its bad state. The chain starts in the good state and
    /// steps before it is asked.
    Gilbert {
        /// Probability to stay in the good state, in `[0, 1]`.
        stay_good: f64,
        /// Probability to stay in the bad state, in `[0, 1]`.
        stay_bad: f64,
        /// What makes the chain step.
        step: Step,
    },
}

/// The law of the distances from one packet in error to the next, and from the beginning to the first; our reading of the names
/// "deterministic", "uniform" and "exponential" by which simulators call their error models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Always `1/rate`, rounded.
    Regular,
    /// Uniform on `1..=2/rate - 1`, the end rounded.
    Uniform,
    /// Exponential with mean `1/rate`, rounded up, which adds half a packet to the mean.
    Exponential,
}

/// What makes a Markov chain step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Every packet. While nothing is sent the chain stands still.
    Packet,
    /// Every multiple of this time. A packet meets the state at the end of its transmission.
    Time(Duration),
}

/// What an error does to its packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effect {
    /// The packet is lost without a trace.
    #[default]
    Erase,
    /// Bits are flipped: those that the model names, or one chosen at random where it names packets only. The packet travels on.
    Damage,
}

/// What comes after the last bit of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtEnd {
    /// The pattern from its beginning.
    #[default]
    Repeat,
    /// No more errors.
    Clean,
}

/// A value of a [`ChannelSpec`] that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{field} is {found}; allowed is {allowed}")]
pub struct ChannelError {
    /// Which value.
    pub field: &'static str,
    /// What was found.
    pub found: String,
    /// What is allowed.
    pub allowed: &'static str,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It crossed unharmed.
    Intact,
    /// It is lost.
    Erased,
    /// It crosses with bits flipped.
    Damaged,
}

/// One direction of a channel in use.
#[derive(Debug)]
pub struct Channel {
    model: Model,
    effect: Effect,
    /// Chooses the bit to flip where the model names packets only.
    flips: Stream,
}

#[derive(Debug)]
enum Model {
    Perfect,
    Bits(NextError),
    Packets { probability: f64, stream: Stream },
    Spaced(Spaced),
    Chain(Chain),
}

impl ChannelSpec {
    /// Whether every value makes sense.
    pub fn check(&self) -> Result<(), ChannelError> {
        let unfit = |field, found: String, allowed| Err(ChannelError { field, found, allowed });
        let probability = |p: f64| (0.0..=1.0).contains(&p);
        match &self.errors {
            Errors::Bits { ber } if !(0.0..1.0).contains(ber) => unfit("ber", ber.to_string(), "a number from 0 to below 1"),
            Errors::Pattern { pattern, .. } if pattern.total_bits() == 0 => {
                unfit("pattern", "empty".to_owned(), "a pattern of at least one bit")
            }
            Errors::Packets { probability: p } if !probability(*p) => unfit("probability", p.to_string(), "a number from 0 to 1"),
            Errors::Spaced { rate, .. } if !probability(*rate) => unfit("rate", rate.to_string(), "a number from 0 to 1"),
            Errors::Gilbert { stay_good: p, .. } if !probability(*p) => unfit("stay_good", p.to_string(), "a number from 0 to 1"),
            Errors::Gilbert { stay_bad: p, .. } if !probability(*p) => unfit("stay_bad", p.to_string(), "a number from 0 to 1"),
            Errors::Gilbert { step: Step::Time(Duration::ZERO), .. } => {
                unfit("step", Duration::ZERO.to_string(), "a time longer than 0 s")
            }
            _ => Ok(()),
        }
    }
}

impl ChannelSpec {
    /// The probability that a packet of `octets` octets is damaged or erased, in the mean over all packets; `None` where positions are
    /// given instead of a probability.
    pub fn error_probability(&self, octets: u32) -> Option<f64> {
        Some(match self.errors {
            // A chain that leaves neither state stays in the good one, where it starts.
            Errors::None | Errors::Gilbert { stay_good: 1.0, .. } => 0.0,
            Errors::Bits { ber } => -libm::expm1(f64::from(octets) * 8.0 * libm::log1p(-ber)),
            Errors::Pattern { .. } => return None,
            Errors::Packets { probability } => probability,
            Errors::Spaced { rate, .. } => rate,
            // The share of the bad state in the stationary distribution.
            Errors::Gilbert { stay_good, stay_bad, .. } => (1.0 - stay_good) / (2.0 - stay_good - stay_bad),
        })
    }
}

impl Channel {
    /// A channel by `spec` whose random numbers follow from `seed`, `run` and the name of the `component` that it belongs to.
    pub fn new(spec: &ChannelSpec, seed: u64, run: u64, component: &str) -> Result<Self, ChannelError> {
        spec.check()?;
        let stream = || Stream::new(seed, run, component, "errors");
        let model = match &spec.errors {
            Errors::None => Model::Perfect,
            Errors::Bits { ber } => Model::Bits(NextError::new(Gaps::Random { ber: *ber, stream: stream() })),
            Errors::Pattern { pattern, at_end } => Model::Bits(NextError::new(Gaps::pattern(pattern.clone(), *at_end))),
            Errors::Packets { probability } => Model::Packets { probability: *probability, stream: stream() },
            Errors::Spaced { rate, spacing } => Model::Spaced(Spaced::new(*rate, *spacing, stream())),
            Errors::Gilbert { stay_good, stay_bad, step } => Model::Chain(Chain::new(*stay_good, *stay_bad, *step, stream())),
        };
        Ok(Self { model, effect: spec.effect, flips: Stream::new(seed, run, component, "flips") })
    }

    /// Whether nothing ever happens to a packet here.
    pub const fn is_perfect(&self) -> bool {
        matches!(self.model, Model::Perfect)
    }

    /// A packet of `octets` octets has been transmitted up to `end`. Packets come in the order of their transmission. If the packet
    /// is damaged, `flips` holds the positions of the flipped bits, ascending, bit 0 being the most significant bit of the first
    /// octet; else `flips` is empty.
    pub fn pass(&mut self, octets: u32, end: Instant, flips: &mut Vec<u32>) -> Fate {
        flips.clear();
        let bits = octets * 8;
        let hit = match &mut self.model {
            Model::Perfect => false,
            Model::Bits(next) => next.cross(bits, flips),
            Model::Packets { probability, stream } => stream.unit() < *probability,
            Model::Spaced(spaced) => spaced.hits(),
            Model::Chain(chain) => chain.is_bad(end),
        };
        match (hit, self.effect) {
            (false, _) => Fate::Intact,
            (true, Effect::Erase) => {
                flips.clear();
                Fate::Erased
            }
            (true, Effect::Damage) => {
                if flips.is_empty() {
                    flips.push(self.flips.below(u64::from(bits)) as u32);
                }
                Fate::Damaged
            }
        }
    }

    /// How often an error pattern has come to its end.
    pub fn pattern_ends(&self) -> u64 {
        match &self.model {
            Model::Bits(next) => next.pattern_ends(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(errors: Errors, effect: Effect) -> Channel {
        Channel::new(&ChannelSpec { errors, effect }, 1, 0, "test").unwrap()
    }

    #[test]
    fn bernoulli_packets_are_lost_at_their_rate() {
        let mut channel = channel(Errors::Packets { probability: 0.1 }, Effect::Erase);
        let mut flips = Vec::new();
        let lost = (0..100_000).filter(|_| channel.pass(1500, Instant::ZERO, &mut flips) == Fate::Erased).count();
        // Standard deviation 95.
        assert!((9_700..10_300).contains(&lost), "{lost}");
    }

    #[test]
    fn damage_by_packet_flips_one_bit_inside_the_packet() {
        let mut channel = channel(Errors::Packets { probability: 1.0 }, Effect::Damage);
        let mut flips = Vec::new();
        let mut high = 0;
        for _ in 0..10_000 {
            assert_eq!(channel.pass(40, Instant::ZERO, &mut flips), Fate::Damaged);
            assert_eq!(flips.len(), 1);
            high = high.max(flips[0]);
        }
        assert_eq!(high, 319);
    }

    #[test]
    fn an_erased_packet_tells_no_bits() {
        let mut channel = channel(Errors::Bits { ber: 0.5 }, Effect::Erase);
        let mut flips = vec![7];
        assert_eq!(channel.pass(1500, Instant::ZERO, &mut flips), Fate::Erased);
        assert!(flips.is_empty());
    }

    #[test]
    fn unfit_values_are_named() {
        let message = |errors| ChannelSpec { errors, effect: Effect::Erase }.check().unwrap_err().to_string();
        assert_eq!(message(Errors::Bits { ber: 1.0 }), "ber is 1; allowed is a number from 0 to below 1");
        assert_eq!(message(Errors::Bits { ber: f64::NAN }), "ber is NaN; allowed is a number from 0 to below 1");
        assert_eq!(message(Errors::Packets { probability: -0.1 }), "probability is -0.1; allowed is a number from 0 to 1");
        let spaced = Errors::Spaced { rate: 1.5, spacing: Spacing::Regular };
        assert_eq!(message(spaced), "rate is 1.5; allowed is a number from 0 to 1");
        let gilbert = |stay_good, stay_bad, step| Errors::Gilbert { stay_good, stay_bad, step };
        assert_eq!(message(gilbert(2.0, 0.5, Step::Packet)), "stay_good is 2; allowed is a number from 0 to 1");
        assert_eq!(message(gilbert(0.5, 2.0, Step::Packet)), "stay_bad is 2; allowed is a number from 0 to 1");
        assert_eq!(message(gilbert(0.5, 0.5, Step::Time(Duration::ZERO))), "step is 0 s; allowed is a time longer than 0 s");
    }
}
