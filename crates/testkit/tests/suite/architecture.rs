//! The arrows between the crates, as docs/architecture.md draws them.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

/// Which of our crates each crate may stand on; what only its own tests use is left aside.
const ARROWS: &[(&str, &[&str])] = &[
    ("transport", &[]),
    ("sim", &["transport"]),
    ("tables", &[]),
    ("lab", &["transport", "sim", "tables"]),
    ("net", &["transport", "sim"]),
    ("tun", &["transport", "net"]),
    ("kernel", &["transport", "sim"]),
    ("capture", &["transport", "tables"]),
    ("python", &["transport", "sim", "tables", "lab", "net", "kernel", "capture"]),
    ("testkit", &["transport", "sim", "lab"]),
    ("packetdrill", &["transport", "testkit"]),
    ("bench", &["transport", "sim", "lab", "net", "capture", "testkit"]),
    ("training", &["transport", "sim", "capture"]),
];

/// Outside crates, by the start of their name, that only some of ours may mention.
const RESERVED: &[(&str, &[&str])] = &[("pyo3", &["python"]), ("arrow", &["tables", "lab"]), ("parquet", &["lab"])];

/// The crates that may hold `unsafe`.
const UNSAFE: &[&str] = &["net", "kernel", "packetdrill"];

struct Crate {
    root: PathBuf,
    /// Dependencies of the library.
    uses: BTreeSet<String>,
    /// Dependencies of any kind.
    mentions: BTreeSet<String>,
}

fn crates() -> BTreeMap<String, Crate> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .filter_map(|package| {
            let name = package["name"].as_str()?.strip_prefix("whyloss-")?.to_owned();
            let root = PathBuf::from(package["manifest_path"].as_str()?).parent()?.to_owned();
            let dependencies = package["dependencies"].as_array()?;
            let names = |of_library: bool| {
                dependencies
                    .iter()
                    .filter(|dependency| !of_library || dependency["kind"].is_null())
                    .filter_map(|dependency| Some(dependency["name"].as_str()?.to_owned()))
                    .collect()
            };
            Some((name, Crate { root, uses: names(true), mentions: names(false) }))
        })
        .collect()
}

#[test]
fn arrows_run_one_way() {
    let crates = crates();
    assert!(crates.contains_key("transport"), "the workspace was not read");
    for (name, found) in &crates {
        let Some((_, allowed)) = ARROWS.iter().find(|(n, _)| n == name) else {
            panic!("crate `{name}` has no row in ARROWS: draw its arrows here and in docs/architecture.md");
        };
        for used in found.uses.iter().filter_map(|used| used.strip_prefix("whyloss-")) {
            assert!(allowed.contains(&used), "`{name}` must not stand on `{used}`");
        }
    }
}

#[test]
fn only_their_owners_mention_python_and_arrow() {
    for (name, found) in crates() {
        for (start, owners) in RESERVED {
            let mention = found.mentions.iter().find(|mention| mention.starts_with(start));
            assert!(mention.is_none() || owners.contains(&name.as_str()), "`{name}` must not depend on {mention:?}");
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_outside_its_crates() {
    for (name, found) in crates() {
        if UNSAFE.contains(&name.as_str()) {
            continue;
        }
        let roots = ["src/lib.rs", "src/main.rs"].map(|file| found.root.join(file));
        let source = roots.iter().find_map(|root| std::fs::read_to_string(root).ok()).expect("every crate has a root");
        assert!(source.contains("#![forbid(unsafe_code)]"), "`{name}` does not forbid unsafe code");
    }
}

#[test]
fn a_wheel_is_built_without_the_harness_of_the_kernels_cores() {
    let features = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--prefix", "none", "--format", "{p}|{f}"])
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let line =
            text.lines().find(|line| line.starts_with("whyloss-kernel ")).expect("it stands on the kernel part").to_owned();
        line.rsplit('|')
            .next()
            .unwrap_or_default()
            .split(',')
            .map(|name| name.trim_end_matches(" (*)").to_owned())
            .collect::<Vec<_>>()
    };
    let wheel = features(&["-p", "whyloss-python", "--features", "kernel", "-e", "normal,build"]);
    assert!(wheel.contains(&"bpf".to_owned()) && !wheel.contains(&"cores".to_owned()), "{wheel:?}");
    // Its own tests have it, or this test could not fail.
    let tests = features(&["-p", "whyloss-kernel", "-e", "all"]);
    assert!(tests.contains(&"cores".to_owned()), "{tests:?}");
}
