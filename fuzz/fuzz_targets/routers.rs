//! Whatever routers say and however they cut packets: nobody minds, and what is held of fragments stays within its bounds.
#![no_main]

mod checksums;

use libfuzzer_sys::fuzz_target;
use std::net::IpAddr;
use whyloss_transport::wire::fragments::{Reassembler, MAX_PACKETS};
use whyloss_transport::wire::icmp;
use whyloss_transport::{Duration, Instant};

/// The destination of an IP packet.
fn destination(octets: &[u8]) -> Option<IpAddr> {
    match octets.first()? >> 4 {
        4 => octets.get(16..20)?.first_chunk::<4>().map(|octets| (*octets).into()),
        _ => octets.get(24..40)?.first_chunk::<16>().map(|octets| (*octets).into()),
    }
}

fn hear(octets: &[u8], reassembler: &mut Reassembler, now: Instant) {
    if let Some(message) = icmp::too_big(octets) {
        assert_eq!(destination(octets), Some(message.addresses.src()), "it is for whom it quotes");
    }
    let Some(ours) = destination(octets) else { return };
    if let Some(whole) = reassembler.take(now, octets, &[ours]) {
        assert!(whole.len() <= 40 + usize::from(u16::MAX));
        assert_eq!(destination(&whole), Some(ours));
    }
    let (packets, held) = reassembler.held();
    assert!(packets <= MAX_PACKETS && held <= packets << 17);
}

// Packets one behind the other, each after its length in two octets.
fuzz_target!(|octets: &[u8]| {
    let (mut reassembler, mut rest, mut seconds) = (Reassembler::default(), octets, 0);
    while let Some((length, behind)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (packet, behind) = behind.split_at(length);
        let mut repaired = packet.to_vec();
        checksums::repair(&mut repaired);
        for packet in [packet, &repaired] {
            hear(packet, &mut reassembler, Instant::ZERO + Duration::from_secs(seconds));
        }
        rest = behind;
        seconds += 1;
    }
});
