//! Bulk retransmission without SACK, and the echoes of what need not have been repeated.

/// What comes back of a fast recovery that repeats everything that was outstanding at its beginning
/// ([`Repair::Bulk`](crate::reaction::Repair::Bulk)): also when that is over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echoes {
    /// The latest fast recovery repeats everything.
    expected: bool,
    /// Duplicate acknowledgements to come that mean no loss: one for each repetition that the receiver has no use for.
    left: u64,
    /// The echoes are over when this position has been acknowledged.
    until: u64,
}

impl Echoes {
    /// A fast recovery begins that repeats everything or not. Echoes of an earlier one may still come.
    pub fn begin(&mut self, expected: bool) {
        self.expected = expected;
    }

    /// `SND.UNA` has advanced to `una` over `repeated` segments that had been sent again. The repetition of the first of them filled a
    /// hole; those of the others are still under way, since repetitions leave and arrive in order.
    pub fn on_advance(&mut self, una: u64, nxt: u64, repeated: u64) {
        if una >= self.until {
            self.left = 0;
        }
        if self.expected && repeated > 1 {
            self.left += repeated - 1;
            self.until = nxt;
        }
    }

    /// Whether a duplicate acknowledgement is an echo.
    pub fn take_echo(&mut self) -> bool {
        let echo = self.left > 0;
        self.left = self.left.saturating_sub(1);
        echo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_needless_repetition_excuses_one_duplicate() {
        let mut echoes = Echoes::default();
        echoes.begin(true);
        // Ten segments at once: one filled the hole, nine repetitions will come back.
        echoes.on_advance(1500, 3000, 10);
        assert_eq!((0..20).filter(|_| echoes.take_echo()).count(), 9);
        echoes.on_advance(2000, 3500, 5);
        echoes.begin(false);
        assert!(echoes.take_echo());
        echoes.on_advance(3400, 5000, 0);
        assert!(echoes.take_echo());
        echoes.on_advance(3500, 5000, 0);
        assert!(!echoes.take_echo(), "what was sent after the repetitions has arrived");
    }

    #[test]
    fn ordinary_recovery_has_no_echoes() {
        let mut echoes = Echoes::default();
        echoes.on_advance(1500, 3000, 10);
        assert!(!echoes.take_echo());
    }
}
