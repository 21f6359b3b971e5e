//! BBR version 3, by the draft of the IETF.

mod states;

use super::{in_flight_before, volume, Chances, FullPipe, Pace, Rounds, Together, MIN_SEGMENTS, PROBE_TRIP};
use crate::congestion::{CongestionControl, Window};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, LostSegment, Path, RateSample, Sent};
use crate::settings;
use crate::time::{Duration, Instant};

pub(in crate::congestion) const PART: Part<dyn CongestionControl> = Part {
    name: "bbr3",
    summary: "BBR that remembers how much could be outstanding before more than 2 % was lost, and stays below it (version 3).",
    reference: "draft-ietf-ccwg-bbr",
    notes: Notes {
        idea: "Losses above a threshold say how much the path holds; what is outstanding stays below that, with room for others, and is raised carefully while it \
               probes. Losses between probes lower rate and window for a while.",
        formula: "rate = 0.99 gain min(max rate of two cycles, short-term rate); W = 2 BW min(RTT, 10 s) within what losses left",
        threshold: "loss_threshold: lost octets of those outstanding",
        fails: "Above the threshold it is a control that heeds losses, whatever they are due to.",
        errata: "Our readings: losses that the ruling differentiator takes for corruption are not counted; marks of routers are not heeded (the draft leaves that open); \
                 the window counts as used up when less than a segment more would have fitted before an acknowledgement; the bound in rounds of the time between probes \
                 is counted in segments; ranges of losses are counted in the order in which they are found. Tables count its losses as `reduced`, since no verdict \
                 excuses them.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    pub(super) struct Settings {
        /// Share of what was outstanding whose loss says that it was too much.
        pub loss_threshold: f64 = 0.02, 0.0..=1.0;
        /// What losses leave of a bound at least, in a round.
        pub beta: f64 = 0.7, 0.1..=0.99;
        /// Part of the largest volume that is left to others.
        pub headroom: f64 = 0.15, 0.0..=0.9;
        /// Seconds after which a shortest round trip is measured anew, at half a bandwidth-delay product.
        pub rtt_interval: f64 = 5.0, 0.1..=1000.0;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(Bbr3::new(self))
    }
}

/// `StartupPacingGain`: 4 ln 2.
const STARTUP_GAIN: f64 = 2.77;
/// `DrainPacingGain`.
const DRAIN_GAIN: f64 = 0.5;
/// `DefaultCwndGain`.
const CWND_GAIN: f64 = 2.0;
/// `ProbeRTTCwndGain`.
const TRIP_CWND_GAIN: f64 = 0.5;
/// `MinRTTFilterLen`: so often as long as the time between two measurements.
const TRIP_MEMORY: u64 = 2;
/// `BBRStartupFullLossCnt`: ranges that are lost in a round in which startup ends.
const STARTUP_LOSSES: u32 = 6;
/// Rounds after which the queue of startup has drained, or the bandwidth was too high.
const DRAIN_ROUNDS: u32 = 3;
/// Rounds between two probes for bandwidth at most: what Reno needs to grow to a 4K video.
const RENO_ROUNDS: u64 = 63;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    /// Since this round.
    Drain(u32),
    /// Slower than the path.
    Down,
    /// As fast as the path.
    Cruise,
    /// As fast, a round long, without what losses left.
    Refill,
    /// Faster than the path.
    Up,
    Trip(Probe),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Probe {
    until: Option<Instant>,
    round: bool,
}

/// What acknowledgements are of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Feedback {
    Nothing,
    Refilling,
    Starting,
    Probing,
    Stopping,
}

/// What lasts until the next probe for bandwidth: bounds that losses have drawn since.
#[derive(Clone, Copy, Debug, Default)]
struct ShortTerm {
    rate: Option<u64>,
    inflight: Option<u64>,
}

/// What the path did in the round under way.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    rate: u64,
    inflight: u64,
    /// Something was lost.
    lost: bool,
    /// Ranges that were lost, and where the last one ends.
    ranges: u32,
    range_end: u64,
    /// What had been delivered when the round began that losses are counted in.
    until: u64,
    over: bool,
}

