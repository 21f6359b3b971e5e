//! Snoop (Balakrishnan et al. 1995): the base station repairs what its wireless link loses before the sender hears of it.
//!
//! Data on its way to the mobile host is kept until the mobile host has acknowledged it. When a duplicate acknowledgement asks for data
//! that is kept, or the timer of the hop expires, it is sent again, before all else that waits for the link, and the duplicates end here.
//! What came to the base station out of order, or a second time, was lost or late before it: of that the sender hears.
//!
//! Of data on its way from the mobile host it remembers holes and names them on acknowledgements, as `eln` does; one that speaks SNACK has the
//! mobile host fill them.

mod down;
#[cfg(test)]
mod tests;
mod up;

use super::agent::{Agent, Handed, Handling, Outbox, Side, Transit};
use super::explicit_loss::Stream;
use super::keeping::{Keeping, Keeps};
use crate::address::{EndpointId, FlowId};
use crate::record::Held;
use down::{octets, Down};
use std::any::Any;
use up::Up;
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::segment::{Flags, ScpsCapabilities};
use whyloss_transport::{choices, settings, Instant, Segment};

pub(super) const PART: Part<dyn Agent> = Part {
    name: "snoop",
    summary: "Keeps data until the mobile host has acknowledged it, and sends again what the link has lost before the sender hears of it.",
    reference: "Balakrishnan et al. 1995",
    notes: Notes {
        idea: "The base station has what its link loses, and a round trip over one hop is short. A sender that never sees the duplicates does not reduce.",
        formula: "timeout = max(SRTT + 4 RTTVAR, min_timeout_ms) of the wireless hop, doubled with every expiry until there is a sample",
        fails: "Where the round trip of the hop is not short against that of the path: the sender's timer expires first. Where segments are encrypted, or acknowledgements take another way. What it keeps is lost when the mobile host changes its base station, and the sender repairs it.",
        errata: "In ns-2 the count of duplicates before a repair is shared by all flows; here each has its own.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

choices! {
    /// What the station has of a flow whose mobile host has come to it from another.
    pub(super) enum OnArrival {
        /// Nothing: what the other kept is lost.
        Empty = "empty",
        /// All that the other kept: the fixed host's data had been sent to both before.
        Multicast = "multicast",
    }
}

settings! {
    /// When it repairs, and how much it keeps.
    pub(super) struct Settings {
        /// Duplicate acknowledgements after which data is sent again.
        duplicates: u32 = 1, 1..=100;
        /// How often the same data is sent again on account of duplicate acknowledgements.
        repairs: u32 = 2, 1..=100;
        /// How often the same data is sent again when its timer expires.
        timeouts: u32 = 10, 0..=1000;
        /// The shortest timeout of the wireless hop in milliseconds.
        min_timeout_ms: f64 = 100.0, 1.0..=60_000.0;
        /// Flows that are remembered; the one that was quiet for longest makes room.
        flows: usize = 1024, 1..=1_000_000;
        /// Segments of a flow that are kept; further ones pass unkept.
        segments: usize = 100, 1..=1_000_000;
        /// Octets of segments that are kept of all flows together; further ones pass unkept.
        octets: u64 = 16_777_216, 1..=1_000_000_000_000;
        /// What a station has of a flow whose mobile host has come from another.
        on_arrival: OnArrival;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(Snoop::new(self))
    }
}

/// Keeps data and repairs it.
#[derive(Debug)]
pub(super) struct Snoop {
    settings: Settings,
    /// It answers the mobile host's SNACKs and sends it some.
    speaks_snack: bool,
    flows: Keeping<SnoopFlow>,
}

/// What the agent knows of one flow.
#[derive(Debug)]
struct SnoopFlow {
    /// The fixed host's end.
    fixed: EndpointId,
    /// Data on its way to the mobile host; `None` before there is any.
    down: Option<Down>,
    /// Data on its way from the mobile host.
    up: Option<Up>,
    /// Which ends have agreed to SNACKs on their SYNs: the fixed host, the mobile host.
    snacks: [bool; 2],
}

impl SnoopFlow {
    const fn new(fixed: EndpointId) -> Self {
        Self { fixed, down: None, up: None, snacks: [false; 2] }
    }

    /// When something is to be sent, again or asked for.
    fn due(&self, settings: &Settings) -> Option<Instant> {
        let again = self.down.as_ref().and_then(|down| down.due(settings));
        again.into_iter().chain(self.up.as_ref().and_then(|up| up.due(settings))).min()
    }
}

impl Keeps for SnoopFlow {
    fn weight(&self) -> (u64, u64) {
        let (kept, octets) = self.down.as_ref().map_or((0, 0), |down| (down.kept.len() as u64, down.octets));
        let (pieces, more) = self.up.as_ref().map_or((0, 0), Up::weight);
        (kept + pieces, octets + more)
    }
}

impl Snoop {
    fn new(settings: Settings) -> Self {
        Self { settings, speaks_snack: false, flows: Keeping::new(settings.flows) }
    }

    /// One that answers the mobile host's SNACKs and sends it some.
    pub fn speaking_snack(settings: Settings) -> Self {
        Self { speaks_snack: true, ..Self::new(settings) }
    }
}

impl Agent for Snoop {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, out: &mut Outbox) -> Handling {
        let id = transit.from.flow();
        if segment.flags.contains(Flags::RST) {
            self.flows.remove(id);
            return Handling::Forward;
        }
        let (settings, speaks_snack) = (self.settings, self.speaks_snack);
        let kept_octets = self.flows.kept_octets();
        let fixed = if transit.side == Side::Fixed { transit.from } else { transit.from.peer() };
        self.flows.change(
            id,
            || SnoopFlow::new(fixed),
            |flow| {
                if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
                    *flow = SnoopFlow::new(fixed);
                }
                if segment.flags.contains(Flags::SYN) {
                    let scps = segment.options.rare.as_ref().and_then(|rare| rare.scps);
                    flow.snacks[usize::from(transit.side == Side::Mobile)] =
                        scps.is_some_and(|scps| scps.flags & ScpsCapabilities::SNACK != 0);
                }
                let mut forward = true;
                match transit.side {
                    Side::Fixed => {
                        if let Some(up) = flow.up.as_mut().filter(|_| segment.flags.contains(Flags::ACK)) {
                            let agreed = speaks_snack && flow.snacks == [true; 2];
                            forward = !up.hears(transit.now, segment, &settings, agreed);
                        }
                        let start = (1 << 32) | u64::from(segment.seq.0);
                        if segment.flags.contains(Flags::SYN) {
                            // The mobile host waits for what follows.
                            flow.down = Some(Down::new(start + 1, Some((start + 1, 0))));
                        } else if segment.seq_len() > 0 {
                            let down = flow.down.get_or_insert_with(|| Down::new(start, None));
                            let room = down.kept.len() < settings.segments && kept_octets + octets(segment) <= settings.octets;
                            down.passes(transit.now, segment, room && !transit.crowded);
                        }
                    }
                    Side::Mobile => {
                        if segment.seq_len() > 0 {
                            let opens = segment.flags.contains(Flags::SYN);
                            let up = flow.up.take().filter(|_| !opens).unwrap_or_else(|| Up::new(Stream::of_holes(segment.seq)));
                            if let Some(asks) = flow.up.insert(up).arrives(transit.now, segment, settings.segments) {
                                out.send_urgent(flow.fixed, asks);
                            }
                        }
                        if let Some(down) = flow.down.as_mut().filter(|_| segment.flags.contains(Flags::ACK)) {
                            let (goes_on, again) = down.hears(transit.now, segment, &settings, speaks_snack);
                            forward = goes_on;
                            for segment in again {
                                out.send_urgent(flow.fixed, segment);
                            }
                        }
                    }
                }
                (if forward { Handling::Forward } else { Handling::Suppress }, flow.due(&settings))
            },
        )
    }

    /// The queue has no room: of that the sender is to hear.
    fn dropped(&mut self, from: EndpointId, segment: &Segment) {
        let settings = self.settings;
        self.flows.change_known(from.flow(), |flow| {
            if flow.fixed != from {
                return None;
            }
            if let Some(down) = &mut flow.down {
                down.forget(segment.seq.near(down.highest));
            }
            Some(flow.due(&settings))
        });
    }

    fn forget(&mut self, flow: FlowId) {
        self.flows.remove(flow);
    }

    fn hand_over(&mut self, id: FlowId) -> Option<Handed> {
        let (settings, mut state) = (self.settings, None);
        self.flows.change_known(id, |flow| {
            state = flow.down.take_if(|_| settings.on_arrival == OnArrival::Multicast).map(|down| (flow.fixed, down));
            Some(None)
        });
        self.flows.remove(id);
        let (fixed, down) = state?;
        let octets = down.kept.values().map(|kept| kept.segment.len() as u64).sum();
        Some(Handed { octets, ahead: true, state: Box::new((fixed, down)) })
    }

    /// What was kept is sent at once: the mobile host may have missed all of it.
    fn take_over(&mut self, now: Instant, id: FlowId, state: Box<dyn Any + Send>, out: &mut Outbox) {
        let Ok(state) = state.downcast::<(EndpointId, Down)>() else { return };
        let (fixed, mut down) = *state;
        let room = self.settings.octets.saturating_sub(self.flows.kept_octets());
        for segment in down.moves(now, self.settings.segments, room) {
            out.send(fixed, segment);
        }
        let settings = self.settings;
        self.flows.change(
            id,
            || SnoopFlow::new(fixed),
            |flow| {
                flow.down.get_or_insert(down);
                ((), flow.due(&settings))
            },
        );
    }

    fn next_timer(&self) -> Option<Instant> {
        self.flows.next_timer()
    }

    fn on_timer(&mut self, now: Instant, out: &mut Outbox) {
        let settings = self.settings;
        while let Some(id) = self.flows.take_due(now) {
            self.flows.change_known(id, |flow| {
                let expired = |due: Option<Instant>| due.is_some_and(|due| due <= now);
                let again = flow.down.as_mut().filter(|down| expired(down.due(&settings))).and_then(|down| down.expires(now));
                let asks = flow.up.as_mut().filter(|up| expired(up.due(&settings))).and_then(|up| up.expires(now));
                for segment in again.into_iter().chain(asks) {
                    out.send_urgent(flow.fixed, segment);
                }
                Some(flow.due(&settings))
            });
        }
    }

    fn restart(&mut self) {
        self.flows.clear();
    }

    fn held(&self) -> Held {
        self.flows.held()
    }
}
