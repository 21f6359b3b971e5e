//! Random early detection (Floyd & Jacobson 1993), and the same that sets itself (Floyd, Gummadi & Shenker 2001).
//!
//! Where the papers leave something open it is as in ns-2, whose names stand behind the parameters.

use super::{not_a_share, packet_flaw, Average, Decision, Found};
use crate::error::Flaw;
use crate::random::Stream;
use whyloss_transport::Duration;

/// The parameters of RED; where nothing is said those of ns-2 from 2001 to 2002.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Red {
    /// Average queue in packets from which packets are dropped or marked (`thresh_`).
    pub min: f64,
    /// Average queue in packets at which the probability is `max_p` (`maxthresh_`).
    pub max: f64,
    /// Weight of a new sample in the average (`q_weight_`).
    pub weight: f64,
    /// Probability at `max` (1 / `linterm_`).
    pub max_p: f64,
    /// From `max` to twice `max` the probability rises to 1; otherwise it is 1 from `max` on (`gentle_`).
    pub gentle: bool,
    /// Drops keep a distance: there are 1 / p to 2 / p packets between two, p being the probability; otherwise up to 1 / p (`wait_`).
    pub wait: bool,
    /// The probability is in proportion to a packet's length: it is that of a packet of `mean_packet` (`bytes_`).
    pub bytes: bool,
    /// The queue is measured in octets: a packet of the thresholds is `mean_packet` (`queue_in_bytes_`).
    pub queue_in_bytes: bool,
    /// Length of a typical packet; also that of the packets in which idle time is counted (`mean_pktsize_`).
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::size"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Size"))]
    pub mean_packet: u64,
    /// Marks ECN-capable packets instead of dropping them, except where the probability is 1 (`setbit_`).
    pub mark: bool,
}

impl Default for Red {
    fn default() -> Self {
        Self {
            min: 5.0,
            max: 15.0,
            weight: 0.002,
            max_p: 0.1,
            gentle: true,
            wait: true,
            bytes: false,
            queue_in_bytes: false,
            mean_packet: 500,
            mark: false,
        }
    }
}

/// The parameters of adaptive RED, which sets `min`, `max` and `weight` by the rate of the link, and `max_p` while it runs; where nothing
/// is said those of the paper, and of ns-2.35 where the paper is silent. A link that changes its rate keeps what was set by the first.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdaptiveRed {
    /// Waiting time that the average queue should have. `min` is half the packets that are sent meanwhile, at least 5; `max` three
    /// times `min` (`targetdelay_`).
    pub target: Duration,
    /// How often `max_p` is adapted (`interval_`).
    pub interval: Duration,
    /// What is added to `max_p` when the average is too long, but at most a quarter of it (`alpha_`).
    pub increase: f64,
    /// What `max_p` is multiplied by when the average is too short (`beta_`).
    pub decrease: f64,
    /// `max_p` does not fall from here (`bottom_`).
    pub least: f64,
    /// `max_p` does not rise from here (`top_`).
    pub most: f64,
    /// From `max` to twice `max` the probability rises to 1; otherwise it is 1 from `max` on.
    pub gentle: bool,
    /// Drops keep a distance: there are 1 / p to 2 / p packets between two, p being the probability; otherwise up to 1 / p.
    pub wait: bool,
    /// The probability is in proportion to a packet's length: it is that of a packet of `mean_packet`.
    pub bytes: bool,
    /// The queue is measured in octets: a packet of the thresholds is `mean_packet`.
    pub queue_in_bytes: bool,
    /// Length of a typical packet; also that of the packets in which idle time is counted.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::size"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Size"))]
    pub mean_packet: u64,
    /// Marks ECN-capable packets instead of dropping them, except where the probability is 1.
    pub mark: bool,
}

impl Default for AdaptiveRed {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(500),
            increase: 0.01,
            decrease: 0.9,
            least: 0.01,
            most: 0.5,
            gentle: true,
            wait: true,
            bytes: true,
            queue_in_bytes: true,
            mean_packet: 500,
            mark: false,
        }
    }
}

