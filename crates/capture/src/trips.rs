//! Round trips as a capture sees them: the part between capture and receiver, and the part between sender and capture.

use whyloss_transport::time::{Duration, Instant};

/// The timeout before anything is known (RFC 6298, 2.1).
const INITIAL: Duration = Duration::from_secs(1);
/// What common senders add to the smoothed round trip at least.
const MARGIN: Duration = Duration::from_millis(200);

/// Round trips of one direction's data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trips {
    /// From data to its acknowledgement, smoothed, and the mean deviation (RFC 6298, 2).
    right: Option<(Duration, Duration)>,
    shortest: Option<Duration>,
    longest: Duration,
    /// From an acknowledgement to what it lets out; the shortest is taken, as applications wait.
    left: Option<Duration>,
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
        self.right = Some(match self.right {
            None => (trip, trip / 2),
            Some((smoothed, deviation)) => {
                // RFC 6298, 2.3.
                let deviation = deviation - deviation / 4 + smoothed.abs_diff(trip) / 4;
                (smoothed - smoothed / 8 + trip / 8, deviation)
            }
        });
    }

    /// The sender answered an acknowledgement after `trip`.
    pub fn on_left(&mut self, trip: Duration) {
        self.left = Some(self.left.map_or(trip, |left| left.min(trip)));
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
            self.on_left(at.since(since));
        }
    }

    /// The smoothed round trip of the sender.
    pub fn smoothed(&self) -> Option<Duration> {
        self.right.map(|(smoothed, _)| smoothed + self.left.unwrap_or_default())
    }

    /// The shortest time from data to its acknowledgement.
    pub fn shortest(&self) -> Option<Duration> {
        self.shortest
    }

    /// The shortest time from an acknowledgement to what it let out.
    pub fn left(&self) -> Option<Duration> {
        self.left
    }

    /// The longest time from data to its acknowledgement.
    pub fn longest(&self) -> Option<Duration> {
        (self.samples > 0).then_some(self.longest)
    }

    /// Measurements of the right part.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The retransmission timeout that a sender has at least (RFC 6298, 2, with the smaller floor that is common).
    pub fn timeout(&self) -> Duration {
        match (self.smoothed(), self.right) {
            (Some(smoothed), Some((_, deviation))) => smoothed + (deviation * 4).max(MARGIN),
            _ => INITIAL,
        }
    }
}
