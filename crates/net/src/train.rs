//! Segments that stand one behind the other, handed to the device as one packet. Whoever needs them apart cuts it: the kernel does so where it
//! sends them on, and takes them as one where they end (TCP segmentation offload).

use crate::tun::VIRTIO_HEADER;
use whyloss_transport::segment::Flags;
use whyloss_transport::stack::Datagram;
use whyloss_transport::wire::{emit_headers, ip, EmitError};
use whyloss_transport::Seq;

/// Of `struct virtio_net_hdr` (`linux/virtio_net.h`): the checksum is to be completed; what kind of segments are to be cut.
const NEEDS_CHECKSUM: u8 = 1;
const CUT_TCP_V4: u8 = 1;
const CUT_TCP_V6: u8 = 4;
/// Where the checksum stands in a TCP header.
const CHECKSUM_AT: u16 = 16;

/// What an IP packet can hold.
const LONGEST: usize = u16::MAX as usize;

/// Segments of one connection that differ in their sequence numbers and data only. All but the last have data of one length. A single one
/// takes no shorter one with it: if it is a probe of the path's MTU, whoever drops it drops all of the packet.
#[derive(Debug, Default)]
pub struct Train {
    /// The first one, without its data.
    first: Option<Datagram>,
    /// Octets of data of each segment but the last.
    size: usize,
    next: Seq,
    /// No more segments may be added.
    closed: bool,
    segments: u64,
    headers: Vec<u8>,
    /// Room for the headers, and the data.
    octets: Vec<u8>,
}

impl Train {
    /// Whether a segment continues what is there. Anything continues nothing.
    pub fn takes(&self, datagram: &Datagram) -> bool {
        let data = datagram.segment.payload.len();
        self.first.as_ref().is_none_or(|first| {
            !self.closed
                && (data == self.size || self.segments > 1 && (1..self.size).contains(&data))
                && self.octets.len() - VIRTIO_HEADER + data <= LONGEST
                && follows(first, datagram, self.next)
        })
    }

    /// Adds a segment that it [takes](Self::takes).
    pub fn add(&mut self, datagram: Datagram) {
        debug_assert!(self.takes(&datagram));
        let Datagram { addresses, mut segment } = datagram;
        let payload = std::mem::take(&mut segment.payload);
        if self.first.is_none() {
            self.size = payload.len();
            self.octets.clear();
            self.octets.resize(VIRTIO_HEADER + addresses.header_len() + segment.header_len(), 0);
        }
        payload.write_to(&mut self.octets);
        self.next = segment.seq + payload.len() as u32;
        self.closed =
            segment.flags != Flags::ACK || payload.is_empty() || payload.len() < self.size || segment.options.header_check;
        self.segments += 1;
        match &mut self.first {
            Some(first) => first.segment.flags |= segment.flags,
            None => self.first = Some(Datagram { addresses, segment }),
        }
    }

    /// Gives the packet behind its virtio header, and how many segments it holds, and begins anew; nothing if there is none.
    ///
    /// # Errors
    ///
    /// A segment that has no form on the wire is dropped.
    pub fn take(&mut self, hop_limit: u8) -> Result<Option<(&[u8], u64)>, EmitError> {
        let Some(Datagram { addresses, segment }) = self.first.take() else { return Ok(None) };
        let segments = std::mem::take(&mut self.segments);
        let headers = addresses.header_len() + segment.header_len();
        let data = self.octets.len() - VIRTIO_HEADER - headers;
        self.headers.clear();
        emit_headers(&ip::Header { addresses, hop_limit }, &segment, data, &mut self.headers)?;
        let mut virtio = [0; VIRTIO_HEADER];
        virtio[0] = NEEDS_CHECKSUM;
        if segments > 1 {
            virtio[1] = if matches!(addresses, ip::Addresses::V4 { .. }) { CUT_TCP_V4 } else { CUT_TCP_V6 };
            virtio[4..6].copy_from_slice(&(self.size as u16).to_ne_bytes());
        }
        virtio[2..4].copy_from_slice(&(headers as u16).to_ne_bytes());
        virtio[6..8].copy_from_slice(&(addresses.header_len() as u16).to_ne_bytes());
        virtio[8..10].copy_from_slice(&CHECKSUM_AT.to_ne_bytes());
        self.octets[..VIRTIO_HEADER].copy_from_slice(&virtio);
        self.octets[VIRTIO_HEADER..VIRTIO_HEADER + headers].copy_from_slice(&self.headers);
        Ok(Some((&self.octets, segments)))
    }
}