impl Red {
    pub(super) fn flaw(&self) -> Option<Flaw> {
        let positive = |value: f64| value > 0.0 && value <= 1e9;
        match self {
            _ if !positive(self.min) => Some(("min", self.min.to_string(), "a number of packets above 0")),
            _ if !(positive(self.max) && self.max > self.min) => Some(("max", self.max.to_string(), "more than min")),
            _ => not_a_share("weight", self.weight)
                .or_else(|| not_a_share("max_p", self.max_p))
                .or_else(|| packet_flaw(self.mean_packet)),
        }
    }

    /// The probability for an average queue of at least `min`: `p_b` of Floyd & Jacobson 1993, section 4.
    fn probability(&self, average: f64) -> f64 {
        if average < self.max {
            self.max_p * (average - self.min) / (self.max - self.min)
        } else if self.gentle && average < 2.0 * self.max {
            self.max_p + (1.0 - self.max_p) * (average - self.max) / self.max
        } else {
            1.0
        }
    }
}

impl AdaptiveRed {
    pub(super) fn flaw(&self) -> Option<Flaw> {
        match self {
            _ if self.target == Duration::ZERO => Some(("target", "0 s".to_owned(), "a time above zero")),
            _ if self.interval == Duration::ZERO => Some(("interval", "0 s".to_owned(), "a time above zero")),
            _ if !(self.decrease > 0.0 && self.decrease < 1.0) => {
                Some(("decrease", self.decrease.to_string(), "a number between 0 and 1"))
            }
            _ => not_a_share("increase", self.increase)
                .or_else(|| not_a_share("least", self.least))
                .or_else(|| not_a_share("most", self.most))
                .or_else(|| (self.most < self.least).then(|| ("most", self.most.to_string(), "at least least")))
                .or_else(|| packet_flaw(self.mean_packet)),
        }
    }

    /// What it begins with on a link of so many bits per second (Floyd, Gummadi & Shenker 2001, section 5).
    fn red(&self, bps: f64) -> Red {
        let &Self { gentle, wait, bytes, queue_in_bytes, mean_packet, mark, .. } = self;
        let capacity = bps / (8.0 * mean_packet as f64);
        let min = (self.target.as_secs_f64() * capacity / 2.0).max(5.0);
        let (weight, max_p) = (-libm::expm1(-1.0 / capacity), 0.1_f64.clamp(self.least, self.most));
        Red { min, max: 3.0 * min, weight, max_p, gentle, wait, bytes, queue_in_bytes, mean_packet, mark }
    }
}

/// RED at work.
#[derive(Debug)]
pub(crate) struct Detector {
    red: Red,
    adaptation: Option<Adaptation>,
    average: Average,
    /// Packets since the last that was marked or dropped, or octets in packets of the mean length.
    count: f64,
    /// The last packet found the average above `min`.
    above: bool,
    stream: Stream,
}

/// How `max_p` follows the average.
#[derive(Debug)]
struct Adaptation {
    rule: AdaptiveRed,
    /// When it was set last, in nanoseconds.
    last: u64,
}

impl Detector {
    pub const fn new(red: Red, stream: Stream) -> Self {
        Self { red, adaptation: None, average: Average(0.0), count: 0.0, above: false, stream }
    }

    /// One that adapts, on a link of so many bits per second.
    pub fn adaptive(rule: &AdaptiveRed, bps: f64, stream: Stream) -> Self {
        Self { adaptation: Some(Adaptation { rule: *rule, last: 0 }), ..Self::new(rule.red(bps), stream) }
    }

