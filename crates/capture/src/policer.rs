//! Whether a token bucket polices a direction.
//!
//! After Flach, Papageorge, Terzis, Pedrosa, Cheng, Karim, Katz-Bassett & Govindan 2016, *An Internet-Wide Analysis of Traffic Policing*: the
//! goodput between the first and the last loss is taken for the rate at which tokens come. A policer drops when there are none, and only then;
//! and as it has no queue, nothing is late before it drops. A full queue counts octets in the same way, but shows them as delay.

use std::collections::VecDeque;
use whyloss_transport::time::{Duration, Instant};

/// Segments that are remembered from the first loss on.
const MAX_SEGMENTS: usize = 1 << 13;
/// Losses without which nothing is said (the publication's).
const FEWEST_LOSSES: usize = 15;
/// This share of the losses has to find the bucket empty, and of the deliveries not.
const SHARE: f64 = 0.8;
/// A bucket counts as empty below this share of what was ever in it.
const EMPTY: f64 = 0.15;
/// What a queue of the bucket's size would add to the round trip; less than this share of it means that there is none.
const LATE: f64 = 0.25;

/// A policer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policer {
    /// Octets of data that it lets pass a second.
    pub rate: f64,
    /// The most tokens that were seen to be in the bucket, in octets.
    pub bucket: f64,
    /// Losses that the verdict rests on.
    pub losses: usize,
    /// The share of them that found it empty.
    pub empty: f64,
}

#[derive(Clone, Copy, Debug)]
struct Passed {
    at: Instant,
    start: u64,
    octets: u32,
    lost: bool,
}

/// Looks for a policer in one direction.
#[derive(Clone, Debug, Default)]
pub struct Search {
    segments: VecDeque<Passed>,
    losses: usize,
    /// The highest start of a segment.
    highest: u64,
    /// What the segments look like, whatever the delays were, unless they have changed since.
    found: Option<Policer>,
    changed: bool,
}

impl Search {
    /// Segments for which there is room.
    pub fn octets(&self) -> usize {
        self.segments.capacity() * size_of::<Passed>()
    }

    /// Everything before `una` has arrived: without a loss so far there is nothing to find in it.
    pub fn on_acked(&mut self, una: u64) {
        while self.losses == 0 && self.segments.front().is_some_and(|passed| passed.start + u64::from(passed.octets) <= una) {
            self.segments.pop_front();
        }
    }

    /// A segment left.
    pub fn on_sent(&mut self, at: Instant, start: u64, octets: u32) {
        if self.losses == 0 {
            // Before the first loss only what may become it is kept.
            if self.segments.len() == 512 {
                self.segments.pop_front();
            }
        } else if self.segments.len() == MAX_SEGMENTS {
            return;
        }
        self.segments.push_back(Passed { at, start, octets, lost: false });
        self.highest = self.highest.max(start);
        self.changed = true;
    }

    /// The latest transmission of what begins at `start` was taken for lost.
    pub fn on_lost(&mut self, start: u64) {
        if start > self.highest {
            // It left when there was no room any more.
            return;
        }
        if let Some(index) = self.segments.iter().rposition(|passed| passed.start == start && !passed.lost) {
            self.segments[index].lost = true;
            if self.losses == 0 {
                self.segments.drain(..index);
            }
            self.losses += 1;
            self.changed = true;
        }
    }

    /// The policer, if there is one. `late` is how much longer than the shortest the round trip was when losses happened, in the median.
    pub fn verdict(&mut self, late: Duration) -> Option<Policer> {
        if self.changed {
            (self.found, self.changed) = (self.look(), false);
        }
        self.found.filter(|policer| late.as_secs_f64() < LATE * policer.bucket / policer.rate)
    }

