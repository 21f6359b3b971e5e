//! I-TCP (Bakre & Badrinath 1995): the base station splits a connection in two.
//!
//! To the fixed host it is the mobile host, to the mobile host it is the fixed host. Each half has its own congestion control, buffers,
//! timers and options; the sequence numbers are those of the ends on both halves. The base station opens its half to the far end first
//! and answers the opener when the far end has, so that who refuses, refuses the opener. The far end's connection stands when the opener has
//! been heard again.
//!
//! What it acknowledges has not arrived: when it is started again, acknowledged data is gone. That is the price of I-TCP, not an accident
//! here. When a mobile host moves to another station, both halves move there with all that their buffers hold; until they have come, what the ends
//! send to each other ends at the new station, and they send it again. Where there is no I-TCP at the new station, the connection is lost.

mod split;

use super::agent::{Agent, Handed, Handling, Outbox, Transit};
use super::deadlines::Deadlines;
use super::table::Table;
use crate::address::{EndpointId, FlowId};
use crate::record::Held;
use split::{Split, FLOW_OCTETS};
use std::any::Any;
use std::collections::BTreeSet;
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::segment::Flags;
use whyloss_transport::{choices, settings, Duration, Instant, Segment, Seq};

pub(super) const PART: Part<dyn Agent> = Part {
    name: "i-tcp",
    summary: "Splits connections: one to the fixed host, one to the mobile host, each with a scheme of its own.",
    reference: "Bakre & Badrinath 1995",
    notes: Notes {
        idea: "The wired half never sees what the wireless link loses, and the wireless half recovers over a short round trip.",
        fails: "Data is acknowledged before it has arrived: what the base station holds is lost with it, and the sender does not know. Nothing end to end comes through: options, reports, ECN. Each connection needs buffers and two states.",
        errata: "In the original the mobile host calls a library that knows of the base station; here neither end knows.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

choices! {
    /// The scheme of a half.
    pub(super) enum Scheme {
        /// SACK with NewReno's window.
        Sack = "sack",
        /// NewReno.
        NewReno = "newreno",
        /// Reno.
        Reno = "reno",
        /// CUBIC.
        Cubic = "cubic",
        /// Veno.
        Veno = "veno",
        /// Westwood+.
        WestwoodPlus = "westwood-plus",
    }
}

settings! {
    /// The halves, and how much they may hold.
    pub(super) struct Settings {
        /// The scheme towards the fixed host.
        fixed: Scheme;
        /// The scheme towards the mobile host.
        mobile: Scheme;
        /// The largest segment on either half in octets, if the ends allow as much.
        mss: u32 = 1460, 100..=9000;
        /// Octets of each of the four buffers of a connection: received and to be sent, on either half.
        buffer: u64 = 262_144, 4096..=1_000_000_000;
        /// Connections that are split; further ones pass whole. Those that have ended make room.
        flows: usize = 1024, 1..=1_000_000;
        /// Octets of the buffers of all connections together: as many are split as could fill theirs.
        octets: u64 = 1_073_741_824, 16_384..=1_000_000_000_000;
        /// Seconds without a segment after which a connection makes room for a new one, if there is none left.
        idle_s: f64 = 3600.0, 1.0..=1_000_000.0;
        /// The same for one that is only being opened.
        opening_s: f64 = 5.0, 0.0..=1_000_000.0;
        /// Octets that the state of a connection takes from station to station when the mobile host moves, beside what its buffers hold.
        state_octets: u64 = 1000, 1..=1_000_000;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(ITcp::new(self))
    }
}

/// Splits connections.
#[derive(Debug)]
pub(super) struct ITcp {
    settings: Settings,
    flows: Table<Split>,
    timers: Deadlines,
    /// Connections that are on their way here from another station.
    expected: BTreeSet<FlowId>,
    held: Held,
}

impl ITcp {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            flows: Table::new(settings.flows),
            timers: Deadlines::default(),
            expected: BTreeSet::new(),
            held: Held::default(),
        }
    }

    /// The octets in the buffers of a flow have become others.
    fn note(&mut self, before: u64, after: u64) {
        let flows = self.flows.len() as u64;
        let buffers = self.held.octets - self.held.flows * FLOW_OCTETS + after - before;
        let flow_octets = FLOW_OCTETS + after;
        self.held = Held { flows, segments: 0, octets: flows * FLOW_OCTETS + buffers, flow_octets };
    }

    /// A connection is to be opened. Returns whether it is, or was, split.
    fn open(&mut self, transit: &Transit, syn: &Segment, out: &mut Outbox) -> bool {
        let id = transit.from.flow();
        match self.flows.get(id) {
            Some(split) if split.gives_way_to(transit.from, syn) => self.forget(id),
            Some(_) => return true,
            None => {}
        }
        // Data on a SYN waits for nobody: such a connection stays whole.
        let plain = syn.is_empty() && syn.options.rare.as_ref().is_none_or(|rare| rare.fast_open.is_none());
        if !plain || !self.make_room(transit.now, out) {
            return false;
        }
        let Some(mut split) = Split::new(&self.settings, transit, syn) else { return false };
        split.send(transit.now, out);
        let due = split.due();
        self.flows.get_or_insert(id, || split);
        self.timers.set(id, due);
        self.note(0, 0);
        true
    }

    /// Whether there is room for a further connection.
    fn make_room(&mut self, now: Instant, out: &mut Outbox) -> bool {
        let in_all = (self.settings.octets / (4 * self.settings.buffer)).max(1);
        if self.flows.len() < self.settings.flows && (self.flows.len() as u64) < in_all {
            return true;
        }
        let [idle, opening] =
            [self.settings.idle_s, self.settings.opening_s].map(|seconds| Duration::from_nanos((seconds * 1e9) as u64));
        let gone = self.flows.oldest_of(|split| {
            let silent = now.since(split.heard);
            split.has_ended() || silent >= idle || split.is_opening() && silent >= opening
        });
        if let Some(id) = gone {
            self.dismiss(now, id, out);
            self.forget(id);
        }
        gone.is_some()
    }

    /// Lets a flow do what it has to do, after something has happened to it. Its buffers held so many octets before.
    fn settle(&mut self, now: Instant, id: FlowId, before: u64, out: &mut Outbox) {
        let Some(split) = self.flows.get_mut(id) else { return };
        let over = split.pump(now, out);
        let (due, after) = (split.due(), split.octets());
        self.timers.set(id, due);
        self.note(before, after);
        if over {
            self.forget(id);
        }
    }
}

