//! The timers of a connection and what their expiry does.

use super::rack::probe_timeout;
use super::record::{Closing, State};
use super::Endpoint;
use crate::time::{Duration, Instant};

/// Deadlines; [`Instant::MAX`] means not armed.
#[derive(Debug)]
pub(super) struct Timers {
    /// The retransmission timer, or in its place the tail loss probe's.
    retransmission: Instant,
    is_probe: bool,
    delayed_ack: Instant,
    /// What the receiver agent asked for.
    receiver: Instant,
    reordering: Instant,
    /// A window that comes back takes its next step.
    ramp: Instant,
    /// The turn of the next data segment, for a sender that goes by a rate.
    pacing: Instant,
    persist: Instant,
    probe: Instant,
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
            receiver: Instant::MAX,
            reordering: Instant::MAX,
            ramp: Instant::MAX,
            pacing: Instant::MAX,
            persist: Instant::MAX,
            probe: Instant::MAX,
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
            .min(self.receiver)
            .min(self.reordering)
            .min(self.ramp)
            .min(self.pacing)
            .min(self.persist)
            .min(self.probe)
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

    pub fn set_receiver(&mut self, at: Option<Instant>) {
        self.receiver = at.unwrap_or(Instant::MAX);
    }

    pub fn set_reordering(&mut self, at: Option<Instant>) {
        self.reordering = at.unwrap_or(Instant::MAX);
    }

    pub fn set_ramp(&mut self, at: Option<Instant>) {
        self.ramp = at.unwrap_or(Instant::MAX);
    }

    pub fn set_probe(&mut self, at: Option<Instant>) {
        self.probe = at.unwrap_or(Instant::MAX);
    }

    pub fn set_pacing(&mut self, at: Instant) {
        self.pacing = at;
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

    pub fn touch_keep_alive(&mut self, at: Instant) {
        self.keep_alive = at;
        self.keep_alive_probes = 0;
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
        self.note_app_limited();
        if due(&mut self.timers.delayed_ack, now) {
            self.rcv.ack_now = true;
            self.rcv.quick_acks.on_delay_over();
        }
        if due(&mut self.timers.receiver, now) {
            let view = self.rcv.view(now, self.agreed, self.snd.rtt.srtt());
            self.rcv.ack_now |= self.parts.receiver.on_timeout(&view);
            self.timers.set_receiver(self.parts.receiver.poll_timeout());
        }
        if due(&mut self.timers.reordering, now) {
            self.detect_by_rack(now);
            // Nothing was delivered: one segment may leave until the next acknowledgement.
            self.reduce_in_proportion(0, false);
        }
        if due(&mut self.timers.ramp, now) {
            self.climb_by_timer(now);
        }
        // What may leave then is asked for by whoever drives the endpoint.
        due(&mut self.timers.pacing, now);
        if due(&mut self.timers.retransmission, now) {
            if self.timers.is_probe {
                self.snd.due.tail_probe = true;
                self.timers.arm_retransmission(self.snd.rtt.expiry(now));
            } else {
                self.on_retransmission_timeout(now);
            }
        }
        if due(&mut self.timers.persist, now) {
            self.on_persist_timeout(now);
        }
        if due(&mut self.timers.probe, now) {
            self.on_probe_timeout(now);
        }
        if due(&mut self.timers.keep_alive, now) {
            self.on_keep_alive(now);
        }
        if due(&mut self.timers.time_wait, now) {
            self.finish(Closing::Normal);
        }
    }

    /// A segment of the peer arrived: the time after which it is probed begins anew.
    #[inline]
    pub(super) fn touch_keep_alive(&mut self, now: Instant) {
        if let Some(idle) = self.config.keep_alive {
            self.timers.touch_keep_alive(self.snd.rtt.clock().after(now, idle));
        }
    }

    fn on_keep_alive(&mut self, now: Instant) {
        if self.timers.keep_alive_probes >= KEEP_ALIVE_PROBES {
            return self.finish(Closing::TimedOut);
        }
        self.timers.keep_alive_probes += 1;
        self.timers.keep_alive = self.snd.rtt.clock().after(now, KEEP_ALIVE_INTERVAL);
        self.snd.due.keep_alive = true;
    }

    /// Arms what guards the outstanding data: the tail loss probe's timer where it applies (RFC 8985, 7.2), else the retransmission
    /// timer (RFC 6298, 5.1 and 5.3).
    pub(super) fn guard_outstanding(&mut self, now: Instant) {
        if self.state == State::SynReceived {
            return; // the timer of the SYN-ACK guards the data that follows it, too
        }
        if self.withholds() {
            return self.persist(now);
        }
        if self.snd.probing.suspends() {
            return self.timers.cancel_retransmission();
        }
        let expiry = self.snd.rtt.expiry(now);
        self.timers.arm_retransmission(expiry);
        let tail = self.config.tlp
            && self.agreed.sack
            && self.snd.recovery.is_open()
            && self.snd.board.sacked() == 0
            && self.snd.rack.tail_probe.is_none();
        if tail {
            self.timers.retransmission = expiry.min(now + probe_timeout(&self.snd.rtt, self.snd.board.len()));
            self.timers.is_probe = true;
        }
    }
}
