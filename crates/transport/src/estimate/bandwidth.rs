//! The rate at which the path delivers, from the stream of acknowledgements.

use crate::path::Ack;
use crate::time::{Duration, Instant};

/// How the rates between acknowledgements are smoothed. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    /// A sample an acknowledgement, smoothed with a time constant (Mascolo et al. 2001, section 2.2).
    Westwood {
        /// The time constant, tau.
        tau: f64,
        /// After `tau / m` without an acknowledgement a sample of zero is taken.
        m: f64,
    },
    /// A sample a round trip, smoothed by a constant (Grieco & Mascolo 2004, section 2.1).
    WestwoodPlus {
        /// The weight of what was known before.
        gain: f64,
        /// Shortest time that a sample spans.
        least: Duration,
    },
    /// A sample a round trip through two first-order filters of gain 7/8, as Linux does for Westwood+.
    WestwoodLinux {
        /// Shortest time that a sample spans.
        least: Duration,
    },
    /// A window of one round trip that slides in time (Xu, Tian & Ansari 2004, eq. 1).
    Jersey,
}

/// The rate of delivery in octets per second, and the smallest delay, which together give the window that fills the path without
/// a queue.
///
/// The papers do not say where the filters begin. Our reading: Westwood's and Westwood+'s begin with their first sample, as Linux
/// does, because from zero they need several time constants to learn the rate of a path; Jersey's begins at zero, since it forgets
/// within a round trip.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    filter: Filter,
    count: Count,
    /// Where the sample that is being taken begins; `None` before the first acknowledgement.
    since: Option<Instant>,
    /// Octets delivered since then.
    octets: u64,
    /// The sample before; `None` before the first.
    last: Option<f64>,
    rate: f64,
    min_delay: Option<Duration>,
}

/// How many octets an acknowledgement says have arrived (Mascolo et al. 2001, `AckedCount`): without SACK a duplicate says one segment,
/// which the next advance must not count again.
#[derive(Clone, Debug, Default)]
struct Count {
    in_advance: u64,
}

impl Count {
    fn of(&mut self, ack: &Ack) -> u64 {
        let mss = u64::from(ack.path.mss);
        if ack.duplicate && ack.delivered == 0 {
            self.in_advance += mss;
            return mss;
        }
        if ack.delivered == 0 {
            return 0;
        }
        let counted = self.in_advance.min(ack.delivered);
        self.in_advance -= counted;
        // What set off this advance arrived only now.
        (ack.delivered - counted).max(mss.min(ack.delivered))
    }
}

/// Acknowledgements no further apart are one sample: the rate between them says nothing of the path.
const AT_ONCE: Duration = Duration::from_micros(1);

/// Samples of zero after which nothing is left of the rate.
const FORGOTTEN: u64 = 1000;

impl Bandwidth {
    /// An estimate by `filter`.
    pub fn new(filter: Filter) -> Self {
        Self { filter, count: Count::default(), since: None, octets: 0, last: None, rate: 0.0, min_delay: None }
    }

    /// To be called for every acknowledgement.
    pub fn on_ack(&mut self, ack: &Ack) {
        if let Some(delay) = ack.delay {
            self.min_delay = Some(self.min_delay.map_or(delay, |least| least.min(delay)));
        }
        let octets = self.count.of(ack);
        if octets == 0 {
            return;
        }
        let now = ack.path.now;
        self.pass(now);
        let Some(since) = self.since else {
            // How long its data took to arrive is unknown.
            self.since = Some(now);
            return;
        };
        self.octets += octets;
        let elapsed = now.since(since);
        let round_trip = ack.path.srtt.unwrap_or_default();
        let span = match self.filter {
            Filter::Westwood { .. } | Filter::Jersey => AT_ONCE,
            Filter::WestwoodPlus { least, .. } | Filter::WestwoodLinux { least } => round_trip.max(least),
        };
        if elapsed < span {
            return;
        }
        let octets = std::mem::take(&mut self.octets) as f64;
        self.since = Some(now);
        self.step(octets, elapsed.as_secs_f64(), round_trip.as_secs_f64());
    }

