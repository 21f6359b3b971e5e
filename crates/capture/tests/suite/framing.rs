//! An IP packet in every link layer and tunnel that is read.

use etherparse::PacketBuilder;

pub const ETHERNET: i32 = 1;
pub const RAW: i32 = 101;

/// The IP packet in each link layer.
pub fn framed(packet: &[u8], v6: bool) -> Vec<(i32, &'static str, Vec<u8>)> {
    let kind: [u8; 2] = if v6 { [0x86, 0xDD] } else { [0x08, 0x00] };
    let with = |header: &[u8]| [header, packet].concat();
    let mac = [0u8; 12];
    let llc = [0xAA, 0xAA, 3, 0, 0, 0];
    let wireless = [&[0x08, 0x01][..], &[0; 22], &llc, &kind].concat();
    let qos = [&[0x88, 0x02][..], &[0; 22], &[0, 0], &llc, &kind].concat();
    let ppp: &[u8] = if v6 { &[0xFF, 3, 0, 0x57] } else { &[0xFF, 3, 0, 0x21] };
    // A timer and flags: the frame has its check sequence.
    let radiotap = [&[0, 0, 17, 0, 3, 0, 0, 0][..], &[0; 8], &[0x10]].concat();
    vec![
        (ETHERNET, "ethernet", with(&[&mac[..], &kind].concat())),
        (ETHERNET, "vlan", with(&[&mac[..], &[0x81, 0, 0, 5], &kind].concat())),
        (ETHERNET, "qinq", with(&[&mac[..], &[0x88, 0xA8, 0, 5, 0x81, 0, 0, 6], &kind].concat())),
        (ETHERNET, "mpls", with(&[&mac[..], &[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]].concat())),
        (ETHERNET, "pppoe", with(&[&mac[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 99], &ppp[2..]].concat())),
        (113, "linux cooked", with(&[&[0; 14][..], &kind].concat())),
        (276, "linux cooked 2", with(&[&kind[..], &[0; 18]].concat())),
        (RAW, "raw", packet.to_vec()),
        (12, "raw, old", packet.to_vec()),
        (if v6 { 229 } else { 228 }, "raw, by family", packet.to_vec()),
        (0, "null", with(&[2, 0, 0, 0])),
        (108, "loop", with(&[0, 0, 0, 2])),
        (9, "ppp", with(ppp)),
        (105, "802.11", with(&wireless)),
        (105, "802.11 with quality of service", with(&qos)),
        (127, "radiotap", [&radiotap[..], &wireless, packet, &[1, 2, 3, 4]].concat()),
    ]
}

/// The IP packet in each tunnel.
pub fn tunnels(packet: &[u8], v6: bool) -> Vec<(&'static str, Vec<u8>)> {
    let kind: [u8; 2] = if v6 { [0x86, 0xDD] } else { [0x08, 0x00] };
    let udp = |port: u16, inner: &[u8]| {
        let mut outer = Vec::new();
        PacketBuilder::ipv4([1; 4], [2; 4], 9).udp(1, port).write(&mut outer, inner).unwrap();
        outer
    };
    let over = |protocol: u8, inner: &[u8]| {
        let mut outer = Vec::new();
        let header = etherparse::Ipv4Header::new(inner.len() as u16, 9, protocol.into(), [1; 4], [2; 4]).unwrap();
        header.write(&mut outer).unwrap();
        [outer, inner.to_vec()].concat()
    };
    let frame = [&[0; 12][..], &kind, packet].concat();
    vec![
        ("ip in ip", over(if v6 { 41 } else { 4 }, packet)),
        ("gre", over(47, &[&[0, 0][..], &kind, packet].concat())),
        ("gre with key and number", over(47, &[&[0x30, 0][..], &kind, &[0; 8], packet].concat())),
        ("gre with a frame", over(47, &[&[0, 0, 0x65, 0x58][..], &frame].concat())),
        ("vxlan", udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &frame].concat())),
        ("gtp-u", udp(2152, &[&[0x30, 0xFF, 0, 0, 0, 0, 0, 1][..], packet].concat())),
        (
            "gtp-u with an extension",
            udp(2152, &[&[0x34, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0][..], packet].concat()),
        ),
        ("gre in ip in ip", over(4, &over(47, &[&[0, 0][..], &kind, packet].concat()))),
    ]
}
