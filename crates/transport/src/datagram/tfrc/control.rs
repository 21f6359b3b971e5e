//! The sender's rate: slow start, the equation, the limit by what arrives, the no-feedback timer (RFC 5348, 4).

use super::equation::Version;
use crate::settings;
use crate::time::{Duration, Instant};

/// `t_mbi` of RFC 5348: a packet leaves at least this often, in seconds.
const LONGEST_PAUSE: f64 = 64.0;

settings! {
    /// What can be set of a rate control.
    pub struct Rules {
        /// Which text is followed: RFC 5348, or the publication of 2000.
        pub version: Version;
        /// Share of the old average in the round-trip time: q of RFC 5348, 4.3.
        pub rtt_memory: f64 = 0.9, 0.0..=0.99;
        /// Old loss intervals count less in a long one without losses (RFC 5348, 5.5).
        pub history_discounting: bool = true;
        /// The rate follows the square root of the latest round-trip time (RFC 5348, 4.5).
        pub oscillation_prevention: bool = false;
    }
}

/// What feedback tells.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// When it arrived.
    pub now: Instant,
    /// Octets per second that arrived at the receiver.
    pub received: f64,
    /// The loss event rate.
    pub p: f64,
    /// There is a new loss event.
    pub event: bool,
    /// When the newest packet that it covers was sent, if that is known.
    pub sent: Option<Instant>,
}

/// The allowed rate of a sender.
#[derive(Debug)]
pub struct RateControl {
    rules: Rules,
    /// `s`, the packet size in octets (RFC 5348, 4.1).
    size: f64,
    /// `X`, octets per second, and what the equation says.
    rate: f64,
    by_equation: f64,
    rtt: Option<f64>,
    /// The square root of the latest round-trip time and its average (RFC 5348, 4.5).
    root: (f64, f64),
    receive_rates: Vec<(Instant, f64)>,
    /// The loss event rate.
    p: f64,
    /// `tld`: when slow start last doubled the rate.
    doubled: Instant,
    /// Nominal time of the last packet (RFC 5348, 4.6).
    last: Option<Instant>,
    timer: Option<Instant>,
    set: Duration,
    expiries: u32,
    /// A packet left since the timer was set.
    busy: bool,
    /// When a packet last had to wait for the rate, and the time up to which feedback has covered what was sent.
    limited: Option<Instant>,
    covered: Instant,
}

impl RateControl {
    /// One packet of `size` octets a second, until the round-trip time is known (RFC 5348, 4.2).
    pub fn new(size: u32, rules: Rules) -> Self {
        let size = f64::from(size);
        Self {
            rules,
            size,
            rate: size,
            by_equation: f64::INFINITY,
            rtt: None,
            root: (0.0, 0.0),
            receive_rates: vec![(Instant::ZERO, f64::INFINITY)],
            p: 0.0,
            doubled: Instant::ZERO,
            last: None,
            timer: None,
            set: Duration::from_secs(2),
            expiries: 0,
            busy: false,
            limited: None,
            covered: Instant::ZERO,
        }
    }

    fn is_old(&self) -> bool {
        self.rules.version == Version::Sigcomm2000
    }

    fn least(&self) -> f64 {
        self.size / LONGEST_PAUSE
    }

    /// What slow start sends in a round trip at least: an initial window (RFC 5348, 4.2; RFC 3390), or one packet (RFC 3448, 4.3).
    fn first_flight(&self) -> f64 {
        if self.is_old() {
            self.size
        } else {
            (4.0 * self.size).min((2.0 * self.size).max(4380.0))
        }
    }

    /// A round-trip time.
    pub fn sample(&mut self, now: Instant, rtt: Duration) {
        let sample = rtt.as_secs_f64().max(1e-6);
        let root = sample.sqrt();
        match self.rtt {
            None => {
                self.rtt = Some(sample);
                self.root = (root, root);
                self.rate = self.rate.max(self.first_flight() / sample);
                self.doubled = now;
            }
            Some(rtt) => {
                let q = self.rules.rtt_memory;
                self.rtt = Some(q * rtt + (1.0 - q) * sample);
                self.root = (root, 0.9 * self.root.1 + 0.1 * root);
            }
        }
    }

