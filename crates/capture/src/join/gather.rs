//! What is kept of the packets of a capture to find them again in another.

use crate::headers::{Segment, MAX_SACK_BLOCKS};
use crate::segments::Segments;
use crate::source::Source;
use crate::{records, CaptureError};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use whyloss_transport::segment::Flags;
use whyloss_transport::Seq;

/// Octets of data in a segment if the handshake, which says it, was not captured: what Ethernet takes.
const COMMON_MSS: u32 = 1460;
/// Octets of the timestamps option, which count against it.
const TIMESTAMPS: u32 = 12;

/// A packet, or a part of a record that was several packets when it was on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub at: u64,
    /// The number of its record.
    pub number: u64,
    /// What is the same at both ends, in one number.
    pub key: u64,
    /// What no change of its numbers changes: length, flags, timestamps and how SACK blocks lie to each other, in one number.
    pub looks: u64,
    /// Its record was several packets.
    pub part: bool,
    /// It has timestamps.
    pub stamped: bool,
    /// One direction of a connection.
    pub flow: u32,
    /// Where its first octet is in the stream.
    pub start: u64,
    pub len: u32,
    /// Octets of the IP packet.
    pub size: u32,
    pub ack: Option<u32>,
    pub ip_id: Option<u16>,
    pub damaged: bool,
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// The other direction.
    pub back: Option<u32>,
    /// Sequence number of its SYN, if that was captured.
    pub first_seq: Option<u32>,
    /// When its first packet was captured.
    pub began: u64,
    /// The segment size that its sender announced.
    mss: Option<u16>,
    newest: Option<u64>,
}

/// A capture.
#[derive(Debug, Default)]
pub(super) struct File {
    pub packets: Vec<Packet>,
    pub flows: Vec<Flow>,
    pub began: u64,
    pub ended: u64,
    /// Packets that are not kept, as they are too many.
    pub left_out: u64,
    pub remarks: Vec<String>,
}

impl File {
    /// Reads the TCP segments of a capture, `limit` of them at most.
    pub fn read(source: Source, limit: usize) -> Result<Self, CaptureError> {
        let name = source.name.clone();
        let mut file = Self { began: u64::MAX, ..Self::default() };
        let mut flows = HashMap::new();
        let mut segments = Segments::default();
        let about = records::read(source, &mut |record| {
            let segment = segments.read(record);
            file.began = file.began.min(record.at.as_nanos());
            file.ended = file.ended.max(record.at.as_nanos());
            if let Some(segment) = segment {
                file.take(&segment, &mut flows, limit);
            }
            ControlFlow::Continue(())
        })?;
        file.remarks.extend(about.remarks.iter().map(|remark| format!("{name}: {remark}")));
        if file.left_out > 0 {
            file.remarks.push(format!("{name}: {} packets beyond the first {limit} are not joined", file.left_out));
        }
        Ok(file)
    }

    fn take(&mut self, segment: &Segment, numbers: &mut HashMap<(SocketAddr, SocketAddr), u32>, limit: usize) {
        let back = numbers.get(&(segment.dst, segment.src)).copied();
        let flow = *numbers.entry((segment.src, segment.dst)).or_insert_with(|| {
            self.flows.push(Flow {
                from: segment.src,
                to: segment.dst,
                back,
                first_seq: None,
                began: segment.at.as_nanos(),
                mss: None,
                newest: None,
            });
            self.flows.len() as u32 - 1
        });
        if let Some(other) = back {
            self.flows[other as usize].back = Some(flow);
        }
        let reverse_mss = back.and_then(|back| self.flows[back as usize].mss);
        let known = &mut self.flows[flow as usize];
        if segment.flags.contains(Flags::SYN) {
            known.mss = segment.options.mss.or(known.mss);
            known.first_seq.get_or_insert(segment.seq);
        }
        let start = known.newest.map_or((1 << 32) | u64::from(segment.seq), |newest| Seq(segment.seq).near(newest));
        known.newest = Some(known.newest.map_or(start, |newest| newest.max(start)));
        let announced = reverse_mss.into_iter().chain(known.mss).map(u32::from).min().unwrap_or(COMMON_MSS);
        let timestamps = if segment.options.timestamps.is_some() { TIMESTAMPS } else { 0 };
        let size = announced.saturating_sub(timestamps).max(1);
        let blocks = segment.options.sack();
        let mut sack = [(0, 0); MAX_SACK_BLOCKS];
        for (slot, block) in sack.iter_mut().zip(blocks) {
            *slot = (block.0.wrapping_sub(blocks[0].0), block.1.wrapping_sub(blocks[0].0));
        }
        let mut done = 0;
        loop {
            if self.packets.len() == limit {
                self.left_out += 1;
                return;
            }
            let len = (segment.len - done).min(size);
            let seq = segment.seq.wrapping_add(done);
            self.packets.push(Packet {
                at: segment.at.as_nanos(),
                number: segment.number,
                key: key(segment, seq, len),
                looks: mixed(&(len, kept(segment), segment.options.timestamps, &sack[..blocks.len()])),
                part: segment.len > size,
                stamped: segment.options.timestamps.is_some(),
                flow,
                start: start + u64::from(done),
                len,
                size: segment.packet_len.saturating_sub(segment.len) + len,
                ack: segment.flags.contains(Flags::ACK).then_some(segment.ack),
                ip_id: segment.ip_id.filter(|id| *id != 0 && segment.len <= size),
                damaged: segment.is_damaged(),
            });
            done += len;
            if done >= segment.len {
                return;
            }
        }
    }
}

/// What no address translator changes.
fn key(segment: &Segment, seq: u32, len: u32) -> u64 {
    mixed(&(seq, segment.ack, len, kept(segment), segment.options.timestamps, segment.options.sack()))
}

/// Control bits but for those that the network card decides: which of the packets of a record carries PSH and FIN.
fn kept(segment: &Segment) -> u8 {
    segment.flags.0 & (Flags::SYN.0 | Flags::RST.0 | Flags::ACK.0)
}

/// All of it in one number.
pub(super) fn mixed(what: &impl Hash) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
