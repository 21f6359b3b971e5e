//! Queues that do more than drop at the tail: they warn, drop early, or choose whom to drop.
//!
//! What they decide comes before the drop-tail queue of the wire, whose limit still holds; a plain queue pays nothing for them.

use crate::codel::CoDel;
use crate::error::{BuildError, Flaw};
use crate::random::Stream;

/// What a queue does beside dropping at the tail: `"biased"`, `{ warn = { … } }`, `{ red = { … } }` or `{ codel = { … } }`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Discipline {
    /// On overflow drops the newest waiting packet of high drop precedence in favour of one that has not (Biaz & Vaidya 2005).
    Biased,
    /// Marks every ECN-capable packet while the average queue is above a threshold: the congestion warning of TCP-Jersey.
    Warn(Warn),
    /// Random early detection (Floyd & Jacobson 1993).
    Red(Red),
    /// Controlled delay: drops at the head what has waited too long for too long (RFC 8289).
    #[cfg_attr(feature = "serde", serde(rename = "codel"))]
    CoDel(CoDel),
}

/// The congestion warning of TCP-Jersey (Xu, Tian & Ansari 2004).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Warn {
    /// Average queue in packets above which all packets are marked.
    pub threshold: f64,
    /// Weight of a new sample in the average; 1 for the queue as it is, 0.002 if nothing is said.
    #[cfg_attr(feature = "serde", serde(default = "default_weight"))]
    pub weight: f64,
}

/// The parameters of RED; where nothing is said those of ns-2 from 2001 to 2002.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Red {
    /// Average queue in packets from which packets are dropped or marked.
    pub min: f64,
    /// Average queue in packets at which the probability is `max_p`.
    pub max: f64,
    /// Weight of a new sample in the average.
    pub weight: f64,
    /// Probability at `max`.
    pub max_p: f64,
    /// From `max` to twice `max` the probability rises to 1; otherwise it is 1 from `max` on.
    pub gentle: bool,
    /// Marks ECN-capable packets instead of dropping them, except where the probability is 1.
    pub mark: bool,
}

#[cfg(feature = "serde")]
const fn default_weight() -> f64 {
    0.002
}

impl Default for Red {
    fn default() -> Self {
        Self { min: 5.0, max: 15.0, weight: 0.002, max_p: 0.1, gentle: true, mark: false }
    }
}

impl Discipline {
    /// Its name in a scenario.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Biased => "biased",
            Self::Warn(_) => "warn",
            Self::Red(_) => "red",
            Self::CoDel(_) => "codel",
        }
    }

    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        let positive = |value: f64| value > 0.0 && value <= 1e9;
        let share = |value: f64| value > 0.0 && value <= 1.0;
        match *self {
            Self::Warn(Warn { threshold, .. }) if !(0.0..=1e9).contains(&threshold) => {
                Some(("threshold", threshold.to_string(), "0 to 1,000,000,000 packets"))
            }
            Self::Warn(Warn { weight, .. }) | Self::Red(Red { weight, .. }) if !share(weight) => {
                Some(("weight", weight.to_string(), "a number above 0, at most 1"))
            }
            Self::Red(red) if !positive(red.min) => Some(("min", red.min.to_string(), "a number of packets above 0")),
            Self::Red(red) if !(positive(red.max) && red.max > red.min) => Some(("max", red.max.to_string(), "more than min")),
            Self::CoDel(codel) => codel.flaw(),
            Self::Red(red) if !share(red.max_p) => Some(("max_p", red.max_p.to_string(), "a number above 0, at most 1")),
            _ => None,
        }
    }
}

/// What is to become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Pass,
    /// Mark it if it is ECN-capable.
    Mark,
    /// Mark it if it is ECN-capable, drop it if not.
    MarkOrDrop,
    Drop,
    /// If there is no room, make it by dropping a packet of high precedence.
    Displace,
}

/// A discipline at work.
#[derive(Debug)]
pub(crate) struct Manager {
    discipline: Discipline,
    average: f64,
    /// Packets since the last that was marked or dropped early.
    count: f64,
    stream: Stream,
}

/// A queue as a packet finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Packets that waited when this one came.
    pub packets: u64,
    /// How many packets the transmitter could have sent since it has nothing to do; 0 if it is busy.
    pub idle: f64,
}

impl Manager {
    const fn new(discipline: Discipline, stream: Stream) -> Self {
        Self { discipline, average: 0.0, count: 0.0, stream }
    }

