//! The same worlds in ns-2 and ns-3, and instruction counts by callgrind: each only where the tool is installed.

use crate::chain::Chain;
use crate::clock;
use crate::report::Entry;
use crate::worlds::Dumbbell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// ns-3 is two orders of magnitude slower: it runs a part of each world, long enough for its rate to be steady.
const NS3_SHARE: u64 = 10;

fn here(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(file)
}

fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn arguments(world: &Dumbbell, seconds: u64) -> Vec<String> {
    let numbers = [u64::from(world.flows), world.mbps, world.bottleneck_ms, world.access_ms, u64::from(world.queue)];
    let mut list: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    list.extend([world.loss.to_string(), seconds.to_string()]);
    list
}

fn run(mut command: Command) -> Option<(f64, f64)> {
    let before = clock::children();
    let output = command.stdin(Stdio::null()).output().ok()?;
    let cpu = clock::children() - before;
    if !output.status.success() {
        eprintln!("  failed: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace();
    let packets: f64 = words.next()?.parse().ok()?;
    Some((packets, words.next().and_then(|word| word.parse().ok()).unwrap_or(cpu)))
}

/// Packets per second at the bottleneck in ns-2.
pub fn ns2(world: &Dumbbell) -> Option<f64> {
    if !installed("ns") {
        eprintln!("  without ns-2: it is the Debian package `ns2`");
        return None;
    }
    let mut command = Command::new("ns");
    command.arg(here("ns2_dumbbell.tcl")).arg(if world.scheme == "sack" { "sack1" } else { "newreno" });
    command.args(arguments(world, world.seconds));
    let (packets, cpu) = run(command)?;
    Some(packets / cpu)
}

/// Packets per second at the bottleneck in ns-3.
pub fn ns3(world: &Dumbbell) -> Option<f64> {
    let program = build_ns3("ns3_dumbbell", &["point-to-point"], &[])?;
    let mut command = Command::new(program);
    command.arg(if world.scheme == "sack" { "1" } else { "0" });
    command.args(arguments(world, (world.seconds / NS3_SHARE).max(1)));
    let (packets, cpu) = run(command)?;
    Some(packets / cpu)
}

/// What ns-3 makes of a chain.
#[derive(Clone, Copy, Debug)]
pub struct Ns3Chain {
    pub packets: f64,
    pub cpu_s: f64,
    pub goodput_kbps: f64,
}

/// The radio of an ns-3 station.
#[derive(Clone, Copy, Debug)]
pub struct Ns3Radio {
    /// A frame survives where it is 10 dB above everything else, instead of by the error rates of its modulation.
    pub threshold: bool,
    /// It senses and suffers what it cannot decode.
    pub sense: bool,
}

/// Lets `seconds` of a chain pass in ns-3.
pub fn ns3_chain(chain: &Chain, radio: Ns3Radio, seconds: u64, run: u64) -> Option<Ns3Chain> {
    let defines: &[&str] = if radio.threshold { &["THRESHOLD"] } else { &[] };
    let mut command = Command::new(build_ns3("ns3_chain", &["mobility", "wifi"], defines)?);
    let numbers = [u64::from(chain.hops), u64::from(chain.rts), chain.window, run, seconds, u64::from(radio.sense)];
    command.args(numbers.iter().map(ToString::to_string));
    let output = command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(Ns3Chain { packets: next()?, cpu_s: next()?, goodput_kbps: next()? })
}

/// Compiles a program of this folder against ns-3, once.
fn build_ns3(name: &str, modules: &[&str], defines: &[&str]) -> Option<PathBuf> {
    let program = compile_ns3(name, modules, defines);
    if program.is_none() {
        eprintln!("  without ns-3: it is the Debian package `libns3-dev` (and a C++ compiler and pkg-config)");
    }
    program
}

fn compile_ns3(name: &str, modules: &[&str], defines: &[&str]) -> Option<PathBuf> {
    let program = std::env::temp_dir().join(format!("whyloss-bench-{name}{}", defines.concat()));
    let source = here(&format!("{name}.cc"));
    let newer = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
    if newer(&program) > newer(&source) {
        return Some(program);
    }
    let modules = ["applications", "core", "internet", "network", "traffic-control"].iter().chain(modules);
    let mut ask = Command::new("pkg-config");
    ask.args(["--cflags", "--libs"]).args(modules.map(|module| format!("ns3-{module}"))).stderr(Stdio::null());
    let flags = ask.output().ok().filter(|output| output.status.success())?;
    eprintln!("  compiling the ns-3 program once");
    let mut build = Command::new("c++");
    build.args(defines.iter().map(|define| format!("-D{define}")));
    build.args(["-O2", "-DNDEBUG", "-o"]).arg(&program).arg(&source);
    // The package also names development libraries by path that it does not depend on and that nothing here needs.
    build.args(String::from_utf8_lossy(&flags.stdout).split_whitespace().filter(|word| word.starts_with('-')));
    build.status().ok().filter(std::process::ExitStatus::success).map(|_| program)
}

/// Instructions per packet at the bottleneck, by callgrind.
pub fn instructions(world: &Dumbbell) -> Option<Entry> {
    // The difference of two lengths takes the set-up and the start-up phase out.
    let unit = (world.seconds / 30).max(1);
    let (short, long) = (count(world, unit, &[])?, count(world, 2 * unit, &[])?);
    let per_packet = (long.1 - short.1) / (long.0 - short.0);
    Some(Entry::new(format!("instructions/{}/packet", world.name), per_packet, "Ir"))
}

/// Packets at the bottleneck and instructions of a run with these differentiators in shadow.
pub fn count(world: &Dumbbell, seconds: u64, shadows: &[String]) -> Option<(f64, f64)> {
    if !installed("valgrind") {
        eprintln!("  without instruction counts: they need the Debian package `valgrind`");
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    command.args(["world", world.name, &seconds.to_string()]).args(shadows);
    let output = command.stdin(Stdio::null()).output().ok()?;
    let packets = String::from_utf8_lossy(&output.stdout).split_whitespace().next()?.parse().ok()?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    let collected = log.lines().find_map(|line| line.split("Collected :").nth(1))?.trim().parse().ok()?;
    Some((packets, collected))
}
