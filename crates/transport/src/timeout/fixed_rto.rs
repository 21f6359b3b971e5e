//! Fixed RTO: expiries in a row do not double the timer again and again.

use super::{AfterTimeout, Assessment, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::kit::{Build, Notes, Part};
use crate::settings;
use crate::verdict::Cause;

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "fixed-rto",
    summary: "Expiries in a row leave the timer as it is after the first, so that a path that comes back is noticed soon.",
    reference: "Dyer & Boppana 2001; Yang et al. (TCP Westwood with Bulk Repeat)",
    notes: Notes {
        idea: "A second expiry in a row says that the route is broken, not that it is fuller than before: waiting ever longer only \
               delays the moment at which the sender notices that the route is back.",
        formula: "RTO doubles at the first expiry (Dyer & Boppana), not at the next `limit` (all if 0), and again from then on",
        threshold: "",
        fails: "On a path that is dead from congestion it keeps on sending where the others fall silent: one segment each RTO, up to \
                `limit` more than they, without bound if `limit` is 0. Back-off is a safety rule of RFC 6298 and RFC 8085; this breaks it.",
        errata: "The guard of three expiries is our reading of Bulk Repeat; Dyer & Boppana have none (`limit` = 0). Bulk Repeat keeps the \
                 window; here (`regain`) slow start leads back to it, because nothing clocks out what it would let go at once.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Expiries in a row that leave the timer alone; those after them double it. 0: no limit.
        limit: u32 = 3, 0..=64;
        /// Whether the first expiry doubles the timer (Dyer & Boppana) or counts among those that do not (Bulk Repeat).
        first_doubles: bool = true;
        /// Whether the timer is fixed whatever the verdict (Dyer & Boppana) or for corruption only (Bulk Repeat).
        any_verdict: bool = true;
        /// Whether slow start leads back to the old window after a timeout judged corruption (Bulk Repeat keeps it).
        regain: bool = false;
    }
}

impl Build<dyn TimeoutPolicy> for Settings {
    fn build(self) -> Box<dyn TimeoutPolicy> {
        Box::new(FixedRto {
            limit: self.limit,
            first_doubles: self.first_doubles,
            any_verdict: self.any_verdict,
            regain: self.regain,
        })
    }
}

/// Dyer & Boppana 2001: when the timer expires twice without an acknowledgement between, the timeout is not doubled a second time and
/// stays until the segment is acknowledged. Bulk Repeat: expiries judged corruption do not double it.
#[derive(Debug)]
pub struct FixedRto {
    /// Expiries in a row that do not double the timer; 0: all.
    pub limit: u32,
    /// Whether the first expiry doubles it.
    pub first_doubles: bool,
    /// Whether it is fixed whatever the verdict.
    pub any_verdict: bool,
    /// Whether slow start leads back to the old window after a timeout judged corruption.
    pub regain: bool,
}

impl TimeoutPolicy for FixedRto {
    fn on_timeout(&mut self, timeout: &Timeout) -> TimeoutResponse {
        let corruption = timeout.verdict.cause == Cause::Corruption;
        let applies = self.any_verdict || corruption;
        let doubled = u32::from(self.first_doubles);
        let fixed = timeout.consecutive > doubled && (self.limit == 0 || timeout.consecutive <= doubled + self.limit);
        TimeoutResponse {
            window: if corruption && self.regain { TimeoutWindow::Regain } else { TimeoutWindow::Collapse },
            back_off: !(applies && fixed),
            head_only: false,
        }
    }

    fn assess(&mut self, _after: &AfterTimeout) -> Assessment {
        Assessment::Genuine
    }
}
