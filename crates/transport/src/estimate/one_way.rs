//! Relative one-way trip times, by two clocks that need not agree.

use super::PeerClock;
use crate::time::{Duration, Instant};

/// Trip times are compared over spans of this length to tell drift from queues.
const SPAN: Duration = Duration::from_secs(60);

/// Measurements over less than this do not prove that ticks are not as long as expected.
const CONVINCING: Duration = Duration::from_secs(1);

/// How much longer a segment was under way than the first one that was measured: its arrival by our clock less its timestamp by the peer's.
///
/// The timestamps count the peer's ticks. How long those are is learned ([`PeerClock`]); before, they are taken for as long as expected, if
/// anything is. How fast the two clocks part is learned too, else trips would grow or shrink without end.
#[derive(Clone, Debug, Default)]
pub struct OneWay {
    /// How long a tick of the peer is as long as nothing else is known: the first trips, over empty queues, are the shortest.
    expected: Option<Duration>,
    clock: PeerClock,
    /// When the first segment was measured, the ticks then, and how long they are.
    origin: Option<(Instant, i64, Duration)>,
    drift: Drift,
}

impl OneWay {
    /// Takes the peer's ticks for as long as `tick` until they have been measured.
    pub fn expect(&mut self, tick: Duration) {
        self.expected = Some(tick);
    }

    /// The length of a tick: measured and confirmed, or as expected. A queue that fills stretches what is measured at first.
    fn tick(&self) -> Option<Duration> {
        match self.expected {
            Some(expected) if self.clock.measured_over() < CONVINCING => Some(expected),
            expected => self.clock.trusted_tick().or(expected),
        }
    }

    /// A segment with the timestamp `value` arrived, measured or not.
    pub fn on_timestamp(&mut self, now: Instant, value: u32) {
        self.clock.on_timestamp(now, value);
    }

    /// The trip of a segment whose timestamp was taken, in nanoseconds; `None` while the length of a tick is unknown.
    pub fn trip(&mut self, now: Instant, value: u32) -> Option<i64> {
        let (tick, ticks) = (self.tick()?, self.clock.ticks_to(value));
        let (began, first) = match self.origin {
            Some((began, first, with)) if with == tick => (began, first),
            _ => {
                self.origin = Some((now, ticks, tick));
                self.drift = Drift::default();
                (now, ticks)
            }
        };
        let elapsed = now.since(began);
        let left = i128::from(ticks - first) * i128::from(tick.as_nanos());
        let trip = i64::try_from(i128::from(elapsed.as_nanos()) - left).unwrap_or(i64::MAX);
        Some(self.drift.correct(elapsed, trip))
    }
}

/// The trips of one span: the smallest one and when it was, and the largest.
#[derive(Clone, Copy, Debug)]
struct Extent {
    at: Duration,
    min: i64,
    max: i64,
}

impl Extent {
    /// How fast the smallest trip grew from `earlier` on.
    fn slope(&self, earlier: &Self) -> f64 {
        (self.min - earlier.min) as f64 / self.at.saturating_sub(earlier.at).as_nanos().max(1) as f64
    }
}

/// How fast the clocks part, in nanoseconds a nanosecond.
///
/// A trip grows by drift or by queues. It is drift if the trips of a span have left the range of the first one altogether, and have gone on at
/// about the same pace within the last span: a queue that came to stay makes one step.
#[derive(Clone, Debug, Default)]
struct Drift {
    slope: f64,
    first: Option<Extent>,
    previous: Option<Extent>,
    current: Option<Extent>,
    /// When the span under way ends.
    ends: Duration,
}

impl Drift {
    fn correct(&mut self, elapsed: Duration, trip: i64) -> i64 {
        if elapsed >= self.ends {
            self.ends = elapsed + SPAN;
            if let Some(over) = self.current.take() {
                self.learn(over);
            }
        }
        let extent = self.current.get_or_insert(Extent { at: elapsed, min: trip, max: trip });
        if trip < extent.min {
            (extent.at, extent.min) = (elapsed, trip);
        }
        extent.max = extent.max.max(trip);
        trip - (self.slope * elapsed.as_nanos() as f64) as i64
    }

