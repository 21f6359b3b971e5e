//! What a flow takes before it starts, a run of a sweep, and a second of a long run. A process of its own: the allocator counts everything.

use std::sync::Mutex;
use whyloss_lab::{execute, run, save, save_run, Control, ExecuteOptions, RunOptions, Scenario, Sweep};

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

/// Octets of heap at the busiest moment of `work`.
fn peak_of(work: impl FnOnce()) -> u64 {
    // There is one allocator, and it counts what all threads take.
    static ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE.lock();
    let _counter = dhat::Profiler::builder().testing().build();
    work();
    dhat::HeapStats::get().max_bytes as u64
}

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
    peak_of(|| {
        let scenario = Scenario::from_toml(&text, "many").unwrap();
        run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap();
    })
}

#[test]
fn a_flow_that_has_not_started_takes_some_ten_kilobytes() {
    let (few, many) = (peak(500), peak(2500));
    let each = (many - few) / 2000;
    println!("{each} octets a flow with two hosts and two links of its own");
    assert!(each < 12_000, "{each} octets a flow");
}

/// Octets of heap at the busiest moment of a sweep that writes its tables to files, and of one that holds them.
fn sweep_peaks(runs: u32) -> (u64, u64) {
    let text = "[scenario]\nduration = '1 s'\n[path]\nrate = '1 Mbps'\ndelay = '10 ms'\nqueue = '9 pkt'\n[[flow]]\n\
                [output]\nsample = '1 ms'\n";
    let plan = Sweep::repeat(Scenario::from_toml(text, "sampled").unwrap(), runs).plan().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let saved = peak_of(|| {
        let tables = save(&plan, &store, Some(1), &mut Control::default(), &folder.path().join("out"), &[]).unwrap();
        assert_eq!(tables[0].rows, u64::from(runs));
    });
    let held = peak_of(|| {
        execute(&plan, &ExecuteOptions { store: Some(store), threads: Some(1) }, &mut Control::default()).unwrap();
    });
    (saved, held)
}

#[test]
fn a_sweep_that_is_written_to_files_does_not_hold_its_tables() {
    let (few, many) = (sweep_peaks(100), sweep_peaks(300));
    let [saved, held] = [(few.0, many.0), (few.1, many.1)].map(|(few, many)| many.saturating_sub(few) / 200);
    println!("{saved} octets a run written to files, {held} held; {} MB in all", many.0 / 1_000_000);
    assert!(held > 200_000, "{held} octets a run: what is held is too little to tell");
    assert!(saved < held / 10, "{saved} octets a run, {held} if its tables are held");
}

/// Octets of heap at the busiest moment of a run of so many seconds whose tables go to files, and of one that holds them: everything that a scenario can
/// ask for is written down, and a twentieth is lost.
fn run_peaks(seconds: u32) -> (u64, u64) {
    let text = format!(
        "[scenario]\nduration = '{seconds} s'\n[path]\nrate = '20 Mbps'\ndelay = '5 ms'\nqueue = '50 pkt'\n\
         forward.channel.loss = '5 %'\n[[flow]]\nscheme = 'bbr'\nshadows = ['veno', 'spike']\n\
         [output]\nsample = '1 ms'\ndrops = true\nsegments.at_most = 10000000\n"
    );
    let scenario = Scenario::from_toml(&text, "long").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let saved = peak_of(|| {
        let saved =
            save_run(&scenario, &RunOptions::default(), &mut Control::default(), &folder.path().join("out"), &[]).unwrap();
        assert!(saved.complete);
        for table in
            saved.tables.iter().filter(|table| ["losses", "drops", "segments", "samples", "queues"].contains(&table.name))
        {
            assert!(table.rows > u64::from(seconds), "{}: {} rows", table.name, table.rows);
        }
    });
    let held = peak_of(|| {
        run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap();
    });
    (saved, held)
}

#[test]
fn a_long_run_that_is_written_to_files_does_not_hold_its_tables() {
    let (short, long) = (run_peaks(100), run_peaks(200));
    let [saved, held] = [(short.0, long.0), (short.1, long.1)].map(|(short, long)| long.saturating_sub(short) / 100);
    println!("{saved} octets a simulated second written to files, {held} held; {} MB in all", long.0 / 1_000_000);
    assert!(held > 500_000, "{held} octets a second: what is held is too little to tell");
    assert!(saved < held / 20, "{saved} octets a second, {held} if its tables are held");
}