    /// The mean round-trip time in seconds.
    pub const fn rtt(&self) -> Option<f64> {
        self.rtt
    }

    /// The allowed rate in octets per second.
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// The loss event rate that it goes by.
    pub const fn loss_event_rate(&self) -> f64 {
        self.p
    }

    /// Time between packets at the allowed rate.
    fn interval(&self) -> Duration {
        let instantaneous = match self.root {
            (root, mean) if self.rules.oscillation_prevention && root > 0.0 => (self.rate * mean / root).max(self.least()),
            _ => self.rate,
        };
        Duration::from_secs_f64(self.size / instantaneous)
    }

    /// When the next packet may leave; `None` before the first one.
    pub fn due(&self) -> Option<Instant> {
        self.last.map(|last| last + self.interval())
    }

    /// A packet left; `more` says whether another one waits.
    pub fn on_sent(&mut self, now: Instant, more: bool) {
        let interval = self.interval();
        // A late packet may be made up for, but not an idle time.
        self.last = Some(match self.last.map(|last| last + interval) {
            Some(due) if due + interval > now => due,
            _ => now,
        });
        if more {
            self.limited = Some(now);
        }
        if self.timer.is_none() {
            self.start_timer(now);
        }
        self.busy = true;
    }

    fn best_receive_rate(&self) -> f64 {
        self.receive_rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
    }

    /// RFC 5348, 4.3, `Maximize X_recv_set()`.
    fn maximise(&mut self, now: Instant, rate: f64) {
        self.receive_rates.retain(|(_, rate)| rate.is_finite());
        self.receive_rates.push((now, rate));
        self.receive_rates = vec![(now, self.best_receive_rate())];
    }

    /// RFC 5348, 4.3, step 4. Returns the limit that the receive rate sets.
    fn receive_limit(&mut self, now: Instant, received: f64, data_limited: bool, worse: bool) -> f64 {
        if self.is_old() {
            self.receive_rates = vec![(now, received)]; // RFC 3448, 4.3: the latest one
            return 2.0 * received;
        }
        if !data_limited {
            let age = Duration::from_secs_f64(2.0 * self.rtt.unwrap_or_default());
            self.receive_rates.push((now, received));
            self.receive_rates.retain(|(at, _)| now.since(*at) <= age);
            return 2.0 * self.best_receive_rate();
        }
        if worse {
            self.receive_rates.iter_mut().for_each(|(_, rate)| *rate /= 2.0);
            self.maximise(now, 0.85 * received);
            return self.best_receive_rate();
        }
        self.maximise(now, received);
        2.0 * self.best_receive_rate()
    }

    fn set_rate(&mut self, now: Instant, limit: f64) {
        let Some(rtt) = self.rtt else { return };
        if self.p > 0.0 {
            self.by_equation = self.rules.version.rate(self.size, rtt, self.p);
            self.rate = self.by_equation.min(limit).max(self.least());
        } else if now.since(self.doubled) >= Duration::from_secs_f64(rtt) {
            self.rate = (2.0 * self.rate).min(limit).max(self.first_flight() / rtt);
            self.doubled = now;
        }
    }

    /// RFC 5348, 4.4, `Update_Limits(timer_limit)`.
    fn limit_to(&mut self, now: Instant, limit: f64) {
        let limit = limit.max(self.least());
        self.receive_rates = vec![(now, limit / 2.0)];
        self.set_rate(now, limit);
    }

    fn start_timer(&mut self, now: Instant) {
        let pause = 2.0 * self.size / self.rate;
        self.set = Duration::from_secs_f64(self.rtt.map_or(2.0, |rtt| (4.0 * rtt).max(pause)));
        self.timer = Some(now + self.set);
        self.busy = false;
    }

    /// Feedback arrived. What it says of the round-trip time is known already.
    pub fn on_feedback(&mut self, told: &Told) {
        let Told { now, received, p, event, sent } = *told;
        let worse = event || p > self.p;
        self.p = p;
        let data_limited = self.limited.is_none_or(|at| at < self.covered);
        self.covered = sent.unwrap_or(self.covered);
        let limit = self.receive_limit(now, received, data_limited, worse);
        self.set_rate(now, limit);
        self.expiries = 0;
        self.start_timer(now);
    }

