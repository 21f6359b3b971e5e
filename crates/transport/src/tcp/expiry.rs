//! The retransmission timer has expired.

use super::losses::Judged;
use super::probing::Sign;
use super::record::{Closing, Event, Judgement, State, TimeoutRecord};
use super::recovery::Stage;
use super::scoreboard::Sent;
use super::undo::Undo;
use super::Endpoint;
use crate::path::Trigger;
use crate::time::{Duration, Instant};
use crate::timeout::{Timeout, TimeoutResponse, TimeoutWindow};
use crate::verdict::Verdict;

/// The connection when the timer expired.
#[derive(Debug)]
struct Expiry {
    /// The timeout that has expired.
    rto: Duration,
    /// The first outstanding segment.
    head: Sent,
    /// The window that there was but for recovery.
    whole: u64,
    /// Octets that duplicates had let out.
    inflation: u64,
    /// The repair of an earlier timeout is still under way.
    repeated: bool,
}

impl Endpoint {
    pub(super) fn on_retransmission_timeout(&mut self, now: Instant) {
        match self.state {
            State::SynSent | State::SynReceived => return self.on_syn_timeout(now),
            State::Closed | State::Listen | State::TimeWait => return,
            _ if self.snd.board.len() == 0 => return,
            _ => {}
        }
        if self.defers(now, Sign::Timeout) {
            return;
        }
        self.snd.expiries += 1;
        if self.gives_up(now) {
            return self.finish(Closing::TimedOut);
        }
        self.stats.timeouts += 1;
        let expiry = self.take_stock(now);
        let mut records = self.judge(&[0], Trigger::Timeout);
        let verdict = records[0].1.verdict;
        let response = self.ask_timeout_policy(now, &expiry, &verdict);
        let collapsed = !response.window.keeps();
        if !collapsed {
            self.snd.undo = None;
        } else if !expiry.repeated {
            let before = (self.window.cwnd().max(expiry.whole), self.window.ssthresh());
            let undo = Undo::new(before, self.snd.una, self.snd.nxt, self.snd.board.repeated());
            self.snd.undo = Some(Box::new(undo));
            self.parts.congestion.save();
        }
        if collapsed {
            self.collapse(now, &expiry, response.window);
        } else {
            self.forgive(u64::from(expiry.head.data_len()), true);
        }
        self.begin_repair(now, &expiry, response);
        records[0].1.judgement = if collapsed { Judgement::Reduced } else { Judgement::Kept };
        self.tell_timeout(now, &expiry, verdict, collapsed, records);
    }

    /// Whether the peer has been silent for so long that the connection is over.
    fn gives_up(&self, now: Instant) -> bool {
        let unanswered = self.snd.board.first().map_or(Duration::ZERO, |head| now.since(head.first_at));
        self.config.max_retransmissions.is_some_and(|max| self.snd.expiries > max)
            || self.config.user_timeout.is_some_and(|limit| unanswered >= limit)
    }

    /// Ends what an expiry ends, whatever it is taken for, and notes what was.
    fn take_stock(&mut self, now: Instant) -> Expiry {
        let whole = self.whole_cwnd();
        self.stop_climbing();
        self.suspect_path_mtu(now);
        let rto = self.snd.rtt.rto();
        let reneged = self.snd.board.first().is_some_and(Sent::is_sacked);
        if reneged || self.config.forget_sacks {
            self.snd.board.forget_sacks(); // RFC 2018, 8
        }
        self.refresh_path(now);
        let head = *self.snd.board.get(0);
        let recovery = &self.snd.recovery;
        // A forgiven timeout has its window back, and one that took none leaves nothing to undo: the next one begins anew.
        let repeated = recovery.timeout().is_some_and(|timeout| timeout.stage() != Stage::Forgiven) && self.snd.undo.is_some();
        Expiry { rto, head, whole, inflation: recovery.inflation(), repeated }
    }

