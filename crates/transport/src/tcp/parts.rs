//! The algorithms of a connection.

use super::Differentiators;
use crate::congestion::CongestionControl;
use crate::differentiation::GapDifferentiator;
use crate::reaction::Reaction;
use crate::receiver::ReceiverAgent;
use crate::timeout::TimeoutPolicy;

/// Which of the parts want to be told what happens. Those of plain TCP only answer when they are asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listeners {
    /// Differentiators.
    pub differentiators: bool,
    /// Whoever listens to acknowledgements.
    pub acks: bool,
    /// Whoever listens to the arrival of data.
    pub arrivals: bool,
    /// The receiver agent.
    pub receiver: bool,
}

impl Listeners {
    pub fn among(parts: &Parts) -> Self {
        let Differentiators { ruling, shadows } = &parts.differentiators;
        let differentiators = ruling.listens() || !shadows.is_empty();
        let receiver = parts.receiver.listens();
        Self {
            differentiators,
            acks: differentiators || parts.reaction.listens() || parts.timeout.listens(),
            arrivals: receiver || !parts.receiver_shadows.is_empty(),
            receiver,
        }
    }
}

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
