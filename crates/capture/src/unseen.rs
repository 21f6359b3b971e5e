//! Repairs of what never came to the capture: behind the place where a whole flight was lost nothing shows that there was one, and what repairs it
//! looks like new data after a pause.

use whyloss_transport::time::{Duration, Instant};
use whyloss_transport::Seq;

/// A transfer that stops has this many segments under way; with fewer an application that waits is as likely.
const FEWEST: u64 = 4;

/// How much new data comes in a round trip, and up to where the sender may repair what never came.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unseen {
    /// When this round trip began, and the octets of new data in it and in the one before.
    began: Instant,
    octets: (u64, u64),
    /// When new data came last.
    newest: Instant,
    /// The newest segment was of full length, and its sender had more and was allowed to send it.
    goes_on: bool,
    /// The first timestamp of the sender that was seen and the newest, and when they were.
    clock: Option<[(Instant, u32); 2]>,
    /// What lies below this was sent before a timeout, as far as one can know.
    until: u64,
}

impl Unseen {
    /// New data came: of full length, and without a sign that it is the last for a while or fills the receive window, if it `goes_on`.
    pub fn on_new(&mut self, at: Instant, octets: u64, goes_on: bool, timestamp: Option<u32>, trip: Duration) {
        if let Some(value) = timestamp {
            self.clock = Some([self.clock.map_or((at, value), |[first, _]| first), (at, value)]);
        }
        if at >= self.began + trip {
            (self.began, self.octets) = (at, (0, self.octets.0));
        }
        self.octets.0 += octets;
        self.newest = at;
        self.goes_on = goes_on;
    }

    /// Whether what came at `at` was new data. A sender that repairs has less under way.
    pub fn ended_at(&self, at: Instant) -> bool {
        self.newest == at
    }

    /// Octets that were under way when the data ceased to come, as many as came in a round trip.
    pub fn flight(&self) -> u64 {
        self.octets.0.max(self.octets.1)
    }

    /// The transfer had stopped in its midst: a sender that had more, and much under way, was not heard of until `at`, and sent nothing of what
    /// comes then before, as its timestamps tell. Without these it may have been held up.
    pub fn stopped(&self, mss: u32, at: Instant, timestamp: Option<u32>) -> bool {
        self.goes_on
            && self.flight() >= FEWEST * u64::from(mss.max(1))
            && timestamp.is_some_and(|value| self.left_late(at, value))
    }

    /// The sender's clock went on for at least half of the pause.
    fn left_late(&self, at: Instant, value: u32) -> bool {
        let Some([first, last]) = self.clock.filter(|[first, last]| last.0 > first.0 && at > last.0) else { return false };
        if !Seq(last.1).precedes(Seq(value)) {
            return false;
        }
        let ticks = |from: u32, to: u32| f64::from(to.wrapping_sub(from));
        let usual = ticks(first.1, last.1) / last.0.since(first.0).as_secs_f64();
        ticks(last.1, value) >= (0.5 * usual * at.since(last.0).as_secs_f64()).max(2.0)
    }

    /// The retransmission timer expired after a pause in which nothing came: a flight was under way from `start` on, of which the capture saw what
    /// lies below `nxt`. Up to where repairs may go.
    pub fn on_expiry(&mut self, start: u64, nxt: u64) -> u64 {
        // If it expires again for the same flight, what came meanwhile was repairs.
        if !self.covers(nxt) {
            self.until = nxt.max(start + self.flight());
        }
        self.octets = (0, 0);
        self.until
    }

    /// Whether data at this position repairs what was under way when the timer expired.
    pub fn covers(&self, position: u64) -> bool {
        position < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_is_what_came_in_a_round_trip() {
        let mut unseen = Unseen::default();
        let (trip, at) = (Duration::from_millis(100), |millis| Instant::ZERO + Duration::from_millis(millis));
        for number in 0..35 {
            unseen.on_new(at(number * 10), 1000, true, Some(number as u32), trip);
        }
        assert_eq!(unseen.flight(), 10_000);
        assert!(unseen.ended_at(at(340)) && !unseen.ended_at(at(500)));
        // The timestamp's clock ticks every 10 ms: what was sent at 840 ms comes with 84, what had waited on the way with 36.
        assert!(unseen.stopped(1000, at(840), Some(84)) && !unseen.stopped(1000, at(840), Some(36)));
        assert!(!unseen.stopped(5000, at(840), Some(84)) && !unseen.stopped(1000, at(840), None));
        let mut ended = unseen;
        ended.on_new(at(350), 1000, false, Some(35), trip);
        assert!(!ended.stopped(1000, at(840), Some(84)), "the application had no more");
        assert_eq!({ unseen }.on_expiry(32_000, 35_000), 42_000, "three of the flight were seen");
        assert_eq!(unseen.on_expiry(35_000, 35_000), 45_000);
        assert!(unseen.covers(44_999) && !unseen.covers(45_000));
        assert_eq!(unseen.on_expiry(36_000, 36_000), 45_000, "the same flight");
    }
}
