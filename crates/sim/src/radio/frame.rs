//! Frames and their times.

use super::spec::RadioSpec;
use crate::address::{DirectionId, StationId};
use whyloss_transport::BitRate;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rts,
    Cts,
    Data,
    Ack,
}

/// A frame on the air.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub kind: Kind,
    pub from: StationId,
    pub to: StationId,
    /// The link direction from the one to the other.
    pub direction: DirectionId,
    /// Octets behind the preamble.
    pub octets: u32,
    /// Nanoseconds on the air.
    pub airtime: u64,
    /// Nanoseconds after its end for which it reserves the medium (the duration field).
    pub reserved: u64,
}

/// Octets of control frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    pub rts: u32,
    pub cts: u32,
    pub ack: u32,
}

/// A [`RadioSpec`] in nanoseconds.
#[derive(Debug)]
pub(super) struct Timing {
    pub slot: u64,
    pub sifs: u64,
    pub difs: u64,
    pub eifs: u64,
    pub cca: u64,
    pub rts: u64,
    pub cts: u64,
    pub ack: u64,
    pub control: Control,
    preamble: u64,
    rate: BitRate,
    overhead: u32,
}

impl Timing {
    pub fn new(spec: &RadioSpec) -> Self {
        let preamble = spec.preamble.as_nanos();
        let control = |octets| preamble + microseconds(spec.basic_rate, octets);
        Self {
            slot: spec.slot.as_nanos(),
            sifs: spec.sifs.as_nanos(),
            difs: spec.difs.as_nanos(),
            eifs: spec.eifs.as_nanos(),
            cca: spec.cca.as_nanos(),
            rts: control(spec.rts_octets),
            cts: control(spec.cts_octets),
            ack: control(spec.ack_octets),
            control: Control { rts: spec.rts_octets, cts: spec.cts_octets, ack: spec.ack_octets },
            preamble,
            rate: spec.rate,
            overhead: spec.header_octets + spec.llc_octets,
        }
    }

    /// Octets and time of the data frame that carries an IP packet.
    pub fn data(&self, packet_octets: u32) -> (u32, u64) {
        let octets = packet_octets + self.overhead;
        (octets, self.preamble + microseconds(self.rate, octets))
    }
}

/// Time of octets at a rate, up to the next microsecond (IEEE 802.11, 18.2.3.5), in nanoseconds.
fn microseconds(rate: BitRate, octets: u32) -> u64 {
    (u64::from(octets) * 8_000_000).div_ceil(rate.as_bps()) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_take_their_time() {
        let timing = Timing::new(&RadioSpec::default());
        assert_eq!((timing.rts, timing.cts, timing.ack), (352_000, 304_000, 304_000));
        // (1064 + 28 + 8) octets at 2 Mbit/s and 192 us.
        assert_eq!(timing.data(1064), (1100, 4_592_000));
        let fast = RadioSpec { rate: BitRate::from_bps(11_000_000), ..RadioSpec::default() };
        // 8800 bits at 11 Mbit/s are 800 us; 8808 are 800.7 us.
        assert_eq!(Timing::new(&fast).data(1064).1, 992_000);
        assert_eq!(Timing::new(&fast).data(1065).1, 993_000);
    }
}
