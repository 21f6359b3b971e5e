//! Captures of any length, made while they are read: bulk senders with SACK and losses, many of them at once, in pcap or pcapng.
//!
//! They are for speed and memory, not for verdicts: a sender keeps a fixed window, a loss is repaired a round trip later.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use std::io::{self, Read};
use whyloss_transport::wire::ip::Addresses;

/// Octets of data in a segment.
const MSS: u32 = 1448;
const ETHERNET: usize = 14;
const IP: usize = 20;
const TCP: usize = 20;
const TIMESTAMPS: usize = 12;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// How the file stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// pcap in microseconds, Ethernet.
    #[default]
    Pcap,
    /// pcapng in nanoseconds, Ethernet.
    Pcapng,
    /// pcap in microseconds, Linux cooked capture version 2: what `tcpdump -i any` writes.
    Cooked,
}

/// What is made.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Packets in all.
    pub packets: u64,
    /// Connections at once.
    pub connections: u32,
    /// Segments that each has under way.
    pub window: usize,
    /// Probability that a segment is lost behind the capture.
    pub loss: f64,
    /// Ticks, of about three packets, after which another connection takes the place of one.
    pub life: Option<u32>,
    /// Lost segments are never repaired.
    pub unrepaired: bool,
    /// Octets that are captured of a packet.
    pub snap: usize,
    /// How the file stands.
    pub format: Format,
    /// What the random numbers begin with.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let (packets, format) = (100_000, Format::Pcap);
        Self { packets, connections: 1, window: 32, loss: 0.005, life: None, unrepaired: false, snap: 96, format, seed: 1 }
    }
}

/// A bulk sender and its receiver. Segments are numbered from 0.
#[derive(Debug)]
struct Flow {
    number: u32,
    age: u32,
    next: u32,
    again: VecDeque<u32>,
    /// What is under way, and whether it is lost.
    line: VecDeque<(u32, bool)>,
    /// The receiver has all below.
    received: u32,
    /// Stretches that it has above, the latest first.
    above: VecDeque<(u32, u32)>,
    repaired: u32,
    ip_id: u16,
}

impl Flow {
    fn new(number: u32) -> Self {
        Self {
            number,
            age: 0,
            next: 0,
            again: VecDeque::new(),
            line: VecDeque::new(),
            received: 0,
            above: VecDeque::new(),
            repaired: 0,
            ip_id: number as u16,
        }
    }

    /// The receiver gets a segment; says whether it acknowledges at once.
    fn receive(&mut self, segment: u32) -> bool {
        if segment == self.received {
            self.received += 1;
            let received = self.received;
            if let Some(at) = self.above.iter().position(|stretch| stretch.0 == received) {
                self.received = self.above.remove(at).expect("it is there").1;
                return true;
            }
            return !self.above.is_empty() || segment % 2 == 1;
        }
        if segment > self.received {
            // Stretches grow at their right end; one that a repair joins with the next is told as two, which receivers may do.
            let mut stretch = (segment, segment + 1);
            if let Some(at) = self.above.iter().position(|other| other.1 == segment) {
                stretch.0 = self.above.remove(at).expect("it is there").0;
            }
            if let Some(at) = self.above.iter().position(|other| other.0 == segment + 1) {
                stretch.1 = self.above.remove(at).expect("it is there").1;
            }
            self.above.push_front(stretch);
        }
        true
    }

    /// Holes with three segments above them are repaired once.
    fn repair(&mut self) {
        let highest = self.above.iter().map(|stretch| stretch.1).max().unwrap_or(0);
        let from = self.repaired.max(self.received);
        for hole in from..highest.saturating_sub(3) {
            if !self.above.iter().any(|stretch| (stretch.0..stretch.1).contains(&hole)) {
                self.again.push_back(hole);
            }
            self.repaired = hole + 1;
        }
    }
}

/// A capture, as octets of a file.
#[derive(Debug)]
pub struct Traffic {
    settings: Settings,
    random: Pcg64Mcg,
    flows: Vec<Flow>,
    opened: u32,
    made: u64,
    at: u64,
    file: Vec<u8>,
    read: usize,
}

/// A segment to write.
struct Segment {
    forward: bool,
    seq: u32,
    ack: u32,
    flags: u8,
    len: u32,
    sack: [(u32, u32); 3],
}

