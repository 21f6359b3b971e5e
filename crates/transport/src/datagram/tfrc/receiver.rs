//! The receiver: the loss event rate, the rate at which data arrives, and when to tell (RFC 5348, 5 and 6).

use super::control::{first_interval, Rules};
use super::detector::Detector;
use super::intervals::LossIntervals;
use crate::seq::Seq;
use crate::time::{Duration, Instant};
use crate::wire::tfrc::{Data, Feedback};
use std::collections::VecDeque;

/// A round-trip time that is not known yet: what is lost before it is, is one loss event.
const UNKNOWN: Duration = Duration::from_secs(1 << 20);

#[derive(Debug)]
pub(super) struct Receiver {
    rules: Rules,
    size: f64,
    losses: Detector,
    intervals: LossIntervals,
    /// When data arrived, and how much.
    data: VecDeque<(Instant, u32)>,
    /// The newest packet: its number, its sender's clock, and when it arrived.
    newest: (u64, u32, Instant),
    /// What the sender says.
    rtt: Option<Duration>,
    told: Option<Instant>,
    /// When feedback is due if data has come by then.
    due: Option<Instant>,
    at_once: bool,
}

impl Receiver {
    /// Of packets with `size` octets of data.
    pub fn new(size: u32, rules: Rules) -> Self {
        Self {
            rules,
            size: f64::from(size),
            losses: Detector::new(1),
            intervals: LossIntervals::default(),
            data: VecDeque::new(),
            newest: (0, 0, Instant::ZERO),
            rtt: None,
            told: None,
            due: None,
            at_once: false,
        }
    }

    /// A packet arrived with `octets` of data. Returns whether the application gets them: not if they came before, or so late that they count as lost.
    pub fn on_data(&mut self, now: Instant, data: &Data, octets: u32, marked: bool) -> bool {
        let seq = Seq(data.seq).near(self.newest.0);
        if self.losses.knows(seq) {
            return false;
        }
        if seq > self.newest.0 {
            self.newest = (seq, data.sent_us, now);
            self.rtt = (data.rtt_us > 0).then(|| Duration::from_micros(u64::from(data.rtt_us))).or(self.rtt);
        }
        self.data.push_back((now, octets));
        let round_trip = self.rtt.unwrap_or(UNKNOWN).as_nanos();
        let events = self.losses.on_packet(seq, now.as_nanos(), marked, round_trip);
        if events > 0 {
            self.close(now, events);
        }
        self.intervals.open = (self.losses.frontier() - self.losses.intervals()[0].start) as f64;
        // At once of the first packet, of a new loss event, and of data after a pause.
        self.at_once |= events > 0 || self.due.is_none();
        true
    }

    /// `events` loss events have each ended an interval.
    fn close(&mut self, now: Instant, events: usize) {
        self.intervals.age(self.rules.history_discounting);
        let found = self.losses.intervals();
        let lengths: Vec<_> = found
            .iter()
            .zip(found.iter().skip(1))
            .take(events)
            .map(|(newer, older)| older.began.map(|_| (newer.start - older.start) as f64))
            .collect();
        for length in lengths.into_iter().rev() {
            let first = || {
                let rtt = self.rtt.map_or(1.0, Duration::as_secs_f64);
                first_interval(self.rules.version, self.size, rtt, self.receive_rate(now))
            };
            let length = length.unwrap_or_else(first);
            self.intervals.close(length);
        }
    }

    /// Octets per second since the last feedback, and over a round-trip time at least.
    fn receive_rate(&self, now: Instant) -> f64 {
        let Some(told) = self.told else { return 0.0 };
        let round_trip = self.rtt.unwrap_or_default();
        let since = told.min(Instant::from_nanos(now.as_nanos().saturating_sub(round_trip.as_nanos())));
        let octets: u64 = self.data.iter().filter(|(at, _)| *at > since).map(|(_, octets)| u64::from(*octets)).sum();
        match now.since(since) {
            Duration::ZERO => 0.0,
            span => octets as f64 / span.as_secs_f64(),
        }
    }

