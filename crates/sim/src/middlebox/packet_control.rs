//! TCP packet control (Zeng & Trajkovic 2005): the base station keeps back what it holds for signs of wireless delay rather than of loss.
//!
//! An ACK filter on the way from the mobile host thins out duplicate acknowledgements, so that a sender that counts to three waits for
//! more of them; a data filter on the way to it stops retransmissions of data that the mobile host has acknowledged. Nothing is stored
//! and nothing repaired.
//!
//! Our reading: on real traffic, the filters let everything pass that says more than its acknowledgement number: data, changes of the
//! window, of SACK blocks and of the ECN echo, SYN, FIN, RST, and options that few segments carry.

use super::agent::{Agent, Handling, Outbox, Side, Transit};
use super::table::Table;
use crate::address::FlowId;
use crate::record::Held;
use std::collections::BTreeSet;
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::segment::{Flags, SackBlocks};
use whyloss_transport::{choices, settings, Payload, Segment};

pub(super) const PART: Part<dyn Agent> = Part {
    name: "packet-control",
    summary: "Thins out duplicate acknowledgements that come over the link, and stops data that was already acknowledged from leaving over it.",
    reference: "Zeng & Trajkovic 2005",
    notes: Notes {
        idea: "A wireless link that delays and reorders makes duplicate acknowledgements and timeouts where nothing was lost. A sender that does not see them does not reduce.",
        formula: "of duplicates, number n is forwarded if floor(3n/D) > floor(3(n-1)/D)",
        threshold: "D: larger values keep more duplicates back; 3 forwards all",
        fails: "Where packets are really lost: it repairs nothing, so that fast retransmissions come later or become timeouts. With SACK every duplicate says something new and passes.",
        errata: "The data filter's rule, as Paul (2006) prints it, stands under the ACK filter's text and the other way round; the captions are right. D is not given for the experiments; 6 here.",
    },
    ..Part::of::<Settings>()
};

choices! {
    /// Which of the filters work.
    pub(super) enum Filters {
        /// Both.
        Both = "both",
        /// That of acknowledgements.
        Acks = "acks",
        /// That of data.
        Data = "data",
    }
}

settings! {
    /// What it keeps back, and how much it remembers.
    pub(super) struct Settings {
        /// Duplicate acknowledgements that it takes before a sender with a threshold of three has seen three: D.
        threshold: u32 = 6, 3..=1000;
        /// Which filters work: both, that of acknowledgements, or that of data.
        filters: Filters;
        /// Flows that are remembered; the one that was quiet for longest makes room.
        flows: usize = 1024, 1..=1_000_000;
        /// Stopped data segments of a flow that are remembered; the oldest is forgotten first.
        segments: usize = 256, 1..=1_000_000;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(PacketControl::new(self))
    }
}

/// Filters acknowledgements and data.
#[derive(Debug)]
pub(super) struct PacketControl {
    settings: Settings,
    flows: Table<FilteredFlow>,
    held: Held,
}

/// A flow, with data on its way to the mobile host.
#[derive(Debug, Default)]
struct FilteredFlow {
    /// The end of the data that has come from the fixed host.
    sent: Option<u64>,
    /// What the fixed host acknowledges and its window.
    fixed: Option<(u32, u16)>,
    /// The mobile host's latest acknowledgement.
    last: Option<Last>,
    /// First octets of data that was stopped an odd number of times.
    stopped: BTreeSet<u64>,
}

/// An acknowledgement of the mobile host.
#[derive(Debug)]
struct Last {
    ack: u64,
    /// Duplicates since.
    duplicates: u64,
    /// The segment that came last, without its data.
    latest: Box<Segment>,
}

const FLOW_OCTETS: u64 = (size_of::<FilteredFlow>() + size_of::<Segment>()) as u64;
const STOPPED_OCTETS: u64 = size_of::<u64>() as u64;

impl PacketControl {
    fn new(settings: Settings) -> Self {
        Self { settings, flows: Table::new(settings.flows), held: Held::default() }
    }

    /// A flow has forgotten `before` stopped segments and remembers `after`.
    fn note(&mut self, before: usize, after: usize) {
        let segments = self.held.segments + after as u64 - before as u64;
        let flows = self.flows.len() as u64;
        let octets = flows * FLOW_OCTETS + segments * STOPPED_OCTETS;
        self.held = Held { flows, segments, octets, flow_octets: FLOW_OCTETS + after as u64 * STOPPED_OCTETS };
    }
}

