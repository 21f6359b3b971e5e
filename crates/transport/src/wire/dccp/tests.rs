use super::*;
use crate::wire::damage::flip_bits;
use crate::wire::ip::Addresses;
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr};

fn header(v6: bool) -> ip::Header {
    let addresses = if v6 {
        Addresses::V6 { src: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), dst: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2) }
    } else {
        Addresses::V4 { src: Ipv4Addr::new(192, 0, 2, 1), dst: Ipv4Addr::new(198, 51, 100, 7) }
    };
    ip::Header { addresses, hop_limit: 64 }
}

fn emitted(packet: &Packet, v6: bool) -> Vec<u8> {
    let mut octets = Vec::new();
    emit(&header(v6), packet, &mut octets).unwrap();
    octets
}

fn data_packet(coverage: u8, len: u32) -> Packet {
    Packet {
        seq: Seq48::new(0x0102_0304_0506),
        coverage,
        ccval: 9,
        options: vec![Opt::DataChecksum],
        payload: Payload::Synthetic { offset: 77, len },
        ..Packet::new(49152, 5001, Kind::DataAck { ack: Seq48::new(0xA1A2_A3A4_A5A6) })
    }
}

#[test]
fn a_header_stands_as_in_rfc_4340() {
    let octets = emitted(&data_packet(1, 9), false);
    let dccp = &octets[20..];
    assert_eq!(octets[9], 33);
    assert_eq!(dccp[..6], [0xC0, 0x00, 0x13, 0x89, 8, 0x91]);
    // Type 4 with X=1, sequence number, acknowledgement number.
    assert_eq!(dccp[8..24], [9, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6]);
    assert_eq!(dccp[24..26], [44, 6]);
    assert_eq!(dccp[30..32], [0, 0]);
    assert_eq!(dccp.len(), 32 + 9);
}

#[test]
fn the_data_checksum_is_crc_32c() {
    // RFC 3720, B.4, and the check value of the polynomial.
    assert_eq!(data_checksum(b"123456789"), 0xE306_9283);
    assert_eq!(data_checksum(&[0; 32]), 0x8A91_36AA);
    assert_eq!(data_checksum(&[0xFF; 32]), 0x62A8_AB43);
    assert_eq!(data_checksum(&[]), 0);
}

/// RFC 4340, 11.7: the example of the Data Dropped option. Its prose names packet 95 twice; the run lengths make the last three 94
/// to 92.
#[test]
fn the_example_of_data_dropped_reads_by_its_run_lengths() {
    let blocks = [0u8, 160, 3, 162].map(Block::read);
    let mut packet = 100;
    let mut said = Vec::new();
    for block in blocks {
        for _ in 0..block.packets() {
            said.push((packet, block.code()));
            packet -= 1;
        }
    }
    let buffer = Some(DropCode::RECEIVE_BUFFER);
    assert_eq!(
        said,
        [(100, None), (99, buffer), (98, None), (97, None), (96, None), (95, None), (94, buffer), (93, buffer), (92, buffer)]
    );
    assert_eq!(blocks.map(Block::octet), [0, 160, 3, 162]);
    assert_eq!(Block::Dropped(DropCode::CORRUPT, 1).octet(), 0xB0);
    assert_eq!(Block::Dropped(DropCode::DELIVERED_CORRUPT, 3).octet(), 0xF2);
}

/// RFC 4340, 11.4: an Ack Vector of 00000000 11000000 00000101 with acknowledgement number 100 says 100 received, 99 not, 98 to 93
/// received.
#[test]
fn the_example_of_an_ack_vector() {
    let runs = [0b0000_0000u8, 0b1100_0000, 0b0000_0101].map(Run::read);
    assert_eq!(runs.map(|run| (run.state, run.packets)), [(State::Received, 1), (State::Missing, 1), (State::Received, 6)]);
    assert_eq!(runs.map(Run::octet), [0, 0xC0, 5]);
}

