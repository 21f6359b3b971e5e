//! A server of files.

use super::files::{Files, Found};
use super::{AGENT, MAX_FIELDS, MAX_HEAD};
use crate::host::Application;
use crate::losses::Losses;
use bytes::BytesMut;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use whyloss_transport::stack::{ConnectionId, Notice, Stack};
use whyloss_transport::tcp::{Command, Endpoint, Event, Stats};
use whyloss_transport::{Duration, Instant, Payload};

/// Files are read in pieces of up to this many octets.
const PIECE: usize = 256 << 10;
/// A client that neither asks nor acknowledges for this long is cut off.
const PATIENCE: Duration = Duration::from_secs(60);
/// Clients at a time; further ones are reset.
const MOST_CLIENTS: usize = 1024;

/// Answers `GET` and `HEAD` with the files that it offers.
#[derive(Debug)]
pub struct Server {
    files: Files,
    sessions: BTreeMap<ConnectionId, Session>,
    finished: Vec<Transfer>,
    /// Connections that asked for something and are over.
    served: u64,
    /// End after so many of these.
    limit: Option<u64>,
}

/// What went over one connection.
#[derive(Clone, Debug, Serialize)]
pub struct Transfer {
    /// The client.
    pub client: SocketAddr,
    /// What was asked for and how it was answered, in order.
    pub requests: Vec<Answer>,
    /// Octets that the client has acknowledged, heads of responses included.
    pub octets: u64,
    /// From the first request to the last acknowledgement.
    pub seconds: f64,
    /// Whether everything that was to be sent has been acknowledged.
    pub complete: bool,
    /// What was lost on the way.
    pub losses: Losses,
    /// Segments with data sent again.
    pub retransmissions: u64,
    /// Counters of the connection.
    #[serde(skip)]
    pub stats: Stats,
}

/// A request and the status of its response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// What was asked for, as it stood in the request.
    pub target: String,
    /// The status.
    pub status: u16,
}

#[derive(Debug)]
struct Session {
    client: SocketAddr,
    /// What has arrived of requests that are not answered yet.
    asked: BytesMut,
    /// What is left to send of the response under way.
    file: Option<(File, u64)>,
    requests: Vec<Answer>,
    /// Close when the response under way is sent.
    last: bool,
    close_sent: bool,
    peer_closed: bool,
    /// Everything is acknowledged, the FIN included.
    complete: bool,
    began: Option<Instant>,
    /// When the client last asked or acknowledged, and how much it had acknowledged by then.
    progress: (Instant, u64),
    losses: Losses,
}

impl Session {
    fn new(client: SocketAddr, now: Instant) -> Self {
        Self {
            client,
            asked: BytesMut::new(),
            file: None,
            requests: Vec::new(),
            last: false,
            close_sent: false,
            peer_closed: false,
            complete: false,
            began: None,
            progress: (now, 0),
            losses: Losses::default(),
        }
    }

    fn finish(self, endpoint: &Endpoint) -> Transfer {
        let octets = endpoint.octets_acknowledged();
        let span = self.began.map_or(Duration::ZERO, |began| self.progress.0.since(began));
        let stats = *endpoint.stats();
        Transfer {
            client: self.client,
            requests: self.requests,
            octets,
            seconds: span.as_secs_f64(),
            complete: self.complete,
            losses: self.losses,
            retransmissions: stats.retransmissions,
            stats,
        }
    }
}

impl Server {
    /// A server that ends after `limit` clients, if there is a limit.
    pub fn new(files: Files, limit: Option<u64>) -> Self {
        Self { files, sessions: BTreeMap::new(), finished: Vec::new(), served: 0, limit }
    }

    /// The transfers that ended since this was last asked.
    pub fn take_finished(&mut self) -> Vec<Transfer> {
        std::mem::take(&mut self.finished)
    }

    /// Connections that are under way.
    pub fn clients(&self) -> usize {
        self.sessions.len()
    }

    /// To be called from time to time: cuts off clients that do nothing.
    pub fn sweep(&mut self, now: Instant, stack: &mut Stack) {
        let ids: Vec<_> = self.sessions.keys().copied().collect();
        for id in ids {
            self.note_progress(now, stack, id, false);
            if self.sessions.get(&id).is_some_and(|session| now.since(session.progress.0) > PATIENCE) {
                stack.command(now, id, Command::Abort);
            }
        }
    }

    /// Resets all connections: the server is about to go away.
    pub fn abort(&mut self, now: Instant, stack: &mut Stack) {
        for id in self.sessions.keys() {
            stack.command(now, *id, Command::Abort);
        }
    }

    fn note_progress(&mut self, now: Instant, stack: &Stack, id: ConnectionId, asked: bool) {
        let (Some(session), Some(endpoint)) = (self.sessions.get_mut(&id), stack.endpoint(id)) else { return };
        let acknowledged = endpoint.octets_acknowledged();
        if asked || acknowledged > session.progress.1 {
            session.progress = (now, acknowledged);
        }
    }

    fn serve(&mut self, now: Instant, stack: &mut Stack, id: ConnectionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let mut asked = false;
        while let Some(data) = stack.read(now, id, PIECE) {
            asked = true;
            if !session.close_sent {
                session.asked.extend_from_slice(&data.to_bytes());
            }
        }
        loop {
            if session.file.is_some() {
                if !send_file(now, stack, id, session) {
                    break;
                }
            } else if session.last || session.peer_closed && session.asked.is_empty() {
                if !session.close_sent {
                    session.close_sent = true;
                    stack.command(now, id, Command::Close);
                }
                break;
            } else if !answer(&self.files, now, stack, id, session) {
                // A request that will never be complete is not waited for.
                if !session.peer_closed {
                    break;
                }
                session.last = true;
            }
        }
        self.note_progress(now, stack, id, asked);
    }