impl FilteredFlow {
    /// A segment of the mobile host. Returns whether it goes on.
    fn acknowledges(&mut self, segment: &Segment, threshold: u32, filtered: bool) -> bool {
        let Some(sent) = self.sent else { return true };
        let ack = segment.ack.near(sent);
        // Nobody acknowledges what was not sent: an error, or an attack, of which nothing shall follow here.
        if !segment.flags.contains(Flags::ACK) || ack > sent {
            return true;
        }
        let Some(last) = &mut self.last else {
            self.last = Some(Last { ack, duplicates: 0, latest: Box::new(template(segment)) });
            return true;
        };
        let plain = says_no_more(segment, &last.latest);
        if ack >= last.ack {
            *last.latest = template(segment);
        }
        if ack > last.ack {
            (last.ack, last.duplicates) = (ack, 0);
            self.stopped = self.stopped.split_off(&ack);
            return true;
        }
        if !plain || !filtered {
            return true;
        }
        if ack < last.ack {
            return false;
        }
        last.duplicates += 1;
        let passed = |duplicates: u64| duplicates * 3 / u64::from(threshold);
        passed(last.duplicates) > passed(last.duplicates - 1)
    }

    /// A segment of the fixed host, with data if it can be stopped. Returns whether it goes on, and what its sender is told if not.
    fn sends(&mut self, segment: &Segment, most: usize) -> (bool, Option<Segment>) {
        let start = segment.seq.near(self.sent.unwrap_or((1 << 32) | u64::from(segment.seq.0)));
        let end = start + u64::from(segment.seq_len());
        self.sent = Some(self.sent.unwrap_or(end).max(end));
        let news = self.fixed.replace((segment.ack.0, segment.window)) != Some((segment.ack.0, segment.window));
        let control = segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST | Flags::URG | Flags::CWR);
        let Some(last) = self.last.as_ref().filter(|last| end <= last.ack && !segment.is_empty() && !news && !control) else {
            return (true, None);
        };
        if !self.stopped.remove(&start) {
            self.stopped.insert(start);
            if self.stopped.len() > most {
                self.stopped.pop_first();
            }
            return (false, None);
        }
        let mut answer = (*last.latest).clone();
        answer.options.sack = SackBlocks::default();
        if let (Some(own), Some(theirs)) = (&mut answer.options.timestamps, segment.options.timestamps) {
            own.echo = theirs.value;
        }
        (false, Some(answer))
    }
}

/// Whether a segment says nothing but its acknowledgement number, seen from the one before it. Timestamps change all the time.
fn says_no_more(segment: &Segment, before: &Segment) -> bool {
    let telling = Flags::SYN | Flags::FIN | Flags::RST | Flags::URG | Flags::CWR;
    segment.is_empty()
        && !segment.flags.intersects(telling)
        && segment.flags.contains(Flags::ECE) == before.flags.contains(Flags::ECE)
        && segment.window == before.window
        // It answers the probe of a sender that must hear that the window is still closed.
        && segment.window != 0
        && segment.options.sack == before.options.sack
        && segment.options.rare.is_none()
}

/// The acknowledgement in a segment, for the next position of its sender.
fn template(segment: &Segment) -> Segment {
    let mut plain = Segment { payload: Payload::Empty, flags: Flags::ACK, ..segment.clone() };
    plain.flags |= Flags(segment.flags.0 & Flags::ECE.0);
    plain.seq = segment.seq + segment.seq_len();
    plain.options.rare = None;
    plain
}

