//! What an analysis says: rows of tables, and facts about the capture.

use crate::cause::{Cause, Probabilities};
use crate::connections::{Place, Side};
use crate::evidence::Evidence;
use crate::half::{Counts, Retransmission};
use crate::join::agreement::BothEnds;
use crate::join::{End, Sent};
use crate::limits::{Limit, Stall};
use crate::records::About;
use crate::replay::Says;
use crate::taken::Taken;
use serde::Serialize;
use std::net::SocketAddr;
use whyloss_transport::time::{Duration, Instant};

/// One direction of a connection, in which data was sent.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Number of the connection in the capture, from 0, in the order of first packets; connections without data are not counted.
    pub connection: u64,
    /// Who sent the data.
    pub side: Side,
    /// Its address.
    pub sender: SocketAddr,
    /// Where it sent to.
    pub receiver: SocketAddr,
    /// When the connection's first packet was captured.
    pub began: Instant,
    /// When its latest was.
    pub ended: Instant,
    /// The SYN was captured.
    pub opened: bool,
    /// The connection was reset.
    pub reset: bool,
    /// Where the capture was taken, seen from this sender.
    pub place: Place,
    /// Octets acknowledged.
    pub acknowledged: u64,
    /// Largest segment.
    pub mss: u32,
    /// The shortest round trip of the sender, both parts together.
    pub shortest_trip: Option<Duration>,
    /// The smoothed one at the end.
    pub smoothed_trip: Option<Duration>,
    /// The longest time from data to its acknowledgement.
    pub longest_trip: Option<Duration>,
    /// What was counted.
    pub counts: Counts,
    /// Suspected losses by cause, in the order of [`Cause::ALL`].
    pub causes: [u64; Cause::ALL.len()],
}

/// A segment that was sent again, with its connection.
#[derive(Clone, Debug)]
pub struct SentAgain {
    /// Number of the connection.
    pub connection: u64,
    /// Who sent it.
    pub side: Side,
    /// What is known of it.
    pub what: Retransmission,
}

/// A packet that was lost, or that its sender took for lost.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Number of the connection.
    pub connection: u64,
    /// Who sent the packet.
    pub side: Side,
    /// Its record, if it came to the capture.
    pub packet: Option<u64>,
    /// When it was captured; if it was not, about when it must have been.
    pub at: Instant,
    /// Octets of the stream before it.
    pub offset: u64,
    /// Octets of data.
    pub octets: u32,
    /// The record that repaired it, and when.
    pub repair: Option<(u64, Instant)>,
    /// How probable each cause is.
    pub probabilities: Probabilities,
    /// What speaks for it, in words and numbers, the weightiest first.
    pub evidence: Vec<String>,
    /// The numbers behind it; `None` if only its repair tells of it.
    pub known: Option<Box<Evidence>>,
    /// What differentiators of the engine say of it.
    pub says: Vec<Says>,
}

/// The time that a direction of a connection spent at a limit.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Number of the connection.
    pub connection: u64,
    /// Who sent the data.
    pub side: Side,
    /// What data waited for.
    pub limit: Limit,
    /// For how long.
    pub time: Duration,
    /// How often nothing went on meanwhile for longer than usual.
    pub stalls: u32,
}

/// A time in which nothing went on, with its connection.
#[derive(Clone, Copy, Debug)]
pub struct Stalled {
    /// Number of the connection.
    pub connection: u64,
    /// Who sent the data, or should have.
    pub side: Side,
    /// What is known of it.
    pub what: Stall,
}

/// What was left out to keep memory bounded: counts go on, rows do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Connections that were let go before they ended.
    pub connections: u64,
    /// Rows of flows.
    pub flows: u64,
    /// Rows of losses.
    pub losses: u64,
    /// Rows of retransmissions.
    pub retransmissions: u64,
    /// Rows of limits.
    pub limits: u64,
    /// Rows of stalls.
    pub stalls: u64,
}

impl LeftOut {
    fn add(&mut self, other: Self) {
        self.connections += other.connections;
        self.flows += other.flows;
        self.losses += other.losses;
        self.retransmissions += other.retransmissions;
        self.limits += other.limits;
        self.stalls += other.stalls;
    }
}

/// The capture as a whole.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Facts {
    /// Its files.
    pub files: Vec<String>,
    /// Records.
    pub packets: u64,
    /// Records that hold a TCP segment.
    pub segments: u64,
    /// Records that hold something else.
    pub others: u64,
    /// Connections seen.
    pub connections: u64,
    /// When the first packet was captured: nanoseconds since the epoch of the file's clock, as a rule that of Unix.
    pub began_ns: u64,
    /// When the latest was.
    pub ended_ns: u64,
    /// Packets that the capture's own counters say it missed.
    pub missed: Option<u64>,
    /// Times at which the clock went back.
    pub backward: u64,
    /// Packets of which a part was cut off.
    pub cut: u64,
    /// What the capture is.
    pub taken: Taken,
    /// That in words, with what follows for the trust in the rest.
    pub capture_paragraph: String,
    /// Link types of packets that could therefore not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_links: Vec<i32>,
    /// What was noticed, in words.
    pub remarks: Vec<String>,
    /// What was left out.
    pub left_out: LeftOut,
    /// What a second capture, taken at the other end, adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub both_ends: Option<BothEnds>,
}

