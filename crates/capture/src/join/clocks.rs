//! Two clocks, by packets that both of them timed.
//!
//! No packet arrives before it was sent. Seen from the first clock, the difference of the two readings is the clocks' difference plus the
//! delay for packets of one direction, minus the delay for those of the other. So the clocks' difference lies below all points of the one and
//! above all points of the other: Moon, Skelly & Towsley 1999, by convex hulls, here for each direction.
//!
//! A line can follow the delays instead of the clocks. Longer packets take longer, so the skew is looked for among packets of one size in each
//! direction. A queue that builds up looks like a skew in its own direction only, and not to the least delays of the other. So each direction
//! gives an interval of slopes, as wide as its least delays vary, and the skew is what the two have in common.

use std::collections::HashMap;

/// Two readings of the time of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// By the first clock, in nanoseconds.
    pub first: u64,
    /// By the second, in nanoseconds.
    pub second: u64,
    /// Octets of the packet.
    pub size: u32,
}

/// How the second clock stands to the first: it shows `first + offset + skew * (first - since)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clocks {
    /// When the first clock showed this, in nanoseconds,
    pub since: u64,
    /// the second was so many nanoseconds ahead.
    pub offset_ns: i64,
    /// How much faster the second clock goes: 1e-6 is a microsecond a second. Zero if zero is within the error.
    pub skew: f64,
    /// The skew is right within so much, as far as the least delays of both directions tell; [`MAX_SKEW`] if they tell nothing.
    pub skew_error: f64,
    /// The offset is right within so many nanoseconds, whatever the delays are: half of the shortest round trip between the captures, and what
    /// the error of the skew adds. `None` if packets of one direction only are known; the shortest delay then counts as none.
    pub error_ns: Option<u64>,
}

/// The largest skew that is believed: a quartz is off by 100 millionths, and NTP slews by 500 (RFC 5905, 12).
pub const MAX_SKEW: f64 = 1e-3;

/// Parts of the time of a capture in each of which the least delay is looked at.
const PARTS: usize = 16;
/// Parts with packets without which a direction tells nothing: any two lie on a line.
const MIN_PARTS: usize = 4;

/// A point of the difference over time, both in nanoseconds, from the first packet on.
type Point = (f64, f64);

impl Clocks {
    /// By packets from the first capture to the second, and from the second to the first.
    pub fn estimate(there: &[Reading], back: &[Reading]) -> Option<Self> {
        let readings = || there.iter().chain(back);
        let since = readings().map(|reading| reading.first).min()?;
        let span = (readings().map(|reading| reading.first).max()? - since) as f64;
        let base = readings().next().map(difference)?;
        let grain = resolution(readings().map(|reading| reading.first)) + resolution(readings().map(|reading| reading.second));
        // What is above is below once it is turned over.
        let direction = |readings: &[Reading], sign: f64| {
            let point = |reading: &Reading| ((reading.first - since) as f64, sign * (difference(reading) - base) as f64);
            let interval = Slopes::of(alike(readings, since, span).iter().map(point).collect(), span, grain as f64);
            let all = hull(readings.iter().map(point).collect());
            (if sign > 0.0 { interval } else { interval.turned() }, all)
        };
        let ((slopes, below), (others, above)) = (direction(there, 1.0), direction(back, -1.0));
        let (skew, skew_error) = slopes.common(others).skew();
        let lower = |slope: f64| Some(lowest(&below, slope)).filter(|_| !below.is_empty());
        let upper = |slope: f64| Some(-lowest(&above, -slope)).filter(|_| !above.is_empty());
        let (offset, error) = match (lower(skew), upper(skew)) {
            (Some(a), Some(b)) => {
                let offset = f64::midpoint(a, b);
                let most = lower(skew - skew_error).map_or(0.0, |most| most - offset);
                let least = upper(skew + skew_error).map_or(0.0, |least| offset - least);
                (offset, Some(most.abs().max(least.abs())))
            }
            (Some(only), None) | (None, Some(only)) => (only, None),
            (None, None) => return None,
        };
        let offset_ns = base + offset.round() as i64;
        Some(Self { since, offset_ns, skew, skew_error, error_ns: error.map(|error| error.ceil() as u64) })
    }