/// What comes back if a repair was unnecessary.
#[derive(Clone, Copy, Debug)]
struct Undo {
    mode: Option<Mode>,
    short: ShortTerm,
    long: Option<u64>,
}

/// The growth of the largest volume while it is probed.
#[derive(Clone, Copy, Debug, Default)]
struct Climb {
    rounds: u32,
    acked: u64,
    /// Octets acknowledged for a segment more.
    per_segment: u64,
}

/// Version 3 (draft-ietf-ccwg-bbr).
#[derive(Debug)]
pub struct Bbr3 {
    settings: Settings,
    chances: Chances,
    mode: Mode,
    rounds: Rounds,
    full: FullPipe,
    filled: bool,
    /// The pipe is full in this probe.
    full_now: bool,
    /// Largest rates of the cycle under way and of the one before.
    rates: [u64; 2],
    short: ShortTerm,
    /// `inflight_longterm`: the largest volume of which little was lost.
    long: Option<u64>,
    latest: Latest,
    /// The shortest round trip, and when it was seen.
    trip: Option<(Duration, Instant)>,
    /// The same, of the time between two measurements.
    recent_trip: Option<(Duration, Instant)>,
    together: Together,
    pace: Pace,
    feedback: Feedback,
    /// Samples tell what probing did.
    probes: bool,
    too_high: bool,
    precaution: bool,
    climb: Climb,
    cycle_began: Instant,
    wait: Duration,
    rounds_since_up: u64,
    /// The window was used up in this round.
    used_up: bool,
    /// What had been delivered when the repair under way began, if there is one.
    repairing: Option<u64>,
    timeout_until: u64,
    saved: u64,
    undo: Option<Undo>,
    initial: u64,
    restarts: bool,
    withheld: (u64, u64),
}

impl Bbr3 {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            chances: Chances::default(),
            mode: Mode::Startup,
            rounds: Rounds::default(),
            full: FullPipe::default(),
            filled: false,
            full_now: false,
            rates: [0; 2],
            short: ShortTerm::default(),
            long: None,
            latest: Latest::default(),
            trip: None,
            recent_trip: None,
            together: Together::default(),
            pace: Pace::default(),
            feedback: Feedback::Nothing,
            probes: false,
            too_high: false,
            precaution: false,
            climb: Climb::default(),
            cycle_began: Instant::ZERO,
            wait: Duration::ZERO,
            rounds_since_up: 0,
            used_up: false,
            repairing: None,
            timeout_until: 0,
            saved: 0,
            undo: None,
            initial: 0,
            restarts: false,
            withheld: (u64::MAX, 0),
        }
    }

    fn max_rate(&self) -> u64 {
        self.rates[0].max(self.rates[1])
    }

    fn rate(&self) -> u64 {
        self.short.rate.map_or(self.max_rate(), |bound| bound.min(self.max_rate()))
    }

    fn gains(&self) -> (f64, f64) {
        match self.mode {
            Mode::Startup => (STARTUP_GAIN, CWND_GAIN),
            Mode::Drain(_) => (DRAIN_GAIN, CWND_GAIN),
            Mode::Down => (0.9, CWND_GAIN),
            Mode::Cruise | Mode::Refill => (1.0, CWND_GAIN),
            Mode::Up => (1.25, 2.25),
            Mode::Trip(_) => (1.0, TRIP_CWND_GAIN),
        }
    }

    const fn cycles(&self) -> bool {
        matches!(self.mode, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }

    fn product(&self, rate: u64, gain: f64) -> u64 {
        self.trip.map_or(self.initial, |(trip, _)| volume(rate, trip, gain))
    }

    /// `QuantizationBudget`.
    fn room(&self, octets: u64, mss: u64) -> u64 {
        let octets = octets.max(3 * self.pace.quantum(2 * mss)).max(MIN_SEGMENTS * mss);
        octets + if self.mode == Mode::Up { 2 * mss } else { 0 }
    }

    fn inflight(&self, rate: u64, gain: f64, mss: u64) -> u64 {
        self.room(self.product(rate, gain), mss)
    }

    /// `InflightWithHeadroom`.
    fn with_headroom(&self, mss: u64) -> Option<u64> {
        let long = self.long?;
        let headroom = ((long as f64 * self.settings.headroom) as u64).max(mss);
        Some(long.saturating_sub(headroom).max(MIN_SEGMENTS * mss))
    }

    /// `TargetInflight`.
    fn target(&self, window: &Window) -> u64 {
        self.product(self.rate(), 1.0).min(window.cwnd())
    }

    fn is_too_high(&self, lost: u64, in_flight: u64) -> bool {
        lost as f64 > in_flight as f64 * self.settings.loss_threshold
    }

    fn save(&mut self, cwnd: u64) {
        let whole = self.repairing.is_none() && self.timeout_until == 0 && !matches!(self.mode, Mode::Trip(_));
        self.saved = if whole { cwnd } else { self.saved.max(cwnd) };
    }

    fn reset_full(&mut self, baseline: u64) {
        self.full = FullPipe { baseline, rounds: 0 };
        self.full_now = false;
    }
}

