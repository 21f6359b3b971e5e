//! What the repository keeps of the formats is what the code says. `UPDATE=1 cargo test -p whyloss-lab` writes it anew.

use std::path::Path;

fn same(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{} is stale: run UPDATE=1 cargo test -p whyloss-lab", path.display());
}

fn pretty(json: &serde_json::Value) -> String {
    serde_json::to_string_pretty(json).unwrap() + "\n"
}

#[test]
fn the_schema_of_scenarios_is_fresh() {
    same("scenario.schema.json", &pretty(&whyloss_lab::schema()));
}

#[test]
fn the_schema_of_sweeps_is_fresh() {
    same("sweep.schema.json", &pretty(&whyloss_lab::sweep_schema()));
}

#[test]
fn the_description_of_results_is_fresh() {
    same("results.md", &whyloss_lab::tables::markdown());
    same("packets.md", &whyloss_lab::tables::packets_markdown());
}

#[test]
fn every_field_of_the_format_says_what_it_means() {
    fn walk(at: &str, schema: &serde_json::Value, missing: &mut Vec<String>) {
        for (name, field) in schema.get("properties").and_then(|p| p.as_object()).into_iter().flatten() {
            if field.get("description").is_none() {
                missing.push(format!("{at}.{name}"));
            }
        }
        for (name, inner) in schema.get("$defs").and_then(|d| d.as_object()).into_iter().flatten() {
            walk(name, inner, missing);
        }
    }
    let mut missing = Vec::new();
    walk("scenario", &whyloss_lab::schema(), &mut missing);
    walk("sweep", &whyloss_lab::sweep_schema(), &mut missing);
    assert_eq!(missing, Vec::<String>::new());
}
