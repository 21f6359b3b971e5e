//! Golden packets (made with an independent implementation), round trips, and arbitrary octets.

use super::damage::{examine, flip_bits, Arrival};
use super::ip::{Addresses, Header};
use super::options::MAX_LEN;
use super::*;
use crate::segment::{
    BandwidthReport, CauseReport, CompactList, CompactReport, Cookie, CorruptionReport, Dscp, Ecn, ExplicitLoss, FastOpen, Flags,
    HeaderReport, Hop, HopNotice, Notices, Options, Payload, PositionBasis, Probe, ProbeStep, RareOptions, RateReport, Report,
    ReportedPosition, SackBlocks, ScpsCapabilities, Separation, Snack, Timestamps, Wave, WaveRate,
};
use crate::seq::Seq;
use crate::verdict::Cause;
use proptest::option::of;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn v4() -> Addresses {
    Addresses::V4 { src: Ipv4Addr::new(192, 0, 2, 1), dst: Ipv4Addr::new(198, 51, 100, 7) }
}

fn v6() -> Addresses {
    Addresses::V6 { src: "2001:db8::1".parse().unwrap(), dst: "2001:db8::2".parse().unwrap() }
}

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace().map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect()
}

fn emitted(header: &Header, segment: &Segment) -> Vec<u8> {
    let mut octets = Vec::new();
    emit(header, segment, &mut octets).unwrap();
    octets
}

#[track_caller]
fn both_ways(addresses: Addresses, hop_limit: u8, segment: Segment, golden: &str) {
    let header = Header { addresses, hop_limit };
    let golden = hex(golden);
    assert_eq!(emitted(&header, &segment), golden);
    assert_eq!(parse(&Bytes::from(golden)), Ok(Packet { header, segment, malformed: None }));
}

#[test]
fn a_syn_in_ipv4() {
    let segment = Segment {
        src_port: 49152,
        dst_port: 80,
        seq: Seq(0x0102_0304),
        flags: Flags::SYN | Flags::ECE | Flags::CWR,
        window: 64240,
        options: Options {
            mss: Some(1460),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 0x1122_3344, echo: 0 }),
            window_scale: Some(7),
            ..Options::default()
        },
        ..Segment::default()
    };
    both_ways(
        v4(),
        64,
        segment,
        "45 00 00 3c 00 00 40 00 40 06 4e 80 c0 00 02 01 c6 33 64 07 c0 00 00 50 01 02 03 04 00 00 00 00 a0 c2 fa f0 51 5c 00 00 \
         02 04 05 b4 04 02 08 0a 11 22 33 44 00 00 00 00 03 03 07 01",
    );
}

#[test]
fn a_selective_acknowledgement_in_ipv4() {
    let mut sack = SackBlocks::default();
    sack.push(Seq(0x8000_0400), Seq(0x8000_0800));
    sack.push(Seq(0x8000_1000), Seq(0x8000_1400));
    let segment = Segment {
        src_port: 49152,
        dst_port: 80,
        seq: Seq(0xFFFF_FFF0),
        ack: Seq(0x8000_0000),
        flags: Flags::ACK | Flags::ECE,
        window: 512,
        ecn: Ecn::CongestionExperienced,
        options: Options { timestamps: Some(Timestamps { value: 1, echo: 2 }), sack, ..Options::default() },
        ..Segment::default()
    };
    both_ways(
        v4(),
        63,
        segment,
        "45 03 00 44 00 00 40 00 3f 06 4f 75 c0 00 02 01 c6 33 64 07 c0 00 00 50 ff ff ff f0 80 00 00 00 c0 50 02 00 d3 d8 00 00 \
         08 0a 00 00 00 01 00 00 00 02 05 12 80 00 04 00 80 00 08 00 80 00 10 00 80 00 14 00",
    );
}

