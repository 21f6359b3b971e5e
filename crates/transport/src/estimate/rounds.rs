//! Round trips, counted by what is acknowledged.

use crate::path::Path;

/// Tells when a round trip is over: when data is acknowledged that was sent after the round had begun.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounds {
    /// `SND.NXT` at the beginning of the round.
    end: Option<u64>,
}

impl Rounds {
    /// An acknowledgement has brought the path up to date; returns whether it ends a round. The first one only begins one.
    pub fn on_ack(&mut self, path: &Path) -> bool {
        let over = self.end.is_some_and(|end| path.una > end);
        if over || self.end.is_none() {
            self.end = Some(path.nxt);
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_data_that_was_sent_after_its_beginning() {
        let mut rounds = Rounds::default();
        let mut at = |una, nxt| rounds.on_ack(&Path { una, nxt, ..Path::default() });
        assert!(!at(1, 11), "it begins");
        assert!(!at(5, 16));
        assert!(!at(11, 22), "everything that was outstanding");
        assert!(at(12, 23));
        assert!(!at(23, 33));
        assert!(at(24, 34));
    }
}
