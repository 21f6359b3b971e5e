//! What a connection lost, and what was made of it.

use serde::Serialize;
use std::collections::BTreeMap;
use whyloss_transport::tcp::{Event, Judgement};

/// Counts of losses and timeouts, by what the connection said of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Segments taken for lost.
    pub segments: u64,
    /// Of those, by the verdict of the ruling differentiator.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// Of those, by what noticed them.
    pub triggers: BTreeMap<&'static str, u64>,
    /// Of those, by what they did to the window: `reduced`, `kept`, or `covered` by an earlier one of the same episode.
    pub judgements: BTreeMap<&'static str, u64>,
    /// Verdicts of the differentiators in shadow, in their order.
    pub shadows: Vec<BTreeMap<&'static str, u64>>,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Of those, how many collapsed the window.
    pub collapses: u64,
    /// Assessments of timeouts, by outcome.
    pub assessments: BTreeMap<&'static str, u64>,
    /// Reductions of the window that were undone.
    pub undone: u64,
}

impl Losses {
    /// Counts what `event` says.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Loss(loss) => {
                self.segments += 1;
                count(&mut self.verdicts, loss.verdict.cause.name());
                count(&mut self.triggers, loss.trigger.name());
                count(&mut self.judgements, name(loss.judgement));
                self.shadows.resize_with(self.shadows.len().max(loss.shadows.len()), BTreeMap::new);
                for (counts, verdict) in self.shadows.iter_mut().zip(&loss.shadows) {
                    count(counts, verdict.cause.name());
                }
            }
            Event::Timeout(timeout) => {
                self.timeouts += 1;
                self.collapses += u64::from(timeout.collapsed);
            }
            Event::TimeoutAssessed(outcome) => count(&mut self.assessments, outcome.name()),
            Event::Undone => self.undone += 1,
            _ => {}
        }
    }

    /// Adds the counts of another connection with the same differentiators.
    pub fn add(&mut self, other: &Self) {
        self.segments += other.segments;
        self.timeouts += other.timeouts;
        self.collapses += other.collapses;
        self.undone += other.undone;
        let pairs = [
            (&mut self.verdicts, &other.verdicts),
            (&mut self.triggers, &other.triggers),
            (&mut self.judgements, &other.judgements),
            (&mut self.assessments, &other.assessments),
        ];
        for (sum, counts) in pairs {
            merge(sum, counts);
        }
        self.shadows.resize_with(self.shadows.len().max(other.shadows.len()), BTreeMap::new);
        self.shadows.iter_mut().zip(&other.shadows).for_each(|(sum, counts)| merge(sum, counts));
    }
}

fn count(counts: &mut BTreeMap<&'static str, u64>, name: &'static str) {
    *counts.entry(name).or_default() += 1;
}

fn merge(sum: &mut BTreeMap<&'static str, u64>, counts: &BTreeMap<&'static str, u64>) {
    for (name, count) in counts {
        *sum.entry(name).or_default() += count;
    }
}

const fn name(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Reduced => "reduced",
        Judgement::Kept => "kept",
        Judgement::Covered => "covered",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::differentiation::{Cause, Verdict};
    use whyloss_transport::path::Trigger;
    use whyloss_transport::tcp::LossRecord;
    use whyloss_transport::Instant;

    #[test]
    fn losses_are_counted_by_everything_that_is_said_of_them() {
        let loss = |cause, judgement| {
            Event::Loss(Box::new(LossRecord {
                at: Instant::ZERO,
                offset: 0,
                len: 1448,
                transmission: 0,
                sent_at: Instant::ZERO,
                trigger: Trigger::Rack,
                episode: 0,
                verdict: Verdict { cause, score: 0.0 },
                shadows: vec![Verdict::UNKNOWN],
                judgement,
            }))
        };
        let mut one = Losses::default();
        one.note(&loss(Cause::Corruption, Judgement::Kept));
        one.note(&loss(Cause::Congestion, Judgement::Reduced));
        one.note(&Event::Undone);
        let mut sum = Losses::default();
        sum.add(&one);
        sum.add(&one);
        assert_eq!((sum.segments, sum.undone), (4, 2));
        assert_eq!(sum.verdicts, BTreeMap::from([("congestion", 2), ("corruption", 2)]));
        assert_eq!(sum.triggers, BTreeMap::from([("rack", 4)]));
        assert_eq!(sum.judgements, BTreeMap::from([("kept", 2), ("reduced", 2)]));
        assert_eq!(sum.shadows, [BTreeMap::from([("unknown", 4)])]);
    }
}
