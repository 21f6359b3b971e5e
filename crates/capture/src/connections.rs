//! The connections of a capture.

use crate::clock::Pace;
use crate::half::{Half, Hole, Kind, News, Retransmission, Unanswered};
use crate::headers::Segment;
use crate::limits::Stall;
pub use crate::place::Place;
use crate::place::{place, Doubles, Signs};
use ahash::RandomState;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};

/// Connections that are followed at once, if nothing else is said.
pub const DEFAULT_LIMIT: usize = 1 << 16;
/// Octets that they may take together, with what an observer keeps of them, if nothing else is said.
pub const DEFAULT_OCTETS: usize = 1 << 30;
/// Octets that a connection takes in tables of connections.
const ENTRY: usize = 256;
/// Data of a connection whose ends have closed it, or that was reset, is waited for so long: a repair of the last segment has come by then.
const CLOSED: Duration = Duration::from_secs(5);
/// What comes so late belongs to such a connection, as a FIN whose acknowledgement was lost again and again (RFC 9293, 3.4.2: twice the maximum
/// segment lifetime); what comes later does not, whether somebody still follows it or not.
const LINGER: Duration = Duration::from_secs(60);

/// Who sent a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The end that opened the connection; if that was not captured, the one that was seen first.
    Client,
    /// The other one.
    Server,
}

impl Side {
    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// The number of the record of its first segment.
    pub id: u64,
    /// The end that opened it, or was seen first.
    pub client: SocketAddr,
    /// The other one.
    pub server: SocketAddr,
    /// Its SYN was captured.
    pub opened: bool,
    /// It was reset.
    pub reset: bool,
    /// When its first packet was captured.
    pub began: Instant,
    /// When its latest was.
    pub ended: Instant,
    /// Packets of both directions.
    pub packets: u64,
    /// What the client sent, and what the server sent.
    pub halves: [Half; 2],
    /// What the packets of the client and of the server show of their way to the capture.
    pub signs: [Signs; 2],
    /// How the timestamps of both go with the clock of the capture.
    pub paces: [Pace; 2],
    /// Packets that were recorded twice.
    pub doubles: Doubles,
    fins: [bool; 2],
    syn: Option<u32>,
    /// The server has sent a SYN that answers none: both ends opened the connection at once.
    crossing: Option<u32>,
    syn_at: [Option<Instant>; 2],
    /// Octets that an observer keeps of it.
    observed: usize,
}

impl Connection {
    fn new(segment: &Segment) -> Self {
        let answer = segment.flags.contains(Flags::SYN) && segment.flags.contains(Flags::ACK);
        let (client, server) = if answer { (segment.dst, segment.src) } else { (segment.src, segment.dst) };
        let mut halves = [Half::default(), Half::default()];
        for half in &mut halves {
            half.limits.begin(segment.at);
        }
        Self {
            id: segment.number,
            client,
            server,
            opened: false,
            reset: false,
            began: segment.at,
            ended: segment.at,
            packets: 0,
            halves,
            signs: [Signs::default(); 2],
            paces: [Pace::default(); 2],
            doubles: Doubles::default(),
            fins: [false; 2],
            syn: None,
            crossing: None,
            syn_at: [None; 2],
            observed: 0,
        }
    }

    /// What one side sent.
    pub fn half(&self, side: Side) -> &Half {
        &self.halves[side.index()]
    }

    /// Where the capture was taken, seen from one side.
    pub fn place(&self, side: Side) -> Place {
        let trips = &self.half(side).trips;
        place(&self.signs[side.index()], &self.signs[side.other().index()], trips.left(), trips.shortest())
    }

