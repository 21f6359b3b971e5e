//! What a packet whose checksum is broken still tells.
//!
//! A receiver that is to report corruption (Garcia & Brunstrom 2004) has to find out which connection a damaged segment belonged to.
//!
//! - **IPv4.** The header checksum covers addresses, lengths, protocol and ECN field. If it does not hold the packet is dropped, and
//!   its loss will look like congestion. If it holds, only the TCP segment is damaged. Its ports are covered by nothing else; that
//!   they match a connection is evidence, for the driver to look up as with any segment. Everything else in the segment is readable
//!   but proves nothing by itself. So a packet is not attributable when one of 24 octets is hit: the IP header (20) and the ports (4).
//!   A nonce that a report is to echo is lost with 91 bits more: the 9 octets of its option, and those bits of the data offset and of
//!   the options before it (timestamps) without which it is not found.
//! - **IPv6.** There is no header checksum: only the TCP checksum covers the addresses, and nothing the hop limit and the ECN field.
//!   When it is broken, all of the header is as suspect as the segment ([`Damaged::ip_header_vouched`] is false). A match of
//!   addresses and ports is still strong evidence of *whose* packet it was, but neither the absence nor the presence of a CE mark can be
//!   believed, so a receiver should report such a packet only where something else vouches for it, such as an echoed nonce.
//! - **TCP HACK** (Balan et al. 2002): data segments can carry a checksum of their header. If that holds, the header is intact
//!   ([`Integrity::PayloadDamaged`]), and with it, by the pseudo-header, the addresses.
//! - **A checksum that holds** is no proof either: a 16-bit one's-complement sum misses two opposite flips in the same bit column, and
//!   every set of flips whose weighted sum is a multiple of 65535. Of two independent flips one pair in 32 is missed: at a bit error
//!   rate of 1.2e-5, 2 in 1000 damaged packets of 1500 octets arrive as if they were intact (compare Stone & Partridge 2000, "When the
//!   CRC and TCP checksum disagree").

use super::{ip, tcp, Error, Packet};
use crate::segment::{Integrity, Segment};
use bytes::Bytes;

/// What an IP packet turned out to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A packet all of whose checksums hold.
    Intact(Packet),
    /// The TCP checksum does not hold; this is what can be read.
    Damaged(Damaged),
    /// The IP header is well-formed, but what follows is too short to name a connection.
    Unattributable {
        /// The IP header, as parsed.
        header: ip::Header,
        /// What is wrong with the rest.
        error: Error,
    },
    /// To be dropped as any stack would: a damaged or malformed IP header, not TCP, a fragment, or a TCP header that makes no sense
    /// under a checksum that holds.
    Discarded(Error),
}

/// A segment with a broken checksum. Trust only what is confirmed independently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The IP header, as parsed.
    pub header: ip::Header,
    /// What the octets say. Options are read up to the first whose length makes no sense; with a data offset that makes none the
    /// header counts as 20 octets.
    pub segment: Segment,
    /// What is known of the TCP header.
    pub integrity: Integrity,
    /// Whether a checksum of its own vouches for the IP header: true for IPv4, false for IPv6.
    pub ip_header_vouched: bool,
}

/// Reads any byte string as an IP packet. Payload and unknown options are slices of `octets`.
pub fn examine(octets: &Bytes) -> Arrival {
    let ip::Datagram { header, traffic_class, body } = match ip::read(octets, ip::TCP) {
        Ok(datagram) => datagram,
        Err(error) => return Arrival::Discarded(error),
    };
    let segment = &octets[body.clone()];
    let Some(fixed) = segment.first_chunk() else {
        return Arrival::Unattributable { header, error: Error::TcpTruncated(segment.len()) };
    };
    if header.addresses.pseudo_header(segment.len()).with(segment).finish() == 0 {
        return match tcp::read(octets, body, fixed, traffic_class) {
            Ok((segment, malformed)) => Arrival::Intact(Packet { header, segment, malformed }),
            Err(error) => Arrival::Discarded(error),
        };
    }
    // Nothing but a checksum of the header alone is independent of the broken checksum.
    let vouched = tcp::header_holds(&header.addresses, segment);
    Arrival::Damaged(Damaged {
        header,
        segment: tcp::read_damaged(octets, body, fixed, traffic_class),
        integrity: if vouched { Integrity::PayloadDamaged } else { Integrity::HeaderSuspect },
        ip_header_vouched: matches!(header.addresses, ip::Addresses::V4 { .. }),
    })
}

