//! One direction of a connection's data: what was sent in it, what was acknowledged, and what was sent again.
//!
//! Positions in the stream are numbers of 64 bits whose low 32 bits are those of the header.

mod classify;
mod news;

pub use crate::trigger::Trigger;
pub use news::{Counts, Hole, Kind, News, Retransmission, Unanswered, Unneeded};

use crate::departures::Departures;
use crate::headers::{Segment, MAX_SACK_BLOCKS};
use crate::limits::{Limits, Sent, Stall, Standing};
use crate::pieces::{Arrived, Pieces, Sending};
use crate::sender::{Report, Sender};
use crate::trigger::DUPLICATES;
use crate::trips::{Reaction, Trips};
use crate::unseen::Unseen;
use std::collections::VecDeque;
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};
use whyloss_transport::Seq;

/// Added to the first sequence number, so that there is room for what lies before.
const ROOM: u64 = 1 << 32;
/// Retransmissions whose need is not settled.
const MAX_PENDING: usize = 4096;
/// Segments that may be missing before a damaged one; if it seems to be more, the damage is in its sequence number.
pub const MAX_BEFORE_DAMAGED: u64 = 32;
/// A sender and its host take so long at most from an acknowledgement to what it asks for, unless they were seen to be slower.
const PROMPT: Duration = Duration::from_millis(2);
/// What is recorded on one processor may stand before what happened so much earlier on another.
const SWAPPED: Duration = Duration::from_millis(1);
/// A number so far from what is under way belongs to another connection, unless the window is larger.
const FAR: u64 = 1 << 24;
/// A segment that IP has cut has fewer octets than this.
const LONGEST: u64 = 1 << 16;

/// A recovery.
#[derive(Clone, Copy, Debug)]
struct Episode {
    /// Over when the sender knows this to be acknowledged.
    end: u64,
    began: Instant,
    by_timeout: bool,
    /// What was acknowledged when it began, as the sender knew it.
    una: u64,
    /// Where what was sent again in it ends.
    reached: u64,
    /// Segments sent again in it, and when the latest was.
    repairs: u32,
    latest: Instant,
    /// Those of them that are known to have been unneeded.
    unneeded: u32,
    /// An acknowledgement that passed then showed the sender that nothing was lost (RFC 3522, RFC 3708).
    undone: Option<Instant>,
    /// After a timeout new data was sent instead of repairs (F-RTO, RFC 5682), when this was acknowledged. If more is then, the timeout was
    /// spurious.
    tested: Option<u64>,
}

/// The first fragment of a segment.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    /// Where what is known of the segment ends, and where it ends at most.
    end: u64,
    most: u64,
    /// Behind its data stands a FIN.
    fin: bool,
}

/// One direction of a connection's data.
#[derive(Debug, Default)]
pub struct Half {
    /// Where the capture begins to know the stream.
    first: Option<u64>,
    /// Whether a SYN is there.
    began: bool,
    /// It was without an acknowledgement, and goes again with one if the peer's SYN meets it.
    may_answer: bool,
    una: u64,
    una_at: Instant,
    nxt: u64,
    /// When the newest segment was captured.
    sent_at: Instant,
    /// When the segment before the one at hand left, and that one.
    left: [Instant; 2],
    departures: Departures,
    /// The sender's retransmission timeout when it last heard of progress.
    timer: Option<Duration>,
    pieces: Pieces,
    sender: Sender,
    /// When the newest transmission was captured that is known to have arrived.
    delivered: Instant,
    duplicates: u32,
    /// Segments that the receiver has beyond what it acknowledges, as duplicates without SACK blocks tell.
    beyond: u64,
    /// The receiver sends SACK blocks.
    tells: bool,
    /// The receive window of the peer.
    window: Option<u64>,
    scale: Option<u8>,
    episode: Option<Episode>,
    /// One that the sender may have taken back, as it was unneeded; not every sender does.
    withdrawn: Option<Episode>,
    unseen: Unseen,
    /// What the sender knew to be acknowledged when its timer last expired.
    expired: Option<u64>,
    /// The same of its latest tail loss probe.
    probed: Option<u64>,
    /// Where the latest octet beyond a closed window stands. The receiver may take it after all.
    beyond_window: Option<u64>,
    /// The newest segment, if its other fragments are not read.
    fragment: Option<Fragment>,
    /// The sender can do SACK, and so can its peer, as their SYNs say.
    sack: [Option<bool>; 2],
    /// A timer expired where a sender with tail loss probes had sent one.
    sends_no_probes: bool,
    /// The largest segments that both ends announced.
    announced: [Option<u16>; 2],
    /// When the latest packet of the connection was captured, before the one at hand.
    pub(crate) latest: Instant,
    /// The newest timestamp of the peer.
    peer_timestamp: Option<u32>,
    /// When the sender echoed a timestamp that nothing seen until then had, and which.
    unseen_ack: Option<(Instant, u32)>,
    pending: VecDeque<Retransmission>,
    /// Those of them whose data is not yet acknowledged.
    unacknowledged: usize,
    /// Largest segment with data.
    pub mss: u32,
    /// Round trips.
    pub trips: Trips,
    /// What limited it at each time.
    pub limits: Limits,
    /// What was counted.
    pub counts: Counts,
}