    /// A policer, unless delays show that it was a queue.
    fn look(&self) -> Option<Policer> {
        let last = self.segments.iter().rposition(|passed| passed.lost)?;
        let all = || self.segments.iter().take(last + 1);
        let lost = all().filter(|passed| passed.lost).count();
        let (begin, end) = (self.segments.front()?.at, self.segments[last].at);
        if lost < FEWEST_LOSSES || end <= begin {
            return None;
        }
        let delivered: u64 = all().filter(|passed| !passed.lost).map(|passed| u64::from(passed.octets)).sum();
        let rate = delivered as f64 / end.since(begin).as_secs_f64();
        let (mut tokens, mut now) = (0.0, begin);
        let mut counted = Vec::with_capacity(last + 1);
        for passed in all() {
            if passed.at > now {
                tokens += rate * passed.at.since(now).as_secs_f64();
                now = passed.at;
            }
            counted.push((tokens, passed.lost));
            if !passed.lost {
                tokens -= f64::from(passed.octets);
            }
        }
        let lowest = counted.iter().map(|(tokens, _)| *tokens).fold(f64::INFINITY, f64::min);
        let highest = counted.iter().map(|(tokens, _)| *tokens).fold(f64::NEG_INFINITY, f64::max);
        let bucket = highest - lowest;
        let largest = all().map(|passed| f64::from(passed.octets)).fold(0.0, f64::max);
        // One segment more or less is what the counting is exact to.
        let empty_below = lowest + (EMPTY * bucket).max(2.0 * largest);
        let share = |lost: bool, holds: &dyn Fn(f64) -> bool| {
            let of = counted.iter().filter(|(_, was)| *was == lost);
            let (all, held) = of.fold((0_u32, 0_u32), |(all, held), (tokens, _)| (all + 1, held + u32::from(holds(*tokens))));
            f64::from(held) / f64::from(all.max(1))
        };
        let empty = share(true, &|tokens| tokens <= empty_below);
        let full = share(false, &|tokens| tokens > empty_below);
        (bucket > 4.0 * largest && empty >= SHARE && full >= 1.0 - empty * 0.6).then_some(Policer {
            rate,
            bucket,
            losses: lost,
            empty,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OCTETS: u32 = 1448;

    /// Sends flights whose rate swings around the policed one; `refuse` says whether a segment at this time is lost.
    fn search(mut refuse: impl FnMut(u64, u64) -> bool) -> Search {
        let mut search = Search::default();
        let mut now = 0_u64;
        let mut start = 0;
        for number in 0..4000_u64 {
            // Half a second at 4 Mbit/s, half a second at 1 Mbit/s.
            let fast = now / 500_000_000 % 2 == 0;
            now += u64::from(OCTETS) * 8 * if fast { 250 } else { 1000 };
            search.on_sent(Instant::from_nanos(now), start, OCTETS);
            if refuse(number, now) {
                search.on_lost(start);
            }
            start += u64::from(OCTETS);
        }
        search
    }

    /// A token bucket of 2 Mbit/s.
    fn bucket(depth: f64) -> impl FnMut(u64, u64) -> bool {
        let (mut tokens, mut last) = (depth, 0);
        move |_, now| {
            tokens = f64::min(depth, tokens + (now - last) as f64 * 0.25e-3);
            last = now;
            let refused = tokens < f64::from(OCTETS);
            if !refused {
                tokens -= f64::from(OCTETS);
            }
            refused
        }
    }

    #[test]
    fn a_token_bucket_is_recognised_with_its_rate() {
        let policer = search(bucket(60_000.0)).verdict(Duration::from_millis(1)).expect("a policer");
        assert!((policer.rate * 8.0 / 2e6 - 1.0).abs() < 0.15, "{policer:?}");
        assert!(policer.bucket > 20_000.0 && policer.empty > 0.8, "{policer:?}");
    }

    #[test]
    fn a_full_queue_of_the_same_rate_is_none_as_it_makes_late() {
        // The same losses; but 60 kB that wait at 2 Mbit/s are 240 ms.
        assert_eq!(search(bucket(60_000.0)).verdict(Duration::from_millis(240)), None);
    }

    #[test]
    fn losses_by_chance_are_none() {
        let mut state = 1_u64;
        let by_chance = |_, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33 < (1 << 31) / 50
        };
        assert_eq!(search(by_chance).verdict(Duration::ZERO), None);
    }

    #[test]
    fn few_losses_say_nothing() {
        assert_eq!(search(|number, _| number % 400 == 399).verdict(Duration::ZERO), None);
    }
}