#[test]
fn data_in_ipv6() {
    let segment = Segment {
        src_port: 5001,
        dst_port: 40000,
        seq: Seq(1),
        ack: Seq(2),
        flags: Flags::PSH | Flags::ACK,
        window: 1000,
        ecn: Ecn::Capable0,
        dscp: Dscp(0x2B),
        options: Options { timestamps: Some(Timestamps { value: 3, echo: 4 }), ..Options::default() },
        payload: Payload::Bytes(Bytes::from_static(b"odd")),
        ..Segment::default()
    };
    both_ways(
        v6(),
        55,
        segment,
        "6a e0 00 00 00 23 06 37 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 01 20 01 0d b8 00 00 00 00 00 00 00 00 00 00 00 02 \
         13 89 9c 40 00 00 00 01 00 00 00 02 80 18 03 e8 94 1d 00 00 01 01 08 0a 00 00 00 03 00 00 00 04 6f 64 64",
    );
}

fn data_segment() -> Segment {
    Segment { flags: Flags::ACK, payload: Payload::Bytes(Bytes::from_static(b"payload")), ..Segment::default() }
}

/// The packet with `change` made and its IPv4 header checksum right again.
fn changed_v4(change: impl FnOnce(&mut Vec<u8>)) -> Result<Packet, Error> {
    let mut octets = emitted(&Header { addresses: v4(), hop_limit: 64 }, &data_segment());
    change(&mut octets);
    octets[10..12].fill(0);
    let header_len = usize::from(octets[0] & 0x0F) * 4;
    let checksum = checksum::Sum::default().with(octets.get(..header_len).unwrap_or(&[])).finish();
    octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    parse(&Bytes::from(octets))
}

#[test]
fn ipv4_headers_that_are_refused() {
    assert_eq!(changed_v4(|octets| octets[0] = 0x44), Err(Error::HeaderLength(16)));
    assert_eq!(changed_v4(|octets| octets[0] = 0x4F), Err(Error::Truncated { needed: 60, found: 47 }));
    assert_eq!(changed_v4(|octets| octets[0] = 0x55), Err(Error::Version(5)));
    assert_eq!(changed_v4(|octets| octets[3] = 48), Err(Error::Truncated { needed: 48, found: 47 }));
    assert_eq!(changed_v4(|octets| octets[3] = 19), Err(Error::TotalLength { total: 19, header: 20 }));
    assert_eq!(changed_v4(|octets| octets[3] = 39), Err(Error::TcpTruncated(19)));
    assert_eq!(changed_v4(|octets| octets[6] = 0x20), Err(Error::Fragment));
    assert_eq!(changed_v4(|octets| octets[7] = 1), Err(Error::Fragment));
    assert_eq!(changed_v4(|octets| octets[9] = 17), Err(Error::Protocol(17)));
    assert_eq!(changed_v4(|octets| octets[46] ^= 1), Err(Error::TcpChecksum));
    assert_eq!(parse(&Bytes::new()), Err(Error::Truncated { needed: 20, found: 0 }));
}

#[test]
fn ipv4_options_and_link_padding_are_skipped() {
    let read = changed_v4(|octets| {
        octets[0] = 0x46;
        octets[3] += 4;
        octets.splice(20..20, [0x94, 4, 0, 0]);
        octets.extend([0xEE; 9]);
    });
    assert_eq!(read.map(|packet| packet.segment), Ok(data_segment()));
}

/// An IPv6 packet whose extension headers are `chain`; the first is of kind `next`.
fn with_extensions(next: u8, chain: &[u8]) -> Result<Segment, Error> {
    let mut octets = emitted(&Header { addresses: v6(), hop_limit: 64 }, &data_segment());
    octets[6] = next;
    octets[5] += chain.len() as u8;
    octets.splice(40..40, chain.iter().copied());
    parse(&Bytes::from(octets)).map(|packet| packet.segment)
}