    /// What is to become of a packet that finds the queue like this.
    pub fn decide(&mut self, found: &Found) -> Decision {
        let Self { red, average, .. } = self;
        let mean = red.mean_packet as f64;
        // A packet that finds at most one other waiting is never dropped early; in octets, at most one octet, as in ns-2.
        let (queue, short) = if red.queue_in_bytes {
            (found.octets as f64 / mean, found.octets <= 1)
        } else {
            (found.packets as f64, found.packets <= 1)
        };
        average.update(red.weight, queue, found.idle / mean);
        let average = average.0;
        if let Some(adaptation) = &mut self.adaptation {
            adaptation.adapt(red, average, found.now);
        }
        let size = f64::from(found.length) / mean;
        self.count += if red.bytes { size } else { 1.0 };
        if found.full {
            // The queue refuses it: as good as an early drop.
            self.count = 0.0;
            return Decision::Pass;
        }
        if average < red.min || short {
            self.above = false;
            return Decision::Pass;
        }
        let probability = red.probability(average);
        if probability >= 1.0 {
            self.count = 0.0;
            return Decision::Drop;
        }
        if !std::mem::replace(&mut self.above, true) {
            self.count = if red.bytes { size } else { 1.0 };
            return Decision::Pass;
        }
        let mut spread = spread(probability, self.count, red.wait);
        if red.bytes && spread < 1.0 {
            spread *= size;
        }
        if self.stream.unit() >= spread {
            return Decision::Pass;
        }
        self.count = 0.0;
        if red.mark {
            Decision::MarkOrDrop
        } else {
            Decision::Drop
        }
    }
}

impl Adaptation {
    /// Moves `max_p` if the average is not in the middle fifth between the thresholds (Floyd, Gummadi & Shenker 2001, section 4).
    fn adapt(&mut self, red: &mut Red, average: f64, now: u64) {
        let Self { rule, last } = self;
        if now <= last.saturating_add(rule.interval.as_nanos()) {
            return;
        }
        let part = 0.4 * (red.max - red.min);
        if average < red.min + part && red.max_p > rule.least {
            red.max_p = (red.max_p * rule.decrease).max(rule.least);
        } else if average > red.max - part && red.max_p < rule.most {
            red.max_p = (red.max_p + rule.increase.min(red.max_p / 4.0)).min(rule.most);
        } else {
            return;
        }
        *last = now;
    }
}

