//! The vocabulary between a connection and its driver.

use crate::arrival::LinkHint;
use crate::path::Trigger;
use crate::segment::{FastOpen, Integrity, Payload, Segment};
use crate::seq::Seq;
use crate::time::{Duration, Instant};
use crate::timeout::TimeoutOutcome;
use crate::verdict::Verdict;

/// What is left free of a segment for options, so that nothing on the path that adds some has to drop a SYN with data.
const RESERVED: u32 = 40;

/// Port numbers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Port of our end.
    pub local: u16,
    /// Port of the peer's end.
    pub remote: u16,
}

/// What a driver hands in.
#[derive(Debug)]
pub enum Input<'a> {
    /// A segment whose addresses and ports match this connection.
    Segment(&'a Segment, Integrity),
    /// A command of the application.
    Command(Command),
    /// A router could not pass on a packet of this connection: it does not fit the next link (RFC 1191, RFC 8201).
    PacketTooBig {
        /// The sequence number in the packet that the router quotes.
        seq: Seq,
        /// The largest packet that the link takes, IP header included, in octets, if the router says so.
        mtu: Option<u16>,
    },
    /// The driver knows something of the link that this end stands at. Only [some](super::Endpoint::wants_link) want to be told.
    Link(LinkHint),
}

/// What an application can ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Open actively: send a SYN.
    Connect,
    /// Open actively with TCP Fast Open: the SYN carries what has been given to [`Command::Send`] before, up to the request's room.
    ConnectFast(FastOpenRequest),
    /// Wait for a SYN.
    Listen,
    /// To a connection that waits for a SYN, right before that: whether the data of this SYN is taken and ours may leave before the handshake
    /// has ended, and what the SYN-ACK carries (RFC 7413, 4.2).
    AnswerFastOpen {
        /// Take the data, and tell of the connection at once.
        accept: bool,
        /// The option of the SYN-ACK.
        reply: Option<FastOpen>,
    },
    /// Append data to the send buffer. What does not fit is refused: [`Endpoint::send_space`](super::Endpoint::send_space) says how much does.
    Send(Payload),
    /// As [`Command::Send`], with more to follow soon: a segment that this leaves less than full waits until more is written, something
    /// is acknowledged, or a retransmission timeout has passed (RFC 9293, 3.7.4 and 3.8.6.2.1), and is not pushed (Linux's `MSG_MORE`).
    SendMore(Payload),
    /// What was written so far ends a record: its last segment takes nothing of what follows, not even when it is sent again, and is
    /// pushed (Linux's `MSG_EOR`).
    EndRecord,
    /// Hold back segments that are less than full, from now on or no more; none waits longer than a retransmission timeout when nothing
    /// is outstanding (Linux's `TCP_CORK`).
    Cork(bool),
    /// Append this many octets of the synthetic stream; `u64::MAX` never ends. Not bounded by the send buffer.
    Produce(u64),
    /// Switch Nagle's algorithm (RFC 9293, 3.7.4) on or off from now on. Off lets everything go that waits for more, too.
    Nagle(bool),
    /// Change the size of the send buffer, in octets. What is in it stays.
    SendBuffer(u64),
    /// Change [`Config::user_timeout`](super::Config::user_timeout).
    UserTimeout(Option<Duration>),
    /// Change [`Config::max_syn_retransmissions`](super::Config::max_syn_retransmissions).
    SynRetransmissions(Option<u32>),
    /// The application reads no more: data that comes from now on is answered by a reset, so that the peer learns that it is lost (RFC 9293,
    /// 3.6.1), with the number that the peer expects (3.5.2), and the connection is over.
    StopReading,
    /// No more data to send: FIN once everything is sent.
    Close,
    /// Reset the connection; what was not sent yet never is.
    Abort,
}