impl Facts {
    /// All is there: says what the capture is.
    pub(crate) fn conclude(&mut self) {
        self.taken.conclude();
        self.capture_paragraph = self.taken.paragraph(self.packets, self.missed, self.cut);
    }

    /// Takes over what a file says of itself.
    pub(crate) fn add(&mut self, file: &str, about: &About) {
        self.files.push(file.to_owned());
        self.packets += about.packets;
        self.backward += about.backward;
        self.cut += about.cut;
        self.missed = match (self.missed, about.missed) {
            (Some(before), Some(more)) => Some(before.saturating_add(more)),
            (before, more) => before.or(more),
        };
        self.unknown_links.extend(&about.unknown_links);
        self.unknown_links.sort_unstable();
        self.unknown_links.dedup();
        self.remarks.extend(about.remarks.iter().map(|remark| format!("{file}: {remark}")));
        if about.more_remarks > 0 {
            self.remarks.push(format!("{file}: {} further remarks", about.more_remarks));
        }
    }
}

/// All that is said of a capture.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// The capture as a whole.
    pub facts: Facts,
    /// Directions of connections in which data was sent.
    pub flows: Vec<Flow>,
    /// What was sent again.
    pub retransmissions: Vec<SentAgain>,
    /// What was lost, or taken for lost.
    pub losses: Vec<Loss>,
    /// What limited each direction, and for how long.
    pub limits: Vec<Spent>,
    /// When nothing went on.
    pub stalls: Vec<Stalled>,
    /// What became of each packet, if there are captures of both ends.
    pub fates: Vec<(End, Sent)>,
}

/// A row of a table, which belongs to a connection.
pub(crate) trait Row {
    fn connection(&mut self) -> &mut u64;

    /// Octets that it takes beside itself, in the end.
    fn elsewhere(&self) -> usize {
        0
    }
}

impl Row for Flow {
    fn connection(&mut self) -> &mut u64 {
        &mut self.connection
    }
}

impl Row for SentAgain {
    fn connection(&mut self) -> &mut u64 {
        &mut self.connection
    }
}

impl Row for Loss {
    fn connection(&mut self) -> &mut u64 {
        &mut self.connection
    }

    fn elsewhere(&self) -> usize {
        /// The evidence in words, which comes when all is known.
        const WORDS: usize = 512;
        let known = if self.known.is_some() { size_of::<Evidence>() } else { 0 };
        known + WORDS + self.says.capacity() * size_of::<Says>()
    }
}

impl Row for Spent {
    fn connection(&mut self) -> &mut u64 {
        &mut self.connection
    }
}

impl Row for Stalled {
    fn connection(&mut self) -> &mut u64 {
        &mut self.connection
    }
}

impl Analysis {
    /// Takes over the rows of a part of the connections.
    pub(crate) fn take_over(&mut self, part: Self) {
        let Self { facts, flows, retransmissions, losses, limits, stalls, fates } = part;
        self.facts.connections += facts.connections;
        self.facts.taken.add(&facts.taken);
        self.facts.left_out.add(facts.left_out);
        self.flows.extend(flows);
        self.retransmissions.extend(retransmissions);
        self.losses.extend(losses);
        self.limits.extend(limits);
        self.stalls.extend(stalls);
        self.fates.extend(fates);
    }

    /// Brings the rows in order, and numbers connections, which were named by their first record, from 0.
    pub(crate) fn in_order(&mut self) {
        self.flows.sort_by_key(|flow| (flow.connection, flow.side));
        self.retransmissions.sort_by_key(|sent| sent.what.number);
        self.losses.sort_by_key(|loss| (loss.at, loss.repair, loss.connection, loss.side));
        self.limits.sort_by_key(|spent| (spent.connection, spent.side, spent.limit));
        self.stalls.sort_by_key(|stalled| (stalled.what.at, stalled.connection, stalled.side));
        let mut names: Vec<u64> = self.rows().map(|row| *row.connection()).collect();
        names.sort_unstable();
        names.dedup();
        for row in self.rows() {
            let name = row.connection();
            *name = names.partition_point(|other| *other < *name) as u64;
        }
    }

    /// The rows of all tables.
    fn rows(&mut self) -> impl Iterator<Item = &mut dyn Row> {
        let flows = self.flows.iter_mut().map(|row| row as &mut dyn Row);
        let retransmissions = self.retransmissions.iter_mut().map(|row| row as &mut dyn Row);
        let losses = self.losses.iter_mut().map(|row| row as &mut dyn Row);
        let limits = self.limits.iter_mut().map(|row| row as &mut dyn Row);
        let stalls = self.stalls.iter_mut().map(|row| row as &mut dyn Row);
        flows.chain(retransmissions).chain(losses).chain(limits).chain(stalls)
    }
}
