//! What agents share that repair a hop: its timer, and which acknowledgements repeat.

use whyloss_transport::segment::Flags;
use whyloss_transport::{Duration, Segment};

/// The retransmission timer of a hop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HopTimer {
    /// Round trip of the hop, smoothed, and its variation.
    round_trip: Option<(Duration, Duration)>,
    /// Timeouts since the last sample of the round trip: each doubles the next.
    back_off: u32,
}

impl HopTimer {
    /// What was sent once has been acknowledged after so long.
    pub fn sample(&mut self, sample: Duration) {
        self.back_off = 0;
        // RFC 6298, 2.2 and 2.3.
        self.round_trip = Some(match self.round_trip {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                let off = if sample > smoothed { sample - smoothed } else { smoothed - sample };
                ((smoothed * 7 + sample) / 8, (variation * 3 + off) / 4)
            }
        });
    }

    /// It has expired.
    pub fn back_off(&mut self) {
        self.back_off += 1;
    }

    /// The round trip of the hop; zero before the first sample.
    pub fn smoothed(&self) -> Duration {
        self.round_trip.map_or(Duration::ZERO, |(smoothed, _)| smoothed)
    }

    /// How long to wait for an acknowledgement: at least `shortest_ms`, doubled `doublings` times at most.
    pub fn timeout(&self, shortest_ms: f64, doublings: u32) -> Duration {
        let shortest = Duration::from_nanos((shortest_ms * 1e6) as u64);
        let timeout = self.round_trip.map_or(shortest, |(smoothed, variation)| (smoothed + variation * 4).max(shortest));
        // RFC 6298, 5.3 and 5.5: without the one, a queue in front of the link would make every segment late, without the other no sample
        // would ever say so.
        timeout * (1 << self.back_off.min(doublings))
    }
}

/// Whether an acknowledgement says again what the last one said, number and window, and nothing more but what is missing below `highest`.
pub(super) fn repeats(ack: &Segment, last: Option<(u64, u16)>, highest: u64) -> bool {
    let telling = Flags::SYN | Flags::FIN | Flags::RST | Flags::URG | Flags::ECE | Flags::CWR;
    let una = ack.ack.near(highest);
    ack.is_empty() && !ack.flags.intersects(telling) && last == Some((una, ack.window)) && una < highest
}
