//! Where a capture was taken, as each connection shows it, and packets that were recorded twice.

use crate::headers::{Checksum, Segment};
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};

/// Where a capture was taken, seen from a sender of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// At the sender: what it answers follows at once, what it sends is acknowledged after a round trip.
    Sender,
    /// At the receiver.
    Receiver,
    /// In between.
    Middle,
    /// There is too little to tell.
    Unknown,
}

impl Place {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Sender, Self::Receiver, Self::Middle, Self::Unknown];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Middle => "middle",
            Self::Unknown => "unknown",
        }
    }

    /// The place called so.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Sender, Self::Receiver, Self::Middle].into_iter().find(|place| place.name() == name)
    }
}

/// What the packets of a host show of the way from it to the capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    /// The smallest and the largest hop limit of its packets.
    pub hop_limits: Option<(u8, u8)>,
    /// Segments of one packet whose checksum the network card was still to compute.
    pub uncomputed: u64,
    /// Segments of several packets: they had not been parted yet, or had been put together again.
    pub large: u64,
    /// Packets in its segments with data, as far as that can be said.
    pub packets: u64,
    /// The largest segment that the other end takes.
    pub peer_mss: Option<u16>,
}

/// Packets of an Ethernet without larger frames hold so many octets; what holds more than the second number is no packet of any common network.
const ETHERNET: u32 = 1500;
const JUMBO: u32 = 9216;

impl Signs {
    /// A segment of this host. What the other one said of its own segments is in `peer_mss`.
    pub fn note(&mut self, segment: &Segment) {
        let hops = segment.hop_limit;
        self.hop_limits = Some(self.hop_limits.map_or((hops, hops), |(least, most)| (least.min(hops), most.max(hops))));
        if segment.len == 0 {
            self.uncomputed += u64::from(segment.checksum == Checksum::Offloaded);
            return;
        }
        let overhead = segment.packet_len.saturating_sub(segment.len).saturating_sub(40).min(40);
        let most = match self.peer_mss {
            // Options take room from the data (RFC 9293, 3.7.1).
            Some(mss) if mss > 0 => u32::from(mss),
            _ if segment.packet_len > JUMBO => ETHERNET - 40,
            _ => JUMBO,
        };
        if segment.len > most {
            self.large += 1;
            self.packets += u64::from(segment.len.div_ceil(most.saturating_sub(overhead).max(1)));
        } else {
            self.packets += 1;
            // One that was put together again on the way in has none either.
            self.uncomputed += u64::from(segment.checksum == Checksum::Offloaded);
        }
    }

    /// Its packets come with a hop limit that hosts begin with: no router was in between.
    fn is_next(&self) -> Option<bool> {
        const FIRST: [u8; 4] = [32, 64, 128, 255];
        self.hop_limits.filter(|(_, most)| *most > 0).map(|(least, most)| least == most && FIRST.contains(&most))
    }
}

/// Where the capture was taken, seen from the first of two hosts: by what the packets of both show, and by the parts of the round trip of the
/// first one's data on its side of the capture and on the other.
pub fn place(own: &Signs, peer: &Signs, left: Option<Duration>, right: Option<Duration>) -> Place {
    /// One part is so many times the other.
    const CLEAR: u64 = 8;
    // A checksum that is not computed yet shows the host itself. On a loopback both are there.
    match (own.uncomputed > 0, peer.uncomputed > 0) {
        (true, false) => return Place::Sender,
        (false, true) => return Place::Receiver,
        _ => {}
    }
    let by_hops = match (own.is_next(), peer.is_next()) {
        (Some(true), Some(false)) => Place::Sender,
        (Some(false), Some(true)) => Place::Receiver,
        (Some(false), Some(false)) => Place::Middle,
        _ => Place::Unknown,
    };
    let (Some(left), Some(right)) = (left, right) else {
        // One router away is not in between yet, but nothing tells more.
        return by_hops;
    };
    if right > left * CLEAR {
        Place::Sender
    } else if left > right * CLEAR {
        Place::Receiver
    } else if by_hops == Place::Unknown || left > right / 2 && right > left / 2 {
        Place::Middle
    } else {
        // Delayed acknowledgements and slow applications blur the ratio.
        by_hops
    }
}

