//! A connection as users see it.

use super::row::{Row, CAUSES, DIFFERENTIATORS};
use crate::stat::Counts;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use std::net::{IpAddr, Ipv6Addr};

/// What one cause was found for.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Tally {
    /// Episodes of losses: each begins with a fast retransmission, a timeout or a tail loss probe that repaired one.
    pub episodes: u32,
    /// Segments taken for lost in them.
    pub losses: u32,
    /// Share of the differentiators that agreed, of those that could tell; the mean over the episodes. `None` without episodes.
    pub agreement: Option<f64>,
    /// Score, from certain congestion, 0, to certain corruption, 1: the mean over differentiators and episodes.
    pub score: Option<f64>,
}

/// What one differentiator said of the episodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Said {
    /// Episodes that it could not judge.
    pub unknown: u32,
    /// Episodes that it took for congestion.
    pub congestion: u32,
    /// Episodes that it took for corruption.
    pub corruption: u32,
    /// The mean of its scores; `None` if it has judged none.
    pub score: Option<f64>,
}

/// Values by name, in a fixed order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Named<T, const N: usize> {
    names: [&'static str; N],
    values: [T; N],
}

impl<T, const N: usize> Named<T, N> {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.names.iter().position(|known| *known == name).map(|at| &self.values[at])
    }
}

impl<T: Serialize, const N: usize> Serialize for Named<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(N))?;
        for (name, value) in self.names.iter().zip(&self.values) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A TCP connection of this machine. Counts are from its beginning, those of causes from when the observer first saw it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Connection {
    /// The kernel's number for the socket; never used twice.
    pub cookie: u64,
    /// Address at this machine.
    pub local: IpAddr,
    /// Port at this machine.
    pub local_port: u16,
    /// Address of the other end.
    pub remote: IpAddr,
    /// Port of the other end.
    pub remote_port: u16,
    /// Inode of the network namespace.
    pub netns: u32,
    /// Process that holds the socket; `None` if none does, or none that is visible from here.
    pub pid: Option<u32>,
    /// The name of that process (`comm`), at most 15 octets.
    pub process: String,
    /// Path of the control group of version 2; empty if it has gone.
    pub cgroup: String,
    /// Name of the congestion control in the kernel.
    pub control: String,
    /// State of the connection, as `ss` names it.
    pub state: &'static str,
    /// State of congestion avoidance: open, disorder, cwr, recovery or loss.
    pub recovery: &'static str,
    /// Whether the connection has ended: no later snapshot has it.
    pub closed: bool,
    /// When the observer first saw it, in seconds of `CLOCK_MONOTONIC`.
    pub since_s: f64,
    /// Whether that was its beginning.
    pub whole: bool,
    /// Octets that the other end has acknowledged.
    pub bytes_acked: u64,
    /// Octets of data received in order (`tcpi_bytes_received`).
    pub bytes_received: u64,
    /// Octets of data sent again (`tcpi_bytes_retrans`).
    pub bytes_retransmitted: u64,
    /// Segments with data sent, with retransmissions.
    pub segments_out: u32,
    /// Segments with data received.
    pub segments_in: u32,
    /// Segments sent again (`tcpi_total_retrans`).
    pub retransmissions: u32,
    /// Segments taken for lost, each as often as it was, and those that a tail loss probe repaired.
    pub losses: u32,
    /// Of these, repaired by a tail loss probe, since the observer first saw the connection.
    pub probed: u32,
    /// Retransmission timeouts (`tcpi_total_rto` where the kernel counts them, else those since the observer began).
    pub timeouts: u32,
    /// Segments sent that arrived marked: congestion experienced.
    pub marked: u32,
    /// Received segments that failed their checksum.
    pub damaged_in: u32,
    /// Smoothed round-trip time in microseconds.
    pub srtt_us: u32,
    /// Smallest round-trip time that the kernel knows in microseconds; `None` before the first sample.
    pub min_rtt_us: Option<u32>,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; `None` before the first loss.
    pub ssthresh: Option<u32>,
    /// Segments sent and not acknowledged (`packets_out`).
    pub in_flight: u32,
    /// Octets of data in a full segment.
    pub mss: u32,
    /// Rate that the kernel paces at, in bits a second; `None` without a limit.
    pub pacing_bps: Option<u64>,
    /// The cause of the episode of losses under way, if there is one with losses.
    pub pending: Option<&'static str>,
    /// Segments taken for lost in it so far.
    pub pending_losses: u32,
    /// Episodes that have ended, by cause.
    pub causes: Named<Tally, { CAUSES.len() }>,
    /// What each differentiator said of the episodes that have begun.
    pub differentiators: Named<Said, { DIFFERENTIATORS.len() }>,
    /// What the connection's own control has counted, if it is one of this package; see [`crate::stat::COUNTERS`].
    pub decided: Option<Counts>,
}

