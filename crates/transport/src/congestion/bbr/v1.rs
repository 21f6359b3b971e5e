//! BBR version 1, as Linux has it.

use super::policer::Policer;
use super::{in_flight_before, volume, Chances, FullPipe, Pace, Rounds, Together, MIN_SEGMENTS, MOST_TOGETHER, PROBE_TRIP};
use crate::congestion::{CongestionControl, Window};
use crate::estimate::Recent;
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path, RateSample, Sent};
use crate::settings;
use crate::time::{Duration, Instant};

pub(in crate::congestion) const PART: Part<dyn CongestionControl> = Part {
    name: "bbr",
    summary: "Sends at the bandwidth that it measures, with up to two bandwidth-delay products outstanding; losses are no signal (version 1, as in Linux).",
    reference: "Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
    notes: Notes {
        idea: "A path is full, and its queue empty, where what is outstanding is its bandwidth times its shortest round trip. Both cannot be measured at once: \
               the bandwidth shows when more is sent, the round trip when less is.",
        formula: "rate = 0.99 gain max(delivery rate, 10 rounds); W = 2 BW min(RTT, 10 s); gain 2.885 until the bandwidth stops growing, then its inverse, then \
                  1.25, 0.75, 1, 1, 1, 1, 1, 1, a shortest round trip each",
        threshold: "",
        fails: "It takes most of a short queue from flows that heed losses, and itself loses much there. Where acknowledgements come thinned or late its samples \
                are few.",
        errata: "Our readings: segments leave one by one, so the quantum only counts in the window; of what comes together the most of ten rounds counts (Linux: of \
                 five to ten); the path's chances choose the phase. Without SACK what duplicates report counts as outstanding. Tables count its losses as \
                 `reduced`, since no verdict excuses them; the window stays.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    pub(super) struct Settings {
        /// Gain of rate and window until the bandwidth stops growing.
        pub startup_gain: f64 = 2.885, 1.1..=8.0;
        /// Bandwidth-delay products that may be outstanding.
        pub cwnd_gain: f64 = 2.0, 1.0..=8.0;
        /// Seconds after which a shortest round trip is measured anew, with four segments outstanding.
        pub rtt_window: f64 = 10.0, 0.1..=1000.0;
        /// Look for token buckets, and send at their rate.
        pub policers: bool = true;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(Bbr::new(self))
    }
}

/// Gains of the bandwidth while it is known, one shortest round trip each.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Below this rate a quantum is one segment: 1.2 Mbit/s.
const SLOW: u64 = 150_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// Looks for the bandwidth.
    Startup,
    /// Lets the queue that this has made drain.
    Drain,
    /// Knows it, and probes for more in turns: the phase, and when it began.
    Cycle(usize, Instant),
    /// Keeps the window small to see the shortest round trip.
    Trip(Probe),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Probe {
    /// When it may end: it has begun once little enough is outstanding.
    until: Option<Instant>,
    /// A round of it is over.
    round: bool,
}

/// What is being repaired.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Repair {
    Nothing,
    Losses,
    /// Everything below this position, after a timeout.
    Timeout(u64),
}

/// Version 1 (draft-cardwell-iccrg-bbr-congestion-control-00), with the token buckets and what comes together of Linux.
#[derive(Debug)]
pub struct Bbr {
    settings: Settings,
    chances: Chances,
    mode: Mode,
    rounds: Rounds,
    /// Of ten rounds, in octets a second.
    bandwidth: Recent<9>,
    full: FullPipe,
    /// The bandwidth was found once.
    filled: bool,
    /// The shortest round trip, and when it was seen.
    trip: Option<(Duration, Instant)>,
    together: Together,
    policer: Policer,
    pace: Pace,
    repair: Repair,
    /// The first round of a repair: what arrives may be replaced, no more.
    conserving: bool,
    /// The window before a repair, or before it was made small for a round trip.
    saved: u64,
    initial: u64,
    /// It begins to send again after a pause.
    restarts: bool,
    /// Samples of what left after so much had been delivered, and before so much had, say nothing of the bandwidth.
    withheld: (u64, u64),
}

