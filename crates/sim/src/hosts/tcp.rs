//! Ends of TCP connections and the applications behind them.

use super::flows::{mismatches, FileState, Flows};
use crate::address::{EndpointId, FileId, Way};
use crate::build::End;
use crate::events::{Event, Target};
use crate::network::Network;
use crate::outage::{Downtime, Turns};
use crate::record::TimeoutRow;
use std::sync::Arc;
use whyloss_transport::receiver::LinkHint;
use whyloss_transport::tcp::{self, State};
use whyloss_transport::{Command, Duration, Endpoint, Input, Instant, Payload, Ports};

/// When a timer event is due that nobody waits for.
const NEVER: u64 = u64::MAX;

/// One end of a TCP connection at its host.
#[derive(Debug)]
pub(crate) struct TcpSocket {
    pub tcp: Endpoint,
    /// When the next timer event that counts is due. An event of another time is stale.
    armed: u64,
    /// What to do when the connection is to be opened; taken when it is.
    opening: Option<Opening>,
    /// The file that it carries chunks of, and its number among the connections.
    striped: Option<(FileId, usize)>,
    /// Its application has no more to give, but the connection does not stand yet.
    ends: bool,
    /// It sends chunks of a file and may take more.
    feeding: bool,
    /// The link that the host stands at, if the endpoint wants to be told of it.
    link: Option<Turns>,
    /// Octets that were in order at the last look.
    delivered: u64,
    /// Octets that reached the application with another value than they were sent with.
    pub corrupted: u64,
}

/// What a sender's application does with a new connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Opening {
    /// Sends this many octets of the synthetic stream and closes; `u64::MAX` never ends.
    Produce(u64),
    /// Sends chunks of a file.
    Stripe,
    /// Sends what the application gives it as time passes.
    Wait,
}

/// An end to which nothing has happened yet. A connection takes some three kilobytes an end, and of many flows few may run.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub end: End,
    pub nonce_key: u64,
    pub clock_phase: Option<Duration>,
    pub ports: Ports,
    /// When the sender opens the connection, and what it sends; the receiver waits for it.
    pub opens: Option<(Instant, Opening)>,
    /// The file that it carries chunks of, and its number among the connections.
    pub striped: Option<(FileId, usize)>,
    /// Those of the link that the host stands at.
    pub outages: Downtime,
}

impl TcpSocket {
    /// The connection of `waiting`.
    pub fn new(waiting: Waiting) -> Self {
        let Waiting { end, nonce_key, clock_phase, ports, opens, striped, outages } = waiting;
        let mut config = end.config;
        if config.auto_read {
            // The application reads at once all the same, but it looks at what it reads.
            Arc::make_mut(&mut config).auto_read = false;
        }
        let mut tcp = Endpoint::new(config, end.parts, ports);
        tcp.individualise(nonce_key, clock_phase);
        if opens.is_none() {
            tcp.handle(Instant::ZERO, Input::Command(Command::Listen));
        }
        if striped.is_none() {
            tcp.skim();
        }
        let (armed, opening) = opens.map_or((NEVER, None), |(at, opening)| (at.as_nanos(), Some(opening)));
        let link = (tcp.wants_link() && !outages.is_empty()).then(|| Turns::new(outages));
        let mut socket = Self { tcp, armed, opening, striped, ends: false, feeding: false, link, delivered: 0, corrupted: 0 };
        socket.tell_forecast(Instant::ZERO);
        socket
    }

    /// Whether its connection has come to its end.
    pub fn is_over(&self) -> bool {
        self.opening.is_none() && self.tcp.state() == State::Closed
    }

    /// Tells the endpoint what has become of its link; returns whether anything has.
    fn follow_link(&mut self, now: Instant) -> bool {
        let turns = |link: &&mut Turns| link.next().is_some_and(|at| at <= now);
        let Some(link) = self.link.as_mut().filter(turns) else { return false };
        link.turn(now);
        if link.is_up() {
            self.tcp.handle(now, Input::Link(LinkHint::Up));
            self.tell_forecast(now);
        }
        true
    }

    /// A host that knows when its link goes down.
    fn tell_forecast(&mut self, now: Instant) {
        if let Some(at) = self.link.as_ref().filter(|link| link.is_up()).and_then(Turns::next) {
            self.tcp.handle(now, Input::Link(LinkHint::GoesDown(at)));
        }
    }

