//! What an analysis takes of the heap does not depend on how long the capture is, and keeps to what is asked for.

use dhat::{Alloc, HeapStats, Profiler};
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::report::Facts;
use whyloss_capture::source::Source;
use whyloss_testkit::traffic::{self, Traffic};

#[global_allocator]
static ALLOC: Alloc = Alloc;

const MIB: usize = 1 << 20;

/// The most octets of the heap while a capture was analysed, and what was said of it.
fn peak(made: traffic::Settings, settings: &Settings) -> (usize, Facts) {
    let profiler = Profiler::builder().testing().trim_backtraces(Some(1)).build();
    let source = Source::new("made".to_owned(), Box::new(Traffic::new(made))).unwrap();
    let analysis = analyse(vec![source], settings, &mut |_| ControlFlow::Continue(())).unwrap();
    let peak = HeapStats::get().max_bytes;
    drop(profiler);
    (peak, analysis.facts)
}

#[test]
fn memory_keeps_to_its_bounds_however_long_the_capture_is() {
    let made =
        |packets| traffic::Settings { packets, connections: 1500, loss: 0.02, life: Some(150), ..traffic::Settings::default() };
    let settings = Settings { memory: 8 * MIB, tables: 4 * MIB, workers: 1, ..Settings::default() };
    let (short, facts) = peak(made(150_000), &settings);
    assert!(facts.left_out.connections > 0, "the bound on connections is reached: {:?}", facts.left_out);
    let (long, facts) = peak(made(450_000), &settings);
    let left_out = facts.left_out;
    assert!(left_out.losses > 0 && left_out.flows > 0 && left_out.connections > 1000, "and that on rows: {left_out:?}");
    // The octets that are read at once, the segments that wait for their turn and what a table takes more while it grows come on top.
    let allowed = 8 * MIB + 2 * 4 * MIB + 6 * MIB;
    assert!(long < allowed, "{long} octets");
    assert!(long < short + short / 5 + 4 * MIB, "{short} octets, {long} for a capture of three times the length");

    // Without these bounds it takes several times as much: they are what keeps it low.
    let (free, facts) = peak(made(450_000), &Settings { workers: 1, ..Settings::default() });
    assert_eq!((facts.left_out.connections, facts.left_out.losses), (0, 0));
    assert!(free > 2 * allowed, "{free} octets");
}
