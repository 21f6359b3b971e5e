//! What a congestion control of DCCP decides.

use super::history::{PacketFate, Sent};
use crate::datagram::words::View;
use crate::tcp::Judgement;
use crate::time::{Duration, Instant};
use crate::wire::dccp::Opt;
use std::fmt;

/// When the next data packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    Now,
    /// Not before this time.
    At(Instant),
    /// Not before something arrives or a timer expires.
    Later,
}

/// What an acknowledgement tells a CCID at the sender.
#[derive(Debug)]
pub(super) struct Feedback<'a> {
    pub now: Instant,
    /// Its own sequence number: a gap says that acknowledgements were lost.
    pub seq: u64,
    /// The packet that it acknowledges.
    pub ack: u64,
    /// The newest packet that was sent.
    pub newest: u64,
    /// Packets whose fate it brought to light, in the order in which they were sent.
    pub fates: &'a [(Sent, PacketFate)],
    pub rtt: Option<Duration>,
    pub options: &'a [Opt],
    /// Packets of which nothing is known yet.
    pub outstanding: usize,
}

/// What a timer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiry {
    /// The time that it was set to.
    pub after: Duration,
    /// Expiries in a row.
    pub consecutive: u32,
    /// What left up to this time is to be given up.
    pub abandon_before: Instant,
    /// Whether the window collapsed.
    pub collapsed: bool,
}

/// The sending side of a half-connection.
pub(super) trait Sender: fmt::Debug + Send {
    fn permit(&self, now: Instant, outstanding: usize) -> Permit;

    /// The handshake gave a round-trip time.
    fn prime(&mut self, now: Instant, rtt: Duration);

    /// A data packet left; `more` says whether another one waits.
    fn on_sent(&mut self, now: Instant, sent: &Sent, outstanding: usize, more: bool);

    /// `CCVal` of the packet that leaves now.
    fn ccval(&mut self, _now: Instant) -> u8 {
        0
    }

    /// An acknowledgement arrived. Says of each fate that is not [`PacketFate::Received`] what it did to the window, in their order.
    fn on_feedback(&mut self, feedback: &Feedback) -> Vec<Judgement>;

    /// When the timer expires.
    fn timeout(&self) -> Option<Instant>;

    fn on_timeout(&mut self, now: Instant, newest: u64) -> Expiry;

    /// The Ack Ratio that the other side should use.
    fn ack_ratio(&self) -> Option<u16> {
        None
    }

    fn srtt(&self) -> Option<Duration>;

    fn view(&self, outstanding: usize) -> View;
}
