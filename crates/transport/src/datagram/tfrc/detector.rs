//! Loss events at a receiver (RFC 5348, 5.1 and 5.2; RFC 4342, 10.2).

use super::intervals::INTERVALS;
use std::collections::{BTreeMap, VecDeque};

/// A packet is lost when this many later ones arrived (`NDUPACK`, RFC 5348, 5.1).
const LATER: usize = 3;
/// The longest hole whose packets are judged one by one: a longer one is taken as one loss.
const LONGEST_HOLE: u64 = 1 << 14;

/// A packet that arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// When, by the clock that tells round trips apart.
    at: u64,
    /// It was marked, or its data counts as lost.
    bad: bool,
}

/// From a loss event on up to the next.
#[derive(Clone, Copy, Debug)]
pub struct Interval {
    /// Its first packet.
    pub start: u64,
    /// Behind the last bad packet of its event.
    pub lossy_end: u64,
    /// When its first bad packet arrived or would have; `None` before the first loss.
    pub began: Option<u64>,
}

/// Finds what is lost, and what of it is one loss event: all within a round trip of the first. The clock is whatever the transport has: time, or
/// a counter of quarters of a round trip.
#[derive(Debug)]
pub struct Detector {
    /// Everything before this packet has arrived or is declared lost.
    frontier: u64,
    /// The last packet before that one that arrived.
    before: (u64, u64),
    /// Packets that arrived from there on.
    waiting: BTreeMap<u64, Arrival>,
    /// The open interval first.
    intervals: VecDeque<Interval>,
}

impl Detector {
    /// The packet `first` is the first to count.
    pub fn new(first: u64) -> Self {
        Self {
            frontier: first,
            before: (first - 1, 0),
            waiting: BTreeMap::new(),
            intervals: VecDeque::from([Interval { start: first, lossy_end: first, began: None }]),
        }
    }

    /// Everything before this packet has arrived or is declared lost.
    pub const fn frontier(&self) -> u64 {
        self.frontier
    }

    /// The open interval first; the last one has no loss event if none came before it.
    pub const fn intervals(&self) -> &VecDeque<Interval> {
        &self.intervals
    }

    /// Whether a packet has arrived or is declared lost.
    pub fn knows(&self, seq: u64) -> bool {
        seq < self.frontier || self.waiting.contains_key(&seq)
    }

    /// A packet arrived `at` this time that was not known before. Returns the number of loss events that it made known.
    pub fn on_packet(&mut self, seq: u64, at: u64, bad: bool, round_trip: u64) -> usize {
        self.waiting.insert(seq, Arrival { at, bad });
        let mut events = 0;
        while let Some((&seq, &arrival)) = self.waiting.first_key_value() {
            if seq == self.frontier {
                self.waiting.remove(&seq);
                if arrival.bad {
                    events += usize::from(self.bad(seq, arrival.at, round_trip));
                }
                self.before = (seq, arrival.at);
                self.frontier += 1;
            } else if self.waiting.len() >= LATER {
                let (start, since) = self.before;
                // Between the packets around it the time of a lost one lies on a line.
                let step = arrival.at.saturating_sub(since);
                for lost in self.frontier.max(seq.saturating_sub(LONGEST_HOLE))..seq {
                    let passed = u128::from(step) * u128::from(lost - start) / u128::from(seq - start);
                    events += usize::from(self.bad(lost, since + passed as u64, round_trip));
                }
                self.frontier = seq;
            } else {
                break;
            }
        }
        events
    }

    /// A packet is lost or marked. Returns whether that is a new loss event.
    fn bad(&mut self, seq: u64, at: u64, round_trip: u64) -> bool {
        let open = &mut self.intervals[0];
        if open.began.is_some_and(|first| at <= first.saturating_add(round_trip)) {
            open.lossy_end = seq + 1;
            return false;
        }
        self.intervals.push_front(Interval { start: seq, lossy_end: seq + 1, began: Some(at) });
        self.intervals.truncate(INTERVALS + 1);
        true
    }
}
