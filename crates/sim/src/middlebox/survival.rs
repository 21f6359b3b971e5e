//! CETEN (Krishnan et al. 2004): the base station tells how often its wireless link corrupts.

use super::agent::{Agent, Handling, Outbox, Transit};
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::{settings, Segment};

pub(super) const PART: Part<dyn Agent> = Part {
    name: "ceten",
    summary: "Multiplies the probability to survive the link into data that crosses it; the differentiator `ceten` reads it.",
    reference: "Krishnan et al. 2004",
    notes: Notes {
        idea: "The link layer knows how much the link corrupts; what the sender loses beyond that, queues have dropped.",
        fails: "Where its option is stripped, and where the rate of corruption changes within the window.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What it measures.
    pub(super) struct Settings {
        /// Packets of the direction of the data over which the link layer measures: one less the share of those that were damaged or erased.
        window: u32 = 1000, 1..=1_000_000_000;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(Survival { window: self.window })
    }
}

/// Multiplies the measured share of survivors into the notice that a sender has left room for.
#[derive(Debug)]
pub(super) struct Survival {
    window: u32,
}

impl Agent for Survival {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, _out: &mut Outbox) -> Handling {
        let survival = segment.options.rare.as_mut().and_then(|rare| rare.notices.survival.as_mut());
        if let Some(survival) = survival {
            *survival = (f64::from(*survival) * (1.0 - transit.corruption) + 0.5) as u16;
        }
        Handling::Forward
    }

    fn restart(&mut self) {}

    fn meter(&self) -> Option<u32> {
        Some(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::EndpointId;
    use crate::middlebox::Side;
    use whyloss_transport::segment::{Notices, Options, RareOptions};
    use whyloss_transport::Instant;

    #[test]
    fn links_multiply() {
        let notices = Notices { survival: Some(u16::MAX), ..Notices::default() };
        let rare = Some(Box::new(RareOptions { notices, ..RareOptions::default() }));
        let mut segment = Segment { options: Options { rare, ..Options::default() }, ..Segment::default() };
        for corruption in [0.02, 0.1] {
            let (now, from) = (Instant::ZERO, EndpointId::new(0));
            let transit = Transit { now, from, side: Side::Mobile, crowded: false, corruption };
            Survival { window: 1 }.pass(&transit, &mut segment, &mut Outbox::default());
        }
        // 65535 * 0.98 = 64224.3, then 64224 * 0.9 = 57801.6.
        assert_eq!(segment.options.rare.unwrap().notices.survival, Some(57_802));
    }
}
