//! CCID 3, the sender: a rate that follows the TCP equation (RFC 4342, RFC 5348, 4).

use super::ccid::{Expiry, Feedback, Permit, Sender, View};
use super::history::{PacketFate, Sent};
use super::{Config, Mode};
use crate::datagram::tfrc;
use crate::tcp::Judgement;
use crate::time::{Duration, Instant};
use crate::wire::dccp::{LossInterval, Opt};
use std::collections::VecDeque;

/// `t_mbi` of RFC 5348: a packet leaves at least this often, in seconds.
const LONGEST_PAUSE: f64 = 64.0;
/// RFC 5348, 4.2 and RFC 3390, in octets.
fn initial_window(packet: f64) -> f64 {
    (4.0 * packet).min((2.0 * packet).max(4380.0))
}

#[derive(Debug)]
pub(super) struct Ccid3 {
    mode: Mode,
    /// `s`, the packet size in octets (RFC 5348, 4.1).
    size: f64,
    rtt_memory: f64,
    history_discounting: bool,
    oscillation_prevention: bool,
    round_trip_events: bool,
    /// `X`, octets per second, and what the equation says.
    rate: f64,
    by_equation: f64,
    rtt: Option<f64>,
    /// The square root of the latest round-trip time and its average (RFC 5348, 4.5).
    root: (f64, f64),
    receive_rates: Vec<(Instant, f64)>,
    losses: Losses,
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
    counter: Counter,
}

impl Ccid3 {
    pub fn new(config: &Config) -> Self {
        let size = f64::from(config.packet);
        Self {
            mode: config.mode,
            size,
            rtt_memory: config.rtt_memory,
            history_discounting: config.history_discounting,
            oscillation_prevention: config.oscillation_prevention,
            round_trip_events: config.round_trip_events,
            // RFC 5348, 4.2: one packet a second until the round-trip time is known.
            rate: size,
            by_equation: f64::INFINITY,
            rtt: None,
            root: (0.0, 0.0),
            receive_rates: vec![(Instant::ZERO, f64::INFINITY)],
            losses: Losses::default(),
            p: 0.0,
            doubled: Instant::ZERO,
            last: None,
            timer: None,
            set: Duration::from_secs(2),
            expiries: 0,
            busy: false,
            limited: None,
            covered: Instant::ZERO,
            counter: Counter::default(),
        }
    }

    fn least(&self) -> f64 {
        self.size / LONGEST_PAUSE
    }

    fn sample(&mut self, now: Instant, rtt: Duration) {
        let sample = rtt.as_secs_f64().max(1e-6);
        let root = sample.sqrt();
        match self.rtt {
            None => {
                self.rtt = Some(sample);
                self.root = (root, root);
                self.rate = self.rate.max(initial_window(self.size) / sample);
                self.doubled = now;
            }
            Some(rtt) => {
                let q = self.rtt_memory;
                self.rtt = Some(q * rtt + (1.0 - q) * sample);
                self.root = (root, 0.9 * self.root.1 + 0.1 * root);
            }
        }
    }

    /// Time between packets at the allowed rate.
    fn interval(&self) -> Duration {
        let instantaneous = match self.root {
            (root, mean) if self.oscillation_prevention && root > 0.0 => (self.rate * mean / root).max(self.least()),
            _ => self.rate,
        };
        Duration::from_secs_f64(self.size / instantaneous)
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
            self.by_equation = tfrc::rate(self.size, rtt, self.p);
            self.rate = self.by_equation.min(limit).max(self.least());
        } else if now.since(self.doubled) >= Duration::from_secs_f64(rtt) {
            self.rate = (2.0 * self.rate).min(limit).max(initial_window(self.size) / rtt);
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
}

impl Sender for Ccid3 {
    fn permit(&self, now: Instant, _outstanding: usize) -> Permit {
        match self.last.map(|last| last + self.interval()) {
            Some(due) if due > now => Permit::At(due),
            _ => Permit::Now,
        }
    }

    fn prime(&mut self, now: Instant, rtt: Duration) {
        self.sample(now, rtt);
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent, _outstanding: usize, more: bool) {
        let interval = self.interval();
        // A late packet may be made up for, but not an idle time.
        self.last = Some(match self.last.map(|last| last + interval) {
            Some(due) if due + interval > now => due,
            _ => now,
        });
        if more {
            self.limited = Some(now);
        }
        self.counter.sent.push_back((sent.seq, self.counter.value));
        if self.timer.is_none() {
            self.start_timer(now);
        }
        self.busy = true;
    }

