//! TCP Santa Cruz: a given number of segments in the queue, counted by relative delays.

use super::slow_start::SlowStart;
use super::{CongestionControl, Window};
use crate::estimate::{Clock, Jitter};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path};
use crate::settings;

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "santa-cruz",
    summary: "Keeps a given number of its own segments in the queue of the path, counted by what each round trip adds to it.",
    reference: "Parsa & Garcia-Luna-Aceves 1999",
    notes: Notes {
        fails: "Sums of differences: what one round trip measures wrongly is never corrected, except that a queue is not negative. Gives way to \
                flows that fill queues.",
        errata: "The paper's own option carries the arrival times; here they are those of the receiver's timestamps where their tick is fine enough, \
                 else of the acknowledgements. The operating point is our reading: the paper has several. Slow start ends at it. The times that segments wait are summed up, not \
                 the segments: the mean time between arrivals is that of the bottleneck only once it is busy.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments to keep in the queue.
        n_op: f64 = 3.0, 0.0..=1000.0;
        /// The window stands still while the queue is this near to them.
        delta: f64 = 0.5, 0.0..=1000.0;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(SantaCruz::new(self.n_op, self.delta))
    }
}

/// Parsa & Garcia-Luna-Aceves 1999, section 3: each round trip adds `sum D / s` segments to the queue, where `D` is how much longer apart
/// two segments arrived than they left, and `s` the mean time between arrivals. Here the `D` are summed up, and divided by the latest `s`:
/// those of slow start, when the bottleneck often idles, are no service times. Below `n_op - delta` the window grows by a
/// segment a round trip, above `n_op + delta` it shrinks by one. Losses halve it.
#[derive(Debug)]
pub struct SantaCruz {
    n_op: f64,
    delta: f64,
    jitter: Jitter,
    slow_start: SlowStart,
    /// How long a segment waits in the queue, in nanoseconds.
    waiting: f64,
    /// The same in segments.
    queued: f64,
}

impl SantaCruz {
    /// Keeps `n_op` segments, give or take `delta`, in the queue.
    pub fn new(n_op: f64, delta: f64) -> Self {
        Self {
            n_op,
            delta,
            jitter: Jitter::new(Clock::Receiver, false).contiguous(),
            slow_start: SlowStart::new(false),
            waiting: 0.0,
            queued: 0.0,
        }
    }

    /// Adds the last round to the queue; returns whether it could be measured.
    fn count(&mut self, mss: u32) -> bool {
        let span = self.jitter.complete();
        let Some((left, arrived)) = self.jitter.apart(span, mss) else { return false };
        self.waiting = (self.waiting + arrived - left).max(0.0);
        self.queued = self.waiting * span.segments(mss) / arrived;
        true
    }

    fn decide(&self, window: &mut Window) {
        let mss = u64::from(window.mss());
        if self.queued > self.n_op + self.delta {
            window.set_ssthresh(0);
            window.set_cwnd(window.cwnd().saturating_sub(mss).max(2 * mss));
        } else if self.queued < self.n_op - self.delta && !window.in_slow_start() {
            window.grow(mss as f64);
        }
    }
}

impl CongestionControl for SantaCruz {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let counted = self.jitter.on_ack(ack) && self.count(ack.path.mss);
        if ack.acked == 0 || ack.in_recovery {
            return;
        }
        if counted && ack.window_limited {
            self.decide(window);
        }
        if window.in_slow_start() {
            self.slow_start.on_ack(window, ack);
        } else {
            self.slow_start.on_left();
        }
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        window.used(path) / 2
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        (self.waiting, self.queued) = (0.0, 0.0); // whatever there was has drained
        self.jitter.restart();
        self.slow_start.on_timeout();
    }
}
