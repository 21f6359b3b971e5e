//! One connection that carries data both ways.

use crate::digest::Tally;
use crate::host::Application;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use whyloss_transport::segment::synthetic_octet;
use whyloss_transport::stack::{ConnectionId, FourTuple, Notice, Stack};
use whyloss_transport::tcp::{Closing, Command, Event, State, Stats};
use whyloss_transport::{Instant, Payload};

/// Data is read from its source in pieces of up to this many octets.
const PIECE: usize = 1 << 16;

/// When to send the FIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CloseOrder {
    /// As soon as everything is sent; the other direction may still carry data.
    #[default]
    WhenSent,
    /// Once the peer has closed.
    AfterPeer,
}

/// Sends what a source holds and receives what the peer sends, on one connection.
pub struct Exchange {
    connection: Option<ConnectionId>,
    source: Box<dyn Read>,
    sink: Box<dyn Write>,
    order: CloseOrder,
    /// Where to wait for the peer, until it has come.
    listening: Option<SocketAddr>,
    /// The send buffer may have room.
    has_room: bool,
    exhausted: bool,
    close_sent: bool,
    peer_closed: bool,
    outcome: ExchangeOutcome,
    error: Option<io::Error>,
}

/// How an exchange went.
#[derive(Clone, Debug, Default)]
pub struct ExchangeOutcome {
    /// Both ends, once connected.
    pub tuple: Option<FourTuple>,
    /// What was handed to TCP.
    pub sent: Tally,
    /// What the peer's TCP delivered to us.
    pub received: Tally,
    /// When the connection was established, and when it had done its work.
    pub span: Option<(Instant, Instant)>,
    /// How it ended; `None` if it waits in TIME-WAIT or did not end.
    pub closing: Option<Closing>,
    /// The counters of the connection at its end.
    pub stats: Stats,
}

impl Exchange {
    /// On the connection that `connection` names.
    pub fn connecting(connection: ConnectionId, source: Box<dyn Read>, sink: Box<dyn Write>, order: CloseOrder) -> Self {
        Self::new(Some(connection), None, source, sink, order)
    }

    /// On the first connection that a peer opens to `listening`. No other is taken.
    pub fn accepting(listening: SocketAddr, source: Box<dyn Read>, sink: Box<dyn Write>, order: CloseOrder) -> Self {
        Self::new(None, Some(listening), source, sink, order)
    }

    fn new(
        connection: Option<ConnectionId>,
        listening: Option<SocketAddr>,
        source: Box<dyn Read>,
        sink: Box<dyn Write>,
        order: CloseOrder,
    ) -> Self {
        Self {
            connection,
            listening,
            source,
            sink,
            order,
            has_room: false,
            exhausted: false,
            close_sent: false,
            peer_closed: false,
            outcome: ExchangeOutcome::default(),
            error: None,
        }
    }

    /// How it went; an error if reading the source or writing the sink failed.
    pub fn outcome(self) -> io::Result<ExchangeOutcome> {
        self.error.map_or(Ok(self.outcome), Err)
    }

    fn pump(&mut self, now: Instant, stack: &mut Stack, id: ConnectionId) -> io::Result<()> {
        while let Some(data) = stack.read(now, id, PIECE) {
            let data = data.to_bytes();
            self.outcome.received.add(&data);
            self.sink.write_all(&data)?;
        }
        while self.has_room && !self.exhausted {
            let space = stack.endpoint(id).map_or(0, |endpoint| endpoint.send_space().min(PIECE as u64) as usize);
            if space == 0 {
                self.has_room = false;
                break;
            }
            let mut piece = vec![0; space];
            let length = self.source.read(&mut piece)?;
            self.exhausted = length == 0;
            piece.truncate(length);
            self.outcome.sent.add(&piece);
            stack.command(now, id, Command::Send(Payload::Bytes(piece.into())));
        }
        if self.exhausted && !self.close_sent && (self.order == CloseOrder::WhenSent || self.peer_closed) {
            self.close_sent = true;
            stack.command(now, id, Command::Close);
        }
        Ok(())
    }
}

impl Application for Exchange {
    fn notice(&mut self, now: Instant, stack: &mut Stack, notice: Notice) {
        let (id, event) = match notice {
            Notice::Accepted(id) => {
                if let Some(local) = self.listening.take() {
                    stack.unlisten(local);
                    self.connection = Some(id);
                } else {
                    stack.command(now, id, Command::Abort);
                    stack.release(id);
                }
                return;
            }
            Notice::Event(id, event) if self.connection == Some(id) => (id, event),
            Notice::Event(..) => return,
        };
        match event {
            Event::Connected => {
                self.outcome.tuple = stack.tuple(id);
                self.outcome.span = Some((now, now));
                self.has_room = true;
            }
            Event::Writable => self.has_room = true,
            Event::PeerClosed => self.peer_closed = true,
            Event::Closed(closing) => self.outcome.closing = Some(closing),
            _ => {}
        }
        if let Err(error) = self.pump(now, stack, id) {
            self.error = Some(error);
            stack.command(now, id, Command::Abort);
        }
        if let Some(endpoint) = stack.endpoint(id) {
            self.outcome.stats = *endpoint.stats();
            let working = !matches!(endpoint.state(), State::TimeWait | State::Closed);
            if let Some((_, end)) = self.outcome.span.as_mut().filter(|_| working) {
                *end = now;
            }
        }
    }

    fn is_done(&self, _stack: &Stack) -> bool {
        self.outcome.closing.is_some()
    }
}

/// The first `octets` octets of the synthetic stream.
#[derive(Clone, Copy, Debug)]
pub struct Synthetic {
    at: u64,
    end: u64,
}

impl Synthetic {
    /// The first `octets` octets.
    pub fn new(octets: u64) -> Self {
        Self { at: 0, end: octets }
    }
}

impl Read for Synthetic {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = (out.len() as u64).min(self.end - self.at);
        for octet in &mut out[..length as usize] {
            *octet = synthetic_octet(self.at);
            self.at += 1;
        }
        Ok(length as usize)
    }
}
