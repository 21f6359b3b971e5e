//! Bit errors in a structured segment.

use bytes::Bytes;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use whyloss_transport::segment::{Flags, Integrity, Payload, Segment};

/// Flips bits of `segment` so that no more of it is right than `how` promises.
pub(super) fn damage(segment: &mut Segment, how: Integrity, rng: &mut Pcg64Mcg) {
    match how {
        Integrity::Intact => {}
        Integrity::PayloadDamaged => flip_payload(segment, rng),
        Integrity::HeaderSuspect => {
            flip_payload(segment, rng);
            match rng.random_range(0..6) {
                0 => segment.seq.0 ^= 1 << rng.random_range(0..32),
                1 => segment.ack.0 ^= 1 << rng.random_range(0..32),
                2 => segment.flags = Flags(segment.flags.0 ^ 1 << rng.random_range(0..8)),
                3 => segment.window ^= 1 << rng.random_range(0..16),
                4 => {
                    if let Some(timestamps) = &mut segment.options.timestamps {
                        timestamps.value ^= 1 << rng.random_range(0..32);
                        timestamps.echo ^= 1 << rng.random_range(0..32);
                    }
                }
                _ => {}
            }
        }
    }
}

fn flip_payload(segment: &mut Segment, rng: &mut Pcg64Mcg) {
    let len = segment.payload.len();
    if len == 0 {
        return;
    }
    let mut octets = segment.payload.to_bytes().to_vec();
    octets[rng.random_range(0..len)] ^= 1 << rng.random_range(0..8);
    segment.payload = Payload::Bytes(Bytes::from(octets));
}
