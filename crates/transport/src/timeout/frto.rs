//! F-RTO: forward recovery after a timeout (RFC 5682).

use super::{AfterTimeout, Assessment, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::kit::{Notes, Part};

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "f-rto",
    summary: "Tells a spurious timeout by which data the next two acknowledgements acknowledge.",
    reference: "RFC 5682",
    notes: Notes::NONE,
    ..Part::fixed(|_| Box::new(FRto::default()))
};

/// Retransmits the first outstanding segment only, then sends new data and watches what is acknowledged next. If that is data which
/// was not retransmitted, the timeout was spurious. Follows the SACK variant (RFC 5682, 3.1) on connections with SACK and the basic
/// one (RFC 5682, 2.1) on others; needs no option of the peer.
#[derive(Debug, Default)]
pub struct FRto {
    step: Step,
    sack: bool,
}

/// Step of the algorithm that the next acknowledgement takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// Not spurious: conventional recovery goes on.
    #[default]
    Conventional,
    /// Step 2: does the retransmission get acknowledged, and not everything with it?
    Retransmission,
    /// Step 3: what gets acknowledged after it?
    Forward,
}

impl TimeoutPolicy for FRto {
    fn on_timeout(&mut self, timeout: &Timeout) -> TimeoutResponse {
        // Step 1: a timeout within the repair of a timeout is taken for genuine.
        self.step = if timeout.in_recovery { Step::Conventional } else { Step::Retransmission };
        self.sack = timeout.sack;
        TimeoutResponse { window: TimeoutWindow::Collapse, back_off: true, head_only: self.step == Step::Retransmission }
    }

    fn assess(&mut self, after: &AfterTimeout) -> Assessment {
        let advanced = after.ack.acked > 0;
        if !advanced && !after.ack.duplicate {
            return if self.step == Step::Conventional { Assessment::Genuine } else { Assessment::Undecided };
        }
        let assessment = match self.step {
            Step::Retransmission => self.assess_retransmission(after, advanced),
            Step::Forward if self.sack => assess_forward_sack(after, advanced),
            Step::Forward if advanced => Assessment::Spurious, // 2.1 step 3b
            Step::Forward | Step::Conventional => Assessment::Genuine, // 2.1 step 3a
        };
        if assessment != Assessment::Undecided {
            self.step = Step::Conventional;
        }
        assessment
    }
}

impl FRto {
    fn assess_retransmission(&mut self, after: &AfterTimeout, advanced: bool) -> Assessment {
        if !advanced && self.sack {
            return Assessment::Undecided; // 3.1 step 2: duplicates only fill the scoreboard
        }
        let una = after.ack.path.una;
        if !advanced || una >= after.recover || una < after.head_end || !after.new_data_possible {
            return Assessment::Genuine; // step 2a
        }
        self.step = Step::Forward; // step 2b
        Assessment::Undecided
    }
}

/// RFC 5682, 3.1 step 3.
fn assess_forward_sack(after: &AfterTimeout, advanced: bool) -> Assessment {
    if !after.beyond_recover && (advanced || after.original_delivered) {
        Assessment::Spurious
    } else {
        Assessment::Genuine
    }
}
