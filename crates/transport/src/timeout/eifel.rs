//! Eifel: spurious timeouts told by timestamps (RFC 3522).

use super::{AfterTimeout, Assessment, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::kit::{Notes, Part};
use crate::seq::Seq;

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "eifel",
    summary: "Tells a spurious timeout by the timestamp that the first acknowledgement echoes.",
    reference: "RFC 3522, RFC 4015",
    notes: Notes::NONE,
    ..Part::fixed(|_| Box::new(Eifel::default()))
};

/// The first acknowledgement that advances after a timeout echoes the timestamp of the segment that set it off. If that is older than
/// the retransmission, the original had arrived, and the timeout was spurious. What follows then (old window and threshold, timer
/// by the long sample: RFC 4015) is the engine's undo. Without timestamps this is the standard policy.
#[derive(Debug, Default)]
pub struct Eifel {
    armed: bool,
    dsack_seen: bool,
}

impl TimeoutPolicy for Eifel {
    fn on_timeout(&mut self, timeout: &Timeout) -> TimeoutResponse {
        // If the timer expires again before the first answer, the first retransmission's timestamp still decides (RFC 3522, step 2).
        self.armed = timeout.timestamps && (self.armed || !timeout.in_recovery);
        TimeoutResponse { window: TimeoutWindow::Collapse, back_off: true, head_only: self.armed }
    }

    fn assess(&mut self, after: &AfterTimeout) -> Assessment {
        let dsack_known = self.dsack_seen;
        self.dsack_seen |= after.dsack;
        if !self.armed {
            return Assessment::Genuine;
        }
        if after.ack.acked == 0 {
            return Assessment::Undecided; // step 3 waits for an acceptable ACK
        }
        self.armed = false;
        let original_echoed = match (after.ack.options.timestamps, after.retransmission_tsval) {
            (Some(timestamps), Some(retransmission)) => Seq(timestamps.echo).precedes(Seq(retransmission)), // step 4
            _ => false,
        };
        // Step 5: if everything is acknowledged at once, the original may have been lost and acknowledgements too, unless the
        // receiver is known to report duplicates and reports none.
        let everything_acked = after.ack.path.una >= after.recover;
        if original_echoed && !after.dsack && (dsack_known || !everything_acked) {
            Assessment::Spurious
        } else {
            Assessment::Genuine
        }
    }
}
