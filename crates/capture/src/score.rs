//! An analysis beside the truth that the comments of our own captures hold.

use crate::cause::{Cause, Probabilities};
use crate::half::Trigger;
use crate::headers::Segment;
use crate::report::Analysis;
use crate::source::Source;
use crate::truth::{Again, Fate, Truth};
use crate::{link, records, CaptureError};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

/// Retransmissions and losses of which the truth is kept.
const MAX_KEPT: usize = 1 << 22;
/// Bins of probabilities.
const BINS: usize = 1000;
/// Bins of the reliability of probabilities.
const COARSE: usize = 10;
/// The accuracy on congestion losses at which that on corruption losses is told.
const A_C: f64 = 0.95;

/// How often what was true was taken for what.
pub type Pairs = BTreeMap<(&'static str, &'static str), u64>;

/// How right an analysis is. Scores of several captures can be [added](Self::add).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// Packets with a comment of ours.
    pub truths: u64,
    /// Captured segments that TCP sent again, in a loss recovery.
    pub sent_again: u64,
    /// Those of them that the analysis takes for it.
    pub found: u64,
    /// Segments that it takes for it, and that were not.
    pub false_finds: u64,
    /// Pairs of what a retransmission was due to and what the analysis says; `not-found` where it did not take it for one.
    #[serde(serialize_with = "as_rows")]
    pub triggers: Pairs,
    /// Retransmissions that were needed, and those of them that the analysis takes for unneeded.
    pub needed: (u64, u64),
    /// Retransmissions that were not needed, and those of them that the analysis takes for unneeded.
    pub unneeded: (u64, u64),
    /// Losses of the analysis that were none of the network: the packet arrived and the capture missed it. Then, of how many losses and holes.
    pub holes_as_losses: u64,
    /// Repairs of true losses that the capture shows, whose originals it does not, and that the analysis does not take for repairs.
    pub losses_as_holes: u64,
    /// Holes and losses that had to be told apart: repairs of what the capture does not show, and stretches that it missed.
    pub told_apart: u64,
    /// Pairs of what a suspected loss was due to and what the analysis finds likeliest; `arrived` for what was not lost.
    #[serde(serialize_with = "as_rows")]
    pub causes: Pairs,
    /// For congestion and for corruption losses, by the share that corruption has of the probability of both.
    #[serde(skip)]
    shares: [Vec<u64>; 2],
    /// By the probability of the likeliest cause: losses, those for which it was right, and the sum of the probabilities.
    pub reliability: [(u64, u64, f64); COARSE],
    /// Truths for which there was no room.
    pub left_out: u64,
}

/// What is kept of a record.
#[derive(Clone, Copy, Debug)]
struct Kept {
    truth: Truth,
    /// The analysis takes it for a retransmission.
    found: bool,
}

/// Records after which the work reports and can be stopped.
const STEP: u64 = 1 << 14;

