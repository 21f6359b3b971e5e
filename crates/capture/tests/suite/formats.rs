//! The same packets in every format, compression, link layer and tunnel.

use crate::framing::{framed, tunnels, ETHERNET, RAW};
use etherparse::PacketBuilder;
use pcap_parser::Linktype;
use proptest::prelude::*;
use std::io::{Cursor, Write};
use std::ops::ControlFlow;
use whyloss_capture::headers::{Checksum, Segment};
use whyloss_capture::link::{self, Other};
use whyloss_capture::records::{self, About};
use whyloss_capture::source::Source;
use whyloss_capture::CaptureError;

/// An IP packet with a segment of `len` octets of data.
fn ip(seq: u32, len: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(4000, 80, seq, 1000).ack(77);
    builder.write(&mut packet, &vec![7; len]).unwrap();
    packet
}

fn ip6(seq: u32, len: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(4000, 80, seq, 1000).ack(77);
    builder.write(&mut packet, &vec![7; len]).unwrap();
    packet
}

/// How a file writes numbers.
#[derive(Clone, Copy, Debug)]
struct Order {
    big: bool,
}

impl Order {
    fn u16(self, value: u16) -> [u8; 2] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn u32(self, value: u32) -> [u8; 4] {
        if self.big {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }
}

/// A packet, when it was captured in nanoseconds, and its length before it was cut.
type Packet = (u64, Vec<u8>, u32);

fn pcap(order: Order, nanoseconds: bool, link: i32, packets: &[Packet]) -> Vec<u8> {
    let magic = if nanoseconds { 0xA1B2_3C4D } else { 0xA1B2_C3D4 };
    let mut file = Vec::new();
    file.extend(order.u32(magic));
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    for value in [0, 0, 65535, link as u32] {
        file.extend(order.u32(value));
    }
    for (at, octets, original) in packets {
        let unit = if nanoseconds { 1 } else { 1000 };
        for value in [(at / 1_000_000_000) as u32, (at % 1_000_000_000 / unit) as u32, octets.len() as u32, *original] {
            file.extend(order.u32(value));
        }
        file.extend(octets);
    }
    file
}

/// A block of pcapng.
fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (12 + body.len().next_multiple_of(4)) as u32;
    let mut block = Vec::new();
    block.extend(order.u32(kind));
    block.extend(order.u32(len));
    block.extend(body);
    block.resize(len as usize - 4, 0);
    block.extend(order.u32(len));
    block
}

fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = [order.u16(code), order.u16(value.len() as u16)].concat();
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

fn section(order: Order) -> Vec<u8> {
    let body = [&order.u32(0x1A2B_3C4D)[..], &order.u16(1), &order.u16(0), &[0xFF; 8]].concat();
    block(order, 0x0A0D_0D0A, &body)
}

fn interface(order: Order, link: i32, resolution: u8, offset: u64) -> Vec<u8> {
    let mut body = [&order.u16(link as u16)[..], &order.u16(0), &order.u32(0)].concat();
    body.extend(option(order, 9, &[resolution]));
    if offset != 0 {
        body.extend(option(order, 14, &order_u64(order, offset)));
    }
    body.extend(option(order, 0, &[]));
    block(order, 1, &body)
}

fn enhanced(order: Order, interface: u32, units: u64, octets: &[u8], original: u32, comment: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for value in [interface, (units >> 32) as u32, units as u32, octets.len() as u32, original] {
        body.extend(order.u32(value));
    }
    body.extend(octets);
    body.resize(body.len().next_multiple_of(4), 0);
    if !comment.is_empty() {
        body.extend(option(order, 1, comment.as_bytes()));
        body.extend(option(order, 0, &[]));
    }
    block(order, 6, &body)
}

/// What was read: number, nanoseconds, sequence number, octets of data, comment.
type Read = (u64, u64, u32, u32, Option<String>);

fn read_all(file: Vec<u8>) -> Result<(Vec<Read>, About), CaptureError> {
    let mut found = Vec::new();
    let source = Source::new("test".to_owned(), Box::new(Cursor::new(file)))?;
    let about = records::read(source, &mut |record| {
        if let Some(segment) = link::ip_packet(record.link, record.octets).ok().and_then(|ip| Segment::read(record, &ip)) {
            let comment = record.comment.map(str::to_owned);
            found.push((record.number, record.at.as_nanos(), segment.seq, segment.len, comment));
        }
        ControlFlow::Continue(())
    })?;
    Ok((found, about))
}

fn three() -> Vec<Packet> {
    (0..3)
        .map(|n| {
            let packet = ip(100 + n * 500, 500);
            let len = packet.len() as u32;
            (1_700_000_000_000_123_000 + u64::from(n) * 1_000_000, packet, len)
        })
        .collect()
}

