//! PIE: drops what comes with a probability that a controller derives from the waiting time and its trend (RFC 8033).

use super::{not_a_share, packet_flaw, Decision, Found};
use crate::error::Flaw;
use crate::random::Stream;
use whyloss_transport::Duration;

/// The parameters of PIE; where nothing is said those of RFC 8033.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pie {
    /// Waiting time that the queue is held at.
    pub target: Duration,
    /// How often the probability is set anew.
    pub interval: Duration,
    /// A burst of this length is let through after a time without congestion.
    pub burst: Duration,
    /// What a second of waiting beyond the target adds to the probability.
    pub alpha: f64,
    /// What a second of waiting more than an interval before adds to the probability.
    pub beta: f64,
    /// How the waiting time is found.
    pub estimate: DelayEstimate,
    /// Marks ECN-capable packets instead of dropping them, as long as the probability is below `ecn_threshold`.
    pub mark: bool,
    /// Probability from which ECN-capable packets are dropped, too.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Probability"))]
    pub ecn_threshold: f64,
    /// Length of a typical packet: nothing is dropped while at most two of that length wait.
    // RFC 8033 names it and leaves its value open.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::size"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Size"))]
    pub mean_packet: u64,
}

/// How PIE finds the waiting time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DelayEstimate {
    /// What waits, divided by a moving average of the rate at which packets depart (RFC 8033, 5.2).
    #[default]
    DepartureRate,
    /// How long the last packet that departed has waited.
    Timestamps,
}

impl Default for Pie {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            interval: Duration::from_millis(15),
            burst: Duration::from_millis(150),
            alpha: 0.125,
            beta: 1.25,
            estimate: DelayEstimate::default(),
            mark: false,
            ecn_threshold: 0.1,
            mean_packet: 1500,
        }
    }
}

impl Pie {
    pub(super) fn flaw(&self) -> Option<Flaw> {
        let weight = |value: f64| value > 0.0 && value <= 1000.0;
        match self {
            _ if self.target == Duration::ZERO => Some(("target", "0 s".to_owned(), "a time above zero")),
            _ if self.interval == Duration::ZERO => Some(("interval", "0 s".to_owned(), "a time above zero")),
            _ if !weight(self.alpha) => Some(("alpha", self.alpha.to_string(), "a number above 0, at most 1000")),
            _ if !weight(self.beta) => Some(("beta", self.beta.to_string(), "a number above 0, at most 1000")),
            _ => not_a_share("ecn_threshold", self.ecn_threshold).or_else(|| packet_flaw(self.mean_packet)),
        }
    }
}

/// PIE at work; times in seconds where nothing else is said.
#[derive(Debug)]
pub(crate) struct Controller {
    spec: Pie,
    probability: f64,
    /// Waiting time at the last update.
    delay: f64,
    /// What is left of a burst that may pass, in nanoseconds.
    allowance: u64,
    /// When the probability is set next, in nanoseconds.
    next: u64,
    /// How long the last packet that departed had waited.
    waited: f64,
    rate: DepartureRate,
    stream: Stream,
}

/// A packet whose transmission begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// In nanoseconds.
    pub now: u64,
    /// Nanoseconds that it has waited.
    pub waited: u64,
    pub length: u32,
    /// Octets that waited with it.
    pub backlog: u64,
}

impl Controller {
    pub fn new(spec: &Pie, stream: Stream) -> Self {
        Self {
            spec: *spec,
            probability: 0.0,
            delay: 0.0,
            allowance: spec.burst.as_nanos(),
            next: spec.interval.as_nanos(),
            waited: 0.0,
            rate: DepartureRate::default(),
            stream,
        }
    }

    /// What is to become of a packet that finds the queue like this (RFC 8033, 4.1, 4.4 and 5.1).
    pub fn decide(&mut self, found: &Found) -> Decision {
        self.advance(found.now, found.octets);
        let calm = self.delay < self.spec.target.as_secs_f64() / 2.0 && self.probability < 0.2;
        if self.allowance > 0 || calm || found.octets <= 2 * self.spec.mean_packet {
            return Decision::Pass;
        }
        if self.stream.unit() >= self.probability {
            return Decision::Pass;
        }
        if self.spec.mark && self.probability < self.spec.ecn_threshold {
            Decision::MarkOrDrop
        } else {
            Decision::Drop
        }
    }

    /// A packet departs.
    pub fn departs(&mut self, departure: &Departure) {
        self.advance(departure.now, departure.backlog);
        self.waited = departure.waited as f64 / 1e9;
        self.rate.note(departure);
    }

    /// Sets the probability at each of its times until `now`; so many octets have waited since the queue was touched last.
    fn advance(&mut self, now: u64, backlog: u64) {
        let interval = self.spec.interval.as_nanos();
        while self.next <= now {
            let before = (self.probability, self.delay, self.allowance);
            self.update(backlog);
            self.next += interval;
            if before == (self.probability, self.delay, self.allowance) {
                // Nothing will be different until the queue is.
                self.next += now.saturating_sub(self.next) / interval * interval;
            }
        }
    }

