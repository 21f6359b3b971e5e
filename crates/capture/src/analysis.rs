//! The driver: from files to what is said of them.

use crate::cause::Cause;
use crate::connections::{Connection, Connections, Observer, Place, Side};
use crate::evidence::Trail;
use crate::half::{Hole, Kind, Retransmission, Unanswered};
use crate::headers::Segment;
use crate::join::agreement::BothEnds;
use crate::join::{self, join, End};
use crate::limits::Stall;
use crate::records::Record;
use crate::replay::{Judges, Panel};
use crate::report::{Analysis, Facts, Flow, Loss, Row, SentAgain, Spent, Stalled};
use crate::shards::{Shard, SHARDS};
use crate::source::Source;
use crate::{connections, losses, shards, stream, CaptureError};
use ahash::RandomState;
use std::collections::HashMap;
use std::ops::ControlFlow;
use whyloss_transport::time::{Duration, Instant};

/// What is asked for, and what may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where the capture was taken, if somebody knows better.
    pub at: Option<Place>,
    /// Connections that are followed at once.
    pub connections: usize,
    /// Octets that they take together, with all that is remembered of them.
    pub memory: usize,
    /// Rows of each table that are kept. Of this and the other bounds each of the parts into which the connections are divided has its share.
    pub rows: usize,
    /// Octets that the rows of all tables take together.
    pub tables: usize,
    /// Which of the engine's differentiators judge the losses, too.
    pub judges: Judges,
    /// Packets of each file that are joined, where there are captures of both ends.
    pub joined: usize,
    /// Threads that follow connections, beside the one that reads; with 1 the reading one does it. What comes out is the same.
    pub workers: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            at: None,
            connections: connections::DEFAULT_LIMIT,
            memory: connections::DEFAULT_OCTETS,
            rows: 1 << 20,
            tables: 1 << 30,
            joined: join::DEFAULT_LIMIT,
            judges: Judges::None,
            workers: shards::workers(),
        }
    }
}

/// How far the work is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Records read.
    pub packets: u64,
}

