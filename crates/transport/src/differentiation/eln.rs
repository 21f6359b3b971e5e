//! Explicit loss notification: the base station saw the segment go missing on its wireless link and says so.

use super::{Cause, LossDifferentiator, Verdict};
use crate::kit::{Notes, Part};
use crate::path::{Ack, Loss};
use crate::time::Instant;
use std::collections::VecDeque;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "eln",
    summary: "Corruption if a base station marks the loss on duplicate acknowledgements.",
    reference: "Balakrishnan & Katz 1998",
    notes: Notes {
        idea: "Who stands between the wired and the wireless part sees on which of them a segment went missing. An agent at the base station remembers \
               the holes in what comes over the wireless link (or, towards a mobile receiver, what it has sent over it), and marks the duplicate \
               acknowledgements that ask for them.",
        formula: "corruption iff an acknowledgement carried the explicit loss option for the segment, for a retransmission not earlier than one smoothed \
                  round-trip time after it left; else congestion",
        threshold: "",
        fails: "Needs the agent on the path and TCP headers that it may read and change: not with ESP or TCP-AO. A queue in front of the wireless link at \
                the mobile sender itself looks like the link. Marks are lost with the acknowledgements that carry them, and are not put in where three \
                SACK blocks and timestamps leave no room.",
        errata: "The original is one bit of the TCP header and speaks of the segment at the acknowledgement number. All of these bits have got another \
                 meaning since; ours is an option that names the data, so that under SACK the agent can speak of each of several holes.",
    },
    ..Part::fixed(|_| Box::<Eln>::default())
};

/// Losses that are remembered: more than a window leaves open in practice. Beyond it the oldest is forgotten.
const MAX_MARKED: usize = 256;

/// What acknowledgements said of losses on wireless links.
#[derive(Debug, Default)]
pub struct Eln {
    marked: VecDeque<Marked>,
}

#[derive(Clone, Copy, Debug)]
struct Marked {
    start: u64,
    end: u64,
    /// When an acknowledgement said so last.
    noticed_at: Instant,
}

impl LossDifferentiator for Eln {
    fn on_ack(&mut self, ack: &Ack) {
        let path = ack.path;
        if ack.acked > 0 {
            self.marked.retain(|marked| marked.end > path.una);
        }
        let Some(loss) = ack.options.rare.as_ref().and_then(|rare| rare.notices.explicit_loss) else { return };
        let start = loss.seq.near(path.una);
        let end = start + u64::from(loss.len);
        if end <= path.una || start >= path.nxt {
            return;
        }
        if let Some(known) = self.marked.iter_mut().find(|marked| marked.start == start) {
            known.end = known.end.max(end);
            known.noticed_at = path.now;
            return;
        }
        if self.marked.len() == MAX_MARKED {
            self.marked.pop_front();
        }
        self.marked.push_back(Marked { start, end, noticed_at: path.now });
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        // An earlier mark speaks of an earlier transmission.
        let since = if loss.transmission == 0 { loss.sent_at } else { loss.sent_at + loss.path.srtt.unwrap_or_default() };
        let of_this = |marked: &&Marked| (marked.start..marked.end).contains(&loss.start) && marked.noticed_at >= since;
        if self.marked.iter().any(|marked| of_this(&marked)) {
            Verdict { cause: Cause::Corruption, score: 1.0 }
        } else {
            Verdict { cause: Cause::Congestion, score: 0.0 }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Path, Trigger};
    use crate::segment::{ExplicitLoss, Notices, Options, RareOptions};
    use crate::seq::Seq;
    use crate::time::Duration;

    fn path(ms: u64, una: u64) -> Path {
        let srtt = Some(Duration::from_millis(100));
        Path { now: Instant::ZERO + Duration::from_millis(ms), una, nxt: 10_000, srtt, ..Path::default() }
    }

    /// An acknowledgement at `ms` that names `[start, start + 1000)`.
    fn notice(eln: &mut Eln, ms: u64, una: u64, start: u32) {
        let notices = Notices { explicit_loss: Some(ExplicitLoss { seq: Seq(start), len: 1000 }), ..Notices::default() };
        let rare = Some(Box::new(RareOptions { notices, ..RareOptions::default() }));
        let options = Options { rare, ..Options::default() };
        let path = path(ms, una);
        let ack = Ack {
            path: &path,
            acked: una,
            delivered: 0,
            rtt: None,
            delay: None,
            newest_sent_at: None,
            duplicate: true,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &options,
        };
        eln.on_ack(&ack);
    }

    fn judge(eln: &mut Eln, start: u64, transmission: u32, sent_ms: u64) -> Cause {
        let sent_at = Instant::ZERO + Duration::from_millis(sent_ms);
        let path = path(1000, 0);
        let trigger = Trigger::DuplicateAcks;
        eln.judge(&Loss { path: &path, start, len: 500, transmission, sent_at, trigger, first_of_episode: true }).cause
    }

    #[test]
    fn what_is_named_is_corruption() {
        let mut eln = Eln::default();
        notice(&mut eln, 100, 0, 2000);
        assert_eq!(judge(&mut eln, 2000, 0, 10), Cause::Corruption);
        assert_eq!(judge(&mut eln, 2500, 0, 10), Cause::Corruption, "the second half of what is named");
        assert_eq!(judge(&mut eln, 3000, 0, 10), Cause::Congestion);
        assert_eq!(judge(&mut eln, 1500, 0, 10), Cause::Congestion);
    }

    #[test]
    fn a_mark_speaks_of_a_retransmission_only_a_round_trip_after_it() {
        let mut eln = Eln::default();
        notice(&mut eln, 199, 0, 2000);
        assert_eq!(judge(&mut eln, 2000, 1, 100), Cause::Congestion);
        notice(&mut eln, 200, 0, 2000);
        assert_eq!(judge(&mut eln, 2000, 1, 100), Cause::Corruption);
    }

    #[test]
    fn what_is_not_outstanding_is_not_marked() {
        let mut eln = Eln::default();
        notice(&mut eln, 100, 5000, 4000);
        notice(&mut eln, 100, 5000, 10_000);
        assert!(eln.marked.is_empty());
        notice(&mut eln, 100, 5000, 6000);
        notice(&mut eln, 110, 7000, 4000);
        assert!(eln.marked.is_empty(), "acknowledged");
    }
}
