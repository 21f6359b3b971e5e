//! The timers of a connection and what their expiry does.

use super::record::{Closing, Event, State, TimeoutRecord};
use super::sides::{Phase, Stage};
use super::undo::Undo;
use super::Endpoint;
use crate::path::Trigger;
use crate::time::{Duration, Instant};
use crate::timeout::{Timeout, TimeoutWindow};

/// Deadlines; [`Instant::MAX`] means not armed.
#[derive(Debug)]
pub(super) struct Timers {
    /// The retransmission timer, or in its place the tail loss probe's.
    retransmission: Instant,
    is_probe: bool,
    delayed_ack: Instant,
    reordering: Instant,
    /// A window that comes back takes its next step.
    ramp: Instant,
    persist: Instant,
    keep_alive: Instant,
    keep_alive_probes: u32,
    time_wait: Instant,
    /// When our SYN left first; `None` if nobody remembers (a SYN cookie).
    pub syn_sent_at: Option<Instant>,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            retransmission: Instant::MAX,
            is_probe: false,
            delayed_ack: Instant::MAX,
            reordering: Instant::MAX,
            ramp: Instant::MAX,
            persist: Instant::MAX,
            keep_alive: Instant::MAX,
            keep_alive_probes: 0,
            time_wait: Instant::MAX,
            syn_sent_at: None,
        }
    }
}

/// Time between keep-alive probes, and how many go unanswered before the connection is given up: what most systems use.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(75);
const KEEP_ALIVE_PROBES: u32 = 9;

impl Timers {
    pub fn next(&self) -> Option<Instant> {
        let next = self
            .retransmission
            .min(self.delayed_ack)
            .min(self.reordering)
            .min(self.ramp)
            .min(self.persist)
            .min(self.keep_alive)
            .min(self.time_wait);
        (next != Instant::MAX).then_some(next)
    }

    pub fn arm_retransmission(&mut self, at: Instant) {
        self.retransmission = at;
        self.is_probe = false;
    }

    pub fn cancel_retransmission(&mut self) {
        self.retransmission = Instant::MAX;
    }

    pub fn retransmission_armed(&self) -> bool {
        self.retransmission != Instant::MAX
    }

    pub fn arm_delayed_ack(&mut self, at: Instant) {
        self.delayed_ack = self.delayed_ack.min(at);
    }

    pub fn cancel_delayed_ack(&mut self) {
        self.delayed_ack = Instant::MAX;
    }

    pub fn set_reordering(&mut self, at: Option<Instant>) {
        self.reordering = at.unwrap_or(Instant::MAX);
    }

    pub fn set_ramp(&mut self, at: Option<Instant>) {
        self.ramp = at.unwrap_or(Instant::MAX);
    }

    pub fn persist_armed(&self) -> bool {
        self.persist != Instant::MAX
    }

    pub fn arm_persist(&mut self, at: Instant) {
        self.persist = at;
    }

    pub fn cancel_persist(&mut self) {
        self.persist = Instant::MAX;
    }

    pub fn touch_keep_alive(&mut self, at: Option<Instant>) {
        if let Some(at) = at {
            self.keep_alive = at;
            self.keep_alive_probes = 0;
        }
    }

    pub fn start_time_wait(&mut self, at: Instant) {
        *self = Self { time_wait: at, ..Self::default() };
    }
}

/// Takes the timer if it is due.
fn due(timer: &mut Instant, now: Instant) -> bool {
    let due = *timer <= now;
    if due {
        *timer = Instant::MAX;
    }
    due
}

