//! Sweeps: the same tables whatever the number of threads, however often interrupted, and never computed twice.

use std::path::Path;
use std::time::{Duration, Instant};
use whyloss_lab::arrow_array::{Array, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use whyloss_lab::tables::{file_digest, read, rows_digest};
use whyloss_lab::{
    execute, run, save, Cancel, Control, Error, ExecuteOptions, Plan, Progress, RunOptions, Scenario, Sweep, Tables,
};

fn plan() -> Plan {
    Sweep::load("tests/data/sweep.toml").unwrap().plan().unwrap()
}

fn options(store: Option<&Path>, threads: usize) -> ExecuteOptions {
    ExecuteOptions { store: store.map(Path::to_owned), threads: Some(threads) }
}

/// Executes `plan` and says how many runs were found in the store.
fn watched(plan: &Plan, options: &ExecuteOptions) -> (Tables, usize) {
    let mut last: Option<Progress> = None;
    let mut watch = |progress: &Progress| last = Some(*progress);
    let tables = execute(plan, options, &mut Control::watched(Cancel::default(), &mut watch)).unwrap();
    let last = last.expect("the end is told");
    assert_eq!((last.done, last.total, last.fraction), (plan.total(), plan.total(), 1.0));
    (tables, last.found)
}

fn column<'a, T: 'static>(table: &'a RecordBatch, name: &str) -> &'a T {
    table.column_by_name(name).unwrap_or_else(|| panic!("no column {name}")).as_any().downcast_ref().unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            names.extend(files(&entry.path()));
        } else {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    names
}

#[test]
fn a_run_moves_its_data_and_says_so() {
    let scenario = Scenario::load("tests/data/path.toml").unwrap();
    let tables = run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap();
    assert_eq!(column::<UInt64Array>(&tables.transfers, "octets_delivered").value(0), 100_000);
    assert!(column::<UInt64Array>(&tables.transfers, "finished_ns").is_valid(0));
    let goodput = column::<Float64Array>(&tables.transfers, "goodput_bps").value(0);
    assert!((100_000.0..1_000_000.0).contains(&goodput), "{goodput}");
    assert_eq!(tables.links.num_rows(), 4);
    // The pattern has two errors in 100,000 bits, far fewer than the transfer takes: it repeats and damages packets.
    assert!(column::<UInt64Array>(&tables.links, "damaged_packets").value(2) > 5);
    assert!(tables.losses.num_rows() > 0);
    let class = column::<StringArray>(&tables.losses, "true_class");
    assert!(class.iter().flatten().all(|class| class == "corruption"), "{class:?}");
}

#[test]
fn dccp_fills_the_same_tables() {
    let toml = "[scenario]\nduration = '20 s'\n[path]\nrate = '2 Mbps'\ndelay = '20 ms'\nqueue = '20 pkt'\n\
                forward.channel.ber = 1e-6\n[[flow]]\nscheme = 'dccp-ccid2'\n[output]\nsample = '1 s'\n";
    let modes = ["rfc", "differentiating"].map(|mode| {
        let scenario = Scenario::from_toml(toml, "t").unwrap();
        let scenario = scenario.with_override("flow[0].parameters.dccp-ccid2.mode", mode).unwrap();
        let tables = run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap();
        assert_eq!(column::<StringArray>(&tables.flows, "scheme").value(0), "dccp-ccid2");
        assert!(column::<UInt64Array>(&tables.flows, "losses").value(0) > 0);
        assert!(tables.samples.num_rows() > 15);
        // Damage is reported, full queues are inferred: the verdicts are right.
        let truth = column::<StringArray>(&tables.losses, "true_class").iter();
        let wrong = truth
            .zip(column::<StringArray>(&tables.losses, "verdict"))
            .filter(|(truth, verdict)| truth.is_some() && *verdict == Some("corruption") && truth != verdict);
        assert_eq!(wrong.count(), 0);
        column::<Float64Array>(&tables.flows, "goodput_bps").value(0)
    });
    assert!(modes[1] > modes[0], "{modes:?}");
}

#[test]
fn null_takes_a_field_away() {
    let endless = serde_json::json!({ "flow[0].size": null, "scenario.duration": "60 s" });
    let everywhere = serde_json::json!({ "sweep": { "base": "path.toml" }, "set": endless });
    let axis =
        serde_json::json!([{ "name": "length", "variant": [{ "name": "endless", "set": endless }, { "name": "as it is" }] }]);
    let at_one_step = serde_json::json!({ "sweep": { "base": "path.toml" }, "axis": axis });
    let sizes = |sweep: &serde_json::Value| -> Vec<bool> {
        let plan = Sweep::from_json(sweep, "sweep", "tests/data").unwrap().plan().unwrap();
        plan.points.iter().map(|point| point.scenario.document().flow[0].size.is_some()).collect()
    };
    assert_eq!(sizes(&everywhere), [false]);
    assert_eq!(sizes(&at_one_step), [false, true]);
}

#[test]
fn threads_do_not_change_a_bit() {
    let (one, _) = watched(&plan(), &options(None, 1));
    let (two, _) = watched(&plan(), &options(None, 2));
    let (three, _) = watched(&plan(), &options(None, 3));
    assert_eq!(one, two);
    assert_eq!(one, three);
}

#[test]
fn tables_follow_the_order_of_the_plan() {
    let (tables, _) = watched(&plan(), &options(None, 2));
    let runs = &tables.runs;
    assert_eq!(column::<UInt32Array>(runs, "run").values()[..], [0, 1, 2, 3].repeat(4));
    let points = [[0; 4], [1; 4], [2; 4], [3; 4]].concat();
    assert_eq!(column::<UInt32Array>(runs, "point").values()[..], points);
    let delays: Vec<_> = column::<UInt64Array>(runs, "delay_ns").values().iter().map(|ns| ns / 1_000_000).collect();
    assert_eq!(delays, [[5; 8], [20; 8]].concat());
    assert_eq!(column::<StringArray>(runs, "delay").value(15), "20 ms");
    let variants: Vec<_> = column::<StringArray>(runs, "variant").iter().flatten().step_by(4).collect();
    assert_eq!(variants, ["newreno", "sack", "newreno", "sack"]);
    assert_eq!(tables.links.num_rows(), 16 * 4);
}

#[test]
fn what_is_in_the_store_is_not_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let (first, found) = watched(&plan(), &options(Some(folder.path()), 2));
    assert_eq!(found, 0);
    let kept = files(folder.path());
    assert_eq!(kept.len(), 4, "one part a point: {kept:?}");
    let (second, found) = watched(&plan(), &options(Some(folder.path()), 2));
    assert_eq!((found, &second), (16, &first));
    assert_eq!(files(folder.path()), kept);
    // Fewer runs are found, and more runs need only the new ones.
    let fewer = Sweep::load("tests/data/sweep.toml").unwrap().with_runs(1..3).plan().unwrap();
    assert_eq!(watched(&fewer, &options(Some(folder.path()), 1)).1, 8);
    let more = Sweep::load("tests/data/sweep.toml").unwrap().with_runs(0..5).plan().unwrap();
    assert_eq!(watched(&more, &options(Some(folder.path()), 2)).1, 16);
}

#[test]
fn a_spoilt_part_is_computed_again() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = watched(&plan(), &options(Some(folder.path()), 2));
    let part = walk(folder.path()).remove(0);
    let mut bytes = std::fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&part, &bytes).unwrap();
    let (again, found) = watched(&plan(), &options(Some(folder.path()), 2));
    assert_eq!((found, again == first), (12, true));
    std::fs::write(&part, &bytes[..middle]).unwrap();
    assert_eq!(watched(&plan(), &options(Some(folder.path()), 2)), (first, 12));
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