#[test]
fn coverage_says_which_flips_show_in_which_checksum() {
    // 24 octets of header, 8 of options, 40 of data. CsCov 0 covers all of it, 1 no data, 3 eight octets.
    for (coverage, covered) in [(0, 40), (1, 0), (3, 8)] {
        let octets = emitted(&data_packet(coverage, 40), false);
        for bit in 160..octets.len() as u64 * 8 {
            let mut damaged = octets.clone();
            flip_bits(&mut damaged, [bit]);
            let found = parse(&damaged.into());
            if bit / 8 < 20 + 32 + covered {
                assert!(found.is_err(), "coverage {coverage}, bit {bit}: {found:?}");
            } else {
                let arrival = found.unwrap();
                assert_eq!((arrival.data, arrival.packet.seq), (Data::Damaged, data_packet(coverage, 40).seq));
            }
        }
    }
}

#[test]
fn what_rfc_4340_drops_is_refused() {
    let good = emitted(&data_packet(1, 40), false);
    let refused = |at: usize, value: u8| {
        let mut octets = good.clone();
        octets[at] = value;
        parse(&octets.into()).unwrap_err()
    };
    assert_eq!(refused(28, 10 << 1 | 1), Error::Type(10));
    assert_eq!(refused(28, 4 << 1), Error::ShortSequenceNumber);
    assert_eq!(refused(24, 5), Error::DataOffset { offset: 20, len: 72 });
    assert_eq!(refused(24, 19), Error::DataOffset { offset: 76, len: 72 });
    assert_eq!(refused(25, 0x9C), Error::Coverage { coverage: 12, data: 40 });
    assert_eq!(refused(38, 0), Error::Checksum);
    assert!(matches!(refused(9, 6), Error::Ip(_)));
    for len in 0..52 {
        assert!(parse(&good[..len].to_vec().into()).is_err());
    }
}

#[test]
fn what_has_no_form_is_not_written() {
    let with = |change: &dyn Fn(&mut Packet)| {
        let mut packet = data_packet(0, 8);
        change(&mut packet);
        let mut out = vec![1, 2, 3];
        let error = emit(&header(false), &packet, &mut out).unwrap_err();
        assert_eq!(out, [1, 2, 3]);
        error
    };
    assert_eq!(with(&|packet| packet.coverage = 4), EmitError::Field { coverage: 4, ccval: 9, data: 8 });
    assert_eq!(with(&|packet| packet.ccval = 16), EmitError::Field { coverage: 0, ccval: 16, data: 8 });
    assert_eq!(with(&|packet| packet.options.push(Opt::Unknown(44, Bytes::new()))), EmitError::Option(44));
    assert_eq!(with(&|packet| packet.options.push(Opt::Unknown(60, vec![0; 254].into()))), EmitError::Option(60));
    let many = || vec![Opt::Unknown(60, vec![0; 250].into()); 4];
    assert_eq!(with(&|packet| packet.options.extend(many())), EmitError::Header(1040));
    let long = Payload::Synthetic { offset: 0, len: 65_500 };
    assert_eq!(with(&|packet| packet.payload = long.clone()), EmitError::TooLong(65_532));
}

#[test]
fn senseless_options_are_left_out_and_a_senseless_length_ends_them() {
    let read = |octets: &[u8]| options::read(&Bytes::copy_from_slice(octets), 0..octets.len());
    // A Timestamp of three octets, an Elapsed Time of three, then a good one.
    assert_eq!(read(&[41, 5, 1, 2, 3, 43, 5, 0, 0, 1, 43, 4, 0, 7]), (vec![Opt::ElapsedTime(7)], None, false));
    assert_eq!(read(&[1, 0, 2, 41, 1]), (vec![Opt::Mandatory, Opt::SlowReceiver], None, true));
    assert_eq!(read(&[38, 9, 0]), (vec![], None, true));
    assert_eq!(read(&[38]), (vec![], None, true));
    assert_eq!(read(&[32, 2]), (vec![], None, false));
    assert_eq!(read(&[193, 3, 1]), (vec![Opt::LossIntervals { skip: 1, intervals: vec![] }], None, false));
}

#[test]
fn a_48_bit_number_finds_its_position_across_the_wrap() {
    let reference = (1 << 48) + 5;
    assert_eq!(Seq48::new(3).near(reference), (1 << 48) + 3);
    assert_eq!(Seq48::new((1 << 48) - 1).near(reference), (1 << 48) - 1);
    assert_eq!(Seq48::new(1 << 20).near(reference), (1 << 48) + (1 << 20));
}

fn octets(most: usize) -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

