//! From a suspicion to a repair: judging losses, entering and leaving fast recovery.

use super::prr::Prr;
use super::record::{Event, Judgement, LossRecord};
use super::scoreboard::Sent;
use super::sides::{Phase, Sender, Stage};
use super::undo::Undo;
use super::{Endpoint, Recovery, ReportResponse};
use crate::path::{Loss, Path, Trigger};
use crate::reaction::{Repair, Response};
use crate::time::Instant;
use crate::timeout::Outcome;
use crate::verdict::Cause;

/// The event that a record tells of.
fn loss_of<'a>(path: &'a Path, base: u64, record: &LossRecord, first_of_episode: bool) -> Loss<'a> {
    Loss {
        path,
        start: base + record.offset,
        len: record.len,
        transmission: record.transmission,
        sent_at: record.sent_at,
        trigger: record.trigger,
        first_of_episode,
    }
}

/// Losses with the opinions on them, by scoreboard index.
pub(super) type Judged = Vec<(usize, LossRecord)>;

impl Sender {
    /// The window that fast recovery will leave behind, if it is under way.
    pub fn fast_exit_cwnd(&self) -> Option<u64> {
        match self.phase {
            Phase::Fast { exit_cwnd, .. } => Some(exit_cwnd),
            _ => None,
        }
    }
}

impl Endpoint {
    /// Asks all differentiators about the segments at `indices`. Changes nothing else; the path must be up to date.
    pub(super) fn judge(&mut self, indices: &[usize], trigger: Trigger) -> Judged {
        let open = self.snd.phase == Phase::Open;
        indices
            .iter()
            .enumerate()
            .map(|(nth, &index)| {
                let sent = *self.snd.board.get(index);
                (index, self.judge_one(&sent, trigger, open && nth == 0))
            })
            .collect()
    }

    fn judge_one(&mut self, sent: &Sent, trigger: Trigger, first_of_episode: bool) -> LossRecord {
        let loss = Loss {
            path: &self.path,
            start: sent.start,
            len: sent.data_len(),
            transmission: u32::from(sent.transmissions) - 1,
            sent_at: sent.last_at,
            trigger,
            first_of_episode,
        };
        // Only what is noticed while another episode is under way belongs to it.
        let begins = match trigger {
            Trigger::TailProbe => true,
            Trigger::Timeout => !matches!(self.snd.phase, Phase::Timeout { .. }),
            _ => self.snd.phase == Phase::Open,
        };
        LossRecord {
            at: self.path.now,
            offset: self.snd.offset(sent.start),
            len: loss.len,
            transmission: loss.transmission,
            sent_at: loss.sent_at,
            trigger,
            episode: if begins { self.snd.episodes } else { self.snd.episodes.saturating_sub(1) },
            verdict: self.parts.differentiator.judge(&loss),
            shadows: self.parts.shadows.iter_mut().map(|(_, shadow)| shadow.judge(&loss)).collect(),
            judgement: Judgement::Covered,
        }
    }

    /// A tail loss probe has repaired `lost` before anything else noticed (RFC 8985, 7.4.2).
    pub(super) fn respond_to_repaired_tail(&mut self, lost: &Sent) {
        let mut record = self.judge_one(lost, Trigger::TailProbe, true);
        let response = self.parts.reaction.respond(&record.verdict, &loss_of(&self.path, self.snd.buffer.base(), &record, true));
        let target = self.apply(response);
        if let Some(target) = target {
            self.come_back_to(target, self.window.cwnd());
            self.stats.reductions += 1;
        }
        self.snd.episodes += 1;
        record.judgement = if target.is_some() { Judgement::Reduced } else { Judgement::Kept };
        self.tell_losses(vec![(0, record)]);
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
        let verdict = record.verdict;
        let judgement = match self.snd.phase {
            Phase::Open => {
                let loss = loss_of(&self.path, self.snd.buffer.base(), record, true);
                let response = self.parts.reaction.respond(&verdict, &loss);
                let repair = self.parts.reaction.repair(&verdict);
                let reduced = self.enter_fast_recovery(now, response);
                self.snd.bulk.begin(if repair == Repair::Bulk { self.snd.recover } else { 0 });
                Some(if reduced { Judgement::Reduced } else { Judgement::Kept })
            }
            Phase::Fast { reduced: false, .. } if verdict.cause != Cause::Corruption => {
                let record = record.clone();
                self.respond_within_recovery(&record)
            }
            _ => None,
        };
        if let Some(judgement) = judgement {
            judged[decisive].1.judgement = judgement;
        }
        for &(index, _) in &judged {
            self.snd.board.mark_lost(index);
        }
        if self.agreed.sack && judgement.is_some() && self.snd.bulk.until > 0 {
            self.snd.board.mark_holes_lost();
        }
        self.snd.force_head |= judgement.is_some();
        self.tell_losses(judged);
    }

