//! The driver: from files to what is said of them.

use crate::cause::Cause;
use crate::connections::{Connection, Connections, Observer, Place, Side};
use crate::half::Retransmission;
use crate::headers::Segment;
use crate::report::{Analysis, Flow, SentAgain};
use crate::source::Source;
use crate::{connections, link, losses, records, CaptureError};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// What is asked for, and what may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where the capture was taken, if somebody knows better.
    pub at: Option<Place>,
    /// Connections that are followed at once.
    pub connections: usize,
    /// Rows of each table that are kept.
    pub rows: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { at: None, connections: connections::DEFAULT_LIMIT, rows: 1 << 20 }
    }
}

/// How far the work is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Records read.
    pub packets: u64,
}

/// Records after which the work reports and can be stopped.
const STEP: u64 = 1 << 14;

/// Reads captures, one after the other as if they were one, and says what was lost in them and why.
///
/// `watch` hears now and then how far it is. Once it says to stop, what was read is analysed, and a remark says so.
pub fn analyse(
    sources: Vec<Source>,
    settings: &Settings,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Analysis, CaptureError> {
    let mut analyst = Analyst { settings: *settings, analysis: Analysis::default(), open: HashMap::new() };
    let mut connections = Connections::new(settings.connections);
    let mut began = None;
    let mut ended = 0;
    let mut stopped = false;
    for source in sources {
        let name = source.name.clone();
        let before = analyst.analysis.facts.packets;
        let about = records::read(source, &mut |record| {
            began.get_or_insert(record.at.as_nanos());
            ended = ended.max(record.at.as_nanos());
            let segment = link::ip_packet(record.link, record.octets).ok().and_then(|found| Segment::read(record, &found));
            match segment {
                Some(mut segment) => {
                    segment.number += before;
                    analyst.analysis.facts.segments += 1;
                    connections.on_segment(&segment, &mut analyst);
                }
                None => analyst.analysis.facts.others += 1,
            }
            if record.number % STEP == 0 && watch(Progress { packets: before + record.number }).is_break() {
                stopped = true;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        analyst.analysis.facts.add(&name, &about);
        if stopped {
            analyst.analysis.facts.remarks.push(format!("{name}: stopped here; what comes after is not read"));
            break;
        }
    }
    connections.finish(&mut analyst);
    let mut analysis = analyst.analysis;
    let facts = &mut analysis.facts;
    (facts.began_ns, facts.ended_ns) = (began.unwrap_or_default(), ended);
    facts.connections = connections.seen();
    facts.left_out.connections = connections.forgotten;
    Ok(analysis)
}

/// Writes down what happens.
struct Analyst {
    settings: Settings,
    analysis: Analysis,
    /// Suspected losses of connections that are not over.
    open: HashMap<(u64, Side), [u64; Cause::ALL.len()]>,
}

impl Observer for Analyst {
    fn on_retransmission(&mut self, connection: u64, side: Side, sent: Retransmission) {
        let loss = losses::repaired_by(connection, side, sent.first, &sent);
        self.open.entry((connection, side)).or_default()[loss.probabilities.likeliest() as usize] += 1;
        keep(&mut self.analysis.losses, loss, self.settings.rows, &mut self.analysis.facts.left_out.losses);
        let left_out = &mut self.analysis.facts.left_out.retransmissions;
        keep(&mut self.analysis.retransmissions, SentAgain { connection, side, what: sent }, self.settings.rows, left_out);
    }

    fn on_end(&mut self, connection: Connection) {
        for side in [Side::Client, Side::Server] {
            let causes = self.open.remove(&(connection.id, side)).unwrap_or_default();
            let half = connection.half(side);
            if half.counts.segments == 0 {
                continue;
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
                place: self.settings.at.unwrap_or_else(|| Place::of(half)),
                acknowledged: half.acknowledged(),
                mss: half.mss,
                shortest_trip: half.trips.shortest().map(|trip| trip + left),
                smoothed_trip: half.trips.smoothed(),
                longest_trip: half.trips.longest(),
                counts: half.counts,
                causes,
            };
            keep(&mut self.analysis.flows, flow, self.settings.rows, &mut self.analysis.facts.left_out.flows);
        }
    }
}

fn keep<T>(rows: &mut Vec<T>, row: T, limit: usize, left_out: &mut u64) {
    if rows.len() < limit {
        rows.push(row);
    } else {
        *left_out += 1;
    }
}
