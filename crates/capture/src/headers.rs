//! A TCP segment as a capture shows it: its headers, and what is known of its data.

use crate::link::Found;
use crate::records::Record;
use etherparse::IpNumber;
use std::net::SocketAddr;
use whyloss_transport::segment::Flags;
use whyloss_transport::time::Instant;
use whyloss_transport::wire::ip::Addresses;

/// SACK blocks that fit into the options of a segment.
pub const MAX_SACK_BLOCKS: usize = 4;

/// Whether a segment arrived at the capture as it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Not all of it was captured, or it is a fragment.
    #[default]
    Unknown,
    /// The checksum is right.
    Right,
    /// It is the sum over the pseudo-header alone: the network card was to complete it. The segment was captured where it was sent.
    Offloaded,
    /// It is wrong.
    Wrong,
}

/// The TCP options that tell something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size of the sender of this (RFC 9293, 3.7.1).
    pub mss: Option<u16>,
    /// Shift of its windows (RFC 7323, 2).
    pub window_scale: Option<u8>,
    /// It can take SACK (RFC 2018, 2).
    pub sack_permitted: bool,
    /// `TSval` and `TSecr` (RFC 7323, 3).
    pub timestamps: Option<(u32, u32)>,
    sack: [(u32, u32); MAX_SACK_BLOCKS],
    sack_blocks: u8,
}

impl Options {
    /// SACK blocks, as left and right edges (RFC 2018, 3).
    pub fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_blocks)]
    }

    /// Reads what can be read; the rest is left out, as captures cut and paths damage.
    pub fn read(mut octets: &[u8]) -> Self {
        const END: u8 = 0;
        const NOTHING: u8 = 1;
        let mut options = Self::default();
        let word = |octets: &[u8], at: usize| u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]);
        while let [kind, rest @ ..] = octets {
            match *kind {
                END => break,
                NOTHING => {
                    octets = rest;
                    continue;
                }
                _ => {}
            }
            let Some(len) = rest.first().map(|len| usize::from(*len)).filter(|len| *len >= 2) else { break };
            let value = &octets[2..len.min(octets.len())];
            match (kind, len - 2) {
                // `tcpdump -i any -s 96` cuts the third block off. The first one is the newest (RFC 2018, 4) and says most.
                (5, 8 | 16 | 24 | 32) => {
                    let blocks = value.chunks_exact(8).map(|block| (word(block, 0), word(block, 4)));
                    options.sack.iter_mut().zip(blocks).for_each(|(slot, block)| *slot = block);
                    options.sack_blocks = (value.len() / 8) as u8;
                }
                _ if value.len() < len - 2 => break,
                (2, 2) => options.mss = Some(u16::from_be_bytes([value[0], value[1]])),
                // RFC 7323, 2.3: more than 14 counts as 14.
                (3, 1) => options.window_scale = Some(value[0].min(14)),
                (4, 0) => options.sack_permitted = true,
                (8, 8) => options.timestamps = Some((word(value, 0), word(value, 4))),
                _ => {}
            }
            octets = octets.get(len..).unwrap_or_default();
        }
        options
    }
}

/// A segment in a capture.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The number of its record.
    pub number: u64,
    /// When it was captured.
    pub at: Instant,
    /// Where it was sent.
    pub src: SocketAddr,
    /// Where it was to go.
    pub dst: SocketAddr,
    /// Sequence number of its first octet.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window, unscaled.
    pub window: u16,
    /// Octets of data that it had when it was sent, whatever of it was captured; of a fragment those in the fragment.
    pub len: u32,
    /// It is the first fragment of a segment: the others hold more of its data.
    pub partial: bool,
    /// Its options.
    pub options: Options,
    /// Identification of an IPv4 packet.
    pub ip_id: Option<u16>,
    /// Time to live or hop limit.
    pub hop_limit: u8,
    /// ECN field: 3 is "congestion experienced".
    pub ecn: u8,
    /// Octets of the IP packet.
    pub packet_len: u32,
    /// Whether its checksum is right.
    pub checksum: Checksum,
    /// A radio found the frame damaged.
    pub bad_frame: bool,
}

impl Segment {
    /// An intact one of `len` octets of data, captured at the beginning.
    #[cfg(test)]
    pub(crate) fn plain([src, dst]: [SocketAddr; 2], seq: u32, len: u32) -> Self {
        Self {
            number: 0,
            at: Instant::ZERO,
            src,
            dst,
            seq,
            ack: 0,
            flags: Flags::ACK,
            window: 60_000,
            len,
            partial: false,
            options: Options::default(),
            ip_id: None,
            hop_limit: 64,
            ecn: 0,
            packet_len: len + 40,
            checksum: Checksum::Right,
            bad_frame: false,
        }
    }