impl Half {
    /// A segment of this direction; `told` gets what becomes known by it.
    pub fn on_segment(&mut self, segment: &Segment, told: &mut dyn FnMut(News)) -> Kind {
        let syn = segment.flags.contains(Flags::SYN);
        if self.first.is_none() {
            self.begin(segment.seq, segment.at);
            self.began = syn;
            self.may_answer = syn && !segment.flags.contains(Flags::ACK);
        }
        if syn {
            self.sack[0] = Some(segment.options.sack_permitted);
            self.announced[0] = segment.options.mss;
        }
        self.counts.marked += u64::from(segment.ecn == 3);
        let len = u64::from(segment.seq_len());
        if len == 0 {
            return Kind::New;
        }
        let start = self.position(segment.seq);
        let answers = syn && segment.flags.contains(Flags::ACK) && self.first == Some(start);
        if answers && segment.len == 0 && std::mem::take(&mut self.may_answer) {
            return Kind::New; // the SYN of before, which was not lost
        }
        self.mss = self.mss.max(segment.len);
        if segment.len > 0 {
            self.counts.segments += 1;
            self.counts.octets += u64::from(segment.len);
        }
        if segment.is_damaged() {
            // What its headers say may be the damage. Only what repeats a place that fits is believed.
            self.counts.damaged += 1;
            let most = self.nxt + MAX_BEFORE_DAMAGED * u64::from(self.mss);
            if start > most || start + len + (1 << 24) < self.una {
                return Kind::New;
            }
        }
        self.other_fragments_until(start);
        let end = if segment.partial { self.whole(start, start + len) } else { start + len };
        let fin = segment.flags.contains(Flags::FIN);
        self.count_rest(end - (start + len), fin);
        let mut standing = self.standing();
        self.learn(segment);
        standing.heard = self.sender.heard;
        let kind = self.kind(segment, start, end, syn);
        self.divide(segment, kind, end, &standing, told);
        match kind {
            Kind::Retransmission(trigger) => self.again(segment, start, trigger, told),
            Kind::OutOfOrder => self.counts.out_of_order += 1,
            Kind::Duplicate => {
                self.counts.duplicates += 1;
                return kind;
            }
            Kind::KeepAlive | Kind::WindowProbe => {
                self.counts.probes += 1;
                if kind == Kind::WindowProbe && start == self.nxt {
                    self.beyond_window = Some(start);
                }
                return kind;
            }
            Kind::New => {
                self.anew(segment.at, start);
                let has_room = self.window.is_none_or(|window| end + u64::from(self.mss) <= self.una + window);
                let goes_on = segment.len == self.mss && has_room && !segment.flags.contains(Flags::PSH) && !fin;
                let trip = self.trips.smoothed().unwrap_or(PROMPT);
                let timestamp = segment.options.timestamps.map(|(value, _)| value);
                self.unseen.on_new(segment.at, u64::from(segment.len), goes_on, timestamp, trip);
            }
        }
        self.put(segment, start, end);
        if segment.partial && end == self.nxt {
            self.fragment = Some(Fragment { end, most: self.longest(start), fin });
        }
        kind
    }

