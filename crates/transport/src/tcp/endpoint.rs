//! The face of a connection: what a driver hands in and takes out.

use super::clock::HostClock;
use super::fast_open::FastOpening;
use super::parts::Listeners;
use super::record::{Closing, Command, Event, Input, Outstanding, Ports, Repair, State, Stats};
use super::retransmission::{Latest, RetransmissionTrigger};
use super::sides::{Agreed, Receiver, Sender};
use super::timers::Timers;
use super::Config;
use super::Parts;
use crate::congestion::Window;
use crate::path::{Path, TransmissionFate};
use crate::segment::{Integrity, Payload, Segment};
use crate::time::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::Arc;

/// One end of a TCP connection.
///
/// ```
/// use whyloss_transport::scheme::Selection;
/// use whyloss_transport::{Command, Config, Endpoint, Input, Instant, Ports};
///
/// let mut config = Config::modern();
/// let parts = Selection::scheme("newreno").build(&mut config)?;
/// let mut client = Endpoint::new(config, parts, Ports { local: 40_000, remote: 80 });
/// client.handle(Instant::ZERO, Input::Command(Command::Connect));
/// let syn = client.poll_transmit(Instant::ZERO).expect("a SYN");
/// assert_eq!(syn.options.mss, Some(1460));
/// # Ok::<(), whyloss_transport::scheme::SelectionError>(())
/// ```
// As in `Sender`, what every segment touches lies together.
#[derive(Debug)]
#[repr(C)]
pub struct Endpoint {
    pub(super) config: Arc<Config>,
    /// A segment outside the stream of the connection (a reset), to be sent first.
    pub(super) control: Option<Box<Segment>>,
    pub(super) state: State,
    /// A SYN or SYN-ACK is to be sent.
    pub(super) syn_due: bool,
    /// Whether the connection was opened actively.
    pub(super) active: bool,
    pub(super) listeners: Listeners,
    pub(super) agreed: Agreed,
    pub(super) ports: Ports,
    /// The key of the nonces.
    pub(super) nonce_key: u64,
    pub(super) rcv: Receiver,
    pub(super) timers: Timers,
    pub(super) events: VecDeque<Event>,
    pub(super) stats: Stats,
    pub(super) path: Path,
    pub(super) window: Window,
    pub(super) parts: Parts,
    pub(super) snd: Sender,
    pub(super) fast: FastOpening,
    /// The segment that was sent again last, for a driver that asks.
    pub(super) latest: Option<Latest>,
    /// Reused for lists of scoreboard indices.
    pub(super) scratch: Vec<usize>,
}

impl Endpoint {
    /// A closed endpoint. [`Command::Connect`] or [`Command::Listen`] bring it to life. Connections may share their configuration.
    pub fn new(config: impl Into<Arc<Config>>, parts: Parts, ports: Ports) -> Self {
        let config = config.into();
        let (mut snd, listeners) = (Sender::new(&config), Listeners::among(&parts));
        snd.rtt.set_margin(parts.timeout.margin());
        Self {
            window: Window::new(u32::from(config.mss), u64::from(config.mss), u64::MAX),
            listeners,
            parts,
            ports,
            nonce_key: config.nonce_key,
            config,
            state: State::Closed,
            agreed: Agreed::default(),
            snd,
            rcv: Receiver::new(listeners.arrivals),
            path: Path::default(),
            timers: Timers::default(),
            stats: Stats::default(),
            latest: None,
            events: VecDeque::new(),
            control: None,
            syn_due: false,
            active: false,
            fast: FastOpening::default(),
            scratch: Vec::new(),
        }
    }

    /// What a connection has of its own although it shares its configuration with others, before anything happens to it: it counts
    /// instead of [`Config::nonce_key`] and [`Config::clock_phase`].
    pub fn individualise(&mut self, nonce_key: u64, clock_phase: Option<Duration>) {
        self.nonce_key = nonce_key;
        self.snd.rtt.follow(HostClock::new(self.config.granularity, clock_phase));
    }

    /// Takes a segment, a command or the word of a router.
    #[inline]
    pub fn handle(&mut self, now: Instant, input: Input<'_>) {
        match input {
            Input::Segment(segment, Integrity::Intact) => self.on_segment(now, segment),
            Input::Segment(segment, integrity) => self.on_damaged(now, segment, integrity),
            Input::Command(command) => self.on_command(now, command),
            Input::PacketTooBig { seq, mtu } => self.on_packet_too_big(now, seq, mtu),
            Input::Link(hint) => self.on_link(now, hint),
        }
    }

