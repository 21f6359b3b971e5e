//! The event set.
//!
//! Hierarchical timing wheels (Varghese & Lauck 1987) that keep the exact order: an event waits in a slot as coarse as it is far away,
//! moves to finer slots as its time comes near, and is sorted in with the few others of its finest slot. That costs the same however
//! many events wait. An event is `(time, order, target)` packed into one 128-bit number, so that an order is a single comparison. Each
//! target has few events waiting (a link direction one, an endpoint about one), however many packets are under way.

use crate::address::{AssistedId, DirectionId, EndpointId, SourceId, StationId, TransmissionId};
use whyloss_transport::Instant;

const TARGET_BITS: u32 = 25;
const ORDER_BITS: u32 = 39;
const INDEX_BITS: u32 = 22;

/// The most targets of one kind.
pub(crate) const MAX_TARGETS: usize = 1 << INDEX_BITS;

/// What an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The first packet of a link direction arrives at its end.
    Direction(DirectionId),
    /// The earliest timer of an endpoint expires.
    Timer(EndpointId),
    /// A datagram source's next packet.
    Source(SourceId),
    /// A packet has spent the sending overhead of its host.
    Egress(EndpointId),
    /// A radio station's timer.
    Station(StationId),
    /// Something is due at the agents of a router.
    Router(AssistedId),
    /// A radio transmission reaches a station, or has left it.
    Transmission(TransmissionId),
    /// A host has moved, or what one agent has handed over comes to another.
    Moves,
}

/// A place in the order of events: first by time, then by the order number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event(u128);

impl Event {
    pub fn new(at: u64, order: u64, target: Target) -> Self {
        let (kind, index) = match target {
            Target::Direction(id) => (0, id.index()),
            Target::Timer(id) => (1, id.index()),
            Target::Source(id) => (2, id.index()),
            Target::Egress(id) => (3, id.index()),
            Target::Station(id) => (4, id.index()),
            Target::Transmission(id) => (5, id.index()),
            Target::Router(id) => (6, id.index()),
            Target::Moves => (7, 0),
        };
        let low = order << TARGET_BITS | (kind << INDEX_BITS | index) as u64;
        Self(u128::from(at) << 64 | u128::from(low))
    }

    pub const fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The direction of a link that it concerns, as nearly all do; of them the kind is 0.
    #[inline]
    pub const fn direction(self) -> Option<DirectionId> {
        let low = self.0 as u32 & ((1 << TARGET_BITS) - 1);
        if low < 1 << INDEX_BITS {
            Some(DirectionId::new(low as usize))
        } else {
            None
        }
    }

    pub const fn target(self) -> Target {
        let low = self.0 as u32;
        let index = (low & ((1 << INDEX_BITS) - 1)) as usize;
        match low >> INDEX_BITS & 7 {
            0 => Target::Direction(DirectionId::new(index)),
            1 => Target::Timer(EndpointId::new(index)),
            2 => Target::Source(SourceId::new(index)),
            3 => Target::Egress(EndpointId::new(index)),
            4 => Target::Station(StationId::new(index)),
            5 => Target::Transmission(TransmissionId::new(index)),
            6 => Target::Router(AssistedId::new(index)),
            _ => Target::Moves,
        }
    }
}

/// The width of the finest slots: 2^13 ns. Some ten events fall into one where many flows keep a fast link busy.
const FINEST_BITS: u32 = 13;
/// Each level has 2^6 slots, as many as a machine word has bits.
const LEVEL_BITS: u32 = 6;
const SLOTS: usize = 1 << LEVEL_BITS;
const LEVELS: usize = (u64::BITS - FINEST_BITS).div_ceil(LEVEL_BITS) as usize;

/// So many events of a slot of the second wheel are sorted in where they are, without a detour over finer slots.
const FEW: usize = 8;

/// So many events are announced together. Memory is slow but can be asked for many things at once.
const ANNOUNCED: usize = 32;

/// All events to come.
#[derive(Debug)]
pub(crate) struct Events {
    /// The events of the current slot, the next one last.
    current: Vec<Event>,
    /// The number of the finest slot that is current, or the last of those, counted from time 0.
    tick: u64,
    /// Slots of the wheels, coarser and coarser. An event stands in the wheel of the highest digit in which its tick differs from the
    /// current one, so that all events of a wheel come before those of the next coarser one.
    slots: Box<[[Vec<Event>; SLOTS]; LEVELS]>,
    /// One bit for each slot of a wheel that holds something.
    occupied: [u64; LEVELS],
    order: u64,
    /// Whether somebody wants to know of events before they are taken.
    announces: bool,
    /// As many of the current events, the last ones to come, have not been announced.
    unannounced: usize,
    /// What lay in the finest slots up to this one when the last events were announced has been announced with them.
    announced: u64,
}

