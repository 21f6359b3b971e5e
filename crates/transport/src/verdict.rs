//! What differentiators say of a loss.

/// A differentiator's opinion on one loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// What the differentiator takes for the cause.
    pub cause: Cause,
    /// Where the loss stands between certain congestion (0) and certain corruption (1), before any threshold: never outside `[0, 1]`,
    /// never NaN, 0 if there is no evidence. The scale is the algorithm's own; only its order counts unless the algorithm says that it
    /// is a probability. Comparing it with another threshold gives the verdict that the algorithm would have given with that threshold.
    pub score: f64,
}

impl Verdict {
    /// No evidence either way.
    pub const UNKNOWN: Self = Self { cause: Cause::Unknown, score: 0.0 };

    /// Corruption if `corruption` holds, else congestion: for algorithms whose comparison is not that of the score.
    pub const fn decided(corruption: bool, score: f64) -> Self {
        Self { cause: if corruption { Cause::Corruption } else { Cause::Congestion }, score }
    }

    /// The verdict that follows from comparing `score` with `threshold`: corruption if it is larger.
    pub fn by_threshold(score: f64, threshold: f64) -> Self {
        Self { cause: if score > threshold { Cause::Corruption } else { Cause::Congestion }, score }
    }
}

/// The cause of a loss as a differentiator sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A queue had no room, or was about to have none.
    Congestion,
    /// The link damaged it.
    Corruption,
    /// No evidence either way. Senders treat it as congestion.
    Unknown,
}

impl Cause {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Congestion => "congestion",
            Self::Corruption => "corruption",
            Self::Unknown => "unknown",
        }
    }
}
