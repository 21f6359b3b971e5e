//! Knows the truth: the upper bound of what differentiation can achieve. Works only where the driver knows what became of each packet.

use super::{Cause, LossDifferentiator, Verdict};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Loss, TransmissionFate, TrueCause};
use crate::time::Instant;
use crate::{choices, settings};
use std::collections::BTreeMap;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "oracle",
    summary: "Knows what became of each packet; only a simulator can tell it.",
    reference: "upper bound",
    notes: Notes {
        idea: "What could be won if every loss were told apart without error? A segment that was not lost at all counts as corruption: there is no \
               reason to slow down.",
        formula: "corruption unless a queue dropped the packet",
        threshold: "",
        fails: "On real packets it knows nothing and says so.",
        errata: "Collisions of a shared radio channel are counted as corruption, as the literature does, or as congestion, which they also are.",
    },
    ..Part::of::<Settings>()
};

choices! {
    /// What a packet is taken for that the radio gave up after too many collisions.
    enum Collisions {
        /// As the literature does.
        Corruption = "corruption",
        /// What it is, too.
        Congestion = "congestion",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// What a packet is taken for that the radio gave up after too many collisions.
        collisions: Collisions;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Oracle { collisions_are_congestion: self.collisions == Collisions::Congestion, ..Oracle::default() })
    }
}

/// The fates of transmissions by position and time of sending.
#[derive(Debug, Default)]
pub struct Oracle {
    collisions_are_congestion: bool,
    /// Whether the driver has ever told anything: else there is no evidence that nothing was lost.
    told: bool,
    fates: BTreeMap<(u64, Instant), TrueCause>,
}

impl LossDifferentiator for Oracle {
    fn wants_truth(&self) -> bool {
        true
    }

    fn on_truth(&mut self, fate: &TransmissionFate) {
        self.told = true;
        self.fates.insert((fate.start, fate.sent_at), fate.cause);
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.acked > 0 && !self.fates.is_empty() {
            self.fates = self.fates.split_off(&(ack.path.una, Instant::ZERO));
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let congestion = match self.fates.get(&(loss.start, loss.sent_at)) {
            Some(TrueCause::Congestion) => true,
            Some(TrueCause::Collision) => self.collisions_are_congestion,
            Some(TrueCause::Corruption) => false,
            None if self.told => false,
            None => return Verdict { cause: Cause::Unknown, score: 0.0 },
        };
        if congestion {
            Verdict { cause: Cause::Congestion, score: 0.0 }
        } else {
            Verdict { cause: Cause::Corruption, score: 1.0 }
        }
    }
}
