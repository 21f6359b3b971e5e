//! CCID 3, the receiver: loss intervals and the receive rate (RFC 4342, 6, 8 and 10; RFC 5348, 5 and 6).

use crate::datagram::tfrc::Detector;
use crate::time::{Duration, Instant};
use crate::wire::dccp::{LossInterval, Opt};
use std::collections::VecDeque;

/// Quarters of a round-trip time.
const ROUND_TRIP: u64 = 4;
#[derive(Debug)]
pub(super) struct Receiver {
    /// By the window counter, not wrapped.
    losses: Detector,
    newest: (u64, u64, Instant),
    /// When data arrived, with its window counter and octets.
    data: VecDeque<(Instant, u64, u32)>,
    reported: Option<Instant>,
    reported_counter: u64,
    /// About a round-trip time, from the window counter.
    round_trip: Option<Duration>,
}

impl Receiver {
    /// The packet `first` is the first to count.
    pub fn new(first: u64) -> Self {
        Self {
            losses: Detector::new(first),
            newest: (first - 1, 0, Instant::ZERO),
            data: VecDeque::new(),
            reported: None,
            reported_counter: 0,
            round_trip: None,
        }
    }

    /// About a round-trip time: after that the sender should get a report in any case (RFC 5348, 6.2).
    pub const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// A packet arrived that was not there before, with `octets` of data. Returns whether the sender should be told of it now.
    pub fn on_packet(&mut self, now: Instant, seq: u64, ccval: u8, octets: u32, bad: bool) -> bool {
        let (newest, known, _) = self.newest;
        let counter = if seq > newest {
            known + (u64::from(ccval).wrapping_sub(known) & 0x0F)
        } else {
            known.saturating_sub(known.wrapping_sub(u64::from(ccval)) & 0x0F)
        };
        if seq > newest {
            self.newest = (seq, counter, now);
        }
        if octets > 0 {
            self.data.push_back((now, counter, octets));
        }
        if seq < self.losses.frontier() {
            // Declared lost already.
            return false;
        }
        let event = self.losses.on_packet(seq, counter, bad, ROUND_TRIP) > 0;
        // RFC 4342, 10.3: once in a round-trip time, and at once after a loss event.
        octets > 0 && (self.reported.is_none() || event || self.newest.1 >= self.reported_counter + ROUND_TRIP)
    }

    /// Whether data arrived since the last report. Without, a report would speak of a receive rate of zero.
    pub fn has_news(&self) -> bool {
        self.data.back().is_some_and(|(at, ..)| self.reported.is_none_or(|reported| *at > reported))
    }

    /// Options of an acknowledgement of the newest packet.
    pub fn report(&mut self, now: Instant, out: &mut Vec<Opt>) {
        let (newest, counter, at) = self.newest;
        out.push(Opt::ElapsedTime((now.since(at).as_nanos() / 10_000) as u32));
        out.push(Opt::ReceiveRate(self.rate(now) as u32));
        let mut end = self.losses.frontier();
        let mut intervals = Vec::with_capacity(self.losses.intervals().len());
        for interval in self.losses.intervals() {
            let lossy = interval.lossy_end - interval.start;
            let lossless = end - interval.lossy_end;
            // Every packet counts as one with data: others are few, and the lost ones cannot be told apart.
            let data = (lossy + lossless) as u32;
            intervals.push(LossInterval { lossless: lossless as u32, nonce: false, lossy: lossy as u32, data });
            end = interval.start;
        }
        out.push(Opt::LossIntervals { skip: (newest + 1 - self.losses.frontier()).min(255) as u8, intervals });
        self.reported = Some(now);
        self.reported_counter = counter;
    }

