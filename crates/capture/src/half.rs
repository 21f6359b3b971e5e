//! One direction of a connection's data: what was sent in it, what was acknowledged, and what was sent again.
//!
//! Positions in the stream are numbers of 64 bits whose low 32 bits are those of the header.

use crate::headers::{Segment, MAX_SACK_BLOCKS};
use crate::trips::Trips;
use std::collections::VecDeque;
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};
use whyloss_transport::Seq;

/// Added to the first sequence number, so that there is room for what lies before.
const ROOM: u64 = 1 << 32;
/// Pieces of a stream that are told apart between the acknowledgement and the newest octet; a larger window is followed in coarser pieces.
const MAX_PIECES: usize = 1 << 16;
/// Retransmissions whose need is not settled.
const MAX_PENDING: usize = 4096;
/// Duplicate acknowledgements from which on a sender repairs (RFC 5681, 3.2).
const DUPLICATES: u32 = 3;

/// Why a sender sent a segment again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trigger {
    /// Duplicate acknowledgements or SACK blocks: the first repair of a recovery.
    Fast,
    /// A further repair of that recovery, for what SACK blocks leave out or a partial acknowledgement asks for.
    Recovery,
    /// A timer sent the last segment of a flight again, to provoke an acknowledgement (RFC 8985, 7).
    TailProbe,
    /// The retransmission timer expired.
    Timeout,
    /// The retransmission timer expired again for the same data.
    BackedOff,
    /// A further repair of a recovery that a timeout began.
    AfterTimeout,
    /// A SYN that was not answered.
    Handshake,
    /// The capture does not tell.
    Unknown,
}

impl Trigger {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Recovery => "recovery",
            Self::TailProbe => "tail-probe",
            Self::Timeout => "timeout",
            Self::BackedOff => "backed-off-timeout",
            Self::AfterTimeout => "after-timeout",
            Self::Handshake => "handshake",
            Self::Unknown => "unknown",
        }
    }
}

/// What shows that a retransmission was not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unneeded {
    /// The receiver says that it got it twice (RFC 2883).
    Dsack,
    /// The acknowledgement echoes the timestamp of the original (RFC 3522).
    Echo,
    /// The acknowledgement came sooner than a round trip after it.
    TooSoon,
}

impl Unneeded {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dsack => "d-sack",
            Self::Echo => "timestamp",
            Self::TooSoon => "too-soon",
        }
    }
}

/// What a data segment was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// New data, or nothing that takes sequence space.
    New,
    /// Sent again.
    Retransmission(Trigger),
    /// It was overtaken: sent once, and late.
    OutOfOrder,
    /// The same packet again: doubled by the network or by the capture.
    Duplicate,
    /// An octet before the window, that the peer may answer.
    KeepAlive,
    /// An octet beyond a closed window.
    WindowProbe,
}

/// A segment that was sent again.
#[derive(Clone, Debug, PartialEq)]
pub struct Retransmission {
    /// The number of its record.
    pub number: u64,
    /// When it was captured.
    pub at: Instant,
    /// Position of its first octet.
    pub start: u64,
    /// Position at which the capture begins to know the stream.
    pub first: u64,
    /// Octets.
    pub len: u32,
    /// Why.
    pub trigger: Trigger,
    /// The record of the transmission before it; `None` if that never came to the capture.
    pub before: Option<u64>,
    /// Time since that, or since the gap showed.
    pub after: Duration,
    /// Duplicate acknowledgements that had come.
    pub duplicates: u32,
    /// Octets above it that were selectively acknowledged.
    pub sacked: u64,
    /// What shows that it was not needed; `None` if nothing does.
    pub unneeded: Option<Unneeded>,
    /// The transmission before it came to the capture, but damaged.
    pub damaged: bool,
    timestamp: Option<u32>,
    before_timestamp: Option<u32>,
    acknowledged: bool,
}

/// A transmission of a piece.
#[derive(Clone, Copy, Debug)]
struct Sending {
    number: u64,
    at: Instant,
    ip_id: Option<u16>,
    timestamp: Option<u32>,
    damaged: bool,
}

/// A piece of the stream that was seen, and not yet acknowledged.
#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u64,
    end: u64,
    last: Sending,
    again: bool,
    sacked: bool,
}

