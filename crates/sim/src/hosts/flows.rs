//! What is known of flows while they run.

use super::gaps::Gaps;
use crate::address::{EndpointId, FileId, FlowId, SourceId, Way};
use crate::network::Protocol;
use crate::playback::Player;
use crate::record::TimeoutRow;
use crate::striped::Striped;
use crate::web::Browser;
use whyloss_transport::segment::synthetic_octet;
use whyloss_transport::tcp::{Closing, LossRecord};
use whyloss_transport::{Instant, Payload};

/// A flow while it runs. What every delivery touches stands first.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct FlowState {
    /// Octets in order at the receiver.
    pub octets: u64,
    pub first_data: Option<Instant>,
    pub last_data: Option<Instant>,
    /// Octets to deliver, if that is a number.
    pub amount: Option<u64>,
    /// The file that it carries chunks of.
    pub file: Option<FileId>,
    /// Who plays its octets at the receiver.
    pub player: Option<Box<Player>>,
    /// Who asks for pages there, and the source that gives them.
    pub browser: Option<(SourceId, Box<Browser>)>,
    pub name: String,
    pub start: Instant,
    /// When its application has no more to give.
    pub stop: Instant,
    pub protocol: Protocol,
    pub connected: Option<Instant>,
    pub finished: Option<Instant>,
    pub closing: Option<Closing>,
    pub failed: bool,
    /// Its timeouts of which nobody knows yet whether they were right, by their number among all of the run.
    pub unassessed: Vec<usize>,
}

impl FlowState {
    /// A flow of which nothing has been sent.
    pub fn new(name: String, start: Instant, protocol: Protocol) -> Self {
        Self {
            name,
            start,
            stop: Instant::MAX,
            amount: None,
            file: None,
            protocol,
            connected: None,
            first_data: None,
            last_data: None,
            finished: None,
            closing: None,
            failed: false,
            octets: 0,
            player: None,
            browser: None,
            unassessed: Vec::new(),
        }
    }

    /// So much data is in order at the receiver by `now`.
    pub fn note_data(&mut self, octets: u64, now: Instant) {
        if let Some(player) = &mut self.player {
            player.take(now.as_nanos(), octets - self.octets);
        }
        self.octets = octets;
        self.first_data = self.first_data.or(Some(now));
        self.last_data = Some(now);
    }
}

/// A striped transfer while it runs.
#[derive(Debug)]
pub(crate) struct FileState {
    pub name: String,
    pub start: Instant,
    pub octets: u64,
    pub finished: Option<Instant>,
    pub failed: bool,
    pub stripes: Striped,
}

/// All flows, and what their ends have told of them.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub all: Vec<FlowState>,
    pub files: Vec<FileState>,
    pub losses: Vec<(FlowId, LossRecord)>,
    /// Losses that came before these and were taken.
    pub losses_taken: usize,
    pub timeouts: Vec<TimeoutRow>,
    /// Timeouts that came before these and were taken.
    pub timeouts_taken: usize,
    /// What differentiators at the receivers thought of gaps.
    pub gaps: Gaps,
    /// Flows and files of a given length.
    pub transfers: usize,
    /// Those that are complete or have failed.
    pub transfers_over: usize,
}

impl Flows {
    /// The flow that an endpoint belongs to.
    #[inline]
    pub fn of(&mut self, end: EndpointId) -> &mut FlowState {
        &mut self.all[end.flow().index()]
    }

    /// A connection is over. If its data has not arrived by then, it never will.
    pub fn on_closed(&mut self, end: EndpointId, closing: Closing) {
        let flow = &mut self.all[end.flow().index()];
        if end.way() == Way::Forward || closing != Closing::Normal {
            flow.closing = flow.closing.or(Some(closing));
        }
        if closing == Closing::Normal {
            return;
        }
        if let Some(file) = flow.file.map(|file| &mut self.files[file.index()]) {
            if file.finished.is_none() && !file.failed {
                file.failed = true;
                self.transfers_over += 1;
            }
        } else if flow.amount.is_some() && flow.finished.is_none() && !flow.failed {
            flow.failed = true;
            self.transfers_over += 1;
        }
    }

    /// Names of the flows that are not over although no event is left.
    pub fn stalled(&self) -> Vec<String> {
        let over = |flow: &&FlowState| match flow.file.map(|file| &self.files[file.index()]) {
            _ if flow.protocol != Protocol::Tcp || flow.closing.is_some() => false,
            Some(file) => file.finished.is_none() && !file.failed,
            None => flow.finished.is_none(),
        };
        self.all.iter().filter(over).map(|flow| flow.name.clone()).collect()
    }
}

/// How many of the `len` octets from `at` on in `piece` are not those of the synthetic stream from `position` on.
pub(super) fn mismatches(piece: &Payload, at: u64, len: u64, position: u64) -> u64 {
    let wrong = |octet: &dyn Fn(u64) -> u8| (0..len).filter(|&i| octet(at + i) != synthetic_octet(position + i)).count() as u64;
    match piece {
        Payload::Empty => 0,
        Payload::Synthetic { offset, .. } if offset + at == position => 0,
        Payload::Synthetic { offset, .. } => wrong(&|i| synthetic_octet(offset + i)),
        Payload::Bytes(bytes) => wrong(&|i| bytes[i as usize]),
    }
}
