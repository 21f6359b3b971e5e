//! What a sender can know of its path when a segment is lost, as numbers without units.
//!
//! Everything is relative to the connection itself (round trips, windows, the range of delays seen), so that what was learned on one path
//! can hold on another. An acknowledgement costs a few tens of nanoseconds, nothing is allocated.

use crate::path::{Ack, Loss, Trigger};
use crate::seq::Seq;
use crate::time::{Duration, Instant};

/// Number of features in a vector.
pub const COUNT: usize = 33;

/// The features in their order, as the trained model knows them.
pub const NAMES: [&str; COUNT] = [
    "usage_before",
    "usage_before_recent",
    "usage_after",
    "rise_over_loss",
    "relative_queue",
    "backlog",
    "variation",
    "trend",
    "rank",
    "rate_share",
    "window_share",
    "since_loss",
    "since_loss_windows",
    "loss_rate",
    "losses_in_event",
    "congestion_echo",
    "gap_ratio",
    "rounds_since_loss",
    "usual_usage_at_loss",
    "usage_above_usual",
    "spread_of_usage_at_loss",
    "jitter",
    "share_of_rises",
    "peak_usage",
    "window",
    "slow_start",
    "timeout",
    "retransmission",
    "gap_over_shortest",
    "queue_over_usual",
    "slots_at_hole",
    "sharing",
    "holes",
];

/// What a feature says before anything was measured. No measured value is negative where this one stands for "none".
const NONE: f64 = -1.0;

/// Samples that are remembered: those around a loss are among the latest.
const SAMPLES: usize = 64;

/// How long an extreme of the recent past counts at least; at most twice as long.
const RECENT: Duration = Duration::from_secs(5);

/// A round-trip time sample and when it was taken.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    sent_at: u64,
    delay: f64,
}

/// The smallest and the largest value of two consecutive stretches of time.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    begin: Instant,
    now: (f64, f64),
    before: (f64, f64),
}

impl Extremes {
    const EMPTY: (f64, f64) = (f64::INFINITY, 0.0);

    fn note(&mut self, now: Instant, value: f64) {
        if now.since(self.begin) >= RECENT {
            (self.begin, self.before, self.now) = (now, self.now, Self::EMPTY);
        }
        self.now = (self.now.0.min(value), self.now.1.max(value));
    }

    fn range(&self) -> (f64, f64) {
        (self.now.0.min(self.before.0), self.now.1.max(self.before.1))
    }
}

impl Default for Extremes {
    fn default() -> Self {
        Self { begin: Instant::ZERO, now: Self::EMPTY, before: Self::EMPTY }
    }
}

/// Follows a connection and describes its losses. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Features {
    samples: [Sample; SAMPLES],
    count: u64,
    shortest: f64,
    longest: f64,
    recent: Extremes,
    jitter: f64,
    rises: f64,
    /// Largest delay of this round and of the one before.
    peak: (f64, f64),
    round_end: u64,
    round_begin: (Instant, u64),
    rate: f64,
    best_rate: f64,
    last_ack: Option<Instant>,
    gap: f64,
    mean_gap: f64,
    shortest_gap: f64,
    /// Time a delivered segment, in the mean and at the shortest, over acknowledgements outside of loss episodes.
    spacing: f64,
    shortest_spacing: f64,
    /// What the latest hole left open in the row of arrivals, in spacings: see [`Features::on_hole`].
    slots_at_hole: f64,
    /// Left edge of the latest island of data beyond a hole, and how many there were in this episode.
    island: Option<Seq>,
    holes: u32,
    echo_at: Option<Instant>,
    delivered: f64,
    /// Per segment, over the last few hundred.
    loss_rate: f64,
    event: Event,
    usual: Usual,
}

/// The losses that were noticed together.
#[derive(Clone, Copy, Debug, Default)]
struct Event {
    at: Option<Instant>,
    losses: u32,
    /// What had been delivered at the event before, in segments, and when that was.
    since: f64,
    previous: Option<Instant>,
    began_delivered: f64,
}

/// How things usually stood when losses happened: exponentially weighted over loss events.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    events: u32,
    usage: f64,
    spread: f64,
    window: f64,
    queue: f64,
}

