//! What a differentiator that listens in shadow costs.

use crate::clock;
use crate::peers;
use crate::report::Entry;
use crate::worlds::W1;
use std::collections::BTreeMap;
use std::hint::black_box;
use whyloss_transport::differentiation::{LossDifferentiator, TABLE};
use whyloss_transport::path::{Ack, Loss, Path, Sent, Trigger};
use whyloss_transport::scheme::Arguments;
use whyloss_transport::segment::{Options, Timestamps};
use whyloss_transport::{Duration, Instant};

/// A shadow may take a twentieth of a run, twenty of them little more than half as long again.
const SHARE_OF_ONE: f64 = 0.05;
const SHARE_OF_ALL: f64 = 0.6;

const MSS: u64 = 1460;
const ACKS: u64 = 400_000;
const LOSSES: u64 = 100_000;

/// Measures what differentiators in shadow cost: each by itself, all together, and in instructions.
pub fn measure(repetitions: usize) -> Vec<Entry> {
    let mut entries = each();
    entries.push(all_at_work(repetitions));
    entries.extend(instructions());
    entries
}

/// The names of all differentiators at the sender.
pub fn all() -> Vec<String> {
    TABLE.iter().map(|part| part.name.to_owned()).collect()
}

/// Nanoseconds an acknowledgement and a loss, of each differentiator by itself.
fn each() -> Vec<Entry> {
    let mut entries = Vec::new();
    for part in TABLE {
        let arguments = Arguments::check(part, &BTreeMap::new()).expect("the defaults fit");
        let mut differentiator = part.build(&arguments);
        let mut path = Path::default();
        (path.mss, path.una, path.cwnd) = (MSS as u32, 1 << 32, 50 * MSS);
        path.nxt = path.una + path.cwnd;
        let before = clock::own();
        for n in 0..ACKS {
            acknowledge(&mut *differentiator, &mut path, n);
        }
        let took = clock::own() - before;
        entries.push(Entry::new(format!("differentiator/{}/acknowledgement", part.name), took * 1e9 / ACKS as f64, "ns"));
        let before = clock::own();
        for n in 0..LOSSES {
            let sent_at = path.now - Duration::from_millis(100);
            let mut loss = Loss::new(&path, path.una, MSS as u32, sent_at, Trigger::DuplicateAcks);
            loss.first_of_episode = n % 4 == 0;
            black_box(differentiator.judge(&loss));
        }
        let took = clock::own() - before;
        entries.push(Entry::new(format!("differentiator/{}/loss", part.name), took * 1e9 / LOSSES as f64, "ns"));
    }
    entries
}

/// A segment leaves, and one that left 50 to 100 ms ago is acknowledged.
fn acknowledge(differentiator: &mut dyn LossDifferentiator, path: &mut Path, n: u64) {
    path.now = Instant::ZERO + Duration::from_millis(1000 + n * 2);
    let start = path.nxt;
    differentiator.on_sent(&Sent::new(path.now, start, MSS as u32));
    let delay = Duration::from_micros(50_000 + (n * 37) % 50_000);
    path.una += MSS;
    path.nxt += MSS;
    path.delivered += MSS;
    path.srtt = Some(Duration::from_millis(75));
    path.rttvar = Duration::from_millis(12);
    let value = (path.now.as_nanos() / 1_000_000) as u32;
    let options = Options { timestamps: Some(Timestamps { value, echo: 0 }), ..Options::default() };
    let mut ack = Ack::new(path, &options);
    (ack.acked, ack.delivered) = (MSS, MSS);
    (ack.rtt, ack.delay, ack.newest_sent_at) = (Some(delay), Some(delay), Some(path.now - delay));
    differentiator.on_ack(black_box(&ack));
}

/// How much longer W1 takes with all of them in shadow on every flow.
fn all_at_work(repetitions: usize) -> Entry {
    let fastest = |shadows: &[String]| {
        let runs = (0..repetitions.max(1)).map(|_| W1.run(W1.seconds / 3, shadows).0.cpu_s);
        runs.fold(f64::INFINITY, f64::min)
    };
    let shadows = all();
    let more = fastest(&shadows) / fastest(&[]) - 1.0;
    Entry::new(format!("speed/W1/with-{}-shadows", shadows.len()), 100.0 * more, "% more").limit("target", 100.0 * SHARE_OF_ALL)
}

/// Instructions a packet that each adds to W1, by callgrind.
fn instructions() -> Vec<Entry> {
    let seconds = W1.seconds / 30;
    let Some((packets, alone)) = peers::count(&W1, seconds, &[]) else { return Vec::new() };
    let cost = |shadows: &[String]| Some((peers::count(&W1, seconds, shadows)?.1 - alone) / packets);
    let entry = |name: &str, shadows: &[String], share| {
        let per_packet = Entry::new(format!("instructions/W1/shadow/{name}"), cost(shadows)?, "Ir");
        Some(per_packet.limit("target", share * alone / packets))
    };
    let single = all().into_iter().filter_map(|name| entry(&name, std::slice::from_ref(&name), SHARE_OF_ONE));
    single.chain(entry("all", &all(), SHARE_OF_ALL)).collect()
}