    /// Octets per second since the last report, and over a round-trip time at least (RFC 4342, 8.3).
    fn rate(&mut self, now: Instant) -> f64 {
        let counter = self.newest.1;
        let old = self.data.iter().rev().find(|(_, own, _)| *own + ROUND_TRIP <= counter).map(|(at, ..)| *at);
        self.round_trip = old.map(|old| self.newest.2.since(old)).or(self.round_trip);
        let Some(since) = self.reported.map(|reported| old.map_or(reported, |old| old.min(reported))) else { return 0.0 };
        // Two round-trip times of memory are enough for the next report.
        let octets: u64 = self.data.iter().filter(|(at, ..)| *at > since).map(|(.., octets)| u64::from(*octets)).sum();
        while self.data.front().is_some_and(|(at, own, _)| *at < since && *own + 3 * ROUND_TRIP < counter) {
            self.data.pop_front();
        }
        match now.since(since) {
            Duration::ZERO => 0.0,
            span => octets as f64 / span.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(receiver: &mut Receiver) -> (u8, Vec<(u32, u32)>) {
        let mut options = Vec::new();
        receiver.report(Instant::from_nanos(1), &mut options);
        let found = options.iter().find_map(|option| match option {
            Opt::LossIntervals { skip, intervals } => Some((*skip, intervals)),
            _ => None,
        });
        let (skip, intervals) = found.unwrap();
        (skip, intervals.iter().map(|interval| (interval.lossy, interval.lossless)).collect())
    }

    /// Packets `seqs`, four of them a quarter of a round-trip time.
    fn feed(receiver: &mut Receiver, seqs: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let reported = |receiver: &mut Receiver, seq: u64| {
            receiver.reported = Some(Instant::ZERO);
            receiver.reported_counter = u64::MAX - 100;
            receiver.on_packet(Instant::ZERO, seq, (seq / 4 % 16) as u8, 100, false)
        };
        seqs.into_iter().filter(|seq| reported(receiver, *seq)).collect()
    }

    #[test]
    fn a_loss_event_begins_with_the_third_later_packet() {
        let mut receiver = Receiver::new(1);
        assert!(feed(&mut receiver, (1..=9).chain(11..=12)).is_empty());
        assert_eq!(intervals(&mut receiver), (3, vec![(0, 9)]));
        assert_eq!(feed(&mut receiver, [13]), [13]);
        assert_eq!(intervals(&mut receiver), (0, vec![(1, 3), (0, 9)]));
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut receiver = Receiver::new(1);
        // 16 packets a round-trip time. 10 is lost (counter 2), 20 (5) and 27 (6) belong to it, 32 (between 7 and 8) does not.
        let arrived = (1..60u64).filter(|seq| ![10, 20, 27, 32].contains(seq));
        assert_eq!(feed(&mut receiver, arrived), [13, 35]);
        assert_eq!(intervals(&mut receiver), (0, vec![(1, 27), (18, 4), (0, 9)]));
    }

    #[test]
    fn reordering_is_no_loss() {
        let mut receiver = Receiver::new(1);
        assert!(feed(&mut receiver, [1, 2, 4, 5, 3, 6, 8, 7, 9]).is_empty());
        assert_eq!(intervals(&mut receiver), (0, vec![(0, 9)]));
    }

    #[test]
    fn marks_are_losses() {
        let mut receiver = Receiver::new(1);
        feed(&mut receiver, 1..=5);
        assert!(receiver.on_packet(Instant::ZERO, 6, 1, 100, true));
        assert_eq!(intervals(&mut receiver), (0, vec![(1, 0), (0, 5)]));
    }

    #[test]
    fn the_rate_spans_a_round_trip_at_least() {
        let mut receiver = Receiver::new(1);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        // 1000 octets every 10 ms, a quarter of a round-trip time each.
        for seq in 1..=20u64 {
            if receiver.on_packet(at(10 * seq), seq, (seq % 16) as u8, 1000, false) {
                let mut options = Vec::new();
                receiver.report(at(10 * seq), &mut options);
                let expected = if seq == 1 { 0 } else { 100_000 };
                assert!(options.contains(&Opt::ReceiveRate(expected)), "{seq}: {options:?}");
            }
        }
        // Shortly after a report: still over four quarters.
        let mut options = Vec::new();
        receiver.report(at(200), &mut options);
        receiver.on_packet(at(210), 21, 5, 1000, true);
        receiver.report(at(210), &mut options);
        assert!(options.contains(&Opt::ReceiveRate(100_000)), "{options:?}");
    }
}
