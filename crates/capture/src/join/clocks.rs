//! Two clocks, by packets that both of them timed.
//!
//! No packet arrives before it was sent. Seen from the first clock, the difference of the two readings is the clocks' difference plus the
//! delay for packets of one direction, minus the delay for those of the other. So the clocks' difference lies below all points of the one and
//! above all points of the other: Moon, Skelly & Towsley 1999, by linear programming over convex hulls, here for both directions at once.

/// Two readings of the time of a packet, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// By the first clock.
    pub first: u64,
    /// By the second.
    pub second: u64,
}

/// How the second clock stands to the first: it shows `first + offset + skew * (first - since)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clocks {
    /// When the first clock showed this, in nanoseconds,
    pub since: u64,
    /// the second was so many nanoseconds ahead.
    pub offset_ns: i64,
    /// How much faster the second clock goes: 1e-6 is a microsecond a second.
    pub skew: f64,
    /// The offset is right within so many nanoseconds, whatever the delays are: half of the shortest round trip between the captures.
    /// `None` if packets of one direction only are known; the shortest delay then counts as none.
    pub error_ns: Option<u64>,
}

/// A point of the difference over time, both in nanoseconds, from the first packet on.
type Point = (f64, f64);

impl Clocks {
    /// By packets from the first capture to the second, and from the second to the first.
    pub fn estimate(there: &[Reading], back: &[Reading]) -> Option<Self> {
        let readings = || there.iter().chain(back);
        let since = readings().map(|reading| reading.first).min()?;
        let base = readings().next().map(difference)?;
        let point = |reading: &Reading| ((reading.first - since) as f64, (difference(reading) - base) as f64);
        let below = hull(there.iter().map(point).collect());
        // What is above is below once it is turned over.
        let above = hull(back.iter().map(point).map(|(x, y)| (x, -y)).collect());
        // How many points, and the sums of their coordinates.
        let sums = |points: &[Reading]| {
            let (x, y) = points.iter().map(point).fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
            (points.len() as f64, x, y)
        };
        let (there, back) = (sums(there), sums(back));
        // The sum of all distances to two parallel lines is convex in their slope, and bends where the slope is that of an edge.
        let cost = |slope: f64| {
            let lower = if below.is_empty() { 0.0 } else { there.2 - slope * there.1 - there.0 * lowest(&below, slope) };
            let upper = if above.is_empty() { 0.0 } else { slope * back.1 - back.2 - back.0 * lowest(&above, -slope) };
            lower + upper
        };
        let edges = |hull: &[Point], sign: f64| -> Vec<f64> {
            hull.windows(2).map(|two| sign * (two[1].1 - two[0].1) / (two[1].0 - two[0].0)).collect()
        };
        let mut slopes = edges(&below, 1.0);
        slopes.extend(edges(&above, -1.0));
        let skew = slopes.into_iter().min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(0.0);
        let lower = Some(lowest(&below, skew)).filter(|_| !below.is_empty());
        let upper = Some(-lowest(&above, -skew)).filter(|_| !above.is_empty());
        let (offset, error) = match (lower, upper) {
            (Some(lower), Some(upper)) => (f64::midpoint(lower, upper), Some((lower - upper).abs() / 2.0)),
            (Some(only), None) | (None, Some(only)) => (only, None),
            (None, None) => return None,
        };
        let offset_ns = base + offset.round() as i64;
        Some(Self { since, offset_ns, skew, error_ns: error.map(|error| error.ceil() as u64) })
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
                Reading { first: EPOCH + at + delay, second: second(at) }
            } else {
                Reading { first: EPOCH + at, second: second(at + delay) }
            }
        };
        sent.iter().map(reading).collect()
    }

    #[test]
    fn the_hull_keeps_what_is_lowest() {
        let points = vec![(0.0, 3.0), (1.0, 1.0), (2.0, 5.0), (3.0, 1.5), (4.0, 4.0), (1.0, 2.0)];
        assert_eq!(hull(points), [(0.0, 3.0), (1.0, 1.0), (3.0, 1.5), (4.0, 4.0)]);
    }

    #[test]
    fn equal_shortest_delays_give_the_offset_exactly() {
        let sent: Vec<(u64, u64)> = (0..1000).map(|n| (n * 1_000_000, 20_000_000 + n * 7919 % 30 * 1_000_000)).collect();
        let (there, back) = (readings(&sent, 5_000_000_000, 0.0, false), readings(&sent, 5_000_000_000, 0.0, true));
        let clocks = Clocks::estimate(&there, &back).unwrap();
        assert!((clocks.offset_ns - 5_000_000_000).abs() < 1000, "{clocks:?}");
        assert!(clocks.skew.abs() < 1e-9);
        // Half of the shortest round trip.
        assert!(clocks.error_ns.unwrap().abs_diff(20_000_000) < 1000);
    }

    #[test]
    fn one_direction_gives_the_skew_alone() {
        let sent: Vec<(u64, u64)> = (0..1000).map(|n| (n * 10_000_000, 20_000_000 + n * 7919 % 30 * 1_000_000)).collect();
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
