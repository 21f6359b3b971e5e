//! What stations of a radio network have in common.

use super::propagation::{self, distance};
use crate::channel::ChannelSpec;
use crate::error::ChannelError;
use crate::shape::QueueLimit;
#[cfg(feature = "schema")]
use whyloss_transport::quantity::{OrNone, Size};
use whyloss_transport::{BitRate, Duration};

/// An IEEE 802.11 radio channel and the stations on it: the nodes that have a `position`, or those of `[chain]`. Each pair of
/// stations that can decode each other is a link, called by the names of its ends with a hyphen between them.
///
/// If nothing is said, it is 802.11b with long preambles at 2 Mbit/s and the radio of ns-2: reception up to 250 m, carrier sense up
/// to 550 m.
// The stations take turns by the distributed coordination function (DCF). `C` is what says what noise does to frames: a
// [`ChannelSpec`], or what a file says of one.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Radio"))]
pub struct RadioSpec<C = ChannelSpec> {
    /// Bit rate of data frames: 1, 2, 5.5 or 11 Mbps in 802.11b.
    pub rate: BitRate,
    /// Bit rate of RTS, CTS and ACK frames.
    pub basic_rate: BitRate,
    /// Data frames of at least this length, MAC header included, begin with RTS/CTS: `"1 B"` for all, `"none"` for none.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::size_or_none"))]
    #[cfg_attr(feature = "schema", schemars(with = "OrNone<Size>"))]
    pub rts: Option<u64>,
    /// Interface queue of each station, for all its neighbours together. The packet in service is not counted.
    pub queue: QueueLimit,
    /// What noise does to frames: one that it hits is lost, and its sender tries again. Patterns are not possible here.
    // It is lost whatever the effect.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub channel: Option<C>,
    /// Which frames go through one and the same `channel`. It matters where errors come in bursts.
    pub channel_scope: ChannelScope,
    /// Time of preamble and PLCP header in front of every frame.
    pub preamble: Duration,
    /// Time of a backoff slot.
    pub slot: Duration,
    /// Short interframe space: between the frames of one exchange.
    pub sifs: Duration,
    /// Idle time before backoff slots count.
    pub difs: Duration,
    /// The same after a frame that the station listened to (see `locking`) and could not decode: SIFS, DIFS and the time of an ACK
    /// frame.
    pub eifs: Duration,
    /// How long a signal must last before a station notices it; less than a slot.
    // What began less than this before a station's own slot does not stop it: this is what makes two stations with equal backoffs
    // collide in spite of the distance between them. 15 us (aCCATime) in 802.11b; ns-2 and ns-3 notice at once.
    pub cca: Duration,
    /// First contention window: a backoff is uniform from 0 to this many slots.
    pub cw_min: u32,
    /// Largest contention window; it goes from w to 2w + 1 with every failure.
    pub cw_max: u32,
    /// Attempts before a packet without RTS/CTS, or an RTS, is given up.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::count_or_none"))]
    #[cfg_attr(feature = "schema", schemars(with = "OrNone<u32>"))]
    pub short_retries: Option<u32>,
    /// Attempts before a packet whose RTS was answered is given up.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::count_or_none"))]
    #[cfg_attr(feature = "schema", schemars(with = "OrNone<u32>"))]
    pub long_retries: Option<u32>,
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

/// Which frames go through one and the same channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ChannelScope {
    /// Those from one station to one other.
    #[default]
    Pair,
    /// Those to one station.
    Receiver,
    /// Those from one station.
    Sender,
    /// All frames of the medium.
    Medium,
}

/// Which of several signals a receiver listens to.
// One that it listens to is lost as soon as it falls below [`RadioSpec::capture`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Locking {
    /// The first that it senses, even one too weak to decode; it is deaf to whatever begins before the medium is idle again (ns-2).
    #[default]
    Sensed,
    /// The first that it can decode; signals too weak for that are nothing but noise.
    Decodable,
    /// As "decodable", but it leaves a frame for a later one that can be decoded in spite of it.
    Strongest,
}

impl<C> Default for RadioSpec<C> {
    fn default() -> Self {
        Self {
            rate: BitRate::from_bps(2_000_000),
            basic_rate: BitRate::from_bps(1_000_000),
            preamble: Duration::from_micros(192),
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            difs: Duration::from_micros(50),
            // SIFS + DIFS + an ACK at 1 Mbit/s.
            eifs: Duration::from_micros(364),
            cca: Duration::from_micros(15),
            cw_min: 31,
            cw_max: 1023,
            short_retries: Some(7),
            long_retries: Some(4),
            rts: Some(1),
            header_octets: 28,
            llc_octets: 8,
            rts_octets: 20,
            cts_octets: 14,
            ack_octets: 14,
            queue: QueueLimit::Packets(50),
            power_w: 0.2818,
            frequency_hz: 914e6,
            height_m: 1.5,
            receive_w: 3.652e-10,
            sense_w: 1.559e-11,
            // kTB over 22 MHz at 290 K with a noise figure of 7 dB.
            floor_w: 4.4e-13,
            noise_w: 4.4e-13,
            capture: 10.0,
            locking: Locking::Sensed,
            channel: None,
            channel_scope: ChannelScope::Pair,
        }
    }
}

