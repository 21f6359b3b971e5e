//! Sends back how likely routers found it to survive the path.

use super::{Arrival, ReceiveView, ReceiverAgent};
use crate::kit::{Notes, Part};
use crate::segment::Report;

pub(super) const PART: Part<dyn ReceiverAgent> = Part {
    name: "survival",
    summary: "Sends back the probability to survive the path that routers have written into the latest data.",
    reference: "Krishnan et al. 2004",
    notes: Notes::NONE,
    ..Part::fixed(|_| Box::<Survival>::default())
};

/// Remembers what the latest data brought.
#[derive(Debug, Default)]
pub struct Survival {
    latest: Option<u16>,
}

impl ReceiverAgent for Survival {
    fn wants_reports(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        let brought = arrival.segment.options.rare.as_ref().and_then(|rare| rare.notices.survival);
        self.latest = brought.or(self.latest);
    }

    fn report(&mut self, _view: &ReceiveView) -> Option<Report> {
        self.latest.map(Report::Survival)
    }
}
