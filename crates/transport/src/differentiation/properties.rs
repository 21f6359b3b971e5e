//! What every row promises of its scores: they do not know the threshold, and the threshold does nothing but cut them.

use super::script::Script;
use super::{Cause, LossDifferentiator, Verdict, TABLE};
use crate::kit::{Arguments, Cut, Kind, Parameter, Part, Threshold, Value};
use crate::path::Trigger;
use crate::time::Duration;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::collections::BTreeMap;

/// Values to try within a parameter's range.
const GRID: [f64; 21] =
    [-2.0, -0.5, 0.0, 0.05, 0.1, 0.15, 0.25, 0.4, 0.5, 0.55, 0.7, 0.9, 1.0, 1.25, 2.0, 3.0, 5.0, 8.0, 12.0, 30.0, 300.0];

/// Something that a sender sees.
#[derive(Clone, Debug)]
enum Step {
    /// So many microseconds pass, and an acknowledgement of a segment comes that left so long ago.
    Ack { pause_us: u64, delay_us: Option<u64>, duplicate: bool, ece: bool },
    /// The window, in segments, and the threshold change.
    Window { segments: u64 },
    /// A loss.
    Loss { timeout: bool, first: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let delay = prop_oneof![8 => (50_000..150_000u64).prop_map(Some), 1 => (150_000..900_000u64).prop_map(Some), 1 => Just(None)];
    prop_oneof![
        20 => (1_000..25_000u64, delay, prop::bool::weighted(0.1), prop::bool::weighted(0.05))
            .prop_map(|(pause_us, delay_us, duplicate, ece)| Step::Ack { pause_us, delay_us, duplicate, ece }),
        1 => (1..40u64).prop_map(|segments| Step::Window { segments }),
        2 => (prop::bool::weighted(0.1), any::<bool>()).prop_map(|(timeout, first)| Step::Loss { timeout, first }),
    ]
}

/// The verdicts of a differentiator on the losses of a trace.
fn verdicts(differentiator: Box<dyn LossDifferentiator>, trace: &[Step]) -> Vec<Verdict> {
    let mut sender = Script::new(differentiator);
    sender.path.srtt = Some(Duration::from_millis(100));
    sender.path.rttvar = Duration::from_millis(20);
    let mut out = Vec::new();
    for step in trace {
        match *step {
            Step::Ack { pause_us, delay_us, duplicate, ece } => {
                sender.ece = ece;
                sender.pause(pause_us as f64 / 1e3);
                let delay = delay_us.map(|us| us as f64 / 1e3);
                match (duplicate, delay) {
                    (false, Some(delay)) => sender.ack(delay),
                    (_, delay) => sender.duplicate(delay),
                };
            }
            Step::Window { segments } => {
                sender.path.ssthresh = segments * 500;
                sender.window(segments);
            }
            Step::Loss { timeout, first } => {
                let trigger = if timeout { Trigger::Timeout } else { Trigger::DuplicateAcks };
                out.push(sender.judge_as(trigger, first));
            }
        }
    }
    out
}

/// The thresholds of a row: those that cut the score, and those that move it.
fn thresholds(part: &Part<dyn LossDifferentiator>) -> (Vec<Threshold>, Vec<Threshold>) {
    part.thresholds.iter().partition(|threshold| threshold.cut != Cut::Nowhere)
}

fn parameter(part: &Part<dyn LossDifferentiator>, threshold: &Threshold) -> &'static Parameter {
    part.parameters.iter().find(|parameter| parameter.name == threshold.parameter).unwrap()
}

/// Every combination of a row's choices, as far as one choice goes.
fn readings(part: &Part<dyn LossDifferentiator>) -> Vec<BTreeMap<String, Value>> {
    let choices = part.parameters.iter().flat_map(|parameter| match parameter.kind {
        Kind::Choice(words) => words.iter().map(|word| (parameter.name, Value::from(*word))).collect::<Vec<_>>(),
        Kind::Flag { .. } => vec![(parameter.name, true.into()), (parameter.name, false.into())],
        Kind::Number { .. } => Vec::new(),
    });
    let single = choices.map(|(name, value)| BTreeMap::from([(name.to_owned(), value)]));
    std::iter::once(BTreeMap::new()).chain(single).collect()
}

/// The verdicts for each value of a parameter, in its order.
fn sweep(
    part: &Part<dyn LossDifferentiator>,
    reading: &BTreeMap<String, Value>,
    threshold: &Threshold,
    trace: &[Step],
) -> Vec<(f64, Vec<Verdict>)> {
    let parameter = parameter(part, threshold);
    let Kind::Number { min, max, .. } = parameter.kind else { panic!("{}: {} is no number", part.name, parameter.name) };
    let values = GRID.iter().copied().filter(|value| (min..=max).contains(value));
    let run = |value: f64| {
        let mut given = reading.clone();
        given.insert(parameter.name.to_owned(), value.into());
        (value, verdicts(part.build(&Arguments::check(part, &given).unwrap()), trace))
    };
    values.map(run).collect()
}

/// Along the sweep every loss changes its class at most once, and to what a larger value takes more losses for.
fn goes_one_way(sweep: &[(f64, Vec<Verdict>)], larger: Cause) -> bool {
    (0..sweep[0].1.len()).all(|loss| {
        let decided = sweep.iter().map(|(_, verdicts)| verdicts[loss].cause).filter(|cause| *cause != Cause::Unknown);
        let taken: Vec<_> = decided.map(|cause| cause == larger).collect();
        taken.is_sorted()
    })
}

