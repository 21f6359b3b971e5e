//! Dumbbells of many flows: what they cost until the first event (reading, checking, routing, assembling), and how fast events are then.

use crate::clock;
use crate::report::Entry;
use whyloss_lab::arrow_array::cast::AsArray;
use whyloss_lab::arrow_array::types::UInt64Type;
use whyloss_lab::{run, Control, RunOptions, Scenario};

const FLOWS: [u32; 4] = [100, 1_000, 10_000, 100_000];

/// A dumbbell of so many flows that start within a second from `start` on.
fn text(flows: u32, duration: &str, start: &str) -> String {
    format!(
        r#"
[scenario]
duration = "{duration}"
[dumbbell]
bottleneck = {{ rate = "1 Gbps", delay = "5 ms", queue = "1000 pkt" }}
[[flow]]
count = {flows}
start = "{start}"
start_spread = "1 s"
"#
    )
}

/// In which nothing happens.
fn empty(flows: u32) -> String {
    text(flows, "1 ms", "2 ms")
}

/// Events a second of processor time while flows share one bottleneck, setting up left out, and the slowest as a share of the fastest.
pub fn rates(repetitions: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut first = None;
    for flows in FLOWS {
        let scenarios =
            [empty(flows), text(flows, "4 s", "0 s")].map(|text| Scenario::from_toml(&text, "flows").expect("it is right"));
        let mut least = [f64::INFINITY; 2];
        let mut events = 0;
        for _ in 0..repetitions.max(1) {
            for (least, scenario) in least.iter_mut().zip(&scenarios) {
                let begun = clock::own();
                let tables = run(scenario, &RunOptions::default(), &mut Control::default()).expect("the run ends");
                *least = least.min(clock::own() - begun);
                events = tables.runs["events"].as_primitive::<UInt64Type>().value(0);
            }
        }
        let rate = events as f64 / (least[1] - least[0]);
        entries.push(Entry::new(format!("flows/{flows}/events"), rate / 1e6, "M/s"));
        let share = 100.0 * rate / *first.get_or_insert(rate);
        entries.push(Entry::new(format!("flows/{flows}/share"), share, "%").limit("target", 60.0));
    }
    entries
}

/// Processor time of each size, the least of `repetitions`: of the check, and of the run of an empty millisecond.
pub fn seconds(repetitions: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    for flows in FLOWS {
        let text = empty(flows);
        let mut least = [f64::INFINITY; 2];
        for _ in 0..repetitions.max(1) {
            let begun = clock::own();
            let scenario = Scenario::from_toml(&text, "set-up").expect("the scenario is right");
            let checked = clock::own();
            run(&scenario, &RunOptions::default(), &mut Control::default()).expect("the run ends");
            for (least, took) in least.iter_mut().zip([checked - begun, clock::own() - checked]) {
                *least = least.min(took);
            }
        }
        entries.push(Entry::new(format!("set-up/{flows}/check"), 1e3 * least[0], "ms"));
        entries.push(Entry::new(format!("set-up/{flows}/assemble"), 1e3 * least[1], "ms"));
        entries.push(Entry::new(format!("set-up/{flows}/flow"), 1e6 * (least[0] + least[1]) / f64::from(flows), "us"));
    }
    entries
}

/// Bytes of heap a flow at the busiest moment of the same, by the heap profiler.
pub fn bytes(flows: u32) -> f64 {
    let text = empty(flows);
    let before = dhat::HeapStats::get();
    let scenario = Scenario::from_toml(&text, "set-up").expect("the scenario is right");
    run(&scenario, &RunOptions::default(), &mut Control::default()).expect("the run ends");
    drop(scenario);
    (dhat::HeapStats::get().max_bytes - before.curr_bytes) as f64 / f64::from(flows)
}
