//! Explicit loss notification (Balakrishnan & Katz 1998): the base station knows which data its wireless link has lost.
//!
//! Of data that comes over the link it remembers the holes. Of data that leaves over the link it remembers what the link's queue has
//! taken, as a snoop agent does; what the receiver then misses, the link has lost.
//!
//! Our reading of the marks: an acknowledgement names one piece of data that is missing, and of several the one that was named least often,
//! so that each hole under SACK gets its turn. A hole in what came over the link is certain and named on any acknowledgement that has room,
//! because with SACK and RACK (RFC 8985) a single one can make the sender judge; of what left over the link only what duplicates, partial
//! acknowledgements or SACK blocks show to be missing is named.

use super::agent::{notify, Agent, Handling, Outbox, Side, Transit};
use super::table::Table;
use crate::address::{EndpointId, FlowId};
use crate::record::Held;
use std::collections::BTreeMap;
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::segment::{ExplicitLoss, Flags};
use whyloss_transport::{settings, Segment, Seq};

pub(super) const PART: Part<dyn Agent> = Part {
    name: "eln",
    summary: "Marks acknowledgements that ask for data which the link has lost; the differentiator `eln` hears it.",
    reference: "Balakrishnan & Katz 1998",
    notes: Notes {
        idea: "A base station sees on which side of it a hole begins: what has passed it, or should have come over its link, and is missing, the link has lost.",
        fails: "Where acknowledgements with timestamps and three SACK blocks leave no room for the mark, and where its options are stripped.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// How much it remembers.
    pub(super) struct Settings {
        /// Flows that are remembered; the one that was quiet for longest makes room.
        flows: usize = 1024, 1..=1_000_000;
        /// Pieces of data that are remembered of a flow in one direction; the oldest is forgotten first, and taken for lost elsewhere.
        pieces: usize = 4096, 1..=1_000_000;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(ExplicitLosses::new(self))
    }
}

/// Remembers holes and names them on acknowledgements.
#[derive(Debug)]
pub(super) struct ExplicitLosses {
    pieces: usize,
    /// By the way of the data.
    flows: Table<[Option<Stream>; 2]>,
    held: Held,
}

/// The data of one flow in one direction.
#[derive(Debug)]
pub(super) struct Stream {
    kind: Kind,
    /// The end of the data that has come farthest.
    highest: u64,
    acknowledged: u64,
    /// The end of the latest retransmission, and of all data before it: once the former is acknowledged, the latter has come or is lost.
    repair: (u64, u64),
    /// By the first octet, neither acknowledged.
    pieces: BTreeMap<u64, Piece>,
}

/// What the pieces of a stream are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// What has not come over the link.
    Holes,
    /// What the queue of the link has taken.
    Taken,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    end: u64,
    /// How often it was named.
    named: u32,
}

impl Stream {
    fn new(kind: Kind, seq: Seq) -> Self {
        // One wrap above zero, so that a position a little below is still a number.
        let start = (1 << 32) | u64::from(seq.0);
        Self { kind, highest: start, acknowledged: start, repair: (start, start), pieces: BTreeMap::new() }
    }

    /// Data came over the link: it is not missing any more, but what lies between it and what came before is.
    fn arrives(&mut self, start: u64, end: u64) {
        if start > self.highest {
            self.pieces.insert(self.highest, Piece { end: start, named: 0 });
        }
        self.cut(start, end);
        self.highest = self.highest.max(end);
    }

    /// Data leaves over the link.
    fn leaves(&mut self, start: u64, end: u64) {
        if start < self.highest {
            self.repair = (end, self.highest);
        }
        if end > self.acknowledged {
            self.pieces.insert(start, Piece { end, named: 0 });
        }
        self.highest = self.highest.max(end);
    }

