//! The checksum receiver: reports segments that arrive damaged (Garcia & Brunstrom 2004).
//!
//! The IP header of a damaged segment is intact, so it belongs to this connection, and a queue did not drop it. Which data it carried
//! is another matter: its sequence number may be what was hit. The receiver therefore names a position only if it knows it
//! independently of the damaged header, and otherwise reports the event alone:
//!
//! 1. *Sequence confirmed*: the number equals one that the receiver expects: the end of the previous arrival, the frontier of what
//!    it has, or a segment boundary in a known hole.
//! 2. *Order inferred*: between the previous intact arrival and the next, exactly as much is missing as damaged segments came in.
//! 3. *Count only*: the cumulative number of damaged segments goes up.
//!
//! The paper says that the receiver notifies the sender by an option; the rules, the layout and the repetition are our reading.

use super::{Arrival, Damaged, ReceiveView, ReceiverAgent};
use crate::budget::Budget;
use crate::kit::{Build, Notes, Part};
use crate::segment::{CorruptionReport, Ecn, Integrity, PositionBasis, Report, ReportedPosition};
use crate::seq::Seq;
use crate::settings;
use crate::time::{Duration, Instant};
use std::collections::VecDeque;

pub(super) const PART: Part<dyn ReceiverAgent> = Part {
    name: "checksum",
    summary: "Reports segments that arrive with a broken TCP checksum under an intact IP header.",
    reference: "Garcia & Brunstrom 2004",
    notes: Notes::NONE,
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Report only inside the window, with a confirmed position and the segment's nonce, and at a limited rate.
        hardened: bool = false;
        /// The time over which the hardened form limits its reports, in seconds; about a round trip.
        interval: f64 = 0.2, 0.001..=60.0;
    }
}

impl Build<dyn ReceiverAgent> for Settings {
    fn build(self) -> Box<dyn ReceiverAgent> {
        let interval = Duration::from_secs_f64(self.interval);
        Box::new(Checksum::new(self.hardened, interval))
    }
}

/// Damaged segments that wait for the next intact arrival to be placed.
const MAX_UNPLACED: usize = 8;
/// Reports that are repeated until their data has arrived.
const MAX_PENDING: usize = 32;
/// A segment that is not longer can be an acknowledgement without data, whatever its damaged data offset says: 60 octets is the
/// longest TCP header.
const LONGEST_HEADER: usize = 60;

/// Reports damaged segments at once, and again on every acknowledgement until their data has arrived.
///
/// The hardened form reacts only to segments inside the receive window whose position is confirmed and that carry a nonce, echoes that nonce,
/// and limits its rate. A sender that checks the echo then excuses a loss only if a packet with that very data reached the receiver.
/// Over IPv6, whose header has no checksum, nothing vouches for the addresses of a damaged packet: use the hardened form there.
#[derive(Debug)]
pub struct Checksum {
    hardened: bool,
    interval: Duration,
    budget: Budget,
    rate_limited: bool,
    count: u8,
    /// Where a segment that directly follows the previous arrival begins.
    expected: Option<u64>,
    unplaced: Vec<Unplaced>,
    /// Placed reports, the next to be sent first.
    pending: VecDeque<Pending>,
    vague: Option<Vague>,
    /// A step of the count that names no position has not been told yet. It goes alone: beside a position it would look like damage
    /// to that.
    vague_is_news: bool,
}

/// A damaged segment whose position is not known.
#[derive(Clone, Copy, Debug)]
struct Unplaced {
    start: u64,
    echo: Option<u32>,
    congested: bool,
}

/// Reported events without a position.
#[derive(Clone, Copy, Debug)]
struct Vague {
    events: u32,
    congested: bool,
    /// They are repeated until everything before this position has arrived.
    until: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    start: u64,
    len: u16,
    basis: PositionBasis,
    echo: Option<u32>,
    congested: bool,
}

impl Checksum {
    /// The paper's receiver, or the hardened one. `interval` is the time over which the hardened form limits its reports; about a
    /// round trip.
    pub fn new(hardened: bool, interval: Duration) -> Self {
        Self {
            hardened,
            interval,
            budget: Budget::new(),
            rate_limited: false,
            count: 0,
            expected: None,
            unplaced: Vec::new(),
            pending: VecDeque::new(),
            vague: None,
            vague_is_news: false,
        }
    }

    /// Counts a damaged segment, if the rate limit lets it be reported.
    fn admit(&mut self, now: Instant) -> bool {
        if self.hardened && !self.budget.spend(now, self.interval) {
            self.rate_limited = true;
            return false;
        }
        self.rate_limited = false;
        self.count = self.count.wrapping_add(1);
        true
    }

    fn place(&mut self, report: Pending) {
        // An echo is only replaced by itself, so that a forged copy cannot displace the genuine one.
        self.pending.retain(|other| (other.start, other.echo) != (report.start, report.echo));
        self.pending.push_front(report);
        self.pending.truncate(MAX_PENDING);
    }

    /// The room from `start` to the next data that has arrived, if the receiver expects a segment to begin there.
    fn expects(&self, view: &ReceiveView, start: u64) -> Option<u64> {
        let room = missing(view, start)?;
        if self.expected == Some(start) || boundary(view, start) {
            Some(room)
        } else {
            None
        }
    }