fn expected() -> Vec<Read> {
    (0..3).map(|n| (n + 1, 1_700_000_000_000_123_000 + n * 1_000_000, 100 + n as u32 * 500, 500, None)).collect()
}

#[test]
fn pcap_in_both_byte_orders_and_units() {
    for big in [false, true] {
        for nanoseconds in [false, true] {
            let (found, about) = read_all(pcap(Order { big }, nanoseconds, RAW, &three())).unwrap();
            assert_eq!(found, expected(), "big {big}, nanoseconds {nanoseconds}");
            assert_eq!((about.packets, about.cut, about.remarks.len()), (3, 0, 0));
        }
    }
}

#[test]
fn pcapng_with_interfaces_clocks_comments_and_counters() {
    for big in [false, true] {
        let order = Order { big };
        let mut file = [
            section(order),
            interface(order, RAW, 9, 0),
            interface(order, ETHERNET, 6, 1000),
            interface(order, RAW, 0x80 | 0x14, 0),
        ]
        .concat();
        let (at, packet) = (1_700_000_000_000_000_000u64, ip(9, 10));
        let framed = [&[0; 12][..], &[0x08, 0x00], &packet].concat();
        file.extend(enhanced(order, 0, at + 5, &packet, 50, "lost: erased"));
        file.extend(enhanced(order, 1, at / 1000 + 7 - 1_000_000_000, &framed, 64, ""));
        file.extend(enhanced(order, 2, (at / 1_000_000_000) << 20 | 1 << 19, &packet, 50, ""));
        file.extend(enhanced(order, 9, at, &packet, 50, ""));
        let dropped =
            [&order.u32(0)[..], &[0; 8], &option(order, 5, &order_u64(order, 40)), &option(order, 7, &order_u64(order, 2))]
                .concat();
        file.extend(block(order, 5, &dropped));
        let (found, about) = read_all(file).unwrap();
        let read = |number, at, comment: Option<&str>| (number, at, 9, 10, comment.map(str::to_owned));
        assert_eq!(
            found,
            [read(1, at + 5, Some("lost: erased")), read(2, at + 7000, None), read(3, at + 500_000_000, None)],
            "big {big}"
        );
        assert_eq!(about.missed, Some(42));
        assert_eq!(about.remarks.len(), 1);
        assert_eq!(about.remarks[0].to_string(), "packet 4: of interface 9, which is not described; the packet is not read");
    }
}

fn order_u64(order: Order, value: u64) -> [u8; 8] {
    if order.big {
        value.to_be_bytes()
    } else {
        value.to_le_bytes()
    }
}

#[test]
fn every_compression() {
    let plain = pcap(Order { big: false }, true, RAW, &three());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
    lz4.write_all(&plain).unwrap();
    let zstd = zstd::encode_all(&plain[..], 1).unwrap();
    for (name, file) in [("gzip", gzip.finish().unwrap()), ("lz4", lz4.finish().unwrap()), ("zstd", zstd)] {
        let (found, about) = read_all(file.clone()).unwrap();
        assert_eq!((found, about.remarks), (expected(), vec![]), "{name}");
        // Cut in the middle of what is compressed: what could be read is there, and the rest is a remark. Where the first block of octets
        // is all there is, nothing could be.
        match read_all(file[..file.len() - 9].to_vec()) {
            Ok((found, about)) => {
                assert!(expected().starts_with(&found), "{name}");
                assert_eq!(about.remarks.len(), 1, "{name}: {about:?}");
            }
            Err(error) => assert!(name != "gzip" && error.to_string().starts_with("test: "), "{name}: {error}"),
        }
    }
}

#[test]
fn what_is_no_capture_is_refused_by_what_it_is() {
    let message = |file: &[u8]| read_all(file.to_vec()).unwrap_err().to_string();
    assert_eq!(message(b""), "test: the file is empty; a capture begins with a header of pcap or pcapng");
    assert_eq!(
        message(b"hello, world"),
        "test: begins with 68 65 6c 6c 6f 2c 20 77; allowed is pcap or pcapng, also in gzip, zstd or lz4"
    );
    let error = Source::open("/nowhere/at/all.pcap".as_ref()).err().expect("there is none").to_string();
    assert!(error.starts_with("/nowhere/at/all.pcap: "), "{error}");
}

#[test]
fn a_link_type_that_is_not_known_is_named_once() {
    let (_, about) = read_all(pcap(Order { big: false }, true, 147, &three())).unwrap();
    assert_eq!((about.packets, &about.unknown_links), (3, &vec![147]));
    let remarks: Vec<_> = about.remarks.iter().map(ToString::to_string).collect();
    assert_eq!(remarks, ["packet 1: link type 147 is not known here; packets of it are not read"]);
}

