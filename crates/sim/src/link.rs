//! A wire in one direction: a drop-tail queue, a transmitter and a propagation delay.
//!
//! A queue in the order of arrival in front of a transmitter of constant rate leaves nothing to chance: the moment a packet enters,
//! the times of its transmission and of its arrival at the other end are known. So a packet costs one event, its arrival, and all
//! packets between the queue's tail and the link's end stand in one ring.

use crate::address::HostId;
use crate::packet::PacketId;
use crate::shape::{LinkSpec, QueueLimit};
use crate::traffic::Traffic;
use std::collections::VecDeque;
use whyloss_transport::BitRate;

/// A packet on a link.
#[derive(Debug)]
pub(crate) struct Entry {
    /// When it arrives at the other end.
    pub arrival: u64,
    /// When its transmission starts.
    pub start: u64,
    /// Order number of its arrival and number of the host that it goes to.
    order_and_host: u64,
    pub packet: PacketId,
    pub octets: u32,
}

impl Entry {
    const HOST_BITS: u32 = 24;

    /// Order number of its arrival.
    pub const fn order(&self) -> u64 {
        self.order_and_host >> Self::HOST_BITS
    }

    /// Number of the host that it goes to.
    pub const fn host(&self) -> HostId {
        HostId::new((self.order_and_host & ((1 << Self::HOST_BITS) - 1)) as usize)
    }
}

/// A wire in use, in one direction.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Wire {
    ring: VecDeque<Entry>,
    /// When the transmitter will have nothing to do.
    free_at: u64,
    /// Number of entries whose transmission has started, as of the last look.
    started: usize,
    transmitter: Transmitter,
    delay: u64,
    /// Octets of the entries whose transmission has not started.
    waiting_octets: u64,
    limit: QueueLimit,
}

/// Serialises packets at a rate without rounding drift; see [`BitRate::serialise`]. Remembers the last length, because most packets
/// of a direction have the same one and a division costs as much as the rest of a hop.
#[derive(Debug)]
pub(crate) struct Transmitter {
    rate: BitRate,
    carried: u64,
    octets: u32,
    span: u64,
    rest: u64,
}

impl Transmitter {
    pub const fn new(rate: BitRate) -> Self {
        Self { rate, carried: 0, octets: 0, span: 0, rest: 0 }
    }

    /// Nanoseconds that the next packet of `octets` octets takes.
    #[inline]
    pub fn serialise(&mut self, octets: u32) -> u64 {
        if octets != self.octets {
            self.measure(octets);
        }
        self.carried += self.rest;
        if self.carried >= self.rate.as_bps() {
            self.carried -= self.rate.as_bps();
            return self.span + 1;
        }
        self.span
    }

    /// Takes packets of another length.
    #[cold]
    fn measure(&mut self, octets: u32) {
        let (span, rest) = self.rate.serialise(u64::from(octets), 0);
        *self = Self { octets, span: span.as_nanos(), rest, ..*self };
    }
}

impl Wire {
    pub const fn new(spec: &LinkSpec) -> Self {
        Self {
            ring: VecDeque::new(),
            started: 0,
            waiting_octets: 0,
            free_at: 0,
            delay: spec.delay.as_nanos(),
            limit: spec.queue,
            transmitter: Transmitter::new(spec.rate),
        }
    }

    /// Packets and octets that wait at `now`. A packet whose transmission starts at this very moment does not wait any more.
    pub fn waiting(&mut self, now: u64) -> (u64, u64) {
        if self.free_at <= now {
            self.started = self.ring.len();
            self.waiting_octets = 0;
        }
        while let Some(entry) = self.ring.get(self.started).filter(|entry| entry.start <= now) {
            self.waiting_octets -= u64::from(entry.octets);
            self.started += 1;
        }
        ((self.ring.len() - self.started) as u64, self.waiting_octets)
    }

    /// Takes a packet that arrives at the queue at `now`. Refuses it if the queue is full; else returns its arrival at the other end if
    /// that is the wire's next event.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each packet comes here at each hop, and there is little to do")]
    pub fn offer(&mut self, traffic: &mut Traffic, now: u64, order: u64, load: Load) -> Result<Option<u64>, QueueFull> {
        let start = if self.free_at <= now {
            // All that is there has left the queue, and this packet does not wait either.
            self.started = self.ring.len() + 1;
            self.waiting_octets = 0;
            now
        } else if self.queue(traffic, now, load.octets) {
            self.free_at
        } else {
            return Err(QueueFull(load));
        };
        let Load { packet, host, octets } = load;
        let span = self.transmitter.serialise(octets);
        self.free_at = start + span;
        traffic.busy += span;
        let arrival = self.free_at + self.delay;
        let first = self.ring.is_empty();
        let order_and_host = order << Entry::HOST_BITS | host.index() as u64;
        self.ring.push_back(Entry { arrival, start, order_and_host, packet, octets });
        Ok(first.then_some(arrival))
    }

