//! The arrows between the crates, as docs/architecture.md draws them.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which of our crates each crate may stand on; what only its own tests use is left aside.
const ARROWS: &[(&str, &[&str])] = &[
    ("transport", &[]),
    ("sim", &["transport"]),
    ("lab", &["transport", "sim"]),
    ("net", &["transport", "sim"]),
    ("kernel", &["transport", "sim"]),
    ("capture", &["transport", "sim"]),
    ("python", &["transport", "sim", "lab", "net", "kernel"]),
    ("testkit", &["transport", "sim", "lab"]),
    ("packetdrill", &["transport", "testkit"]),
    ("bench", &["transport", "sim", "net"]),
    ("training", &["transport", "sim"]),
];

/// Outside crates, by the start of their name, that only some of ours may mention.
const RESERVED: &[(&str, &[&str])] = &[("pyo3", &["python"]), ("arrow", &["lab", "capture"]), ("parquet", &["lab", "capture"])];

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

/// Crates whose modules stand on one another in one direction as well.
const LAYERED: &[&str] = &["kernel", "net"];

/// The modules that each module of a crate names in `use crate::…`, directly or by what the crate's root exports of them.
fn modules(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let entries = || std::fs::read_dir(source).expect("a crate has sources").flatten().map(|entry| entry.path());
    let stem = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
    let names: BTreeSet<String> = entries().map(|path| stem(&path)).filter(|name| name != "lib").collect();
    let root = std::fs::read_to_string(source.join("lib.rs")).expect("a library");
    let mut exported = BTreeMap::new();
    for line in root.lines().filter_map(|line| line.strip_prefix("pub use ")?.strip_suffix(';')?.split_once("::")) {
        exported.extend(line.1.split(|c: char| !c.is_alphanumeric()).map(|name| (name.to_owned(), line.0.to_owned())));
    }
    let mut graph: BTreeMap<_, BTreeSet<_>> = names.iter().map(|name| (name.clone(), BTreeSet::new())).collect();
    let mut waiting: Vec<PathBuf> = entries().filter(|path| stem(path) != "lib").collect();
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
            continue;
        }
        let inside = path.strip_prefix(source).expect("below the sources");
        let module = stem(Path::new(inside.components().next().expect("a name").as_os_str()));
        let text = std::fs::read_to_string(&path).expect("a source file");
        for statement in text.split("use crate::").skip(1) {
            let list = statement.split(';').next().unwrap_or_default();
            // Of a list in braces the first name of each entry, else the first name.
            let list = list.strip_prefix('{').map_or(list.split("::").next().unwrap_or_default(), |list| list);
            let mut depth = 0;
            let outer: String = list
                .chars()
                .filter(|&c| {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    depth == 0
                })
                .collect();
            for entry in outer.split(',').filter_map(|entry| entry.trim().split("::").next()) {
                let target = exported.get(entry).map_or(entry, String::as_str);
                if names.contains(target) && target != module {
                    graph.get_mut(&module).expect("is a module").insert(target.to_owned());
                }
            }
        }
    }
    graph
}

#[test]
fn modules_stand_on_one_another_in_one_direction() {
    for (name, found) in crates().into_iter().filter(|(name, _)| LAYERED.contains(&name.as_str())) {
        let mut left = modules(&found.root.join("src"));
        assert!(left.values().any(|used| !used.is_empty()), "`{name}` was not read");
        loop {
            let free: BTreeSet<_> = left.iter().filter(|(_, used)| used.is_empty()).map(|(module, _)| module.clone()).collect();
            if free.is_empty() {
                break;
            }
            left.retain(|module, _| !free.contains(module));
            for used in left.values_mut() {
                used.retain(|module| !free.contains(module));
            }
        }
        assert!(left.is_empty(), "`{name}`: a circle among {left:?}");
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
