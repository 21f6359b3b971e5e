//! Why a packet was lost, or why it was sent again though it was not.

/// The causes that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// A queue overflowed, or its manager dropped the packet.
    Congestion,
    /// A policer had no tokens for it; no queue filled.
    Policer,
    /// It was damaged on the way.
    Corruption,
    /// Nothing passed for a while: an outage, a hand-off.
    LinkDown,
    /// It came to the receiver's host, which had no room for it.
    Receiver,
    /// It was overtaken, and taken for lost.
    Reordering,
    /// It was late, and the timer did not wait for it.
    SpuriousTimeout,
    /// It arrived; its acknowledgement did not.
    AckLoss,
    /// It arrived; the capture did not see it.
    Capture,
    /// The evidence does not suffice.
    Unknown,
}

impl Cause {
    /// All, in the order of columns.
    pub const ALL: [Self; 10] = [
        Self::Congestion,
        Self::Policer,
        Self::Corruption,
        Self::LinkDown,
        Self::Receiver,
        Self::Reordering,
        Self::SpuriousTimeout,
        Self::AckLoss,
        Self::Capture,
        Self::Unknown,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion",
            Self::Policer => "policer",
            Self::Corruption => "corruption",
            Self::LinkDown => "link-down",
            Self::Receiver => "receiver",
            Self::Reordering => "reordering",
            Self::SpuriousTimeout => "spurious-timeout",
            Self::AckLoss => "ack-loss",
            Self::Capture => "capture",
            Self::Unknown => "unknown",
        }
    }

    /// Whether a packet of this cause arrived all the same.
    pub const fn arrived(self) -> bool {
        matches!(self, Self::Reordering | Self::SpuriousTimeout | Self::AckLoss | Self::Capture)
    }
}

/// How probable each cause is; the sum is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probabilities([f64; Cause::ALL.len()]);

impl Probabilities {
    /// From weights, which need not sum to 1. Weights that are all 0 say that nothing is known.
    pub fn from_weights(weights: impl IntoIterator<Item = (Cause, f64)>) -> Self {
        let mut shares = [0.0; Cause::ALL.len()];
        weights.into_iter().for_each(|(cause, weight)| shares[cause as usize] += weight.max(0.0));
        let sum: f64 = shares.iter().sum();
        if sum > 0.0 {
            for share in &mut shares {
                *share /= sum;
            }
        } else {
            shares[Cause::Unknown as usize] = 1.0;
        }
        Self(shares)
    }

    /// One cause, for certain.
    pub fn certain(cause: Cause) -> Self {
        Self::from_weights([(cause, 1.0)])
    }

    /// The probability of a cause.
    pub fn of(&self, cause: Cause) -> f64 {
        self.0[cause as usize]
    }

    /// The most probable cause.
    pub fn likeliest(&self) -> Cause {
        Cause::ALL.into_iter().max_by(|a, b| self.of(*a).total_cmp(&self.of(*b))).unwrap_or(Cause::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_sum_to_one_and_nothing_known_is_unknown() {
        let some = Probabilities::from_weights([(Cause::Congestion, 3.0), (Cause::Corruption, 1.0)]);
        assert_eq!((some.of(Cause::Congestion), some.of(Cause::Corruption), some.likeliest()), (0.75, 0.25, Cause::Congestion));
        assert_eq!(Probabilities::from_weights([]).likeliest(), Cause::Unknown);
    }

    #[test]
    fn the_order_of_causes_is_that_of_their_numbers() {
        assert!(Cause::ALL.iter().enumerate().all(|(index, cause)| *cause as usize == index));
    }
}
