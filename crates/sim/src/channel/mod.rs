//! What happens to packets between two nodes, apart from queueing.
//!
//! A channel looks at every packet after its serialisation: a packet that it spoils has used its airtime. Nothing here knows of
//! events or nodes, so that a real-time emulator can use the same channels.

use std::sync::Arc;
use whyloss_transport::Duration;

mod pattern;
pub use pattern::{Pattern, PatternError};

/// What a channel does.
#[derive(Clone, Debug, Default)]
pub struct ChannelSpec {
    /// Where errors fall.
    pub errors: Errors,
    /// What an error does to its packet.
    pub effect: Effect,
}

/// Where errors fall.
#[derive(Clone, Debug, Default)]
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
    /// On every packet that finds a two-state Markov chain in its bad state. The chain starts in the good state and steps before it
    /// is asked.
    Gilbert {
        /// Probability to stay in the good state, in `[0, 1]`.
        stay_good: f64,
        /// Probability to stay in the bad state, in `[0, 1]`.
        stay_bad: f64,
        /// What makes the chain step.
        step: Step,
    },
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
