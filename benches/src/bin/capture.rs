//! Measures the reading of captures: packets a second on one core, beside tcptrace and tshark where they are installed, and instructions.
//!
//! The captures are made for it (`write` prints one): bulk senders with SACK and losses, headers only.
#![forbid(unsafe_code)]

#[path = "../clock.rs"]
mod clock;
#[path = "../report.rs"]
mod report;

use clap::{Args, Parser, Subcommand, ValueEnum};
use nix::sys::resource::{getrusage, UsageWho};
use report::Entry;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use whyloss_capture::connections::{Connection, Connections, Observer};
use whyloss_capture::{analysis, records, segments, source, stream};
use whyloss_testkit::traffic::{Format, Settings, Traffic};

/// Rows of each table that are kept.
const ROWS: usize = 1 << 20;
/// The speed that is wanted.
const TARGET: f64 = 2e6;
/// tshark is two orders of magnitude slower: it reads the beginning only.
const TSHARK_SHARE: u64 = 20;

/// Speed of reading captures.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// Where the results go as JSON.
    #[arg(long, default_value = "bench-capture.json")]
    out: PathBuf,
    /// How often each is measured; the median counts.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// Packets of each capture.
    #[arg(long, default_value_t = 4_000_000)]
    packets: u64,
    /// Leave other programs out.
    #[arg(long)]
    alone: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Writes a capture to the standard output.
    Write(Made),
    /// Reads a capture once and prints packets and processor seconds. Instruction counters run this.
    Read {
        /// The file.
        file: PathBuf,
        /// How far it is read.
        #[arg(value_enum, default_value_t = Depth::Verdicts)]
        depth: Depth,
        /// Rows of each table that are kept.
        #[arg(long, default_value_t = ROWS)]
        rows: usize,
        /// Print the largest resident set, in kB, at the end.
        #[arg(long)]
        peak: bool,
    },
}

#[derive(Args, Clone, Copy, Debug)]
struct Made {
    /// Packets in all.
    packets: u64,
    /// Connections at once.
    #[arg(default_value_t = 1)]
    connections: u32,
    /// Probability that a segment is lost.
    #[arg(long, default_value_t = 0.005)]
    loss: f64,
    /// Segments that each connection has under way.
    #[arg(long, default_value_t = 32)]
    window: usize,
    /// About three times as many packets has a connection; 0: it does not end.
    #[arg(long, default_value_t = 0)]
    life: u32,
    /// Octets that are captured of a packet.
    #[arg(long, default_value_t = 96)]
    snap: usize,
    /// pcapng in place of pcap.
    #[arg(long)]
    pcapng: bool,
    /// Linux cooked capture in place of Ethernet.
    #[arg(long, conflicts_with = "pcapng")]
    cooked: bool,
}

