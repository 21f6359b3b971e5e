//! Two captures of the same transfer, whose clocks differ, with an address translator between them.

use etherparse::PacketBuilder;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::io::Cursor;
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse_both_ends, Settings};
use whyloss_capture::join::{join, End, Fate, Joined, DEFAULT_LIMIT};
use whyloss_capture::source::Source;

const EPOCH: u64 = 1_700_000_000_000_000_000;
const MSS: usize = 1000;

/// What is between the two captures, and how they see it.
#[derive(Clone, Copy, Debug)]
struct World {
    seed: u64,
    segments: u32,
    loss: f64,
    damage: f64,
    /// Packets that arrive and that the second capture does not see.
    holes: f64,
    ahead: i64,
    skew: f64,
    /// IP packets are numbered.
    numbered: bool,
    /// So many segments leave in one record.
    merged: u32,
}

impl World {
    fn plain() -> Self {
        let (loss, damage, holes) = (0.03, 0.0, 0.0);
        Self { seed: 1, segments: 2000, loss, damage, holes, ahead: 7_000_000_000, skew: 3e-5, numbered: true, merged: 1 }
    }
}

/// What became of a segment, as the world knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Arrived,
    Damaged,
    Lost,
    Unseen,
}

/// A file, with the times by which its records are put in order.
#[derive(Default)]
struct File(Vec<(u64, Vec<u8>, Option<usize>)>);

impl File {
    /// Octets of the file, and which record each of the marks became.
    fn finish(mut self) -> (Vec<u8>, Vec<(usize, u64)>) {
        self.0.sort_by_key(|record| record.0);
        let mut file = Vec::new();
        for word in [0xA1B2_3C4Du32, 0x0004_0002, 0, 0, 262_144, 101] {
            file.extend(word.to_le_bytes());
        }
        let mut marks = Vec::new();
        for (number, (at, octets, mark)) in self.0.iter().enumerate() {
            let len = octets.len() as u32;
            for word in [(at / 1_000_000_000) as u32, (at % 1_000_000_000) as u32, len, len] {
                file.extend(word.to_le_bytes());
            }
            file.extend(octets);
            marks.extend(mark.map(|mark| (mark, number as u64 + 1)));
        }
        (file, marks)
    }
}

struct Segment {
    forward: bool,
    seq: u32,
    ack: u32,
    len: usize,
    clock: u32,
    id: u16,
    syn: bool,
}

/// The packet as it is before the translator or behind it.
fn packet(segment: &Segment, translated: bool) -> Vec<u8> {
    let client = if translated { ([203, 0, 113, 9], 61_000) } else { ([192, 168, 1, 2], 40_000) };
    let server = ([198, 51, 100, 1], 443);
    let (src, dst) = if segment.forward { (client, server) } else { (server, client) };
    let timestamps = etherparse::TcpOptionElement::Timestamp(segment.clock, segment.clock.wrapping_sub(9));
    let mss = etherparse::TcpOptionElement::MaximumSegmentSize(MSS as u16 + 12);
    let options = if segment.syn { vec![mss, timestamps] } else { vec![timestamps] };
    let mut builder = PacketBuilder::ip(etherparse::IpHeaders::Ipv4(
        etherparse::Ipv4Header {
            identification: segment.id,
            ..etherparse::Ipv4Header::new(0, if translated { 63 } else { 64 }, etherparse::IpNumber::TCP, src.0, dst.0).unwrap()
        },
        etherparse::Ipv4Extensions::default(),
    ))
    .tcp(src.1, dst.1, segment.seq, 5000)
    .options(&options)
    .unwrap();
    if segment.syn {
        builder = builder.syn();
    }
    if !(segment.syn && segment.forward) {
        builder = builder.ack(segment.ack);
    }
    let mut octets = Vec::new();
    builder.write(&mut octets, &vec![0; segment.len]).unwrap();
    octets
}

