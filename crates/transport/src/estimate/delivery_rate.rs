//! Delivery rate samples: how fast the path delivered what was outstanding with a segment.

use crate::path::{LostSegment, RateSample};
use crate::time::{Duration, Instant};
use std::collections::VecDeque;

/// What held when a segment left.
#[derive(Clone, Copy, Debug)]
struct Departure {
    start: u64,
    end: u64,
    /// When it left last.
    left: Instant,
    /// What had been delivered by then, and when the last of it was.
    delivered: u64,
    delivered_at: Instant,
    /// When the segment left that was the latest delivered one then.
    first_left: Instant,
    lost: u64,
    in_flight: u64,
    app_limited: bool,
}

/// Takes a sample from each acknowledgement (draft-ietf-ccwg-bbr, "Delivery Rate Samples"; before that draft-cheng-iccrg-delivery-rate-estimation).
///
/// The rate is what was delivered from the time when a segment left until it was delivered itself, over the longer one of the times in which that much was sent and
/// in which it was acknowledged: neither a burst nor acknowledgements that come at once make it too high. A segment's state stands beside the scoreboard,
/// so that only those pay for it who want samples. All in octets.
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    delivered: u64,
    delivered_at: Instant,
    first_left: Instant,
    lost: u64,
    /// Of these, what the latest sample told.
    lost_told: u64,
    /// What has left until `delivered` comes to this was limited by the application; 0: nothing.
    limited_until: u64,
    shortest_trip: Option<Duration>,
    /// By position, as many as there are segments outstanding.
    departures: VecDeque<Departure>,
    sample: Option<RateSample>,
}

impl DeliveryRate {
    /// The octets from `start` to `end` leave, for the first time or again, `in_flight` with them.
    pub fn on_sent(&mut self, now: Instant, start: u64, end: u64, in_flight: u64) {
        if in_flight <= end - start {
            (self.first_left, self.delivered_at) = (now, now);
        }
        let departure = Departure {
            start,
            end,
            left: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_left: self.first_left,
            lost: self.lost,
            in_flight,
            app_limited: self.limited_until > 0,
        };
        if self.departures.back().is_none_or(|last| last.end <= start) {
            self.departures.push_back(departure);
            return;
        }
        // Again, perhaps in smaller pieces.
        let index = self.departures.partition_point(|sent| sent.end <= start);
        match self.departures.get_mut(index) {
            Some(before) if before.end <= end => *before = departure,
            Some(before) => {
                before.start = before.start.max(end);
                self.departures.insert(index, departure);
            }
            None => {}
        }
    }

    /// An acknowledgement delivered `octets` and everything below `una`. `newest`: when that one of its segments left that left last, and where it
    /// ends. `trip`: its round trip, if that is certain.
    pub fn on_ack(&mut self, now: Instant, octets: u64, una: u64, newest: Option<(Instant, u64)>, trip: Option<Duration>) {
        self.sample = None;
        if octets > 0 {
            self.delivered += octets;
            self.delivered_at = now;
        }
        if let Some(trip) = trip {
            self.shortest_trip = Some(self.shortest_trip.map_or(trip, |shortest| shortest.min(trip)));
        }
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        let newest = newest.and_then(|(left, end)| self.departure(end).copied().filter(|sent| sent.left == left));
        if let Some(sent) = newest {
            self.first_left = sent.left;
            let interval = sent.left.since(sent.first_left).max(now.since(sent.delivered_at));
            let delivered = self.delivered - sent.delivered;
            let reliable = interval > Duration::ZERO && self.shortest_trip.is_none_or(|shortest| interval >= shortest);
            let rate = if reliable { (delivered as f64 / interval.as_secs_f64()) as u64 } else { 0 };
            self.sample = Some(RateSample {
                rate,
                delivered,
                prior_delivered: sent.delivered,
                app_limited: sent.app_limited,
                in_flight_when_sent: sent.in_flight,
                lost_when_sent: sent.lost,
                lost: self.lost,
                newly_lost: 0,
            });
        }
        while self.departures.front().is_some_and(|sent| sent.end <= una) {
            self.departures.pop_front();
        }
    }

    /// The octets from `start` to `end` are taken for lost. `None` if nothing is known of how they left.
    pub fn on_lost(&mut self, start: u64, end: u64) -> Option<LostSegment> {
        self.lost += end - start;
        let sent = self.departure(end)?;
        Some(LostSegment {
            start,
            octets: end - start,
            in_flight_when_sent: sent.in_flight,
            lost_since_sent: self.lost - sent.lost,
            app_limited: sent.app_limited,
        })
    }

    /// So much else is taken for lost.
    pub fn add_lost(&mut self, octets: u64) {
        self.lost += octets;
    }

    /// The application has nothing more to send, `in_flight` is outstanding, and the window would let more out.
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// The sample of the latest acknowledgement, if it gave one, with what has been lost up to now. Losses are told as new once.
    pub fn take_sample(&mut self) -> Option<RateSample> {
        let mut sample = self.sample.take()?;
        (sample.lost, sample.newly_lost) = (self.lost, self.lost - self.lost_told);
        self.lost_told = self.lost;
        Some(sample)
    }