    /// Reads here and there in the connection, and returns what makes no sense but cannot be left out.
    pub fn touch(&self) -> u64 {
        let Self { tcp, delivered, .. } = self;
        let (stats, path) = (tcp.stats(), tcp.path());
        let config = tcp.config().receive_buffer;
        let sides = [tcp.octets_acknowledged(), tcp.octets_sent(), tcp.unsent(), tcp.pipe(), tcp.octets_unread()];
        let due = tcp.poll_timeout().map_or(0, Instant::as_nanos);
        let told = stats.data_octets_sent
            ^ stats.losses
            ^ stats.octets_delivered
            ^ path.now.as_nanos()
            ^ path.cwnd
            ^ tcp.window().cwnd();
        sides.iter().fold(config ^ due ^ told ^ delivered, |all, octets| all ^ octets)
    }

    /// A timer event of the socket.
    pub fn timer(&mut self, end: EndpointId, flows: &mut Flows, net: &mut Network) {
        if self.armed != net.now {
            return;
        }
        self.armed = NEVER;
        let now = Instant::from_nanos(net.now);
        let turned = self.follow_link(now);
        if let Some(opening) = self.opening.take() {
            self.tcp.handle(now, Input::Command(Command::Connect));
            match opening {
                Opening::Produce(octets) => {
                    self.tcp.handle(now, Input::Command(Command::Produce(octets)));
                }
                // Chunks are dealt out to connections that stand (see `Connected`), and other data comes when it comes.
                Opening::Stripe | Opening::Wait => {}
            }
            self.pump(end, flows, net);
        } else if turned || self.tcp.poll_timeout().is_some_and(|due| due <= now) {
            self.tcp.handle_timeout(now);
            self.pump(end, flows, net);
        } else {
            self.arm(end, net);
        }
    }

    /// The application gives so many octets to send, or closes.
    pub fn produce(&mut self, end: EndpointId, flows: &mut Flows, net: &mut Network, octets: Option<u64>) {
        let command = match octets {
            Some(octets) => Command::Produce(octets),
            // Not before: closing in SYN-SENT gives up what is to be sent (RFC 9293, 3.10.4).
            None if matches!(self.tcp.state(), State::Closed | State::SynSent) => {
                self.ends = true;
                return;
            }
            None => Command::Close,
        };
        self.tcp.handle(Instant::from_nanos(net.now), Input::Command(command));
        self.pump(end, flows, net);
    }

    /// Sees to it that a timer event comes in time. One that comes too early is found out when it comes: acknowledgements put the
    /// timer off all the time, and moving its event as often would cost more.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each segment comes here, and there is little to do")]
    fn arm(&mut self, end: EndpointId, net: &mut Network) {
        let turn = self.link.as_ref().and_then(Turns::next).map_or(NEVER, Instant::as_nanos);
        let due = self.tcp.poll_timeout().map_or(NEVER, Instant::as_nanos).min(turn).max(net.now);
        if due < self.armed {
            self.armed = due;
            let event = Event::new(due, net.events.next_order(), Target::Timer(end));
            net.events.push(event);
        }
    }

    /// Lets the socket do what it has to do after a timer or a command.
    pub fn pump(&mut self, end: EndpointId, flows: &mut Flows, net: &mut Network) {
        self.pump_inline(end, flows, net);
    }

    /// The same after a segment.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "each packet that arrives comes here")]
    pub fn pump_inline(&mut self, end: EndpointId, flows: &mut Flows, net: &mut Network) {
        let now = Instant::from_nanos(net.now);
        if end.way() == Way::Reverse && self.tcp.stats().octets_delivered != self.delivered {
            self.receive(end, flows, now);
            let flow = flows.of(end);
            if let Some((source, browser)) = &mut flow.browser {
                if let Some(next) = browser.arrived(now, flow.octets) {
                    let event = Event::new(next, net.events.next_order(), Target::Source(*source));
                    net.events.push(event);
                }
            }
        }
        loop {
            let fed = self.feeding && self.feed(&mut flows.files, now);
            while let Some(segment) = self.tcp.poll_transmit(now) {
                if let Some(watch) = &mut net.watch {
                    watch.announce(self.tcp.retransmission());
                }
                net.send(end, segment);
            }
            if !fed && !self.take_events(end, flows, now) {
                break;
            }
        }
        self.arm(end, net);
    }

