//! Times in which a link is down: hand-offs from one base station to another, tunnels, failures.

use crate::error::Flaw;
use crate::random::Stream;
use crate::spell::Spell;
use std::collections::VecDeque;
use whyloss_transport::{Duration, Instant};

/// A period in which the link is down, such as a hand-off, once or again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outage {
    /// When the first begins.
    pub at: Instant,
    /// How long each lasts. What is drawn longer than `every` ends there, when the next one begins.
    pub lasts: Spell,
    /// From the beginning of one to the beginning of the next. With neither `every` nor `gap` there is only one.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub every: Option<Duration>,
    /// From the end of one to the beginning of the next, instead of `every`.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub gap: Option<Spell>,
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

/// The shortest mean time from one drawn outage to the next: each one has to be drawn, also while nobody uses the link.
const SHORTEST_MEAN: Duration = Duration::from_millis(1);

impl Outage {
    /// One outage, in which packets are dropped.
    pub const fn once(at: Instant, lasts: Duration) -> Self {
        Self { at, lasts: Spell::Always(lasts), every: None, gap: None, packets: WhileDown::Dropped }
    }

    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        const POSITIVE: &str = "a time above zero";
        let Self { lasts, every, gap, .. } = self;
        if lasts.mean() == Duration::ZERO {
            return Some(("outage.lasts", "0 s".to_owned(), POSITIVE));
        }
        if let Some(flaw) = lasts.flaw("outage.lasts.shape").or_else(|| gap.and_then(|gap| gap.flaw("outage.gap.shape"))) {
            return Some(flaw);
        }
        let drawn = lasts.always().is_none() || gap.is_some();
        match (every, gap) {
            (Some(_), Some(_)) => Some(("outage.gap", "beside `every`".to_owned(), "one of the two")),
            (_, Some(gap)) if gap.mean() == Duration::ZERO => Some(("outage.gap", "0 s".to_owned(), POSITIVE)),
            (Some(every), _) if *every <= lasts.mean() => {
                Some(("outage.every", every.to_string(), "a time longer than each outage lasts (in the mean)"))
            }
            (Some(every), _) if drawn && *every < SHORTEST_MEAN => {
                Some(("outage.every", every.to_string(), "1 ms or more where lengths are drawn"))
            }
            (_, Some(gap)) if gap.mean() + lasts.mean() < SHORTEST_MEAN => {
                Some(("outage.gap", gap.mean().to_string(), "1 ms or more in the mean, together with `lasts`"))
            }
            _ => None,
        }
    }
}

/// The outages of a link in one run, drawn one after another as they are asked for.
///
/// It may be asked ahead of time, and again for what is earlier than it was asked before.
#[derive(Clone, Debug, Default)]
pub struct Downtime(Vec<Course>);

/// One entry of a link's outages in one run.
#[derive(Clone, Debug)]
struct Course {
    outage: Outage,
    lengths: Stream,
    gaps: Stream,
    /// Beginnings and ends in order; those that are over are forgotten.
    known: VecDeque<(u64, u64)>,
    /// When the one after those begins; `u64::MAX` for never.
    next: u64,
}

impl Downtime {
    /// Those of the link, one of whose directions is called `name` (see [`LinkNames`](crate::LinkNames)), in run `run` of `seed`.
    ///
    /// Both directions draw the same numbers, so that an outage of both is one outage. The entry's place in the list counts: entries of
    /// different places know nothing of each other.
    pub fn new(outages: &[Outage], seed: u64, run: u64, name: &str) -> Self {
        let mut ends: Vec<_> = name.split('>').flat_map(|part| part.split('#')).collect();
        ends.sort_unstable();
        let link = format!("link {}", ends.join("-"));
        let course = |(number, outage): (usize, &Outage)| {
            let stream = |purpose: &str| Stream::new(seed, run, &link, &format!("outage {number} {purpose}"));
            Course {
                outage: *outage,
                lengths: stream("lengths"),
                gaps: stream("gaps"),
                known: VecDeque::new(),
                next: outage.at.as_nanos(),
            }
        };
        Self(outages.iter().enumerate().map(course).collect())
    }

    /// Those that do this to packets.
    pub(crate) fn of(mut self, packets: WhileDown) -> Self {
        self.0.retain(|course| course.outage.packets == packets);
        self
    }

