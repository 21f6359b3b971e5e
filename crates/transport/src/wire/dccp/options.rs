//! DCCP options (RFC 4340, 5.8) and those of CCID 3 (RFC 4342, 8).

use super::features::FeatureOption;
use super::vectors::{Block, Run};
use super::EmitError;
use bytes::Bytes;
use std::ops::Range;

/// An option. Padding is not an option: it is written where it is needed and skipped where it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opt {
    /// The next option has to be understood (1).
    Mandatory,
    /// The receiver does not keep up (2).
    SlowReceiver,
    /// Feature negotiation (32 to 35).
    Feature(FeatureOption),
    /// Which packets were received (38 and 39), from the one that the acknowledgement number names to older ones.
    AckVector {
        /// The sum of the ECN nonces of all packets that are reported as received.
        nonce: bool,
        /// What became of them.
        runs: Vec<Run>,
    },
    /// Whose data was dropped (40), in the order of an Ack Vector.
    DataDropped(Vec<Block>),
    /// The sender's clock in units of 10 us (41).
    Timestamp(u32),
    /// An echoed Timestamp (42).
    TimestampEcho {
        /// The Timestamp that is echoed, in units of 10 us.
        value: u32,
        /// Time since it was received, in units of 10 us.
        elapsed: u32,
    },
    /// Time since the packet that the acknowledgement number names was received, in units of 10 us (43).
    ElapsedTime(u32),
    /// The CRC-32c of the application data is here (44). The value is written and checked on the wire.
    DataChecksum,
    /// CCID 3: the inverse of the loss event rate, [`u32::MAX`] for a rate of zero (192).
    LossEventRate(u32),
    /// CCID 3: the last loss intervals, the newest first (193).
    LossIntervals {
        /// Packets at the end of the sequence that are in no interval yet.
        skip: u8,
        /// The intervals, at most [`LossInterval::MAX`] of them.
        intervals: Vec<LossInterval>,
    },
    /// CCID 3: data received, in octets per second (194).
    ReceiveRate(u32),
    /// An option that is not known, with its data. Kinds below 32 have none.
    Unknown(u8, Bytes),
}

/// A loss interval: packets from a loss event on up to the next, those that may belong to it first (RFC 4342, 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossInterval {
    /// Packets without a loss or mark at its end.
    pub lossless: u32,
    /// The sum of the ECN nonces of these packets.
    pub nonce: bool,
    /// Packets within a round-trip time of its first loss or mark; 0 only for the interval before the first loss.
    pub lossy: u32,
    /// Packets with data in both parts.
    pub data: u32,
}

impl LossInterval {
    /// The most intervals in one option.
    pub const MAX: usize = 28;
    const OCTETS: usize = 9;
    /// Lengths have 24 bits, the lossy one 23.
    const MOST: u32 = (1 << 24) - 1;

    fn write(&self, out: &mut Vec<u8>) {
        let lossy = self.lossy.min(Self::MOST >> 1) | u32::from(self.nonce) << 23;
        for length in [self.lossless.min(Self::MOST), lossy, self.data.min(Self::MOST)] {
            out.extend_from_slice(&length.to_be_bytes()[1..]);
        }
    }

    fn read(octets: &[u8]) -> Self {
        let length = |at: usize| u32::from_be_bytes([0, octets[at], octets[at + 1], octets[at + 2]]);
        let lossy = length(3);
        Self { lossless: length(0), nonce: lossy >> 23 == 1, lossy: lossy & (Self::MOST >> 1), data: length(6) }
    }
}

const PADDING: u8 = 0;
/// Options up to this kind are a single octet.
const LAST_SHORT: u8 = 31;
/// The most data in one option.
const MAX_DATA: usize = 253;

