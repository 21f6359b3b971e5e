//! Controlled delay: a queue that drops at its head when packets have waited too long for too long (RFC 8289).

use crate::error::Flaw;
use whyloss_transport::Duration;

/// The parameters of CoDel; where nothing is said those of RFC 8289.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoDel {
    /// Waiting time that is accepted for longer than an interval.
    pub target: Duration,
    /// About the longest round-trip time of the connections.
    pub interval: Duration,
    /// Marks ECN-capable packets instead of dropping them.
    pub mark: bool,
}

impl Default for CoDel {
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), mark: false }
    }
}

impl CoDel {
    /// What makes no sense in it.
    pub(crate) fn flaw(&self) -> Option<Flaw> {
        match self {
            _ if self.target == Duration::ZERO => Some(("target", "0 s".to_owned(), "a time above zero")),
            _ if self.interval < self.target => Some(("interval", self.interval.to_string(), "at least the target")),
            _ => None,
        }
    }
}

/// A packet from the head of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head<T> {
    pub item: T,
    /// Nanoseconds that it has waited.
    pub waited: u64,
    /// Octets that wait behind it.
    pub backlog: u64,
    pub octets: u32,
}

/// CoDel at work; the names are those of RFC 8289, section 5.
#[derive(Debug)]
pub(crate) struct Controller {
    target: u64,
    interval: u64,
    mark: bool,
    /// When waiting times will have been above the target for an interval, if they are above it.
    first_above_time: Option<u64>,
    drop_next: u64,
    /// Packets dropped since the dropping state was entered.
    count: u64,
    last_count: u64,
    dropping: bool,
    /// The longest packet so far: one of that length may always wait.
    longest: u32,
}

impl Controller {
    pub const fn new(spec: &CoDel) -> Self {
        Self {
            target: spec.target.as_nanos(),
            interval: spec.interval.as_nanos(),
            mark: spec.mark,
            first_above_time: None,
            drop_next: 0,
            count: 0,
            last_count: 0,
            dropping: false,
            longest: 0,
        }
    }

    /// Whether it marks instead of dropping.
    pub const fn marks(&self) -> bool {
        self.mark
    }

    /// Takes the packet out of the queue that is to be transmitted at `now`. `pop` takes what is at the head; `hit` drops a packet, or
    /// marks it and gives it back.
    pub fn dequeue<T>(
        &mut self,
        now: u64,
        mut pop: impl FnMut() -> Option<Head<T>>,
        mut hit: impl FnMut(T) -> Option<T>,
    ) -> Option<T> {
        let (mut packet, mut above) = self.head(now, pop())?;
        if self.dropping {
            self.dropping = above;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if let Some(marked) = hit(packet) {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(marked);
                }
                (packet, above) = self.head(now, pop())?;
                if above {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if above {
            // What follows soon on an episode of dropping goes on at its rate.
            let delta = self.count.saturating_sub(self.last_count);
            let soon = now.saturating_sub(self.drop_next) < 16 * self.interval;
            self.count = if delta > 1 && soon { delta } else { 1 };
            self.dropping = true;
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
            if let Some(marked) = hit(packet) {
                return Some(marked);
            }
            packet = self.head(now, pop())?.0;
        }
        Some(packet)
    }

    /// Looks at a packet; whether it may be dropped. An empty queue ends the dropping state.
    fn head<T>(&mut self, now: u64, head: Option<Head<T>>) -> Option<(T, bool)> {
        let Some(Head { item, waited, backlog, octets }) = head else {
            self.first_above_time = None;
            self.dropping = false;
            return None;
        };
        self.longest = self.longest.max(octets);
        if waited < self.target || backlog <= u64::from(self.longest) {
            self.first_above_time = None;
            return Some((item, false));
        }
        let due = *self.first_above_time.get_or_insert(now + self.interval);
        Some((item, now >= due))
    }

    fn control_law(&self, from: u64) -> u64 {
        from + (self.interval as f64 / (self.count as f64).sqrt()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const MS: u64 = 1_000_000;

    /// Takes a packet a millisecond out of a queue that never empties, each having waited for `waited` ms; when the head was hit.
    fn hits(controller: &mut Controller, from: u64, to: u64, waited: u64, marks: bool) -> Vec<u64> {
        let mut hits = Vec::new();
        for ms in from..to {
            let head = || Some(Head { item: (), waited: waited * MS, backlog: 100_000, octets: 1500 });
            let taken = controller.dequeue(ms * MS, head, |()| {
                hits.push(ms);
                marks.then_some(())
            });
            assert!(taken.is_some());
        }
        hits
    }

    #[test]
    fn drops_come_faster_and_faster_while_packets_wait_too_long() {
        // Above the target since 0; 100 ms later the first drop; then after 100/sqrt(1), 100/sqrt(2), … 100/sqrt(5) ms: 100, 200, 270.7,
        // 328.4, 378.4, 423.2 ms, each at the next whole millisecond.
        for marks in [false, true] {
            let mut controller = Controller::new(&CoDel::default());
            assert_eq!(hits(&mut controller, 0, 430, 6, marks), [100, 200, 271, 329, 379, 424], "marks: {marks}");
        }
    }

    #[test]
    fn short_waits_end_it_and_soon_after_it_goes_on_at_its_rate() {
        let mut controller = Controller::new(&CoDel::default());
        assert_eq!(hits(&mut controller, 0, 430, 6, false).len(), 6);
        assert_eq!(hits(&mut controller, 430, 440, 4, false), [] as [u64; 0]);
        // Above again since 440: the first drop at 540, and since count was 6 and last 1 it goes on with 5: 100/sqrt(5) = 44.7 ms, then
        // 100/sqrt(6) = 40.8 ms.
        assert_eq!(hits(&mut controller, 440, 626, 6, false), [540, 585]);
        assert_eq!(hits(&mut controller, 626, 627, 6, false), [626]);
        // Long after, it begins anew.
        assert_eq!(hits(&mut controller, 627, 630, 0, false), [] as [u64; 0]);
        assert_eq!(hits(&mut controller, 5000, 5300, 6, false), [5100, 5200, 5271]);
    }

    #[test]
    fn one_long_packet_may_wait_and_an_empty_queue_gives_nothing() {
        let mut controller = Controller::new(&CoDel::default());
        for ms in 0..1000 {
            let head = || Some(Head { item: (), waited: 50 * MS, backlog: 1500, octets: 1500 });
            assert_eq!(controller.dequeue(ms * MS, head, |()| unreachable!("it may wait")), Some(()));
        }
        assert_eq!(controller.dequeue(1001 * MS, || None::<Head<()>>, Some), None);
    }

    #[test]
    fn a_dropped_packet_gives_way_to_the_next() {
        let mut controller = Controller::new(&CoDel::default());
        assert!(hits(&mut controller, 0, 100, 6, false).is_empty());
        let next = Cell::new(0);
        let head = || {
            next.set(next.get() + 1);
            Some(Head { item: next.get(), waited: 6 * MS, backlog: 100_000, octets: 1500 })
        };
        let mut dropped = Vec::new();
        let taken = controller.dequeue(100 * MS, head, |item| {
            dropped.push(item);
            None
        });
        assert_eq!((taken, dropped), (Some(2), vec![1]));
    }
}
