//! One end of a connection: its state, commands and timers.

use super::ccid::{Permit, Sender};
use super::ccid2::Ccid2;
use super::ccid3_receiver::Receiver;
use super::ccid3_sender::Ccid3;
use super::history::{History, PacketFate, Sent};
use super::negotiation::Negotiation;
use super::received::Received;
use super::{Ccid, Config};
use crate::datagram::words::{Command, Datagram, Event, View};
use crate::path::Trigger;
use crate::segment::Payload;
use crate::tcp::{Closing, Judgement, LossRecord, Ports, Stats, TimeoutRecord};
use crate::time::{Duration, Instant};
use crate::verdict::{Cause, Verdict};
use crate::wire::dccp::{Data, Feature, Kind, Packet};
use std::collections::VecDeque;

/// What a driver hands in.
#[derive(Debug)]
pub enum Input<'a> {
    /// A packet whose header checksum holds and whose addresses and ports match this connection.
    Packet(&'a Packet, Data),
    /// A command of the application.
    Command(Command),
}

/// The states of RFC 4340, 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Listen,
    Request,
    Respond,
    PartOpen,
    Open,
    Closing,
}

/// Something that is repeated until it is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    pub at: Instant,
    pub interval: Duration,
    pub since: Instant,
}

/// One end of a DCCP connection.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) config: Config,
    pub(super) ports: Ports,
    pub(super) server: bool,
    pub(super) state: State,
    /// Sequence numbers as 64-bit positions: our first and newest one, the other side's first one, the newest that it acknowledged
    /// (`ISS`, `GSS`, `ISR`, `GAR`). The other side's newest one (`GSR`) is that of `received`.
    pub(super) iss: u64,
    pub(super) gss: u64,
    pub(super) isr: u64,
    pub(super) gar: u64,
    pub(super) negotiation: Negotiation,
    pub(super) sender: Box<dyn Sender>,
    pub(super) history: History,
    pub(super) received: Received,
    /// What CCID 3 measures of the other side's packets.
    pub(super) rate: Option<Receiver>,
    /// Data packets that wait for an acknowledgement, and when the first of them has waited long enough.
    pub(super) unacked: u32,
    pub(super) ack_at: Option<Instant>,
    pub(super) ack_now: bool,
    /// The other side sends data, so it wants reports.
    pub(super) receives_data: bool,
    /// The other side sends reports, so it wants to know which of them arrived; when that was said last.
    pub(super) ack_of_ack: bool,
    pub(super) ack_of_ack_at: Instant,
    pub(super) syncs: (Instant, u32),
    pub(super) retry: Option<Retry>,
    /// Packets to send whatever the congestion control says.
    pub(super) control: VecDeque<Kind>,
    pub(super) queue: VecDeque<Payload>,
    /// Length and number of the datagrams still to be produced.
    pub(super) produce: (u32, u64),
    pub(super) close_wanted: bool,
    /// Octets of data sent so far.
    pub(super) offset: u64,
    pub(super) arrived: VecDeque<Datagram>,
    pub(super) events: VecDeque<Event>,
    pub(super) stats: Stats,
    pub(super) refused: u64,
    episode: Option<u32>,
    /// When the latest Request left.
    pub(super) request_at: Instant,
}

/// The 64-bit position of a first sequence number: high enough that nothing before it is negative.
const BASE: u64 = 1 << 48;

impl Endpoint {
    /// A closed endpoint between `ports`.
    pub fn new(config: Config, ports: Ports) -> Self {
        let iss = BASE + (config.initial_seq & (BASE - 1));
        Self {
            server: false,
            state: State::Closed,
            iss,
            gss: iss - 1,
            isr: 0,
            gar: iss,
            negotiation: Negotiation::new(&config, false),
            sender: sender(config.ccid, &config),
            history: History::default(),
            received: Received::default(),
            rate: None,
            unacked: 0,
            ack_at: None,
            ack_now: false,
            receives_data: false,
            ack_of_ack: false,
            ack_of_ack_at: Instant::ZERO,
            syncs: (Instant::ZERO, 0),
            retry: None,
            control: VecDeque::new(),
            queue: VecDeque::new(),
            produce: (0, 0),
            close_wanted: false,
            offset: 0,
            arrived: VecDeque::new(),
            events: VecDeque::new(),
            stats: Stats::default(),
            refused: 0,
            episode: None,
            request_at: Instant::ZERO,
            config,
            ports,
        }
    }

