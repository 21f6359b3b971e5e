//! FQ-CoDel: a queue for each flow, served in turn, and CoDel in each (RFC 8290).

use super::codel::{CoDel, Controller, Head};
use super::packet_flaw;
use super::waiting::Waiting;
use crate::error::Flaw;
use crate::random::Stream;
use siphasher::sip::SipHasher24;
use std::collections::VecDeque;
use whyloss_transport::Duration;

/// The parameters of FQ-CoDel; where nothing is said those of RFC 8290.
///
/// What waits in all queues together is bounded by the `queue` of the link and by `memory`: beyond, packets are dropped at the head of the
/// longest queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FqCoDel {
    /// Waiting time that is accepted for longer than an interval.
    pub target: Duration,
    /// About the longest round-trip time of the connections.
    pub interval: Duration,
    /// Octets that a queue may send in a turn.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::size"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Size"))]
    pub quantum: u64,
    /// Number of queues; a flow's is found by a hash of its addresses and ports with a key that the seed decides on.
    pub queues: u32,
    /// Octets that may wait in all queues.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::size"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Size"))]
    pub memory: u64,
    /// Marks ECN-capable packets instead of dropping them.
    pub mark: bool,
}

impl Default for FqCoDel {
    fn default() -> Self {
        let CoDel { target, interval, mark } = CoDel::default();
        Self { target, interval, quantum: 1514, queues: 1024, memory: 32 << 20, mark }
    }
}

impl FqCoDel {
    /// The most queues.
    const MOST_QUEUES: u32 = 65_536;

    const fn codel(&self) -> CoDel {
        CoDel { target: self.target, interval: self.interval, mark: self.mark }
    }

    pub(super) fn flaw(&self) -> Option<Flaw> {
        let queues = (!(1..=Self::MOST_QUEUES).contains(&self.queues)).then(|| ("queues", self.queues.to_string(), "1 to 65536"));
        let memory = (self.memory == 0).then(|| ("memory", "0 B".to_owned(), "at least 1 B"));
        let quantum = packet_flaw(self.quantum).map(|(_, found, allowed)| ("quantum", found, allowed));
        self.codel().flaw().or(queues).or(memory).or(quantum)
    }
}

/// The queues at work.
#[derive(Debug)]
pub(crate) struct Fair<T> {
    quantum: i64,
    memory: u64,
    queues: Vec<Queue<T>>,
    /// Queues that have begun to fill, and those that have had a turn, by number; together the queues that are not asleep.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    key: SipHasher24,
    packets: u64,
    octets: u64,
}

/// The queue of a flow, or of several whose hashes are the same.
#[derive(Debug)]
struct Queue<T> {
    waiting: VecDeque<Waiting<T>>,
    octets: u64,
    /// Octets that it may still send in this turn.
    credit: i64,
    asleep: bool,
    controller: Controller,
}

impl<T> Queue<T> {
    fn pop(&mut self) -> Option<Waiting<T>> {
        let waiting = self.waiting.pop_front()?;
        self.octets -= u64::from(waiting.octets);
        Some(waiting)
    }
}

