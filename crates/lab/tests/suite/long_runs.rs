//! Runs whose tables go to files while they run: the same files as if they were held, and complete ones wherever the run is stopped.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};
use whyloss_lab::arrow_array::{RecordBatch, StringArray, UInt64Array};
use whyloss_lab::tables::{read, rows_digest, NAMES};
use whyloss_lab::{run, save_run, Cancel, Control, Progress, RunOptions, Sampled, Scenario};

/// Everything that changes rows afterwards: copies, packets that come late, timeouts, judges at the receiver, acknowledgements that a middlebox
/// suppresses, connections that end; TCP and datagrams.
fn scenario(seconds: u32) -> Scenario {
    let text = format!(
        r#"
[scenario]
duration = "{seconds} s"

[path]
rate = "8 Mbps"
delay = "15 ms"
queue = "40 pkt"
forward = {{ channel.loss = "3 %", reorder = {{ share = "1 %", late = "60 ms" }}, duplicate = "1 %" }}
reverse = {{ channel.loss = "1 %" }}

[[flow]]
name = "judged"
scheme = "casablanca"
shadows = ["spike", "veno", "zigzag"]

[[flow]]
name = "short"
count = 20
start_spread = "{seconds} s"
size = "30 kB"
shadows = ["biaz"]

[[flow]]
name = "datagrams"
scheme = "dccp-ccid2"

[output]
sample = "2 ms"
drops = true
segments.at_most = 60000
"#
    );
    Scenario::from_toml(&text, "long").unwrap()
}

fn octets(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(format!("{name}.parquet"))).unwrap()
}

fn count(table: &RecordBatch, name: &str, of: &str) -> usize {
    let column: &StringArray = table.column_by_name(name).unwrap().as_any().downcast_ref().unwrap();
    column.iter().filter(|value| *value == Some(of)).count()
}

#[test]
fn rows_that_are_written_while_it_runs_become_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let (held, written) = (folder.path().join("held"), folder.path().join("written"));
    let (scenario, options, notes) = (scenario(60), RunOptions { run: 3, captures: None }, [("whyloss.inputs", "0")]);
    let tables = run(&scenario, &options, &mut Control::default()).unwrap();
    tables.write_parquet(&held, &notes).unwrap();
    for (truth, least) in [("erased", 100), ("queue-full", 5), ("arrived", 100)] {
        assert!(count(&tables.losses, "true_cause", truth) > least, "{truth}: {}", count(&tables.losses, "true_cause", truth));
    }
    assert!(tables.timeouts.num_rows() > 2 && tables.samples.num_rows() > 100_000, "{tables:?}");
    let saved = save_run(&scenario, &options, &mut Control::default(), &written, &notes).unwrap();
    assert!(saved.complete);
    for (saved, (name, table)) in saved.tables.iter().zip(tables.all()) {
        let expected = (name, table.num_rows() as u64, rows_digest(table));
        assert_eq!((saved.name, saved.rows, saved.digest.clone()), expected);
        assert!(octets(&written, name) == octets(&held, name), "{name}: other octets");
    }
}

#[test]
fn who_watches_sees_the_same_whether_rows_are_taken_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, options) = (scenario(20), RunOptions::default());
    let told = |save: bool| {
        let (mut senders, mut queues, mut losses) = (Vec::new(), Vec::new(), Vec::new());
        let mut samples = |sampled: &Sampled<'_>| {
            senders.extend_from_slice(sampled.senders);
            queues.extend_from_slice(sampled.queues);
            losses.extend_from_slice(sampled.losses);
        };
        let mut control = Control { samples: Some(&mut samples), ..Control::default() };
        if save {
            save_run(&scenario, &options, &mut control, folder.path(), &[]).unwrap();
        } else {
            run(&scenario, &options, &mut control).unwrap();
        }
        losses.sort_unstable_by_key(|loss| (loss.at, loss.flow, loss.truth.name()));
        (senders, queues, losses)
    };
    // The end comes between two looks, at another time each time: what comes before is compared.
    let (held, taken) = (told(false), told(true));
    let least = held.0.len().min(taken.0.len());
    assert!(least > 20_000, "{least}");
    assert_eq!(held.0[..least], taken.0[..least]);
    let least = held.1.len().min(taken.1.len());
    assert_eq!(held.1[..least], taken.1[..least]);
    let until = held.2.iter().chain(&taken.2).map(|loss| loss.at).max().unwrap().as_nanos() * 9 / 10;
    let early = |losses: &[whyloss_lab::NoticedLoss]| {
        losses.iter().filter(|loss| loss.at.as_nanos() < until).copied().collect::<Vec<_>>()
    };
    let (held, taken) = (early(&held.2), early(&taken.2));
    assert!(held.len() > 200, "{}", held.len());
    assert_eq!(held, taken);
}

#[test]
fn a_run_that_is_stopped_leaves_complete_files_of_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, options) = (scenario(1000), RunOptions::default());
    for fraction in [0.0, 0.01, 0.03] {
        let (cancel, asked) = (Cancel::default(), Cell::new(None));
        let mut watch = |progress: &Progress| {
            if progress.fraction >= fraction && asked.get().is_none() {
                asked.set(Some(Instant::now()));
                cancel.cancel();
            }
        };
        let control = &mut Control::watched(cancel.clone(), &mut watch);
        let saved = save_run(&scenario, &options, control, folder.path(), &[]).unwrap();
        assert!(!saved.complete);
        let took = asked.get().unwrap().elapsed();
        println!("{took:?} from the wish to stop to whole files");
        assert!(took < Duration::from_secs(2), "{took:?}");
        let table = |name: &str| read(&folder.path().join(format!("{name}.parquet"))).unwrap();
        for (saved, name) in saved.tables.iter().zip(NAMES) {
            assert_eq!(
                (saved.name, saved.rows, &saved.digest),
                (name, table(name).num_rows() as u64, &rows_digest(&table(name)))
            );
        }
        let runs = table("runs");
        assert_eq!(count(&runs, "outcome", "cancelled"), 1);
        let ended: &UInt64Array = runs.column_by_name("ended_at_ns").unwrap().as_any().downcast_ref().unwrap();
        let ended = Duration::from_nanos(ended.value(0));
        // Nothing may happen for seconds while timers run.
        assert!(ended >= Duration::from_secs(1000).mul_f64(fraction * 0.5) && ended < Duration::from_secs(900), "{ended:?}");
        // What is there is what a run that ends there by itself has.
        let until = whyloss_lab::Value::from(format!("{} ns", ended.as_nanos()));
        let whole = run(&scenario.with_override("scenario.duration", until).unwrap(), &options, &mut Control::default()).unwrap();
        for name in ["samples", "queues", "drops"] {
            let (stopped, whole) = (table(name), whole.get(name).unwrap().clone());
            // Samples go on behind the latest event, of 22 rows each: none of those before is missing.
            let both = whole.num_rows().min(stopped.num_rows());
            assert!(
                whole.num_rows() <= stopped.num_rows() + 44,
                "{name} of a run stopped at {ended:?}: {} rows, {} of a whole one",
                stopped.num_rows(),
                whole.num_rows()
            );
            assert_eq!(whole.slice(0, both), stopped.slice(0, both), "{name}");
        }
    }
}
