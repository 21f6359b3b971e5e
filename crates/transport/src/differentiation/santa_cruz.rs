//! Whether the queue grew in the last two round trips (Parsa & Garcia-Luna-Aceves 2000).

use super::common::{falling, window};
use super::{LossDifferentiator, Verdict};
use crate::estimate::{Clock, Jitter};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss};
use crate::settings;

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "santa-cruz",
    summary: "Takes a loss for congestion if the queue of the bottleneck has grown in each of the last two round trips.",
    reference: "Parsa & Garcia-Luna-Aceves 2000",
    notes: Notes {
        idea: "Congestion takes time to build up: the queue grows for several round trips before it overflows. A random loss comes at any time.",
        formula: "dN = sum of D over a round / mean service time, D = (R_j - R_i) - (S_j - S_i); congestion if dN > eta in the last `rises` rounds, else \
                  corruption",
        threshold: "`eta`: a larger one takes more losses for corruption, so A_w rises and A_c falls. `rises` has the same effect.",
        fails: "A queue that is full does not grow any more, so losses in persistent congestion look like corruption; in congestion avoidance it grows by \
                one segment a round trip, little more than the noise.",
        errata: "The published test is dN > 0; half a segment is our noise floor. The round trip under way counts once it has covered half a window. \
                 Arrival times as for JTCP.",
    },
    thresholds: &[Threshold::of_corruption("eta", Cut::Falling), Threshold::of_corruption("rises", Cut::Nowhere)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments by which the queue has to grow in a round trip to count as growing.
        eta: f64 = 0.5, 0.0..=1000.0;
        /// Round trips in a row in which it has to grow.
        rises: usize = 2, 1..=4;
        /// Whose clock tells when segments arrived: the receiver's, if its timestamps are fine enough, or the sender's.
        clock: Clock;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(SantaCruz { eta: self.eta, rises: self.rises, jitter: Jitter::new(self.clock, false), growth: [None; MOST] })
    }
}

/// Round trips that are remembered.
const MOST: usize = 4;

/// The differentiator of Parsa & Garcia-Luna-Aceves.
#[derive(Debug)]
pub struct SantaCruz {
    /// Segments by which the queue has to grow.
    pub eta: f64,
    /// Round trips in a row in which it has to: at least 1, at most 4.
    pub rises: usize,
    /// The jitter of each round trip.
    pub jitter: Jitter,
    /// By how many segments the queue grew in the last complete round trips, the latest first.
    growth: [Option<f64>; MOST],
}

impl LossDifferentiator for SantaCruz {
    fn on_ack(&mut self, ack: &Ack) {
        if self.jitter.on_ack(ack) {
            self.growth.rotate_right(1);
            self.growth[0] = self.jitter.growth(self.jitter.complete(), ack.path.mss);
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let mss = loss.path.mss;
        let under_way = self.jitter.under_way(window(loss.path), mss).map(|span| self.jitter.growth(span, mss));
        let mut latest = under_way.into_iter().chain(self.growth).take(self.rises);
        let least = latest.try_fold(f64::INFINITY, |least, growth| Some(least.min(growth?)));
        match least {
            None => Verdict::UNKNOWN,
            Some(growth) => Verdict::decided(growth <= self.eta, falling(growth)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{self, Congestion, Corruption, Unknown};

    /// The verdict after round trips in each of which the queue grows by so many segments of 10 ms.
    fn after(rises: f64, growths: &[f64]) -> Cause {
        let mut sender = Script::new(built("santa-cruz", &[("clock", "sender".into()), ("rises", rises.into())]));
        sender.window(11).pause(1000.0);
        let mut rtt = 100.0;
        for growth in growths {
            // Twelve acknowledgements are a round of this sender: eleven spacings, of which each is a little longer than it was.
            for n in 0..12 {
                let more = if n == 0 { 0.0 } else { growth * 10.0 / 11.0 };
                rtt += more;
                sender.pause(10.0 + more).ack(rtt);
            }
        }
        sender.judge().cause
    }

    #[test]
    fn two_rises_in_a_row_are_congestion() {
        assert_eq!(after(2.0, &[1.0]), Unknown);
        assert_eq!(after(2.0, &[1.0, 1.0, 1.0]), Congestion);
        assert_eq!(after(2.0, &[1.0, 1.0, 0.0]), Corruption);
        assert_eq!(after(2.0, &[1.0, 0.0, 1.0]), Corruption);
        assert_eq!(after(1.0, &[1.0, 0.0, 1.0]), Congestion);
        assert_eq!(after(3.0, &[0.0, 1.0, 1.0]), Corruption);
        assert_eq!(after(2.0, &[0.3, 0.3, 0.3]), Corruption, "within the noise");
        assert_eq!(after(2.0, &[-1.0, -1.0, -1.0]), Corruption);
    }
}
