//! The receiver's word: a loss is corruption if the receiver reports that the segment arrived damaged (Garcia & Brunstrom 2004).
//!
//! The paper leaves the sender's side open; what follows is our reading. Each step of a report's cumulative count is evidence of one
//! damaged segment and excuses at most one loss: the segment that the report names, or, if it names none, the first lost segment
//! whose damaged copy can have reached the receiver when the report was sent. Which of the losses of an episode that was cannot be
//! told where there are more losses than reports: in one reading ([`Credits`]) none of them is excused then.

use super::{Cause, LossDifferentiator, Verdict};
use crate::budget::Budget;
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Loss, Path, Reported as Event};
use crate::segment::{PositionBasis, Report};
use crate::time::{Duration, Instant};
use crate::{choices, settings};
use std::collections::{BTreeMap, VecDeque};

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "reported",
    summary: "Takes a loss for corruption if the receiver reports that the segment arrived damaged.",
    reference: "Garcia & Brunstrom 2004",
    notes: Notes {
        idea: "A damaged packet still says whose it was. A receiver that looks instead of discarding can tell the sender, and a packet that a queue \
               dropped can never be reported.",
        formula: "corruption if a report names the segment, or if an unspent report without a position fits the time at which it was sent (with \
                  `credits = episode` only as long as no loss of the episode is without a report); else congestion",
        threshold: "",
        fails: "Links that discard damaged frames themselves (Ethernet, 802.11, LTE) leave nothing to report; damage in the IP header or in the ports \
                goes unreported, about 2 to 4 % of damaged 1500-octet packets.",
        errata: "The paper gives neither the option's layout nor the sender's side; both are our reading (see the module's documentation and \
                 `docs/wire-formats.md`). A report without a position may excuse the wrong loss. `credits = episode` gives the doubt to congestion \
                 once an episode has more losses than reports; without SACK that is known only from the first loss on that is left over, as \
                 losses come to light one a round trip.",
    },
    ..Part::of::<Trust>()
};

/// Segments over which the share of corruption is measured.
const AUDITED: u32 = 32;
/// Count steps without a position that are kept.
const MAX_CREDITS: usize = 32;
/// The interval of the rate limit before the first round-trip time sample.
const FIRST_INTERVAL: Duration = Duration::from_millis(200);

settings! {
    /// How much the receiver is believed. A report has to echo the nonce of the transmission that it names because nobody can echo what a queue dropped;
    /// wrong echoes may be forgiven because damage can hit the nonce itself.
    pub struct Trust {
        /// The weakest evidence of a reported position that counts.
        pub evidence: Evidence;
        /// What a report without a position excuses: "each" one loss that fits it, "episode" the same unless an episode has more losses than reports.
        pub credits: Credits;
        /// Believe only reports that echo the nonce of the segment they name.
        pub nonce: bool = false;
        /// Wrong echoes that are forgiven before the receiver is not believed any more.
        pub wrong_echoes: u32 = 0, 0..=1_000_000;
        /// Excuse at most a quarter of a round trip's segments, or 4, in a round trip.
        pub rate_limit: bool = false;
        /// Take every loss for congestion while more than this share of the last 32 segments was reported damaged.
        pub p_wl_max: f64 = 1.0, 0.0..=1.0;
        /// Damaged retransmissions of one segment that are excused.
        pub max_rtx: u32 = 5, 0..=1_000_000;
    }
}

impl Build<dyn LossDifferentiator> for Trust {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Reported::new(self))
    }
}

choices! {
    /// How a reported position has to be known.
    pub enum Evidence {
        /// Not at all.
        CountOnly = "count-only",
        /// Inferred from the order of arrivals or better.
        OrderInferred = "order-inferred",
        /// Confirmed by the sequence number.
        SeqConfirmed = "seq-confirmed",
    }
}

choices! {
    /// What a report without a position excuses.
    pub enum Credits {
        /// One loss that fits it.
        Each = "each",
        /// One loss that fits it, unless a loss of the same episode is left without a report.
        Episode = "episode",
    }
}