impl<C> RadioSpec<C> {
    /// Received power in watts at a distance in metres: the two-ray model, free space below its crossover distance.
    pub fn received_w(&self, distance: f64) -> f64 {
        propagation::received_w(self.power_w, self.frequency_hz, self.height_m, distance)
    }

    /// The same with another way to say what noise does to frames.
    pub fn map<D>(&self, channel: impl FnOnce(&C) -> D) -> RadioSpec<D> {
        let channel = self.channel.as_ref().map(channel);
        let Self { rate, basic_rate, rts, queue, preamble, slot, sifs, difs, eifs, cca, cw_min, cw_max, .. } = *self;
        let Self { short_retries, long_retries, header_octets, llc_octets, rts_octets, cts_octets, ack_octets, .. } = *self;
        let Self {
            power_w, frequency_hz, height_m, receive_w, sense_w, floor_w, noise_w, capture, locking, channel_scope, ..
        } = *self;
        RadioSpec {
            rate,
            basic_rate,
            rts,
            queue,
            channel,
            channel_scope,
            preamble,
            slot,
            sifs,
            difs,
            eifs,
            cca,
            cw_min,
            cw_max,
            short_retries,
            long_retries,
            header_octets,
            llc_octets,
            rts_octets,
            cts_octets,
            ack_octets,
            power_w,
            frequency_hz,
            height_m,
            receive_w,
            sense_w,
            floor_w,
            noise_w,
            capture,
            locking,
        }
    }

    /// Whether a station at one position, in metres, can decode one at the other when nothing else is on the air.
    pub fn reaches(&self, here: [f64; 2], there: [f64; 2]) -> bool {
        let power = self.received_w(distance(here, there));
        power >= self.receive_w && power >= self.capture * self.noise_w
    }
}

impl RadioSpec {
    /// Whether every value makes sense.
    pub fn check(&self) -> Result<(), ChannelError> {
        let unfit = |field, found: String, allowed| Err(ChannelError { field, found, allowed });
        for (field, rate) in [("rate", self.rate), ("basic_rate", self.basic_rate)] {
            if rate.as_bps() == 0 {
                return unfit(field, rate.to_string(), "a rate above 0 bps");
            }
        }
        if self.slot == Duration::ZERO {
            return unfit("slot", self.slot.to_string(), "a time above zero");
        }
        if self.cca >= self.slot {
            return unfit("cca", self.cca.to_string(), "less than a slot");
        }
        if self.difs < self.sifs {
            return unfit("difs", self.difs.to_string(), "at least sifs");
        }
        if self.eifs < self.difs {
            return unfit("eifs", self.eifs.to_string(), "at least difs");
        }
        if self.cw_max < self.cw_min || self.cw_max > 1 << 20 {
            return unfit("cw_max", self.cw_max.to_string(), "from cw_min to 1048576");
        }
        for (field, retries) in [("short_retries", self.short_retries), ("long_retries", self.long_retries)] {
            if retries == Some(0) {
                return unfit(field, "0".to_owned(), "1 or more");
            }
        }
        match self.queue {
            QueueLimit::Packets(0) => return unfit("queue", "0 packets".to_owned(), "at least 1 packet"),
            QueueLimit::Octets(0) => return unfit("queue", "0 octets".to_owned(), "at least 1 octet"),
            _ => {}
        }
        let lengths = [self.header_octets, self.llc_octets, self.rts_octets, self.cts_octets, self.ack_octets];
        if let Some(longest) = lengths.into_iter().find(|&octets| octets > 1000) {
            return unfit("octets of a header or control frame", longest.to_string(), "at most 1000");
        }
        let powers = [("receive_w", self.receive_w), ("sense_w", self.sense_w), ("floor_w", self.floor_w)];
        for (field, power) in powers {
            if !(power > 0.0 && power.is_finite()) {
                return unfit(field, power.to_string(), "a power above 0 W");
            }
        }
        if self.sense_w > self.receive_w || self.floor_w > self.receive_w {
            return unfit("receive_w", self.receive_w.to_string(), "at least sense_w and floor_w");
        }
        if !(self.noise_w >= 0.0 && self.noise_w < self.sense_w) {
            return unfit("noise_w", self.noise_w.to_string(), "from 0 W to below sense_w");
        }
        if !(self.capture > 0.0 && self.capture.is_finite()) {
            return unfit("capture", self.capture.to_string(), "a ratio above 0");
        }
        self.check_signal()?;
        self.channel.as_ref().map_or(Ok(()), ChannelSpec::check)
    }

    /// Whether what is said of the signal makes sense.
    fn check_signal(&self) -> Result<(), ChannelError> {
        let values = [
            ("power_w", self.power_w, self.power_w > 0.0, "a power above 0 W"),
            ("frequency_hz", self.frequency_hz, self.frequency_hz > 0.0, "a frequency above 0 Hz"),
            ("height_m", self.height_m, self.height_m >= 0.0, "0 m or more"),
        ];
        match values.into_iter().find(|(_, value, fits, _)| !fits || !value.is_finite()) {
            Some((field, value, _, allowed)) => Err(ChannelError { field, found: value.to_string(), allowed }),
            None => Ok(()),
        }
    }
}
