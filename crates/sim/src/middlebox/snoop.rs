//! Snoop (Balakrishnan et al. 1995): the base station repairs what its wireless link loses before the sender hears of it.
//!
//! Data on its way to the mobile host is kept until the mobile host has acknowledged it. When a duplicate acknowledgement asks for data
//! that is kept, or the timer of the hop expires, it is sent again, before all else that waits for the link, and the duplicates end here.
//! What came to the base station out of order, or a second time, was lost or late before it: of that the sender hears.
//!
//! Of data on its way from the mobile host it remembers holes and names them on acknowledgements, as `eln` does.

use super::agent::{Agent, Handling, Outbox, Side, Transit};
use super::deadlines::Deadlines;
use super::explicit_loss::Stream;
use super::hop::{repeats, Books, HopTimer};
use super::table::Table;
use crate::address::{EndpointId, FlowId};
use crate::record::Held;
use std::collections::{BTreeMap, BTreeSet};
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::segment::{Flags, RareOptions};
use whyloss_transport::{settings, Instant, Segment};

/// Its row.
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
    /// It answers SNACKs.
    answers: bool,
    flows: Table<Flow>,
    timers: Deadlines,
    books: Books<FLOW_OCTETS>,
}

/// A flow.
#[derive(Debug)]
struct Flow {
    /// The fixed host's end.
    fixed: EndpointId,
    /// Data on its way to the mobile host; `None` before there is any.
    down: Option<Down>,
    /// Data on its way from the mobile host.
    up: Option<Stream>,
}

/// Data on its way to the mobile host.
#[derive(Debug)]
struct Down {
    /// The end of the data that has come farthest.
    highest: u64,
    /// The most data of a segment: what SNACKs count in.
    block: u32,
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
}

#[derive(Debug)]
struct Kept {
    segment: Segment,
    end: u64,
    sent: Instant,
    repairs: u32,
    timeouts: u32,
    /// It was lost or late before it came here: its sender is to know.
    senders: bool,
}

/// A timeout doubles so often at most.
const DOUBLINGS: u32 = 6;

const FLOW_OCTETS: u64 = size_of::<Flow>() as u64;

/// Memory for a segment that is kept.
fn octets(segment: &Segment) -> u64 {
    segment.len() as u64 + size_of::<Kept>() as u64
}

impl Down {
    fn new(start: u64, acked: Option<(u64, u16)>) -> Self {
        Self {
            highest: start,
            block: 0,
            acked,
            duplicates: 0,
            expected: 0,
            kept: BTreeMap::new(),
            octets: 0,
            timer: HopTimer::default(),
            advanced: Instant::ZERO,
        }
    }

    /// Data of the fixed host passes; `room` says whether it may be kept.
    fn passes(&mut self, now: Instant, segment: &Segment, room: bool) {
        let start = segment.seq.near(self.highest);
        let end = start + u64::from(segment.seq_len());
        let in_order = start >= self.highest;
        self.highest = self.highest.max(end);
        self.block = self.block.max(segment.payload.len() as u32);
        if self.acked.is_some_and(|(acked, _)| end <= acked) {
            return;
        }
        self.forget(start);
        if room {
            self.octets += octets(segment);
            let kept = Kept { segment: segment.clone(), end, sent: now, repairs: 0, timeouts: 0, senders: !in_order };
            self.kept.insert(start, kept);
        }
    }

    fn forget(&mut self, start: u64) {
        if let Some(kept) = self.kept.remove(&start) {
            self.octets -= octets(&kept.segment);
        }
    }

    /// What the SNACKs of an acknowledgement ask for, if all of it is kept.
    fn asked(&mut self, now: Instant, ack: &Segment, settings: &Settings) -> Option<Vec<Segment>> {
        let snacks = &ack.options.rare.as_ref()?.snacks;
        let una = ack.ack.near(self.highest);
        let mut asked = BTreeSet::new();
        for (from, to) in snacks.iter().flat_map(|snack| snack.holes(una, self.block)) {
            let mut at = from;
            while at < to.min(self.highest) {
                let (&start, kept) = self.kept.range(..=at).next_back()?;
                if kept.end <= at || kept.senders || kept.repairs + kept.timeouts > settings.timeouts {
                    return None;
                }
                asked.insert(start);
                at = kept.end;
            }
        }
        let trip = self.timer.smoothed();
        let mut again = Vec::new();
        for start in asked {
            let Some(kept) = self.kept.get_mut(&start) else { continue };
            // What was sent again a moment ago cannot have arrived.
            if kept.repairs + kept.timeouts == 0 || now.since(kept.sent) >= trip {
                kept.repairs += 1;
                kept.sent = now;
                again.push(kept.segment.clone());
            }
        }
        Some(again)
    }