impl Traffic {
    /// Begins a capture.
    pub fn new(settings: Settings) -> Self {
        let mut traffic = Self {
            settings,
            random: Pcg64Mcg::seed_from_u64(settings.seed),
            flows: Vec::new(),
            opened: 0,
            made: 0,
            at: 1_700_000_000_000_000_000,
            file: Vec::new(),
            read: 0,
        };
        traffic.header();
        traffic
    }

    fn header(&mut self) {
        let link: u32 = if self.settings.format == Format::Cooked { 276 } else { 1 };
        let file = &mut self.file;
        if self.settings.format == Format::Pcapng {
            for word in [0x0A0D_0D0A, 28, 0x1A2B_3C4D, 0x0000_0001, u32::MAX, u32::MAX, 28] {
                file.extend(u32::to_le_bytes(word));
            }
            // An interface whose clock counts nanoseconds: option 9 of 1 octet.
            for word in [1, 32, link, 0, 0x0001_0009, 9, 0, 32] {
                file.extend(u32::to_le_bytes(word));
            }
        } else {
            for word in [0xA1B2_C3D4, 0x0004_0002, 0, 0, 262_144, link] {
                file.extend(u32::to_le_bytes(word));
            }
        }
    }

    /// Lets one connection go on for a moment.
    fn tick(&mut self) {
        if (self.flows.len() as u32) < self.settings.connections {
            let flow = self.open();
            self.flows.push(flow);
            return;
        }
        let index = if self.flows.len() == 1 { 0 } else { self.random.random_range(0..self.flows.len()) };
        if self.settings.life.is_some_and(|life| self.flows[index].age >= life) {
            let mut old = std::mem::replace(&mut self.flows[index], Flow::new(0));
            let seq = old.next;
            self.write(&mut old, &Segment { forward: true, seq, ack: 0, flags: RST, len: 0, sack: [(0, 0); 3] });
            self.flows[index] = self.open();
            return;
        }
        let mut flow = std::mem::replace(&mut self.flows[index], Flow::new(0));
        flow.age += 1;
        for _ in 0..2 {
            let segment = flow.again.pop_front().unwrap_or_else(|| {
                flow.next += 1;
                flow.next - 1
            });
            let lost = self.random.random::<f64>() < self.settings.loss;
            flow.line.push_back((segment, lost));
            self.write(&mut flow, &Segment { forward: true, seq: segment, ack: 0, flags: ACK, len: MSS, sack: [(0, 0); 3] });
            if flow.line.len() <= self.settings.window {
                continue;
            }
            let Some((arriving, lost)) = flow.line.pop_front() else { continue };
            if lost && arriving < flow.repaired {
                flow.again.push_back(arriving);
            }
            if lost || !flow.receive(arriving) {
                continue;
            }
            let mut sack = [(0, 0); 3];
            sack.iter_mut().zip(&flow.above).for_each(|(slot, stretch)| *slot = *stretch);
            let ack = flow.received;
            self.write(&mut flow, &Segment { forward: false, seq: 0, ack, flags: ACK, len: 0, sack });
            if !self.settings.unrepaired {
                flow.repair();
            }
        }
        self.flows[index] = flow;
    }

    fn open(&mut self) -> Flow {
        let mut flow = Flow::new(self.opened);
        self.opened += 1;
        let syn = |forward, flags| Segment { forward, seq: u32::MAX, ack: 0, flags, len: 0, sack: [(0, 0); 3] };
        self.write(&mut flow, &syn(true, SYN));
        self.write(&mut flow, &syn(false, SYN | ACK));
        flow
    }

