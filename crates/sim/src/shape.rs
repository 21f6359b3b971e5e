//! What shapes one direction of a wire.

use crate::channel::ChannelSpec;
use crate::error::Flaw;
use crate::outage::Outage;
use crate::spread::{Jitter, Reorder};
use crate::trace::Trace;
use std::sync::Arc;
#[cfg(feature = "serde")]
use whyloss_transport::quantity::Capacity;
use whyloss_transport::{BitRate, Duration, Instant};

/// One direction of a link: queue, then transmitter, then channel, then propagation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    /// The transmitter's rate over all octets of the IP packet. A `trace` takes its place.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Duration,
    /// Drop-tail queue in front of the transmitter.
    pub queue: QueueLimit,
    /// What it does to packets.
    pub channel: ChannelSpec,
    /// When the transmitter can send, instead of a rate.
    pub trace: Option<Arc<Trace>>,
    /// An extra delay that differs from packet to packet.
    pub jitter: Option<Jitter>,
    /// Packets may overtake each other where jitter, or a change of the delay, makes a later one arrive sooner. Otherwise it arrives
    /// together with the one before it. What [`reorder`](Self::reorder) picks overtakes all the same.
    pub overtaking: bool,
    /// A share of the packets leaves the order.
    pub reorder: Option<Reorder>,
    /// Probability of a packet that arrives to arrive twice. The second has a delay of its own; damage is the same in both.
    pub duplicate: f64,
    /// When the link is down.
    pub outage: Vec<Outage>,
    /// What becomes different while time passes; the times ascend.
    pub change: Vec<Change>,
}

/// What is different from some time on. Each field stays as it is then until another change.
///
/// `C` is what says what the link does to packets: a [`ChannelSpec`], or what a file says of one.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(
        rename = "Change",
        description = "What is different from some time on. Each field stays as it is then until another change."
    )
)]
pub struct Change<C = ChannelSpec> {
    /// From when on.
    pub at: Instant,
    /// Bit rate, also of what a packet in transmission still has to send. Not with a `trace`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub rate: Option<BitRate>,
    /// Propagation delay of packets whose transmission ends from now on.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub delay: Option<Duration>,
    /// Room in the queue for packets that come from now on.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub queue: Option<QueueLimit>,
    /// What the link does to packets whose transmission ends from now on; `{}` for nothing. Patterns are not possible here.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub channel: Option<C>,
}

impl<C> Change<C> {
    /// The same with another way to say what the link does to packets.
    pub fn map<D>(&self, channel: impl FnOnce(&C) -> D) -> Change<D> {
        let Self { at, rate, delay, queue, .. } = *self;
        Change { at, rate, delay, queue, channel: self.channel.as_ref().map(channel) }
    }
}

/// How much may wait for the transmitter. The packet in transmission is not counted.
///
/// ns-2.35 counts neither, but refuses the packet that would reach its limit: `limit_` 50 there lets 49 packets wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(from = "Capacity", into = "Capacity"))]
pub enum QueueLimit {
    /// No packet finds it full.
    #[default]
    Unlimited,
    /// This many packets.
    Packets(u32),
    /// This many octets.
    Octets(u64),
}

#[cfg(feature = "serde")]
impl From<Capacity> for QueueLimit {
    fn from(capacity: Capacity) -> Self {
        match capacity {
            Capacity::Packets(count) => Self::Packets(count as u32),
            Capacity::Octets(octets) => Self::Octets(octets),
        }
    }
}

#[cfg(feature = "serde")]
impl From<QueueLimit> for Capacity {
    fn from(limit: QueueLimit) -> Self {
        match limit {
            // A file has no word for it: the most that it can say.
            QueueLimit::Unlimited => Self::Packets(1_000_000_000),
            QueueLimit::Packets(count) => Self::Packets(u64::from(count)),
            QueueLimit::Octets(octets) => Self::Octets(octets),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for QueueLimit {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Capacity::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Capacity::json_schema(generator)
    }
}

impl QueueLimit {
    /// Whether a packet of so many octets finds room where so much waits.
    pub(crate) fn admits(self, packets: u64, waiting: u64, octets: u32) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(limit) => packets < u64::from(limit),
            Self::Octets(limit) => waiting + u64::from(octets) <= limit,
        }
    }

    fn flaw(self) -> Option<(String, &'static str)> {
        match self {
            Self::Packets(0) => Some(("0 packets".to_owned(), "at least 1 packet")),
            Self::Octets(0) => Some(("0 octets".to_owned(), "at least 1 octet")),
            _ => None,
        }
    }
}