#[test]
fn ipv6_extension_headers() {
    let options = |next| [next, 0, 1, 4, 0, 0, 0, 0];
    assert_eq!(with_extensions(0, &options(6)), Ok(data_segment()), "hop-by-hop options");
    assert_eq!(with_extensions(60, &options(6)), Ok(data_segment()), "destination options");
    assert_eq!(with_extensions(0, &[options(60), options(6)].concat()), Ok(data_segment()));
    assert_eq!(with_extensions(60, &[options(0), options(6)].concat()), Err(Error::Protocol(0)), "hop-by-hop options come first");
    assert_eq!(with_extensions(43, &[6, 0, 4, 0, 0, 0, 0, 0]), Ok(data_segment()), "a route travelled to its end");
    assert_eq!(with_extensions(43, &[6, 0, 4, 2, 0, 0, 0, 0]), Err(Error::Routing(2)));
    assert_eq!(with_extensions(44, &[6, 0, 0, 0, 1, 2, 3, 4]), Ok(data_segment()), "an atomic fragment");
    assert_eq!(with_extensions(44, &[6, 0, 0, 1, 1, 2, 3, 4]), Err(Error::Fragment));
    assert_eq!(with_extensions(44, &[6, 0, 0, 8, 1, 2, 3, 4]), Err(Error::Fragment));
    assert_eq!(with_extensions(51, &options(6)), Err(Error::Protocol(51)));
    assert_eq!(with_extensions(59, &[]), Err(Error::Protocol(59)));
    assert_eq!(with_extensions(60, &[60, 9, 1, 4, 0, 0, 0, 0]), Err(Error::Truncated { needed: 120, found: 75 }));
}

#[test]
fn a_data_offset_that_makes_no_sense_under_a_good_checksum() {
    for (first, offset) in [(0x40, 16), (0xF0, 60)] {
        let mut octets = emitted(&Header { addresses: v4(), hop_limit: 64 }, &data_segment());
        octets[32] = first;
        octets[36..38].fill(0);
        let checksum = v4().pseudo_header(27).with(&octets[20..]).finish();
        octets[36..38].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(parse(&Bytes::from(octets)), Err(Error::DataOffset { offset, len: 27 }));
    }
}

#[test]
fn what_has_no_form_on_the_wire() {
    let header = Header { addresses: v4(), hop_limit: 64 };
    let emitted = |segment: &Segment| {
        let mut octets = vec![7];
        let result = emit(&header, segment, &mut octets);
        assert!(result.is_ok() || octets == [7], "an error leaves nothing behind");
        result
    };
    let unknown = |kind, len| {
        let rare = RareOptions { unknown: vec![(kind, Bytes::from(vec![0; len]))], ..RareOptions::default() };
        Segment { options: Options { rare: Some(Box::new(rare)), ..Options::default() }, ..Segment::default() }
    };
    assert_eq!(emitted(&unknown(30, 38)), Ok(()));
    assert_eq!(emitted(&unknown(30, 39)), Err(EmitError::Options(44)));
    assert_eq!(emitted(&unknown(1, 0)), Err(EmitError::OptionKind(1)));
    let synthetic = |len| Segment { payload: Payload::Synthetic { offset: 0, len }, ..Segment::default() };
    assert_eq!(emitted(&synthetic(65_495)), Ok(()));
    assert_eq!(emitted(&synthetic(65_496)), Err(EmitError::TooLong(65_516)));
}

#[test]
fn a_payload_is_not_copied() {
    let octets = Bytes::from(emitted(&Header { addresses: v4(), hop_limit: 64 }, &data_segment()));
    let Payload::Bytes(payload) = parse(&octets).unwrap().segment.payload else { panic!("no payload") };
    assert_eq!(payload.as_ptr(), octets[40..].as_ptr());
}

#[test]
fn options_with_a_senseless_length_do_not_hide_the_segment() {
    let rare = RareOptions { unknown: vec![(30, Bytes::from_static(&[0, 0]))], ..RareOptions::default() };
    let options = Options { window_scale: Some(3), rare: Some(Box::new(rare)), ..Options::default() };
    let mut octets = emitted(&Header { addresses: v4(), hop_limit: 64 }, &Segment { options, ..data_segment() });
    assert_eq!(octets[40..48], [1, 3, 3, 3, 30, 4, 0, 0]);
    // Moving 40 from the length to an octet in the same column keeps the checksum.
    (octets[45], octets[47]) = (0, 4);
    let packet = parse(&Bytes::from(octets)).unwrap();
    assert_eq!(packet.malformed, Some(options::Malformed { kind: 30, at: 4, claimed: 0, left: 4 }));
    assert_eq!(packet.segment, Segment { options: Options { window_scale: Some(3), ..Options::default() }, ..data_segment() });
}

prop_compose! {
    fn sack_blocks()(blocks in prop::collection::vec(any::<(u32, u32)>(), 0..=4)) -> SackBlocks {
        let mut sack = SackBlocks::default();
        for (left, right) in blocks {
            sack.push(Seq(left), Seq(right));
        }
        sack
    }
}

