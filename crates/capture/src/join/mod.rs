//! Two captures of the same connections, taken at both ends: what became of each packet is known then.
//!
//! A packet is the same in both if its numbers are: sequence and acknowledgement, length, timestamps, SACK blocks. Addresses and ports are
//! not compared, as translators change them; which flow of the one file is which of the other follows from the packets. Then the clocks are
//! compared ([`clocks`]), and copies that look alike are told apart by IP identification and delay.

pub mod agreement;
pub mod clocks;
mod gather;
mod renumbered;
mod resegmented;

use crate::source::Source;
use crate::CaptureError;
use clocks::{Clocks, Reading};
use gather::{File, Packet};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use whyloss_transport::Seq;

/// Packets of each file that are joined, if nothing else is said: some 600 MB.
pub const DEFAULT_LIMIT: usize = 1 << 22;

/// Copies of a packet that look alike and are told apart; of more, no partner is known.
const MAX_ALIKE: usize = 64;
/// Packets without a partner among which that of a damaged one is looked for.
const MAX_WAITING: usize = 4096;

/// Which of two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum End {
    /// The one that was named first.
    First,
    /// The other one.
    Second,
}

impl End {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Second => "second",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
        }
    }
}

/// What became of a packet that one capture saw leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The other capture saw it come.
    Arrived {
        /// Its record there.
        number: u64,
        /// How long it was on the way, in nanoseconds, as exact as the clocks are known.
        delay_ns: i64,
    },
    /// It came damaged.
    Damaged {
        /// Its record there.
        number: u64,
    },
    /// It did not come.
    Lost,
    /// It came, as its receiver acknowledged it and got no other copy; the other capture did not see it.
    Unseen,
    /// The other capture was not running.
    Outside,
}

/// A packet that one capture saw leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its record.
    pub number: u64,
    /// When it left, by the clock of the capture that saw it leave.
    pub at_ns: u64,
    /// Octets of data.
    pub len: u32,
    /// What became of it.
    pub fate: Fate,
}

/// Addresses of a direction in both files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where packets come from and go to in the first file.
    pub first: (SocketAddr, SocketAddr),
    /// In the second.
    pub second: (SocketAddr, SocketAddr),
    /// Where they are seen first.
    pub sender: End,
    /// Packets by which the two were found to be the same.
    pub packets: u64,
    /// Something on the way has changed its sequence numbers or those that it acknowledges.
    pub renumbered: bool,
}

impl Pair {
    /// An address or a port was changed on the way.
    pub fn is_translated(&self) -> bool {
        self.first != self.second
    }
}

/// Two captures as one.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// How the second clock stands to the first; `None` if the files have no packet in common.
    pub clocks: Option<Clocks>,
    /// Directions of connections that are in both files.
    pub pairs: Vec<Pair>,
    /// Packets that left at the first capture and at the second, in the order of their records.
    pub sent: [Vec<Sent>; 2],
    /// What has to be known of it.
    pub remarks: Vec<String>,
}

impl Joined {
    /// What became of the packets of a record that `end` saw leave: the worst of them, if it was several.
    pub fn fate(&self, end: End, number: u64) -> Option<Fate> {
        let sent = &self.sent[end as usize];
        let from = sent.partition_point(|packet| packet.number < number);
        let fates = sent[from..].iter().take_while(|packet| packet.number == number).map(|packet| packet.fate);
        fates.max_by_key(|fate| match fate {
            Fate::Arrived { .. } => 0,
            Fate::Outside => 1,
            Fate::Unseen => 2,
            Fate::Damaged { .. } => 3,
            Fate::Lost => 4,
        })
    }
}

