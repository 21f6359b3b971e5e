//! Round-trip time and retransmission timeout (RFC 6298).

use super::clock::HostClock;
use super::{Config, Granularity};
use crate::time::{Duration, Instant};
use std::num::NonZeroU32;

/// Estimates the round-trip time and computes the retransmission timeout.
#[derive(Debug)]
pub(super) struct RttEstimator {
    granularity: Granularity,
    clock: HostClock,
    /// The smallest timeout before backing off.
    min_rto: Duration,
    /// The smallest timeout, backed off or not.
    least: Duration,
    min_on_variance: bool,
    /// What the timeout exceeds the round trip by at least where `min_rto` would be longer, in microseconds.
    margin: Option<NonZeroU32>,
    max_rto: Duration,
    max_backoff: u32,
    srtt: Option<Duration>,
    rttvar: Duration,
    rto: Duration,
    backoff: u32,
    latest: Option<Duration>,
    min: Option<Duration>,
    max: Option<Duration>,
    /// By ticks: the filters, see [`RttEstimator::sample_ticks`].
    ticks: (i64, i64),
    /// By ticks: the timeout that the filters alone ask for.
    filtered: Duration,
    /// By ticks, without timestamps: the end of the segment that is being timed, and when it left.
    timed: Option<(u64, Instant)>,
    /// What parts are told of it may differ from what they were told last.
    changed: bool,
}

impl RttEstimator {
    pub fn new(config: &Config) -> Self {
        let after = config.min_rto_after_backoff;
        let (min_rto, least) = if after { (Duration::ZERO, config.min_rto) } else { (config.min_rto, Duration::ZERO) };
        Self {
            granularity: config.granularity,
            clock: HostClock::new(config.granularity, config.clock_phase),
            min_rto,
            least,
            min_on_variance: config.min_rto_on_variance,
            margin: None,
            max_rto: config.max_rto,
            max_backoff: config.max_backoff,
            srtt: None,
            rttvar: Duration::ZERO,
            rto: config.initial_rto,
            backoff: 1,
            latest: None,
            min: None,
            max: None,
            ticks: (0, 0),
            filtered: config.initial_rto,
            timed: None,
            changed: true,
        }
    }

