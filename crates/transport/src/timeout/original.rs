//! Did the original arrive late? What every policy asks first that would forgive a timeout.

use super::{AfterTimeout, Assessment, Eifel, FRto, Timeout, TimeoutPolicy};

/// Eifel on connections with timestamps, F-RTO on others, where it is allowed to: it changes what is sent.
#[derive(Debug, Default)]
pub(super) struct Original {
    eifel: Eifel,
    frto: FRto,
    timestamps: bool,
    decided: bool,
}

impl Original {
    pub fn on_timeout(&mut self, timeout: &Timeout, may_change_what_is_sent: bool) {
        self.eifel.on_timeout(timeout);
        self.frto.on_timeout(timeout);
        self.timestamps = timeout.timestamps;
        self.decided = !timeout.timestamps && !may_change_what_is_sent;
    }

    /// Spurious if it did, genuine if not or for all that is known.
    pub fn assess(&mut self, after: &AfterTimeout) -> Assessment {
        if self.decided {
            return Assessment::Genuine;
        }
        let assessment = if self.timestamps { self.eifel.assess(after) } else { self.frto.assess(after) };
        self.decided = assessment != Assessment::Undecided;
        assessment
    }
}
