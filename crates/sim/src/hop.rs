//! A link direction through the air.

use crate::address::StationId;
use crate::record::AirCounts;

/// A direction from one station to a neighbour.
#[derive(Debug)]
pub(crate) struct Hop {
    /// The station that sends.
    pub station: StationId,
    /// The station that receives.
    pub peer: StationId,
    /// Packets that wait at the sender for this neighbour.
    pub packets: u64,
    /// Octets of these packets.
    pub octets: u64,
    pub counts: AirCounts,
}

impl Hop {
    pub fn new(station: StationId, peer: StationId) -> Self {
        Self { station, peer, packets: 0, octets: 0, counts: AirCounts::default() }
    }

    /// Packets and octets that wait at the sender for this neighbour.
    pub const fn waiting(&self) -> (u64, u64) {
        (self.packets, self.octets)
    }
}