fn option() -> impl Strategy<Value = Opt> {
    let run = any::<u8>().prop_map(Run::read);
    let block = any::<u8>().prop_map(Block::read);
    let most = (1u32 << 24) - 1;
    let interval = (0..=most, any::<bool>(), 0..=most >> 1, 0..=most).prop_map(|(lossless, nonce, lossy, data)| LossInterval {
        lossless,
        nonce,
        lossy,
        data,
    });
    prop_oneof![
        Just(Opt::Mandatory),
        Just(Opt::SlowReceiver),
        Just(Opt::DataChecksum),
        (32u8..36, 0u8.., octets(8)).prop_map(|(kind, number, values)| {
            let data: Vec<u8> = std::iter::once(number).chain(values).collect();
            Opt::Feature(FeatureOption::read(kind, &data).unwrap())
        }),
        (any::<bool>(), proptest::collection::vec(run, 0..60)).prop_map(|(nonce, runs)| Opt::AckVector { nonce, runs }),
        proptest::collection::vec(block, 0..60).prop_map(Opt::DataDropped),
        any::<u32>().prop_map(Opt::Timestamp),
        (any::<u32>(), 0u32..200_000).prop_map(|(value, elapsed)| Opt::TimestampEcho { value, elapsed }),
        (0u32..200_000).prop_map(Opt::ElapsedTime),
        any::<u32>().prop_map(Opt::LossEventRate),
        (any::<u8>(), proptest::collection::vec(interval, 0..9))
            .prop_map(|(skip, intervals)| Opt::LossIntervals { skip, intervals }),
        any::<u32>().prop_map(Opt::ReceiveRate),
        (3u8..32).prop_map(|kind| Opt::Unknown(kind, Bytes::new())),
        (45u8..192, octets(20)).prop_map(|(kind, data)| Opt::Unknown(kind, data)),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    let seq = || any::<u64>().prop_map(Seq48::new);
    prop_oneof![
        any::<u32>().prop_map(|service| Kind::Request { service }),
        (seq(), any::<u32>()).prop_map(|(ack, service)| Kind::Response { ack, service }),
        Just(Kind::Data),
        seq().prop_map(|ack| Kind::Ack { ack }),
        seq().prop_map(|ack| Kind::DataAck { ack }),
        seq().prop_map(|ack| Kind::CloseReq { ack }),
        seq().prop_map(|ack| Kind::Close { ack }),
        (seq(), any::<u8>(), any::<[u8; 3]>()).prop_map(|(ack, code, data)| Kind::Reset { ack, code, data }),
        seq().prop_map(|ack| Kind::Sync { ack }),
        seq().prop_map(|ack| Kind::SyncAck { ack }),
    ]
}

fn packet() -> impl Strategy<Value = Packet> {
    let numbers = (any::<u16>(), any::<u16>(), any::<u64>(), 0u8..16, 0u8..16);
    (numbers, kind(), proptest::collection::vec(option(), 0..6), octets(100)).prop_map(
        |((src, dst, seq, ccval, coverage), kind, options, data)| Packet {
            seq: Seq48::new(seq),
            ccval,
            coverage: coverage.min(1 + data.len() as u8 / 4),
            options,
            payload: if data.is_empty() { Payload::Empty } else { Payload::Bytes(data) },
            ..Packet::new(src, dst, kind)
        },
    )
}

proptest! {
    #[test]
    fn reading_undoes_writing(packet in packet(), v6: bool) {
        let arrival = parse(&emitted(&packet, v6).into()).unwrap();
        prop_assert_eq!(arrival, Arrival { header: header(v6), packet, data: Data::Intact, malformed: false });
    }

    #[test]
    fn any_octets_are_read_without_a_panic(octets in octets(200)) {
        let _ = parse(&octets);
        let _ = options::read(&octets, 0..octets.len());
    }

    /// Behind right IP header and checksum any header and options are reached.
    #[test]
    fn any_header_is_read_without_a_panic(packet in packet(), bits in proptest::collection::vec(160u64..3000, 0..8)) {
        let mut octets = emitted(&packet, false);
        flip_bits(&mut octets, bits);
        if let Ok(arrival) = parse(&octets.into()) {
            let again = emitted(&arrival.packet, false);
            prop_assert_eq!(parse(&again.into()).unwrap().packet, arrival.packet);
        }
    }
}
