//! What waits in front of a transmitter, and who of it goes next.

use super::codel::{Controller, Head};
use super::fair::Fair;
use super::waiting::Waiting;
use super::Discipline;
use crate::random::Stream;
use std::collections::VecDeque;

/// What waits. Packets that are urgent stand before all others.
#[derive(Debug)]
pub(crate) struct Buffer<T> {
    /// All packets in their order; those that are urgent if there are queues for flows.
    line: VecDeque<Waiting<T>>,
    octets: u64,
    rule: Rule<T>,
}

/// How the next one is chosen.
#[derive(Debug)]
enum Rule<T> {
    First,
    CoDel(Controller),
    Fair(Box<Fair<T>>),
}

impl<T> Buffer<T> {
    pub fn new(discipline: Option<&Discipline>, stream: impl FnOnce() -> Stream) -> Self {
        let rule = match discipline {
            Some(Discipline::CoDel(codel)) => Rule::CoDel(Controller::new(codel)),
            Some(Discipline::FqCoDel(fair)) => Rule::Fair(Box::new(Fair::new(fair, stream()))),
            _ => Rule::First,
        };
        Self { line: VecDeque::new(), octets: 0, rule }
    }

    /// Packets and octets that wait.
    pub fn len(&self) -> (u64, u64) {
        let (packets, octets) = if let Rule::Fair(fair) = &self.rule { fair.len() } else { (0, 0) };
        (self.line.len() as u64 + packets, self.octets + octets)
    }

    pub fn is_empty(&self) -> bool {
        self.len().0 == 0
    }

    /// Whether it makes room for a packet that comes, by dropping another.
    pub const fn makes_room(&self) -> bool {
        matches!(self.rule, Rule::Fair(_))
    }

    /// A packet of a flow comes.
    pub fn push(&mut self, flow: u64, waiting: Waiting<T>, urgent: bool) {
        match &mut self.rule {
            Rule::Fair(fair) if !urgent => return fair.push(flow, waiting),
            _ => {}
        }
        self.octets += u64::from(waiting.octets);
        if urgent {
            self.line.push_front(waiting);
        } else {
            self.line.push_back(waiting);
        }
    }

    /// Takes a packet away if more waits than `fits`; to be asked until there is none.
    pub fn overflow(&mut self, fits: impl Fn(u64, u64) -> bool) -> Option<Waiting<T>> {
        let (packets, octets) = (self.line.len() as u64, self.octets);
        let Rule::Fair(fair) = &mut self.rule else { return None };
        let together = |others, of_them| fits(packets + others, octets + of_them);
        if let Some(waiting) = fair.overflow(together) {
            return Some(waiting);
        }
        // All that waits is urgent.
        let (others, of_them) = fair.len();
        if together(others, of_them) {
            return None;
        }
        let last = self.line.pop_back()?;
        self.octets -= u64::from(last.octets);
        Some(last)
    }

    /// Takes the packet that is transmitted next at `now`. Each that leaves is told to `left`, with the nanoseconds that it waited and its
    /// length; `hit` drops a packet, or marks it, if it is told to, and gives it back.
    pub fn pop(&mut self, now: u64, mut left: impl FnMut(u64, u32), mut hit: impl FnMut(T, bool) -> Option<T>) -> Option<T> {
        let Self { line, octets, rule } = self;
        let mut first = || {
            let Waiting { item, octets: size, since } = line.pop_front()?;
            *octets -= u64::from(size);
            left(now - since, size);
            Some(Head { item, waited: now - since, backlog: *octets, octets: size })
        };
        match rule {
            Rule::First => first().map(|head| head.item),
            Rule::CoDel(controller) => {
                let marks = controller.marks();
                controller.dequeue(now, first, |item| hit(item, marks))
            }
            Rule::Fair(fair) => match first() {
                Some(head) => Some(head.item),
                None => fair.pop(now, left, hit),
            },
        }
    }

    /// The packets that wait in one line, the newest first, each with its place.
    pub fn newest_first(&self) -> impl Iterator<Item = (usize, &T)> + '_ {
        self.line.iter().enumerate().rev().map(|(place, waiting)| (place, &waiting.item))
    }

    /// Takes the packet in `place` out of the line.
    pub fn remove(&mut self, place: usize) -> Option<Waiting<T>> {
        let waiting = self.line.remove(place)?;
        self.octets -= u64::from(waiting.octets);
        Some(waiting)
    }

    /// All that waits, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting<T>> + '_ {
        let fair = if let Rule::Fair(fair) = &self.rule { Some(fair.iter()) } else { None };
        self.line.iter().chain(fair.into_iter().flatten())
    }
}