/// What is learnt.
impl Bbr3 {
    fn is_limited(&self, sample: &RateSample) -> bool {
        sample.app_limited || (self.withheld.0..self.withheld.1).contains(&sample.prior_delivered)
    }

    fn learn(&mut self, window: &Window, ack: &Ack, sample: &RateSample) {
        let delivered = ack.path.delivered;
        self.latest.over = sample.prior_delivered >= self.latest.until;
        self.latest.rate = self.latest.rate.max(sample.rate);
        self.latest.inflight = self.latest.inflight.max(sample.delivered);
        if self.latest.over {
            self.latest.until = delivered;
        }
        self.rounds.on_sample(sample, delivered);
        self.rounds_since_up += u64::from(self.rounds.over);
        let used_up = in_flight_before(ack) + u64::from(window.mss()) > window.cwnd();
        self.used_up = used_up || self.used_up && !self.rounds.over;
        if sample.rate >= self.max_rate() || !self.is_limited(sample) {
            self.rates[0] = self.rates[0].max(sample.rate);
        }
        let lost = self.latest.over && std::mem::take(&mut self.latest.lost);
        if lost && !matches!(self.mode, Mode::Startup | Mode::Refill | Mode::Up) {
            // Once a round, toward what was delivered in it.
            let beta = |bound: u64| (bound as f64 * self.settings.beta) as u64;
            self.short = ShortTerm {
                rate: Some(self.latest.rate.max(beta(self.short.rate.unwrap_or(self.max_rate())))),
                inflight: Some(self.latest.inflight.max(beta(self.short.inflight.unwrap_or(window.cwnd())))),
            };
        }
        self.together.on_ack(ack, self.rate(), self.rounds.over, self.filled);
        if !self.full_now && self.rounds.over && !self.is_limited(sample) {
            self.full_now = self.full.on_round(sample.rate);
            self.filled |= self.full_now;
        }
        self.end_startup(ack, sample);
        self.cycle(window, ack, sample);
    }

    fn end_startup(&mut self, ack: &Ack, sample: &RateSample) {
        let path = ack.path;
        let (ranges, over) = (self.latest.ranges, self.latest.over);
        if over {
            self.latest.ranges = 0;
        }
        if self.mode == Mode::Startup && !self.filled && over {
            let round_long = self.repairing.is_some_and(|since| sample.prior_delivered >= since);
            if round_long && ranges >= STARTUP_LOSSES && self.is_too_high(sample.lost_since_sent(), sample.in_flight_when_sent) {
                if let Some(undo) = &mut self.undo {
                    undo.mode = Some(Mode::Startup);
                }
                self.filled = true;
                self.long = Some(self.product(self.rate(), 1.0).max(self.latest.inflight));
            }
        }
        if self.mode == Mode::Startup && self.filled {
            self.mode = Mode::Drain(self.rounds.count);
        }
        if let Mode::Drain(since) = self.mode {
            let drained = path.pipe <= self.inflight(self.rate(), 1.0, u64::from(path.mss));
            if drained || self.rounds.count > since + DRAIN_ROUNDS {
                self.start_down(path);
            }
        }
    }