    /// The mobile host acknowledges, and may ask with SNACKs if they are to be answered. Returns whether the acknowledgement goes on, and
    /// what is to be sent again.
    fn hears(&mut self, now: Instant, ack: &mut Segment, settings: &Settings, answers: bool) -> (bool, Vec<Segment>) {
        let repeats = repeats(ack, self.acked, self.highest);
        if !answers || ack.options.rare.as_ref().is_none_or(|rare| rare.snacks.is_empty()) {
            let (goes_on, again) = self.acknowledged(now, ack, settings);
            return (goes_on, again.into_iter().collect());
        }
        if !repeats {
            self.acknowledged(now, ack, settings);
        }
        let Some(again) = self.asked(now, ack, settings) else { return (true, Vec::new()) };
        take_snacks(ack);
        (!repeats, again)
    }

    /// The mobile host acknowledges. Returns whether the acknowledgement goes on, and what is to be sent again.
    fn acknowledged(&mut self, now: Instant, ack: &Segment, settings: &Settings) -> (bool, Option<Segment>) {
        let una = ack.ack.near(self.highest);
        if una > self.highest {
            return (true, None);
        }
        let duplicate = repeats(ack, self.acked, self.highest);
        let before = self.acked.replace((una, ack.window));
        let Some((acked, window)) = before.filter(|(acked, _)| una <= *acked) else {
            self.advance(now, una);
            return (true, None);
        };
        if una < acked {
            self.acked = Some((acked, window));
            return (true, None);
        }
        let behind = self.kept.range(una + 1..).count() as u64;
        let Some(missing) = self.kept.get_mut(&una).filter(|kept| duplicate && !kept.senders) else { return (true, None) };
        self.duplicates += 1;
        if self.expected > 0 {
            self.expected -= 1;
        } else if self.duplicates >= settings.duplicates && missing.repairs < settings.repairs {
            missing.repairs += 1;
            missing.sent = now;
            self.expected = behind.saturating_sub(u64::from(self.duplicates));
            return (false, Some(missing.segment.clone()));
        }
        (false, None)
    }

    /// All before `una` has arrived.
    fn advance(&mut self, now: Instant, una: u64) {
        (self.duplicates, self.expected, self.advanced) = (0, 0, now);
        let mut sample = None;
        while let Some(first) = self.kept.first_entry().filter(|first| first.get().end <= una) {
            let kept = first.remove();
            self.octets -= octets(&kept.segment);
            // Of what was sent twice nobody knows which is acknowledged (Karn & Partridge 1987).
            sample = (kept.repairs + kept.timeouts == 0 && !kept.senders).then(|| now.since(kept.sent));
        }
        if let Some(sample) = sample {
            self.timer.sample(sample);
        }
    }

    /// When the data that the mobile host waits for is to be sent again.
    fn due(&self, settings: &Settings) -> Option<Instant> {
        let missing = self.kept.get(&self.acked?.0)?;
        let timeout = self.timer.timeout(settings.min_timeout_ms, DOUBLINGS);
        (missing.timeouts < settings.timeouts && !missing.senders).then(|| missing.sent.max(self.advanced) + timeout)
    }

    /// The timer of the data that the mobile host waits for has expired.
    fn expires(&mut self, now: Instant) -> Option<Segment> {
        let missing = self.kept.get_mut(&self.acked?.0)?;
        missing.timeouts += 1;
        self.timer.back_off();
        missing.sent = now;
        // What was on the link has arrived or is lost.
        self.expected = 0;
        Some(missing.segment.clone())
    }
}

impl Flow {
    /// Segments and pieces that are remembered, and their octets.
    fn weight(&self) -> (u64, u64) {
        let (kept, octets) = self.down.as_ref().map_or((0, 0), |down| (down.kept.len() as u64, down.octets));
        let (pieces, more) = self.up.as_ref().map_or((0, 0), Stream::weight);
        (kept + pieces, octets + more)
    }
}