#[derive(Clone, Copy, Debug)]
struct Episode {
    /// Over when this is acknowledged.
    end: u64,
    began: Instant,
    by_timeout: bool,
}

/// Counts of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Segments with data.
    pub segments: u64,
    /// Octets of data in them.
    pub octets: u64,
    /// Segments that were sent again.
    pub retransmissions: u64,
    /// Those for which something shows that they were not needed.
    pub unneeded: u64,
    /// Segments that were overtaken.
    pub out_of_order: u64,
    /// Packets that came twice.
    pub duplicates: u64,
    /// Segments that arrived damaged at the capture.
    pub damaged: u64,
    /// Octets that were acknowledged, though the capture did not see them.
    pub unseen_octets: u64,
    /// Stretches of such octets.
    pub holes: u64,
    /// Keep-alives and probes of a closed window.
    pub probes: u64,
    /// Segments marked "congestion experienced".
    pub marked: u64,
    /// Times at which the peer's window was closed.
    pub closed_windows: u64,
}

/// One direction of a connection's data.
#[derive(Debug)]
pub struct Half {
    /// Where the capture begins to know the stream.
    first: Option<u64>,
    /// Whether a SYN is there.
    began: bool,
    una: u64,
    una_at: Instant,
    nxt: u64,
    pieces: VecDeque<Piece>,
    duplicates: u32,
    /// The receive window of the peer.
    window: Option<u64>,
    scale: Option<u8>,
    episode: Option<Episode>,
    timeouts: u32,
    pending: VecDeque<Retransmission>,
    /// Those of them whose data is not yet acknowledged.
    unacknowledged: usize,
    /// SACK blocks that are noted, all of whose pieces are marked; none after a piece in the middle changed.
    noted: [(u64, u64); MAX_SACK_BLOCKS],
    /// Largest segment with data.
    pub mss: u32,
    /// Round trips.
    pub trips: Trips,
    /// What was counted.
    pub counts: Counts,
}

impl Default for Half {
    fn default() -> Self {
        Self {
            first: None,
            began: false,
            una: 0,
            una_at: Instant::ZERO,
            nxt: 0,
            pieces: VecDeque::new(),
            duplicates: 0,
            window: None,
            scale: None,
            episode: None,
            timeouts: 0,
            pending: VecDeque::new(),
            unacknowledged: 0,
            noted: [(0, 0); MAX_SACK_BLOCKS],
            mss: 0,
            trips: Trips::default(),
            counts: Counts::default(),
        }
    }
}

impl Half {
    /// A segment of this direction; `settled` gets the retransmissions of which no more will be known.
    pub fn on_segment(&mut self, segment: &Segment, settled: &mut dyn FnMut(Retransmission)) -> Kind {
        let syn = segment.flags.contains(Flags::SYN);
        if self.first.is_none() {
            self.begin(segment.seq, segment.at);
            self.began = syn;
        }
        self.counts.marked += u64::from(segment.ecn == 3);
        let len = u64::from(segment.seq_len());
        if len == 0 {
            return Kind::New;
        }
        let start = self.position(segment.seq);
        let end = start + len;
        self.mss = self.mss.max(segment.len);
        if segment.len > 0 {
            self.counts.segments += 1;
            self.counts.octets += u64::from(segment.len);
        }
        if segment.is_damaged() {
            // What its headers say may be the damage. Only what repeats a place that fits is believed.
            self.counts.damaged += 1;
            if start > self.nxt + (1 << 24) || end + (1 << 24) < self.una {
                return Kind::New;
            }
        }
        let kind = self.kind(segment, start, end, syn);
        match kind {
            Kind::Retransmission(trigger) => self.again(segment, start, trigger, settled),
            Kind::OutOfOrder => self.counts.out_of_order += 1,
            Kind::Duplicate => {
                self.counts.duplicates += 1;
                return kind;
            }
            Kind::KeepAlive | Kind::WindowProbe => {
                self.counts.probes += 1;
                return kind;
            }
            Kind::New => {}
        }
        self.put(segment, start, end);
        kind
    }

