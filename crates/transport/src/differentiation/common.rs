//! What several differentiators have in common.

use crate::estimate::{Extremes, QueueUsage};
use crate::path::Path;
use crate::time::Duration;
use crate::{choices, settings};

choices! {
    /// How long something is remembered.
    pub(super) enum Lasting {
        /// As long as the connection lasts.
        Lifetime = "lifetime",
        /// For a window.
        Windowed = "windowed",
    }
}

settings! {
    /// The window of whatever is remembered for one.
    pub(super) struct Window {
        /// Length of that window in seconds.
        window_s: f64 = 60.0, 1.0..=3600.0;
    }
}

settings! {
    /// How long extremes are remembered.
    pub(super) struct Memory {
        /// How long the smallest and the largest time are remembered: as long as the connection lasts, as published, or for a window that leaves single
        /// spikes out.
        extremes: Lasting;
        pub window: Window;
    }
}

impl Lasting {
    /// The same with the length of the window.
    pub fn over(self, window: Window) -> Extremes {
        match self {
            Self::Lifetime => Extremes::Lifetime,
            Self::Windowed => window.extremes(),
        }
    }
}

impl Window {
    /// Extremes of this window.
    pub fn extremes(self) -> Extremes {
        Extremes::Windowed(Duration::from_secs_f64(self.window_s))
    }
}

impl Memory {
    /// How long extremes are remembered.
    pub fn extremes(self) -> Extremes {
        self.extremes.over(self.window)
    }

    /// The queue usage between such extremes.
    pub fn queue_usage(self) -> QueueUsage {
        QueueUsage::new(self.extremes())
    }
}

/// `W`: the congestion window in segments.
pub(super) fn window(path: &Path) -> f64 {
    path.cwnd as f64 / f64::from(path.mss.max(1))
}

/// A score for a statistic that grows with congestion: from 1 at 0, which all that is negative counts as, towards 0.
pub(super) fn falling(statistic: f64) -> f64 {
    1.0 / (1.0 + statistic.max(0.0))
}

/// A score for a statistic of either sign that grows with corruption: from 0 through 1/2 at 0 towards 1.
pub(super) fn squash(statistic: f64) -> f64 {
    if statistic < 0.0 {
        0.5 * falling(-statistic)
    } else {
        1.0 - 0.5 * falling(statistic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_never_leaves_its_scale() {
        for (statistic, score) in [(f64::NEG_INFINITY, 1.0), (-1.0, 1.0), (0.0, 1.0), (3.0, 0.25), (f64::INFINITY, 0.0)] {
            assert_eq!(falling(statistic), score);
        }
        for (statistic, score) in [(f64::NEG_INFINITY, 0.0), (-1.0, 0.25), (0.0, 0.5), (1.0, 0.75), (f64::INFINITY, 1.0)] {
            assert_eq!(squash(statistic), score);
        }
    }
}
