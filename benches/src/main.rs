//! Measures speed and memory, and prints them beside those of ns-2 and ns-3 where they are installed.
//!
//! `make bench` runs it. Speed is told as ratios within one run, or as instruction counts: both mean something on another machine.
#![forbid(unsafe_code)]

mod chain;
mod clock;
mod differentiators;
mod emulator;
mod memory;
mod peers;
mod report;
mod setup;
mod worlds;

use chain::Chain;
use clap::{Parser, Subcommand};
use peers::Ns3Radio;
use report::Entry;
use std::path::PathBuf;
use worlds::{Dumbbell, W1, W2};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Speed and memory of whyloss.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// Where the results go as JSON.
    #[arg(long, default_value = "bench.json")]
    out: PathBuf,
    /// How often each world is run; the median counts.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// Leave ns-2 and ns-3 out.
    #[arg(long)]
    alone: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Runs one world once and prints packets, events and processor seconds. Instruction counters run this.
    World {
        /// w1, w2 or w3.
        name: String,
        /// Seconds of the world.
        seconds: u64,
        /// Differentiators in shadow.
        shadows: Vec<String>,
    },
    /// Measures the set-up and the event rate of dumbbells of 100 to 100,000 flows only.
    Setup,
    /// Measures the differentiators only.
    Differentiators,
    /// Measures the link emulator only. Needs root.
    Emulator {
        /// Seconds of each measurement.
        #[arg(default_value_t = 5)]
        seconds: u64,
    },
    /// Prints the goodput of radio chains of 1 to 5 hops, beside ns-3's where it is installed, as CSV.
    Chain {
        /// Runs of each.
        #[arg(default_value_t = 5)]
        runs: u64,
    },
}

fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    match arguments.what {
        Some(What::World { name, seconds, .. }) if name.eq_ignore_ascii_case("w3") => {
            let took = Chain::w3().run(0, seconds).0;
            println!("{} {} {:.6}", took.packets, took.events, took.cpu_s);
            return Ok(());
        }
        Some(What::World { name, seconds, shadows }) => {
            let world = if name.eq_ignore_ascii_case("w1") { W1 } else { W2 };
            let (took, _) = world.run(seconds, &shadows);
            println!("{} {} {:.6}", took.packets, took.events, took.cpu_s);
            return Ok(());
        }
        Some(What::Chain { runs }) => {
            chain::table(runs.max(1));
            return Ok(());
        }
        Some(What::Setup) => {
            report::print(&set_up(arguments.repetitions));
            return Ok(());
        }
        Some(What::Differentiators) => {
            report::print(&differentiators::measure(arguments.repetitions));
            return Ok(());
        }
        Some(What::Emulator { seconds }) => {
            report::print(&emulator::measure(seconds, arguments.repetitions));
            return Ok(());
        }
        None => {}
    }
    let mut entries = Vec::new();
    for world in [W1, W2] {
        eprintln!("{}: {}", world.name, world.what);
        entries.extend(speed(&world, arguments.repetitions, !arguments.alone));
        entries.extend(peers::instructions(&world));
    }
    let w3 = Chain::w3();
    eprintln!("{}: {}", w3.name, w3.what);
    entries.extend(speed_of_chain(&w3, arguments.repetitions, !arguments.alone));
    eprintln!("set-up");
    entries.extend(set_up(arguments.repetitions));
    eprintln!("differentiators");
    entries.extend(differentiators::measure(arguments.repetitions));
    eprintln!("emulator");
    entries.extend(emulator::measure(5, arguments.repetitions));
    eprintln!("memory");
    let profiler = dhat::Profiler::builder().testing().build();
    entries.push(Entry::new("memory/idle-connection", memory::idle_connection(), "bytes").limit("target", 4096.0));
    entries.push(Entry::new("memory/W2/flow", memory::busy_flow(), "bytes"));
    drop(profiler);
    report::print(&entries);
    std::fs::write(&arguments.out, serde_json::to_string_pretty(&entries)?)?;
    eprintln!("written to {}", arguments.out.display());
    Ok(())
}

fn set_up(repetitions: usize) -> Vec<Entry> {
    let mut entries = setup::seconds(repetitions);
    entries.extend(setup::rates(repetitions));
    let profiler = dhat::Profiler::builder().testing().build();
    entries.push(Entry::new("set-up/10000/memory", setup::bytes(10_000), "bytes").limit("target", 10_737.0));
    drop(profiler);
    entries
}

fn speed(world: &Dumbbell, repetitions: usize, with_peers: bool) -> Vec<Entry> {
    let mut runs: Vec<_> = (0..repetitions.max(1)).map(|_| world.run(world.seconds, &[]).0).collect();
    runs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    let took = runs[runs.len() / 2];
    let name = |what: &str| format!("speed/{}/{what}", world.name);
    let mut packets = Entry::new(name("packets-per-second"), took.packets as f64 / took.cpu_s, "packet/s");
    if with_peers {
        for (peer, rate) in [("ns-2", peers::ns2(world)), ("ns-3", peers::ns3(world))] {
            if let Some(rate) = rate {
                packets = packets.peer(peer, rate);
            }
        }
    }
    let per_hop = took.cpu_s * 1e9 / (took.packets as f64 * 6.0);
    vec![
        packets,
        Entry::new(name("time-per-packet-and-hop"), per_hop, "ns").limit("target", 100.0),
        Entry::new(name("events-per-second"), took.events as f64 / took.cpu_s, "event/s"),
    ]
}

fn speed_of_chain(world: &Chain, repetitions: usize, with_peers: bool) -> Vec<Entry> {
    let mut runs: Vec<_> = (0..repetitions.max(1)).map(|_| world.run(0, world.seconds).0).collect();
    runs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    let took = runs[runs.len() / 2];
    let name = |what: &str| format!("speed/{}/{what}", world.name);
    let mut pace = Entry::new(name("simulated-seconds-per-second"), world.seconds as f64 / took.cpu_s, "s/s");
    let mut packets = Entry::new(name("packets-per-second"), took.packets as f64 / took.cpu_s, "packet/s");
    if let Some(ns3) =
        with_peers.then(|| peers::ns3_chain(world, Ns3Radio { threshold: false, sense: false }, world.seconds, 0)).flatten()
    {
        pace = pace.peer("ns-3", world.seconds as f64 / ns3.cpu_s);
        packets = packets.peer("ns-3", ns3.packets / ns3.cpu_s);
    }
    vec![pace, packets, Entry::new(name("events-per-second"), took.events as f64 / took.cpu_s, "event/s")]
}