impl Opt {
    /// The option's kind, as RFC 4340, 5.8 numbers it.
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Mandatory => 1,
            Self::SlowReceiver => 2,
            Self::Feature(feature) => feature.kind(),
            Self::AckVector { nonce: false, .. } => 38,
            Self::AckVector { nonce: true, .. } => 39,
            Self::DataDropped(_) => 40,
            Self::Timestamp(_) => 41,
            Self::TimestampEcho { .. } => 42,
            Self::ElapsedTime(_) => 43,
            Self::DataChecksum => 44,
            Self::LossEventRate(_) => 192,
            Self::LossIntervals { .. } => 193,
            Self::ReceiveRate(_) => 194,
            Self::Unknown(kind, _) => *kind,
        }
    }

    /// Its octets in the header.
    pub fn len(&self) -> usize {
        if self.kind() <= LAST_SHORT {
            1
        } else {
            2 + self.data_len()
        }
    }

    /// Never: an option takes at least an octet.
    pub const fn is_empty(&self) -> bool {
        false
    }

    fn data_len(&self) -> usize {
        match self {
            Self::Mandatory | Self::SlowReceiver => 0,
            Self::Feature(feature) => 1 + feature.parts().1.len(),
            Self::AckVector { runs, .. } => runs.len(),
            Self::DataDropped(blocks) => blocks.len(),
            Self::TimestampEcho { elapsed: 0, .. }
            | Self::Timestamp(_)
            | Self::DataChecksum
            | Self::LossEventRate(_)
            | Self::ReceiveRate(_) => 4,
            Self::TimestampEcho { elapsed, .. } => 4 + width(*elapsed),
            Self::ElapsedTime(elapsed) => width(*elapsed),
            Self::LossIntervals { intervals, .. } => 1 + intervals.len() * LossInterval::OCTETS,
            Self::Unknown(_, data) => data.len(),
        }
    }

    /// Whether it has a form on the wire.
    pub(super) fn check(&self) -> Result<(), EmitError> {
        let fits = match self {
            // What has a name of its own would be read as that.
            Self::Unknown(kind, data) => {
                let known = matches!(kind, 0..=2 | 32..=35 | 38..=44 | 192..=194);
                !known && data.len() <= if *kind <= LAST_SHORT { 0 } else { MAX_DATA }
            }
            Self::AckVector { runs, .. } => runs.iter().all(|run| (1..=Run::MAX).contains(&run.packets)),
            Self::DataDropped(blocks) => blocks.iter().all(|block| match block {
                Block::Normal(packets) => (1..=Block::MAX_NORMAL).contains(packets),
                Block::Dropped(code, packets) => code.0 < 8 && (1..=Block::MAX_DROPPED).contains(packets),
            }),
            _ => true,
        };
        if fits && self.data_len() <= MAX_DATA {
            Ok(())
        } else {
            Err(EmitError::Option(self.kind()))
        }
    }

    /// Appends its octets; `crc` is that of the application data.
    pub(super) fn write(&self, crc: u32, out: &mut Vec<u8>) {
        out.push(self.kind());
        if self.kind() <= LAST_SHORT {
            return;
        }
        out.push(self.len() as u8);
        let put_short = |value: u32, out: &mut Vec<u8>| out.extend_from_slice(&value.to_be_bytes()[4 - width(value)..]);
        match self {
            Self::Mandatory | Self::SlowReceiver => {}
            Self::Feature(option) => {
                let (feature, values) = option.parts();
                out.push(feature.0);
                out.extend_from_slice(values);
            }
            Self::AckVector { runs, .. } => out.extend(runs.iter().map(|run| run.octet())),
            Self::DataDropped(blocks) => out.extend(blocks.iter().map(|block| block.octet())),
            Self::Timestamp(value) | Self::LossEventRate(value) | Self::ReceiveRate(value) => {
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::TimestampEcho { value, elapsed } => {
                out.extend_from_slice(&value.to_be_bytes());
                if *elapsed > 0 {
                    put_short(*elapsed, out);
                }
            }
            Self::ElapsedTime(elapsed) => put_short(*elapsed, out),
            Self::DataChecksum => out.extend_from_slice(&crc.to_be_bytes()),
            Self::LossIntervals { skip, intervals } => {
                out.push(*skip);
                for interval in intervals {
                    interval.write(out);
                }
            }
            Self::Unknown(_, data) => out.extend_from_slice(data),
        }
    }
}

/// Octets of a time: two where they are enough (RFC 4340, 13.2).
const fn width(elapsed: u32) -> usize {
    if elapsed <= u16::MAX as u32 {
        2
    } else {
        4
    }
}

/// Reads the options at `range`: the options, the value of the first Data Checksum, and whether a length made no sense. Known options
/// whose data makes no sense are left out (RFC 4340, 5.8).
pub(super) fn read(octets: &Bytes, range: Range<usize>) -> (Vec<Opt>, Option<u32>, bool) {
    let (mut options, mut crc, mut at) = (Vec::new(), None, range.start);
    while at < range.end {
        let kind = octets[at];
        at += 1;
        if kind <= LAST_SHORT {
            match kind {
                PADDING => {}
                1 => options.push(Opt::Mandatory),
                2 => options.push(Opt::SlowReceiver),
                kind => options.push(Opt::Unknown(kind, Bytes::new())),
            }
            continue;
        }
        let len = octets[at..range.end].first().map_or(0, |len| usize::from(*len));
        if len < 2 || at - 1 + len > range.end {
            return (options, crc, true);
        }
        let data = octets.slice(at + 1..at - 1 + len);
        at += len - 1;
        if kind == 44 && data.len() == 4 {
            crc = crc.or(Some(be(&data)));
        }
        options.extend(read_one(kind, &data));
    }
    (options, crc, false)
}

/// The big-endian number in at most four octets.
fn be(data: &[u8]) -> u32 {
    data.iter().fold(0, |value, octet| value << 8 | u32::from(*octet))
}

fn read_one(kind: u8, data: &Bytes) -> Option<Opt> {
    Some(match (kind, data.len()) {
        (kind, _) if FeatureOption::is_kind(kind) => Opt::Feature(FeatureOption::read(kind, data)?),
        (38 | 39, _) => Opt::AckVector { nonce: kind == 39, runs: data.iter().map(|octet| Run::read(*octet)).collect() },
        (40, _) => Opt::DataDropped(data.iter().map(|octet| Block::read(*octet)).collect()),
        (41, 4) => Opt::Timestamp(be(data)),
        (42, 4 | 6 | 8) => Opt::TimestampEcho { value: be(&data[..4]), elapsed: be(&data[4..]) },
        (43, 2 | 4) => Opt::ElapsedTime(be(data)),
        (44, 4) => Opt::DataChecksum,
        (192, 4) => Opt::LossEventRate(be(data)),
        (193, len) if len % LossInterval::OCTETS == 1 => {
            let intervals = data[1..].chunks_exact(LossInterval::OCTETS).map(LossInterval::read).collect();
            Opt::LossIntervals { skip: data[0], intervals }
        }
        (194, 4) => Opt::ReceiveRate(be(data)),
        (41..=44 | 192..=194, _) => return None,
        _ => Opt::Unknown(kind, data.clone()),
    })
}