#[test]
fn a_sweep_that_is_stopped_anywhere_goes_on_where_it_was() {
    let whole = watched(&plan(), &options(None, 1)).0;
    for stop_after in [0, 1, 3, 7, 12] {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = 0;
        // Stop again and again until nothing is left to do.
        for attempt in 0.. {
            assert!(attempt < 40, "no progress after {attempt} attempts");
            let cancel = Cancel::default();
            let flag = cancel.clone();
            let first = std::cell::Cell::new(None);
            let mut watch = |progress: &Progress| {
                let start = first.get().unwrap_or(progress.done);
                first.set(Some(start));
                if progress.done >= start + stop_after && progress.done < progress.total {
                    flag.cancel();
                }
            };
            let result = execute(&plan(), &options(Some(folder.path()), 2), &mut Control::watched(cancel, &mut watch));
            match result {
                Ok(tables) => {
                    assert_eq!(tables, whole);
                    break;
                }
                Err(Error::Cancelled) => {
                    let now = first.get().unwrap();
                    assert!(now >= kept, "what was kept is still there");
                    kept = now;
                    if stop_after == 0 {
                        // Stopped before the first run: only a whole attempt can end this.
                        assert_eq!(watched(&plan(), &options(Some(folder.path()), 2)).0, whole);
                        break;
                    }
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(files(folder.path()).iter().all(|name| Path::new(name).extension().is_some_and(|e| e == "part")));
    }
}

#[test]
fn other_contents_of_a_pattern_file_are_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let pattern = folder.path().join("a.bits");
    let store = folder.path().join("store");
    let scenario = Scenario::load("tests/data/path.toml").unwrap();
    let scenario = scenario.with_override("path.forward.channel.pattern", pattern.to_str().unwrap()).unwrap();
    let plan = Sweep::repeat(scenario, 1).plan().unwrap();
    whyloss_lab::patterns::generate(&pattern, 1e-5, 1_000_000, 1).unwrap();
    let (first, found) = watched(&plan, &options(Some(&store), 1));
    assert_eq!(found, 0);
    assert_eq!(watched(&plan, &options(Some(&store), 1)).1, 1);
    whyloss_lab::patterns::generate(&pattern, 1e-5, 1_000_000, 2).unwrap();
    let (second, found) = watched(&plan, &options(Some(&store), 1));
    assert_eq!(found, 0);
    assert_ne!(first.links, second.links);
}

#[test]
fn a_long_run_stops_soon_after_it_is_asked_to() {
    let text = "[scenario]\nduration = '10000 h'\n[path]\nrate = '1 Gbps'\ndelay = '1 ms'\n[[flow]]\n";
    let scenario = Scenario::from_toml(text, "long").unwrap();
    for in_sweep in [false, true] {
        let cancel = Cancel::default();
        let flag = cancel.clone();
        let asked = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            flag.cancel();
            Instant::now()
        });
        let mut control = Control::new(cancel);
        let result = if in_sweep {
            execute(&Sweep::repeat(scenario.clone(), 2).plan().unwrap(), &options(None, 2), &mut control)
        } else {
            run(&scenario, &RunOptions::default(), &mut control)
        };
        let late = asked.join().unwrap().elapsed();
        assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
        // A generous bound: test machines are shared. Measured: a few milliseconds.
        assert!(late < Duration::from_secs(1), "{late:?}");
    }
}

