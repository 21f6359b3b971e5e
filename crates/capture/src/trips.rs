//! Round trips as a capture sees them: the part between capture and receiver, and the part between sender and capture.

use whyloss_transport::time::{Duration, Instant};

/// The timeout before anything is known (RFC 6298, 2.1).
const INITIAL: Duration = Duration::from_secs(1);
/// What common senders add to the smoothed round trip at least.
const MARGIN: Duration = Duration::from_millis(200);

/// A value that is smoothed as round trips are (RFC 6298, 2).
#[derive(Clone, Copy, Debug, Default)]
struct Smoothed {
    value: Duration,
    deviation: Duration,
}

impl Smoothed {
    fn add(slot: &mut Option<Self>, sample: Duration) {
        *slot = Some(match *slot {
            None => Self { value: sample, deviation: sample / 2 },
            // RFC 6298, 2.3.
            Some(Self { value, deviation }) => {
                Self { deviation: deviation - deviation / 4 + value.abs_diff(sample) / 4, value: value - value / 8 + sample / 8 }
            }
        });
    }
}

/// How long a sender takes from an acknowledgement in the capture to what it lets out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reaction {
    /// The shortest is taken, as applications wait.
    least: Option<Duration>,
    /// The same, smoothed, of acknowledgements that let something out at once.
    usual: Option<Smoothed>,
}

impl Reaction {
    /// The sender answered an acknowledgement after `trip`.
    pub fn on_left(&mut self, trip: Duration) {
        self.least = Some(self.least.map_or(trip, |least| least.min(trip)));
    }

    /// The sender sent something `trip` after an acknowledgement that very likely let it out.
    pub fn add(&mut self, trip: Duration) {
        /// A sender whose application waits reacts later; that is no round trip.
        const MOST: u64 = 4;
        if self.usual.is_none() || trip <= self.usual() * MOST + Duration::from_millis(1) {
            Smoothed::add(&mut self.usual, trip);
            self.on_left(trip);
        }
    }

    /// The shortest.
    pub fn least(&self) -> Option<Duration> {
        self.least
    }

    /// The same, with the shortest of another if that is shorter.
    #[must_use]
    pub fn at_most(mut self, other: &Self) -> Self {
        self.least = self.least.into_iter().chain(other.least).min();
        self
    }

    /// The usual one.
    pub fn usual(&self) -> Duration {
        let least = self.least.unwrap_or_default();
        self.usual.map_or(least, |usual| usual.value.max(least))
    }

    /// By how much that varies.
    pub fn varies(&self) -> Duration {
        self.usual.map_or_else(Duration::default, |usual| usual.deviation)
    }
}

/// Round trips of one direction's data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trips {
    /// From data to its acknowledgement.
    right: Option<Smoothed>,
    shortest: Option<Duration>,
    longest: Duration,
    latest: Option<Duration>,
    /// From an acknowledgement to what it lets out.
    left: Reaction,
    /// An acknowledgement whose echo is awaited: its timestamp, and when it was captured.
    awaited: Option<(u32, Instant)>,
    samples: u64,
}

impl Trips {
    /// Data was acknowledged after `trip`.
    pub fn on_right(&mut self, trip: Duration) {
        self.samples += 1;
        self.shortest = Some(self.shortest.map_or(trip, |shortest| shortest.min(trip)));
        self.longest = self.longest.max(trip);
        self.latest = Some(trip);
        Smoothed::add(&mut self.right, trip);
    }

    /// The sender answered an acknowledgement after `trip`.
    pub fn on_left(&mut self, trip: Duration) {
        self.left.on_left(trip);
    }

    /// The sender sent something `trip` after an acknowledgement that very likely let it out.
    pub fn on_reaction(&mut self, trip: Duration) {
        self.left.add(trip);
    }

    /// An acknowledgement with this timestamp came; what echoes it tells the left part.
    pub fn await_echo(&mut self, timestamp: u32, at: Instant) {
        if self.awaited.is_none() {
            self.awaited = Some((timestamp, at));
        }
    }

    /// The sender echoed a timestamp.
    pub fn on_echo(&mut self, echo: u32, at: Instant) {
        if let Some((_, since)) = self.awaited.filter(|(timestamp, _)| echo.wrapping_sub(*timestamp) < 1 << 31) {
            self.awaited = None;
            if at > since {
                self.on_left(at.since(since));
            }
        }
    }

    /// The smoothed round trip of the sender.
    pub fn smoothed(&self) -> Option<Duration> {
        self.right.map(|right| right.value + self.reaction())
    }

    /// The shortest time from data to its acknowledgement.
    pub fn shortest(&self) -> Option<Duration> {
        self.shortest
    }

    /// The time from an acknowledgement to what it lets out.
    pub fn to_answer(&self) -> &Reaction {
        &self.left
    }

    /// The shortest time from an acknowledgement to what it let out.
    pub fn left(&self) -> Option<Duration> {
        self.left.least()
    }

    /// The usual time from an acknowledgement to what it lets out.
    pub fn reaction(&self) -> Duration {
        self.left.usual()
    }

    /// By how much that varies.
    pub fn reaction_varies(&self) -> Duration {
        self.left.varies()
    }

    /// The longest time from data to its acknowledgement.
    pub fn longest(&self) -> Option<Duration> {
        (self.samples > 0).then_some(self.longest)
    }

    /// The latest time from data to its acknowledgement.
    pub fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// Measurements of the right part.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The retransmission timeout that a sender has at least (RFC 6298, 2, with the smaller floor that is common).
    pub fn timeout(&self) -> Duration {
        match (self.smoothed(), self.right) {
            (Some(smoothed), Some(right)) => (smoothed + (right.deviation + self.reaction_varies()) * 4).max(MARGIN),
            _ => INITIAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_before_what_it_echoes_tells_nothing() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut trips = Trips::default();
        trips.await_echo(1, at(5000));
        trips.on_echo(1, at(20));
        assert_eq!(trips.left(), None);
        trips.await_echo(2, at(30));
        trips.on_echo(2, at(50));
        assert_eq!(trips.left(), Some(Duration::from_millis(20)));
    }
}