impl Agent for ITcp {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, out: &mut Outbox) -> Handling {
        let (id, settings) = (transit.from.flow(), self.settings);
        if self.expected.contains(&id) {
            return Handling::Suppress;
        }
        let opens = segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST);
        if opens && !self.open(transit, segment, out) {
            return Handling::Forward;
        }
        let Some(split) = self.flows.get(id) else { return Handling::Forward };
        let before = split.octets();
        let refused = split.take(transit, &settings, segment);
        self.settle(transit.now, id, before, out);
        if refused {
            self.forget(id);
            return Handling::Forward;
        }
        Handling::Accept
    }

    fn forget(&mut self, id: FlowId) {
        self.expected.remove(&id);
        if let Some(split) = self.flows.remove(id) {
            self.timers.set(id, None);
            self.note(split.octets(), 0);
        }
    }

    fn dismiss(&mut self, now: Instant, id: FlowId, out: &mut Outbox) {
        if let Some(split) = self.flows.get_mut(id) {
            let before = split.octets();
            split.abort(now, out);
            let after = split.octets();
            self.note(before, after);
        }
    }

    fn receives(&self, id: FlowId) -> bool {
        self.flows.peek(id).is_some() || self.expected.contains(&id)
    }

    fn answers_for(&self, id: FlowId) -> bool {
        self.flows.peek(id).is_some_and(Split::answers)
    }

    fn too_big(&mut self, now: Instant, from: EndpointId, seq: Seq, room: Option<u16>, out: &mut Outbox) -> bool {
        let id = from.flow();
        let Some(split) = self.flows.get_mut(id) else { return false };
        let before = split.octets();
        // The halves count with headers of IPv4.
        split.too_big(now, from, seq, room.map(|room| room.saturating_add(20)));
        self.settle(now, id, before, out);
        true
    }

    fn hand_over(&mut self, id: FlowId) -> Option<Handed> {
        let split = self.flows.remove(id)?;
        let buffers = split.octets();
        self.timers.set(id, None);
        self.note(buffers, 0);
        Some(Handed { octets: self.settings.state_octets + buffers, ahead: false, state: Box::new(split) })
    }

    fn expect(&mut self, id: FlowId) {
        if self.expected.len() < self.settings.flows {
            self.expected.insert(id);
        }
    }

    fn take_over(&mut self, now: Instant, id: FlowId, state: Box<dyn Any + Send>, out: &mut Outbox) {
        self.expected.remove(&id);
        let Ok(mut split) = state.downcast::<Split>() else { return };
        if !self.make_room(now, out) {
            split.abort(now, out);
            return;
        }
        split.heard = now;
        self.forget(id);
        let buffers = split.octets();
        self.flows.get_or_insert(id, || *split);
        self.note(0, buffers);
        self.settle(now, id, buffers, out);
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn on_timer(&mut self, now: Instant, out: &mut Outbox) {
        let due: Vec<_> = std::iter::from_fn(|| self.timers.take(now)).collect();
        for id in due {
            let Some(split) = self.flows.get_mut(id) else { continue };
            let before = split.octets();
            split.on_timeout(now);
            self.settle(now, id, before, out);
        }
    }

    fn restart(&mut self) {
        self.flows.clear();
        self.timers.clear();
        self.expected.clear();
        self.held = Held::default();
    }

    fn held(&self) -> Held {
        self.held
    }
}

#[cfg(test)]
mod tests;