impl Default for Events {
    fn default() -> Self {
        let slots = Box::new([const { [const { Vec::new() }; SLOTS] }; LEVELS]);
        let occupied = [0; LEVELS];
        Self { current: Vec::new(), tick: 0, slots, occupied, order: 0, announces: false, unannounced: 0, announced: 0 }
    }
}

impl Events {
    /// A number for the order among events of one time: the one asked for first is first.
    #[inline]
    pub fn next_order(&mut self) -> u64 {
        self.order += 1;
        debug_assert!(self.order < 1 << ORDER_BITS);
        self.order
    }

    /// When the next event is due.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.fill();
        self.current.last().map(|event| Instant::from_nanos(event.at()))
    }

    /// From now on events are announced before they are taken.
    pub fn announce(&mut self) {
        self.announces = true;
    }

    /// Whether they are.
    pub const fn announces(&self) -> bool {
        self.announces
    }

    /// Whether [`refresh`](Self::refresh) has something to do.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.current.len() <= self.unannounced
    }

    /// Finds the events that come next. Returns whether some are to be announced.
    #[inline(never)]
    pub fn refresh(&mut self) -> bool {
        self.fill();
        self.announces && self.is_stale()
    }

    /// Announces the events that come next, about in their order. It is a hint: events that are pushed late come without it.
    pub fn news(&mut self, news: &mut Vec<Event>) {
        let current = &self.current[..self.unannounced.min(self.current.len())];
        let (later, next) = current.split_at(current.len().saturating_sub(ANNOUNCED));
        news.extend(next.iter().rev());
        self.unannounced = later.len();
        let mut slots = if later.is_empty() { self.occupied[0] } else { 0 };
        while slots != 0 && news.len() < ANNOUNCED {
            let slot = slots.trailing_zeros();
            slots &= slots - 1;
            news.extend(&self.slots[0][slot as usize]);
            self.announced = self.tick >> LEVEL_BITS << LEVEL_BITS | u64::from(slot);
        }
    }

    /// Takes the next event if it is due before `horizon`. Nothing may be stale.
    #[inline]
    pub fn take_before(&mut self, horizon: u64) -> Option<Event> {
        let next = *self.current.last()?;
        (next.at() < horizon).then(|| {
            self.current.pop();
            next
        })
    }

    /// Adds an event, not before the one that was taken last.
    #[inline]
    pub fn push(&mut self, event: Event) {
        let tick = event.at() >> FINEST_BITS;
        if tick <= self.tick {
            return self.push_current(event);
        }
        let level = (tick ^ self.tick).ilog2() / LEVEL_BITS;
        let slot = (tick >> (level * LEVEL_BITS)) as usize % SLOTS;
        self.occupied[level as usize] |= 1 << slot;
        let slot = &mut self.slots[level as usize][slot];
        if slot.len() == slot.capacity() {
            return push_growing(slot, event);
        }
        slot.push(event);
    }

    /// Adds an event that belongs among the current ones.
    #[inline(never)]
    fn push_current(&mut self, event: Event) {
        let place = self.current.iter().rposition(|other| other.0 > event.0).map_or(0, |place| place + 1);
        self.current.insert(place, event);
        // Below the mark, so that the mark moves: those above it have been announced, and no others.
        self.unannounced += usize::from(place < self.unannounced);
    }

    /// Makes the next slot that holds something the current one.
    fn fill(&mut self) {
        while self.current.is_empty() {
            let Some(level) = self.occupied.iter().position(|&slots| slots != 0) else { return };
            let slot = self.occupied[level].trailing_zeros();
            self.occupied[level] &= self.occupied[level] - 1;
            let shift = level as u32 * LEVEL_BITS;
            let coarser = shift + LEVEL_BITS;
            self.tick = self.tick >> coarser << coarser | u64::from(slot) << shift;
            let events = &mut self.slots[level][slot as usize];
            if level == 0 || events.len() == 1 || level == 1 && events.len() <= FEW {
                // They change places, so that the memory of both is used again.
                std::mem::swap(&mut self.current, events);
                let is_news = self.announces && self.tick > self.announced;
                self.unannounced = if is_news { self.current.len() } else { 0 };
                match &mut self.current[..] {
                    [only] => self.tick = only.at() >> FINEST_BITS,
                    several => {
                        // Most came in about the order of their times, and the next one is to stand last.
                        several.reverse();
                        several.sort_unstable_by(|one, other| other.cmp(one));
                        // What is added within the slot from now on belongs among these.
                        self.tick |= (1 << shift) - 1;
                    }
                }
                return;
            }
            // The slot keeps the memory that its events took, for those to come.
            let mut events = std::mem::take(events);
            for event in events.drain(..) {
                self.push(event);
            }
            self.slots[level][slot as usize] = events;
            // Those of the finest slot with which it begins are current now.
            self.unannounced = if self.announces { self.current.len() } else { 0 };
        }
    }
}

