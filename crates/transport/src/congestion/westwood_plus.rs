//! TCP Westwood+: Westwood with a rate that bunched acknowledgements do not fool.

use super::{CongestionControl, Westwood};
use crate::estimate::Filter;
use crate::kit::{Arguments, Kind, Notes, Parameter, Part};
use crate::time::Duration;

/// Its row.
pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "westwood-plus",
    summary: "Falls to the measured rate times the smallest delay; the rate is sampled once a round trip.",
    reference: "Grieco & Mascolo 2004",
    notes: Notes {
        errata: "The filter begins with its first sample, as Linux's does; the paper does not say where. Linux smooths by two filters of \
                 7/8 instead of one of 0.9 over the mean of two samples.",
        ..Notes::NONE
    },
    parameters: &[
        Parameter { name: "filter", summary: "Whose filter smooths the samples.", kind: Kind::Choice(&["paper", "linux"]) },
        Parameter {
            name: "gain",
            summary: "Weight of what was known before a sample; Linux's is fixed.",
            kind: Kind::Number { default: 0.9, min: 0.0, max: 0.999 },
        },
        Parameter {
            name: "min_interval",
            summary: "Shortest time in seconds that a sample spans (Linux's 50 ms).",
            kind: Kind::Number { default: 0.05, min: 0.0, max: 10.0 },
        },
    ],
    build: |arguments| Box::new(Westwood::new(filter(arguments))),
};

fn filter(arguments: &Arguments) -> Filter {
    let least = Duration::from_secs_f64(arguments.number("min_interval"));
    match arguments.word("filter") {
        "linux" => Filter::WestwoodLinux { least },
        _ => Filter::WestwoodPlus { gain: arguments.number("gain"), least },
    }
}