    /// Where a segment that IP has cut ends at most.
    fn longest(&self, start: u64) -> u64 {
        start + self.announced.into_iter().flatten().min().map_or(LONGEST, u64::from)
    }

    /// Where a segment ends of which the first fragment was captured, as far as what else was seen tells.
    fn whole(&self, start: u64, end: u64) -> u64 {
        let most = self.longest(start).max(end);
        match self.pieces.seen(start, end) {
            Some(piece) if piece.start <= start => piece.end.clamp(end, most),
            None if end < self.nxt && self.pieces.seen(end, end + 1).is_none() => {
                self.pieces.from(end).map_or(end, |next| next.start.min(most))
            }
            _ => end,
        }
    }

    /// The stream goes on at `position`: what lies before it was in the other fragments of the newest segment.
    fn other_fragments_until(&mut self, position: u64) {
        let Some(Fragment { end, most, fin }) = self.fragment.take_if(|fragment| position > fragment.end) else { return };
        let reached = position.min(most).max(end);
        if end == self.nxt && self.pieces.lengthen(end, reached) {
            self.nxt = reached;
            self.count_rest(reached - end, fin);
        }
    }

    /// The other fragments of a segment take so much of the stream, a FIN included.
    fn count_rest(&mut self, len: u64, fin: bool) {
        self.counts.octets += len.saturating_sub(u64::from(fin));
    }

    /// The time until this segment is given to what it waited for.
    fn divide(&mut self, segment: &Segment, kind: Kind, end: u64, standing: &Standing, told: &mut dyn FnMut(News)) {
        let sent = match kind {
            Kind::New => {
                let full = self.announced.into_iter().flatten().min().map_or(self.mss, |mss| {
                    // Options take room from the data, and a path may not carry what both ends would take.
                    u32::from(mss).saturating_sub(40).min(self.mss)
                });
                Sent::New { short: segment.len < full || segment.flags.contains(Flags::FIN) }
            }
            Kind::Retransmission(trigger) if trigger.is_expiry() => Sent::Expired,
            Kind::Retransmission(Trigger::TailProbe) => Sent::Probe,
            Kind::Retransmission(_) => Sent::Repair,
            Kind::OutOfOrder | Kind::Duplicate | Kind::KeepAlive | Kind::WindowProbe => Sent::Other,
        };
        let stall = self.limits.on_sent(segment.at, sent, self.sender.una, end, standing);
        self.stalled(stall, told);
    }

    /// A direction in which no data is sent does not stall.
    fn stalled(&self, stall: Option<Stall>, told: &mut dyn FnMut(News)) {
        if let Some(stall) = stall.filter(|_| self.counts.segments > 0) {
            told(News::Stall(stall));
        }
    }

    fn standing(&self) -> Standing {
        Standing {
            outstanding: self.outstanding(),
            flight: self.nxt.saturating_sub(self.sender.una),
            heard: self.sender.heard,
            learns: self.una_at + self.trips.reaction(),
            window: self.window,
            recovering: self.episode.is_some_and(|episode| self.sender.una < episode.end),
            mss: self.mss,
            trip: self.trips.smoothed(),
            shortest: self.trips.shortest().map(|right| right + self.trips.left().unwrap_or_default()),
            reaction: self.trips.reaction(),
            latest: self.latest,
        }
    }

    /// The time from an acknowledgement to what it lets out, without the queue before the capture if timestamps show that.
    fn own_reaction(&self) -> Reaction {
        let (own, seen) = (self.departures.reaction, *self.trips.to_answer());
        // Handshakes and echoes tell the shortest where hardly anything was let out at once.
        if self.departures.tick().is_some() && own.least().is_some() {
            own.at_most(&seen)
        } else {
            seen
        }
    }

