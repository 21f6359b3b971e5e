//! Why a packet did not arrive.

use whyloss_transport::path::TrueCause;

/// What ended a packet's journey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A queue was full.
    QueueFull,
    /// A channel lost it without a trace.
    Erased,
    /// Damage in the IP header; the next node discarded it.
    IpHeaderDamaged,
    /// Damage in the transport header (and perhaps in the data); the receiving host discarded it.
    TransportHeaderDamaged,
    /// Damage in the data alone; the receiving host discarded it.
    PayloadDamaged,
    /// Damage sent it to a port or an address that no connection has.
    NoFlow,
    /// Damage sent it to an address that no route leads to.
    NoRoute,
    /// A radio station gave it up after its retry limit, and its receiver never got it. At least one of the failed attempts was not
    /// due to noise: a frame of the exchange met another on the air, or its receiver was deaf or bound not to answer. If noise alone
    /// did it, the cause is [`Cause::Erased`]. One that is given up although it arrived (its acknowledgements were lost) is no loss.
    Collision,
    /// A queue dropped it before it was full (active queue management).
    Aqm,
    /// The link was down while it was transmitted (an outage or a hand-off).
    LinkDown,
    /// A policer had no tokens for it.
    Policer,
}

impl Cause {
    /// All causes, in the order of their columns.
    pub const ALL: [Self; 11] = [
        Self::QueueFull,
        Self::Erased,
        Self::IpHeaderDamaged,
        Self::TransportHeaderDamaged,
        Self::PayloadDamaged,
        Self::NoFlow,
        Self::NoRoute,
        Self::Collision,
        Self::Aqm,
        Self::LinkDown,
        Self::Policer,
    ];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::Erased => "erased",
            Self::IpHeaderDamaged => "ip-header-damaged",
            Self::TransportHeaderDamaged => "transport-header-damaged",
            Self::PayloadDamaged => "payload-damaged",
            Self::NoFlow => "no-flow",
            Self::NoRoute => "no-route",
            Self::Collision => "collision",
            Self::Aqm => "aqm",
            Self::LinkDown => "link-down",
            Self::Policer => "policer",
        }
    }

    /// The cause in the terms of differentiation.
    pub const fn true_cause(self) -> TrueCause {
        match self {
            Self::Collision => TrueCause::Collision,
            _ if self.is_congestion() => TrueCause::Congestion,
            _ => TrueCause::Corruption,
        }
    }

    /// Whether the loss says that the network was overloaded: a queue, a policer (it was sent faster than it may), or stations
    /// that contend for the air (our reading; counted apart, so that anyone can read it otherwise). Every other cause says that a channel disturbed the packet; a link that was down
    /// counts there too: nobody was overloaded, and to send less would not have saved the packet.
    pub const fn is_congestion(self) -> bool {
        matches!(self, Self::QueueFull | Self::Aqm | Self::Policer | Self::Collision)
    }

    /// Whether it was dropped before it was transmitted.
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::QueueFull | Self::Aqm | Self::Policer)
    }
}

/// Number of packets by [`Cause`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CauseCounts([u64; Cause::ALL.len()]);

impl CauseCounts {
    /// Counts one more packet with this cause.
    pub fn add(&mut self, cause: Cause) {
        self.0[cause as usize] += 1;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Packets that ended by `cause`.
    pub const fn get(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// Packets that ended by any cause.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each cause with its number of packets.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::ALL.iter().map(|&cause| (cause, self.get(cause)))
    }
}

/// What really happened to a transmission that a sender took for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    /// The network lost the transmission, and by what.
    Lost(Cause),
    /// It arrived: the sender was wrong.
    Arrived,
    /// It was still under way when the run ended.
    InFlight,
    /// A middlebox has taken it out of the way, because its receiver had no need of it.
    Suppressed,
}

impl Truth {
    /// The name in tables: that of the cause, or "arrived", "in-flight" or "suppressed".
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lost(cause) => cause.name(),
            Self::Arrived => "arrived",
            Self::InFlight => "in-flight",
            Self::Suppressed => "suppressed",
        }
    }

    /// "congestion" or "corruption"; `None` if the transmission was not lost.
    pub const fn class(self) -> Option<&'static str> {
        match self {
            Self::Lost(cause) if cause.is_congestion() => Some("congestion"),
            Self::Lost(_) => Some("corruption"),
            Self::Arrived | Self::InFlight | Self::Suppressed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_counts_in_its_own_column() {
        let mut counts = CauseCounts::default();
        for (index, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index);
            (0..=index).for_each(|_| counts.add(cause));
        }
        assert!(counts.iter().enumerate().all(|(index, (_, count))| count == index as u64 + 1));
        assert_eq!(counts.total(), 66);
    }
}
