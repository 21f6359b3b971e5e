//! What it costs until the first event: reading, checking, routing and assembling a dumbbell of many flows.

use crate::clock;
use crate::report::Entry;
use whyloss_lab::{run, Control, RunOptions, Scenario};

const FLOWS: [u32; 4] = [100, 1_000, 10_000, 100_000];

fn text(flows: u32) -> String {
    // Nothing starts before the end.
    format!(
        r#"
[scenario]
duration = "1 ms"
[dumbbell]
bottleneck = {{ rate = "1 Gbps", delay = "5 ms", queue = "1000 pkt" }}
[[flow]]
count = {flows}
start = "2 ms"
"#
    )
}

/// Processor time of each size, the least of `repetitions`: of the check, and of the run of an empty millisecond.
pub fn seconds(repetitions: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    for flows in FLOWS {
        let text = text(flows);
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
    let text = text(flows);
    let before = dhat::HeapStats::get();
    let scenario = Scenario::from_toml(&text, "set-up").expect("the scenario is right");
    run(&scenario, &RunOptions::default(), &mut Control::default()).expect("the run ends");
    drop(scenario);
    (dhat::HeapStats::get().max_bytes - before.curr_bytes) as f64 / f64::from(flows)
}
