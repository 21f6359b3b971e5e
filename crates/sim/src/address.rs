//! Numbers of things. Each kind has a type of its own, so that none is taken for another.

/// Defines a number that counts things of one kind from 0, in the order in which they were added.
macro_rules! number {
    ($(#[$doc:meta])* $type:vis $name:ident, $functions:vis) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $type struct $name(u32);

        impl $name {
            /// The number of the thing in this position.
            #[inline]
            $functions const fn new(index: usize) -> Self {
                Self(index as u32)
            }

            /// The position of the thing in the table of its kind.
            #[inline]
            $functions const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

number!(
    /// A host or router of a [`Builder`](crate::Builder).
    pub NodeId, pub(crate)
);
number!(
    /// A link of a [`Builder`](crate::Builder); its index counts links in the order in which they were added.
    pub LinkId, pub
);
number!(
    /// A direction of a link: two follow each other, forward and reverse.
    pub(crate) DirectionId, pub(crate)
);
number!(
    /// A host, counted without the routers. Its addresses follow from it. A damaged address may lead to a number that no host has.
    pub(crate) HostId, pub(crate)
);
number!(
    /// A router with agents.
    pub(crate) AssistedId, pub(crate)
);
number!(
    /// A flow: a connection or a stream of datagrams. Whoever drives it gives it its number.
    pub FlowId, pub
);
number!(
    /// An end of a flow: two follow each other, the sender of data and its receiver.
    pub EndpointId, pub
);
number!(
    /// A file that travels over several connections.
    pub(crate) FileId, pub(crate)
);
number!(
    /// An application that gives data at a rate.
    pub(crate) SourceId, pub(crate)
);
number!(
    /// Number of a radio channel in the network.
    pub(crate) MediumId, pub(crate)
);
number!(
    /// Number of a radio station in the network.
    pub(crate) StationId, pub(crate)
);
number!(
    /// A frame on the air. Its number is used again when its end has reached every station.
    pub(crate) TransmissionId, pub(crate)
);

/// Where a link direction leads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Host(HostId),
    Router(NodeId),
    /// A router with agents.
    Assisted(AssistedId),
}

/// A direction of a link or of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// From the first end to the second; from the sender of data to its receiver.
    Forward,
    /// From the second end to the first; from the receiver of data to its sender.
    Reverse,
}

impl Way {
    /// Both, in the order of their numbers.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }

    /// 0 or 1, for tables with an entry for each way.
    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    const fn of(number: u32) -> Self {
        if number % 2 == 0 {
            Self::Forward
        } else {
            Self::Reverse
        }
    }
}

/// Numbers that come in pairs, one for each way.
macro_rules! paired {
    ($name:ident of $whole:ident as $part:ident) => {
        impl $name {
            /// The one that belongs to this way.
            pub const fn of($part: $whole, way: Way) -> Self {
                Self(2 * $part.0 + way as u32)
            }

            /// What it is one half of.
            #[inline]
            pub const fn $part(self) -> $whole {
                $whole(self.0 / 2)
            }

            /// Which half it is.
            #[inline]
            pub const fn way(self) -> Way {
                Way::of(self.0)
            }

            /// The other one of the pair: the other end of a connection, or the other direction of a link.
            #[inline]
            pub const fn peer(self) -> Self {
                Self(self.0 ^ 1)
            }
        }
    };
}

paired!(DirectionId of LinkId as link);
paired!(EndpointId of FlowId as flow);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_know_their_whole_and_each_other() {
        let back = DirectionId::of(LinkId::new(7), Way::Reverse);
        assert_eq!((back.index(), back.link(), back.way()), (15, LinkId::new(7), Way::Reverse));
        assert_eq!(back.peer(), DirectionId::of(LinkId::new(7), Way::Forward));
        assert_eq!(back.peer().peer(), back);
        let sender = EndpointId::of(FlowId::new(3), Way::Forward);
        assert_eq!(
            (sender.index(), sender.flow(), sender.way(), sender.peer().way()),
            (6, FlowId::new(3), Way::Forward, Way::Reverse)
        );
    }
}