    /// Takes a range out of the pieces.
    fn cut(&mut self, start: u64, end: u64) {
        let overlapping: Vec<_> =
            self.pieces.range(..end).filter(|(_, piece)| piece.end > start).map(|(&at, &p)| (at, p)).collect();
        for (at, piece) in overlapping {
            self.pieces.remove(&at);
            if at < start {
                self.pieces.insert(at, Piece { end: start, ..piece });
            }
            if piece.end > end {
                self.pieces.insert(end, piece);
            }
        }
    }

    /// The holes in data that comes over the link from `seq` on.
    pub fn of_holes(seq: Seq) -> Self {
        Self::new(Kind::Holes, seq)
    }

    /// A segment came over the link; at most `most` pieces are remembered.
    pub fn note_arrival(&mut self, segment: &Segment, most: usize) {
        let (start, end) = range(self, segment);
        self.arrives(start, end);
        self.limit(most);
    }

    /// Pieces from their first octet to their end, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.pieces.iter().map(|(&start, piece)| (start, piece.end))
    }

    /// The end of the data that has come farthest.
    pub const fn end(&self) -> u64 {
        self.highest
    }

    /// Forgets the oldest pieces if there are more than `most`.
    fn limit(&mut self, most: usize) {
        while self.pieces.len() > most {
            self.pieces.pop_first();
        }
    }

    /// Number of its pieces, and the octets of memory that they need.
    pub fn weight(&self) -> (u64, u64) {
        let pieces = self.pieces.len() as u64;
        (pieces, pieces * PIECE_OCTETS)
    }

    /// Names one missing piece on an acknowledgement, if there is one and the header has room for the notice.
    pub fn name_missing(&mut self, ack: &mut Segment) {
        let Some(start) = self.missing(ack) else { return };
        let Some(piece) = self.pieces.get_mut(&start) else { return };
        let len = (piece.end - start).min(u64::from(u16::MAX)) as u16;
        if notify(ack, |notices| notices.explicit_loss = Some(ExplicitLoss { seq: Seq::from(start), len })) {
            piece.named += 1;
        }
    }

    /// The piece to name on an acknowledgement: of those that are known to be missing the one that was named least often.
    fn missing(&mut self, ack: &Segment) -> Option<u64> {
        let una = ack.ack.near(self.acknowledged);
        let duplicate = una == self.acknowledged && ack.is_empty() && !ack.flags.intersects(Flags::SYN | Flags::FIN);
        if una > self.acknowledged {
            self.acknowledged = una;
            self.cut(0, una);
        }
        let mut beyond = match self.kind {
            Kind::Holes => u64::MAX,
            // Without SACK: a duplicate, or a partial acknowledgement (RFC 6582), says that what it asks for is missing.
            Kind::Taken if duplicate || (self.repair.0..self.repair.1).contains(&una) => una + 1,
            Kind::Taken => una,
        };
        for (left, right) in ack.options.sack.as_slice().iter().map(|(l, r)| (l.near(una), r.near(una))) {
            if left < right && left > una {
                self.cut(left, right);
                beyond = beyond.max(left);
            }
        }
        if una >= beyond {
            return None;
        }
        self.pieces.range(una..beyond).min_by_key(|(at, piece)| (piece.named, **at)).map(|(&at, _)| at)
    }
}

/// First and last position of the sequence space that a segment takes.
fn range(stream: &Stream, segment: &Segment) -> (u64, u64) {
    let start = segment.seq.near(stream.highest);
    (start, start + u64::from(segment.seq_len()))
}

/// Pieces that a flow's streams hold.
fn pieces(streams: &[Option<Stream>; 2]) -> u64 {
    streams.iter().flatten().map(|stream| stream.pieces.len() as u64).sum()
}

const FLOW_OCTETS: u64 = size_of::<[Option<Stream>; 2]>() as u64;
const PIECE_OCTETS: u64 = size_of::<(u64, Piece)>() as u64;

impl ExplicitLosses {
    fn new(settings: Settings) -> Self {
        Self { pieces: settings.pieces, flows: Table::new(settings.flows), held: Held::default() }
    }

