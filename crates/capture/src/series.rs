//! Every copy of every data segment: when it was captured, whether it arrived, and which acknowledgement said so.
//!
//! This is what a path is fitted to: the order of fates is a sample of its loss process, the time from a copy to its acknowledgement one of its
//! round trip.

use crate::connections::{Connection, Connections, Observer, Side};
use crate::error::CaptureError;
use crate::half::{Kind, Retransmission, Unneeded};
use crate::headers::Segment;
use crate::place::Place;
use crate::records::Record;
use crate::source::Source;
use crate::stream;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::ops::{ControlFlow, Range};
use whyloss_tables::arrow_array::RecordBatch;
use whyloss_tables::{batch, table};
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};
use whyloss_transport::Seq;

/// Stretches of one direction that are told apart before they are acknowledged.
const MAX_STRETCHES: usize = 1 << 16;
/// Connections that are recorded at once.
const MAX_CONNECTIONS: usize = 1 << 16;
/// A segment that lies further from its window is damage.
const FAR: u64 = 1 << 28;
/// Segments that a delayed acknowledgement covers at most (RFC 5681, 4.2).
const DELAYED: usize = 2;
/// Octets of the timestamps option with its padding, which a full segment has less of data.
const TIMESTAMPS: u32 = 12;

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrived: it was acknowledged, or the receiver said that it got the data twice.
    Arrived,
    /// It did not: its data was sent again, and nothing shows that this was not needed.
    Lost,
    /// The capture does not tell.
    Open,
}

impl Fate {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arrived => "arrived",
            Self::Lost => "lost",
            Self::Open => "open",
        }
    }
}

/// A copy of a data segment, as one packet.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// Number of the connection.
    pub connection: u64,
    /// Who sent it.
    pub side: Side,
    /// Its record; a record that holds several packets (segmentation offload) stands at each of them. `None` if it was lost before the capture.
    pub number: Option<u64>,
    /// When it was captured; if it was not, about when it must have been.
    pub at: Instant,
    /// Octets of the stream before it.
    pub offset: u64,
    /// Octets of data.
    pub octets: u32,
    /// Octets of the IP packet.
    pub packet_octets: u32,
    /// Its data had been sent before.
    pub again: bool,
    /// It came to the capture damaged.
    pub damaged: bool,
    /// What became of it.
    pub fate: Fate,
    /// The acknowledgement that first covered its data while it was the latest copy: record and time.
    pub acked: Option<(u64, Instant)>,
    /// Octets that the receiver announced room for when it was captured; `None` if the scale is unknown.
    pub window: Option<u64>,
    /// Row of the copy before it.
    before: Option<usize>,
    /// The round trip that was to be expected when it was acknowledged.
    expected: Duration,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Number of the connection.
    pub connection: u64,
    /// Who sent.
    pub side: Side,
    /// Its address.
    pub sender: SocketAddr,
    /// Where it sent to.
    pub receiver: SocketAddr,
    /// Where the capture was taken, seen from this sender.
    pub place: Place,
    /// The shortest time from data to its acknowledgement.
    pub right: Option<Duration>,
    /// The shortest time from an acknowledgement to what it let out.
    pub left: Option<Duration>,
    /// Octets acknowledged.
    pub acknowledged: u64,
    /// The largest segment that the receiver said it takes.
    pub mss: Option<u32>,
    /// Both ends have agreed to SACK.
    pub sack: Option<bool>,
    /// When the connection's first packet was captured.
    pub began: Instant,
    /// When its latest was.
    pub ended: Instant,
}

/// All copies, in the order of the capture; those that it has not seen come where their repair was settled.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The copies.
    pub copies: Vec<Copy>,
    /// The directions with data.
    pub ways: Vec<Way>,
    /// Copies that were not kept.
    pub left_out: u64,
    /// When the first packet was captured.
    pub began: Option<Instant>,
}

/// Reads captures, one after the other as if they were one, and keeps `rows` copies at most.
///
/// `watch` hears the number of packets now and then; once it says to stop, what was read so far is what there is.
pub fn read(sources: Vec<Source>, rows: usize, watch: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<Series, CaptureError> {
    let mut connections = Connections::default();
    let mut recorder = Recorder::new(rows);
    let mut began = None;
    let mut each = |record: &Record, _| began = Some(began.map_or(record.at, |began: Instant| began.min(record.at)));
    stream::read(sources, &mut each, watch, &mut |segment| connections.on_segment(segment, &mut recorder))?;
    recorder.series.began = began;
    connections.finish(&mut recorder);
    Ok(recorder.finish())
}

/// A stretch that is not acknowledged, with its latest copy.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    end: u64,
    row: usize,
    /// The copy before it.
    before: Option<usize>,
}