prop_compose! {
    fn position()(seq: u32, code in 0..=15u16, confirmed: bool) -> ReportedPosition {
        let basis = if confirmed { PositionBasis::SeqConfirmed } else { PositionBasis::OrderInferred };
        ReportedPosition { seq: Seq(seq), len: code * report::LENGTH_UNIT, basis }
    }
}

prop_compose! {
    fn corruption()(count: u8, congestion_experienced: bool, rate_limited: bool, position in of(position()), echo: Option<u32>) -> Report {
        Report::Corruption(CorruptionReport { count, congestion_experienced, rate_limited, position, echo })
    }
}

prop_compose! {
    fn cause()(verdict in 0..3, classifier in 0..16_u8, seq: u32, units: u16, exponent in 0..=report::MAX_HOLE_EXPONENT) -> Report {
        let cause = [Cause::Unknown, Cause::Corruption, Cause::Congestion][verdict as usize];
        Report::Cause(CauseReport { cause, classifier, seq: Seq(seq), len: u32::from(units) << (4 * exponent) })
    }
}

prop_compose! {
    fn list()(reports in prop::collection::vec(compact(), 2..=CompactList::MOST)) -> Report {
        let mut list = CompactList::default();
        for report in reports {
            let Report::Compact(report) = report else { unreachable!("what `compact` makes") };
            assert!(list.push(report));
        }
        Report::List(list)
    }
}

prop_compose! {
    fn compact()(offset in 0..1_u32 << 20, congestion_experienced: bool, echo in 0..1_u16 << 10) -> Report {
        Report::Compact(CompactReport { offset, congestion_experienced, echo })
    }
}

prop_compose! {
    fn header_intact()(seq: u32, count: u8) -> Report {
        Report::HeaderIntact(HeaderReport { seq: Seq(seq), count })
    }
}

prop_compose! {
    fn rate()(wave: u8, rate in prop_oneof![any::<u8>().prop_map(WaveRate::Scaled), any::<u16>().prop_map(WaveRate::Measured)]) -> Report {
        Report::Rate(RateReport { wave, rate })
    }
}

prop_compose! {
    fn bandwidth()(kbps: u32) -> Report {
        Report::Bandwidth(BandwidthReport { kbps })
    }
}

prop_compose! {
    fn separation()(number: u8, micros in 0..=u32::MAX >> 1, kept: bool, trip: u16) -> Separation {
        Separation { number, micros, kept, trip }
    }
}

prop_compose! {
    fn snack()(hole1_offset: u16, hole1_size: u16, bits in prop::collection::vec(any::<u8>(), 0..10)) -> Snack {
        Snack { hole1_offset, hole1_size, bits: bits.into() }
    }
}

prop_compose! {
    fn notices()(
        explicit_loss in of((any::<u32>(), any::<u16>())),
        forwarded: Option<u32>,
        hop in of((any::<bool>(), any::<u32>(), any::<u16>())),
        survival: Option<u16>,
    ) -> Notices {
        let explicit_loss = explicit_loss.map(|(seq, len)| ExplicitLoss { seq: Seq(seq), len });
        let hop = hop.map(|(last, seq, len)| HopNotice { hop: if last { Hop::Last } else { Hop::First }, seq: Seq(seq), len });
        Notices { explicit_loss, forwarded, hop, survival }
    }
}