impl Snoop {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            answers: false,
            flows: Table::new(settings.flows),
            timers: Deadlines::default(),
            books: Books::default(),
        }
    }

    /// One that answers SNACKs.
    pub fn answering_snacks(settings: Settings) -> Self {
        Self { answers: true, ..Self::new(settings) }
    }

    fn remove(&mut self, id: FlowId) {
        let before = self.flows.remove(id).map_or((0, 0), |flow| flow.weight());
        self.timers.set(id, None);
        self.books.note(self.flows.len(), before, (0, 0));
    }
}

/// Takes the SNACKs out of an acknowledgement.
fn take_snacks(ack: &mut Segment) {
    if let Some(mut rare) = ack.options.rare.take() {
        rare.snacks.clear();
        ack.options.rare = (*rare != RareOptions::default()).then_some(rare);
    }
}

impl Agent for Snoop {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, out: &mut Outbox) -> Handling {
        let id = transit.from.flow();
        if segment.flags.contains(Flags::RST) {
            self.remove(id);
            return Handling::Forward;
        }
        let settings = self.settings;
        let kept_octets = self.books.kept_octets();
        let fixed = if transit.side == Side::Fixed { transit.from } else { transit.from.peer() };
        let (flow, gone) = self.flows.get_or_insert(id, || Flow { fixed, down: None, up: None });
        let mut before = flow.weight();
        if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
            *flow = Flow { fixed, down: None, up: None };
        }
        let mut forward = true;
        match transit.side {
            Side::Fixed => {
                if let Some(up) = flow.up.as_mut().filter(|_| segment.flags.contains(Flags::ACK)) {
                    up.name_missing(segment);
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
                    let up = flow.up.take().filter(|_| !opens).unwrap_or_else(|| Stream::of_holes(segment.seq));
                    flow.up.insert(up).note_arrival(segment, settings.segments);
                }
                if let Some(down) = flow.down.as_mut().filter(|_| segment.flags.contains(Flags::ACK)) {
                    let (goes_on, again) = down.hears(transit.now, segment, &settings, self.answers);
                    forward = goes_on;
                    for segment in again {
                        out.send_urgent(flow.fixed, segment);
                    }
                }
            }
        }
        let (due, after) = (flow.down.as_ref().and_then(|down| down.due(&settings)), flow.weight());
        if let Some((gone_id, gone)) = gone {
            self.timers.set(gone_id, None);
            let weight = gone.weight();
            before = (before.0 + weight.0, before.1 + weight.1);
        }
        self.timers.set(id, due);
        self.books.note(self.flows.len(), before, after);
        if forward {
            Handling::Forward
        } else {
            Handling::Suppress
        }
    }

    /// The queue has no room: of that the sender is to hear.
    fn dropped(&mut self, from: EndpointId, segment: &Segment) {
        let Some(flow) = self.flows.get(from.flow()).filter(|flow| flow.fixed == from) else { return };
        let before = flow.weight();
        if let Some(down) = &mut flow.down {
            down.forget(segment.seq.near(down.highest));
        }
        let (due, after) = (flow.down.as_ref().and_then(|down| down.due(&self.settings)), flow.weight());
        self.timers.set(from.flow(), due);
        self.books.note(self.flows.len(), before, after);
    }

    fn forget(&mut self, flow: FlowId) {
        self.remove(flow);
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn on_timer(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(id) = self.timers.take(now) {
            let Some(flow) = self.flows.get(id) else { continue };
            let Some(down) = &mut flow.down else { continue };
            if let Some(again) = down.expires(now) {
                out.send_urgent(flow.fixed, again);
            }
            let due = down.due(&self.settings);
            self.timers.set(id, due);
        }
    }

    fn restart(&mut self) {
        self.flows.clear();
        self.timers.clear();
        self.books.clear();
    }

    fn held(&self) -> Held {
        self.books.held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::segment::SackBlocks;
    use whyloss_transport::{Payload, Seq};

    const FIXED: EndpointId = EndpointId::new(0);

    /// An agent and the time.
    struct Station {
        agent: Snoop,
        now: u64,
    }

    /// What became of a segment: whether it went on, and which data was sent again.
    type Outcome = (bool, Vec<u32>);

    fn data(n: u32) -> Segment {
        let payload = Payload::Synthetic { offset: u64::from(n) * 100, len: 100 };
        Segment { seq: Seq(n * 100), flags: Flags::ACK, window: 500, payload, ..Segment::default() }
    }

    fn ack(n: u32) -> Segment {
        Segment { ack: Seq(n * 100), flags: Flags::ACK, window: 900, ..Segment::default() }
    }

    impl Station {
        fn new(settings: Settings) -> Self {
            Self { agent: Snoop::new(settings), now: 0 }
        }

        /// One that has forwarded segments 0 to 9, a millisecond apart, of which the first has come 5 ms after the last was sent.
        fn begun(settings: Settings) -> Self {
            let mut station = Self::new(settings);
            for n in 0..10 {
                assert_eq!(station.down(data(n)), (true, vec![]));
                station.now += 1;
            }
            station.now += 4;
            assert_eq!(station.up(ack(1)), (true, vec![]));
            station
        }

        fn cross(&mut self, side: Side, crowded: bool, mut segment: Segment) -> (Outcome, Segment) {
            let from = if side == Side::Fixed { FIXED } else { FIXED.peer() };
            let transit = Transit { now: self.at(), from, side, crowded, corruption: 0.0 };
            let mut out = Outbox::default();
            let handling = self.agent.pass(&transit, &mut segment, &mut out);
            assert_ne!(handling, Handling::Accept);
            ((handling == Handling::Forward, resent(&mut out)), segment)
        }

        fn at(&self) -> Instant {
            Instant::from_nanos(self.now * 1_000_000)
        }

        fn down(&mut self, segment: Segment) -> Outcome {
            self.cross(Side::Fixed, false, segment).0
        }

        fn up(&mut self, segment: Segment) -> Outcome {
            self.cross(Side::Mobile, false, segment).0
        }

        /// When the timer is due, in milliseconds.
        fn due(&self) -> Option<f64> {
            self.agent.next_timer().map(|at| at.as_nanos() as f64 / 1e6)
        }

        /// Waits for the timer; what is sent again.
        fn expire(&mut self) -> Vec<u32> {
            self.now = self.due().expect("a timer runs").ceil() as u64;
            let mut out = Outbox::default();
            self.agent.on_timer(self.at(), &mut out);
            resent(&mut out)
        }
    }

    fn resent(out: &mut Outbox) -> Vec<u32> {
        out.take()
            .into_iter()
            .map(|outgoing| {
                assert!(outgoing.urgent && outgoing.from == FIXED && !outgoing.if_taken);
                assert_eq!(outgoing.segment, data(outgoing.segment.seq.0 / 100));
                outgoing.segment.seq.0 / 100
            })
            .collect()
    }

    #[test]
    fn a_loss_on_the_link_is_repaired_by_the_first_duplicate_and_the_sender_hears_none() {
        let mut station = Station::begun(Settings::default());
        assert_eq!(station.up(ack(2)), (true, vec![]));
        // Segment 2 is lost, 3 to 9 arrive.
        assert_eq!(station.up(ack(2)), (false, vec![2]));
        for _ in 0..6 {
            assert_eq!(station.up(ack(2)), (false, vec![]));
        }
        assert_eq!(station.up(ack(10)), (true, vec![]));
        assert_eq!(station.agent.held().segments, 0);
        assert_eq!(station.due(), None);
    }

    #[test]
    fn a_repair_that_is_lost_is_repaired_when_more_duplicates_come_than_there_were_packets() {
        let mut station = Station::begun(Settings::default());
        station.up(ack(2));
        let outcomes: Vec<_> = (0..16).map(|_| station.up(ack(2))).collect();
        assert!(outcomes.iter().all(|(goes_on, _)| !goes_on));
        // 3 to 9 make seven duplicates; the eighth says that the first repair has not come, and the second is the last.
        let when: Vec<_> = (0..16).filter(|&nth| !outcomes[nth].1.is_empty()).collect();
        assert_eq!(when, [0, 7]);
    }

    #[test]
    fn flows_count_their_duplicates_each_for_itself() {
        let mut station = Station::begun(Settings { duplicates: 2, ..Settings::default() });
        let other = |n: u32, side: Side| {
            let end = EndpointId::new(2);
            let from = if side == Side::Fixed { end } else { end.peer() };
            (Transit { now: Instant::ZERO, from, side, crowded: false, corruption: 0.0 }, n)
        };
        let mut out = Outbox::default();
        for n in 0..5 {
            let (transit, n) = other(n, Side::Fixed);
            station.agent.pass(&transit, &mut data(n), &mut out);
        }
        let acks = |station: &mut Station| {
            let (transit, n) = other(1, Side::Mobile);
            let mut out = Outbox::default();
            station.agent.pass(&transit, &mut ack(n), &mut out);
            out.take().len()
        };
        assert_eq!(acks(&mut station), 0, "new");
        assert_eq!((station.up(ack(1)), acks(&mut station)), ((false, vec![]), 0), "the first of either");
        assert_eq!((station.up(ack(1)), acks(&mut station)), ((false, vec![1]), 1), "the second of either");
    }

    #[test]
    fn of_what_was_lost_before_the_station_the_sender_hears() {
        let mut station = Station::new(Settings::default());
        for n in [0, 1, 3, 4, 5, 6] {
            station.down(data(n));
        }
        station.up(ack(1));
        assert_eq!(station.up(ack(2)), (true, vec![]));
        for _ in 0..3 {
            assert_eq!(station.up(ack(2)), (true, vec![]), "it is not here");
        }
        // The sender's retransmission, and what it brings back.
        assert_eq!(station.down(data(2)), (true, vec![]));
        assert_eq!(station.up(ack(2)), (true, vec![]), "a duplicate that was under way");
        assert_eq!(station.due(), None, "the sender has a timer for it");
        assert_eq!(station.up(ack(7)), (true, vec![]));
    }

    #[test]
    fn what_the_sender_repeats_it_repeats_for_a_reason() {
        let mut station = Station::begun(Settings::default());
        station.up(ack(2));
        assert_eq!(station.up(ack(2)), (false, vec![2]));
        assert_eq!(station.down(data(2)), (true, vec![]));
        assert_eq!(station.up(ack(2)), (true, vec![]));
        // Nor is old data kept again.
        let before = station.agent.held();
        assert_eq!(station.down(data(0)), (true, vec![]));
        assert_eq!(station.agent.held(), before);
    }

    #[test]
    fn the_timer_follows_the_round_trip_of_the_hop() {
        // Segment 0 has taken 14 ms: SRTT 14, RTTVAR 7, timeout 42.
        let mut station = Station::begun(Settings { min_timeout_ms: 1.0, ..Settings::default() });
        assert_eq!(station.due(), Some(14.0 + 42.0));
        // Segment 1 takes 15 ms: SRTT (7 * 14 + 15) / 8, RTTVAR (3 * 7 + 1) / 4.
        station.now = 16;
        station.up(ack(2));
        assert_eq!(station.due(), Some(16.0 + 14.125 + 4.0 * 5.5));
        assert_eq!(Station::begun(Settings::default()).due(), Some(114.0));
    }

    #[test]
    fn what_nothing_follows_is_repaired_by_the_timer_a_bounded_number_of_times() {
        let mut station = Station::begun(Settings { timeouts: 3, ..Settings::default() });
        station.up(ack(9));
        let mut times = Vec::new();
        while station.due().is_some() {
            assert_eq!(station.expire(), [9]);
            times.push(station.now);
        }
        assert_eq!(times, [114, 314, 714]);
        // What was sent twice gives no sample.
        station.up(ack(10));
        for n in 10..12 {
            station.down(data(n));
        }
        station.up(ack(11));
        assert_eq!(station.due(), Some(station.now as f64 + 100.0));
    }

    #[test]
    fn a_crowded_queue_leaves_the_loss_to_congestion_control() {
        let mut station = Station::begun(Settings::default());
        station.cross(Side::Fixed, true, data(10));
        station.down(data(11));
        station.agent.dropped(FIXED, &data(9));
        assert_eq!(station.agent.held().segments, 9, "1 to 8, and 11");
        for n in [9, 10] {
            station.up(ack(n));
            assert_eq!(station.up(ack(n)), (true, vec![]));
        }
    }

    #[test]
    fn what_says_more_than_a_duplicate_goes_on() {
        let telling: [fn(&mut Segment); 5] = [
            |segment| segment.payload = Payload::Synthetic { offset: 0, len: 1 },
            |segment| segment.window = 901,
            |segment| segment.flags |= Flags::FIN,
            |segment| segment.flags |= Flags::ECE,
            |segment| segment.flags |= Flags::RST,
        ];
        for change in telling {
            let mut station = Station::begun(Settings::default());
            let mut segment = ack(1);
            change(&mut segment);
            assert_eq!(station.up(segment), (true, vec![]));
        }
        // With SACK too the sender need not hear of what is repaired here.
        let mut station = Station::begun(Settings::default());
        let mut segment = ack(1);
        let mut sack = SackBlocks::default();
        assert!(sack.push(Seq(200), Seq(300)));
        segment.options.sack = sack;
        assert_eq!(station.up(segment), (false, vec![1]));
        // Nothing is outstanding: somebody asks whether the other is there.
        station.up(ack(10));
        assert_eq!(station.up(ack(10)), (true, vec![]));
    }

    #[test]
    fn holes_in_what_the_mobile_host_sends_are_named() {
        let mut station = Station::new(Settings::default());
        for n in [0, 1, 3] {
            assert_eq!(station.up(data(n)), (true, vec![]));
        }
        let named = |station: &mut Station| {
            let (outcome, ack) = station.cross(Side::Fixed, false, ack(2));
            assert_eq!(outcome, (true, vec![]));
            ack.options.rare.and_then(|rare| rare.notices.explicit_loss).map(|loss| (loss.seq, loss.len))
        };
        assert_eq!(named(&mut station), Some((Seq(200), 100)));
        station.up(data(2));
        assert_eq!(named(&mut station), None);
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut station = Station::new(Settings::default());
        let at = |n: u32| Seq((u32::MAX - 149).wrapping_add(n * 100));
        for n in 0..6 {
            station.down(Segment { seq: at(n), ..data(0) });
        }
        let ack = |n| Segment { ack: at(n), ..ack(0) };
        assert_eq!(station.up(ack(1)), (true, vec![]));
        let mut out = Outbox::default();
        let transit = Transit { now: Instant::ZERO, from: FIXED.peer(), side: Side::Mobile, crowded: false, corruption: 0.0 };
        assert_eq!(station.agent.pass(&transit, &mut ack(1), &mut out), Handling::Suppress);
        assert_eq!(out.take().first().map(|outgoing| outgoing.segment.seq), Some(at(1)));
        assert_eq!(station.up(ack(6)), (true, vec![]));
        assert_eq!(station.agent.held().segments, 0);
    }

    #[test]
    fn an_acknowledgement_of_what_was_not_sent_frees_nothing() {
        let mut station = Station::begun(Settings::default());
        let before = station.agent.held();
        assert_eq!(station.up(ack(11)), (true, vec![]));
        assert_eq!(station.agent.held(), before);
    }

    #[test]
    fn a_restart_a_reset_and_a_new_connection_forget() {
        let mut station = Station::begun(Settings::default());
        station.agent.restart();
        assert_eq!((station.agent.held(), station.due()), (Held::default(), None));
        assert_eq!(station.up(ack(1)), (true, vec![]));
        assert_eq!(station.down(data(10)), (true, vec![]));
        let mut station = Station::begun(Settings::default());
        station.down(Segment { flags: Flags::RST, ..data(0) });
        assert_eq!((station.agent.held().flows, station.agent.held().octets, station.due()), (0, 0, None));
        let mut station = Station::begun(Settings::default());
        station.down(Segment { flags: Flags::SYN, payload: Payload::Empty, seq: Seq(77), ..data(0) });
        assert_eq!((station.agent.held().segments, station.due()), (0, None));
    }

    #[test]
    fn what_is_kept_is_bounded_by_flow_and_in_all() {
        let one = octets(&data(0));
        let settings = Settings { flows: 4, segments: 10, octets: 25 * one, ..Settings::default() };
        let mut agent = Snoop::new(settings);
        for flow in 0..7 {
            for n in 0..30 {
                let from = EndpointId::new(2 * flow);
                let transit = Transit { now: Instant::ZERO, from, side: Side::Fixed, crowded: false, corruption: 0.0 };
                assert_eq!(agent.pass(&transit, &mut data(n), &mut Outbox::default()), Handling::Forward);
                let held = agent.held();
                assert!(held.flows <= 4 && held.segments <= 25 && held.flow_octets <= FLOW_OCTETS + 10 * one, "{held:?}");
                assert_eq!(held.octets, held.flows * FLOW_OCTETS + held.segments * one);
            }
        }
        assert_eq!((agent.held().flows, agent.held().segments), (4, 25));
    }
}