    fn respond_within_recovery(&mut self, record: &LossRecord) -> Option<Judgement> {
        let loss = loss_of(&self.path, self.snd.buffer.base(), record, false);
        let response = self.parts.reaction.respond(&record.verdict, &loss);
        let target = self.apply(response)?;
        if let Phase::Fast { reduced, exit_cwnd, .. } = &mut self.snd.phase {
            *reduced = true;
            *exit_cwnd = target;
        }
        self.stats.reductions += 1;
        match &mut self.snd.prr {
            Some(prr) => prr.retarget(target),
            None => self.window.set_cwnd(target.min(self.window.cwnd())),
        }
        Some(Judgement::Reduced)
    }

    /// Sets the threshold that `response` asks for and returns the window to go to; `None` if everything stays.
    fn apply(&mut self, response: Response) -> Option<u64> {
        // What recovery makes of the window for its own purposes is not the window that there was.
        let mut before = self.window.clone();
        before.set_cwnd(self.snd.fast_exit_cwnd().unwrap_or(before.cwnd()));
        let whole = self.whole_cwnd();
        let (threshold, most) = match response {
            Response::Keep => return None,
            Response::Reduce => {
                self.assume_full_window(before.cwnd());
                (self.parts.congestion.threshold(&before, &self.path), before.cwnd())
            }
            Response::Scale(factor) => ((whole as f64 * factor) as u64, whole),
            Response::Limit(octets) => (octets, whole),
        };
        self.stop_climbing();
        self.window.set_ssthresh(threshold);
        Some(self.window.ssthresh().min(most))
    }

    /// The window that there is but for recovery: the one that fast recovery leaves behind, or that comes back little by little.
    pub(super) fn whole_cwnd(&self) -> u64 {
        let coming_back = self.snd.ramp.map(|ramp| ramp.target);
        self.snd.fast_exit_cwnd().or(coming_back).unwrap_or(self.window.cwnd())
    }

    /// Where thresholds come from the window: takes all of it for in flight.
    pub(super) fn assume_full_window(&mut self, cwnd: u64) {
        if self.config.ssthresh_from_cwnd {
            self.path.flight = cwnd;
        }
    }

    /// Begins fast recovery; returns whether the window was reduced.
    fn enter_fast_recovery(&mut self, now: Instant, response: Response) -> bool {
        let before = (self.whole_cwnd(), self.window.ssthresh());
        // RFC 5681, 3.2 step 2: what limited transmit sent does not count.
        self.path.flight = self.path.flight.saturating_sub(self.snd.limited);
        self.parts.congestion.save();
        let target = self.apply(response);
        self.stop_climbing();
        let reduced = target.is_some();
        let snd = &mut self.snd;
        self.stats.fast_retransmits += 1;
        self.stats.reductions += u64::from(reduced);
        snd.episodes += 1;
        snd.recover = snd.nxt;
        snd.rtx_tsval = None;
        snd.undo = reduced.then_some(Undo {
            cwnd: before.0,
            ssthresh: before.1,
            unproven: 0,
            retransmitted: false,
            una: snd.una,
            recover: snd.nxt,
        });
        if reduced {
            snd.cwr_due |= self.agreed.ecn;
            snd.ecn_recover = snd.nxt;
        }
        let mss = u64::from(snd.mss);
        let exit_cwnd = target.unwrap_or(before.0);
        if !self.agreed.sack && self.config.recovery == Recovery::Tahoe && reduced {
            snd.phase = Phase::Timeout { recover: snd.nxt, stage: Stage::Genuine, head_end: snd.una };
            self.window.set_cwnd(mss);
            snd.board.mark_all_lost();
            self.timers.arm_retransmission(snd.rtt.expiry(now));
            return reduced;
        }
        snd.phase = Phase::Fast { recover: snd.nxt, reduced, exit_cwnd, partial_seen: false };
        if !self.agreed.sack {
            // As many segments have left the network; a report may come before any duplicate.
            snd.inflation = u64::from(snd.dup_acks) * mss;
        }
        if self.agreed.sack && self.config.prr {
            snd.prr = Some(Prr::new(snd.flight() - snd.board.sacked(), exit_cwnd));
        } else {
            self.window.set_cwnd(exit_cwnd.min(self.window.cwnd()));
        }
        snd.board.restart_examination();
        self.timers.arm_retransmission(snd.rtt.expiry(now));
        reduced
    }

    /// Everything outstanding at the start of fast recovery is acknowledged.
    pub(super) fn leave_fast_recovery(&mut self, now: Instant, exit_cwnd: u64) {
        self.snd.phase = Phase::Open;
        self.snd.inflation = 0;
        self.snd.prr = None;
        self.snd.dup_acks = 0;
        self.snd.rack.on_recovered();
        self.snd.board.restart_examination();
        self.come_back_to(exit_cwnd, 0);
        self.refresh_path(now);
    }

