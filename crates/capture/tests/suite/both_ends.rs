//! Captures that the simulator took at both ends of a transfer, joined, beside what it knows of each packet.

use crate::records::{packets, pcapng, source, Packet, RAW};
use crate::worlds::{run, Family, Outcome, Taking};
use pcap_file::Endianness;
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse_both_ends, Settings};
use whyloss_capture::cause::Cause;
use whyloss_capture::join::clocks::MAX_SKEW;
use whyloss_capture::join::{join, End, Joined, DEFAULT_LIMIT};
use whyloss_capture::report::Analysis;
use whyloss_capture::truth::{self, Truth};

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

/// Where the TCP header of a raw IPv4 packet begins.
const TCP: usize = 20;

fn word(octets: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(octets[at..at + 4].try_into().unwrap())
}

/// Adds to a number in the header, and mends the checksum by as much as it changes (RFC 1624).
fn add(octets: &mut [u8], at: usize, by: u32) {
    let (old, new) = (word(octets, at), word(octets, at).wrapping_add(by));
    octets[at..at + 4].copy_from_slice(&new.to_be_bytes());
    let halves = |word: u32| [word >> 16, word & 0xFFFF];
    let sum = u32::from(!u16::from_be_bytes([octets[TCP + 16], octets[TCP + 17]]));
    let mut sum = halves(!old).into_iter().chain(halves(new)).fold(sum, |sum, half| sum + half);
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    octets[TCP + 16..TCP + 18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// The capture behind a firewall that has chosen other initial sequence numbers for both ends, and other ports.
fn behind_a_firewall(all: &[Packet]) -> Vec<Packet> {
    let sender = all[0].octets[12..16].to_vec();
    let changed = all.iter().map(|packet| {
        let mut octets = packet.octets.clone();
        let forward = octets[12..16] == sender[..];
        let (own, other) = if forward { (3_000_000_000, 77) } else { (77, 3_000_000_000) };
        add(&mut octets, TCP + 4, own);
        if octets[TCP + 13] & 0x10 != 0 {
            add(&mut octets, TCP + 8, other);
        }
        Packet { octets, ..packet.clone() }
    });
    changed.collect()
}

#[test]
fn changed_sequence_numbers_change_no_fate() {
    for family in [Family::Corruption, Family::DropTail, Family::Reordering, Family::Flows] {
        let mut stamped = 0;
        for number in 0..2 {
            let outcome = run(family, number, Taking { snaplen: 96, ..Taking::default() });
            let [first, second] = ends(&outcome);
            let second = by_another_clock(&second, 60_000_000_000, 20e-6);
            let plain = joined(&first, &second);
            let firewall = joined(&first, &behind_a_firewall(&second));
            let about = &outcome.about;
            assert_eq!(firewall.pairs.len(), plain.pairs.len(), "{about}");
            assert!(
                firewall.pairs.iter().all(|pair| pair.renumbered) && plain.pairs.iter().all(|pair| !pair.renumbered),
                "{about}"
            );
            assert!(firewall.remarks.iter().any(|remark| remark.contains("sequence numbers of")), "{:?}", firewall.remarks);
            let fates = |joined: &Joined| -> Vec<&str> { joined.sent.iter().flatten().map(|sent| sent.fate.name()).collect() };
            let (was, is) = (fates(&plain), fates(&firewall));
            assert_eq!(was.len(), is.len());
            let other = was.iter().zip(&is).filter(|(was, is)| was != is).count();
            assert!(other * 500 <= was.len(), "{about}: {other} of {} fates differ", was.len());
            // Without the handshakes only timestamps tell.
            let later = |all: &[Packet]| all[all.len() / 4..].to_vec();
            let cut = joined(&later(&first), &behind_a_firewall(&later(&second)));
            if about.contains("timestamps: true") && family != Family::Flows {
                stamped += 1;
                let lost = |joined: &Joined| joined.sent[0].iter().filter(|sent| sent.fate.name() == "lost").count();
                assert!(cut.clocks.is_some() && lost(&cut) <= lost(&plain), "{about}: {:?}", cut.remarks);
            }
        }
        assert!(stamped > 0 || family == Family::Flows, "{family:?}");
    }
}

fn header(packet: &Packet) -> usize {
    TCP + usize::from(packet.octets[TCP + 12] >> 4) * 4
}

/// The packet with other data: from `from` on, `len` octets.
fn part(packet: &Packet, from: u32, len: u32) -> Packet {
    let mut octets = packet.octets.clone();
    add(&mut octets, TCP + 4, from);
    let whole = header(packet) as u32 + len;
    octets[2..4].copy_from_slice(&(whole as u16).to_be_bytes());
    Packet { octets, original_len: whole, ..packet.clone() }
}

fn data(packet: &Packet) -> u32 {
    packet.original_len - header(packet) as u32
}

/// Something on the way parts each segment in two.
fn halved(all: &[Packet]) -> Vec<Packet> {
    let parts = |packet: &Packet| match data(packet) {
        0 | 1 => vec![packet.clone()],
        len => vec![part(packet, 0, len / 2), part(packet, len / 2, len - len / 2)],
    };
    all.iter().flat_map(parts).collect()
}

/// A network card joins neighbours, up to three: they come when the last of them comes, with the headers of the first.
fn merged(all: &[Packet]) -> Vec<Packet> {
    let mut out: Vec<Packet> = Vec::new();
    let mut parts = 0;
    for packet in all {
        let continued = out.last().is_some_and(|last| {
            let end = word(&last.octets, TCP + 4).wrapping_add(data(last));
            data(last) > 0 && data(packet) > 0 && end == word(&packet.octets, TCP + 4)
        });
        parts = if continued && parts < 2 { parts + 1 } else { 0 };
        match out.last_mut().filter(|_| parts > 0) {
            Some(last) => *last = Packet { at: packet.at, ..part(last, 0, data(last) + data(packet)) },
            None => out.push(packet.clone()),
        }
    }
    out
}

#[test]
fn what_is_joined_or_parted_on_the_way_arrived() {
    let mut lost_packets = 0;
    for number in 0..2 {
        let outcome = run(Family::Corruption, number, Taking { snaplen: 96, ..Taking::default() });
        let [first, second] = ends(&outcome);
        let whole = joined(&first, &second);
        for (name, other) in [("parted", halved(&second)), ("joined", merged(&second))] {
            assert!(other.len().abs_diff(second.len()) * 10 > second.len());
            let other = joined(&first, &other);
            let lost = |joined: &Joined| -> HashSet<u64> {
                joined.sent[0]
                    .iter()
                    .filter(|sent| ["lost", "damaged"].contains(&sent.fate.name()))
                    .map(|sent| sent.number)
                    .collect()
            };
            let (was, is) = (lost(&whole), lost(&other));
            let wrong = was.symmetric_difference(&is).count();
            let all = whole.sent[0].len();
            lost_packets += was.len();
            assert!(wrong * 200 <= all, "{}: {wrong} of {all}, {:?}", outcome.about, other.remarks);
            // A record of several segments is parted where it is read.
            let said = other.remarks.iter().any(|remark| remark.contains("in other segments"));
            assert!(said || name == "joined", "{:?}", other.remarks);
        }
    }
    assert!(lost_packets > 30, "{lost_packets}");
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
