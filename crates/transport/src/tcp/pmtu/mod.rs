//! How large a packet the path carries: what routers say (RFC 1191, RFC 8201, with the checks of RFC 5927), and what the connection finds out
//! by itself where they say nothing (RFC 4821, RFC 8899).

#[cfg(test)]
mod tests;

use super::record::State;
use super::Endpoint;
use crate::seq::Seq;
use crate::time::{Duration, Instant};
use std::sync::Arc;

/// Larger packets are tried again after this long (RFC 1191, 6.3; RFC 8899, 5.1.1: `PMTU_RAISE_TIMER`).
const RAISE_AFTER: Duration = Duration::from_secs(600);
/// A size is given up when so many probes of it are lost (RFC 8899, 5.1.2: `MAX_PROBES`).
const PROBE_TRIES: u8 = 3;
/// Two sizes that differ by no more than this many octets are the same to the search.
const SEARCH_GRAIN: u32 = 8;
/// Full segments that have to fit the window beside a probe, so that its loss is noticed without a timeout (RFC 4821, 7.3).
const BESIDE_PROBE: u64 = 4;
/// A path that lets nothing through for so many timeouts in a row may be one that swallows large packets (RFC 4821, 7.7).
const BLACK_HOLE_TIMEOUTS: u32 = 3;
/// The packet that such a path is taken to carry, in octets (RFC 8899, 5.1.2: `BASE_PLPMTU`; RFC 8200, 5).
const BASE: [u32; 2] = [1200, 1280];
/// Nobody makes packets smaller than this: what every IPv4 host takes (RFC 1122, 3.3.3), and every IPv6 link (RFC 8200, 5).
const FLOOR: [u32; 2] = [576, 1280];
/// Sizes of packets on common links, for routers that do not say theirs (RFC 1191, 7.1).
const PLATEAUS: [u32; 6] = [17_914, 8166, 4352, 2002, 1492, 1006];

/// The most options that a SYN can have, in octets.
const SYN_OPTIONS: u64 = 40;

/// What is known of the path. Sizes are octets of data in a segment unless they say otherwise.
#[derive(Debug, Default)]
pub(super) struct PathMtu {
    /// What both ends agreed upon: more is never sent.
    largest: u32,
    /// Octets of IP header, TCP header and options around it.
    overhead: u32,
    /// The largest that arrived since it was last made smaller.
    confirmed: u32,
    /// A router's word that contradicts what has arrived before. It is believed if the connection gets stuck (RFC 5927, 7.2).
    doubted: Option<Box<Doubted>>,
    /// More than this is not tried before `raise_at`.
    ceiling: u32,
    /// When everything may be tried again; `None` if there is nothing to gain.
    raise_at: Option<Instant>,
    probe: Option<Box<Probe>>,
    /// Probes of the size under trial that were lost.
    tries: u8,
    /// The next size to try is the ceiling itself.
    ceiling_first: bool,
}

/// What a router said.
#[derive(Clone, Copy, Debug)]
struct Doubted {
    /// Position of the segment that it quotes.
    start: u64,
    size: u32,
}

/// A segment that is larger than what is known to arrive.
#[derive(Clone, Copy, Debug)]
struct Probe {
    start: u64,
    size: u32,
}

impl PathMtu {
    /// A path that is taken to carry `largest` octets of data beside `overhead` octets of headers.
    pub fn new(largest: u32, overhead: u32) -> Self {
        Self { largest, overhead, ceiling: largest, ..Self::default() }
    }

    /// Index of the family in the tables above.
    fn family(ip_header: u8) -> usize {
        usize::from(ip_header == 40)
    }

    /// The next size to try beyond `size`, which is known to arrive.
    fn candidate(&self, size: u32) -> Option<u32> {
        if self.ceiling < size + SEARCH_GRAIN {
            return None;
        }
        Some(if self.ceiling_first { self.ceiling } else { size + (self.ceiling - size).div_ceil(2) })
    }

    /// Begins a search: sizes of up to `ceiling` may be tried, and that one first.
    fn try_up_to(&mut self, ceiling: u32) {
        self.ceiling = ceiling;
        self.ceiling_first = true;
        self.tries = 0;
    }

    /// A probe was lost, and nothing else.
    fn probe_failed(&mut self) {
        let Some(probe) = self.probe.take() else { return };
        self.tries += 1;
        if self.tries >= PROBE_TRIES {
            self.tries = 0;
            self.ceiling = probe.size - 1;
            self.ceiling_first = false;
        }
    }
}