impl From<PositionBasis> for Evidence {
    fn from(basis: PositionBasis) -> Self {
        match basis {
            PositionBasis::SeqConfirmed => Self::SeqConfirmed,
            PositionBasis::OrderInferred => Self::OrderInferred,
        }
    }
}

/// Believes the receiver as far as [`Trust`] goes. The score is 1 for a loss that is excused and 0 for any other.
#[derive(Debug)]
pub struct Reported {
    trust: Trust,
    /// The cumulative count of the last report.
    count: u8,
    /// Steps of the count that no position has taken: when the segments that they may stand for left.
    credits: VecDeque<(Instant, Instant)>,
    /// The episode under way has more losses than reports, where that matters.
    short: bool,
    /// Start of a segment → its transmissions that arrived damaged.
    damaged: BTreeMap<u64, Vec<u32>>,
    wrong_echoes: u32,
    budget: Budget,
    audit: Audit,
}

impl Reported {
    /// Believes as far as `trust` goes.
    pub fn new(trust: Trust) -> Self {
        Self {
            trust,
            count: 0,
            credits: VecDeque::new(),
            short: false,
            damaged: BTreeMap::new(),
            wrong_echoes: 0,
            budget: Budget::new(),
            audit: Audit::default(),
        }
    }

    fn distrusted(&self) -> bool {
        self.wrong_echoes > self.trust.wrong_echoes
    }

    /// Turns the steps of the count since the last report into credits; returns how many there were.
    fn take_count(&mut self, count: u8, path: &Path) -> u8 {
        let steps = count.wrapping_sub(self.count);
        if steps > u8::MAX / 2 {
            return 0; // an acknowledgement that was overtaken
        }
        self.count = count;
        let (min, max) = (path.min_rtt.unwrap_or(Duration::ZERO), path.max_rtt.unwrap_or(Duration::MAX));
        let sent = (path.now - max - min, path.now - min);
        for _ in 0..steps {
            self.credits.push_back(sent);
        }
        while self.credits.len() > MAX_CREDITS {
            self.credits.pop_front();
        }
        steps
    }

    /// Whether `transmission` of the segment at `start` may be excused.
    fn admit(&mut self, start: u64, transmission: u32, path: &Path) -> bool {
        let excused = self.damaged.get(&start).map_or(0, |known| known.iter().filter(|t| **t > 0).count());
        let within = transmission == 0 || excused < self.trust.max_rtx as usize;
        within && (!self.trust.rate_limit || self.budget.spend(path.now, path.srtt.unwrap_or(FIRST_INTERVAL)))
    }
}

impl LossDifferentiator for Reported {
    fn wants_reports(&self) -> bool {
        true
    }

    fn wants_nonce(&self) -> bool {
        self.trust.nonce
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.acked > 0 && !self.damaged.is_empty() {
            self.damaged = self.damaged.split_off(&ack.path.una);
        }
        let segments = self.audit.delivered(ack.delivered, ack.path.mss);
        if self.trust.rate_limit {
            self.budget.earn(ack.path.now, ack.path.srtt.unwrap_or(FIRST_INTERVAL), segments);
        }
    }