    /// The last reduction was unnecessary: take it back.
    pub(super) fn undo_reduction(&mut self, now: Instant) {
        let Some(undo) = self.snd.undo.take() else { return };
        self.stats.undos += 1;
        if let Phase::Timeout { stage: Stage::Awaiting(_) | Stage::Repairing(_), .. } = self.snd.phase {
            self.stats.spurious_timeouts += 1;
            self.events.push_back(Event::TimeoutAssessed(Outcome::Spurious));
        }
        if matches!(self.snd.phase, Phase::Timeout { .. }) {
            self.parts.timeout.on_undone();
        }
        self.window.set_ssthresh(undo.ssthresh.max(self.window.ssthresh()));
        self.snd.phase = Phase::Open;
        self.snd.prr = None;
        self.snd.inflation = 0;
        self.snd.dup_acks = 0;
        self.snd.force_head = false;
        self.snd.board.unmark_lost();
        let cwnd = self.window.cwnd();
        self.come_back_to(undo.cwnd.max(cwnd), cwnd);
        self.refresh_path(now);
        self.parts.congestion.on_undo(&mut self.window, &self.path);
        self.events.push_back(Event::Undone);
    }

    /// The network marked a segment (RFC 3168, 6.1.2): at most one reduction a window of data.
    pub(super) fn on_ecn_echo(&mut self) {
        let already = matches!(self.snd.phase, Phase::Fast { reduced: true, .. } | Phase::Timeout { .. });
        if self.snd.una < self.snd.ecn_recover || already {
            return;
        }
        self.snd.ecn_recover = self.snd.nxt;
        self.snd.cwr_due = true;
        self.snd.undo = None;
        self.stats.ecn_reductions += 1;
        let Some(target) = self.apply(Response::Reduce) else { return };
        match (&mut self.snd.phase, &mut self.snd.prr) {
            (Phase::Fast { reduced, exit_cwnd, .. }, prr) => {
                (*reduced, *exit_cwnd) = (true, target);
                if let Some(prr) = prr {
                    prr.retarget(target);
                }
            }
            _ => self.window.set_cwnd(target),
        }
    }

    /// Looks for losses by duplicate acknowledgements or the SACK scoreboard.
    pub(super) fn detect_by_duplicates(&mut self, now: Instant) {
        let threshold = self.config.dup_threshold;
        let enough = self.snd.dup_acks >= threshold;
        let mut found = std::mem::take(&mut self.scratch);
        found.clear();
        if self.agreed.sack {
            // After a timeout nothing is detected anew until all that was then outstanding is acknowledged (RFC 6675, 5.1).
            if !matches!(self.snd.phase, Phase::Timeout { .. }) {
                self.snd.board.find_lost(threshold, self.snd.mss, &mut found);
                if self.snd.phase == Phase::Open && enough && found.first() != Some(&0) {
                    if let Some(head) = self.snd.board.first().filter(|head| head.in_network()) {
                        debug_assert_eq!(head.start, self.snd.una);
                        found.insert(0, 0);
                    }
                }
            }
        } else if self.snd.phase == Phase::Open
            && enough
            && self.snd.una > self.snd.recover
            && self.snd.board.len() > 0
            && !self.head_is_left_to_reports()
        {
            found.push(0);
        }
        self.excuse_lost_probe(&mut found);
        if !found.is_empty() {
            let judged = self.judge(&found, Trigger::DuplicateAcks);
            self.declare_lost(now, judged);
        }
        self.scratch = found;
    }

    /// Whether the repair of the first outstanding segment is under way although no partial acknowledgement has asked for it.
    pub(super) fn head_is_being_repaired(&self) -> bool {
        let repeated = |head: &Sent| head.start < self.snd.bulk.until && head.was_retransmitted();
        self.head_is_left_to_reports() || self.snd.board.first().is_some_and(repeated)
    }

    /// Whether a report has set off the repair of the first outstanding segment. Without SACK nothing but the next report or the
    /// timer tells that a repair is lost: acknowledgements that arrive meanwhile were sent before it.
    pub(super) fn head_is_left_to_reports(&self) -> bool {
        let repaired = |head: &Sent| head.needs_repair() || head.was_retransmitted();
        self.agreed.reports
            && self.config.report_response == ReportResponse::Immediate
            && self.snd.board.first().is_some_and(repaired)
    }

    /// Looks for losses by time (RFC 8985).
    pub(super) fn detect_by_rack(&mut self, now: Instant) {
        let mut found = std::mem::take(&mut self.scratch);
        let wait = self.snd.rack_losses(now, self.config.dup_threshold, &mut found);
        self.timers.set_reordering(wait.map(|wait| now + wait));
        self.excuse_lost_probe(&mut found);
        if !found.is_empty() {
            self.refresh_path(now);
            let judged = self.judge(&found, Trigger::Rack);
            self.declare_lost(now, judged);
        }
        self.scratch = found;
    }
}