    /// Takes the events of the connection up to one that the application answers, so that segments may leave; whether there was one.
    #[inline]
    fn take_events(&mut self, end: EndpointId, flows: &mut Flows, now: Instant) -> bool {
        while let Some(event) = self.tcp.poll_event() {
            let answered = self.feeding || matches!(event, tcp::Event::Connected | tcp::Event::PeerClosed);
            if !matches!(event, tcp::Event::Readable) {
                self.on_event(end, flows, now, event);
            }
            if answered {
                return true;
            }
        }
        false
    }

    #[inline(never)]
    fn on_event(&mut self, end: EndpointId, flows: &mut Flows, now: Instant, event: tcp::Event) {
        let number = end.flow();
        let flow = &mut flows.all[number.index()];
        let sends = end.way() == Way::Forward;
        match event {
            tcp::Event::Connected if sends => {
                flow.connected = Some(now);
                // Not before: closing in SYN-SENT gives up what is to be sent (RFC 9293, 3.10.4).
                if flow.amount.is_some() || self.ends {
                    self.tcp.handle(now, Input::Command(Command::Close));
                }
                self.feeding = self.striped.is_some();
            }
            tcp::Event::PeerClosed if !sends => {
                self.tcp.handle(now, Input::Command(Command::Close));
            }
            tcp::Event::Closed(closing) => flows.on_closed(end, closing),
            tcp::Event::Loss(record) if sends => flows.losses.push((number, *record)),
            tcp::Event::Timeout(record) if sends => {
                flow.unassessed.push(flows.timeouts_taken + flows.timeouts.len());
                flows.timeouts.push(TimeoutRow::new(number, *record));
            }
            tcp::Event::TimeoutAssessed(outcome) if sends => {
                for number in flow.unassessed.drain(..) {
                    let row = &mut flows.timeouts[number - flows.timeouts_taken];
                    (row.outcome, row.assessed) = (outcome, Some(now));
                }
            }
            tcp::Event::Gap(record) if !sends => flows.gaps.insert(number, *record),
            _ => {}
        }
    }

    /// The application at the receiving end has more in order.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "all data comes here, and mostly there is little to do")]
    fn receive(&mut self, end: EndpointId, flows: &mut Flows, now: Instant) {
        self.delivered = self.tcp.stats().octets_delivered;
        if self.tcp.readable() > 0 {
            self.read(flows, now);
        }
        let flow = flows.of(end);
        flow.note_data(self.delivered, now);
        let file = flow.file;
        if flow.amount == Some(self.delivered) {
            flow.finished = Some(now);
            flows.transfers_over += 1;
        }
        if let Some(file) = file.map(|file| &mut flows.files[file.index()]) {
            if file.stripes.complete() && file.finished.is_none() {
                file.finished = Some(now);
                flows.transfers_over += 1;
            }
        }
    }

    /// It reads what it was not known to expect.
    #[inline(never)]
    fn read(&mut self, flows: &mut Flows, now: Instant) {
        while self.tcp.readable() > 0 {
            let position = self.delivered - self.tcp.readable();
            let Some(piece) = self.tcp.read(now, usize::MAX) else { break };
            if let Some((file, connection)) = self.striped {
                let mut at = 0;
                let stripes = &mut flows.files[file.index()].stripes;
                stripes.deliver(connection, piece.len() as u64, |len, position| {
                    self.corrupted += mismatches(&piece, at, len, position);
                    at += len;
                });
            } else {
                self.corrupted += mismatches(&piece, 0, piece.len() as u64, position);
            }
        }
    }

    /// Gives the connection of a striped transfer its next chunk, if it can soon send it: as long as a chunk waits in its buffer,
    /// another connection may be faster. Returns whether it took one.
    fn feed(&mut self, files: &mut [FileState], now: Instant) -> bool {
        let Some((file, connection)) = self.striped else { return false };
        // Not before: closing in SYN-SENT gives up what is to be sent (RFC 9293, 3.10.4).
        if matches!(self.tcp.state(), State::Closed | State::SynSent) {
            return false;
        }
        let stripes = &mut files[file.index()].stripes;
        if stripes.exhausted() {
            self.feeding = false;
            self.tcp.handle(now, Input::Command(Command::Close));
            return false;
        }
        if self.tcp.unsent() >= u64::from(stripes.chunk()) {
            return false;
        }
        let Some((offset, len)) = stripes.take(connection, self.tcp.send_space()) else { return false };
        // Octets, not a synthetic range: a connection numbers its own stream, and the file's octets are to be checked at the end.
        let octets = Payload::Synthetic { offset, len }.to_bytes();
        self.tcp.handle(now, Input::Command(Command::Send(Payload::Bytes(octets))));
        true
    }
}
