//! CETEN (Krishnan et al. 2004): the base station tells how often its wireless link corrupts.

use super::agent::{Agent, Transit};
use whyloss_transport::Segment;

/// Multiplies the measured share of survivors into the notice that a sender has left room for.
#[derive(Debug)]
pub(crate) struct Survival;

impl Agent for Survival {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment) {
        if !(transit.arrived || transit.leaves) {
            return;
        }
        let survival = segment.options.rare.as_mut().and_then(|rare| rare.notices.survival.as_mut());
        if let Some(survival) = survival {
            *survival = (f64::from(*survival) * (1.0 - transit.corruption) + 0.5) as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::EndpointId;
    use whyloss_transport::segment::{Notices, Options, RareOptions};

    #[test]
    fn links_multiply() {
        let notices = Notices { survival: Some(u16::MAX), ..Notices::default() };
        let rare = Some(Box::new(RareOptions { notices, ..RareOptions::default() }));
        let mut segment = Segment { options: Options { rare, ..Options::default() }, ..Segment::default() };
        let transit = |arrived, corruption| Transit { from: EndpointId::new(0), arrived, leaves: false, corruption };
        for transit in [transit(true, 0.02), transit(false, 0.5), transit(true, 0.1)] {
            Survival.pass(&transit, &mut segment);
        }
        // 65535 * 0.98 = 64224.3, then 64224 * 0.9 = 57801.6.
        assert_eq!(segment.options.rare.unwrap().notices.survival, Some(57_802));
    }
}