    /// That of the segment with the last octet before `end`.
    fn departure(&self, end: u64) -> Option<&Departure> {
        let index = self.departures.partition_point(|sent| sent.end < end);
        self.departures.get(index).filter(|sent| sent.start < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    const TRIP: Option<Duration> = Some(Duration::from_millis(100));

    /// Segments of 1000 octets that left at these times in milliseconds, one behind the other.
    fn sent(rates: &mut DeliveryRate, first: u64, times: &[u64]) {
        for (n, &at) in times.iter().enumerate() {
            let start = (first + n as u64) * 1000;
            rates.on_sent(ms(at), start, start + 1000, (n as u64 + 1) * 1000);
        }
    }

    #[test]
    fn the_slower_of_sending_and_acknowledging_counts() {
        let mut rates = DeliveryRate::default();
        sent(&mut rates, 0, &[0, 10, 20, 30]);
        rates.on_ack(ms(100), 1000, 1000, Some((ms(0), 1000)), TRIP);
        let first = rates.take_sample().unwrap();
        // The first segment left when nothing was outstanding: 1000 octets in 100 ms.
        assert_eq!((first.rate, first.delivered, first.prior_delivered), (10_000, 1000, 0));
        // All that is left comes at once: of the last one 4000 octets in the 110 ms since the first left, not in the 10 ms since the last acknowledgement.
        rates.on_ack(ms(110), 3000, 4000, Some((ms(30), 4000)), Some(Duration::from_millis(80)));
        let last = rates.take_sample().unwrap();
        assert_eq!((last.rate, last.delivered), (36_363, 4000));
        // Two that left when nothing was outstanding, sent within 40 ms and acknowledged within 140 ms.
        rates.on_sent(ms(110), 4000, 5000, 1000);
        rates.on_sent(ms(150), 5000, 6000, 2000);
        rates.on_ack(ms(210), 1000, 5000, Some((ms(110), 5000)), TRIP);
        rates.on_ack(ms(250), 1000, 6000, Some((ms(150), 6000)), TRIP);
        let paced = rates.take_sample().unwrap();
        assert_eq!((paced.rate, paced.prior_delivered, paced.delivered), (14_285, 4000, 2000), "in 140 ms");
        assert!(rates.departures.is_empty());
        assert_eq!(rates.take_sample(), None, "once");
    }

    #[test]
    fn an_interval_shorter_than_any_round_trip_is_no_rate() {
        let mut rates = DeliveryRate::default();
        sent(&mut rates, 0, &[0, 0]);
        rates.on_ack(ms(100), 1000, 1000, Some((ms(0), 1000)), TRIP);
        // It was sent again, and the first transmission is acknowledged.
        rates.on_sent(ms(105), 1000, 2000, 1000);
        rates.on_ack(ms(110), 1000, 2000, Some((ms(105), 2000)), None);
        let sample = rates.take_sample().unwrap();
        assert_eq!((sample.rate, sample.delivered), (0, 1000));
    }

    #[test]
    fn what_left_after_the_application_ran_dry_is_marked_until_that_is_delivered() {
        let mut rates = DeliveryRate::default();
        sent(&mut rates, 0, &[0, 1]);
        rates.on_app_limited(2000);
        rates.on_sent(ms(2), 2000, 3000, 3000);
        let mut limited = |at, end, left| {
            rates.on_ack(ms(at), 1000, end, Some((ms(left), end)), TRIP);
            rates.take_sample().unwrap().app_limited
        };
        assert_eq!([limited(100, 1000, 0), limited(101, 2000, 1), limited(102, 3000, 2)], [false, false, true]);
        assert_eq!(rates.limited_until, 0, "more than what was outstanding then has been delivered");
    }

    #[test]
    fn losses_are_counted_from_when_a_segment_left() {
        let mut rates = DeliveryRate::default();
        sent(&mut rates, 0, &[0, 1, 2, 3]);
        let lost = rates.on_lost(0, 1000).unwrap();
        assert_eq!((lost.octets, lost.in_flight_when_sent, lost.lost_since_sent), (1000, 1000, 1000));
        let lost = rates.on_lost(1000, 2000).unwrap();
        assert_eq!((lost.in_flight_when_sent, lost.lost_since_sent, lost.app_limited), (2000, 2000, false));
        rates.on_sent(ms(104), 0, 1000, 3000);
        rates.on_ack(ms(105), 1000, 0, Some((ms(3), 4000)), TRIP);
        let sample = rates.take_sample().unwrap();
        assert_eq!((sample.in_flight_when_sent, sample.lost_since_sent(), sample.newly_lost), (4000, 2000, 2000));
        rates.on_ack(ms(204), 1000, 1000, Some((ms(104), 1000)), None);
        let again = rates.take_sample().unwrap();
        assert_eq!((again.lost_since_sent(), again.newly_lost), (0, 0), "it left after these losses");
        rates.add_lost(500);
        assert_eq!(rates.on_lost(9000, 9500), None);
        assert_eq!(rates.lost, 3000);
    }

    #[test]
    fn a_segment_that_is_sent_again_in_pieces_has_two_departures() {
        let mut rates = DeliveryRate::default();
        sent(&mut rates, 0, &[0, 1]);
        rates.on_sent(ms(200), 0, 600, 1000);
        rates.on_sent(ms(210), 600, 1000, 1400);
        let spans: Vec<_> = rates.departures.iter().map(|sent| (sent.start, sent.end, sent.left)).collect();
        assert_eq!(spans, [(0, 600, ms(200)), (600, 1000, ms(210)), (1000, 2000, ms(1))]);
        // Half a segment counts for the segment, and one that left at another time is another transmission.
        rates.on_ack(ms(300), 300, 300, Some((ms(200), 300)), None);
        assert!(rates.take_sample().is_some());
        rates.on_ack(ms(301), 300, 600, Some((ms(0), 600)), None);
        assert_eq!(rates.take_sample(), None);
    }
}
