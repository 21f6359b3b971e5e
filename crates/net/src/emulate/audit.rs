//! What an emulated link really did, beside what it was asked for.

use crate::realtime::Scheduling;
use hdrhistogram::Histogram;
use serde::Serialize;
use whyloss_sim::{Cause, CrossingCounts};

/// What an emulator may get wrong before its run does not count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The 99th percentile of the delay error: how much later than it should a packet is handed on. Nanoseconds.
    pub p99_error: u64,
    /// Share of the packets that the kernel did not take from the emulator.
    pub refused: f64,
}

/// 1 ms is a twentieth of the shortest round trip of the experiments that this project repeats (20 ms, Garcia & Brunstrom 2004).
pub const MAX_P99_ERROR: u64 = 1_000_000;
/// One packet in ten thousand is well below the smallest loss rate that the experiments tell apart (0.1 %).
pub const MAX_REFUSED: f64 = 1e-4;

impl Default for Bounds {
    fn default() -> Self {
        Self { p99_error: MAX_P99_ERROR, refused: MAX_REFUSED }
    }
}

/// A histogram of delay errors, in nanoseconds.
#[derive(Debug)]
pub struct Errors(Histogram<u64>);

impl Default for Errors {
    fn default() -> Self {
        // Nanoseconds up to 100 s, to two digits.
        Self(Histogram::new_with_bounds(1, 100_000_000_000, 2).expect("bounds that the histogram admits"))
    }
}

impl Errors {
    /// Counts one error of so many nanoseconds.
    pub fn add(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds.max(1));
    }

    /// The percentiles and the bars.
    pub fn summary(&self) -> ErrorSummary {
        let micros = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
        let at = |percentile| micros(self.0.value_at_percentile(percentile));
        ErrorSummary {
            packets: self.0.len(),
            p50_us: at(50.0),
            p90_us: at(90.0),
            p99_us: at(99.0),
            p999_us: at(99.9),
            max_us: micros(self.0.max()),
            histogram: self
                .0
                .iter_log(1000, 2.0)
                .filter(|bar| bar.count_since_last_iteration() > 0)
                .map(|bar| Bar { up_to_us: micros(bar.value_iterated_to() + 1), packets: bar.count_since_last_iteration() })
                .collect(),
        }
    }
}

/// How much later than they should packets were handed on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ErrorSummary {
    /// Number of packets that left.
    pub packets: u64,
    /// Median error, microseconds.
    pub p50_us: f64,
    /// 90th percentile of the error, microseconds.
    pub p90_us: f64,
    /// 99th percentile of the error, microseconds.
    pub p99_us: f64,
    /// 99.9th percentile of the error, microseconds.
    pub p999_us: f64,
    /// Largest error, microseconds.
    pub max_us: f64,
    /// Numbers of packets by error; bars that are empty are left out.
    pub histogram: Vec<Bar>,
}

/// One bar of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// Its upper end, microseconds; its lower end is half of that, of the first bar 0.
    pub up_to_us: f64,
    /// Packets with an error between its ends.
    pub packets: u64,
}

/// One link of a direction's chain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HopAudit {
    /// The direction's name, such as `emulator>client`.
    pub name: String,
    /// Packets that came to its queue.
    pub offered: u64,
    /// Packets that arrived at its end, damaged ones included.
    pub delivered: u64,
    /// Packets that arrived with bits flipped.
    pub damaged: u64,
    /// Packets that arrived twice.
    pub duplicated: u64,
    /// Packets that its queue marked.
    pub marked: u64,
    /// Packets that it lost, by cause; causes without any are left out.
    pub dropped: Vec<(&'static str, u64)>,
    /// Most packets that waited at once.
    pub max_queue_packets: u64,
    /// Mean time that a packet which the queue took waited in it, milliseconds.
    pub mean_wait_ms: f64,
    /// Rate that was asked for, bit/s; `None` if a trace said when it could send.
    pub rate_bps: Option<u64>,
    /// Share of its packets that its channel should damage or erase, if its error model says so.
    pub expected_error_share: Option<f64>,
    /// Share of its packets that it did damage or erase.
    pub error_share: f64,
}