#[test]
fn a_store_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let error = execute(&plan(), &options(Some(&file), 1), &mut Control::default()).unwrap_err();
    assert_eq!(error.exit_status(), 1);
    assert!(error.to_string().starts_with(&format!("cannot write {}", file.display())), "{error}");
}

#[test]
fn tables_become_parquet_files() {
    let folder = tempfile::tempdir().unwrap();
    let (tables, _) = watched(&plan(), &options(None, 2));
    tables.write_parquet(folder.path().join("out"), &[("whyloss.inputs", "0")]).unwrap();
    let names = files(&folder.path().join("out"));
    let mut expected = whyloss_lab::tables::NAMES.map(|name| format!("{name}.parquet"));
    expected.sort();
    assert_eq!(names, expected);
    let runs = std::fs::read(folder.path().join("out/runs.parquet")).unwrap();
    assert_eq!((&runs[..4], &runs[runs.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
}

/// Writes the tables of `plan` to files without holding them.
fn saved(plan: &Plan, store: &Path, out: &Path) -> Vec<String> {
    let tables = save(plan, store, Some(2), &mut Control::default(), out, &[("whyloss.inputs", "0")]).unwrap();
    tables.iter().map(|table| format!("{} {} {}", table.name, table.rows, table.digest)).collect()
}

fn octets(folder: &Path) -> Vec<(String, Vec<u8>)> {
    files(folder).into_iter().map(|name| (name.clone(), std::fs::read(folder.join(name)).unwrap())).collect()
}

#[test]
fn tables_that_are_never_held_become_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // The points differ in their columns: each has shadows of its own.
    let scenario = Scenario::load("tests/data/path.toml").unwrap().with_override("output.sample", "100 us").unwrap();
    let shadows = |label: &str, shadows: serde_json::Value| whyloss_lab::AxisStep {
        label: label.into(),
        set: vec![("flow[0].shadows".to_owned(), whyloss_lab::Located::from_json(&shadows, "t"))],
    };
    let steps = vec![
        shadows("none", serde_json::json!([])),
        shadows("veno", serde_json::json!(["veno"])),
        shadows("both", serde_json::json!(["spike", "veno"])),
    ];
    let axis = whyloss_lab::Axis { name: "judged by".to_owned(), steps };
    let plan = Sweep::repeat(scenario, 5).with_axis(axis).plan().unwrap();
    let held = watched(&plan, &options(None, 2)).0;
    held.write_parquet(at("held"), &[("whyloss.inputs", "0")]).unwrap();
    assert!(held.samples.num_rows() > 3 * 16 * 1024, "{} rows are encoded at once", held.samples.num_rows());
    assert!(held.losses.schema().field_with_name("verdict_spike").is_ok(), "{:?}", held.losses.schema());
    let told = saved(&plan, &at("store"), &at("saved"));
    let expected = held.all().map(|(name, table)| format!("{name} {} {}", table.num_rows(), rows_digest(table)));
    assert_eq!(told, expected);
    assert!(octets(&at("saved")) == octets(&at("held")), "other octets");
    for (name, table) in held.all() {
        let file = at("saved").join(format!("{name}.parquet"));
        assert_eq!(file_digest(&file).unwrap(), rows_digest(table));
        assert_eq!(read(&file).unwrap(), *table);
    }
    // Parts of all sorts: runs one by one, one part that is spoilt and one that is gone.
    for run in (0..5).rev() {
        let mut one = plan.clone();
        one.points.iter_mut().for_each(|point| point.runs = run..run + 1);
        saved(&one, &at("single"), &at("one"));
    }
    let parts = walk(&at("single"));
    assert_eq!(parts.len(), 15);
    std::fs::remove_file(&parts[0]).unwrap();
    let mut spoilt = std::fs::read(&parts[7]).unwrap();
    let middle = spoilt.len() / 2;
    spoilt[middle] ^= 1;
    std::fs::write(&parts[7], spoilt).unwrap();
    assert_eq!(saved(&plan, &at("single"), &at("again")), told);
    assert!(octets(&at("again")) == octets(&at("held")), "other octets");
}

#[test]
fn files_of_a_sweep_that_is_stopped_stay_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let (store, out) = (folder.path().join("store"), folder.path().join("out"));
    saved(&plan(), &store, &out);
    let before = octets(&out);
    let mut more = plan();
    more.points.iter_mut().for_each(|point| point.runs = 0..8);
    let cancel = Cancel::default();
    let mut watch = |progress: &Progress| {
        if progress.done == progress.total {
            cancel.cancel();
        }
    };
    let control = &mut Control::watched(cancel.clone(), &mut watch);
    let result = save(&more, &store, Some(2), control, &out, &[("whyloss.inputs", "0")]);
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
    assert!(octets(&out) == before, "other files");
    assert_eq!(watched(&more, &options(Some(&store), 1)).1, 32);
}

#[test]
fn a_striped_transfer_is_one_transfer_over_several_flows() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let scenario = Scenario::load(examples.join("striped.toml")).unwrap();
    let tables = run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap();
    assert_eq!((tables.transfers.num_rows(), tables.flows.num_rows()), (1, 4));
    assert_eq!(column::<UInt64Array>(&tables.transfers, "octets_delivered").value(0), 1_000_000);
    assert_eq!(column::<UInt32Array>(&tables.transfers, "connections").value(0), 4);
    let each = column::<UInt64Array>(&tables.flows, "octets_delivered");
    assert_eq!(each.iter().flatten().sum::<u64>(), 1_000_000);
    assert!(each.iter().flatten().all(|octets| octets > 0), "{each:?}");
    assert_eq!(column::<StringArray>(&tables.flows, "flow").value(3), "flow0/3");
}