/// Both captures as files, and what became of each segment that the first one saw leave, by its record.
fn files(world: World) -> ([Vec<u8>; 2], Vec<(u64, Truth)>) {
    let mut random = Pcg64Mcg::seed_from_u64(world.seed);
    let (mut first, mut second) = (File::default(), File::default());
    let mut fates = Vec::new();
    let second_clock = |at: u64| (EPOCH + at).wrapping_add_signed(world.ahead + (world.skew * at as f64) as i64);
    let mut queue = 0u64;
    let mut id = 0;
    let back = |at: u64, random: &mut Pcg64Mcg, first: &mut File, second: &mut File, segment: &Segment| {
        let delay = 10_000_000 + if random.random_bool(0.3) { 0 } else { random.random_range(0..3_000_000) };
        second.0.push((second_clock(at), packet(segment, true), None));
        first.0.push((EPOCH + at + delay, packet(segment, false), None));
    };
    let syn = |forward, ack| Segment { forward, seq: if forward { 999 } else { 4999 }, ack, len: 0, clock: 1, id: 0, syn: true };
    first.0.push((EPOCH, packet(&syn(true, 0), false), None));
    second.0.push((second_clock(10_000_000), packet(&syn(true, 0), true), None));
    back(11_000_000, &mut random, &mut first, &mut second, &syn(false, 1000));
    let mut at = 30_000_000;
    let mut number = 0;
    let mut again: Vec<(u64, u32, u32)> = Vec::new();
    while number < world.segments || !again.is_empty() {
        at += 1_000_000;
        // A repair leaves in the same tick of the sender's clock as another copy, now and then.
        let (index, copy) = match again.iter().position(|waiting| waiting.0 <= at) {
            Some(place) => {
                let (_, index, copy) = again.remove(place);
                (index, copy)
            }
            None if number < world.segments => {
                number += world.merged;
                (number - world.merged, 0)
            }
            None => continue,
        };
        let parts = if copy == 0 { world.merged } else { 1 };
        let clock = (index / world.merged.max(8)) + 10;
        let segment = |index: u32, parts: u32, id: u16| Segment {
            forward: true,
            seq: 1000u32.wrapping_add(index * MSS as u32),
            ack: 5000,
            len: MSS * parts as usize,
            clock,
            id: if world.numbered { id } else { 0 },
            syn: false,
        };
        id += 1;
        let mark = fates.len();
        fates.push(Truth::Arrived);
        first.0.push((EPOCH + at, packet(&segment(index, parts, id), false), Some(mark)));
        queue = if random.random_bool(0.1) { 0 } else { (queue + random.random_range(0..1_000_000)).min(20_000_000) };
        for part in index..index + parts {
            let came = at + 10_000_000 + queue + u64::from(part - index) * 1000;
            let mut octets = packet(&segment(part, 1, id), true);
            let what = random.random::<f64>();
            if what < world.loss {
                fates[mark] = Truth::Lost;
                again.push((at + 40_000_000, part, copy + 1));
            } else if what < world.loss + world.damage {
                fates[mark] = Truth::Damaged;
                let place = octets.len() - 1 - random.random_range(0..MSS);
                octets[place] ^= 1 << random.random_range(0..8);
                second.0.push((second_clock(came), octets, None));
                again.push((at + 40_000_000, part, copy + 1));
            } else {
                if what < world.loss + world.damage + world.holes {
                    fates[mark] = Truth::Unseen;
                } else {
                    second.0.push((second_clock(came), octets, None));
                }
                let answer = Segment {
                    forward: false,
                    seq: 5000,
                    ack: 1000u32.wrapping_add((part + 1) * MSS as u32),
                    len: 0,
                    clock: 1000 + part,
                    id: 0,
                    syn: false,
                };
                back(came + 100_000, &mut random, &mut first, &mut second, &answer);
            }
        }
    }
    let (first, marks) = first.finish();
    let truth = marks.into_iter().map(|(mark, record)| (record, fates[mark])).collect();
    ([first, second.finish().0], truth)
}

fn source(octets: &[u8]) -> Source {
    Source::new("some".to_owned(), Box::new(Cursor::new(octets.to_vec()))).unwrap()
}

fn captured(world: World) -> (Joined, Vec<(u64, Truth)>) {
    let ([first, second], truth) = files(world);
    (join(source(&first), source(&second), DEFAULT_LIMIT).unwrap(), truth)
}

fn judged(joined: &Joined, record: u64) -> Option<Truth> {
    Some(match joined.fate(End::First, record)? {
        Fate::Arrived { .. } => Truth::Arrived,
        Fate::Damaged { .. } => Truth::Damaged,
        Fate::Lost => Truth::Lost,
        Fate::Unseen => Truth::Unseen,
        Fate::Outside => return None,
    })
}

/// Packets near the end may come after the other capture ended; these are few.
const AT_THE_END: usize = 5;

/// Records whose fate is told otherwise than it was.
fn wrong(joined: &Joined, truth: &[(u64, Truth)]) -> Vec<(u64, Truth, Option<Truth>)> {
    let told = truth.iter().map(|&(record, fate)| (record, fate, judged(joined, record)));
    let wrong: Vec<_> = told.filter(|(_, fate, told)| *told != Some(*fate)).collect();
    let (outside, wrong): (Vec<_>, Vec<_>) = wrong.into_iter().partition(|(_, _, told)| told.is_none());
    let end = truth.len() - truth.len().min(60);
    assert!(outside.len() <= AT_THE_END && outside.iter().all(|(record, ..)| *record >= truth[end].0), "{outside:?}");
    wrong
}

fn clocks_are_found(world: World, joined: &Joined) {
    let clocks = joined.clocks.unwrap();
    let error = clocks.error_ns.unwrap() as i64;
    let truth = world.ahead + (world.skew * (clocks.since - EPOCH) as f64) as i64;
    assert!((clocks.offset_ns - truth).abs() <= error, "{clocks:?} {truth}");
    assert!((clocks.skew - world.skew).abs() < 2e-6, "{clocks:?}");
    // The shortest round trip between the captures is 20 ms.
    assert!((9_900_000..10_200_000).contains(&error), "{clocks:?}");
}