    /// These and those of another link or direction.
    pub(crate) fn and(mut self, mut other: Self) -> Self {
        self.0.append(&mut other.0);
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Nobody asks any more for what is over at `now`.
    pub(crate) fn pass(&mut self, now: u64) {
        self.0.iter_mut().for_each(|course| course.pass(now));
    }

    /// When the outage ends that has begun last at `now`, if it has not ended.
    fn until(&mut self, now: u64) -> Option<u64> {
        self.0.iter_mut().filter_map(|course| course.until(now)).max()
    }

    /// When the next outage begins, after `now`; `u64::MAX` for never.
    pub(crate) fn next(&mut self, now: u64) -> u64 {
        self.0.iter_mut().filter_map(|course| course.next(now)).min().unwrap_or(u64::MAX)
    }

    /// Whether the link is down at any moment from `start` to `end`.
    pub fn meets(&mut self, start: u64, end: u64) -> bool {
        self.until(start).is_some() || self.next(start) < end
    }

    /// When the link is up again, if it is down at `now`; `u64::MAX` for never.
    pub(crate) fn down_until(&mut self, now: u64) -> Option<u64> {
        let mut at = now;
        for _ in 0..PATIENCE {
            match self.until(at) {
                Some(until) => at = until,
                None => return (at > now).then_some(at),
            }
        }
        Some(u64::MAX)
    }
}

impl Course {
    /// Draws one more; whether there was one.
    fn draw(&mut self) -> bool {
        let begins = self.next;
        if begins == u64::MAX {
            return false;
        }
        let Outage { lasts, every, gap, .. } = &self.outage;
        let longest = every.map_or(u64::MAX, Duration::as_nanos);
        let ends = begins.saturating_add(lasts.draw(&mut self.lengths).clamp(1, longest));
        self.next = match (every, gap) {
            (Some(every), _) => begins.saturating_add(every.as_nanos()),
            (None, Some(gap)) => ends.saturating_add(gap.draw(&mut self.gaps).max(1)),
            (None, None) => u64::MAX,
        };
        self.known.push_back((begins, ends));
        true
    }

    fn pass(&mut self, now: u64) {
        loop {
            while self.known.front().is_some_and(|(_, ends)| *ends <= now) {
                self.known.pop_front();
            }
            if !self.known.is_empty() || self.next > now {
                return;
            }
            // What is always the same need not be counted through.
            if let (Some(_), Some(every)) = (self.outage.lasts.always(), self.outage.every) {
                self.next = now - (now - self.next) % every.as_nanos();
            }
            if !self.draw() {
                return;
            }
        }
    }

    /// How many have begun by `now`.
    fn begun(&mut self, now: u64) -> usize {
        while self.next <= now && self.draw() {}
        self.known.partition_point(|(begins, _)| *begins <= now)
    }

    fn until(&mut self, now: u64) -> Option<u64> {
        let last = self.begun(now).checked_sub(1)?;
        self.known.get(last).map(|(_, ends)| *ends).filter(|ends| *ends > now)
    }

    fn next(&mut self, now: u64) -> Option<u64> {
        let begun = self.begun(now);
        match self.known.get(begun) {
            Some((begins, _)) => Some(*begins),
            None => Some(self.next).filter(|next| *next < u64::MAX),
        }
    }
}

/// Outages in a row after which a link is taken to be down for good: periods may cover all time together.
pub(crate) const PATIENCE: u32 = 100_000;

/// When a link goes down and comes up again, for whoever wants to be told.
#[derive(Debug)]
pub struct Turns {
    downtime: Downtime,
    up: bool,
    /// `u64::MAX` if it does not turn any more.
    next: u64,
}

impl Turns {
    /// Those of a link with these outages.
    pub fn new(mut downtime: Downtime) -> Self {
        let up = downtime.until(0).is_none();
        let mut turns = Self { downtime, up, next: u64::MAX };
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
        while self.next <= now.as_nanos() && self.next < u64::MAX {
            self.up = !self.up;
            self.downtime.pass(self.next);
            self.next = self.after(self.next);
        }
        (self.up != before).then_some(self.up)
    }