/// Joins two captures; of each, the first `limit` packets are kept.
pub fn join(first: Source, second: Source, limit: usize) -> Result<Joined, CaptureError> {
    let mut files = [File::read(first, limit)?, File::read(second, limit)?];
    let renumbered = renumbered::relate(&mut files);
    let mut matching = Matching::new(&files);
    let mut joined = Joined { remarks: files.iter().flat_map(|file| file.remarks.clone()).collect(), ..Joined::default() };
    matching.directions(&renumbered, &mut joined);
    let Some(clocks) = matching.clocks() else {
        joined.remarks.push("the two captures have no packet in common".to_owned());
        return Ok(joined);
    };
    if clocks.error_ns.is_none() {
        joined.remarks.push("packets of one direction only are in both captures: delays are those above the shortest, and a queue that builds up looks like a skew".to_owned());
    }
    joined.clocks = Some(clocks);
    matching.part_twins(&clocks);
    matching.damaged(&clocks);
    let renumbered = joined.pairs.iter().filter(|pair| pair.renumbered).count();
    if renumbered > 0 {
        joined.remarks.push(format!(
            "sequence numbers of {renumbered} flows differ between the captures: matched by what is the same from their SYNs on, by timestamps or by the order in which they were opened"
        ));
    }
    let mut parted = 0;
    joined.sent = [End::First, End::Second].map(|sender| {
        let (sent, others) = matching.fates(sender, &clocks);
        parted += others;
        sent
    });
    if parted > 0 {
        joined.remarks.push(format!(
            "{parted} packets came in other segments than they left in: something on the way, or a network card, joins or parts them; \
             their fates are told from their octets"
        ));
    }
    Ok(joined)
}

/// Which packets of two files are the same.
struct Matching<'a> {
    files: &'a [File; 2],
    /// The packet of the other file, for the packets of both.
    partner: [Vec<Option<u32>>; 2],
    /// Packets of both files that look alike: those of the first, and those of the second.
    alike: Vec<[Vec<u32>; 2]>,
    /// The flow of the second file that is a flow of the first, and where its packets are seen first.
    flows: HashMap<u32, (u32, End)>,
}

impl<'a> Matching<'a> {
    fn new(files: &'a [File; 2]) -> Self {
        let keys = files.each_ref().map(|file| {
            let mut keys: Vec<(u64, u32)> =
                file.packets.iter().enumerate().filter(|(_, p)| !p.damaged).map(|(n, p)| (p.key, n as u32)).collect();
            keys.sort_unstable();
            keys
        });
        let partner = files.each_ref().map(|file| vec![None; file.packets.len()]);
        let mut matching = Self { files, partner, alike: Vec::new(), flows: HashMap::new() };
        let mut rest = keys[1].as_slice();
        for group in keys[0].chunk_by(|a, b| a.0 == b.0) {
            let key = group[0].0;
            rest = &rest[rest.partition_point(|other| other.0 < key)..];
            let there = &rest[..rest.partition_point(|other| other.0 == key)];
            match (group, there) {
                (_, []) => {}
                ([(_, a)], [(_, b)]) => matching.pair(*a, *b),
                _ => matching.alike.push([group, there].map(|group| group.iter().map(|(_, n)| *n).collect())),
            }
        }
        matching
    }

    fn pair(&mut self, first: u32, second: u32) {
        self.partner[0][first as usize] = Some(second);
        self.partner[1][second as usize] = Some(first);
    }

