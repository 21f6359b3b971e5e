//! What the receiver asks for by selective negative acknowledgements (CCSDS 714.0-B, SCPS-TP).
//!
//! All of it leaves at once, whatever the window says, and the window stays as it is: asking is no sign of congestion. A receiver that lies could have
//! everything sent over and over, so a segment leaves only
//!
//! - once in a round trip after it was sent again, which also keeps what is still under way from being sent once more. What was sent only once
//!   may be asked for sooner: a list names what others have overtaken, and a base station that sees it is nearer than the peer,
//! - [`MOST_TRANSMISSIONS`] times, after which the retransmission timer sees to it,
//! - while all that was sent on request is no more than all that was acknowledged, and [`FREE`] octets.

use super::record::Judgement;
use super::scoreboard::Sent;
use super::Endpoint;
use crate::path::Trigger;
use crate::segment::Segment;
use crate::time::Instant;
use std::collections::VecDeque;

/// How often a segment leaves at most because it was asked for, the first time included.
const MOST_TRANSMISSIONS: u16 = 16;
/// Octets sent on request that nothing need have been acknowledged for: the largest window that is not scaled.
const FREE: u64 = 0xffff;

/// What is asked for.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Positions of segments that leave next, ascending.
    next: VecDeque<u64>,
    /// Octets sent on request so far.
    spent: u64,
}

impl Asked {
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }
}

impl Endpoint {
    /// Whether `segment` asks for anything by what was agreed.
    pub(super) fn asks(&self, segment: &Segment) -> bool {
        self.agreed.snack_block.is_some() && segment.options.rare.as_ref().is_some_and(|rare| !rare.snacks.is_empty())
    }

    /// The receiver asks for holes above `ack`. The path is up to date.
    pub(super) fn on_snacks(&mut self, now: Instant, segment: &Segment, ack: u64) {
        let (Some(block), Some(rare)) = (self.agreed.snack_block, &segment.options.rare) else { return };
        self.stats.snacks_received += rare.snacks.len() as u64;
        let mut wanted = std::mem::take(&mut self.scratch);
        wanted.clear();
        // Ascending as the lists should be: what is below has been looked at.
        let mut from = self.snd.una;
        for (start, end) in rare.snacks.iter().flat_map(|snack| snack.holes(ack, block)) {
            let (start, end) = (start.max(from), end.min(self.snd.nxt));
            if start < end {
                self.find_missing(now, (start, end), &mut wanted);
                from = end;
            }
        }
        // Hole by hole: what lies on the border of two is in both.
        wanted.dedup();
        self.ask_for(now, &wanted);
        self.scratch = wanted;
    }

    /// The segments in a hole that may be asked for. Holes come in whole blocks, so those that only reach into one count only if no other does.
    fn find_missing(&self, now: Instant, (start, end): (u64, u64), wanted: &mut Vec<usize>) {
        let board = &self.snd.board;
        let Some(first) = board.find(start) else { return };
        let known = wanted.len();
        let touching = (first..board.len()).take_while(|&index| board.get(index).start < end);
        let missing = touching.filter(|&index| !board.get(index).is_sacked());
        let mut partly = [None; 2];
        let mut whole = false;
        for index in missing {
            let sent = board.get(index);
            if sent.start >= start && sent.end() <= end {
                whole = true;
                if self.may_be_asked_for(now, sent) {
                    wanted.push(index);
                }
            } else {
                partly[usize::from(sent.start >= start)] = Some(index);
            }
        }
        if !whole {
            debug_assert_eq!(wanted.len(), known);
            let partly = partly.into_iter().flatten();
            wanted.extend(partly.filter(|&index| self.may_be_asked_for(now, board.get(index))));
        }
    }

    fn may_be_asked_for(&self, now: Instant, sent: &Sent) -> bool {
        let trip = self.path.min_rtt.unwrap_or(self.path.rto);
        sent.transmissions == 1 || sent.transmissions < MOST_TRANSMISSIONS && now.since(sent.last_at) >= trip
    }

    /// Has the segments at these indices of the scoreboard sent again, as far as that is paid for.
    fn ask_for(&mut self, now: Instant, wanted: &[usize]) {
        let paid = self.snd.una - self.snd.iss + FREE;
        let board = &self.snd.board;
        let mut spent = self.snd.asked.spent;
        let affordable = wanted.iter().take_while(|&&index| {
            spent += u64::from(board.get(index).len);
            spent <= paid
        });
        let wanted = &wanted[..affordable.count()];
        if wanted.is_empty() {
            return;
        }
        // What a timeout has already taken for lost needs no other verdict.
        let fresh: Vec<usize> = wanted.iter().copied().filter(|&index| !board.get(index).needs_repair()).collect();
        self.snd.asked.next = wanted.iter().map(|&index| board.get(index).start).collect();
        let mut judged = self.judge(&fresh, Trigger::Snack);
        if self.snd.recovery.is_open() && !judged.is_empty() {
            self.snd.recovery.count_episode();
        }
        for (_, record) in &mut judged {
            record.judgement = Judgement::Kept;
        }
        for &index in &fresh {
            self.snd.board.mark_lost(index);
        }
        self.tell_losses(judged);
        self.guard_outstanding(now);
    }

    /// The next segment that was asked for and is still missing.
    pub(super) fn transmit_asked(&mut self, now: Instant) -> Option<Segment> {
        while let Some(position) = self.snd.asked.next.pop_front() {
            let missing = self.snd.board.find(position).filter(|&index| self.snd.board.get(index).needs_repair());
            if let Some(index) = missing {
                self.snd.asked.spent += u64::from(self.snd.board.get(index).len);
                self.stats.snack_retransmissions += 1;
                return Some(self.retransmit(now, index));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