    /// When the no-feedback timer expires.
    pub const fn timeout(&self) -> Option<Instant> {
        self.timer
    }

    /// The no-feedback timer has expired (RFC 5348, 4.4). Returns what it was set to, and how often in a row it has.
    pub fn on_timeout(&mut self, now: Instant) -> (Duration, u32) {
        let after = self.set;
        self.expiries += 1;
        let received = self.best_receive_rate();
        let recover = self.rtt.map(|rtt| self.first_flight() / rtt);
        let slow = match recover {
            _ if self.is_old() => false,
            Some(recover) if self.p > 0.0 => received < recover,
            Some(recover) => self.rate < 2.0 * recover,
            None => false,
        };
        if !self.busy && slow {
            // Nothing was sent that could have been acknowledged, and the rate is one to begin with.
            self.timer = None;
        } else {
            if self.p == 0.0 {
                self.rate = (self.rate / 2.0).max(self.least());
            } else if self.by_equation > 2.0 * received {
                self.limit_to(now, received);
            } else {
                self.limit_to(now, self.by_equation / 2.0);
            }
            self.start_timer(now);
        }
        (after, self.expiries)
    }
}

/// The length of the interval before the first loss: the one that would have made half of the rate at which data arrived (RFC 5348, 6.3.1), of
/// packets of `size` octets with a round-trip time of `rtt` seconds.
pub fn first_interval(version: Version, size: f64, rtt: f64, received: f64) -> f64 {
    1.0 / version.loss_event_rate(size, rtt, (received / 2.0).max(size / rtt / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn told(ms: u64, received: f64, p: f64) -> Told {
        Told { now: at(ms), received, p, event: false, sent: Some(at(ms - 50)) }
    }

    fn control(version: Version) -> RateControl {
        let mut control = RateControl::new(1000, Rules { version, ..Rules::default() });
        control.on_sent(at(0), true);
        control.sample(at(100), Duration::from_millis(100));
        control
    }

    fn near(found: f64, expected: f64) {
        assert!((found / expected - 1.0).abs() < 1e-6, "{found}, not {expected}");
    }

    #[test]
    fn slow_start_begins_with_an_initial_window_or_with_a_packet() {
        near(control(Version::Rfc5348).rate(), 40_000.0);
        let mut old = control(Version::Sigcomm2000);
        near(old.rate(), 10_000.0);
        // Twice what it was, at most twice what arrives, once a round trip.
        for (ms, received, rate) in
            [(200, 9_000.0, 18_000.0), (250, 50_000.0, 18_000.0), (300, 50_000.0, 36_000.0), (400, 4_000.0, 10_000.0)]
        {
            old.on_feedback(&told(ms, received, 0.0));
            near(old.rate(), rate);
        }
    }

    #[test]
    fn a_loss_event_rate_leads_to_the_equation_and_to_twice_what_arrives_at_most() {
        let mut old = control(Version::Sigcomm2000);
        old.on_feedback(&told(200, 1e6, 0.01));
        near(old.rate(), Version::Sigcomm2000.rate(1000.0, 0.1, 0.01));
        old.on_feedback(&told(300, 20_000.0, 0.01));
        near(old.rate(), 40_000.0);
    }

    #[test]
    fn silence_halves_the_rate_and_idleness_does_only_by_the_older_text() {
        for (version, idle) in [(Version::Rfc5348, 40_000.0), (Version::Sigcomm2000, 5_000.0)] {
            let mut control = control(version);
            control.on_feedback(&told(150, 10_000.0, 0.0));
            let before = control.rate();
            control.on_timeout(control.timeout().unwrap());
            near(control.rate(), idle);
            assert_eq!(control.timeout().is_some(), version == Version::Sigcomm2000);
            assert!(version == Version::Rfc5348 || idle < before);
        }
        let mut busy = control(Version::Rfc5348);
        busy.on_feedback(&told(150, 10_000.0, 0.0));
        busy.on_sent(at(160), true);
        assert_eq!(busy.on_timeout(at(550)), (Duration::from_millis(400), 1));
        near(busy.rate(), 20_000.0);
    }
}
