//! Acknowledgements of the first and the last hop: base stations tell the sender which segments have come that far.

use super::{Cause, LossDifferentiator, Verdict};
use crate::kit::{Notes, Part};
use crate::path::{Ack, Loss, Passed};
use crate::segment::Hop;
use crate::time::Instant;
use std::collections::BTreeMap;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "ack-hop",
    summary: "Corruption if a segment came no farther than to one side of a wireless hop, as base stations acknowledge it.",
    reference: "Cobb & Agrawal 1995",
    notes: Notes {
        idea: "A base station acknowledges to a mobile sender what came over the first hop, and to any sender what it is about to send over the last. \
               What the first never saw, or the last saw and the receiver did not, a wireless hop has lost; the rest was lost between them.",
        formula: "corruption iff LH(s), or not FH(s) while the first hop answers for later segments; congestion iff FH(s) and not LH(s); LH and FH heard \
                  since this transmission left",
        threshold: "",
        fails: "Needs the agents on the path. Their acknowledgements cost capacity on the very hop that they watch, and are lost there too: a lost FH \
                makes congestion look like corruption, a lost LH the reverse. A queue at the mobile sender itself looks like the link.",
        errata: "When exactly the last hop answers is not known: ours does when its queue has taken the segment. The control segment's form is ours. A first \
                 hop that answers for nothing sent later is an outage: unknown.",
    },
    ..Part::fixed(|_| Box::<AckHop>::default())
};

/// Segments of which something is remembered: more than any window has in practice. Beyond it the oldest is forgotten.
const MAX_SEEN: usize = 1 << 16;

/// What base stations said.
#[derive(Debug, Default)]
pub struct AckHop {
    first: Seen,
    last: Seen,
}

/// What one hop has acknowledged.
#[derive(Debug, Default)]
struct Seen {
    /// Position of a segment → when its acknowledgement came last.
    segments: BTreeMap<u64, Instant>,
    /// It has ever acknowledged anything.
    ever: bool,
}

impl Seen {
    fn note(&mut self, start: u64, now: Instant) {
        self.ever = true;
        if self.segments.len() == MAX_SEEN {
            self.segments.pop_first();
        }
        self.segments.insert(start, now);
    }

    fn since(&self, start: u64, since: Instant) -> bool {
        self.segments.get(&start).is_some_and(|at| *at >= since)
    }

    /// Whether the hop has answered for a segment that lies behind this transmission.
    fn answers_behind(&self, loss: &Loss) -> bool {
        let mut behind = self.segments.range(loss.start + 1..);
        // What is sent after a retransmission cannot be told by its position, but by how late its notice arrives.
        let since = if loss.transmission == 0 { loss.sent_at } else { loss.sent_at + loss.path.srtt.unwrap_or_default() };
        behind.any(|(_, at)| *at >= since)
    }
}

impl LossDifferentiator for AckHop {
    fn on_passed(&mut self, passed: &Passed) {
        match passed.hop {
            Hop::First => self.first.note(passed.start, passed.path.now),
            Hop::Last => self.last.note(passed.start, passed.path.now),
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.acked > 0 {
            for seen in [&mut self.first, &mut self.last] {
                if seen.segments.first_key_value().is_some_and(|(start, _)| *start < ack.path.una) {
                    seen.segments = seen.segments.split_off(&ack.path.una);
                }
            }
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let cause = if self.last.since(loss.start, loss.sent_at) {
            Cause::Corruption
        } else if self.first.ever {
            match self.first.since(loss.start, loss.sent_at) {
                true => Cause::Congestion,
                false if self.first.answers_behind(loss) => Cause::Corruption,
                false => Cause::Unknown,
            }
        } else if self.last.ever {
            Cause::Congestion
        } else {
            Cause::Unknown
        };
        Verdict { cause, score: if cause == Cause::Corruption { 1.0 } else { 0.0 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Path, Trigger};
    use crate::time::Duration;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn after(notices: &[(Hop, u64, u64)]) -> AckHop {
        let mut judge = AckHop::default();
        for &(hop, start, ms) in notices {
            let path = Path { now: at(ms), ..Path::default() };
            judge.on_passed(&Passed { path: &path, hop, start, len: 1000 });
        }
        judge
    }

    fn cause(mut judge: AckHop, transmission: u32, sent_ms: u64) -> Cause {
        let path = Path { now: at(1000), srtt: Some(Duration::from_millis(100)), ..Path::default() };
        let trigger = Trigger::DuplicateAcks;
        let sent_at = at(sent_ms);
        judge.judge(&Loss { path: &path, start: 5000, len: 1000, transmission, sent_at, trigger, first_of_episode: true }).cause
    }

    #[test]
    fn a_loss_lies_behind_the_last_station_that_saw_the_segment() {
        use Hop::{First, Last};
        assert_eq!(cause(after(&[(First, 4000, 10), (First, 6000, 20)]), 0, 5), Cause::Corruption, "not seen, later ones are");
        assert_eq!(cause(after(&[(First, 5000, 10), (First, 6000, 20)]), 0, 5), Cause::Congestion);
        assert_eq!(cause(after(&[(First, 5000, 10), (Last, 5000, 20)]), 0, 5), Cause::Corruption);
        assert_eq!(cause(after(&[(Last, 4000, 10)]), 0, 5), Cause::Congestion);
        assert_eq!(cause(after(&[(First, 4000, 10)]), 0, 5), Cause::Unknown, "nothing later is seen: an outage");
        assert_eq!(cause(after(&[]), 0, 5), Cause::Unknown);
    }

    #[test]
    fn only_what_is_heard_after_it_left_speaks_of_a_transmission() {
        use Hop::{First, Last};
        assert_eq!(cause(after(&[(Last, 5000, 20)]), 1, 200), Cause::Congestion);
        assert_eq!(cause(after(&[(Last, 5000, 220)]), 1, 200), Cause::Corruption);
        assert_eq!(cause(after(&[(First, 5000, 20), (First, 6000, 299)]), 1, 200), Cause::Unknown);
        assert_eq!(cause(after(&[(First, 5000, 20), (First, 6000, 300)]), 1, 200), Cause::Corruption);
    }
}