/// Spaces drops evenly, where `count` packets have come since the last one, this one included: `p_a` of Floyd & Jacobson 1993, section 7.
/// Each distance from 1 to 1 / p - 1 packets is as likely as any other; with ns-2's `wait_` each from 1 / p to 2 / p - 1.
fn spread(p: f64, count: f64, wait: bool) -> f64 {
    let rest = if wait { 2.0 } else { 1.0 } - count * p;
    if wait && rest > 1.0 {
        0.0
    } else if rest > p {
        p / rest
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, stream};
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    /// A detector whose average is the queue as it is.
    fn exact(red: Red) -> Detector {
        Detector::new(Red { weight: 1.0, ..red }, stream())
    }

    /// Distances between the drops of so many packets that all find the same queue.
    fn gaps(detector: &mut Detector, found: &Found, packets: usize) -> Vec<usize> {
        let at: Vec<_> = (0..packets).filter(|_| detector.decide(found) == Decision::Drop).collect();
        at.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn the_probability_rises_to_max_p_and_gently_to_1() {
        let red = Red::default();
        for (average, expected) in [(5.0, 0.0), (10.0, 0.05), (15.0, 0.1), (22.5, 0.55), (30.0, 1.0)] {
            assert!((red.probability(average) - expected).abs() < 1e-12, "{average}");
        }
        assert_eq!(Red { gentle: false, ..red }.probability(15.0), 1.0);
    }

    #[test]
    fn every_distance_between_drops_is_as_likely_as_any_other() {
        for n in [3_u32, 20, 500] {
            let p = 1.0 / f64::from(n);
            for (wait, distances) in [(false, 1..=n - 1), (true, n..=2 * n - 1)] {
                // The closed form: p_a of this distance, and no drop at any before.
                let mut none_before = 1.0;
                for count in 1..=*distances.end() {
                    let likely = none_before * spread(p, f64::from(count), wait);
                    let expected =
                        if distances.contains(&count) { 1.0 / f64::from(distances.end() - distances.start() + 1) } else { 0.0 };
                    assert!((likely - expected).abs() < 1e-9, "{likely} for {count} with p = 1/{n}, wait: {wait}");
                    none_before -= likely;
                }
                assert!(none_before.abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_constant_average_drops_at_the_rate_of_the_closed_form() {
        // A queue of 10 has p = 0.05: distances 1 … 19, mean 10; with `wait` 20 … 39, mean 29.5.
        for (wait, low, high, mean) in [(false, 1, 19, 10.0), (true, 20, 39, 29.5)] {
            let gaps = gaps(&mut exact(Red { wait, ..Red::default() }), &found(10), 400_000);
            assert!(gaps.iter().all(|gap| (low..=high).contains(gap)));
            let measured = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
            // Standard deviation of a distance 5.5 or 5.8, of the mean of 13,500 at most 0.05.
            assert!((measured - mean).abs() < 0.2, "{measured}, wait: {wait}");
            // Each distance comes as often as it should: the sum of squares has the mean of its degrees of freedom, at most 19, and a
            // standard deviation of at most 6.2.
            let each = gaps.len() as f64 / (high - low + 1) as f64;
            let off = |gap| gaps.iter().filter(|&&found| found == gap).count() as f64 - each;
            let sum: f64 = (low..=high).map(|gap| off(gap) * off(gap) / each).sum();
            assert!(sum < 45.0, "{sum}, wait: {wait}");
        }
        // Above twice `max`, everything; not gently, from `max` on.
        assert_eq!(gaps(&mut exact(Red::default()), &found(30), 100), [1; 99]);
        assert_eq!(gaps(&mut exact(Red { gentle: false, ..Red::default() }), &found(15), 100), [1; 99]);
        assert!(gaps(&mut exact(Red::default()), &found(4), 10_000).is_empty());
    }

    #[test]
    fn in_byte_mode_long_packets_are_dropped_the_more_often() {
        let mut red = exact(Red { bytes: true, wait: false, max_p: 0.02, ..Red::default() });
        let (mut dropped, mut came) = ([0_u32; 2], [0_u32; 2]);
        let mut lengths = stream();
        for _ in 0..400_000 {
            let long = usize::from(lengths.unit() < 0.5);
            let length = [100, 1000][long];
            came[long] += 1;
            dropped[long] += u32::from(red.decide(&Found { length, ..found(10) }) == Decision::Drop);
        }
        let [short, long] = [0, 1].map(|which| f64::from(dropped[which]) / f64::from(came[which]));
        // Ten times as long, ten times as often.
        assert!((8.5..11.5).contains(&(long / short)), "{short} and {long}");
        // Of the octets as many as of packets of the mean length.
        let octets = f64::from(came[0]) * 100.0 + f64::from(came[1]) * 1000.0;
        let rate = f64::from(dropped[0] + dropped[1]) / (octets / 500.0);
        assert!((0.9..1.1).contains(&(rate / 0.02)), "{rate}");
    }

    #[test]
    fn a_queue_can_be_measured_in_octets() {
        let mut red = exact(Red { queue_in_bytes: true, ..Red::default() });
        red.decide(&Found { packets: 1, octets: 5250, ..found(0) });
        assert!((red.average.0 - 10.5).abs() < 1e-12, "{:?}", red.average);
        // Idle for 5000 octets: ten packets of 500, of which the weight of 1 leaves nothing.
        let mut slow = Detector::new(Red { weight: 0.1, ..Red::default() }, stream());
        slow.decide(&found(10));
        slow.decide(&Found { idle: 5000.0, ..found(0) });
        assert!((slow.average.0 - libm::pow(0.9, 11.0)).abs() < 1e-12, "{:?}", slow.average);
    }

    #[test]
    fn what_the_limit_refuses_counts_as_dropped() {
        let mut red = exact(Red::default());
        for _ in 0..19 {
            assert_eq!(red.decide(&found(10)), Decision::Pass);
        }
        assert_eq!((red.decide(&Found { full: true, ..found(10) }), red.count), (Decision::Pass, 0.0));
        // 20 packets without a drop follow.
        assert!((0..19).all(|_| red.decide(&found(10)) == Decision::Pass));
    }

    #[test]
    fn adaptive_red_sets_itself_by_the_rate() {
        let adaptive = AdaptiveRed::default();
        // 10 Mbit/s are 2500 packets of 500 octets a second: 12.5 in 5 ms.
        let red = adaptive.red(10e6);
        assert_eq!((red.min, red.max, red.max_p), (6.25, 18.75, 0.1));
        // 1 - exp(-x) = x - x²/2 + x³/6 - …
        assert!((red.weight - 0.000_399_920_010_666).abs() < 1e-12, "{}", red.weight);
        // At 1 Mbit/s they were 1.25, so the least of 5 holds.
        let slow = adaptive.red(1e6);
        assert_eq!((slow.min, slow.max), (5.0, 15.0));
        assert!((slow.weight - 0.003_992).abs() < 1e-6, "{}", slow.weight);
    }

    #[test]
    fn max_p_moves_until_the_average_lies_in_the_middle() {
        let adaptive = AdaptiveRed { queue_in_bytes: false, ..AdaptiveRed::default() };
        // min 6.25, max 18.75: the middle fifth is 11.25 to 13.75.
        let p = |detector: &Detector| detector.red.max_p;
        let mut detector = Detector::adaptive(&adaptive, 10e6, stream());
        detector.red.weight = 1.0;
        let mut see = |packets, ms| {
            detector.decide(&Found { now: ms * MS, ..found(packets) });
            p(&detector)
        };
        assert_eq!(see(20, 500), 0.1, "not before the interval is over");
        assert!((see(14, 501) - 0.11).abs() < 1e-12);
        assert!((see(14, 1001) - 0.11).abs() < 1e-12);
        assert!((see(12, 1002) - 0.11).abs() < 1e-12, "the average is where it should be");
        assert!((see(11, 1003) - 0.099).abs() < 1e-12);
        let mut now = 2000;
        let mut until = |packets| {
            for _ in 0..200 {
                see(packets, now);
                now += 501;
            }
            see(packets, now)
        };
        assert_eq!(until(0), 0.01);
        assert_eq!(until(18), 0.5);
        // From below 0.04 it rises by a quarter.
        let mut small = Detector::adaptive(&AdaptiveRed { least: 0.001, ..adaptive }, 10e6, stream());
        (small.red.weight, small.red.max_p) = (1.0, 0.008);
        small.decide(&Found { now: 501 * MS, ..found(18) });
        assert!((p(&small) - 0.01).abs() < 1e-12, "{}", p(&small));
    }

    fn any_red() -> impl Strategy<Value = Red> {
        let thresholds = (0.1_f64..50.0, 0.1_f64..50.0);
        let rest = (0.001_f64..=1.0, 0.001_f64..=1.0, any::<[bool; 5]>(), 40_u64..1500);
        (thresholds, rest).prop_map(
            |((min, above), (weight, max_p, [gentle, wait, bytes, queue_in_bytes, mark], mean_packet))| Red {
                min,
                max: min + above,
                weight,
                max_p,
                gentle,
                wait,
                bytes,
                queue_in_bytes,
                mean_packet,
                mark,
            },
        )
    }

    proptest! {
        #[test]
        fn the_probability_never_falls_as_the_queue_grows(red in any_red(), average in 0.0_f64..200.0, more in 0.0_f64..50.0) {
            let [low, high] = [average, average + more].map(|average| red.probability(average.max(red.min)));
            prop_assert!((0.0..=1.0).contains(&low) && low <= high && high <= 1.0);
        }

        #[test]
        fn drops_keep_their_distance(red in any_red(), queues in prop::collection::vec(0_u64..100, 1..500)) {
            let red = Red { bytes: false, queue_in_bytes: false, mark: false, ..red };
            let mut detector = Detector::new(red, stream());
            let (mut since, mut dropped) = (0_u32, false);
            for packets in queues {
                since += 1;
                let decision = detector.decide(&found(packets));
                let average = detector.average.0;
                let (p, short) = (red.probability(average), packets <= 1);
                match decision {
                    Decision::Drop => {
                        prop_assert!(average >= red.min && !short);
                        prop_assert!(p >= 1.0 || !red.wait || !dropped || f64::from(since) * p >= 1.0 - 1e-9);
                        (since, dropped) = (0, true);
                    }
                    decision => {
                        prop_assert_eq!(decision, Decision::Pass);
                        prop_assert!(average < red.min || short || p < 1.0);
                    }
                }
            }
        }
    }
}
