//! Radio stations.

use super::channel::{Channel, Input};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use whyloss_sim::{ChannelSpec, Locking, Propagation, QueueLimit, RadioSpec};
use whyloss_transport::quantity::{Capacity, Length, OrNone, Rate, Size, Span};

/// Stations in a row, `hops` hops of `spacing` each: host `node0`, routers `node1`, `node2`, … and a host at the other end. Flows
/// that do not say `from` and `to` go from `node0` to the other end. `[radio]` says what stations they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Number of hops.
    pub hops: u32,
    /// Distance from each station to the next; `"200 m"` if nothing is said.
    #[serde(default = "spacing")]
    pub spacing: Length,
    /// What happens to packets that have arrived at `node0` or at the other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
}

const fn spacing() -> Length {
    Length(200_000)
}

/// An IEEE 802.11 radio channel and the stations on it: the nodes that have a `position`, or those of `[chain]`. Each pair of
/// stations that can decode each other is a link, called by the names of its ends with a hyphen between them.
///
/// If nothing is said, it is 802.11b with long preambles at 2 Mbit/s and the radio of ns-2: reception up to 250 m, carrier sense up
/// to 550 m.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Radio {
    /// Bit rate of data frames: 1, 2, 5.5 or 11 Mbps in 802.11b.
    pub rate: Rate,
    /// Bit rate of RTS, CTS and ACK frames.
    pub basic_rate: Rate,
    /// Data frames of at least this length, MAC header included, begin with RTS/CTS: `"1 B"` for all, `"none"` for none.
    pub rts: OrNone<Size>,
    /// Interface queue of each station, for all its neighbours together. The packet in service is not counted.
    pub queue: Capacity,
    /// What noise does to the frames from each station to each other: a frame that it hits is lost, and its sender tries again.
    /// Patterns are not possible here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Channel>,
    /// Time of preamble and PLCP header in front of every frame.
    pub preamble: Span,
    /// Time of a backoff slot.
    pub slot: Span,
    /// Short interframe space: between the frames of one exchange.
    pub sifs: Span,
    /// Idle time before backoff slots count.
    pub difs: Span,
    /// The same after a frame that the station listened to (see `locking`) and could not decode: SIFS, DIFS and the time of an ACK
    /// frame.
    pub eifs: Span,
    /// How long a signal must last before a station notices it; less than a slot.
    pub cca: Span,
    /// First contention window: a backoff is uniform from 0 to this many slots.
    pub cw_min: u32,
    /// Largest contention window; it goes from w to 2w + 1 with every failure.
    pub cw_max: u32,
    /// Attempts before a packet without RTS/CTS, or an RTS, is given up.
    pub short_retries: OrNone<u32>,
    /// Attempts before a packet whose RTS was answered is given up.
    pub long_retries: OrNone<u32>,
    /// Octets of MAC header and frame check sequence of a data frame.
    pub header_octets: u32,
    /// Octets of LLC and SNAP headers of a data frame.
    pub llc_octets: u32,
    /// Octets of an RTS frame.
    pub rts_octets: u32,
    /// Octets of a CTS frame.
    pub cts_octets: u32,
    /// Octets of an ACK frame.
    pub ack_octets: u32,
    /// Transmitted power in watts.
    pub power_w: f64,
    /// Carrier frequency in hertz.
    pub frequency_hz: f64,
    /// Height of the antennas above ground in metres; 0 for free space.
    pub height_m: f64,
    /// Least power in watts at which a frame can be decoded.
    pub receive_w: f64,
    /// Power in watts, of all signals together, from which on the medium is busy.
    pub sense_w: f64,
    /// A signal weaker than this, in watts, does not exist for its receiver.
    pub floor_w: f64,
    /// Thermal noise at every receiver in watts.
    pub noise_w: f64,
    /// Least ratio of a frame's power to noise and all other signals together at which it can be decoded; 10 is 10 dB. Spreading
    /// lets frames at 1 and 2 Mbps get by with less than 1.
    pub capture: f64,
    /// Which of several signals a receiver listens to.
    pub locking: Locking,
}

impl Default for Radio {
    fn default() -> Self {
        let spec = RadioSpec::default();
        let span = |duration: whyloss_transport::Duration| Span(duration.as_nanos());
        let retries = |count: u32| OrNone((count != u32::MAX).then_some(count));
        Self {
            rate: Rate(spec.rate.as_bps()),
            basic_rate: Rate(spec.basic_rate.as_bps()),
            rts: OrNone(spec.rts_threshold.map(|threshold| Size(u64::from(threshold) + 1))),
            queue: match spec.queue {
                QueueLimit::Unlimited => Capacity::Packets(1_000_000_000),
                QueueLimit::Packets(packets) => Capacity::Packets(u64::from(packets)),
                QueueLimit::Octets(octets) => Capacity::Octets(octets),
            },
            channel: None,
            preamble: span(spec.preamble),
            slot: span(spec.slot),
            sifs: span(spec.sifs),
            difs: span(spec.difs),
            eifs: span(spec.eifs),
            cca: span(spec.cca),
            cw_min: spec.cw_min,
            cw_max: spec.cw_max,
            short_retries: retries(spec.short_retries),
            long_retries: retries(spec.long_retries),
            header_octets: spec.header_octets,
            llc_octets: spec.llc_octets,
            rts_octets: spec.rts_octets,
            cts_octets: spec.cts_octets,
            ack_octets: spec.ack_octets,
            power_w: spec.propagation.power_w,
            frequency_hz: spec.propagation.frequency_hz,
            height_m: spec.propagation.height_m,
            receive_w: spec.receive_w,
            sense_w: spec.sense_w,
            floor_w: spec.floor_w,
            noise_w: spec.noise_w,
            capture: spec.capture,
            locking: spec.locking,
        }
    }
}

impl Radio {
    /// What the simulator makes of it.
    pub fn spec(&self) -> RadioSpec {
        let retries = |count: OrNone<u32>| count.0.unwrap_or(u32::MAX);
        RadioSpec {
            rate: self.rate.into(),
            basic_rate: self.basic_rate.into(),
            rts_threshold: self.rts.0.map(|size| u32::try_from(size.0 - 1).unwrap_or(u32::MAX)),
            queue: self.queue.into(),
            channel: self.channel.as_ref().map_or_else(ChannelSpec::default, |channel| channel.spec(None)),
            preamble: self.preamble.into(),
            slot: self.slot.into(),
            sifs: self.sifs.into(),
            difs: self.difs.into(),
            eifs: self.eifs.into(),
            cca: self.cca.into(),
            cw_min: self.cw_min,
            cw_max: self.cw_max,
            short_retries: retries(self.short_retries),
            long_retries: retries(self.long_retries),
            header_octets: self.header_octets,
            llc_octets: self.llc_octets,
            rts_octets: self.rts_octets,
            cts_octets: self.cts_octets,
            ack_octets: self.ack_octets,
            propagation: Propagation { power_w: self.power_w, frequency_hz: self.frequency_hz, height_m: self.height_m },
            receive_w: self.receive_w,
            sense_w: self.sense_w,
            floor_w: self.floor_w,
            noise_w: self.noise_w,
            capture: self.capture,
            locking: self.locking,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_what_the_simulator_has() {
        assert_eq!(Radio::default().spec(), RadioSpec::default());
    }
}