/// States of `enum tcp_state`, as `ss` names them.
const STATES: [&str; 13] = [
    "unknown",
    "established",
    "syn-sent",
    "syn-recv",
    "fin-wait-1",
    "fin-wait-2",
    "time-wait",
    "closed",
    "close-wait",
    "last-ack",
    "listening",
    "closing",
    "new-syn-recv",
];

/// States of `enum tcp_ca_state`.
const RECOVERIES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

/// `sum` in 1/65536, as a mean over `count`.
fn mean(sum: u64, count: u32) -> Option<f64> {
    (count > 0).then(|| sum as f64 / 65536.0 / f64::from(count))
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field.split(|octet| *octet == 0).next().unwrap_or_default()).into_owned()
}

impl Connection {
    /// What `row` says; its control group is at `cgroup`, its control has `decided` so.
    pub(super) fn new(row: &Row, cgroup: String, decided: Option<Counts>) -> Self {
        let tallies = row.tallies.map(|tally| Tally {
            episodes: tally.episodes,
            losses: tally.losses,
            agreement: mean(tally.agreement, tally.episodes),
            score: mean(tally.score, tally.episodes),
        });
        let said = row.said.map(|said| Said {
            unknown: said.verdicts[0],
            congestion: said.verdicts[1],
            corruption: said.verdicts[2],
            score: mean(said.score, said.verdicts[1] + said.verdicts[2]),
        });
        Self {
            cookie: row.cookie,
            local: Ipv6Addr::from(row.local).to_canonical(),
            local_port: row.local_port,
            remote: Ipv6Addr::from(row.remote).to_canonical(),
            remote_port: row.remote_port,
            netns: row.netns,
            pid: (row.pid != 0).then_some(row.pid),
            process: text(&row.process),
            cgroup,
            control: text(&row.control),
            state: STATES.get(usize::from(row.state)).unwrap_or(&STATES[0]),
            recovery: RECOVERIES.get(usize::from(row.recovery)).unwrap_or(&RECOVERIES[0]),
            closed: row.closed != 0,
            since_s: row.since_ns as f64 / 1e9,
            whole: row.whole != 0,
            bytes_acked: row.bytes_acked,
            bytes_received: row.bytes_received,
            bytes_retransmitted: row.bytes_retransmitted,
            segments_out: row.segments_out,
            segments_in: row.segments_in,
            retransmissions: row.retransmissions,
            losses: row.losses.saturating_add(row.probed),
            probed: row.probed,
            timeouts: row.timeouts,
            marked: row.marked,
            damaged_in: row.damaged,
            srtt_us: row.srtt_us,
            min_rtt_us: (row.min_rtt_us != u32::MAX).then_some(row.min_rtt_us),
            cwnd: row.cwnd,
            // TCP_INFINITE_SSTHRESH of the kernel.
            ssthresh: (row.ssthresh != i32::MAX as u32).then_some(row.ssthresh),
            in_flight: row.in_flight,
            mss: row.mss,
            pacing_bps: (row.pacing_rate != u64::MAX).then(|| row.pacing_rate.saturating_mul(8)),
            pending: CAUSES.get(usize::from(row.pending_cause)).copied().filter(|_| row.pending_losses > 0),
            pending_losses: row.pending_losses,
            causes: Named { names: CAUSES, values: tallies },
            differentiators: Named { names: DIFFERENTIATORS, values: said },
            decided,
        }
    }
}