impl Made {
    fn settings(self) -> Settings {
        let format = match (self.pcapng, self.cooked) {
            (true, _) => Format::Pcapng,
            (_, true) => Format::Cooked,
            _ => Format::Pcap,
        };
        Settings {
            packets: self.packets,
            connections: self.connections,
            window: self.window,
            loss: self.loss,
            life: Some(self.life).filter(|life| *life > 0),
            snap: self.snap,
            format,
            ..Settings::default()
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Depth {
    /// Records are cut.
    Records,
    /// And their headers read.
    Headers,
    /// And they are brought into the order of time, connections are followed, each segment is taken for what it is.
    Verdicts,
    /// And what was around each loss is written down and judged.
    Causes,
    /// The same on all cores.
    Cores,
}

#[derive(Default)]
struct Count {
    retransmissions: u64,
}

impl Observer for Count {
    fn on_end(&mut self, connection: Connection) {
        self.retransmissions += connection.halves.iter().map(|half| half.counts.retransmissions).sum::<u64>();
    }
}

/// Packets, retransmissions and seconds: of the processor, or of the clock where all cores work.
fn read(file: &Path, depth: Depth, rows: usize) -> (u64, u64, f64) {
    let (before, began) = (clock::own(), Instant::now());
    if matches!(depth, Depth::Causes | Depth::Cores) {
        let mut settings = analysis::Settings { rows, ..analysis::Settings::default() };
        if depth == Depth::Causes {
            settings.workers = 1;
        }
        let source = source::Source::open(file).unwrap_or_else(|error| panic!("{error}"));
        let analysis = analysis::analyse(vec![source], &settings, &mut |_| ControlFlow::Continue(()));
        let analysis = analysis.unwrap_or_else(|error| panic!("{error}"));
        let took = if depth == Depth::Cores { began.elapsed().as_secs_f64() } else { clock::own() - before };
        let retransmissions = analysis.flows.iter().map(|flow| flow.counts.retransmissions).sum();
        return (analysis.facts.packets, retransmissions, took);
    }
    let source = source::Source::open(file).unwrap_or_else(|error| panic!("{error}"));
    if depth == Depth::Verdicts {
        let mut connections = Connections::default();
        let mut count = Count::default();
        let stream = stream::read(vec![source], &mut |_, _| {}, &mut |_| ControlFlow::Continue(()), &mut |segment| {
            connections.on_segment(segment, &mut count);
        });
        connections.finish(&mut count);
        let packets = stream.unwrap_or_else(|error| panic!("{error}")).files.iter().map(|(_, about)| about.packets).sum();
        return (packets, count.retransmissions, clock::own() - before);
    }
    let mut segments = segments::Segments::default();
    let about = records::read(source, &mut |record| {
        if depth == Depth::Headers {
            std::hint::black_box(&segments.read(record));
        }
        ControlFlow::Continue(())
    });
    let about = about.unwrap_or_else(|error| panic!("{error}"));
    (about.packets, 0, clock::own() - before)
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    match arguments.what {
        Some(What::Write(made)) => write(made.settings(), &mut io::stdout().lock()),
        Some(What::Read { file, depth, rows, peak }) => {
            let (packets, retransmissions, cpu) = read(&file, depth, rows);
            print!("{packets} {retransmissions} {cpu:.6} {:.0}", packets as f64 / cpu);
            if peak {
                let usage = getrusage(UsageWho::RUSAGE_SELF).expect("the system knows its own processes");
                print!(" {}", usage.max_rss());
            }
            println!();
            Ok(())
        }
        None => {
            let entries = measure(&arguments)?;
            report::print(&entries);
            std::fs::write(&arguments.out, serde_json::to_string_pretty(&entries)?)?;
            eprintln!("written to {}", arguments.out.display());
            Ok(())
        }
    }
}

fn write(settings: Settings, to: &mut dyn Write) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 20, to);
    io::copy(&mut Traffic::new(settings), &mut to)?;
    to.flush()
}

/// A capture in a file that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, settings: Settings) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("whyloss-bench-{}-{name}.pcap", std::process::id()));
        write(settings, &mut File::create(&path)?)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

fn measure(arguments: &Arguments) -> io::Result<Vec<Entry>> {
    let plain = |connections| Settings { packets: arguments.packets, connections, ..Settings::default() };
    let mut entries = Vec::new();
    for (name, settings) in [
        ("1-connection", plain(1)),
        ("100-connections", plain(100)),
        ("3000-connections", plain(3_000)),
        ("10000-connections", plain(10_000)),
        ("100-connections-pcapng", Settings { format: Format::Pcapng, ..plain(100) }),
        ("100-connections-cooked", Settings { format: Format::Cooked, ..plain(100) }),
    ] {
        eprintln!("{name}");
        let file = Scratch::new(name, settings)?;
        let rate = |depth| {
            let mut rates: Vec<_> = (0..arguments.repetitions.max(1))
                .map(|_| {
                    let (packets, _, cpu) = read(&file.0, depth, ROWS);
                    packets as f64 / cpu
                })
                .collect();
            rates.sort_by(f64::total_cmp);
            rates[rates.len() / 2]
        };
        let entry = |depth: &str, value| Entry::new(format!("capture/{name}/{depth}"), value, "packet/s");
        let mut verdicts = entry("verdicts", rate(Depth::Verdicts)).limit("target", TARGET);
        if !arguments.alone {
            if let Some(peer) = peer("tcptrace", &["-n"], &file.0, settings.packets) {
                verdicts = verdicts.peer("tcptrace", peer);
            }
            let some = Settings { packets: settings.packets / TSHARK_SHARE, ..settings };
            let part = Scratch::new("part", some)?;
            if let Some(peer) = peer("tshark", &["-n", "-q", "-z", "conv,tcp", "-r"], &part.0, some.packets) {
                verdicts = verdicts.peer("tshark", peer);
            }
        }
        entries.push(verdicts);
        for (what, depth) in [
            ("records", Depth::Records),
            ("headers", Depth::Headers),
            ("causes", Depth::Causes),
            ("causes-all-cores", Depth::Cores),
        ] {
            entries.push(entry(what, rate(depth)));
        }
        if let Some(instructions) = instructions(settings)? {
            entries.push(Entry::new(format!("capture/{name}/instructions"), instructions, "Ir/packet"));
        }
    }
    Ok(entries)
}

/// Packets that another program reads a second.
fn peer(program: &str, arguments: &[&str], file: &Path, packets: u64) -> Option<f64> {
    let before = clock::children();
    let ran =
        Command::new(program).args(arguments).arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match ran {
        Ok(status) if status.success() => Some(packets as f64 / (clock::children() - before)),
        Ok(status) => {
            eprintln!("  {program} failed: {status}");
            None
        }
        Err(_) => {
            eprintln!("  without {program}: it is the Debian package `{program}`");
            None
        }
    }
}

/// Instructions a packet, by callgrind: those of the second half of a short capture.
fn instructions(settings: Settings) -> io::Result<Option<f64>> {
    const PACKETS: u64 = 200_000;
    let mut counted = [0.0; 2];
    for (slot, packets) in counted.iter_mut().zip([PACKETS, 2 * PACKETS]) {
        let file = Scratch::new("count", Settings { packets, ..settings })?;
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe()?);
        let Ok(output) = command.arg("read").arg(&file.0).stdin(Stdio::null()).output() else {
            eprintln!("  without instruction counts: they need the Debian package `valgrind`");
            return Ok(None);
        };
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        let collected = log.lines().find_map(|line| line.split("Collected :").nth(1)).and_then(|text| text.trim().parse().ok());
        let Some(collected) = collected else { return Ok(None) };
        *slot = collected;
    }
    Ok(Some((counted[1] - counted[0]) / PACKETS as f64))
}
