//! Queues that do more than drop at the tail: they warn, drop early, or choose whom to drop.
//!
//! What is decided when a packet comes precedes the drop-tail queue of the wire, whose limit still holds; a plain queue pays nothing for
//! it.

pub(crate) mod buffer;
mod codel;
mod fair;
mod pie;
mod red;
pub(crate) mod waiting;

use crate::error::{BuildError, Flaw};
use crate::random::Stream;
pub use codel::CoDel;
pub use fair::FqCoDel;
pub(crate) use pie::Departure;
pub use pie::{DelayEstimate, Pie};
pub use red::{AdaptiveRed, Red};
use whyloss_transport::BitRate;

/// What a queue does beside dropping at the tail: `"biased"`, or one of the others with its parameters, such as `{ codel = {} }`.
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
    /// Random early detection that sets its parameters by a target delay (Floyd, Gummadi & Shenker 2001).
    AdaptiveRed(AdaptiveRed),
    /// Controlled delay: drops at the head what has waited too long for too long (RFC 8289).
    #[cfg_attr(feature = "serde", serde(rename = "codel"))]
    CoDel(CoDel),
    /// A queue for each flow, served in turn, and CoDel in each (RFC 8290).
    #[cfg_attr(feature = "serde", serde(rename = "fq-codel"))]
    FqCoDel(FqCoDel),
    /// Drops what comes with a probability that follows from the waiting time and its trend (RFC 8033).
    Pie(Pie),
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

#[cfg(feature = "serde")]
const fn default_weight() -> f64 {
    0.002
}

impl Discipline {
    /// Its name in a scenario.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Biased => "biased",
            Self::Warn(_) => "warn",
            Self::Red(_) => "red",
            Self::AdaptiveRed(_) => "adaptive-red",
            Self::CoDel(_) => "codel",
            Self::FqCoDel(_) => "fq-codel",
            Self::Pie(_) => "pie",
        }
    }

    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        match self {
            Self::Biased => None,
            Self::Warn(warn) if !(0.0..=1e9).contains(&warn.threshold) => {
                Some(("threshold", warn.threshold.to_string(), "0 to 1,000,000,000 packets"))
            }
            Self::Warn(warn) => not_a_share("weight", warn.weight),
            Self::Red(red) => red.flaw(),
            Self::AdaptiveRed(adaptive) => adaptive.flaw(),
            Self::CoDel(codel) => codel.flaw(),
            Self::FqCoDel(fair) => fair.flaw(),
            Self::Pie(pie) => pie.flaw(),
        }
    }

    /// Whether it has to know when packets leave, not only when they come.
    pub(crate) const fn acts_at_departure(&self) -> bool {
        matches!(self, Self::CoDel(_) | Self::FqCoDel(_) | Self::Pie(_))
    }
}

/// A value that has to lie above 0, and at most at 1.
fn not_a_share(field: &'static str, value: f64) -> Option<Flaw> {
    (!(value > 0.0 && value <= 1.0)).then(|| (field, value.to_string(), "a number above 0, at most 1"))
}

/// The longest packet that there is.
const LONGEST: u64 = 65_535;

/// A length that no packet has.
fn packet_flaw(mean_packet: u64) -> Option<Flaw> {
    (!(1..=LONGEST).contains(&mean_packet)).then(|| ("mean_packet", format!("{mean_packet} B"), "1 B to 65535 B"))
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

/// A queue as a packet finds it that comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// In nanoseconds.
    pub now: u64,
    /// Length of the packet that comes.
    pub length: u32,
    /// Packets that wait.
    pub packets: u64,
    /// Octets that wait.
    pub octets: u64,
    /// Octets that the transmitter could have sent since it has nothing to do; 0 if it is busy.
    pub idle: f64,
    /// There is no room for the packet.
    pub full: bool,
}

/// What decides on packets that come to a queue.
#[derive(Debug)]
pub(crate) enum Manager {
    Biased,
    Warn(Warn, Average),
    Red(Box<red::Detector>),
    Pie(Box<pie::Controller>),
}

impl Manager {
    /// The manager of the queue of link direction `name`, which sends at `rate`, if its discipline needs one.
    pub fn of_link(discipline: &Discipline, rate: BitRate, seed: u64, run: u64, name: &str) -> Result<Option<Self>, BuildError> {
        let item = format!("queue of link {name}");
        if let Some(flaw) = discipline.flaw() {
            return Err(BuildError::unfit(&item, flaw));
        }
        let stream = || Stream::new(seed, run, &item, "early drops");
        Ok(match discipline {
            Discipline::Biased => Some(Self::Biased),
            Discipline::Warn(warn) => Some(Self::Warn(*warn, Average::default())),
            Discipline::Red(red) => Some(Self::Red(Box::new(red::Detector::new(*red, stream())))),
            Discipline::AdaptiveRed(adaptive) => {
                Some(Self::Red(Box::new(red::Detector::adaptive(adaptive, rate.as_bps() as f64, stream()))))
            }
            Discipline::Pie(pie) => Some(Self::Pie(Box::new(pie::Controller::new(pie, stream())))),
            // They decide when a packet leaves.
            Discipline::CoDel(_) | Discipline::FqCoDel(_) => None,
        })
    }