    /// Octets of sequence space: data, SYN and FIN. The FIN of a segment in fragments stands behind the last one.
    pub fn seq_len(&self) -> u32 {
        let fin = self.flags.contains(Flags::FIN) && !self.partial;
        self.len + u32::from(self.flags.contains(Flags::SYN)) + u32::from(fin)
    }

    /// Whether it did not arrive at the capture as it was sent.
    pub fn is_damaged(&self) -> bool {
        self.bad_frame || self.checksum == Checksum::Wrong
    }

    /// The segment in an IP packet; `None` if it is none of TCP, a later fragment, or too little of it was captured.
    pub fn read(record: &Record, found: &Found) -> Option<Self> {
        let start = found.octets.as_ptr() as usize - record.octets.as_ptr() as usize;
        // What the record lost of this packet it lost at its end.
        let uncut = record.original_len as usize - start;
        let ip = &found.ip;
        if ip.protocol != IpNumber::TCP.0 || ip.later_fragment {
            return None;
        }
        // A segment that the network card was still to part may be too long for the field, which then is 0.
        let packet_len = if ip.len == 0 { uncut } else { ip.len };
        let tcp = ip.payload;
        let before = tcp.as_ptr() as usize - found.octets.as_ptr() as usize;
        let tcp_len = packet_len.checked_sub(before)?;
        let header = tcp.get(..20)?;
        let header_len = usize::from(header[12] >> 4) * 4;
        let len = tcp_len.checked_sub(header_len)?;
        if header_len < 20 {
            return None;
        }
        let u32_at = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let u16_at = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let whole = tcp.len() >= tcp_len && !ip.fragmented;
        let checksum =
            if whole { checksum(Addresses::new(ip.src, ip.dst)?, &tcp[..tcp_len], u16_at(16)) } else { Checksum::Unknown };
        Some(Self {
            number: record.number,
            at: record.at,
            src: SocketAddr::new(ip.src, u16_at(0)),
            dst: SocketAddr::new(ip.dst, u16_at(2)),
            seq: u32_at(4),
            ack: u32_at(8),
            flags: Flags(header[13]),
            window: u16_at(14),
            len: len as u32,
            partial: ip.fragmented,
            options: Options::read(&tcp[20..header_len.min(tcp.len())]),
            ip_id: ip.id,
            hop_limit: ip.hop_limit,
            ecn: ip.ecn,
            packet_len: packet_len as u32,
            checksum,
            bad_frame: found.bad_frame,
        })
    }
}

fn checksum(addresses: Addresses, tcp: &[u8], field: u16) -> Checksum {
    let pseudo_header = addresses.pseudo_header(tcp.len());
    if pseudo_header.with(tcp).finish() == 0 {
        Checksum::Right
    } else if field == !pseudo_header.finish() {
        Checksum::Offloaded
    } else {
        Checksum::Wrong
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A segment that says nothing.
    pub(crate) fn segment() -> Segment {
        Segment {
            number: 1,
            at: Instant::ZERO,
            src: SocketAddr::from(([10, 0, 0, 1], 1)),
            dst: SocketAddr::from(([10, 0, 0, 9], 2)),
            seq: 0,
            ack: 0,
            flags: Flags(0),
            window: 0,
            len: 0,
            partial: false,
            options: Options::default(),
            ip_id: None,
            hop_limit: 64,
            ecn: 0,
            packet_len: 40,
            checksum: Checksum::Unknown,
            bad_frame: false,
        }
    }

    #[test]
    fn of_selective_acknowledgements_that_are_cut_those_remain_that_were_captured() {
        let mut octets = vec![8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 5, 26];
        (10..16_u32).for_each(|edge| octets.extend(edge.to_be_bytes()));
        assert_eq!(Options::read(&octets).sack(), [(10, 11), (12, 13), (14, 15)]);
        // Behind Linux' cooked header this is where 96 octets end.
        assert_eq!(Options::read(&octets[..32]).sack(), [(10, 11), (12, 13)]);
        assert_eq!(Options::read(&octets[..19]).sack(), []);
        let timestamps_cut = Options::read(&octets[..9]);
        assert_eq!(timestamps_cut.timestamps, None);
    }
}
