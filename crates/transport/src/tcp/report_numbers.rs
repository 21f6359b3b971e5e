//! Which of a series of numbered reports have arrived.

/// Remembers the last 64 numbers below the highest, modulo 256.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportNumbers {
    highest: u8,
    /// Bit n: the number n below the highest. 0 if none has arrived.
    mask: u64,
}

impl ReportNumbers {
    /// Takes note of a number; returns whether it is new. What is too old to be remembered is not.
    pub fn is_new(&mut self, number: u8) -> bool {
        let ahead = number.wrapping_sub(self.highest);
        if self.mask == 0 {
            (self.highest, self.mask) = (number, 1);
            return true;
        }
        if ahead == 0 || ahead >= 128 {
            let bit = 1u64.checked_shl(u32::from(ahead.wrapping_neg())).unwrap_or(0);
            let news = bit != 0 && self.mask & bit == 0;
            self.mask |= bit;
            return news;
        }
        self.mask = self.mask.checked_shl(u32::from(ahead)).unwrap_or(0) | 1;
        self.highest = number;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_news_once_in_any_order() {
        let mut numbers = ReportNumbers::default();
        let news: Vec<_> = [250, 250, 252, 251, 251, 3, 253, 254, 253].into_iter().map(|n| numbers.is_new(n)).collect();
        assert_eq!(news, [true, false, true, true, false, true, true, true, false]);
        assert!(numbers.is_new(100));
        assert!(!numbers.is_new(3), "too old");
    }
}
