//! CETEN (Krishnan et al. 2004): the base station tells how often its wireless link corrupts.

use super::{Agent, Crossing};
use std::collections::VecDeque;
use whyloss_transport::Segment;

/// The agent.
#[derive(Debug)]
pub(crate) struct Survival;

impl Agent for Survival {
    fn pass(&mut self, crossing: &Crossing, segment: &mut Segment) {
        if !(crossing.arrived || crossing.leaves) {
            return;
        }
        let survival = segment.options.rare.as_mut().and_then(|rare| rare.notices.survival.as_mut());
        if let Some(survival) = survival {
            *survival = (f64::from(*survival) * (1.0 - crossing.corruption) + 0.5) as u16;
        }
    }
}

/// What a link layer knows of its channel: how many of the last packets it has damaged or erased.
#[derive(Debug)]
pub(crate) struct Meter {
    window: usize,
    packets: VecDeque<bool>,
    corrupted: u32,
}

impl Meter {
    /// Over the last `window` packets.
    pub const fn new(window: u32) -> Self {
        Self { window: window as usize, packets: VecDeque::new(), corrupted: 0 }
    }

    /// A packet has crossed the channel.
    pub fn note(&mut self, corrupted: bool) {
        if self.packets.len() == self.window {
            self.corrupted -= u32::from(self.packets.pop_front() == Some(true));
        }
        self.packets.push_back(corrupted);
        self.corrupted += u32::from(corrupted);
    }

    /// The share of packets that were damaged or erased; 0 before the first.
    pub fn share(&self) -> f64 {
        f64::from(self.corrupted) / self.packets.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::segment::{Notices, Options, RareOptions};

    #[test]
    fn a_meter_forgets() {
        let mut meter = Meter::new(4);
        assert_eq!(meter.share(), 0.0);
        for corrupted in [true, false] {
            meter.note(corrupted);
        }
        assert_eq!(meter.share(), 0.5);
        for corrupted in [false, false, false] {
            meter.note(corrupted);
        }
        assert_eq!(meter.share(), 0.0);
        meter.note(true);
        assert_eq!(meter.share(), 0.25);
    }

    #[test]
    fn links_multiply() {
        let notices = Notices { survival: Some(u16::MAX), ..Notices::default() };
        let rare = Some(Box::new(RareOptions { notices, ..RareOptions::default() }));
        let mut segment = Segment { options: Options { rare, ..Options::default() }, ..Segment::default() };
        let crossing = |arrived, corruption| Crossing { from: 0, arrived, leaves: false, corruption };
        for crossing in [crossing(true, 0.02), crossing(false, 0.5), crossing(true, 0.1)] {
            Survival.pass(&crossing, &mut segment);
        }
        // 65535 * 0.98 = 64224.3, then 64224 * 0.9 = 57801.6.
        assert_eq!(segment.options.rare.unwrap().notices.survival, Some(57_802));
    }
}
