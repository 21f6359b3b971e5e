//! RFC 5681 and RFC 6298: collapse, back off, believe it.

use super::{AfterTimeout, Assessment, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::kit::{Notes, Part};

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "standard",
    summary: "Collapses the window, backs off, and never doubts a timeout.",
    reference: "RFC 5681, RFC 6298",
    notes: Notes::NONE,
    ..Part::fixed(|_| Box::new(Standard))
};

/// The standard policy: never doubts a timeout.
#[derive(Debug, Default)]
pub struct Standard;

impl TimeoutPolicy for Standard {
    fn listens(&self) -> bool {
        false
    }

    fn on_timeout(&mut self, _timeout: &Timeout) -> TimeoutResponse {
        TimeoutResponse { window: TimeoutWindow::Collapse, back_off: true, head_only: false }
    }

    fn assess(&mut self, _ack: &AfterTimeout) -> Assessment {
        Assessment::Genuine
    }
}
