//! A client that fetches one file.

use super::body::{Chunk, Framing};
use super::{AGENT, MAX_FIELDS, MAX_HEAD};
use crate::host::Application;
use crate::losses::Losses;
use bytes::BytesMut;
use http::Uri;
use serde::Serialize;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use whyloss_transport::stack::{ConnectionId, FourTuple, Notice, Stack};
use whyloss_transport::tcp::{Closing, Command, Event, Stats};
use whyloss_transport::{Duration, Instant, Payload};

/// Received data is taken in pieces of up to this many octets.
const PIECE: usize = 1 << 16;
/// How long the connection may take to close once the body is complete.
const FAREWELL: Duration = Duration::from_secs(1);

/// What there is to fetch, and from whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Address and port of the server.
    pub server: SocketAddr,
    /// For the `Host` field.
    host: String,
    /// Path and query, as they go into the request.
    path: String,
}

/// Why nothing is fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The URL cannot be used.
    #[error("`{url}`: {reason}")]
    Url {
        /// The URL that was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The connection ended early.
    #[error("{0}")]
    Connection(&'static str),
    /// The server does not give the file.
    #[error("the server answers with status {status} {reason}")]
    Status {
        /// Status code of the response.
        status: u16,
        /// The words beside it.
        reason: String,
    },
    /// The server does not speak HTTP as it should.
    #[error("what the server says is not HTTP/1.1: {0}")]
    Response(String),
    /// The body ended early.
    #[error("the connection ended after {got} octets of the body{}", .of.map(|of| format!(" of {of}")).unwrap_or_default())]
    Cut {
        /// Octets of the body that arrived.
        got: u64,
        /// Octets that were announced.
        of: Option<u64>,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Target {
    /// What `url` names, reachable from a host with `addresses`. Names are looked up by the system.
    pub fn parse(url: &str, addresses: &[IpAddr]) -> Result<Self, FetchError> {
        let bad = |reason: &str| FetchError::Url { url: url.to_owned(), reason: reason.to_owned() };
        if !url.contains("://") {
            return Err(bad("a URL begins with http://"));
        }
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(bad("there is no TLS here; only http:// can be fetched")),
            _ => return Err(bad("a URL begins with http://")),
        }
        let authority =
            uri.authority().filter(|authority| !authority.host().is_empty()).ok_or_else(|| bad("it names no host"))?;
        let name = authority.host().trim_start_matches('[').trim_end_matches(']');
        let found = (name, uri.port_u16().unwrap_or(80)).to_socket_addrs().map_err(|error| bad(&error.to_string()))?;
        let mut servers = found.filter(|server| addresses.iter().any(|own| own.is_ipv4() == server.is_ipv4()));
        let server = servers.next().ok_or_else(|| bad("the host has no address of a family that we have one of"))?;
        let host = authority.as_str().rsplit('@').next().unwrap_or_default().to_owned();
        let path = uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
        Ok(Self { server, host, path })
    }

    /// The URL that `location` of a response from here leads to.
    fn resolve(&self, location: &str) -> String {
        if location.starts_with('/') {
            return format!("http://{}{location}", self.host);
        }
        if location.contains("://") {
            return location.to_owned();
        }
        let folder = self.path.split('?').next().and_then(|path| path.rsplit_once('/')).map_or("", |(folder, _)| folder);
        format!("http://{}{folder}/{location}", self.host)
    }
}

/// Fetches one file over one connection.
pub struct Client<W> {
    id: ConnectionId,
    target: Target,
    sink: W,
    head: Option<Head>,
    held: BytesMut,
    framing: Framing,
    outcome: FetchOutcome,
    error: Option<FetchError>,
    /// The body is there; when it was.
    complete: Option<Instant>,
    over: bool,
}

#[derive(Debug)]
struct Head {
    status: u16,
    reason: String,
    location: Option<String>,
}

/// How a fetch went.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FetchOutcome {
    /// Octets of the body.
    pub octets: u64,
    /// Octets of the body that were announced.
    pub announced: Option<u64>,
    /// From the request to the last octet of the body.
    pub seconds: f64,
    /// What our own segments lost.
    pub losses: Losses,
    /// Addresses and ports of both ends.
    #[serde(skip)]
    pub tuple: Option<FourTuple>,
    /// Counters of the connection.
    #[serde(skip)]
    pub stats: Stats,
    #[serde(skip)]
    began: Option<Instant>,
}

/// What a fetch led to.
#[derive(Clone, Debug)]
pub enum Fetched {
    /// The body is in the sink.
    Body(Box<FetchOutcome>),
    /// The server redirects to this URL.
    Elsewhere(String),
}

impl<W: Write> Client<W> {
    /// Fetches `target` over the connection `id`, which has just been opened, into `sink`.
    pub fn new(id: ConnectionId, target: Target, sink: W) -> Self {
        Self {
            id,
            target,
            sink,
            head: None,
            held: BytesMut::new(),
            framing: Framing::Done,
            outcome: FetchOutcome::default(),
            error: None,
            complete: None,
            over: false,
        }
    }

    /// How far it is.
    pub fn outcome(&self) -> &FetchOutcome {
        &self.outcome
    }

    /// What it led to, and the sink.
    pub fn finish(mut self) -> (Result<Fetched, FetchError>, W) {
        let flushed = self.sink.flush();
        if let Some(error) = self.error {
            return (Err(error), self.sink);
        }
        let result = match (self.complete, self.head) {
            (Some(_), Some(Head { status, location: Some(location), .. })) if is_redirect(status) => {
                Ok(Fetched::Elsewhere(self.target.resolve(&location)))
            }
            (Some(_), Some(Head { status: 200..=299, .. })) => {
                flushed.map(|()| Fetched::Body(Box::new(self.outcome))).map_err(FetchError::Io)
            }
            (_, Some(Head { status, reason, .. })) => Err(FetchError::Status { status, reason }),
            (_, None) => Err(FetchError::Connection("the server did not answer in time")),
        };
        (result, self.sink)
    }

    fn fail(&mut self, now: Instant, stack: &mut Stack, error: FetchError) {
        self.error.get_or_insert(error);
        stack.command(now, self.id, Command::Abort);
    }

    fn ask(&mut self, now: Instant, stack: &mut Stack) {
        let Target { host, path, .. } = &self.target;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\nAccept: */*\r\nConnection: close\r\n\r\n");
        stack.command(now, self.id, Command::Send(Payload::Bytes(request.into())));
        self.outcome.tuple = stack.tuple(self.id);
        self.outcome.began = Some(now);
    }

    fn receive(&mut self, now: Instant, stack: &mut Stack) -> Result<(), FetchError> {
        while let Some(data) = stack.read(now, self.id, PIECE) {
            if self.complete.is_some() {
                continue; // a server that says more than it announced
            }
            let data = data.to_bytes();
            if self.held.is_empty() && self.head.is_some() {
                let used = self.take_body(&data)?;
                self.held.extend_from_slice(&data[used..]);
            } else {
                self.held.extend_from_slice(&data);
                self.take_held()?;
            }
            self.consider_end(now, stack);
        }
        Ok(())
    }

    fn take_held(&mut self) -> Result<(), FetchError> {
        while self.head.is_none() {
            let Some((head, length)) = self.parse_head()? else { return Ok(()) };
            let _ = self.held.split_to(length);
            // RFC 9110, 15.2: interim responses come before the one that counts.
            self.head = (head.status >= 200).then_some(head);
        }
        let held = std::mem::take(&mut self.held);
        let used = self.take_body(&held)?;
        self.held.extend_from_slice(&held[used..]);
        Ok(())
    }

    fn take_body(&mut self, octets: &[u8]) -> io::Result<usize> {
        let wanted = self.head.as_ref().is_some_and(|head| (200..300).contains(&head.status));
        let (sink, outcome) = (&mut self.sink, &mut self.outcome);
        self.framing.take(octets, |body| {
            outcome.octets += body.len() as u64;
            if wanted {
                sink.write_all(body)
            } else {
                Ok(())
            }
        })
    }

    /// The head of a response and its length, if it is there as a whole. Sets how the body is framed.
    fn parse_head(&mut self) -> Result<Option<(Head, usize)>, FetchError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let length = match response.parse(&self.held) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if self.held.len() <= MAX_HEAD => return Ok(None),
            Ok(httparse::Status::Partial) => return Err(FetchError::Response(format!("a head of more than {MAX_HEAD} octets"))),
            Err(error) => return Err(FetchError::Response(error.to_string())),
        };
        let status = response.code.unwrap_or(0);
        let field = |name: &str| response.headers.iter().find(|f| f.name.eq_ignore_ascii_case(name)).map(|f| f.value);
        let text = |name: &str| field(name).and_then(|value| std::str::from_utf8(value).ok()).map(str::trim);
        let no_number = || FetchError::Response("a content length that is no number".to_owned());
        let length_of = |value: &[u8]| std::str::from_utf8(value).ok()?.trim().parse::<u64>().ok();
        let announced = field("content-length").map(|value| length_of(value).ok_or_else(no_number)).transpose()?;
        self.framing = match (status, text("transfer-encoding"), announced) {
            (100..=199 | 204 | 304, ..) | (_, None, Some(0)) => Framing::Done,
            (_, Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Framing::Chunked(Chunk::Size),
            (_, Some(coding), _) => return Err(FetchError::Response(format!("a transfer coding `{coding}`"))),
            (_, None, Some(length)) => Framing::Length(length),
            (_, None, None) => Framing::UntilClose,
        };
        if status >= 200 {
            self.outcome.announced = announced.filter(|_| matches!(self.framing, Framing::Length(_) | Framing::Done));
        }
        let location = text("location").map(str::to_owned);
        Ok(Some((Head { status, reason: response.reason.unwrap_or("").to_owned(), location }, length)))
    }

    fn consider_end(&mut self, now: Instant, stack: &mut Stack) {
        if let Some(began) = self.outcome.began {
            self.outcome.seconds = now.since(began).as_secs_f64();
        }
        if self.head.is_some() && self.framing == Framing::Done && self.complete.is_none() {
            self.complete = Some(now);
            stack.command(now, self.id, Command::Close);
        }
    }

    /// No more will come.
    fn ended(&mut self, now: Instant, stack: &mut Stack) {
        if self.complete.is_some() {
            return;
        }
        if self.head.is_some() && self.framing.may_end() {
            self.complete = Some(now);
            stack.command(now, self.id, Command::Close);
        } else if self.head.is_some() {
            let cut = FetchError::Cut { got: self.outcome.octets, of: self.outcome.announced };
            self.fail(now, stack, cut);
        } else {
            self.fail(now, stack, FetchError::Connection("the server closed the connection without an answer"));
        }
    }

    /// To be called from time to time: whether there is nothing more to wait for.
    pub fn is_over(&self, now: Instant) -> bool {
        self.over || self.complete.is_some_and(|at| now.since(at) > FAREWELL)
    }
}

const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

impl<W: Write> Application for Client<W> {
    fn notice(&mut self, now: Instant, stack: &mut Stack, notice: Notice) {
        let event = match notice {
            Notice::Event(id, event) if id == self.id => event,
            _ => return,
        };
        self.outcome.losses.note(&event);
        if event == Event::Connected {
            self.ask(now, stack);
        }
        if let Err(error) = self.receive(now, stack) {
            self.fail(now, stack, error);
        }
        if let Some(endpoint) = stack.endpoint(self.id) {
            self.outcome.stats = *endpoint.stats();
        }
        match event {
            Event::PeerClosed => self.ended(now, stack),
            // Our FIN is acknowledged: the peer knows everything, and TIME-WAIT is the stack's.
            Event::SendFinished => self.over = self.complete.is_some(),
            Event::Closed(closing) => {
                self.over = true;
                if self.complete.is_none() {
                    self.error.get_or_insert(FetchError::Connection(match closing {
                        Closing::Refused => "the server refuses the connection",
                        Closing::Reset => "the server has reset the connection",
                        Closing::TimedOut => "the server does not answer",
                        Closing::Normal | Closing::Aborted => "the connection was given up",
                    }));
                }
            }
            _ => {}
        }
    }

    fn is_done(&self, _stack: &Stack) -> bool {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: [IpAddr; 1] = [IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 1, 2))];

    #[test]
    fn urls_name_a_server_and_a_path() {
        let target = Target::parse("http://user@198.18.0.1:8000/a%20b?c=d", &V4).unwrap();
        assert_eq!((target.server, target.host.as_str()), (([198, 18, 0, 1], 8000).into(), "198.18.0.1:8000"));
        assert_eq!(target.path, "/a%20b?c=d");
        let v6: [IpAddr; 1] = ["fd00::2".parse().unwrap()];
        assert_eq!(Target::parse("http://[fd00::1]", &v6).unwrap().server, "[fd00::1]:80".parse().unwrap());
    }

    #[test]
    fn urls_that_cannot_be_fetched_are_told_why() {
        for (url, reason) in [
            ("https://198.18.0.1/", "TLS"),
            ("198.18.0.1/x", "http://"),
            ("http:///x", ""),
            ("http://[fd00::1]/", "family"),
            ("ftp://198.18.0.1/", "begins with http://"),
        ] {
            let error = Target::parse(url, &V4).unwrap_err().to_string();
            assert!(error.contains(url) && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn redirections_are_resolved() {
        let target = Target::parse("http://198.18.0.1:8000/a/b?c", &V4).unwrap();
        assert_eq!(target.resolve("/x"), "http://198.18.0.1:8000/x");
        assert_eq!(target.resolve("x?y"), "http://198.18.0.1:8000/a/x?y");
        assert_eq!(target.resolve("http://198.18.0.9/z"), "http://198.18.0.9/z");
    }
}
