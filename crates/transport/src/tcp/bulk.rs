//! Bulk retransmission without SACK, and the echoes of what need not have been repeated.

/// A fast recovery that repeats everything that was outstanding at its beginning ([`Repair::Bulk`](crate::reaction::Repair::Bulk)).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bulk {
    /// Everything below this position is sent again; 0 if nothing is.
    pub until: u64,
    /// Duplicate acknowledgements to come that mean no loss: one for each repetition that the receiver has no use for.
    echoes: u64,
    /// The echoes are over when this position has been acknowledged.
    echoes_until: u64,
}

impl Bulk {
    /// Begins, or ends with `until` 0. Echoes of an earlier one may still come.
    pub fn begin(&mut self, until: u64) {
        self.until = until;
    }

    /// `SND.UNA` has advanced to `una` over `repeated` segments that had been sent again. The repetition of the first of them filled a
    /// hole; those of the others are still under way, since repetitions leave and arrive in order.
    pub fn on_advance(&mut self, una: u64, nxt: u64, repeated: u64) {
        if una >= self.echoes_until {
            self.echoes = 0;
        }
        if self.until > 0 && repeated > 1 {
            self.echoes += repeated - 1;
            self.echoes_until = nxt;
        }
    }

    /// Whether a duplicate acknowledgement is an echo.
    pub fn take_echo(&mut self) -> bool {
        let echo = self.echoes > 0;
        self.echoes = self.echoes.saturating_sub(1);
        echo
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_needless_repetition_excuses_one_duplicate() {
        let mut bulk = Bulk::default();
        bulk.begin(2000);
        // Ten segments at once: one filled the hole, nine repetitions will come back.
        bulk.on_advance(1500, 3000, 10);
        assert_eq!((0..20).filter(|_| bulk.take_echo()).count(), 9);
        bulk.on_advance(2000, 3500, 5);
        bulk.begin(0);
        assert!(bulk.take_echo());
        bulk.on_advance(3400, 5000, 0);
        assert!(bulk.take_echo());
        bulk.on_advance(3500, 5000, 0);
        assert!(!bulk.take_echo(), "what was sent after the repetitions has arrived");
    }

    #[test]
    fn ordinary_recovery_has_no_echoes() {
        let mut bulk = Bulk::default();
        bulk.on_advance(1500, 3000, 10);
        assert!(!bulk.take_echo());
    }
}