impl Endpoint {
    /// When [`Endpoint::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// To be called when the time of [`Endpoint::poll_timeout`] has come; harmless at any other time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if due(&mut self.timers.delayed_ack, now) {
            self.rcv.ack_now = true;
            self.rcv.quick_acks.on_delay_over();
        }
        if due(&mut self.timers.reordering, now) {
            self.detect_by_rack(now);
            // Nothing was delivered: one segment may leave until the next acknowledgement.
            self.reduce_in_proportion(0, false);
        }
        if due(&mut self.timers.ramp, now) {
            self.climb_by_timer(now);
        }
        if due(&mut self.timers.retransmission, now) {
            if self.timers.is_probe {
                self.snd.probe_due = true;
                self.timers.arm_retransmission(self.snd.rtt.expiry(now));
            } else {
                self.on_retransmission_timeout(now);
            }
        }
        if due(&mut self.timers.persist, now) {
            self.snd.probes += 1;
            self.snd.force_probe = true;
            self.arm_persist(now);
        }
        if due(&mut self.timers.keep_alive, now) {
            self.on_keep_alive(now);
        }
        if due(&mut self.timers.time_wait, now) {
            self.finish(Closing::Normal);
        }
    }

    /// Starts the timer that probes a closed window.
    pub(super) fn arm_persist(&mut self, now: Instant) {
        self.timers.arm_persist(self.snd.rtt.clock().after(now, self.persist_interval()));
    }

    /// RFC 9293, 3.8.6.1: the first probe after a retransmission timeout, the next ones ever later.
    fn persist_interval(&self) -> Duration {
        let doubled = self.snd.rtt.base_rto() * (1 << self.snd.probes.min(16));
        doubled.min(self.config.max_rto)
    }

    /// The peer was heard: the time after which it is probed begins anew.
    pub(super) fn touch_keep_alive(&mut self, now: Instant) {
        let clock = self.snd.rtt.clock();
        self.timers.touch_keep_alive(self.config.keep_alive.map(|idle| clock.after(now, idle)));
    }

    fn on_keep_alive(&mut self, now: Instant) {
        if self.timers.keep_alive_probes >= KEEP_ALIVE_PROBES {
            return self.finish(Closing::TimedOut);
        }
        self.timers.keep_alive_probes += 1;
        self.timers.keep_alive = self.snd.rtt.clock().after(now, KEEP_ALIVE_INTERVAL);
        self.snd.keep_alive_due = true;
    }

    /// Arms what guards the outstanding data: the tail loss probe's timer where it applies (RFC 8985, 7.2), else the retransmission
    /// timer (RFC 6298, 5.1 and 5.3).
    pub(super) fn guard_outstanding(&mut self, now: Instant) {
        if self.state == State::SynReceived {
            return; // the timer of the SYN-ACK guards the data that follows it, too
        }
        let expiry = self.snd.rtt.expiry(now);
        self.timers.arm_retransmission(expiry);
        let tail = self.config.tlp
            && self.agreed.sack
            && self.snd.phase == Phase::Open
            && self.snd.board.sacked() == 0
            && self.snd.rack.tail_probe.is_none();
        if tail {
            self.timers.retransmission = expiry.min(now + self.snd.probe_timeout());
            self.timers.is_probe = true;
        }
    }

    fn on_retransmission_timeout(&mut self, now: Instant) {
        match self.state {
            State::SynSent | State::SynReceived => return self.on_syn_timeout(now),
            State::Closed | State::Listen | State::TimeWait => return,
            _ => {}
        }
        if self.snd.board.len() == 0 {
            return;
        }
        self.snd.expiries += 1;
        let unheard = self.snd.board.first().map_or(Duration::ZERO, |head| now.since(head.first_at));
        if self.config.max_retransmissions.is_some_and(|max| self.snd.expiries > max)
            || self.config.user_timeout.is_some_and(|limit| unheard >= limit)
        {
            return self.finish(Closing::TimedOut);
        }
        self.stats.timeouts += 1;
        let whole = self.whole_cwnd();
        self.stop_climbing();
        self.suspect_path_mtu(now);
        let expired = self.snd.rtt.rto();
        if self.snd.board.first().is_some_and(super::scoreboard::Sent::is_sacked) {
            self.snd.board.forget_sacks(); // the receiver has reneged (RFC 2018, 8)
        }
        self.refresh_path(now);
        // A forgiven timeout has its window back: the next one begins anew.
        let repeated = matches!(self.snd.phase, Phase::Timeout { stage, .. } if stage != Stage::Forgiven);
        let inflation = self.snd.inflation;
        let mut records = self.judge(&[0], Trigger::Timeout);
        let verdict = records[0].1.verdict;
        let head = *self.snd.board.get(0);
        self.snd.quiet_since = self.snd.quiet_since.max(head.first_at);
        let response = self.parts.timeout.on_timeout(&Timeout {
            path: &self.path,
            consecutive: self.snd.expiries,
            silence: now.since(self.snd.quiet_since),
            verdict: &verdict,
            sack: self.agreed.sack,
            timestamps: self.agreed.timestamps,
            in_recovery: repeated,
        });

        if !repeated {
            self.snd.undo = Some(Undo {
                cwnd: self.window.cwnd().max(whole),
                ssthresh: self.window.ssthresh(),
                unproven: 0,
                retransmitted: false,
                una: self.snd.una,
                recover: self.snd.nxt,
            });
            self.snd.rtx_tsval = None;
            self.snd.episodes += 1;
            self.parts.congestion.save();
        }
        let collapsed = response.window != TimeoutWindow::Keep;
        if collapsed {
            // RFC 5681, 3.1: a segment that times out again leaves the threshold alone.
            if !(repeated && head.was_retransmitted()) {
                // What duplicate acknowledgements report as gone is not in flight, though fast recovery let as much more out for it.
                self.path.flight = self.path.flight.saturating_sub(inflation);
                let threshold = match response.window {
                    TimeoutWindow::Regain => whole,
                    _ => {
                        self.assume_full_window(self.window.cwnd());
                        self.parts.congestion.timeout_threshold(&self.window, &self.path)
                    }
                };
                self.window.set_ssthresh(threshold);
            }
            self.window.set_cwnd(u64::from(self.snd.mss));
            self.refresh_path(now);
            self.parts.congestion.on_timeout(&mut self.window, &self.path);
        }
        if response.back_off {
            self.snd.rtt.back_off();
        }
        self.snd.rtt.on_retransmit();
        self.snd.prr = None;
        self.snd.inflation = 0;
        self.snd.dup_acks = 0;
        self.snd.frto_credit = 0;
        self.snd.recover = self.snd.nxt;
        self.snd.phase = Phase::Timeout { recover: self.snd.nxt, stage: Stage::Awaiting(0), head_end: head.end() };
        if response.head_only {
            self.snd.board.mark_lost(0);
        } else {
            self.snd.board.mark_all_lost();
        }
        if !collapsed {
            self.come_back_to(whole, 0);
        }
        self.snd.force_head = true;
        self.snd.rack.tail_probe = None;
        self.timers.set_reordering(None);
        self.timers.arm_retransmission(self.snd.rtt.expiry(now));

        self.events.push_back(Event::Timeout(Box::new(TimeoutRecord {
            at: now,
            consecutive: self.snd.expiries,
            offset: self.snd.offset(head.start),
            sent_at: head.last_at,
            rto_ns: expired.as_nanos(),
            verdict,
            collapsed,
        })));
        let judgement = if collapsed { super::Judgement::Reduced } else { super::Judgement::Kept };
        records[0].1.judgement = judgement;
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
