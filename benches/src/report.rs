//! The table and `bench.json`.

use serde::Serialize;
use std::collections::BTreeMap;

/// A measured value with its name and unit.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    /// The same measured on others in this run, or a bar to compare with.
    pub peers: BTreeMap<&'static str, f64>,
}

impl Entry {
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, peers: BTreeMap::new() }
    }

    pub fn peer(mut self, name: &'static str, value: f64) -> Self {
        self.peers.insert(name, value);
        self
    }

    pub fn limit(self, name: &'static str, value: f64) -> Self {
        self.peer(name, value)
    }
}

/// Prints all values with their ratio to each peer.
pub fn print(entries: &[Entry]) {
    let width = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    for entry in entries {
        print!("{:width$}  {:>14} {:8}", entry.name, number(entry.value), entry.unit);
        for (peer, value) in &entry.peers {
            print!("  {peer} {} (ratio {:.2})", number(*value), entry.value / value);
        }
        println!();
    }
}

fn number(value: f64) -> String {
    if value >= 1e6 {
        format!("{:.3} M", value / 1e6)
    } else if value >= 1e3 {
        format!("{:.1} k", value / 1e3)
    } else {
        format!("{value:.1}")
    }
}
