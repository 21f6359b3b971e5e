//! What `whyloss serve` and `whyloss fetch` do: a host, an application on it, and somebody who watches.

use crate::error::SetupError;
use crate::host::Host;
use crate::http::client::{Client, FetchError, FetchOutcome, Fetched, Target};
use crate::http::files::Files;
use crate::http::limits::Limits;
use crate::http::output::Output;
use crate::http::server::{Server, Transfer};
use crate::losses::Losses;
use crate::report::{counters, device};
use crate::setup::Setup;
use serde_json::{json, Value};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use whyloss_transport::stack::StackError;
use whyloss_transport::tcp::Stats;
use whyloss_transport::Duration;

/// How often whoever watches is asked whether to go on.
const TICK: Duration = Duration::from_millis(100);
/// What a client may send before it is answered, in octets: there are no uploads.
const RECEIVE_BUFFER: u64 = 64 << 10;
/// How long it may take to tell clients that the server goes away.
const FAREWELL: Duration = Duration::from_millis(50);
/// Redirections that are followed.
const MOST_REDIRECTIONS: u32 = 10;

/// Why nothing was served or fetched.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// There is no host.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The host cannot do what it shall.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// Nothing could be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The TUN device took or gave no more packets.
    #[error("TUN device `{name}`: {source}")]
    Device {
        /// Name of the device.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// Whoever watches wants no more of it.
    #[error("stopped")]
    Stopped,
}

/// What a server tells whoever watches.
#[derive(Clone, Debug)]
pub enum ServerNews {
    /// It listens; URLs at which something is offered.
    Listening(Vec<String>),
    /// A client is done.
    Finished(Box<Transfer>),
    /// No news: a chance to stop.
    Tick,
}

/// Offers the file or folder at `path` on `port` until `limit` clients were served or `watch` breaks. Gives a report.
pub fn serve(
    setup: &Setup,
    path: &Path,
    port: u16,
    limit: Option<u64>,
    mut watch: impl FnMut(ServerNews) -> ControlFlow<()>,
) -> Result<Value, DeliverError> {
    let files = Files::at(path).map_err(|source| DeliverError::File { path: path.to_owned(), source })?;
    let urls: Vec<_> = setup.addresses.iter().map(|address| url(*address, port, &files.example())).collect();
    let mut listener = setup.listener()?;
    listener.config.receive_buffer = listener.config.receive_buffer.min(RECEIVE_BUFFER);
    let mut host = setup.open_to_send()?;
    for address in &setup.addresses {
        host.stack().listen(SocketAddr::new(*address, port), listener.clone())?;
    }
    let mut server = Server::new(files, limit, Limits::default());
    let (mut losses, mut octets, mut retransmissions, mut answered, mut clients) = (Losses::default(), 0, 0, 0, 0u64);
    let start = host.now();
    let mut flow = watch(ServerNews::Listening(urls.clone()));
    loop {
        let (until, stopped) = match flow {
            ControlFlow::Continue(()) => (host.now() + TICK, false),
            ControlFlow::Break(()) => {
                let now = host.now();
                server.abort(now, host.stack());
                (now + FAREWELL, true)
            }
        };
        let done = run(setup, &mut host, &mut server, until)?;
        let now = host.now();
        server.sweep(now, host.stack());
        for transfer in server.take_finished() {
            losses.add(&transfer.losses);
            octets += transfer.octets;
            retransmissions += transfer.retransmissions;
            answered += transfer.requests.len();
            clients += 1;
            flow = both(flow, watch(ServerNews::Finished(Box::new(transfer))));
        }
        if done || stopped {
            break;
        }
        flow = both(flow, watch(ServerNews::Tick));
    }
    Ok(json!({
        "urls": urls,
        "profile": setup.profile,
        "scheme": setup.selection.scheme,
        "shadows": setup.selection.shadows,
        "seconds": host.now().since(start).as_secs_f64(),
        "clients": clients,
        "requests": answered,
        "octets": octets,
        "retransmissions": retransmissions,
        "losses": losses,
        "device": device(*host.stats()),
    }))
}

