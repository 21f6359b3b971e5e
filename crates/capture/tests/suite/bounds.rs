//! What is kept is bounded, and comes out the same whoever does the work.

use proptest::prelude::*;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::report::Analysis;
use whyloss_capture::source::Source;
use whyloss_testkit::traffic::{self, Traffic};

fn analysed(made: traffic::Settings, settings: &Settings) -> Analysis {
    let source = Source::new("made".to_owned(), Box::new(Traffic::new(made))).unwrap();
    analyse(vec![source], settings, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn text(analysis: &Analysis) -> String {
    format!("{analysis:#?}")
}

#[test]
fn every_number_of_workers_says_the_same() {
    let made =
        traffic::Settings { packets: 60_000, connections: 40, loss: 0.02, life: Some(300), ..traffic::Settings::default() };
    // As everything fits, and with all bounds reached.
    let tight = Settings { connections: 20, memory: 400_000, rows: 160, ..Settings::default() };
    for settings in [Settings::default(), tight] {
        let alone = analysed(made, &Settings { workers: 1, ..settings });
        assert_eq!(alone.facts.segments, 60_000);
        assert!(alone.flows.len() > 20 && alone.retransmissions.len() > 100);
        for workers in [2, 3, 8, 50] {
            let together = analysed(made, &Settings { workers, ..settings });
            assert!(text(&together) == text(&alone), "{workers} workers");
        }
    }
}

#[test]
fn rows_stand_in_the_order_of_the_capture() {
    let made = traffic::Settings { packets: 30_000, connections: 20, loss: 0.02, ..traffic::Settings::default() };
    let analysis = analysed(made, &Settings::default());
    let numbers: Vec<u64> = analysis.flows.iter().map(|flow| flow.connection).collect();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
    assert!(analysis.flows.windows(2).all(|two| two[0].began <= two[1].began));
    assert!(analysis.retransmissions.windows(2).all(|two| two[0].what.number < two[1].what.number));
    assert!(analysis.losses.windows(2).all(|two| two[0].at <= two[1].at));
}

#[test]
fn more_connections_than_are_followed_are_counted() {
    let made = traffic::Settings { packets: 100_000, connections: 3000, life: Some(10), ..traffic::Settings::default() };
    let settings = Settings { connections: 64, ..Settings::default() };
    let analysis = analysed(made, &settings);
    let facts = &analysis.facts;
    assert!(facts.left_out.connections > 1000, "{:?}", facts.left_out);
    // A connection that is let go and goes on counts again.
    assert!(facts.connections > 3000);
    assert_eq!(facts.segments, 100_000);
    let segments: u64 = analysis.flows.iter().map(|flow| flow.counts.segments).sum();
    assert!(segments > 50_000, "what was let go is still counted: {segments}");
}

#[test]
fn pieces_of_a_stream_that_nobody_acknowledges_are_bounded() {
    // Half of the segments are lost and none is repaired, so that the acknowledgement stays where it is.
    let made = traffic::Settings {
        packets: 300_000,
        connections: 16,
        loss: 0.5,
        unrepaired: true,
        window: 64,
        ..traffic::Settings::default()
    };
    let settings = Settings { memory: 2_000_000, ..Settings::default() };
    let analysis = analysed(made, &settings);
    assert!(analysis.facts.left_out.connections > 0, "some had to go");
    let enough = analysed(made, &Settings::default());
    assert_eq!(enough.facts.left_out.connections, 0);
}

#[test]
fn rows_that_are_too_many_are_counted() {
    let made = traffic::Settings { packets: 50_000, connections: 32, loss: 0.05, ..traffic::Settings::default() };
    let all = analysed(made, &Settings::default());
    let some = analysed(made, &Settings { rows: 80, ..Settings::default() });
    let left_out = some.facts.left_out;
    assert!(some.retransmissions.len() <= 80 && some.losses.len() <= 80 && left_out.losses > 0);
    assert_eq!(some.retransmissions.len() as u64 + left_out.retransmissions, all.retransmissions.len() as u64);
    assert_eq!(some.losses.len() as u64 + left_out.losses, all.losses.len() as u64);
}

/// Small captures in many formats, which the fuzzer begins with.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/capture");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut seeds: Vec<_> =
        files.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())).collect();
    seeds.sort();
    seeds
}

/// A capture in pcap whose packets, octets from the IP header on, were changed afterwards.
fn changed(made: traffic::Settings, change: impl Fn(usize, &mut [u8])) -> Vec<u8> {
    const FILE: usize = 24;
    const RECORD: usize = 16;
    const ETHERNET: usize = 14;
    let mut file = Vec::new();
    Traffic::new(made).read_to_end(&mut file).unwrap();
    let mut at = FILE;
    for number in 0.. {
        let Some(len) = file.get(at + 8..at + 12) else { break };
        let begin = at + RECORD + ETHERNET;
        at += RECORD + u32::from_le_bytes(len.try_into().unwrap()) as usize;
        change(number, &mut file[begin..at]);
    }
    file
}

