//! Binary exponential backoff that counts slots while the medium is idle, without an event for each.

use crate::random::Stream;

const NEVER: u64 = u64::MAX;

/// The backoff of a station. While it counts, the moment of its end is known; freezing it takes off the slots that have passed.
#[derive(Debug)]
pub(super) struct Backoff {
    slot: u64,
    least: u32,
    most: u32,
    window: u32,
    /// Slots that are left, as of `from`.
    slots: u32,
    /// When the first of them begins; `NEVER` while nothing counts.
    from: u64,
    stream: Stream,
}

impl Backoff {
    /// A backoff that has long run out.
    pub const fn new(slot: u64, least: u32, most: u32, stream: Stream) -> Self {
        Self { slot, least, most, window: least, slots: 0, from: 0, stream }
    }

    /// When it runs out, if it counts.
    pub fn due(&self) -> Option<u64> {
        (self.from != NEVER).then(|| self.from.saturating_add(u64::from(self.slots) * self.slot))
    }

    /// No slot is left to count.
    pub const fn is_over(&self) -> bool {
        self.slots == 0
    }

    /// A new number of slots from the window.
    pub fn draw(&mut self) {
        self.slots = self.stream.below(u64::from(self.window) + 1) as u32;
    }

    /// The window is small again.
    pub fn reset(&mut self) {
        self.window = self.least;
    }

    /// The window doubles.
    pub fn widen(&mut self) {
        self.window = (2 * self.window + 1).min(self.most);
    }

    /// Slots count from this time on.
    pub fn count_from(&mut self, from: u64) {
        self.from = from;
    }

    /// Counting stops at `until`: every slot that is over by then has counted.
    pub fn freeze(&mut self, until: u64) {
        if self.from != NEVER {
            let passed = until.saturating_sub(self.from) / self.slot;
            self.slots -= passed.min(u64::from(self.slots)) as u32;
            self.from = NEVER;
        }
    }

    /// It has run out and nothing counts any more.
    pub fn finish(&mut self) {
        self.slots = 0;
        self.from = NEVER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff() -> Backoff {
        Backoff::new(20, 3, 15, Stream::new(1, 0, "station a", "backoff"))
    }

    #[test]
    fn only_whole_slots_count() {
        let mut backoff = backoff();
        backoff.slots = 5;
        backoff.count_from(100);
        assert_eq!(backoff.due(), Some(200));
        backoff.freeze(139);
        assert_eq!((backoff.slots, backoff.due()), (4, None));
        backoff.count_from(1000);
        assert_eq!(backoff.due(), Some(1080));
        backoff.freeze(990);
        assert_eq!(backoff.slots, 4);
        backoff.count_from(2000);
        backoff.freeze(9000);
        assert!(backoff.is_over());
    }

    #[test]
    fn the_window_doubles_up_to_its_end() {
        let mut backoff = backoff();
        let mut windows = Vec::new();
        for _ in 0..4 {
            windows.push(backoff.window);
            backoff.widen();
        }
        assert_eq!(windows, [3, 7, 15, 15]);
        backoff.reset();
        let mut counts = [0; 4];
        for _ in 0..40_000 {
            backoff.draw();
            counts[backoff.slots as usize] += 1;
        }
        // 10,000 each, standard deviation 87.
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
    }
}