impl Endpoint {
    /// The largest packet that the path is taken to carry, IP header included, in octets. 0 before the connection is established.
    pub fn path_mtu(&self) -> u32 {
        let overhead = self.snd.path_mtu.overhead;
        if overhead == 0 {
            0
        } else {
            self.snd.mss + overhead
        }
    }

    /// A router says that it cannot pass on a packet of ours that begins with `seq`.
    pub(super) fn on_packet_too_big(&mut self, now: Instant, seq: Seq, mtu: Option<u16>) {
        if self.state == State::SynSent && seq == Seq::from(self.snd.iss) {
            return self.shrink_syn(now, mtu);
        }
        let synchronised = !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived);
        let start = seq.near(self.snd.una);
        // RFC 5927, 4.1: whoever cannot see our packets hardly guesses what is in flight.
        if !synchronised || self.snd.board.len() == 0 || start < self.snd.una || start >= self.snd.nxt {
            return;
        }
        let path = &self.snd.path_mtu;
        let probe = path.probe.as_ref().filter(|probe| probe.start == start);
        let sent = probe.map_or(self.snd.mss, |probe| probe.size) + path.overhead;
        let mtu = mtu.map_or_else(|| PLATEAUS.into_iter().find(|&size| size < sent).unwrap_or(0), u32::from);
        let floor = FLOOR[PathMtu::family(self.config.ip_header)];
        if self.config.ip_header == 40 && mtu < floor {
            return; // RFC 8201, 4
        }
        let size = mtu.max(floor).saturating_sub(path.overhead);
        if size >= self.snd.mss {
            if probe.is_some_and(|probe| size < probe.size) {
                self.snd.path_mtu.try_up_to(size);
                self.give_up_probe();
            }
            return;
        }
        if path.confirmed > size {
            self.snd.path_mtu.doubted = Some(Box::new(Doubted { start, size }));
            return;
        }
        self.shrink_segments(now, size, size);
    }

    /// Our SYN with data did not fit the path: it goes again at once, without data, and announces segments that fit. The path says nothing of
    /// congestion, so the window stays.
    fn shrink_syn(&mut self, now: Instant, mtu: Option<u16>) {
        let header = u32::from(self.config.ip_header) + 20;
        let floor = FLOOR[PathMtu::family(self.config.ip_header)];
        let mtu = mtu.map_or(floor, u32::from).max(floor);
        let size = mtu - header;
        // What is smaller than the router's word cannot be meant.
        if self.fast.request.is_none() || self.fast.carried + u64::from(header) + SYN_OPTIONS <= u64::from(mtu) {
            return;
        }
        self.fast.request = None;
        let config = Arc::make_mut(&mut self.config);
        config.mss = config.mss.min(size as u16);
        self.stats.mtu_reductions += 1;
        self.send_syn(now);
    }

    /// The retransmission timer has expired: a doubted router was right, or the path swallows large packets in silence.
    pub(super) fn suspect_path_mtu(&mut self, now: Instant) {
        if let Some(doubted) = self.snd.path_mtu.doubted.take() {
            if doubted.start >= self.snd.una && doubted.size < self.snd.mss {
                return self.shrink_segments(now, doubted.size, doubted.size);
            }
        }
        if !self.config.mtu_probing || self.snd.expiries < BLACK_HOLE_TIMEOUTS {
            return;
        }
        let Some(head) = self.snd.board.first() else { return };
        let (length, family, overhead) = (head.data_len(), PathMtu::family(self.config.ip_header), self.snd.path_mtu.overhead);
        let next =
            [BASE[family], FLOOR[family]].into_iter().map(|size| size.saturating_sub(overhead)).find(|&size| size < length);
        if let Some(size) = next.filter(|&size| size < self.snd.mss) {
            // A mere suspicion: if the path was only interrupted, the first probe finds it as it was.
            self.shrink_segments(now, size, self.snd.path_mtu.ceiling);
        }
    }

    /// Segments carry `size` octets from now on, and what was sent in larger ones is sent again: it did not fit the path, which says nothing
    /// of congestion, so the window stays (RFC 1191, 6.4). Between `size` and `ceiling` the search goes on.
    fn shrink_segments(&mut self, now: Instant, size: u32, ceiling: u32) {
        let path = &mut self.snd.path_mtu;
        path.confirmed = 0;
        path.doubted = None;
        path.probe = None;
        path.try_up_to(ceiling);
        path.raise_at = Some(now + RAISE_AFTER);
        self.stats.mtu_reductions += 1;
        self.set_segment_size(size);
        self.lose_oversized();
        self.guard_outstanding(now);
        self.refresh_path(now);
    }

    fn set_segment_size(&mut self, size: u32) {
        self.snd.mss = size;
        self.window.set_mss(size);
    }

    /// Cuts the segment at `index` if it is larger than segments may be by now.
    pub(super) fn cut_to_size(&mut self, index: usize) {
        let sent = self.snd.board.get(index);
        if sent.data_len() > self.snd.mss {
            let at = sent.start + u64::from(self.snd.mss);
            self.snd.board.split(index, at);
        }
    }

    /// Octets of the next segment, which could carry `len`: more if it is time to find out whether more arrive. Only where the receiver says what
    /// it has can the loss of that one segment be told from others and be repaired at once.
    pub(super) fn size_to_send(&mut self, now: Instant, len: u64, by_peer: u64) -> u64 {
        let path = &mut self.snd.path_mtu;
        if !self.config.mtu_probing || !self.agreed.sack || len != u64::from(self.snd.mss) || path.probe.is_some() {
            return len;
        }
        if path.raise_at.is_some_and(|at| at <= now) {
            path.raise_at = Some(now + RAISE_AFTER);
            path.try_up_to(path.largest);
        }
        let Some(size) = path.candidate(self.snd.mss) else { return len };
        let calm = self.snd.recovery.is_open() && self.snd.board.sacked() == 0 && self.snd.recovery.dup_acks() == 0;
        let with_others = u64::from(size) + BESIDE_PROBE * len;
        let room = self.window.cwnd().saturating_sub(self.snd.flight());
        if !calm || self.window.cwnd() < with_others || room < u64::from(size) || self.snd.unsent().min(by_peer) < with_others {
            return len;
        }
        self.stats.mtu_probes += 1;
        self.snd.path_mtu.probe = Some(Box::new(Probe { start: self.snd.nxt, size }));
        u64::from(size)
    }

    /// Segments of up to `largest` octets have arrived, and everything below `SND.UNA`.
    #[inline]
    pub(super) fn note_sizes(&mut self, now: Instant, largest: u32) {
        let path = &mut self.snd.path_mtu;
        path.confirmed = path.confirmed.max(largest);
        if path.doubted.is_some() || path.probe.is_some() {
            self.assess_probe(now, largest);
        }
    }

    #[inline(never)]
    fn assess_probe(&mut self, now: Instant, largest: u32) {
        let una = self.snd.una;
        let path = &mut self.snd.path_mtu;
        path.doubted.take_if(|doubted| doubted.start < una);
        let Some(probe) = &path.probe else { return };
        let Probe { start, size } = **probe;
        if largest >= size {
            path.probe = None;
            path.tries = 0;
            path.raise_at = if size < path.largest { Some(now + RAISE_AFTER) } else { None };
            self.set_segment_size(size);
        } else if una > start {
            path.probe_failed(); // it was sent again in pieces, for whatever reason
        }
    }

    /// Takes the probe out of the segments that are taken for lost, if it is the only one: then its size is to blame and not the network
    /// (RFC 4821, 7.5). With others it proves nothing.
    pub(super) fn excuse_lost_probe(&mut self, found: &mut Vec<usize>) {
        let Some(start) = self.snd.path_mtu.probe.as_ref().map(|probe| probe.start) else { return };
        if let [index] = found[..] {
            if self.snd.board.get(index).start == start {
                found.clear();
                self.snd.path_mtu.probe_failed();
                self.give_up_probe();
            }
        } else if found.iter().any(|&index| self.snd.board.get(index).start == start) {
            self.snd.path_mtu.probe = None;
        }
    }

    /// The data of the probe is to be sent again in segments that arrive.
    fn give_up_probe(&mut self) {
        self.snd.path_mtu.probe = None;
        self.lose_oversized();
    }

    /// What was sent in larger segments than are sent now is taken for lost. Duplicate acknowledgements that it brings about are no reason
    /// for a recovery (RFC 6582, 3.2 step 1).
    fn lose_oversized(&mut self) {
        self.snd.board.cut_and_lose(self.snd.mss);
        self.snd.due.head |= self.snd.board.needs_repair();
        self.snd.recovery.ignore_duplicates(self.snd.nxt);
    }
}