    /// An acknowledgement of this direction, from the peer.
    pub fn on_ack(&mut self, segment: &Segment, settled: &mut dyn FnMut(Retransmission)) {
        if !segment.flags.contains(Flags::ACK) || segment.flags.contains(Flags::RST) || segment.is_damaged() {
            return;
        }
        if self.first.is_none() {
            // Only acknowledgements were captured so far: what they acknowledge lies before what comes.
            self.begin(segment.ack, segment.at);
        }
        let syn = segment.flags.contains(Flags::SYN);
        if syn {
            self.scale = segment.options.window_scale;
        }
        let shift = if syn { 0 } else { self.scale.unwrap_or(0) };
        let window = u64::from(segment.window) << shift;
        let was_open = self.window.is_none_or(|window| window > 0);
        self.counts.closed_windows += u64::from(was_open && window == 0);
        let same_window = self.window == Some(window);
        self.window = Some(window);
        let ack = self.position(segment.ack);
        self.dsack(segment, ack);
        self.sack(segment);
        if ack > self.una {
            self.acknowledge(segment, ack);
        } else if ack == self.una
            && segment.seq_len() == 0
            && self.nxt > self.una
            && (same_window || !segment.options.sack().is_empty())
        {
            self.duplicates += 1;
        }
        while self.pending.front().is_some_and(|oldest| oldest.acknowledged && segment.at.since(oldest.at) > self.patience()) {
            self.settle(settled);
        }
    }

    /// No more segments will come.
    pub fn finish(&mut self, settled: &mut dyn FnMut(Retransmission)) {
        while !self.pending.is_empty() {
            self.settle(settled);
        }
    }

