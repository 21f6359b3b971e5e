//! The examples that teach the format are correct.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::Array;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use whyloss_lab::tables::rows_digest;
use whyloss_lab::{run, Control, RunOptions, Scenario, Sweep};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    found.sort();
    found
}

#[test]
fn every_example_is_understood() {
    let examples = examples();
    assert!(examples.len() > 3, "{examples:?}");
    for path in &examples {
        let understood = if std::fs::read_to_string(path).unwrap().contains("[sweep]") {
            Sweep::load(path).and_then(|sweep| sweep.plan()).map(|plan| plan.total())
        } else {
            Scenario::load(path).map(|scenario| scenario.network().transfers.len())
        };
        assert!(understood.unwrap_or_else(|error| panic!("{error}")) > 0, "{}", path.display());
    }
}

/// The rows of some runs, as digests. Release builds are compared with the same file (`tests/test_verifying.py`), and so is any machine that tests run
/// on: it changes when the engine computes something else, and only then.
#[test]
fn every_build_on_every_machine_gives_these_rows() {
    let mut told = String::new();
    let mut tell = |name: &str, scenario: &Scenario| {
        let scenario = scenario.with_override("scenario.duration", "3 s").unwrap();
        let tables =
            run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (table, rows) in tables.all().into_iter().filter(|(_, rows)| rows.num_rows() > 0) {
            writeln!(told, "{name} {table} {} {}", rows.num_rows(), &rows_digest(rows)[..16]).unwrap();
        }
    };
    for path in examples() {
        if !std::fs::read_to_string(&path).unwrap().contains("[sweep]") {
            tell(&path.file_name().unwrap().to_string_lossy(), &Scenario::load(&path).unwrap());
        }
    }
    let link = Scenario::load(examples().into_iter().find(|path| path.ends_with("random-loss.toml")).unwrap()).unwrap();
    for scheme in ["auto", "bbr", "cubic", "lda-eq", "tcp-real", "westwood"] {
        tell(&format!("random-loss.toml:{scheme}"), &link.with_override("flow[0].scheme", scheme).unwrap());
    }
    insta::assert_snapshot!("rows", told);
}

#[test]
fn shorthands_are_written_out() {
    let of = |name: &str| Scenario::load(examples().into_iter().find(|path| path.ends_with(name)).unwrap()).unwrap();
    let dumbbell = of("who-can-tell.toml");
    assert_eq!((dumbbell.network().transfers.len(), dumbbell.network().links.len()), (10, 21));
    let path = of("lossy-link.toml");
    assert_eq!(path.network().links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>(), ["access", "path"]);
    let chain = of("radio-chain.toml");
    let names: Vec<_> = chain.network().links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["node0-node1", "node1-node2", "node2-node3", "node3-node4", "node4-node5"]);
    let transfer = &chain.network().transfers[0];
    assert_eq!((transfer.from, transfer.to), (0, 5));
}

#[test]
fn radio_links_tell_of_their_frames() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let scenario = Scenario::load(folder.join("radio-cell.toml")).unwrap().with_override("scenario.duration", "5 s").unwrap();
    let tables = run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap();
    let column = |name: &str| tables.links.column_by_name(name).unwrap().as_primitive::<UInt64Type>().clone();
    let (frames, collided, given_up) = (column("frames"), column("frames_collided"), column("dropped_collision"));
    // Each wire and each radio link has two directions; the wire comes first and knows nothing of frames.
    assert_eq!(frames.len(), 6);
    assert!((0..2).all(|row| frames.is_null(row)) && (2..6).all(|row| frames.is_valid(row)));
    let lost: u64 = (2..6).map(|row| given_up.value(row)).sum();
    let total = tables.runs.column_by_name("packets_dropped_collision").unwrap().as_primitive::<UInt64Type>().value(0);
    assert!(total > 0 && total == lost, "{total} {lost}");
    assert!((2..6).map(|row| collided.value(row)).sum::<u64>() > total);
}

#[test]
fn what_base_stations_hand_over_is_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let table = |kind: &str| {
        let kinds = [0, 1].map(|nth| (format!("middlebox[{nth}].kind"), kind));
        let scenario = kinds.iter().fold(Scenario::load(folder.join("two-stations.toml")).unwrap(), |scenario, (field, kind)| {
            scenario.with_override(field, *kind).unwrap()
        });
        let tables = run(&scenario, &RunOptions::default(), &mut Control::default()).unwrap();
        let column = |name: &str| {
            let column = tables.middleboxes.column_by_name(name).unwrap().as_primitive::<UInt64Type>();
            [column.value(0), column.value(1)]
        };
        ["moved_flows", "moved_octets", "longest_move_ns"].map(column)
    };
    // Of three moves two begin at the first station. 20 ms, then 200 octets at 2 Mbit/s.
    assert_eq!(table("m-tcp"), [[2, 1], [400, 200], [20_800_000; 2]]);
    assert_eq!(table("snoop"), [[0; 2]; 3]);
    let [flows, octets, longest] = table("i-tcp");
    assert_eq!(flows, [2, 1]);
    assert!(octets[0] > 20_000 && longest[1] == 20_000_000 + 4000 * octets[1], "{octets:?} {longest:?}");
}
