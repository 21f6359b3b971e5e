//! What the sender of a direction knew, rebuilt from what a capture shows of it: its segments, acknowledgements and losses, as the events that
//! the engine tells its parts.
//!
//! A capture is rarely taken at the sender. Each segment is therefore dated back to when the acknowledgement that let it out passed the capture,
//! so that delays are whole round trips wherever the capture was taken: a queue before the capture shows in the first part, one behind it in
//! the second.

use crate::half::{Kind, Trigger, MAX_BEFORE_DAMAGED};
use crate::headers::Segment;
use std::collections::VecDeque;
use whyloss_transport::path::{self, Ack, Loss, Path, Sent};
use whyloss_transport::segment::{Flags, Options, Timestamps};
use whyloss_transport::time::{Duration, Instant};
use whyloss_transport::Seq;

/// Added to the first sequence number, so that there is room for what lies before.
const ROOM: u64 = 1 << 32;
/// Segments between the acknowledgement and the newest octet that are told apart; of a larger window only the older part is.
const MAX_PIECES: usize = 1 << 14;
/// Acknowledgements whose timestamps are remembered until data echoes them.
const MAX_ECHOES: usize = 512;
/// The same while nothing is outstanding: many directions never carry data.
const MAX_IDLE_ECHOES: usize = 16;
/// Segments that must have arrived beyond one that is taken for lost (RFC 6675, 2).
const DUPLICATES: u32 = 3;
/// The shortest timeout (as common senders have it; RFC 6298, 2.4 says 1 s).
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);

/// A segment that is outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Position of its first octet.
    pub start: u64,
    /// Position behind its last one.
    pub end: u64,
    /// The record of its latest transmission; `None` if that never came to the capture.
    pub number: Option<u64>,
    /// When that was captured; if it was not, when the first one behind it was.
    pub at: Instant,
    /// When the newest data before it was captured, if it was not.
    pub after: Instant,
    /// When the sender sent it, by the clock of the acknowledgements in the capture.
    pub left: Instant,
    /// How often it was sent again.
    pub transmission: u32,
    /// Number of this transmission among all of the direction, in the order of sending.
    pub order: u64,
    /// Octets outstanding with it, its own included.
    pub flight: u64,
    /// ECN field.
    pub ecn: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Its latest transmission came to the capture damaged.
    pub damaged: bool,
    /// It was selectively acknowledged.
    pub sacked: bool,
    /// Its latest transmission was taken for lost.
    pub lost: bool,
}

/// Who wants to know what the sender knew.
pub trait Witness {
    /// A segment with data left, whether it came to the capture or not.
    fn on_sent(&mut self, sent: &Sent, piece: &Piece) {
        let _ = (sent, piece);
    }

    /// An acknowledgement came.
    fn on_ack(&mut self, ack: &Ack) {
        let _ = ack;
    }

    /// These are taken for lost at this moment.
    fn on_lost(&mut self, losses: &[(Loss, Piece)]) {
        let _ = losses;
    }

    /// The segment with this record, captured at `at`, repairs what was taken for lost.
    fn on_repair(&mut self, number: u64, at: Instant, lost: &Piece) {
        let _ = (number, at, lost);
    }
}

/// Follows one direction.
#[derive(Debug)]
pub struct Scoreboard {
    path: Path,
    /// Whether a position is known.
    began: bool,
    pieces: VecDeque<Piece>,
    /// Timestamps of acknowledgements, with when they first passed.
    echoes: VecDeque<(u32, Instant)>,
    /// The first part of the round trip, as the latest echo showed it.
    first_part: Duration,
    duplicates: u32,
    /// Pieces that were selectively acknowledged.
    sacked: usize,
    /// What lies before this was judged by the SACK blocks that there are.
    judged: u64,
    /// A loss episode lasts until this is acknowledged.
    recover: Option<u64>,
    /// Largest flight of this round trip and of the one before, and when the round ends.
    flights: (u64, u64),
    round_end: u64,
    /// Transmissions so far.
    sent: u64,
    /// When new data was captured last.
    newest: Option<Instant>,
}