    /// See [`TimeoutPolicy::margin`](crate::timeout::TimeoutPolicy::margin); by ticks it changes nothing.
    pub fn set_margin(&mut self, margin: Option<Duration>) {
        self.margin = margin
            .map(|margin| u32::try_from(margin.as_nanos() / 1000).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MAX));
    }

    /// Whether anything that parts are told of may have changed since this was asked last.
    pub const fn take_change(&mut self) -> bool {
        std::mem::replace(&mut self.changed, false)
    }

    pub const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    pub const fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// The timeout without back-off.
    pub fn base_rto(&self) -> Duration {
        self.rto.max(self.least)
    }

    /// The timeout as it is to be armed.
    pub fn rto(&self) -> Duration {
        (self.rto * u64::from(self.backoff)).min(self.max_rto).max(self.least)
    }

    /// When the retransmission timer ends if it starts now.
    pub fn expiry(&self, now: Instant) -> Instant {
        self.clock.after(now, self.rto())
    }

    /// What tells when timers end.
    pub const fn clock(&self) -> HostClock {
        self.clock
    }

    /// Timers end by this clock from now on.
    pub fn follow(&mut self, clock: HostClock) {
        self.clock = clock;
    }

    pub const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    pub const fn min(&self) -> Option<Duration> {
        self.min
    }

    pub const fn max(&self) -> Option<Duration> {
        self.max
    }

    /// Doubles the timeout (RFC 6298, 5.5).
    pub fn back_off(&mut self) {
        self.changed = true;
        if self.backoff < self.max_backoff && self.rto() < self.max_rto {
            self.backoff *= 2;
        }
        if self.is_fine() {
            return;
        }
        if let Granularity::FreeBsd(_) = self.granularity {
            self.rto = self.filtered; // whatever the latest sample asked for
        }
        if self.backoff > 8 {
            // BSD and ns-2 distrust the average after several doublings: the next sample starts it anew.
            if self.ticks.0 != 0 {
                self.ticks.1 += self.ticks.0 >> 3;
                self.ticks.0 = 0;
            }
        }
    }

    /// Progress makes the back-off unnecessary.
    pub fn reset_backoff(&mut self) {
        self.backoff = 1;
    }

    /// A segment ending at `end` leaves for the first time.
    pub fn on_sent(&mut self, end: u64, now: Instant) {
        if self.timed.is_none() {
            self.timed = Some((end, now));
        }
    }

    /// Something is retransmitted: what is being timed has become ambiguous (Karn).
    pub fn on_retransmit(&mut self) {
        self.timed = None;
    }

    /// The smallest time that the host's clock tells.
    pub const fn tick(&self) -> Duration {
        match self.granularity {
            Granularity::Fine(tick) | Granularity::Ticks(tick) | Granularity::Net3(tick) | Granularity::FreeBsd(tick) => tick,
        }
    }

    /// Whether samples are exact and taken from every acknowledgement.
    pub const fn is_fine(&self) -> bool {
        matches!(self.granularity, Granularity::Fine(_))
    }

    /// By ticks, without timestamps: the sample of the timed segment, if `una` covers it.
    pub fn take_timed(&mut self, una: u64, now: Instant) -> Option<Duration> {
        let (end, sent) = self.timed?;
        if una < end {
            return None;
        }
        self.timed = None;
        Some(self.measure(sent, now))
    }

    /// The time between `sent` and `now` as the granularity measures it: exactly, or in ticks that have come since.
    pub fn measure(&self, sent: Instant, now: Instant) -> Duration {
        match self.granularity {
            Granularity::Fine(_) => now.since(sent),
            Granularity::Ticks(tick) | Granularity::Net3(tick) | Granularity::FreeBsd(tick) => {
                tick * self.clock.ticks_between(tick, sent, now)
            }
        }
    }

    /// The SYN was retransmitted and no sample exists: start from three seconds (RFC 6298, 5.7).
    pub fn after_syn_loss(&mut self) {
        self.changed = true;
        self.rto = self.rto.max(Duration::from_secs(3)).min(self.max_rto);
        self.filtered = self.rto;
    }

    /// Takes a sample as [`RttEstimator::measure`] gives it. `expected` is the number of samples a round trip (RFC 7323, appendix G), at least 1.
    pub fn sample(&mut self, measured: Duration, expected: u64) {
        self.changed = true;
        self.reset_backoff();
        let rtt = match self.granularity {
            Granularity::Fine(floor) => {
                self.sample_fine(measured, expected.max(1), floor);
                measured
            }
            Granularity::Ticks(tick) | Granularity::Net3(tick) | Granularity::FreeBsd(tick) => {
                self.sample_ticks(measured, tick);
                measured.max(tick)
            }
        };
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.max = Some(self.max.map_or(rtt, |max| max.max(rtt)));
    }

    fn sample_fine(&mut self, rtt: Duration, expected: u64, floor: Duration) {
        match self.srtt {
            None => {
                self.srtt = Some(rtt); // RFC 6298, 2.2
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                // RFC 6298, 2.3 with the gains of RFC 7323, appendix G
                let deviation = srtt.abs_diff(rtt);
                self.rttvar = approach(self.rttvar, deviation, 4 * expected);
                self.srtt = Some(approach(srtt, rtt, 8 * expected));
            }
        }
        let srtt = self.srtt.unwrap_or(rtt);
        let variance = (self.rttvar * 4).max(floor);
        let rto = if self.min_on_variance { srtt + variance.max(self.min_rto) } else { (srtt + variance).max(self.min_rto) };
        self.rto = self.margin.map_or(rto, |margin| {
            let margin = Duration::from_micros(u64::from(margin.get()));
            rto.min(srtt + variance.max(srtt).max(margin))
        });
    }

    /// SRTT in eighths and RTTVAR in quarters of a tick, or of a quarter of one. Integer division is what keeps them apart from the truth, and is
    /// meant to: half a tick each (Wright & Stevens 1995, 25.10; Brakmo & Peterson 1995).
    fn sample_ticks(&mut self, measured: Duration, tick: Duration) {
        let passed = (measured.as_nanos() / tick.as_nanos().max(1)) as i64;
        // What a segment without history sets the filters to, what they take later, and their further bits.
        let (first, later, bits) = match self.granularity {
            Granularity::Net3(_) => (passed + 1, passed, 0),
            Granularity::FreeBsd(_) => (passed + 1, passed, 2),
            _ => (passed.max(1), passed.max(1), 0),
        };
        let (srtt, rttvar) = &mut self.ticks;
        if *srtt == 0 {
            *srtt = first << (3 + bits);
            *rttvar = first << (1 + bits);
        } else {
            let delta = (later << bits) - (*srtt >> 3);
            *srtt = (*srtt + delta).max(1);
            *rttvar = (*rttvar + delta.abs() - (*rttvar >> 2)).max(1);
        }
        let ticks = ((*srtt >> 3) + *rttvar) >> bits; // SRTT + 4 RTTVAR
        self.srtt = Some(tick * *srtt as u64 / (8 << bits));
        self.rttvar = tick * *rttvar as u64 / (4 << bits);
        self.filtered = (tick * ticks as u64).max(self.min_rto);
        self.rto = match self.granularity {
            Granularity::Ticks(_) => self.filtered.max(tick * 2),
            Granularity::FreeBsd(_) => self.filtered.max(tick * (first as u64 + 2)),
            _ => self.filtered,
        };
    }

    /// A timeout proved spurious: the delay that caused it becomes part of the estimate (RFC 4015, 3.3).
    pub fn on_spurious(&mut self, delayed: Duration) {
        let Granularity::Fine(floor) = self.granularity else { return };
        self.changed = true;
        let srtt = self.srtt.map_or(delayed, |srtt| srtt.max(delayed));
        self.srtt = Some(srtt);
        self.rttvar = self.rttvar.max(delayed / 2);
        self.rto = (srtt + (self.rttvar * 4).max(floor)).max(self.min_rto);
        self.reset_backoff();
    }
}

