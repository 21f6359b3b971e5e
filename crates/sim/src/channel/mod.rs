//! What disturbs packets between two nodes, apart from queueing.
//!
//! A channel looks at every packet after its serialisation: a packet that it spoils has used its airtime. Nothing here knows of
//! events or nodes, so that a real-time emulator can use the same channels.

mod bits;
mod gilbert;
mod pattern;
mod spaced;
mod spec;

pub use pattern::Pattern;
pub use spec::{AtEnd, ChannelSpec, Effect, Errors, Spacing, Step};

use crate::error::ChannelError;
use crate::random::Stream;
use bits::{Gaps, NextError};
use gilbert::Chain;
use spaced::Spaced;
use whyloss_transport::Instant;

/// What a channel did to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelOutcome {
    /// It crossed unharmed.
    Intact,
    /// The channel swallowed it: nothing arrives.
    Erased,
    /// It crosses with bits flipped.
    Damaged,
}

/// One direction of a channel in use. One that spoils nothing is a word: most links of a large network have such a channel.
#[derive(Debug)]
pub struct Channel(Option<Box<Disturbance>>);

/// What spoils packets.
#[derive(Debug)]
struct Disturbance {
    model: Model,
    effect: Effect,
    /// Chooses the bit to flip where the model names packets only.
    flips: Stream,
}

#[derive(Debug)]
enum Model {
    Bits(NextError),
    Packets { probability: f64, stream: Stream },
    Spaced(Spaced),
    Chain { chain: Chain, hits: (f64, f64), stream: Stream },
}

impl Channel {
    /// A channel by `spec` whose random numbers follow from `seed`, `run` and the name of the `component` that it belongs to.
    pub fn new(spec: &ChannelSpec, seed: u64, run: u64, component: &str) -> Result<Self, ChannelError> {
        spec.check()?;
        let stream = || Stream::new(seed, run, component, "errors");
        let model = match &spec.errors {
            Errors::None => return Ok(Self(None)),
            Errors::Bits { ber } => Model::Bits(NextError::new(Gaps::Random { ber: *ber, stream: stream() })),
            Errors::Pattern { pattern, at_end } => Model::Bits(NextError::new(Gaps::pattern(pattern.clone(), *at_end))),
            Errors::Packets { probability } => Model::Packets { probability: *probability, stream: stream() },
            Errors::Spaced { rate, spacing } => Model::Spaced(Spaced::new(*rate, *spacing, stream())),
            Errors::Gilbert { stay_good, stay_bad, hits, step } => Model::Chain {
                chain: Chain::new(*stay_good, *stay_bad, *step, stream()),
                hits: *hits,
                stream: Stream::new(seed, run, component, "hits"),
            },
        };
        let flips = Stream::new(seed, run, component, "flips");
        Ok(Self(Some(Box::new(Disturbance { model, effect: spec.effect, flips }))))
    }

    /// Whether every packet crosses unharmed.
    pub const fn is_perfect(&self) -> bool {
        self.0.is_none()
    }

    /// A packet of `octets` octets has been transmitted up to `end`. Packets come in the order of their transmission. If the packet
    /// is damaged, `flips` holds the positions of the flipped bits, ascending, bit 0 being the most significant bit of the first
    /// octet; else `flips` is empty.
    pub fn pass(&mut self, octets: u32, end: Instant, flips: &mut Vec<u32>) -> ChannelOutcome {
        flips.clear();
        let Some(disturbance) = &mut self.0 else { return ChannelOutcome::Intact };
        let bits = octets * 8;
        let hit = match &mut disturbance.model {
            Model::Bits(next) => next.cross(bits, flips),
            Model::Packets { probability, stream } => stream.unit() < *probability,
            Model::Spaced(spaced) => spaced.hits(),
            Model::Chain { chain, hits, stream } => {
                // One number a packet in either state: what a packet meets does not depend on the fates before it.
                let probability = if chain.is_bad(end) { hits.1 } else { hits.0 };
                stream.unit() < probability
            }
        };
        match (hit, disturbance.effect) {
            (false, _) => ChannelOutcome::Intact,
            (true, Effect::Erase) => {
                flips.clear();
                ChannelOutcome::Erased
            }
            (true, Effect::Damage) => {
                if flips.is_empty() {
                    flips.push(disturbance.flips.below(u64::from(bits)) as u32);
                }
                ChannelOutcome::Damaged
            }
        }
    }