    /// Takes in a packet or a command.
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Packet(packet, data) => self.on_packet(now, packet, data),
            Input::Command(command) => self.on_command(now, command),
        }
    }

    fn on_command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Connect if self.state == State::Closed => {
                self.state = State::Request;
                self.control.push_back(Kind::Request { service: self.config.service });
                self.retry_from(now, self.config.initial_rto);
            }
            Command::Listen if self.state == State::Closed => {
                self.state = State::Listen;
                self.server = true;
                self.negotiation = Negotiation::new(&self.config, true);
            }
            Command::Send(payload) if !self.close_wanted => {
                if self.queue.len() < self.config.send_queue {
                    self.queue.push_back(payload);
                } else {
                    self.refused += 1;
                }
            }
            Command::Produce { octets, packets } if !self.close_wanted => {
                if packets == u64::MAX {
                    self.produce = (octets, packets);
                } else {
                    let room = (self.config.send_queue as u64).saturating_sub(self.produce.1);
                    self.produce = (octets, self.produce.1 + packets.min(room));
                    self.refused += packets.saturating_sub(room);
                }
            }
            Command::Close => {
                self.close_wanted = true;
                if self.produce.1 == u64::MAX {
                    self.produce.1 = 0;
                }
                self.close_if_done(now);
            }
            Command::Abort => self.reset(2, Closing::Aborted),
            Command::Connect | Command::Listen | Command::Send(_) | Command::Produce { .. } => {}
        }
    }

    /// Asks for the end once everything has left.
    pub(super) fn close_if_done(&mut self, now: Instant) {
        if !self.close_wanted || self.has_data() {
            return;
        }
        match self.state {
            State::Open | State::PartOpen => {
                self.state = State::Closing;
                self.control.push_back(self.closing_kind());
                let interval = self.sender.srtt().map_or(self.config.initial_rto, |srtt| srtt * 2);
                self.retry_from(now, interval);
            }
            State::Closed | State::Listen | State::Request | State::Respond => self.over(Closing::Normal),
            State::Closing => {}
        }
    }

    /// RFC 4340, 8.3: a server asks the client to close, so that the client holds TIMEWAIT.
    pub(super) fn closing_kind(&self) -> Kind {
        let ack = self.ack();
        if self.server {
            Kind::CloseReq { ack }
        } else {
            Kind::Close { ack }
        }
    }

    pub(super) fn retry_from(&mut self, now: Instant, interval: Duration) {
        self.retry = Some(Retry { at: now + interval, interval, since: now });
    }

    pub(super) fn reset(&mut self, code: u8, closing: Closing) {
        if !matches!(self.state, State::Closed | State::Listen | State::Request) {
            let ack = self.ack();
            self.control.clear();
            self.control.push_back(Kind::Reset { ack, code, data: [0; 3] });
        }
        self.over(closing);
    }

    pub(super) fn over(&mut self, closing: Closing) {
        self.state = State::Closed;
        (self.retry, self.ack_at, self.ack_now) = (None, None, false);
        self.queue.clear();
        self.produce.1 = 0;
        self.events.push_back(Event::Closed(closing));
    }

    pub(super) fn established(&mut self, now: Instant) {
        let ccid = if self.negotiation.local(Feature::CCID) == 3 { Ccid::Three } else { Ccid::Two };
        if ccid != self.config.ccid {
            self.sender = sender(ccid, &self.config);
        }
        if self.negotiation.remote(Feature::CCID) == 3 {
            self.rate = Some(Receiver::new(self.received.newest() + 1));
        }
        self.ack_of_ack_at = now;
        self.events.push_back(Event::Connected);
    }

    pub(super) fn has_data(&self) -> bool {
        self.produce.1 > 0 || !self.queue.is_empty()
    }

    /// Whether data may be sent in this state.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, State::Open | State::PartOpen)
    }

    /// When [`Endpoint::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pace = if self.is_open() && self.has_data() {
            match self.sender.permit(Instant::ZERO, self.history.outstanding()) {
                Permit::At(at) => Some(at),
                Permit::Now | Permit::Later => None,
            }
        } else {
            None
        };
        let timer = if self.state == State::Closed { None } else { self.sender.timeout() };
        [self.retry.map(|retry| retry.at), self.ack_at, timer, pace].into_iter().flatten().min()
    }

    /// Lets timers expire. What they cause comes with [`Endpoint::poll_transmit`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_at = None;
            self.ack_now = true;
        }
        if let Some(retry) = self.retry.filter(|retry| retry.at <= now) {
            self.again(now, retry);
        }
        if self.state != State::Closed && self.sender.timeout().is_some_and(|at| at <= now) {
            self.expire(now);
        }
    }

    fn again(&mut self, now: Instant, retry: Retry) {
        if self.config.give_up.is_some_and(|limit| now.since(retry.since) >= limit) {
            self.reset(2, Closing::TimedOut);
            return;
        }
        match self.state {
            State::Request => self.control.push_back(Kind::Request { service: self.config.service }),
            State::PartOpen => self.ack_now = true,
            State::Closing => self.control.push_back(self.closing_kind()),
            // A server does not repeat a Response, but it does not wait for ever either.
            State::Respond => {}
            _ => {
                self.retry = None;
                return;
            }
        }
        let interval = (retry.interval * 2).min(self.config.max_rto);
        self.retry = Some(Retry { at: now + interval, interval, ..retry });
    }

    fn expire(&mut self, now: Instant) {
        let first = self.history.first().copied();
        let expiry = self.sender.on_timeout(now, self.gss);
        let verdict = Verdict { cause: Cause::Unknown, score: 0.0 };
        if let Some(first) = first {
            self.stats.timeouts += 1;
            self.events.push_back(Event::Timeout(Box::new(TimeoutRecord {
                at: now,
                consecutive: expiry.consecutive,
                offset: first.offset,
                sent_at: first.at,
                rto_ns: expiry.after.as_nanos(),
                verdict,
                collapsed: expiry.collapsed,
            })));
        }
        for (nth, sent) in self.history.abandon(expiry.abandon_before).into_iter().enumerate() {
            let judgement = if nth == 0 && expiry.collapsed { Judgement::Reduced } else { Judgement::Covered };
            self.record(now, &sent, Trigger::Timeout, verdict, judgement);
        }
    }

    /// Tells of a packet that is taken for lost.
    pub(super) fn record_fate(&mut self, now: Instant, sent: &Sent, fate: PacketFate, judgement: Judgement) {
        let verdict = |cause, score| Verdict { cause, score };
        match fate {
            // A mark is no loss.
            PacketFate::Received | PacketFate::Marked => {}
            PacketFate::Lost => self.record(now, sent, Trigger::DuplicateAcks, verdict(Cause::Congestion, 0.0), judgement),
            PacketFate::Dropped(code) if code.is_corruption() => {
                self.record(now, sent, Trigger::Report, verdict(Cause::Corruption, 1.0), judgement);
            }
            // The receiver's buffer or application, not the path.
            PacketFate::Dropped(_) => self.record(now, sent, Trigger::Report, verdict(Cause::Unknown, 0.5), judgement),
        }
    }

    fn record(&mut self, now: Instant, sent: &Sent, trigger: Trigger, verdict: Verdict, judgement: Judgement) {
        if judgement != Judgement::Covered || self.episode.is_none() {
            self.episode = Some(self.episode.map_or(0, |episode| episode + 1));
        }
        self.stats.losses += 1;
        self.events.push_back(Event::Loss(Box::new(LossRecord {
            at: now,
            offset: sent.offset,
            len: sent.len,
            transmission: 0,
            sent_at: sent.at,
            trigger,
            episode: self.episode.unwrap_or(0),
            verdict,
            shadows: Vec::new(),
            judgement,
        })));
    }

    /// The next event for the application and its driver.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Data that arrived, in the order of arrival.
    pub fn read(&mut self) -> Option<Datagram> {
        self.arrived.pop_front()
    }

    /// Offset of the data sent so far below which no more losses will be told of; `u64::MAX` if the fate of all of it is known.
    pub fn losses_told_below(&self) -> u64 {
        self.history.first().map_or(u64::MAX, |sent| sent.offset)
    }

    /// Counters. Nothing is ever retransmitted; `reductions` are congestion events, `reports_received` packets with Data Dropped options.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Datagrams of the application that found the queue full.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Window or rate, as they are now.
    pub fn view(&self) -> View {
        self.sender.view(self.history.outstanding())
    }

    /// The configuration it was made with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Whether the connection stands.
    pub const fn is_established(&self) -> bool {
        matches!(self.state, State::Open)
    }
}

fn sender(ccid: Ccid, config: &Config) -> Box<dyn Sender> {
    match ccid {
        Ccid::Two => Box::new(Ccid2::new(config)),
        Ccid::Three => Box::new(Ccid3::new(config)),
    }
}
