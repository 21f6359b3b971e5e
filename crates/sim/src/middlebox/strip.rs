//! A firewall that lets no experiments through.

use super::agent::{strip, Agent, Handling, Outbox, Transit};
use whyloss_transport::kit::{Notes, Part};
use whyloss_transport::Segment;

pub(super) const PART: Part<dyn Agent> = Part {
    name: "strip",
    summary: "Takes all experimental TCP options (kinds 253 and 254) out of what crosses the link, as firewalls do.",
    reference: "Honda et al. 2011",
    notes: Notes { idea: "It helps nobody: it shows what is left of a scheme whose options do not come through.", ..Notes::NONE },
    ..Part::fixed(|_| Box::new(Strip))
};

/// Takes the options of kinds 253 and 254 out of what crosses its link.
#[derive(Debug)]
pub(super) struct Strip;

impl Agent for Strip {
    fn pass(&mut self, _transit: &Transit, segment: &mut Segment, _out: &mut Outbox) -> Handling {
        strip(segment);
        Handling::Forward
    }

    fn restart(&mut self) {}
}
