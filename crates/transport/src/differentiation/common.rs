//! What several differentiators have in common.

use crate::estimate::{Extremes, QueueUsage};
use crate::kit::{Arguments, Kind, Parameter};
use crate::path::Path;
use crate::time::Duration;

pub(super) const EXTREMES: Parameter = Parameter {
    name: "extremes",
    summary: "How long the smallest and the largest time are remembered: as long as the connection lasts, as published, or for a window \
              that leaves single spikes out.",
    kind: Kind::Choice(&["lifetime", "windowed"]),
};

pub(super) const WINDOW: Parameter = Parameter {
    name: "window_s",
    summary: "Length of that window in seconds.",
    kind: Kind::Number { default: 60.0, min: 1.0, max: 3600.0 },
};

/// The estimate that [`EXTREMES`] and [`WINDOW`] ask for.
pub(super) fn queue_usage(arguments: &Arguments) -> QueueUsage {
    QueueUsage::new(remembered(arguments, "extremes"))
}

/// What the choice `name` between "lifetime" and "windowed", and [`WINDOW`], ask for.
pub(super) fn remembered(arguments: &Arguments, name: &str) -> Extremes {
    match arguments.word(name) {
        "windowed" => windowed(arguments),
        _ => Extremes::Lifetime,
    }
}

pub(super) fn windowed(arguments: &Arguments) -> Extremes {
    Extremes::Windowed(Duration::from_secs_f64(arguments.number("window_s")))
}

/// `W` in segments.
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
