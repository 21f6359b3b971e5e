//! Simulates worlds and writes each loss with its true cause, its features and what other differentiators thought of it.
//!
//! `cargo run --release -p whyloss-training -- --worlds 60 --out losses.csv`, then `training/fit.py losses.csv`; with `--captures` and
//! `training/fit_offline.py` for the model that judges captures.

#![forbid(unsafe_code)]

mod captures;
mod observe;
mod worlds;

use clap::Parser;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// Simulates worlds and writes their losses as CSV.
#[derive(Parser)]
struct Arguments {
    /// Worlds of each family.
    #[arg(long, default_value_t = 60)]
    worlds: u32,
    /// Another seed makes other worlds.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the losses as captures of the worlds show them, at their ends and in the middle.
    #[arg(long)]
    captures: bool,
    /// Only worlds of this family.
    #[arg(long)]
    family: Option<String>,
    /// Where to write the losses.
    #[arg(long, default_value = "losses.csv")]
    out: PathBuf,
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    let families = if arguments.captures { worlds::Family::CAPTURED } else { worlds::Family::ALL };
    let all: Vec<_> = families
        .iter()
        .filter(|family| arguments.family.as_ref().is_none_or(|name| name == family.name()))
        .flat_map(|&family| (0..arguments.worlds).map(move |number| (family, number)))
        .collect();
    let next = AtomicUsize::new(0);
    // Rows are kept by world, so that the file does not depend on how many threads wrote it.
    let rows = Mutex::new(vec![String::new(); all.len()]);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(&(family, number)) = all.get(index) else { break };
                let losses = if arguments.captures { captures::losses } else { observe::losses };
                let text = losses(family, arguments.seed, number);
                if index % 20 == 0 {
                    eprintln!("{index} of {} worlds", all.len());
                }
                rows.lock().expect("no thread panics while it writes")[index] = text;
            });
        }
    });
    let mut out = BufWriter::new(File::create(&arguments.out)?);
    writeln!(out, "{}", if arguments.captures { captures::header() } else { observe::header() })?;
    for text in rows.into_inner().expect("no thread panics while it writes") {
        out.write_all(text.as_bytes())?;
    }
    out.flush()
}
