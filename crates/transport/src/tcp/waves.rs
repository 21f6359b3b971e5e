//! TCP-Real's waves: segments that belong together, so that a receiver can measure at which rate they come (Tsaoussidis & Zhang 2002).

use crate::path::Formation;
use crate::segment::Wave;
use crate::time::{Duration, Instant};

/// So many times the spacing of a run are a pause.
const PAUSE: u64 = 4;
/// Segments from which on a run has a spacing of its own.
const RUN: u32 = 4;

/// The wave under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waves {
    current: Wave,
    /// Segments of it that have not left.
    left: u8,
    /// Segments of it that have.
    sent: u32,
    began: Instant,
    /// When the latest segment left.
    latest: Instant,
    /// Where its first segment begins.
    start: u64,
    /// Mean time between the segments of the latest run that was long enough to tell, and did not leave all at once.
    spacing: Option<Duration>,
}

/// A new segment is about to leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    pub now: Instant,
    /// Position of its first octet.
    pub start: u64,
    /// `SND.UNA`, as a position in the stream.
    pub una: u64,
    /// Segments, this one among them, that can leave in a row.
    pub segments: u64,
}

impl Waves {
    /// The wave of a new segment.
    pub fn next(&mut self, formation: Formation, leaving: &Leaving) -> Wave {
        let Leaving { now, start, .. } = *leaving;
        let over = match formation {
            Formation::Train => self.is_run_over(leaving),
            Formation::Window => false,
            Formation::Burst => now != self.began,
            Formation::Hold => leaving.una == start,
        };
        if self.left == 0 || over {
            let size = leaving.segments.clamp(1, u64::from(u8::MAX)) as u8;
            self.current = Wave { number: self.current.number.wrapping_add(1), size };
            (self.left, self.sent, self.began, self.start) = (size, 0, now, start);
        }
        self.left -= 1;
        self.sent += 1;
        self.latest = now;
        if self.sent >= RUN {
            let mean = now.since(self.began) / u64::from(self.sent - 1);
            self.spacing = Some(mean).filter(|mean| *mean > Duration::ZERO).or(self.spacing);
        }
        self.current
    }

    /// Whether a segment that would begin a wave waits, with `formation`, because an earlier one is not acknowledged.
    pub fn holds(&self, formation: Formation, outstanding: bool) -> bool {
        formation == Formation::Hold && self.left == 0 && outstanding
    }

    /// The wave of a retransmission, of which it is no member.
    pub fn current(&self) -> Wave {
        self.current
    }

    /// A pause has ended the run, or its first segment has been acknowledged: a round trip is over.
    fn is_run_over(&mut self, leaving: &Leaving) -> bool {
        let pause = self.spacing.is_some_and(|spacing| leaving.now.since(self.latest) > spacing * PAUSE);
        if pause && self.sent < RUN {
            // Runs that never are long enough to tell their spacing: it was measured on something denser.
            self.spacing = self.spacing.map(|spacing| spacing * 2);
        }
        self.sent > 0 && (pause || leaving.una > self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u64 = 1000;

    struct Sender {
        waves: Waves,
        formation: Formation,
        start: u64,
    }

    impl Sender {
        fn new(formation: Formation) -> Self {
            Self { waves: Waves::default(), formation, start: 0 }
        }

        /// The next segment leaves when `acked` segments are acknowledged and `segments` could leave.
        fn send(&mut self, us: u64, acked: u64, segments: u64) -> (u8, u8) {
            let leaving =
                Leaving { now: Instant::ZERO + Duration::from_micros(us), start: self.start, una: acked * FULL, segments };
            self.start += FULL;
            let Wave { number, size } = self.waves.next(self.formation, &leaving);
            (number, size)
        }
    }

    #[test]
    fn a_window_lasts_until_its_size_is_used() {
        let mut sender = Sender::new(Formation::Window);
        for (us, segments, expected) in
            [(0, 2, (1, 2)), (1, 9, (1, 2)), (2, 3, (2, 3)), (9, 1, (2, 3)), (9, 1, (2, 3)), (9, 0, (3, 1))]
        {
            assert_eq!(sender.send(us, 0, segments), expected);
        }
        assert_eq!(sender.send(9, 0, 1000), (4, 255));
        sender.formation = Formation::Burst;
        assert_eq!(sender.send(9, 0, 7), (4, 255));
        assert_eq!(sender.send(10, 0, 7), (5, 7));
        assert_eq!(sender.send(11, 0, 2), (6, 2), "another moment, another wave");
        assert_eq!(sender.waves.current(), Wave { number: 6, size: 2 });
    }

    #[test]
    fn a_wave_is_held_until_nothing_is_outstanding() {
        let mut sender = Sender::new(Formation::Hold);
        assert!(!sender.waves.holds(Formation::Hold, false));
        for n in 0..4 {
            assert_eq!(sender.send(n, 0, 4), (1, 4), "{n}");
        }
        assert!(sender.waves.holds(Formation::Hold, true) && !sender.waves.holds(Formation::Train, true));
        assert_eq!(sender.send(100, 4, 5), (2, 5));
        assert!(!sender.waves.holds(Formation::Hold, true), "four of them may leave while the first is outstanding");
        // A timeout has cut the second wave short: what leaves when nothing is outstanding begins another.
        assert_eq!(sender.send(900, 5, 2), (3, 2));
    }

    #[test]
    fn a_train_ends_with_a_pause() {
        let mut sender = Sender::new(Formation::Train);
        // Ten leave at 800 us each, as acknowledgements of earlier segments let them out; then nothing for five times as long.
        for n in 0..10 {
            assert_eq!(sender.send(800 * n, 0, 20), (1, 20), "{n}");
        }
        assert_eq!(sender.send(7_200 + 3_200, 0, 20), (1, 20), "four times the spacing is none: 800 us so far");
        assert_eq!(sender.send(10_400 + 5_000, 0, 20), (2, 20), "more than four times 1,040 us");
        // The spacing of the run before counts until this one has its own.
        assert_eq!(sender.send(15_400 + 4_000, 0, 20), (2, 20));
        assert_eq!(sender.send(19_400 + 4_200, 0, 20), (3, 20));
        // A run that was too short to tell its spacing: it was larger.
        assert_eq!(sender.send(23_600 + 8_000, 0, 20), (3, 20));
        assert_eq!(sender.send(31_600 + 8_400, 0, 20), (4, 20));
    }

    #[test]
    fn a_train_is_a_round_trip_at_most_and_a_window_at_most() {
        let mut sender = Sender::new(Formation::Train);
        for n in 0..8 {
            assert_eq!(sender.send(0, 0, 8), (1, 8), "{n}");
        }
        // The eighth was its last, though there was no pause.
        assert_eq!(sender.send(0, 0, 6), (2, 6));
        assert_eq!(sender.send(10, 8, 6), (2, 6), "everything before its first segment is acknowledged");
        assert_eq!(sender.send(20, 9, 6), (3, 6), "its first one, too");
    }
}
