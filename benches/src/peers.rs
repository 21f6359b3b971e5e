//! The same worlds in ns-2, ns-3 and htsim, and instruction counts by callgrind: each only where the tool is installed.

use crate::chain::Chain;
use crate::clock;
use crate::htsim::Checkout;
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

/// Another simulator, ready to run dumbbells.
#[derive(Clone, Debug)]
pub enum Peer {
    Ns2,
    /// Our program for it.
    Ns3(PathBuf),
    /// Our program for it.
    Htsim(PathBuf),
}

/// What a simulator made of a dumbbell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ran {
    /// Packets that left the bottleneck in the direction of the data.
    pub packets: f64,
    /// Processor time in seconds: without the set-up, but for ns-2.
    pub cpu_s: f64,
    /// Simulated seconds.
    pub seconds: u64,
}

impl Peer {
    /// Those that are installed, and htsim where a checkout is named.
    pub fn all(htsim: Option<&Checkout>) -> Result<Vec<Self>, String> {
        let mut peers = Vec::new();
        if installed("ns") {
            peers.push(Self::Ns2);
        } else {
            eprintln!("without ns-2: it is the Debian package `ns2`");
        }
        peers.extend(build_ns3("ns3_dumbbell", &["point-to-point"], &[]).map(Self::Ns3));
        if let Some(checkout) = htsim {
            let program = std::env::temp_dir().join("whyloss-bench-htsim_dumbbell");
            checkout.compile(&here("htsim_dumbbell.cc"), &program)?;
            peers.push(Self::Htsim(program));
        } else {
            eprintln!("without htsim: name a checkout of it (docs/benchmarks.md)");
        }
        Ok(peers)
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Ns2 => "ns-2",
            Self::Ns3(_) => "ns-3",
            Self::Htsim(_) => "htsim",
        }
    }

    /// Whether it has what the world needs: htsim knows neither SACK nor damage.
    pub fn has(&self, world: &Dumbbell) -> bool {
        !matches!(self, Self::Htsim(_)) || (world.scheme == "newreno" && world.loss == 0.0)
    }

    /// Runs the world, or says why that failed.
    pub fn run(&self, world: &Dumbbell) -> Result<Ran, String> {
        let sack = world.scheme == "sack";
        let mut shape: Vec<_> =
            [u64::from(world.flows), world.mbps, world.bottleneck_ms, world.access_ms, u64::from(world.queue)]
                .iter()
                .map(ToString::to_string)
                .collect();
        let mut seconds = world.seconds;
        let mut command = match self {
            Self::Ns2 => {
                let mut ns = Command::new("ns");
                ns.arg(here("ns2_dumbbell.tcl")).arg(if sack { "sack1" } else { "newreno" });
                ns
            }
            Self::Ns3(program) => {
                seconds = (seconds / NS3_SHARE).max(1);
                let mut ns3 = Command::new(program);
                ns3.arg(if sack { "1" } else { "0" });
                ns3
            }
            Self::Htsim(program) => Command::new(program),
        };
        if !matches!(self, Self::Htsim(_)) {
            shape.push(world.loss.to_string());
        }
        command.args(shape).arg(seconds.to_string()).stdin(Stdio::null());
        let before = clock::children();
        let output = command.output().map_err(|why| why.to_string())?;
        let whole = clock::children() - before;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let (packets, cpu_s) = read(&text).ok_or_else(|| format!("it said: {text}"))?;
        Ok(Ran { packets, cpu_s: cpu_s.unwrap_or(whole), seconds })
    }
}

/// The number of packets, and the processor time where the program told it.
fn read(text: &str) -> Option<(f64, Option<f64>)> {
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>().ok());
    let packets = numbers.next()??;
    match numbers.next() {
        Some(cpu_s) => Some((packets, Some(cpu_s?))),
        None => Some((packets, None)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worlds::{W1, W2};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_a_program_prints_is_read() {
        assert_eq!(read("3600000\n"), Some((3_600_000.0, None)));
        assert_eq!(read("3600000 4.5 961.2\n"), Some((3_600_000.0, Some(4.5))));
        assert_eq!(read("3600000 soon"), None);
        assert_eq!(read("Setting flow size to 3"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn htsim_is_asked_only_for_what_it_has() {
        let htsim = Peer::Htsim(PathBuf::new());
        assert!(htsim.has(&W2));
        assert!(!htsim.has(&W1));
        assert!(Peer::Ns2.has(&W1));
    }

    #[test]
    fn a_world_is_told_to_a_program_and_its_answer_read() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(
            &program,
            "#!/bin/sh\n[ \"$*\" = '100 1000 3 1 1000 30' ] || { echo \"odd: $*\" >&2; exit 1; }\necho 12 0.5 9\n",
        )
        .unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let htsim = Peer::Htsim(program);
        assert_eq!(htsim.run(&W2), Ok(Ran { packets: 12.0, cpu_s: 0.5, seconds: 30 }));
        assert_eq!(htsim.run(&Dumbbell { flows: 3, ..W2 }), Err("odd: 3 1000 3 1 1000 30".to_owned()));
    }
}