    /// When feedback is due.
    pub const fn timeout(&self) -> Option<Instant> {
        self.due
    }

    /// The feedback timer has expired.
    pub fn on_timeout(&mut self) {
        let news = self.data.back().is_some_and(|(at, _)| self.told.is_none_or(|told| *at > told));
        self.due = None;
        self.at_once |= news;
    }

    /// The feedback that is due now, if it is.
    pub fn feedback(&mut self, now: Instant) -> Option<Feedback> {
        if !std::mem::take(&mut self.at_once) {
            return None;
        }
        let (_, sent_us, arrived) = self.newest;
        let feedback = Feedback {
            sent_us,
            delay_us: (now.since(arrived).as_nanos() / 1000).min(u64::from(u32::MAX)) as u32,
            rate: self.receive_rate(now).min(f64::from(u32::MAX)) as u32,
            loss: (self.intervals.rate(self.rules.history_discounting) * f64::from(u32::MAX)) as u32,
        };
        self.told = Some(now);
        self.due = self.rtt.map(|rtt| now + rtt);
        let memory = self.rtt.unwrap_or_default() * 2;
        while self.data.front().is_some_and(|(at, _)| now.since(*at) > memory) {
            self.data.pop_front();
        }
        Some(feedback)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1000 octets, one every 10 ms, with a round-trip time of 40 ms. Returns the loss event rates told.
    fn feed(receiver: &mut Receiver, seqs: impl IntoIterator<Item = u32>) -> Vec<f64> {
        let mut told = Vec::new();
        for seq in seqs {
            let now = Instant::ZERO + Duration::from_millis(10 * u64::from(seq));
            let data = Data { seq, sent_us: 10_000 * seq, rtt_us: 40_000 };
            if receiver.timeout().is_some_and(|due| due <= now) {
                receiver.on_timeout();
            }
            assert!(receiver.on_data(now, &data, 1000, false), "{seq}");
            if let Some(feedback) = receiver.feedback(now) {
                assert_eq!((feedback.sent_us, feedback.delay_us), (data.sent_us, 0));
                told.push(f64::from(feedback.loss) / f64::from(u32::MAX));
            }
        }
        told
    }

    #[test]
    fn feedback_comes_once_a_round_trip_and_with_a_loss_event() {
        let mut receiver = Receiver::new(1000, Rules::default());
        assert_eq!(feed(&mut receiver, 1..=13), [0.0; 4], "of 1, 5, 9 and 13");
        // 14 is lost, which 17 shows; then every 40 ms again.
        let told = feed(&mut receiver, 15..=21);
        assert_eq!(told.len(), 2, "{told:?}");
        // Of the last round trip three packets have come, 75,000 octets a second: as if so many had been lost that half of it were fair.
        let first = Rules::default().version.loss_event_rate(1000.0, 0.04, 37_500.0);
        assert!((told[0] / first - 1.0).abs() < 1e-6, "{told:?}, not {first}");
        assert!(!receiver.on_data(Instant::ZERO, &Data { seq: 14, sent_us: 0, rtt_us: 0 }, 1000, false), "too late");
        assert!(!receiver.on_data(Instant::ZERO, &Data { seq: 21, sent_us: 0, rtt_us: 0 }, 1000, false), "twice");
    }

    #[test]
    fn losses_of_a_round_trip_are_one_event() {
        let mut receiver = Receiver::new(1000, Rules::default());
        // 20 would have come at 200 ms, 24 at 240 ms: one event. 25 begins the next.
        feed(&mut receiver, (1..60).filter(|seq| ![20, 22, 24, 25].contains(seq)));
        let starts: Vec<_> = receiver.losses.intervals().iter().map(|interval| interval.start).collect();
        assert_eq!(starts, [25, 20, 1]);
    }
}