impl Default for Scoreboard {
    fn default() -> Self {
        let mut path = Path::default();
        path.ssthresh = u64::MAX;
        path.rto = Duration::from_secs(1);
        Self {
            path,
            began: false,
            pieces: VecDeque::new(),
            echoes: VecDeque::new(),
            first_part: Duration::ZERO,
            duplicates: 0,
            sacked: 0,
            judged: 0,
            recover: None,
            flights: (0, 0),
            round_end: 0,
            sent: 0,
            newest: None,
        }
    }
}

impl Scoreboard {
    /// Octets for which it has room beside itself.
    pub fn octets(&self) -> usize {
        self.pieces.capacity() * size_of::<Piece>() + self.echoes.capacity() * size_of::<(u32, Instant)>()
    }

    /// The path as the sender knows it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is outstanding, in the order of the stream.
    pub fn pieces(&self) -> &VecDeque<Piece> {
        &self.pieces
    }

    /// Position of a sequence number.
    pub fn position(&self, seq: u32) -> u64 {
        Seq(seq).near(self.path.nxt)
    }

    fn begin(&mut self, seq: u32) {
        if !self.began {
            self.began = true;
            (self.path.una, self.path.nxt) = (ROOM + u64::from(seq), ROOM + u64::from(seq));
            self.round_end = self.path.nxt;
        }
    }

    /// A segment of this direction, which is of this kind.
    pub fn on_segment(&mut self, segment: &Segment, kind: Kind, witness: &mut impl Witness) {
        self.begin(segment.seq);
        let len = u64::from(segment.seq_len());
        if len == 0 {
            return;
        }
        let start = self.position(segment.seq);
        let end = start + len;
        if segment.flags.contains(Flags::SYN) {
            // A SYN is not data; whoever follows the stream begins behind it.
            (self.path.una, self.path.nxt) = (self.path.una.max(start), self.path.nxt.max(end));
            return;
        }
        self.path.now = segment.at;
        self.path.mss = self.path.mss.max(segment.len);
        self.on_echo(segment);
        match kind {
            Kind::New if start >= self.path.nxt => self.on_new(segment, start, end, witness),
            Kind::Retransmission(trigger) => self.on_again(segment, (start, end), trigger, witness),
            Kind::OutOfOrder => {
                let piece = self.piece_of(segment, start, end);
                for old in self.pieces.iter_mut().filter(|old| old.number.is_none() && old.start >= start && old.start < end) {
                    *old =
                        Piece { start: old.start, end: old.end, left: old.left, flight: old.flight, sacked: old.sacked, ..piece };
                }
            }
            _ => {}
        }
    }

    /// Data echoes an acknowledgement's timestamp: so long it took from the capture to the sender and back.
    fn on_echo(&mut self, segment: &Segment) {
        let Some((_, echo)) = segment.options.timestamps else { return };
        while let Some(&(value, at)) = self.echoes.front() {
            if Seq(echo).precedes(Seq(value)) {
                break;
            }
            self.echoes.pop_front();
            if value == echo && segment.at >= at {
                self.first_part = segment.at.since(at);
            }
        }
    }

    fn piece_of(&self, segment: &Segment, start: u64, end: u64) -> Piece {
        Piece {
            start,
            end,
            number: Some(segment.number),
            at: segment.at,
            after: segment.at,
            left: self.left(segment.at),
            transmission: 0,
            order: 0,
            flight: end.saturating_sub(self.path.una),
            ecn: segment.ecn,
            hop_limit: segment.hop_limit,
            damaged: segment.is_damaged(),
            sacked: false,
            lost: false,
        }
    }

    fn left(&self, at: Instant) -> Instant {
        Instant::from_nanos(at.as_nanos().saturating_sub(self.first_part.as_nanos()))
    }

    fn on_new(&mut self, segment: &Segment, start: u64, end: u64, witness: &mut impl Witness) {
        let piece = self.piece_of(segment, start, end);
        // What lies between was sent and did not come to the capture; it left between its neighbours.
        let full = u64::from(self.path.mss.max(1));
        let missing = (start - self.path.nxt).div_ceil(full);
        if segment.is_damaged() && missing > MAX_BEFORE_DAMAGED {
            return;
        }
        if missing <= (MAX_PIECES - self.pieces.len().min(MAX_PIECES)) as u64 {
            let after = self.newest.map_or(segment.at, |newest| newest.min(segment.at));
            let before = self.pieces.back().map_or(piece.left, |last| last.left.min(piece.left));
            let apart = piece.left.since(before) / (missing + 1);
            for index in 0..missing {
                let from = self.path.nxt;
                let to = if index + 1 == missing { start } else { from + full };
                let left = before + apart * (index + 1);
                self.push(Piece { start: from, end: to, number: None, after, left, damaged: false, ..piece }, witness);
            }
        }
        self.path.nxt = start;
        self.newest = Some(segment.at);
        self.push(piece, witness);
    }