#[test]
fn when_a_part_cannot_be_written_the_others_are_kept_and_counted() {
    let whole = watched(&plan(), &options(None, 1)).0;
    for point in [0, 3] {
        let folder = tempfile::tempdir().unwrap();
        let (store, aside) = (folder.path().join("store"), folder.path().join("aside"));
        // Where the part of this point would go stands a file: as good as a disk that is full by then.
        let mut one = plan();
        one.points = one.points.drain(point..=point).collect();
        watched(&one, &options(Some(&aside), 1));
        let blocked = store.join(walk(&aside)[0].parent().unwrap().file_name().unwrap());
        std::fs::create_dir_all(&store).unwrap();
        std::fs::write(&blocked, "").unwrap();
        let error = execute(&plan(), &options(Some(&store), 1), &mut Control::default()).unwrap_err();
        let Error::Keep { path, kept, lost, total, .. } = &error else { panic!("{error}") };
        assert!(path.starts_with(&blocked), "{error}");
        assert_eq!(*total, 16);
        assert!(*lost >= 4, "the runs of this point: {error}");
        let said = format!("; {kept} of 16 runs are kept, {lost} that were computed are not");
        assert!(error.to_string().ends_with(&said), "{error}");
        std::fs::remove_file(&blocked).unwrap();
        let (again, found) = watched(&plan(), &options(Some(&store), 1));
        assert_eq!(again, whole);
        assert_eq!(found, *kept);
        // By chance another point may lie in the same folder; then writing failed earlier.
        let alone = walk(&store).iter().filter(|part| part.starts_with(&blocked)).count() == 1;
        assert!(!alone || point == 0 || found == 12, "{found}");
    }
}