    /// Places what can be placed now that an intact segment has arrived behind the unplaced ones.
    fn place_by(&mut self, arrival: &Arrival) {
        let unplaced = std::mem::take(&mut self.unplaced);
        let view = &arrival.view;
        let full = u64::from(view.full_segment);
        let gap = self.expected.and_then(|expected| arrival.start.checked_sub(expected));
        let exact = !self.hardened && full > 0 && gap == Some(unplaced.len() as u64 * full);
        for (index, segment) in (0..).zip(unplaced) {
            let Unplaced { start, echo, congested } = segment;
            let inferred = self.expected.filter(|_| exact).map_or(start, |expected| expected + index * full);
            let basis = if inferred == start { PositionBasis::SeqConfirmed } else { PositionBasis::OrderInferred };
            let Some(room) = missing(view, inferred) else { continue };
            if !exact && !boundary(view, start) {
                continue;
            }
            if self.hardened && !self.admit(view.now) {
                continue;
            }
            self.vague = self.vague.map(|vague| Vague { events: vague.events - 1, ..vague }).filter(|vague| vague.events > 0);
            self.place(Pending { start: inferred, len: length(full.min(room)), basis, echo, congested });
        }
    }
}

impl ReceiverAgent for Checksum {
    fn wants_reports(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        if self.hardened {
            self.budget.earn(arrival.view.now, self.interval, 1);
        }
        if !self.unplaced.is_empty() {
            self.place_by(arrival);
        }
        self.expected = Some(arrival.start + u64::from(arrival.len));
    }

    fn on_damaged(&mut self, damaged: &Damaged) -> bool {
        let Damaged { view, segment, integrity } = damaged;
        let header_trusted = *integrity == Integrity::PayloadDamaged;
        let may_be_data = if header_trusted { !segment.payload.is_empty() } else { segment.len() > LONGEST_HEADER };
        if !view.reports_negotiated || !may_be_data {
            return false;
        }
        let start = segment.seq.near(view.next);
        let congested = segment.ecn == Ecn::CongestionExperienced;
        let echo = if self.hardened { segment.options.any_nonce() } else { None };
        if self.hardened && (echo.is_none() || !in_window(view, start)) {
            return false;
        }
        if arrived(view, start) {
            return false; // a duplicate: nothing is lost with it
        }

        let room = if header_trusted { missing(view, start) } else { self.expects(view, start) };
        if let Some(room) = room {
            if !self.admit(view.now) {
                return false;
            }
            let len = if header_trusted { segment.payload.len() as u64 } else { u64::from(view.full_segment) };
            let report = Pending { start, len: length(len.min(room)), basis: PositionBasis::SeqConfirmed, echo, congested };
            self.place(report);
            self.expected = Some(start + u64::from(report.len));
            return true;
        }

        if self.unplaced.len() < MAX_UNPLACED {
            self.unplaced.push(Unplaced { start, echo, congested });
        }
        if self.hardened || !self.admit(view.now) {
            return false;
        }
        let events = self.vague.map_or(0, |vague| vague.events) + 1;
        self.vague = Some(Vague { events, congested, until: frontier(view) + 1 });
        self.vague_is_news = true;
        true
    }

    fn report(&mut self, view: &ReceiveView) -> Option<Report> {
        if !view.reports_negotiated {
            return None;
        }
        self.pending.retain(|report| !arrived(view, report.start));
        self.vague = self.vague.filter(|vague| view.next < vague.until);
        let report = CorruptionReport { count: self.count, rate_limited: self.rate_limited, ..CorruptionReport::default() };
        let alone = std::mem::take(&mut self.vague_is_news) && self.vague.is_some();
        if let Some(pending) = if alone { None } else { self.pending.pop_front() } {
            self.pending.push_back(pending);
            let Pending { start, len, basis, echo, congested } = pending;
            let position = Some(ReportedPosition { seq: Seq::from(start), len, basis });
            Some(Report::Corruption(CorruptionReport { congestion_experienced: congested, position, echo, ..report }))
        } else {
            let congestion_experienced = self.vague?.congested;
            Some(Report::Corruption(CorruptionReport { congestion_experienced, ..report }))
        }
    }
}

fn in_window(view: &ReceiveView, position: u64) -> bool {
    (view.next..view.window_end).contains(&position)
}

/// Whether the octet at `position` has arrived: within the window or at most one window before it.
fn arrived(view: &ReceiveView, position: u64) -> bool {
    let window = view.window_end.saturating_sub(view.next);
    let before = position < view.next && view.next - position <= window.max(u64::from(u16::MAX));
    before || position >= view.next && view.has(position, position + 1)
}

/// The room from `position` to the next octet that has arrived or to the end of the window; `None` if `position` is not missing.
fn missing(view: &ReceiveView, position: u64) -> Option<u64> {
    if !in_window(view, position) || arrived(view, position) {
        return None;
    }
    let end = view.hole(position).map_or(view.window_end, |(_, end)| end);
    Some(end - position)
}

/// The end of everything that has arrived.
fn frontier(view: &ReceiveView) -> u64 {
    view.islands.last().map_or(view.next, |(_, end)| *end)
}

/// Whether a segment begins at `position` as far as what has arrived tells: at the frontier, or a whole number of full segments after
/// the left edge of a hole.
fn boundary(view: &ReceiveView, position: u64) -> bool {
    if position == frontier(view) {
        return true;
    }
    let full = u64::from(view.full_segment.max(1));
    let begins = |(edge, _)| position == edge || (view.full_segment > 0 && (position - edge) % full == 0);
    view.hole(position).is_some_and(begins)
}

fn length(octets: u64) -> u16 {
    octets.min(u64::from(u16::MAX)) as u16
}
