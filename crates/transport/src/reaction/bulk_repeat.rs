//! Keep the window when the loss was corruption, and send again whatever else may be missing.

use super::{Keep, Reaction, Repair, Response};
use crate::kit::{Notes, Part};
use crate::path::Loss;
use crate::verdict::{Cause, Verdict};

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "bulk-repeat",
    summary: "Leaves the window as it is when the loss was corruption, and repeats all that was sent before it showed.",
    reference: "Yang, Wang, Gerla & Sanadidi 2005",
    notes: Notes {
        fails: "Without SACK most of what it repeats had arrived: capacity that a link which damages much has least of.",
        errata: "How fast the repetitions leave is not told. Here each waits for a sign that a segment has left the network. With SACK only \
                 what is missing below the highest SACKed octet is repeated, which is what RACK does anyway.",
        ..Notes::NONE
    },
    ..Part::fixed(|_| Box::new(BulkRepeat))
};

/// Two of the three ideas of TCPW Bulk Repeat: bulk retransmission, and the window adjustment that leaves the window alone for losses
/// without congestion. The third, a fixed retransmission timeout, is the timeout policy's.
#[derive(Debug, Default)]
pub struct BulkRepeat;

impl Reaction for BulkRepeat {
    fn respond(&mut self, verdict: &Verdict, loss: &Loss) -> Response {
        Keep.respond(verdict, loss)
    }

    fn repair(&mut self, verdict: &Verdict) -> Repair {
        match verdict.cause {
            Cause::Corruption => Repair::Bulk,
            Cause::Congestion | Cause::Unknown => Repair::Lost,
        }
    }
}
