//! A direction's history, a round trip at a time, in bounded memory: when there are too many rounds, each two become one.

use whyloss_transport::time::{Duration, Instant};

/// Rounds that are kept.
const MAX_ROUNDS: usize = 256;
/// Without round trips a round lasts so long.
const NOTHING_KNOWN: Duration = Duration::from_millis(100);

/// What happened in one round trip, or in several that became one.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// When it began.
    pub began: Instant,
    /// When the next one began.
    pub ended: Instant,
    /// Octets delivered.
    pub delivered: u64,
    /// The shortest and the longest trip, in seconds.
    pub trips: (f64, f64),
    /// Octets outstanding at most.
    pub flight: u64,
    /// Segments taken for lost.
    pub lost: u32,
}

impl Round {
    fn new(began: Instant) -> Self {
        Self { began, ended: began, delivered: 0, trips: (f64::INFINITY, 0.0), flight: 0, lost: 0 }
    }

    /// Octets a second.
    pub fn rate(&self) -> Option<f64> {
        let span = if self.ended > self.began { self.ended.since(self.began).as_secs_f64() } else { 0.0 };
        (span > 0.0).then(|| self.delivered as f64 / span)
    }

    fn join(&mut self, next: &Self) {
        self.ended = next.ended;
        self.delivered += next.delivered;
        self.trips = (self.trips.0.min(next.trips.0), self.trips.1.max(next.trips.1));
        self.flight = self.flight.max(next.flight);
        self.lost += next.lost;
    }
}

/// The rounds of a direction, in the order of time.
#[derive(Clone, Debug)]
pub struct Rounds {
    over: Vec<Round>,
    /// Round trips that make a round.
    width: u32,
    now: Option<Round>,
}

impl Default for Rounds {
    fn default() -> Self {
        Self { over: Vec::new(), width: 1, now: None }
    }
}

impl Rounds {
    /// Octets for which there is room beside itself.
    pub fn octets(&self) -> usize {
        self.over.capacity() * size_of::<Round>()
    }

    /// The round at `at`, after the one before was closed if it was long enough.
    pub fn at(&mut self, at: Instant, trip: Option<Duration>) -> &mut Round {
        let length = trip.unwrap_or(NOTHING_KNOWN) * u64::from(self.width);
        let over = self.now.as_ref().is_some_and(|now| at > now.began && at.since(now.began) >= length);
        if over {
            if let Some(mut done) = self.now.take() {
                done.ended = at;
                self.over.push(done);
            }
            if self.over.len() == MAX_ROUNDS {
                self.halve();
            }
        }
        self.now.get_or_insert_with(|| Round::new(at))
    }

    /// The round under way.
    pub fn now(&mut self) -> &mut Round {
        self.now.get_or_insert_with(|| Round::new(Instant::ZERO))
    }

    fn halve(&mut self) {
        let mut kept = Vec::with_capacity(MAX_ROUNDS);
        for pair in self.over.chunks(2) {
            let mut round = pair[0];
            if let Some(next) = pair.get(1) {
                round.join(next);
            }
            kept.push(round);
        }
        self.over = kept;
        self.width = self.width.saturating_mul(2);
    }

    /// Those that are over.
    pub fn done(&self) -> &[Round] {
        &self.over
    }

    /// The round that contains `at`, and its place in [`Self::done`].
    pub fn find(&self, at: Instant) -> Option<(usize, &Round)> {
        let index = self.over.partition_point(|round| round.ended <= at);
        self.over.get(index).filter(|round| round.began <= at).map(|round| (index, round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_stays_bounded_and_loses_no_octet() {
        let mut rounds = Rounds::default();
        for number in 0..100_000_u64 {
            let at = Instant::from_nanos(number * 1_000_000);
            let round = rounds.at(at, Some(Duration::from_millis(10)));
            round.delivered += 1;
            round.trips = (round.trips.0.min(0.01), round.trips.1.max(number as f64));
        }
        assert!(rounds.done().len() <= MAX_ROUNDS && rounds.done().len() >= MAX_ROUNDS / 2 - 1);
        let open = rounds.now.map_or(0, |now| now.delivered);
        assert_eq!(rounds.done().iter().map(|round| round.delivered).sum::<u64>() + open, 100_000);
        assert!(rounds.done().windows(2).all(|pair| pair[0].ended <= pair[1].began));
        let (_, found) = rounds.find(Instant::from_nanos(50_000_000_000)).expect("the middle is there");
        assert!(found.began.as_secs_f64() <= 50.0 && found.ended.as_secs_f64() > 50.0);
    }
}