    fn side(&self, segment: &Segment) -> Side {
        if segment.src == self.client {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Octets that it takes, with what an observer keeps of it.
    fn octets(&self) -> usize {
        ENTRY + size_of::<Self>() + self.halves[0].octets() + self.halves[1].octets() + self.observed
    }

    fn is_closed(&self) -> bool {
        self.reset || self.fins == [true; 2]
    }

    /// Whether a segment opens another connection between the same ports, or belongs to one whose opening was not captured.
    fn is_succeeded_by(&self, segment: &Segment) -> bool {
        let [syn, ack, rst] = [Flags::SYN, Flags::ACK, Flags::RST].map(|flag| segment.flags.contains(flag));
        if syn && !ack && self.is_crossed_by(segment) {
            return false;
        }
        if syn && !ack && self.syn != Some(segment.seq) && (self.is_closed() || self.packets > 0 && self.syn.is_some()) {
            return true;
        }
        let quiet = segment.at.since(self.ended) > LINGER;
        if self.is_closed() && quiet {
            return true;
        }
        // A reset may have any numbers, and a stray segment one wrong one.
        let over = syn || self.is_closed() || quiet;
        over && !rst && self.is_elsewhere(segment)
    }

    /// A SYN of the other end meets the one that opened this connection (RFC 9293, 3.5).
    fn is_crossed_by(&self, segment: &Segment) -> bool {
        let waits = !self.is_closed() && self.syn.is_some() && segment.at.since(self.ended) <= LINGER;
        // Nothing else has come from there.
        let fits = match self.crossing {
            Some(seq) => seq == segment.seq,
            None => self.half(Side::Server).is_far(segment.seq).is_none(),
        };
        waits && fits && self.side(segment) == Side::Server
    }

    /// The numbers of a segment belong to neither direction.
    fn is_elsewhere(&self, segment: &Segment) -> bool {
        let side = self.side(segment);
        let answers = segment.flags.contains(Flags::ACK);
        self.half(side).is_far(segment.seq) == Some(true)
            && (!answers || self.half(side.other()).is_far(segment.ack).unwrap_or(true))
    }

    /// When it is known what becomes of its data, in a capture that went on until `now`.
    ///
    /// A closed one is followed a while for certain, however many others there are. Who followed it for longer must not know more.
    fn judged_at(&self, now: Instant) -> Instant {
        if self.is_closed() {
            now.min(self.ended + CLOSED)
        } else {
            now
        }
    }

    fn on_segment(&mut self, segment: &Segment, told: &mut dyn FnMut(Side, News)) -> (Side, Kind) {
        let side = self.side(segment);
        self.packets += 1;
        for half in &mut self.halves {
            half.latest = self.ended;
        }
        self.ended = self.ended.max(segment.at);
        if !segment.is_damaged() {
            self.signs[side.index()].note(segment);
            self.handshake(segment, side);
            self.reset |= segment.flags.contains(Flags::RST);
            self.fins[side.index()] |= segment.flags.contains(Flags::FIN);
        }
        if let Some((value, echo)) = segment.options.timestamps.filter(|_| !segment.is_damaged()) {
            self.paces[side.index()].note(value, segment.at);
            self.halves[side.index()].trips.on_echo(echo, segment.at);
            if segment.len == 0 {
                self.halves[side.other().index()].trips.await_echo(value, segment.at);
            }
        }
        let kind = self.halves[side.index()].on_segment(segment, &mut |news| told(side, news));
        self.halves[side.other().index()].on_ack(segment, &mut |news| told(side.other(), news));
        (side, kind)
    }

    /// The three segments of the handshake show both parts of the round trip.
    fn handshake(&mut self, segment: &Segment, side: Side) {
        if segment.flags.contains(Flags::SYN) {
            self.signs[side.other().index()].peer_mss = segment.options.mss;
            self.halves.iter_mut().for_each(|half| half.limits.opens());
            if side == Side::Server && !segment.flags.contains(Flags::ACK) {
                self.crossing = Some(segment.seq);
                return; // it answers nothing
            }
            if side == Side::Client {
                self.opened = true;
                self.syn = Some(segment.seq);
            } else if let Some(at) = self.syn_at[Side::Client.index()].filter(|at| *at > Instant::ZERO && segment.at > *at) {
                self.halves[Side::Server.index()].trips.on_left(segment.at.since(at));
            }
            // A SYN that was sent again makes the measurement ambiguous.
            let slot = &mut self.syn_at[side.index()];
            *slot = if slot.is_some() { Some(Instant::ZERO) } else { Some(segment.at) };
        } else if side == Side::Client && segment.flags.contains(Flags::ACK) {
            self.halves.iter_mut().for_each(|half| half.limits.opened(segment.at));
            if let Some(at) = self.syn_at[Side::Server.index()].take().filter(|at| *at > Instant::ZERO && segment.at > *at) {
                self.halves[Side::Client.index()].trips.on_left(segment.at.since(at));
            }
        }
    }
}

/// Who wants to know what happens in connections.
pub trait Observer {
    /// A segment was taken for what it is.
    fn on_segment(&mut self, connection: &Connection, side: Side, segment: &Segment, kind: Kind) {
        let _ = (connection, side, segment, kind);
    }

    /// Octets that it keeps of the connection whose segment it was told of last. They count against the bound of all connections.
    fn keeps(&self) -> usize {
        0
    }

    /// All that will be known of a retransmission is known.
    fn on_retransmission(&mut self, connection: u64, side: Side, retransmission: Retransmission) {
        let _ = (connection, side, retransmission);
    }

    /// The capture has missed something.
    fn on_hole(&mut self, connection: u64, side: Side, hole: Hole) {
        let _ = (connection, side, hole);
    }

    /// Something was neither acknowledged nor sent again.
    fn on_unanswered(&mut self, connection: u64, side: Side, unanswered: Unanswered) {
        let _ = (connection, side, unanswered);
    }

    /// Nothing went on for a while.
    fn on_stall(&mut self, connection: u64, side: Side, stall: Stall) {
        let _ = (connection, side, stall);
    }

    /// A connection is over, or no longer followed.
    fn on_end(&mut self, connection: Connection);
}

fn tell(observer: &mut dyn Observer, connection: u64, side: Side, news: News) {
    match news {
        News::Retransmission(sent) => observer.on_retransmission(connection, side, sent),
        News::Hole(hole) => observer.on_hole(connection, side, hole),
        News::Stall(stall) => observer.on_stall(connection, side, stall),
        News::Unanswered(unanswered) => observer.on_unanswered(connection, side, unanswered),
    }
}

/// The two ends, the smaller first, in a form that is quickly hashed and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Ends {
    low: u128,
    high: u128,
    /// The ports, and whether the addresses are of IPv6.
    others: u64,
}

impl Ends {
    fn of(segment: &Segment) -> Self {
        let number = |end: SocketAddr| match end.ip() {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        let (src, dst) = ((number(segment.src), segment.src.port()), (number(segment.dst), segment.dst.port()));
        let (low, high) = if src <= dst { (src, dst) } else { (dst, src) };
        let others = u64::from(low.1) | u64::from(high.1) << 16 | u64::from(segment.src.is_ipv6()) << 32;
        Self { low: low.0, high: high.0, others }
    }
}

/// All connections that are followed.
#[derive(Debug)]
pub struct Connections {
    limit: usize,
    /// Octets that they may take.
    most_octets: usize,
    /// Those seen so far.
    pub seen: u64,
    /// Where each connection stands.
    open: HashMap<Ends, usize, RandomState>,
    slots: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// The ends of the latest segment: most segments follow one of the same connection.
    latest: Option<(Ends, usize)>,
    /// In which order they were seen first, to let the oldest go when there are too many.
    order: VecDeque<(Ends, u64)>,
    /// Octets that they take.
    octets: usize,
    /// The latest time in the capture that is known here.
    now: Instant,
    /// Those that were let go.
    pub forgotten: u64,
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl Connections {
    /// Follows `limit` connections at once; of more, those that have been quiet are let go.
    pub fn new(limit: usize) -> Self {
        Self::bounded(limit, DEFAULT_OCTETS)
    }

    /// Follows `limit` connections at once, which take `octets` in all, with what an observer keeps of them.
    ///
    /// One connection is followed whatever it takes, which is bounded too.
    pub fn bounded(limit: usize, octets: usize) -> Self {
        Self {
            limit: limit.max(1),
            most_octets: octets,
            seen: 0,
            open: HashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            latest: None,
            order: VecDeque::new(),
            octets: 0,
            now: Instant::ZERO,
            forgotten: 0,
        }
    }

    /// Octets that the connections take.
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Hands a segment to its connection.
    pub fn on_segment(&mut self, segment: &Segment, observer: &mut dyn Observer) {
        self.now = self.now.max(segment.at);
        let ends = Ends::of(segment);
        let known = match self.latest {
            Some((latest, slot)) if latest == ends => Some(slot),
            _ => self.open.get(&ends).copied(),
        };
        // The addresses of a damaged segment may be the damage, and so may its SYN.
        if segment.is_damaged() && known.is_none() {
            return;
        }
        let known = known.filter(|slot| {
            let over =
                !segment.is_damaged() && self.slots[*slot].as_ref().is_some_and(|connection| connection.is_succeeded_by(segment));
            if over {
                self.end(ends, segment.at, observer);
            }
            !over
        });
        let slot = known.unwrap_or_else(|| self.begin(ends, segment, observer));
        self.latest = Some((ends, slot));
        let Some(connection) = self.slots[slot].as_mut() else { return };
        let side = connection.side(segment);
        if connection.doubles.is_second(side.index(), segment) {
            return;
        }
        let id = connection.id;
        let before = connection.octets();
        let (side, kind) = connection.on_segment(segment, &mut |side, news| tell(observer, id, side, news));
        observer.on_segment(connection, side, segment, kind);
        connection.observed = observer.keeps();
        self.octets = self.octets + connection.octets() - before;
        while self.octets > self.most_octets && self.open.len() > 1 {
            self.make_room(segment.at, observer);
        }
    }

    /// A place for a connection that was not seen before.
    fn begin(&mut self, ends: Ends, segment: &Segment, observer: &mut dyn Observer) -> usize {
        self.retire(segment.at, observer);
        if self.open.len() == self.limit {
            self.make_room(segment.at, observer);
        }
        let connection = Connection::new(segment);
        self.octets += connection.octets();
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(connection);
        self.open.insert(ends, slot);
        self.order.push_back((ends, segment.number));
        self.seen += 1;
        slot
    }

    fn get(&self, ends: &Ends, id: u64) -> Option<&Connection> {
        self.slots[*self.open.get(ends)?].as_ref().filter(|connection| connection.id == id)
    }

    /// The capture went on until then at least, be it without segments of these connections.
    pub fn went_on_until(&mut self, at: Instant) {
        self.now = self.now.max(at);
    }

    /// The capture is over.
    pub fn finish(&mut self, observer: &mut dyn Observer) {
        while let Some((ends, id)) = self.order.pop_front() {
            if self.get(&ends, id).is_some() {
                self.end(ends, self.now, observer);
            }
        }
    }

    /// One is over, or no longer followed; it was until `now`.
    fn end(&mut self, ends: Ends, now: Instant, observer: &mut dyn Observer) {
        self.latest = None;
        let Some(slot) = self.open.remove(&ends) else { return };
        self.free.push(slot);
        if let Some(mut connection) = self.slots[slot].take() {
            self.octets -= connection.octets();
            let (id, reset, now) = (connection.id, connection.reset, connection.judged_at(now));
            for side in [Side::Client, Side::Server] {
                connection.halves[side.index()].finish(connection.ended, now, reset, &mut |news| tell(observer, id, side, news));
            }
            observer.on_end(connection);
        }
    }

    /// Ends connections that have been closed long enough, two looks for each that begins: so their number falls as fast as it grew.
    fn retire(&mut self, now: Instant, observer: &mut dyn Observer) {
        for _ in 0..2 {
            let Some((ends, id)) = self.order.pop_front() else { return };
            let Some(connection) = self.get(&ends, id) else { continue };
            if connection.is_closed() && now.since(connection.ended) > LINGER {
                self.end(ends, now, observer);
            } else {
                self.order.push_back((ends, id));
            }
        }
    }

    /// Lets one go: one that is closed, or has been quiet, near the oldest; else the oldest.
    fn make_room(&mut self, now: Instant, observer: &mut dyn Observer) {
        /// So many are looked at.
        const TRIES: usize = 64;
        let mut tries = TRIES.min(self.open.len());
        while let Some((ends, id)) = self.order.pop_front() {
            let Some(connection) = self.get(&ends, id) else { continue };
            tries -= 1;
            let quiet = now.since(connection.ended) > LINGER;
            let (closed, ended) = (connection.is_closed(), connection.ended);
            if closed || quiet || tries == 0 {
                self.forgotten += u64::from(!closed);
                // What would have come of the others behind their latest packet nobody knows.
                return self.end(ends, if closed { now } else { ended }, observer);
            }
            self.order.push_back((ends, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was told of data that nobody acknowledged, and how many connections ended.
    #[derive(Default)]
    struct Told {
        unanswered: Vec<(u64, Duration)>,
        ended: u64,
    }

    impl Observer for Told {
        fn on_unanswered(&mut self, connection: u64, _: Side, unanswered: Unanswered) {
            self.unanswered.push((connection, unanswered.waited));
        }

        fn on_end(&mut self, _: Connection) {
            self.ended += 1;
        }
    }

    /// A segment from or to the client of this number, `ms` after the beginning.
    fn segment(ms: u64, client: u8, to_server: bool, flags: Flags, (seq, ack): (u32, u32), len: u32) -> Segment {
        let mut ends = [SocketAddr::from(([10, 0, 0, client], 1)), SocketAddr::from(([10, 0, 1, 1], 80))];
        if !to_server {
            ends.reverse();
        }
        let at = Instant::ZERO + Duration::from_millis(ms);
        Segment { number: u64::from(client), at, ack, flags, ..Segment::plain(ends, seq, len) }
    }

    /// Data of client 1 that is not acknowledged; with `closed`, both ends have closed before.
    fn unacknowledged(closed: bool) -> Vec<Segment> {
        let flags = if closed { Flags::ACK | Flags::FIN } else { Flags::ACK };
        vec![segment(1000, 1, false, flags, (500, 100), 0), segment(1100, 1, true, flags, (100, 501), 1000)]
    }

    fn told(limit: usize, segments: &[Segment]) -> Told {
        let (mut told, mut connections) = (Told::default(), Connections::new(limit));
        for segment in segments {
            connections.on_segment(segment, &mut told);
        }
        connections.finish(&mut told);
        told
    }

    #[test]
    fn what_a_closed_connection_waited_for_does_not_depend_on_when_it_is_retired() {
        for next in [6_200, 90_000, 500_000] {
            let mut segments = unacknowledged(true);
            segments.push(segment(next, 2, true, Flags::ACK, (1, 1), 0));
            segments.push(segment(next + 1, 3, true, Flags::ACK, (1, 1), 0));
            assert_eq!(told(8, &segments).unanswered, [(1, CLOSED)], "the next connection after {next} ms");
        }
    }

    #[test]
    fn what_comes_late_belongs_to_a_closed_connection_however_many_others_there_are() {
        let fin = Flags::ACK | Flags::FIN;
        for (late, connections) in [(8_000, 1), (59_000, 1), (61_000, 2)] {
            for others in [0, 5] {
                let mut segments = vec![segment(1000, 1, false, fin, (500, 100), 0), segment(1100, 1, true, fin, (100, 501), 0)];
                let other = |client: u8| segment(7_000 + u64::from(client), client, true, Flags::ACK, (1, 1), 0);
                segments.extend((2..2 + others).map(other));
                segments.push(segment(1100 + late, 1, true, fin, (100, 501), 0));
                assert_eq!(told(8, &segments).ended, connections + u64::from(others), "{late} ms later, {others} others");
            }
        }
    }

    #[test]
    fn of_a_connection_that_had_to_make_room_nobody_knows_what_came() {
        for next in [10_000, 100_000] {
            let mut segments = unacknowledged(false);
            segments.push(segment(next, 2, true, Flags::ACK, (1, 1), 0));
            assert_eq!(told(1, &segments).unanswered, []);
            assert_eq!(told(8, &segments).unanswered, [(1, Duration::from_millis(next - 1100))]);
        }
    }
}
