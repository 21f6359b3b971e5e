//! TCP-Probing's answer to a timeout: probe first.

use super::{AfterTimeout, Assessment, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::kit::{Build, Notes, Part};
use crate::path::Probed;
use crate::settings;

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "probing",
    summary: "Data waits while probes measure two round trips; window and timer stay if both are short, else the timeout is a standard one.",
    reference: "Tsaoussidis & Badr 2000",
    notes: Notes {
        idea: "A probe of forty octets finds out when the path is back; a retransmission that backs off finds out late.",
        formula: "keep if both round trips <= best + between (last - best), of the round trips before the timeout; else `standard`",
        threshold: "`between`: a larger one keeps the window more often, rightly and wrongly.",
        fails: "On a path that is dead from congestion it sends a probe each RTO where others fall silent, unless `growth` is above 1: RFC 8085 asks for a back-off.",
        errata: "As of the reaction `probing`. With the window kept, acknowledgements lead back to it: nothing clocks out what it would let go at once.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// The longest round trip that is short: so far from the best of the connection (0) to the last before the timeout (1).
        between: f64 = 0.5, 0.0..=1.0;
        /// Factor by which the probe timer, an RTO at first, grows with each probe in a row that is lost.
        growth: f64 = 1.0, 1.0..=2.0;
    }
}

impl Build<dyn TimeoutPolicy> for Settings {
    fn build(self) -> Box<dyn TimeoutPolicy> {
        Box::new(Probing { between: self.between, growth: self.growth, good: None })
    }
}

/// Decides by the probe cycle that comes before.
#[derive(Debug)]
pub struct Probing {
    between: f64,
    growth: f64,
    /// What the latest cycle found, until it is answered.
    good: Option<bool>,
}

impl TimeoutPolicy for Probing {
    fn listens(&self) -> bool {
        false
    }

    fn probes(&self) -> Option<f64> {
        Some(self.growth)
    }

    fn on_probed(&mut self, probed: &Probed) {
        self.good = Some(probed.is_good(self.between));
    }

    fn on_timeout(&mut self, _timeout: &Timeout) -> TimeoutResponse {
        let good = self.good.take().unwrap_or(false);
        let window = if good { TimeoutWindow::Keep } else { TimeoutWindow::Collapse };
        TimeoutResponse { window, back_off: !good, head_only: false }
    }

    fn assess(&mut self, _after: &AfterTimeout) -> Assessment {
        Assessment::Genuine
    }
}
