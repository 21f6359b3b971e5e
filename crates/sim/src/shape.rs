//! What shapes one direction of a wire.

use crate::channel::ChannelSpec;
use crate::error::Flaw;
use crate::outage::Outage;
use crate::policer::Policer;
use crate::spread::{Jitter, Reorder};
use crate::trace::Trace;
use std::sync::Arc;
#[cfg(feature = "serde")]
use whyloss_transport::quantity::Capacity;
use whyloss_transport::{BitRate, Duration, Instant};

/// Calls a macro with what is given to it and everything that shapes one direction of a link, so that it is listed once. Of each field
/// there is what it means, what holds if nothing is said, its type in a file, its type in a [`LinkSpec`], and its value there if nothing
/// is said. The types behind are what says what the link does to packets, and when it delivers.
#[doc(hidden)]
#[macro_export]
macro_rules! with_link_fields {
    ($make:ident!($($given:tt)*) $channel:ty, $trace:ty) => {
        $make! { ($($given)*)
            /// Bit rate over all octets of an IP packet.
            [" Needed, unless there is a `trace`."]
            rate: ::whyloss_transport::BitRate => ::whyloss_transport::BitRate = ::whyloss_transport::BitRate::from_bps(0),
            /// One-way propagation delay.
            [" If nothing is said it is `\"0 ms\"`."]
            delay: ::whyloss_transport::Duration => ::whyloss_transport::Duration = ::whyloss_transport::Duration::ZERO,
            /// How much waits in front of the link before packets are dropped at the tail. The packet in transmission is not counted.
            [" If nothing is said it is `\"100 pkt\"`."]
            queue: $crate::QueueLimit => $crate::QueueLimit = $crate::QueueLimit::Unlimited,
            /// A token bucket in front of the queue that drops what exceeds it.
            [" None if nothing is said."]
            policer: $crate::Policer => Option<$crate::Policer> = None,
            /// What the queue does beside dropping at the tail.
            [" Nothing if nothing is said."]
            discipline: $crate::Discipline => Option<$crate::Discipline> = None,
            /// What the link does to packets.
            [" Nothing if nothing is said."]
            channel: $channel => $channel = Default::default(),
            /// A file in mahimahi's format with the times at which the link delivers, instead of a `rate`: whole milliseconds, one line for each
            /// packet of full length; it begins again at its end. Relative to the scenario file, with `{run}` as in patterns.
            []
            trace: $trace => Option<$trace> = None,
            /// Octets that each line of a `trace` delivers. Packets share them, and long ones take several.
            [" If nothing is said it is `\"1504 B\"`."]
            trace_octets: ::whyloss_transport::quantity::Size => u64 = $crate::Trace::OCTETS,
            /// An extra delay that differs from packet to packet.
            [" None if nothing is said."]
            jitter: $crate::Jitter => Option<$crate::Jitter> = None,
            /// Whether packets may overtake each other by `jitter` or by a change of the delay. If they may not, one that would arrive too
            /// soon arrives together with the one before it. What `reorder` picks overtakes all the same.
            [" If nothing is said they may not."]
            overtaking: bool => bool = false,
            /// A share of the packets leaves the order.
            [" None if nothing is said."]
            reorder: $crate::Reorder => Option<$crate::Reorder> = None,
            /// Probability of a packet that arrives to arrive twice.
            // The second has a delay of its own; damage is the same in both.
            [" If nothing is said it is 0."]
            duplicate: ::whyloss_transport::quantity::Probability => f64 = 0.0,
            /// When the link is down.
            [" Never if nothing is said."]
            outage: Vec<$crate::Outage> => Vec<$crate::Outage> = Vec::new(),
            /// What becomes different while time passes; the times ascend.
            []
            change: Vec<$crate::Change<$channel>> => Vec<$crate::Change<$channel>> = Vec::new(),
        }
    };
}