    /// Takes a sample of `octets` in `elapsed` seconds.
    fn step(&mut self, octets: f64, elapsed: f64, round_trip: f64) {
        let sample = octets / elapsed;
        if let Filter::Jersey = self.filter {
            // Xu, Tian & Ansari 2004, eq. 1
            self.rate = (round_trip * self.rate + octets) / (elapsed + round_trip);
            self.last = Some(sample);
            return;
        }
        let Some(last) = self.last else {
            (self.rate, self.last) = (sample, Some(sample));
            return;
        };
        self.last = Some(match self.filter {
            Filter::Westwood { tau, .. } => {
                // Mascolo et al. 2001, eq. 1: a low-pass filter by Tustin's approximation. The sample is at most 2 tau long, or the
                // weight would be negative; `pass` keeps it so.
                let weight = (2.0 * tau - elapsed) / (2.0 * tau + elapsed);
                self.rate = weight * self.rate + (1.0 - weight) * (sample + last) / 2.0;
                sample
            }
            Filter::WestwoodPlus { gain, .. } => {
                self.rate = gain * self.rate + (1.0 - gain) * (sample + last) / 2.0;
                sample
            }
            Filter::WestwoodLinux { .. } => {
                let smoothed = (7.0 * last + sample) / 8.0;
                self.rate = (7.0 * self.rate + smoothed) / 8.0;
                smoothed
            }
            Filter::Jersey => unreachable!("returned above"),
        });
    }

    /// Westwood's samples of zero for a time without acknowledgements.
    fn pass(&mut self, now: Instant) {
        let (Filter::Westwood { tau, m }, Some(since)) = (self.filter, self.since) else { return };
        let wait = tau / m;
        let step = Duration::from_nanos((wait * 1e9) as u64);
        // A sample of zero just before an acknowledgement would leave it next to no time, and its rate would be absurd: our reading is
        // that the acknowledgement takes the place of a sample of zero less than half a step away.
        let half_steps = now.since(since).as_nanos() / (step.as_nanos() / 2).max(1);
        let idle = half_steps.saturating_sub(1) / 2;
        if self.last.is_some() {
            for _ in 0..idle.min(FORGOTTEN) {
                self.step(0.0, wait, 0.0);
            }
        }
        self.since = Some(since + step * idle);
    }

    /// The rate in octets per second; `None` before the first sample.
    pub fn rate(&self, now: Instant) -> Option<f64> {
        let mut ahead = self.clone();
        ahead.pass(now);
        ahead.last.map(|_| ahead.rate)
    }

