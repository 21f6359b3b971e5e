//! Captures that are being taken, and where they stand.

use super::comment::{Damage, Note};
use super::file::{Capture, Captured};
use super::journeys::{Ended, Journeys, Sending};
use crate::address::{DirectionId, LinkId, NodeId};
use crate::random::Stream;
use std::collections::VecDeque;
use std::io::{self, Write};
use whyloss_transport::tcp::RetransmissionTrigger;

/// Records of a capture that wait for the fate of their packets. Of more, the oldest is written without it.
const MAX_HELD: usize = 1 << 18;
/// Octets of such records.
const MAX_HELD_OCTETS: usize = 256 << 20;

/// A capture: where it is taken, and how well.
pub struct CaptureSpec {
    /// What messages call it.
    pub name: String,
    /// The host or router at which it is taken. Packets that leave it pass before they come to the queue of their link; packets that come to it
    /// pass when they arrive, damaged or not.
    pub node: NodeId,
    /// The link of that node which it watches, in both directions. Without one a host has all its links watched; at a router packets are seen
    /// once, as they come to it.
    pub link: Option<LinkId>,
    /// Packets that leave the host are seen when their transmission begins: behind the queue of their link, and not if it refuses them.
    pub behind_queue: bool,
    /// Octets that are kept of each packet; 0: all.
    pub snaplen: u32,
    /// Decimal digits of a second in its times: 6 for microseconds; 9 at most.
    pub digits: u8,
    /// The probability with which it misses a packet, independently of all others.
    pub holes: f64,
    /// Where the file goes.
    pub out: Box<dyn Write + Send>,
}

/// Where on a direction of a link a packet is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// Where it comes to the queue.
    Queue,
    /// Where its transmission begins.
    Transmission,
    /// Where it comes out.
    Exit,
}

/// A direction of a link at which a capture watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Vantage {
    pub direction: DirectionId,
    /// The number of its interface in the capture.
    pub interface: u32,
    pub point: Point,
}

/// What a capture sees of a packet.
#[derive(Debug)]
pub(crate) struct Seen {
    pub at: u64,
    /// The number of its journey.
    pub journey: u32,
    /// The packet as it is.
    pub octets: Vec<u8>,
    /// The direction that damaged it last, the number of flipped bits, and the first of them.
    pub damage: Option<(DirectionId, u32, u32)>,
}

/// A record that waits.
#[derive(Debug)]
struct Held {
    interface: u32,
    inbound: bool,
    original_len: u32,
    seen: Seen,
}

/// A capture under way.
#[derive(Debug)]
struct Tap {
    file: Capture,
    snaplen: u32,
    holes: f64,
    stream: Stream,
    /// For each interface, packets that passed and that were missed.
    counts: Vec<(u64, u64)>,
    held: VecDeque<Held>,
    held_octets: usize,
}

/// All captures of a network.
#[derive(Debug)]
pub(crate) struct Taps {
    journeys: Journeys,
    all: Vec<Tap>,
    /// For each point, and there for each direction, captures and their interfaces that see what passes.
    watching: [Vec<Vec<(usize, u32)>>; 3],
    /// For each direction, when the transmission began that was seen last.
    begun: Vec<u64>,
    /// Names of the directions.
    links: Vec<String>,
    /// Why the packet that leaves next was sent again.
    announced: Option<RetransmissionTrigger>,
}

impl Taps {
    /// No capture yet, in a network with so many endpoints and with directions of these names.
    pub fn new(links: Vec<String>) -> Self {
        let watching = std::array::from_fn(|_| vec![Vec::new(); links.len()]);
        let begun = vec![u64::MAX; links.len()];
        Self { journeys: Journeys::default(), all: Vec::new(), watching, begun, links, announced: None }
    }

    /// The network has so many endpoints.
    pub fn begin(&mut self, endpoints: usize) {
        self.journeys = Journeys::new(endpoints);
    }

    /// Begins a capture that watches at `vantages`, with interfaces of these names; `stream` decides what it misses.
    pub fn add(&mut self, spec: CaptureSpec, interfaces: &[&str], vantages: &[Vantage], stream: Stream) -> io::Result<()> {
        let CaptureSpec { name, snaplen, digits, holes, out, .. } = spec;
        let file = Capture::new(name, interfaces, snaplen, digits, out)?;
        for vantage in vantages {
            let point = &mut self.watching[vantage.point as usize];
            point[vantage.direction.index()].push((self.all.len(), vantage.interface));
        }
        let counts = vec![(0, 0); interfaces.len()];
        self.all.push(Tap { file, snaplen, holes, stream, counts, held: VecDeque::new(), held_octets: 0 });
        Ok(())
    }