/// Fetches `url` to `output`, following redirections; without `output` to a file in the current folder with the URL's own name. `watch`
/// is told how much of the body is there. Gives a report.
pub fn fetch(
    setup: &Setup,
    url: &str,
    output: Option<&Path>,
    mut watch: impl FnMut(&FetchOutcome) -> ControlFlow<()>,
) -> Result<Value, DeliverError> {
    let mut url = url.to_owned();
    let path = output.map_or_else(|| own_name(&url), Path::to_owned);
    let mut target = Target::parse(&url, &setup.addresses)?;
    let config = setup.config()?;
    let mut host = setup.open()?;
    let failed = |source| DeliverError::File { path: path.clone(), source };
    let mut sink = Output::create(&path).map_err(failed)?;
    for _ in 0..=MOST_REDIRECTIONS {
        let now = host.now();
        let id = host.stack().connect(now, target.server, config.clone(), &setup.selection)?;
        let mut client = Client::new(id, target, sink);
        loop {
            let until = host.now() + TICK;
            if run(setup, &mut host, &mut client, until)? || client.is_over(host.now()) {
                break;
            }
            if watch(client.outcome()).is_break() {
                let now = host.now();
                host.stack().command(now, id, whyloss_transport::Command::Abort);
                run(setup, &mut host, &mut client, now + FAREWELL)?;
                return Err(DeliverError::Stopped);
            }
        }
        let (fetched, rest) = client.finish();
        sink = rest;
        host.stack().release(id);
        match fetched? {
            Fetched::Body(outcome) => {
                sink.keep().map_err(failed)?;
                return Ok(report(setup, &url, &path, &outcome, &host));
            }
            Fetched::Elsewhere(location) => {
                target = Target::parse(&location, &setup.addresses)?;
                url = location;
            }
        }
    }
    Err(FetchError::Connection("more redirections than are followed").into())
}

fn report(setup: &Setup, url: &str, path: &Path, outcome: &FetchOutcome, host: &Host) -> Value {
    let Stats { damaged_received, duplicates_received, reports_sent, .. } = outcome.stats;
    json!({
        "url": url,
        "file": path.display().to_string(),
        "local": outcome.tuple.map(|tuple| tuple.local.to_string()),
        "remote": outcome.tuple.map(|tuple| tuple.remote.to_string()),
        "profile": setup.profile,
        "scheme": setup.selection.scheme,
        "octets": outcome.octets,
        "seconds": outcome.seconds,
        "goodput_bps": outcome.octets as f64 * 8.0 / outcome.seconds.max(1e-9),
        "damaged_received": damaged_received,
        "duplicates_received": duplicates_received,
        "reports_sent": reports_sent,
        "losses": outcome.losses,
        "tcp": counters(&outcome.stats),
        "device": device(*host.stats()),
    })
}

fn run(
    setup: &Setup,
    host: &mut Host,
    application: &mut impl crate::host::Application,
    until: whyloss_transport::Instant,
) -> Result<bool, DeliverError> {
    host.run(application, until).map_err(|source| DeliverError::Device { name: setup.tun.clone(), source })
}

fn both(one: ControlFlow<()>, other: ControlFlow<()>) -> ControlFlow<()> {
    if one.is_break() {
        one
    } else {
        other
    }
}

fn url(address: IpAddr, port: u16, path: &str) -> String {
    let server = SocketAddr::new(address, port);
    match (address, port) {
        (IpAddr::V4(v4), 80) => format!("http://{v4}{path}"),
        (IpAddr::V6(v6), 80) => format!("http://[{v6}]{path}"),
        _ => format!("http://{server}{path}"),
    }
}

/// The last part of the path of `url`, as a file in the current folder.
fn own_name(url: &str) -> PathBuf {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest).split(['?', '#']).next().unwrap_or_default();
    let last = path.split_once('/').and_then(|(_, path)| path.rsplit('/').next()).unwrap_or_default();
    let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy().replace(['/', '\0'], "_");
    match name.as_str() {
        "" | "." | ".." | "-" => "index.html".into(),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_get_the_last_part_of_the_path() {
        for (url, name) in [
            ("http://a/b/c.bin?x=/y", "c.bin"),
            ("http://a/b/", "index.html"),
            ("http://a", "index.html"),
            ("http://a/%2e%2e", "index.html"),
            ("http://a/x%2Fy%20z", "x_y z"),
        ] {
            assert_eq!(own_name(url), Path::new(name), "{url}");
        }
    }

    #[test]
    fn urls_show_a_port_that_is_not_the_usual_one() {
        assert_eq!(url([198, 18, 1, 2].into(), 80, "/"), "http://198.18.1.2/");
        assert_eq!(url("fd00::2".parse().unwrap(), 8000, "/x"), "http://[fd00::2]:8000/x");
    }
}
