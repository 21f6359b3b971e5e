//! What is taken for lost, and what the differentiators say of it.

use super::probing::Sign;
use super::record::{Event, Judgement, LossRecord};
use super::recovery::Fast;
use super::scoreboard::Sent;
use super::{Endpoint, ReportResponse};
use crate::path::{Loss, Path, Trigger};
use crate::time::Instant;
use crate::verdict::{Cause, Verdict};

/// Losses with the opinions on them, by scoreboard index.
pub(super) type Judged = Vec<(usize, LossRecord)>;

/// The latest transmission of a segment is taken for lost.
fn loss_at<'a>(path: &'a Path, sent: &Sent, trigger: Trigger, first_of_episode: bool) -> Loss<'a> {
    Loss {
        path,
        start: sent.start,
        len: sent.data_len(),
        transmission: u32::from(sent.transmissions) - 1,
        sent_at: sent.last_at,
        trigger,
        first_of_episode,
    }
}

impl Endpoint {
    /// Asks all differentiators about the segments at `indices`. Changes nothing else; the path must be up to date.
    pub(super) fn judge(&mut self, indices: &[usize], trigger: Trigger) -> Judged {
        let open = self.snd.recovery.is_open();
        let found = indices.iter().enumerate();
        let losses: Vec<_> =
            found.map(|(nth, &index)| loss_at(&self.path, self.snd.board.get(index), trigger, open && nth == 0)).collect();
        let verdicts = self.parts.differentiators.judge_all(&losses);
        let records = losses.iter().zip(verdicts).map(|(loss, verdicts)| self.record_of(loss, verdicts));
        indices.iter().copied().zip(records).collect()
    }

    /// The same about one segment that is not outstanding any more, as an episode of its own.
    pub(super) fn judge_repaired(&mut self, sent: &Sent, trigger: Trigger) -> LossRecord {
        let loss = loss_at(&self.path, sent, trigger, true);
        let mut verdicts = self.parts.differentiators.judge_all(std::slice::from_ref(&loss));
        self.record_of(&loss, verdicts.remove(0))
    }

    fn record_of(&self, loss: &Loss, (verdict, shadows): (Verdict, Vec<Verdict>)) -> LossRecord {
        LossRecord {
            at: self.path.now,
            offset: self.snd.offset(loss.start),
            len: loss.len,
            transmission: loss.transmission,
            sent_at: loss.sent_at,
            trigger: loss.trigger,
            episode: self.snd.recovery.episode_of(loss.trigger),
            verdict,
            shadows,
            judgement: Judgement::Covered,
        }
    }

    /// Tells the driver of losses.
    pub(super) fn tell_losses(&mut self, judged: Judged) {
        self.stats.losses += judged.len() as u64;
        self.events.extend(judged.into_iter().map(|(_, record)| Event::Loss(Box::new(record))));
    }

    /// Takes the segments for lost and responds: once an episode, and once more if a loss judged congestion follows others that were
    /// forgiven.
    pub(super) fn declare_lost(&mut self, now: Instant, mut judged: Judged) {
        let not_forgiven = |record: &LossRecord| record.verdict.cause != Cause::Corruption;
        // Congestion wins over corruption where both are among the losses.
        let decisive = judged.iter().position(|(_, record)| not_forgiven(record)).unwrap_or(0);
        let Some((_, record)) = judged.get(decisive) else { return };
        let judgement = self.respond(now, record);
        if let Some(judgement) = judgement {
            judged[decisive].1.judgement = judgement;
        }
        if judgement != Some(Judgement::Reduced) && self.snd.recovery.fast().is_some_and(|fast| !fast.reduced()) {
            self.forgive(judged.iter().map(|(_, record)| u64::from(record.len)).sum(), false);
        }
        for &(index, _) in &judged {
            self.snd.board.mark_lost(index);
        }
        if self.snd.rates.is_some() {
            self.tell_model(&judged);
        }
        let repeats = self.snd.recovery.fast().is_some_and(|fast| fast.repeat_until() > 0);
        if self.agreed.sack && judgement.is_some() && repeats {
            self.snd.board.mark_holes_lost();
        }
        self.snd.due.head |= judgement.is_some();
        self.tell_losses(judged);
    }