    fn end(&mut self, stack: &mut Stack, id: ConnectionId) {
        if let (Some(session), Some(endpoint)) = (self.sessions.remove(&id), stack.endpoint(id)) {
            let transfer = session.finish(endpoint);
            if !transfer.requests.is_empty() {
                self.served += 1;
                self.finished.push(transfer);
            }
        }
        stack.release(id);
    }
}

/// Sends what there is room for of the file; whether that was all of it.
fn send_file(now: Instant, stack: &mut Stack, id: ConnectionId, session: &mut Session) -> bool {
    while let Some((file, left)) = session.file.as_mut().filter(|(_, left)| *left > 0) {
        let room = stack.endpoint(id).map_or(0, Endpoint::send_space);
        let want = room.min(*left).min(PIECE as u64) as usize;
        if want == 0 {
            return false;
        }
        let mut piece = vec![0; want];
        match file.read(&mut piece) {
            Ok(length) if length > 0 => {
                piece.truncate(length);
                *left -= length as u64;
                stack.command(now, id, Command::Send(Payload::Bytes(piece.into())));
            }
            // The file has become shorter, or cannot be read: only a reset tells the client that something is missing.
            _ => {
                stack.command(now, id, Command::Abort);
                return false;
            }
        }
    }
    session.file = None;
    true
}

/// Answers the next request, if it is there as a whole.
fn answer(files: &Files, now: Instant, stack: &mut Stack, id: ConnectionId, session: &mut Session) -> bool {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let (status, length, reason) = match request.parse(&session.asked) {
        Ok(httparse::Status::Complete(length)) => (0, length, ""),
        Ok(httparse::Status::Partial) if session.asked.len() <= MAX_HEAD => return false,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            (431, session.asked.len(), "Request Header Fields Too Large")
        }
        Err(_) => (400, session.asked.len(), "Bad Request"),
    };
    let target = request.path.unwrap_or("").to_owned();
    let method = request.method.unwrap_or("").to_owned();
    let field = |name: &str| request.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value);
    let says = |name: &str, word: &[u8]| field(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
    // Bodies of requests are not read: what follows cannot be told from another request.
    let has_body = field("transfer-encoding").is_some() || field("content-length").is_some_and(|value| value != b"0");
    session.last = status != 0
        || has_body
        || says("connection", b"close")
        || request.version == Some(0) && !says("connection", b"keep-alive");
    let _ = session.asked.split_to(length);
    session.began.get_or_insert(now);

    let head_only = method == "HEAD";
    let mut location = String::new();
    let (status, reason, kind, text, file) = if status != 0 {
        (status, reason, TEXT, format!("{reason}\n"), None)
    } else if method != "GET" && !head_only {
        (405, "Method Not Allowed", TEXT, "there are GET and HEAD\n".to_owned(), None)
    } else {
        match files.find(&target) {
            Found::File(file, length) => (200, "OK", "application/octet-stream", String::new(), Some((file, length))),
            Found::Page(page) => (200, "OK", "text/html; charset=utf-8", page, None),
            Found::Slashless => {
                let path = target.split('?').next().unwrap_or_default();
                location = format!("Location: {path}/\r\n");
                (301, "Moved Permanently", TEXT, "it is a folder\n".to_owned(), None)
            }
            Found::Nothing => (404, "Not Found", TEXT, "there is no such file\n".to_owned(), None),
        }
    };
    let length = file.as_ref().map_or(text.len() as u64, |(_, length)| *length);
    let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let connection = if session.last { "Connection: close\r\n" } else { "" };
    let mut head = format!(
        "HTTP/1.1 {status} {reason}\r\nServer: {AGENT}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         {location}{allow}{connection}\r\n"
    );
    session.requests.push(Answer { target, status });
    session.file = file.filter(|_| !head_only);
    if !head_only {
        head.push_str(&text);
    }
    let room = stack.endpoint(id).map_or(0, Endpoint::send_space);
    if room < head.len() as u64 {
        // Somebody asks without ever listening.
        stack.command(now, id, Command::Abort);
        return false;
    }
    stack.command(now, id, Command::Send(Payload::Bytes(head.into())));
    true
}

const TEXT: &str = "text/plain; charset=utf-8";

impl Application for Server {
    fn notice(&mut self, now: Instant, stack: &mut Stack, notice: Notice) {
        let (id, event) = match notice {
            Notice::Accepted(id) => {
                let full = self.sessions.len() >= MOST_CLIENTS || self.limit.is_some_and(|limit| self.served >= limit);
                if let Some(tuple) = stack.tuple(id).filter(|_| !full) {
                    self.sessions.insert(id, Session::new(tuple.remote, now));
                } else {
                    stack.command(now, id, Command::Abort);
                    stack.release(id);
                }
                return;
            }
            Notice::Event(id, event) => (id, event),
        };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.losses.note(&event);
        match event {
            Event::PeerClosed => session.peer_closed = true,
            Event::SendFinished => session.complete = true,
            Event::Closed(_) => return self.end(stack, id),
            Event::Connected | Event::Readable | Event::Writable => {}
            _ => return,
        }
        let over = session.complete && session.peer_closed;
        self.serve(now, stack, id);
        if over {
            // What is left is TIME-WAIT, which the stack sees to.
            self.end(stack, id);
        }
    }

    fn is_done(&self, _stack: &Stack) -> bool {
        self.limit.is_some_and(|limit| self.served >= limit) && self.sessions.is_empty()
    }
}
