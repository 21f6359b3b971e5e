//! The two halves of a connection: what it sends and what it receives.

use super::arrivals::Arrivals;
use super::assembler::Assembler;
use super::bulk::Echoes;
use super::hold::Hold;
use super::pacer::Pacer;
use super::peer_window::PeerWindow;
use super::pmtu::PathMtu;
use super::probing::Probing;
use super::quick_acks::QuickAcks;
use super::rack::Rack;
use super::ramp::Ramp;
use super::recovery::Recovery;
use super::report_numbers::ReportNumbers;
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::send_buffer::SendBuffer;
use super::snacks::Asked;
use super::undo::Undo;
use super::waves::Waves;
use super::window_use::WindowUse;
use super::Config;
use crate::arrival::ReceiveView;
use crate::estimate::DeliveryRate;
use crate::time::{Duration, Instant};

/// Positions start one wrap above zero, so that a position a little below the first one is still a number.
pub(super) const fn first_position(seq: u32) -> u64 {
    (1 << 32) | seq as u64
}

/// What both sides agreed upon.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Agreed {
    pub timestamps: bool,
    pub sack: bool,
    pub ecn: bool,
    pub reports: bool,
    /// The peer can read words, and is told that we can.
    pub words: bool,
    /// Octets of a block in lists of holes: the data of a full segment as both sides know it, which leaves only timestamps out of the smaller MSS.
    pub snack_block: Option<u32>,
}

/// What an endpoint keeps as a sender. What every segment touches comes first and lies together: of many connections none is in a cache when its
/// turn comes.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Sender {
    /// `SND.UNA`, as a position in the stream.
    pub una: u64,
    /// `SND.NXT`, as a position in the stream.
    pub nxt: u64,
    pub peer: PeerWindow,
    /// When the last segment of the peer arrived; after a timeout not before its segment was sent.
    pub quiet_since: Instant,
    pub persist: Persist,
    /// Payload of a full segment: the smaller MSS less the options on every segment.
    pub mss: u32,
    pub due: Due,
    /// The application will send no more.
    pub closing: bool,
    pub fin_sent: bool,
    /// The application has filled more than half of the buffer and waits for an event that there is room again.
    pub crowded: bool,
    pub finished_told: bool,
    pub recovery: Recovery,
    /// Of a sender whose congestion control goes by a model of the path.
    pub rates: Option<Box<DeliveryRate>>,
    /// Of a sender that goes by a rate.
    pub pacer: Option<Box<Pacer>>,
    pub probing: Probing,
    pub board: Scoreboard,
    pub buffer: SendBuffer,
    /// How much of the congestion window was in use lately.
    pub used: WindowUse,
    pub undo: Option<Box<Undo>>,
    /// When data last left, for restart after idling.
    pub last_sent: Instant,
    /// Timeouts in a row without progress.
    pub expiries: u32,
    /// The smaller of both sides' MSS.
    pub smss: u32,
    /// What the application has said of what it will write.
    pub hold: Hold,
    pub echoes: Echoes,
    /// Where the last segment ended that was less than full.
    pub small_until: u64,
    pub rtt: RttEstimator,
    /// What is known of the packets that the path carries.
    pub path_mtu: PathMtu,
    pub rack: Rack,
    pub asked: Asked,
    pub iss: u64,
    /// A window that comes back.
    pub ramp: Option<Ramp>,
    /// How often the SYN was retransmitted.
    pub syn_expiries: u32,
    pub ecn: EcnResponse,
    pub reports: KnownReports,
    /// Of a sender whose segments carry waves.
    pub waves: Option<Box<Waves>>,
}

/// What leaves at the next opportunity.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// The first segment again, whatever the window says.
    pub head: bool,
    /// A tail loss probe (RFC 8985, 7).
    pub tail_probe: bool,
    /// A probe of a closed window.
    pub window_probe: bool,
    /// A keep-alive probe (RFC 9293, 3.8.4).
    pub keep_alive: bool,
}

impl Due {
    /// Whether there is anything.
    pub const fn any(&self) -> bool {
        self.head | self.tail_probe | self.window_probe | self.keep_alive
    }
}

/// The peer has closed its window.
#[derive(Debug, Default)]
pub(super) struct Persist {
    /// Probes in a row.
    pub probes: u32,
    /// Of these, how many since the last acknowledgement.
    pub unanswered: u32,
    /// The octet that probes the window is outstanding.
    pub outstanding: bool,
}

/// The response to marks of the network (RFC 3168, 6.1.2).
#[derive(Debug)]
pub(super) struct EcnResponse {
    /// The window has been reduced for data below this position.
    pub reduced_until: u64,
    /// A mark was the reason.
    pub marked: bool,
    /// Set CWR on the next new data.
    pub cwr_due: bool,
}

/// Which of the receiver's reports have arrived.
#[derive(Debug, Default)]
pub(super) struct KnownReports {
    /// The count of the last one on a damaged segment.
    pub last: Option<u8>,
    /// Those on intact headers.
    pub of_headers: ReportNumbers,
}