    /// `UpdateMinRTT` and `CheckProbeRTT`.
    fn watch_trip(&mut self, window: &mut Window, ack: &Ack) {
        let path = ack.path;
        let interval = Duration::from_secs_f64(self.settings.rtt_interval);
        let older = |trip: Option<(Duration, Instant)>, span| trip.is_some_and(|(_, seen)| path.now.since(seen) > span);
        let expired = older(self.recent_trip, interval);
        if let Some(trip) = ack.delay {
            if expired || self.recent_trip.is_none_or(|(shortest, _)| trip < shortest) {
                self.recent_trip = Some((trip, path.now));
            }
        }
        let forgotten = older(self.trip, interval * TRIP_MEMORY);
        if let Some(recent) = self.recent_trip {
            if forgotten || self.trip.is_none_or(|(shortest, _)| recent.0 < shortest) {
                self.trip = Some(recent);
            }
        }
        if expired && !self.restarts && !matches!(self.mode, Mode::Trip(_)) {
            self.save(window.cwnd());
            self.mode = Mode::Trip(Probe::default());
            self.feedback = Feedback::Stopping;
            self.rounds.restart(path.delivered);
            self.withheld.0 = path.delivered;
        }
        let Mode::Trip(mut probe) = self.mode else { return };
        self.withheld.1 = path.delivered + path.pipe;
        match probe.until {
            None if path.pipe <= self.trip_window(path) => {
                probe = Probe { until: Some(path.now + PROBE_TRIP), round: false };
                self.rounds.restart(path.delivered);
            }
            None => {}
            Some(until) => {
                probe.round |= self.rounds.over;
                if probe.round && path.now > until {
                    self.recent_trip = self.recent_trip.map(|(trip, _)| (trip, path.now));
                    window.set_cwnd(window.cwnd().max(self.saved));
                    self.short = ShortTerm::default();
                    self.mode = Mode::Startup;
                    if self.filled {
                        self.start_down(path);
                        self.mode = Mode::Cruise;
                    }
                    return;
                }
            }
        }
        self.mode = Mode::Trip(probe);
    }

    /// `ProbeRTTCwnd`.
    fn trip_window(&self, path: &Path) -> u64 {
        self.product(self.rate(), TRIP_CWND_GAIN).max(MIN_SEGMENTS * u64::from(path.mss))
    }

    fn watch_repair(&mut self, window: &mut Window, ack: &Ack) {
        let before = self.repairing.is_some() || self.timeout_until > 0;
        if self.timeout_until > 0 && ack.path.una >= self.timeout_until {
            self.timeout_until = 0;
        }
        if ack.in_recovery {
            self.repairing = self.repairing.or(Some(ack.path.delivered));
        } else {
            self.repairing = None;
        }
        if before && self.repairing.is_none() && self.timeout_until == 0 {
            window.set_cwnd(window.cwnd().max(self.saved));
        }
    }

    fn set_window(&mut self, window: &mut Window, ack: &Ack) {
        let mss = u64::from(window.mss());
        let grown = window.cwnd() + ack.delivered;
        let most = self.room(self.product(self.rate(), self.gains().1) + self.together.extra(), mss);
        if self.filled {
            window.set_cwnd(grown.min(most));
        } else if window.cwnd() < most || ack.path.delivered < self.initial {
            window.set_cwnd(grown);
        }
        window.set_cwnd(window.cwnd().max(MIN_SEGMENTS * mss));
        let cap = match self.mode {
            Mode::Trip(_) => Some(self.trip_window(ack.path).min(self.with_headroom(mss).unwrap_or(u64::MAX))),
            Mode::Cruise => self.with_headroom(mss),
            Mode::Down | Mode::Refill | Mode::Up => self.long,
            Mode::Startup | Mode::Drain(_) => None,
        };
        let cap = cap.unwrap_or(u64::MAX).min(self.short.inflight.unwrap_or(u64::MAX)).max(MIN_SEGMENTS * mss);
        window.set_cwnd(window.cwnd().min(cap));
    }
}