prop_compose! {
    fn rare()(
        (reports_permitted, words_permitted) in any::<(bool, bool)>(),
        short_nonce in of(0..1u32 << 30),
        report in of(prop_oneof![
            corruption(), compact(), list(), cause(), header_intact(), rate(), bandwidth(),
            any::<u16>().prop_map(Report::Survival), any::<u32>().prop_map(Report::Pace),
        ]),
        separation in of(separation()),
        scps in of((any::<u8>(), any::<u8>()).prop_map(|(flags, connection)| ScpsCapabilities { flags, connection })),
        snacks in prop::collection::vec(snack(), 0..4),
        notices in notices(),
        probe in of((0..4usize, any::<u8>())),
        fast_open in of((any::<bool>(), of(prop::collection::vec(any::<[u8; 2]>(), 2..=8)))),
        unknown in prop::collection::vec((35..=69u8, prop::collection::vec(any::<u8>(), 0..10).prop_map(Bytes::from)), 0..3),
    ) -> RareOptions {
        let fast_open = fast_open.map(|(experimental, cookie)| FastOpen {
            cookie: cookie.and_then(|pairs| Cookie::new(&pairs.concat())),
            experimental,
        });
        let steps = [ProbeStep::First, ProbeStep::FirstAnswer, ProbeStep::Second, ProbeStep::SecondAnswer];
        let probe = probe.map(|(step, cycle)| Probe { step: steps[step], cycle });
        let open = RareOptions { reports_permitted, words_permitted, scps, fast_open, ..RareOptions::default() };
        RareOptions { short_nonce, report, snacks, notices, probe, separation, unknown, ..open }
    }
}

prop_compose! {
    /// Any options, also such as no header has room for.
    fn options()(
        mss: Option<u16>,
        window_scale: Option<u8>,
        sack_permitted: bool,
        timestamps: Option<(u32, u32)>,
        sack in sack_blocks(),
        nonce: Option<u32>,
        header_check: bool,
        wave: Option<(u8, u8)>,
        rare in of(rare()),
    ) -> Options {
        let timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
        let wave = wave.map(|(number, size)| Wave { number, size });
        let rare = rare.filter(|rare| *rare != RareOptions::default()).map(Box::new);
        Options { mss, window_scale, sack_permitted, timestamps, sack, nonce, header_check, wave, rare }
    }
}

prop_compose! {
    fn payload()(octets in prop::collection::vec(any::<u8>(), 0..100), offset in 0..1u64 << 40, synthetic: bool) -> Payload {
        match octets.len() {
            0 => Payload::Empty,
            len if synthetic => Payload::Synthetic { offset, len: len as u32 },
            _ => Payload::Bytes(octets.into()),
        }
    }
}

/// On a SYN no wave and no rate of one, elsewhere no identifier alone.
fn keep_what_belongs(options: &mut Options, syn: bool) {
    if syn {
        options.wave = None;
    }
    let Some(mut rare) = options.rare.take() else { return };
    if !syn {
        rare.reports_permitted = false;
        rare.words_permitted = false;
        rare.fast_open.take_if(|fast_open| fast_open.experimental && fast_open.cookie.is_none());
    } else if matches!(rare.report, Some(Report::Rate(RateReport { rate: WaveRate::Scaled(_), .. }))) {
        rare.report = None;
    }
    options.rare = (*rare != RareOptions::default()).then_some(rare);
}

prop_compose! {
    fn segment()(
        (src_port, dst_port, seq, ack) in any::<(u16, u16, u32, u32)>(),
        (flags, window, urgent) in any::<(u8, u16, u16)>(),
        ecn in prop::sample::select(&[Ecn::NotCapable, Ecn::Capable0, Ecn::Capable1, Ecn::CongestionExperienced]),
        dscp in (0..64u8).prop_map(Dscp),
        mut options in options(),
        payload in payload(),
    ) -> Segment {
        options.fit();
        let (seq, ack, flags) = (Seq(seq), Seq(ack), Flags(flags));
        keep_what_belongs(&mut options, flags.contains(Flags::SYN));
        Segment { src_port, dst_port, seq, ack, flags, window, urgent, ecn, dscp, options, payload }
    }
}

fn header() -> impl Strategy<Value = Header> {
    let v4 = any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(src, dst)| (IpAddr::V4(src), IpAddr::V4(dst)));
    let v6 = any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(src, dst)| (IpAddr::V6(src), IpAddr::V6(dst)));
    (prop_oneof![v4, v6], any::<u8>())
        .prop_map(|((src, dst), hop_limit)| Header { addresses: Addresses::new(src, dst).unwrap(), hop_limit })
}