/// One direction while it is followed.
#[derive(Debug, Default)]
struct Open {
    begun: bool,
    first: u64,
    una: u64,
    nxt: u64,
    stretches: BTreeMap<u64, Stretch>,
    /// What the peer said of itself when the connection was opened.
    scale: Option<u8>,
    mss: Option<u32>,
    sack: Option<bool>,
    window: Option<u64>,
    /// The receiver has said what arrived behind holes.
    selective: bool,
    /// Segments that lie behind a hole, as duplicate acknowledgements count them.
    held: usize,
    /// Octets of headers of the latest segment.
    header: u32,
}

impl Open {
    fn begin(&mut self, seq: u32) {
        /// Added to the first sequence number, so that there is room for what lies before.
        const ROOM: u64 = 1 << 32;
        if !self.begun {
            let first = ROOM + u64::from(seq);
            (self.begun, self.first, self.una, self.nxt) = (true, first, first, first);
        }
    }

    fn position(&self, seq: u32) -> u64 {
        Seq(seq).near(self.nxt)
    }

    /// Parts the stretch around a position there; of too many, whole ones are taken.
    fn split(&mut self, position: u64) {
        if self.stretches.len() >= MAX_STRETCHES {
            return;
        }
        let around = self.stretches.range_mut(..position).next_back().filter(|(_, stretch)| stretch.end > position);
        if let Some((_, stretch)) = around {
            let rest = *stretch;
            stretch.end = position;
            self.stretches.insert(position, rest);
        }
    }

    /// Takes out what lies between two positions.
    fn take(&mut self, from: u64, to: u64) -> Vec<Stretch> {
        self.split(from);
        self.split(to);
        let starts: Vec<u64> = self.stretches.range(from..to.max(from)).map(|(start, _)| *start).collect();
        starts.iter().filter_map(|start| self.stretches.remove(start)).collect()
    }

    /// Octets of data in the packets that make up a segment: several, if the host left cutting it to its network card.
    fn packet(&self, segment: &Segment) -> u32 {
        let options = if segment.options.timestamps.is_some() { TIMESTAMPS } else { 0 };
        self.mss.map_or(segment.len, |mss| mss.saturating_sub(options)).max(1)
    }
}

/// Writes down copies as connections are followed.
#[derive(Debug)]
pub struct Recorder {
    rows: usize,
    open: HashMap<u64, [Open; 2]>,
    /// The rows of records that were sent again and are not settled.
    again: HashMap<u64, Range<usize>>,
    /// What was recorded.
    series: Series,
    /// Copies that the capture has not seen.
    unseen: Vec<Copy>,
}

impl Recorder {
    /// Keeps so many copies.
    pub fn new(rows: usize) -> Self {
        Self { rows, open: HashMap::new(), again: HashMap::new(), series: Series::default(), unseen: Vec::new() }
    }

    /// What was recorded.
    pub fn finish(mut self) -> Series {
        self.series.copies.append(&mut self.unseen);
        self.series
    }

    fn is_full(&self) -> bool {
        self.series.copies.len() + self.unseen.len() >= self.rows
    }

    fn data(&mut self, connection: u64, side: Side, segment: &Segment) {
        let full = self.is_full();
        let Some(open) = self.open.get_mut(&connection).map(|ways| &mut ways[side as usize]) else { return };
        open.header = segment.packet_len.saturating_sub(segment.len);
        let mut start = open.position(segment.seq);
        let end = start + u64::from(segment.len);
        if start > open.nxt + FAR || end + FAR < open.una {
            return;
        }
        let packet = u64::from(open.packet(segment));
        while start < end {
            let octets = packet.min(end - start);
            let again = start < open.nxt;
            let mut earlier = None;
            for stretch in open.take(start, start + octets) {
                let before = &mut self.series.copies[stretch.row];
                if before.fate == Fate::Open {
                    before.fate = Fate::Lost;
                }
                earlier.get_or_insert(stretch.row);
            }
            if full || open.stretches.len() >= MAX_STRETCHES {
                self.series.left_out += 1;
            } else {
                if start >= open.una {
                    let row = self.series.copies.len();
                    open.stretches.insert(start, Stretch { end: start + octets, row, before: earlier });
                }
                self.series.copies.push(Copy {
                    connection,
                    side,
                    number: Some(segment.number),
                    at: segment.at,
                    offset: start.saturating_sub(open.first),
                    octets: octets as u32,
                    packet_octets: open.header + octets as u32,
                    again,
                    damaged: segment.is_damaged(),
                    fate: Fate::Open,
                    acked: None,
                    window: open.window,
                    before: earlier,
                    expected: Duration::ZERO,
                });
            }
            start += octets;
            open.nxt = open.nxt.max(start);
        }
    }