    /// What the sender knows by now.
    fn learn(&mut self, segment: &Segment) {
        let echo = segment.options.timestamps.map(|(_, echo)| echo).filter(|_| segment.flags.contains(Flags::ACK));
        if let (Some(echo), Some(newest)) = (echo, self.peer_timestamp) {
            if Seq(newest).precedes(Seq(echo)) && !segment.is_damaged() {
                self.counts.unseen_acks += 1;
                self.unseen_ack = Some((segment.at, echo));
                self.peer_timestamp = Some(echo);
            }
        }
        let timestamp = segment.options.timestamps.map(|(value, _)| value).filter(|_| !segment.is_damaged());
        if let Some(value) = timestamp {
            self.departures.on_segment(segment.at, value);
        }
        self.left = [self.left[1], self.departures.of(segment.at, timestamp)];
        let una = self.sender.una;
        let reaction = self.own_reaction();
        self.sender.sends(self.left[1], echo, &reaction);
        if self.sender.una > una {
            self.timer = Some(self.trips.timeout());
        }
        if self.episode.is_some_and(|episode| {
            let undone = episode.undone.is_some_and(|undone| self.sender.heard >= undone);
            // After a timeout not every sender takes the repair back: only one that then sends something new has done so.
            episode.tested.is_some_and(|tested| self.sender.una > tested || undone) || undone && !episode.by_timeout
        }) {
            self.withdrawn = self.episode.take().filter(|episode| !episode.by_timeout);
        }
    }

    /// New data leaves.
    fn anew(&mut self, at: Instant, start: u64) {
        self.pieces.remote = (self.trips.reaction() > PROMPT).then(|| self.trips.timeout());
        if let Some(fresh) = self.sender.fresh.filter(|fresh| self.sender.una < start && *fresh <= at) {
            self.trips.on_reaction(since(at, fresh));
            self.departures.reaction.add(since(self.left[1], fresh));
        }
        if let Some(episode) = self.episode.as_mut().filter(|episode| episode.by_timeout && episode.repairs == 1) {
            // Who believes in the loss of the rest repairs it before it sends anything new.
            if self.pieces.has_unrepaired(self.una, episode.began, episode.end) {
                episode.tested.get_or_insert(self.sender.una);
            }
        }
    }