impl Default for Features {
    fn default() -> Self {
        Self {
            samples: [Sample::default(); SAMPLES],
            count: 0,
            shortest: f64::INFINITY,
            longest: 0.0,
            recent: Extremes::default(),
            jitter: 0.0,
            rises: 0.5,
            peak: (0.0, 0.0),
            round_end: 0,
            round_begin: (Instant::ZERO, 0),
            rate: 0.0,
            best_rate: 0.0,
            last_ack: None,
            gap: 0.0,
            mean_gap: 0.0,
            shortest_gap: f64::INFINITY,
            spacing: 0.0,
            shortest_spacing: f64::INFINITY,
            slots_at_hole: NONE,
            island: None,
            holes: 0,
            echo_at: None,
            delivered: 0.0,
            loss_rate: 0.0,
            event: Event::default(),
            usual: Usual::default(),
        }
    }
}

/// Nanoseconds as a number to calculate with.
fn nanos(span: Duration) -> f64 {
    span.as_nanos() as f64
}

/// Where `value` lies between `low` and `high`; 0 if they are one.
fn between(value: f64, (low, high): (f64, f64)) -> f64 {
    if high > low {
        ((value - low) / (high - low)).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

impl Features {
    /// Takes note of an acknowledgement.
    pub fn on_ack(&mut self, ack: &Ack) {
        let now = ack.path.now;
        if ack.ece {
            self.echo_at = Some(now);
        }
        let segments = ack.delivered as f64 / f64::from(ack.path.mss.max(1));
        self.delivered += segments;
        self.loss_rate *= 1.0 - (segments / 256.0).min(1.0);
        if let Some(last) = self.last_ack.replace(now) {
            self.gap = nanos(now.since(last));
            self.mean_gap = if self.mean_gap > 0.0 { self.mean_gap + (self.gap - self.mean_gap) / 16.0 } else { self.gap };
            if self.gap > 0.0 {
                self.shortest_gap = self.shortest_gap.min(self.gap);
            }
            self.on_spacing(ack, segments);
        }
        if let Some(delay) = ack.delay {
            let sent_at = now.as_nanos().saturating_sub(delay.as_nanos());
            self.on_delay(now, sent_at, nanos(delay));
        }
        if ack.path.una >= self.round_end {
            self.end_round(ack);
        }
    }

    /// Acknowledgements come as the data arrived. A packet that was lost after its place in the slowest link has left that place empty:
    /// the gap is longer by one slot than what was delivered in it. One that a full queue refused has left none (Biaz & Vaidya 1999).
    fn on_spacing(&mut self, ack: &Ack, segments: f64) {
        let island = ack.options.sack.as_slice().first().map(|block| block.0);
        let without_sack = ack.duplicate && ack.options.sack.is_empty();
        if island.is_none() && !without_sack {
            (self.island, self.holes) = (None, 0);
            if segments >= 0.5 && self.gap > 0.0 {
                let spacing = self.gap / segments;
                self.spacing = if self.spacing > 0.0 { self.spacing + (spacing - self.spacing) / 16.0 } else { spacing };
                self.shortest_spacing = self.shortest_spacing.min(spacing);
            }
            return;
        }
        let new = if without_sack { self.holes == 0 } else { island != self.island && ack.delivered > 0 };
        if new {
            self.holes += 1;
            if self.spacing > 0.0 {
                // Without SACK a duplicate acknowledgement stands for one segment.
                let arrived = if without_sack { 1.0 } else { segments };
                self.slots_at_hole = (self.gap / self.spacing - arrived).clamp(-4.0, 16.0);
            }
        }
        self.island = island;
    }

    fn on_delay(&mut self, now: Instant, sent_at: u64, delay: f64) {
        if self.count > 0 {
            let last = self.sample(0).delay;
            self.jitter += ((delay - last).abs() - self.jitter) / 16.0;
            if delay != last {
                let rose = if delay > last { 1.0 } else { 0.0 };
                self.rises += (rose - self.rises) / 30.0;
            }
        }
        self.samples[self.count as usize % SAMPLES] = Sample { sent_at, delay };
        self.count += 1;
        self.shortest = self.shortest.min(delay);
        self.longest = self.longest.max(delay);
        self.recent.note(now, delay);
        self.peak.0 = self.peak.0.max(delay);
    }

    fn end_round(&mut self, ack: &Ack) {
        let (begin, delivered) = self.round_begin;
        let span = nanos(ack.path.now.since(begin));
        if span > 0.0 && delivered > 0 {
            self.rate = (ack.path.delivered - delivered) as f64 / span;
            self.best_rate = self.best_rate.max(self.rate);
        }
        self.round_begin = (ack.path.now, ack.path.delivered);
        self.round_end = ack.path.nxt;
        self.peak = (0.0, self.peak.0);
    }

    /// The sample `age` samples ago; there must have been that many.
    fn sample(&self, age: u64) -> Sample {
        self.samples[(self.count - 1 - age) as usize % SAMPLES]
    }

    /// Delays of the segments that were sent just before and just after `sent_at`, as far as they are known.
    fn neighbours(&self, sent_at: u64) -> (f64, f64) {
        let mut after = self.sample(0).delay;
        for age in 0..self.count.min(SAMPLES as u64) {
            let sample = self.sample(age);
            if sample.sent_at < sent_at {
                return (sample.delay, after);
            }
            after = sample.delay;
        }
        (after, after)
    }

    /// Mean of `count` samples from `age` on, as far as there are any.
    fn mean(&self, age: u64, count: u64) -> f64 {
        let end = (age + count).min(self.count).min(SAMPLES as u64);
        if end <= age {
            return self.sample(0).delay;
        }
        (age..end).map(|age| self.sample(age).delay).sum::<f64>() / (end - age) as f64
    }

    /// Describes a loss, and remembers it for the next ones. `None` before the first delay sample.
    pub fn observe(&mut self, loss: &Loss) -> Option<[f32; COUNT]> {
        let path = loss.path;
        let new_event = self.event.at != Some(path.now) && loss.first_of_episode || self.event.at.is_none();
        if new_event {
            self.event = Event {
                at: Some(path.now),
                losses: 0,
                since: self.delivered - self.event.began_delivered,
                previous: self.event.at,
                began_delivered: self.delivered,
            };
        }
        self.event.losses += 1;
        self.loss_rate += 1.0 / 256.0;
        if self.count == 0 {
            return None;
        }
        let (before, after) = self.neighbours(loss.sent_at.as_nanos());
        let all = (self.shortest, self.longest);
        let usage = between(before, all);
        let queue = before - self.shortest;
        let window = path.cwnd as f64 / f64::from(path.mss.max(1));
        let srtt = path.srtt.map_or(before, nanos).max(1.0);
        let known = self.count.min(32);
        let lower = (0..known).filter(|&age| self.sample(age).delay < before).count();
        let usual = self.usual;
        let if_usual = |value: f64| if usual.events > 0 { value } else { NONE };
        let flag = |yes: bool| if yes { 1.0 } else { 0.0 };
        let features = [
            usage,
            between(before, self.recent.range()),
            between(after, all),
            (after - before) / srtt,
            queue / self.shortest.max(1.0),
            window * queue / before.max(1.0),
            nanos(path.rttvar) / srtt,
            (self.mean(0, 4) - self.mean(4, 4)) / (self.longest - self.shortest).max(1.0),
            lower as f64 / known as f64,
            if self.best_rate > 0.0 { self.rate / self.best_rate } else { NONE },
            if_usual(window / usual.window.max(1.0)),
            libm::log(1.0 + self.event.since),
            self.event.since / window.max(1.0),
            self.loss_rate,
            f64::from(self.event.losses),
            flag(self.echo_at.is_some_and(|at| nanos(path.now.since(at)) < srtt)),
            if self.mean_gap > 0.0 { self.gap / self.mean_gap } else { NONE },
            self.event.previous.map_or(NONE, |at| nanos(path.now.since(at)) / srtt),
            if_usual(usual.usage),
            if usual.events > 0 { usage - usual.usage } else { 0.0 },
            if_usual(usual.spread),
            self.jitter / (self.longest - self.shortest).max(1.0),
            self.rises,
            between(self.peak.0.max(self.peak.1), all),
            libm::log(window.max(1.0)),
            flag(path.cwnd < path.ssthresh),
            flag(loss.trigger == Trigger::Timeout),
            flag(loss.transmission > 0),
            if self.shortest_gap.is_finite() { self.gap / self.shortest_gap } else { NONE },
            if_usual(queue / usual.queue.max(1e3)),
            self.slots_at_hole,
            if self.shortest_spacing.is_finite() { self.spacing / self.shortest_spacing } else { NONE },
            f64::from(self.holes),
        ];
        if new_event {
            self.usual.note(usage, window, queue);
        }
        Some(features.map(|value| value.clamp(-1e6, 1e6) as f32))
    }
}

impl Usual {
    fn note(&mut self, usage: f64, window: f64, queue: f64) {
        if self.events == 0 {
            *self = Self { events: 1, usage, spread: 0.0, window, queue };
            return;
        }
        self.events += 1;
        self.spread += ((usage - self.usage).abs() - self.spread) / 8.0;
        self.usage += (usage - self.usage) / 8.0;
        self.window += (window - self.window) / 8.0;
        self.queue += (queue - self.queue) / 8.0;
    }
}
