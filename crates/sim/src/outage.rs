//! Times in which a link is down: hand-offs from one base station to another, tunnels, failures.

use crate::error::Flaw;
use whyloss_transport::{Duration, Instant};

/// A period in which the link is down, such as a hand-off, once or again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outage {
    /// When the first begins.
    pub at: Instant,
    /// How long each lasts.
    pub lasts: Duration,
    /// From the beginning of one to the beginning of the next; there is only one if nothing is said.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub every: Option<Duration>,
    /// What becomes of packets: `"dropped"` if nothing is said.
    #[cfg_attr(feature = "serde", serde(default))]
    pub packets: WhileDown,
}

/// What a link that is down does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum WhileDown {
    /// The transmitter goes on, and what it transmits is lost.
    // Lost if the link is down during any part of its transmission; what has been transmitted before arrives.
    #[default]
    Dropped,
    /// The transmitter stops, and packets wait in the queue.
    // It goes on where it was when the link is up again.
    Held,
}

impl Outage {
    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        match self.every {
            _ if self.lasts == Duration::ZERO => Some(("outage.lasts", "0 s".to_owned(), "a time above zero")),
            Some(every) if every <= self.lasts => {
                Some(("outage.every", every.to_string(), "a time longer than each outage lasts"))
            }
            _ => None,
        }
    }

    /// When the outage ends that has begun last at `now`, if it has not ended.
    pub(crate) fn until(&self, now: u64) -> Option<u64> {
        let since = now.checked_sub(self.at.as_nanos())?;
        let passed = self.every.map_or(since, |every| since % every.as_nanos());
        let rest = self.lasts.as_nanos().checked_sub(passed).filter(|rest| *rest > 0)?;
        Some(now.saturating_add(rest))
    }

    /// When the next outage begins, after `now`.
    pub(crate) fn next(&self, now: u64) -> Option<u64> {
        let at = self.at.as_nanos();
        match (now.checked_sub(at), self.every) {
            (None, _) => Some(at),
            (Some(_), None) => None,
            (Some(since), Some(every)) => now.checked_add(every.as_nanos() - since % every.as_nanos()),
        }
    }

    /// Whether the link is down at any moment from `start` to `end`.
    pub(crate) fn meets(&self, start: u64, end: u64) -> bool {
        self.until(start).is_some() || self.next(start).is_some_and(|next| next < end)
    }
}

/// Outages in a row after which a link is taken to be down for good: periods may cover all time together.
pub(crate) const PATIENCE: u32 = 100_000;

/// When the link is up again, if it holds packets at `now`; `u64::MAX` for never.
pub(crate) fn held_until(held: &[Outage], now: u64) -> Option<u64> {
    let mut at = now;
    for _ in 0..PATIENCE {
        match held.iter().filter_map(|outage| outage.until(at)).max() {
            Some(until) => at = until,
            None => return (at > now).then_some(at),
        }
    }
    Some(u64::MAX)
}

/// When a link goes down and comes up again, for whoever wants to be told.
#[derive(Debug)]
pub struct Turns {
    outages: Vec<Outage>,
    up: bool,
    /// `u64::MAX` if it does not turn any more.
    next: u64,
}

impl Turns {
    /// Those of a link with these outages.
    pub fn new(outages: Vec<Outage>) -> Self {
        let up = outages.iter().all(|outage| outage.until(0).is_none());
        let mut turns = Self { outages, up, next: u64::MAX };
        turns.next = turns.after(0);
        turns
    }

    /// Whether it was up at the last look.
    pub const fn is_up(&self) -> bool {
        self.up
    }

    /// When it turns next.
    pub fn next(&self) -> Option<Instant> {
        (self.next != u64::MAX).then(|| Instant::from_nanos(self.next))
    }

    /// Whether it is up from now on, if it has turned since the last call.
    pub fn turn(&mut self, now: Instant) -> Option<bool> {
        let before = self.up;
        while self.next <= now.as_nanos() {
            self.up = !self.up;
            self.next = self.after(self.next);
        }
        (self.up != before).then_some(self.up)
    }

    fn after(&self, now: u64) -> u64 {
        if self.up {
            self.outages.iter().filter_map(|outage| outage.next(now)).min().unwrap_or(u64::MAX)
        } else {
            held_until(&self.outages, now).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn outage(every: Option<u64>) -> Outage {
        Outage {
            at: Instant::from_nanos(100 * MS),
            lasts: Duration::from_millis(20),
            every: every.map(Duration::from_millis),
            packets: WhileDown::Held,
        }
    }

    #[test]
    fn one_outage_is_over_when_it_is_over() {
        let once = outage(None);
        assert_eq!([99, 100, 119, 120].map(|ms| once.until(ms * MS)), [None, Some(120 * MS), Some(120 * MS), None]);
        assert_eq!([0, 99, 100, 500].map(|ms| once.next(ms * MS)), [Some(100 * MS), Some(100 * MS), None, None]);
    }

    #[test]
    fn periods_come_again() {
        let again = outage(Some(50));
        assert_eq!([149, 150, 169, 170].map(|ms| again.until(ms * MS)), [None, Some(170 * MS), Some(170 * MS), None]);
        assert_eq!([0, 100, 149, 150].map(|ms| again.next(ms * MS)), [100, 150, 150, 200].map(|ms| Some(ms * MS)));
    }

    #[test]
    fn a_transmission_meets_an_outage_that_it_touches() {
        let once = outage(None);
        assert!(!once.meets(90 * MS, 100 * MS), "over when the link goes down");
        assert!(once.meets(90 * MS, 100 * MS + 1));
        assert!(once.meets(90 * MS, 200 * MS));
        assert!(once.meets(119 * MS, 130 * MS));
        assert!(!once.meets(120 * MS, 130 * MS));
    }

    #[test]
    fn senseless_values_are_found() {
        assert_eq!(outage(Some(20)).flaw().map(|(field, ..)| field), Some("outage.every"));
        assert_eq!(Outage { lasts: Duration::ZERO, ..outage(None) }.flaw().map(|(field, ..)| field), Some("outage.lasts"));
        assert_eq!(outage(Some(21)).flaw(), None);
    }

    #[test]
    fn outages_that_meet_are_one() {
        let outages = [(10, 20), (25, 10)].map(|(ms, lasts)| {
            let (at, lasts) = (Instant::from_nanos(ms * MS), Duration::from_millis(lasts));
            Outage { at, lasts, every: None, packets: WhileDown::Held }
        });
        assert_eq!(held_until(&outages, 9 * MS), None);
        assert_eq!(held_until(&outages, 10 * MS), Some(35 * MS));
    }

    #[test]
    fn a_link_turns_when_it_goes_down_and_when_it_is_up_again() {
        let at = |ms: u64| Instant::from_nanos(ms * MS);
        let mut turns = Turns::new(vec![outage(Some(50))]);
        assert_eq!((turns.next(), turns.turn(at(99))), (Some(at(100)), None));
        assert_eq!((turns.turn(at(100)), turns.next()), (Some(false), Some(at(120))));
        assert_eq!((turns.turn(at(121)), turns.next()), (Some(true), Some(at(150))));
        // Who asks late hears how it is now.
        assert_eq!((turns.turn(at(175)), turns.next()), (None, Some(at(200))));
        assert_eq!(Turns::new(Vec::new()).next(), None);
    }
}
