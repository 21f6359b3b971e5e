//! What works at a router: the trait of all agents, and what several of them do to segments.
//!
//! An agent is a machine without a clock and without input or output. Whoever drives it, a simulated router or one of real packets, tells it
//! which segments cross its link and what time it is, and sends what it wants sent.

use crate::address::{EndpointId, FlowId};
use crate::record::Held;
use std::any::Any;
use std::fmt;
use whyloss_transport::segment::{Notices, RareOptions};
use whyloss_transport::wire::options::MAX_LEN;
use whyloss_transport::{Instant, Segment, Seq};

/// A side of an agent's link. At a base station the link is the wireless one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The router's side, with the network behind it.
    Fixed,
    /// The far side.
    Mobile,
}

/// How a segment crosses the link of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Transit {
    /// When it is at the router.
    pub now: Instant,
    /// The endpoint that sent the segment, or in whose name a middlebox did.
    pub from: EndpointId,
    /// The side that it comes from: what comes from [`Side::Fixed`] is about to enter the queue of the link, what comes from
    /// [`Side::Mobile`] has come over it.
    pub side: Side,
    /// Behind this segment, the queue of its next link has no room for another of its length.
    pub crowded: bool,
    /// Share of packets that the link damages or erases in the direction of this one; 0 if it is not [measured](Agent::meter).
    pub corruption: f64,
}

/// What becomes of a segment at an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// It goes on, as it is now.
    Forward,
    /// It ends here: its receiver has no need of it.
    Suppress,
    /// It ends here: the agent is its receiver, and answers for what it carries.
    Accept,
}

/// A segment of an agent's own, to the peer of the endpoint in whose name it is sent.
#[derive(Debug)]
pub struct Outgoing {
    /// In whose name.
    pub from: EndpointId,
    /// The segment.
    pub segment: Segment,
    /// It goes to the head of the queue of its next link.
    pub urgent: bool,
    /// It is sent only if the queue of the next link takes the segment on whose account it is sent.
    pub if_taken: bool,
}

/// What an agent wants sent, in this order, after the segment that it is looking at.
#[derive(Debug, Default)]
pub struct Outbox(Vec<Outgoing>);

impl Outbox {
    /// Sends a segment in the name of `from`.
    pub fn send(&mut self, from: EndpointId, segment: Segment) {
        self.0.push(Outgoing { from, segment, urgent: false, if_taken: false });
    }

    /// Sends a segment in the name of `from` before everything that waits for its next link.
    pub fn send_urgent(&mut self, from: EndpointId, segment: Segment) {
        self.0.push(Outgoing { from, segment, urgent: true, if_taken: false });
    }

    /// Sends a segment in the name of `from` if the queue of the next link takes the one that the agent is looking at.
    pub fn send_if_taken(&mut self, from: EndpointId, segment: Segment) {
        self.0.push(Outgoing { from, segment, urgent: false, if_taken: true });
    }

    /// What is to be sent; the box is empty then.
    pub fn take(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.0)
    }
}

/// What an agent hands over of a flow whose mobile host has gone to another station.
#[derive(Debug)]
pub struct Handed {
    /// Octets that are moved from station to station.
    pub octets: u64,
    /// The other station has got them already, while the mobile host was still here: it waits for nothing.
    pub ahead: bool,
    /// What an agent of the same kind understands.
    pub state: Box<dyn Any + Send>,
}

/// What works at a router. It sees the undamaged TCP segments that cross its link, in the order in which they do.
pub trait Agent: fmt::Debug + Send {
    /// A segment crosses the link and is about to enter the queue of its next link. It may be changed.
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, out: &mut Outbox) -> Handling;

    /// The queue of the link has dropped a segment, at once or later in favour of another.
    fn dropped(&mut self, _from: EndpointId, _segment: &Segment) {}

    /// Its driver has forgotten a flow: if segments of it still come, they come as another flow.
    fn forget(&mut self, _flow: FlowId) {}

    /// Its driver is about to forget a flow: what its ends are to hear of that.
    fn dismiss(&mut self, _now: Instant, _flow: FlowId, _out: &mut Outbox) {}

    /// Whether it is the receiver of a flow's segments. Then what cannot be shown to it must not go on either.
    fn receives(&self, _flow: FlowId) -> bool {
        false
    }

    /// Whether it has acknowledged, or may yet, what has not arrived: data is lost if it is made to forget the flow.
    fn answers_for(&self, _flow: FlowId) -> bool {
        false
    }

    /// A router says that a segment in the name of `from` that begins at `seq` was too big for its link, which takes segments of `room` octets,
    /// TCP header included, if it says so. Returns whether the agent may have sent that segment: then the endpoint did not.
    fn too_big(&mut self, _now: Instant, _from: EndpointId, _seq: Seq, _room: Option<u16>, _out: &mut Outbox) -> bool {
        false
    }

    /// The mobile host of a flow has gone to another station: the agent forgets the flow. Returns what the one there needs of it.
    fn hand_over(&mut self, flow: FlowId) -> Option<Handed> {
        self.forget(flow);
        None
    }

    /// The mobile host of a flow has come to this station, and what another agent has handed over is on its way here.
    fn expect(&mut self, _flow: FlowId) {}

    /// It has come.
    fn take_over(&mut self, _now: Instant, _flow: FlowId, _state: Box<dyn Any + Send>, _out: &mut Outbox) {}

    /// When it wants to be called, if nothing happens before.
    fn next_timer(&self) -> Option<Instant> {
        None
    }

    /// The time has come for which it asked.
    fn on_timer(&mut self, _now: Instant, _out: &mut Outbox) {}

    /// The link away from the router has gone down, or has come up again.
    fn on_link(&mut self, _now: Instant, _up: bool, _out: &mut Outbox) {}

    /// The router was started again: all that was remembered is lost.
    fn restart(&mut self);

    /// What it remembers now.
    fn held(&self) -> Held {
        Held::default()
    }

    /// Over how many packets it wants to know what share the link damages or erases, if it does.
    fn meter(&self) -> Option<u32> {
        None
    }
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

/// Takes the experimental options out of a segment: kinds 253 and 254 (RFC 4727, 4).
pub(super) fn strip(segment: &mut Segment) {
    segment.options.nonce = None;
    segment.options.wave = None;
    if let Some(mut rare) = segment.options.rare.take() {
        rare.reports_permitted = false;
        rare.words_permitted = false;
        rare.short_nonce = None;
        rare.report = None;
        rare.separation = None;
        rare.probe = None;
        rare.fast_open = rare.fast_open.filter(|option| !option.experimental);
        rare.notices = Notices::default();
        segment.options.rare = (*rare != RareOptions::default()).then_some(rare);
    }
}