    fn packet(&self, end: End, number: u32) -> &'a Packet {
        &self.files[end as usize].packets[number as usize]
    }

    fn reading(&self, first: u32, second: u32) -> Reading {
        let packet = self.packet(End::First, first);
        Reading { first: packet.at, second: self.packet(End::Second, second).at, size: packet.size }
    }

    /// Packets of the first file with a partner, and the partners.
    fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.partner[0].iter().enumerate().filter_map(|(first, second)| second.map(|second| (first as u32, second)))
    }

    /// Finds which flows are the same, by the majority of their packets, and which way they go.
    fn directions(&mut self, renumbered: &[u32], joined: &mut Joined) {
        let mut counts: HashMap<(u32, u32), u64> = HashMap::new();
        for (first, second) in self.pairs() {
            *counts.entry((self.packet(End::First, first).flow, self.packet(End::Second, second).flow)).or_default() += 1;
        }
        let mut candidates: Vec<((u32, u32), u64)> = counts.into_iter().collect();
        candidates.sort_by_key(|(flows, count)| (std::cmp::Reverse(*count), *flows));
        let mut same: HashMap<u32, u32> = HashMap::new();
        let mut taken: HashMap<u32, u64> = HashMap::new();
        for ((first, second), count) in candidates {
            if !same.contains_key(&first) && !taken.contains_key(&second) {
                same.insert(first, second);
                taken.insert(second, count);
            }
        }
        // Numbers that agree by chance.
        let strays: Vec<(u32, u32)> = self
            .pairs()
            .filter(|(a, b)| same.get(&self.packet(End::First, *a).flow) != Some(&self.packet(End::Second, *b).flow))
            .collect();
        for (first, second) in strays {
            self.partner[0][first as usize] = None;
            self.partner[1][second as usize] = None;
        }
        let ahead = self.medians();
        let mut flows: Vec<(u32, u32)> = same.into_iter().collect();
        flows.sort_unstable();
        let mut unknown = 0;
        for (first, second) in flows {
            let Some(own) = ahead.get(&first) else { continue };
            let flow = &self.files[0].flows[first as usize];
            // The second clock seems further ahead to those who come to it than to those who come from it.
            let other = flow.back.and_then(|back| ahead.get(&back));
            let sender = match other.map(|other| own.cmp(other)) {
                Some(std::cmp::Ordering::Greater) => End::First,
                Some(std::cmp::Ordering::Less) => End::Second,
                _ => {
                    unknown += 1;
                    continue;
                }
            };
            self.flows.insert(first, (second, sender));
            let there = &self.files[1].flows[second as usize];
            let (packets, renumbered) = (taken[&second], renumbered.contains(&first));
            joined.pairs.push(Pair { first: (flow.from, flow.to), second: (there.from, there.to), sender, packets, renumbered });
        }
        if unknown > 0 {
            joined.remarks.push(format!("{unknown} flows are in both captures, but do not tell which way they go"));
        }
    }

    /// How far the second clock is ahead as it seems to the packets of each flow, in the middle.
    fn medians(&self) -> HashMap<u32, i64> {
        let mut all: HashMap<u32, Vec<i64>> = HashMap::new();
        for (first, second) in self.pairs() {
            let Reading { first: a, second: b, .. } = self.reading(first, second);
            all.entry(self.packet(End::First, first).flow).or_default().push(b.wrapping_sub(a) as i64);
        }
        let middle = |mut ahead: Vec<i64>| {
            let half = ahead.len() / 2;
            *ahead.select_nth_unstable(half).1
        };
        all.into_iter().map(|(flow, ahead)| (flow, middle(ahead))).collect()
    }

    fn clocks(&self) -> Option<Clocks> {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        for (first, second) in self.pairs() {
            match self.flows.get(&self.packet(End::First, first).flow) {
                Some((_, End::First)) => there.push(self.reading(first, second)),
                Some((_, End::Second)) => back.push(self.reading(first, second)),
                None => {}
            }
        }
        Clocks::estimate(&there, &back)
    }

    /// The time from where a packet was seen first to where it was seen next.
    fn delay(&self, clocks: &Clocks, sender: End, first: u32, second: u32) -> i64 {
        let delay = clocks.delay(self.reading(first, second));
        match sender {
            End::First => delay,
            End::Second => -delay,
        }
    }

    /// Copies that look alike: by the identification of their IP packets, or else those whose delay is most common.
    fn part_twins(&mut self, clocks: &Clocks) {
        let mut typical: HashMap<u32, Vec<i64>> = HashMap::new();
        for (first, second) in self.pairs() {
            let flow = self.packet(End::First, first).flow;
            if let Some((_, sender)) = self.flows.get(&flow) {
                typical.entry(flow).or_default().push(self.delay(clocks, *sender, first, second));
            }
        }
        let typical: HashMap<u32, i64> = typical
            .into_iter()
            .map(|(flow, mut delays)| {
                let half = delays.len() / 2;
                (flow, *delays.select_nth_unstable(half).1)
            })
            .collect();
        let mut candidates = Vec::new();
        for [firsts, seconds] in &self.alike {
            for &first in firsts.iter().take(MAX_ALIKE) {
                let flow = self.packet(End::First, first).flow;
                let Some((there, sender)) = self.flows.get(&flow) else { continue };
                let typical = typical.get(&flow).copied().unwrap_or_default();
                for &second in seconds.iter().take(MAX_ALIKE).filter(|second| self.packet(End::Second, **second).flow == *there) {
                    let (a, b) = (self.packet(End::First, first), self.packet(End::Second, second));
                    let other_packet = a.ip_id.is_some() && b.ip_id.is_some() && a.ip_id != b.ip_id;
                    let delay = self.delay(clocks, *sender, first, second);
                    // The error of the offset is the same for all: only what comes before it was sent is impossible.
                    if delay >= -(clocks.error_ns.unwrap_or_default() as i64) {
                        candidates.push((other_packet, delay.abs_diff(typical), first, second));
                    }
                }
            }
        }
        candidates.sort_unstable();
        for (_, _, first, second) in candidates {
            if self.partner[0][first as usize].is_none() && self.partner[1][second as usize].is_none() {
                self.pair(first, second);
            }
        }
    }

    /// Packets that came damaged: what of their headers still fits, and the time, say which they were.
    fn damaged(&mut self, clocks: &Clocks) {
        /// Above the longest delay of others, so much more is believed, in nanoseconds.
        const MARGIN: i64 = 50_000_000;
        let mut longest = [0i64; 2];
        for (first, second) in self.pairs() {
            if let Some((_, sender)) = self.flows.get(&self.packet(End::First, first).flow) {
                let slot = &mut longest[*sender as usize];
                *slot = (*slot).max(self.delay(clocks, *sender, first, second));
            }
        }
        for sender in [End::First, End::Second] {
            let receiver = sender.other();
            let same: HashMap<u32, u32> = self
                .flows
                .iter()
                .filter(|(_, (_, from))| *from == sender)
                .map(|(first, (second, _))| if sender == End::First { (*second, *first) } else { (*first, *second) })
                .collect();
            let mut waiting: HashMap<u32, Vec<u32>> = HashMap::new();
            for (number, packet) in self.files[sender as usize].packets.iter().enumerate() {
                if self.partner[sender as usize][number].is_none() {
                    waiting.entry(packet.flow).or_default().push(number as u32);
                }
            }
            for (number, packet) in self.files[receiver as usize].packets.iter().enumerate().filter(|(_, p)| p.damaged) {
                let Some(candidates) = same.get(&packet.flow).and_then(|flow| waiting.get_mut(flow)) else { continue };
                let fit = |there: u32| {
                    let other = self.packet(sender, there);
                    let (first, second) = if sender == End::First { (there, number as u32) } else { (number as u32, there) };
                    let delay = self.delay(clocks, sender, first, second);
                    let possible = (-MARGIN..=longest[sender as usize] + MARGIN).contains(&delay);
                    let id = packet.ip_id.is_some() && packet.ip_id == other.ip_id;
                    let stretch = packet.start as u32 == other.start as u32 && packet.len == other.len;
                    (possible && (id || stretch)).then_some((!id, delay))
                };
                let fits = candidates.iter().take(MAX_WAITING).enumerate().filter_map(|(at, there)| Some((fit(*there)?, at)));
                if let Some((_, at)) = fits.min() {
                    let there = candidates.remove(at);
                    self.partner[sender as usize][there as usize] = Some(number as u32);
                    self.partner[receiver as usize][number] = Some(there);
                }
            }
        }
    }

    /// What became of the packets that `sender` saw leave, and how many of them came in other segments.
    fn fates(&self, sender: End, clocks: &Clocks) -> (Vec<Sent>, usize) {
        let receiver = sender.other();
        let other = &self.files[receiver as usize];
        let same: HashMap<u32, u32> = self
            .flows
            .iter()
            .filter(|(_, (_, from))| *from == sender)
            .map(|(first, (second, _))| if sender == End::First { (*first, *second) } else { (*second, *first) })
            .collect();
        let arrivals = Arrivals::of(other, same.values().copied());
        let parted = self.resegmented(sender, &same, clocks);
        let mut longest = 0;
        let mut sent = Vec::new();
        for (number, packet) in self.files[sender as usize].packets.iter().enumerate() {
            if !same.contains_key(&packet.flow) {
                continue;
            }
            let partner = self.partner[sender as usize][number].or_else(|| parted.get(&(number as u32)).copied());
            let fate = partner.map(|there| {
                let partner = self.packet(receiver, there);
                let (first, second) = if sender == End::First { (number as u32, there) } else { (there, number as u32) };
                let delay_ns = self.delay(clocks, sender, first, second);
                longest = longest.max(delay_ns);
                let number = partner.number;
                if partner.damaged {
                    Fate::Damaged { number }
                } else {
                    Fate::Arrived { number, delay_ns }
                }
            });
            sent.push((packet, fate));
        }
        // Before the first record of the other capture, or so late that it may have ended before the packet came.
        let outside = |at: u64| {
            let ahead = clocks.ahead(at);
            let there = if sender == End::First { at.wrapping_add_signed(ahead) } else { at.wrapping_add_signed(-ahead) };
            there < other.began || there.saturating_add(longest.max(0) as u64) > other.ended
        };
        // Of several copies the last one is what was acknowledged, as the sender sent no further.
        let last: HashMap<(u32, u64), u64> = sent
            .iter()
            .filter(|(_, fate)| fate.is_none())
            .map(|(packet, _)| ((packet.flow, packet.start), packet.number))
            .collect();
        let judge = |(packet, fate): (&Packet, Option<Fate>)| {
            let fate = fate.unwrap_or_else(|| {
                let is_last = last.get(&(packet.flow, packet.start)) == Some(&packet.number);
                if is_last && arrivals.only_acknowledged(same[&packet.flow], packet) {
                    Fate::Unseen
                } else if outside(packet.at) {
                    Fate::Outside
                } else {
                    Fate::Lost
                }
            });
            Sent { number: packet.number, at_ns: packet.at, len: packet.len, fate }
        };
        (sent.into_iter().map(judge).collect(), parted.len())
    }
}