/// Reads captures, one after the other as if they were one, and says what was lost in them and why.
///
/// `watch` hears now and then how far it is. Once it says to stop, what was read is analysed, and a remark says so.
pub fn analyse(
    sources: Vec<Source>,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Analysis, CaptureError> {
    let part = Settings {
        connections: settings.connections.div_ceil(SHARDS),
        memory: settings.memory.div_ceil(SHARDS),
        rows: settings.rows.div_ceil(SHARDS),
        tables: settings.tables.div_ceil(SHARDS),
        ..*settings
    };
    let parts = (0..SHARDS).map(|_| Part::new(part)).collect();
    let (parts, facts) = shards::run(parts, settings.workers, |hand_on| read(sources, hand_on, watch));
    let mut analysis = Analysis { facts: facts?, ..Analysis::default() };
    for part in parts {
        part.finish(&mut analysis);
    }
    analysis.in_order();
    conclude(&mut analysis, settings.judges);
    analysis.facts.conclude();
    Ok(analysis)
}

/// Explains the capture of one end beside that of the other, which knows what became of each packet.
///
/// `open` opens either; the first is read twice.
pub fn analyse_both_ends(
    open: &dyn Fn(End) -> Result<Source, CaptureError>,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Analysis, CaptureError> {
    let joined = join(open(End::First)?, open(End::Second)?, settings.joined)?;
    let mut analysis = analyse(vec![open(End::First)?], settings, watch)?;
    let suspected = analysis.losses.iter().filter_map(|loss| Some((loss.packet?, loss.probabilities.likeliest())));
    analysis.facts.both_ends = Some(BothEnds::new(&joined, suspected));
    let [first, second] = joined.sent;
    let rows = first.into_iter().map(|sent| (End::First, sent)).chain(second.into_iter().map(|sent| (End::Second, sent)));
    analysis.fates = rows.collect();
    Ok(analysis)
}

/// Reads captures, hands on their segments, and says what the files said of themselves.
fn read(
    sources: Vec<Source>,
    hand_on: &mut dyn FnMut(&Segment),
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Facts, CaptureError> {
    let mut facts = Facts::default();
    let (mut began, mut ended) = (u64::MAX, 0);
    let mut each = |record: &Record, is_segment: bool| {
        let at = record.at.as_nanos();
        (began, ended) = (began.min(at), ended.max(at));
        facts.taken.clock.note(record.at);
        facts.segments += u64::from(is_segment);
        facts.others += u64::from(!is_segment);
    };
    let stream = stream::read(sources, &mut each, &mut |packets| watch(Progress { packets }), hand_on)?;
    stream.files.iter().for_each(|(name, about)| facts.add(name, about));
    if let Some((name, _)) = stream.files.last().filter(|_| stream.stopped) {
        facts.remarks.push(format!("{name}: stopped here; what comes after is not read"));
    }
    facts.taken.disbelieved_checksums = stream.disbelieved;
    facts.taken.clock.late = stream.late;
    (facts.began_ns, facts.ended_ns) = (began.min(ended), ended);
    Ok(facts)
}

/// Some of the connections, and what is written down of them.
struct Part {
    connections: Connections,
    analyst: Analyst,
}

impl Part {
    fn new(settings: Settings) -> Self {
        let connections = Connections::bounded(settings.connections, settings.memory);
        let room = Room { rows: settings.rows, octets: settings.tables };
        Self {
            connections,
            analyst: Analyst { settings, room, analysis: Analysis::default(), open: HashMap::default(), latest: 0 },
        }
    }

    /// No more segments will come: what was written down goes to the rest.
    fn finish(mut self, whole: &mut Analysis) {
        self.connections.went_on_until(Instant::from_nanos(whole.facts.ended_ns));
        self.connections.finish(&mut self.analyst);
        let facts = &mut self.analyst.analysis.facts;
        facts.connections = self.connections.seen;
        facts.left_out.connections = self.connections.forgotten;
        whole.take_over(self.analyst.analysis);
    }
}

impl Shard for Part {
    fn on_segment(&mut self, segment: &Segment) {
        self.connections.on_segment(segment, &mut self.analyst);
    }
}

/// Judges all losses, once every connection is known.
fn conclude(analysis: &mut Analysis, judges: Judges) {
    let mut flows: HashMap<(u64, Side), &mut Flow> =
        analysis.flows.iter_mut().map(|flow| ((flow.connection, flow.side), flow)).collect();
    losses::conclude(&mut analysis.losses, judges, &|connection, side| {
        flows.get(&(connection, side)).map_or(Place::Unknown, |flow| flow.place)
    });
    for loss in &analysis.losses {
        if let Some(flow) = flows.get_mut(&(loss.connection, loss.side)) {
            flow.causes[loss.probabilities.likeliest() as usize] += 1;
        }
    }
}

/// Writes down what happens.
struct Analyst {
    settings: Settings,
    room: Room,
    analysis: Analysis,
    /// What is remembered of connections that are not over, of the client's and of the server's direction.
    open: HashMap<u64, [Option<Box<Trail>>; 2], RandomState>,
    /// Octets that it takes for the connection of the latest segment.
    latest: usize,
}

impl Analyst {
    fn lost(&mut self, loss: Loss) {
        self.room.keep(&mut self.analysis.losses, loss, &mut self.analysis.facts.left_out.losses);
    }
}

impl Observer for Analyst {
    fn on_segment(&mut self, connection: &Connection, side: Side, segment: &Segment, kind: Kind) {
        let trails = self.open.entry(connection.id).or_default();
        if let Some(trail) = &mut trails[side.other() as usize] {
            trail.on_ack(segment);
        }
        if segment.seq_len() > 0 {
            let trail = trails[side as usize].get_or_insert_with(|| Box::new(Trail::new(Panel::of(self.settings.judges))));
            let (losses, left_out) = (&mut self.analysis.losses, &mut self.analysis.facts.left_out.losses);
            trail.on_segment(segment, kind, &mut |suspect| {
                self.room.keep(losses, losses::suspected(connection.id, side, suspect), left_out);
            });
        }
        self.latest = trails.iter().flatten().map(|trail| trail.octets()).sum();
    }

    fn keeps(&self) -> usize {
        self.latest
    }

    fn on_retransmission(&mut self, connection: u64, side: Side, sent: Retransmission) {
        let trail = self.open.get_mut(&connection).and_then(|trails| trails[side as usize].as_mut());
        let left_out = &mut self.analysis.facts.left_out;
        if !trail.is_some_and(|trail| trail.on_settled(&sent)) {
            let loss = losses::repaired_by(connection, side, &sent);
            self.room.keep(&mut self.analysis.losses, loss, &mut left_out.losses);
        }
        let row = SentAgain { connection, side, what: sent };
        self.room.keep(&mut self.analysis.retransmissions, row, &mut left_out.retransmissions);
    }

    fn on_hole(&mut self, connection: u64, side: Side, hole: Hole) {
        self.lost(losses::missed(connection, side, &hole));
    }

    fn on_unanswered(&mut self, connection: u64, side: Side, unanswered: Unanswered) {
        self.lost(losses::unanswered(connection, side, &unanswered));
    }

    fn on_stall(&mut self, connection: u64, side: Side, stall: Stall) {
        let row = Stalled { connection, side, what: stall };
        self.room.keep(&mut self.analysis.stalls, row, &mut self.analysis.facts.left_out.stalls);
    }

    fn on_end(&mut self, connection: Connection) {
        self.analysis.facts.taken.add_connection(&connection, self.settings.at);
        let mut trails = self.open.remove(&connection.id).unwrap_or_default();
        for side in [Side::Client, Side::Server] {
            if let Some(trail) = &mut trails[side as usize] {
                let (losses, left_out) = (&mut self.analysis.losses, &mut self.analysis.facts.left_out.losses);
                trail.finish(&mut |suspect| self.room.keep(losses, losses::suspected(connection.id, side, suspect), left_out));
            }
            let half = connection.half(side);
            if half.counts.segments == 0 {
                continue;
            }
            for (limit, time, stalls) in half.limits.spent().filter(|(_, time, _)| *time > Duration::ZERO) {
                let row = Spent { connection: connection.id, side, limit, time, stalls };
                self.room.keep(&mut self.analysis.limits, row, &mut self.analysis.facts.left_out.limits);
            }
            let (sender, receiver) = match side {
                Side::Client => (connection.client, connection.server),
                Side::Server => (connection.server, connection.client),
            };
            let left = half.trips.left().unwrap_or_default();
            let flow = Flow {
                connection: connection.id,
                side,
                sender,
                receiver,
                began: connection.began,
                ended: connection.ended,
                opened: connection.opened,
                reset: connection.reset,
                place: self.settings.at.unwrap_or_else(|| connection.place(side)),
                acknowledged: half.acknowledged(),
                mss: half.mss,
                shortest_trip: half.trips.shortest().map(|trip| trip + left),
                smoothed_trip: half.trips.smoothed(),
                longest_trip: half.trips.longest(),
                counts: half.counts,
                causes: [0; Cause::ALL.len()],
            };
            self.room.keep(&mut self.analysis.flows, flow, &mut self.analysis.facts.left_out.flows);
        }
    }
}

/// What rows there is room for.
struct Room {
    /// Rows of each table.
    rows: usize,
    /// Octets of further rows, of all tables.
    octets: usize,
}

impl Room {
    /// Keeps a row if there is room for it.
    fn keep<T: Row>(&mut self, rows: &mut Vec<T>, row: T, left_out: &mut u64) {
        let octets = size_of::<T>() + row.elsewhere();
        if rows.len() < self.rows && octets <= self.octets {
            self.octets -= octets;
            rows.push(row);
        } else {
            *left_out += 1;
        }
    }
}
