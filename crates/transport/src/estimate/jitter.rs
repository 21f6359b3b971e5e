//! How much longer apart segments arrive than they left: what a round trip adds to the queue, in proportion to what it sends.
//!
//! `D(i, j) = (R_j - R_i) - (S_j - S_i)` for send times `S` and arrival times `R` (RFC 3550, 6.4.1). If segments enter a queue at rate
//! `a` and leave it at rate `b < a`, then `D / (R_j - R_i) = 1 - b / a`: the share of them that stayed in the queue.

use super::{PeerClock, Rounds};
use crate::choices;
use crate::path::Ack;
use crate::time::{Duration, Instant};

/// Acknowledgements that a span has to have, for those who look at each round by itself.
const FEWEST: u32 = 3;
/// The same for those who add contiguous rounds up: with delayed acknowledgements a window of two segments has no more.
const FEWEST_CONTIGUOUS: u32 = 2;

choices! {
    /// Whose clock tells when segments arrived.
    pub enum Clock {
        /// The receiver's, from the timestamps of its acknowledgements, where they exist and a tick is no longer than half the mean spacing
        /// of the segments; the sender's elsewhere.
        Receiver = "receiver",
        /// The sender's: the arrival of the acknowledgement stands for the arrival of the segment, the way back included.
        Sender = "sender",
    }
}

/// A segment that was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Point {
    /// When it left.
    sent: Instant,
    /// When the acknowledgement arrived.
    acked: Instant,
    /// The receiver's clock when it sent the acknowledgement.
    ticks: Option<u64>,
    /// Octets delivered so far.
    delivered: u64,
}

/// What lies between the first and the last segment that a round acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    ends: Option<(Point, Point)>,
    acks: u32,
    /// Sum and number of the ratios of neighbours.
    ratios: (f64, u32),
}

impl Span {
    fn add(&mut self, point: Point, each: bool) {
        self.acks += 1;
        let Some((_, last)) = &mut self.ends else {
            self.ends = Some((point, point));
            return;
        };
        if each && point.acked > last.acked {
            let apart = point.acked.since(last.acked).as_nanos() as f64;
            let left_apart = point.sent.since(last.sent).as_nanos() as f64;
            self.ratios.0 += (apart - left_apart) / apart;
            self.ratios.1 += 1;
        }
        *last = point;
    }

    /// Segments of `mss` octets delivered between its ends.
    pub fn segments(&self, mss: u32) -> f64 {
        self.ends.map_or(0.0, |(first, last)| (last.delivered - first.delivered) as f64 / f64::from(mss.max(1)))
    }

    /// How far apart its first and its last segment left and arrived, in nanoseconds; the latter is not 0. `tick` is that of the receiver's clock.
    fn apart(&self, tick: Option<Duration>, mss: u32) -> Option<(f64, f64)> {
        let (first, last) = self.ends?;
        let left_apart = last.sent.since(first.sent).as_nanos() as f64;
        let by_receiver = || {
            let (tick, ticks) = (tick?.as_nanos() as f64, last.ticks? - first.ticks?);
            let apart = ticks as f64 * tick;
            (2.0 * tick * self.segments(mss) <= apart).then_some(apart)
        };
        let apart = by_receiver().unwrap_or_else(|| last.acked.since(first.acked).as_nanos() as f64);
        (apart > 0.0).then_some((left_apart, apart))
    }

    /// The mean of that ratio over all neighbours, by the sender's clock.
    pub fn mean_ratio(&self) -> Option<f64> {
        (self.acks >= FEWEST && self.ratios.1 > 0).then(|| self.ratios.0 / f64::from(self.ratios.1))
    }
}

/// The jitter of each round trip.
#[derive(Clone, Debug)]
pub struct Jitter {
    clock: Clock,
    each: bool,
    contiguous: bool,
    fewest: u32,
    receiver: PeerClock,
    rounds: Rounds,
    newest: Instant,
    current: Span,
    complete: Span,
}

impl Jitter {
    /// Measures by `clock`, and `each` pair of neighbours too if [`Span::mean_ratio`] is wanted.
    pub fn new(clock: Clock, each: bool) -> Self {
        Self {
            clock,
            each,
            contiguous: false,
            fewest: FEWEST,
            receiver: PeerClock::default(),
            rounds: Rounds::default(),
            newest: Instant::ZERO,
            current: Span::default(),
            complete: Span::default(),
        }
    }

