//! The timers of a connection and what their expiry does.

use super::rack::probe_timeout;
use super::record::{Closing, State};
use super::Endpoint;
use crate::time::{Duration, Instant};

/// Deadlines; [`Instant::MAX`] means not armed. What every transfer arms is here, the rest where it is needed.
#[derive(Debug)]
pub(super) struct Timers {
    /// The retransmission timer, or in its place the tail loss probe's.
    retransmission: Instant,
    delayed_ack: Instant,
    reordering: Instant,
    is_probe: bool,
    /// Made when one of them is armed for the first time.
    others: Option<Box<Others>>,
    /// When our SYN left first; `None` if nobody remembers (a SYN cookie).
    pub syn_sent_at: Option<Instant>,
}

/// Timers that few connections arm.
#[derive(Debug)]
struct Others {
    /// What the receiver agent asked for.
    receiver: Instant,
    /// A window that comes back takes its next step.
    ramp: Instant,
    /// The turn of the next data segment, for a sender that goes by a rate.
    pacing: Instant,
    persist: Instant,
    probe: Instant,
    keep_alive: Instant,
    time_wait: Instant,
    keep_alive_probes: u32,
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            retransmission: Instant::MAX,
            delayed_ack: Instant::MAX,
            reordering: Instant::MAX,
            is_probe: false,
            others: None,
            syn_sent_at: None,
        }
    }
}

impl Default for Others {
    fn default() -> Self {
        Self {
            receiver: Instant::MAX,
            ramp: Instant::MAX,
            pacing: Instant::MAX,
            persist: Instant::MAX,
            probe: Instant::MAX,
            keep_alive: Instant::MAX,
            time_wait: Instant::MAX,
            keep_alive_probes: 0,
        }
    }
}

impl Others {
    fn next(&self) -> Instant {
        let by_parts = self.receiver.min(self.ramp).min(self.pacing).min(self.probe);
        by_parts.min(self.persist).min(self.keep_alive).min(self.time_wait)
    }
}

/// Time between keep-alive probes, and how many go unanswered before the connection is given up: what most systems use.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(75);
const KEEP_ALIVE_PROBES: u32 = 9;

impl Timers {
    #[inline]
    pub fn next(&self) -> Option<Instant> {
        let next = self.retransmission.min(self.delayed_ack).min(self.reordering);
        let next = self.others.as_ref().map_or(next, |others| next.min(others.next()));
        (next != Instant::MAX).then_some(next)
    }

    /// Sets one of the others. What was never armed needs no place to be cancelled in.
    fn set(&mut self, at: Instant, which: impl FnOnce(&mut Others) -> &mut Instant) {
        if let Some(others) = &mut self.others {
            *which(others) = at;
        } else if at != Instant::MAX {
            *which(self.others.insert(Box::default())) = at;
        }
    }

    /// Takes one of the others if it is due.
    fn is_due(&mut self, now: Instant, which: impl FnOnce(&mut Others) -> &mut Instant) -> bool {
        self.others.as_mut().is_some_and(|others| due(which(others), now))
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
        self.set(at.unwrap_or(Instant::MAX), |others| &mut others.receiver);
    }

    pub fn set_reordering(&mut self, at: Option<Instant>) {
        self.reordering = at.unwrap_or(Instant::MAX);
    }

    pub fn set_ramp(&mut self, at: Option<Instant>) {
        self.set(at.unwrap_or(Instant::MAX), |others| &mut others.ramp);
    }

    pub fn set_probe(&mut self, at: Option<Instant>) {
        self.set(at.unwrap_or(Instant::MAX), |others| &mut others.probe);
    }

    pub fn set_pacing(&mut self, at: Instant) {
        self.set(at, |others| &mut others.pacing);
    }

    pub fn persist_armed(&self) -> bool {
        self.others.as_ref().is_some_and(|others| others.persist != Instant::MAX)
    }

    pub fn arm_persist(&mut self, at: Instant) {
        self.set(at, |others| &mut others.persist);
    }

    pub fn cancel_persist(&mut self) {
        self.set(Instant::MAX, |others| &mut others.persist);
    }

    pub fn touch_keep_alive(&mut self, at: Instant) {
        let others = self.others.get_or_insert_default();
        (others.keep_alive, others.keep_alive_probes) = (at, 0);
    }

    pub fn start_time_wait(&mut self, at: Instant) {
        *self = Self::default();
        self.set(at, |others| &mut others.time_wait);
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
        if self.timers.is_due(now, |others| &mut others.receiver) {
            let view = self.rcv.view(now, self.agreed, self.snd.rtt.srtt());
            self.rcv.ack_now |= self.parts.receiver.on_timeout(&view);
            self.timers.set_receiver(self.parts.receiver.poll_timeout());
        }
        if due(&mut self.timers.reordering, now) {
            self.detect_by_rack(now);
            // Nothing was delivered: one segment may leave until the next acknowledgement.
            self.reduce_in_proportion(0, false);
        }
        if self.timers.is_due(now, |others| &mut others.ramp) {
            self.climb_by_timer(now);
        }
        // What may leave then is asked for by whoever drives the endpoint.
        self.timers.is_due(now, |others| &mut others.pacing);
        if due(&mut self.timers.retransmission, now) {
            if self.timers.is_probe {
                self.snd.due.tail_probe = true;
                self.timers.arm_retransmission(self.snd.rtt.expiry(now));
            } else {
                self.on_retransmission_timeout(now);
            }
        }
        if self.timers.is_due(now, |others| &mut others.persist) {
            self.on_persist_timeout(now);
        }
        if self.timers.is_due(now, |others| &mut others.probe) {
            self.on_probe_timeout(now);
        }
        if self.timers.is_due(now, |others| &mut others.keep_alive) {
            self.on_keep_alive(now);
        }
        if self.timers.is_due(now, |others| &mut others.time_wait) {
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
        let others = self.timers.others.get_or_insert_default();
        if others.keep_alive_probes >= KEEP_ALIVE_PROBES {
            return self.finish(Closing::TimedOut);
        }
        others.keep_alive_probes += 1;
        others.keep_alive = self.snd.rtt.clock().after(now, KEEP_ALIVE_INTERVAL);
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
