//! Records that stand out of order of time, as captures of several interfaces have them, are analysed in it.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::report::Analysis;
use whyloss_capture::series;
use whyloss_capture::source::Source;
use whyloss_testkit::traffic::{self, Traffic};

const MADE: traffic::Settings = traffic::Settings {
    packets: 30_000,
    connections: 12,
    window: 32,
    loss: 0.02,
    life: Some(900),
    unrepaired: false,
    snap: 96,
    format: traffic::Format::Pcap,
    seed: 5,
};

/// The header of a pcap file, and its records.
fn records() -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut file = Vec::new();
    Traffic::new(MADE).read_to_end(&mut file).unwrap();
    let mut records = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let len = 16 + u32::from_le_bytes(file[at + 8..at + 12].try_into().unwrap()) as usize;
        records.push(file[at..at + len].to_vec());
        at += len;
    }
    file.truncate(24);
    (file, records)
}

fn source(header: &[u8], records: &[Vec<u8>]) -> Vec<Source> {
    let octets = [header, &records.concat()].concat();
    vec![Source::new("made".to_owned(), Box::new(Cursor::new(octets))).unwrap()]
}

fn analysed(header: &[u8], records: &[Vec<u8>]) -> Analysis {
    analyse(source(header, records), &Settings { workers: 1, ..Settings::default() }, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// What is said of a capture, but for the numbers of records, and of connections, which go by them.
fn verdicts(analysis: &Analysis) -> Vec<String> {
    let flow =
        |connection, side| analysis.flows.iter().find(|flow| (flow.connection, flow.side) == (connection, side)).unwrap().sender;
    let flows = analysis.flows.iter().map(|flow| (flow.sender, flow.place, flow.shortest_trip, flow.counts, flow.causes));
    let again = analysis.retransmissions.iter().map(|sent| {
        (flow(sent.connection, sent.side), sent.what.at, sent.what.trigger, sent.what.unneeded, sent.what.duplicates)
    });
    let losses = analysis
        .losses
        .iter()
        .map(|loss| (flow(loss.connection, loss.side), loss.at, loss.offset, loss.octets, loss.probabilities));
    let limits = analysis.limits.iter().map(|spent| (flow(spent.connection, spent.side), spent.limit, spent.time));
    let mut lines: Vec<String> = flows.map(|row| format!("{row:?}")).collect();
    lines.extend(again.map(|row| format!("{row:?}")));
    lines.extend(losses.map(|row| format!("{row:?}")));
    lines.extend(limits.map(|row| format!("{row:?}")));
    lines.sort_unstable();
    lines
}

/// As several queues of a card leave them: one of four is late by up to so many records.
fn resequenced(records: &[Vec<u8>], by: usize) -> Vec<Vec<u8>> {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let place =
        |at: usize, random: &mut Pcg64Mcg| at + if random.random_range(0..4) == 0 { random.random_range(0..by) } else { 0 };
    let mut placed: Vec<(usize, &Vec<u8>)> =
        records.iter().enumerate().map(|(at, record)| (place(at, &mut random), record)).collect();
    placed.sort_by_key(|(at, _)| *at);
    placed.into_iter().map(|(_, record)| record.clone()).collect()
}

#[test]
fn a_resequenced_capture_gives_the_same_verdicts() {
    let (header, records) = records();
    let true_one = analysed(&header, &records);
    assert!(true_one.losses.len() > 100 && true_one.facts.taken.clock.backward == 0);
    let analysis = analysed(&header, &resequenced(&records, 300));
    let clock = &analysis.facts.taken.clock;
    assert!(clock.backward > 5_000 && clock.late == 0, "{clock:?}");
    assert!(
        analysis.facts.capture_paragraph.contains("were brought into the order of time."),
        "{}",
        analysis.facts.capture_paragraph
    );
    let other: Vec<_> = verdicts(&analysis).into_iter().zip(verdicts(&true_one)).filter(|(this, that)| this != that).collect();
    assert!(other.is_empty() && verdicts(&analysis).len() == verdicts(&true_one).len(), "{other:#?}");

    let copies = |records: &[Vec<u8>]| {
        let series = series::read(source(&header, records), 1 << 20, &mut |_| ControlFlow::Continue(())).unwrap();
        let copies = series.copies.iter().map(|copy| (copy.at, copy.offset, copy.fate, copy.acked.map(|acked| acked.1)));
        copies.collect::<Vec<_>>()
    };
    assert_eq!(copies(&resequenced(&records, 300)), copies(&records));
}

#[test]
fn what_stands_too_far_back_is_counted_and_said() {
    let (header, mut records) = records();
    // Three records are thousands of places too late.
    for (from, to) in [(1_000, 9_000), (2_000, 15_000), (3_000, 28_000)] {
        let record = records.remove(from);
        records.insert(to, record);
    }
    let analysis = analysed(&header, &records);
    assert_eq!(analysis.facts.taken.clock.late, 3);
    assert!(analysis.facts.capture_paragraph.contains("but for 3 that stand"), "{}", analysis.facts.capture_paragraph);
    assert_eq!(analysis.facts.segments, 30_000);
}
