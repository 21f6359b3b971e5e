//! The engine's parts of a control.
#![allow(dead_code)]

use whyloss_kernel::controls::{self, Made};
use whyloss_transport::scheme::Selection;

/// The parts of `control`, a name without its prefix.
pub fn selection(control: &str) -> Selection {
    let found = controls::control(&format!("wl_{control}")).unwrap_or_else(|| panic!("there is no wl_{control}"));
    match found.made {
        Made::Of(scheme) => Selection::scheme(scheme),
        Made::From { congestion, differentiator, reaction } => Selection {
            congestion: Some(congestion.to_owned()),
            differentiator: differentiator.map(str::to_owned),
            reaction: reaction.map(str::to_owned),
            ..Selection::default()
        },
    }
}
