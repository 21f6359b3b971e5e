//! A standard window, and beside it one of less than best effort that fills what capacity is left idle.

#[cfg(test)]
mod tests;

use super::{CongestionControl, Cubic, NewReno, Reno, Window};
use crate::estimate::{BottleneckRate, StandingDelay};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Forgiven, Path, Sent};
use crate::time::{Duration, Instant};
use crate::{choices, settings};

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "lbe",
    summary: "A standard window, and beside it one that lives on losses which were no congestion, and leaves at the first sign of a queue.",
    reference: "own; after RFC 6817 and Tan, Song, Zhang & Sridharan 2006",
    notes: Notes {
        idea: "A flow that keeps its window for corruption takes from flows beside it that cannot. What it would have without differentiation is its \
               due; the rest is lent, and goes back as soon as others have a use for it.",
        formula: "cwnd = standard + filling; a forgiven loss halves `standard` and adds that to `filling`; a standing delay above the target shrinks `filling`",
        threshold: "target = max(base * harm / (1 - harm), one segment's service time)",
        fails: "Where delay says nothing of the queue ahead: jitter beyond the target and queues of acknowledgements make it a standard flow. Where a segment's \
                service time is not small against the round trip, filling an idle link cannot but delay others.",
        errata: "",
    },
    ..Part::of::<Settings>()
};

choices! {
    /// What moves the standard part.
    enum Standard {
        /// Additive increase by octets.
        NewReno = "newreno",
        /// Additive increase by acknowledgements.
        Reno = "reno",
        /// CUBIC with the constants of RFC 9438.
        Cubic = "cubic",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// What moves the standard part: additive increase by octets, by acknowledgements, or CUBIC.
        standard: Standard;
        /// The share of its rate that the filling part may cost another flow of the same round-trip time by standing in its way.
        harm: f64 = 0.05, 0.001..=0.5;
        /// The target is at least the time in which the bottleneck serves so many segments.
        slots: f64 = 1.0, 0.0..=100.0;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        let control: Box<dyn CongestionControl> = match self.standard {
            Standard::NewReno => Box::new(NewReno::new(false)),
            Standard::Reno => Box::new(Reno),
            Standard::Cubic => Box::new(Cubic::new(0.4, 0.7, true, false)),
        };
        Box::new(Lbe::new(control, self.harm, self.slots))
    }
}

/// The most that a round trip above the target takes of the filling part, and where its slow start ends, as a share of the target (LEDBAT++, 4.1 and 4.2).
const MOST: f64 = 0.5;
const EARLY: f64 = 0.75;

/// Segments below which delay does not shrink the window: with one, delayed acknowledgements would be taken for a queue (RFC 6817, 2.4.2: `MIN_CWND`).
const LEAST: u64 = 2;

/// As long as no loss was forgiven the standard control moves the window, and nothing else does. Then the window has two parts.
#[derive(Debug)]
pub struct Lbe {
    control: Box<dyn CongestionControl>,
    split: Option<Split>,
    saved: Option<Split>,
    delay: StandingDelay,
    rate: BottleneckRate,
    /// The target as a share of the base delay.
    share: f64,
    /// The target is at least so many service times of a segment.
    slots: f64,
}

/// A window of two parts.
#[derive(Clone, Debug)]
struct Split {
    /// What a standard flow would have here.
    standard: Window,
    /// Both parts, in octets.
    whole: u64,
    /// Losses below this position belong to the latest episode of the standard part.
    recover: u64,
    /// Until then the standard part waits for its timer.
    waits: Instant,
    /// What has not counted yet: acknowledgements and segments lost that are the standard part's by its share of the window.
    due: Due,
    /// Up to here the filling part grows as in slow start, in octets.
    regain: u64,
    /// The delay is above the target.
    above: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Due {
    acks: f64,
    losses: f64,
    /// Growth in recovery, in octets.
    octets: f64,
}

/// Adds `share` to what is `due`; returns whether a whole one is.
fn falls_due(due: &mut f64, share: f64) -> bool {
    *due += share;
    let whole = *due >= 1.0;
    *due -= due.floor();
    whole
}

impl Split {
    fn of(window: &Window, cwnd: u64) -> Self {
        let mut standard = window.clone();
        standard.set_cwnd(cwnd);
        let regain = if window.in_slow_start() { u64::MAX } else { 0 };
        Self { standard, whole: cwnd, recover: 0, waits: Instant::ZERO, due: Due::default(), regain, above: false }
    }