/// How long after a packet its second record comes at most.
const AT_ONCE: Duration = Duration::from_millis(1);
/// Packets of each side whose second record may still come.
const RECENT: usize = 4;

/// What makes a packet the same, in a number. Its hop limit may differ: a capture on both sides of a router has it twice, too.
fn mark(segment: &Segment) -> u64 {
    // Any odd number whose bits look random; this is 2^64 over the golden ratio.
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let (value, echo) = segment.options.timestamps.unwrap_or_default();
    let (left, right) = segment.options.sack().first().copied().unwrap_or_default();
    let words = [
        u64::from(segment.seq) << 32 | u64::from(segment.ack),
        u64::from(segment.len) << 32 | u64::from(segment.window) << 8 | u64::from(segment.flags.0),
        u64::from(value) << 32 | u64::from(echo),
        u64::from(left) << 32 | u64::from(right),
        segment.ip_id.map_or(0, |id| u64::from(id) + 1),
    ];
    words.into_iter().fold(0, |sum: u64, word| ((sum ^ word).wrapping_mul(MIX)).rotate_left(29))
}

/// Packets of a connection that were recorded twice.
#[derive(Clone, Debug, Default)]
pub struct Doubles {
    recent: [[(u64, Instant); RECENT]; 2],
    next: [usize; 2],
    /// Packets of which each counts once.
    packets: u64,
    /// Records that repeat one at once.
    alike: u64,
    /// Those of them that were taken out.
    pub taken_out: u64,
}

impl Doubles {
    /// Whether a record is the second one of a packet: captures on a bridge and its port, on both sides of a router or with and without a VLAN
    /// tag have each packet twice. What the network doubles now and then is left in.
    pub fn is_second(&mut self, side: usize, segment: &Segment) -> bool {
        let mark = mark(segment);
        let recent = &mut self.recent[side];
        let alike = recent.iter().position(|(other, at)| {
            *other == mark && *at > Instant::ZERO && segment.at >= *at && segment.at.since(*at) < AT_ONCE
        });
        let Some(first) = alike else {
            recent[self.next[side]] = (mark, segment.at);
            self.next[side] = (self.next[side] + 1) % RECENT;
            self.packets += 1;
            return false;
        };
        // Acknowledgements that say the same are common; only a number of the packet itself tells them apart.
        let bare = segment.len == 0 && !segment.flags.intersects(Flags::SYN | Flags::FIN);
        let numbered = segment.ip_id.is_some_and(|id| id != 0);
        let usual = self.alike * 3 > self.packets;
        if bare && !numbered && !usual {
            self.packets += 1;
            return false;
        }
        // A third record is another packet again, or a third place.
        recent[first].1 = Instant::ZERO;
        self.alike += 1;
        let second = usual || self.packets <= 4;
        self.taken_out += u64::from(second);
        second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_delays(left: u64, right: u64) -> Place {
        let ms = |millis| Some(Duration::from_millis(millis));
        place(&Signs::default(), &Signs::default(), ms(left), ms(right))
    }

    fn hops(hop_limit: u8) -> Signs {
        Signs { hop_limits: Some((hop_limit, hop_limit)), ..Signs::default() }
    }

    #[test]
    fn delays_hop_limits_and_checksums_tell_the_place() {
        assert_eq!(by_delays(1, 40), Place::Sender);
        assert_eq!(by_delays(40, 1), Place::Receiver);
        assert_eq!(by_delays(20, 30), Place::Middle);
        let (none, some) = (Signs::default(), Some(Duration::from_millis(30)));
        assert_eq!(place(&none, &none, None, some), Place::Unknown);
        assert_eq!(place(&hops(64), &hops(53), None, None), Place::Sender);
        assert_eq!(place(&hops(53), &hops(128), None, None), Place::Receiver);
        assert_eq!(place(&hops(53), &hops(60), None, None), Place::Middle);
        // An application that answers slowly: the packets' hop limits decide.
        assert_eq!(place(&hops(64), &hops(53), some.map(|left| left / 4), some), Place::Sender);
        let offloads = Signs { uncomputed: 1, ..none };
        assert_eq!(place(&offloads, &none, some, some), Place::Sender);
        assert_eq!(place(&none, &offloads, some, some), Place::Receiver);
    }
}
