//! Measures speed and memory, and prints them beside those of ns-2 and ns-3 where they are installed, and of htsim where a checkout is named.
//!
//! `make bench` runs it. Speed is told as ratios within one run, or as instruction counts: both mean something on another machine.
#![forbid(unsafe_code)]

mod chain;
mod clock;
mod differentiators;
mod emulator;
mod htsim;
mod memory;
mod peers;
mod report;
mod setup;
mod worlds;

use chain::Chain;
use clap::{Parser, Subcommand};
use htsim::Checkout;
use peers::{Ns3Radio, Peer, Ran};
use report::Entry;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use worlds::{Dumbbell, Took, W1, W2};

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
    /// Leave the other simulators out.
    #[arg(long)]
    alone: bool,
    /// A checkout of <https://github.com/Broadcom/csg-htsim>, which joins in W2.
    #[arg(long, value_name = "FOLDER", conflicts_with = "alone")]
    htsim: Option<Checkout>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Runs one world once and prints packets, events and processor seconds. Instruction counters run this.
    World {
        /// Which one.
        #[arg(value_parser = ["w1", "w2", "w3", "long"], ignore_case = true)]
        name: String,
        /// Seconds of the world.
        seconds: u64,
        /// Differentiators in shadow.
        shadows: Vec<String>,
    },
    /// Measures W1, W2 and W3 beside the other simulators only.
    Speed,
    /// Runs other worlds than those that are measured: what a build by a profile learns from.
    Train,
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

fn main() -> ExitCode {
    if let Err(why) = measure(&Arguments::parse()) {
        eprintln!("error: {why}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn measure(arguments: &Arguments) -> std::io::Result<()> {
    match &arguments.what {
        Some(What::World { name, seconds, .. }) if name.eq_ignore_ascii_case("w3") => {
            let took = Chain::w3().run(0, *seconds).0;
            println!("{} {} {:.6}", took.packets, took.events, took.cpu_s);
            return Ok(());
        }
        Some(What::World { name, seconds, shadows }) => {
            let world = match name.to_ascii_lowercase().as_str() {
                "w1" => W1,
                "long" => worlds::long(1000),
                _ => W2,
            };
            let (took, _) = world.run(*seconds, shadows);
            println!("{} {} {:.6}", took.packets, took.events, took.cpu_s);
            return Ok(());
        }
        Some(What::Chain { runs }) => {
            chain::table((*runs).max(1));
            return Ok(());
        }
        Some(What::Train) => {
            worlds::train();
            Chain { hops: 3, seconds: 50, ..Chain::w3() }.run(0, 50);
            return Ok(());
        }
        Some(What::Speed) => {
            let entries = speed_of_all(arguments)?;
            report::print(&entries);
            return write(&entries, &arguments.out);
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
            report::print(&emulator::measure(*seconds, arguments.repetitions));
            return Ok(());
        }
        None => {}
    }
    let mut entries = speed_of_all(arguments)?;
    for world in [W1, W2] {
        entries.extend(peers::instructions(&world));
    }
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
    write(&entries, &arguments.out)
}

fn write(entries: &[Entry], out: &Path) -> std::io::Result<()> {
    std::fs::write(out, serde_json::to_string_pretty(entries)?)?;
    eprintln!("written to {}", out.display());
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

fn speed_of_all(arguments: &Arguments) -> std::io::Result<Vec<Entry>> {
    let peers = if arguments.alone { Vec::new() } else { Peer::all(arguments.htsim.as_ref()).map_err(std::io::Error::other)? };
    let mut entries = Vec::new();
    for world in [W1, W2] {
        eprintln!("{}: {}", world.name, world.what);
        entries.extend(speed(&world, arguments.repetitions, &peers));
    }
    eprintln!("{}: {}", worlds::long(1000).name, worlds::long(1000).what);
    entries.push(large_window(arguments.repetitions));
    let w3 = Chain::w3();
    eprintln!("{}: {}", w3.name, w3.what);
    entries.extend(speed_of_chain(&w3, arguments.repetitions, !arguments.alone));
    Ok(entries)
}

/// All simulators in turns, so that what else the machine does disturbs each alike.
fn speed(world: &Dumbbell, repetitions: usize, peers: &[Peer]) -> Vec<Entry> {
    let mut ours = Vec::new();
    let mut theirs: Vec<_> = peers.iter().filter(|peer| peer.has(world)).map(|peer| (peer, Vec::new())).collect();
    for round in 0..repetitions.max(1) {
        let (took, _) = world.run(world.seconds, &[]);
        ours.push(took);
        theirs.retain_mut(|(peer, rates)| match peer.run(world) {
            Ok(ran) => {
                if round == 0 {
                    compare(peer, &ran, took.packets as f64 / world.seconds as f64);
                }
                rates.push(ran.packets / ran.cpu_s);
                true
            }
            Err(why) => {
                eprintln!("  {} failed: {why}", peer.name());
                false
            }
        });
    }
    let took = median(ours);
    let name = |what: &str| format!("speed/{}/{what}", world.name);
    let mut packets = Entry::new(name("packets-per-second"), took.packets as f64 / took.cpu_s, "packet/s");
    for (peer, mut rates) in theirs {
        rates.sort_by(f64::total_cmp);
        packets = packets.peer(peer.name(), rates[rates.len() / 2]);
    }
    let per_hop = took.cpu_s * 1e9 / (took.packets as f64 * 6.0);
    vec![
        packets,
        Entry::new(name("time-per-packet-and-hop"), per_hop, "ns").limit("target", 100.0),
        Entry::new(name("events-per-second"), took.events as f64 / took.cpu_s, "event/s"),
    ]
}

/// The run of median processor time, of one at least.
fn median(mut runs: Vec<Took>) -> Took {
    runs.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
    runs[runs.len() / 2]
}

/// Says what a peer carried, of what we did: rates can be compared only where the work is the same.
fn compare(peer: &Peer, ran: &Ran, ours: f64) {
    let theirs = ran.packets / ran.seconds as f64;
    eprintln!("  {} carries {:.1} % of our packets in a simulated second", peer.name(), 100.0 * theirs / ours);
}

/// What a packet takes with losses in a window of tens of thousands, beside one of thousands: recovery costs what is new, whatever the window.
fn large_window(repetitions: usize) -> Entry {
    let [large, small] = [1000, 100].map(|mbps| {
        let world = worlds::long(mbps);
        let took = median((0..repetitions.max(1)).map(|_| world.run(world.seconds, &[]).0).collect());
        took.cpu_s * 1e9 / took.packets as f64
    });
    Entry::new("speed/long/time-per-packet-at-1000-Mbps", large, "ns").peer("100 Mbps", small).limit("target", 3.0 * small)
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
