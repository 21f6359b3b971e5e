//! Which losses speak for congestion.

/// Share of what is sent that, lost in a round, is congestion whatever the delay says, and the octets lost from which on it counts.
const TOO_MANY: f64 = 0.2;
const MANY_OCTETS: u64 = 12_000;
/// What a round leaves of the counts of the rounds before.
const KEEPS: f64 = 7.0 / 8.0;
/// What an answer leaves of the count of corruptions: where they are many, a few answers in a row do not make them forgotten.
const ANSWER_KEEPS: f64 = 0.5;
/// Segments, and part of the window, that are lost beyond `TOO_MANY` of what is sent, from which on losses without explanation are hardly chance.
const RUN: u64 = 3;
const RUN_PART: u64 = 8;

/// Octets of the latest rounds.
#[derive(Debug, Default)]
pub(super) struct Losses {
    allowance: f64,
    delivered: f64,
    explained: f64,
    /// Not explained, and the queue was not full.
    stray: f64,
    /// Unexplained losses forgiven because others were explained.
    forgiven: f64,
    /// Octets lost without explanation beyond `TOO_MANY` of what was sent, since that was last none.
    excess: f64,
    round_delivered: u64,
    round_lost: u64,
    /// A loss at a full queue awaits its answer.
    due: bool,
    /// Losses by corruption lately.
    corruptions: f64,
}

impl Losses {
    pub fn new(allowance: f64) -> Self {
        Self { allowance, ..Self::default() }
    }

    pub fn on_delivered(&mut self, octets: u64) {
        self.delivered += octets as f64;
        self.excess = (self.excess - octets as f64 * TOO_MANY / (1.0 - TOO_MANY)).max(0.0);
        self.round_delivered += octets;
    }

    pub fn on_excused(&mut self, octets: u64) {
        self.explained += octets as f64;
        self.corruptions += 1.0;
    }

    /// Lost without explanation; `full`: while the queue was full.
    pub fn on_lost(&mut self, octets: u64, full: bool) {
        self.round_lost += octets;
        self.excess += octets as f64;
        if full && self.forgiven + octets as f64 > self.explained * self.allowance {
            self.due = true;
            return;
        }
        if full {
            self.forgiven += octets as f64;
        } else {
            self.stray += octets as f64;
        }
        self.corruptions += 1.0;
    }

    /// Whether a window of `cwnd` octets has to answer now; `open`: what was answered before is repaired. A round has as much as the window: of what
    /// it has told so far a burst of errors may be most.
    pub fn congested(&self, open: bool, cwnd: u64) -> bool {
        let round = (self.round_lost + self.round_delivered).max(cwnd);
        let many = self.round_lost > MANY_OCTETS && self.round_lost as f64 > TOO_MANY * round as f64;
        open && (self.due || many)
    }

    /// Many were lost in a row in a window of `cwnd` octets of segments of `mss`.
    pub fn in_a_row(&self, cwnd: u64, mss: u64) -> bool {
        self.excess >= (RUN * mss).max(cwnd / RUN_PART) as f64
    }

    /// One of those that have to be answered came while the queue was full.
    pub fn came_at_full_queue(&self) -> bool {
        self.due
    }

    pub fn answered(&mut self) {
        (self.due, self.round_lost, self.excess) = (false, 0, 0.0);
        self.corruptions *= ANSWER_KEEPS;
    }

    pub fn age(&mut self) {
        for count in [&mut self.delivered, &mut self.explained, &mut self.stray, &mut self.forgiven, &mut self.corruptions] {
            *count *= KEEPS;
        }
        (self.round_delivered, self.round_lost) = (0, 0);
    }

    /// Octets corrupted for each that is delivered.
    pub fn corrupted_share(&self) -> f64 {
        ((self.explained + self.stray) / self.delivered.max(1.0)).min(1.0)
    }

    /// Of these only what was explained: the part that is certain.
    pub fn explained_share(&self) -> f64 {
        (self.explained / self.delivered.max(1.0)).min(1.0)
    }

    /// Corruption has struck more often than congestion lately.
    pub fn corruption_prevails(&self) -> bool {
        self.corruptions > 1.0
    }
}
