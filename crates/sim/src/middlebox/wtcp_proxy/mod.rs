//! The WTCP of Ratnam & Matta (1998): the base station repairs what its wireless link loses, waits while the link is bad, and hides from the
//! sender how long that took.
//!
//! As with [`snoop`](super::snoop) data is kept until the mobile host has acknowledged it, and only the mobile host acknowledges. What differs:
//!
//! - An expired timer says that the link is bad: only the first segment is sent again, and what comes meanwhile waits here. Any
//!   acknowledgement of the mobile host says that the link is good again. A duplicate acknowledgement never closes the window.
//! - What leaves later than it came has a later timestamp, by the time that it was here. Its echo then shows the sender the round trip
//!   without that time.

mod stamps;
use super::agent::{Agent, Handling, Outbox, Side, Transit};
use super::hop::{repeats, HopTimer};
use super::keeping::{Keeping, Keeps};
use crate::address::{EndpointId, FlowId};
use crate::record::Held;
use stamps::Stamps;
use std::collections::BTreeMap;
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::segment::{Flags, SackBlocks};
use whyloss_transport::{settings, Duration, Instant, Segment};

pub(super) const PART: Part<dyn Agent> = Part {
    name: "wtcp-proxy",
    summary: "Repairs what the link has lost, waits while the link is bad, and takes the time that this needs out of the sender's round-trip times.",
    reference: "Ratnam & Matta 1998",
    notes: Notes {
        idea: "Repairs at the base station make round trips longer, and the sender's timer with them. Timestamps that are moved on by the time a \
               segment was here hide that: the timer stays as short as the wired way allows, and measures congestion only.",
        formula: "TSval += (time of leaving - time of coming) / tick; timeout = max(SRTT + 4 RTTVAR, min_timeout_ms) of the wireless hop, doubled \
                  with every expiry, `doublings` times at most, until there is a sample",
        fails: "A sender that times segments by its own clock, as current stacks do, sees the whole round trip of what was repaired; and a timer that \
                is kept short expires while the base station still repairs. What waits here is lost when the base station forgets the flow.",
        errata: "Our readings: one duplicate acknowledgement has the segment sent again (`duplicates`). The timeout doubles a few times only \
                 (`doublings`), because one segment at a time is no load on a link that is bad. Once an outage is over, all that was sent before it and \
                 is neither acknowledged nor in a SACK block goes again, then what has waited. After `timeouts` expiries for the same segment the mobile \
                 host is taken for gone and the rest is left to the sender. Repairs queue behind what waits for the link: an older timestamp behind a \
                 newer one would be refused by the mobile host (RFC 7323, 5), which is also why what passes is given the latest timestamp that has \
                 left if its own is older. The sender's tick is measured; until it is known no timestamp moves beyond the latest that has come.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// When it repairs, and how much it keeps.
    pub(super) struct Settings {
        /// Duplicate acknowledgements after which data is sent again.
        duplicates: u32 = 1, 1..=100;
        /// How often the same data is sent again on account of duplicate acknowledgements.
        repairs: u32 = 10, 1..=100;
        /// How often the same data is sent again when its timer expires, before everything is left to the sender.
        timeouts: u32 = 30, 1..=1000;
        /// The shortest timeout of the wireless hop in milliseconds.
        min_timeout_ms: f64 = 100.0, 1.0..=60_000.0;
        /// How often the timeout doubles at most while it expires again and again.
        doublings: u32 = 2, 0..=16;
        /// Take the time that segments were here out of the sender's round-trip times.
        hide: bool = true;
        /// Flows that are remembered; the one that was quiet for longest makes room.
        flows: usize = 1024, 1..=1_000_000;
        /// Segments of a flow that are kept; further ones pass unkept.
        segments: usize = 100, 1..=1_000_000;
        /// Octets of segments that are kept of all flows together; further ones pass unkept.
        octets: u64 = 16_777_216, 1..=1_000_000_000_000;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(Proxy::new(self))
    }
}

/// Keeps data, repairs it and hides for how long.
#[derive(Debug)]
pub(super) struct Proxy {
    settings: Settings,
    flows: Keeping<ProxyFlow>,
}

/// What the agent knows of one flow.
#[derive(Debug)]
struct ProxyFlow {
    /// The fixed host's end.
    fixed: EndpointId,
    stamps: Stamps,
    /// Data on its way to the mobile host; `None` before there is any.
    down: Option<Down>,
}

/// Data on its way to the mobile host.
#[derive(Debug)]
struct Down {
    /// The end of the data that has come farthest.
    highest: u64,
    /// What the mobile host has acknowledged, and its window with it.
    acked: Option<(u64, u16)>,
    /// Duplicates of that acknowledgement.
    duplicates: u32,
    /// Duplicates that are still to be expected, because of what was on the link when its data was sent again.
    expected: u64,
    /// By the first octet.
    kept: BTreeMap<u64, Kept>,
    octets: u64,
    timer: HopTimer,
    /// When the mobile host acknowledged something new last.
    advanced: Instant,
    /// The timer has expired and the mobile host has said nothing since: the window is one segment.
    outage: bool,
}

#[derive(Debug)]
struct Kept {
    segment: Segment,
    end: u64,
    came: Instant,
    /// `None` if it waits for the end of an outage.
    sent: Option<Instant>,
    repairs: u32,
    timeouts: u32,
    /// It was lost or late before it came here: its sender is to know.
    senders: bool,
}

/// Memory for a segment that is kept.
fn octets(segment: &Segment) -> u64 {
    segment.len() as u64 + size_of::<Kept>() as u64
}

impl Down {
    fn new(start: u64, acked: Option<(u64, u16)>) -> Self {
        Self {
            highest: start,
            acked,
            duplicates: 0,
            expected: 0,
            kept: BTreeMap::new(),
            octets: 0,
            timer: HopTimer::default(),
            advanced: Instant::ZERO,
            outage: false,
        }
    }

    /// Data of the fixed host has come; `room` says whether it may be kept. Returns whether it goes on now.
    fn comes(&mut self, now: Instant, segment: &Segment, room: bool) -> bool {
        let start = segment.seq.near(self.highest);
        let end = start + u64::from(segment.seq_len());
        let in_order = start >= self.highest;
        self.highest = self.highest.max(end);
        if self.acked.is_some_and(|(acked, _)| end <= acked) {
            return true;
        }
        let before = self.forget(start);
        if !room {
            return true;
        }
        let mut kept = Kept {
            segment: segment.clone(),
            end,
            came: now,
            sent: Some(now).filter(|_| !self.outage),
            repairs: 0,
            timeouts: 0,
            senders: !in_order,
        };
        if let Some(before) = before.filter(|_| self.outage) {
            // The sender has lost its patience with what is under repair.
            (kept.sent, kept.timeouts) = (before.sent, before.timeouts);
        }
        self.octets += octets(segment);
        self.kept.insert(start, kept);
        !self.outage
    }

    fn forget(&mut self, start: u64) -> Option<Kept> {
        let kept = self.kept.remove(&start)?;
        self.octets -= octets(&kept.segment);
        Some(kept)
    }

    /// The segments at `starts` leave, again or at last.
    fn send(&mut self, now: Instant, starts: &[u64]) -> Vec<(Segment, Duration)> {
        let mut sent = Vec::new();
        for start in starts {
            if let Some(kept) = self.kept.get_mut(start) {
                kept.sent = Some(now);
                sent.push((kept.segment.clone(), now.since(kept.came)));
            }
        }
        sent
    }

    /// The mobile host acknowledges. Returns whether the acknowledgement goes on, and what is to be sent.
    fn hears(&mut self, now: Instant, ack: &Segment, settings: &Settings) -> (bool, Vec<(Segment, Duration)>) {
        let una = ack.ack.near(self.highest);
        if una > self.highest || self.acked.is_some_and(|(acked, _)| una < acked) {
            return (true, Vec::new());
        }
        let duplicate = repeats(ack, self.acked, self.highest);
        let advances = self.acked.is_none_or(|(acked, _)| una > acked);
        self.acked = Some((una, ack.window));
        let mut starts = Vec::new();
        let mut goes_on = true;
        if advances {
            self.advance(now, una);
            if self.outage {
                starts = self.absent(&ack.options.sack);
                self.repaired(&starts);
            }
        } else if duplicate {
            (goes_on, starts) = self.repeated(una, settings);
        }
        if std::mem::take(&mut self.outage) {
            let waiting = self.kept.iter().filter(|(start, kept)| kept.sent.is_none() && !starts.contains(start));
            let waiting: Vec<_> = waiting.map(|(start, _)| *start).collect();
            starts.extend(waiting);
        }
        (goes_on, self.send(now, &starts))
    }

    /// What is kept and does not lie in a SACK block.
    fn absent(&self, sack: &SackBlocks) -> Vec<u64> {
        let blocks = sack.as_slice().iter().map(|(left, right)| (left.near(self.highest), right.near(self.highest)));
        let blocks: Vec<_> = blocks.collect();
        let has = |start: u64, end: u64| blocks.iter().any(|(left, right)| *left <= start && end <= *right);
        self.kept.iter().filter(|(start, kept)| !has(**start, kept.end)).map(|(start, _)| *start).collect()
    }

    /// What was sent before goes again: of that the round trip says nothing.
    fn repaired(&mut self, starts: &[u64]) {
        for start in starts {
            if let Some(kept) = self.kept.get_mut(start).filter(|kept| kept.sent.is_some()) {
                kept.repairs += 1;
            }
        }
    }

    /// An acknowledgement has come again. Returns whether it goes on, and what is to be sent again.
    fn repeated(&mut self, una: u64, settings: &Settings) -> (bool, Vec<u64>) {
        let behind = self.kept.range(una + 1..).filter(|(_, kept)| kept.sent.is_some()).count() as u64;
        let Some(missing) = self.kept.get_mut(&una).filter(|kept| !kept.senders) else { return (true, Vec::new()) };
        self.duplicates += 1;
        if self.expected > 0 {
            self.expected -= 1;
        } else if self.duplicates >= settings.duplicates && missing.repairs < settings.repairs {
            missing.repairs += 1;
            self.expected = behind.saturating_sub(u64::from(self.duplicates));
            return (false, vec![una]);
        }
        (false, Vec::new())
    }

    /// All before `una` has arrived.
    fn advance(&mut self, now: Instant, una: u64) {
        (self.duplicates, self.expected, self.advanced) = (0, 0, now);
        let mut sample = None;
        while let Some(first) = self.kept.first_entry().filter(|first| first.get().end <= una) {
            let kept = first.remove();
            self.octets -= octets(&kept.segment);
            // Of what was sent twice nobody knows which is acknowledged (Karn & Partridge 1987).
            let once = kept.repairs + kept.timeouts == 0 && !kept.senders;
            sample = kept.sent.filter(|_| once).map(|sent| now.since(sent));
        }
        if let Some(sample) = sample {
            self.timer.sample(sample);
        }
    }

    /// When the data that the mobile host waits for is to be sent again. If it is not here, nothing is waited for in an outage.
    fn due(&self, settings: &Settings) -> Option<Instant> {
        match self.kept.get(&self.acked?.0) {
            Some(missing) => {
                let from = missing.sent.map_or(self.advanced, |sent| sent.max(self.advanced));
                Some(from + self.timer.timeout(settings.min_timeout_ms, settings.doublings))
            }
            None => Some(self.advanced).filter(|_| self.outage),
        }
    }

    /// What was [`due`](Self::due) has come.
    fn expires(&mut self, now: Instant, settings: &Settings) -> Vec<(Segment, Duration)> {
        let missing = self.acked.and_then(|(una, _)| Some((una, self.kept.get_mut(&una)?)));
        let Some((una, missing)) = missing else {
            self.outage = false;
            let waiting: Vec<_> = self.kept.iter().filter(|(_, kept)| kept.sent.is_none()).map(|(start, _)| *start).collect();
            return self.send(now, &waiting);
        };
        if missing.timeouts >= settings.timeouts {
            self.kept.clear();
            (self.octets, self.outage) = (0, false);
            return Vec::new();
        }
        missing.timeouts += 1;
        self.timer.back_off();
        // What was on the link has arrived or is lost.
        (self.outage, self.duplicates, self.expected) = (true, 0, 0);
        self.send(now, &[una])
    }
}

impl ProxyFlow {
    fn new(fixed: EndpointId) -> Self {
        Self { fixed, stamps: Stamps::default(), down: None }
    }

    /// When something is to be sent again.
    fn due(&self, settings: &Settings) -> Option<Instant> {
        self.down.as_ref().and_then(|down| down.due(settings))
    }

    /// Sends segments of the fixed host, each after it was here for some time.
    fn send(&mut self, segments: Vec<(Segment, Duration)>, hide: bool, out: &mut Outbox) {
        for (mut segment, residence) in segments {
            if hide {
                self.stamps.stamp(&mut segment, residence);
            }
            out.send(self.fixed, segment);
        }
    }
}

impl Keeps for ProxyFlow {
    fn weight(&self) -> (u64, u64) {
        self.down.as_ref().map_or((0, 0), |down| (down.kept.len() as u64, down.octets))
    }
}

impl Proxy {
    fn new(settings: Settings) -> Self {
        Self { settings, flows: Keeping::new(settings.flows) }
    }
}

impl Agent for Proxy {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, out: &mut Outbox) -> Handling {
        let id = transit.from.flow();
        if segment.flags.contains(Flags::RST) {
            self.flows.remove(id);
            return Handling::Forward;
        }
        let settings = self.settings;
        let kept_octets = self.flows.kept_octets();
        let fixed = if transit.side == Side::Fixed { transit.from } else { transit.from.peer() };
        self.flows.change(
            id,
            || ProxyFlow::new(fixed),
            |flow| {
                if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
                    *flow = ProxyFlow::new(fixed);
                }
                let mut handling = Handling::Forward;
                match transit.side {
                    Side::Fixed => {
                        if let Some(timestamps) = segment.options.timestamps {
                            flow.stamps.comes(transit.now, timestamps.value);
                        }
                        let start = (1 << 32) | u64::from(segment.seq.0);
                        if segment.flags.contains(Flags::SYN) {
                            // The mobile host waits for what follows.
                            flow.down = Some(Down::new(start + 1, Some((start + 1, 0))));
                        } else if segment.seq_len() > 0 {
                            let down = flow.down.get_or_insert_with(|| Down::new(start, None));
                            let room = down.kept.len() < settings.segments && kept_octets + octets(segment) <= settings.octets;
                            if !down.comes(transit.now, segment, room && (down.outage || !transit.crowded)) {
                                handling = Handling::Accept;
                            }
                        }
                        if handling == Handling::Forward && settings.hide {
                            flow.stamps.stamp(segment, Duration::ZERO);
                        }
                    }
                    Side::Mobile => {
                        if let Some(down) = flow.down.as_mut().filter(|_| segment.flags.contains(Flags::ACK)) {
                            let (goes_on, again) = down.hears(transit.now, segment, &settings);
                            flow.send(again, settings.hide, out);
                            if !goes_on {
                                handling = Handling::Suppress;
                            }
                        }
                    }
                }
                (handling, flow.due(&settings))
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

    fn next_timer(&self) -> Option<Instant> {
        self.flows.next_timer()
    }

    fn on_timer(&mut self, now: Instant, out: &mut Outbox) {
        let settings = self.settings;
        while let Some(id) = self.flows.take_due(now) {
            self.flows.change_known(id, |flow| {
                let again = flow.down.as_mut()?.expires(now, &settings);
                flow.send(again, settings.hide, out);
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

#[cfg(test)]
mod tests;