    /// The manager of the queue of link direction `name`.
    pub fn of_link(discipline: Discipline, seed: u64, run: u64, name: &str) -> Result<Self, BuildError> {
        let item = format!("queue of link {name}");
        if let Some(flaw) = discipline.flaw() {
            return Err(BuildError::unfit(&item, flaw));
        }
        Ok(Self::new(discipline, Stream::new(seed, run, &item, "early drops")))
    }

    /// What is to become of a packet that finds the queue like this.
    pub fn decide(&mut self, found: Found) -> Decision {
        let red = match self.discipline {
            Discipline::Biased => return Decision::Displace,
            // It decides when a packet leaves.
            Discipline::CoDel(_) => return Decision::Pass,
            Discipline::Warn(Warn { threshold, weight }) => {
                self.update(weight, found);
                return if self.average > threshold { Decision::Mark } else { Decision::Pass };
            }
            Discipline::Red(red) => red,
        };
        self.update(red.weight, found);
        if self.average < red.min || found.packets == 0 {
            self.count = 0.0;
            return Decision::Pass;
        }
        self.count += 1.0;
        let probability = red.probability(self.average);
        if probability >= 1.0 {
            self.count = 0.0;
            return Decision::Drop;
        }
        if self.stream.unit() >= spread(probability, self.count) {
            return Decision::Pass;
        }
        self.count = 0.0;
        if red.mark {
            Decision::MarkOrDrop
        } else {
            Decision::Drop
        }
    }

    /// The average decays while the queue is idle as if small queues had been seen (Floyd & Jacobson 1993, section 4).
    fn update(&mut self, weight: f64, found: Found) {
        if found.idle > 0.0 {
            self.average *= libm::pow(1.0 - weight, found.idle);
        }
        self.average += weight * (found.packets as f64 - self.average);
    }
}

impl Red {
    /// The probability for an average queue of at least `min`.
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

/// Spaces drops evenly: with ns-2's `wait`, none in the first `1 / p` packets after the last one, one for certain in `2 / p`.
fn spread(p: f64, count: f64) -> f64 {
    match count * p {
        x if x < 1.0 => 0.0,
        x if x < 2.0 => p / (2.0 - x),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manager(discipline: Discipline) -> Manager {
        Manager::new(discipline, Stream::new(1, 0, "queue", "test"))
    }

    const fn found(packets: u64) -> Found {
        Found { packets, idle: 0.0 }
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
    fn drops_are_spread() {
        assert_eq!((spread(0.1, 9.0), spread(0.1, 20.0)), (0.0, 1.0));
        assert!((spread(0.1, 15.0) - 0.2).abs() < 1e-12);
        // A constant average of 10 packets drops with probability 0.05, one between 20 and 40 packets after the last.
        let mut red = manager(Discipline::Red(Red { weight: 1.0, ..Red::default() }));
        let at: Vec<_> = (0..10_000).filter(|_| red.decide(found(10)) == Decision::Drop).collect();
        assert!(at.len() > 250 && at.windows(2).all(|pair| (20..=40).contains(&(pair[1] - pair[0]))), "{at:?}");
    }

    #[test]
    fn the_average_follows_and_decays() {
        let mut warn = manager(Discipline::Warn(Warn { threshold: 5.0, weight: 0.5 }));
        // 5, 7.5: not above the threshold, above it.
        assert_eq!([warn.decide(found(10)), warn.decide(found(10))], [Decision::Pass, Decision::Mark]);
        // Two idle packet times: 7.5 / 4, and a queue of 0 halves it again.
        warn.decide(Found { packets: 0, idle: 2.0 });
        assert!((warn.average - 7.5 / 8.0).abs() < 1e-12, "{}", warn.average);
    }

    #[test]
    fn senseless_values_are_found() {
        let red = Red::default();
        for (discipline, field) in [
            (Discipline::Warn(Warn { threshold: f64::NAN, weight: 1.0 }), "threshold"),
            (Discipline::Warn(Warn { threshold: 1.0, weight: 0.0 }), "weight"),
            (Discipline::Red(Red { min: 0.0, ..red }), "min"),
            (Discipline::Red(Red { max: 5.0, ..red }), "max"),
            (Discipline::Red(Red { max_p: 1.5, ..red }), "max_p"),
        ] {
            assert_eq!(discipline.flaw().map(|(field, ..)| field), Some(field));
        }
        assert_eq!(Discipline::Red(red).flaw(), None);
    }
}