    fn ccval(&mut self, now: Instant) -> u8 {
        self.counter.at(now, self.rtt)
    }

    fn on_feedback(&mut self, feedback: &Feedback) -> Vec<Judgement> {
        let Feedback { now, ack, .. } = *feedback;
        self.counter.acknowledged(ack);
        let received = feedback.options.iter().find_map(|option| match option {
            Opt::ReceiveRate(rate) => Some(f64::from(*rate)),
            _ => None,
        });
        let intervals = feedback.options.iter().find_map(|option| match option {
            Opt::LossIntervals { skip, intervals } => Some((*skip, intervals)),
            _ => None,
        });
        let mut new_events = 0;
        if let (Some(received), Some((skip, intervals))) = (received, intervals) {
            if let Some(rtt) = feedback.rtt {
                self.sample(now, rtt);
            }
            let before = self.p;
            let first = || {
                let rtt = self.rtt.unwrap_or(1.0);
                // RFC 5348, 6.3.1: the interval that would have made half of the rate at which data arrived.
                1.0 / tfrc::loss_event_rate(self.size, rtt, (received / 2.0).max(self.size / rtt / 2.0))
            };
            let newest = self.round_trip_events.then_some(feedback.newest);
            new_events = self.losses.update(ack, skip, intervals, self.history_discounting, newest, first);
            self.p = self.losses.rate(self.history_discounting);
            let sent = feedback.fates.iter().find(|(sent, _)| sent.seq == ack).map(|(sent, _)| sent.at);
            let data_limited = self.limited.is_none_or(|at| at < self.covered);
            self.covered = sent.unwrap_or(self.covered);
            let worse = new_events > 0 || self.p > before;
            let limit = self.receive_limit(now, received, data_limited, worse);
            self.set_rate(now, limit);
            self.expiries = 0;
            self.start_timer(now);
        }
        let mut left = new_events;
        let bad = feedback.fates.iter().filter(|(_, fate)| *fate != PacketFate::Received);
        bad.map(|(_, fate)| match fate {
            // The receiver does not count these as losses.
            PacketFate::Dropped(code) if !code.counts_as_mark() => Judgement::Kept,
            PacketFate::Dropped(code) if code.is_corruption() && self.mode == Mode::Differentiating => Judgement::Kept,
            _ if left > 0 => {
                left -= 1;
                Judgement::Reduced
            }
            _ => Judgement::Covered,
        })
        .collect()
    }

    fn timeout(&self) -> Option<Instant> {
        self.timer
    }

    /// The no-feedback timer (RFC 5348, 4.4).
    fn on_timeout(&mut self, now: Instant, _newest: u64) -> Expiry {
        let after = self.set;
        self.expiries += 1;
        let received = self.best_receive_rate();
        let recover = self.rtt.map(|rtt| initial_window(self.size) / rtt);
        let slow = match recover {
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
        let late = Duration::from_secs_f64(4.0 * self.rtt.unwrap_or(0.5));
        let abandon_before = Instant::from_nanos(now.as_nanos().saturating_sub(late.as_nanos()));
        Expiry { after, consecutive: self.expiries, abandon_before, collapsed: false }
    }

    fn srtt(&self) -> Option<Duration> {
        self.rtt.map(Duration::from_secs_f64)
    }

    fn view(&self, outstanding: usize) -> View {
        View {
            cwnd: (self.rate * self.rtt.unwrap_or(1.0)) as u64,
            ssthresh: u64::MAX,
            srtt: self.srtt(),
            pipe: outstanding as u64 * self.size as u64,
        }
    }
}

/// The window counter (RFC 4342, 8.1): it counts quarters of a round-trip time, so that the receiver, who does not know that time,
/// can tell which losses are one event.
#[derive(Debug, Default)]
struct Counter {
    value: u64,
    /// When it last went on.
    since: Instant,
    /// Outstanding packets with their counters.
    sent: VecDeque<(u64, u64)>,
}

impl Counter {
    fn at(&mut self, now: Instant, rtt: Option<f64>) -> u8 {
        if let Some(rtt) = rtt {
            let quarters = (now.since(self.since).as_secs_f64() / (rtt / 4.0)) as u64;
            if quarters > 0 {
                // At most by five, so that the receiver never takes a gap for a wrap.
                self.value += quarters.min(5);
                self.since = now;
            }
        }
        (self.value & 0x0F) as u8
    }