    /// RFC 8033, 4.2, 4.4 and 5.5.
    fn update(&mut self, backlog: u64) {
        let Self { spec, probability, .. } = self;
        let target = spec.target.as_secs_f64();
        let delay = match spec.estimate {
            _ if backlog == 0 => 0.0,
            DelayEstimate::Timestamps => self.waited,
            DelayEstimate::DepartureRate => self.rate.delay(backlog),
        };
        let change = spec.alpha * (delay - target) + spec.beta * (delay - self.delay);
        let scaled = change / tuning(*probability);
        // The probability does not jump while it is high.
        let capped = if *probability >= 0.1 { scaled.min(0.02) } else { scaled };
        *probability += capped;
        let calm = delay < target / 2.0 && self.delay < target / 2.0;
        if calm {
            *probability *= 0.98;
        }
        *probability = probability.clamp(0.0, 1.0);
        self.delay = delay;
        self.allowance = self.allowance.saturating_sub(spec.interval.as_nanos());
        if calm && *probability == 0.0 {
            self.allowance = spec.burst.as_nanos();
        }
    }
}

/// What a change is divided by: the smaller the probability, the smaller the steps (RFC 8033, 4.2).
fn tuning(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

/// The rate at which packets depart while enough of them wait (RFC 8033, 5.2).
#[derive(Debug, Default)]
struct DepartureRate {
    /// Octets per second; 0 if nothing has been measured.
    average: f64,
    /// When the measurement began, in nanoseconds, and octets that have departed since.
    cycle: Option<(u64, u64)>,
}

impl DepartureRate {
    /// Octets of a measurement: 2^14.
    const CYCLE: u64 = 16_384;
    /// Weight of a new one in the average: 2^14 / 2^16.
    const WEIGHT: f64 = 0.25;

    fn note(&mut self, departure: &Departure) {
        let &Departure { now, length, backlog, waited } = departure;
        match &mut self.cycle {
            // The transmitter may have had nothing to do.
            Some(_) if waited == 0 => self.cycle = None,
            Some((_, octets)) if *octets < Self::CYCLE => {
                *octets += u64::from(length);
                return;
            }
            // What has departed since the beginning has been transmitted by now.
            Some((start, octets)) => {
                let sample = *octets as f64 * 1e9 / (now - *start).max(1) as f64;
                let known = self.average > 0.0;
                self.average += if known { Self::WEIGHT * (sample - self.average) } else { sample };
                self.cycle = None;
            }
            None => {}
        }
        if backlog >= Self::CYCLE {
            self.cycle = Some((now, u64::from(length)));
        }
    }

    fn delay(&self, backlog: u64) -> f64 {
        if self.average > 0.0 {
            backlog as f64 / self.average
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, stream};
    use super::*;

    const MS: u64 = 1_000_000;

    fn pie(spec: Pie) -> Controller {
        Controller::new(&spec, stream())
    }

    /// Lets an update happen that finds the last packet to have waited so long, and a queue that is not empty.
    fn update(controller: &mut Controller, waited: f64) -> f64 {
        controller.waited = waited;
        let next = controller.next;
        controller.advance(next, 30_000);
        controller.probability
    }

    #[test]
    fn the_control_law_gives_the_numbers_of_the_hand() {
        let mut controller = pie(Pie { estimate: DelayEstimate::Timestamps, ..Pie::default() });
        let mut expect = |waited: f64, expected: f64| {
            let found = update(&mut controller, waited);
            assert!((found - expected).abs() < 1e-12 * (1.0 + expected * 1e6), "{found}, not {expected}");
        };
        // (0.125 * 0.025 + 1.25 * 0.040) / 2048
        let first = 0.053_125 / 2048.0;
        expect(0.040, first);
        // From 1e-5 on by 128: 0.125 * 0.025, and no trend.
        expect(0.040, first + 0.003_125 / 128.0);
        // The trend alone, downward: 0.125 * (0.030 - 0.015) + 1.25 * -0.010 = -0.010625.
        expect(0.030, 0.0);
        // 2048 again: 0.125 * 0.085 + 1.25 * 0.070 = 0.098125.
        expect(0.100, 0.098_125 / 2048.0);
    }

    #[test]
    fn steps_follow_the_probability() {
        for (probability, divisor) in
            [(5e-7, 2048.0), (5e-6, 512.0), (5e-5, 128.0), (5e-4, 32.0), (5e-3, 8.0), (5e-2, 2.0), (0.15, 1.0)]
        {
            let mut controller = pie(Pie { estimate: DelayEstimate::Timestamps, ..Pie::default() });
            (controller.probability, controller.delay) = (probability, 0.040);
            let found = update(&mut controller, 0.040) - probability;
            assert!((found - 0.003_125 / divisor).abs() < 1e-12, "{found} at {probability}");
        }
        // From 10 % on at most two points at once, downward as far as it goes.
        let mut controller = pie(Pie { estimate: DelayEstimate::Timestamps, ..Pie::default() });
        (controller.probability, controller.delay) = (0.15, 0.0);
        assert!((update(&mut controller, 0.100) - 0.17).abs() < 1e-12);
        assert!((update(&mut controller, 0.020) - (0.17 + 0.125 * 0.005 - 1.25 * 0.080)).abs() < 1e-12);
    }

    #[test]
    fn it_decays_when_congestion_is_over_and_a_burst_may_pass_again() {
        let mut controller = pie(Pie { estimate: DelayEstimate::Timestamps, ..Pie::default() });
        (controller.probability, controller.allowance) = (0.05, 0);
        // Below half the target twice: -0.125 * 0.010 / 2, then a fiftieth less.
        controller.delay = 0.005;
        assert!((update(&mut controller, 0.005) - (0.05 - 0.125 * 0.010 / 2.0) * 0.98).abs() < 1e-12);
        let mut updates = 0;
        while controller.probability > 0.0 {
            assert_eq!(controller.allowance, 0);
            controller.advance(controller.next, 0);
            updates += 1;
        }
        assert!(updates < 500, "{updates}");
        assert_eq!(controller.allowance, 150 * MS);
        // Nothing is dropped while it lasts: ten updates.
        controller.probability = 0.5;
        controller.delay = 0.040;
        for left in (0..10).rev() {
            assert!((0..100).all(|_| controller.decide(&Found { now: controller.next - 1, ..found(100) }) == Decision::Pass));
            update(&mut controller, 0.040);
            assert_eq!(controller.allowance, left * 15 * MS);
        }
        let now = controller.next - 1;
        assert!((0..100).any(|_| controller.decide(&Found { now, ..found(100) }) == Decision::Drop));
    }

    #[test]
    fn a_long_silence_is_as_good_as_all_its_updates() {
        let [mut slow, mut fast] = [(); 2].map(|()| pie(Pie::default()));
        for controller in [&mut slow, &mut fast] {
            (controller.probability, controller.delay) = (0.3, 0.040);
        }
        for at in 1..100_000 {
            slow.advance(at * 15 * MS, 0);
        }
        fast.advance(99_999 * 15 * MS, 0);
        assert_eq!((slow.probability, slow.allowance, slow.next), (fast.probability, fast.allowance, fast.next));
    }

    #[test]
    fn ecn_protects_below_its_threshold() {
        let spec = Pie { mark: true, burst: Duration::ZERO, ..Pie::default() };
        for (probability, decision) in [(0.099, Decision::MarkOrDrop), (0.101, Decision::Drop)] {
            let mut controller = pie(spec);
            (controller.probability, controller.delay, controller.allowance) = (probability, 0.020, 0);
            let hit = (0..100_000).filter(|_| match controller.decide(&found(20)) {
                Decision::Pass => false,
                other => {
                    assert_eq!(other, decision);
                    true
                }
            });
            let share = hit.count() as f64 / 1e5;
            // Standard deviation 0.001.
            assert!((share - probability).abs() < 0.004, "{share}");
        }
        // Two packets may always wait, and a queue below half its target is calm.
        let mut controller = pie(spec);
        (controller.probability, controller.delay, controller.allowance) = (1.0, 0.020, 0);
        assert_eq!(controller.decide(&found(6)), Decision::Pass);
        (controller.probability, controller.delay) = (0.19, 0.007);
        assert!((0..1000).all(|_| controller.decide(&found(20)) == Decision::Pass));
    }

    #[test]
    fn the_departure_rate_is_that_of_the_link() {
        let mut rate = DepartureRate::default();
        let depart = |rate: &mut DepartureRate, ms: u64, backlog, waited| {
            rate.note(&Departure { now: ms * MS, waited, length: 1250, backlog });
        };
        // 1250 octets a millisecond; too little waits to measure, then enough.
        (0..100).for_each(|ms| depart(&mut rate, ms, 10_000, 1));
        assert_eq!((rate.average, rate.delay(1000)), (0.0, 0.0));
        (100..130).for_each(|ms| depart(&mut rate, ms, 20_000, 1));
        assert!((rate.average - 1_250_000.0).abs() < 1e-6, "{}", rate.average);
        assert!((rate.delay(25_000) - 0.020).abs() < 1e-12);
        // A second that was spent idle does not count.
        depart(&mut rate, 1130, 1250, 0);
        (1131..1200).for_each(|ms| depart(&mut rate, ms, 20_000, 1));
        assert!((rate.average - 1_250_000.0).abs() < 1e-6, "{}", rate.average);
        // Half as fast: a quarter of the difference a measurement.
        rate.cycle = None;
        (600..615).for_each(|ms| depart(&mut rate, 2 * ms, 20_000, 1));
        assert!((rate.average - (0.75 * 1_250_000.0 + 0.25 * 625_000.0)).abs() < 1e-6, "{}", rate.average);
    }
}
