//! Extremes and mean of what was seen lately.

/// What some numbers lie between, and their mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    min: u64,
    max: u64,
    sum: u64,
    count: u64,
}

impl Default for Extent {
    fn default() -> Self {
        Self { min: u64::MAX, max: 0, sum: 0, count: 0 }
    }
}

impl Extent {
    /// The smallest number, if there is one.
    pub fn min(&self) -> Option<u64> {
        (self.min != u64::MAX).then_some(self.min)
    }

    /// The largest number; 0 if there is none.
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 if there is no number.
    pub fn mean(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }

    /// How many numbers there are.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Adds a number.
    pub fn insert(&mut self, number: u64) {
        self.insert_low(number);
        self.max = self.max.max(number);
    }

    /// Sees a number that may be the smallest but not the largest.
    pub fn insert_low(&mut self, number: u64) {
        self.min = self.min.min(number);
        self.sum = self.sum.saturating_add(number);
        self.count += 1;
    }

    fn join(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            sum: self.sum.saturating_add(other.sum),
            count: self.count + other.count,
        }
    }
}

/// The extremes and the mean of the numbers that were seen in the last `N` slots. The caller says when a slot ends.
#[derive(Clone, Copy, Debug)]
pub struct Recent<const N: usize> {
    /// The complete slots, in a ring.
    slots: [Extent; N],
    next: usize,
    /// Of all complete slots.
    past: Extent,
    current: Extent,
}

impl<const N: usize> Default for Recent<N> {
    fn default() -> Self {
        Self { slots: [Extent::default(); N], next: 0, past: Extent::default(), current: Extent::default() }
    }
}

impl<const N: usize> Recent<N> {
    /// Adds a number to the slot under way.
    pub fn insert(&mut self, number: u64) {
        self.current.insert(number);
    }

    /// Sees a number that may be the smallest but not the largest.
    pub fn insert_low(&mut self, number: u64) {
        self.current.insert_low(number);
    }

    /// The slot under way is over, and the oldest one forgotten.
    pub fn advance(&mut self) {
        self.slots[self.next] = std::mem::take(&mut self.current);
        self.next = (self.next + 1) % N;
        self.past = self.slots.iter().copied().fold(Extent::default(), Extent::join);
    }

    /// Forgets every smallest number.
    pub fn forget_lows(&mut self) {
        for extent in self.slots.iter_mut().chain([&mut self.past, &mut self.current]) {
            extent.min = u64::MAX;
        }
    }

    /// Of the last `N` complete slots and the one under way.
    pub fn extent(&self) -> Extent {
        self.past.join(self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_slot_is_forgotten() {
        let mut recent = Recent::<2>::default();
        assert_eq!((recent.extent().min(), recent.extent().max()), (None, 0));
        recent.insert(5);
        recent.insert(9);
        recent.advance();
        recent.insert(7);
        recent.advance();
        assert_eq!((recent.extent().min(), recent.extent().max(), recent.extent().mean()), (Some(5), 9, 7));
        recent.insert(8);
        recent.advance();
        assert_eq!((recent.extent().min(), recent.extent().max()), (Some(7), 8));
        recent.insert_low(20);
        assert_eq!((recent.extent().min(), recent.extent().max()), (Some(7), 8));
        recent.forget_lows();
        assert_eq!((recent.extent().min(), recent.extent().max()), (None, 8));
    }
}
