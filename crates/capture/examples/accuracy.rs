//! How right the analysis is, by families of random worlds and places of captures, beside what the simulator knows.
//!
//! `cargo run --release -p whyloss-capture --example accuracy -- [worlds of a family, 8] [family] [--holes 0.01] [--detail] [--save FOLDER]`
//!
//! `--detail` prints the whole score of each row, `--save` leaves the captures of the chosen family there.

#[path = "../tests/support/worlds.rs"]
mod worlds;

use std::io::Cursor;
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::score::{score, Score};
use whyloss_capture::source::Source;
use worlds::{Family, Taking, PLACES};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let after = |name: &str| arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1));
    let number = arguments.iter().find_map(|word| word.parse().ok()).unwrap_or(8);
    let families: Vec<Family> =
        Family::ALL.into_iter().filter(|family| arguments.iter().any(|word| *word == format!("{family:?}"))).collect();
    let families = if families.is_empty() { Family::ALL.to_vec() } else { families };
    let holes = after("--holes").map_or(0.0, |share| share.parse().expect("a share"));
    let detail = arguments.iter().any(|word| word == "--detail");
    println!("family       place     again  found%  false  trigger%  need%  holes%   A_c%   A_w%  mean%  off%");
    let mut all = Score::default();
    for family in families {
        let mut scores = [Score::default(), Score::default(), Score::default()];
        for world in 0..number {
            let outcome = worlds::run(family, world, Taking { snaplen: 0, holes });
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
                    println!("# {} at the {place}: trigger {:?}", outcome.about, own.trigger_accuracy());
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
    }
    print("all", "", &all);
    all.lines().iter().for_each(|line| println!("{line}"));
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
