//! A firewall that lets no experiments through.

use super::{strip, Agent, Crossing};
use whyloss_transport::Segment;

/// Takes the options of kind 253 out of what crosses its link.
#[derive(Debug)]
pub(crate) struct Strip;

impl Agent for Strip {
    fn pass(&mut self, crossing: &Crossing, segment: &mut Segment) {
        if crossing.arrived || crossing.leaves {
            strip(segment);
        }
    }
}
