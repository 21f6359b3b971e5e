//! The turns of a sender that goes by a rate: each data segment leaves so long after the one before it, and may say so.

use crate::segment::Separation;
use crate::time::{Duration, Instant};

/// When the next data segment may leave.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pacer {
    /// Segments tell the receiver how they left.
    pub tells: bool,
    /// How much of a missed turn is made good at least; more where a separation is longer.
    credit: Duration,
    /// How long what leaves at once takes at the rate.
    burst: Duration,
    /// Segments that may still leave at the moment of the latest one.
    rest: u32,
    /// Segments that may still leave before the first has a turn.
    unpaced: u32,
    /// Number of the latest transmission.
    number: u8,
    /// When it left.
    left: Option<Instant>,
    turn: Instant,
}

/// What a sender without a receiver that watches its separations may make good: what draft-ietf-ccwg-bbr takes for a quantum. A timer that comes late
/// by less does not lower the rate.
const QUANTUM: Duration = Duration::from_millis(1);
/// Segments that leave at once at least, where the control does not say, and at most: in Linux two, and what an IP packet of 65,535 octets holds.
const LEAST_BURST: u32 = 2;
const MOST_BURST: u32 = 44;

impl Pacer {
    /// A sender's that tells its receiver how its segments leave: each by itself.
    pub fn telling() -> Self {
        Self { tells: true, ..Self::default() }
    }

    /// One's that lets the first `unpaced` segments go, and then what takes `burst` at once.
    pub fn new(burst: Duration, unpaced: u32) -> Self {
        Self { credit: QUANTUM, burst, unpaced, ..Self::default() }
    }

    /// Segments that leave at once.
    fn at_once(&self, separation: Duration, least: Option<u32>) -> u32 {
        let held = (self.burst.as_nanos() / separation.as_nanos().max(1)).min(u64::from(MOST_BURST)) as u32;
        held.max(least.unwrap_or(if self.burst == Duration::ZERO { 1 } else { LEAST_BURST })).clamp(1, MOST_BURST)
    }

    /// From when on the next one may leave, seen from `now`.
    pub fn turn(&self, now: Instant) -> Instant {
        if self.rest > 0 && self.left == Some(now) {
            now
        } else {
            self.turn
        }
    }

    /// A data segment leaves, at once with those after it up to `least` and what the burst holds. A turn that was missed by less than a separation is
    /// made good by the next one, so that a late timer does not lower the rate; what left too late to be a measure of the path says so.
    pub fn on_sent(
        &mut self,
        now: Instant,
        separation: Option<Duration>,
        least: Option<u32>,
        trip: Option<Duration>,
    ) -> Separation {
        let before = self.left.replace(now);
        self.number = self.number.wrapping_add(1);
        let (number, trip) =
            (self.number, trip.map_or(0, |trip| (trip.as_nanos() / 100_000).clamp(1, u64::from(u16::MAX)) as u16));
        let waits = self.unpaced <= 1;
        self.unpaced = self.unpaced.saturating_sub(1);
        let Some(separation) = separation.filter(|_| waits) else {
            self.turn = now;
            return Separation { number, micros: 0, kept: before == Some(now), trip };
        };
        let begins = self.rest == 0 || before != Some(now);
        self.rest = if begins { self.at_once(separation, least) - 1 } else { self.rest - 1 };
        let late = now.since(self.turn);
        let kept = before.is_some() && late <= separation / 2;
        self.turn = if late < separation.max(self.credit) { self.turn + separation } else { now + separation };
        Separation { number, micros: (separation.as_nanos() / 1000).clamp(1, u64::from(u32::MAX >> 1)) as u32, kept, trip }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(n)
    }

    #[test]
    fn turns_follow_each_other_and_a_late_one_is_made_good() {
        let mut pacer = Pacer::default();
        let step = Some(Duration::from_micros(1000));
        let said = |micros, number, kept| Separation { number, micros, kept, trip: 0 };
        assert_eq!(pacer.on_sent(us(5000), None, None, None), said(0, 1, false));
        assert_eq!(pacer.on_sent(us(5000), None, None, None), said(0, 2, true), "a pair");
        assert_eq!(pacer.on_sent(us(7000), None, None, None), said(0, 3, false));
        assert_eq!(pacer.turn(Instant::ZERO), us(7000));
        // The first one with a rate comes when it comes.
        assert_eq!(pacer.on_sent(us(9000), step, None, None), said(1000, 4, false));
        assert_eq!(pacer.turn(Instant::ZERO), us(10_000));
        assert_eq!(pacer.on_sent(us(10_300), step, None, None), said(1000, 5, true));
        assert_eq!(pacer.turn(Instant::ZERO), us(11_000));
        assert_eq!(pacer.on_sent(us(11_600), step, None, None), said(1000, 6, false), "more than half of it late");
        assert_eq!(pacer.turn(Instant::ZERO), us(12_000));
        // Nothing to send for long is no credit.
        assert_eq!(pacer.on_sent(us(15_000), step, None, None), said(1000, 7, false));
        assert_eq!(pacer.turn(Instant::ZERO), us(16_000));
    }

