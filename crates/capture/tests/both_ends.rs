//! Captures that the simulator took at both ends of a transfer, joined, beside what it knows of each packet.

#[path = "support/records.rs"]
mod records;
#[path = "support/worlds.rs"]
mod worlds;

use pcap_file::Endianness;
use records::{packets, pcapng, source, Packet, RAW};
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse_both_ends, Settings};
use whyloss_capture::cause::Cause;
use whyloss_capture::join::clocks::MAX_SKEW;
use whyloss_capture::join::{join, End, Joined, DEFAULT_LIMIT};
use whyloss_capture::report::Analysis;
use whyloss_capture::truth::{self, Truth};
use worlds::{run, Family, Outcome, Taking};

/// Lossy, congested, reordering, and what else may disturb two captures.
const FAMILIES: [Family; 10] = [
    Family::DropTail,
    Family::Aqm,
    Family::Corruption,
    Family::Bursts,
    Family::Outages,
    Family::Reordering,
    Family::AckLoss,
    Family::Receiver,
    Family::Asymmetric,
    Family::Duplication,
];

/// When the simulated time began by the first clock.
const EPOCH: u64 = 1_700_000_000_000_000_000;

/// The captures of both ends, as packets.
fn ends(outcome: &Outcome) -> [Vec<Packet>; 2] {
    [packets(&outcome.captures[0]), packets(&outcome.captures[2])].map(|mut all| {
        for packet in &mut all {
            packet.at += EPOCH;
        }
        all
    })
}

/// The same packets, timed by a clock that is so much ahead and so much faster.
fn by_another_clock(all: &[Packet], ahead: i64, skew: f64) -> Vec<Packet> {
    let time = |at: u64| at.wrapping_add_signed(ahead + (skew * (at - EPOCH) as f64).round() as i64);
    all.iter().map(|packet| Packet { at: time(packet.at), ..packet.clone() }).collect()
}

fn file(all: &[Packet]) -> Vec<u8> {
    pcapng(all, RAW, Endianness::Little, None)
}

fn joined(first: &[Packet], second: &[Packet]) -> Joined {
    join(source(&file(first)), source(&file(second)), DEFAULT_LIMIT).unwrap()
}

fn truth(packet: &Packet) -> Truth {
    Truth::read(packet.comment.as_deref().unwrap()).unwrap()
}

/// How the fate of a packet of the first capture is called after the join, if the simulator is right.
fn really(packet: &Packet) -> Option<&'static [&'static str]> {
    Some(match truth(packet).fate {
        truth::Fate::Delivered(_) => &["arrived"],
        // What the receiving host discards came as far as its capture; whatever stopped it earlier did not.
        truth::Fate::Lost(_, Cause::Corruption) => &["lost", "damaged"],
        truth::Fate::Lost(..) => &["lost"],
        _ => return None,
    })
}

#[test]
fn the_fates_are_those_that_the_simulator_knows() {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for family in FAMILIES {
        let (mut right, mut all) = (0, 0);
        for number in 0..2 {
            let [first, second] = ends(&run(family, number, Taking::default()));
            let joined = joined(&first, &by_another_clock(&second, 3_000_000_000, 0.0));
            assert_eq!(joined.pairs.len() % 2, 0);
            for sent in &joined.sent[End::First as usize] {
                let Some(really) = really(&first[sent.number as usize - 1]) else { continue };
                let said = sent.fate.name();
                if said == "outside" {
                    continue;
                }
                *kinds.entry(said).or_default() += 1;
                all += 1;
                right += u64::from(really.contains(&said));
            }
        }
        assert!(right * 1000 >= all * 999, "{family:?}: {right} of {all}");
    }
    assert!(kinds["lost"] > 300 && kinds["damaged"] > 30 && kinds["arrived"] > 10_000, "{kinds:?}");
}