/// Defines [`LinkSpec`], and beside it what a file can say of it.
macro_rules! direction {
    (() $($(#[doc = $doc:literal])* [$($unsaid:literal)?] $field:ident: $given:ty => $type:ty = $default:expr,)*) => {
        /// One direction of a link: policer, then queue, then transmitter, then channel, then propagation.
        ///
        /// `C` is what says what the link does to packets, and `T` when it delivers: the thing itself, or what a file says of it.
        #[derive(Clone, Debug, PartialEq)]
        pub struct LinkSpec<C = ChannelSpec, T = Arc<Trace>> {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl<C: Default, T> Default for LinkSpec<C, T> {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        /// What is different in one direction of a link. What is not given here is as it is in both directions.
        #[cfg(feature = "serde")]
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Direction"))]
        #[serde(deny_unknown_fields, default)]
        pub struct DirectionSpec<C, T> {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $field: Option<$given>,
            )*
        }

        #[cfg(feature = "serde")]
        impl<C, T> Default for DirectionSpec<C, T> {
            fn default() -> Self {
                Self { $($field: None,)* }
            }
        }

        #[cfg(feature = "serde")]
        impl<C: Clone, T: Clone> DirectionSpec<C, T> {
            /// `base` with what is given here.
            pub fn apply(&self, base: LinkSpec<C, T>) -> LinkSpec<C, T> {
                LinkSpec { $($field: self.$field.clone().map_or(base.$field, Into::into),)* }
            }

            /// Whether it says something of the field of this name.
            pub fn says(&self, field: &str) -> bool {
                $((field == stringify!($field) && self.$field.is_some()))||*
            }
        }
    };
}

with_link_fields!(direction!() C, T);

impl<C, T> LinkSpec<C, T> {
    /// The same with other ways to say what the link does to packets, and when it delivers.
    pub fn map<D, U>(&self, channel: impl Fn(&C) -> D, trace: impl FnOnce(&T) -> Option<U>) -> LinkSpec<D, U> {
        let Self { rate, delay, queue, policer, discipline, trace_octets, jitter, overtaking, reorder, duplicate, .. } = *self;
        LinkSpec {
            rate,
            delay,
            queue,
            policer,
            discipline,
            channel: channel(&self.channel),
            trace: self.trace.as_ref().and_then(trace),
            trace_octets,
            jitter,
            overtaking,
            reorder,
            duplicate,
            outage: self.outage.clone(),
            change: self.change.iter().map(|change| change.map(&channel)).collect(),
        }
    }
}

/// One direction of a wire, or a stretch of it, by its name.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Its name, `from>to`, from which its random streams follow; see [`LinkNames`](crate::LinkNames).
    pub name: String,
    /// What it is like.
    pub spec: LinkSpec,
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
    // No `default`, which would ask for one of `C`: what is missing is none.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
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

    /// Whether so much may wait.
    pub(crate) const fn holds(self, packets: u64, waiting: u64) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(limit) => packets <= limit as u64,
            Self::Octets(limit) => waiting <= limit,
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

impl<C> LinkSpec<C> {
    /// The rate, or the mean rate of the trace, as far as it is known beforehand.
    pub(crate) fn mean_rate(&self) -> BitRate {
        match &self.trace {
            Some(trace) => BitRate::from_bps(trace.mean_bps(self.trace_octets) as u64),
            None => self.rate,
        }
    }
}

impl<C: Default + PartialEq, T> LinkSpec<C, T> {
    /// Whether rate, delay, queue, channel and what the queue does to packets that come say everything.
    pub(crate) fn is_plain(&self) -> bool {
        let stable = self.trace.is_none() && self.outage.is_empty() && self.change.is_empty();
        let stable = stable && !self.discipline.is_some_and(|discipline| discipline.acts_at_departure());
        stable && self.jitter.is_none() && self.reorder.is_none() && self.duplicate == 0.0
    }

    /// The first value that makes no sense, apart from those of channels and of what the queue does.
    pub fn flaw(&self) -> Option<Flaw> {
        let zero = BitRate::from_bps(0);
        if self.rate == zero && self.trace.is_none() {
            return Some(("rate", self.rate.to_string(), "a rate above 0 bps"));
        }
        if let Some((found, allowed)) = self.queue.flaw() {
            return Some(("queue", found, allowed));
        }
        if self.trace.is_some() && !(1..=1 << 30).contains(&self.trace_octets) {
            return Some(("trace_octets", format!("{} B", self.trace_octets), "1 B to 1 GiB"));
        }
        if !(0.0..=1.0).contains(&self.duplicate) {
            return Some(("duplicate", self.duplicate.to_string(), "a number from 0 to 1"));
        }
        let own = self.policer.as_ref().and_then(Policer::flaw);
        let own = own.or_else(|| self.jitter.as_ref().and_then(Jitter::flaw));
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
    use crate::queue::{CoDel, Discipline};
    use crate::spread::JitterLaw;

    fn plain() -> LinkSpec {
        LinkSpec { rate: BitRate::from_bps(1_000_000), ..LinkSpec::default() }
    }

    #[test]
    fn what_only_has_the_old_fields_is_plain() {
        assert!(plain().is_plain());
        assert!(LinkSpec { overtaking: true, queue: QueueLimit::Packets(3), ..plain() }.is_plain(), "nothing overtakes on it");
        assert!(LinkSpec { policer: Some(Policer { rate: BitRate::from_bps(1), burst: 1 }), ..plain() }.is_plain());
        assert!(LinkSpec { discipline: Some(Discipline::Biased), ..plain() }.is_plain());
        assert!(!LinkSpec { discipline: Some(Discipline::CoDel(CoDel::default())), ..plain() }.is_plain());
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
        let outage = Outage::once(Instant::ZERO, Duration::ZERO);
        let policer = Some(Policer { rate: BitRate::from_bps(1), burst: 0 });
        for (spec, field) in [
            (LinkSpec { rate: BitRate::from_bps(0), ..plain() }, "rate"),
            (LinkSpec { queue: QueueLimit::Packets(0), ..plain() }, "queue"),
            (LinkSpec { trace: Trace::new(&[1]).map(Arc::new), trace_octets: 0, ..plain() }, "trace_octets"),
            (LinkSpec { duplicate: f64::NAN, ..plain() }, "duplicate"),
            (LinkSpec { policer, ..plain() }, "policer.burst"),
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