fn analysed_file(octets: Vec<u8>) -> Analysis {
    let source = Source::new("changed".to_owned(), Box::new(Cursor::new(octets))).unwrap();
    analyse(vec![source], &Settings { workers: 1, ..Settings::default() }, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn addresses_that_were_changed_afterwards_are_no_damage() {
    let made = traffic::Settings { packets: 4000, loss: 0.01, snap: 2000, ..traffic::Settings::default() };
    let true_one = analysed(made, &Settings::default());
    assert!(true_one.losses.len() > 5 && true_one.facts.taken.disbelieved_checksums == 0);
    // As a tool that hides addresses leaves them: another network, the checksums as they were.
    let hidden = analysed_file(changed(made, |_, ip| {
        ip[12] ^= 0x40;
        ip[16] ^= 0x40;
    }));
    assert!(hidden.facts.taken.disbelieved_checksums > 3900, "{:?}", hidden.facts.taken);
    assert_eq!(hidden.losses.len(), true_one.losses.len());
    assert_eq!(hidden.flows[0].counts, true_one.flows[0].counts);
}

#[test]
fn a_packet_with_damaged_addresses_opens_no_connection() {
    let made = traffic::Settings { packets: 4000, loss: 0.01, snap: 2000, ..traffic::Settings::default() };
    // Every hundredth has another network, another port, or the flags of a SYN.
    let damage = |number: usize, ip: &mut [u8]| {
        if number % 100 == 99 {
            match number / 100 % 3 {
                0 => ip[13] ^= 1 << (number / 300 % 8),
                1 => ip[20] ^= 0x20,
                _ => ip[33] ^= 0x02,
            }
        }
    };
    let analysis = analysed_file(changed(made, damage));
    assert_eq!(analysis.flows.len(), 1, "{:?}", analysis.flows.iter().map(|flow| flow.sender).collect::<Vec<_>>());
    assert_eq!(analysis.facts.taken.disbelieved_checksums, 0);
}

#[test]
fn a_damaged_sequence_number_moves_nothing() {
    let made = traffic::Settings { packets: 4000, loss: 0.01, snap: 2000, ..traffic::Settings::default() };
    let true_one = analysed(made, &Settings::default());
    // One segment with data seems to lie 2^24 octets further on.
    let damaged = analysed_file(changed(made, |number, ip| {
        if number == 1500 {
            assert_eq!(ip.len(), 1500, "it has data");
            ip[24] ^= 1;
        }
    }));
    let (is, was) = (damaged.flows[0].counts, true_one.flows[0].counts);
    assert_eq!(is.damaged, 1);
    assert!(is.retransmissions.abs_diff(was.retransmissions) <= 1, "{} for {}", is.retransmissions, was.retransmissions);
}

#[test]
fn captures_cut_anywhere_are_read_up_to_there_or_refused() {
    let settings = Settings { workers: 1, ..Settings::default() };
    let read = |name: &str, octets: &[u8]| {
        let source = Source::new(name.to_owned(), Box::new(Cursor::new(octets.to_vec())))?;
        analyse(vec![source], &settings, &mut |_| ControlFlow::Continue(()))
    };
    let seeds = seeds();
    assert!(seeds.len() >= 20);
    for (name, octets) in &seeds {
        let whole = read(name, octets).unwrap().facts;
        let expected = match name.as_str() {
            "gzip" | "lz4" | "zstd" => 5..=6,
            "pcapng-big-endian" => 7..=7,
            "big-endian" | "cooked" | "modified" | "nanoseconds" | "pcap" | "pcapng" => 24..=24,
            // What the fuzzer found is no capture of somebody.
            found if found.starts_with("found-") => 0..=64,
            _ => 8..=8,
        };
        let regular = whole.segments == whole.packets || name.starts_with("found-");
        assert!(expected.contains(&whole.packets) && regular, "{name}: {whole:?}");
        let mut latest = 0;
        for len in (0..octets.len()).step_by(7) {
            match read(name, &octets[..len]) {
                Ok(analysis) => {
                    let packets = analysis.facts.packets;
                    assert!((latest..=whole.packets).contains(&packets), "{name} cut at {len}: {packets} packets");
                    latest = packets;
                }
                Err(error) => {
                    assert!(error.to_string().starts_with(name.as_str()) && latest == 0, "{name} cut at {len}: {error}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A capture of which octets were changed, left out or doubled is read or refused; what is said of it names the file.
    #[test]
    fn a_mutated_capture_is_read_or_refused(
        seed in any::<u64>(),
        format in 0..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4, any::<u8>()), 1..40),
    ) {
        let format = [traffic::Format::Pcap, traffic::Format::Pcapng, traffic::Format::Cooked][format as usize];
        let made = traffic::Settings { packets: 400, connections: 3, loss: 0.05, format, seed, ..traffic::Settings::default() };
        let mut file = Vec::new();
        Traffic::new(made).read_to_end(&mut file).unwrap();
        for (index, what, octet) in changes {
            let at = index.index(file.len());
            match what {
                0 => file[at] = octet,
                1 => file[at] ^= 1 << (octet % 8),
                2 => drop(file.drain(at..(at + usize::from(octet)).min(file.len() - 1).max(at))),
                _ => {
                    let again = file[at..(at + usize::from(octet)).min(file.len())].to_vec();
                    file.splice(at..at, again);
                }
            }
        }
        let source = Source::new("mutated".to_owned(), Box::new(Cursor::new(file))).unwrap();
        match analyse(vec![source], &Settings { workers: 1, ..Settings::default() }, &mut |_| ControlFlow::Continue(())) {
            Ok(analysis) => {
                prop_assert!(analysis.facts.remarks.iter().all(|remark| remark.starts_with("mutated: packet ") || remark.ends_with(" further remarks")));
                prop_assert!(analysis.facts.segments + analysis.facts.others <= analysis.facts.packets);
            }
            Err(error) => prop_assert!(error.to_string().starts_with("mutated: ")),
        }
    }
}