    /// How far the second clock was ahead when the first one showed `first`.
    pub fn ahead(&self, first: u64) -> i64 {
        let since = first.wrapping_sub(self.since) as i64;
        self.offset_ns.saturating_add((self.skew * since as f64).round() as i64)
    }

    /// The time from the first reading to the second, in nanoseconds; below zero by the error of the offset at most.
    pub fn delay(&self, reading: Reading) -> i64 {
        difference(&reading).saturating_sub(self.ahead(reading.first))
    }
}

fn difference(reading: &Reading) -> i64 {
    reading.second.wrapping_sub(reading.first) as i64
}

/// The unit of a clock in nanoseconds: the largest power of ten up to a millisecond that divides all of its readings.
fn resolution(readings: impl Iterator<Item = u64>) -> u64 {
    readings.fold(1_000_000, |mut unit, reading| {
        while reading % unit != 0 {
            unit /= 10;
        }
        unit
    })
}

/// Which part of the capture a time is in.
fn part(at: f64, span: f64) -> usize {
    ((at / span.max(1.0) * PARTS as f64) as usize).min(PARTS - 1)
}

/// The packets of the size that is met most evenly over time; all, if none is met in half of the parts that have packets.
fn alike(readings: &[Reading], since: u64, span: f64) -> Vec<Reading> {
    let mut sizes: HashMap<u32, (u32, u64)> = HashMap::new();
    let mut all = 0u32;
    for reading in readings {
        let part = 1u32 << part((reading.first - since) as f64, span);
        let (parts, count) = sizes.entry(reading.size).or_default();
        (*parts, *count, all) = (*parts | part, *count + 1, all | part);
    }
    let best = sizes.iter().max_by_key(|(size, (parts, count))| (parts.count_ones(), *count, **size));
    match best {
        Some((size, (parts, _))) if parts.count_ones() * 2 > all.count_ones() => {
            readings.iter().filter(|reading| reading.size == *size).copied().collect()
        }
        _ => readings.to_vec(),
    }
}

/// Slopes that the clocks' difference may have.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slopes {
    from: f64,
    to: f64,
}

impl Slopes {
    const ALL: Self = Self { from: -MAX_SKEW, to: MAX_SKEW };

    /// Those of the lines below the points that lie as close to the least of them as these lie to each other.
    fn of(points: Vec<Point>, span: f64, grain: f64) -> Self {
        if points.len() < 2 {
            return Self::ALL;
        }
        let middle = f64::midpoint(
            points.iter().fold(f64::INFINITY, |least, p| least.min(p.0)),
            points.iter().fold(0.0, |most: f64, p| most.max(p.0)),
        );
        let hull = hull(points.clone());
        // How high the line of this slope is in the middle of time: concave, and highest for an edge of the hull.
        let height = |slope: f64| lowest(&hull, slope) + slope * middle;
        let edges = hull.windows(2).map(|two| ((two[1].1 - two[0].1) / (two[1].0 - two[0].0)).clamp(-MAX_SKEW, MAX_SKEW));
        let best = edges.max_by(|a, b| height(*a).total_cmp(&height(*b))).unwrap_or(0.0);
        let line = lowest(&hull, best);
        let mut least = [f64::INFINITY; PARTS];
        for (x, y) in points {
            let slot = &mut least[part(x, span)];
            *slot = slot.min(y - best * x - line);
        }
        let mut least: Vec<f64> = least.into_iter().filter(|least| least.is_finite()).collect();
        if least.len() < MIN_PARTS {
            return Self::ALL;
        }
        least.sort_by(f64::total_cmp);
        let enough = height(best) - least[least.len() / 2] - grain;
        let edge = |far: f64| {
            if height(far) >= enough {
                return far;
            }
            let (mut inside, mut outside) = (best, far);
            for _ in 0..60 {
                let between = f64::midpoint(inside, outside);
                *(if height(between) >= enough { &mut inside } else { &mut outside }) = between;
            }
            inside
        };
        Self { from: edge(-MAX_SKEW), to: edge(MAX_SKEW) }
    }