    fn ask_timeout_policy(&mut self, now: Instant, expiry: &Expiry, verdict: &Verdict) -> TimeoutResponse {
        self.snd.quiet_since = self.snd.quiet_since.max(expiry.head.first_at);
        self.parts.timeout.on_timeout(&Timeout {
            path: &self.path,
            consecutive: self.snd.expiries,
            silence: now.since(self.snd.quiet_since),
            verdict,
            sack: self.agreed.sack,
            timestamps: self.agreed.timestamps,
            in_recovery: expiry.repeated,
        })
    }

    /// The window falls to one segment.
    fn collapse(&mut self, now: Instant, expiry: &Expiry, how: TimeoutWindow) {
        // RFC 5681, 3.1: a segment that times out again leaves the threshold alone.
        if !(expiry.repeated && expiry.head.was_retransmitted()) {
            // What duplicate acknowledgements report as gone is not in flight, though fast recovery let as much more out for it.
            self.path.flight = self.path.flight.saturating_sub(expiry.inflation);
            let threshold = if how == TimeoutWindow::Regain {
                expiry.whole
            } else {
                self.assume_full_window(self.window.cwnd());
                self.parts.congestion.timeout_threshold(&self.window, &self.path)
            };
            self.window.set_ssthresh(threshold);
        }
        self.window.set_cwnd(u64::from(self.snd.mss));
        self.announce_reduction();
        self.refresh_path(now);
        self.parts.congestion.on_timeout(&mut self.window, &self.path);
    }

    /// Goes on with a window of `whole` octets if it stays, none of which is in the network.
    fn resume(&mut self, now: Instant, whole: u64, window: TimeoutWindow) {
        match window {
            TimeoutWindow::Collapse | TimeoutWindow::Regain => {}
            TimeoutWindow::Keep => self.come_back_to(whole, 0),
            TimeoutWindow::KeepPaced => {
                self.window.set_cwnd(u64::from(self.snd.mss));
                self.pace_up_to(now, whole);
            }
            TimeoutWindow::KeepAtOnce => self.window.set_cwnd(whole),
        }
    }

    /// Backs off, and takes the first segment or everything for lost.
    fn begin_repair(&mut self, now: Instant, expiry: &Expiry, response: TimeoutResponse) {
        if response.back_off {
            self.snd.rtt.back_off();
        }
        let in_flight = self.snd.pipe();
        if let Some(rates) = self.snd.rates.as_mut().filter(|_| !response.window.keeps()) {
            rates.add_lost(if response.head_only { u64::from(expiry.head.len) } else { in_flight });
        }
        self.snd.rtt.on_retransmit();
        self.snd.recovery.expire(self.snd.nxt, expiry.head.end(), self.snd.expiries, expiry.repeated);
        if response.head_only {
            self.snd.board.mark_lost(0);
        } else {
            self.snd.board.mark_all_lost();
        }
        self.resume(now, expiry.whole, response.window);
        self.snd.due.head = true;
        self.snd.rack.tail_probe = None;
        self.snd.due.tail_probe = false;
        self.timers.set_reordering(None);
        self.timers.arm_retransmission(self.snd.rtt.expiry(now));
    }

    fn tell_timeout(&mut self, now: Instant, expiry: &Expiry, verdict: Verdict, collapsed: bool, records: Judged) {
        self.events.push_back(Event::Timeout(Box::new(TimeoutRecord {
            at: now,
            consecutive: self.snd.expiries,
            offset: self.snd.offset(expiry.head.start),
            sent_at: expiry.head.last_at,
            rto_ns: expiry.rto.as_nanos(),
            verdict,
            collapsed,
        })));
        self.tell_losses(records);
    }

    fn on_syn_timeout(&mut self, now: Instant) {
        self.snd.syn_expiries += 1;
        if self.config.max_syn_retransmissions.is_some_and(|max| self.snd.syn_expiries > max) {
            return self.finish(Closing::TimedOut);
        }
        self.stats.timeouts += 1;
        self.snd.rtt.back_off();
        self.syn_due = true;
        self.timers.arm_retransmission(self.snd.rtt.expiry(now));
    }
}