    #[test]
    fn a_quantum_is_made_good_where_nobody_watches() {
        let mut pacer = Pacer::new(Duration::ZERO, 0);
        let step = Some(Duration::from_micros(100));
        pacer.on_sent(us(1000), step, None, None);
        assert_eq!(pacer.turn(Instant::ZERO), us(1100));
        // 900 microseconds late: nine more may leave at once.
        for turn in (1200..=2100).step_by(100) {
            pacer.on_sent(us(2000), step, None, None);
            assert_eq!(pacer.turn(Instant::ZERO), us(turn));
        }
        pacer.on_sent(us(3100), step, None, None);
        assert_eq!(pacer.turn(Instant::ZERO), us(3200), "a quantum late is no credit");
        let mut watched = Pacer::telling();
        watched.on_sent(us(1000), step, None, None);
        watched.on_sent(us(2000), step, None, None);
        assert_eq!(watched.turn(Instant::ZERO), us(2100));
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rate_holds() {
        let mut pacer = Pacer::new(Duration::from_millis(1), 0);
        // Three of 300 microseconds each take no more than a millisecond.
        let step = Some(Duration::from_micros(300));
        for begun in [1000, 1900, 2800] {
            for _ in 0..3 {
                assert_eq!(pacer.turn(us(begun)), us(if begun == 1000 && pacer.left.is_none() { 0 } else { begun }));
                pacer.on_sent(us(begun), step, None, None);
            }
            assert_eq!(pacer.turn(us(begun)), us(begun + 900));
        }
        // What has ended before its time leaves the rest for nobody.
        pacer.on_sent(us(3700), step, None, None);
        assert_eq!(pacer.turn(us(3800)), us(4000));
        // Two at least.
        let mut slow = Pacer::new(Duration::from_millis(1), 0);
        slow.on_sent(us(1000), Some(Duration::from_millis(5)), None, None);
        assert_eq!(slow.turn(us(1000)), us(1000));
        slow.on_sent(us(1000), Some(Duration::from_millis(5)), None, None);
        assert_eq!(slow.turn(us(1000)), us(10_000), "as long as they take, from the turn on");
    }

    #[test]
    fn a_control_says_how_many_leave_at_once_at_least() {
        let five = Some(Duration::from_millis(5));
        for (burst_us, least, leaves) in
            [(1000, Some(1), 1), (1000, Some(2), 2), (0, Some(2), 2), (0, Some(1), 1), (11_000, Some(1), 2), (0, Some(0), 1)]
        {
            let mut pacer = Pacer::new(Duration::from_micros(burst_us), 0);
            let mut left = 0;
            while pacer.turn(us(1000)) <= us(1000) {
                pacer.on_sent(us(1000), five, least, None);
                left += 1;
            }
            assert_eq!((left, pacer.turn(us(1000))), (leaves, us(5000 * leaves)), "{burst_us} us, {least:?}");
        }
    }

    #[test]
    fn the_first_segments_need_no_turn() {
        let mut pacer = Pacer::new(Duration::ZERO, 3);
        let step = Some(Duration::from_micros(300));
        for _ in 0..3 {
            assert_eq!(pacer.turn(us(1000)).max(us(1000)), us(1000));
            pacer.on_sent(us(1000), step, None, None);
        }
        assert_eq!(pacer.turn(us(1000)), us(1300), "the third has the first turn");
        pacer.on_sent(us(1300), step, None, None);
        assert_eq!(pacer.turn(us(1300)), us(1600));
    }

    #[test]
    fn numbers_wrap_and_separations_have_a_range() {
        let mut pacer = Pacer { number: 255, ..Pacer::default() };
        let mut said = |at, separation, trip| {
            let said = pacer.on_sent(us(at), Some(separation), None, Some(trip));
            (said.number, said.micros, said.trip)
        };
        assert_eq!(said(1, Duration::from_nanos(1), Duration::from_micros(10)), (0, 1, 1));
        assert_eq!(said(2, Duration::from_secs(5000), Duration::from_millis(80)), (1, u32::MAX >> 1, 800));
        assert_eq!(said(3, Duration::from_secs(5000), Duration::from_secs(80)).2, u16::MAX);
    }
}
