//! The event set: what happens next.
//!
//! A 4-ary heap of `(time, order, target)` packed into one 128-bit number, so that an order is a single comparison and four children
//! fill one cache line. Each target has few events waiting (a link direction one, an endpoint about one), so the heap stays as small
//! as the network, however many packets are under way.

use whyloss_transport::Instant;

const TARGET_BITS: u32 = 24;
const ORDER_BITS: u32 = 40;
const INDEX_BITS: u32 = 22;

/// The most targets of one kind.
pub(crate) const MAX_TARGETS: usize = 1 << INDEX_BITS;

/// What an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The first packet of a link direction arrives at its end.
    Direction(u32),
    /// An endpoint's timer.
    Timer(u32),
    /// A datagram source's next packet.
    Source(u32),
    /// A packet leaves the sending overhead of a host.
    Outlet(u32),
}

/// A place in the order of events: first by time, then by the order number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event(u128);

impl Event {
    pub fn new(at: u64, order: u64, target: Target) -> Self {
        let (kind, index) = match target {
            Target::Direction(index) => (0, index),
            Target::Timer(index) => (1, index),
            Target::Source(index) => (2, index),
            Target::Outlet(index) => (3, index),
        };
        let low = order << TARGET_BITS | u64::from(kind << INDEX_BITS | index);
        Self(u128::from(at) << 64 | u128::from(low))
    }

    pub const fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    pub const fn target(self) -> Target {
        let low = self.0 as u32;
        let index = low & ((1 << INDEX_BITS) - 1);
        match low >> INDEX_BITS & 3 {
            0 => Target::Direction(index),
            1 => Target::Timer(index),
            2 => Target::Source(index),
            _ => Target::Outlet(index),
        }
    }
}

/// All events to come.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: Vec<Event>,
    /// The first place of the heap holds an event that has been taken. Most events bring about another one, which then takes this
    /// place at the cost of one pass through the heap instead of two.
    vacant: bool,
    order: u64,
}

impl Events {
    /// A number for the order among events of one time: the one asked for first is first.
    pub fn next_order(&mut self) -> u64 {
        self.order += 1;
        debug_assert!(self.order < 1 << ORDER_BITS);
        self.order
    }

    /// When the next event is due.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.settle();
        self.heap.first().map(|event| Instant::from_nanos(event.at()))
    }

    /// Takes the next event if it is due before `horizon`.
    pub fn take_before(&mut self, horizon: u64) -> Option<Event> {
        self.settle();
        let first = *self.heap.first()?;
        if first.at() >= horizon {
            return None;
        }
        self.vacant = true;
        Some(first)
    }

    pub fn push(&mut self, event: Event) {
        if self.vacant {
            self.vacant = false;
            self.sift_down(event);
        } else {
            self.heap.push(event);
            self.sift_up(event);
        }
    }

    fn settle(&mut self) {
        if self.vacant {
            self.vacant = false;
            if let Some(last) = self.heap.pop() {
                if !self.heap.is_empty() {
                    self.sift_down(last);
                }
            }
        }
    }

    fn sift_up(&mut self, event: Event) {
        let mut place = self.heap.len() - 1;
        while place > 0 {
            let parent = (place - 1) / 4;
            if self.heap[parent] <= event {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = event;
    }

    /// Lets `event` sink from the first place.
    fn sift_down(&mut self, event: Event) {
        let heap = self.heap.as_mut_slice();
        let mut place = 0;
        loop {
            let first = 4 * place + 1;
            let mut least = event.0;
            let mut child = place;
            if let Some(children) = heap.get(first..first + 4) {
                for (at, other) in children.iter().enumerate() {
                    let less = other.0 < least;
                    least = if less { other.0 } else { least };
                    child = if less { first + at } else { child };
                }
            } else {
                for (at, other) in heap.iter().enumerate().skip(first) {
                    if other.0 < least {
                        (least, child) = (other.0, at);
                    }
                }
            }
            heap[place] = Event(least);
            if child == place {
                break;
            }
            place = child;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use std::collections::BTreeSet;

    #[test]
    fn an_event_gives_back_what_it_was_made_of() {
        for target in [Target::Direction(5), Target::Timer(0), Target::Source(7), Target::Outlet(MAX_TARGETS as u32 - 1)] {
            let event = Event::new(u64::MAX - 1, (1 << ORDER_BITS) - 1, target);
            assert_eq!((event.at(), event.target()), (u64::MAX - 1, target));
        }
    }

    #[test]
    fn events_come_in_the_order_of_a_sorted_set() {
        let mut stream = Stream::new(1, 0, "events", "test");
        let (mut events, mut model) = (Events::default(), BTreeSet::new());
        for round in 0..50_000u64 {
            // More pushes than takes in the first half, fewer in the second; times collide often.
            if stream.below(10) < if round < 25_000 { 6 } else { 4 } {
                let event = Event::new(round / 8 + stream.below(100), events.next_order(), Target::Timer(0));
                events.push(event);
                model.insert(event);
            } else {
                assert_eq!(events.take_before(u64::MAX), model.pop_first());
            }
        }
        while let Some(event) = model.pop_first() {
            assert_eq!(events.next_at(), Some(Instant::from_nanos(event.at())));
            assert_eq!(events.take_before(event.at()), None);
            assert_eq!(events.take_before(event.at() + 1), Some(event));
        }
        assert_eq!(events.next_at(), None);
    }
}
