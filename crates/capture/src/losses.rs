//! From what was sent again to what was lost, and why.

use crate::cause::{Cause, Probabilities};
use crate::connections::Side;
use crate::half::{Retransmission, Trigger, Unneeded};
use crate::report::Loss;

/// The packet that `sent` repairs: lost, or taken for lost.
///
/// What the retransmission itself shows is judged here: a damaged copy, an unneeded repair. The rest is unknown as yet.
pub fn repaired_by(connection: u64, side: Side, first: u64, sent: &Retransmission) -> Loss {
    let (cause, evidence) = certain(sent);
    Loss {
        connection,
        side,
        packet: sent.before,
        at: sent.at - sent.after,
        offset: sent.start.saturating_sub(first),
        octets: sent.len,
        repair: Some((sent.number, sent.at)),
        probabilities: Probabilities::certain(cause),
        evidence: evidence.into_iter().collect(),
    }
}

fn certain(sent: &Retransmission) -> (Cause, Option<String>) {
    if sent.damaged {
        let packet = sent.before.unwrap_or_default();
        return (Cause::Corruption, Some(format!("packet {packet} came to the capture with a wrong checksum")));
    }
    let Some(unneeded) = sent.unneeded else { return (Cause::Unknown, None) };
    let shown = match unneeded {
        Unneeded::Dsack => "the receiver reported that it got the data twice",
        Unneeded::Echo => "the acknowledgement echoed the timestamp of the first copy",
        Unneeded::TooSoon => "the acknowledgement came too soon to be that of the second copy",
    };
    let cause = match sent.trigger {
        Trigger::Timeout | Trigger::BackedOff | Trigger::AfterTimeout => Cause::SpuriousTimeout,
        Trigger::TailProbe => Cause::AckLoss,
        _ => Cause::Reordering,
    };
    (cause, Some(shown.to_owned()))
}
