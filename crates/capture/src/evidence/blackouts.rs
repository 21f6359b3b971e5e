//! Times in which nothing that was sent arrived: transmissions that were lost one after the other, in the order in which they were sent.
//!
//! A full queue takes one packet in for each that it sends on, so it cannot refuse all that come for longer than it needs for a few; a link that
//! is down takes none. And it mostly loses what comes back, too: acknowledgements fail to come from before the first loss could show on.

use crate::scoreboard::Piece;
use std::collections::VecDeque;
use whyloss_transport::time::{Duration, Instant};

/// Blackouts that are remembered.
const MAX_BLACKOUTS: usize = 1024;
/// Those of them that a loss is compared with.
const MAX_RECENT: usize = 64;
/// Pauses of the acknowledgements that are remembered.
const MAX_PAUSES: usize = 64;

/// A row of transmissions of which none arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blackout {
    /// The numbers of the first and of the last one among all transmissions.
    orders: (u64, u64),
    /// When the first and the last passed the capture. Of what it did not see: when the segments before and behind did.
    passed: (Instant, Instant),
    /// When the first one left.
    left: Instant,
    /// How many they are.
    pub count: u32,
    /// How often one of them had been sent before, at most.
    pub again: u32,
    /// The longest pause of the acknowledgements around them: the last one before it, and the first one behind it or how long it had lasted when
    /// the sender repaired.
    pause: Option<(Instant, Instant)>,
    /// The capture did not see them.
    unseen: bool,
    /// Octets were under way before the first one, so that acknowledgements were to come.
    awaited: bool,
}

impl Blackout {
    /// From the first one that was lost to the last.
    pub fn span(&self) -> Duration {
        self.passed.1.since(self.passed.0)
    }

    /// How long nothing came back around it.
    pub fn silence(&self) -> Option<Duration> {
        self.pause.map(|(from, to)| to.since(from))
    }

    /// From the first loss to the last acknowledgement before the silence, in seconds. A round trip if only data was lost: so long acknowledgements
    /// of what was sent before go on. `None` if none were to come.
    pub fn onset(&self) -> Option<f64> {
        let (from, _) = self.pause.filter(|_| self.awaited)?;
        Some(from.as_secs_f64() - self.left.as_secs_f64())
    }

    fn join(&mut self, other: &Self) {
        if other.orders.0 < self.orders.0 {
            (self.orders.0, self.left, self.awaited) = (other.orders.0, other.left, other.awaited);
        }
        if other.orders.1 > self.orders.1 {
            self.orders.1 = other.orders.1;
        }
        self.passed = (self.passed.0.min(other.passed.0), self.passed.1.max(other.passed.1));
        self.count += other.count;
        self.again = self.again.max(other.again);
        if other.silence() > self.silence() {
            self.pause = other.pause;
        }
    }
}

/// The blackouts of a direction.
#[derive(Debug, Default)]
pub struct Blackouts {
    rows: VecDeque<Blackout>,
    /// Times without an acknowledgement, the latest at the end.
    pauses: VecDeque<(Instant, Instant)>,
    heard: Option<Instant>,
}

impl Blackouts {
    /// An acknowledgement came. A pause counts from `least` on.
    pub fn on_answer(&mut self, at: Instant, least: Duration) {
        if let Some(last) = self.heard.replace(at).filter(|last| at > *last && at.since(*last) >= least) {
            if self.pauses.len() == MAX_PAUSES {
                self.pauses.pop_front();
            }
            self.pauses.push_back((last, at));
        }
    }

