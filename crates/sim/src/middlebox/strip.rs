//! A firewall that lets no experiments through.

use super::agent::{strip, Agent, Transit};
use whyloss_transport::Segment;

/// Takes the options of kind 253 out of what crosses its link.
#[derive(Debug)]
pub(crate) struct Strip;

impl Agent for Strip {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment) {
        if transit.arrived || transit.leaves {
            strip(segment);
        }
    }
}
