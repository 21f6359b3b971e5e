//! A second look at chosen connections: every segment of them, and every round trip.

use crate::connections::{Connection, Connections, Observer, Side};
use crate::half::Kind;
use crate::headers::Segment;
use crate::records::Record;
use crate::source::Source;
use crate::{stream, CaptureError};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};

/// Segments of one connection that are kept.
pub const MOST_OF_ONE: usize = 1 << 20;
/// Segments that are kept in all.
pub const MOST: usize = 1 << 22;

/// A connection whose segments are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// What to call it: its number in the analysis.
    pub connection: u64,
    /// Its ends, in any order.
    pub ends: (SocketAddr, SocketAddr),
    /// When its first packet was captured.
    pub began: Instant,
}

/// A segment of a chosen connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// The connection.
    pub connection: u64,
    /// Who sent it.
    pub side: Side,
    /// The number of its record.
    pub number: u64,
    /// When it was captured.
    pub at: Instant,
    /// Octets of its sender's stream before it.
    pub offset: Option<u64>,
    /// Octets of data.
    pub octets: u32,
    /// Control bits.
    pub flags: Flags,
    /// What it was.
    pub kind: Kind,
    /// It did not arrive at the capture as it was sent.
    pub damaged: bool,
    /// Octets of the other stream that it acknowledges.
    pub ack: Option<u64>,
    /// The window that it offers, scaled as far as the scale is known.
    pub window: Option<u64>,
    /// SACK blocks, as octets of the other stream before their edges.
    pub sack: Vec<(u64, u64)>,
}

/// A round trip, as an acknowledgement showed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The connection.
    pub connection: u64,
    /// Who sent the data.
    pub side: Side,
    /// The number of the acknowledgement's record.
    pub number: u64,
    /// When that was captured.
    pub at: Instant,
    /// From data to its acknowledgement, and the shortest known time between sender and capture.
    pub trip: Duration,
    /// Octets under way after it.
    pub outstanding: u64,
    /// The receiver's window.
    pub window: Option<u64>,
}

/// What was seen of chosen connections.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// When the capture began.
    pub began: Instant,
    /// Their segments, in the order of the capture.
    pub segments: Vec<Detail>,
    /// Their round trips.
    pub samples: Vec<Sample>,
    /// Segments that were not kept.
    pub left_out: u64,
}

/// Reads captures again, as [`crate::analysis::analyse`] does, and keeps the segments of chosen connections.
pub fn record(
    sources: Vec<Source>,
    chosen: &[Choice],
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Details, CaptureError> {
    let mut wanted: HashMap<_, Vec<(Instant, u64)>> = HashMap::new();
    for choice in chosen {
        wanted.entry(ordered(choice.ends)).or_default().push((choice.began, choice.connection));
    }
    let mut recorder = Recorder { wanted, kept: HashMap::new(), trips: HashMap::new(), details: Details::default() };
    let mut connections = Connections::new(usize::MAX);
    let mut began = None;
    let mut each = |record: &Record, _| began = Some(began.map_or(record.at, |began: Instant| began.min(record.at)));
    stream::read(sources, &mut each, watch, &mut |segment| {
        if recorder.wanted.contains_key(&ordered((segment.src, segment.dst))) {
            connections.on_segment(segment, &mut recorder);
        }
    })?;
    recorder.details.began = began.unwrap_or_default();
    Ok(recorder.details)
}

fn ordered((one, other): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    if one <= other {
        (one, other)
    } else {
        (other, one)
    }
}

struct Recorder {
    wanted: HashMap<(SocketAddr, SocketAddr), Vec<(Instant, u64)>>,
    /// Segments kept of each.
    kept: HashMap<u64, usize>,
    /// Round trips measured so far.
    trips: HashMap<(u64, Side), u64>,
    details: Details,
}

impl Recorder {
    fn name(&self, connection: &Connection) -> Option<u64> {
        let known = self.wanted.get(&ordered((connection.client, connection.server)))?;
        known.iter().find(|(began, _)| *began == connection.began).map(|(_, name)| *name)
    }
}

impl Observer for Recorder {
    fn on_segment(&mut self, connection: &Connection, side: Side, segment: &Segment, kind: Kind) {
        let Some(name) = self.name(connection) else { return };
        let kept = self.kept.entry(name).or_default();
        if *kept == MOST_OF_ONE || self.details.segments.len() == MOST {
            self.details.left_out += 1;
            return;
        }
        *kept += 1;
        let (own, other) = (connection.half(side), connection.half(side.other()));
        let acknowledges = segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::RST) && !segment.is_damaged();
        let sack = segment.options.sack().iter().filter(|_| acknowledges);
        self.details.segments.push(Detail {
            connection: name,
            side,
            number: segment.number,
            at: segment.at,
            offset: own.offset(segment.seq),
            octets: segment.len,
            flags: segment.flags,
            kind,
            damaged: segment.is_damaged(),
            ack: other.offset(segment.ack).filter(|_| acknowledges),
            window: other.window().filter(|_| acknowledges),
            sack: sack.filter_map(|(from, to)| Some((other.offset(*from)?, other.offset(*to)?))).collect(),
        });
        let measured = self.trips.entry((name, side.other())).or_default();
        if let (true, Some(trip)) = (other.trips.samples() > *measured, other.trips.latest()) {
            *measured = other.trips.samples();
            self.details.samples.push(Sample {
                connection: name,
                side: side.other(),
                number: segment.number,
                at: segment.at,
                trip: trip + other.trips.left().unwrap_or_default(),
                outstanding: other.outstanding(),
                window: other.window(),
            });
        }
    }

    fn on_end(&mut self, _: Connection) {}
}