impl HopAudit {
    pub(super) fn new(name: &str, rate_bps: Option<u64>, expected_error_share: Option<f64>, counts: &CrossingCounts) -> Self {
        let crossed = counts.delivered + counts.dropped.get(Cause::Erased);
        let refused_by_queue = counts.dropped.iter().filter(|(cause, _)| cause.is_refusal()).map(|(_, count)| count).sum::<u64>();
        let spoilt = counts.damaged + counts.dropped.get(Cause::Erased);
        Self {
            name: name.to_owned(),
            offered: counts.offered,
            delivered: counts.delivered,
            damaged: counts.damaged,
            duplicated: counts.duplicated,
            marked: counts.marked,
            dropped: counts.dropped.iter().filter(|(_, count)| *count > 0).map(|(cause, count)| (cause.name(), count)).collect(),
            max_queue_packets: counts.max_packets,
            mean_wait_ms: counts.waited as f64 / 1e6 / (counts.offered - refused_by_queue).max(1) as f64,
            rate_bps,
            expected_error_share,
            error_share: if crossed == 0 { 0.0 } else { spoilt as f64 / crossed as f64 },
        }
    }
}

/// What the agent at an emulated link did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MiddleboxAudit {
    /// Its name.
    pub kind: &'static str,
    /// Segments that it saw, in both directions.
    pub seen: u64,
    /// Segments whose journey it ended because their receiver had no need of them, or could not be shown to it.
    pub suppressed: u64,
    /// Of those that it saw, the ones that it took in their receiver's place.
    pub accepted: u64,
    /// Of those, the ones that it changed.
    pub changed: u64,
    /// Segments that it made and sent itself.
    pub sent: u64,
    /// Segments that it made and that could not be sent: their connection was forgotten.
    pub unsent: u64,
    /// Connections that had to be forgotten to make room for others.
    pub evicted: u64,
    /// Segments that passed unseen because there was no room for another connection.
    pub unremembered: u64,
    /// The most connections that it remembered at a time.
    pub flows: u64,
    /// The most segments, or pieces of data, of all connections that it remembered at a time.
    pub segments: u64,
    /// The most octets of memory for all connections.
    pub octets: u64,
    /// The most segments of one connection.
    pub connection_segments: u64,
    /// The most octets of memory for one connection.
    pub connection_octets: u64,
}

/// What one direction of an emulator did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Audit {
    /// The direction, from where to where.
    pub name: String,
    /// Packets read from the ingress device.
    pub received: u64,
    /// Packets written to the egress device.
    pub sent: u64,
    /// Octets of IP packets written to the egress device.
    pub sent_octets: u64,
    /// Packets that the kernel did not take: the device was down, or they were no IP packets any more.
    pub refused: u64,
    /// The smallest rate that was asked for on the way, bit/s; `None` if a trace said when a link could send.
    pub rate_bps: Option<u64>,
    /// What came out while packets stood waiting for the slowest link, bit/s; `None` if that was never long enough to measure.
    pub achieved_bps: Option<f64>,
    /// Seconds since the start.
    pub seconds: f64,
    /// How much later than they should packets were handed on.
    pub error: ErrorSummary,
    /// Seconds for which the emulator could have worked and did not get a processor, if the kernel counts that.
    pub waited_for_processor_s: Option<f64>,
    /// How it was scheduled.
    pub scheduling: Scheduling,
    /// The links of its chain.
    pub hops: Vec<HopAudit>,
    /// What the agent at the link did; it stands with the direction in which packets leave the agent over its link.
    pub middlebox: Option<MiddleboxAudit>,
    /// Why this run does not count; empty if it does.
    pub flaws: Vec<String>,
}

impl Audit {
    /// Whether every error is within its bound.
    pub fn is_valid(&self) -> bool {
        self.flaws.is_empty()
    }

    pub(super) fn judge(mut self, bounds: &Bounds) -> Self {
        let bound = bounds.p99_error as f64 / 1000.0;
        if self.error.packets > 0 && self.error.p99_us > bound {
            self.flaws.push(format!(
                "{}: 1 % of the packets were handed on more than {:.0} us late; allowed is {bound:.0} us",
                self.name, self.error.p99_us
            ));
        }
        let tried = self.sent + self.refused;
        if self.refused as f64 > bounds.refused * tried as f64 {
            self.flaws.push(format!(
                "{}: the kernel did not take {} of {tried} packets; allowed is a share of {}",
                self.name, self.refused, bounds.refused
            ));
        }
        self
    }
}
