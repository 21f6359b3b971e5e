//! A server of files.

use super::files::{Files, Found};
use super::limits::{network, Limits, Usage};
use super::{AGENT, MAX_FIELDS, MAX_HEAD};
use crate::host::Application;
use crate::losses::Losses;
use bytes::{Bytes, BytesMut};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use whyloss_transport::stack::{ConnectionId, Notice, Stack};
use whyloss_transport::tcp::{Command, Endpoint, Event, Stats};
use whyloss_transport::{Duration, Instant, Payload};

#[cfg(test)]
mod tests;

/// Files are read in pieces of up to this many octets.
const PIECE: usize = 256 << 10;
/// Octets of a request's target that are told.
const TOLD_TARGET: usize = 256;
/// A connection that waits for a request makes way for another after this long.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// Answers `GET` and `HEAD` with the files that it offers.
#[derive(Debug)]
pub struct Server {
    files: Files,
    sessions: BTreeMap<ConnectionId, Session>,
    limits: Limits,
    usage: Usage,
    /// Connections that are over and wait in TIME-WAIT, the oldest first; some may be gone.
    waiting: VecDeque<(ConnectionId, IpAddr)>,
    finished: Vec<Transfer>,
    /// Connections that asked for something and are over.
    served: u64,
    /// End after so many of these.
    limit: Option<u64>,
}

/// What went over one connection.
#[derive(Clone, Debug, Serialize)]
pub struct Transfer {
    /// Address and port of the client.
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
    /// Status code of the response.
    pub status: u16,
}

#[derive(Debug)]
struct Session {
    client: SocketAddr,
    /// What has arrived of requests that are not answered yet: at most two heads.
    asked: BytesMut,
    /// When the request that is awaited, or has come in part, began to be.
    asking_since: Instant,
    /// What is left to send of the response under way.
    response: VecDeque<Part>,
    /// Octets of responses handed to TCP.
    sent: u64,
    /// Send buffer that the connection would have by its configuration, in octets.
    buffer: u64,
    requests: Vec<Answer>,
    /// Close when the response under way is sent.
    last: bool,
    close_sent: bool,
    peer_closed: bool,
    /// Everything is acknowledged, the FIN included.
    complete: bool,
    began: Option<Instant>,
    /// When the client last acknowledged something worth mention, and how much it had acknowledged by then.
    progress: (Instant, u64),
    losses: Losses,
}

/// A part of a response that is left to send.
#[derive(Debug)]
enum Part {
    /// So many octets of a file, from where it is read on.
    File(File, u64),
    /// A head or a page.
    Text(Bytes),
}

impl Part {
    fn left(&self) -> u64 {
        match self {
            Self::File(_, left) => *left,
            Self::Text(text) => text.len() as u64,
        }
    }

    /// The next octets, `want` at most; an error if there are none where there should be.
    fn take(&mut self, want: usize) -> std::io::Result<Bytes> {
        match self {
            Self::Text(text) => Ok(text.split_to(want.min(text.len()))),
            Self::File(file, left) => {
                let mut piece = vec![0; want];
                let length = file.read(&mut piece)?;
                if length == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                piece.truncate(length);
                *left -= length as u64;
                Ok(piece.into())
            }
        }
    }
}