    /// How often an error pattern has come to its end.
    pub fn pattern_ends(&self) -> u64 {
        match self.0.as_ref().map(|disturbance| &disturbance.model) {
            Some(Model::Bits(next)) => next.pattern_ends(),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::Duration;

    fn channel(errors: Errors, effect: Effect) -> Channel {
        Channel::new(&ChannelSpec { errors, effect }, 1, 0, "test").unwrap()
    }

    #[test]
    fn bernoulli_packets_are_lost_at_their_rate() {
        let mut channel = channel(Errors::Packets { probability: 0.1 }, Effect::Erase);
        let mut flips = Vec::new();
        let lost = (0..100_000).filter(|_| channel.pass(1500, Instant::ZERO, &mut flips) == ChannelOutcome::Erased).count();
        // Standard deviation 95.
        assert!((9_700..10_300).contains(&lost), "{lost}");
    }

    #[test]
    fn a_chain_loses_with_the_probability_of_its_state() {
        let errors = Errors::Gilbert { stay_good: 0.99, stay_bad: 0.9, hits: (0.01, 0.4), step: Step::Packet };
        let expected = ChannelSpec { errors: errors.clone(), effect: Effect::Erase }.error_probability(1500).unwrap();
        let mut channel = channel(errors, Effect::Erase);
        let mut flips = Vec::new();
        let lost: Vec<bool> =
            (0..1_000_000).map(|_| channel.pass(1500, Instant::ZERO, &mut flips) == ChannelOutcome::Erased).collect();
        // Bad for 1/11 of the time: 0.4/11 + 0.01 * 10/11 = 0.04545; its standard deviation is 0.0005, as bursts of 10 are dependent.
        let share = lost.iter().filter(|lost| **lost).count() as f64 / 1e6;
        assert!((expected - 0.045_454).abs() < 1e-5 && (share - expected).abs() < 0.0015, "{share} {expected}");
        // After a loss the state is bad with 0.4/11 / 0.04545 = 0.8: 0.8 (0.9 * 0.4 + 0.1 * 0.01) + 0.2 (0.01 * 0.4 + 0.99 * 0.01).
        let again = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64 / (share * 1e6);
        assert!((again - 0.2916).abs() < 0.01, "{again}");
    }

    #[test]
    fn damage_by_packet_flips_one_bit_inside_the_packet() {
        let mut channel = channel(Errors::Packets { probability: 1.0 }, Effect::Damage);
        let mut flips = Vec::new();
        let mut high = 0;
        for _ in 0..10_000 {
            assert_eq!(channel.pass(40, Instant::ZERO, &mut flips), ChannelOutcome::Damaged);
            assert_eq!(flips.len(), 1);
            high = high.max(flips[0]);
        }
        assert_eq!(high, 319);
    }

    #[test]
    fn an_erased_packet_tells_no_bits() {
        let mut channel = channel(Errors::Bits { ber: 0.5 }, Effect::Erase);
        let mut flips = vec![7];
        assert_eq!(channel.pass(1500, Instant::ZERO, &mut flips), ChannelOutcome::Erased);
        assert!(flips.is_empty());
    }

    #[test]
    fn unfit_values_are_named() {
        let message = |errors| ChannelSpec { errors, effect: Effect::Erase }.check().unwrap_err().to_string();
        assert_eq!(message(Errors::Bits { ber: 1.0 }), "ber is 1; allowed is a number from 0 to below 1");
        assert_eq!(message(Errors::Bits { ber: f64::NAN }), "ber is NaN; allowed is a number from 0 to below 1");
        assert_eq!(message(Errors::Packets { probability: -0.1 }), "probability is -0.1; allowed is a number from 0 to 1");
        let spaced = Errors::Spaced { rate: 1.5, spacing: Spacing::Deterministic };
        assert_eq!(message(spaced), "rate is 1.5; allowed is a number from 0 to 1");
        let gilbert = |stay_good, stay_bad, step| Errors::Gilbert { stay_good, stay_bad, hits: Errors::IN_BAD, step };
        assert_eq!(message(gilbert(2.0, 0.5, Step::Packet)), "stay_good is 2; allowed is a number from 0 to 1");
        assert_eq!(message(gilbert(0.5, 2.0, Step::Packet)), "stay_bad is 2; allowed is a number from 0 to 1");
        assert_eq!(message(gilbert(0.5, 0.5, Step::Time(Duration::ZERO))), "step is 0 s; allowed is a time longer than 0 s");
    }
}
