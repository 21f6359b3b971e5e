//! Which of a series of numbered reports have been heard.

/// Remembers the last 64 numbers below the highest, modulo 256.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    highest: u8,
    /// Bit n: the number n below the highest. 0 if nothing was heard.
    mask: u64,
}

impl Heard {
    /// Takes note of a number; returns whether it was not heard before. What is too old to be remembered was.
    pub fn is_news(&mut self, number: u8) -> bool {
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
        let mut heard = Heard::default();
        let news: Vec<_> = [250, 250, 252, 251, 251, 3, 253, 254, 253].into_iter().map(|n| heard.is_news(n)).collect();
        assert_eq!(news, [true, false, true, true, false, true, true, true, false]);
        assert!(heard.is_news(100));
        assert!(!heard.is_news(3), "too old");
    }
}