    fn after(&mut self, now: u64) -> u64 {
        if self.up {
            self.downtime.next(now)
        } else {
            self.downtime.down_until(now).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: Duration = Duration::from_secs(1);

    fn outage(every: Option<u64>) -> Outage {
        Outage {
            every: every.map(Duration::from_millis),
            packets: WhileDown::Held,
            ..Outage::once(Instant::from_nanos(100 * MS), Duration::from_millis(20))
        }
    }

    fn of(outage: Outage) -> Downtime {
        Downtime::new(&[outage], 1, 0, "a>b")
    }

    /// Beginnings and ends of the first `count`, by asking as a link does.
    fn first(mut downtime: Downtime, count: usize) -> Vec<(u64, u64)> {
        let mut now = 0;
        let spell = |_| {
            let begins = downtime.next(now);
            let ends = downtime.down_until(begins).unwrap();
            now = ends;
            (begins, ends)
        };
        (0..count).map(spell).collect()
    }

    #[test]
    fn one_outage_is_over_when_it_is_over() {
        let mut once = of(outage(None));
        assert_eq!([99, 100, 119, 120].map(|ms| once.until(ms * MS)), [None, Some(120 * MS), Some(120 * MS), None]);
        assert_eq!([0, 99, 100, 500].map(|ms| once.next(ms * MS)), [100 * MS, 100 * MS, u64::MAX, u64::MAX]);
    }

    #[test]
    fn periods_come_again() {
        let mut again = of(outage(Some(50)));
        assert_eq!([149, 150, 169, 170].map(|ms| again.until(ms * MS)), [None, Some(170 * MS), Some(170 * MS), None]);
        assert_eq!([0, 100, 149, 150].map(|ms| again.next(ms * MS)), [100, 150, 150, 200].map(|ms| ms * MS));
    }

    #[test]
    fn a_gap_counts_from_the_end() {
        let mut again = of(Outage { gap: Some(Duration::from_millis(30).into()), ..outage(None) });
        assert_eq!([0, 100, 149, 150].map(|ms| again.next(ms * MS)), [100, 150, 150, 200].map(|ms| ms * MS));
    }

    #[test]
    fn a_transmission_meets_an_outage_that_it_touches() {
        let mut once = of(outage(None));
        assert!(!once.meets(90 * MS, 100 * MS), "over when the link goes down");
        assert!(once.meets(90 * MS, 100 * MS + 1));
        assert!(once.meets(90 * MS, 200 * MS));
        assert!(once.meets(119 * MS, 130 * MS));
        assert!(!once.meets(120 * MS, 130 * MS));
    }

    #[test]
    fn hand_offs_begin_in_time_and_last_exponentially() {
        let mean = Duration::from_millis(500);
        let hand_offs = Outage { lasts: Spell::exponential(mean), ..outage(Some(5000)) };
        let count = 20_000;
        let spells = first(of(hand_offs), count);
        assert!(spells.iter().zip(0_u64..).all(|((begins, _), n)| *begins == (100 + n * 5000) * MS));
        let mut lengths: Vec<_> = spells.iter().map(|(begins, ends)| (ends - begins) as f64 / 1e9).collect();
        lengths.sort_by(f64::total_cmp);
        // Kolmogorov and Smirnov: beyond 1.95 / sqrt(n) in one of a thousand samples.
        let distance =
            lengths.iter().zip(0..).map(|(length, n)| (1.0 - libm::exp(-length / 0.5) - f64::from(n) / count as f64).abs());
        assert!(distance.fold(0.0, f64::max) < 1.95 / (count as f64).sqrt());
    }

    #[test]
    fn gaps_can_be_exponential_too_and_know_nothing_of_the_lengths() {
        let lasts = Spell::exponential(Duration::from_millis(300));
        let on_off = Outage { lasts, gap: Some(Spell::exponential(SECOND)), ..outage(None) };
        let spells = first(of(on_off), 20_000);
        let gaps: Vec<_> = spells.windows(2).map(|pair| (pair[1].0 - pair[0].1) as f64 / 1e9).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        // Standard error 1 / sqrt(20,000) = 0.007.
        assert!((mean - 1.0).abs() < 0.028, "{mean}");
        let squares = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!((squares - 2.0).abs() < 0.13, "{squares}: 2, standard error sqrt(20 / 20,000) = 0.032");
        let same_lengths = first(of(Outage { gap: Some(Duration::from_millis(1).into()), ..on_off }), 1000);
        let lengths = |spells: &[(u64, u64)]| spells[..1000].iter().map(|(begins, ends)| ends - begins).collect::<Vec<_>>();
        assert_eq!(lengths(&spells), lengths(&same_lengths));
    }

    #[test]
    fn what_is_longer_than_the_period_ends_with_it() {
        let long = Outage { lasts: Spell::exponential(Duration::from_millis(45)), ..outage(Some(50)) };
        let mut downtime = of(long);
        let mut cut = 0;
        for n in 0..1000 {
            let begins = (100 + n * 50) * MS;
            let until = downtime.until(begins).unwrap();
            assert!(until <= begins + 50 * MS);
            cut += u32::from(until == begins + 50 * MS);
        }
        // exp(-50 / 45) = 0.329, standard deviation 15.
        assert!((270..390).contains(&cut), "{cut}");
    }

    #[test]
    fn an_outage_is_the_same_in_both_directions_and_another_one_on_another_link() {
        let random = [Outage { lasts: Spell::exponential(SECOND), gap: Some(Spell::exponential(SECOND)), ..outage(None) }; 2];
        let spells = |seed, run, name: &str| first(Downtime::new(&random[..1], seed, run, name), 50);
        let here = spells(7, 3, "base>mobile");
        assert_eq!(here, spells(7, 3, "mobile>base"));
        assert_eq!(spells(7, 3, "base>mobile#2"), spells(7, 3, "mobile>base#2"));
        for (seed, run, name) in [(8, 3, "base>mobile"), (7, 4, "base>mobile"), (7, 3, "base>other"), (7, 3, "base>mobile#2")] {
            assert_ne!(here, spells(seed, run, name));
        }
        let both = Downtime::new(&random, 7, 3, "base>mobile");
        let [one, other] = [0, 1].map(|n| Downtime(vec![both.0[n].clone()]));
        assert_eq!(first(one, 50), here);
        assert_ne!(first(other, 50), here, "entries are independent");
    }

    #[test]
    fn what_is_over_is_forgotten_and_nothing_else_changes() {
        let random = Outage {
            lasts: Spell::exponential(Duration::from_millis(20)),
            gap: Some(Spell::exponential(Duration::from_millis(50))),
            ..outage(None)
        };
        for outage in [outage(Some(50)), random] {
            let (mut kept, mut passed, mut late) = (of(outage), of(outage), of(outage));
            for quarter in 0..40_000 {
                let now = quarter * MS / 4;
                passed.pass(now);
                assert_eq!((passed.until(now), passed.next(now)), (kept.until(now), kept.next(now)), "{now}");
                assert!(passed.0[0].known.len() <= 2);
            }
            let now = 10_000 * MS;
            late.pass(now);
            assert_eq!((late.until(now), late.next(now)), (kept.until(now), kept.next(now)));
            assert!(late.0[0].known.len() <= 2);
        }
    }

    #[test]
    fn senseless_values_are_found() {
        let (none, tiny) = (Duration::ZERO, Duration::from_micros(1));
        let drawn = Outage { lasts: Spell::exponential(tiny), ..outage(None) };
        for (outage, field) in [
            (outage(Some(20)), "outage.every"),
            (Outage { lasts: none.into(), ..outage(None) }, "outage.lasts"),
            (Outage { lasts: Spell::exponential(none), ..outage(None) }, "outage.lasts"),
            (Outage { lasts: Spell::pareto(SECOND, 1.0), ..outage(None) }, "outage.lasts.shape"),
            (Outage { gap: Some(none.into()), ..outage(None) }, "outage.gap"),
            (Outage { gap: Some(Spell::pareto(SECOND, 0.5)), ..outage(None) }, "outage.gap.shape"),
            (Outage { gap: Some(SECOND.into()), ..outage(Some(50)) }, "outage.gap"),
            (Outage { gap: Some(Spell::exponential(tiny)), ..drawn }, "outage.gap"),
            (Outage { every: Some(Duration::from_micros(10)), ..drawn }, "outage.every"),
        ] {
            assert_eq!(outage.flaw().map(|(field, ..)| field), Some(field), "{outage:?}");
        }
        assert_eq!(outage(Some(21)).flaw(), None);
        assert_eq!(Outage { gap: Some(Spell::exponential(SECOND)), ..drawn }.flaw(), None);
    }

    #[test]
    fn outages_that_meet_are_one() {
        let outages = [(10, 20), (25, 10)].map(|(ms, lasts)| Outage {
            packets: WhileDown::Held,
            ..Outage::once(Instant::from_nanos(ms * MS), Duration::from_millis(lasts))
        });
        let mut downtime = Downtime::new(&outages, 1, 0, "a>b");
        assert_eq!(downtime.down_until(9 * MS), None);
        assert_eq!(downtime.down_until(10 * MS), Some(35 * MS));
    }

    #[test]
    fn a_link_turns_when_it_goes_down_and_when_it_is_up_again() {
        let at = |ms: u64| Instant::from_nanos(ms * MS);
        let mut turns = Turns::new(of(outage(Some(50))));
        assert_eq!((turns.next(), turns.turn(at(99))), (Some(at(100)), None));
        assert_eq!((turns.turn(at(100)), turns.next()), (Some(false), Some(at(120))));
        assert_eq!((turns.turn(at(121)), turns.next()), (Some(true), Some(at(150))));
        // Who asks late hears how it is now.
        assert_eq!((turns.turn(at(175)), turns.next()), (None, Some(at(200))));
        assert_eq!(Turns::new(Downtime::default()).next(), None);
    }
}