/// What an endpoint tells its driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The connection is established.
    Connected,
    /// Data can be read ([`Endpoint::read`](super::Endpoint::read)). Not told with [`Config::auto_read`](super::Config::auto_read).
    Readable,
    /// At least half of the send buffer is free again, after a [`Command::Send`] had left less.
    Writable,
    /// The peer has sent everything (its FIN is in order).
    PeerClosed,
    /// Everything that was to be sent has been acknowledged, the FIN included.
    SendFinished,
    /// The connection is over; the endpoint will not speak again.
    Closed(Closing),
    /// A segment was taken for lost.
    Loss(Box<LossRecord>),
    /// The retransmission timer expired.
    Timeout(Box<TimeoutRecord>),
    /// What became of all the timeouts that were told since the last such event.
    TimeoutAssessed(TimeoutOutcome),
    /// An earlier reduction was undone.
    Undone,
    /// Segments are missing before one that arrived. Told only if differentiators listen at the receiver.
    Gap(Box<GapRecord>),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Both sides closed in order.
    Normal,
    /// The application aborted it.
    Aborted,
    /// The peer reset it.
    Reset,
    /// The peer refused it.
    Refused,
    /// The peer did not answer for too long.
    TimedOut,
}

/// A loss with all opinions on it.
#[derive(Clone, Debug, PartialEq)]
pub struct LossRecord {
    /// When it was noticed.
    pub at: Instant,
    /// Offset in the data stream of the first octet (0 is the first octet of data).
    pub offset: u64,
    /// Octets of data.
    pub len: u32,
    /// Which transmission is taken for lost: 0 for the first.
    pub transmission: u32,
    /// When that transmission left. With `offset` it names the transmission uniquely.
    pub sent_at: Instant,
    /// Why it is taken for lost.
    pub trigger: Trigger,
    /// Number of the recovery episode, from 0.
    pub episode: u32,
    /// The verdict of the ruling differentiator.
    pub verdict: Verdict,
    /// The verdicts of the differentiators in shadow, in the order of [`Differentiators::shadows`](super::Differentiators::shadows).
    pub shadows: Vec<Verdict>,
    /// What the loss did to the window.
    pub judgement: Judgement,
}

/// What a loss did to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The window was reduced because of it.
    Reduced,
    /// It started an episode that kept (or moderately limited) the window.
    Kept,
    /// It belongs to an episode that had already been responded to.
    Covered,
}

/// A gap in what arrived, with the opinions of the differentiators at the receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct GapRecord {
    /// When the segment beyond it arrived.
    pub at: Instant,
    /// Offset in the data stream of the first missing octet (0 is the first octet of data).
    pub offset: u64,
    /// Number of missing octets.
    pub len: u64,
    /// The verdicts, in the order of [`Parts::receiver_shadows`](super::Parts::receiver_shadows).
    pub verdicts: Vec<Verdict>,
}

/// An expired retransmission timer.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeoutRecord {
    /// When the timer expired.
    pub at: Instant,
    /// Expiries in a row: 1 for the first.
    pub consecutive: u32,
    /// Offset in the data stream of the first outstanding octet.
    pub offset: u64,
    /// When the first outstanding segment last left. With `offset` it names the transmission uniquely.
    pub sent_at: Instant,
    /// The timeout that expired, with back-off, in nanoseconds.
    pub rto_ns: u64,
    /// The verdict of the ruling differentiator.
    pub verdict: Verdict,
    /// Whether the window collapsed.
    pub collapsed: bool,
}

/// What the sender has outstanding. Segments, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    /// Segments outstanding in all.
    pub segments: u32,
    /// Received, by selective acknowledgement.
    pub sacked: u32,
    /// Taken for lost, whether sent again or not, and not received since.
    pub lost: u32,
    /// Sent again and not known to be received.
    pub retransmitted: u32,
    /// What is being repaired.
    pub repair: Repair,
}

/// What the sender is repairing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Nothing is being repaired.
    #[default]
    None,
    /// Losses in fast recovery.
    Fast,
    /// What a timeout has called in question.
    AfterTimeout,
}