    /// What leaves after an acknowledgement is a round-trip time younger than what it acknowledges.
    fn acknowledged(&mut self, ack: u64) {
        while let Some((seq, value)) = self.sent.front().copied().filter(|(seq, _)| *seq <= ack) {
            self.sent.pop_front();
            if seq == ack {
                self.value = self.value.max(value + 4);
            }
        }
    }
}

/// Loss intervals as the receiver reports them (RFC 4342, 6.1 and 8.6; RFC 5348, 5).
#[derive(Debug, Default)]
struct Losses {
    open: f64,
    /// Closed intervals, the newest first, with their discount factors.
    closed: Vec<(f64, f64)>,
    /// The first packet of the open interval, once there was a loss.
    start: Option<u64>,
    /// The last packet that left within a round-trip time, as it really was, of the first lost one.
    round_trip_end: u64,
}

impl Losses {
    /// Takes in a report; `first` makes the length of the interval before the first loss. Returns the number of new loss events.
    ///
    /// With the `newest` packet that has left, losses of one round trip are one event even if the window counter has run on by more
    /// than that: it follows an average that lags behind a queue that fills.
    fn update(
        &mut self,
        ack: u64,
        skip: u8,
        intervals: &[LossInterval],
        discounting: bool,
        newest: Option<u64>,
        first: impl Fn() -> f64,
    ) -> usize {
        // The open interval ends before the skipped packets.
        let mut end = (ack + 1).saturating_sub(u64::from(skip));
        let mut reported: Vec<(u64, f64, bool)> = Vec::with_capacity(intervals.len());
        // Whether the interval that was read last belongs to the event of the one before it in time.
        let mut joins = false;
        for interval in intervals {
            let start = end.saturating_sub(u64::from(interval.lossless) + u64::from(interval.lossy));
            let within = self.start.is_some_and(|known| known < start && start <= self.round_trip_end);
            match reported.last_mut() {
                Some((before, data, virgin)) if joins => {
                    (*before, *data, *virgin) = (start, *data + f64::from(interval.data), false);
                }
                _ => reported.push((start, f64::from(interval.data), interval.lossy == 0)),
            }
            joins = within;
            end = start;
        }
        let Some(&(start, open, virgin)) = reported.first() else { return 0 };
        if virgin {
            self.open = open;
            return 0;
        }
        if self.start.is_some_and(|known| start < known) {
            // An old report.
            return 0;
        }
        let events = match self.start {
            Some(known) => reported.iter().take_while(|(start, _, virgin)| *start > known && !virgin).count(),
            None => reported.iter().take_while(|(.., virgin)| !virgin).count(),
        };
        if events > 0 {
            let factor = if discounting { self.general() } else { 1.0 };
            self.closed.iter_mut().for_each(|(_, own)| *own *= factor);
            // The intervals that these events closed: those behind each of the new ones.
            for (_, length, virgin) in reported[1..].iter().take(events).rev() {
                let length = if *virgin { first() } else { *length };
                self.closed.insert(0, (length, 1.0));
            }
            if reported.len() <= events && self.closed.is_empty() {
                self.closed.insert(0, (first(), 1.0));
            }
            self.closed.truncate(tfrc::INTERVALS);
            self.start = Some(start);
            // As many packets have left since the one that is acknowledged as left between the lost one and that.
            self.round_trip_end = newest.map_or(0, |newest| newest.saturating_sub(ack.saturating_sub(start)));
        }
        self.open = open;
        events
    }

    fn general(&self) -> f64 {
        tfrc::closed_mean(&self.closed).map_or(1.0, |closed| tfrc::discount(self.open, closed))
    }

    fn rate(&self, discounting: bool) -> f64 {
        let factor = if discounting { self.general() } else { 1.0 };
        tfrc::mean_interval(self.open, &self.closed, factor).map_or(0.0, |mean| 1.0 / mean.max(1.0))
    }
}