    const fn filling(&self) -> u64 {
        self.whole.saturating_sub(self.standard.cwnd())
    }

    /// Takes over a window that the engine has set.
    fn settle(&mut self, whole: u64) {
        self.whole = whole;
        if self.standard.cwnd() > whole {
            self.standard.set_cwnd(whole);
        }
    }

    /// The share of the whole window that is the standard part's.
    fn share(&self) -> f64 {
        (self.standard.cwnd() as f64 / self.whole.max(1) as f64).min(1.0)
    }

    /// The standard part takes a loss for congestion, once a window of data.
    fn reduce(&mut self, control: &mut dyn CongestionControl, path: &Path) {
        if path.una < self.recover {
            return;
        }
        self.recover = path.nxt;
        let path = Path { flight: path.flight.min(self.standard.cwnd()), ..path.clone() };
        let threshold = control.threshold(&self.standard, &path);
        self.standard.set_ssthresh(threshold);
        self.standard.set_cwnd(self.standard.ssthresh().min(self.standard.cwnd()));
    }

    fn collapse(&mut self, control: &mut dyn CongestionControl, path: &Path) {
        self.standard.set_cwnd(0); // one segment
        control.on_timeout(&mut self.standard, path);
        self.recover = path.nxt;
    }

    /// The whole window after a negative `step`: never less than the standard part.
    fn shrunk(&self, step: f64) -> u64 {
        let least = self.standard.cwnd().max(LEAST * u64::from(self.standard.mss())).min(self.whole);
        ((self.whole as f64 + step) as u64).clamp(least, self.whole)
    }

    /// By how many octets an acknowledgement moves the filling part while the delay is `excess` targets above the target.
    fn step(&mut self, ack: &Ack, excess: f64) -> f64 {
        let (filling, mss) = (self.filling() as f64, f64::from(self.standard.mss()));
        let whole = self.whole as f64;
        if excess > 0.0 {
            if !self.above {
                self.regain = self.regain.min(self.filling() / 2);
            }
            self.above = true;
            return -filling * excess.min(MOST) * (ack.delivered as f64 / whole).min(1.0);
        }
        self.above = false;
        // What is not used is not lent, also where the profile lets a window grow unused (RFC 7661).
        let ample = 2 * (ack.path.flight + ack.acked) > self.whole;
        // Without SACK nothing is measured while recovery lasts.
        let octets = if ack.in_recovery { ack.delivered } else { ack.acked } as f64;
        if !ample || !ack.window_limited || ack.in_recovery && ack.delay.is_none() {
            return 0.0;
        }
        if excess > EARLY - 1.0 {
            self.regain = self.regain.min(self.filling());
        }
        if self.filling() < self.regain {
            octets.min(2.0 * mss) * filling.max(mss) / whole // RFC 3465, 2.2
        } else {
            mss * (octets / whole).min(1.0)
        }
    }
}

impl Lbe {
    /// The standard part moves as `control` has it. The filling part may cost others `harm` of their rate, and let
    /// `slots` segments stand.
    pub fn new(control: Box<dyn CongestionControl>, harm: f64, slots: f64) -> Self {
        Self {
            control,
            split: None,
            saved: None,
            delay: StandingDelay::default(),
            rate: BottleneckRate::default(),
            share: harm / (1.0 - harm),
            slots,
        }
    }

