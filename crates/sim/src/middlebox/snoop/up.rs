//! Data on its way from the mobile host: its holes are named on acknowledgements, as `eln` does, and the mobile host is asked to fill them if
//! both ends have agreed to SNACKs.
//!
//! The link keeps the order of what crosses it, so that a hole is a loss as soon as it is seen, and is asked for at once: in a segment of the
//! base station's own, in the name of the fixed host, and again when a timer expires. The fixed host sees the same holes half a round trip
//! later and sends a duplicate for each segment beyond them. So many end here; those beyond them, and those of holes that asking did not
//! fill, go on.

use super::down::DOUBLINGS;
use super::Settings;
use crate::middlebox::explicit_loss::Stream;
use crate::middlebox::hop::repeats;
use whyloss_transport::segment::{Flags, Options, RareOptions, SackBlocks, Snack};
use whyloss_transport::wire::options::MAX_LEN;
use whyloss_transport::{Duration, Instant, Payload, Segment};

/// Data on its way from the mobile host.
#[derive(Debug)]
pub(super) struct Up {
    /// What has not come over the link.
    pub holes: Stream,
    /// The most data of a segment: what SNACKs count in.
    block: u32,
    /// What is known of the fixed host, once SNACKs are agreed to.
    asking: Option<Asking>,
}

/// Holes that the mobile host is asked to fill.
#[derive(Debug)]
struct Asking {
    /// The fixed host's latest segment, without its data.
    latest: Box<Segment>,
    /// When they were asked for last, and how often since one of them was filled.
    asked: Instant,
    times: u32,
    /// The end of what was beyond the last hole when it was seen: holes lie below it.
    below: u64,
    /// Duplicates of the fixed host still to be expected: one for each segment that has passed beyond an open hole.
    expected: u64,
}

/// Memory for what is known of the fixed host.
pub(super) const ASKING_OCTETS: u64 = size_of::<Segment>() as u64;

impl Up {
    pub const fn new(holes: Stream) -> Self {
        Self { holes, block: 0, asking: None }
    }

    /// Pieces that are remembered, and their octets.
    pub fn weight(&self) -> (u64, u64) {
        let (pieces, octets) = self.holes.weight();
        (pieces, octets + self.asking.as_ref().map_or(0, |_| ASKING_OCTETS))
    }

    /// Data of the mobile host has come over the link. Returns what is to be asked of it.
    pub fn arrives(&mut self, now: Instant, segment: &Segment, most: usize) -> Option<Segment> {
        let end = self.holes.end();
        let start = segment.seq.near(end);
        self.holes.note_arrival(segment, most);
        self.block = self.block.max(segment.payload.len() as u32);
        let asking = self.asking.as_mut()?;
        if self.holes.ranges().next().is_some_and(|(first, _)| first < start) {
            asking.expected += 1;
        }
        if start < end && asking.times > 0 {
            // It was asked for, or would not have come again.
            (asking.asked, asking.times) = (now, 1);
        }
        if start <= end {
            return None;
        }
        asking.below = self.holes.end();
        (asking.asked, asking.times) = (now, asking.times.max(1));
        asking.ask(&[(end, start)], self.holes.end(), self.block, false)
    }

    /// A segment of the fixed host passes. Returns whether it ends here: it repeats what is being asked for already.
    pub fn hears(&mut self, now: Instant, segment: &mut Segment, settings: &Settings, agreed: bool) -> bool {
        let end = self.holes.end();
        let mut hidden = false;
        if let Some(asking) = &mut self.asking {
            let una = segment.ack.near(end);
            let known = asking.latest.ack.near(end);
            if una >= asking.below {
                asking.expected = 0;
            }
            hidden = asking.expected > 0
                && asking.times <= settings.repairs
                && repeats(segment, Some((known, asking.latest.window)), end);
            asking.expected -= u64::from(hidden);
            if una >= known {
                *asking.latest = told(segment);
            }
        } else if agreed && !segment.flags.contains(Flags::SYN) {
            let latest = Box::new(told(segment));
            self.asking = Some(Asking { latest, asked: now, times: 0, below: 0, expected: 0 });
        }
        self.holes.name_missing(segment);
        hidden
    }

    /// When the holes are to be asked for again.
    pub fn due(&self, settings: &Settings) -> Option<Instant> {
        let asking = self.asking.as_ref().filter(|asking| (1..=settings.timeouts).contains(&asking.times))?;
        self.holes.ranges().next()?;
        let timeout = Duration::from_nanos((settings.min_timeout_ms * 1e6) as u64);
        Some(asking.asked + timeout * (1 << (asking.times - 1).min(DOUBLINGS)))
    }

    /// Asks again for all holes.
    pub fn expires(&mut self, now: Instant) -> Option<Segment> {
        let asking = self.asking.as_mut()?;
        (asking.asked, asking.times) = (now, asking.times + 1);
        let holes: Vec<_> = self.holes.ranges().collect();
        asking.ask(&holes, self.holes.end(), self.block, true)
    }
}

impl Asking {
    /// An acknowledgement in the fixed host's name that asks for these holes; all before `end` that lies in none of them has come.
    fn ask(&self, holes: &[(u64, u64)], end: u64, block: u32, bits: bool) -> Option<Segment> {
        let ack = self.latest.ack.near(end);
        let begins = std::iter::once(ack).chain(holes.iter().map(|hole| hole.1));
        let ends = holes.iter().map(|hole| hole.0).chain([end]);
        let islands: Vec<_> = begins.zip(ends).filter(|(from, to)| from < to).collect();
        let room = MAX_LEN.saturating_sub(self.latest.options.packed_len());
        let snacks = Snack::several(ack, &islands, block, room, bits);
        let rare = Some(Box::new(RareOptions { snacks, ..RareOptions::default() }));
        let asks = rare.as_ref().is_some_and(|rare| !rare.snacks.is_empty());
        let options = Options { rare, ..self.latest.options.clone() };
        asks.then(|| Segment { options, ..(*self.latest).clone() })
    }
}

/// What a segment of the fixed host says beside its data, in one that may be sent again.
fn told(segment: &Segment) -> Segment {
    let mut latest = Segment { payload: Payload::Empty, flags: Flags::ACK, ..segment.clone() };
    latest.seq = segment.seq + segment.seq_len();
    latest.options.sack = SackBlocks::default();
    latest.options.rare = None;
    latest.options.nonce = None;
    latest
}