    fn acknowledgement(&mut self, connection: &Connection, side: Side, segment: &Segment) {
        let shortest = connection.half(side).trips.shortest().unwrap_or_default();
        let soonest = shortest - shortest / 8;
        let expected = connection.half(side).trips.smoothed().unwrap_or_default();
        let Some(open) = self.open.get_mut(&connection.id).map(|ways| &mut ways[side as usize]) else { return };
        let syn = segment.flags.contains(Flags::SYN);
        open.window = open.scale.map(|scale| u64::from(segment.window) << if syn { 0 } else { scale });
        if !open.begun {
            return;
        }
        let ack = open.position(segment.ack);
        if ack > open.nxt + FAR || ack + FAR < open.una {
            return;
        }
        open.selective |= !segment.options.sack().is_empty();
        if ack == open.una && segment.len == 0 && !syn {
            open.held = (open.held + 1).min(open.stretches.len().saturating_sub(1));
        }
        let mut arrived = Vec::new();
        for &(left, right) in segment.options.sack() {
            let (left, right) = (open.position(left), open.position(right));
            if left < right && left >= ack && right <= open.nxt {
                arrived.extend(open.take(left, right));
            }
        }
        if ack > open.una {
            let covered = open.take(open.una, ack);
            // What arrives beside a hole is acknowledged at once (RFC 5681, 4.2): the first filled the hole, the others lay behind it already. So
            // did they if there are more than a delayed acknowledgement waits for.
            let behind = covered.len().saturating_sub(1);
            let buffered = !open.selective && (covered.len() > DELAYED || open.held > 0);
            open.held = if ack >= open.nxt { 0 } else { open.held.saturating_sub(behind) };
            let filled = covered.first().map(|first| in_time(&self.series.copies, first.row, segment.at, soonest));
            for (place, stretch) in covered.into_iter().enumerate() {
                match (filled, stretch.before) {
                    (Some(filled), Some(_)) if buffered && place > 0 => lay_behind(&mut self.series.copies, stretch.row, filled),
                    _ => arrived.push(stretch),
                }
            }
            open.una = ack;
            open.nxt = open.nxt.max(ack);
        }
        for stretch in arrived {
            let row = in_time(&self.series.copies, stretch.row, segment.at, soonest);
            let copy = &mut self.series.copies[row];
            if copy.fate == Fate::Open || row != stretch.row {
                copy.acked = Some((segment.number, segment.at));
                copy.expected = expected;
                copy.fate = Fate::Arrived;
            }
        }
    }
}

/// The latest copy that can have been acknowledged at `at`, of that in `row` and those before it: an acknowledgement that comes sooner than any round
/// trip is that of a copy before.
fn in_time(copies: &[Copy], mut row: usize, at: Instant, soonest: Duration) -> usize {
    while let (Some(before), true) = (copies[row].before, at.since(copies[row].at) < soonest) {
        row = before;
    }
    row
}

/// Data that was sent again lay behind a hole when the copy in `filled` filled it. Copies that left after that one had not arrived, and nothing tells
/// whether they did; if one copy is left, it had. If several are, nothing tells them apart.
fn lay_behind(copies: &mut [Copy], row: usize, filled: usize) {
    let mut chain = vec![row];
    while let Some(before) = copies[chain[chain.len() - 1]].before {
        chain.push(before);
    }
    let sooner: Vec<usize> = chain.into_iter().filter(|copy| *copy < filled).collect();
    let fate = if sooner.len() == 1 { Fate::Arrived } else { Fate::Open };
    for copy in sooner {
        if copies[copy].fate != Fate::Arrived {
            copies[copy].fate = fate;
        }
    }
}