/// The states of RFC 9293, 3.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum State {
    #[default]
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
}

/// Counters of a connection; they only grow. Octets and segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Segments sent, of any kind.
    pub segments_sent: u64,
    /// Segments received, of any kind, damaged ones included.
    pub segments_received: u64,
    /// Segments with data sent, retransmissions included.
    pub data_segments_sent: u64,
    /// Octets of data sent, retransmissions included.
    pub data_octets_sent: u64,
    /// Segments of ours that are known to have arrived, the FIN included. Several that were acknowledged in pieces count as often.
    pub segments_delivered: u64,
    /// Octets of data that arrived in order and were handed over or can be read.
    pub octets_delivered: u64,
    /// Segments with data sent again.
    pub retransmissions: u64,
    /// Octets of data retransmitted.
    pub retransmitted_octets: u64,
    /// Fast retransmits: episodes that duplicate acknowledgements, SACK, RACK or a report began.
    pub fast_retransmits: u64,
    /// Of those, how many reduced the window.
    pub reductions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Timeouts found spurious: repairs that were taken back, however often the timer had expired by then.
    pub spurious_timeouts: u64,
    /// Timeouts found to be losses without congestion, likewise.
    pub forgiven_timeouts: u64,
    /// Reductions of the window that were undone.
    pub undos: u64,
    /// Tail loss probes sent.
    pub tail_probes: u64,
    /// Segments taken for lost.
    pub losses: u64,
    /// Reductions of the window because of ECN.
    pub ecn_reductions: u64,
    /// Segments received with a checksum that does not hold.
    pub damaged_received: u64,
    /// Reports of damage sent to the peer.
    pub reports_sent: u64,
    /// Reports of damage received from the peer.
    pub reports_received: u64,
    /// Selective negative acknowledgements (SNACK options) sent to the peer, each with one hole or several.
    pub snacks_sent: u64,
    /// Holes that these asked for. One that is asked for again counts again.
    pub snack_holes_sent: u64,
    /// Selective negative acknowledgements received from the peer, or from a base station in its name, in segments that counted.
    pub snacks_received: u64,
    /// Retransmissions because they asked for it.
    pub snack_retransmissions: u64,
    /// Segments with data that brought nothing new.
    pub duplicates_received: u64,
    /// Challenge ACKs sent (RFC 5961).
    pub challenge_acks: u64,
    /// Duplicate acknowledgements received (RFC 5681, 2).
    pub duplicate_acks: u64,
    /// How often segments were made smaller because the path does not carry larger ones.
    pub mtu_reductions: u64,
    /// Probe cycles begun (TCP-Probing).
    pub probe_cycles: u64,
    /// Larger segments sent to find out whether they arrive.
    pub mtu_probes: u64,
}

/// An active opening with Fast Open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastOpenRequest {
    /// What the SYN carries: a cookie, the request for one, or nothing.
    pub option: Option<FastOpen>,
    /// The most data that goes in the SYN, in octets. 0 if the peer has given no cookie.
    pub room: u32,
}

impl FastOpenRequest {
    /// The data that a SYN carries to a peer whose last SYN-ACK announced `peer_mss`, with segments of ours of up to `mss` octets.
    pub fn room(mss: u16, peer_mss: Option<u16>) -> u32 {
        u32::from(peer_mss.unwrap_or(536).min(mss)).saturating_sub(RESERVED)
    }
}

/// What a SYN-ACK said in answer to an opening with Fast Open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenAnswer {
    /// The option that it carried.
    pub option: Option<FastOpen>,
    /// The segment size that it announced, in octets.
    pub mss: Option<u16>,
    /// Whether the SYN had been sent again before.
    pub retried: bool,
    /// Whether it acknowledged data; `None` if the SYN carried none.
    pub took_data: Option<bool>,
}
