//! What works at a router: the trait of all agents, and what several of them do to segments.

use crate::address::EndpointId;
use std::fmt;
use whyloss_transport::segment::{Notices, RareOptions};
use whyloss_transport::wire::options::MAX_LEN;
use whyloss_transport::Segment;

/// How a segment passes a router, seen from one of its links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transit {
    /// The endpoint that sent the segment; answers go to it, in the name of its peer.
    pub from: EndpointId,
    /// It has come over the link.
    pub arrived: bool,
    /// It leaves over the link.
    pub leaves: bool,
    /// Share of packets that the link damages or erases in the direction of this one, if it is measured.
    pub corruption: f64,
}

/// A control segment for the sender of another one.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It is sent in any case.
    Always(Segment),
    /// It is sent if the queue of the next link takes the segment that it answers.
    IfTaken(Segment),
}

impl Answer {
    /// The segment to send if the queue took the one that is answered, or did not.
    pub fn segment(self, taken: bool) -> Option<Segment> {
        match self {
            Self::Always(segment) => Some(segment),
            Self::IfTaken(segment) => taken.then_some(segment),
        }
    }
}

/// What works at a router. It sees segments in the order in which they pass.
pub(crate) trait Agent: fmt::Debug + Send {
    /// A segment is about to enter the queue of its next link. Only its options may be changed.
    fn pass(&mut self, transit: &Transit, segment: &mut Segment);

    /// What a segment is answered with that all agents have passed and that is about to enter the queue of its next link.
    fn answer(&mut self, _transit: &Transit, _segment: &Segment) -> Option<Answer> {
        None
    }

    /// The queue of the link has dropped a segment, at once or later in favour of another.
    fn dropped(&mut self, _from: EndpointId, _segment: &Segment) {}
}

/// Puts a notice into a segment if its header has room for it. Returns whether it had.
pub(super) fn notify(segment: &mut Segment, set: impl FnOnce(&mut Notices)) -> bool {
    let before = segment.options.rare.clone();
    set(&mut segment.options.rare.get_or_insert_default().notices);
    let fits = segment.options.packed_len() <= MAX_LEN;
    if !fits {
        segment.options.rare = before;
    }
    fits
}

/// Takes the experimental options out of a segment.
pub(super) fn strip(segment: &mut Segment) {
    segment.options.nonce = None;
    if let Some(mut rare) = segment.options.rare.take() {
        rare.reports_permitted = false;
        rare.report = None;
        rare.notices = Notices::default();
        segment.options.rare = (*rare != RareOptions::default()).then_some(rare);
    }
}