    fn on_report(&mut self, event: &Event) {
        if self.distrusted() {
            return;
        }
        let Report::Corruption(report) = event.report else { return };
        let steps = self.take_count(report.count, event.path);
        if report.congestion_experienced {
            if steps > 0 {
                self.credits.pop_back(); // congestion wins over corruption
            }
            return;
        }
        let Some(position) = report.position else { return };
        let Some(segment) = event.segment else {
            if steps > 0 {
                self.credits.pop_back(); // what it names is not outstanding any more
            }
            return;
        };
        if Evidence::from(position.basis) < self.trust.evidence {
            return;
        }

        let mut transmission = segment.transmission;
        if self.trust.nonce {
            let (Some(echo), Some(nonce)) = (report.echo, segment.nonce) else { return };
            if echo != nonce {
                self.wrong_echoes += 1;
                if self.distrusted() {
                    self.damaged.clear();
                    self.credits.clear();
                }
                return;
            }
        } else if transmission > 0 && event.path.now.since(segment.sent_at) < event.path.min_rtt.unwrap_or_default() / 2 {
            // Too early for the latest transmission: a repetition that concerns the one before. Half a round trip, because a coarse
            // clock rounds the smallest sample up.
            transmission -= 1;
        }
        let known = self.damaged.get(&segment.start);
        // Without a nonce only a new step of the count tells new damage to a segment from a repeated report of the old.
        let repeated = !self.trust.nonce && (self.credits.is_empty() || (steps == 0 && known.is_some()));
        if repeated || known.is_some_and(|known| known.contains(&transmission)) {
            return;
        }
        if steps > 0 {
            self.credits.pop_back();
        } else {
            self.credits.pop_front(); // an earlier step has found its position
        }
        if self.admit(segment.start, transmission, event.path) {
            self.damaged.entry(segment.start).or_default().push(transmission);
            self.audit.damaged();
        }
    }

    fn on_found(&mut self, losses: &[Loss]) {
        if self.trust.credits == Credits::Each {
            return;
        }
        let mut left = self.credits.clone();
        let uncovered = losses.iter().filter(|loss| !self.is_named(loss)).any(|loss| take_fitting(&mut left, loss).is_none());
        self.short = uncovered || self.short && !losses.first().is_some_and(|loss| loss.first_of_episode);
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let excused =
            !self.distrusted() && self.audit.share() <= self.trust.p_wl_max && (self.is_named(loss) || self.redeem(loss));
        if excused {
            Verdict { cause: Cause::Corruption, score: 1.0 }
        } else {
            Verdict { cause: Cause::Congestion, score: 0.0 }
        }
    }
}

/// Takes the oldest of `credits` out that may stand for `loss`.
fn take_fitting(credits: &mut VecDeque<(Instant, Instant)>, loss: &Loss) -> Option<(Instant, Instant)> {
    let index = credits.iter().position(|(oldest, newest)| (*oldest..=*newest).contains(&loss.sent_at))?;
    credits.remove(index)
}

impl Reported {
    /// A report named this very transmission.
    fn is_named(&self, loss: &Loss) -> bool {
        self.damaged.get(&loss.start).is_some_and(|known| known.contains(&loss.transmission))
    }

    /// Excuses a loss by a step of the count that named no position.
    fn redeem(&mut self, loss: &Loss) -> bool {
        if self.trust.nonce || self.trust.evidence > Evidence::CountOnly || self.short {
            return false;
        }
        let mut left = self.credits.clone();
        if take_fitting(&mut left, loss).is_none() || !self.admit(loss.start, loss.transmission, loss.path) {
            return false;
        }
        self.credits = left;
        self.damaged.entry(loss.start).or_default().push(loss.transmission);
        self.audit.damaged();
        true
    }
}

/// Which of the last segments were damaged: one bit a segment, the latest lowest.
#[derive(Debug, Default)]
struct Audit {
    history: u32,
    octets: u64,
}

impl Audit {
    /// Takes note of delivered octets; returns how many segments they complete.
    fn delivered(&mut self, octets: u64, mss: u32) -> u32 {
        let mss = u64::from(mss.max(1));
        self.octets += octets;
        let segments = (self.octets / mss).min(u64::from(u32::MAX)) as u32;
        self.octets %= mss;
        self.history = self.history.checked_shl(segments).unwrap_or(0);
        segments
    }

    fn damaged(&mut self) {
        self.history = self.history << 1 | 1;
    }

    /// The share of damaged segments; those before the beginning count as delivered.
    fn share(&self) -> f64 {
        f64::from(self.history.count_ones()) / f64::from(AUDITED)
    }
}
