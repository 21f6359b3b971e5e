//! The packets that leave, cut as Linux's segmentation offload cuts them: scripts expect its large packets and their PSH flags.

use crate::layout;
use std::collections::{BTreeMap, VecDeque};
use whyloss_transport::segment::Flags;
use whyloss_transport::seq::Seq;
use whyloss_transport::stack::{Datagram, FourTuple};
use whyloss_transport::{Endpoint, Instant};

/// The largest packet (`sk_gso_max_size`), in octets.
const LARGEST: u64 = 65_536;
/// Ends of packets that are remembered of a connection.
const REMEMBERED: usize = 4096;

/// How packets are cut: Linux's settings of the same names.
#[derive(Clone, Copy, Debug)]
pub struct Offload {
    /// `gso`: several segments make one packet.
    pub on: bool,
    /// `tcp_min_tso_segs`: a packet may have at least so many segments.
    pub min_segments: u64,
}

impl Default for Offload {
    fn default() -> Self {
        Self { on: true, min_segments: 2 }
    }
}

impl Offload {
    /// The most segments that a packet may have whose first one has just left: about a millisecond's worth at the pacing rate, more on
    /// short paths, and never more than half of the window.
    pub fn most_segments(&self, endpoint: &Endpoint) -> u64 {
        let (path, window) = (endpoint.path(), endpoint.window());
        let mss = u64::from(path.mss.max(1));
        let cwnd = window.cwnd() / mss;
        let before = (endpoint.pipe() / mss).saturating_sub(1);
        let quota = (cwnd / 2).min(cwnd.saturating_sub(before)).max(1);
        if !self.on {
            return 1;
        }
        let micros = |span: Option<whyloss_transport::Duration>| span.map_or(0, |span| span.as_nanos() / 1000);
        let percent = if window.cwnd() < window.ssthresh() / 2 { 200 } else { 120 };
        let rate = window.cwnd() * percent * 10_000 / micros(path.srtt).max(1);
        let short = LARGEST.checked_shr((micros(path.min_rtt) >> 9) as u32).unwrap_or(0);
        let octets = (rate / 1024 + short).min(LARGEST);
        quota.min((octets / mss).max(self.min_segments))
    }
}

/// Packets that wait for packetdrill to take them.
#[derive(Debug, Default)]
pub struct Departures {
    queue: VecDeque<Departure>,
    /// The last of them can still grow.
    open: bool,
    boundaries: BTreeMap<FourTuple, Boundaries>,
}

#[derive(Debug)]
struct Departure {
    at: Instant,
    datagram: Datagram,
    segments: u64,
    most: u64,
    /// Its data was sent before.
    repeated: bool,
}

/// What is remembered of the packets of one connection, so that repetitions are cut as Linux cuts them.
#[derive(Debug, Default)]
struct Boundaries {
    /// Where new data begins.
    fresh: Option<Seq>,
    /// Where packets with new data ended: a repetition is cut there too.
    ends: VecDeque<Seq>,
}

impl Boundaries {
    /// Takes note of data from `seq` to `end`; returns whether it was sent before.
    fn note(&mut self, seq: Seq, end: Seq) -> bool {
        let fresh = *self.fresh.get_or_insert(seq);
        if fresh.precedes(end) {
            self.fresh = Some(end);
        }
        seq.precedes(fresh)
    }

    fn end_packet(&mut self, end: Seq) {
        if self.ends.len() == REMEMBERED {
            self.ends.pop_front();
        }
        self.ends.push_back(end);
    }
}

/// The connection of a datagram that we send.
fn tuple(datagram: &Datagram) -> FourTuple {
    let Datagram { addresses, segment } = datagram;
    FourTuple { local: (addresses.src(), segment.src_port).into(), remote: (addresses.dst(), segment.dst_port).into() }
}

impl Departures {
    /// A segment leaves; `most` says how many the packet that it begins may have.
    pub fn add(&mut self, now: Instant, datagram: Datagram, most: impl FnOnce(&FourTuple, bool) -> u64) {
        let name = tuple(&datagram);
        let segment = &datagram.segment;
        let boundaries = self.boundaries.entry(name).or_default();
        let repeated = boundaries.note(segment.seq, segment.seq + segment.seq_len());
        let cut = repeated && boundaries.ends.contains(&segment.seq);
        match self.queue.back_mut().filter(|_| self.open && !cut) {
            Some(last)
                if last.at == now
                    && last.segments < last.most
                    && last.repeated == repeated
                    && last.datagram.addresses == datagram.addresses
                    && layout::joins(&last.datagram.segment, &datagram.segment) =>
            {
                layout::join(&mut last.datagram.segment, &datagram.segment);
                last.segments += 1;
            }
            _ => {
                self.close();
                let most = most(&name, repeated);
                self.queue.push_back(Departure { at: now, datagram, segments: 1, most, repeated });
            }
        }
        self.open = true;
    }

    /// Nothing joins the last packet any more.
    pub fn close(&mut self) {
        if let Some(last) = self.queue.back_mut().filter(|_| self.open) {
            let segment = &mut last.datagram.segment;
            if last.segments > 1 {
                segment.flags |= Flags::PSH; // so that the receiver hands a large packet on at once
            }
            let end = segment.seq + segment.seq_len();
            if !last.repeated {
                self.boundaries.entry(tuple(&last.datagram)).or_default().end_packet(end);
            }
        }
        self.open = false;
    }

    /// The next packet and when it left.
    pub fn take(&mut self) -> Option<(Instant, Datagram)> {
        self.queue.pop_front().map(|departure| (departure.at, departure.datagram))
    }
}