    /// An acknowledgement of this direction, from the peer.
    pub fn on_ack(&mut self, segment: &Segment, told: &mut dyn FnMut(News)) {
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
            self.sack[1] = Some(segment.options.sack_permitted);
            self.announced[1] = segment.options.mss;
        }
        let timestamp = segment.options.timestamps.map(|(value, _)| value);
        let swapped = |(at, echo): &mut (Instant, u32)| Some(*echo) == timestamp && segment.at <= *at + SWAPPED;
        if self.unseen_ack.take_if(swapped).is_some() {
            self.counts.unseen_acks -= 1;
        }
        if let Some(value) = timestamp.filter(|value| self.peer_timestamp.is_none_or(|newest| Seq(newest).precedes(Seq(*value))))
        {
            self.peer_timestamp = Some(value);
        }
        let shift = if syn { 0 } else { self.scale.unwrap_or(0) };
        let window = u64::from(segment.window) << shift;
        let was_open = self.window.is_none_or(|window| window > 0);
        self.counts.closed_windows += u64::from(was_open && window == 0);
        let same_window = self.window == Some(window);
        let ack = self.position(segment.ack);
        if self.fragment.is_some() {
            let reached = segment.options.sack().iter().map(|&(_, right)| self.position(right)).fold(ack, u64::max);
            self.other_fragments_until(reached);
        }
        let opens = self.window.is_some_and(|before| before < u64::from(self.mss) && window > before);
        if ack > self.una || opens {
            let standing = self.standing();
            let stall = self.limits.on_progress(segment.at, &standing);
            self.stalled(stall, told);
        }
        self.window = Some(window);
        if ack == self.una && self.nxt == self.una {
            return;
        }
        if !segment.options.sack().is_empty() {
            self.tells = true;
            self.dsack(segment, ack);
            self.sack(segment);
        }
        if ack > self.una {
            self.acknowledge(segment, ack, told);
        } else if ack == self.una
            && segment.seq_len() == 0
            && self.nxt > self.una
            && (same_window || !segment.options.sack().is_empty())
        {
            self.duplicates += 1;
            self.beyond += 1;
        }
        if ack >= self.una {
            let (duplicates, sacked) = (self.duplicates, self.pieces.sacked());
            let delivered = self.delivered;
            self.sender.on_report(Report { at: segment.at, timestamp, ack, duplicates, sacked, delivered });
        }
        while self.pending.front().is_some_and(|oldest| oldest.acknowledged && since(segment.at, oldest.at) > self.patience()) {
            self.settle(told);
        }
    }

    /// No more segments will come; the connection's latest was at `ended`, and the capture went on until `now`.
    pub fn finish(&mut self, ended: Instant, now: Instant, reset: bool, told: &mut dyn FnMut(News)) {
        let standing = self.standing();
        let stall = self.limits.finish(ended, &standing);
        self.stalled(stall, told);
        while !self.pending.is_empty() {
            self.settle(told);
        }
        let first = self.origin().unwrap_or_default();
        // A sender that gives up says so by a reset, or says nothing.
        let patience = (self.trips.timeout() * 3).max(Duration::from_secs(1));
        // Where no acknowledgement was captured, answers may have come another way.
        let awaited = self.window.is_some() && !reset;
        for piece in self.pieces.iter().filter(|piece| awaited && !piece.sacked && since(now, piece.last.at) > patience) {
            self.counts.unanswered += 1;
            told(News::Unanswered(Unanswered {
                start: piece.start,
                first,
                len: piece.end - piece.start,
                number: piece.last.number,
                at: piece.last.at,
                waited: since(now, piece.last.at),
            }));
        }
    }

    /// Position of the first octet of data that the capture can know of; a SYN is none.
    fn origin(&self) -> Option<u64> {
        self.first.map(|first| first + u64::from(self.began))
    }

    /// Octets acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.origin().map_or(0, |origin| self.una.saturating_sub(origin))
    }

    /// Whether a sequence number lies so far from what is under way that it belongs to another connection; `None` if nothing is known of this one.
    pub(crate) fn is_far(&self, seq: u32) -> Option<bool> {
        self.first?;
        let (position, far) = (self.position(seq), FAR.max(self.window.unwrap_or(0)));
        Some(position + far < self.una || position > self.nxt + far)
    }

    /// Octets of the stream before a sequence number, counted from where the capture begins to know it.
    pub fn offset(&self, seq: u32) -> Option<u64> {
        self.first.map(|first| self.position(seq).saturating_sub(first))
    }

    /// Octets that were sent and are not acknowledged, as the capture sees them.
    pub fn outstanding(&self) -> u64 {
        self.nxt.saturating_sub(self.una)
    }

    /// The receiver's window in octets, as last announced.
    pub fn window(&self) -> Option<u64> {
        self.window
    }

    /// A recovery is under way: one that duplicates began, or one that a timeout did (`Some(true)`).
    pub fn recovery(&self) -> Option<bool> {
        self.episode.map(|episode| episode.by_timeout)
    }

    /// Octets for which it has room beside itself.
    pub fn octets(&self) -> usize {
        self.pieces.octets() + self.pending.capacity() * size_of::<Retransmission>() + self.sender.octets()
    }

    /// How long a D-SACK may take.
    fn patience(&self) -> Duration {
        self.trips.smoothed().map_or(Duration::from_secs(1), |trip| trip * 2)
    }

    fn settle(&mut self, told: &mut dyn FnMut(News)) {
        if let Some(retransmission) = self.pending.pop_front() {
            self.unacknowledged -= usize::from(!retransmission.acknowledged);
            self.counts.unneeded += u64::from(retransmission.unneeded.is_some());
            told(News::Retransmission(retransmission));
        }
    }

    fn begin(&mut self, seq: u32, at: Instant) {
        let position = ROOM + u64::from(seq);
        self.first = Some(position);
        (self.una, self.nxt, self.una_at, self.sent_at) = (position, position, at, at);
        self.sender.begin(position, at);
    }

    /// The position of a sequence number, near what is under way.
    fn position(&self, seq: u32) -> u64 {
        Seq(seq).near(self.nxt)
    }

    /// A segment is sent again.
    fn again(&mut self, segment: &Segment, start: u64, trigger: Trigger, told: &mut dyn FnMut(News)) {
        let end = start + u64::from(segment.seq_len());
        let seen = self.pieces.seen(start, end).copied();
        let previous = self.previous(end, seen.as_ref());
        let end_of_flight =
            if trigger.is_expiry() && self.is_paused(segment.at) { self.unseen.on_expiry(start, self.nxt) } else { self.nxt };
        let begins = Episode {
            end: end_of_flight,
            began: segment.at,
            by_timeout: trigger.is_expiry(),
            una: self.sender.una,
            reached: end,
            repairs: 0,
            latest: segment.at,
            unneeded: 0,
            undone: None,
            tested: None,
        };
        match trigger {
            Trigger::Fast => {
                if self.sender.duplicates == DUPLICATES && self.sender.third_at <= segment.at {
                    self.trips.on_reaction(since(segment.at, self.sender.third_at));
                    self.departures.reaction.add(since(self.left[1], self.sender.third_at));
                }
                self.episode = Some(begins);
            }
            Trigger::Timeout | Trigger::BackedOff => {
                let quiet = self.episode.is_none() && self.sender.sacked == 0 && self.sender.duplicates == 0;
                let near = self.trips.shortest().is_some_and(|right| right > self.trips.reaction());
                let probed = self.probed == Some(self.sender.una)
                    || self.sent_at > self.sender.una_at + self.trips.reaction() * 2 + PROMPT;
                self.sends_no_probes |= trigger == Trigger::Timeout && quiet && near && end < self.nxt && !probed;
                self.expired = Some(self.sender.una);
                self.episode = Some(begins);
            }
            Trigger::Recovery if self.episode.is_none_or(|episode| start >= episode.end) => {
                let goes_on = self.withdrawn.take().filter(|episode| start < episode.end);
                self.episode = Some(goes_on.map_or(begins, |episode| Episode { undone: None, ..episode }));
            }
            Trigger::AfterTimeout if self.episode.is_none_or(|episode| start >= episode.end) => {
                self.episode = Some(Episode { by_timeout: true, ..begins });
            }
            Trigger::TailProbe => self.probed = Some(self.sender.una),
            _ => {}
        }
        if let Some(episode) = &mut self.episode {
            episode.repairs += 1;
            episode.reached = episode.reached.max(end);
            episode.latest = segment.at;
            episode.tested = None;
        }
        self.counts.retransmissions += 1;
        if self.pending.len() == MAX_PENDING {
            self.settle(told);
        }
        let acknowledged = end <= self.una || seen.is_some_and(|piece| piece.sacked && piece.end >= end);
        self.unacknowledged += usize::from(!acknowledged);
        self.pending.push_back(Retransmission {
            number: segment.number,
            at: segment.at,
            start,
            first: self.origin().unwrap_or(start),
            len: segment.len,
            trigger,
            before: seen.map(|piece| piece.last.number),
            after: since(segment.at, previous),
            duplicates: self.sender.duplicates,
            sacked: self.pieces.sacked_above(end),
            unneeded: acknowledged.then_some(Unneeded::Acknowledged),
            damaged: seen.is_some_and(|piece| piece.last.damaged),
            timestamp: segment.options.timestamps.map(|(value, _)| value),
            before_timestamp: seen.and_then(|piece| piece.last.timestamp),
            acknowledged,
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
        self.sent_at = segment.at;
        if start == end {
            return;
        }
        if start >= self.nxt {
            self.pieces.push(start, end, last);
        } else {
            self.pieces.put(start, end, last);
        }
        self.nxt = self.nxt.max(end);
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
        let Some(sent) = doubled else { return };
        if sent.unneeded.replace(Unneeded::Dsack).is_none_or(|shown| shown != Unneeded::Dsack) {
            if let Some(episode) = self.episode.as_mut().filter(|episode| sent.at >= episode.began) {
                episode.unneeded += 1;
                if episode.unneeded >= episode.repairs {
                    episode.undone.get_or_insert(segment.at);
                }
            }
        }
    }

    fn sack(&mut self, segment: &Segment) {
        let (una, nxt) = (self.una, self.nxt);
        let blocks = segment.options.sack().iter().map(|&(left, right)| (Seq(left).near(nxt), Seq(right).near(nxt)));
        let blocks = blocks.filter(|&(left, right)| left < right && left >= una && right <= nxt);
        let mut told = [(0, 0, Arrived::default()); MAX_SACK_BLOCKS];
        let mut count = 0;
        self.pieces.sack(blocks, &mut |left, right, newly| {
            told[count] = (left, right, newly);
            count += 1;
        });
        for &(left, right, newly) in &told[..count] {
            self.deliver(segment.at, newly);
            self.arrived(segment, left, right);
        }
    }

    /// Pieces are known to have arrived.
    fn deliver(&mut self, at: Instant, newly: Arrived) {
        // If the clock went back, that tells no time.
        if let Some(sent) = newly.once.filter(|sent| *sent <= at) {
            self.trips.on_right(since(at, sent));
        }
        // Of what was sent again an earlier transmission may have arrived.
        let again = newly.again.filter(|sent| self.trips.shortest().is_some_and(|trip| since(at, *sent) >= trip - trip / 4));
        self.delivered = newly.once.into_iter().chain(again).fold(self.delivered, Instant::max);
    }

    /// New data is acknowledged.
    fn acknowledge(&mut self, segment: &Segment, ack: u64, told: &mut dyn FnMut(News)) {
        let (first, counts) = (self.origin().unwrap_or_default(), &mut self.counts);
        let taken = self.beyond_window.take_if(|octet| *octet < ack);
        let newly = self.pieces.acknowledge(self.una, ack, &mut |from, to| {
            let from = from + u64::from(taken == Some(from));
            if from == to {
                return;
            }
            // What is acknowledged and was never seen, the capture has missed.
            counts.holes += 1;
            counts.unseen_octets += to - from;
            told(News::Hole(Hole { start: from, first, len: to - from, number: segment.number, at: segment.at }));
        });
        self.deliver(segment.at, newly);
        if !self.tells {
            self.behind(segment.at, ack);
        }
        self.arrived(segment, self.una, ack);
        self.una = ack;
        self.una_at = segment.at;
        self.nxt = self.nxt.max(ack);
        self.duplicates = 0;
    }

    /// Without SACK, an acknowledgement that covers more than what comes next takes in what had come before: as many segments as there were
    /// duplicates. What of it was sent again meanwhile was not needed.
    fn behind(&mut self, at: Instant, ack: u64) {
        let mss = u64::from(self.mss.max(1));
        // The one that fills the gap; two may share an acknowledgement.
        let taken_in = ((ack - self.una).div_ceil(mss)).saturating_sub(1);
        if taken_in < 2 || self.beyond < taken_in {
            if ack >= self.nxt {
                self.beyond = 0;
            }
            return;
        }
        self.beyond -= taken_in;
        // The repair that filled the gap: the latest that an acknowledgement can have come for. What was sent again before it may be what the
        // duplicates told of.
        let (una, trip) = (self.una, self.trips.shortest().unwrap_or_default());
        let fills = |sent: &&Retransmission| {
            (sent.start..sent.start + u64::from(sent.len)).contains(&una) && since(at, sent.at) >= trip - trip / 4
        };
        let filler = self.pending.iter().rev().find(fills).map_or(u64::MAX, |sent| sent.number);
        let from = self.una + mss;
        for sent in self.pending.iter_mut().filter(|sent| !sent.acknowledged && sent.start >= from && sent.number > filler) {
            if sent.start + u64::from(sent.len) <= ack && sent.unneeded.replace(Unneeded::Behind).is_none() {
                // Each of them is answered by a duplicate that says nothing new.
                self.beyond = self.beyond.saturating_sub(1);
            }
        }
        if ack >= self.nxt {
            self.beyond = 0;
        }
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
                    if let Some(episode) = self.episode.as_mut().filter(|episode| sent.at == episode.began && !episode.by_timeout)
                    {
                        episode.undone.get_or_insert(segment.at);
                    }
                }
            }
            if shortest.is_some_and(|trip| since(segment.at, sent.at) < trip - trip / 4) {
                sent.unneeded.get_or_insert(Unneeded::TooSoon);
            }
        }
    }
}

/// Time from one record to a later one; none if the clock went back.
fn since(at: Instant, before: Instant) -> Duration {
    if at > before {
        at.since(before)
    } else {
        Duration::ZERO
    }
}
