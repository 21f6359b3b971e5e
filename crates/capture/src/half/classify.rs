//! What a segment with data is, and what its sender knew when it sent it.

use super::{since, Episode, Half, PROMPT};
use crate::half::{Kind, Trigger};
use crate::headers::Segment;
use crate::pieces::{Piece, Sending};
use crate::trigger::{Clues, DUPLICATES};
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};
use whyloss_transport::Seq;

impl Half {
    /// What a segment with data is.
    pub(super) fn kind(&self, segment: &Segment, start: u64, end: u64, syn: bool) -> Kind {
        if start >= self.nxt {
            let probe = self.window == Some(0) && segment.len == 1 && start == self.una && self.nxt == self.una;
            return match self.repairs_unseen(segment, start) {
                _ if probe => Kind::WindowProbe,
                Some(trigger) => Kind::Retransmission(trigger),
                None => Kind::New,
            };
        }
        if syn {
            return Kind::Retransmission(Trigger::Handshake);
        }
        let is_probe = segment.len <= 1 && !segment.flags.contains(Flags::FIN);
        if is_probe && end <= self.una && end + 1 >= self.una && self.una == self.nxt {
            return Kind::KeepAlive;
        }
        if segment.len == 1 && self.window == Some(0) {
            return Kind::WindowProbe;
        }
        let seen = self.pieces.seen(start, end);
        match seen {
            Some(piece) if self.is_same_packet(segment, &piece.last) => Kind::Duplicate,
            None if end > self.una && self.is_late(segment, end) => Kind::OutOfOrder,
            _ => Kind::Retransmission(self.clues(segment, start, end, seen).trigger()),
        }
    }

    /// Nothing came for a whole timeout, though the sender is behind the place where what it sent was lost.
    pub(super) fn is_paused(&self, at: Instant) -> bool {
        self.trips.reaction() > PROMPT
            && self.trips.samples() > 0
            && self.unseen.ended_at(self.sent_at)
            && since(at, self.sent_at) >= self.trips.timeout()
    }

    /// Why data that looks new repairs what never came to the capture, if it does.
    pub(super) fn repairs_unseen(&self, segment: &Segment, start: u64) -> Option<Trigger> {
        if start > self.nxt || segment.flags.contains(Flags::SYN) || segment.len == 0 {
            return None;
        }
        let expired = self.episode.is_some_and(|episode| episode.by_timeout);
        if expired && self.unseen.covers(start) {
            return Some(Trigger::AfterTimeout);
        }
        let all_arrived = self.una == self.nxt && self.window.is_some_and(|window| window >= u64::from(self.mss));
        (self.is_paused(segment.at)
            && all_arrived
            && self.unseen.stopped(self.mss, segment.at, segment.options.timestamps.map(|(value, _)| value)))
        .then_some(Trigger::Timeout)
    }

    /// The packet that was seen is here again, and was not sent again.
    pub(super) fn is_same_packet(&self, segment: &Segment, last: &Sending) -> bool {
        if segment.options.timestamps.map(|(value, _)| value) != last.timestamp {
            return false;
        }
        match (segment.ip_id, last.ip_id) {
            (Some(this), Some(that)) if this != that => return false,
            _ => {}
        }
        // Nothing is sent again before a round trip is over, nor, if nothing else tells, doubled later than at once.
        let alike = segment.options.timestamps.is_some() || segment.ip_id.is_some_and(|id| id != 0);
        let trip =
            self.trips.shortest().map_or(Duration::from_millis(100), |right| right + self.trips.left().unwrap_or_default());
        let most = if alike { trip * 3 / 4 } else { PROMPT.min(trip / 2) };
        since(segment.at, last.at) < most
    }

    /// What fills a gap was sent before what showed the gap.
    pub(super) fn is_late(&self, segment: &Segment, end: u64) -> bool {
        let Some(after) = self.pieces.once_from(end) else { return false };
        let lag = since(segment.at, after.last.at);
        if let (Some(this), Some(that)) = (segment.ip_id, after.last.ip_id) {
            let ahead = that.wrapping_sub(this);
            if ahead != 0 && ahead < 1000 {
                return true;
            }
            if this.wrapping_sub(that) < 1000 && this != that {
                return false;
            }
        }
        if let (Some((this, _)), Some(that)) = (segment.options.timestamps, after.last.timestamp) {
            // A sender's clock does not go back. If both left within one of its ticks, other evidence has to decide.
            if this != that {
                return Seq(this).precedes(Seq(that));
            }
        }
        // What is asked for comes a reaction after the first that showed the gap.
        match self.trips.left() {
            Some(left) if left > PROMPT => lag < left - left / 8,
            _ => self.duplicates < DUPLICATES && self.pieces.sacked_above(end) < u64::from(DUPLICATES * self.mss),
        }
    }