impl Session {
    fn new(client: SocketAddr, now: Instant, buffer: u64) -> Self {
        Self {
            client,
            asked: BytesMut::new(),
            asking_since: now,
            response: VecDeque::new(),
            sent: 0,
            buffer,
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

    /// Takes what has arrived, as far as there is room for requests. What has to wait closes the window.
    fn read(&mut self, now: Instant, stack: &mut Stack, id: ConnectionId) {
        while self.close_sent || self.asked.len() <= MAX_HEAD {
            let Some(data) = stack.read(now, id, MAX_HEAD) else { return };
            if self.close_sent {
                continue;
            }
            if self.asked.is_empty() {
                self.asking_since = now;
            }
            self.asked.extend_from_slice(&data.to_bytes());
        }
    }

    /// Hands octets of a response to TCP.
    fn send(&mut self, now: Instant, stack: &mut Stack, id: ConnectionId, usage: &mut Usage, octets: Bytes) {
        self.sent += octets.len() as u64;
        usage.hold(self.client.ip(), octets.len() as u64);
        stack.command(now, id, Command::Send(Payload::Bytes(octets)));
    }

    /// Whether a response is under way.
    fn is_responding(&self) -> bool {
        !self.response.is_empty() || self.sent > self.progress.1
    }

    /// When the client is cut off if it neither sends nor acknowledges anything.
    fn deadline(&self, limits: &Limits) -> Instant {
        if self.is_responding() {
            self.progress.0 + limits.patience
        } else if !self.asked.is_empty() || self.requests.is_empty() {
            self.asking_since + limits.request_time
        } else {
            self.progress.0 + limits.patience
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
    pub fn new(files: Files, limit: Option<u64>, limits: Limits) -> Self {
        let usage = Usage::new(limits);
        let (sessions, waiting) = (BTreeMap::new(), VecDeque::new());
        Self { files, sessions, limits, usage, waiting, finished: Vec::new(), served: 0, limit }
    }

    /// The transfers that ended since this was last asked.
    pub fn take_finished(&mut self) -> Vec<Transfer> {
        std::mem::take(&mut self.finished)
    }

    /// Connections that are under way.
    pub fn clients(&self) -> usize {
        self.sessions.len()
    }

    /// To be called several times a second: counts what is held, goes on where there was no room, and cuts off clients that take too long.
    pub fn sweep(&mut self, now: Instant, stack: &mut Stack) {
        self.usage.recount();
        self.waiting.retain(|(id, _)| stack.endpoint(*id).is_some());
        let ids: Vec<_> = self.sessions.keys().copied().collect();
        for &id in &ids {
            self.note_progress(now, stack, id);
            if let (Some(session), Some(endpoint)) = (self.sessions.get(&id), stack.endpoint(id)) {
                self.usage.hold(session.client.ip(), session.sent.saturating_sub(endpoint.octets_acknowledged()));
            }
        }
        for id in ids {
            let Some(session) = self.sessions.get(&id) else { continue };
            if session.deadline(&self.limits) < now {
                stack.command(now, id, Command::Abort);
            } else if session.is_responding() || !session.asked.is_empty() {
                self.serve(now, stack, id);
            }
        }
    }

    /// Resets all connections: the server is about to go away.
    pub fn abort(&mut self, now: Instant, stack: &mut Stack) {
        for id in self.sessions.keys() {
            stack.command(now, *id, Command::Abort);
        }
    }

    fn note_progress(&mut self, now: Instant, stack: &Stack, id: ConnectionId) {
        let (Some(session), Some(endpoint)) = (self.sessions.get_mut(&id), stack.endpoint(id)) else { return };
        let acknowledged = endpoint.octets_acknowledged();
        let done = acknowledged > session.progress.1 && acknowledged >= session.sent;
        if done || acknowledged >= session.progress.1 + self.limits.progress {
            session.progress = (now, acknowledged);
        }
    }

    fn serve(&mut self, now: Instant, stack: &mut Stack, id: ConnectionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let buffer = session.buffer.min(self.usage.share(session.client.ip()));
        if stack.endpoint(id).is_some_and(|endpoint| endpoint.config().send_buffer != buffer) {
            stack.command(now, id, Command::SendBuffer(buffer));
        }
        loop {
            session.read(now, stack, id);
            if !session.response.is_empty() {
                if !send_response(now, stack, id, session, &mut self.usage) {
                    break;
                }
            } else if session.last || session.peer_closed && session.asked.is_empty() {
                if !session.close_sent {
                    session.close_sent = true;
                    session.asked = BytesMut::new();
                    stack.command(now, id, Command::Close);
                }
                break;
            } else if stack.endpoint(id).is_none_or(|endpoint| endpoint.send_space() < buffer / 2) {
                // Whoever does not listen to answers gets none: the next request waits.
                break;
            } else if answer(&self.files, self.limits.requests, session) {
                session.began.get_or_insert(now);
                session.asking_since = now;
            } else {
                // A request that will never be complete is not waited for.
                if !session.peer_closed {
                    break;
                }
                session.last = true;
            }
        }
        self.note_progress(now, stack, id);
    }

    /// Makes room for one more connection, if one waits for a request that does not come.
    fn make_room(&mut self, now: Instant, stack: &mut Stack) {
        let waiting = self.sessions.iter().filter(|(_, session)| !session.is_responding());
        let since = |session: &Session| session.asking_since.max(session.progress.0);
        let longest = waiting.map(|(id, session)| (since(session), *id)).min();
        if let Some((_, id)) = longest.filter(|(since, _)| now.since(*since) >= LEAST_WAIT) {
            stack.command(now, id, Command::Abort);
            self.end(stack, id);
        }
    }

    /// Cuts TIME-WAIT short, that of the oldest first, until those that wait and those that are open are within the limits, in all and from this
    /// address.
    fn cut_waiting(&mut self, now: Instant, stack: &mut Stack, address: IpAddr) {
        let own = network(address);
        let mut of_address = self.waiting.iter().filter(|(_, of)| *of == own).count();
        loop {
            let at = if self.usage.connections(address) + of_address > self.limits.connections_by_address {
                self.waiting.iter().position(|(_, of)| *of == own)
            } else {
                (self.sessions.len() + self.waiting.len() > self.limits.connections).then_some(0)
            };
            let Some((id, of)) = at.and_then(|at| self.waiting.remove(at)) else { return };
            of_address -= usize::from(of == own);
            stack.command(now, id, Command::Abort);
        }
    }

    fn end(&mut self, stack: &mut Stack, id: ConnectionId) {
        if let Some(session) = self.sessions.remove(&id) {
            self.usage.leave(session.client.ip());
            let transfer = stack.endpoint(id).map(|endpoint| session.finish(endpoint));
            if let Some(transfer) = transfer.filter(|transfer| !transfer.requests.is_empty()) {
                self.served += 1;
                self.finished.push(transfer);
            }
        }
        stack.release(id);
    }
}

/// Sends what there is room for of the response under way; whether that was all of it.
fn send_response(now: Instant, stack: &mut Stack, id: ConnectionId, session: &mut Session, usage: &mut Usage) -> bool {
    while let Some(part) = session.response.front_mut() {
        if part.left() == 0 {
            session.response.pop_front();
            continue;
        }
        let room = stack.endpoint(id).map_or(0, Endpoint::send_space).min(usage.room(session.client.ip()));
        let want = room.min(part.left()).min(PIECE as u64) as usize;
        if want == 0 {
            return false;
        }
        let Ok(piece) = part.take(want) else {
            // The file has become shorter, or cannot be read: only a reset tells the client that something is missing.
            stack.command(now, id, Command::Abort);
            return false;
        };
        session.send(now, stack, id, usage, piece);
    }
    true
}

/// Answers the next request, if that is there as a whole: the response is under way then. The connection is closed after `most` requests.
fn answer(files: &Files, most: usize, session: &mut Session) -> bool {
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
    let mut target = request.path.unwrap_or("").to_owned();
    let method = request.method.unwrap_or("").to_owned();
    let field = |name: &str| request.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value);
    let says = |name: &str, word: &[u8]| field(name).is_some_and(|value| value.eq_ignore_ascii_case(word));
    // Bodies of requests are not read: what follows cannot be told from another request.
    let has_body = field("transfer-encoding").is_some() || field("content-length").is_some_and(|value| value != b"0");
    session.last = status != 0
        || session.requests.len() + 1 >= most
        || has_body
        || says("connection", b"close")
        || request.version == Some(0) && !says("connection", b"keep-alive");
    let _ = session.asked.split_to(length);

    let head_only = method == "HEAD";
    let mut location = String::new();
    let page = |text: &str| Part::Text(Bytes::copy_from_slice(text.as_bytes()));
    let (status, reason, kind, body) = if status != 0 {
        (status, reason, TEXT, page(&format!("{reason}\n")))
    } else if method != "GET" && !head_only {
        (405, "Method Not Allowed", TEXT, page("there are GET and HEAD\n"))
    } else {
        match files.find(&target) {
            Found::File(file, length) => (200, "OK", "application/octet-stream", Part::File(file, length)),
            Found::Page(text) => (200, "OK", "text/html; charset=utf-8", page(&text)),
            Found::Slashless => {
                let path = target.split('?').next().unwrap_or_default();
                location = format!("Location: {path}/\r\n");
                (301, "Moved Permanently", TEXT, page("it is a folder\n"))
            }
            Found::Nothing => (404, "Not Found", TEXT, page("there is no such file\n")),
        }
    };
    let length = body.left();
    let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let connection = if session.last { "Connection: close\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\nServer: {AGENT}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         {location}{allow}{connection}\r\n"
    );
    target.truncate((0..=TOLD_TARGET.min(target.len())).rev().find(|&at| target.is_char_boundary(at)).unwrap_or(0));
    session.requests.push(Answer { target, status });
    session.response.push_back(Part::Text(head.into()));
    session.response.extend((!head_only).then_some(body));
    true
}

const TEXT: &str = "text/plain; charset=utf-8";

impl Application for Server {
    fn notice(&mut self, now: Instant, stack: &mut Stack, notice: Notice) {
        let (id, event) = match notice {
            Notice::Accepted(id) => {
                let over = self.limit.is_some_and(|limit| self.served >= limit);
                let client = stack.tuple(id).map(|tuple| tuple.remote).filter(|client| !over && self.usage.admits(client.ip()));
                if client.is_some() && self.usage.is_full() {
                    self.make_room(now, stack);
                }
                if let Some(client) = client.filter(|_| !self.usage.is_full()) {
                    let buffer = stack.endpoint(id).map_or(0, |endpoint| endpoint.config().send_buffer);
                    self.usage.enter(client.ip());
                    self.sessions.insert(id, Session::new(client, now, buffer));
                    self.cut_waiting(now, stack, client.ip());
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
            let client = self.sessions.get(&id).map(|session| session.client.ip());
            self.end(stack, id);
            if let Some(client) = client.filter(|_| stack.endpoint(id).is_some()) {
                self.waiting.push_back((id, network(client)));
            }
        }
    }

    fn is_done(&self, _stack: &Stack) -> bool {
        self.limit.is_some_and(|limit| self.served >= limit) && self.sessions.is_empty()
    }
}