    /// How far the standing delay is above its target, in targets.
    fn excess(&self, mss: u32) -> Option<f64> {
        let service = self.rate.service_time(mss).unwrap_or(Duration::ZERO);
        let target = self.delay.base()?.mul_f64(self.share).max(service.mul_f64(self.slots)).max(Duration::from_nanos(1));
        Some(self.delay.waiting()?.as_nanos() as f64 / target.as_nanos() as f64 - 1.0)
    }
}

impl CongestionControl for Lbe {
    fn on_established(&mut self, window: &mut Window, path: &Path) {
        self.control.on_established(window, path);
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.control.on_sent(sent);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.delay.on_ack(ack);
        self.rate.on_ack(ack);
        let excess = self.excess(window.mss());
        let Some(split) = &mut self.split else { return self.control.on_ack(window, ack) };
        if split.standard.mss() != window.mss() {
            split.standard.set_mss(window.mss());
        }
        if !ack.in_recovery {
            split.settle(window.cwnd());
        }
        let before = split.standard.cwnd();
        let share = split.share();
        if ack.acked > 0 && falls_due(&mut split.due.acks, share) && ack.path.now >= split.waits {
            let in_recovery = ack.path.una < split.recover;
            self.control.on_ack(&mut split.standard, &Ack { in_recovery, ..*ack });
        }
        let grown = split.standard.cwnd().saturating_sub(before);
        split.whole = split.whole.max(before);
        let step = excess.map_or(0.0, |excess| split.step(ack, excess));
        if ack.in_recovery {
            // Of growth below an octet the remainder is kept as of all growth.
            split.due.octets += step.max(0.0);
            let grown = split.due.octets as u64;
            split.due.octets -= grown as f64;
            split.settle(split.shrunk(step.min(0.0)) + grown);
            return;
        }
        let step = step + grown as f64;
        if step >= 0.0 {
            window.grow(step);
        } else {
            window.set_cwnd(split.shrunk(step));
        }
        split.settle(window.cwnd());
    }

    fn save(&mut self) {
        self.saved = self.split.clone();
        self.control.save();
    }

    fn on_forgiven(&mut self, window: &Window, forgiven: &Forgiven) {
        let split = self.split.get_or_insert_with(|| Split::of(window, forgiven.cwnd));
        let path = forgiven.path;
        if forgiven.timeout {
            split.reduce(&mut *self.control, path);
            split.collapse(&mut *self.control, path);
            return;
        }
        let lost = forgiven.octets as f64 / f64::from(window.mss());
        let share = split.share();
        if falls_due(&mut split.due.losses, lost * share) {
            let unheard = split.standard.cwnd() < u64::from(forgiven.fewest) * u64::from(window.mss());
            if path.una >= split.recover {
                split.reduce(&mut *self.control, path);
                if unheard {
                    split.collapse(&mut *self.control, path);
                    split.waits = path.now + path.rto;
                }
            }
        }
    }

    fn recovery_window(&self) -> Option<u64> {
        self.split.as_ref().map(|split| split.whole)
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        let Some(split) = &mut self.split else { return self.control.threshold(window, path) };
        split.settle(window.cwnd());
        let lent = split.filling() >= u64::from(window.mss());
        split.reduce(&mut *self.control, path);
        let standard = split.standard.ssthresh();
        if !lent {
            self.split = None;
            return standard;
        }
        let threshold = (window.used(path) / 2).max(standard); // RFC 5681, eq. 4
        split.regain = threshold - standard;
        split.whole = threshold;
        threshold
    }

    fn timeout_threshold(&mut self, window: &Window, path: &Path) -> u64 {
        let Some(split) = &mut self.split else { return self.control.timeout_threshold(window, path) };
        split.settle(window.cwnd());
        split.recover = 0;
        split.reduce(&mut *self.control, path);
        let standard = split.standard.ssthresh();
        let threshold = (path.flight / 2).max(standard); // RFC 5681, eq. 4
        split.regain = threshold - standard;
        threshold
    }

    fn on_timeout(&mut self, window: &mut Window, path: &Path) {
        let Some(split) = &mut self.split else { return self.control.on_timeout(window, path) };
        split.collapse(&mut *self.control, path);
        split.settle(window.cwnd());
    }

    fn on_undo(&mut self, window: &mut Window, path: &Path) {
        self.split = self.saved.take();
        match &mut self.split {
            Some(split) => self.control.on_undo(&mut split.standard, path),
            None => self.control.on_undo(window, path),
        }
    }
}
