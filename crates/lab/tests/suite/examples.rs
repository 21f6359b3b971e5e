//! The examples that teach the format are correct.

use std::path::{Path, PathBuf};
use whyloss_lab::{Scenario, Sweep};

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

#[test]
fn shorthands_are_written_out() {
    let of = |name: &str| Scenario::load(examples().into_iter().find(|path| path.ends_with(name)).unwrap()).unwrap();
    let dumbbell = of("who-can-tell.toml");
    assert_eq!((dumbbell.network().transfers.len(), dumbbell.network().links.len()), (10, 21));
    let path = of("lossy-link.toml");
    assert_eq!(path.network().links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>(), ["access", "path"]);
}
