//! How right the analysis is, by families of random worlds and places of captures, beside what the simulator knows.
//!
//! `cargo run --release -p whyloss-capture --example accuracy -- [worlds of a family, 8] [--from 0] [family] [--holes 0.01] [--detail] [--save FOLDER]`
//!
//! `--detail` prints the whole score of each row, `--save` leaves the captures of the chosen family there.

#[allow(dead_code, reason = "the tests use the other part of it")]
#[path = "../tests/suite/worlds.rs"]
mod worlds;

use std::io::Cursor;
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::cause::Cause;
use whyloss_capture::score::{score, Score};
use whyloss_capture::source::Source;
use worlds::{Family, Taking, PLACES};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1));
    let first: u64 = after("--from").map_or(0, |number| number.parse().expect("the number of the first world"));
    let number: u64 = arguments.first().and_then(|word| word.parse().ok()).unwrap_or(8);
    let families: Vec<Family> =
        Family::ALL.into_iter().filter(|family| arguments.iter().any(|word| *word == format!("{family:?}"))).collect();
    let families = if families.is_empty() { Family::ALL.to_vec() } else { families };
    let holes = after("--holes").map_or(0.0, |share| share.parse().expect("a share"));
    let detail = arguments.iter().any(|word| word == "--detail");
    println!("family       place     again  found%  false  trigger%  need%  holes%   A_c%   A_w%  mean%  off%");
    let mut all = Score::default();
    let mut places = [Score::default(), Score::default(), Score::default()];
    for family in families {
        let mut scores = [Score::default(), Score::default(), Score::default()];
        for world in first..first + number {
            let outcome = worlds::run(family, world, Taking { holes, ..Taking::default() });
            for ((capture, sum), place) in outcome.captures.iter().zip(&mut scores).zip(PLACES) {
                if let Some(folder) = after("--save") {
                    std::fs::create_dir_all(folder).expect("a folder");
                    std::fs::write(format!("{folder}/{family:?}-{world}-{place}.pcapng"), capture).expect("a file");
                }
                let source = || Source::new(place.to_owned(), Box::new(Cursor::new(capture.clone()))).expect("a capture");
                let settings = Settings { workers: 1, ..Settings::default() };
                let analysis = analyse(vec![source()], &settings, &mut |_| ControlFlow::Continue(())).expect("it can be read");
                let own = score(vec![source()], &analysis, &mut |_| ControlFlow::Continue(())).expect("it can be read");
                if detail {
                    let need = own.need_accuracy();
                    println!(
                        "# {} at the {place}: trigger {:?} of {}, need {need:?}",
                        outcome.about,
                        own.trigger_accuracy(),
                        own.sent_again
                    );
                }
                sum.add(&own);
            }
        }
        for (place, sum) in PLACES.into_iter().zip(&scores) {
            print(&format!("{family:?}"), place, sum);
            if detail {
                sum.lines().iter().for_each(|line| println!("    {line}"));
            }
            all.add(sum);
        }
        places.iter_mut().zip(&scores).for_each(|(place, sum)| place.add(sum));
    }
    print("all", "", &all);
    all.lines().iter().for_each(|line| println!("{line}"));
    println!(
        "of {} holes and losses before the capture, {} holes are taken for losses, {} repairs of losses are not found",
        all.told_apart, all.holes_as_losses, all.losses_as_holes
    );
    println!("\ncause, at each place: how many of its losses are found, and how many that are called so are of it");
    for cause in Cause::ALL {
        let row: Vec<String> = places.iter().filter_map(|place| found(place, cause)).collect();
        if !row.is_empty() {
            println!("{:<17} {}", cause.name(), row.join("   "));
        }
    }
}

/// How many losses of a cause are called so, and how many that are called so are of it.
fn found(score: &Score, cause: Cause) -> Option<String> {
    let sum = |holds: &dyn Fn(&str, &str) -> bool| {
        score.causes.iter().filter(|((truth, said), _)| holds(truth, said)).map(|(_, count)| count).sum::<u64>()
    };
    let is = |truth: &str| truth == cause.name() || cause.arrived() && truth == "arrived";
    let (all, called) = (sum(&|truth, _| is(truth)), sum(&|_, said| said == cause.name()));
    let right = sum(&|truth, said| is(truth) && said == cause.name());
    let share = |all: u64| if all == 0 { "    -".to_owned() } else { format!("{:>5.1}", 100.0 * right as f64 / all as f64) };
    // What arrived has several names; which of them is right nobody knows.
    let recall = if cause.arrived() { "    -".to_owned() } else { share(all) };
    (called + if cause.arrived() { 0 } else { all } > 0)
        .then(|| format!("{recall} % of {all:>5}, {} % of {called:>5}", share(called)))
}

fn print(family: &str, place: &str, score: &Score) {
    let percent = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", 100.0 * share));
    let (congestion, corruption) = score.accuracies();
    println!(
        "{family:<12} {place:<8} {:>6} {:>7} {:>6} {:>9} {:>6} {:>7} {:>6} {:>6} {:>6} {:>5}",
        score.sent_again,
        percent((score.sent_again > 0).then(|| score.found as f64 / score.sent_again as f64)),
        score.false_finds,
        percent(score.trigger_accuracy()),
        percent(score.need_accuracy()),
        percent(score.hole_accuracy()),
        percent(congestion),
        percent(corruption),
        percent(score.mean_accuracy()),
        percent(score.calibration_error()),
    );
}
