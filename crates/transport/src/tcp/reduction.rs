//! Where the window falls, and how it comes back: entering and leaving fast recovery, responses to what is noticed later, undoing.

use super::prr::Prr;
use super::record::{Event, Judgement, LossRecord};
use super::recovery::{Fast, FastStart};
use super::scoreboard::Sent;
use super::undo::Undo;
use super::{Endpoint, FastRecovery};
use crate::path::{Forgiven, Loss, Path, Trigger};
use crate::reaction::{Repair, Response};
use crate::time::Instant;
use crate::timeout::TimeoutOutcome;
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

impl Endpoint {
    /// A tail loss probe has repaired `lost` before anything else noticed (RFC 8985, 7.4.2), or what was sent in the place of another probe.
    pub(super) fn respond_to_repaired_tail(&mut self, lost: &Sent) {
        let mut record = self.judge_repaired(lost, Trigger::TailProbe);
        if self.snd.ecn.marked && lost.end() <= self.snd.ecn.reduced_until {
            // A mark has reduced the window that this was lost of: once is enough (RFC 3168, 6.1.2).
            self.snd.recovery.count_episode();
            return self.tell_losses(vec![(0, record)]);
        }
        let response = self.parts.reaction.respond(&record.verdict, &loss_of(&self.path, self.snd.buffer.base(), &record, true));
        let target = self.apply(response);
        if let Some(target) = target {
            self.come_back_to(target, self.window.cwnd());
            self.stats.reductions += 1;
            self.announce_reduction();
        }
        self.snd.recovery.count_episode();
        record.judgement = if target.is_some() { Judgement::Reduced } else { Judgement::Kept };
        if target.is_none() {
            self.forgive(u64::from(record.len), false);
        }
        self.tell_losses(vec![(0, record)]);
    }

    /// What a loss does to the window: the first of an episode, or the first that is not corruption in a recovery that has kept it. `None`:
    /// nothing.
    pub(super) fn respond(&mut self, now: Instant, record: &LossRecord) -> Option<Judgement> {
        let verdict = &record.verdict;
        let first = self.snd.recovery.is_open();
        let kept = self.snd.recovery.fast().is_some_and(|fast| !fast.reduced());
        let again = kept && verdict.cause != Cause::Corruption;
        if !(first || again) {
            return None;
        }
        let loss = loss_of(&self.path, self.snd.buffer.base(), record, first);
        let response = self.parts.reaction.respond(verdict, &loss);
        if first {
            let repeats = self.parts.reaction.repair(verdict) == Repair::Bulk;
            let reduced = self.enter_fast_recovery(now, response, repeats);
            return Some(if reduced { Judgement::Reduced } else { Judgement::Kept });
        }
        let target = self.apply(response)?;
        self.stats.reductions += 1;
        self.announce_reduction();
        let fast = self.snd.recovery.fast_mut()?;
        fast.reduce_to(target);
        if !fast.meters() && self.snd.rates.is_none() {
            self.window.set_cwnd(target.min(self.window.cwnd()));
        }
        Some(Judgement::Reduced)
    }

    /// Tells the congestion control of `octets` lost for which the window stays.
    pub(super) fn forgive(&mut self, octets: u64, timeout: bool) {
        let cwnd = self.whole_cwnd();
        let forgiven = Forgiven { timeout, fewest: self.fewest_heard(), ..Forgiven::new(&self.path, octets, cwnd) };
        self.parts.congestion.on_forgiven(&self.window, &forgiven);
    }

    /// Segments that have to be outstanding so that acknowledgements tell of a loss: the lost one, and as many as duplicates are needed, two of which
    /// limited transmit lets out (RFC 3042). A tail loss probe asks for one.
    fn fewest_heard(&self) -> u32 {
        let limited = if self.config.limited_transmit { 2 } else { 0 };
        if self.config.tlp && self.agreed.sack {
            1
        } else {
            1 + self.config.dup_threshold.saturating_sub(limited)
        }
    }

    /// The window that recovery leaves behind, or that comes back little by little, becomes `octets`; what was reduced does not become larger.
    pub(super) fn redirect_recovery(&mut self, octets: u64) {
        let reduced = self.snd.recovery.fast().is_some_and(Fast::reduced);
        let before = self.whole_cwnd();
        if octets == before || reduced && octets > before {
            return;
        }
        match (self.snd.recovery.fast_mut(), &mut self.snd.ramp) {
            (Some(fast), _) => fast.leave_with(octets),
            (None, Some(ramp)) => ramp.target = octets,
            (None, None) => {}
        }
        if self.window.cwnd() > octets {
            self.window.set_cwnd(octets);
        }
    }

    /// Sets the threshold that `response` asks for and returns the window to go to; `None` if everything stays.
    fn apply(&mut self, response: Response) -> Option<u64> {
        // What recovery makes of the window for its own purposes is not the window that there was.
        let mut before = self.window.clone();
        before.set_cwnd(self.snd.recovery.fast().map_or(before.cwnd(), Fast::exit_cwnd));
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
        // The window itself is not rounded where thresholds are.
        let least = u64::from(self.config.least_cwnd) * u64::from(self.snd.mss);
        Some(threshold.max(least).min(most))
    }

    /// The window that there is but for recovery: the one that fast recovery leaves behind, or that comes back little by little.
    pub(super) fn whole_cwnd(&self) -> u64 {
        let coming_back = self.snd.ramp.map(|ramp| ramp.target);
        self.snd.recovery.fast().map(Fast::exit_cwnd).or(coming_back).unwrap_or(self.window.cwnd())
    }

    /// Where thresholds come from the window: takes all of it for in flight.
    pub(super) fn assume_full_window(&mut self, cwnd: u64) {
        if self.config.ssthresh_from_cwnd {
            self.path.flight = cwnd;
        }
    }

