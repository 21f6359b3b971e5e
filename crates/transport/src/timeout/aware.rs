//! Verdict-aware timeouts: a timeout that the differentiator puts down to corruption does not cost the window.

use super::original::Original;
use super::{AfterTimeout, Assessment, Exit, Pardon, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::kit::{Build, Notes, Part};
use crate::settings;
use crate::time::{Duration, Instant};
use crate::verdict::Cause;

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "aware",
    summary: "Forgives a timeout whose first segment is judged corruption: the back-off stays, the window comes back.",
    reference: "own design, after the conclusion of Park & Chung 2010; RFC 3522, RFC 4015, RFC 5682, RFC 6298",
    notes: Notes {
        idea: "Loss differentiation gains nothing while timeouts collapse the window whatever the verdict. So the verdict rules here \
               too, within rules that keep a dead or congested path from being hammered.",
        formula: "forgive if cause = corruption, fewer than `in_a_row` expiries, silence <= `outage` RTO, and one RTO since the last \
                  pardon; then cwnd = min(old cwnd, pipe + IW), ssthresh = max(old ssthresh, old cwnd)",
        threshold: "",
        fails: "As often as the verdict does: a congestion loss judged corruption keeps the window for one RTO. Without timestamps a \
                spurious timeout is only found if the verdict is corruption, since F-RTO changes what is sent.",
        errata: "",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Expiries in a row from which on nothing is forgiven.
        in_a_row: u32 = 3, 1..=16;
        /// Silence of the peer beyond which nothing is forgiven, in retransmission timeouts without back-off.
        outage: f64 = 4.0, 1.0..=64.0;
        /// What the retransmission timeout exceeds SRTT by at least, in seconds, unless SRTT is more or the configuration's least timeout less.
        margin: f64 = 60.0, 0.001..=60.0;
        /// How the window comes back: in slow start from what is in the network and an initial window, or paced over one SRTT.
        exit: Exit;
    }
}

impl Build<dyn TimeoutPolicy> for Settings {
    fn build(self) -> Box<dyn TimeoutPolicy> {
        let margin = Duration::from_secs_f64(self.margin);
        Box::new(Aware { margin: Some(margin), ..Aware::new(self.in_a_row, self.outage, self.exit) })
    }
}

/// Asks three things of a timeout: did the original arrive late (Eifel with timestamps, F-RTO without)? Then it is undone. Was the
/// first segment judged corruption, and is it safe to believe that? Then the window comes back, the timer stays backed off. Else it is
/// the standard timeout, step by step.
///
/// What makes it safe, whatever the verdicts: the timer always backs off, so a dead path sees the packets that it would see without
/// the verdict; a repair in which any expiry was not forgivable is congestion as a whole; and no pardon follows another within one RTO.
#[derive(Debug)]
pub struct Aware {
    in_a_row: u32,
    outage: f64,
    exit: Exit,
    margin: Option<Duration>,
    original: Original,
    /// Every expiry of this repair was forgivable.
    forgivable: bool,
    /// An acknowledgement has advanced since.
    advanced: bool,
    /// The timeout without back-off when the timer expired.
    rto: Duration,
    last_pardon: Option<Instant>,
}

impl Aware {
    /// Forgives fewer than `in_a_row` expiries in a row, after a silence of at most `outage` timeouts.
    pub fn new(in_a_row: u32, outage: f64, exit: Exit) -> Self {
        Self {
            in_a_row,
            outage,
            exit,
            margin: None,
            original: Original::default(),
            forgivable: false,
            advanced: false,
            rto: Duration::ZERO,
            last_pardon: None,
        }
    }

    fn is_outage(&self, silence: Duration) -> bool {
        silence.as_secs_f64() > self.outage * self.rto.as_secs_f64()
    }
}

impl TimeoutPolicy for Aware {
    fn margin(&self) -> Option<Duration> {
        self.margin
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> TimeoutResponse {
        self.rto = timeout.path.rto;
        let (now, rto) = (timeout.path.now, self.rto);
        let safe = timeout.consecutive < self.in_a_row
            && !self.is_outage(timeout.silence)
            && self.last_pardon.is_none_or(|at| now.since(at) >= rto);
        let corruption = timeout.verdict.cause == Cause::Corruption;
        self.forgivable = safe && corruption && (self.forgivable || !timeout.in_recovery);
        self.advanced = false;
        self.original.on_timeout(timeout, self.forgivable);
        TimeoutResponse { window: TimeoutWindow::Collapse, back_off: true, head_only: self.forgivable }
    }

    fn assess(&mut self, after: &AfterTimeout) -> Assessment {
        self.forgivable &= !self.is_outage(after.silence);
        self.advanced |= after.ack.acked > 0;
        match self.original.assess(after) {
            Assessment::Genuine if self.forgivable && self.advanced => {
                self.last_pardon = Some(after.ack.path.now);
                Assessment::Forgiven(Pardon { halvings: 0, timer: false, exit: self.exit })
            }
            Assessment::Genuine if self.forgivable => Assessment::Undecided,
            other => other,
        }
    }
}
