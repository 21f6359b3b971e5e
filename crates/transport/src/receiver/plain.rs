//! A receiver that reports nothing.

use super::ReceiverAgent;

/// Standard TCP: a damaged segment is a missing segment.
#[derive(Debug, Default)]
pub struct Plain;

impl ReceiverAgent for Plain {}