impl Agent for PacketControl {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, out: &mut Outbox) -> Handling {
        let id = transit.from.flow();
        if segment.flags.contains(Flags::RST) {
            self.forget(id);
            return Handling::Forward;
        }
        let Settings { threshold, filters, segments, .. } = self.settings;
        let (flow, gone) = self.flows.get_or_insert(id, FilteredFlow::default);
        let before = flow.stopped.len() + gone.map_or(0, |(_, gone)| gone.stopped.len());
        if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
            *flow = FilteredFlow::default();
        }
        let forward = match transit.side {
            Side::Mobile => flow.acknowledges(segment, threshold, filters != Filters::Data),
            Side::Fixed => {
                let (forward, answer) = flow.sends(segment, segments);
                if let Some(answer) = answer.filter(|_| filters != Filters::Acks) {
                    out.send(transit.from.peer(), answer);
                }
                forward || filters == Filters::Acks
            }
        };
        let after = flow.stopped.len();
        self.note(before, after);
        if forward {
            Handling::Forward
        } else {
            Handling::Suppress
        }
    }

    fn forget(&mut self, flow: FlowId) {
        let before = self.flows.remove(flow).map_or(0, |flow| flow.stopped.len());
        self.note(before, 0);
    }

    fn restart(&mut self) {
        self.flows.clear();
        self.held = Held::default();
    }

    fn held(&self) -> Held {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::EndpointId;
    use crate::middlebox::testing::{ack, data, DOWN, UP};
    use whyloss_transport::segment::{Notices, RareOptions, Timestamps};
    use whyloss_transport::Seq;

    /// An agent that has seen ten segments and the acknowledgement of the first two.
    fn begun(settings: Settings) -> PacketControl {
        let mut agent = PacketControl::new(settings);
        for n in 0..10 {
            assert!(passes(&mut agent, &DOWN, data(n)).0);
        }
        assert!(passes(&mut agent, &UP, ack(2)).0);
        agent
    }

    /// Whether a segment goes on, and what is sent on its account.
    fn passes(agent: &mut PacketControl, transit: &Transit, mut segment: Segment) -> (bool, Vec<Segment>) {
        let mut out = Outbox::default();
        let handling = agent.pass(transit, &mut segment, &mut out);
        assert_ne!(handling, Handling::Accept);
        let sent = out.take().into_iter().map(|outgoing| {
            assert_eq!(outgoing.from, transit.from.peer());
            outgoing.segment
        });
        (handling == Handling::Forward, sent.collect())
    }

    /// Which of twelve duplicates go on.
    fn duplicates(threshold: u32) -> Vec<u32> {
        let mut agent = begun(Settings { threshold, ..Settings::default() });
        (1..=12).filter(|_| passes(&mut agent, &UP, ack(2)).0).collect()
    }

    #[test]
    fn of_duplicates_the_threshold_says_which_go_on() {
        assert_eq!(duplicates(6), [2, 4, 6, 8, 10, 12]);
        assert_eq!(duplicates(3), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(duplicates(4), [2, 3, 4, 6, 7, 8, 10, 11, 12]);
        assert_eq!(duplicates(12), [4, 8, 12]);
    }

    #[test]
    fn duplicates_are_counted_anew_after_every_acknowledgement_and_old_ones_end() {
        let mut agent = begun(Settings::default());
        let fate: Vec<bool> = [2, 2, 3, 3, 2, 3, 3].map(|n| passes(&mut agent, &UP, ack(n)).0).into();
        assert_eq!(fate, [false, true, true, false, false, true, false]);
    }

    #[test]
    fn what_says_more_than_its_number_goes_on() {
        let more: [fn(&mut Segment); 8] = [
            |segment| segment.payload = Payload::Synthetic { offset: 0, len: 1 },
            |segment| segment.window = 901,
            |segment| assert!(segment.options.sack.push(Seq(400), Seq(500))),
            |segment| segment.flags |= Flags::ECE,
            |segment| segment.flags |= Flags::CWR,
            |segment| segment.flags |= Flags::FIN,
            |segment| segment.flags |= Flags::RST,
            |segment| {
                let notices = Notices { survival: Some(1), ..Notices::default() };
                segment.options.rare = Some(Box::new(RareOptions { notices, ..RareOptions::default() }));
            },
        ];
        for (nth, change) in more.into_iter().enumerate() {
            for n in [1, 2] {
                let mut agent = begun(Settings::default());
                let mut segment = ack(n);
                change(&mut segment);
                assert!(passes(&mut agent, &UP, segment).0, "number {nth}, acknowledgement {n}");
            }
        }
    }

    #[test]
    fn a_closed_window_is_told_every_time() {
        let mut agent = begun(Settings::default());
        for _ in 0..3 {
            assert!(passes(&mut agent, &UP, Segment { window: 0, ..ack(2) }).0);
        }
    }

    #[test]
    fn data_that_was_acknowledged_is_stopped_and_every_second_time_answered() {
        let mut agent = begun(Settings::default());
        let stamped = |value, echo, segment: Segment| {
            let mut segment = segment;
            segment.options.timestamps = Some(Timestamps { value, echo });
            segment
        };
        assert!(passes(&mut agent, &UP, stamped(77, 5, ack(3))).0);
        assert_eq!(passes(&mut agent, &DOWN, stamped(9, 70, data(2))), (false, vec![]));
        assert_eq!(passes(&mut agent, &DOWN, stamped(9, 70, data(1))), (false, vec![]));
        assert_eq!(passes(&mut agent, &DOWN, stamped(10, 70, data(2))), (false, vec![stamped(77, 10, ack(3))]));
        assert_eq!(passes(&mut agent, &DOWN, stamped(11, 70, data(2))), (false, vec![]));
        // What is not acknowledged as a whole goes on, first transmission or not.
        assert_eq!(passes(&mut agent, &DOWN, data(3)), (true, vec![]));
        let long = Segment { payload: Payload::Synthetic { offset: 200, len: 101 }, ..data(2) };
        assert_eq!(passes(&mut agent, &DOWN, long), (true, vec![]));
    }

    #[test]
    fn data_with_news_for_the_mobile_host_goes_on() {
        let mut agent = begun(Settings::default());
        assert!(passes(&mut agent, &DOWN, Segment { window: 501, ..data(0) }).0);
        assert!(passes(&mut agent, &DOWN, Segment { window: 501, ack: Seq(7), ..data(0) }).0);
        assert!(!passes(&mut agent, &DOWN, Segment { window: 501, ack: Seq(7), ..data(0) }).0);
        assert!(passes(&mut agent, &DOWN, Segment { window: 501, ack: Seq(7), flags: Flags::ACK | Flags::FIN, ..data(0) }).0);
    }

    #[test]
    fn each_filter_works_alone() {
        let mut acks = begun(Settings { filters: Filters::Acks, ..Settings::default() });
        assert!(!passes(&mut acks, &UP, ack(2)).0);
        assert_eq!([0, 0].map(|n| passes(&mut acks, &DOWN, data(n))), [(true, vec![]), (true, vec![])]);
        let mut data_only = begun(Settings { filters: Filters::Data, ..Settings::default() });
        assert!(passes(&mut data_only, &UP, ack(2)).0);
        assert!(!passes(&mut data_only, &DOWN, data(0)).0);
    }

    #[test]
    fn an_acknowledgement_of_what_was_not_sent_changes_nothing() {
        let mut agent = begun(Settings::default());
        assert!(passes(&mut agent, &UP, ack(11)).0);
        assert!(passes(&mut agent, &DOWN, data(5)).0, "it is not taken for acknowledged");
        assert!(!passes(&mut agent, &UP, ack(2)).0);
    }

    #[test]
    fn sequence_numbers_wrap() {
        let mut agent = PacketControl::new(Settings::default());
        let at = |n: u32| Seq(u32::MAX - 149).0.wrapping_add(n * 100);
        for n in 0..4 {
            assert!(passes(&mut agent, &DOWN, Segment { seq: Seq(at(n)), ..data(0) }).0);
        }
        let ack = |n| Segment { ack: Seq(at(n)), ..ack(0) };
        assert_eq!([1, 2, 1, 3].map(|n| passes(&mut agent, &UP, ack(n)).0), [true, true, false, true]);
        assert!(!passes(&mut agent, &DOWN, Segment { seq: Seq(at(0)), ..data(0) }).0);
        assert!(passes(&mut agent, &DOWN, Segment { seq: Seq(at(3)), ..data(0) }).0);
    }

    #[test]
    fn a_new_connection_and_a_restart_begin_with_nothing() {
        let mut agent = begun(Settings::default());
        agent.restart();
        assert_eq!(agent.held(), Held::default());
        assert!(passes(&mut agent, &UP, ack(2)).0);
        assert!(passes(&mut agent, &DOWN, data(0)).0);
        let mut agent = begun(Settings::default());
        let syn = Segment { flags: Flags::SYN, seq: Seq(0), ..Segment::default() };
        assert!(passes(&mut agent, &DOWN, syn).0);
        assert!(passes(&mut agent, &DOWN, data(0)).0);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_counted() {
        let mut agent = PacketControl::new(Settings { flows: 3, segments: 4, ..Settings::default() });
        for flow in 0..9 {
            let from = EndpointId::new(2 * flow);
            let (down, up) = (Transit { from, ..DOWN }, Transit { from: from.peer(), ..UP });
            for n in 0..10 {
                passes(&mut agent, &down, data(n));
            }
            passes(&mut agent, &up, ack(10));
            for n in 0..10 {
                passes(&mut agent, &down, data(n));
                let held = agent.held();
                assert!(held.flows <= 3 && held.segments <= 12, "{held:?}");
                assert_eq!(held.octets, held.flows * FLOW_OCTETS + held.segments * STOPPED_OCTETS);
            }
        }
        assert_eq!((agent.held().flows, agent.held().segments), (3, 12));
    }
}
