//! What a channel can be.

use super::pattern::Pattern;
use crate::error::ChannelError;
use std::sync::Arc;
use whyloss_transport::Duration;

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
    /// Nowhere: every packet crosses unharmed.
    #[default]
    None,
    /// On each bit independently with probability `ber`.
    Bits {
        /// Bit error ratio, in `[0, 1)`.
        ber: f64,
    },
    /// On the bits that a file names, counted over all bits that cross the channel.
    Pattern {
        /// Positions of the bits in error, from a file.
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
    /// On every packet that finds a two-state Markov chain (Gilbert 1960) in its bad state, or with a probability that each state has (Elliott
    /// 1963). The chain starts in the good state and steps before it is asked.
    Gilbert {
        /// Probability to stay in the good state, in `[0, 1]`.
        stay_good: f64,
        /// Probability to stay in the bad state, in `[0, 1]`.
        stay_bad: f64,
        /// Probabilities of an error in the good and in the bad state, in `[0, 1]`: [`IN_BAD`](Self::IN_BAD) is Gilbert's chain.
        hits: (f64, f64),
        /// What makes the chain step.
        step: Step,
    },
}

impl Errors {
    /// No packet is in error in the good state, every one in the bad.
    pub const IN_BAD: (f64, f64) = (0.0, 1.0);
}

/// The law of the distances from one packet in error to the next.
// And from the beginning to the first. Our reading of the names by which simulators call their error models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Law"))]
pub enum Spacing {
    /// Always 1/rate packets, rounded.
    Deterministic,
    /// Any number from 1 to 2/rate - 1 is as likely.
    Uniform,
    /// Exponential with mean 1/rate, rounded up.
    // That adds half a packet to the mean.
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
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Effect {
    /// The packet is lost without a trace.
    #[default]
    Erase,
    /// Bits are flipped and the packet travels on.
    // Those that the model names, or one chosen at random where it names packets only.
    Damage,
}

/// What comes after the last bit of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PatternEnd"))]
pub enum AtEnd {
    /// The pattern from its beginning.
    #[default]
    Repeat,
    /// No more errors.
    Clean,
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
            Errors::Gilbert { hits: (p, _), .. } if !probability(*p) => unfit("lost_good", p.to_string(), "a number from 0 to 1"),
            Errors::Gilbert { hits: (_, p), .. } if !probability(*p) => unfit("lost_bad", p.to_string(), "a number from 0 to 1"),
            Errors::Gilbert { step: Step::Time(Duration::ZERO), .. } => {
                unfit("step", Duration::ZERO.to_string(), "a time longer than 0 s")
            }
            _ => Ok(()),
        }
    }

    /// The probability that a packet of `octets` octets is damaged or erased, in the mean over all packets; `None` where positions are
    /// given instead of a probability.
    pub fn error_probability(&self, octets: u32) -> Option<f64> {
        Some(match self.errors {
            // A chain that leaves neither state stays in the good one, where it starts.
            Errors::None => 0.0,
            Errors::Gilbert { stay_good: 1.0, hits, .. } => hits.0,
            Errors::Bits { ber } => -libm::expm1(f64::from(octets) * 8.0 * libm::log1p(-ber)),
            Errors::Pattern { .. } => return None,
            Errors::Packets { probability } => probability,
            Errors::Spaced { rate, .. } => rate,
            Errors::Gilbert { stay_good, stay_bad, hits, .. } => {
                // The share of the bad state in the stationary distribution.
                let bad = (1.0 - stay_good) / (2.0 - stay_good - stay_bad);
                hits.0 * (1.0 - bad) + hits.1 * bad
            }
        })
    }
}
