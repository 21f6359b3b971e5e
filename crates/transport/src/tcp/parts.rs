//! The algorithms of a connection.

use super::Differentiators;
use crate::congestion::CongestionControl;
use crate::differentiation::GapDifferentiator;
use crate::reaction::Reaction;
use crate::receiver::ReceiverAgent;
use crate::timeout::TimeoutPolicy;

/// The algorithms of one connection.
#[derive(Debug)]
pub struct Parts {
    /// How the window moves.
    pub congestion: Box<dyn CongestionControl>,
    /// Why a segment was lost: the one that rules, and those in shadow.
    pub differentiators: Differentiators,
    /// Differentiators that judge every gap at the receiver and change nothing, with the names of their columns.
    pub receiver_shadows: Vec<(String, Box<dyn GapDifferentiator>)>,
    /// What a verdict does to the window.
    pub reaction: Box<dyn Reaction>,
    /// What a timeout does.
    pub timeout: Box<dyn TimeoutPolicy>,
    /// What the receiver measures and reports.
    pub receiver: Box<dyn ReceiverAgent>,
}