    /// Rate times smallest delay, in octets: what the path holds without a queue. `None` before there are samples of both.
    pub fn window(&self, now: Instant) -> Option<u64> {
        let delay = self.min_delay?.as_secs_f64();
        Some((self.rate(now)? * delay) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::segment::Options;

    const MSS: u64 = 1000;

    /// An acknowledgement `ms` after the start.
    fn tell(bandwidth: &mut Bandwidth, ms: u64, acked: u64, duplicate: bool) {
        let round_trip = Duration::from_millis(100);
        let path = Path { now: at(ms), srtt: Some(round_trip), mss: MSS as u32, ..Path::default() };
        bandwidth.on_ack(&Ack {
            path: &path,
            acked,
            delivered: acked,
            rtt: None,
            delay: Some(round_trip),
            newest_sent_at: None,
            duplicate,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &Options::default(),
        });
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn after(filter: Filter, acks: &[(u64, u64)]) -> Bandwidth {
        let mut bandwidth = Bandwidth::new(filter);
        for &(ms, acked) in acks {
            tell(&mut bandwidth, ms, acked, false);
        }
        bandwidth
    }

    fn near(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-3), "found {found:?}, expected {expected}");
    }

    const WESTWOOD: Filter = Filter::Westwood { tau: 0.5, m: 2.0 };

    #[test]
    fn westwood_weighs_a_sample_by_its_length() {
        let mut bandwidth = after(WESTWOOD, &[(0, 1000)]);
        assert_eq!(bandwidth.rate(at(0)), None);
        tell(&mut bandwidth, 100, 1000, false);
        near(bandwidth.rate(at(100)), 10_000.0);
        tell(&mut bandwidth, 200, 3000, false);
        // (1 - 0.1) / (1 + 0.1) * 10000 + (1 - 0.8182) * (30000 + 10000) / 2
        near(bandwidth.rate(at(200)), 11_818.181_8);
    }

    #[test]
    fn westwood_forgets_in_silence() {
        let bandwidth = after(WESTWOOD, &[(0, 1000), (100, 1000), (200, 3000)]);
        near(bandwidth.rate(at(500)), 11_818.181_8);
        // A zero of 250 ms: 0.6 * 11818 + 0.4 * (0 + 30000) / 2; and another: 0.6 * 13091.
        near(bandwidth.rate(at(600)), 13_090.909_1);
        near(bandwidth.rate(at(830)), 7_854.545_5);
        near(bandwidth.rate(at(3_600_000)), 0.0);
    }

    #[test]
    fn an_acknowledgement_next_to_a_sample_of_zero_makes_no_spike() {
        for ms in 450..960 {
            let bandwidth = after(WESTWOOD, &[(0, 1000), (100, 1000), (200, 3000), (ms, 1000), (ms + 100, 1000)]);
            let rate = bandwidth.rate(at(ms + 100)).unwrap();
            assert!(rate < 15_000.0, "{ms}: {rate}");
        }
    }

    #[test]
    fn westwood_plus_samples_a_round_trip() {
        let acks = [(0, 1000), (50, 1000), (100, 1000), (150, 2000), (200, 2000), (250, 9000)];
        let least = Duration::from_millis(50);
        let paper = after(Filter::WestwoodPlus { gain: 0.9, least }, &acks);
        near(paper.rate(at(250)), 21_000.0); // 20000, then 0.9 * 20000 + 0.1 * (40000 + 20000) / 2
        let linux = after(Filter::WestwoodLinux { least }, &acks);
        near(linux.rate(at(250)), 20_312.5); // (7 * 20000 + (7 * 20000 + 40000) / 8) / 8
        assert_eq!(linux.window(at(250)), Some(2031));
        let slow = after(Filter::WestwoodPlus { gain: 0.9, least: Duration::from_millis(250) }, &acks);
        near(slow.rate(at(250)), 60_000.0);
    }

    #[test]
    fn jersey_slides_a_window_of_a_round_trip() {
        let mut bandwidth = after(Filter::Jersey, &[(0, 1000), (100, 1000)]);
        near(bandwidth.rate(at(100)), 5_000.0); // 1000 / (0.1 + 0.1)
        tell(&mut bandwidth, 200, 1000, false);
        near(bandwidth.rate(at(200)), 7_500.0); // (0.1 * 5000 + 1000) / 0.2
    }

    #[test]
    fn every_filter_settles_at_a_steady_rate() {
        let least = Duration::from_millis(50);
        for filter in [WESTWOOD, Filter::WestwoodPlus { gain: 0.9, least }, Filter::WestwoodLinux { least }, Filter::Jersey] {
            let acks: Vec<_> = (0..500).map(|n| (n * 10, 1250)).collect();
            let rate = after(filter, &acks).rate(at(4990)).unwrap();
            assert!((rate - 125_000.0).abs() < 200.0, "{filter:?}: {rate}");
        }
    }

    #[test]
    fn duplicates_without_sack_count_once() {
        let mut count = Bandwidth::new(Filter::WestwoodPlus { gain: 0.9, least: Duration::from_secs(1) });
        tell(&mut count, 0, 1000, false);
        for ms in [10, 20, 30] {
            tell(&mut count, ms, 0, true);
        }
        assert_eq!(count.octets, 3000);
        tell(&mut count, 40, 4000, false);
        assert_eq!(count.octets, 4000, "the three and the one that was missing");
        tell(&mut count, 50, 2000, false);
        assert_eq!(count.octets, 6000);
    }
}