    fn on_command(&mut self, now: Instant, command: Command) {
        match command {
            Command::Connect => self.connect(now),
            Command::ConnectFast(request) => {
                self.fast.request = Some(Box::new(request));
                self.connect(now);
            }
            Command::Listen => self.listen(),
            Command::AnswerFastOpen { accept, reply } => (self.fast.accept, self.fast.reply) = (accept, reply.map(Box::new)),
            Command::Send(payload) => self.write(&payload, false),
            Command::SendMore(payload) => self.write(&payload, true),
            Command::EndRecord => self.snd.buffer.end_record(self.snd.una),
            Command::Cork(on) => self.snd.hold.cork(on),
            Command::Produce(octets) => {
                if !self.snd.closing {
                    self.note_app_limited();
                    self.snd.buffer.produce(octets);
                    self.snd.hold.on_write(false);
                }
            }
            Command::Nagle(on) => {
                Arc::make_mut(&mut self.config).nagle = on;
                if !on {
                    self.snd.hold.release(self.snd.buffer.end());
                }
            }
            Command::SendBuffer(octets) => Arc::make_mut(&mut self.config).send_buffer = octets,
            Command::UserTimeout(limit) => Arc::make_mut(&mut self.config).user_timeout = limit,
            Command::SynRetransmissions(most) => Arc::make_mut(&mut self.config).max_syn_retransmissions = most,
            Command::StopReading => self.rcv.deaf = true,
            Command::Close => self.close(),
            Command::Abort => self.abort(now),
        }
    }

    fn write(&mut self, payload: &Payload, more: bool) {
        if !self.snd.closing {
            self.note_app_limited();
            let room = self.send_space() as usize;
            let len = payload.len().min(room);
            self.snd.buffer.append(payload.slice(0, len));
            self.snd.hold.on_write(more);
            self.snd.crowded |= !self.has_ample_send_space();
        }
    }

    /// Why the segment that [`poll_transmit`](Self::poll_transmit) has returned last was sent again; `None` if it was not.
    pub fn retransmission(&self) -> Option<RetransmissionTrigger> {
        self.latest.filter(|latest| latest.number == self.stats.segments_sent).map(|latest| latest.trigger)
    }

    /// The segment that [`poll_transmit`](Self::poll_transmit) is about to return was sent before.
    pub(super) fn note_retransmission(&mut self, trigger: RetransmissionTrigger) {
        self.latest = Some(Latest { number: self.stats.segments_sent + 1, trigger });
    }

    /// The next event for the application and its driver, in the order in which they occurred.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next piece of received data, at most `max` octets.
    pub fn read(&mut self, _now: Instant, max: usize) -> Option<Payload> {
        let piece = self.rcv.assembler.read(max)?;
        self.announce_opened_window();
        Some(piece)
    }

    /// From now on, for a driver that [reads](Self::read) whatever comes at once: data that arrives in order and is what the synthetic
    /// stream has at its place counts as read, and nothing is told of it. What differs waits to be read, with an event.
    pub fn skim(&mut self) {
        self.rcv.skims = true;
    }

    /// Octets in order that wait to be read.
    #[inline]
    pub fn readable(&self) -> u64 {
        self.rcv.assembler.unread()
    }

    /// How many octets [`Command::Send`] would take now.
    pub fn send_space(&self) -> u64 {
        if self.snd.closing {
            return 0;
        }
        let held = self.snd.buffer.end() - self.snd.una.max(self.snd.buffer.base());
        self.config.send_buffer.saturating_sub(held)
    }

    /// How many octets of the application still wait to be sent for the first time.
    pub fn unsent(&self) -> u64 {
        self.snd.buffer.end().saturating_sub(self.snd.nxt.max(self.snd.buffer.base()))
    }

    /// Half of the send buffer: enough for the application to bother.
    pub(super) fn has_ample_send_space(&self) -> bool {
        self.send_space() >= self.config.send_buffer / 2
    }

    /// Whether any of the differentiators wants to be told what really became of packets.
    pub fn wants_truth(&self) -> bool {
        self.parts.differentiators.want_truth()
    }

    /// Whether the receiver agent wants to be told when the link goes down and comes back ([`Input::Link`]).
    pub fn wants_link(&self) -> bool {
        self.parts.receiver.wants_link()
    }