/// Whether `datagram` is what comes after `first` and others, but for its length. It may push or be the last.
fn follows(first: &Datagram, datagram: &Datagram, next: Seq) -> bool {
    let (one, other) = (&first.segment, &datagram.segment);
    first.addresses == datagram.addresses
        && (one.src_port, one.dst_port, one.ack, one.window) == (other.src_port, other.dst_port, other.ack, other.window)
        && (one.ecn, one.dscp) == (other.ecn, other.dscp)
        && other.seq == next
        && Flags(other.flags.0 & !(Flags::PSH | Flags::FIN).0) == one.flags
        && one.options == other.options
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use whyloss_transport::segment::{Options, Payload, Timestamps};
    use whyloss_transport::wire::checksum::Sum;
    use whyloss_transport::wire::parse;
    use whyloss_transport::Segment;

    const ADDRESSES: [[&str; 2]; 2] = [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]];

    fn datagram([src, dst]: [&str; 2], seq: u32, len: u32, flags: Flags) -> Datagram {
        let addresses = ip::Addresses::new(src.parse().unwrap(), dst.parse().unwrap()).unwrap();
        let options = Options { timestamps: Some(Timestamps { value: 7, echo: 8 }), ..Options::default() };
        let data: Vec<_> = (seq..seq + len).map(|octet| octet as u8).collect();
        let payload = if data.is_empty() { Payload::Empty } else { Payload::Bytes(data.into()) };
        let segment = Segment {
            src_port: 1,
            dst_port: 2,
            seq: Seq(seq),
            ack: Seq(9),
            flags,
            window: 100,
            options,
            payload,
            ..Segment::default()
        };
        Datagram { addresses, segment }
    }

    /// Does what the kernel does: completes the checksum, and cuts.
    fn cut(octets: &[u8]) -> Vec<Segment> {
        let field = |at: usize| usize::from(u16::from_ne_bytes([octets[at], octets[at + 1]]));
        let (size, start, offset) = (field(4), field(6), field(8));
        assert_eq!(octets[0], NEEDS_CHECKSUM);
        let mut packet = octets[VIRTIO_HEADER..].to_vec();
        let checksum = Sum::default().with(&packet[start..]).finish();
        packet[start + offset..start + offset + 2].copy_from_slice(&checksum.to_be_bytes());
        let whole = parse(&Bytes::from(packet)).expect("an intact packet").segment;
        if octets[1] == 0 {
            return vec![whole];
        }
        let Payload::Bytes(data) = whole.payload.clone() else { panic!("{whole:?}") };
        assert_eq!(field(2) + data.len(), octets.len() - VIRTIO_HEADER);
        let pieces: Vec<_> = (0..data.len()).step_by(size).map(|at| (at, data.slice(at..data.len().min(at + size)))).collect();
        let last = pieces.len() - 1;
        let cut = pieces.into_iter().enumerate().map(|(number, (at, piece))| {
            let flags = if number == last { whole.flags } else { Flags::ACK };
            Segment { seq: whole.seq + at as u32, flags, payload: Payload::Bytes(piece), ..whole.clone() }
        });
        cut.collect()
    }

    /// What leaves when these are added one after the other, and how many packets it takes.
    fn sent(datagrams: &[Datagram]) -> (Vec<Segment>, usize) {
        let (mut train, mut segments, mut packets) = (Train::default(), Vec::new(), 0);
        let mut leave = |train: &mut Train| {
            if let Some((octets, count)) = train.take(64).unwrap() {
                let cut = cut(octets);
                assert_eq!(cut.len() as u64, count);
                segments.extend(cut);
                packets += 1;
            }
        };
        for datagram in datagrams {
            if !train.takes(datagram) {
                leave(&mut train);
            }
            train.add(datagram.clone());
        }
        leave(&mut train);
        leave(&mut train);
        (segments, packets)
    }

    fn check(datagrams: &[Datagram], packets: usize) {
        let (segments, found) = sent(datagrams);
        assert_eq!(segments, datagrams.iter().map(|datagram| datagram.segment.clone()).collect::<Vec<_>>());
        assert_eq!(found, packets);
    }

    #[test]
    fn what_is_cut_is_what_was_added() {
        for addresses in ADDRESSES {
            let one = |number: u32| datagram(addresses, 1000 * number, 1000, Flags::ACK);
            check(&[one(0)], 1);
            check(&[one(0), one(1), one(2)], 1);
            // The last one may be short, push, and end the stream.
            check(&[one(0), one(1), datagram(addresses, 2000, 10, Flags::ACK | Flags::PSH | Flags::FIN), one(3)], 2);
            check(&[one(0), datagram(addresses, 1000, 10, Flags::ACK)], 2);
            check(&[one(0), datagram(addresses, 1000, 1000, Flags::ACK | Flags::PSH), one(2)], 2);
            // 65 segments with 32 octets of TCP header are the most that a packet of 65,535 octets holds.
            let many: Vec<_> = (0..100).map(one).collect();
            check(&many, 2);
        }
    }

    #[test]
    fn what_differs_travels_alone() {
        let one = datagram(ADDRESSES[0], 0, 1000, Flags::ACK);
        let different: [fn(&mut Segment); 10] = [
            |segment| segment.seq = Seq(1001),
            |segment| segment.ack = Seq(10),
            |segment| segment.window = 101,
            |segment| segment.dst_port = 3,
            |segment| segment.options.timestamps = None,
            |segment| segment.ecn = whyloss_transport::segment::Ecn::Capable0,
            |segment| segment.flags |= Flags::CWR,
            |segment| segment.flags = Flags::ACK | Flags::RST,
            |segment| segment.payload = Payload::Empty,
            |segment| segment.payload = Payload::Bytes(Bytes::from_static(&[0; 1001])),
        ];
        for change in different {
            let mut other = datagram(ADDRESSES[0], 1000, 1000, Flags::ACK);
            change(&mut other.segment);
            check(&[one.clone(), other], 2);
        }
        let mut elsewhere = datagram(ADDRESSES[0], 1000, 1000, Flags::ACK);
        elsewhere.addresses = ip::Addresses::new("192.0.2.1".parse().unwrap(), "192.0.2.3".parse().unwrap()).unwrap();
        check(&[one, elsewhere], 2);
    }

    #[test]
    fn nothing_follows_a_segment_whose_header_has_a_checksum_of_its_own() {
        let mut pair = [0, 1000].map(|seq| datagram(ADDRESSES[0], seq, 1000, Flags::ACK));
        for datagram in &mut pair {
            datagram.segment.options.header_check = true;
        }
        let (_, packets) = sent(&pair);
        assert_eq!(packets, 2);
    }
}
