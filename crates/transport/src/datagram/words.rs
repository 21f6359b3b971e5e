//! What all transports of datagrams have in common with their drivers.

use crate::segment::Payload;
use crate::tcp::{Closing, LossRecord, TimeoutRecord};
use crate::time::Duration;

/// What an application can ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Open actively.
    Connect,
    /// Wait for the other side.
    Listen,
    /// Send a datagram, unless `send_queue` of them wait already.
    Send(Payload),
    /// Send this many datagrams of `octets` octets of the synthetic stream, as the congestion control permits; `u64::MAX` never ends.
    Produce {
        /// Octets of application data in each packet.
        octets: u32,
        /// Number of packets.
        packets: u64,
    },
    /// Send what waits, then close.
    Close,
    /// Reset the connection; what was not sent yet never is.
    Abort,
}

/// What an endpoint tells its driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The connection is established.
    Connected,
    /// The connection is over; the endpoint will not speak again.
    Closed(Closing),
    /// A packet was taken for lost, or its data was reported as dropped.
    Loss(Box<LossRecord>),
    /// The retransmission timer expired.
    Timeout(Box<TimeoutRecord>),
}

/// One packet of application data that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The application data of the packet.
    pub payload: Payload,
    /// Its checksum does not hold; only with DCCP's `accept_corrupt`.
    pub corrupt: bool,
}

/// What can be told of a sender at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Congestion window in octets of data; for a rate, what leaves in a round-trip time.
    pub cwnd: u64,
    /// Slow-start threshold in octets of data.
    pub ssthresh: u64,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Octets of data of which nothing is known.
    pub pipe: u64,
}