/// Flips bits: bit 0 is the first on the wire, the most significant of the first octet. Bits beyond the end are ignored.
pub fn flip_bits(octets: &mut [u8], bits: impl IntoIterator<Item = u64>) {
    for bit in bits {
        if let Some(octet) = octets.get_mut((bit / 8) as usize) {
            *octet ^= 0x80 >> (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Flags, Options, Payload, Timestamps};
    use crate::seq::Seq;
    use crate::wire::emit;
    use crate::wire::ip::{Addresses, Header};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use std::net::Ipv4Addr;

    const LEN: u64 = 1500;

    fn header() -> Header {
        let addresses = Addresses::V4 { src: Ipv4Addr::new(192, 0, 2, 1), dst: Ipv4Addr::new(198, 51, 100, 7) };
        Header { addresses, hop_limit: 64 }
    }

    /// A full data segment of 1500 octets.
    fn sent(nonce: Option<u32>) -> Segment {
        let timestamps = Some(Timestamps { value: 0x1234_5678, echo: 0x9ABC_DEF0 });
        let mut segment = Segment {
            src_port: 49152,
            dst_port: 80,
            seq: Seq(0x0102_0304),
            ack: Seq(0x0506_0708),
            flags: Flags::ACK,
            window: 1000,
            options: Options { timestamps, nonce, ..Options::default() },
            ..Segment::default()
        };
        let len = LEN as u32 - 20 - segment.header_len() as u32;
        segment.payload = Payload::Synthetic { offset: 12345, len };
        segment
    }

    fn octets(segment: &Segment) -> Vec<u8> {
        let mut octets = Vec::new();
        emit(&header(), segment, &mut octets).unwrap();
        assert_eq!(octets.len() as u64, LEN);
        octets
    }

    fn received(octets: &[u8], bits: impl IntoIterator<Item = u64>) -> Arrival {
        let mut octets = octets.to_vec();
        flip_bits(&mut octets, bits);
        examine(&octets.into())
    }

    /// The flow match of a receiver that knows one connection.
    fn attributable(arrival: &Arrival, sent: &Segment) -> bool {
        matches!(arrival, Arrival::Damaged(damaged) if damaged.header.addresses == header().addresses
            && (damaged.segment.src_port, damaged.segment.dst_port) == (sent.src_port, sent.dst_port))
    }

    #[test]
    fn each_single_flip_is_noticed_and_24_octets_decide_whose_it_was() {
        let sent = sent(None);
        let octets = octets(&sent);
        for bit in 0..LEN * 8 {
            let arrival = received(&octets, [bit]);
            match bit / 8 {
                0..20 => assert!(matches!(arrival, Arrival::Discarded(_)), "bit {bit}: {arrival:?}"),
                octet => {
                    let Arrival::Damaged(damaged) = &arrival else { panic!("bit {bit}: {arrival:?}") };
                    assert_eq!((damaged.header, damaged.integrity), (header(), Integrity::HeaderSuspect));
                    assert!(damaged.ip_header_vouched);
                    assert_eq!(attributable(&arrival, &sent), octet >= 24, "bit {bit}");
                    assert_eq!(damaged.segment.seq == sent.seq, !(24..28).contains(&octet), "bit {bit}");
                }
            }
        }
    }

    #[test]
    fn a_header_with_a_checksum_of_its_own_is_known_to_be_intact() {
        let mut sent = Segment { dscp: crate::segment::Dscp::AF12, ..sent(None) };
        sent.options.header_check = true;
        let len = LEN as u32 - 20 - sent.header_len() as u32;
        sent.payload = Payload::Synthetic { offset: 12345, len };
        let octets = octets(&sent);
        for bit in 20 * 8..LEN * 8 {
            let Arrival::Damaged(damaged) = received(&octets, [bit]) else { panic!("bit {bit}") };
            // Pairs of octets: the TCP checksum is not covered, it counts as zero.
            let intact = matches!(bit / 8, 36..38) || bit / 8 >= 20 + sent.header_len() as u64;
            let expected = if intact { Integrity::PayloadDamaged } else { Integrity::HeaderSuspect };
            assert_eq!(damaged.integrity, expected, "bit {bit}");
            if intact {
                assert_eq!(
                    (damaged.segment.seq, &damaged.segment.options, damaged.segment.dscp),
                    (sent.seq, &sent.options, sent.dscp)
                );
            }
        }
    }

    #[test]
    fn a_nonce_is_lost_with_its_option_or_the_way_to_it() {
        let sent = sent(Some(0xA1A2_A3A4));
        let octets = octets(&sent);
        let lost = |bit: &u64| match received(&octets, [*bit]) {
            Arrival::Damaged(damaged) => damaged.segment.options.any_nonce() != sent.options.any_nonce(),
            _ => false,
        };
        let mut bits = [0; LEN as usize];
        (0..LEN * 8).filter(lost).for_each(|bit| bits[(bit / 8) as usize] += 1);
        let mut expected = [0; LEN as usize];
        expected[32] = 2; // the data offset, where it becomes senseless or ends the options early
        expected[40] = 8; // padding that becomes an option
        expected[41] = 1; // timestamps that become the end of options
        expected[42] = 8; // the length of the timestamps
        expected[51..60].fill(8); // the nonce
        assert_eq!(bits[..], expected[..]);
    }

    /// P(one of `octets` octets is hit | the packet is damaged) with independent bit errors.
    fn hit(octets: u64, bit_error_rate: f64) -> f64 {
        let damaged = |octets: u64| 1.0 - libm::pow(1.0 - bit_error_rate, (octets * 8) as f64);
        damaged(octets) / damaged(LEN)
    }

    #[test]
    fn forty_octets_give_the_published_bound() {
        // Garcia & Brunstrom 2004: a damaged packet is not attributable with a probability below 0.03, at bit error rates up to
        // 1.9e-5. That is what IP and TCP header without options (40 octets) give; the 24 that decide give less, timestamps more.
        for (octets, rate, expected) in [
            (24, 1.2e-5, 0.0172),
            (24, 1.9e-5, 0.0179),
            (40, 1.2e-5, 0.0286),
            (40, 1.9e-5, 0.0297),
            (52, 1.2e-5, 0.0372),
            (52, 1.9e-5, 0.0386),
        ] {
            assert!((hit(octets, rate) - expected).abs() < 1e-4, "{octets} octets at {rate}: {}", hit(octets, rate));
        }
    }

    /// The positions of independent bit errors in a packet that has at least one.
    fn errors(rate: f64, random: &mut Pcg64) -> Vec<u64> {
        let bits = LEN * 8;
        let damaged = 1.0 - libm::pow(1.0 - rate, bits as f64);
        let mut gap = |scale: f64| (libm::log(1.0 - scale * random.random::<f64>()) / libm::log(1.0 - rate)) as u64;
        let mut at = gap(damaged);
        let mut errors = Vec::new();
        while at < bits {
            errors.push(at);
            at += 1 + gap(1.0);
        }
        errors
    }

    #[test]
    fn damaged_packets_are_attributed_as_often_as_derived() {
        let sent = sent(None);
        let octets = octets(&sent);
        let mut random = Pcg64::seed_from_u64(1);
        for rate in [1.2e-5, 1.9e-5] {
            let packets = 60_000;
            let (mut unnoticed, mut unattributed, mut misplaced, mut header_hit) = (0, 0, 0, 0);
            for _ in 0..packets {
                let errors = errors(rate, &mut random);
                let arrival = received(&octets, errors.iter().copied());
                header_hit += u32::from(errors.iter().any(|bit| *bit < 40 * 8));
                match &arrival {
                    Arrival::Intact(_) => unnoticed += 1,
                    Arrival::Damaged(damaged) if attributable(&arrival, &sent) => {
                        misplaced += u32::from(damaged.segment.seq != sent.seq);
                    }
                    _ => (unattributed, misplaced) = (unattributed + 1, misplaced + 1),
                }
            }
            // Two flips cancel if they stand in one of 16 columns and differ in direction. More than two seldom do.
            let expected = (LEN * 8) as f64 * rate;
            let blind = expected * expected / 2.0 * libm::exp(-expected) / (1.0 - libm::exp(-expected)) / 32.0;
            for (what, count, derived) in [
                ("not noticed", unnoticed, blind),
                ("not attributable", unattributed, hit(24, rate)),
                ("position unknown", misplaced, hit(28, rate)),
                ("IP or TCP header hit", header_hit, hit(40, rate)),
            ] {
                let measured = f64::from(count) / f64::from(packets);
                let tolerance = 4.0 * (derived * (1.0 - derived) / f64::from(packets)).sqrt();
                assert!((measured - derived).abs() < tolerance, "{what} at {rate}: {measured}, not {derived}");
            }
            assert!(f64::from(unattributed) < 0.03 * f64::from(packets), "Garcia & Brunstrom 2004");
        }
    }
}