/// Where the row says that a value cuts, the verdicts change: losses of a higher score are corruption, those of a lower one congestion.
fn cuts_there(verdicts: &[Verdict], score: f64) -> bool {
    verdicts.iter().all(|verdict| match verdict.cause {
        Cause::Corruption => verdict.score >= score - 1e-9,
        Cause::Congestion => verdict.score <= score + 1e-9,
        Cause::Unknown => true,
    })
}

/// Whether this reading uses the parameter: a row can have one threshold for each.
fn cut_is_that_of_the_row(part: &Part<dyn LossDifferentiator>, reading: &BTreeMap<String, Value>, threshold: &Threshold) -> bool {
    let word = |name: &str| reading.get(name).map(ToString::to_string);
    match (part.name, threshold.parameter) {
        ("ncpld", "kappa") => word("reading").is_none_or(|word| word == "\"r1\""),
        ("ncpld", "g") => word("reading").is_some_and(|word| word == "\"r2\""),
        ("ncpld", _) => word("reading").is_some_and(|word| word == "\"r3\""),
        ("cerl", _) => word("reading").is_none_or(|word| word == "\"plain\""),
        ("newreno-ff", _) => word("rule").is_none_or(|word| word == "\"variation\""),
        _ => true,
    }
}

/// Whatever is called corruption scores at least as high as whatever is called congestion.
fn is_cut_of_scores(verdicts: &[Verdict]) -> bool {
    let scores = |cause| verdicts.iter().filter(move |verdict| verdict.cause == cause).map(|verdict| verdict.score);
    scores(Cause::Corruption).fold(f64::INFINITY, f64::min) >= scores(Cause::Congestion).fold(f64::NEG_INFINITY, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_threshold_cuts_the_scores_and_does_nothing_else(trace in prop::collection::vec(step(), 100..500)) {
        for part in TABLE {
            let (of_score, others) = thresholds(part);
            for reading in readings(part) {
                for threshold in &of_score {
                    let sweep = sweep(part, &reading, threshold, &trace);
                    let what = format!("{} {} {reading:?}", part.name, threshold.parameter);
                    for (value, verdicts) in &sweep {
                        let scores = |verdicts: &[Verdict]| verdicts.iter().map(|verdict| verdict.score).collect::<Vec<_>>();
                        prop_assert_eq!(scores(verdicts), scores(&sweep[0].1), "{}: the score knows the threshold", what);
                        prop_assert!(is_cut_of_scores(verdicts), "{}: the score is not what decides", what);
                        let silent = |verdict: &Verdict| verdict.cause != Cause::Unknown || verdict.score == 0.0;
                        prop_assert!(verdicts.iter().all(silent), "{}: a score without evidence", what);
                        if let (true, Some(score)) = (cut_is_that_of_the_row(part, &reading, threshold), threshold.cut.at(*value)) {
                            prop_assert!(cuts_there(verdicts, score), "{} = {}: the cut is not at {}", what, value, score);
                        }
                    }
                    prop_assert!(goes_one_way(&sweep, threshold.larger), "{}", what);
                }
                for threshold in &others {
                    let sweep = sweep(part, &reading, threshold, &trace);
                    prop_assert!(goes_one_way(&sweep, threshold.larger), "{} {} {:?}", part.name, threshold.parameter, reading);
                }
            }
        }
    }
}

/// [`Script`] refuses a score outside of its scale.
#[test]
fn a_path_without_delay_breaks_no_score() {
    let ack = |pause_us, delay_us| Step::Ack { pause_us, delay_us: Some(delay_us), duplicate: false, ece: false };
    let calm = [ack(0, 0), ack(1, 0), Step::Loss { timeout: false, first: true }];
    let jump = [ack(0, 100_000), Step::Window { segments: 1 }, Step::Loss { timeout: true, first: true }];
    for delays in [0, 100_000] {
        let varied = [ack(1, delays), Step::Loss { timeout: false, first: false }];
        let trace: Vec<_> = [&calm[..], &varied[..], &calm[..], &jump[..]].concat().into_iter().cycle().take(400).collect();
        for part in TABLE {
            for reading in readings(part) {
                verdicts(part.build(&Arguments::check(part, &reading).unwrap()), &trace);
            }
        }
    }
}

/// A trace with both kinds of verdicts: else the property above says nothing.
#[test]
fn the_sweeps_reach_both_ends() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let trace = prop::collection::vec(step(), 4000).new_tree(&mut runner).unwrap().current();
    for part in TABLE {
        for threshold in thresholds(part).0 {
            let reading = match (part.name, threshold.parameter) {
                ("ncpld", "g") => BTreeMap::from([("reading".to_owned(), "r2".into())]),
                ("ncpld", "deviations") => BTreeMap::from([("reading".to_owned(), "r3".into())]),
                // What it listens to, reports of waves, is not in this trace; its own tests move it.
                ("tcp-real" | "tcp-real-2004", _) => continue,
                // This trace loses so much that every episode follows another one within a window.
                ("limd-h", "margin") => BTreeMap::from([("escalate".to_owned(), false.into())]),
                _ => BTreeMap::new(),
            };
            let share = |verdicts: &Vec<Verdict>| {
                let decided: Vec<_> = verdicts.iter().filter(|verdict| verdict.cause != Cause::Unknown).collect();
                let corruption = decided.iter().filter(|verdict| verdict.cause == Cause::Corruption).count();
                corruption as f64 / decided.len() as f64
            };
            let shares: Vec<_> = sweep(part, &reading, &threshold, &trace).iter().map(|(_, verdicts)| share(verdicts)).collect();
            let (first, last) = (shares[0], shares[shares.len() - 1]);
            assert!((first - last).abs() > 0.1, "{} {}: {shares:?}", part.name, threshold.parameter);
        }
    }
}
