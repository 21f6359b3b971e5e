//! How much of the congestion window the sender has made use of.

/// The most that was in flight in the last window of data (as the `pipeACK` of RFC 7661, 4.2, but what was sent, not what was acknowledged).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    most: u64,
    /// The window of data that `most` is of ends here.
    until: u64,
}

impl WindowUse {
    /// Data has left: `una` to `nxt` is outstanding now.
    pub fn on_sent(&mut self, una: u64, nxt: u64) {
        if una >= self.until || nxt - una > self.most {
            self.most = nxt - una;
            self.until = nxt;
        }
    }

    /// Whether more than half of `cwnd` was in use.
    pub const fn is_ample(&self, cwnd: u64) -> bool {
        2 * self.most > cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_of_a_window_counts_until_the_next() {
        let mut used = WindowUse::default();
        for nxt in 1..=9 {
            used.on_sent(0, nxt);
        }
        assert!(used.is_ample(17) && !used.is_ample(18));
        used.on_sent(8, 10);
        assert!(used.is_ample(17), "of the same window");
        used.on_sent(9, 11);
        assert!(!used.is_ample(4), "a new window with two in flight");
    }
}