/// Reads the captures again of which `analysis` is, and compares. They have to be the same, in the same order.
///
/// `watch` hears now and then how many packets it has read. Once it says to stop, what was read is compared.
pub fn score(
    sources: Vec<Source>,
    analysis: &Analysis,
    watch: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Score, CaptureError> {
    let mut score = Score { shares: [vec![0; BINS], vec![0; BINS]], ..Score::default() };
    let mut kept: BTreeMap<u64, Kept> = BTreeMap::new();
    let wanted = analysis.retransmissions.iter().map(|sent| (sent.what.number, true));
    let suspected = analysis.losses.iter().flat_map(|loss| loss.packet.into_iter().chain(loss.repair.map(|(number, _)| number)));
    let mut asked: HashMap<u64, bool> = suspected.map(|number| (number, false)).collect();
    asked.extend(wanted);
    let mut before = 0;
    for source in sources {
        let about = records::read(source, &mut |record| {
            if record.number % STEP == 0 && watch(before + record.number).is_break() {
                return ControlFlow::Break(());
            }
            let Some(truth) = record.comment.and_then(Truth::read) else { return ControlFlow::Continue(()) };
            score.truths += 1;
            let number = before + record.number;
            let found = asked.get(&number);
            if found.is_none() && truth.again.is_none() {
                return ControlFlow::Continue(());
            }
            let takes_space = || {
                let segment = link::ip_packet(record.link, record.octets).ok().and_then(|found| Segment::read(record, &found));
                segment.is_some_and(|segment| segment.seq_len() > 0)
            };
            if kept.len() == MAX_KEPT {
                score.left_out += 1;
            } else if found.is_some() || takes_space() {
                kept.insert(number, Kept { truth, found: found.is_some_and(|found| *found) });
            }
            ControlFlow::Continue(())
        })?;
        before += about.packets;
    }
    score.note_retransmissions(analysis, &kept);
    score.note_losses(analysis, &kept);
    Ok(score)
}

impl Score {
    fn note_retransmissions(&mut self, analysis: &Analysis, kept: &BTreeMap<u64, Kept>) {
        let found: HashMap<u64, _> = analysis.retransmissions.iter().map(|sent| (sent.what.number, &sent.what)).collect();
        for (number, Kept { truth, found: is_found }) in kept {
            let Some(again) = truth.again.filter(|_| !truth.copy && !truth.damaged) else {
                // Damaged ones are neither asked for nor wrong, and so are copies.
                self.false_finds += u64::from(*is_found && truth.again.is_none() && !truth.damaged);
                continue;
            };
            if again.trigger == Trigger::Unknown {
                continue;
            }
            self.sent_again += 1;
            let what = found.get(number);
            self.found += u64::from(what.is_some());
            let said = what.map_or("not-found", |what| what.trigger.name());
            *self.triggers.entry((again.trigger.name(), said)).or_default() += 1;
            let unneeded = u64::from(what.is_some_and(|what| what.unneeded.is_some()));
            match again.needed {
                Some(true) => (self.needed.0, self.needed.1) = (self.needed.0 + 1, self.needed.1 + unneeded),
                Some(false) => (self.unneeded.0, self.unneeded.1) = (self.unneeded.0 + 1, self.unneeded.1 + unneeded),
                None => {}
            }
            // The transmission before it is not in the capture, or the analysis does not take it for a repair at all.
            if again.repairs.is_some() && what.is_none_or(|what| what.before.is_none()) {
                self.told_apart += 1;
                self.losses_as_holes += u64::from(what.is_none());
            }
        }
        self.told_apart += analysis.flows.iter().map(|flow| flow.counts.holes).sum::<u64>();
    }

    fn note_losses(&mut self, analysis: &Analysis, kept: &BTreeMap<u64, Kept>) {
        for loss in &analysis.losses {
            let original = loss.packet.and_then(|number| kept.get(&number)).map(|kept| kept.truth);
            let repair = loss.repair.and_then(|(number, _)| kept.get(&number)).map(|kept| kept.truth);
            let Some(truth) = what_it_was(original, repair) else { continue };
            let missed = truth == Was::Arrived && loss.packet.is_none();
            self.told_apart += u64::from(missed);
            self.holes_as_losses += u64::from(missed && !loss.probabilities.likeliest().arrived());
            self.note_cause(truth, &loss.probabilities);
        }
    }

    fn note_cause(&mut self, truth: Was, said: &Probabilities) {
        let likeliest = said.likeliest();
        let name = match truth {
            Was::Lost(cause) => cause.name(),
            Was::Arrived => "arrived",
        };
        *self.causes.entry((name, likeliest.name())).or_default() += 1;
        let probability = said.of(likeliest);
        if likeliest != Cause::Unknown {
            let right = match truth {
                Was::Lost(cause) => likeliest == cause,
                Was::Arrived => likeliest.arrived(),
            };
            let (all, hits, sum) = &mut self.reliability[((probability * COARSE as f64) as usize).min(COARSE - 1)];
            (*all, *hits, *sum) = (*all + 1, *hits + u64::from(right), *sum + probability);
        }
        let class = match truth {
            Was::Lost(Cause::Congestion | Cause::Policer) => 0,
            Was::Lost(Cause::Corruption) => 1,
            _ => return,
        };
        let congestion = said.of(Cause::Congestion) + said.of(Cause::Policer) + said.of(Cause::Receiver);
        let corruption = said.of(Cause::Corruption) + said.of(Cause::LinkDown);
        let share = if congestion + corruption > 0.0 { corruption / (congestion + corruption) } else { 0.0 };
        self.shares[class][((share * BINS as f64) as usize).min(BINS - 1)] += 1;
    }

    /// Takes over what another capture showed.
    pub fn add(&mut self, other: &Self) {
        self.truths += other.truths;
        self.sent_again += other.sent_again;
        self.found += other.found;
        self.false_finds += other.false_finds;
        self.needed = (self.needed.0 + other.needed.0, self.needed.1 + other.needed.1);
        self.unneeded = (self.unneeded.0 + other.unneeded.0, self.unneeded.1 + other.unneeded.1);
        self.holes_as_losses += other.holes_as_losses;
        self.losses_as_holes += other.losses_as_holes;
        self.told_apart += other.told_apart;
        self.left_out += other.left_out;
        for (mine, theirs) in [(&mut self.triggers, &other.triggers), (&mut self.causes, &other.causes)] {
            for (pair, count) in theirs {
                *mine.entry(*pair).or_default() += count;
            }
        }
        for (mine, theirs) in self.shares.iter_mut().zip(&other.shares) {
            mine.resize(BINS, 0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        for (mine, theirs) in self.reliability.iter_mut().zip(&other.reliability) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1, mine.2 + theirs.2);
        }
    }

    /// The share of the segments that TCP sent again that the analysis takes for that, with the right trigger.
    pub fn trigger_accuracy(&self) -> Option<f64> {
        let right = self.triggers.iter().filter(|((truth, said), _)| truth == said).map(|(_, count)| count).sum();
        ratio(right, self.sent_again)
    }

    /// The share of retransmissions of which it is right whether they were needed.
    pub fn need_accuracy(&self) -> Option<f64> {
        ratio(self.needed.0 - self.needed.1 + self.unneeded.1, self.needed.0 + self.unneeded.0)
    }

    /// The share of holes of the capture and of losses that are told apart.
    pub fn hole_accuracy(&self) -> Option<f64> {
        ratio(self.told_apart - self.holes_as_losses - self.losses_as_holes, self.told_apart)
    }

    /// `A_c` and `A_w`: the shares of congestion and of corruption losses for which the likelier of the two is the right one.
    pub fn accuracies(&self) -> (Option<f64>, Option<f64>) {
        self.accuracies_at(BINS / 2)
    }

    /// The mean of `A_c` and `A_w` where the threshold is such that `A_c` is 95 % at least.
    pub fn mean_accuracy(&self) -> Option<f64> {
        let both = (0..=BINS).filter_map(|threshold| {
            let (congestion, corruption) = self.accuracies_at(threshold);
            Some(f64::midpoint(congestion?, corruption?)).filter(|_| congestion.is_some_and(|congestion| congestion >= A_C))
        });
        both.fold(None, |best, mean| Some(best.map_or(mean, |best: f64| best.max(mean))))
    }

    /// What is in the bins from `threshold` on is taken for corruption.
    fn accuracies_at(&self, threshold: usize) -> (Option<f64>, Option<f64>) {
        let [congestion, corruption] = &self.shares;
        let sum = |bins: &[u64]| bins.iter().sum::<u64>();
        let below = |bins: &[u64]| sum(bins.get(..threshold).unwrap_or(bins));
        let (all_c, all_w) = (sum(congestion), sum(corruption));
        (ratio(below(congestion), all_c), ratio(all_w - below(corruption), all_w))
    }

    /// By how much probabilities differ from frequencies, on average over all losses.
    pub fn calibration_error(&self) -> Option<f64> {
        let all: u64 = self.reliability.iter().map(|(all, ..)| all).sum();
        let apart: f64 = self.reliability.iter().map(|(_, hits, sum)| (*hits as f64 - sum).abs()).sum();
        (all > 0).then(|| apart / all as f64)
    }

    /// The shares that follow from the counts, by their names; `None` where there is nothing to judge.
    pub fn ratios(&self) -> [(&'static str, Option<f64>); 7] {
        let (congestion, corruption) = self.accuracies();
        [
            ("trigger", self.trigger_accuracy()),
            ("need", self.need_accuracy()),
            ("holes", self.hole_accuracy()),
            ("a_c", congestion),
            ("a_w", corruption),
            ("mean", self.mean_accuracy()),
            ("calibration_error", self.calibration_error()),
        ]
    }

    /// What there is to say, line by line.
    pub fn lines(&self) -> Vec<String> {
        if self.truths == 0 {
            return vec!["no comments in it say what became of packets: there is nothing to compare with".to_owned()];
        }
        let found = if self.sent_again == 0 {
            // Emulators and test beds do not know what TCP sent again.
            format!("the comments tell of no retransmissions; found were {}", self.false_finds)
        } else {
            format!(
                "{} of {} retransmissions found, {} taken for one that were none",
                self.found, self.sent_again, self.false_finds
            )
        };
        let mut lines = vec![found, format!("trigger right: {}", percent(self.trigger_accuracy()))];
        lines.extend(pairs(&self.triggers));
        let ((needed, wrong), (unneeded, known)) = (self.needed, self.unneeded);
        lines.push(format!(
            "needed or not right: {} ({known} of {unneeded} unneeded ones recognised, {wrong} of {needed} needed ones taken for unneeded)",
            percent(self.need_accuracy()),
        ));
        lines.push(format!("holes of the capture told from losses: {}", percent(self.hole_accuracy())));
        let (congestion, corruption) = self.accuracies();
        lines.push(format!(
            "congestion losses right (A_c): {}, corruption losses right (A_w): {}; mean at A_c of 95 %: {}",
            percent(congestion),
            percent(corruption),
            percent(self.mean_accuracy()),
        ));
        lines.extend(pairs(&self.causes));
        lines.push(format!("probabilities off by {} on average", percent(self.calibration_error())));
        let bins = self.reliability.iter().filter(|(all, ..)| *all > 0);
        lines.extend(bins.map(|(all, hits, sum)| {
            let (said, was) = (percent(Some(sum / *all as f64)), percent(ratio(*hits, *all)));
            format!("  said {said}, was right {was} ({all} losses)")
        }));
        if self.left_out > 0 {
            lines.push(format!("{} further retransmissions were not compared", self.left_out));
        }
        lines
    }
}

/// What a suspected loss really was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Was {
    Lost(Cause),
    Arrived,
}

/// What a suspected loss really was; `None` if nobody knows.
fn what_it_was(original: Option<Truth>, repair: Option<Truth>) -> Option<Was> {
    match original.map(|truth| truth.fate) {
        Some(Fate::Lost(_, cause)) => return Some(Was::Lost(cause)),
        Some(Fate::Delivered(_)) => return Some(Was::Arrived),
        Some(Fate::Taken(_) | Fate::Open) => return None,
        None => {}
    }
    match repair?.again {
        Some(Again { repairs: Some(cause), .. }) => Some(Was::Lost(cause)),
        Some(Again { needed: Some(false), .. }) | None => Some(Was::Arrived),
        Some(_) => None,
    }
}

fn ratio(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "none to judge".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

fn as_rows<S: Serializer>(table: &Pairs, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Row {
        truth: &'static str,
        said: &'static str,
        count: u64,
    }
    serializer.collect_seq(table.iter().map(|((truth, said), count)| Row { truth, said, count: *count }))
}

/// A line for each true name: what it was taken for.
fn pairs(table: &Pairs) -> Vec<String> {
    let mut rows: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
    for ((truth, said), count) in table {
        rows.entry(truth).or_default().push((*count, said));
    }
    let row = |(truth, mut said): (&str, Vec<(u64, &str)>)| {
        said.sort_by(|a, b| b.cmp(a));
        let said: Vec<_> = said.into_iter().map(|(count, said)| format!("{said} {count}")).collect();
        format!("  {truth}: {}", said.join(", "))
    };
    rows.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracies_go_by_the_definitions() {
        let mut score = Score { shares: [vec![0; BINS], vec![0; BINS]], ..Score::default() };
        let mut say = |truth, corruption: f64, times| {
            let said = Probabilities::from_weights([(Cause::Corruption, corruption), (Cause::Congestion, 1.0 - corruption)]);
            (0..times).for_each(|_| score.note_cause(Was::Lost(truth), &said));
        };
        say(Cause::Congestion, 0.1, 90);
        say(Cause::Congestion, 0.7, 10);
        say(Cause::Corruption, 0.8, 60);
        say(Cause::Corruption, 0.2, 40);
        let (congestion, corruption) = score.accuracies();
        assert_eq!((congestion, corruption), (Some(0.9), Some(0.6)));
        // Only above 0.7 no congestion loss is taken for corruption: A_c is 1, A_w still 0.6.
        assert_eq!(score.mean_accuracy(), Some(0.8));
        // 90 said 0.9, all right; 40 said 0.8, none right; 10 said 0.7, none right; 60 said 0.8, all right.
        let error: f64 = ((90.0 - 81.0) + (7.0 - 0.0) + (80.0_f64 - 60.0).abs()) / 200.0;
        assert!((score.calibration_error().unwrap() - error).abs() < 1e-9, "{:?}", score.reliability);
        let mut twice = score.clone();
        twice.add(&score);
        assert_eq!(twice.accuracies(), score.accuracies());
        assert_eq!(twice.causes[&("congestion", "corruption")], 20);
    }

    #[test]
    fn a_loss_is_what_its_packet_says_and_else_what_its_repair_says() {
        let truth = |text: &str| Truth::read(text);
        let lost = truth("lost at 1.000000000 s on a>b: aqm");
        let arrived = truth("delivered at 1.000000000 s");
        let repair = truth("delivered at 1.000000000 s; retransmission: fast, needed; repairs: erased");
        let vain = truth("delivered at 1.000000000 s; retransmission: fast, not needed");
        assert_eq!(what_it_was(lost, repair), Some(Was::Lost(Cause::Congestion)));
        assert_eq!(what_it_was(arrived, vain), Some(Was::Arrived));
        assert_eq!(what_it_was(None, repair), Some(Was::Lost(Cause::Corruption)));
        assert_eq!(what_it_was(None, vain), Some(Was::Arrived));
        assert_eq!(what_it_was(None, None), None);
    }
}