    /// The pieces of a flow have become `after` instead of `before`.
    fn note(&mut self, before: u64, after: u64) {
        let segments = self.held.segments + after - before;
        let flows = self.flows.len() as u64;
        let octets = flows * FLOW_OCTETS + segments * PIECE_OCTETS;
        self.held = Held { flows, segments, octets, flow_octets: FLOW_OCTETS + after * PIECE_OCTETS };
    }
}

impl Agent for ExplicitLosses {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, _out: &mut Outbox) -> Handling {
        let (flow, way) = (transit.from.flow(), transit.from.way().index());
        if segment.seq_len() == 0 && self.flows.get(flow).is_none() {
            return Handling::Forward;
        }
        let (streams, gone) = self.flows.get_or_insert(flow, Default::default);
        let before = pieces(streams);
        if segment.flags.contains(Flags::ACK) {
            if let Some(stream) = &mut streams[1 - way] {
                stream.name_missing(segment);
            }
        }
        if segment.seq_len() > 0 {
            let kind = if transit.side == Side::Mobile { Kind::Holes } else { Kind::Taken };
            let opens = segment.flags.contains(Flags::SYN);
            let stream = streams[way].take().filter(|_| !opens).unwrap_or_else(|| Stream::new(kind, segment.seq));
            let stream = streams[way].insert(stream);
            let (start, end) = range(stream, segment);
            match stream.kind {
                Kind::Holes => stream.arrives(start, end),
                Kind::Taken => stream.leaves(start, end),
            }
            stream.limit(self.pieces);
        }
        let after = pieces(streams);
        self.note(before + gone.map_or(0, |(_, gone)| pieces(&gone)), after);
        Handling::Forward
    }

    fn dropped(&mut self, from: EndpointId, segment: &Segment) {
        let Some(streams) = self.flows.get(from.flow()) else { return };
        let before = pieces(streams);
        if let Some(stream) = &mut streams[from.way().index()] {
            let (start, end) = range(stream, segment);
            stream.cut(start, end);
        }
        let after = pieces(streams);
        self.note(before, after);
    }

    fn forget(&mut self, flow: FlowId) {
        let before = self.flows.remove(flow).map_or(0, |streams| pieces(&streams));
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
    use crate::middlebox::testing::{self, data, DOWN, FIXED as SENDER};
    use whyloss_transport::segment::SackBlocks;

    /// The sender is on either side of the link; its receiver answers from the fixed one.
    const UP: Transit = Transit { side: Side::Mobile, ..DOWN };
    const BACK: Transit = Transit { from: SENDER.peer(), ..DOWN };

    fn new() -> ExplicitLosses {
        ExplicitLosses::new(Settings::default())
    }

    fn pass(agent: &mut ExplicitLosses, transit: &Transit, mut segment: Segment) -> Segment {
        assert_eq!(agent.pass(transit, &mut segment, &mut Outbox::default()), Handling::Forward);
        segment
    }

    fn ack(n: u32, sacked: &[(u32, u32)]) -> Segment {
        let mut segment = testing::ack(n);
        let mut sack = SackBlocks::default();
        for (left, right) in sacked {
            assert!(sack.push(Seq(left * 100), Seq(right * 100)));
        }
        segment.options.sack = sack;
        segment
    }

    /// What an acknowledgement is told: number of the first segment and of segments.
    fn told(agent: &mut ExplicitLosses, ack: Segment) -> Option<(u32, u16)> {
        pass(agent, &BACK, ack)
            .options
            .rare
            .and_then(|rare| rare.notices.explicit_loss)
            .map(|loss| (loss.seq.0 / 100, loss.len / 100))
    }

    #[test]
    fn a_hole_on_the_way_up_is_named_on_duplicates_until_it_is_filled() {
        let mut agent = new();
        for n in [0, 1, 4, 5] {
            pass(&mut agent, &UP, data(n));
        }
        assert_eq!(told(&mut agent, ack(1, &[])), Some((2, 2)));
        assert_eq!(told(&mut agent, ack(2, &[])), Some((2, 2)));
        pass(&mut agent, &UP, data(2));
        assert_eq!(told(&mut agent, ack(2, &[])), Some((3, 1)), "the first retransmission has come");
        assert_eq!(told(&mut agent, ack(3, &[(4, 6)])), Some((3, 1)));
        pass(&mut agent, &UP, data(3));
        assert_eq!(told(&mut agent, ack(3, &[(4, 6)])), None);
    }

    #[test]
    fn what_the_wired_part_loses_is_not_named() {
        let mut agent = new();
        for n in 0..6 {
            pass(&mut agent, &UP, data(n));
        }
        assert_eq!(told(&mut agent, ack(2, &[])), None);
        assert_eq!(told(&mut agent, ack(2, &[])), None);
        assert_eq!(told(&mut agent, ack(2, &[(3, 5)])), None);
    }

    #[test]
    fn on_the_way_down_only_what_the_link_took_is_named() {
        let mut agent = new();
        for n in [0, 1, 3, 4, 5] {
            pass(&mut agent, &DOWN, data(n));
        }
        agent.dropped(SENDER, &data(4));
        // 2 was lost before, 4 by the queue, 1 by the link.
        assert_eq!(told(&mut agent, ack(1, &[(3, 4), (5, 6)])), Some((1, 1)));
        assert_eq!(told(&mut agent, ack(2, &[(3, 4), (5, 6)])), None);
        assert_eq!(told(&mut agent, ack(4, &[(5, 6)])), None);
    }

    #[test]
    fn on_the_way_down_without_sack_duplicates_and_partial_acknowledgements_ask() {
        let mut agent = new();
        for n in 0..6 {
            pass(&mut agent, &DOWN, data(n));
        }
        assert_eq!(told(&mut agent, ack(1, &[])), None, "it may still come");
        assert_eq!(told(&mut agent, ack(1, &[])), Some((1, 1)));
        pass(&mut agent, &DOWN, data(1));
        assert_eq!(told(&mut agent, ack(3, &[])), Some((3, 1)), "what was sent before the repair has come or is lost");
        pass(&mut agent, &DOWN, data(3));
        pass(&mut agent, &DOWN, data(6));
        assert_eq!(told(&mut agent, ack(6, &[])), None);
    }

    #[test]
    fn holes_take_turns() {
        let mut agent = new();
        for n in [0, 2, 4] {
            pass(&mut agent, &UP, data(n));
        }
        let both = [(2, 3), (4, 5)];
        let named: Vec<_> = (0..4).filter_map(|_| told(&mut agent, ack(1, &both))).map(|(n, _)| n).collect();
        assert_eq!(named, [1, 3, 1, 3]);
    }

    #[test]
    fn a_notice_that_does_not_fit_stays_out() {
        let mut agent = new();
        for n in [0, 2, 4, 6] {
            pass(&mut agent, &UP, data(n));
        }
        let mut three = ack(1, &[(2, 3), (4, 5), (6, 7)]);
        three.options.timestamps = Some(whyloss_transport::segment::Timestamps::default());
        assert_eq!(pass(&mut agent, &BACK, three.clone()), three);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_counted() {
        let mut agent = ExplicitLosses::new(Settings { flows: 2, pieces: 3 });
        for flow in 0..5 {
            for n in 0..20 {
                let down = Transit { from: EndpointId::new(2 * flow), ..DOWN };
                pass(&mut agent, &down, data(n));
                let held = agent.held();
                assert!(held.flows <= 2 && held.segments <= 6, "{held:?}");
                assert_eq!(held.octets, held.flows * FLOW_OCTETS + held.segments * PIECE_OCTETS);
            }
        }
        assert_eq!((agent.held().flows, agent.held().segments), (2, 6));
        agent.restart();
        assert_eq!(agent.held(), Held::default());
        pass(&mut agent, &DOWN, data(30));
        assert_eq!((agent.held().flows, agent.held().segments), (1, 1));
    }
}
