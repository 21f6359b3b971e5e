//! One capture, told in other ways: in other formats, link layers and tunnels, cut, thinned, out of order, doubled and by other clocks.
//!
//! The verdicts on what is left are those of the untouched capture: all of them where nothing is lost by the change, else the stated share.

use crate::framing::{framed, tunnels};
use crate::records::{explain, packets, pcap, pcapng, Packet, RAW};
use crate::worlds::{run, Family, Taking, PLACES};
use pcap_file::Endianness::{Big, Little};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use whyloss_capture::report::Analysis;

const FAMILIES: [Family; 5] = [Family::DropTail, Family::Corruption, Family::Bursts, Family::Reordering, Family::Mixed];

/// When the captures began, in nanoseconds.
const EPOCH: u64 = 1_700_000_000_000_000_000;

/// A packet, and where it stands in the untouched capture.
type Placed = (u64, Packet);

/// What is said of the packets of the untouched capture.
#[derive(Debug, Default, PartialEq)]
struct Verdicts {
    /// Those that were sent again: why, and whether that was needed.
    again: BTreeMap<u64, (&'static str, bool)>,
    /// Those that were suspected to be lost: the likeliest cause, and whether they arrived.
    lost: BTreeMap<u64, (&'static str, bool)>,
}

impl Verdicts {
    fn of(analysis: &Analysis, placed: &[Placed]) -> Self {
        let place = |number: u64| placed[number as usize - 1].0;
        let again = analysis
            .retransmissions
            .iter()
            .map(|sent| (place(sent.what.number), (sent.what.trigger.name(), sent.what.unneeded.is_none())));
        let lost = analysis.losses.iter().filter_map(|loss| {
            let likeliest = loss.probabilities.likeliest();
            Some((place(loss.packet?), (likeliest.name(), likeliest.arrived())))
        });
        Self { again: again.collect(), lost: lost.collect() }
    }
}

/// How many verdicts on packets between two places are the same, of all that either gives: on retransmissions, their triggers; on losses,
/// causes and whether they arrived.
#[derive(Debug, Default)]
struct Agreement {
    again: (u64, u64),
    triggers: (u64, u64),
    lost: (u64, u64),
    causes: (u64, u64),
}

impl Agreement {
    fn add(&mut self, one: &Verdicts, other: &Verdicts, (from, to): (u64, u64)) {
        let range = || from..to;
        for (number, verdict) in one.again.range(range()) {
            let said = other.again.get(number);
            note(&mut self.again, said.is_some());
            if let Some(said) = said {
                note(&mut self.triggers, said.0 == verdict.0);
            }
        }
        for (number, verdict) in one.lost.range(range()) {
            let said = other.lost.get(number);
            note(&mut self.lost, said.is_some());
            if let Some(said) = said {
                note(&mut self.causes, said.0 == verdict.0);
            }
        }
        // What only the other one says.
        self.again.1 += other.again.range(range()).filter(|(number, _)| !one.again.contains_key(number)).count() as u64;
        self.lost.1 += other.lost.range(range()).filter(|(number, _)| !one.lost.contains_key(number)).count() as u64;
    }

    fn shares(&self) -> [f64; 4] {
        [self.again, self.triggers, self.lost, self.causes].map(|(same, all)| same as f64 / all.max(1) as f64)
    }

    /// At least these shares, of more than a few.
    fn check(&self, what: &str, least: [f64; 4]) {
        println!("{what}: {:.4?} of {} retransmissions and {} losses", self.shares(), self.again.1, self.lost.1);
        assert!(self.again.1 > 200 && self.lost.1 > 150, "{what}: {self:?}");
        assert!(
            self.shares().iter().zip(least).all(|(share, least)| *share >= least),
            "{what}: {:?}, not {least:?}",
            self.shares()
        );
    }
}

fn note((same, all): &mut (u64, u64), is: bool) {
    (*same, *all) = (*same + u64::from(is), *all + 1);
}

/// The captures at both ends of worlds of some families, in the order of time.
fn captures() -> Vec<(String, Vec<Placed>)> {
    let mut all = Vec::new();
    for family in FAMILIES {
        for number in [3, 5] {
            let outcome = run(family, number, Taking::default());
            for place in [0, 2] {
                let mut found = packets(&outcome.captures[place]);
                for packet in &mut found {
                    packet.at += EPOCH;
                }
                let placed = found.into_iter().enumerate().map(|(at, packet)| (at as u64 + 1, packet)).collect();
                all.push((format!("{} at the {}", outcome.about, PLACES[place]), placed));
            }
        }
    }
    all
}

fn bare(placed: &[Placed]) -> Vec<Packet> {
    placed.iter().map(|(_, packet)| packet.clone()).collect()
}

fn file(placed: &[Placed]) -> Vec<u8> {
    pcapng(&bare(placed), RAW, Little, None)
}

fn verdicts(placed: &[Placed]) -> (Verdicts, Analysis) {
    let (analysis, _) = explain(&file(placed));
    (Verdicts::of(&analysis, placed), analysis)
}

/// All that is said of connections and packets.
fn text(analysis: &Analysis) -> String {
    format!("{:?}", (&analysis.flows, &analysis.retransmissions, &analysis.losses, &analysis.limits, &analysis.stalls))
}

#[test]
fn formats_and_byte_orders_change_nothing() {
    for (about, placed) in captures().iter().step_by(3) {
        let all = bare(placed);
        let plain = text(&explain(&pcapng(&all, RAW, Little, None)).0);
        let others = [pcapng(&all, RAW, Big, None), pcap(&all, RAW, Little), pcap(&all, RAW, Big)];
        assert!(others.iter().all(|other| text(&explain(other).0) == plain), "{about}");
    }
}

#[test]
fn link_layers_and_tunnels_change_nothing() {
    let (about, placed) = &captures()[4];
    let all = &bare(placed)[..2500.min(placed.len())];
    let plain = text(&explain(&pcap(all, RAW, Little)).0);
    assert!(plain.contains("Retransmission"), "{about}: something was sent again");
    let shapes = |octets: &[u8]| -> Vec<(u32, &'static str, Vec<u8>)> {
        let layers = framed(octets, false).into_iter().map(|(link, name, frame)| (link as u32, name, frame));
        layers.chain(tunnels(octets, false).into_iter().map(|(name, outer)| (RAW, name, outer))).collect()
    };
    let count = shapes(&all[0].octets).len();
    assert!(count >= 23);
    for shape in 0..count {
        let (link, name, _) = shapes(&all[0].octets).swap_remove(shape);
        let other: Vec<Packet> = all
            .iter()
            .map(|packet| {
                let (_, _, octets) = shapes(&packet.octets).swap_remove(shape);
                Packet { original_len: octets.len() as u32, octets, ..packet.clone() }
            })
            .collect();
        for endianness in [Little, Big] {
            assert!(text(&explain(&pcap(&other, link, endianness)).0) == plain, "{about}: {name}");
        }
    }
}

/// What is cut off at an end takes the verdicts near to it along.
#[test]
fn what_is_left_of_a_capture_keeps_its_verdicts() {
    let (mut start, mut end) = (Agreement::default(), Agreement::default());
    for (_, placed) in captures() {
        let (whole, _) = verdicts(&placed);
        let all = placed.len();
        let (third, near) = (all / 3, all / 10);
        let late = &placed[third..];
        start.add(&whole, &verdicts(late).0, ((third + near) as u64, all as u64 + 1));
        let early = &placed[..all - third];
        end.add(&whole, &verdicts(early).0, (1, (all - third - near) as u64));
    }
    // Windows, the shortest round trip and what was sent before have to be found anew.
    start.check("without its start", [0.95, 0.85, 0.95, 0.8]);
    end.check("without its end", [0.99, 0.99, 0.99, 0.9]);
}

#[test]
fn packets_cut_to_their_headers_keep_their_verdicts() {
    let mut agreement = Agreement::default();
    for (about, placed) in captures() {
        // Damage shows in checksums, which need all octets.
        if placed.iter().any(|(_, packet)| packet.comment.as_ref().is_some_and(|comment| comment.contains("damaged"))) {
            continue;
        }
        let (whole, _) = verdicts(&placed);
        for snaplen in [64, 96] {
            let mut cut = placed.clone();
            for (_, packet) in &mut cut {
                packet.octets.truncate(snaplen);
            }
            let (is, analysis) = verdicts(&cut);
            assert!(analysis.facts.cut > 0, "{about}");
            if snaplen == 96 {
                assert_eq!(is, whole, "{about}");
            }
            agreement.add(&whole, &is, (1, u64::MAX));
        }
    }
    agreement.check("cut to headers", [0.97, 0.97, 0.97, 0.9]);
}

#[test]
fn a_capture_that_missed_packets_says_so_and_keeps_its_verdicts_on_the_rest() {
    let mut agreement = Agreement::default();
    let (mut gone, mut holes) = (0, 0);
    for (index, (about, placed)) in captures().into_iter().enumerate() {
        let mut random = Pcg64Mcg::seed_from_u64(index as u64);
        let (whole, _) = verdicts(&placed);
        let (thin, missing): (Vec<Placed>, Vec<Placed>) = placed.into_iter().partition(|_| !random.random_bool(0.01));
        let (analysis, _) = explain(&pcapng(&bare(&thin), RAW, Little, Some(missing.len() as u64)));
        assert_eq!(analysis.facts.missed, Some(missing.len() as u64), "{about}");
        let is = Verdicts::of(&analysis, &thin);
        // The verdicts on what is not there went with it.
        let mut left = whole;
        for (number, _) in &missing {
            left.again.remove(number);
            left.lost.remove(number);
        }
        agreement.add(&left, &is, (1, u64::MAX));
        (gone, holes) = (gone + missing.len() as u64, holes + analysis.facts.taken.holes);
    }
    assert!(holes * 4 > gone, "{holes} holes of {gone} packets");
    agreement.check("thinned", [0.9, 0.9, 0.9, 0.85]);
}

#[test]
fn records_out_of_order_keep_their_verdicts() {
    let mut agreement = Agreement::default();
    let mut back = 0;
    for (index, (_, placed)) in captures().into_iter().enumerate() {
        let mut random = Pcg64Mcg::seed_from_u64(index as u64);
        let (whole, _) = verdicts(&placed);
        // As several queues of a network card hand them over: each up to 5 ms late, with its right time. What passed at one moment stays as it is.
        let (mut last, mut lateness) = (0, 0);
        let mut late: Vec<(u64, Placed)> = Vec::new();
        for placed in placed {
            if placed.1.at != last {
                (last, lateness) = (placed.1.at, random.random_range(0..5_000_000));
            }
            late.push((last + lateness, placed));
        }
        late.sort_by_key(|(at, _)| *at);
        let mixed: Vec<Placed> = late.into_iter().map(|(_, placed)| placed).collect();
        back += mixed.windows(2).filter(|two| two[0].1.at > two[1].1.at).count();
        agreement.add(&whole, &verdicts(&mixed).0, (1, u64::MAX));
    }
    assert!(back > 1000, "{back}");
    agreement.check("out of order", RESEQUENCED);
}

/// Shares of verdicts that stay where records are up to 5 ms out of order.
const RESEQUENCED: [f64; 4] = [0.99, 0.99, 0.99, 0.99];

/// Records until it is clear that all of them come twice.
const LEARNING: u64 = 100;

#[test]
fn what_was_recorded_twice_keeps_its_verdicts() {
    let mut agreement = Agreement::default();
    for (about, placed) in captures() {
        let (whole, once) = verdicts(&placed);
        let twice = placed.iter().flat_map(|(number, packet)| {
            let mut later = packet.clone();
            later.at += 15_000;
            // The bridge has passed it on.
            later.octets[8] -= 1;
            let sum = u16::from_be_bytes([later.octets[10], later.octets[11]]);
            let (sum, over) = sum.overflowing_add(0x0100);
            later.octets[10..12].copy_from_slice(&(sum + u16::from(over)).to_be_bytes());
            [(packet.at, (*number, packet.clone())), (later.at, (*number, later))]
        });
        let mut twice: Vec<(u64, Placed)> = twice.collect();
        twice.sort_by_key(|(at, _)| *at);
        let twice: Vec<Placed> = twice.into_iter().map(|(_, placed)| placed).collect();
        let (is, analysis) = verdicts(&twice);
        let (doubled, all) = (analysis.facts.taken.doubled, placed.len() as u64);
        assert!(doubled + LEARNING >= all, "{about}: {doubled} of {all}");
        let counts = |analysis: &Analysis| -> Vec<u64> { analysis.flows.iter().map(|flow| flow.counts.segments).collect() };
        let (a, b) = (counts(&once), counts(&analysis));
        assert!(a.iter().zip(&b).all(|(a, b)| a.abs_diff(*b) <= LEARNING), "{about}: {a:?} {b:?}");
        agreement.add(&whole, &is, (1, u64::MAX));
    }
    agreement.check("recorded twice", [0.97, 0.97, 0.97, 0.95]);
}

#[test]
fn other_clocks_tell_the_same() {
    let mut agreement = Agreement::default();
    for (about, placed) in captures() {
        let (whole, _) = verdicts(&placed);
        // From 1970 on, and in the year 2100.
        for by in [-(EPOCH as i64), 2_400_000_000_000_000_000] {
            let moved: Vec<Placed> = placed
                .iter()
                .map(|(number, packet)| (*number, Packet { at: packet.at.wrapping_add_signed(by), ..packet.clone() }))
                .collect();
            assert_eq!(verdicts(&moved).0, whole, "{about}: moved by {by} ns");
        }
        // The clock is set in the middle of it: back and forth. (What goes back by less than a second is taken for records out of order.)
        let middle = placed[placed.len() / 2].0;
        for step in [-100_000_000_000i64, 10_000_000_000] {
            let stepped: Vec<Placed> = placed
                .iter()
                .map(|(number, packet)| {
                    let at = if *number > middle { packet.at.wrapping_add_signed(step) } else { packet.at };
                    (*number, Packet { at, ..packet.clone() })
                })
                .collect();
            let (is, analysis) = verdicts(&stepped);
            assert!(step > 0 || analysis.facts.backward > 0, "{about}");
            agreement.add(&whole, &is, (1, u64::MAX));
        }
    }
    // Ten seconds forward look like a timeout, after which repairs are expected.
    agreement.check("a clock that is set", [0.93, 0.95, 0.9, 0.85]);
}