    /// Tells the differentiators that a transmission did not arrive. Only a driver that sees the whole network knows; `fate.start` is
    /// an offset in the data stream here.
    pub fn reveal(&mut self, fate: &TransmissionFate) {
        let fate = TransmissionFate { start: self.snd.buffer.base() + fate.start, ..*fate };
        self.parts.differentiators.on_truth(&fate);
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// The configuration of the connection.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Local and remote port.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// The sender's view of the path, as of the last event.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Octets believed to be in the network now ([`Path::pipe`] is as of the last event).
    pub fn pipe(&self) -> u64 {
        self.snd.pipe()
    }

    /// What is outstanding, counted segment by segment.
    pub fn outstanding(&self) -> Outstanding {
        let mut count = Outstanding {
            repair: match &self.snd.recovery {
                recovery if recovery.is_open() => Repair::None,
                recovery if recovery.fast().is_some() => Repair::Fast,
                _ => Repair::AfterTimeout,
            },
            ..Outstanding::default()
        };
        for sent in self.snd.board.iter() {
            count.segments += 1;
            count.sacked += u32::from(sent.is_sacked());
            count.lost += u32::from(sent.is_lost());
            count.retransmitted += u32::from(sent.was_retransmitted() && !sent.is_sacked());
        }
        count
    }

    /// How far segments have overtaken each other at most: octets between one that was delivered late, though never sent again, and the
    /// highest one delivered before it. 0 if none was seen; RACK looks for it (RFC 8985, 6.2 step 3).
    pub fn reordering_extent(&self) -> u64 {
        self.snd.rack.reordering_extent()
    }

    /// The window scale of both sides, ours first; `None` without window scaling.
    pub fn window_scales(&self) -> Option<(u8, u8)> {
        self.rcv.shift_agreed.then_some((self.rcv.shift, self.snd.peer.shift()))
    }

    /// Whether timestamps, SACK and ECN are in use.
    pub fn agreed(&self) -> (bool, bool, bool) {
        (self.agreed.timestamps, self.agreed.sack, self.agreed.ecn)
    }

    /// The congestion window and its threshold.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// What was counted since the connection was made.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The algorithms of the connection.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Octets of our data that the peer has acknowledged cumulatively.
    pub fn octets_acknowledged(&self) -> u64 {
        self.snd.offset(self.snd.una.min(self.snd.buffer.end()))
    }

    /// Offset of our data below which no more losses will be told of: it is acknowledged, and no tail loss probe asks after it.
    pub fn losses_told_below(&self) -> u64 {
        let probed = self.snd.rack.tail_probe.as_ref().and_then(|probe| probe.lost.as_ref());
        probed.map_or(u64::MAX, |lost| self.snd.offset(lost.start)).min(self.octets_acknowledged())
    }

    /// The peer's window in octets, and the largest that it ever announced.
    pub fn peer_windows(&self) -> (u64, u64) {
        (self.snd.peer.octets(), self.snd.peer.largest())
    }

    /// Octets of the peer's data that have arrived, in order or not, and that the application has not read.
    pub fn octets_unread(&self) -> u64 {
        let assembler = &self.rcv.assembler;
        assembler.unread() + assembler.islands().iter().map(|(start, end)| end - start).sum::<u64>()
    }

    /// Octets of our data that have been sent at least once.
    pub fn octets_sent(&self) -> u64 {
        self.snd.offset(self.snd.nxt.min(self.snd.buffer.end()))
    }

    /// Octets that the application has handed over so far.
    pub fn octets_written(&self) -> u64 {
        self.snd.offset(self.snd.buffer.end())
    }

    /// Brings [`Path`] up to date.
    pub(super) fn refresh_path(&mut self, now: Instant) {
        let (path, snd) = (&mut self.path, &mut self.snd);
        path.now = now;
        if snd.rtt.take_change() {
            path.srtt = snd.rtt.srtt();
            path.rttvar = snd.rtt.rttvar();
            path.rto = snd.rtt.base_rto();
            path.latest_rtt = snd.rtt.latest();
            path.min_rtt = snd.rtt.min();
            path.max_rtt = snd.rtt.max();
        }
        path.cwnd = self.window.cwnd();
        path.ssthresh = self.window.ssthresh();
        path.flight = snd.flight();
        path.pipe = snd.pipe();
        path.mss = snd.mss;
        path.una = snd.una;
        path.nxt = snd.nxt;
    }

    /// Ends the connection in the way that `closing` says.
    pub(super) fn finish(&mut self, closing: Closing) {
        if self.state != State::Closed {
            self.state = State::Closed;
            self.timers = Timers::default();
            self.syn_due = false;
            self.rcv.ack_now = false;
            self.events.push_back(Event::Closed(closing));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What few connections need lies elsewhere. With its parts and buffers an idle one is to stay below 3 KiB.
    #[test]
    fn an_endpoint_is_small() {
        assert!(size_of::<Endpoint>() <= 2048, "{} octets", size_of::<Endpoint>());
    }
}