#[test]
fn what_a_killed_process_left_half_written_is_taken_away() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    watched(&plan(), &options(Some(&store), 1));
    let half = walk(&store)[0].with_file_name(".writing-1-1");
    let file = std::fs::File::create(&half).unwrap();
    assert_eq!(watched(&plan(), &options(Some(&store), 1)).1, 16);
    assert!(half.exists(), "somebody may be writing it");
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(3600)).unwrap();
    assert_eq!(watched(&plan(), &options(Some(&store), 1)).1, 16);
    assert!(!half.exists());
}

#[test]
fn each_run_and_each_value_can_have_a_pattern_file_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy("tests/data/path.toml", folder.path().join("path.toml")).unwrap();
    for (index, ber) in ["0", "1e-5"].into_iter().enumerate() {
        for run in 0..3_u64 {
            let path = folder.path().join(format!("{ber}-{run:02}.bits"));
            whyloss_lab::patterns::generate(path, ber.parse().unwrap(), 10_000_000, 10 * index as u64 + run).unwrap();
        }
    }
    let text = "[sweep]\nbase = 'path.toml'\nruns = 3\n[set]\n'path.forward.channel.pattern' = '{ber}-{run:02}.bits'\n\
                [[axis]]\nname = 'ber'\nfields.'flow[0].size' = ['200 kB', '200 kB']\nlabels = [0, 1e-5]\n";
    let plan = Sweep::from_toml(text, "sweep", folder.path()).unwrap().plan().unwrap();
    let (tables, _) = watched(&plan, &options(None, 2));
    let damaged: Vec<u64> =
        column::<UInt64Array>(&tables.links, "damaged_packets").values().iter().skip(2).step_by(4).copied().collect();
    assert_eq!(damaged[..3], [0, 0, 0]);
    assert!(damaged[3..].iter().all(|packets| *packets > 0), "{damaged:?}");
    assert_eq!(column::<Float64Array>(&tables.runs, "ber").values()[2..4], [0.0, 1e-5]);
}