    fn write(&mut self, flow: &mut Flow, segment: &Segment) {
        if self.made == self.settings.packets {
            return;
        }
        self.made += 1;
        self.at += 2_000;
        let mut frame = [0; 128];
        let begin = if self.settings.format == Format::Cooked {
            frame[0] = 0x08;
            20
        } else {
            frame[12] = 0x08;
            ETHERNET
        };
        let blocks = segment.sack.iter().filter(|block| block.1 > block.0).count();
        let options = if segment.flags & SYN != 0 { 20 } else { TIMESTAMPS + if blocks > 0 { 4 + 8 * blocks } else { 0 } };
        let ip_len = IP + TCP + options + segment.len as usize;
        let (client, server) = (([10, 0, 0, 0], flow.number), ([172, 16, 0, 0], flow.number / 50_000));
        let host = |(net, number): ([u8; 4], u32)| (u32::from_be_bytes(net) + number % (1 << 20)).to_be_bytes();
        let ports = ((1024 + flow.number % 50_000) as u16, 443u16);
        let (src, dst, ports) =
            if segment.forward { (host(client), host(server), ports) } else { (host(server), host(client), (ports.1, ports.0)) };
        let ip = &mut frame[begin..];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&(ip_len as u16).to_be_bytes());
        if segment.forward {
            flow.ip_id = flow.ip_id.wrapping_add(1);
            ip[4..6].copy_from_slice(&flow.ip_id.to_be_bytes());
        }
        (ip[6], ip[8], ip[9]) = (0x40, 64, 6);
        ip[12..16].copy_from_slice(&src);
        ip[16..20].copy_from_slice(&dst);
        // Numbers of segments become sequence numbers; the SYN stands one octet before the first.
        let position = |number: u32| if number == u32::MAX { 999 } else { 1000u32.wrapping_add(number.wrapping_mul(MSS)) };
        let tcp = &mut ip[IP..];
        tcp[0..2].copy_from_slice(&ports.0.to_be_bytes());
        tcp[2..4].copy_from_slice(&ports.1.to_be_bytes());
        let seq = if segment.forward { position(segment.seq) } else { 5000 - u32::from(segment.flags & SYN != 0) };
        let ack = if segment.forward { 5000 } else { position(segment.ack) };
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&ack.to_be_bytes());
        tcp[12] = (((TCP + options) / 4) << 4) as u8;
        tcp[13] = segment.flags;
        tcp[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        let clock = (self.at / 1_000_000) as u32;
        let mut at = TCP;
        if segment.flags & SYN != 0 {
            tcp[at..at + 8].copy_from_slice(&[2, 4, 5, 180, 3, 3, 7, 1]);
            at += 8;
            tcp[at..at + 2].copy_from_slice(&[4, 2]);
        } else {
            tcp[at..at + 2].copy_from_slice(&[1, 1]);
        }
        at += 2;
        tcp[at..at + 2].copy_from_slice(&[8, 10]);
        tcp[at + 2..at + 6].copy_from_slice(&clock.to_be_bytes());
        tcp[at + 6..at + 10].copy_from_slice(&clock.wrapping_sub(1).to_be_bytes());
        at += 10;
        if blocks > 0 {
            tcp[at..at + 4].copy_from_slice(&[1, 1, 5, (2 + 8 * blocks) as u8]);
            at += 4;
            for block in segment.sack.iter().take(blocks) {
                tcp[at..at + 4].copy_from_slice(&position(block.0).to_be_bytes());
                tcp[at + 4..at + 8].copy_from_slice(&position(block.1).to_be_bytes());
                at += 8;
            }
        }
        // The payload is all zeros and adds nothing.
        let addresses = Addresses::V4 { src: src.into(), dst: dst.into() };
        let checksum = addresses.pseudo_header(ip_len - IP).with(&tcp[..at]).finish();
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        let original = begin + ip_len;
        self.record(&frame, original);
    }

    fn record(&mut self, frame: &[u8; 128], original: usize) {
        let captured = original.min(self.settings.snap);
        let padding = if self.settings.format == Format::Pcapng { captured.next_multiple_of(4) - captured } else { 0 };
        let (captured_len, original_len) = (captured as u32, original as u32);
        let size = 32 + (captured + padding) as u32;
        let file = &mut self.file;
        let mut words = |words: &[u32]| words.iter().for_each(|word| file.extend(word.to_le_bytes()));
        if self.settings.format == Format::Pcapng {
            words(&[6, size, 0, (self.at >> 32) as u32, self.at as u32, captured_len, original_len]);
        } else {
            let (seconds, micros) = ((self.at / 1_000_000_000) as u32, (self.at % 1_000_000_000 / 1000) as u32);
            words(&[seconds, micros, captured_len, original_len]);
        }
        file.extend(&frame[..captured.min(frame.len())]);
        file.resize(file.len() + captured.saturating_sub(frame.len()) + padding, 0);
        if self.settings.format == Format::Pcapng {
            file.extend(size.to_le_bytes());
        }
    }
}

impl Read for Traffic {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.read == self.file.len() {
            self.file.clear();
            self.read = 0;
        }
        while self.file.len() < 1 << 16 && self.made < self.settings.packets {
            self.tick();
        }
        let len = out.len().min(self.file.len() - self.read);
        out[..len].copy_from_slice(&self.file[self.read..self.read + len]);
        self.read += len;
        Ok(len)
    }
}
