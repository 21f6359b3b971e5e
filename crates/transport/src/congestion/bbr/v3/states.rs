//! The states of version 3 in which it probes for bandwidth, and how one follows the other.

use super::{Bbr3, Climb, Feedback, Mode, ShortTerm, RENO_ROUNDS};
use crate::congestion::Window;
use crate::path::{Ack, Path, RateSample};
use crate::time::{Duration, Instant};

impl Bbr3 {
    pub(super) fn start_down(&mut self, path: &Path) {
        (self.latest.lost, self.latest.rate, self.latest.inflight) = (false, 0, 0);
        self.climb.per_segment = u64::MAX;
        self.rounds_since_up = u64::from(self.chances.below(2));
        self.wait = Duration::from_secs_f64(2.0 + self.chances.draw());
        self.cycle_began = path.now;
        self.feedback = Feedback::Stopping;
        self.rounds.restart(path.delivered);
        self.mode = Mode::Down;
    }

    pub(super) fn start_refill(&mut self, path: &Path) {
        self.short = ShortTerm::default();
        self.climb = Climb { rounds: 0, acked: 0, ..self.climb };
        self.precaution = false;
        self.feedback = Feedback::Refilling;
        self.rounds.restart(path.delivered);
        self.mode = Mode::Refill;
    }

    fn start_up(&mut self, window: &Window, path: &Path, sample: &RateSample) {
        self.feedback = Feedback::Starting;
        self.rounds.restart(path.delivered);
        self.reset_full(sample.rate);
        self.mode = Mode::Up;
        self.steepen(window);
    }

    /// `RaiseInflightLongtermSlope`: twice as many segments in each round.
    fn steepen(&mut self, window: &Window) {
        let growth = 1_u64 << self.climb.rounds;
        self.climb.rounds = (self.climb.rounds + 1).min(30);
        self.climb.per_segment = (window.cwnd() / growth).max(u64::from(window.mss()));
    }

    fn is_time_to_probe(&self, window: &Window, now: Instant) -> bool {
        let segments = self.target(window) / u64::from(window.mss());
        now.since(self.cycle_began) > self.wait || self.rounds_since_up >= segments.min(RENO_ROUNDS)
    }

    fn is_time_to_cruise(&self, path: &Path) -> bool {
        let mss = u64::from(path.mss);
        self.with_headroom(mss).is_none_or(|room| path.pipe <= room) && path.pipe <= self.inflight(self.max_rate(), 1.0, mss)
    }

    /// `IsTimeToGoDown`.
    fn consider_going_down(&mut self, window: &Window, path: &Path, sample: &RateSample) {
        let reached = |octets: u64| self.long.is_some_and(|long| octets >= long);
        let careful = self.too_high && reached(path.pipe);
        self.precaution |= careful;
        if !careful && self.used_up && reached(window.cwnd()) {
            self.reset_full(sample.rate); // the volume limits the bandwidth
        } else if careful || self.full_now {
            self.too_high = false;
            self.start_down(path);
        }
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn cycle(&mut self, window: &Window, ack: &Ack, sample: &RateSample) {
        let path = ack.path;
        if !self.filled || self.adapt_long_term(window, ack, sample) {
            return;
        }
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(window, path.now) => self.start_refill(path),
            Mode::Down if self.is_time_to_cruise(path) => self.mode = Mode::Cruise,
            Mode::Refill if self.rounds.over => {
                self.probes = true;
                self.start_up(window, path, sample);
            }
            Mode::Up => self.consider_going_down(window, path, sample),
            _ => {}
        }
    }

    /// `AdaptLongTermModel`. Returns whether another state has begun.
    fn adapt_long_term(&mut self, window: &Window, ack: &Ack, sample: &RateSample) -> bool {
        if self.feedback == Feedback::Starting && self.rounds.over {
            self.feedback = Feedback::Probing;
        }
        if self.feedback == Feedback::Stopping && self.rounds.over {
            self.probes = false;
            self.feedback = Feedback::Nothing;
            if self.cycles() && !self.is_limited(sample) {
                self.rates = [0, self.rates[0]];
            }
            if self.cycles() && self.precaution && !self.too_high {
                self.start_refill(ack.path);
                return true;
            }
        }
        let Some(long) = self.long.filter(|_| !self.is_too_high(sample.lost_since_sent(), sample.in_flight_when_sent)) else {
            return false;
        };
        self.long = Some(long.max(sample.in_flight_when_sent));
        if self.mode == Mode::Up {
            self.climb(window, ack);
        }
        false
    }

    /// `ProbeInflightLongtermUpward`.
    fn climb(&mut self, window: &Window, ack: &Ack) {
        let Some(long) = self.long.filter(|long| self.used_up && window.cwnd() >= *long) else { return };
        self.climb.acked += ack.delivered;
        let segments = self.climb.acked / self.climb.per_segment;
        self.climb.acked -= segments * self.climb.per_segment;
        self.long = Some(long + segments * u64::from(window.mss()));
        if self.rounds.over {
            self.steepen(window);
        }
    }
}