    /// Lets each round begin where the one before ended, for those who add rounds up: what happens between two of them counts, too.
    pub fn contiguous(self) -> Self {
        Self { contiguous: true, fewest: FEWEST_CONTIGUOUS, ..self }
    }

    /// An acknowledgement arrived; returns whether it ends a round. Its own sample belongs to the round that it begins.
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        let over = self.rounds.on_ack(ack.path);
        if over {
            self.complete = std::mem::take(&mut self.current);
            if let (true, Some((_, last))) = (self.contiguous, self.complete.ends) {
                self.current.add(last, false);
            }
        }
        let now = ack.path.now;
        let ticks = match (self.clock, ack.options.timestamps) {
            (Clock::Receiver, Some(stamp)) => Some(self.receiver.on_timestamp(now, stamp.value)),
            _ => None,
        };
        // A segment that was overtaken says nothing of its neighbours.
        if let (Some(sent), Some(_)) = (ack.newest_sent_at.filter(|sent| *sent >= self.newest), ack.delay) {
            self.newest = sent;
            self.current.add(Point { sent, acked: now, ticks, delivered: ack.path.delivered }, self.each);
        }
        over
    }

    /// Forgets the rounds: nothing that was under way is measured any more. The receiver's clock goes on.
    pub fn restart(&mut self) {
        (self.rounds, self.current, self.complete) = (Rounds::default(), Span::default(), Span::default());
    }

    /// The last complete round.
    pub fn complete(&self) -> &Span {
        &self.complete
    }

    /// The round under way, once it has covered at least half of a window of `window` segments.
    pub fn under_way(&self, window: f64, mss: u32) -> Option<&Span> {
        (self.current.acks >= FEWEST && 2.0 * self.current.segments(mss) >= window).then_some(&self.current)
    }

    /// The last round trip: the round under way once it has covered at least half of a window of `window` segments, else the last complete one.
    pub fn latest(&self, window: f64, mss: u32) -> &Span {
        self.under_way(window, mss).unwrap_or(&self.complete)
    }

    /// By how many segments the queue grew in a span: [`Jitter::ratio`] of the segments that it holds.
    pub fn growth(&self, span: &Span, mss: u32) -> Option<f64> {
        Some(self.ratio(span, mss)? * span.segments(mss))
    }

    /// How far apart the first and the last segment of `span` left and arrived, in nanoseconds; the latter is not 0. `None` if that says nothing:
    /// too few acknowledgements, or no time between them.
    pub fn apart(&self, span: &Span, mss: u32) -> Option<(f64, f64)> {
        span.apart(self.receiver.tick(), mss).filter(|_| span.acks >= self.fewest)
    }

    /// The mean of `D` between neighbours in `span`, in seconds: what they wait longer than the one before. `None` as for [`Jitter::apart`].
    pub fn mean_seconds(&self, span: &Span, mss: u32) -> Option<f64> {
        let (left, arrived) = self.apart(span, mss)?;
        Some((arrived - left) / 1e9 / f64::from(span.acks - 1))
    }

    /// `D / (R_B - R_A)` from the first to the last segment of `span`, in `(-inf, 1]`. `None` as for [`Jitter::apart`].
    pub fn ratio(&self, span: &Span, mss: u32) -> Option<f64> {
        self.apart(span, mss).map(|(left, arrived)| (arrived - left) / arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::segment::{Options, Timestamps};

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Segment `n` of 1000 octets, sent and acknowledged at times in milliseconds. A round ends where `nxt` says.
    fn ack(jitter: &mut Jitter, n: u64, sent: u64, acked: u64, nxt: u64, stamp: Option<u32>) -> bool {
        let (una, delivered) = (n * 1000, n * 1000);
        let path = Path { now: at(acked), una, nxt: nxt * 1000, delivered, mss: 1000, ..Path::default() };
        let options = Options { timestamps: stamp.map(|value| Timestamps { value, echo: 0 }), ..Options::default() };
        jitter.on_ack(&Ack {
            path: &path,
            acked: 1000,
            delivered: 1000,
            rtt: None,
            delay: Some(at(acked).since(at(sent))),
            newest_sent_at: Some(at(sent)),
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &options,
        })
    }

    #[test]
    fn jitter_is_the_share_that_stayed_in_the_queue() {
        // Sent at 0..90, arrived at 1000..1100: (100 - 90) / 100.
        let mut jitter = Jitter::new(Clock::Sender, true);
        for n in 0..=9 {
            ack(&mut jitter, n + 1, 10 * n, 1000 + 100 * n / 9, 11, None);
        }
        assert_eq!(jitter.ratio(jitter.latest(10.0, 1000), 1000), Some(0.1));
        assert!(jitter.ratio(jitter.complete(), 1000).is_none());
        let mean = jitter.latest(10.0, 1000).mean_ratio().unwrap();
        assert!((mean - 0.1).abs() < 0.01, "{mean}: the mean of 1/11 and 2/12 in milliseconds");
    }

    #[test]
    fn the_round_under_way_counts_from_half_a_window_on() {
        let mut jitter = Jitter::new(Clock::Sender, false);
        for n in 0..=4 {
            ack(&mut jitter, n + 1, 10 * n, 100 + 20 * n, 5, None); // to half of its rate
        }
        let half = |jitter: &Jitter| jitter.ratio(jitter.latest(6.0, 1000), 1000);
        for n in 5..=8 {
            assert_eq!(half(&jitter), Some(0.5), "{n}");
            assert_eq!(ack(&mut jitter, n + 1, 10 * n, 200 + 10 * n, 12, None), n == 5);
        }
        assert_eq!(half(&jitter), Some(0.0), "its last three segments arrived as they left");
    }

    #[test]
    fn contiguous_rounds_miss_nothing_between_them() {
        for (contiguous, expected) in [(false, 0.0), (true, 20.0)] {
            let mut jitter = Jitter::new(Clock::Sender, false);
            if contiguous {
                jitter = jitter.contiguous();
            }
            // Ten segments a round, one every 10 ms; from the second round on all arrive 20 ms later.
            let mut added = 0.0;
            for n in 0..40 {
                let late = if n >= 10 { 20 } else { 0 };
                if ack(&mut jitter, n + 1, 10 * n, 100 + 10 * n + late, n / 10 * 10 + 10, None) {
                    let span = jitter.complete();
                    let apart = if n <= 10 || !contiguous {
                        90.0
                    } else if n <= 20 {
                        120.0
                    } else {
                        100.0
                    };
                    added += jitter.ratio(span, 1000).unwrap() * apart;
                }
            }
            assert!((added - expected).abs() < 1e-9, "contiguous {contiguous}: {added}");
        }
    }

    #[test]
    fn the_receivers_clock_leaves_out_the_way_back_if_its_ticks_are_short_enough() {
        for (tick_ms, expected) in [(1, 0.0), (10, 0.0), (25, 0.5)] {
            let mut jitter = Jitter::new(Clock::Receiver, false);
            // A segment arrives every 20 ms, as they were sent; the way back stretches the last four to 40 ms.
            for n in 0..=204u64 {
                let late = n.saturating_sub(200) * 20;
                ack(
                    &mut jitter,
                    n + 1,
                    20 * n,
                    1000 + 20 * n + late,
                    if n > 200 { 400 } else { 201 },
                    Some((20 * n / tick_ms) as u32),
                );
            }
            let ratio = jitter.ratio(jitter.latest(1.0, 1000), 1000).unwrap();
            assert!((ratio - expected).abs() < 0.01, "tick {tick_ms} ms: {ratio}");
        }
    }

    #[test]
    fn nothing_is_said_of_too_little() {
        let mut jitter = Jitter::new(Clock::Sender, true);
        ack(&mut jitter, 1, 0, 100, 5, None);
        ack(&mut jitter, 2, 10, 120, 5, None);
        assert!(jitter.ratio(&jitter.current, 1000).is_none() && jitter.current.mean_ratio().is_none(), "two acknowledgements");
        let mut at_once = Jitter::new(Clock::Sender, true);
        for n in 0..4 {
            ack(&mut at_once, n + 1, n, 100, 9, None);
        }
        assert!(at_once.ratio(&at_once.current, 1000).is_none() && at_once.current.mean_ratio().is_none(), "all at once");
        ack(&mut at_once, 5, 2, 110, 9, None);
        assert_eq!(at_once.current.acks, 4, "an overtaken segment");
    }
}