impl Sender {
    pub fn new(config: &Config) -> Self {
        let iss = first_position(config.initial_seq);
        Self {
            iss,
            una: iss,
            nxt: iss,
            peer: PeerWindow::default(),
            smss: u32::from(config.mss),
            mss: u32::from(config.mss),
            path_mtu: PathMtu::default(),
            buffer: SendBuffer::new(iss + 1),
            hold: Hold::default(),
            board: Scoreboard::default(),
            rtt: RttEstimator::new(config),
            closing: false,
            fin_sent: false,
            recovery: Recovery::new(iss),
            echoes: Echoes::default(),
            due: Due::default(),
            asked: Asked::default(),
            rack: Rack::default(),
            undo: None,
            ramp: None,
            expiries: 0,
            syn_expiries: 0,
            persist: Persist::default(),
            probing: Probing::default(),
            quiet_since: Instant::ZERO,
            last_sent: Instant::ZERO,
            ecn: EcnResponse { reduced_until: iss, marked: false, cwr_due: false },
            reports: KnownReports::default(),
            waves: None,
            pacer: None,
            rates: None,
            crowded: false,
            finished_told: false,
            used: WindowUse::default(),
            small_until: 0,
        }
    }

    /// `SND.NXT - SND.UNA`.
    pub const fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// Octets beyond `SND.NXT` that the peer takes.
    pub const fn room_at_peer(&self) -> u64 {
        (self.una + self.peer.octets()).saturating_sub(self.nxt)
    }

    /// Octets believed to be in the network.
    pub const fn pipe(&self) -> u64 {
        match self.recovery.counted() {
            Some(octets) => octets,
            None => self.flight() - self.board.absent(),
        }
    }

    /// Octets of data that wait to be sent for the first time.
    pub const fn unsent(&self) -> u64 {
        self.buffer.end().saturating_sub(self.nxt)
    }

    /// Of these, what the next segment may have: it does not reach beyond the end of a record.
    #[inline]
    pub fn unsent_of_record(&self) -> u64 {
        self.buffer.record_end(self.nxt).map_or(self.unsent(), |end| end - self.nxt)
    }

    /// Offset in the data stream of a position.
    pub const fn offset(&self, position: u64) -> u64 {
        position.saturating_sub(self.buffer.base())
    }

    /// Whether our FIN has been acknowledged.
    pub const fn fin_acked(&self) -> bool {
        self.fin_sent && self.una > self.buffer.end()
    }
}

/// What an endpoint keeps as a receiver, likewise ordered.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Receiver {
    /// The next position that is expected, a received FIN included.
    pub next: u64,
    /// Right edge of the largest window that was announced.
    pub announced: u64,
    pub ack_now: bool,
    /// A damaged segment has asked for an acknowledgement.
    pub damage_seen: bool,
    /// Set ECE on acknowledgements until CWR comes.
    pub echo_ce: bool,
    pub fin_received: bool,
    /// The application reads no more.
    pub deaf: bool,
    /// It reads at once, and need not be shown what it expects.
    pub skims: bool,
    /// Window scale that we announced (RFC 7323).
    pub shift: u8,
    /// Both sides scale their windows.
    pub shift_agreed: bool,
    /// Acknowledgements that leave at once behind the one that is due.
    pub copies: u32,
    /// Payload of a full segment of the peer, as far as what has come tells.
    pub full_segment: u32,
    /// Payload of the latest segment.
    pub last_segment: u32,
    /// `TS.Recent` (RFC 7323) and when it was set.
    pub ts_recent: u32,
    pub ts_recent_at: Instant,
    /// `Last.ACK.sent` (RFC 7323, 4.3), as a position in the stream.
    pub last_ack: u64,
    /// Octets received in order and not yet acknowledged.
    pub unacked: u64,
    pub irs: u64,
    /// Order and times of arrivals, where a part listens to them.
    pub arrivals: Option<Box<Arrivals>>,
    /// Where the peer's FIN stands, once seen.
    pub fin_at: Option<u64>,
    pub assembler: Assembler,
    /// The duplicate to report by D-SACK on the next acknowledgement.
    pub dsack: Option<(u64, u64)>,
    pub quick_acks: QuickAcks,
    /// Challenge ACKs in the current window of time, and its start.
    pub challenges: (u32, Instant),
}

impl Receiver {
    /// `listened`: a part wants to be told of arrivals.
    pub fn new(listened: bool) -> Self {
        Self { arrivals: listened.then(Box::default), ..Self::default() }
    }

    /// Right edge of the window that could be announced now.
    pub fn window_end(&self, buffer: u64) -> u64 {
        (self.next + buffer.saturating_sub(self.assembler.unread())).max(self.announced)
    }

    pub fn view(&self, now: Instant, agreed: Agreed, srtt: Option<Duration>) -> ReceiveView<'_> {
        ReceiveView {
            now,
            first: self.irs + 1,
            next: self.next,
            window_end: self.announced,
            islands: self.assembler.islands(),
            full_segment: self.full_segment,
            reports_negotiated: agreed.reports,
            snack_block: agreed.snack_block,
            end: self.fin_at,
            srtt,
        }
    }
}