impl<T> Fair<T> {
    pub fn new(spec: &FqCoDel, mut stream: Stream) -> Self {
        let queue =
            || Queue { waiting: VecDeque::new(), octets: 0, credit: 0, asleep: true, controller: Controller::new(&spec.codel()) };
        Self {
            quantum: spec.quantum as i64,
            memory: spec.memory,
            queues: (0..spec.queues).map(|_| queue()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            key: SipHasher24::new_with_keys(stream.bits(), stream.bits()),
            packets: 0,
            octets: 0,
        }
    }

    /// Packets and octets that wait.
    pub const fn len(&self) -> (u64, u64) {
        (self.packets, self.octets)
    }

    /// The number of the queue of a flow.
    fn place(&self, flow: u64) -> usize {
        let hash = self.key.hash(&flow.to_le_bytes());
        ((u128::from(hash) * self.queues.len() as u128) >> 64) as usize
    }

    /// A packet comes to the tail of its flow's queue (RFC 8290, 4.1).
    pub fn push(&mut self, flow: u64, waiting: Waiting<T>) {
        let number = self.place(flow);
        let queue = &mut self.queues[number];
        self.packets += 1;
        self.octets += u64::from(waiting.octets);
        queue.octets += u64::from(waiting.octets);
        queue.waiting.push_back(waiting);
        if std::mem::replace(&mut queue.asleep, false) {
            queue.credit = self.quantum;
            self.new.push_back(number as u32);
        }
    }

    /// Takes a packet from the head of the longest queue if more waits than `fits` or than there is memory for (RFC 8290, 4.1).
    pub fn overflow(&mut self, fits: impl FnOnce(u64, u64) -> bool) -> Option<Waiting<T>> {
        if fits(self.packets, self.octets) && self.octets <= self.memory {
            return None;
        }
        let awake = self.new.iter().chain(&self.old);
        // Of several as long as each other the first.
        let longest = awake.copied().rev().max_by_key(|&number| self.queues[number as usize].octets)?;
        let waiting = self.queues[longest as usize].pop()?;
        self.packets -= 1;
        self.octets -= u64::from(waiting.octets);
        Some(waiting)
    }

    /// Takes the packet that is transmitted next (RFC 8290, 4.2). `hit` drops a packet, or marks it, if it is told to,
    /// and gives it back.
    pub fn pop(&mut self, now: u64, mut left: impl FnMut(u64, u32), mut hit: impl FnMut(T, bool) -> Option<T>) -> Option<T> {
        loop {
            let is_new = !self.new.is_empty();
            let number = *if is_new { self.new.front() } else { self.old.front() }?;
            let Self { queues, packets, octets, .. } = self;
            let queue = &mut queues[number as usize];
            if queue.credit <= 0 {
                queue.credit += self.quantum;
                self.turn(is_new);
                continue;
            }
            let Queue { waiting, octets: own, controller, .. } = queue;
            let mut length = 0;
            let head = || {
                let Waiting { item, octets: size, since } = waiting.pop_front()?;
                *own -= u64::from(size);
                *packets -= 1;
                *octets -= u64::from(size);
                left(now - since, size);
                length = i64::from(size);
                Some(Head { item, waited: now - since, backlog: *own, octets: size })
            };
            let marks = controller.marks();
            let taken = controller.dequeue(now, head, |item| hit(item, marks));
            if let Some(item) = taken {
                queue.credit -= length;
                return Some(item);
            }
            // An empty queue that is new gets one turn more among the old ones, so that it cannot starve them by being new again.
            if is_new {
                self.turn(true);
            } else {
                self.old.pop_front();
                self.queues[number as usize].asleep = true;
            }
        }
    }

    /// The first queue goes to the end of the old ones.
    fn turn(&mut self, is_new: bool) {
        let first = if is_new { self.new.pop_front() } else { self.old.pop_front() };
        self.old.extend(first);
    }

    /// All that waits, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting<T>> + '_ {
        self.new.iter().chain(&self.old).flat_map(|&number| &self.queues[number as usize].waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::stream;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn fair(spec: FqCoDel) -> Fair<(u64, u32)> {
        Fair::new(&spec, stream())
    }

    fn push(fair: &mut Fair<(u64, u32)>, flow: u64, number: u32, octets: u32) {
        fair.push(flow, Waiting { item: (flow, number), octets, since: 0 });
    }

    fn pop(fair: &mut Fair<(u64, u32)>) -> Option<(u64, u32)> {
        fair.pop(0, |_, _| {}, |_, _| unreachable!("nothing waits long"))
    }

    #[test]
    fn flows_take_turns_by_octets_and_a_new_one_goes_first() {
        let mut fair = fair(FqCoDel { quantum: 1000, ..FqCoDel::default() });
        for number in 0..6 {
            push(&mut fair, 1, number, 1000);
        }
        for number in 0..12 {
            push(&mut fair, 2, number, 500);
        }
        let taken: Vec<_> = (0..6).map(|_| pop(&mut fair).unwrap()).collect();
        // One long packet, two short ones.
        assert_eq!(taken, [(1, 0), (2, 0), (2, 1), (1, 1), (2, 2), (2, 3)]);
        push(&mut fair, 3, 0, 100);
        assert_eq!(pop(&mut fair), Some((3, 0)));
        // It has been served; its next one waits for its turn among the old ones.
        push(&mut fair, 1, 6, 1000);
        assert_eq!(pop(&mut fair), Some((1, 2)));
        assert_eq!(std::iter::from_fn(|| pop(&mut fair)).count(), 12);
        assert_eq!((fair.len(), fair.new.len(), fair.old.len()), ((0, 0), 0, 0));
    }

    #[test]
    fn a_flow_that_comes_back_at_once_starves_nobody() {
        let mut fair = fair(FqCoDel { quantum: 300, ..FqCoDel::default() });
        (0..100).for_each(|number| push(&mut fair, 1, number, 300));
        let mut from_other = 0;
        for number in 0..100 {
            push(&mut fair, 2, number, 300);
            from_other += u32::from(pop(&mut fair).unwrap().0 == 2);
        }
        assert!((45..=55).contains(&from_other), "{from_other}");
    }

    #[test]
    fn the_longest_queue_makes_room_at_its_head() {
        let mut fair = fair(FqCoDel { memory: 10_000, ..FqCoDel::default() });
        let within = |packets, _| packets <= 5;
        push(&mut fair, 1, 0, 1500);
        (0..4).for_each(|number| push(&mut fair, 2, number, 400));
        assert!(fair.overflow(within).is_none());
        push(&mut fair, 2, 4, 400);
        assert_eq!(fair.overflow(within).map(|waiting| waiting.item), Some((2, 0)));
        // The longest in octets, not in packets.
        push(&mut fair, 1, 1, 1500);
        assert_eq!(fair.overflow(within).map(|waiting| waiting.item), Some((1, 0)));
        // Memory holds beside the limit.
        (0..6).for_each(|number| push(&mut fair, 3, number, 1500));
        assert_eq!(fair.len().1, 1500 + 1600 + 9000);
        assert_eq!(fair.overflow(|_, _| true).map(|waiting| waiting.item), Some((3, 0)));
        assert_eq!(fair.overflow(|_, _| true).map(|waiting| waiting.item), Some((3, 1)));
        assert!(fair.overflow(|_, _| true).is_none());
        assert_eq!(fair.len().1, 9100);
    }

    #[test]
    fn a_million_flows_have_as_many_queues_as_there_are() {
        let mut fair = fair(FqCoDel::default());
        let mut most = 0;
        for flow in 0..1_000_000 {
            push(&mut fair, flow, 0, 100);
            while fair.overflow(|packets, _| packets <= 2000).is_some() {}
            most = most.max(fair.len().0);
        }
        assert_eq!((most, fair.queues.len()), (2000, 1024));
        assert!(fair.new.len() + fair.old.len() <= 1024);
        // They spread: 2000 balls in 1024 urns leave 1024 * exp(-2000 / 1024) = 145 empty, with a standard deviation of 9; what the longest
        // lose is less than that.
        let used = fair.queues.iter().filter(|queue| !queue.waiting.is_empty()).count();
        assert!(used > 1024 - 145 - 45, "{used}");
        assert_eq!(std::iter::from_fn(|| pop(&mut fair)).count(), 2000);
    }

    #[test]
    fn the_key_decides_who_shares_a_queue() {
        let places = |seed| {
            let fair: Fair<()> = Fair::new(&FqCoDel::default(), Stream::new(seed, 0, "queue", "flows"));
            (0..100).map(|flow| fair.place(flow)).collect::<Vec<_>>()
        };
        assert_eq!(places(1), places(1));
        let same = places(1).iter().zip(places(2)).filter(|(one, other)| **one == *other).count();
        assert!(same < 5, "{same}");
    }

    proptest! {
        #[test]
        fn each_packet_leaves_once_and_flows_keep_their_order(
            moves in prop::collection::vec((0_u64..8, 40_u32..1500, any::<bool>()), 1..400),
            queues in 1_u32..6,
            limit in 1_u64..50,
        ) {
            let mut fair = fair(FqCoDel { queues, quantum: 700, ..FqCoDel::default() });
            let (mut ended, mut last) = (HashSet::new(), [None; 8]);
            let mut numbers = 0_u32..;
            let mut came = 0;
            let mut end = |item: (u64, u32)| ended.insert(item) && last[item.0 as usize].replace(item.1) < Some(item.1);
            for (flow, octets, leaves) in moves {
                push(&mut fair, flow, numbers.next().unwrap(), octets);
                came += 1;
                while let Some(waiting) = fair.overflow(|packets, _| packets <= limit) {
                    prop_assert!(end(waiting.item));
                }
                prop_assert!(fair.len().0 <= limit);
                if leaves {
                    let item = pop(&mut fair);
                    prop_assert!(item.is_some_and(&mut end));
                }
            }
            prop_assert_eq!(fair.iter().count() as u64, fair.len().0);
            while let Some(item) = pop(&mut fair) {
                prop_assert!(end(item));
            }
            prop_assert_eq!((ended.len(), fair.len()), (came, (0, 0)));
        }
    }
}
