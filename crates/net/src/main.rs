//! `whyloss-peer`: the engine on a TUN device, for tests: bulk data both ways, and a proxy. Users have `whyloss-tun`.

use clap::{Args, Parser, Subcommand};
use serde_json::{json, Value};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use whyloss_net::exchange::{self, CloseOrder, Exchange, Synthetic};
use whyloss_net::proxy::{self, Proxy};
use whyloss_net::report::{closing_name, counters, device};
use whyloss_net::{Host, HostStats, Tun};
use whyloss_transport::scheme::Selection;
use whyloss_transport::stack::{Listener, Settings, StackError};
use whyloss_transport::tcp::{Closing, Config, PROFILES};
use whyloss_transport::{Duration, Instant};

/// A host in user space whose TCP is the whyloss engine. It lives behind a TUN device: give the device an address and a route to this
/// host's addresses with `ip`, and the two can talk. Prints a report as one JSON object.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// TUN device to attach to; created if it does not exist.
    #[arg(long)]
    tun: String,
    /// An address of this host, of either family; may be repeated.
    #[arg(long = "address", required = true)]
    addresses: Vec<IpAddr>,
    /// The largest packet that the link takes, in octets.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1280..))]
    mtu: u16,
    /// Give up after this many seconds.
    #[arg(long, default_value_t = 3600)]
    timeout: u64,
    #[command(flatten)]
    transport: Transport,
    #[command(subcommand)]
    command: Command,
}

/// How the engine's connections shall be.
#[derive(Debug, Args)]
struct Transport {
    /// Profile: what the connection can do.
    #[arg(long, default_value = "linux", global = true)]
    profile: String,
    /// Scheme: how the connection treats losses.
    #[arg(long, global = true)]
    scheme: Option<String>,
    /// Negotiate ECN.
    #[arg(long, global = true)]
    ecn: bool,
    /// Seconds in TIME-WAIT, during which stragglers are still answered.
    #[arg(long, default_value_t = 1, global = true)]
    time_wait: u64,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send and receive on one connection.
    Exchange {
        /// Open a connection to this address and port.
        #[arg(long, required_unless_present = "listen", conflicts_with = "listen")]
        connect: Option<SocketAddr>,
        /// Wait for a connection to this address and port; the address may be unspecified (`0.0.0.0:80`, `[::]:80`).
        #[arg(long)]
        listen: Option<SocketAddr>,
        /// Send this many octets of a made-up stream.
        #[arg(long, conflicts_with = "send")]
        send_octets: Option<u64>,
        /// Send this file.
        #[arg(long)]
        send: Option<PathBuf>,
        /// Write what arrives to this file; without it, it is only counted and hashed.
        #[arg(long)]
        receive: Option<PathBuf>,
        /// When to close the sending direction.
        #[arg(long, value_enum, default_value_t)]
        close: CloseOrder,
    },
    /// Accept connections and carry each on, over a second connection, to a target.
    Proxy {
        /// Where to accept.
        #[arg(long)]
        listen: SocketAddr,
        /// Where to connect to.
        #[arg(long)]
        connect: SocketAddr,
        /// End after this many connections.
        #[arg(long)]
        limit: Option<u64>,
    },
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("--profile: there is no profile `{found}`; there are {allowed}")]
    Profile { found: String, allowed: String },
    #[error(transparent)]
    Stack(#[from] StackError),
    #[error("TUN device `{name}`: {source}")]
    Tun { name: String, source: io::Error },
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("no random numbers: {0}")]
    Random(#[from] getrandom::Error),
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok((report, complete)) => {
            println!("{report:#}");
            ExitCode::from(u8::from(!complete))
        }
        Err(failure) => {
            eprintln!("whyloss-peer: {failure}");
            ExitCode::from(2)
        }
    }
}

/// Gives the report, and whether everything was done that was asked for.
fn run(cli: Cli) -> Result<(Value, bool), Failure> {
    let Transport { profile, scheme, ecn, time_wait } = cli.transport;
    let mut config = Config::profile(&profile).ok_or_else(|| Failure::Profile {
        found: profile,
        allowed: PROFILES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
    })?;
    config.ecn |= ecn;
    config.mtu_probing = true;
    config.time_wait = Duration::from_secs(time_wait);
    let selection = scheme.as_deref().map(Selection::scheme).unwrap_or_default();
    let mut key = [0; 16];
    getrandom::fill(&mut key)?;
    let tun = Tun::open_offloading(&cli.tun).map_err(|source| Failure::Tun { name: cli.tun, source })?;
    let mut host = Host::new(tun, Settings { addresses: cli.addresses, mtu: cli.mtu, key });
    let deadline = host.now() + Duration::from_secs(cli.timeout);
    let listener = || Listener { config: config.clone(), selection: selection.clone(), backlog: 128 };
    match cli.command {
        Command::Exchange { connect, listen, send_octets, send, receive, close } => {
            let open = |path: PathBuf| File::open(&path).map_err(|source| Failure::File { path, source });
            let create = |path: PathBuf| File::create(&path).map_err(|source| Failure::File { path, source });
            let source: Box<dyn Read> = match send {
                Some(path) => Box::new(open(path)?),
                None => Box::new(Synthetic::new(send_octets.unwrap_or(0))),
            };
            let sink: Box<dyn Write> = match receive {
                Some(path) => Box::new(create(path)?),
                None => Box::new(io::sink()),
            };
            let mut exchange = if let Some(remote) = connect {
                let now = host.now();
                Exchange::connecting(host.stack().connect(now, remote, config.clone(), &selection)?, source, sink, close)
            } else {
                let local = listen.expect("clap asks for one of the two");
                host.stack().listen(local, listener())?;
                Exchange::accepting(local, source, sink, close)
            };
            host.run(&mut exchange, deadline)?;
            let outcome = exchange.outcome()?;
            let complete = outcome.closing == Some(Closing::Normal);
            Ok((report_exchange(&outcome, *host.stats()), complete))
        }
        Command::Proxy { listen, connect, limit } => {
            host.stack().listen(listen, listener())?;
            let mut proxy = Proxy::new(connect, config.clone(), selection.clone(), limit);
            let complete = host.run(&mut proxy, deadline)?;
            Ok((report_proxy(proxy.outcome(), *host.stats()), complete))
        }
    }
}

fn report_exchange(outcome: &exchange::ExchangeOutcome, host: HostStats) -> Value {
    let seconds = outcome.span.map(|(start, end): (Instant, Instant)| end.since(start).as_secs_f64());
    json!({
        "local": outcome.tuple.map(|tuple| tuple.local.to_string()),
        "remote": outcome.tuple.map(|tuple| tuple.remote.to_string()),
        "closing": outcome.closing.map_or("unfinished", closing_name),
        "seconds": seconds,
        "sent": { "octets": outcome.sent.octets(), "sha256": outcome.sent.sha256() },
        "received": { "octets": outcome.received.octets(), "sha256": outcome.received.sha256() },
        "tcp": counters(&outcome.stats),
        "device": device(host),
    })
}

fn report_proxy(outcome: &proxy::ProxyOutcome, host: HostStats) -> Value {
    json!({
        "accepted": outcome.accepted,
        "finished": outcome.finished,
        "broken": outcome.broken,
        "forward_octets": outcome.forward,
        "backward_octets": outcome.backward,
        "retransmissions": outcome.retransmissions,
        "damaged_received": outcome.damaged_received,
        "device": device(host),
    })
}