    /// Octets acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.first.map_or(0, |first| self.una.saturating_sub(first + u64::from(self.began)))
    }

    /// Octets that were sent and are not acknowledged, as the capture sees them.
    pub fn outstanding(&self) -> u64 {
        self.nxt.saturating_sub(self.una)
    }

    /// Pieces and retransmissions for which there is room.
    pub fn weight(&self) -> usize {
        self.pieces.capacity() + self.pending.capacity()
    }

    /// How long a D-SACK may take.
    fn patience(&self) -> Duration {
        self.trips.smoothed().map_or(Duration::from_secs(1), |trip| trip * 2)
    }

    fn settle(&mut self, settled: &mut dyn FnMut(Retransmission)) {
        if let Some(retransmission) = self.pending.pop_front() {
            self.unacknowledged -= usize::from(!retransmission.acknowledged);
            self.counts.unneeded += u64::from(retransmission.unneeded.is_some());
            settled(retransmission);
        }
    }

    fn begin(&mut self, seq: u32, at: Instant) {
        let position = ROOM + u64::from(seq);
        self.first = Some(position);
        (self.una, self.nxt, self.una_at) = (position, position, at);
    }

    /// The position of a sequence number, near what is under way.
    fn position(&self, seq: u32) -> u64 {
        Seq(seq).near(self.nxt)
    }

    /// The first piece that has octets of a stretch.
    fn seen(&self, start: u64, end: u64) -> Option<&Piece> {
        // Pieces stand in order and do not overlap.
        let index = self.pieces.partition_point(|piece| piece.end <= start);
        self.pieces.get(index).filter(|piece| piece.start < end)
    }

    /// Where the pieces begin that start at `position` or above.
    fn index_from(&self, position: u64) -> usize {
        self.pieces.partition_point(|piece| piece.start < position)
    }

    /// What a segment with data is.
    fn kind(&self, segment: &Segment, start: u64, end: u64, syn: bool) -> Kind {
        if start >= self.nxt {
            let probe = self.window == Some(0) && segment.len == 1 && start == self.una && self.nxt == self.una;
            return if probe { Kind::WindowProbe } else { Kind::New };
        }
        if syn {
            return Kind::Retransmission(Trigger::Handshake);
        }
        if segment.len <= 1 && end <= self.una && end + 1 >= self.una && self.una == self.nxt {
            return Kind::KeepAlive;
        }
        if segment.len == 1 && self.window == Some(0) {
            return Kind::WindowProbe;
        }
        let seen = self.seen(start, end);
        match seen {
            Some(piece) if self.is_same_packet(segment, &piece.last) => Kind::Duplicate,
            None if end > self.una && self.is_late(segment, end) => Kind::OutOfOrder,
            _ => Kind::Retransmission(self.trigger(segment, start, end, seen)),
        }
    }

    /// The packet that was seen is here again, and was not sent again.
    fn is_same_packet(&self, segment: &Segment, last: &Sending) -> bool {
        if segment.options.timestamps.map(|(value, _)| value) != last.timestamp {
            return false;
        }
        let lag = segment.at.since(last.at);
        let soon = self.trips.shortest().is_none_or(|trip| lag < trip / 2) && lag < Duration::from_millis(100);
        match (segment.ip_id, last.ip_id) {
            (Some(this), Some(that)) if this != 0 || that != 0 => this == that && soon,
            _ => soon && self.duplicates < DUPLICATES && self.sacked_above(0) == 0,
        }
    }

    /// What fills a gap was sent before what showed the gap.
    fn is_late(&self, segment: &Segment, end: u64) -> bool {
        let Some(after) = self.pieces.range(self.index_from(end)..).find(|piece| !piece.again) else { return false };
        let lag = segment.at.since(after.last.at);
        if let (Some((this, _)), Some(that)) = (segment.options.timestamps, after.last.timestamp) {
            // A sender's clock does not go back. If both left within one of its ticks, other evidence has to decide.
            if this != that {
                return Seq(this).precedes(Seq(that));
            }
        }
        if let (Some(this), Some(that)) = (segment.ip_id, after.last.ip_id) {
            let ahead = that.wrapping_sub(this);
            if ahead != 0 && ahead < 1000 {
                return true;
            }
            if this.wrapping_sub(that) < 1000 && this != that {
                return false;
            }
        }
        let repaired = self.duplicates >= DUPLICATES || self.sacked_above(end) >= u64::from(DUPLICATES * self.mss);
        !repaired || self.trips.shortest().is_some_and(|trip| lag < trip / 4)
    }

    /// Octets above `position` that were selectively acknowledged.
    fn sacked_above(&self, position: u64) -> u64 {
        let above = self.pieces.range(self.index_from(position)..);
        above.filter(|piece| piece.sacked).map(|piece| piece.end - piece.start).sum()
    }

    fn trigger(&self, segment: &Segment, start: u64, end: u64, seen: Option<&Piece>) -> Trigger {
        let previous = seen.map(|piece| piece.last.at).or_else(|| self.gap_shown(end)).unwrap_or(self.una_at);
        let waited = segment.at.since(previous.max(self.una_at.min(segment.at)));
        let since_sent = segment.at.since(previous);
        let timer = self.trips.timeout();
        let repeated =
            self.episode.is_some_and(|episode| seen.is_some_and(|piece| piece.again && piece.last.at >= episode.began));
        // A timer that expires waits for the first segment that is not acknowledged, from the last progress on.
        let expired = start <= self.una && waited >= timer - timer / 10;
        if repeated && start <= self.una && since_sent >= timer - timer / 10 {
            let newer_arrived = self.pieces.iter().any(|piece| piece.sacked && piece.last.at > previous);
            return if newer_arrived && !self.episode.is_some_and(|episode| episode.by_timeout) {
                Trigger::Timeout
            } else if self.timeouts > 0 {
                Trigger::BackedOff
            } else {
                Trigger::Timeout
            };
        }
        if let Some(episode) = self.episode.filter(|episode| start < episode.end) {
            return if episode.by_timeout {
                Trigger::AfterTimeout
            } else if expired && self.duplicates < DUPLICATES {
                Trigger::Timeout
            } else {
                Trigger::Recovery
            };
        }
        let evidence = self.duplicates >= DUPLICATES || self.sacked_above(end) > 0 || self.duplicates > 0 && waited < timer;
        if evidence && !(expired && self.duplicates < DUPLICATES && self.sacked_above(end) == 0) {
            return Trigger::Fast;
        }
        if end >= self.nxt
            && (start > self.una || waited < timer - timer / 10)
            && self.trips.smoothed().is_some_and(|trip| since_sent >= trip)
        {
            return Trigger::TailProbe;
        }
        if expired || start <= self.una && self.trips.smoothed().is_some_and(|trip| waited > trip * 2) {
            return Trigger::Timeout;
        }
        Trigger::Unknown
    }

    /// When something behind a gap was first seen.
    fn gap_shown(&self, end: u64) -> Option<Instant> {
        self.pieces.get(self.index_from(end)).map(|piece| piece.last.at)
    }

    /// A segment is sent again.
    fn again(&mut self, segment: &Segment, start: u64, trigger: Trigger, settled: &mut dyn FnMut(Retransmission)) {
        let end = start + u64::from(segment.seq_len());
        let seen = self.seen(start, end).copied();
        let previous = seen.map(|piece| piece.last.at).or_else(|| self.gap_shown(end)).unwrap_or(self.una_at);
        match trigger {
            Trigger::Fast => self.episode = Some(Episode { end: self.nxt, began: segment.at, by_timeout: false }),
            Trigger::Timeout | Trigger::BackedOff => {
                self.timeouts += 1;
                self.episode = Some(Episode { end: self.nxt, began: segment.at, by_timeout: true });
            }
            _ => {}
        }
        self.counts.retransmissions += 1;
        if self.pending.len() == MAX_PENDING {
            self.settle(settled);
        }
        self.unacknowledged += 1;
        self.pending.push_back(Retransmission {
            number: segment.number,
            at: segment.at,
            start,
            first: self.first.unwrap_or(start),
            len: segment.len,
            trigger,
            before: seen.map(|piece| piece.last.number),
            after: segment.at.since(previous),
            duplicates: self.duplicates,
            sacked: self.sacked_above(end),
            unneeded: None,
            damaged: seen.is_some_and(|piece| piece.last.damaged),
            timestamp: segment.options.timestamps.map(|(value, _)| value),
            before_timestamp: seen.and_then(|piece| piece.last.timestamp),
            acknowledged: false,
        });
    }

    /// Notes that a stretch was seen.
    fn put(&mut self, segment: &Segment, start: u64, end: u64) {
        let start = start.max(self.una.min(end));
        let last = Sending {
            number: segment.number,
            at: segment.at,
            ip_id: segment.ip_id,
            timestamp: segment.options.timestamps.map(|(value, _)| value),
            damaged: segment.is_damaged(),
        };
        if start == end {
            return;
        }
        let piece = Piece { start, end, last, again: false, sacked: false };
        if start >= self.nxt {
            self.nxt = end;
            if self.pieces.len() < MAX_PIECES {
                self.pieces.push_back(piece);
            } else if let Some(newest) = self.pieces.back_mut() {
                newest.end = end;
            }
            return;
        }
        self.nxt = self.nxt.max(end);
        self.noted = Default::default();
        // Split what overlaps at the edges, mark what lies between, fill what is missing.
        self.split(start);
        self.split(end);
        let from = self.pieces.partition_point(|piece| piece.end <= start);
        let to = self.pieces.partition_point(|piece| piece.start < end);
        let mut filled = Vec::with_capacity(to - from + 1);
        let mut at = start;
        for old in self.pieces.range(from..to) {
            if old.start > at {
                filled.push(Piece { start: at, end: old.start, ..piece });
            }
            filled.push(Piece { last, again: true, ..*old });
            at = old.end;
        }
        if at < end {
            filled.push(Piece { start: at, end, ..piece });
        }
        if self.pieces.len() + filled.len() - (to - from) > MAX_PIECES {
            return;
        }
        let tail = self.pieces.split_off(to);
        self.pieces.truncate(from);
        self.pieces.extend(filled);
        self.pieces.extend(tail);
    }

    /// Parts the piece around a position there.
    fn split(&mut self, position: u64) {
        let index = self.pieces.partition_point(|piece| piece.end <= position);
        if let Some(piece) = self.pieces.get_mut(index).filter(|piece| piece.start < position) {
            let rest = Piece { start: position, ..*piece };
            piece.end = position;
            self.pieces.insert(index + 1, rest);
        }
    }

    /// A D-SACK: the first block lies below the acknowledgement or inside the second (RFC 2883, 4).
    fn dsack(&mut self, segment: &Segment, ack: u64) {
        let Some(&(left, right)) = segment.options.sack().first() else { return };
        let (left, right) = (self.position(left), self.position(right));
        let second = segment.options.sack().get(1).map(|&(left, right)| (self.position(left), self.position(right)));
        if left >= right || right > ack && second.is_none_or(|(start, end)| left < start || right > end) {
            return;
        }
        // The latest one that it can be.
        let doubled = self.pending.iter_mut().rev().find(|sent| sent.start < right && sent.start + u64::from(sent.len) > left);
        if let Some(sent) = doubled {
            sent.unneeded.get_or_insert(Unneeded::Dsack);
        }
    }

    fn sack(&mut self, segment: &Segment) {
        let mut noted = [(0, 0); MAX_SACK_BLOCKS];
        for (slot, &(left, right)) in noted.iter_mut().zip(segment.options.sack()) {
            let (left, right) = (self.position(left), self.position(right));
            if left >= right || left < self.una || right > self.nxt {
                continue;
            }
            *slot = (left, right);
            // A receiver repeats its blocks: what an earlier one told is not looked at again.
            let known = self.noted.iter().find(|block| block.0 <= left && left <= block.1).map_or(left, |block| block.1);
            if right <= known {
                continue;
            }
            let from = self.index_from(left).max(self.pieces.partition_point(|piece| piece.end <= known));
            let mut newest = None;
            for piece in self.pieces.range_mut(from..).take_while(|piece| piece.end <= right) {
                if !piece.sacked && !piece.again {
                    newest = Some(piece.last.at);
                }
                piece.sacked = true;
            }
            if let Some(sent) = newest {
                self.trips.on_right(segment.at.since(sent));
            }
            self.arrived(segment, left, right);
        }
        if !segment.options.sack().is_empty() {
            self.noted = noted;
        }
    }

    /// New data is acknowledged.
    fn acknowledge(&mut self, segment: &Segment, ack: u64) {
        self.count_unseen(ack);
        let mut newest = None;
        while let Some(piece) = self.pieces.front().filter(|piece| piece.start < ack) {
            if piece.end > ack {
                self.split(ack);
                continue;
            }
            if !piece.again && !piece.sacked {
                newest = Some(piece.last.at);
            }
            self.pieces.pop_front();
        }
        if let Some(sent) = newest {
            self.trips.on_right(segment.at.since(sent));
        }
        self.arrived(segment, self.una, ack);
        self.una = ack;
        self.una_at = segment.at;
        self.nxt = self.nxt.max(ack);
        self.duplicates = 0;
        if self.episode.is_some_and(|episode| ack >= episode.end) {
            self.episode = None;
            self.timeouts = 0;
        }
    }

    /// What is acknowledged and was never seen, the capture has missed.
    fn count_unseen(&mut self, ack: u64) {
        let mut at = self.una;
        let mut count = |from: u64, to: u64| {
            if to > from {
                self.counts.holes += 1;
                self.counts.unseen_octets += to - from;
            }
        };
        for piece in self.pieces.iter().take_while(|piece| piece.start < ack) {
            count(at, piece.start);
            at = at.max(piece.end);
        }
        count(at, ack);
    }

    /// A stretch has arrived: was each retransmission in it needed?
    fn arrived(&mut self, segment: &Segment, from: u64, to: u64) {
        if self.unacknowledged == 0 {
            return;
        }
        let echo = segment.options.timestamps.map(|(_, echo)| echo);
        let (una, shortest) = (self.una, self.trips.shortest());
        for sent in self
            .pending
            .iter_mut()
            .filter(|sent| !sent.acknowledged && sent.start >= from && sent.start + u64::from(sent.len) <= to)
        {
            sent.acknowledged = true;
            self.unacknowledged -= 1;
            let ticked = |this: &u32| sent.before_timestamp.is_some_and(|before| before != *this);
            if let (Some(echo), Some(this)) = (echo, sent.timestamp.filter(ticked)) {
                // Only what moves the left edge is echoed (RFC 7323, 4.3). An earlier tick is that of the transmission before.
                if sent.start == una && from == una && Seq(echo).precedes(Seq(this)) {
                    sent.unneeded.get_or_insert(Unneeded::Echo);
                }
            } else if sent.before.is_some() && shortest.is_some_and(|trip| segment.at.since(sent.at) < trip / 2) {
                sent.unneeded.get_or_insert(Unneeded::TooSoon);
            }
        }
    }
}