    fn turned(self) -> Self {
        Self { from: -self.to, to: -self.from }
    }

    /// What both directions allow; if they contradict each other, all that either allows, and what is between.
    fn common(self, other: Self) -> Self {
        let (from, to) = (self.from.max(other.from), self.to.min(other.to));
        if from <= to {
            Self { from, to }
        } else {
            Self { from: self.from.min(other.from), to: self.to.max(other.to) }
        }
    }

    /// The skew and its error.
    fn skew(self) -> (f64, f64) {
        if self.from <= 0.0 && self.to >= 0.0 {
            (0.0, self.to.max(-self.from))
        } else {
            (f64::midpoint(self.from, self.to), (self.to - self.from) / 2.0)
        }
    }
}

/// The lower part of the convex hull, from left to right.
fn hull(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points.dedup_by(|later, earlier| later.0 == earlier.0);
    let mut hull: Vec<Point> = Vec::new();
    for point in points {
        while let [.., a, b] = hull.as_slice() {
            // The middle one stays if the three turn left.
            if (b.0 - a.0) * (point.1 - a.1) > (b.1 - a.1) * (point.0 - a.0) {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

/// Where the highest line of that slope below the points meets the axis.
fn lowest(hull: &[Point], slope: f64) -> f64 {
    hull.iter().map(|(x, y)| y - slope * x).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Readings of packets with these delays, by clocks of which the second is ahead.
    fn readings(sent: &[(u64, u64)], ahead: i64, skew: f64, back: bool) -> Vec<Reading> {
        const EPOCH: u64 = 1_700_000_000_000_000_000;
        let second = |at: u64| (EPOCH + at).wrapping_add_signed(ahead + (skew * at as f64) as i64);
        let reading = |&(at, delay): &(u64, u64)| {
            if back {
                Reading { first: EPOCH + at + delay, second: second(at), size: 52 }
            } else {
                Reading { first: EPOCH + at, second: second(at + delay), size: 1500 }
            }
        };
        sent.iter().map(reading).collect()
    }

    #[test]
    fn the_hull_keeps_what_is_lowest() {
        let points = vec![(0.0, 3.0), (1.0, 1.0), (2.0, 5.0), (3.0, 1.5), (4.0, 4.0), (1.0, 2.0)];
        assert_eq!(hull(points), [(0.0, 3.0), (1.0, 1.0), (3.0, 1.5), (4.0, 4.0)]);
    }

    /// A short packet first, and long ones then, which take a millisecond longer: no clock.
    #[test]
    fn longer_packets_that_take_longer_are_no_skew() {
        for parts_per_million in [0.0, 20.0, -20.0, 100.0, -100.0] {
            let skew = parts_per_million * 1e-6;
            let sent: Vec<(u64, u64)> =
                (0..500).map(|n| (n * 20_000_003, if n == 0 { 20_000_000 } else { 21_600_000 })).collect();
            let mut there = readings(&sent, 0, skew, false);
            there[0].size = 60;
            let acks: Vec<(u64, u64)> = (0..500).map(|n| (n * 20_000_003 + 1, 20_000_000)).collect();
            let clocks = Clocks::estimate(&there, &readings(&acks, 0, skew, true)).unwrap();
            assert!((clocks.skew - skew).abs() <= clocks.skew_error && clocks.skew_error < 1e-7, "{clocks:?}");
            assert!(skew != 0.0 || clocks.skew == 0.0);
        }
    }

    /// The queue is empty at first and fills for good.
    #[test]
    fn a_queue_that_builds_up_is_no_skew() {
        for parts_per_million in [0.0, 20.0, -100.0] {
            let skew = parts_per_million * 1e-6;
            let queue = |n: u64| n * n * 50 % 60_000_000;
            let sent: Vec<(u64, u64)> = (0..1000).map(|n| (n * 10_000_003, 20_000_000 + queue(n))).collect();
            let acks: Vec<(u64, u64)> = (0..1000).map(|n| (n * 10_000_003, 20_000_000 + n * 7919 % 30 * 10_000)).collect();
            let clocks = Clocks::estimate(&readings(&sent, 0, skew, false), &readings(&acks, 0, skew, true)).unwrap();
            assert!((clocks.skew - skew).abs() <= clocks.skew_error && clocks.skew_error < 1e-5, "{clocks:?}");
            // Nothing but the way there: it cannot be told from a skew, and is not as large as one can be.
            let clocks = Clocks::estimate(&readings(&sent, 0, skew, false), &[]).unwrap();
            assert!(clocks.skew_error > 1e-4, "{clocks:?}");
        }
    }

    #[test]
    fn what_two_packets_cannot_tell_is_not_told() {
        let two = readings(&[(0, 20_000_000), (1_000_003, 20_500_000)], 7, 0.0, false);
        let clocks = Clocks::estimate(&two, &readings(&[(500_000, 20_000_000)], 7, 0.0, true)).unwrap();
        assert!(clocks.skew == 0.0 && clocks.skew_error > 1e-4, "{clocks:?}");
    }

    #[test]
    fn equal_shortest_delays_give_the_offset_exactly() {
        let sent: Vec<(u64, u64)> = (0..1000).map(|n| (n * 1_000_003, 20_000_000 + n * 7919 % 30 * 1_000_000)).collect();
        let (there, back) = (readings(&sent, 5_000_000_000, 0.0, false), readings(&sent, 5_000_000_000, 0.0, true));
        let clocks = Clocks::estimate(&there, &back).unwrap();
        assert!((clocks.offset_ns - 5_000_000_000).abs() < 1000, "{clocks:?}");
        assert!(clocks.skew.abs() < 1e-9);
        // Half of the shortest round trip.
        assert!(clocks.error_ns.unwrap().abs_diff(20_000_000) < 1000);
    }

    #[test]
    fn one_direction_gives_the_skew_alone() {
        let sent: Vec<(u64, u64)> = (0..1000).map(|n| (n * 10_000_003, 20_000_000 + n * 7919 % 30 * 1_000_000)).collect();
        let clocks = Clocks::estimate(&readings(&sent, -300, 4e-5, false), &[]).unwrap();
        assert!((clocks.skew - 4e-5).abs() < 1e-7, "{clocks:?}");
        assert_eq!(clocks.error_ns, None);
        assert_eq!(Clocks::estimate(&[], &[]), None);
    }

    proptest! {
        /// Offset and skew of any clocks are found within the stated error, and no delay is shorter than none by more than that.
        #[test]
        fn any_clocks_are_found_within_the_stated_error(
            ahead in -4_000_000_000_000_000_000i64..4_000_000_000_000_000_000,
            parts_per_million in -200.0..200.0,
            shortest in (100_000u64..100_000_000, 100_000u64..100_000_000),
            queues in prop::collection::vec((0u64..50_000_000, 0u64..50_000_000), 400..500),
        ) {
            let skew = parts_per_million * 1e-6;
            // One packet in ten meets no queue.
            let delay = |n: usize, least: u64, queue: u64| if n % 10 == 3 { least } else { least + queue };
            let there: Vec<_> = queues.iter().enumerate().map(|(n, q)| (n as u64 * 150_000_000, delay(n, shortest.0, q.0))).collect();
            let back: Vec<_> = queues.iter().enumerate().map(|(n, q)| (n as u64 * 150_000_000, delay(n, shortest.1, q.1))).collect();
            let (there, back) = (readings(&there, ahead, skew, false), readings(&back, ahead, skew, true));
            let clocks = Clocks::estimate(&there, &back).unwrap();
            let error = clocks.error_ns.unwrap() as i64;
            // The skew acts on the delays too: 200 millionths of 150 ms are 30 us.
            prop_assert!((clocks.skew - skew).abs() < 1e-7, "{clocks:?} {skew}");
            let truth = ahead + (skew * (clocks.since - 1_700_000_000_000_000_000) as f64) as i64;
            prop_assert!((clocks.offset_ns - truth).abs() <= error + 30_000, "{clocks:?} {truth}");
            prop_assert!(error.abs_diff((shortest.0 + shortest.1) as i64 / 2) < 30_000);
            for reading in &there {
                prop_assert!(clocks.delay(*reading) >= 0);
            }
        }
    }
}