/// Whether flipping `bits` of `octets[from..to]` leaves the 16-bit one's-complement sum of that range as it was. Worked out from the
/// weights of the bits, not by summing.
fn blind_spot(octets: &[u8], from: usize, to: usize, bits: &[u64]) -> bool {
    let change = |bit: u64| {
        let octet = (bit / 8) as usize;
        let weight = 1i64 << (15 - (bit - from as u64 * 8) % 16);
        let set = octets[octet] & (0x80 >> (bit % 8)) != 0;
        if set {
            -weight
        } else {
            weight
        }
    };
    let inside = |bit: &&u64| (from as u64 * 8..to as u64 * 8).contains(*bit);
    bits.iter().filter(inside).map(|bit| change(*bit)).sum::<i64>() % 0xFFFF == 0
}

proptest! {
    #[test]
    fn a_segment_survives_the_wire(header in header(), segment in segment()) {
        let octets = emitted(&header, &segment);
        prop_assert_eq!(octets.len(), header.addresses.header_len() + segment.len());
        let payload = if segment.is_empty() { Payload::Empty } else { Payload::Bytes(segment.payload.to_bytes()) };
        let segment = Segment { payload, ..segment };
        prop_assert_eq!(parse(&Bytes::from(octets)), Ok(Packet { header, segment, malformed: None }));
    }

    #[test]
    fn fitted_options_fit(options in options()) {
        let mut fitted = options.clone();
        fitted.fit();
        prop_assert!(fitted.encoded_len() <= MAX_LEN);
        prop_assert!(options.encoded_len() > MAX_LEN || fitted == options, "what fits stays as it is");
        prop_assert_eq!(
            (fitted.mss, fitted.window_scale, fitted.sack_permitted, fitted.timestamps),
            (options.mss, options.window_scale, options.sack_permitted, options.timestamps)
        );
        let mut again = fitted.clone();
        again.fit();
        prop_assert_eq!(again, fitted);
    }

    #[test]
    fn arbitrary_octets_give_a_value_or_an_error(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&octets.into());
    }

    /// Arbitrary octets seldom pass a checksum, so here both are made right.
    #[test]
    fn arbitrary_segments_read_as_they_are_written(header in header(), octets in prop::collection::vec(any::<u8>(), 20..120)) {
        let mut packet = Vec::new();
        header.write(ip::TCP, Dscp::DEFAULT, Ecn::NotCapable, octets.len() as u16, &mut packet);
        let start = packet.len();
        packet.extend(octets);
        packet[start + 16..start + 18].fill(0);
        let checksum = header.addresses.pseudo_header(packet.len() - start).with(&packet[start..]).finish();
        packet[start + 16..start + 18].copy_from_slice(&checksum.to_be_bytes());
        match parse(&packet.into()) {
            Ok(read) => {
                let again = parse(&emitted(&header, &read.segment).into());
                prop_assert_eq!(again, Ok(Packet { malformed: None, ..read }));
            }
            Err(error) => prop_assert!(matches!(error, Error::DataOffset { .. }), "{}", error),
        }
    }

    /// Flipped bits are noticed, or the sums are blind to them.
    #[test]
    fn flipped_bits_are_noticed(header in header(), segment in segment(), seeds in prop::collection::btree_set(any::<u64>(), 1..6)) {
        let sent = emitted(&header, &segment);
        let bits: std::collections::BTreeSet<u64> = seeds.into_iter().map(|seed| seed % (sent.len() as u64 * 8)).collect();
        let bits: Vec<u64> = bits.into_iter().collect();
        let mut received = sent.clone();
        flip_bits(&mut received, bits.iter().copied());
        let start = header.addresses.header_len();
        let v4 = start == 20;
        // Flips of version, lengths and next header move what the sums cover.
        let framing: &[u64] = if v4 { &[0, 2, 3] } else { &[0, 4, 5, 6] };
        let reframed = bits.iter().any(|bit| framing.contains(&(bit / 8)));
        match examine(&received.into()) {
            Arrival::Intact(_) if !reframed => {
                prop_assert!(!v4 || blind_spot(&sent, 0, start, &bits));
                // The pseudo-header begins with the addresses. What stands before them in IPv6 is under no checksum.
                let pseudo_header = if v4 { 12 } else { 8 };
                prop_assert!(blind_spot(&sent, pseudo_header, sent.len(), &bits));
            }
            Arrival::Damaged(damaged) if !reframed => prop_assert_eq!(damaged.ip_header_vouched, v4),
            _ => {}
        }
    }
}