/// The copy in `row` arrived, and one before it: that whose round trip, up to the acknowledgement, is as long as could be expected. If that is the one in
/// `row`, the first: had one of the middle arrived, the receiver would have told.
fn unneeded(copies: &mut [Copy], row: usize) {
    let mut chain = vec![row];
    while let Some(before) = copies[chain[chain.len() - 1]].before {
        chain.push(before);
    }
    let earlier = &chain[1..];
    if !earlier.is_empty() && earlier.iter().all(|other| copies[*other].fate != Fate::Arrived) {
        let off = |other: usize| {
            copies[row].acked.map_or(Duration::ZERO, |(_, at)| at.since(copies[other].at).abs_diff(copies[row].expected))
        };
        let nearest = chain.iter().copied().min_by_key(|other| off(*other)).filter(|nearest| *nearest != row);
        let arrived = nearest.unwrap_or(chain[chain.len() - 1]);
        copies[arrived].fate = Fate::Arrived;
        copies[row].acked = None;
    }
    // One that was sent again itself may have been lost as well.
    if copies[row].fate == Fate::Open {
        copies[row].fate = Fate::Arrived;
    }
}

impl Observer for Recorder {
    fn on_segment(&mut self, connection: &Connection, side: Side, segment: &Segment, kind: Kind) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let syn = segment.flags.contains(Flags::SYN);
        if !self.open.contains_key(&connection.id) && self.open.len() >= MAX_CONNECTIONS {
            self.series.left_out += u64::from(segment.len > 0);
            return;
        }
        let ways = self.open.entry(connection.id).or_default();
        if syn {
            let peer = &mut ways[side.other() as usize];
            peer.scale = Some(segment.options.window_scale.unwrap_or(0));
            peer.sack = Some(segment.options.sack_permitted);
            peer.mss = segment.options.mss.map(u32::from).filter(|mss| *mss > TIMESTAMPS);
        }
        if !segment.is_damaged() {
            ways[side as usize].begin(segment.seq.wrapping_add(u32::from(syn)));
        }
        if segment.len > 0 && !syn && matches!(kind, Kind::New | Kind::Retransmission(_) | Kind::OutOfOrder) {
            let before = self.series.copies.len();
            self.data(connection.id, side, segment);
            if let (Kind::Retransmission(_), true) = (kind, self.series.copies.len() > before) {
                self.again.insert(segment.number, before..self.series.copies.len());
            }
        }
        if segment.flags.contains(Flags::ACK) && !segment.is_damaged() {
            self.acknowledgement(connection, side.other(), segment);
        }
    }

    fn on_retransmission(&mut self, connection: u64, side: Side, sent: Retransmission) {
        let rows = self.again.remove(&sent.number).unwrap_or_default();
        match sent.before {
            // Of what lay behind a gap, the acknowledgement that filled the gap says what is known: nothing of the later copy.
            Some(_) if sent.unneeded.is_some_and(|shown| shown != Unneeded::Behind) => {
                rows.for_each(|row| unneeded(&mut self.series.copies, row));
            }
            Some(_) => {}
            None if self.is_full() => self.series.left_out += 1,
            None => {
                let header = self.open.get(&connection).map_or(0, |ways| ways[side as usize].header);
                self.unseen.push(Copy {
                    connection,
                    side,
                    number: None,
                    at: sent.at - sent.after,
                    offset: sent.start.saturating_sub(sent.first),
                    octets: sent.len,
                    packet_octets: sent.len + header,
                    again: false,
                    damaged: false,
                    fate: if sent.unneeded.is_some() { Fate::Open } else { Fate::Lost },
                    acked: None,
                    window: None,
                    before: None,
                    expected: Duration::ZERO,
                });
            }
        }
    }

    fn on_end(&mut self, connection: Connection) {
        let ways = self.open.remove(&connection.id).unwrap_or_default();
        for side in [Side::Client, Side::Server] {
            let half = connection.half(side);
            if half.counts.segments == 0 {
                continue;
            }
            let (sender, receiver) = match side {
                Side::Client => (connection.client, connection.server),
                Side::Server => (connection.server, connection.client),
            };
            self.series.ways.push(Way {
                connection: connection.id,
                side,
                sender,
                receiver,
                place: connection.place(side),
                right: half.trips.shortest(),
                left: half.trips.left(),
                acknowledged: half.acknowledged(),
                mss: ways[side as usize].mss,
                sack: ways[0].sack.zip(ways[1].sack).map(|(one, other)| one && other),
                began: connection.began,
                ended: connection.ended,
            });
        }
    }
}

