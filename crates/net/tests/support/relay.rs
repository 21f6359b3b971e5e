//! A bad path between two TUN devices: it loses, damages, duplicates, delays, reorders and marks, from a seed.

use super::capture::Capture;
use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use whyloss_net::Tun;
use whyloss_transport::segment::Flags;
use whyloss_transport::wire;

/// How one direction impairs packets. Probabilities are per packet and independent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Impairment {
    /// Probability that a packet disappears.
    pub lose: f64,
    /// Probability that one bit of a packet, anywhere from the first octet of the IP header on, is flipped.
    ///
    /// One bit and no more: the Internet checksum finds every single flipped bit, but not every pair (two flips of opposite sense in
    /// the same column cancel), and with such pairs a byte-exact transfer is not TCP's to promise.
    pub flip: f64,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet is held back for up to `hold` more.
    pub reorder: f64,
    /// The longest that a reordered packet is held back.
    pub hold: Duration,
    /// Probability that an ECN-capable packet is marked.
    pub mark: f64,
    /// Delay of every packet.
    pub delay: Duration,
    /// Packets of more octets disappear, and nobody says so.
    pub swallow_beyond: Option<usize>,
}

/// What a direction did. Packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub arrived: u64,
    pub lost: u64,
    pub flipped: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub marked: u64,
}

/// A running relay; stops when dropped. With `WHYLOSS_CAPTURE` set it leaves captures of ingress and egress.
#[derive(Debug)]
pub struct Relay {
    stop: Arc<AtomicBool>,
    permits: Arc<AtomicU64>,
    thread: Option<JoinHandle<[Counts; 2]>>,
}

impl Relay {
    /// Connects `a` and `b`; `impairments[0]` is for packets from `a` to `b`.
    pub fn start(a: Tun, b: Tun, impairments: [Impairment; 2], seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let permits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&permits);
        let mut captures = ["before", "behind"].map(Capture::from_environment);
        let thread = std::thread::spawn(move || {
            let mut directions = [Direction::new(impairments[0], seed, 0), Direction::new(impairments[1], seed, 1)];
            let devices = [a, b];
            let mut buffer = vec![0; 1 << 16];
            while !told.load(Ordering::Relaxed) {
                forward(&devices, &mut directions, &mut buffer, &mut captures, &counted);
            }
            directions.map(|direction| direction.counts)
        });
        Self { stop, permits, thread: Some(thread) }
    }

    /// How many SYN-ACKs from `a` have permitted reports so far.
    pub fn permits(&self) -> u64 {
        self.permits.load(Ordering::Relaxed)
    }

    /// Stops and says what each direction did.
    pub fn stop(mut self) -> [Counts; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("a relay stops once").join().expect("the relay's thread")
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One round: wait, take what has arrived, pass on what is due.
fn forward(
    devices: &[Tun; 2],
    directions: &mut [Direction; 2],
    buffer: &mut [u8],
    [before, behind]: &mut [Option<Capture>; 2],
    permits: &AtomicU64,
) {
    let due = directions.iter().filter_map(Direction::due).min();
    let wait =
        due.map_or(Duration::from_millis(20), |due| due.saturating_duration_since(Instant::now()).min(Duration::from_millis(20)));
    let mut waiting = [PollFd::new(devices[0].as_fd(), PollFlags::POLLIN), PollFd::new(devices[1].as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut waiting, Some(TimeSpec::from_duration(wait)), None) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => panic!("waiting for packets: {error}"),
    }
    for (from, direction) in directions.iter_mut().enumerate() {
        // Bounded, so that a flood in one direction does not hold up the other.
        for _ in 0..256 {
            let Some(length) = devices[from].receive(buffer).expect("reading a TUN device") else { break };
            if let Some(capture) = before {
                capture.add(&buffer[..length]);
            }
            if from == 0 && permits_reports(&buffer[..length]) {
                permits.fetch_add(1, Ordering::Relaxed);
            }
            direction.take(&buffer[..length]);
        }
        let now = Instant::now();
        while direction.due().is_some_and(|due| due <= now) {
            let Reverse((_, _, packet)) = direction.held.pop().expect("just looked");
            if let Some(capture) = behind {
                capture.add(&packet);
            }
            devices[1 - from].send(&packet).expect("writing a TUN device");
        }
    }
}

/// Whether a packet is a SYN-ACK that permits reports.
fn permits_reports(packet: &[u8]) -> bool {
    // Both headers with all of their options take no more.
    if packet.len() > 120 {
        return false;
    }
    let Ok(read) = wire::parse(&Bytes::copy_from_slice(packet)) else { return false };
    let permitted = read.segment.options.rare.is_some_and(|rare| rare.reports_permitted);
    permitted && read.segment.flags.contains(Flags::SYN | Flags::ACK)
}

struct Direction {
    impairment: Impairment,
    random: Pcg64Mcg,
    /// Packets by the time they are due, and by order of arrival among equals.
    held: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>>,
    counts: Counts,
}

impl Direction {
    fn new(impairment: Impairment, seed: u64, side: u64) -> Self {
        Self { impairment, random: Pcg64Mcg::seed_from_u64(seed * 2 + side), held: BinaryHeap::new(), counts: Counts::default() }
    }

    fn due(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse((due, _, _))| *due)
    }

    fn take(&mut self, packet: &[u8]) {
        let Impairment { lose, flip, duplicate, reorder, hold, mark, delay, swallow_beyond } = self.impairment;
        self.counts.arrived += 1;
        if self.random.random_bool(lose) || swallow_beyond.is_some_and(|most| packet.len() > most) {
            self.counts.lost += 1;
            return;
        }
        let mut packet = packet.to_vec();
        if self.random.random_bool(mark) && mark_congestion(&mut packet) {
            self.counts.marked += 1;
        }
        let copies = 1 + u64::from(self.random.random_bool(duplicate));
        self.counts.duplicated += copies - 1;
        if self.random.random_bool(flip) {
            self.counts.flipped += 1;
            let bit = self.random.random_range(0..packet.len() * 8);
            packet[bit / 8] ^= 1 << (bit % 8);
        }
        let mut due = Instant::now() + delay;
        if self.random.random_bool(reorder) {
            self.counts.reordered += 1;
            due += hold.mul_f64(self.random.random::<f64>());
        }
        for copy in 0..copies {
            self.held.push(Reverse((due, self.counts.arrived * 2 + copy, packet.clone())));
        }
    }
}

/// Sets CE on an ECN-capable packet (RFC 3168, 5); whether it was one.
fn mark_congestion(packet: &mut [u8]) -> bool {
    match packet[0] >> 4 {
        4 if packet[1] & 3 != 0 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= 3;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            // RFC 1624, eq. 3: HC' = ~(~HC + ~m + m').
            let mut sum = u32::from(!u16::from_be_bytes([packet[10], packet[11]])) + u32::from(!before) + u32::from(after);
            sum = (sum & 0xffff) + (sum >> 16);
            sum = (sum & 0xffff) + (sum >> 16);
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            true
        }
        6 if packet[1] & 0x30 != 0 => {
            packet[1] |= 0x30;
            true
        }
        _ => false,
    }
}
