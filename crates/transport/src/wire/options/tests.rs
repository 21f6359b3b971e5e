//! Options as octets, both ways, and octets that are none.

use super::*;

fn fast_open(cookie: &[u8], experimental: bool) -> Options {
    let fast_open = Some(FastOpen { cookie: Cookie::new(cookie), experimental });
    Options { mss: Some(1460), rare: Some(Box::new(RareOptions { fast_open, ..RareOptions::default() })), ..Options::default() }
}

#[test]
fn fast_open_cookies() {
    both_ways(&fast_open(&[], false), &[2, 4, 5, 180, 34, 2, 1, 1]);
    both_ways(&fast_open(&[1, 2, 3, 4], false), &[2, 4, 5, 180, 34, 6, 1, 2, 3, 4, 1, 1]);
    both_ways(&fast_open(&[], true), &[2, 4, 5, 180, 254, 4, 0xF9, 0x89]);
    both_ways(&fast_open(&[9, 8, 7, 6], true), &[2, 4, 5, 180, 254, 8, 0xF9, 0x89, 9, 8, 7, 6]);
    let longest = [7; 16];
    let octets = [&[2, 4, 5, 180, 34, 18][..], &longest, &[1, 1]].concat();
    both_ways(&fast_open(&longest, false), &octets);
}

#[test]
fn what_cannot_be_a_cookie_is_an_unknown_option() {
    for len in [1, 2, 3, 5, 15, 17, 18, 38] {
        let octets = [&[34, 2 + len as u8][..], &vec![1; len]].concat();
        let (options, malformed) = parse(&octets);
        let rare = options.rare.unwrap();
        assert_eq!((rare.fast_open, rare.unknown.len(), malformed), (None, 1, None), "{len} octets");
    }
}

#[test]
fn a_cookie_that_does_not_fit_stays_behind() {
    let mut options = fast_open(&[1; 16], false);
    options.timestamps = TIMES;
    options.sack_permitted = true;
    options.window_scale = Some(7);
    let mut fitting = options.clone();
    fitting.fit();
    assert_eq!(fitting, options);
    options.rare.as_mut().unwrap().reports_permitted = true;
    options.fit();
    let rare = options.rare.unwrap();
    assert!(rare.reports_permitted && rare.fast_open.is_none() && options.timestamps.is_some());
}
use crate::segment::{
    CompactList, CompactReport, CorruptionReport, ExplicitLoss, HeaderReport, Hop, HopNotice, PositionBasis, RateReport, Report,
    ReportedPosition, SackBlocks, Separation, WaveRate,
};
use crate::segment::{Probe, ProbeStep};

/// Those of a SYN, if they begin with what only a SYN has.
fn parse(octets: &[u8]) -> (Options, Option<Malformed>) {
    Options::parse(&Bytes::copy_from_slice(octets), matches!(octets, [2, ..] | [253, 4, 0x57, ..]))
}

#[track_caller]
fn both_ways(options: &Options, octets: &[u8]) {
    let mut out = Vec::new();
    options.write(&mut out);
    assert_eq!(out, octets);
    assert_eq!(options.encoded_len(), octets.len());
    assert_eq!(parse(octets), (options.clone(), None));
}

fn sack(count: u32) -> SackBlocks {
    let mut sack = SackBlocks::default();
    for block in 0..count {
        assert!(sack.push(Seq(block * 10), Seq(block * 10 + 5)));
    }
    sack
}

const TIMES: Option<Timestamps> = Some(Timestamps { value: 0x0102_0304, echo: 0x0506_0708 });
const POSITION: ReportedPosition = ReportedPosition { seq: Seq(0x1112_1314), len: 1536, basis: PositionBasis::SeqConfirmed };

fn corruption(position: Option<ReportedPosition>, echo: Option<u32>) -> CorruptionReport {
    CorruptionReport { count: 9, position, echo, ..CorruptionReport::default() }
}

fn reporting(report: CorruptionReport) -> Options {
    let rare = RareOptions { report: Some(Report::Corruption(report)), ..RareOptions::default() };
    Options { rare: Some(Box::new(rare)), ..Options::default() }
}

