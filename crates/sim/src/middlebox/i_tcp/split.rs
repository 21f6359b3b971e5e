//! A connection in two halves.

use super::{Scheme, Settings};
use crate::address::EndpointId;
use crate::middlebox::agent::{Outbox, Side, Transit};
use whyloss_transport::kit::Choice;
use whyloss_transport::scheme::Selection;
use whyloss_transport::segment::{Flags, Integrity};
use whyloss_transport::tcp::{Closing, Event, State};
use whyloss_transport::{Command, Config, Endpoint, Input, Instant, Payload, Ports, Segment, Seq};

/// A connection in two halves.
#[derive(Debug)]
pub(super) struct Split {
    /// The end that opened the connection.
    opener: EndpointId,
    /// The SYN of the opener.
    syn: Segment,
    /// How the half towards the opener is made once the far end has answered.
    near_scheme: Scheme,
    /// The half towards the opener, in the name of its peer.
    near: Option<Half>,
    /// The half towards its peer, in the name of the opener.
    far: Half,
    /// The first sequence number of the far end.
    answered: Option<Seq>,
    /// When a segment of either end came last.
    pub heard: Instant,
}

/// What a connection takes beside its data.
pub(super) const FLOW_OCTETS: u64 = (size_of::<Split>() + size_of::<Half>()) as u64;

/// One half: a connection of the base station's own.
#[derive(Debug)]
struct Half {
    tcp: Endpoint,
    /// Everything that its peer sends has arrived here.
    ended: bool,
    /// It has been told to close.
    closing: bool,
    /// It is over, and not in order.
    broken: bool,
}

impl Half {
    fn new(settings: &Settings, scheme: Scheme, syn: &Segment, initial_seq: Seq, ports: Ports) -> Option<Self> {
        let name = Scheme::ALL.iter().find(|(_, other)| *other == scheme).map(|(name, _)| *name)?;
        let mut config = Config {
            initial_seq: initial_seq.0,
            // RFC 9293, 3.7.1: who says nothing takes 536.
            mss: (settings.mss as u16).min(syn.options.mss.unwrap_or(536)).max(Config::MIN_MSS),
            send_buffer: settings.buffer,
            receive_buffer: settings.buffer,
            auto_read: false,
            // The ends have made up their minds when to send.
            nagle: false,
            ..Config::modern()
        };
        let parts = Selection::scheme(name).build(&mut config).ok()?;
        Some(Self { tcp: Endpoint::new(config, parts, ports), ended: false, closing: false, broken: false })
    }

    fn take(&mut self, now: Instant, segment: &Segment) {
        self.tcp.handle(now, Input::Segment(segment, Integrity::Intact));
    }

    /// Hears what has happened to the connection.
    fn listen(&mut self) {
        while let Some(event) = self.tcp.poll_event() {
            match event {
                Event::PeerClosed => self.ended = true,
                Event::Closed(closing) => self.broken |= closing != Closing::Normal,
                _ => {}
            }
        }
    }

    fn is_opening(&self) -> bool {
        matches!(self.tcp.state(), State::SynSent | State::SynReceived | State::Listen)
    }

    fn is_over(&self) -> bool {
        self.tcp.state() == State::Closed
    }

    /// Both directions have ended.
    fn is_done(&self) -> bool {
        matches!(self.tcp.state(), State::Closed | State::TimeWait)
    }

    /// Octets in its buffers.
    fn octets(&self) -> u64 {
        self.tcp.octets_written() - self.tcp.octets_acknowledged() + self.tcp.octets_unread()
    }

    /// Hands on what has come, as far as the other half has room for it.
    fn relay(&mut self, now: Instant, to: &mut Self) {
        let mut drained = false;
        while !drained && to.tcp.send_space() > 0 {
            match self.tcp.read(now, to.tcp.send_space() as usize) {
                Some(piece) => to.tcp.handle(now, Input::Command(Command::Send(piece))),
                None => drained = true,
            }
        }
        // Not before it stands: closing earlier gives up what is to be sent (RFC 9293, 3.10.4).
        if drained && self.ended && !to.is_opening() && !to.closing {
            to.closing = true;
            to.tcp.handle(now, Input::Command(Command::Close));
        }
    }

    fn abort(&mut self, now: Instant) {
        if !self.is_over() {
            self.tcp.handle(now, Input::Command(Command::Abort));
        }
    }
}

impl Split {
    pub fn new(settings: &Settings, transit: &Transit, syn: &Segment) -> Option<Self> {
        let (near_scheme, far_scheme) = match transit.side {
            Side::Fixed => (settings.fixed, settings.mobile),
            Side::Mobile => (settings.mobile, settings.fixed),
        };
        let ports = Ports { local: syn.src_port, remote: syn.dst_port };
        let mut far = Half::new(settings, far_scheme, syn, syn.seq, ports)?;
        far.tcp.handle(transit.now, Input::Command(Command::Connect));
        let syn = Segment { payload: Payload::Empty, ..syn.clone() };
        Some(Self { opener: transit.from, syn, near_scheme, near: None, far, answered: None, heard: transit.now })
    }