#[test]
fn each_packet_has_its_fate_behind_a_translator() {
    let world = World::plain();
    let (joined, truth) = captured(world);
    assert_eq!(wrong(&joined, &truth), []);
    assert!(truth.iter().filter(|(_, fate)| *fate == Truth::Lost).count() > 40);
    clocks_are_found(world, &joined);
    assert_eq!(joined.pairs.len(), 2);
    assert!(joined.pairs.iter().all(whyloss_capture::join::Pair::is_translated));
    assert_eq!(joined.pairs[0].sender, End::First);
    assert_eq!(joined.pairs[0].second.0.to_string(), "203.0.113.9:61000");
    // What the second capture saw leave arrived.
    assert!(joined.sent[1].iter().all(|sent| matches!(sent.fate, Fate::Arrived { .. })));
    // A delay is exact within the error of the clocks.
    let error = joined.clocks.unwrap().error_ns.unwrap() as i64;
    for sent in &joined.sent[0] {
        if let Fate::Arrived { delay_ns, .. } = sent.fate {
            assert!((10_000_000 - error..=31_000_000 + error).contains(&delay_ns), "{sent:?}");
        }
    }
}

#[test]
fn damaged_copies_and_what_the_capture_missed_are_no_losses() {
    let world = World { damage: 0.03, holes: 0.02, ..World::plain() };
    let (joined, truth) = captured(world);
    assert_eq!(wrong(&joined, &truth), []);
    for fate in [Truth::Damaged, Truth::Unseen, Truth::Lost] {
        assert!(truth.iter().filter(|(_, other)| *other == fate).count() > 20, "{fate:?}");
    }
}

#[test]
fn copies_that_look_alike_are_told_apart_by_their_delay() {
    let world = World { numbered: false, loss: 0.1, ..World::plain() };
    let (joined, truth) = captured(world);
    let wrong = wrong(&joined, &truth);
    assert!(wrong.len() * 100 <= truth.len(), "{} of {}: {wrong:?}", wrong.len(), truth.len());
}

#[test]
fn a_record_that_was_several_packets_is_parted() {
    let world = World { merged: 8, ..World::plain() };
    let (joined, truth) = captured(world);
    assert_eq!(wrong(&joined, &truth), []);
    assert!(joined.sent[0].len() >= world.segments as usize);
}

#[test]
fn captures_of_different_things_have_nothing_in_common() {
    let (first, _) = {
        let mut file = File::default();
        let segment = Segment { forward: true, seq: 1, ack: 1, len: 10, clock: 1, id: 1, syn: false };
        file.0.push((EPOCH, packet(&segment, false), None));
        file.finish()
    };
    let (second, _) = {
        let mut file = File::default();
        let segment = Segment { forward: true, seq: 77, ack: 1, len: 10, clock: 1, id: 1, syn: false };
        file.0.push((EPOCH, packet(&segment, false), None));
        file.finish()
    };
    let joined = join(source(&first), source(&second), DEFAULT_LIMIT).unwrap();
    assert_eq!(joined.clocks, None);
    assert!(joined.remarks[0].contains("no packet in common"), "{:?}", joined.remarks);
}

#[test]
fn the_analysis_of_one_end_stands_beside_what_both_know() {
    let (files, truth) = files(World::plain());
    let open = |end: End| Ok(source(&files[end as usize]));
    let analysis = analyse_both_ends(&open, &Settings::default(), &mut |_| ControlFlow::Continue(())).unwrap();
    let both = analysis.facts.both_ends.as_ref().unwrap();
    let lost = truth.iter().filter(|(_, fate)| *fate == Truth::Lost).count() as u64;
    assert!(lost.abs_diff(both.from_first["lost"]) <= AT_THE_END as u64, "{both:?}");
    let suspected: u64 = both.suspected["lost"].values().sum();
    assert!(suspected + both.not_suspected == both.from_first["lost"] && suspected * 10 > lost * 9, "{both:?}");
    assert_eq!(both.translations.len(), 2);
    assert_eq!(analysis.fates.len(), (both.from_first.values().sum::<u64>() + both.from_second.values().sum::<u64>()) as usize);
}

#[test]
fn packets_beyond_the_limit_are_counted() {
    let ([first, second], _) = files(World::plain());
    let joined = join(source(&first), source(&second), 500).unwrap();
    assert!(joined.sent[0].len() <= 500 && joined.clocks.is_some());
    assert!(joined.remarks.iter().any(|remark| remark.contains("beyond the first 500 are not joined")), "{:?}", joined.remarks);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_clocks_and_any_losses(
        seed in any::<u64>(),
        ahead in -1_000_000_000_000_000i64..1_000_000_000_000_000,
        parts_per_million in -100.0..100.0,
        loss in 0.0..0.2,
        damage in 0.0..0.1,
        merged in 1u32..10,
    ) {
        let world = World { seed, ahead, skew: parts_per_million * 1e-6, loss, damage, merged, ..World::plain() };
        let (joined, truth) = captured(world);
        clocks_are_found(world, &joined);
        if merged == 1 {
            prop_assert_eq!(wrong(&joined, &truth), []);
        }
    }
}
