//! Slow start back to the old window after a timeout without congestion.

use super::{AfterTimeout, Assessment, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::kit::{Notes, Part};
use crate::verdict::Cause;

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "regain",
    summary: "Collapses the window like the standard, but slow start leads back to the old one if the first segment is judged corruption.",
    reference: "Wu & Chen 2004",
    notes: Notes {
        idea: "A timeout without congestion stops the acknowledgement clock, and slow start is how it is started again; but there is no \
               reason to end it at half of the window.",
        fails: "As often as the verdict does: after a congestion timeout judged corruption slow start overshoots to the window that was \
                too large.",
        errata: "Our reading of JTCP's timeout branch: another is that the window is halved without slow start.",
        ..Notes::NONE
    },
    ..Part::fixed(|_| Box::new(Regain))
};

/// JTCP's timeouts: without congestion only the threshold differs from the standard. The timer backs off in any case.
#[derive(Debug, Default)]
pub struct Regain;

impl TimeoutPolicy for Regain {
    fn on_timeout(&mut self, timeout: &Timeout) -> TimeoutResponse {
        let window = match timeout.verdict.cause {
            Cause::Corruption => TimeoutWindow::Regain,
            Cause::Congestion | Cause::Unknown => TimeoutWindow::Collapse,
        };
        TimeoutResponse { window, back_off: true, head_only: false }
    }

    fn assess(&mut self, _after: &AfterTimeout) -> Assessment {
        Assessment::Genuine
    }
}
