//! Damaged packets are read without a panic, and a single flipped bit of TCP never goes unnoticed.
//!
//! Input: a number of flips (modulo 4), that many 16-bit positions, then a packet, whose checksums are made right first.
#![no_main]

mod checksums;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use whyloss_transport::wire::damage::{examine, flip_bits, Arrival};

fuzz_target!(|octets: &[u8]| {
    examine(&Bytes::copy_from_slice(octets));
    let Some((count, rest)) = octets.split_first() else { return };
    let Some((positions, packet)) = rest.split_at_checked(usize::from(count % 4) * 2) else { return };
    let positions: Vec<u64> = positions.chunks(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).collect();
    let mut packet = packet.to_vec();
    let Some(start) = checksums::repair(&mut packet) else { return };
    let Arrival::Intact(sent) = examine(&Bytes::copy_from_slice(&packet)) else { return };
    flip_bits(&mut packet, positions.iter().copied());
    let arrival = examine(&Bytes::from(packet));
    let end = start as u64 + sent.segment.len() as u64;
    if let [position] = positions[..] {
        if (start as u64..end).contains(&(position / 8)) {
            let Arrival::Damaged(damaged) = arrival else { panic!("{arrival:?}") };
            assert_eq!(damaged.header, sent.header);
        }
    }
});