    /// A segment of either end has come. Returns whether it refuses the connection before it has begun: then it is for the other end.
    pub fn take(&mut self, transit: &Transit, settings: &Settings, segment: &Segment) -> bool {
        let (now, reset) = (transit.now, segment.flags.contains(Flags::RST));
        self.heard = now;
        if transit.from == self.opener {
            if let Some(near) = &mut self.near {
                near.take(now, segment);
            }
            // It gives up before anybody has answered.
            return self.near.is_none() && reset;
        }
        self.far.take(now, segment);
        self.far.listen();
        if segment.flags.contains(Flags::SYN) && !self.far.is_over() {
            self.answered = Some(segment.seq);
        }
        if let (None, Some(seq), State::Established) = (&self.near, self.answered, self.far.tcp.state()) {
            self.answer(now, settings, seq);
        }
        self.near.is_none() && self.far.is_over()
    }

    /// Makes the half towards the opener, now that the far end has answered with `seq`.
    fn answer(&mut self, now: Instant, settings: &Settings, seq: Seq) {
        let ports = Ports { local: self.syn.dst_port, remote: self.syn.src_port };
        let Some(mut near) = Half::new(settings, self.near_scheme, &self.syn, seq, ports) else { return };
        near.tcp.handle(now, Input::Command(Command::Listen));
        near.take(now, &self.syn);
        self.near = Some(near);
    }

    /// Whether `syn` of `from` opens the next connection between the same ports, as far as both halves are concerned. If not, it is for the
    /// half on its side, which answers it or challenges it (RFC 9293, 3.10.7.4).
    pub fn gives_way_to(&self, from: EndpointId, syn: &Segment) -> bool {
        match &self.near {
            None => from == self.opener && syn.seq != self.syn.seq,
            Some(near) => {
                let [own, other] = if from == self.opener { [near, &self.far] } else { [&self.far, near] };
                other.is_done() && (own.is_over() || own.tcp.gives_way_to(syn))
            }
        }
    }

    /// Whether the opener has not been heard again since it was answered.
    pub fn is_opening(&self) -> bool {
        self.near.as_ref().is_none_or(Half::is_opening)
    }

    /// Whether both halves have nothing left to do.
    pub fn has_ended(&self) -> bool {
        self.far.is_done() && self.near.as_ref().is_some_and(Half::is_done)
    }

    /// Whether data of either end, or the word that there will be none, is acknowledged here.
    pub fn answers(&self) -> bool {
        !self.is_opening() && !self.has_ended()
    }

    pub fn on_timeout(&mut self, now: Instant) {
        for half in self.near.iter_mut().chain([&mut self.far]) {
            half.tcp.handle_timeout(now);
        }
    }

    /// A segment in the name of `from` was too big for a link, which takes IPv4 packets of `mtu` octets.
    pub fn too_big(&mut self, now: Instant, from: EndpointId, seq: Seq, mtu: Option<u16>) {
        let half = if from == self.opener { Some(&mut self.far) } else { self.near.as_mut() };
        if let Some(half) = half {
            half.tcp.handle(now, Input::PacketTooBig { seq, mtu });
        }
    }

    /// Gives the connection up: both ends are told.
    pub fn abort(&mut self, now: Instant, out: &mut Outbox) {
        for half in self.near.iter_mut().chain([&mut self.far]) {
            half.abort(now);
        }
        self.send(now, out);
    }

    /// Lets both halves do what they have to do. Returns whether the connection is over.
    pub fn pump(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.far.listen();
        if let Some(near) = &mut self.near {
            near.listen();
            near.relay(now, &mut self.far);
            self.far.relay(now, near);
            // What breaks one half breaks the other: both ends are told.
            if near.broken || self.far.broken {
                near.abort(now);
                self.far.abort(now);
            }
        }
        self.send(now, out);
        self.far.is_over() && self.near.as_ref().is_none_or(Half::is_over)
    }

    /// Sends what the halves have to send. The far end's connection stands only once the opener has been heard again: of a SYN with
    /// somebody else's address it has no more than without the base station.
    pub fn send(&mut self, now: Instant, out: &mut Outbox) {
        let heard_again = self.near.as_ref().is_none_or(|near| !near.is_opening());
        if heard_again || self.far.is_over() {
            while let Some(segment) = self.far.tcp.poll_transmit(now) {
                out.send(self.opener, segment);
            }
        }
        if let Some(near) = &mut self.near {
            while let Some(segment) = near.tcp.poll_transmit(now) {
                out.send(self.opener.peer(), segment);
            }
            near.listen();
        }
        self.far.listen();
    }

    fn halves(&self) -> impl Iterator<Item = &Half> {
        self.near.iter().chain([&self.far])
    }

    pub fn octets(&self) -> u64 {
        self.halves().map(Half::octets).sum()
    }

    pub fn due(&self) -> Option<Instant> {
        self.halves().filter_map(|half| half.tcp.poll_timeout()).min()
    }
}