    /// The receiver has measured what the window should be: takes it at once, and for what recovery leaves behind.
    pub(super) fn take_window(&mut self, octets: u64) {
        self.stop_climbing();
        self.window.set_cwnd(octets);
        let octets = self.window.cwnd();
        if let Some(fast) = self.snd.recovery.fast_mut() {
            fast.leave_with(octets);
        }
    }

    /// Begins fast recovery, in which everything outstanding is sent again if it `repeats`; returns whether the window was reduced.
    fn enter_fast_recovery(&mut self, now: Instant, response: Response, repeats: bool) -> bool {
        let before = (self.whole_cwnd(), self.window.ssthresh());
        // RFC 5681, 3.2 step 2: what limited transmit sent does not count.
        self.path.flight = self.path.flight.saturating_sub(self.snd.recovery.limited());
        self.parts.congestion.save();
        let target = self.apply(response);
        self.stop_climbing();
        let reduced = target.is_some();
        let exit_cwnd = target.unwrap_or(before.0);
        self.stats.fast_retransmits += 1;
        self.stats.reductions += u64::from(reduced);
        let snd = &mut self.snd;
        snd.undo = reduced.then(|| Box::new(Undo::new(before, snd.una, snd.nxt, snd.board.repeated())));
        snd.echoes.begin(repeats);
        // This answers for the flight, so for its tail, too.
        snd.rack.tail_probe = None;
        snd.due.tail_probe = false;
        if reduced {
            self.announce_reduction();
        }
        if !self.withholds() {
            self.timers.arm_retransmission(self.snd.rtt.expiry(now));
        }
        let snd = &mut self.snd;
        let mss = u64::from(snd.mss);
        if !self.agreed.sack && self.config.recovery == FastRecovery::Tahoe && reduced {
            snd.recovery.begin_slow_start(snd.nxt, snd.una);
            self.window.set_cwnd(mss);
            snd.board.mark_all_lost();
            return reduced;
        }
        // As many segments have left the network as duplicates came; a report may come before any.
        let inflation = if self.agreed.sack { 0 } else { u64::from(snd.recovery.dup_acks()) * mss };
        let models = snd.rates.is_some();
        let metered = self.agreed.sack && self.config.prr && !models;
        let prr = metered.then(|| Prr::new(snd.flight() - snd.board.sacked(), exit_cwnd));
        // The duplicates that began the recovery have left the network; what they report missing counts, as its repair will.
        let heard = u64::from(self.config.dup_threshold) * mss;
        let counted = (self.agreed.sack && self.config.count_pipe).then(|| snd.flight().saturating_sub(heard + mss));
        snd.recovery.begin_fast(FastStart { recover: snd.nxt, reduced, exit_cwnd, inflation, prr, counted, repeats });
        if !metered && !models {
            self.window.set_cwnd(exit_cwnd.min(self.window.cwnd()));
        }
        snd.board.restart_examination();
        reduced
    }

    /// Everything outstanding at the start of fast recovery is acknowledged.
    pub(super) fn leave_fast_recovery(&mut self, now: Instant, exit_cwnd: u64) {
        self.snd.recovery.end();
        self.snd.rack.on_recovered();
        self.snd.board.restart_examination();
        self.come_back_to(exit_cwnd, if self.config.window_at_once { exit_cwnd } else { 0 });
        self.refresh_path(now);
    }

    /// The last reduction was unnecessary: take it back.
    pub(super) fn undo_reduction(&mut self, now: Instant) {
        let Some(undo) = self.snd.undo.take() else { return };
        self.stats.undos += 1;
        if let Some(timeout) = self.snd.recovery.timeout() {
            if timeout.stage().undecided().is_some() {
                self.stats.spurious_timeouts += 1;
                self.events.push_back(Event::TimeoutAssessed(TimeoutOutcome::Spurious));
            }
            self.parts.timeout.on_undone();
        }
        self.window.set_ssthresh(undo.ssthresh.max(self.window.ssthresh()));
        self.snd.recovery.end();
        self.snd.due.head = false;
        self.snd.board.unmark_lost();
        self.snd.board.restart_examination();
        let cwnd = self.window.cwnd();
        self.come_back_to(undo.cwnd.max(cwnd), cwnd);
        self.refresh_path(now);
        self.parts.congestion.on_undo(&mut self.window, &self.path);
        self.events.push_back(Event::Undone);
    }

    /// The window was reduced, for whatever reason: the next new data tells the receiver, which answers marks until it hears of that (RFC 3168, 6.1.2).
    pub(super) fn announce_reduction(&mut self) {
        self.snd.ecn.cwr_due |= self.agreed.ecn;
        self.snd.ecn.reduced_until = self.snd.nxt;
        self.snd.ecn.marked = false;
    }

    /// The network marked a segment (RFC 3168, 6.1.2): at most one reduction a window of data. What acknowledges just that window left before the receiver
    /// heard of the reduction, too.
    #[inline(never)]
    pub(super) fn on_ecn_echo(&mut self) {
        // RFC 4015, 3.3: it is no time to take a reduction back.
        self.snd.undo = None;
        let recovery = &self.snd.recovery;
        let already = recovery.fast().is_some_and(Fast::reduced) || recovery.timeout().is_some();
        if self.snd.una <= self.snd.ecn.reduced_until || already {
            return;
        }
        self.announce_reduction();
        self.snd.ecn.marked = true;
        self.stats.ecn_reductions += 1;
        let Some(target) = self.apply(Response::Reduce) else { return };
        match self.snd.recovery.fast_mut() {
            Some(fast) => fast.reduce_to(target),
            None => self.window.set_cwnd(target),
        }
    }
}
