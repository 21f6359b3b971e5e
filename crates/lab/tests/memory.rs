//! What a flow takes before it starts. A process of its own: the allocator counts everything.

use whyloss_lab::{run, Control, RunOptions, Scenario};

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

/// Octets of heap at the busiest moment of a run in which nothing starts.
fn peak(flows: u32) -> u64 {
    let text = format!(
        r#"
[scenario]
duration = "1 ms"
[dumbbell]
bottleneck = {{ rate = "1 Gbps", delay = "5 ms", queue = "1000 pkt" }}
[[flow]]
count = {flows}
start = "2 ms"
"#
    );
    let _counter = dhat::Profiler::builder().testing().build();
    let scenario = Scenario::from_toml(&text, "many").unwrap();
    run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap();
    dhat::HeapStats::get().max_bytes as u64
}

#[test]
fn a_flow_that_has_not_started_takes_some_ten_kilobytes() {
    let (few, many) = (peak(500), peak(2500));
    let each = (many - few) / 2000;
    println!("{each} octets a flow with two hosts and two links of its own");
    assert!(each < 12_000, "{each} octets a flow");
}