    /// Tells a congestion control that goes by a model of losses: those that are taken for corruption, and those that are not.
    fn tell_model(&mut self, judged: &Judged) {
        let Some(rates) = &mut self.snd.rates else { return };
        for (index, record) in judged {
            let sent = self.snd.board.get(*index);
            if record.verdict.cause == Cause::Corruption {
                self.parts.congestion.on_excused(u64::from(sent.data_len()));
                continue;
            }
            if let Some(lost) = rates.on_lost(sent.start, sent.start + u64::from(sent.data_len())) {
                self.parts.congestion.on_lost(&self.window, &lost, &self.path);
            }
        }
    }

    /// Looks for losses by duplicate acknowledgements or the SACK scoreboard.
    pub(super) fn detect_by_duplicates(&mut self, now: Instant) {
        let threshold = self.config.dup_threshold;
        let enough = self.snd.recovery.dup_acks() >= threshold;
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        if self.agreed.sack {
            // After a timeout nothing is detected anew until all that was then outstanding is acknowledged (RFC 6675, 5.1).
            if self.snd.recovery.timeout().is_none() {
                let early = self.config.count_duplicates && self.snd.recovery.is_open() && !enough;
                let above = if self.snd.recovery.counted().is_some() { 1 } else { threshold };
                if !early {
                    self.snd.board.find_lost(above, self.snd.mss, &mut found);
                }
                if self.snd.recovery.is_open() && enough && found.first() != Some(&0) {
                    if let Some(head) = self.snd.board.first().filter(|head| head.in_network()) {
                        debug_assert_eq!(head.start, self.snd.una);
                        found.insert(0, 0);
                    }
                }
            }
        } else if self.snd.recovery.is_open()
            && enough
            && self.snd.recovery.heeds_duplicates_at(self.snd.una)
            && self.snd.board.len() > 0
            && !self.head_is_left_to_reports()
        {
            found.push(0);
        }
        self.excuse_lost_probe(&mut found);
        if !found.is_empty() && !self.defers(now, Sign::Duplicates) {
            let judged = self.judge(&found, Trigger::DuplicateAcks);
            self.declare_lost(now, judged);
        }
        self.scratch = found;
    }

    /// Whether the repair of the first outstanding segment is under way although no partial acknowledgement has asked for it.
    pub(super) fn head_is_being_repaired(&self) -> bool {
        let until = self.snd.recovery.fast().map_or(0, Fast::repeat_until);
        let repeated = |head: &Sent| head.start < until && head.was_retransmitted();
        self.head_is_left_to_reports() || self.snd.board.first().is_some_and(repeated)
    }

    /// Whether a report or a request has set off the repair of the first outstanding segment. Without SACK nothing but the next one or the
    /// timer tells that a repair is lost: acknowledgements that arrive meanwhile were sent before it.
    pub(super) fn head_is_left_to_reports(&self) -> bool {
        let repaired = |head: &Sent| head.needs_repair() || head.was_retransmitted();
        let reported = self.agreed.reports && self.config.report_response == ReportResponse::Immediate;
        (reported || self.agreed.snack_block.is_some()) && self.snd.board.first().is_some_and(repaired)
    }

    /// Looks for losses by time (RFC 8985).
    pub(super) fn detect_by_rack(&mut self, now: Instant) {
        let mut found = std::mem::take(&mut self.scratch);
        let snd = &mut self.snd;
        let enough = u64::from(self.config.dup_threshold) * u64::from(snd.mss);
        let certain = !snd.recovery.is_open() || snd.board.sacked() >= enough;
        let wait = snd.rack.losses(now, &mut snd.board, &snd.rtt, certain, &mut found);
        self.timers.set_reordering(wait.map(|wait| now + wait));
        self.excuse_lost_probe(&mut found);
        if !found.is_empty() && !self.defers(now, Sign::Duplicates) {
            self.refresh_path(now);
            let judged = self.judge(&found, Trigger::Rack);
            self.declare_lost(now, judged);
        }
        self.scratch = found;
    }
}