/// A row, and when the capture began.
type Row<'a, T> = (&'a T, Instant);

table! {
    /// One row a copy of a data segment.
    Copies |r: Row<'a, Copy>| {
        connection: always u64 = r.0.connection, "Number of the connection in the capture.";
        side: always text = r.0.side.name(), "Who sent it: `client` or `server`.";
        packet: maybe u64 = r.0.number, "Its number in the capture; null if it was lost before it came there.";
        time_s: always f64 = seconds(r.0.at, r.1), "When it was captured; if it was not, about when it must have been.";
        offset_octets: always u64 = r.0.offset, "Octets of the stream before it.";
        octets: always u32 = r.0.octets, "Octets of data.";
        packet_octets: always u32 = r.0.packet_octets, "Octets of the IP packet.";
        again: always flag = r.0.again, "Its data had been sent before.";
        damaged: always flag = r.0.damaged, "It came to the capture damaged.";
        fate: always text = r.0.fate.name(), "What became of it: `arrived`, `lost` or `open`.";
        ack: maybe u64 = r.0.acked.map(|acked| acked.0), "The packet that acknowledged it first; null if none did, or if it is not clear which copy it acknowledged.";
        acked_s: maybe f64 = r.0.acked.map(|acked| seconds(acked.1, r.1)), "When that was captured.";
        window_octets: maybe u64 = r.0.window, "Room that the receiver announced at that time.";
    }
}

table! {
    /// One row a direction of a connection in which data was sent.
    Ways |r: Row<'a, Way>| {
        connection: always u64 = r.0.connection, "Number of the connection in the capture.";
        side: always text = r.0.side.name(), "Who sent: `client` or `server`.";
        sender: always text = r.0.sender.ip().to_string(), "Its address.";
        sender_port: always u32 = u32::from(r.0.sender.port()), "Its port.";
        receiver: always text = r.0.receiver.ip().to_string(), "Where it sent to.";
        receiver_port: always u32 = u32::from(r.0.receiver.port()), "The port there.";
        place: always text = r.0.place.name(), "Where the capture was taken, seen from this sender.";
        right_s: maybe f64 = r.0.right.map(Duration::as_secs_f64), "The shortest time from data to its acknowledgement.";
        left_s: maybe f64 = r.0.left.map(Duration::as_secs_f64), "The shortest time from an acknowledgement to what it let out.";
        acknowledged_octets: always u64 = r.0.acknowledged, "Octets that the receiver acknowledged.";
        mss_octets: maybe u32 = r.0.mss, "The largest segment that the receiver said it takes.";
        sack: maybe flag = r.0.sack, "Both ends have agreed to SACK; null if the capture has no handshake.";
        began_s: always f64 = seconds(r.0.began, r.1), "When the first packet of the connection was captured, either way.";
        ended_s: always f64 = seconds(r.0.ended, r.1), "When the latest was.";
    }
}

fn seconds(at: Instant, began: Instant) -> f64 {
    (i128::from(at.as_nanos()) - i128::from(began.as_nanos())) as f64 / 1e9
}

impl Series {
    /// The copies as an Arrow table.
    pub fn copies(&self) -> RecordBatch {
        let began = self.began.unwrap_or(Instant::ZERO);
        batch(Copies::batch(self.copies.iter().map(|row| (row, began))))
    }

    /// The directions as an Arrow table.
    pub fn ways(&self) -> RecordBatch {
        let began = self.began.unwrap_or(Instant::ZERO);
        batch(Ways::batch(self.ways.iter().map(|row| (row, began))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_of_single_octets_part_no_more_than_there_is_room_for() {
        let mut open = Open::default();
        open.stretches.insert(0, Stretch { end: 1 << 20, row: 0, before: None });
        for position in 0..MAX_STRETCHES as u64 + 100 {
            open.take(2 * position + 1, 2 * position + 2);
        }
        assert!((MAX_STRETCHES - 2..=MAX_STRETCHES).contains(&open.stretches.len()), "{}", open.stretches.len());
    }
}