    /// The next packet that leaves is sent again, and why.
    pub fn announce(&mut self, trigger: Option<RetransmissionTrigger>) {
        self.announced = trigger;
    }

    /// A packet leaves. Returns the number of its journey.
    pub fn sent(&mut self, sending: Sending) -> u32 {
        self.journeys.begin(Sending { trigger: self.announced.take(), ..sending })
    }

    /// A link has made a copy of a packet. Returns the number of its journey.
    pub fn copied(&mut self, journey: u32) -> u32 {
        self.journeys.copy(journey)
    }

    /// A packet has come to its end.
    pub fn ended(&mut self, journey: u32, now: u64, how: Ended) {
        self.journeys.end(journey, now, how);
        let Self { journeys, all, links, .. } = self;
        for tap in all {
            while tap.held.front().is_some_and(|oldest| journeys.is_settled(oldest.seen.journey)) {
                tap.write_oldest(journeys, links, false);
            }
        }
    }

    /// Whether anybody sees what passes there.
    pub fn watches(&self, direction: DirectionId, point: Point) -> bool {
        !self.at(direction, point).is_empty()
    }

    /// A transmission began at `at`. Returns whether it is another one than the last.
    pub fn begins(&mut self, direction: DirectionId, at: u64) -> bool {
        std::mem::replace(&mut self.begun[direction.index()], at) != at
    }

    fn at(&self, direction: DirectionId, point: Point) -> &[(usize, u32)] {
        &self.watching[point as usize][direction.index()]
    }

    /// A packet passes.
    pub fn see(&mut self, direction: DirectionId, point: Point, seen: &Seen) {
        for index in 0..self.at(direction, point).len() {
            let (tap, interface) = self.at(direction, point)[index];
            let Self { journeys, all, links, .. } = self;
            all[tap].see(journeys, links, interface, point == Point::Exit, seen);
        }
    }

    /// Writes what is left, and brings everything to its destination; the error with the name of its capture.
    pub fn finish(&mut self, now: u64) -> Result<(), (String, io::Error)> {
        let Self { journeys, all, links, .. } = self;
        for tap in all {
            while !tap.held.is_empty() {
                tap.write_oldest(journeys, links, true);
            }
            for (interface, (passed, missed)) in tap.counts.iter().enumerate() {
                tap.file.write_statistics(interface as u32, now, *passed, *missed);
            }
            tap.file.finish().map_err(|error| (tap.file.name.clone(), error))?;
        }
        Ok(())
    }
}

impl Tap {
    fn see(&mut self, journeys: &mut Journeys, links: &[String], interface: u32, inbound: bool, seen: &Seen) {
        let (passed, missed) = &mut self.counts[interface as usize];
        *passed += 1;
        if self.holes > 0.0 && self.stream.unit() < self.holes {
            *missed += 1;
            return;
        }
        let len = seen.octets.len();
        let kept = if self.snaplen == 0 { len } else { len.min(self.snaplen as usize) };
        let (octets, damage) = (seen.octets[..kept].to_vec(), seen.damage);
        journeys.hold(seen.journey);
        self.held_octets += kept;
        let seen = Seen { octets, damage, ..*seen };
        // One that waits in a queue is known before it passes.
        let place = self.held.iter().rposition(|held| held.seen.at <= seen.at).map_or(0, |last| last + 1);
        self.held.insert(place, Held { interface, inbound, original_len: len as u32, seen });
        while self.held.len() > MAX_HELD || self.held_octets > MAX_HELD_OCTETS {
            self.write_oldest(journeys, links, false);
        }
    }

    fn write_oldest(&mut self, journeys: &mut Journeys, links: &[String], over: bool) {
        let Some(Held { interface, inbound, original_len, seen }) = self.held.pop_front() else { return };
        self.held_octets -= seen.octets.len();
        let damage = seen.damage.map(|(direction, bits, first)| Damage { link: &links[direction.index()], bits, first });
        let note = Note { damage, ..journeys.release(seen.journey, links, over) };
        let comment = note.to_string();
        let (at, octets) = (seen.at, &seen.octets[..]);
        self.file.write(&Captured { interface, at, octets, original_len, inbound: Some(inbound), comment: Some(&comment) });
    }
}
