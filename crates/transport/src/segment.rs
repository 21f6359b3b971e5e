//! A TCP segment as a structured value.
//!
//! Simulator and wire exchange the same [`Segment`]. On the wire its payload is real octets; in a simulation it may be
//! [`Payload::Synthetic`], a range of a stream whose every octet is a function of its position, so that nothing has to be copied
//! and yet every octet can be produced, damaged and checked.

use crate::seq::Seq;
use crate::verdict::Cause;
use bytes::{Bytes, BytesMut};
use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A TCP segment with what the IP header says of it (its traffic class). Addresses belong to the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Port of the endpoint that sent it.
    pub src_port: u16,
    /// Port of the endpoint that it is for.
    pub dst_port: u16,
    /// Sequence number of the first octet (or of the SYN).
    pub seq: Seq,
    /// Acknowledgement number; meaningful with [`Flags::ACK`].
    pub ack: Seq,
    /// Control bits of the header.
    pub flags: Flags,
    /// Window field as it stands in the header, unscaled.
    pub window: u16,
    /// Urgent pointer; meaningful with [`Flags::URG`].
    pub urgent: u16,
    /// ECN codepoint of the IP header.
    pub ecn: Ecn,
    /// Differentiated services codepoint of the IP header.
    pub dscp: Dscp,
    /// TCP options, parsed.
    pub options: Options,
    /// The data, which may be synthetic.
    pub payload: Payload,
}

impl Segment {
    /// Octets of sequence space that the segment takes: data, SYN and FIN.
    pub fn seq_len(&self) -> u32 {
        self.payload.len() as u32 + u32::from(self.flags.contains(Flags::SYN)) + u32::from(self.flags.contains(Flags::FIN))
    }

    /// Length of the TCP header with its options and padding, in octets (20 to 60).
    pub fn header_len(&self) -> usize {
        20 + self.options.encoded_len()
    }

    /// Length of header and payload, in octets, without the IP header.
    pub fn len(&self) -> usize {
        self.header_len() + self.payload.len()
    }

    /// Whether the segment has no payload.
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }
}

/// The control bits of a TCP header.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// The sender asks for the data to be pushed to the application.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Flags, char); 8] = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::URG, 'U'),
            (Flags::ECE, 'E'),
            (Flags::CWR, 'W'),
            (Flags::ACK, '.'),
        ];
        NAMES.iter().filter(|(flag, _)| self.contains(*flag)).try_for_each(|(_, name)| write!(f, "{name}"))
    }
}

/// The ECN field of an IP header (RFC 3168, 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable = 0b00,
    /// ECN-capable, codepoint ECT(1).
    Capable1 = 0b01,
    /// ECN-capable, codepoint ECT(0).
    Capable0 = 0b10,
    /// Congestion experienced.
    CongestionExperienced = 0b11,
}

/// The differentiated services codepoint of an IP header: six bits (RFC 2474, 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dscp(pub u8);

impl Dscp {
    /// The default, best effort.
    pub const DEFAULT: Self = Self(0);
    /// Assured forwarding class 1, low drop precedence (RFC 2597, 6): "in".
    pub const AF11: Self = Self(10);
    /// Assured forwarding class 1, medium drop precedence (RFC 2597, 6): "out", what a congested queue drops first.
    pub const AF12: Self = Self(12);

    /// Whether a congested queue shall drop it before others of its class.
    pub const fn is_out(self) -> bool {
        self.0 == Self::AF12.0
    }
}

/// A timestamps option (RFC 7323, 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// `TSval`: the sender's clock.
    pub value: u32,
    /// `TSecr`: the echoed clock of the other side; meaningful with ACK.
    pub echo: u32,
}

/// Up to four SACK blocks `[left, right)`, the most recent first (RFC 2018; the first may be a D-SACK, RFC 2883).
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    count: u8,
    blocks: [(Seq, Seq); 4],
}

impl SackBlocks {
    /// Appends a block; returns whether there was room.
    pub fn push(&mut self, left: Seq, right: Seq) -> bool {
        let Some(slot) = self.blocks.get_mut(usize::from(self.count)) else { return false };
        *slot = (left, right);
        self.count += 1;
        true
    }