    /// A packet of so many octets comes while the transmitter is busy: takes note of it if there is room for it.
    fn queue(&mut self, traffic: &mut Traffic, now: u64, octets: u32) -> bool {
        let (packets, waiting) = self.waiting(now);
        if !self.limit.admits(packets, waiting, octets) {
            return false;
        }
        self.waiting_octets = waiting + u64::from(octets);
        traffic.note_queue(packets + 1, self.waiting_octets);
        traffic.note_wait(self.free_at - now, octets);
        true
    }

    /// As [`offer`](Self::offer), but the packet goes before all that waits.
    pub fn offer_first(&mut self, traffic: &mut Traffic, now: u64, order: u64, load: Load) -> Result<Option<u64>, QueueFull> {
        let (waiting, _) = self.waiting(now);
        let first = self.offer(traffic, now, order, load)?;
        if waiting == 0 {
            return Ok(first);
        }
        // It stands at the tail: the others let it pass.
        let Some(mut urgent) = self.ring.pop_back() else { return Ok(first) };
        let span = urgent.arrival - self.delay - urgent.start;
        let start = self.ring[self.started].start;
        traffic.take_wait(urgent.start - start, urgent.octets);
        (urgent.start, urgent.arrival) = (start, start + span + self.delay);
        for entry in self.ring.iter_mut().skip(self.started) {
            entry.start += span;
            entry.arrival += span;
            traffic.note_wait(span, entry.octets);
        }
        self.ring.insert(self.started, urgent);
        Ok(first)
    }

    /// Whether the queue has room for a packet at `now`.
    pub fn has_room(&mut self, now: u64, octets: u32) -> bool {
        let (packets, waiting) = self.waiting(now);
        self.free_at <= now || self.limit.admits(packets, waiting, octets)
    }

    /// Whether the queue has room for two packets of this length at `now`.
    pub fn has_room_for_two(&mut self, now: u64, octets: u32) -> bool {
        let (packets, waiting) = self.waiting(now);
        let (packets, waiting) = if self.free_at <= now { (0, 0) } else { (packets + 1, waiting + u64::from(octets)) };
        self.limit.admits(packets, waiting, octets)
    }

    /// How many octets could have been sent by `now` since there was nothing to do.
    pub fn idle_octets(&self, now: u64) -> f64 {
        let idle = now.saturating_sub(self.free_at);
        idle as f64 * self.transmitter.rate.as_bps() as f64 / 8e9
    }

    /// The packets that wait at `now`, the newest first, each with its place.
    pub fn waiting_packets(&mut self, now: u64) -> impl Iterator<Item = (usize, &PacketId)> + '_ {
        self.waiting(now);
        let started = self.started;
        self.ring.iter().enumerate().skip(started).rev().map(|(place, entry)| (place, &entry.packet))
    }

    /// Takes the packet in `place`, which waits at `now`, out of the queue; those behind it move up.
    pub fn remove(&mut self, traffic: &mut Traffic, now: u64, place: usize) -> Option<PacketId> {
        let gone = self.ring.remove(place)?;
        let span = gone.arrival - self.delay - gone.start;
        self.free_at -= span;
        self.waiting_octets -= u64::from(gone.octets);
        traffic.busy -= span;
        traffic.take_wait(gone.start - now, gone.octets);
        for entry in self.ring.iter_mut().skip(place) {
            entry.start -= span;
            entry.arrival -= span;
            traffic.take_wait(span, entry.octets);
        }
        Some(gone.packet)
    }

    /// The packet that came last, and when its transmission begins.
    pub fn newest(&self) -> Option<(u64, &PacketId)> {
        self.ring.back().map(|entry| (entry.start, &entry.packet))
    }

    /// Takes the packet that arrives at the other end, and the one that will arrive next.
    #[inline]
    pub fn arrive(&mut self) -> Option<(Entry, Option<&Entry>)> {
        let entry = self.ring.pop_front()?;
        if self.started > 0 {
            self.started -= 1;
        } else {
            self.waiting_octets -= u64::from(entry.octets);
        }
        Some((entry, self.ring.front()))
    }

    /// End of the transmission of a packet that arrives at `arrival`.
    pub const fn transmitted_at(&self, arrival: u64) -> u64 {
        arrival - self.delay
    }

    /// Reads in both of its cache lines; what, makes no sense.
    #[inline]
    pub fn touch(&self) -> u64 {
        self.ring.len() as u64 ^ self.free_at ^ self.delay
    }

    /// The packet that arrives next.
    pub fn next(&self) -> Option<&Entry> {
        self.ring.front()
    }

    /// The packet that came last.
    pub fn last(&self) -> Option<&Entry> {
        self.ring.back()
    }

    /// Packets in the queue, in transmission or on the way.
    pub fn under_way(&self) -> impl Iterator<Item = &Entry> {
        self.ring.iter()
    }

    /// The part of the time spent transmitting that lies beyond `now`.
    pub const fn busy_beyond(&self, now: u64) -> u64 {
        self.free_at.saturating_sub(now)
    }

    /// For each packet that has not begun its transmission by `now`, the waiting time beyond, and its octets.
    pub fn waiting_beyond(&self, now: u64) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.ring.iter().map(move |entry| (entry.start.saturating_sub(now), entry.octets))
    }
}