    /// When what is sent again was sent before, or, if that never came to the capture, when the gap showed.
    pub(super) fn previous(&self, end: u64, seen: Option<&Piece>) -> Instant {
        seen.map(|piece| piece.last.at).or_else(|| self.pieces.from(end).map(|piece| piece.last.at)).unwrap_or(self.una_at)
    }

    pub(super) fn clues(&self, segment: &Segment, start: u64, end: u64, seen: Option<&Piece>) -> Clues {
        let (sender, trips) = (&self.sender, &self.trips);
        // All by the sender's clock, if its timestamps show that: a queue before the capture is no time for which it waited.
        let (departures, left) = (&self.departures, self.left[1]);
        let own = self.own_reaction();
        let reaction = own.usual();
        let heard = sender.heard + reaction;
        let varies = (own.varies() * 4).min(trips.smoothed().unwrap_or_default() / 4);
        let tick = departures.tick().map_or(Duration::ZERO, |tick| if left < segment.at { tick * 2 } else { Duration::ZERO });
        let blur = PROMPT.max(reaction / 4).max(varies).max(tick);
        // Where the way to the sender is the smaller part, or timestamps measure it, it is known well.
        let near = segment.options.timestamps.is_some() || trips.shortest().is_some_and(|right| right > reaction);
        let before = seen.map_or(Instant::ZERO, |piece| departures.of(piece.last.at, piece.last.timestamp));
        let started = (sender.una_at + reaction).max(before);
        let within = |episode: &&Episode| start < episode.end;
        let episode = self.episode.as_ref().filter(within);
        // Who goes up after a timeout through what is acknowledged by now has not heard of that.
        let unheard = episode.is_some_and(|episode| episode.by_timeout && start < sender.una && start >= episode.reached);
        let head = start <= sender.una && !unheard;
        // Repairs go upwards: what lies below one was repaired, be it that the capture saw it or not.
        let passed = head && episode.is_some_and(|episode| end <= episode.reached);
        Clues {
            head,
            passed,
            tail: end >= self.nxt,
            duplicates: sender.duplicates,
            sacked: sender.sacked > 0,
            repeated: episode.is_some_and(|episode| {
                passed && !episode.by_timeout && sender.una == episode.una
                    || seen.is_some_and(|piece| piece.last.at >= episode.began)
            }),
            overtaken: seen.is_none_or(|piece| sender.delivered > piece.last.at),
            overtaken_now: seen.is_some_and(|piece| sender.delivered > piece.last.at && sender.delivered_before <= piece.last.at),
            stale: near
                && sender.sacked == 0
                && sender.duplicates > DUPLICATES
                && since(left, sender.third_at + reaction) > blur
                && since(left, heard) > blur,
            waited: since(left, started),
            quiet: since(left, heard),
            idle: since(left, heard.max(self.left[0])),
            blur,
            trip: trips.smoothed(),
            timeout: self.timer.map_or(trips.timeout(), |timer| timer.min(trips.timeout())),
            behind: start < sender.una,
            // What the sender can no longer repair it began to repair before it heard that it need not.
            recovery: episode
                .filter(|episode| start >= sender.una || since(segment.at, episode.latest) < trips.timeout())
                .map(|episode| episode.by_timeout),
            withdrawn: !self.tells && self.withdrawn.is_some_and(|episode| start < episode.end),
            skipped: !head
                && sender.sacked > 0
                && reaction > PROMPT
                && self.pieces.seen(sender.una, sender.una + 1).is_none_or(|piece| !piece.again),
            silent: since(left, self.left[0]),
            expired: self.expired == Some(sender.una),
            probes: !self.sends_no_probes && self.sack != [Some(false); 2] && !self.sack.contains(&Some(false)),
            probed: self.probed == Some(sender.una),
        }
    }
}