    fn learn(&mut self, over: Extent) {
        let (Some(first), Some(previous)) = (self.first, self.previous) else {
            self.previous = self.first.map(|_| over);
            self.first = self.first.or(Some(over));
            return;
        };
        let (before, lately) = (previous.slope(&first), over.slope(&previous));
        let apart = over.min > first.max || over.max < first.min;
        if apart && before * lately > 0.0 && (0.5..=2.0).contains(&(lately / before)) {
            self.slope = over.slope(&first);
        }
        self.previous = Some(over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trips in milliseconds of segments that leave every 10 ms for so many seconds, by a clock with this tick that runs fast by so many
    /// parts in a million. They wait in a queue for as many milliseconds as `queue` says for the second in which they leave.
    fn trips(tick: Duration, ppm: f64, seconds: u64, queue: impl Fn(u64) -> u64) -> Vec<f64> {
        let mut one_way = OneWay::default();
        let mut out = Vec::new();
        for n in 0..seconds * 100 {
            let left = Duration::from_millis(10 * n);
            let stamp = (left.as_nanos() as f64 * (1.0 + ppm / 1e6)) as u64 / tick.as_nanos();
            let now = Instant::ZERO + left + Duration::from_millis(20 + queue(n / 100));
            let value = (stamp as u32).wrapping_add(u32::MAX - 1000);
            one_way.on_timestamp(now, value);
            out.extend(one_way.trip(now, value).map(|trip| trip as f64 / 1e6));
        }
        out
    }

    fn range(trips: &[f64]) -> (f64, f64) {
        trips.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), trip| (min.min(*trip), max.max(*trip)))
    }

    #[test]
    fn the_ticks_are_the_peer_s() {
        for tick in [Duration::from_micros(1), Duration::from_millis(1), Duration::from_millis(10), Duration::from_millis(100)] {
            let trips = trips(tick, 0.0, 100, |second| second % 10);
            let (min, max) = range(&trips);
            let rounding = tick.as_nanos() as f64 / 1e6;
            assert!(min >= -9.0 - rounding && max - min >= 8.9 && max - min <= 9.1 + rounding, "{tick}: {min} to {max}");
            assert!(trips.len() as f64 > 10_000.0 - 50.0 * rounding.max(1.0), "{tick}: {} measured", trips.len());
        }
    }

    #[test]
    fn clocks_that_part_do_not_add_up() {
        for ppm in [-100.0, -20.0, 20.0, 100.0, 500.0] {
            // An hour at 20 parts in a million are 72 ms, more than the queue ever holds.
            let trips = trips(Duration::from_millis(1), ppm, 10_800, |second| second * 7 % 31);
            let (min, max) = range(&trips[trips.len() / 2..]);
            assert!(min > -70.0 && max < 70.0, "{ppm}: {min} to {max}");
            // A minute is as much as a windowed extreme remembers.
            let (min, max) = range(&trips[trips.len() - 6000..]);
            assert!(max - min < 40.0, "{ppm}: {min} to {max}");
        }
    }

    #[test]
    fn a_queue_that_comes_to_stay_is_no_drift() {
        let trips = trips(Duration::from_millis(1), 0.0, 1000, |second| second % 10 + if second > 130 { 50 } else { 0 });
        let (min, max) = range(&trips[20_000..]);
        assert!(min >= 40.0 && max <= 60.0, "{min} to {max}");
    }

    #[test]
    fn an_expected_tick_measures_from_the_first_segment_on_and_gives_way_to_a_measured_one() {
        for (expected, ticks_apart) in [(1, true), (10, false)] {
            let mut one_way = OneWay::default();
            one_way.expect(Duration::from_millis(expected));
            let mut told = Vec::new();
            // A peer with ticks of 1 ms, a segment of which arrives every 10 ms over 20 ms.
            for n in 0..400u64 {
                let now = Instant::ZERO + Duration::from_millis(10 * n + 20);
                one_way.on_timestamp(now, (10 * n) as u32);
                told.push(one_way.trip(now, (10 * n) as u32));
            }
            assert_eq!(told[0], Some(0));
            assert_eq!(told[1] == Some(0), ticks_apart, "{told:?}");
            assert!(told[300..].iter().all(|trip| *trip == Some(0)), "{told:?}");
        }
    }
}
