//! After a retransmission timeout: was it right, and what follows (RFC 5682, RFC 3522, RFC 4015).

use super::ack::{make_ack, News};
use super::record::Event;
use super::recovery::Stage;
use super::Endpoint;
use crate::segment::Segment;
use crate::time::Instant;
use crate::timeout::{AfterTimeout, Assessment, Exit, Pardon, TimeoutOutcome};

impl Endpoint {
    #[inline(never)]
    pub(super) fn on_ack_after_timeout(&mut self, now: Instant, segment: &Segment, news: &News) {
        let Some(timeout) = self.snd.recovery.timeout() else { return };
        let recover = timeout.recover();
        match timeout.stage() {
            Stage::Awaiting { acks, .. } | Stage::Repairing(acks) => self.assess_timeout(now, segment, news, acks + 1),
            Stage::Forgiven if news.acked > 0 => self.mark_missing(recover),
            Stage::Forgiven | Stage::Genuine => {}
        }
        let Some(timeout) = self.snd.recovery.timeout() else { return };
        if self.snd.una >= recover {
            if timeout.stage().undecided().is_some() {
                self.events.push_back(Event::TimeoutAssessed(TimeoutOutcome::Genuine));
            }
            self.snd.recovery.end();
            self.snd.board.restart_examination();
        }
    }

    fn assess_timeout(&mut self, now: Instant, segment: &Segment, news: &News, number: u32) {
        let Some(timeout) = self.snd.recovery.timeout() else { return };
        let (recover, head_end) = (timeout.recover(), timeout.head_end());
        let awaiting = self.snd.recovery.awaiting().is_some();
        let beyond = self.snd.una > recover || self.snd.board.highest_sacked() > recover;
        let room = self.snd.room_at_peer();
        let ack = make_ack(&self.path, segment, news, &self.snd.recovery);
        let assessment = self.parts.timeout.assess(&AfterTimeout {
            ack: &ack,
            number,
            silence: news.silence,
            recover,
            head_end,
            beyond_recover: beyond,
            original_delivered: news.delivered.original_before_watch,
            new_data_possible: self.snd.unsent() > 0 && room >= u64::from(self.snd.mss).min(self.snd.unsent()),
            retransmission_tsval: self.snd.recovery.first_repetition().map(|(value, _)| value),
            dsack: news.dsack.is_some_and(|(left, _)| left < head_end),
        });
        match assessment {
            Assessment::Undecided if awaiting => {
                let credit = if news.acked > 0 { 2 } else { 0 };
                self.snd.recovery.assess(Stage::Awaiting { acks: number, credit });
            }
            Assessment::Undecided | Assessment::Repairing => {
                self.snd.recovery.assess(Stage::Repairing(number));
                self.go_on_repairing(awaiting, number, recover);
            }
            Assessment::Forgiven(pardon) if self.snd.undo.is_some() => self.forgive_timeout(now, pardon, awaiting, recover),
            Assessment::Spurious if self.snd.undo.is_some() => {
                let delayed = news.delivered.once.map(|(sent, _)| now.since(sent));
                self.undo_reduction(now);
                if let Some(delayed) = delayed {
                    self.snd.rtt.on_spurious(delayed);
                }
            }
            Assessment::Genuine | Assessment::Forgiven(_) | Assessment::Spurious => {
                self.snd.recovery.assess(Stage::Genuine);
                // Of a timeout that took no window there is nothing to give back.
                let kept = matches!(assessment, Assessment::Forgiven(_));
                self.stats.forgiven_timeouts += u64::from(kept);
                let outcome = if kept { TimeoutOutcome::Forgiven } else { TimeoutOutcome::Genuine };
                self.events.push_back(Event::TimeoutAssessed(outcome));
                self.go_on_repairing(awaiting, number, recover);
            }
        }
    }

    /// Everything that was outstanding at the timeout is to be sent again, if that has not begun.
    fn go_on_repairing(&mut self, awaiting: bool, number: u32, recover: u64) {
        if !awaiting {
            return;
        }
        if number > 1 && self.snd.nxt > recover {
            // RFC 5682, 2.1 step 3a: the two new segments must not keep the retransmissions back.
            self.window.set_cwnd(self.window.cwnd().max(3 * u64::from(self.snd.mss)));
        }
        self.mark_unrepaired(recover);
    }

    fn mark_unrepaired(&mut self, recover: u64) {
        for index in 0..self.snd.board.len() {
            let sent = self.snd.board.get(index);
            if sent.may_be_missing() && !sent.was_retransmitted() && sent.end() <= recover {
                self.snd.board.mark_lost(index);
            }
        }
    }

    /// What was sent before the timeout and is not acknowledged by now is missing: all of it where the receiver says what it has, else
    /// the first segment, as after a partial acknowledgement (RFC 6582, 3.2).
    fn mark_missing(&mut self, recover: u64) {
        if self.agreed.sack {
            self.mark_unrepaired(recover);
        } else if self.snd.una < recover {
            if let Some(head) = self.snd.board.first().filter(|head| head.may_be_missing() && !head.was_retransmitted()) {
                debug_assert_eq!(head.start, self.snd.una);
                self.snd.board.mark_lost(0);
                self.snd.due.head = true;
            }
        }
    }

    /// Window and threshold come back, little by little; the back-off stays unless the pardon says otherwise.
    fn forgive_timeout(&mut self, now: Instant, pardon: Pardon, awaiting: bool, recover: u64) {
        let Some(undo) = self.snd.undo.take() else { return };
        self.stats.forgiven_timeouts += 1;
        self.snd.recovery.assess(Stage::Forgiven);
        self.stop_climbing();
        if awaiting {
            // Nothing but the first segment was sent again, so duplicates will not be of our making (RFC 6582, 3.2 step 1).
            self.snd.recovery.heed_duplicates_beyond(recover - 1);
        }
        if !self.agreed.sack {
            // The originals did not arrive late, or the timeout would be spurious: after this long they are in the network no more. In
            // the pipe they would make room for a whole window, which the acknowledgement that covers them would let go at once.
            self.snd.board.mark_gone(recover);
        }
        self.mark_missing(recover);
        if pardon.timer {
            self.snd.rtt.reset_backoff();
        }
        let mss = u64::from(self.snd.mss);
        let before = self.window.cwnd();
        let target = (undo.cwnd >> pardon.halvings.min(63)).max(before);
        let pipe = self.snd.pipe();
        match pardon.exit {
            Exit::SlowStart => {
                self.window.set_ssthresh(undo.ssthresh.max(target));
                let initial = u64::from(self.config.initial_window) * mss;
                self.window.set_cwnd(target.min(pipe + initial).max(before));
            }
            Exit::Paced => {
                self.window.set_ssthresh(undo.ssthresh);
                self.window.set_cwnd(target.min(pipe + mss).max(before));
                self.pace_up_to(now, target);
            }
        }
        self.refresh_path(now);
        self.parts.congestion.on_undo(&mut self.window, &self.path);
        self.forgive(mss, true);
        self.events.push_back(Event::TimeoutAssessed(TimeoutOutcome::Forgiven));
    }
}