    /// The blocks in the order of the option.
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Number of blocks (0 to 4).
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there is no block.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Keeps the blocks of which `keep` says so.
    pub fn retain(&mut self, keep: impl Fn(Seq, Seq) -> bool) {
        let all = std::mem::take(self);
        for &(left, right) in all.as_slice().iter().filter(|(left, right)| keep(*left, *right)) {
            self.push(left, right);
        }
    }

    /// Keeps the first `count` blocks.
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count as u8);
    }
}

// Not derived: slots beyond the count keep what they held.
impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The options of a TCP header. What nearly every segment carries is inline, the rest is in [`RareOptions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size in octets (kind 2; SYN only).
    pub mss: Option<u16>,
    /// Window scale shift (kind 3; SYN only).
    pub window_scale: Option<u8>,
    /// SACK permitted (kind 4; SYN only).
    pub sack_permitted: bool,
    /// Timestamps (kind 8).
    pub timestamps: Option<Timestamps>,
    /// SACK blocks (kind 5).
    pub sack: SackBlocks,
    /// The value that a loss report has to echo (kind 253, sub-type `NONCE`); on data segments of the hardened checksum scheme.
    pub nonce: Option<u32>,
    /// A checksum of the header alone (kind 253, sub-type `HEADER_CHECK`), on data segments of TCP HACK. The wire format computes it.
    pub header_check: bool,
    /// The wave that the segment belongs to (kind 254, the publication's `TCP_REAL`); on data segments of TCP-Real.
    pub wave: Option<Wave>,
    /// Everything that few segments carry.
    pub rare: Option<Box<RareOptions>>,
}

impl Options {
    /// The value that a loss report has to echo, in whichever form it stands.
    pub fn any_nonce(&self) -> Option<u32> {
        self.rare.as_ref().and_then(|rare| rare.short_nonce).or(self.nonce)
    }
}

/// A wave of TCP-Real: segments that belong together (Tsaoussidis & Zhang 2002).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wave {
    /// Its number, modulo 256.
    pub number: u8,
    /// Its size in segments.
    pub size: u8,
}

/// How a data segment of WTCP left (Sinha et al. 1999; the layout is ours).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Separation {
    /// Which transmission of data of this side it is, modulo 256: what is missing between two was lost, retransmissions included.
    pub number: u8,
    /// Time from one segment to the next at the sender's rate, in microseconds, below 2^31; 0 while the sender has no rate.
    pub micros: u32,
    /// It left that long after the one before it. If the sender has no rate: at the same moment.
    pub kept: bool,
    /// The shortest round trip that the sender has measured, in units of 100 microseconds; 0 if it has not, 65535 if it is longer.
    pub trip: u16,
}

/// Options that few segments carry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RareOptions {
    /// "I can receive and send loss reports" (kind 253 with our `ExID` and nothing more; SYN only).
    pub reports_permitted: bool,
    /// "I can read reports and nonces in words" (kind 254 with our `ExID` and nothing more; SYN only, beside the one before).
    pub words_permitted: bool,
    /// The nonce in the form that takes eight octets, without its two highest bits (kind 253).
    pub short_nonce: Option<u32>,
    /// Loss report (kind 253).
    pub report: Option<Report>,
    /// Which parts of the SCPS transport protocol the sender of a SYN can do (kind 20; SYN only).
    pub scps: Option<ScpsCapabilities>,
    /// SCPS selective negative acknowledgements (kind 21), in the order of the header. One tells of all holes by its bits; without bits each
    /// tells of one hole.
    pub snacks: Vec<Snack>,
    /// What routers on the way say (kind 253).
    pub notices: Notices,
    /// A segment of a probe cycle (kind 253).
    pub probe: Option<Probe>,
    /// How the segment left (kind 253, sub-type `SEPARATION`); on data segments of WTCP.
    pub separation: Option<Separation>,
    /// A cookie of TCP Fast Open, or the request for one (kind 34; SYN only).
    pub fast_open: Option<FastOpen>,
    /// Options that we do not know, as `(kind, data)` in the order of the header. Never acted upon.
    pub unknown: Vec<(u8, Bytes)>,
}

/// The option of TCP Fast Open (RFC 7413, 4.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastOpen {
    /// The cookie; `None` asks for one.
    pub cookie: Option<Cookie>,
    /// In the format that was used before the option had a kind of its own (kind 254, `ExID` 0xF989).
    pub experimental: bool,
}

/// A cookie of TCP Fast Open: an even number of octets from 4 to 16.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie {
    len: u8,
    /// Zero beyond the length.
    octets: [u8; 16],
}

impl Cookie {
    /// The cookie of `octets`, if they can be one.
    pub fn new(octets: &[u8]) -> Option<Self> {
        if !(4..=16).contains(&octets.len()) || octets.len() % 2 != 0 {
            return None;
        }
        let mut cookie = Self { len: octets.len() as u8, octets: [0; 16] };
        cookie.octets[..octets.len()].copy_from_slice(octets);
        Some(cookie)
    }

    /// The cookie's octets, 4 to 16.
    pub fn as_slice(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// What a receiver reports of the causes of losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Report {
    /// A segment arrived damaged.
    Corruption(CorruptionReport),
    /// The same in eight octets.
    Compact(CompactReport),
    /// Several of these.
    List(CompactList),
    /// What a differentiator at the receiver thinks of an open hole.
    Cause(CauseReport),
    /// The header of a damaged segment has arrived intact.
    HeaderIntact(HeaderReport),
    /// The rate at which the last complete wave arrived.
    Rate(RateReport),
    /// The rate at which segments arrive.
    Bandwidth(BandwidthReport),
    /// The probability to survive the path undamaged that routers measured, as the latest data brought it, in units of 1/65535.
    Survival(u16),
    /// The time from one data segment to the next that the receiver asks for, in microseconds (Sinha et al. 1999; the layout is ours).
    Pace(u32),
}

/// A segment of a probe cycle: two requests, each with its answer (Tsaoussidis & Badr 2000; the layout is ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Which of the four.
    pub step: ProbeStep,
    /// Number of the cycle, modulo 256: an answer that is late is none.
    pub cycle: u8,
}

/// A step of a probe cycle. The numbers are those on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeStep {
    /// The first request.
    First = 1,
    /// The answer to it.
    FirstAnswer = 2,
    /// The second request.
    Second = 3,
    /// The answer to it.
    SecondAnswer = 4,
}

impl ProbeStep {
    /// What answers a request; `None` for an answer.
    pub const fn answer(self) -> Option<Self> {
        match self {
            Self::First => Some(Self::FirstAnswer),
            Self::Second => Some(Self::SecondAnswer),
            Self::FirstAnswer | Self::SecondAnswer => None,
        }
    }
}

/// What routers on the way tell the ends. A router may put a notice into any segment that has room for it; an end that does not expect it
/// does not act upon it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    /// On acknowledgements: data that was lost on a wireless link.
    pub explicit_loss: Option<ExplicitLoss>,
    /// On data: how many segments with data of this flow and direction a base station has sent over its wireless link so far, this one
    /// included, modulo 2^32 (Chen et al. 2002; the layout is ours).
    pub forwarded: Option<u32>,
    /// On control segments, which carry nothing else: a base station has seen a segment of the other direction.
    pub hop: Option<HopNotice>,
    /// On data: the probability that a packet survives the links so far undamaged, in units of 1/65535. The sender begins with 65535, routers
    /// multiply (Krishnan et al. 2004; the layout is ours).
    pub survival: Option<u16>,
}

/// The acknowledgement of a base station, to the sender of the data alone (Cobb & Agrawal 1995; the layout is ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HopNotice {
    /// The hop at which it stands.
    pub hop: Hop,
    /// First octet of the data that it saw.
    pub seq: Seq,
    /// Octets of the data that it saw.
    pub len: u16,
}

/// A wireless hop at one end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// The first: the data has come over it.
    First,
    /// The last: the data is about to be sent over it.
    Last,
}

/// Explicit loss notification (Balakrishnan & Katz 1998; the layout is ours): this data of the other direction was lost on a wireless link,
/// not in a queue.
///
/// The original is one bit and speaks of the segment at the acknowledgement number. This one names the data, so that it can speak of
/// each of several holes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplicitLoss {
    /// First octet of the lost data.
    pub seq: Seq,
    /// Octets of the lost data.
    pub len: u16,
}

/// The verdict of a differentiator at the receiver on a hole that is open (the layout is ours). It holds for this range of sequence numbers
/// and for nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseReport {
    /// The verdict; mixed evidence counts as congestion.
    pub cause: Cause,
    /// Number of the differentiator (0 to 15).
    pub classifier: u8,
    /// First octet of the hole.
    pub seq: Seq,
    /// Its length in octets. The option carries it rounded up to a multiple of 16 if it is larger than 65,535, of 256 from 1 MiB and of 4096
    /// from 16 MiB on.
    pub len: u32,
}

/// The rate at which a wave arrived (Tsaoussidis & Zhang 2002).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateReport {
    /// Number of the wave.
    pub wave: u8,
    /// How fast it arrived.
    pub rate: WaveRate,
}

/// How fast a wave arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveRate {
    /// On a scale where 255 is the highest that the receiver has seen so far: what it means changes with each new highest one
    /// (kind 253 without an identifier, the publication's `TCP_REAL_ACK`).
    Scaled(u8),
    /// As it was measured, in 16 bits (kind 253, sub-type `RATE`; ours): six of an exponent, then ten of a mantissa.
    Measured(u16),
}

impl WaveRate {
    const MANTISSA: u32 = 10;

    /// A rate as it was measured, in segments in 10^6 s, to a tenth of a per cent; at least 1024 of them.
    pub fn measured(rate: u64) -> Self {
        let rate = rate.max(1 << Self::MANTISSA);
        let exponent = rate.ilog2() - Self::MANTISSA;
        let mantissa = rate >> exponent & ((1 << Self::MANTISSA) - 1);
        Self::Measured((exponent << Self::MANTISSA) as u16 | mantissa as u16)
    }

    /// What can be compared: the part of the highest rate in units of 1/255, at least one, or segments in 10^6 s.
    pub fn value(self) -> f64 {
        match self {
            Self::Scaled(code) => f64::from(code.max(1)),
            Self::Measured(bits) => {
                let (exponent, mantissa) = (bits >> Self::MANTISSA, u64::from(bits) & ((1 << Self::MANTISSA) - 1));
                ((1 << Self::MANTISSA | mantissa) << exponent.min(53)) as f64
            }
        }
    }
}

/// The rate at which segments arrived out of sequence (Paul 2006, `congestion_info`; the layout is ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandwidthReport {
    /// The rate of their data in kbit/s.
    pub kbps: u32,
}

/// "A segment arrived damaged, and the checksum of its header holds" (Balan et al. 2002; the layout is ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderReport {
    /// First octet of the segment.
    pub seq: Seq,
    /// Which such segment of this connection it was, modulo 256: tells a repeated report from another segment.
    pub count: u8,
}

/// "A segment of this connection arrived with a broken checksum" (Garcia & Brunstrom 2004; the layout is ours).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorruptionReport {
    /// Cumulative number of damaged segments of this connection, modulo 256.
    pub count: u8,
    /// The damaged segment carried a CE mark in its intact IP header.
    pub congestion_experienced: bool,
    /// The receiver has suppressed other reports.
    pub rate_limited: bool,
    /// Which segment it was, if the receiver could tell.
    pub position: Option<ReportedPosition>,
    /// The nonce read from the damaged segment (hardened form).
    pub echo: Option<u32>,
}

/// A report of corruption where the header has room for eight octets only. It repeats no count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// First octet of the damaged segment less the acknowledgement number beside it; below 2^20. The receiver has confirmed it.
    pub offset: u32,
    /// The damaged segment carried a CE mark in its intact IP header.
    pub congestion_experienced: bool,
    /// The low ten bits of the nonce read from the damaged segment.
    pub echo: u16,
}

/// Several compact reports: as many as a header has room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactList {
    count: u8,
    reports: [CompactReport; CompactList::MOST],
}

impl CompactList {
    /// What 40 octets of options have room for.
    pub const MOST: usize = 9;

    /// Appends a report; returns whether there was room.
    pub fn push(&mut self, report: CompactReport) -> bool {
        let Some(place) = self.reports.get_mut(usize::from(self.count)) else { return false };
        *place = report;
        self.count += 1;
        true
    }

    /// The reports in the order of the option.
    pub fn as_slice(&self) -> &[CompactReport] {
        &self.reports[..usize::from(self.count)]
    }
}

/// Where in the stream the damaged segment stood, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedPosition {
    /// First octet of the damaged segment.
    pub seq: Seq,
    /// Its length in octets; 0 if not known. The option carries it rounded up to a multiple of 128, at most 1920.
    pub len: u16,
    /// How the receiver knows.
    pub basis: PositionBasis,
}

/// How a receiver came to a reported position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionBasis {
    /// The sequence number of the damaged segment equals one that the receiver expected independently.
    SeqConfirmed,
    /// Exactly this segment was missing between two intact arrivals around the damaged one.
    OrderInferred,
}

/// The SCPS capabilities option (CCSDS 714.0-B, SCPS-TP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScpsCapabilities {
    /// What the sender of the SYN can do: see the constants. Bits that are not named here are kept and mean nothing.
    pub flags: u8,
    /// Number of the connection, for compressed headers; else 0.
    pub connection: u8,
}

impl ScpsCapabilities {
    /// Best effort transport service.
    pub const BETS: u8 = 0x80;
    /// SNACKs, with bits or without.
    pub const SNACK: u8 = 0x40;
    /// The second form of SNACK.
    pub const SNACK2: u8 = 0x20;
    /// Header compression.
    pub const COMPRESSION: u8 = 0x10;
    /// Timestamps of the network layer.
    pub const NETWORK_TIMESTAMPS: u8 = 0x08;
}

/// A selective negative acknowledgement (CCSDS 714.0-B, SCPS-TP).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snack {
    /// Offset of the first hole from the acknowledgement number, in segments.
    pub hole1_offset: u16,
    /// Size of the first hole, in segments.
    pub hole1_size: u16,
    /// One bit a segment from the end of the first hole on, most significant first: 1 received, 0 missing; up to the last 1.
    pub bits: Bytes,
}

/// The data of a segment.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Payload {
    /// No data.
    #[default]
    Empty,
    /// Data with its content.
    Bytes(Bytes),
    /// `len` octets of the synthetic stream from `offset` on; see [`synthetic_octet`].
    Synthetic {
        /// Position of the first octet in the stream.
        offset: u64,
        /// Length of the data in octets.
        len: u32,
    },
}

impl Payload {
    /// Length of the data in octets.
    pub fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Bytes(bytes) => bytes.len(),
            Self::Synthetic { len, .. } => *len as usize,
        }
    }

    /// Whether there is no octet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The octets from `start` up to `end`, without a copy.
    ///
    /// # Panics
    /// If the range does not lie in the payload.
    pub fn slice(&self, start: usize, end: usize) -> Self {
        assert!(start <= end && end <= self.len(), "slice {start}..{end} of a payload of {} octets", self.len());
        if start == end {
            return Self::Empty;
        }
        match self {
            Self::Empty => Self::Empty,
            Self::Bytes(bytes) => Self::Bytes(bytes.slice(start..end)),
            Self::Synthetic { offset, .. } => Self::Synthetic { offset: offset + start as u64, len: (end - start) as u32 },
        }
    }

    /// Gives the octets memory of their own: what is held for long must not hold what it arrived with.
    pub fn detach(&mut self) {
        if let Self::Bytes(bytes) = self {
            *bytes = Bytes::copy_from_slice(bytes);
        }
    }

    /// Appends the octets to `out`.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Empty => {}
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Synthetic { offset, len } => out.extend((0..u64::from(*len)).map(|i| synthetic_octet(offset + i))),
        }
    }

    /// The octets, produced if they are synthetic.
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Synthetic { offset, len } => {
                let mut out = BytesMut::with_capacity(*len as usize);
                out.extend((0..u64::from(*len)).map(|i| synthetic_octet(offset + i)));
                out.freeze()
            }
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({} octets)", bytes.len()),
            Self::Synthetic { offset, len } => write!(f, "Synthetic({offset}+{len})"),
        }
    }
}

/// The octet at `offset` of the synthetic stream: the low octet of a multiplicative hash of its position.
pub const fn synthetic_octet(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// What is still known of a segment that a driver hands to an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Integrity {
    /// All checksums hold: nothing is damaged.
    #[default]
    Intact,
    /// The TCP checksum is broken, but something independent of it vouches for the header.
    PayloadDamaged,
    /// The TCP checksum is broken and nothing vouches for the header: every field may be wrong. The IP header is intact.
    HeaderSuspect,
}