/// Which octets of a flow came to a capture, and which were acknowledged there.
#[derive(Default)]
struct Arrival {
    /// Stretches that were seen, in order.
    seen: Vec<(u64, u64)>,
    /// The acknowledgement that stands highest.
    highest: Option<u64>,
}

/// The same of many flows.
struct Arrivals(BTreeMap<u32, Arrival>);

impl Arrivals {
    fn of(file: &File, flows: impl Iterator<Item = u32>) -> Self {
        let mut all: BTreeMap<u32, Arrival> = flows.map(|flow| (flow, Arrival::default())).collect();
        for packet in file.packets.iter().filter(|packet| !packet.damaged) {
            if let Some(arrival) = all.get_mut(&packet.flow).filter(|_| packet.len > 0) {
                arrival.seen.push((packet.start, packet.start + u64::from(packet.len)));
            }
            let forward = file.flows[packet.flow as usize].back;
            if let (Some(arrival), Some(ack)) = (forward.and_then(|forward| all.get_mut(&forward)), packet.ack) {
                let near = arrival.highest.or(arrival.seen.last().map(|stretch| stretch.1)).unwrap_or((1 << 32) | u64::from(ack));
                let ack = Seq(ack).near(near);
                arrival.highest = Some(arrival.highest.map_or(ack, |highest| highest.max(ack)));
            }
        }
        for arrival in all.values_mut() {
            arrival.seen.sort_unstable();
            let mut merged: Vec<(u64, u64)> = Vec::new();
            for &(start, end) in &arrival.seen {
                match merged.last_mut().filter(|last| last.1 >= start) {
                    Some(last) => last.1 = last.1.max(end),
                    None => merged.push((start, end)),
                }
            }
            arrival.seen = merged;
        }
        Self(all)
    }

    /// The receiver acknowledged these octets, and the capture at it saw no copy of them.
    fn only_acknowledged(&self, flow: u32, packet: &Packet) -> bool {
        let Some(Arrival { seen, highest: Some(highest) }) = self.0.get(&flow) else { return false };
        // Each file begins to count by itself: what is meant is nearest.
        let start = Seq(packet.start as u32).near(*highest);
        let end = start + u64::from(packet.len);
        let at = seen.partition_point(|stretch| stretch.1 <= start);
        let covered = seen.get(at).is_some_and(|stretch| stretch.0 <= start && stretch.1 >= end);
        packet.len > 0 && end <= *highest && !covered
    }
}