#[test]
fn a_cut_file_is_read_as_far_as_it_goes() {
    let file = pcap(Order { big: false }, true, RAW, &three());
    let record = 16 + 540;
    for cut in 24..file.len() {
        let (found, about) = read_all(file[..cut].to_vec()).unwrap();
        let whole = (cut - 24) / record;
        assert_eq!(found, expected()[..whole], "cut at {cut}");
        assert_eq!(about.remarks.len(), usize::from((cut - 24) % record != 0), "cut at {cut}");
    }
}

#[test]
fn a_record_that_claims_to_be_endless_ends_the_reading() {
    let mut file = pcap(Order { big: false }, true, RAW, &three());
    let second = 24 + 16 + 540;
    file[second + 8..second + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    let (found, about) = read_all(file.clone()).unwrap();
    assert_eq!(found, expected()[..1]);
    assert_eq!(about.remarks.len(), 1, "{about:?}");
    // The same in front of a hundred MiB: they are not kept.
    file.resize(100 << 20, 0);
    let (found, about) = read_all(file).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(
        about.remarks[0].to_string(),
        "packet 1: the next record claims to be longer than 64 MiB; nothing after it is read"
    );
}

fn segment_of(link: i32, octets: &[u8]) -> Option<Segment> {
    let file = pcap(Order { big: false }, true, link, &[(5, octets.to_vec(), octets.len() as u32)]);
    let mut found = None;
    let source = Source::new("test".to_owned(), Box::new(Cursor::new(file))).unwrap();
    records::read(source, &mut |record| {
        found = link::ip_packet(record.link, record.octets).ok().and_then(|ip| Segment::read(record, &ip));
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

#[test]
fn every_link_layer_and_tunnel() {
    for (v6, packet) in [(false, ip(4242, 100)), (true, ip6(4242, 100))] {
        let check = |name: &str, segment: Option<Segment>| {
            let segment = segment.unwrap_or_else(|| panic!("{name}, v6 {v6}: nothing found"));
            let seen = (segment.seq, segment.ack, segment.len, segment.checksum, segment.packet_len as usize, segment.src.port());
            assert_eq!(seen, (4242, 77, 100, Checksum::Right, packet.len(), 4000), "{name}, v6 {v6}");
        };
        for (link, name, octets) in framed(&packet, v6) {
            check(name, segment_of(link, &octets));
            // Ethernet fills short frames up; that is no data.
            check(name, segment_of(link, &[&octets[..], &[0; 6][..usize::from(link == ETHERNET) * 6]].concat()));
        }
        for (name, octets) in tunnels(&packet, v6) {
            check(name, segment_of(RAW, &octets));
        }
    }
}

#[test]
fn a_frame_that_the_radio_found_damaged() {
    let packet = ip(1, 10);
    let (_, _, mut frame) = framed(&packet, false).pop().expect("radiotap is the last");
    assert!(!segment_of(127, &frame).unwrap().is_damaged());
    frame[16] |= 0x40;
    assert!(segment_of(127, &frame).unwrap().is_damaged());
}

#[test]
fn checksums_that_are_wrong_offloaded_or_cannot_be_known() {
    let packet = ip(1, 100);
    let verdict = |octets: &[u8]| segment_of(RAW, octets).map(|segment| (segment.checksum, segment.len));
    let mut damaged = packet.clone();
    damaged[60] ^= 4;
    assert_eq!(verdict(&damaged), Some((Checksum::Wrong, 100)));
    let addresses = whyloss_transport::wire::ip::Addresses::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).unwrap();
    let partial = !addresses.pseudo_header(120).finish();
    let mut offloaded = packet.clone();
    offloaded[36..38].copy_from_slice(&partial.to_be_bytes());
    assert_eq!(verdict(&offloaded), Some((Checksum::Offloaded, 100)));
    // Cut behind the headers, and in their middle.
    assert_eq!(verdict(&packet[..40]), Some((Checksum::Unknown, 100)));
    assert_eq!(verdict(&packet[..39]), None);
}

/// An IPv6 packet with destination options and a fragment header before its TCP segment.
fn extended(offset: u16) -> Vec<u8> {
    let mut packet = ip6(7, 8);
    let tcp = packet.split_off(40);
    // RFC 8200, 4.6 and 4.5.
    packet.extend([44, 0, 1, 4, 0, 0, 0, 0]);
    packet.extend([6, 0]);
    packet.extend((offset << 3).to_be_bytes());
    packet.extend([0, 0, 0, 1]);
    packet.extend(tcp);
    packet[6] = 60;
    let len = (packet.len() - 40) as u16;
    packet[4..6].copy_from_slice(&len.to_be_bytes());
    packet
}

#[test]
fn extension_headers_that_are_cut_anywhere_are_read_as_far_as_they_go() {
    let whole = extended(0);
    assert_eq!(segment_of(101, &whole).map(|segment| (segment.seq, segment.len)), Some((7, 8)));
    let later = extended(3);
    let found = link::ip_packet(Linktype(101), &later).unwrap();
    assert!(found.ip.fragmented && found.ip.later_fragment);
    for len in 40..whole.len() {
        // Enough for the TCP header is 40 + 8 + 8 + 20; without it there is no segment, and no panic.
        assert_eq!(segment_of(101, &whole[..len]).is_some(), len >= 76, "cut at {len}");
    }
}

#[test]
fn what_carries_no_tcp_says_why() {
    let why = |link: i32, octets: &[u8]| link::ip_packet(Linktype(link), octets).err();
    assert_eq!(why(147, &[0; 40]), Some(Other::LinkType(147)));
    assert_eq!(why(ETHERNET, &[&[0; 12][..], &[0x08, 0x06], &[0; 28]].concat()), Some(Other::NotIp));
    assert_eq!(why(ETHERNET, &[0; 9]), Some(Other::Malformed));
    assert_eq!(why(RAW, &[0x45]), Some(Other::Malformed));
}

proptest! {
    /// No octets whatever bring the reader to its knees, and what it finds stands inside them.
    #[test]
    fn hostile_octets_are_read_or_refused(link in prop::sample::select(vec![0, 1, 9, 12, 101, 105, 108, 113, 127, 228, 276]), octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = segment_of(link, &octets);
        let _ = read_all(octets);
    }

    /// A file in which some octets are damaged gives some packets, or a remark, or is refused.
    #[test]
    fn damaged_files_are_read_or_refused(changes in prop::collection::vec((0usize..1700, any::<u8>()), 1..20), pcapng in any::<bool>(), big in any::<bool>()) {
        let order = Order { big };
        let mut file = if pcapng {
            let packet = ip(3, 500);
            let records = (0..3).flat_map(|n| enhanced(order, 0, n, &packet, 540, "a comment"));
            [section(order), interface(order, RAW, 9, 0)].concat().into_iter().chain(records).collect()
        } else {
            pcap(order, true, RAW, &three())
        };
        for (at, value) in changes {
            let len = file.len();
            file[at % len] = value;
        }
        let _ = read_all(file);
    }
}

#[test]
fn the_files_of_a_set_are_read_in_the_order_of_their_packets() {
    let folder = tempfile::tempdir().unwrap();
    let order = Order { big: false };
    // As a program that rotates its files names them: the tenth comes before the second by its name.
    let write = |name: &str, at: u64| {
        let path = folder.path().join(name);
        std::fs::write(&path, pcap(order, true, RAW, &[(at, ip(1, 10), 50)])).unwrap();
        path
    };
    let (first, second, tenth) = (write("file", 1_000_000_000), write("file1", 2_000_000_000), write("file10", 11_000_000_000));
    let sorted = records::in_time_order(vec![first.clone(), tenth.clone(), second.clone()]).unwrap();
    assert_eq!(sorted, [first.clone(), second, tenth]);
    // One of them again, whatever it is called.
    let copy = folder.path().join("copy");
    std::fs::copy(&first, &copy).unwrap();
    let twice = records::in_time_order(vec![sorted[1].clone(), copy, first.clone()]).unwrap_err().to_string();
    assert!(twice.contains("begins with the same packet at the same time as "), "{twice}");
    // What comes through a pipe can be read once only.
    let pipe = vec![first, "-".into()];
    assert_eq!(records::in_time_order(pipe.clone()).unwrap(), pipe);
}

#[test]
fn what_each_section_and_interface_missed_is_summed() {
    let order = Order { big: false };
    let statistics = |interface: u32, missed: u64| {
        let body =
            [&order.u32(interface)[..], &[0; 8], &option(order, 5, &missed.to_le_bytes()), &option(order, 0, &[])].concat();
        block(order, 5, &body)
    };
    let described = || [section(order), interface(order, RAW, 9, 0), interface(order, RAW, 9, 0)].concat();
    let missed = |counters: [u64; 3]| {
        let [first, second, third] = counters;
        let file = [described(), statistics(0, first), statistics(1, second), described(), statistics(0, third)].concat();
        read_all(file).unwrap().1.missed
    };
    assert_eq!(missed([500, 20, 3]), Some(523));
    assert_eq!(missed([1 << 63; 3]), Some(u64::MAX));
    assert_eq!(missed([0; 3]), Some(0));
}
