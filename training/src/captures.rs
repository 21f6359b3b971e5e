//! Losses as a capture shows them, beside the truth and what the live learned differentiator thought of them.

use crate::worlds::{self, Family};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Cursor, Write};
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::causes::{features, rules};
use whyloss_capture::connections::Side;
use whyloss_capture::evidence::Evidence;
use whyloss_capture::report::Loss;
use whyloss_capture::source::Source;
use whyloss_sim::{CaptureSpec, Cause as Lost, Limits, LossRow, NodeId, Records, Truth};
use whyloss_transport::tcp::Judgement;
use whyloss_transport::{Duration, Instant};

/// Octets that captures keep of each packet: the longest headers.
const SNAPLEN: u32 = 120;
/// Connections of a world that are captured at both ends.
const AT_ENDS: usize = 2;

/// A file in memory, which the simulation writes.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics with it").write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The names of the columns.
pub fn header() -> String {
    let mut header =
        "family,world,flow,offset,place,corruption,cause,asked,by_timeout,live,live_corruption,rules,unneeded,damaged".to_owned();
    features::names().for_each(|name| write!(header, ",{name}").expect("a string takes everything"));
    header
}

/// The losses of one world that captures of it show, a line each.
pub fn losses(family: Family, seed: u64, number: u32) -> String {
    let mut world = worlds::build(family, seed, number, &["learned"], |_| {});
    let mut files: Vec<(&str, Shared)> = Vec::new();
    let mut tap = |place: &'static str, node: NodeId| {
        let file = Shared::default();
        let (out, name) = (Box::new(file.clone()), place.to_owned());
        world.builder.capture(CaptureSpec {
            name,
            node,
            link: None,
            behind_queue: false,
            snaplen: SNAPLEN,
            digits: 6,
            holes: 0.0,
            out,
        });
        files.push((place, file));
    };
    let mut ends = Vec::new();
    for &(from, to) in world.flows.iter().take(AT_ENDS) {
        for (place, node) in [("sender", from), ("receiver", to)] {
            if !ends.contains(&node) {
                ends.push(node);
                tap(place, node);
            }
        }
    }
    if let Some(node) = world.middle {
        tap("middle", node);
    }
    let mut simulation = world.builder.build().expect("worlds are well formed");
    let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(world.seconds)) };
    simulation.run(&limits, |_| ControlFlow::Continue(())).expect("worlds run");
    let records = simulation.into_records();
    let numbers = numbers(&world.hosts, &world.flows);
    let mut truth: HashMap<(usize, u64), Vec<&LossRow>> = HashMap::new();
    for loss in &records.losses {
        truth.entry((loss.flow, loss.record.offset)).or_default().push(loss);
    }
    // Worlds are what is worked on at once.
    let settings = Settings { workers: 1, ..Settings::default() };
    let mut text = String::new();
    for (place, file) in files {
        let octets = std::mem::take(&mut *file.0.lock().expect("nobody panics with it"));
        let source = Source::new(place.to_owned(), Box::new(Cursor::new(octets))).expect("our captures are read");
        let analysis = analyse(vec![source], &settings, &mut |_| ControlFlow::Continue(())).expect("our captures are read");
        let flows: HashMap<(u64, Side), usize> = analysis
            .flows
            .iter()
            .filter_map(|flow| Some(((flow.connection, flow.side), *numbers.get(&(flow.sender, flow.receiver))?)))
            .collect();
        for loss in &analysis.losses {
            let Some(&flow) = flows.get(&(loss.connection, loss.side)) else { continue };
            let Some(known) = &loss.known else { continue };
            let Some(row) = truth.get(&(flow, loss.offset)).and_then(|rows| of(rows, loss, known)) else { continue };
            line(&mut text, family, number, place, (&records, flow, row), (loss, known));
        }
    }
    text
}

/// The number of the connection between two addresses. Hosts have addresses in their order, connections of a host ports in theirs.
fn numbers(hosts: &[NodeId], flows: &[(NodeId, NodeId)]) -> HashMap<(SocketAddr, SocketAddr), usize> {
    const FIRST_PORT: u16 = 1024;
    let mut next: HashMap<NodeId, u16> = HashMap::new();
    let mut end = |node: NodeId| {
        let index = hosts.iter().position(|host| *host == node).expect("connections are between hosts") as u32;
        let port = next.entry(node).or_insert(FIRST_PORT);
        let address = SocketAddr::new(IpAddr::V4((0x0A00_0001 + index).into()), *port);
        *port += 1;
        address
    };
    flows.iter().enumerate().map(|(number, &(from, to))| ((end(from), end(to)), number)).collect()
}

/// Which of the transmissions that the sender took for lost the capture's is.
fn of<'a>(rows: &[&'a LossRow], loss: &Loss, known: &Evidence) -> Option<&'a LossRow> {
    // Captures cut nanoseconds off.
    let repaired = loss.repair.map_or(Instant::MAX, |(_, at)| at + Duration::from_micros(1));
    let noticed = || rows.iter().filter(|row| row.record.at <= repaired);
    noticed().find(|row| row.record.transmission == known.transmission).or_else(|| noticed().next_back()).copied()
}

fn line(
    text: &mut String,
    family: Family,
    world: u32,
    place: &str,
    (records, flow, row): (&Records, usize, &LossRow),
    (loss, known): (&Loss, &Evidence),
) {
    let (corruption, cause) = match row.truth {
        // Neither of the two that the model tells apart.
        Truth::Lost(cause @ Lost::LinkDown) => ("", cause.name()),
        Truth::Lost(cause) => (if cause.is_congestion() { "0" } else { "1" }, cause.name()),
        other => ("", other.name()),
    };
    let shadows = &records.flows[flow].shadows;
    let live = shadows.iter().position(|name| name == "learned").and_then(|index| row.record.shadows.get(index));
    write!(
        text,
        "{},{world},{flow},{},{place},{corruption},{cause},{},{},{},{},{},{},{}",
        family.name(),
        loss.offset,
        u8::from(row.record.judgement != Judgement::Covered),
        u8::from(row.record.trigger == whyloss_transport::path::Trigger::Timeout),
        live.map_or(String::new(), |verdict| verdict.score.to_string()),
        live.map_or(String::new(), |verdict| {
            u8::from(verdict.cause == whyloss_transport::differentiation::Cause::Corruption).to_string()
        }),
        rules::corruption(known),
        u8::from(known.unneeded.is_some()),
        u8::from(known.damaged),
    )
    .expect("a string takes everything");
    for value in features::all(known) {
        write!(text, ",{value}").expect("a string takes everything");
    }
    text.push('\n');
}