/// Adds an event to a slot that has never held so many.
#[cold]
fn push_growing(slot: &mut Vec<Event>, event: Event) {
    slot.push(event);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use std::collections::BTreeSet;

    #[test]
    fn an_event_gives_back_what_it_was_made_of() {
        for target in [
            Target::Direction(DirectionId::new(5)),
            Target::Timer(EndpointId::new(0)),
            Target::Source(SourceId::new(7)),
            Target::Egress(EndpointId::new(MAX_TARGETS - 1)),
            Target::Station(StationId::new(3)),
            Target::Transmission(TransmissionId::new(9)),
            Target::Router(AssistedId::new(4)),
        ] {
            let event = Event::new(u64::MAX - 1, (1 << ORDER_BITS) - 1, target);
            assert_eq!((event.at(), event.target()), (u64::MAX - 1, target));
        }
    }

    #[test]
    fn events_come_in_the_order_of_a_sorted_set() {
        in_the_order_of_a_sorted_set(false);
    }

    #[test]
    fn events_are_announced_and_come_in_the_same_order() {
        in_the_order_of_a_sorted_set(true);
    }

    fn in_the_order_of_a_sorted_set(announces: bool) {
        let mut stream = Stream::new(1, 0, "events", "test");
        let (mut events, mut model, mut now) = (Events::default(), BTreeSet::new(), 0);
        let mut news = Vec::new();
        if announces {
            events.announce();
        }
        for round in 0..200_000 {
            // More pushes than takes in the first half, fewer in the second.
            if stream.below(10) < if round < 100_000 { 6 } else { 4 } {
                // From the same nanosecond to a month away, each distance of two to one as likely; multiples of 100 collide often.
                let far = stream.below(52);
                let at = now + stream.below(1 << far);
                let at = if stream.below(2) == 0 { at } else { at.next_multiple_of(100) };
                let event = Event::new(at, events.next_order(), Target::Timer(EndpointId::new(0)));
                events.push(event);
                model.insert(event);
            } else {
                // A horizon at which the run pauses does not disturb what is pushed later.
                let far = stream.below(20);
                let horizon = now + stream.below(1 << far);
                let expected = model.first().copied().filter(|event| event.at() < horizon);
                if events.is_stale() && events.refresh() {
                    events.news(&mut news);
                    assert!(news.iter().all(|event| model.contains(event)), "nothing is announced that does not come");
                    news.clear();
                }
                assert_eq!(events.take_before(horizon), expected);
                if let Some(event) = expected {
                    model.remove(&event);
                    now = event.at();
                }
            }
        }
        while let Some(event) = model.pop_first() {
            assert_eq!(events.next_at(), Some(Instant::from_nanos(event.at())));
            assert_eq!(events.take_before(event.at()), None);
            assert_eq!(events.take_before(event.at() + 1), Some(event));
        }
        assert_eq!(events.next_at(), None);
    }

    #[test]
    fn what_waits_is_announced_once_before_it_is_taken() {
        let mut stream = Stream::new(1, 0, "events", "announced");
        // From crowded slots to empty ones.
        for span in [1 << 14, 1 << 20, 1 << 26, 1 << 40] {
            let mut events = Events::default();
            events.announce();
            for _ in 0..2_000 {
                // Behind the slot that is current from the start: its events come late.
                let at = (1 << FINEST_BITS) + stream.below(span);
                let event = Event::new(at, events.next_order(), Target::Timer(EndpointId::new(0)));
                events.push(event);
            }
            let (mut announced, mut news) = (BTreeSet::new(), Vec::new());
            for _ in 0..2_000 {
                if events.is_stale() && events.refresh() {
                    events.news(&mut news);
                    assert!(news.drain(..).all(|event| announced.insert(event)), "announced twice");
                }
                let event = events.take_before(u64::MAX).unwrap();
                assert!(announced.contains(&event), "{event:?} came unannounced");
            }
            assert_eq!(announced.len(), 2_000);
        }
    }

    #[test]
    fn events_that_come_late_leave_no_other_one_unannounced() {
        let mut stream = Stream::new(1, 0, "events", "late");
        let (mut events, mut waiting) = (Events::default(), BTreeSet::new());
        events.announce();
        for _ in 0..1_000 {
            let at = (1 << FINEST_BITS) + stream.below(1 << FINEST_BITS);
            let event = Event::new(at, events.next_order(), Target::Timer(EndpointId::new(0)));
            events.push(event);
            waiting.insert(event);
        }
        let (mut announced, mut news) = (BTreeSet::new(), Vec::new());
        while !waiting.is_empty() {
            if events.is_stale() && events.refresh() {
                events.news(&mut news);
                announced.extend(news.drain(..));
            }
            let event = events.take_before(u64::MAX).unwrap();
            assert!(!waiting.remove(&event) || announced.contains(&event), "{event:?} came unannounced");
            if stream.below(2) == 0 {
                // As the next packet of a busy link does.
                let order = events.next_order();
                events.push(Event::new(event.at() + stream.below(100), order, event.target()));
            }
        }
    }
}