/// Moves `value` by one `divisor`-th of the way to `target`.
fn approach(value: Duration, target: Duration, divisor: u64) -> Duration {
    if target >= value {
        value + (target - value) / divisor
    } else {
        value - (value - target) / divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Duration = Duration::from_millis(500);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn estimator(granularity: Granularity) -> RttEstimator {
        RttEstimator::new(&Config { granularity, ..Config::qualnet() })
    }

    #[test]
    fn ns_2_takes_at_least_one_tick() {
        let mut rtt = RttEstimator::new(&Config::ns2());
        let tick = ms(10);
        rtt.sample(tick * 10, 1);
        assert_eq!(rtt.ticks, (80, 20));
        rtt.sample(tick * 12, 1);
        assert_eq!(rtt.ticks, (82, 17));
        assert_eq!(rtt.base_rto(), tick * 27);
        for passed in [0, 1] {
            let mut rtt = RttEstimator::new(&Config { min_rto: Duration::ZERO, ..Config::ns2() });
            rtt.sample(tick * passed, 1);
            assert_eq!((rtt.ticks, rtt.base_rto()), ((8, 2), tick * 3), "{passed}");
        }
    }

    #[test]
    fn the_agents_of_2001_back_off_below_their_minimum() {
        let tick = ms(100);
        let mut rtt = RttEstimator::new(&Config::ns2_2001());
        assert_eq!(rtt.rto(), tick * 60, "before any sample");
        // 70 ms within a tick and across its end: both count as one.
        for sent in [10, 50] {
            let sent = Instant::ZERO + ms(sent);
            let measured = rtt.measure(sent, sent + ms(70));
            rtt.sample(measured, 1);
            assert_eq!(rtt.ticks, (8, 2), "m = 1: srtt = 1 << 3, rttvar = 1 << 1");
        }
        assert_eq!(rtt.base_rto(), tick * 10, "((2 << 3) + 8) >> 3 = 3 ticks, and the minimum of 1 s");
        // 3 ticks doubled, and the minimum after that; beyond eight times the average is in doubt, beyond 64 times nothing doubles.
        for (timeout, filters) in
            [(10, (8, 2)), (10, (8, 2)), (12, (8, 2)), (24, (8, 2)), (48, (0, 3)), (96, (0, 3)), (192, (0, 3)), (192, (0, 3))]
        {
            assert_eq!((rtt.rto(), rtt.ticks), (tick * timeout, filters));
            rtt.back_off();
        }
        // Srtt begins anew: 4 << 3 and 4 << 1; ((8 << 3) + 32) >> 3 = 12 ticks.
        rtt.sample(tick * 4, 1);
        assert_eq!((rtt.ticks, rtt.rto()), ((32, 8), tick * 12));
        // delta = 2 - 4; 32 - 2, 8 + 2 - 2: ((8 << 3) + 30) >> 3.
        rtt.sample(tick * 2, 1);
        assert_eq!((rtt.ticks, rtt.rto()), ((30, 8), tick * 11));
        // With the minimum before backing off, as the agents have had it since, it doubles from there.
        let mut later = RttEstimator::new(&Config { min_rto_after_backoff: false, ..Config::ns2_2001() });
        later.sample(tick, 1);
        for timeout in [10, 20, 40] {
            assert_eq!(later.rto(), tick * timeout);
            later.back_off();
        }
    }

    #[test]
    fn net_3_counts_from_one() {
        let mut rtt = estimator(Granularity::Net3(HALF));
        // Ticks that passed; SRTT in eighths, RTTVAR in quarters, the timeout in ticks.
        for (passed, srtt, rttvar, timeout) in [
            (0, 8, 2, 3),     // counted as one: 1, and half of it
            (0, 7, 3, 3),     // 0 - 1 = -1; 2 + 1 - 0
            (0, 7, 3, 3),     // 0 - 0; 3 + 0 - 0: in quarters, the variance of a quiet path stays at three
            (2, 9, 5, 6),     // 2 - 0 = 2; 3 + 2 - 0
            (0, 8, 5, 6),     // 0 - 1 = -1; 5 + 1 - 1
            (0, 7, 5, 5),     // 0 - 1 = -1; 5 + 1 - 1
            (0, 7, 4, 4),     // 0 - 0; 5 + 0 - 1
            (10, 17, 13, 15), // 10 - 0 = 10; 4 + 10 - 1
        ] {
            rtt.sample(HALF * passed, 1);
            assert_eq!((rtt.ticks, rtt.base_rto()), ((srtt, rttvar), HALF * timeout), "{passed}");
        }
    }

    #[test]
    fn the_variance_falls_to_its_floor_with_two_more_bits() {
        let mut rtt = estimator(Granularity::FreeBsd(HALF));
        // Ticks that passed; SRTT in 32nds, RTTVAR in 16ths.
        for (passed, srtt, rttvar) in [
            (0, 32, 8),  // counted as one
            (0, 28, 10), // 0 - 4 = -4; 8 + 4 - 2
            (0, 25, 11), // 0 - 3; 10 + 3 - 2
            (0, 22, 12), // 0 - 3; 11 + 3 - 2
            (0, 20, 11), // 0 - 2; 12 + 2 - 3
            (1, 22, 11), // 4 - 2 = 2; 11 + 2 - 2
        ] {
            rtt.sample(HALF * passed, 1);
            assert_eq!(rtt.ticks, (srtt, rttvar), "{passed}");
        }
        for _ in 0..40 {
            rtt.sample(Duration::ZERO, 1);
        }
        // 3 - 3 / 4 stays 3, and so does 7 - 7 / 8.
        assert_eq!((rtt.ticks, rtt.filtered), ((7, 3), HALF * 2), "the minimum of 1 s");
        assert_eq!(rtt.base_rto(), HALF * 3, "two ticks beyond the sample, which counts as one");
        rtt.sample(HALF, 1);
        assert_eq!((rtt.filtered, rtt.base_rto()), (HALF * 2, HALF * 4));
    }

    #[test]
    fn the_first_timeouts_of_a_quiet_path_last_one_to_one_and_a_half_seconds() {
        for granularity in [Granularity::Net3(HALF), Granularity::FreeBsd(HALF)] {
            let mut rtt = estimator(granularity);
            for n in 0..40u64 {
                // Round trips of 60 ms between ticks.
                let sent = Instant::ZERO + ms(500 * n + 100);
                let measured = rtt.measure(sent, sent + ms(60));
                rtt.sample(measured, 1);
            }
            for (start, lasts) in [(20_000, 1_500), (20_001, 1_499), (20_499, 1_001)] {
                let start = Instant::ZERO + ms(start);
                assert_eq!(rtt.expiry(start).since(start), ms(lasts), "{granularity:?}");
            }
        }
    }

    #[test]
    fn a_round_trip_is_the_ticks_that_came() {
        for (granularity, phase, sent, now, measured) in [
            (Granularity::FreeBsd(HALF), 0, 100, 499, 0),
            (Granularity::FreeBsd(HALF), 0, 100, 500, 500),
            (Granularity::FreeBsd(HALF), 300, 100, 500, 500),
            (Granularity::FreeBsd(HALF), 300, 301, 799, 0),
            (Granularity::Ticks(HALF), 300, 301, 799, 500),
            (Granularity::Fine(ms(1)), 300, 301, 799, 498),
        ] {
            let config = Config { granularity, clock_phase: Some(ms(phase)), ..Config::qualnet() };
            let at = |millis| Instant::ZERO + ms(millis);
            assert_eq!(RttEstimator::new(&config).measure(at(sent), at(now)), ms(measured), "{granularity:?}, {sent} to {now}");
        }
    }

    #[test]
    fn backing_off_begins_with_what_the_filters_ask_for() {
        let mut rtt = estimator(Granularity::FreeBsd(HALF));
        for _ in 0..40 {
            rtt.sample(Duration::ZERO, 1);
        }
        for timeout in [3, 4, 8, 16, 32, 64, 128, 128] {
            assert_eq!(rtt.rto(), HALF * timeout);
            rtt.back_off();
        }
    }

    #[test]
    fn fine_samples_follow_rfc_6298() {
        let mut rtt = RttEstimator::new(&Config { min_rto: Duration::ZERO, ..Config::modern() });
        rtt.sample(ms(100), 1);
        assert_eq!(rtt.rto(), ms(300));
        rtt.sample(ms(180), 1);
        assert_eq!(rtt.srtt(), Some(ms(110)));
        assert_eq!(rtt.rttvar(), Duration::from_nanos(57_500_000));
        assert_eq!(rtt.rto(), ms(340));
    }

    #[test]
    fn a_margin_shortens_the_timeout_where_the_round_trip_is_short() {
        let after = |config: Config, margin, samples: &[u64]| {
            let mut rtt = RttEstimator::new(&config);
            rtt.set_margin(margin);
            for &sample in samples.iter().cycle().take(200) {
                rtt.sample(ms(sample), 1);
            }
            rtt.rto().as_nanos().div_ceil(1_000_000)
        };
        for (trip, without, with) in [(5, 205, 65), (50, 250, 110), (100, 300, 200), (200, 400, 400), (400, 600, 600)] {
            assert_eq!(after(Config::linux(), None, &[trip]), without);
            assert_eq!(
                after(Config::linux(), Some(ms(60)), &[trip]),
                with,
                "SRTT again, 60 ms or what the configuration asks for"
            );
        }
        assert_eq!(
            after(Config::linux(), Some(ms(60)), &[20, 80]),
            after(Config::linux(), Some(ms(1)), &[20, 80]),
            "four variations are more"
        );
        // By RFC 6298 the configuration's least is one of the whole timeout.
        for (trip, without, with) in [(5, 200, 65), (150, 200, 200), (400, 401, 401)] {
            assert_eq!(after(Config::modern(), None, &[trip]), without);
            assert_eq!(after(Config::modern(), Some(ms(60)), &[trip]), with);
        }
    }

    #[test]
    fn back_off_doubles_up_to_the_cap() {
        let mut rtt = RttEstimator::new(&Config { max_rto: Duration::from_secs(5), ..Config::modern() });
        for expected in [1, 2, 4, 5, 5] {
            assert_eq!(rtt.rto(), Duration::from_secs(expected));
            rtt.back_off();
        }
        rtt.sample(ms(10), 1);
        assert_eq!(rtt.rto(), ms(200));
    }
}
