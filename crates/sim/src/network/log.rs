//! Who sent which packet when, and what became of it: a row each, for as long as somebody wants to know.

use crate::address::{EndpointId, LinkId};
use crate::record::{LogSpec, PacketRecord};
use crate::truth::Truth;
use std::collections::VecDeque;
use whyloss_transport::segment::Flags;
use whyloss_transport::{Instant, Segment};

/// The row of a packet that has none.
const NO_ROW: u32 = u32::MAX;

/// What is written down of packets. Nobody keeps one unless it was asked for.
#[derive(Debug)]
pub(crate) struct PacketLog {
    spec: LogSpec,
    /// With each row, the packets of it that have not ended: links make copies.
    rows: VecDeque<(PacketRecord, u32)>,
    /// Rows that came before these and were taken.
    taken: usize,
    /// One for each endpoint, at its number.
    ends: Vec<Sender>,
    left_out: u64,
}

/// What the log knows of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    /// Where the data ends that it has sent so far.
    highest: u64,
    /// The window scale of its SYN.
    scale: Option<u8>,
}

/// What the log cannot read off a packet.
#[derive(Debug)]
pub(crate) struct Sent<'a> {
    pub from: EndpointId,
    /// Octets of the whole packet.
    pub octets: u32,
    /// Offset and length of its data.
    pub data: (u64, u32),
    /// The TCP segment, if it is one.
    pub segment: Option<&'a Segment>,
    /// The 64-bit sequence number that acknowledgements are near to, and the one of the peer's first octet of data.
    pub peer: (u64, u64),
    /// A middlebox sent it in the endpoint's name.
    pub inserted: bool,
}

impl PacketLog {
    /// An empty log of this many endpoints.
    pub fn new(spec: LogSpec, endpoints: usize) -> Self {
        Self { spec, rows: VecDeque::new(), taken: 0, ends: vec![Sender::default(); endpoints], left_out: 0 }
    }

    /// A packet leaves. Returns the number that the log knows it by.
    pub fn sent(&mut self, now: Instant, sent: &Sent<'_>) -> u32 {
        let (offset, len) = sent.data;
        let own = &mut self.ends[sent.from.index()];
        let retransmission = len > 0 && offset < own.highest;
        if !sent.inserted {
            own.highest = own.highest.max(offset + u64::from(len));
            if let Some(segment) = sent.segment.filter(|segment| segment.flags.contains(Flags::SYN)) {
                own.scale = segment.options.window_scale;
            }
        }
        if now < self.spec.from || now >= self.spec.until {
            return NO_ROW;
        }
        let row = self.taken + self.rows.len();
        if row >= self.spec.at_most.min(NO_ROW as usize) {
            self.left_out += 1;
            return NO_ROW;
        }
        let acknowledging = sent.segment.filter(|segment| segment.flags.contains(Flags::ACK));
        let position = |number: whyloss_transport::Seq| number.near(sent.peer.0).saturating_sub(sent.peer.1);
        let scale = self.scale(sent.from);
        let record = PacketRecord {
            flow: sent.from.flow().index(),
            way: sent.from.way(),
            sent_at: now,
            ended: None,
            truth: Truth::InFlight,
            link: None,
            offset,
            len,
            octets: sent.octets,
            retransmission,
            inserted: sent.inserted,
            flags: sent.segment.map(|segment| segment.flags),
            ack: acknowledging.map(|segment| position(segment.ack)),
            window: acknowledging.map(|segment| {
                // RFC 7323, 2.2: the window field of a SYN is never scaled.
                let scale = if segment.flags.contains(Flags::SYN) { 0 } else { scale };
                u64::from(segment.window) << scale
            }),
            sack: acknowledging.map_or_else(Vec::new, |segment| {
                segment.options.sack.as_slice().iter().map(|(left, right)| (position(*left), position(*right))).collect()
            }),
        };
        self.rows.push_back((record, 1));
        row as u32
    }

    /// The scale of the windows that an endpoint advertises: that of its SYN, if both ends sent one (RFC 7323, 2.2).
    fn scale(&self, from: EndpointId) -> u8 {
        let [own, peer] = [from, from.peer()].map(|end| self.ends[end.index()].scale);
        // RFC 7323, 2.3: a larger one counts as 14.
        own.filter(|_| peer.is_some()).map_or(0, |scale| scale.min(14))
    }

    /// A link has made a copy of a packet.
    pub fn copied(&mut self, row: u32) {
        if let Some((_, open)) = self.row(row) {
            *open += 1;
        }
    }

    /// A packet has come to its end: it arrived, was lost on a link, or a middlebox ended its journey. A row has one fate: the first arrival
    /// or suppression, else the last loss.
    pub fn ended(&mut self, row: u32, now: Instant, truth: Truth, link: Option<LinkId>) {
        let Some((row, open)) = self.row(row) else { return };
        *open -= 1;
        match truth {
            _ if matches!(row.truth, Truth::Arrived | Truth::Suppressed) => {}
            Truth::Lost(_) if *open > 0 => {}
            _ => (row.truth, row.ended, row.link) = (truth, Some(now), link),
        }
    }

    fn row(&mut self, row: u32) -> Option<&mut (PacketRecord, u32)> {
        (row as usize).checked_sub(self.taken).and_then(|at| self.rows.get_mut(at))
    }

    /// Rows that are here.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Takes the rows before the first whose packets have not all ended.
    pub fn take_ended(&mut self) -> Vec<PacketRecord> {
        let ended = self.rows.iter().take_while(|(_, open)| *open == 0).count();
        self.taken += ended;
        self.rows.drain(..ended).map(|(row, _)| row).collect()
    }

    /// The rows that were not taken, and the number of packets for which there was no room.
    pub fn into_rows(self) -> (Vec<PacketRecord>, u64) {
        (self.rows.into_iter().map(|(row, _)| row).collect(), self.left_out)
    }
}