impl Bbr {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            chances: Chances::default(),
            mode: Mode::Startup,
            rounds: Rounds::default(),
            bandwidth: Recent::default(),
            full: FullPipe::default(),
            filled: false,
            trip: None,
            together: Together::default(),
            policer: Policer::default(),
            pace: Pace::default(),
            repair: Repair::Nothing,
            conserving: false,
            saved: 0,
            initial: 0,
            restarts: false,
            withheld: (u64::MAX, 0),
        }
    }

    /// What it goes by: a bucket's rate, or the largest of ten rounds.
    fn rate(&self) -> u64 {
        self.policer.rate().unwrap_or(self.bandwidth.extent().max())
    }

    /// Of rate and window.
    fn gains(&self) -> (f64, f64) {
        let startup = self.settings.startup_gain;
        match self.mode {
            Mode::Startup => (startup, startup),
            Mode::Drain => (1.0 / startup, startup),
            Mode::Cycle(phase, _) => (if self.policer.rate().is_some() { 1.0 } else { CYCLE[phase] }, self.settings.cwnd_gain),
            Mode::Trip(_) => (1.0, 1.0),
        }
    }

    /// What fills the path at `rate`, with what waits at either end for its turn.
    fn inflight(&self, rate: u64, gain: f64, mss: u64) -> u64 {
        let Some((trip, _)) = self.trip else { return self.initial };
        let least = if self.pace.rate < SLOW { mss } else { 2 * mss };
        let octets = volume(rate, trip, gain) + 3 * self.pace.quantum(least);
        let even = octets.div_ceil(2 * mss) * 2 * mss;
        even + if matches!(self.mode, Mode::Cycle(0, _)) { 2 * mss } else { 0 }
    }

    fn save(&mut self, cwnd: u64) {
        let whole = self.repair == Repair::Nothing && !matches!(self.mode, Mode::Trip(_));
        self.saved = if whole { cwnd } else { self.saved.max(cwnd) };
    }

    fn begin_cycle(&mut self, now: Instant) {
        // Any phase but the second, which would drain what was not put in.
        let chance = self.chances.below(7) as usize;
        self.mode = Mode::Cycle(if chance == 0 { 0 } else { chance + 1 }, now);
    }

    fn learn(&mut self, sample: &RateSample, ack: &Ack) {
        let (delivered, mss) = (ack.path.delivered, u64::from(ack.path.mss));
        self.rounds.on_sample(sample, delivered);
        if self.rounds.over {
            self.bandwidth.advance();
            self.conserving = false;
        }
        let cruising = matches!(self.mode, Mode::Cycle(..));
        if self.settings.policers && self.policer.on_sample(sample, ack.path.now, delivered, self.rounds.over, cruising) {
            self.begin_cycle(ack.path.now);
        }
        let withheld = (self.withheld.0..self.withheld.1).contains(&sample.prior_delivered);
        let limited = sample.app_limited || withheld;
        if !limited || sample.rate >= self.bandwidth.extent().max() {
            self.bandwidth.insert(sample.rate);
        }
        self.together.on_ack(ack, self.rate(), self.rounds.over, self.filled);
        self.advance_cycle(ack, sample, mss);
        if !self.filled && self.rounds.over && !limited {
            self.filled = self.full.on_round(self.bandwidth.extent().max());
        }
    }

    fn advance_cycle(&mut self, ack: &Ack, sample: &RateSample, mss: u64) {
        let (Mode::Cycle(phase, began), Some((trip, _))) = (self.mode, self.trip) else { return };
        let long = ack.path.now.since(began) > trip;
        let (in_flight, bandwidth) = (in_flight_before(ack), self.bandwidth.extent().max());
        let over = match self.gains().0 {
            // Until the queue has filled, or has no more room.
            gain if gain > 1.0 => long && (sample.newly_lost > 0 || in_flight >= self.inflight(bandwidth, gain, mss)),
            gain if gain < 1.0 => long || in_flight <= self.inflight(bandwidth, 1.0, mss),
            _ => long,
        };
        if over {
            self.mode = Mode::Cycle((phase + 1) % CYCLE.len(), ack.path.now);
        }
    }

    fn end_startup(&mut self, path: &Path) {
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && path.pipe <= self.inflight(self.bandwidth.extent().max(), 1.0, u64::from(path.mss)) {
            self.begin_cycle(path.now);
        }
    }

    fn watch_trip(&mut self, window: &mut Window, ack: &Ack) {
        let path = ack.path;
        let window_length = Duration::from_secs_f64(self.settings.rtt_window);
        let expired = self.trip.is_some_and(|(_, seen)| path.now.since(seen) > window_length);
        if let Some(trip) = ack.delay {
            if self.trip.is_none_or(|(shortest, _)| trip <= shortest) || expired {
                self.trip = Some((trip, path.now));
            }
        }
        if expired && !self.restarts && !matches!(self.mode, Mode::Trip(_)) {
            self.save(window.cwnd());
            self.mode = Mode::Trip(Probe::default());
            self.withheld.0 = path.delivered;
        }
        let Mode::Trip(mut probe) = self.mode else { return };
        self.withheld.1 = path.delivered + path.pipe;
        match probe.until {
            None if path.pipe <= MIN_SEGMENTS * u64::from(path.mss) => {
                probe = Probe { until: Some(path.now + PROBE_TRIP), round: false };
                self.rounds.restart(path.delivered);
            }
            None => {}
            Some(until) => {
                probe.round |= self.rounds.over;
                if probe.round && path.now > until {
                    self.trip = self.trip.map(|(trip, _)| (trip, path.now));
                    window.set_cwnd(window.cwnd().max(self.saved));
                    if self.filled {
                        self.begin_cycle(path.now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                    return;
                }
            }
        }
        self.mode = Mode::Trip(probe);
    }

    /// The window while something is repaired, and when that ends. Returns whether nothing else may change it.
    fn repair(&mut self, window: &mut Window, ack: &Ack) -> bool {
        let path = ack.path;
        let lost = ack.sample.map_or(0, |sample| sample.newly_lost);
        window.set_cwnd(window.cwnd().saturating_sub(lost));
        let now = match self.repair {
            Repair::Timeout(until) if path.una < until => self.repair,
            _ if ack.in_recovery => Repair::Losses,
            _ => Repair::Nothing,
        };
        if now == Repair::Losses && self.repair != Repair::Losses {
            self.conserving = true;
            self.rounds.restart(path.delivered);
            window.set_cwnd(path.pipe + ack.delivered);
        } else if now == Repair::Nothing && self.repair != Repair::Nothing {
            self.conserving = false;
            window.set_cwnd(window.cwnd().max(self.saved));
        }
        self.repair = now;
        if self.conserving {
            window.set_cwnd(window.cwnd().max(path.pipe + ack.delivered));
        }
        self.conserving
    }

    fn set_window(&mut self, window: &mut Window, ack: &Ack) {
        let mss = u64::from(window.mss());
        if ack.delivered > 0 && !self.repair(window, ack) {
            let rate = self.rate();
            let together = if self.filled { self.together.extra().min((rate as f64 * MOST_TOGETHER) as u64) } else { 0 };
            let target = self.inflight(rate, self.gains().1, mss) + together;
            let grown = window.cwnd() + ack.delivered;
            if self.filled {
                window.set_cwnd(grown.min(target));
            } else if window.cwnd() < target || ack.path.delivered < self.initial {
                window.set_cwnd(grown);
            }
            window.set_cwnd(window.cwnd().max(MIN_SEGMENTS * mss));
        }
        if let Mode::Trip(_) = self.mode {
            window.set_cwnd(window.cwnd().min(MIN_SEGMENTS * mss));
        }
    }
}

impl CongestionControl for Bbr {
    fn is_model_based(&self) -> bool {
        true
    }

    fn separation(&self, octets: u32) -> Option<Duration> {
        self.pace.separation(octets)
    }

    fn on_established(&mut self, window: &mut Window, path: &Path) {
        self.chances = Chances::new(path);
        self.initial = window.cwnd();
        self.trip = path.srtt.map(|trip| (trip, path.now));
        self.together.restart(path.now);
        self.pace.begin(window.cwnd(), self.settings.startup_gain, path.srtt);
    }

    fn on_sent(&mut self, sent: &Sent) {
        if sent.was_idle && self.rounds.count > 0 {
            self.restarts = true;
            self.together.restart(sent.now);
            if let Mode::Cycle(..) = self.mode {
                self.pace.set(self.rate(), 1.0, self.filled);
            }
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.rounds.over = false;
        if let Some(sample) = ack.sample {
            self.learn(sample, ack);
        }
        self.end_startup(ack.path);
        self.watch_trip(window, ack);
        self.restarts &= ack.delivered == 0;
        if !self.pace.measured && ack.path.srtt.is_some() {
            self.pace.begin(self.initial, self.settings.startup_gain, ack.path.srtt);
        }
        self.pace.set(self.rate(), self.gains().0, self.filled);
        self.set_window(window, ack);
    }

    /// Losses do not say how fast the path is.
    fn threshold(&mut self, window: &Window, _path: &Path) -> u64 {
        self.save(window.cwnd());
        window.cwnd()
    }

    fn on_timeout(&mut self, _window: &mut Window, path: &Path) {
        self.repair = Repair::Timeout(path.nxt);
        self.conserving = false;
        self.full = FullPipe::default();
    }

    fn on_undo(&mut self, window: &mut Window, _path: &Path) {
        (self.repair, self.conserving) = (Repair::Nothing, false);
        self.full = FullPipe::default();
        window.set_cwnd(window.cwnd().max(self.saved));
    }
}