    /// What is to become of a packet that finds the queue like this.
    pub fn decide(&mut self, found: &Found) -> Decision {
        match self {
            Self::Biased => Decision::Displace,
            Self::Warn(warn, average) => {
                average.update(warn.weight, found.packets as f64, found.idle / IDLE_PACKET);
                if average.0 > warn.threshold {
                    Decision::Mark
                } else {
                    Decision::Pass
                }
            }
            Self::Red(detector) => detector.decide(found),
            Self::Pie(controller) => controller.decide(found),
        }
    }

    /// A packet leaves the queue to be transmitted.
    pub fn departs(&mut self, departure: &Departure) {
        if let Self::Pie(controller) = self {
            controller.departs(departure);
        }
    }
}

/// Octets of the packets in which idle time is counted where nothing else is said, as in ns-2.
const IDLE_PACKET: f64 = 500.0;

/// The moving average of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Average(f64);

impl Average {
    /// A packet finds a queue of this length, after a time in which `idle` packets could have been sent: the average decays as if each
    /// of them had found an empty queue (Floyd & Jacobson 1993, section 4).
    fn update(&mut self, weight: f64, queue: f64, idle: f64) {
        if idle > 0.0 {
            self.0 *= libm::pow(1.0 - weight, idle);
        }
        self.0 += weight * (queue - self.0);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A queue in which so many packets of 500 octets wait, found by a further one.
    pub const fn found(packets: u64) -> Found {
        Found { now: 0, length: 500, packets, octets: 500 * packets, idle: 0.0, full: false }
    }

    pub fn stream() -> Stream {
        Stream::new(1, 0, "queue", "test")
    }

    #[test]
    fn the_average_follows_and_decays() {
        let warn = Discipline::Warn(Warn { threshold: 5.0, weight: 0.5 });
        let mut warn = Manager::of_link(&warn, BitRate::from_bps(1), 1, 0, "a>b").unwrap().unwrap();
        // 5, 7.5: not above the threshold, above it.
        assert_eq!([warn.decide(&found(10)), warn.decide(&found(10))], [Decision::Pass, Decision::Mark]);
        // Two idle packet times: 7.5 / 4, and a queue of 0 halves it again.
        warn.decide(&Found { idle: 1000.0, ..found(0) });
        let Manager::Warn(_, average) = warn else { unreachable!() };
        assert!((average.0 - 7.5 / 8.0).abs() < 1e-12, "{average:?}");
    }

    #[test]
    fn senseless_values_are_found() {
        let (red, adaptive) = (Red::default(), AdaptiveRed::default());
        let zero = whyloss_transport::Duration::ZERO;
        for (discipline, field) in [
            (Discipline::Warn(Warn { threshold: f64::NAN, weight: 1.0 }), "threshold"),
            (Discipline::Warn(Warn { threshold: 1.0, weight: 0.0 }), "weight"),
            (Discipline::Red(Red { min: 0.0, ..red }), "min"),
            (Discipline::Red(Red { max: 5.0, ..red }), "max"),
            (Discipline::Red(Red { weight: 1.5, ..red }), "weight"),
            (Discipline::Red(Red { max_p: 1.5, ..red }), "max_p"),
            (Discipline::Red(Red { mean_packet: 0, ..red }), "mean_packet"),
            (Discipline::AdaptiveRed(AdaptiveRed { target: zero, ..adaptive }), "target"),
            (Discipline::AdaptiveRed(AdaptiveRed { interval: zero, ..adaptive }), "interval"),
            (Discipline::AdaptiveRed(AdaptiveRed { increase: 0.0, ..adaptive }), "increase"),
            (Discipline::AdaptiveRed(AdaptiveRed { decrease: 1.0, ..adaptive }), "decrease"),
            (Discipline::AdaptiveRed(AdaptiveRed { least: f64::NAN, ..adaptive }), "least"),
            (Discipline::AdaptiveRed(AdaptiveRed { most: 0.001, ..adaptive }), "most"),
            (Discipline::AdaptiveRed(AdaptiveRed { mean_packet: 1 << 40, ..adaptive }), "mean_packet"),
        ] {
            assert_eq!(discipline.flaw().map(|(field, ..)| field), Some(field));
        }
        assert_eq!(Discipline::Red(red).flaw(), None);
        assert_eq!(Discipline::AdaptiveRed(adaptive).flaw(), None);
    }
}
