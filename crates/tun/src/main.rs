//! `whyloss-tun`: the engine as a host behind a TUN device, from the shell.
#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("whyloss-tun needs Linux, for its TUN devices");

use clap::{Parser, Subcommand};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use whyloss_net::deliver::{self, DeliverError, ServerNews};
use whyloss_net::http::client::FetchError;
use whyloss_net::{Setup, SetupError};
use whyloss_transport::scheme::{Selection, SCHEMES};

const FAILED: u8 = 1;
const UNUSABLE: u8 = 2;
const INTERRUPTED: u8 = 130;

/// A host in user space whose TCP can tell corruption from congestion. It lives behind a TUN device, and the kernel on the other side sees
/// an ordinary peer. The report is one JSON object on standard output.
#[derive(Debug, Parser)]
#[command(version, after_help = "Exit status: 0 done, 1 failed, 2 bad input or a machine that cannot do it, 130 interrupted.")]
struct Cli {
    /// TUN device. If it does not exist it is made, given addresses, and gone at the end.
    #[arg(long, default_value = "whyloss-tun", global = true)]
    tun: String,
    /// Address of the host, of either family; can be given several times.
    #[arg(long = "address", default_value = "198.18.1.2", global = true)]
    addresses: Vec<IpAddr>,
    /// The kernel's address on a device that is made, one of each family at most. By default the neighbour of the host's address.
    #[arg(long = "kernel-address", global = true)]
    kernel: Vec<IpAddr>,
    /// Octets a packet.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..), global = true)]
    mtu: u16,
    /// Which TCP it is.
    #[arg(long, default_value = "modern", global = true)]
    profile: String,
    /// How it treats losses; `whyloss-tun schemes` lists what there is. By default `NewReno`.
    #[arg(long, global = true)]
    scheme: Option<String>,
    /// A differentiator that judges the losses, too, and changes nothing; can be given several times.
    #[arg(long = "shadow", global = true)]
    shadows: Vec<String>,
    /// Negotiate ECN.
    #[arg(long, global = true)]
    ecn: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Offer a file, or the files of a folder, over HTTP until Ctrl-C.
    Serve {
        /// A file, or a folder.
        path: PathBuf,
        /// Port to listen on.
        #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,
        /// End after so many clients.
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        clients: Option<u64>,
    },
    /// Fetch a file over HTTP.
    Fetch {
        /// What to fetch.
        url: String,
        /// File to write. By default the URL's last part, in the current folder.
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// List the schemes.
    Schemes,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        if let Err(error) = signal_hook::flag::register(signal, Arc::clone(&stopped)) {
            eprintln!("whyloss-tun: signal {signal}: {error}");
            return FAILED.into();
        }
    }
    match run(cli, &stopped) {
        Ok(report) => {
            println!("{report:#}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("whyloss-tun: {error}");
            status(&error).into()
        }
    }
}

fn run(cli: Cli, stopped: &AtomicBool) -> Result<Value, DeliverError> {
    let go_on = || if stopped.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let selection = Selection { scheme: cli.scheme, shadows: cli.shadows, ..Selection::default() };
    let setup = Setup {
        tun: cli.tun,
        addresses: cli.addresses,
        kernel: cli.kernel,
        mtu: cli.mtu,
        profile: cli.profile,
        selection,
        ecn: cli.ecn,
        ..Setup::default()
    };
    match cli.command {
        Command::Serve { path, port, clients } => deliver::serve(&setup, &path, port, clients, |news| {
            match news {
                ServerNews::Listening(urls) => eprintln!("listening: {}   (Ctrl-C ends it)", urls.join("  ")),
                ServerNews::Finished(transfer) => {
                    let (losses, octets) = (&transfer.losses, transfer.octets);
                    let causes: Vec<_> = losses.verdicts.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
                    let causes = if causes.is_empty() { String::new() } else { format!(" ({})", causes.join(", ")) };
                    let rate = octets as f64 * 8e-6 / transfer.seconds.max(1e-9);
                    eprintln!(
                        "{}: {octets} octets, {rate:.1} Mbit/s, {} losses{causes}, {} timeouts",
                        transfer.client, losses.segments, losses.timeouts
                    );
                }
                ServerNews::Tick => {}
            }
            go_on()
        }),
        Command::Fetch { url, output } => deliver::fetch(&setup, &url, output.as_deref(), |_| go_on()),
        Command::Schemes => Ok(SCHEMES.iter().map(|scheme| (scheme.name, scheme.summary)).collect()),
    }
}

/// The exit status that says what kind of failure it is.
const fn status(error: &DeliverError) -> u8 {
    match error {
        DeliverError::Setup(SetupError::Choice(_) | SetupError::Unavailable(_))
        | DeliverError::Stack(_)
        | DeliverError::Fetch(FetchError::Url { .. }) => UNUSABLE,
        DeliverError::Stopped => INTERRUPTED,
        _ => FAILED,
    }
}
