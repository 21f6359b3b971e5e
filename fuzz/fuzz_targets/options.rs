//! Any octets are options that can be fitted into a header, written and read again.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use std::net::Ipv4Addr;
use whyloss_transport::segment::{Options, Segment};
use whyloss_transport::wire::{self, ip, options::MAX_LEN};

fuzz_target!(|octets: &[u8]| {
    let (mut options, _) = Options::parse(&Bytes::copy_from_slice(octets), false);
    assert!(octets.len() > MAX_LEN || options.encoded_len() <= MAX_LEN, "packed options take no more room");

    for snack in options.rare.iter().flat_map(|rare| &rare.snacks) {
        let holes: Vec<_> = snack.holes(1000, 100).collect();
        assert!(holes.iter().all(|(from, to)| from < to) && holes.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }

    options.fit();
    let src = Ipv4Addr::LOCALHOST;
    let header = ip::Header { addresses: ip::Addresses::V4 { src, dst: src }, hop_limit: 1 };
    let segment = Segment { options, ..Segment::default() };
    let mut written = Vec::new();
    wire::emit(&header, &segment, &mut written).expect("fitted options can be written");
    let packet = wire::parse(&Bytes::from(written)).expect("what was written can be read");
    assert_eq!((packet.segment, packet.malformed), (segment, None));
});
