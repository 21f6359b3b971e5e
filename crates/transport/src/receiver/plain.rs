//! A receiver that reports nothing.

use super::ReceiverAgent;
use crate::kit::{Notes, Part};

pub(super) const PART: Part<dyn ReceiverAgent> = Part {
    name: "plain",
    summary: "Reports nothing.",
    reference: "RFC 9293",
    notes: Notes::NONE,
    ..Part::fixed(|_| Box::new(Plain))
};

/// Standard TCP: a damaged segment is a missing segment.
#[derive(Debug, Default)]
pub struct Plain;

impl ReceiverAgent for Plain {
    fn listens(&self) -> bool {
        false
    }
}