#[test]
fn a_queue_or_the_sizes_of_packets_are_no_skew() {
    let mut tight = 0;
    for family in FAMILIES {
        for number in 0..2 {
            let outcome = run(family, number, Taking::default());
            let [first, second] = ends(&outcome);
            for parts_per_million in [0.0, 20.0, -20.0, 100.0, -100.0] {
                let (ahead, skew) = (-7_000_000_123, parts_per_million * 1e-6);
                let clocks = joined(&first, &by_another_clock(&second, ahead, skew)).clocks.unwrap();
                let about = format!("{} and {parts_per_million} millionths: {clocks:?}", outcome.about);
                assert!((clocks.skew - skew).abs() <= clocks.skew_error + 1e-12, "{about}");
                assert!(clocks.skew == 0.0 || parts_per_million != 0.0, "{about}");
                assert!(clocks.skew_error <= MAX_SKEW, "{about}");
                let truth = ahead + (skew * (clocks.since - EPOCH) as f64) as i64;
                assert!(clocks.offset_ns.abs_diff(truth) <= clocks.error_ns.unwrap() + 1000, "{about}");
                tight += u32::from(clocks.skew_error < 20e-6);
            }
        }
    }
    // Small enough to tell clocks apart.
    assert!(tight > 95, "{tight} of 100");
}

/// A part of the packets that does not begin with a handshake.
#[test]
fn short_captures_and_one_direction_state_how_little_they_know() {
    let [first, second] = ends(&run(Family::Corruption, 0, Taking::default()));
    let skewed = by_another_clock(&second, 5_000_000, 100e-6);
    let few = joined(&first[..12], &skewed[..12]).clocks.unwrap();
    assert!((few.skew - 100e-6).abs() <= few.skew_error, "{few:?}");
    // What comes to the second capture only.
    let source_of = |packet: &Packet| packet.octets[12..16].to_vec();
    let sender = source_of(&first[0]);
    let forward = |all: &[Packet]| -> Vec<Packet> { all.iter().filter(|packet| source_of(packet) == sender).cloned().collect() };
    let one = joined(&forward(&first), &forward(&skewed));
    assert!(one.clocks.is_none_or(|clocks| clocks.error_ns.is_none()), "{:?}", one.clocks);
    assert!(!one.remarks.is_empty());
    // The second capture misses the way back.
    let half = joined(&first, &forward(&skewed));
    assert!(!half.remarks.is_empty(), "{:?}", half.clocks);
}

fn explained(first: &[Packet], second: &[Packet]) -> Analysis {
    let files = [file(first), file(second)];
    let settings = Settings { workers: 1, ..Settings::default() };
    analyse_both_ends(&|end| Ok(source(&files[end as usize])), &settings, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn the_verdicts_of_one_end_are_scored_against_what_became_of_the_packets() {
    for family in [Family::Corruption, Family::DropTail, Family::Reordering, Family::Mixed, Family::Outages, Family::AckLoss] {
        let (mut told, mut right, mut lost) = (0u64, 0u64, 0u64);
        for number in 0..2 {
            let outcome = run(family, number, Taking::default());
            let [first, second] = ends(&outcome);
            let analysis = explained(&first, &by_another_clock(&second, 1_000_000_000, 20e-6));
            let both = analysis.facts.both_ends.as_ref().unwrap();
            let about = &outcome.about;
            // The same counts from the comments, without the join.
            let (mut of_these, mut rightly) = (0u64, 0u64);
            let mut suspected = HashSet::new();
            for loss in &analysis.losses {
                let (Some(number), cause) = (loss.packet, loss.probabilities.likeliest()) else { continue };
                let fate = truth(&first[number as usize - 1]).fate;
                let came = matches!(fate, truth::Fate::Delivered(_));
                if suspected.insert(number) && cause != Cause::Unknown && !matches!(fate, truth::Fate::Open) {
                    of_these += 1;
                    rightly += u64::from(came == cause.arrived());
                }
            }
            let share = rightly as f64 / of_these as f64;
            let said = both.arrival_accuracy.unwrap_or(f64::NAN);
            assert!(of_these == 0 || (said - share).abs() < 0.02, "{about}: {said}, not {share}");
            let missing = |number: &u64| matches!(truth(&first[*number as usize - 1]).fate, truth::Fate::Lost(..));
            let really = suspected.iter().filter(|number| missing(number)).count() as u64;
            let found: u64 =
                ["lost", "damaged"].iter().filter_map(|fate| both.suspected.get(fate)).flat_map(BTreeMap::values).sum();
            assert!(really.abs_diff(found) <= 1 + really / 50, "{about}: {found} suspected and lost, not {really}");
            let all: u64 = ["lost", "damaged"].iter().filter_map(|fate| both.from_first.get(fate)).sum();
            assert!(found + both.not_suspected <= all, "{about}: {both:?}");
            (told, right, lost) = (told + of_these, right + rightly, lost + really);
        }
        assert!(told > 5 && right <= told && lost <= told + right, "{family:?}: {told}");
    }
}