    fn push(&mut self, piece: Piece, witness: &mut impl Witness) {
        let piece = Piece { order: self.next_order(), ..piece };
        let mut sent = Sent::new(piece.left, piece.start, (piece.end - piece.start) as u32);
        sent.was_idle = self.path.nxt == self.path.una;
        self.path.nxt = piece.end;
        self.path.flight = self.path.nxt - self.path.una;
        self.flights.0 = self.flights.0.max(self.path.flight);
        if self.pieces.len() < MAX_PIECES {
            self.pieces.push_back(piece);
        }
        witness.on_sent(&sent, &piece);
    }

    /// What is repaired never came to the capture, nor anything behind it: it left within a round trip of what came last.
    fn on_unseen(&mut self, segment: &Segment, start: u64, end: u64, witness: &mut impl Witness) {
        let after = self.newest.map_or(segment.at, |newest| newest.min(segment.at));
        let at = (after + self.path.srtt.unwrap_or_default()).min(segment.at);
        let piece = self.piece_of(segment, start, end);
        self.path.nxt = start;
        self.push(Piece { number: None, at, after, left: self.left(after), damaged: false, ..piece }, witness);
    }

    fn next_order(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    fn on_again(&mut self, segment: &Segment, (start, end): (u64, u64), trigger: Trigger, witness: &mut impl Witness) {
        let trigger = path::Trigger::from(trigger);
        if end > self.path.nxt {
            self.on_unseen(segment, start.max(self.path.nxt), end, witness);
        }
        self.split(start);
        self.split(end);
        let from = self.pieces.partition_point(|piece| piece.end <= start);
        let to = self.pieces.partition_point(|piece| piece.start < end);
        let found: Vec<usize> = (from..to.max(from)).filter(|&index| !self.pieces[index].lost).collect();
        self.take_for_lost(&found, trigger, witness);
        let again = self.piece_of(segment, start, end);
        for index in from..to.max(from) {
            let lost = self.pieces[index];
            witness.on_repair(segment.number, segment.at, &lost);
            let transmission = lost.transmission + 1;
            let order = self.next_order();
            let piece = Piece {
                start: lost.start,
                end: lost.end,
                transmission,
                order,
                sacked: lost.sacked,
                flight: lost.flight,
                ..again
            };
            self.pieces[index] = piece;
            let mut sent = Sent::new(piece.left, piece.start, (piece.end - piece.start) as u32);
            sent.transmission = transmission;
            witness.on_sent(&sent, &piece);
        }
    }

    /// Parts the piece around a position there; of too many, whole ones are taken.
    fn split(&mut self, position: u64) {
        if self.pieces.len() >= MAX_PIECES {
            return;
        }
        let index = self.pieces.partition_point(|piece| piece.end <= position);
        if let Some(piece) = self.pieces.get_mut(index).filter(|piece| piece.start < position) {
            let rest = Piece { start: position, ..*piece };
            piece.end = position;
            self.sacked += usize::from(rest.sacked);
            self.pieces.insert(index + 1, rest);
        }
    }

    /// These pieces are taken for lost.
    fn take_for_lost(&mut self, found: &[usize], trigger: path::Trigger, witness: &mut impl Witness) {
        if found.is_empty() {
            return;
        }
        let first = self.recover.is_none();
        if first {
            self.recover = Some(self.path.nxt);
            self.path.cwnd = self.flights.0.max(self.flights.1).max(u64::from(self.path.mss));
        }
        let losses: Vec<(Loss, Piece)> = found
            .iter()
            .enumerate()
            .map(|(order, &index)| {
                let piece = self.pieces[index];
                let mut loss = Loss::new(&self.path, piece.start, (piece.end - piece.start) as u32, piece.left, trigger);
                loss.transmission = piece.transmission;
                loss.first_of_episode = first && order == 0;
                (loss, piece)
            })
            .collect();
        witness.on_lost(&losses);
        for &index in found {
            self.pieces[index].lost = true;
        }
        if first {
            // RFC 5681, 3.1: what a sender without anything better does.
            self.path.ssthresh = self.path.cwnd / 2;
            self.path.cwnd = if trigger == path::Trigger::Timeout { u64::from(self.path.mss) } else { self.path.ssthresh };
            self.flights = (0, 0);
        }
    }

    /// An acknowledgement of this direction, from the peer.
    pub fn on_ack(&mut self, segment: &Segment, witness: &mut impl Witness) {
        if !segment.flags.contains(Flags::ACK) || segment.flags.contains(Flags::RST) || segment.is_damaged() {
            return;
        }
        self.begin(segment.ack);
        if let Some((value, _)) = segment.options.timestamps {
            if self.echoes.back().is_none_or(|&(last, _)| Seq(last).precedes(Seq(value))) {
                let idle = self.path.nxt == self.path.una;
                if self.echoes.len() == MAX_ECHOES || idle && self.echoes.len() >= MAX_IDLE_ECHOES {
                    self.echoes.pop_front();
                }
                self.echoes.push_back((value, segment.at));
            }
        }
        if self.path.nxt == self.path.una && self.position(segment.ack) <= self.path.una {
            return;
        }
        self.path.now = segment.at;
        let mut news = News::default();
        self.sack(segment, &mut news);
        let ack = self.position(segment.ack);
        let before = self.path.una;
        if ack > before {
            self.acknowledge(ack, &mut news);
        }
        let duplicate = ack == before && segment.seq_len() == 0;
        if duplicate {
            self.duplicates += 1;
        }
        self.path.delivered += news.delivered;
        self.path.flight = self.path.nxt - self.path.una;
        let delay = news.newest.filter(|_| !news.ambiguous).map(|(_, left)| segment.at.since(left));
        let rtt = news.cumulative.map(|left| segment.at.since(left));
        if let Some(rtt) = rtt {
            self.measure(rtt);
        }
        if self.recover.is_some_and(|recover| ack >= recover) {
            self.recover = None;
        }
        if ack >= self.round_end && ack > before {
            self.flights = (self.path.flight, self.flights.0);
            self.round_end = self.path.nxt;
        }
        if self.recover.is_none() {
            self.path.cwnd = self.flights.0.max(self.flights.1).max(u64::from(self.path.mss));
        }
        let options = options(segment);
        let mut event = Ack::new(&self.path, &options);
        event.acked = ack.saturating_sub(before);
        event.delivered = news.delivered;
        event.rtt = rtt;
        event.delay = delay;
        event.newest_sent_at = news.newest.filter(|_| !news.ambiguous).map(|(_, left)| left);
        event.duplicate = duplicate;
        event.ece = segment.flags.contains(Flags::ECE);
        event.in_recovery = self.recover.is_some();
        witness.on_ack(&event);
        self.detect(witness);
    }

    /// What acknowledgements leave out, the sender takes for lost (RFC 6675, 4; without SACK RFC 5681, 3.2).
    fn detect(&mut self, witness: &mut impl Witness) {
        let threshold = DUPLICATES;
        let mut above = 0;
        let mut found = Vec::new();
        if self.sacked > 0 {
            let mut judged = self.judged;
            for (index, piece) in self.pieces.iter().enumerate().rev().take_while(|(_, piece)| piece.start >= self.judged) {
                above += u32::from(piece.sacked);
                if above >= threshold {
                    judged = judged.max(piece.start);
                    if !piece.sacked && !piece.lost && piece.transmission == 0 {
                        found.push(index);
                    }
                }
            }
            self.judged = judged;
            found.reverse();
        } else if self.duplicates == threshold && self.pieces.front().is_some_and(|piece| !piece.lost && piece.transmission == 0)
        {
            found.push(0);
        }
        self.take_for_lost(&found, path::Trigger::DuplicateAcks, witness);
    }

    fn sack(&mut self, segment: &Segment, news: &mut News) {
        for &(left, right) in segment.options.sack() {
            let (left, right) = (self.position(left), self.position(right));
            if left >= right || left < self.path.una || right > self.path.nxt {
                continue;
            }
            let from = self.pieces.partition_point(|piece| piece.start < left);
            for piece in self.pieces.range_mut(from..).take_while(|piece| piece.end <= right) {
                if !piece.sacked {
                    piece.sacked = true;
                    self.sacked += 1;
                    news.deliver(piece);
                }
            }
        }
    }

    fn acknowledge(&mut self, ack: u64, news: &mut News) {
        while let Some(piece) = self.pieces.front_mut().filter(|piece| piece.start < ack) {
            if piece.end > ack {
                if !piece.sacked {
                    news.delivered += ack - piece.start;
                }
                piece.start = ack;
                break;
            }
            if !piece.sacked {
                news.deliver(piece);
                news.cumulative = (piece.transmission == 0 && piece.number.is_some()).then_some(piece.left);
            }
            self.sacked -= usize::from(piece.sacked);
            self.pieces.pop_front();
        }
        self.path.una = ack;
        self.path.nxt = self.path.nxt.max(ack);
        self.duplicates = 0;
    }

    /// RFC 6298, 2.
    fn measure(&mut self, rtt: Duration) {
        let path = &mut self.path;
        path.latest_rtt = Some(rtt);
        path.min_rtt = Some(path.min_rtt.map_or(rtt, |least| least.min(rtt)));
        path.max_rtt = Some(path.max_rtt.map_or(rtt, |most| most.max(rtt)));
        match path.srtt {
            None => (path.srtt, path.rttvar) = (Some(rtt), rtt / 2),
            Some(srtt) => {
                path.rttvar = path.rttvar - path.rttvar / 4 + srtt.abs_diff(rtt) / 4;
                path.srtt = Some(srtt - srtt / 8 + rtt / 8);
            }
        }
        path.rto = path.srtt.unwrap_or(rtt) + (path.rttvar * 4).max(SHORTEST_TIMEOUT);
    }
}

/// What an acknowledgement newly says.
#[derive(Clone, Copy, Debug, Default)]
struct News {
    delivered: u64,
    /// Position and time of the newest segment delivered.
    newest: Option<(u64, Instant)>,
    /// A segment that was sent more than once is the newest.
    ambiguous: bool,
    /// The newest one that was acknowledged cumulatively, if it was sent once.
    cumulative: Option<Instant>,
}

impl News {
    fn deliver(&mut self, piece: &Piece) {
        self.delivered += piece.end - piece.start;
        if self.newest.is_none_or(|(_, left)| piece.left >= left) {
            self.newest = Some((piece.start, piece.left));
            self.ambiguous = piece.transmission > 0 || piece.number.is_none();
        }
    }
}

/// The options that differentiators look at.
fn options(segment: &Segment) -> Options {
    let mut options = Options::default();
    options.timestamps = segment.options.timestamps.map(|(value, echo)| Timestamps { value, echo });
    for &(left, right) in segment.options.sack() {
        options.sack.push(Seq(left), Seq(right));
    }
    options
}

impl From<Trigger> for path::Trigger {
    fn from(trigger: Trigger) -> Self {
        match trigger {
            Trigger::Fast | Trigger::Unknown | Trigger::Handshake => Self::DuplicateAcks,
            Trigger::Recovery => Self::PartialAck,
            Trigger::TailProbe => Self::TailProbe,
            Trigger::Timeout | Trigger::BackedOff | Trigger::AfterTimeout => Self::Timeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl Witness for Nobody {}

    #[test]
    fn what_is_sent_again_in_parts_stays_bounded() {
        let ends = ["10.0.0.1:4000", "10.0.0.2:80"].map(|end| end.parse().expect("an address"));
        let segment = |seq, len| Segment::plain(ends, seq, len);
        let mut scoreboard = Scoreboard::default();
        (0..MAX_PIECES as u32).for_each(|number| scoreboard.on_segment(&segment(number * 100, 100), Kind::New, &mut Nobody));
        for seq in (1..9000).step_by(10) {
            scoreboard.on_segment(&segment(seq, 1), Kind::Retransmission(Trigger::Fast), &mut Nobody);
        }
        assert_eq!(scoreboard.pieces.len(), MAX_PIECES);
        assert_eq!(scoreboard.pieces[0].transmission, 10);
    }
}