#[test]
fn timestamps_alone_are_aligned() {
    both_ways(&Options { timestamps: TIMES, ..Options::default() }, &[1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_syn() {
    let rare = Some(Box::new(RareOptions { reports_permitted: true, ..RareOptions::default() }));
    let options = Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, rare, ..Options::default() };
    both_ways(&options, &[2, 4, 0x05, 0xB4, 4, 2, 3, 3, 7, 253, 4, 0x57, 0x4C, 1, 1, 1]);
}

#[test]
fn a_nonce() {
    both_ways(
        &Options { nonce: Some(0xA1A2_A3A4), ..Options::default() },
        &[1, 1, 1, 253, 9, 0x57, 0x4C, 6, 0xA1, 0xA2, 0xA3, 0xA4],
    );
}

#[test]
fn a_header_checksum_is_left_to_the_segment_and_found_again() {
    let options = Options { header_check: true, timestamps: TIMES, ..Options::default() };
    let octets = [1, 1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 253, 7, 0x57, 0x4C, 8, 0, 0];
    both_ways(&options, &octets);
    assert_eq!(header_check_at(&octets), Some(18));
    for elsewhere in
        [&[253, 7, 0x57, 0x4D, 8, 0, 0, 0][..], &[253, 7, 0x57, 0x4C, 8, 0], &[253, 1], &[253], &[0, 253, 7, 0x57, 0x4C, 8, 0, 0]]
    {
        assert_eq!(header_check_at(elsewhere), None, "{elsewhere:02x?}");
    }
}

#[test]
fn waves_and_their_rates() {
    let options = Options { wave: Some(Wave { number: 3, size: 200 }), ..Options::default() };
    both_ways(&options, &[254, 4, 3, 200]);
    let rare = |rate| {
        let report = Some(Report::Rate(RateReport { wave: 3, rate }));
        Some(Box::new(RareOptions { report, ..RareOptions::default() }))
    };
    both_ways(&Options { rare: rare(WaveRate::Scaled(255)), ..Options::default() }, &[253, 4, 3, 255]);
    // Numbers that read as identifiers: 0x574C is ours, 0xF989 that of Fast Open.
    let wave = Some(Wave { number: 0xF9, size: 0x89 });
    let report = Some(Report::Rate(RateReport { wave: 0x57, rate: WaveRate::Scaled(0x4C) }));
    let both = Options { wave, rare: Some(Box::new(RareOptions { report, ..RareOptions::default() })), ..Options::default() };
    both_ways(&both, &[254, 4, 0xF9, 0x89, 253, 4, 0x57, 0x4C]);
    // 833.33 segments/s: 833,330,000 in 10^6 s are (1024 + 565) 2^19, and 365,232 more.
    let rate = WaveRate::measured(833_330_000);
    assert_eq!(rate, WaveRate::Measured(19 << 10 | 0x235));
    assert!((rate.value() - 833_085_440.0).abs() < 1e-3 * 833_330_000.0, "{}", rate.value());
    both_ways(&Options { rare: rare(rate), ..Options::default() }, &[253, 8, 0x57, 0x4C, 2, 3, 0x4E, 0x35]);
}

#[test]
fn a_rate_in_16_bits_is_exact_to_a_thousandth_and_bounded() {
    for rate in [1024, 1025, 2047, 2048, 1_000_000, 833_333_333, 81_274_000_000_000, u64::MAX] {
        let read = WaveRate::measured(rate).value();
        assert!(read <= rate as f64 && read > rate as f64 * (1.0 - 1.0 / 1024.0), "{rate}: {read}");
    }
    assert!((WaveRate::measured(0).value() - 1024.0).abs() < 1e-9);
    assert!(WaveRate::Measured(u16::MAX).value() > 0.0, "what nobody sends overflows nothing");
}

#[test]
fn options_of_waves_are_on_no_syn_and_four_octets_long() {
    for octets in [&[254, 4, 3, 200][..], &[253, 4, 3, 255]] {
        let (options, _) = Options::parse(&Bytes::copy_from_slice(octets), true);
        assert_eq!((options.wave, options.rare.unwrap().unknown.len()), (None, 1), "{octets:?}");
    }
    for octets in [
        &[254, 3, 3][..],
        &[254, 5, 3, 200, 1],
        &[253, 3, 3],
        &[253, 7, 0x57, 0x4C, 2, 3, 255],
        &[253, 9, 0x57, 0x4C, 2, 3, 1, 2, 3],
    ] {
        let (options, malformed) = parse(octets);
        let rare = options.rare.unwrap();
        assert_eq!((options.wave, rare.report, rare.unknown.len(), malformed), (None, None, 1, None), "{octets:?}");
    }
    for octets in [&[254, 4, 3][..], &[253, 4], &[254]] {
        let (options, malformed) = parse(octets);
        assert_eq!((options, malformed.map(|flaw| flaw.at)), (Options::default(), Some(0)), "{octets:?}");
    }
    let (options, _) = parse(&[254, 4, 3, 200, 254, 4, 9, 5]);
    assert_eq!(options.wave, Some(Wave { number: 9, size: 5 }), "the last counts");
}

#[test]
fn separations_and_what_is_asked_for() {
    let with = |separation, report| {
        let rare = RareOptions { report, separation, ..RareOptions::default() };
        Options { rare: Some(Box::new(rare)), ..Options::default() }
    };
    let said = |micros, kept| Some(Separation { number: 9, micros, kept, trip: 1000 });
    both_ways(&with(said(0x0102_0304, false), None), &[253, 12, 0x57, 0x4C, 15, 9, 1, 2, 3, 4, 0x03, 0xE8]);
    both_ways(&with(said(5800, true), None), &[253, 12, 0x57, 0x4C, 15, 9, 0x80, 0, 0x16, 0xA8, 0x03, 0xE8]);
    both_ways(&with(None, Some(Report::Pace(5800))), &[1, 1, 1, 253, 9, 0x57, 0x4C, 16, 0, 0, 0x16, 0xA8]);
    // What does not fit into 31 bits is as long as can be said.
    let mut out = Vec::new();
    with(said(u32::MAX, false), None).write(&mut out);
    assert_eq!(parse(&out).0, with(said(u32::MAX >> 1, false), None));
}

#[test]
fn separations_of_other_lengths_are_unknown_and_give_way_last() {
    for octets in [
        &[253, 11, 0x57, 0x4C, 15, 9, 1, 2, 3, 4, 5][..],
        &[253, 13, 0x57, 0x4C, 15, 9, 1, 2, 3, 4, 5, 6, 7],
        &[253, 5, 0x57, 0x4C, 15],
        &[253, 8, 0x57, 0x4C, 16, 1, 2, 3],
        &[253, 10, 0x57, 0x4C, 16, 1, 2, 3, 4, 5],
    ] {
        let (options, malformed) = parse(octets);
        let rare = options.rare.unwrap();
        assert_eq!((rare.separation, rare.report, rare.unknown.len(), malformed), (None, None, 1, None), "{octets:?}");
    }
    let (options, malformed) = parse(&[253, 12, 0x57, 0x4C, 15, 9, 1]);
    assert_eq!((options, malformed.map(|flaw| flaw.left)), (Options::default(), Some(7)), "cut short");
    let separation = Some(Separation::default());
    let rare = RareOptions { separation, report: Some(Report::Pace(1)), ..RareOptions::default() };
    let full = Options { timestamps: TIMES, sack: sack(4), rare: Some(Box::new(rare)), ..Options::default() };
    let mut options = full.clone();
    options.fit();
    assert_eq!((options.sack.len(), options.rare.as_ref()), (0, full.rare.as_ref()));
    let mut options = Options { nonce: Some(1), mss: Some(1), ..full };
    options.fit();
    let rare = options.rare.unwrap();
    assert_eq!((rare.separation, rare.report), (separation, None), "35 of 40 octets");
}

#[test]
fn reports_of_intact_headers() {
    let report = Report::HeaderIntact(HeaderReport { seq: Seq(0x1112_1314), count: 9 });
    let rare = Some(Box::new(RareOptions { report: Some(report), ..RareOptions::default() }));
    both_ways(&Options { rare, ..Options::default() }, &[1, 1, 253, 10, 0x57, 0x4C, 9, 9, 0x11, 0x12, 0x13, 0x14]);
}

#[test]
fn probes_and_what_is_none() {
    let rare = |step, cycle| Some(Box::new(RareOptions { probe: Some(Probe { step, cycle }), ..RareOptions::default() }));
    let both = |step, cycle, octets: &[u8]| both_ways(&Options { rare: rare(step, cycle), ..Options::default() }, octets);
    both(ProbeStep::First, 0, &[1, 253, 7, 0x57, 0x4C, 14, 1, 0]);
    both(ProbeStep::FirstAnswer, 7, &[1, 253, 7, 0x57, 0x4C, 14, 2, 7]);
    both(ProbeStep::Second, 255, &[1, 253, 7, 0x57, 0x4C, 14, 3, 255]);
    both(ProbeStep::SecondAnswer, 9, &[1, 253, 7, 0x57, 0x4C, 14, 4, 9]);
    // No such step, too short, too long, another experiment.
    let wrong: [&[u8]; 5] = [
        &[253, 7, 0x57, 0x4C, 14, 0, 9],
        &[253, 7, 0x57, 0x4C, 14, 5, 9],
        &[253, 6, 0x57, 0x4C, 14, 1],
        &[253, 8, 0x57, 0x4C, 14, 1, 9, 9],
        &[253, 7, 0x57, 0x4D, 14, 1, 9],
    ];
    for octets in wrong {
        let (options, malformed) = parse(octets);
        let rare = options.rare.unwrap();
        assert_eq!((rare.probe, rare.unknown.len(), malformed), (None, 1, None), "{octets:?}");
    }
    let (options, malformed) = parse(&[253, 7, 0x57, 0x4C, 14, 1]);
    assert!(options.rare.is_none() && malformed.is_some_and(|cut| cut.claimed == 7 && cut.left == 6));
}

#[test]
fn a_notice_of_explicit_loss() {
    let notices = Notices { explicit_loss: Some(ExplicitLoss { seq: Seq(0x1112_1314), len: 1448 }), ..Notices::default() };
    let rare = Some(Box::new(RareOptions { notices, ..RareOptions::default() }));
    let octets = [1, 253, 11, 0x57, 0x4C, 5, 0x11, 0x12, 0x13, 0x14, 0x05, 0xA8];
    both_ways(&Options { rare, ..Options::default() }, &octets);
}

#[test]
fn notices_of_routers() {
    let with = |notices| {
        let rare = Some(Box::new(RareOptions { notices, ..RareOptions::default() }));
        Options { rare, ..Options::default() }
    };
    let none = Notices::default();
    both_ways(&with(Notices { forwarded: Some(0x0102_0304), ..none }), &[1, 1, 1, 253, 9, 0x57, 0x4C, 12, 1, 2, 3, 4]);
    let hop = Some(HopNotice { hop: Hop::Last, seq: Seq(0x1112_1314), len: 1448 });
    both_ways(&with(Notices { hop, ..none }), &[253, 12, 0x57, 0x4C, 13, 1, 0x11, 0x12, 0x13, 0x14, 0x05, 0xA8]);
    both_ways(&with(Notices { survival: Some(0xFAE0), ..none }), &[1, 253, 7, 0x57, 0x4C, 10, 0xFA, 0xE0]);
    let report = Some(Report::Survival(0xFAE0));
    let rare = Some(Box::new(RareOptions { report, ..RareOptions::default() }));
    both_ways(&Options { rare, ..Options::default() }, &[1, 253, 7, 0x57, 0x4C, 11, 0xFA, 0xE0]);
}

#[test]
fn reports_of_corruption() {
    let report = CorruptionReport { congestion_experienced: true, rate_limited: true, ..corruption(None, None) };
    both_ways(&reporting(report), &[1, 253, 7, 0x57, 0x4C, 4, 0x30, 9]);
    both_ways(&reporting(corruption(Some(POSITION), None)), &[1, 253, 11, 0x57, 0x4C, 4, 0x8C, 9, 0x11, 0x12, 0x13, 0x14]);
    both_ways(&reporting(corruption(None, Some(0xA1A2_A3A4))), &[1, 253, 11, 0x57, 0x4C, 4, 0, 9, 0xA1, 0xA2, 0xA3, 0xA4]);
    let inferred = ReportedPosition { len: 0, basis: PositionBasis::OrderInferred, ..POSITION };
    both_ways(
        &reporting(corruption(Some(inferred), Some(0xA1A2_A3A4))),
        &[1, 253, 15, 0x57, 0x4C, 4, 0x40, 9, 0x11, 0x12, 0x13, 0x14, 0xA1, 0xA2, 0xA3, 0xA4],
    );
}

#[test]
fn a_report_in_eight_octets() {
    let compact = CompactReport { offset: 0x8_0001, congestion_experienced: true, echo: 0x203 };
    let rare = Some(Box::new(RareOptions { report: Some(Report::Compact(compact)), ..RareOptions::default() }));
    // 80000000 + 40000000 + 80001 * 400 + 203, all in base 16.
    both_ways(&Options { rare, ..Options::default() }, &[253, 8, 0x57, 0x4C, 0xE0, 0x00, 0x06, 0x03]);
}

#[test]
fn reports_and_a_nonce_in_words() {
    let compact = CompactReport { offset: 0x8_0001, congestion_experienced: true, echo: 0x203 };
    let other = CompactReport { offset: 1448, congestion_experienced: false, echo: 0x3FF };
    let list = |reports: &[CompactReport]| {
        let mut list = CompactList::default();
        assert!(reports.iter().all(|report| list.push(*report)));
        Report::List(list)
    };
    let words = |short_nonce, report| Options {
        rare: Some(Box::new(RareOptions { short_nonce, report, ..RareOptions::default() })),
        ..Options::default()
    };
    both_ways(&words(Some(0x2A5A_5A5A), None), &[253, 8, 0x57, 0x4C, 0x6A, 0x5A, 0x5A, 0x5A]);
    both_ways(&words(Some(0), Some(Report::Compact(compact))), &[253, 12, 0x57, 0x4C, 0x40, 0, 0, 0, 0xE0, 0x00, 0x06, 0x03]);
    both_ways(
        &words(None, Some(list(&[compact, other, compact]))),
        &[253, 16, 0x57, 0x4C, 0xE0, 0x00, 0x06, 0x03, 0x80, 0x16, 0xA3, 0xFF, 0xE0, 0x00, 0x06, 0x03],
    );
    let most = vec![other; CompactList::MOST];
    let octets = [vec![253, 40, 0x57, 0x4C], [0x80, 0x16, 0xA3, 0xFF].repeat(CompactList::MOST)].concat();
    both_ways(&words(None, Some(list(&most))), &octets);
    // A nonce that is not the first, a word that is none, and half a word.
    for not_ours in [
        &[253, 12, 0x57, 0x4C, 0x80, 0, 0, 0, 0x40, 0, 0, 0][..],
        &[253, 12, 0x57, 0x4C, 0x40, 0, 0, 0, 0x40, 0, 0, 0],
        &[253, 12, 0x57, 0x4C, 0x80, 0, 0, 0, 0x3F, 0, 0, 0],
        &[253, 10, 0x57, 0x4C, 0x80, 0, 0, 0, 0x80, 0],
    ] {
        let (options, flaw) = parse(not_ours);
        assert_eq!(flaw, None);
        let rare = options.rare.expect("an option");
        assert_eq!((rare.report, rare.short_nonce, rare.unknown.len()), (None, None, 1), "{not_ours:02x?}");
    }
}

#[test]
fn words_are_permitted_on_a_syn() {
    let octets = [253, 4, 0x57, 0x4C, 254, 4, 0x57, 0x4C];
    let rare = Options::parse(&Bytes::copy_from_slice(&octets), true).0.rare.expect("two options");
    assert!(rare.reports_permitted && rare.words_permitted && rare.unknown.is_empty());
    let mut written = Vec::new();
    Options { rare: Some(rare), ..Options::default() }.write(&mut written);
    assert_eq!(written, octets);
    // Elsewhere it is a wave.
    let elsewhere = Options::parse(&Bytes::copy_from_slice(&octets[4..]), false).0;
    assert_eq!(elsewhere.wave, Some(Wave { number: 0x57, size: 0x4C }));
}

#[test]
fn a_reported_length_is_rounded_up() {
    for (len, read) in [(0, 0), (1, 128), (128, 128), (1448, 1536), (1920, 1920), (u16::MAX, 1920)] {
        let mut out = Vec::new();
        reporting(corruption(Some(ReportedPosition { len, ..POSITION }), None)).write(&mut out);
        let expected = reporting(corruption(Some(ReportedPosition { len: read, ..POSITION }), None)).rare;
        assert_eq!(parse(&out).0.rare, expected, "{len} octets");
    }
}

#[test]
fn a_snack() {
    let snack = Snack { hole1_offset: 0, hole1_size: 3, bits: Bytes::from_static(&[0xF6, 0x40]) };
    let rare = Some(Box::new(RareOptions { snacks: vec![snack], ..RareOptions::default() }));
    both_ways(&Options { rare, ..Options::default() }, &[0x15, 0x08, 0x00, 0x00, 0x00, 0x03, 0xF6, 0x40]);
}

#[test]
fn several_snacks_and_scps_capabilities() {
    let snack = |offset, size| Snack { hole1_offset: offset, hole1_size: size, bits: Bytes::new() };
    let several =
        |snacks| Options { rare: Some(Box::new(RareOptions { snacks, ..RareOptions::default() })), ..Options::default() };
    let holes = several(vec![snack(0, 3), snack(7, 1), snack(10, u16::MAX)]);
    both_ways(&holes, &[1, 1, 21, 6, 0, 0, 0, 3, 21, 6, 0, 7, 0, 1, 21, 6, 0, 10, 0xFF, 0xFF]);

    let scps = Some(ScpsCapabilities { flags: ScpsCapabilities::SNACK, connection: 0 });
    let rare = Some(Box::new(RareOptions { scps, ..RareOptions::default() }));
    both_ways(&Options { mss: Some(1460), rare, ..Options::default() }, &[2, 4, 5, 180, 20, 4, 0x40, 0]);

    let mut many = several((0..9).map(|nth| snack(nth * 2, 1)).collect());
    many.timestamps = TIMES;
    many.fit();
    assert_eq!(many.rare.unwrap().snacks.len(), 5, "the last ones have no room: 10 + 5 · 6 of 40 octets");
}

#[test]
fn what_is_not_known_is_kept_apart() {
    let cases: [&[u8]; 12] = [
        &[30, 4, 1, 2],                                    // another kind
        &[2, 3, 9, 1],                                     // a maximum segment size of another length
        &[5, 2, 1, 1],                                     // no SACK block
        &[5, 6, 1, 2, 3, 4, 1, 1],                         // half a SACK block
        &[253, 4, 0x57, 0x4D],                             // another experiment
        &[253, 8, 0x57, 0x4C, 33, 1, 2, 3],                // another sub-type
        &[253, 11, 0x57, 0x4C, 4, 0xC0, 9, 1, 2, 3, 4, 1], // a position known in two ways
        &[253, 10, 0x57, 0x4C, 4, 0x80, 9, 1, 2, 3, 1, 1], // a position cut short
        &[253, 3, 0x57, 1],                                // no experiment identifier
        &[21, 5, 0, 0, 1],                                 // a SNACK without the size of its hole
        &[20, 3, 0x40],                                    // SCPS capabilities cut short
        &[20, 5, 0x40, 0, 0],                              // and too long
    ];
    for octets in cases {
        let (options, malformed) = parse(octets);
        let len = usize::from(octets[1]);
        let unknown = vec![(octets[0], Bytes::copy_from_slice(&octets[2..len]))];
        let expected = Options { rare: Some(Box::new(RareOptions { unknown, ..RareOptions::default() })), ..Options::default() };
        assert_eq!((options, malformed), (expected, None), "{octets:02x?}");
    }
}

#[test]
fn a_length_that_makes_no_sense_ends_reading() {
    let read = Options { window_scale: Some(7), ..Options::default() };
    for (octets, kind, at, claimed, left) in [
        (&[3, 3, 7, 8, 10, 1, 2, 3][..], 8, 3, 10, 5),
        (&[3, 3, 7, 30, 1, 4, 2, 1], 30, 3, 1, 5),
        (&[3, 3, 7, 30, 0, 4, 2, 1], 30, 3, 0, 5),
        (&[3, 3, 7, 1, 1, 1, 1, 30], 30, 7, 0, 1),
    ] {
        assert_eq!(parse(octets), (read.clone(), Some(Malformed { kind, at, claimed, left })), "{octets:?}");
    }
    assert_eq!(parse(&[3, 3, 7, 0, 8, 1, 0, 0]), (read, None), "nothing is read behind the end of options");
}

#[test]
fn sack_blocks_give_way() {
    let with = |timestamps, nonce, rare| {
        let mut options = Options { timestamps, nonce, rare, sack: sack(4), ..Options::default() };
        let all = options.clone();
        options.fit();
        assert!(options.encoded_len() <= MAX_LEN);
        assert_eq!((&options.timestamps, &options.nonce, &options.rare), (&all.timestamps, &all.nonce, &all.rare));
        assert_eq!(options.sack.as_slice(), &all.sack.as_slice()[..options.sack.len()]);
        options.sack.len()
    };
    let (position, echo) = (Some(POSITION), Some(5));
    assert_eq!(with(None, None, None), 4);
    assert_eq!(with(TIMES, None, None), 3);
    assert_eq!(with(TIMES, Some(1), None), 2);
    assert_eq!(with(TIMES, None, reporting(corruption(None, None)).rare), 2);
    assert_eq!(with(TIMES, None, reporting(corruption(position, None)).rare), 2);
    assert_eq!(with(TIMES, None, reporting(corruption(position, echo)).rare), 1);
    assert_eq!(with(TIMES, Some(1), reporting(corruption(position, None)).rare), 1);
    assert_eq!(with(TIMES, Some(1), reporting(corruption(position, echo)).rare), 0);
}

#[test]
fn what_fits_least_goes_first() {
    let report = Report::Corruption(corruption(Some(POSITION), Some(5)));
    let snack = |bits| vec![Snack { hole1_offset: 1, hole1_size: 2, bits: Bytes::from(vec![0xAA; bits]) }];
    let rare = RareOptions {
        reports_permitted: true,
        report: Some(report),
        snacks: snack(34),
        unknown: vec![(30, Bytes::new())],
        ..RareOptions::default()
    };
    let full = Options { timestamps: TIMES, sack: sack(4), nonce: None, rare: Some(Box::new(rare)), ..Options::default() };

    let mut options = full.clone();
    options.fit();
    let kept = RareOptions { reports_permitted: true, report: Some(report), snacks: snack(5), ..RareOptions::default() };
    assert_eq!(options, Options { sack: sack(0), rare: Some(Box::new(kept.clone())), ..full.clone() });

    let mut options = Options { nonce: Some(1), ..full.clone() };
    options.fit();
    assert_eq!(options.rare, Some(Box::new(RareOptions { snacks: Vec::new(), ..kept.clone() })));

    let mut options = Options { nonce: Some(1), mss: Some(1), ..full };
    options.fit();
    assert_eq!(options.rare, Some(Box::new(RareOptions { snacks: Vec::new(), report: None, ..kept })));
}
