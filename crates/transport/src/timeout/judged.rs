//! A timeout is judged as duplicate acknowledgements are: only congestion takes the window.

use super::{AfterTimeout, Assessment, Pardon, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::kit::{Build, Notes, Part};
use crate::verdict::Cause;
use crate::{choices, settings};

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "judged",
    summary: "Keeps window and threshold if the first segment is judged corruption, and backs the timer off in any case.",
    reference: "Tsaoussidis & Zhang 2002",
    notes: Notes {
        idea: "Acknowledgements that are lost or late on the way back make a timeout, too. The timer has to allow for that way; the window only for the \
               way of the data.",
        formula: "RTO doubles; corruption: cwnd and ssthresh stay, and all that is outstanding is sent again; else the standard timeout",
        threshold: "",
        fails: "Where nothing arrives at all: each expiry sends up to a window into a dead or congested path. `aware` sends one segment there, and \
                forgives only when an acknowledgement has come.",
        errata: "The publication does not say how a window is used that nothing clocks out. `paced` spreads it over a round-trip time, our choice; \
                 `burst` is what go-back-N with an unchanged window does.",
    },
    ..Part::of::<Settings>()
};

choices! {
    /// How a sender goes on with a window that a timeout has left as it was.
    pub enum Resumption {
        /// One segment after the other over one smoothed round-trip time.
        Paced = "paced",
        /// As acknowledgements come, from one segment more than is in the network.
        Clocked = "clocked",
        /// The whole window at once.
        Burst = "burst",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// How a kept window goes on: paced over one SRTT, clocked by acknowledgements as in slow start, or all of it at once.
        resume: Resumption;
    }
}

impl Build<dyn TimeoutPolicy> for Settings {
    fn build(self) -> Box<dyn TimeoutPolicy> {
        Box::new(Judged::new(self.resume))
    }
}

/// Tsaoussidis & Zhang 2002, figure 2 and the end of 3.2.
#[derive(Debug)]
pub struct Judged {
    resume: Resumption,
    kept: bool,
}

impl Judged {
    /// `resume` says how a kept window goes on.
    pub const fn new(resume: Resumption) -> Self {
        Self { resume, kept: false }
    }
}

impl TimeoutPolicy for Judged {
    fn on_timeout(&mut self, timeout: &Timeout) -> TimeoutResponse {
        self.kept = timeout.verdict.cause == Cause::Corruption;
        let window = match self.resume {
            _ if !self.kept => TimeoutWindow::Collapse,
            Resumption::Paced => TimeoutWindow::KeepPaced,
            Resumption::Clocked => TimeoutWindow::Keep,
            Resumption::Burst => TimeoutWindow::KeepAtOnce,
        };
        TimeoutResponse { window, back_off: true, head_only: false }
    }

    fn assess(&mut self, _after: &AfterTimeout) -> Assessment {
        if self.kept {
            Assessment::Forgiven(Pardon::default())
        } else {
            Assessment::Genuine
        }
    }
}