impl LinkSpec {
    /// Whether rate, delay, queue and channel say everything.
    pub(crate) fn is_plain(&self) -> bool {
        let stable = self.trace.is_none() && self.outage.is_empty() && self.change.is_empty();
        stable && self.jitter.is_none() && self.reorder.is_none() && self.duplicate == 0.0
    }

    /// The first value that makes no sense, apart from those of channels.
    pub fn flaw(&self) -> Option<Flaw> {
        let zero = BitRate::from_bps(0);
        if self.rate == zero && self.trace.is_none() {
            return Some(("rate", self.rate.to_string(), "a rate above 0 bps"));
        }
        if let Some((found, allowed)) = self.queue.flaw() {
            return Some(("queue", found, allowed));
        }
        if !(0.0..=1.0).contains(&self.duplicate) {
            return Some(("duplicate", self.duplicate.to_string(), "a number from 0 to 1"));
        }
        let own = self.jitter.as_ref().and_then(Jitter::flaw);
        let own = own.or_else(|| self.reorder.as_ref().and_then(Reorder::flaw));
        let own = own.or_else(|| self.outage.iter().find_map(Outage::flaw));
        if own.is_some() {
            return own;
        }
        let mut before = None;
        for change in &self.change {
            let (at, nothing) = (change.at, Change { at: change.at, ..Change::default() });
            if before >= Some(at) {
                return Some(("change.at", at.to_string(), "a time after the one before it"));
            }
            before = Some(at);
            if *change == nothing {
                return Some(("change", "nothing but a time".to_owned(), "rate, delay, queue or channel"));
            }
            if change.rate.is_some() && self.trace.is_some() {
                return Some(("change.rate", "a rate on a link with a trace".to_owned(), "a change of delay, queue or channel"));
            }
            if change.rate == Some(zero) {
                return Some(("change.rate", zero.to_string(), "a rate above 0 bps"));
            }
            if let Some((found, allowed)) = change.queue.and_then(QueueLimit::flaw) {
                return Some(("change.queue", found, allowed));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outage::WhileDown;
    use crate::spread::JitterLaw;

    fn plain() -> LinkSpec {
        LinkSpec { rate: BitRate::from_bps(1_000_000), ..LinkSpec::default() }
    }

    #[test]
    fn what_only_has_the_old_fields_is_plain() {
        assert!(plain().is_plain());
        assert!(LinkSpec { overtaking: true, queue: QueueLimit::Packets(3), ..plain() }.is_plain(), "nothing overtakes on it");
        assert!(!LinkSpec { duplicate: 0.1, ..plain() }.is_plain());
        assert!(!LinkSpec { change: vec![Change::default()], ..plain() }.is_plain());
    }

    #[test]
    fn senseless_values_are_found() {
        let change = |ms, rate: u64| Change {
            at: Instant::ZERO + Duration::from_millis(ms),
            rate: Some(BitRate::from_bps(rate)),
            ..Change::default()
        };
        let jitter = Some(Jitter::new(Duration::ZERO, JitterLaw::Uniform));
        let reorder = Some(Reorder::late(1.5, Duration::from_millis(1)));
        let outage = Outage { at: Instant::ZERO, lasts: Duration::ZERO, every: None, packets: WhileDown::Dropped };
        for (spec, field) in [
            (LinkSpec { rate: BitRate::from_bps(0), ..plain() }, "rate"),
            (LinkSpec { queue: QueueLimit::Packets(0), ..plain() }, "queue"),
            (LinkSpec { duplicate: f64::NAN, ..plain() }, "duplicate"),
            (LinkSpec { jitter, ..plain() }, "jitter.mean"),
            (LinkSpec { reorder, ..plain() }, "reorder.share"),
            (LinkSpec { outage: vec![outage], ..plain() }, "outage.lasts"),
            (LinkSpec { change: vec![change(1, 1), change(1, 2)], ..plain() }, "change.at"),
            (LinkSpec { change: vec![change(1, 0)], ..plain() }, "change.rate"),
            (LinkSpec { change: vec![Change::default()], ..plain() }, "change"),
        ] {
            assert_eq!(spec.flaw().map(|(field, ..)| field), Some(field));
        }
        assert_eq!(LinkSpec { change: vec![change(1, 1), change(2, 2)], ..plain() }.flaw(), None);
    }
}