/// A packet that comes to a queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub packet: PacketId,
    /// The host that it goes to.
    pub host: HostId,
    /// Length with the IP header.
    pub octets: u32,
}

/// There is no room; the packet is given back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QueueFull(pub Load);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::EndpointId;
    use crate::packet::Packets;
    use whyloss_transport::{Duration, Instant, Segment};

    struct Tested(Wire, Traffic);

    fn load(octets: u32) -> Load {
        let origin = EndpointId::new(0);
        Load { packet: Packets::default().insert(Segment::default(), Instant::ZERO, origin, 0), host: HostId::new(0), octets }
    }

    impl Tested {
        fn new(bps: u64, queue: QueueLimit) -> Self {
            let delay = Duration::from_nanos(7);
            let spec = LinkSpec { rate: BitRate::from_bps(bps), delay, queue, ..LinkSpec::default() };
            Self(Wire::new(&spec), Traffic::default())
        }

        fn offer(&mut self, now: u64, octets: u32) -> Result<Option<u64>, QueueFull> {
            self.0.offer(&mut self.1, now, 0, load(octets))
        }
    }

    /// Offers packets of the given lengths at time 0; how many were taken.
    fn taken(queue: QueueLimit, lengths: &[u32]) -> usize {
        let mut wire = Tested::new(1_000_000, queue);
        lengths.iter().filter(|&&octets| wire.offer(0, octets).is_ok()).count()
    }

    #[test]
    fn serialisation_does_not_drift() {
        let mut transmitter = Transmitter::new(BitRate::from_bps(3_000_001));
        // Two lengths in turn, so that the remembered one changes all the time.
        let octets = |n: u32| 40 + 2 * (n % 2);
        let time: u64 = (0..3_000_001).map(|n| transmitter.serialise(octets(n))).sum();
        let sum: u64 = (0..3_000_001).map(|n| u64::from(octets(n))).sum();
        assert_eq!(time, sum * 8_000_000_000 / 3_000_001);
    }

    #[test]
    fn the_packet_in_transmission_does_not_count() {
        assert_eq!(taken(QueueLimit::Packets(3), &[100; 10]), 4);
        assert_eq!(taken(QueueLimit::Octets(250), &[100; 10]), 3);
        // 1000 in transmission; 200 wait; 100 do not fit, 50 do, 1 does not.
        assert_eq!(taken(QueueLimit::Octets(250), &[1000, 200, 100, 50, 1]), 3);
        assert_eq!(taken(QueueLimit::Unlimited, &[100; 10]), 10);
    }

    #[test]
    fn a_queue_empties_at_its_rate() {
        // 1000 octets take 8 ms at 1 Mbit/s.
        let mut wire = Tested::new(1_000_000, QueueLimit::Packets(2));
        let ms = 1_000_000;
        assert_eq!(wire.offer(0, 1000), Ok(Some(8 * ms + 7)));
        assert_eq!(wire.offer(0, 1000), Ok(None));
        assert_eq!(wire.offer(0, 1000), Ok(None));
        assert_eq!(wire.0.waiting(0), (2, 2000));
        assert_eq!(wire.offer(8 * ms - 1, 1000), Err(QueueFull(load(1000))));
        assert_eq!(wire.0.waiting(8 * ms), (1, 1000));
        assert_eq!(wire.offer(8 * ms, 500), Ok(None));
        let arrivals: Vec<_> = std::iter::from_fn(|| wire.0.arrive().map(|(entry, _)| entry.arrival)).collect();
        assert_eq!(arrivals, [8 * ms + 7, 16 * ms + 7, 24 * ms + 7, 28 * ms + 7]);
        assert_eq!(wire.0.waiting(28 * ms), (0, 0));
        // Waiting: 8 + 16 + 16 ms of 28.
        assert_eq!(wire.1.waited, 40 * u128::from(ms));
        assert_eq!((wire.1.max_packets, wire.1.max_octets, wire.1.busy), (2, 2000, 28 * ms));
    }

    #[test]
    fn what_is_taken_out_lets_the_others_move_up() {
        let ms = 1_000_000;
        let queue = QueueLimit::Packets(3);
        let (mut with, mut without) = (Tested::new(1_000_000, queue), Tested::new(1_000_000, queue));
        for octets in [1000, 1000, 500, 250] {
            assert!(with.offer(0, octets).is_ok());
        }
        for octets in [1000, 500, 250] {
            assert!(without.offer(0, octets).is_ok());
        }
        assert!(!with.0.has_room(3 * ms, 100));
        let places: Vec<_> = with.0.waiting_packets(3 * ms).map(|(place, _)| place).collect();
        assert_eq!(places, [3, 2, 1], "the first is in transmission");
        let Tested(wire, traffic) = &mut with;
        assert!(wire.remove(traffic, 3 * ms, 1).is_some());
        assert!(wire.has_room(3 * ms, 100));
        assert_eq!(with.0.waiting(3 * ms), (2, 750));
        // What has gone has waited for 3 ms.
        assert_eq!((with.1.waited, with.1.busy), (without.1.waited + 3 * u128::from(ms), without.1.busy));
        let arrivals = |Tested(wire, _): &mut Tested| -> Vec<_> {
            std::iter::from_fn(|| wire.arrive().map(|(entry, _)| (entry.start, entry.arrival))).collect()
        };
        assert_eq!(with.offer(3 * ms, 100), without.offer(3 * ms, 100));
        assert_eq!(arrivals(&mut with), arrivals(&mut without));
    }

    #[test]
    fn what_is_urgent_passes_what_waits() {
        let ms = 1_000_000;
        let queue = QueueLimit::Packets(3);
        let (mut with, mut without) = (Tested::new(1_000_000, queue), Tested::new(1_000_000, queue));
        for octets in [1000, 1000, 500] {
            assert!(with.offer(0, octets).is_ok());
        }
        // The same packets in the order in which they are to leave.
        for octets in [1000, 250, 1000, 500] {
            assert!(without.offer(0, octets).is_ok());
        }
        let Tested(wire, traffic) = &mut with;
        assert_eq!(wire.offer_first(traffic, 3 * ms, 0, load(250)), Ok(None));
        assert_eq!(wire.offer_first(traffic, 3 * ms, 0, load(250)), Err(QueueFull(load(250))));
        assert_eq!((with.0.waiting(3 * ms), without.0.waiting(3 * ms)), ((3, 1750), (3, 1750)));
        // It has not waited for the first 3 ms.
        assert_eq!((with.1.waited, with.1.busy), (without.1.waited - 3 * u128::from(ms), without.1.busy));
        let arrivals = |Tested(wire, _): &mut Tested| -> Vec<_> {
            std::iter::from_fn(|| wire.arrive().map(|(entry, _)| (entry.start, entry.arrival, entry.octets))).collect()
        };
        assert_eq!(arrivals(&mut with), arrivals(&mut without));
        // Nobody to pass.
        let Tested(wire, traffic) = &mut with;
        assert_eq!(wire.offer_first(traffic, 100 * ms, 0, load(500)), Ok(Some(104 * ms + 7)));
        assert_eq!(wire.offer_first(traffic, 101 * ms, 0, load(500)), Ok(None));
        assert_eq!(arrivals(&mut with), [(100 * ms, 104 * ms + 7, 500), (104 * ms, 108 * ms + 7, 500)]);
    }

    #[test]
    fn there_is_room_for_two_until_one_place_is_left() {
        let mut wire = Tested::new(1_000_000, QueueLimit::Packets(2));
        let mut room = Vec::new();
        for _ in 0..4 {
            room.push(wire.0.has_room_for_two(0, 100));
            let _ = wire.offer(0, 100);
        }
        assert_eq!(room, [true, true, false, false]);
    }

    #[test]
    fn an_idle_link_starts_at_once() {
        let mut wire = Tested::new(8_000_000_000, QueueLimit::Packets(1));
        for at in [0, 100, 200] {
            assert_eq!(wire.offer(at, 100), Ok(Some(at + 107)));
            assert_eq!(wire.0.arrive().map(|(entry, next)| (entry.start, next.is_none())), Some((at, true)));
        }
    }
}