/// What is set on a command line wins over what the sweep sets, by whatever name, and an axis may set more inside of it.
#[test]
fn arguments_win_over_what_the_sweep_sets() {
    let text = "[sweep]\nbase = 'path.toml'\n[set]\n'flow[0]' = { name = 'main', size = '200 kB' }\n'path.rate' = '2 Mbps'\n\
                [[axis]]\nfield = 'flow[main].scheme'\nname = 'variant'\nvalues = ['newreno', 'sack']\n";
    let sweep = Sweep::from_toml(text, "sweep", "tests/data").unwrap();
    let sizes = |sweep: &Sweep| -> Vec<_> {
        let points = sweep.plan().unwrap().points;
        points.iter().map(|point| point.scenario.document().flow[0].size.unwrap().0).collect()
    };
    assert_eq!(sizes(&sweep), [200_000; 2]);
    let changed = sweep.clone().with_argument("flow[main].size=1 MB").unwrap();
    assert_eq!(sizes(&changed), [1_000_000; 2]);
    assert_eq!(sizes(&Sweep::from_recipe(&changed.to_recipe(), "r").unwrap()), [1_000_000; 2]);
    let whole = sweep.with_argument("flow=[{ name = 'main', size = '3 MB' }]").unwrap();
    assert_eq!(sizes(&whole), [3_000_000; 2]);
}

/// An axis that takes over what another sets replaces nothing: its list of flows has the scheme of the first axis in it.
#[test]
fn an_axis_may_set_inside_of_what_another_sets_and_take_its_value_over() {
    let flows =
        "[sweep]\nbase = 'path.toml'\n[[axis]]\nname = 'flows'\nlabels = [1]\nfields.flow = [[{ name = 'a', size = '1 MB' }]]\n";
    let scheme = "[[axis]]\nname = 'variant'\nfield = 'flow[a].scheme'\nvalues = ['newreno', 'sack']\n";
    assert_eq!(Sweep::from_toml(&format!("{flows}{scheme}"), "s", "tests/data").unwrap().plan().unwrap().points.len(), 2);
    let over =
        "[sweep]\nbase = 'path.toml'\n[[axis]]\nname = 'variant'\nfield = 'flow[0].scheme'\nvalues = ['newreno', 'sack']\n\
                [[axis]]\nname = 'flows'\nlabels = [1]\nfields.flow = [[{ size = '1 MB', scheme = '{variant}' }]]\n";
    assert_eq!(Sweep::from_toml(over, "s", "tests/data").unwrap().plan().unwrap().points.len(), 2);
}

#[cfg(unix)]
#[test]
fn what_is_no_file_in_a_store_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let (first, _) = watched(&plan(), &options(Some(folder.path()), 2));
    let parts = walk(folder.path());
    let named = |part: &Path, end: &str| part.with_file_name(part.file_name().unwrap().to_str().unwrap().replace(".part", end));
    let pipe = named(&parts[0], "0.part");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // A folder where a part was: the part goes beside it.
    std::fs::remove_file(&parts[1]).unwrap();
    std::fs::create_dir(&parts[1]).unwrap();
    assert_eq!(watched(&plan(), &options(Some(folder.path()), 2)), (first.clone(), 12));
    assert!(named(&parts[1], ".1.part").is_file());
    assert_eq!(watched(&plan(), &options(Some(folder.path()), 2)), (first, 16));
}
