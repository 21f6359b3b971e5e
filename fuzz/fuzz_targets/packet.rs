//! Octets that are read as a packet, written and read again are the same packet.
#![no_main]

mod checksums;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use whyloss_transport::wire::{self, Packet};

fn read_and_write(octets: &[u8]) {
    let Ok(packet) = wire::parse(&Bytes::copy_from_slice(octets)) else { return };
    let mut written = Vec::new();
    wire::emit(&packet.header, &packet.segment, &mut written).expect("what was read can be written");
    assert!(written.len() <= octets.len());
    let again = wire::parse(&Bytes::from(written)).expect("what was written can be read");
    assert_eq!(again, Packet { malformed: None, ..packet });
}

fuzz_target!(|octets: &[u8]| {
    read_and_write(octets);
    let mut repaired = octets.to_vec();
    checksums::repair(&mut repaired);
    read_and_write(&repaired);
});
