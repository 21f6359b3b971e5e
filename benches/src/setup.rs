//! Dumbbells of many flows: what they cost until the first event (reading, checking, routing, assembling), and how fast events are then.

use crate::clock;
use crate::report::Entry;
use whyloss_lab::arrow_array::cast::AsArray;
use whyloss_lab::arrow_array::types::UInt64Type;
use whyloss_lab::{run, Control, RunOptions, Scenario};

const FLOWS: [u32; 4] = [100, 1_000, 10_000, 100_000];

/// The bottleneck of a dumbbell.
#[derive(Clone, Copy, Debug)]
enum Bottleneck {
    /// 1 Gbit/s, whoever shares it.
    Fixed,
    /// 1 Mbit/s a flow.
    Growing,
}

impl Bottleneck {
    /// Where its entries stand.
    const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "flows",
            Self::Growing => "growing",
        }
    }

    /// A dumbbell of so many flows that start within `spread` from `start` on.
    fn text(self, flows: u32, duration: &str, start: &str, spread: &str) -> String {
        let (mbps, delay, queue) = match self {
            Self::Fixed => (1_000, 5, 1_000),
            Self::Growing => (flows, 20, 10 * flows),
        };
        format!(
            r#"
[scenario]
duration = "{duration}"
[dumbbell]
bottleneck = {{ rate = "{mbps} Mbps", delay = "{delay} ms", queue = "{queue} pkt" }}
[[flow]]
count = {flows}
start = "{start}"
start_spread = "{spread}"
"#
        )
    }

    /// In which nothing happens.
    fn empty(self, flows: u32) -> String {
        self.text(flows, "1 ms", "2 ms", "1 s")
    }

    /// In which all flows send: over a second and three more; where the events grow with the flows, for one.
    fn busy(self, flows: u32) -> String {
        match self {
            Self::Fixed => self.text(flows, "4 s", "0 s", "1 s"),
            Self::Growing => self.text(flows, "1 s", "0 s", "100 ms"),
        }
    }
}

/// Events a second of processor time while flows share one bottleneck, setting up left out, and the rate as a share of that of the fewest
/// flows: first where all share 1 Gbit/s, so that many flows are never in a steady state, then where each has as much as any other number
/// has.
pub fn rates(repetitions: usize) -> Vec<Entry> {
    [Bottleneck::Fixed, Bottleneck::Growing].into_iter().flat_map(|bottleneck| rates_of(bottleneck, repetitions)).collect()
}

fn rates_of(bottleneck: Bottleneck, repetitions: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut first = None;
    for flows in FLOWS {
        let texts = [bottleneck.empty(flows), bottleneck.busy(flows)];
        let scenarios = texts.map(|text| Scenario::from_toml(&text, "flows").expect("it is right"));
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
        let name = bottleneck.name();
        entries.push(Entry::new(format!("{name}/{flows}/events"), rate / 1e6, "M/s"));
        let share = 100.0 * rate / *first.get_or_insert(rate);
        entries.push(Entry::new(format!("{name}/{flows}/share"), share, "%").limit("target", 60.0));
    }
    entries
}

/// Processor time of each size, the least of `repetitions`: of the check, and of the run of an empty millisecond.
pub fn seconds(repetitions: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    for flows in FLOWS {
        let text = Bottleneck::Fixed.empty(flows);
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
    let text = Bottleneck::Fixed.empty(flows);
    let before = dhat::HeapStats::get();
    let scenario = Scenario::from_toml(&text, "set-up").expect("the scenario is right");
    run(&scenario, &RunOptions::default(), &mut Control::default()).expect("the run ends");
    drop(scenario);
    (dhat::HeapStats::get().max_bytes - before.curr_bytes) as f64 / f64::from(flows)
}
