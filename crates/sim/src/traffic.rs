//! What a link direction has carried, counted.

use crate::truth::CauseCounts;

/// What a direction has carried. What every packet counts stands first.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Traffic {
    pub offered: u64,
    pub offered_octets: u64,
    pub delivered: u64,
    pub delivered_octets: u64,
    /// How long the transmitter was busy, in nanoseconds.
    pub busy: u64,
    mishaps: Option<Box<Mishaps>>,
    pub max_packets: u64,
    pub max_octets: u64,
    /// Waiting times of all packets, added up, in nanoseconds and in nanosecond-octets: divided by the time they give the mean
    /// queue (Little 1961).
    pub waited: u128,
    pub waited_octets: u128,
}

/// What has happened to packets that did not just cross. Most directions of a large network have nothing of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mishaps {
    pub damaged: u64,
    /// Packets that came twice.
    pub duplicated: u64,
    pub dropped: CauseCounts,
}

impl Traffic {
    /// What has happened to packets, to count more of it.
    #[cold]
    pub fn mishap(&mut self) -> &mut Mishaps {
        self.mishaps.get_or_insert_default()
    }

    /// What has happened to packets.
    pub fn mishaps(&self) -> Mishaps {
        self.mishaps.as_deref().copied().unwrap_or_default()
    }

    /// A packet of so many octets comes.
    #[inline]
    pub fn note_offer(&mut self, octets: u32) {
        self.offered += 1;
        self.offered_octets += u64::from(octets);
    }

    /// So much waits now.
    pub fn note_queue(&mut self, packets: u64, octets: u64) {
        self.max_packets = self.max_packets.max(packets);
        self.max_octets = self.max_octets.max(octets);
    }

    /// A packet waits so many nanoseconds.
    pub fn note_wait(&mut self, span: u64, octets: u32) {
        self.waited += u128::from(span);
        self.waited_octets += u128::from(span) * u128::from(octets);
    }

    /// A packet waits so many nanoseconds less than was noted.
    pub fn take_wait(&mut self, span: u64, octets: u32) {
        self.waited -= u128::from(span);
        self.waited_octets -= u128::from(span) * u128::from(octets);
    }
}