impl CongestionControl for Bbr3 {
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
        self.recent_trip = self.trip;
        self.together.restart(path.now);
        self.pace.begin(window.cwnd(), STARTUP_GAIN, path.srtt);
    }

    fn on_sent(&mut self, sent: &Sent) {
        if sent.was_idle && self.rounds.count > 0 {
            self.restarts = true;
            self.together.restart(sent.now);
            if self.cycles() {
                self.pace.set(self.rate(), 1.0, self.filled);
            }
        }
    }

    fn on_lost(&mut self, window: &Window, lost: &LostSegment, path: &Path) {
        if !self.latest.lost {
            self.latest.until = path.delivered;
            self.save(window.cwnd());
            self.undo = Some(Undo { mode: None, short: self.short, long: self.long });
        }
        self.latest.lost = true;
        self.latest.ranges += u32::from(lost.start != self.latest.range_end);
        self.latest.range_end = lost.start + lost.octets;
        if !self.probes || !self.is_too_high(lost.lost_since_sent, lost.in_flight_when_sent) {
            return;
        }
        self.too_high = true;
        self.probes = false;
        if !lost.app_limited {
            // Where within what was outstanding the losses crossed the threshold.
            let threshold = self.settings.loss_threshold;
            let before = lost.in_flight_when_sent.saturating_sub(lost.octets) as f64;
            let lost_before = lost.lost_since_sent.saturating_sub(lost.octets) as f64;
            let crossed = before + (threshold * before - lost_before) / (1.0 - threshold).max(0.01);
            let least = self.target(window) as f64 * self.settings.beta;
            self.long = Some(crossed.max(least) as u64);
        }
        if self.mode == Mode::Up {
            if let Some(undo) = &mut self.undo {
                undo.mode = Some(Mode::Up);
            }
            self.start_down(path);
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.rounds.over = false;
        self.latest.over = false;
        self.watch_repair(window, ack);
        if let Some(sample) = ack.sample {
            self.learn(window, ack, sample);
        }
        self.watch_trip(window, ack);
        self.restarts &= ack.delivered == 0;
        if let Some(sample) = ack.sample.filter(|_| self.latest.over) {
            (self.latest.rate, self.latest.inflight) = (sample.rate, sample.delivered);
        }
        if !self.pace.measured && ack.path.srtt.is_some() {
            self.pace.begin(self.initial, STARTUP_GAIN, ack.path.srtt);
        }
        self.pace.set(self.rate(), self.gains().0, self.filled);
        if ack.delivered > 0 {
            self.set_window(window, ack);
        }
    }

    /// The window goes by the model, which losses have changed already.
    fn threshold(&mut self, window: &Window, _path: &Path) -> u64 {
        self.save(window.cwnd());
        window.cwnd()
    }

    fn on_timeout(&mut self, _window: &mut Window, path: &Path) {
        self.timeout_until = path.nxt;
    }

    fn on_undo(&mut self, window: &mut Window, path: &Path) {
        (self.repairing, self.timeout_until) = (None, 0);
        window.set_cwnd(window.cwnd().max(self.saved));
        self.latest.lost = false;
        self.reset_full(0);
        let Some(undo) = self.undo.take() else { return };
        // A bound that is not there is the largest.
        let looser = |now: Option<u64>, then: Option<u64>| now.zip(then).map(|(now, then)| now.max(then));
        self.short = ShortTerm {
            rate: looser(self.short.rate, undo.short.rate),
            inflight: looser(self.short.inflight, undo.short.inflight),
        };
        self.long = looser(self.long, undo.long);
        let measuring = matches!(self.mode, Mode::Trip(_));
        match undo.mode {
            Some(Mode::Startup) if self.mode != Mode::Startup => {
                self.filled = false;
                self.mode = if measuring { self.mode } else { Mode::Startup };
            }
            Some(Mode::Up) if self.mode != Mode::Up && !measuring => self.start_refill(path),
            _ => {}
        }
    }
}
