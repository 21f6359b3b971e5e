//! What a link layer measures of its channel.

use std::collections::VecDeque;

/// What a link layer knows of its channel: how many of the last packets it has damaged or erased.
#[derive(Debug)]
pub(crate) struct Meter {
    window: usize,
    packets: VecDeque<bool>,
    corrupted: u32,
}

impl Meter {
    /// Over the last `window` packets.
    pub const fn new(window: u32) -> Self {
        Self { window: window as usize, packets: VecDeque::new(), corrupted: 0 }
    }

    /// A packet has crossed the channel.
    pub fn note(&mut self, corrupted: bool) {
        if self.packets.len() == self.window {
            self.corrupted -= u32::from(self.packets.pop_front() == Some(true));
        }
        self.packets.push_back(corrupted);
        self.corrupted += u32::from(corrupted);
    }

    /// The share of packets that were damaged or erased; 0 before the first.
    pub fn share(&self) -> f64 {
        f64::from(self.corrupted) / self.packets.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_forgets() {
        let mut meter = Meter::new(4);
        assert_eq!(meter.share(), 0.0);
        for corrupted in [true, false] {
            meter.note(corrupted);
        }
        assert_eq!(meter.share(), 0.5);
        for corrupted in [false, false, false] {
            meter.note(corrupted);
        }
        assert_eq!(meter.share(), 0.0);
        meter.note(true);
        assert_eq!(meter.share(), 0.25);
    }
}
