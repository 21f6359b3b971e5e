//! What receivers report of packets, run by run: Ack Vector (RFC 4340, 11.4) and Data Dropped (11.7).
//!
//! Both begin with the packet that the acknowledgement number names and go to older ones.

/// What became of packets, as an Ack Vector says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Received without a CE mark.
    Received = 0,
    /// Received with a CE mark.
    Marked = 1,
    /// Reserved by RFC 4340.
    Reserved = 2,
    /// Not received yet.
    Missing = 3,
}

/// Packets in a row with one state: one octet of an Ack Vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What became of them.
    pub state: State,
    /// How many, 1 to [`Run::MAX`].
    pub packets: u8,
}

impl Run {
    /// The most packets that a run can name.
    pub const MAX: u8 = 64;

    /// The run of an octet: two bits of state, six of length less one.
    pub const fn read(octet: u8) -> Self {
        let state = match octet >> 6 {
            0 => State::Received,
            1 => State::Marked,
            2 => State::Reserved,
            _ => State::Missing,
        };
        Self { state, packets: (octet & 0x3F) + 1 }
    }

    /// The octet that says it in an Ack Vector.
    pub const fn octet(self) -> u8 {
        (self.state as u8) << 6 | (self.packets.wrapping_sub(1) & 0x3F)
    }
}

/// Why an endpoint dropped data of packets that it acknowledges: 3 bits (RFC 4340, 11.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DropCode(pub u8);

impl DropCode {
    /// Protocol constraints, such as unacceptable checksum coverage.
    pub const PROTOCOL: Self = Self(0);
    /// The application does not listen any more.
    pub const NOT_LISTENING: Self = Self(1);
    /// The receive buffer was full.
    pub const RECEIVE_BUFFER: Self = Self(2);
    /// The data was corrupt.
    pub const CORRUPT: Self = Self(3);
    /// The data was corrupt and the application got it all the same.
    pub const DELIVERED_CORRUPT: Self = Self(7);

    /// Whether it says that the data was corrupt, delivered or not.
    pub const fn is_corruption(self) -> bool {
        self.0 == Self::CORRUPT.0 || self.0 == Self::DELIVERED_CORRUPT.0
    }

    /// Whether the congestion control must behave as if the packet had been ECN-marked: codes 3 to 7 (RFC 4340, 11.7.2).
    pub const fn counts_as_mark(self) -> bool {
        self.0 >= 3
    }
}

/// Packets in a row of which the same is to be said: one octet of a Data Dropped option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// This many packets, 1 to 128, were not received or their data was delivered.
    Normal(u8),
    /// The data of this many packets, 1 to 16, was dropped.
    Dropped(DropCode, u8),
}

impl Block {
    /// The most packets that a normal block can name.
    pub const MAX_NORMAL: u8 = 128;
    /// The most packets that a drop block can name.
    pub const MAX_DROPPED: u8 = 16;

    /// The block of an octet.
    pub const fn read(octet: u8) -> Self {
        if octet & 0x80 == 0 {
            Self::Normal(octet + 1)
        } else {
            Self::Dropped(DropCode(octet >> 4 & 7), (octet & 0x0F) + 1)
        }
    }

    /// The octet that says it in Data Dropped.
    pub const fn octet(self) -> u8 {
        match self {
            Self::Normal(packets) => packets.wrapping_sub(1) & 0x7F,
            Self::Dropped(DropCode(code), packets) => 0x80 | (code & 7) << 4 | (packets.wrapping_sub(1) & 0x0F),
        }
    }

    /// How many packets it names.
    pub const fn packets(self) -> u8 {
        match self {
            Self::Normal(packets) | Self::Dropped(_, packets) => packets,
        }
    }

    /// Why the data of its packets was dropped, if it was.
    pub const fn code(self) -> Option<DropCode> {
        match self {
            Self::Normal(_) => None,
            Self::Dropped(code, _) => Some(code),
        }
    }
}