    /// This transmission was lost, as its sender shows now. `trip` is about a round trip.
    pub fn on_lost(&mut self, piece: &Piece, now: Instant, trip: Duration) {
        let open = self.heard.filter(|heard| now > *heard).map(|heard| (heard, now));
        let until = piece.left + trip * 2;
        let around = self.pauses.iter().copied().chain(open).filter(|(from, to)| *to > piece.left && *from <= until);
        let mut row = Blackout {
            orders: (piece.order, piece.order),
            // Clocks of captures jump.
            passed: (piece.after.min(piece.at), piece.at),
            left: piece.left,
            count: 1,
            again: piece.transmission,
            unseen: piece.number.is_none(),
            pause: around.max_by_key(|(from, to)| to.since(*from)),
            awaited: piece.flight > piece.end - piece.start,
        };
        // It may close what lay between two rows.
        for _ in 0..2 {
            let touches = |other: &Blackout| {
                let adjacent = other.orders.1 + 1 == row.orders.0 || row.orders.1 + 1 == other.orders.0;
                // What was lost in one pause before the capture is known one repair after the other.
                adjacent || row.unseen && other.unseen && other.passed.0 == row.passed.0
            };
            let recent = self.rows.len().saturating_sub(MAX_RECENT);
            let Some(index) = self.rows.range(recent..).position(touches) else { break };
            if let Some(other) = self.rows.remove(recent + index) {
                row.join(&other);
            }
        }
        if self.rows.len() == MAX_BLACKOUTS {
            self.rows.pop_front();
        }
        self.rows.push_back(row);
    }

    /// Octets of memory that it has taken.
    pub fn octets(&self) -> usize {
        size_of::<Blackout>() * self.rows.capacity() + size_of::<(Instant, Instant)>() * self.pauses.capacity()
    }

    /// The row that a lost transmission is in.
    pub fn of(&self, piece: &Piece) -> Option<Blackout> {
        self.rows.iter().rev().find(|row| (row.orders.0..=row.orders.1).contains(&piece.order)).copied()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const TRIP: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn piece(order: u64, left: u64, transmission: u32) -> Piece {
        Piece { transmission, ..lost(order, at(left)) }
    }

    /// A transmission of this number that was lost.
    pub(crate) fn lost(order: u64, left: Instant) -> Piece {
        let (start, end) = (order * 1000, order * 1000 + 1000);
        Piece {
            start,
            end,
            number: Some(order),
            at: left,
            after: left,
            left,
            transmission: 0,
            order,
            flight: 8000,
            ecn: 0,
            hop_limit: 64,
            damaged: false,
            sacked: false,
            lost: true,
        }
    }

    #[test]
    fn losses_that_follow_each_other_are_one_blackout_in_whatever_order_they_are_repaired() {
        let mut blackouts = Blackouts::default();
        blackouts.on_answer(at(1000), TRIP);
        for (order, left, transmission, now) in [(5, 1010, 0, 1400), (9, 1400, 1, 2200), (6, 1020, 0, 2310), (8, 1040, 0, 2311)] {
            if now > 2300 {
                blackouts.on_answer(at(2300), TRIP);
            }
            blackouts.on_lost(&piece(order, left, transmission), at(now), TRIP);
        }
        assert_eq!(blackouts.of(&piece(5, 0, 0)).map(|row| row.count), Some(2));
        blackouts.on_lost(&piece(7, 1030, 0), at(2312), TRIP);
        let row = blackouts.of(&piece(9, 0, 0)).expect("it is known");
        assert_eq!((row.count, row.again, row.span()), (5, 1, Duration::from_millis(390)));
        assert_eq!(row.silence(), Some(Duration::from_millis(1300)));
        assert!((row.onset().unwrap() + 0.01).abs() < 1e-9, "acknowledgements ended before the first loss: {row:?}");
        assert_eq!(blackouts.of(&piece(10, 0, 0)), None);
    }

    #[test]
    fn what_arrived_between_parts_them_and_memory_is_bounded() {
        let mut blackouts = Blackouts::default();
        for order in 0..100_000 {
            blackouts.on_lost(&piece(order * 2, order, 0), at(order), TRIP);
            blackouts.on_answer(at(order * 200), TRIP);
        }
        assert!(blackouts.rows.len() <= MAX_BLACKOUTS && blackouts.pauses.len() <= MAX_PAUSES);
        assert_eq!(blackouts.of(&piece(199_998, 0, 0)).map(|row| row.count), Some(1));
    }
}
