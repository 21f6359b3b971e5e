//! What delay tells of the queue.

use crate::estimate::{Extremes, QueueUsage, Recent};
use crate::path::Ack;
use crate::time::Duration;

/// Samples around a moment. Of those around a loss the longest counts: what left just before and just after it.
const AROUND: usize = 8;

/// Weight of the latest loss in the mean of places.
const PLACE_GAIN: f64 = 0.125;
/// The queue counts as full from half way between its mean and its longest delay.
const FULL: f64 = 0.5;

/// What is known of others in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    /// Nothing: what speaks for congestion has to be clear.
    Unseen,
    /// A loss at a full queue may have been their doing.
    Suspected,
    /// They keep it long.
    Seen,
}

/// The least delay known, the least of the round, and how delays of the latest rounds lie.
#[derive(Debug)]
pub(super) struct Queue {
    base: QueueUsage,
    round: Option<Duration>,
    /// Each slot holds a round.
    lately: Recent<15>,
    /// Each slot holds a sample.
    around: Recent<AROUND>,
    /// Where the queue was at the latest losses: 0 at its mean, 1 at its longest.
    places: f64,
}

impl Queue {
    /// The least delay is forgotten after `history`.
    pub fn new(history: Duration) -> Self {
        Self {
            base: QueueUsage::new(Extremes::Windowed(history)),
            round: None,
            lately: Recent::default(),
            around: Recent::default(),
            places: 1.0,
        }
    }

    pub fn on_ack(&mut self, ack: &Ack) {
        let Some(delay) = self.base.on_ack(ack) else { return };
        self.round = Some(self.round.map_or(delay, |least| least.min(delay)));
        self.lately.insert(delay.as_nanos());
        self.around.insert(delay.as_nanos());
        self.around.advance();
    }

    /// The retransmission timer has expired: the latest delays were those of a window that is gone.
    pub fn on_timeout(&mut self) {
        self.round = None;
        self.around = Recent::default();
    }

    /// The least delay, if there is one.
    pub fn base(&self) -> Option<Duration> {
        (self.base.samples() > 0).then(|| self.base.min())
    }

    /// A round is over; returns the least delay in it.
    pub fn end_round(&mut self) -> Option<Duration> {
        self.round.take()
    }

    /// Forgets the oldest of the latest delays.
    pub fn age(&mut self) {
        self.lately.advance();
    }

    /// The least of the latest delays, once there are enough to tell.
    pub fn standing(&self) -> Option<Duration> {
        let around = self.around.extent();
        around.min().filter(|_| around.count() >= AROUND as u64).map(Duration::from_nanos)
    }

    /// A segment is lost. Whether that speaks for congestion: the queue is about as long as it ever was lately, and unless `others` are suspected
    /// there it was so when other segments were lost. Where they were seen, it is enough that it is longer than its mean. Segments take `unit` at
    /// the rate delivered; a delay of two of them is no queue.
    pub fn on_lost(&mut self, unit: Duration, others: Others) -> bool {
        let lately = self.lately.extent();
        let (Some(base), now) = (self.base(), self.around.extent().max()) else { return true };
        let (mean, max) = (lately.mean().max(base.as_nanos()), lately.max());
        // Where between the mean and the longest delay: a loss that has nothing to do with the queue lies at the mean, on average.
        let place = if max > mean { ((now as f64 - mean as f64) / (max - mean) as f64).clamp(-1.0, 1.0) } else { 0.0 };
        self.places += (place - self.places) * PLACE_GAIN;
        let full = match others {
            Others::Unseen => place > FULL && self.places > FULL,
            Others::Suspected => place > FULL,
            Others::Seen => place > 0.0,
        };
        full && now > base.as_nanos() + 2 * unit.as_nanos()
    }
}
