//! The non-congestion packet loss detection of Samaraweera 1999: the delay at the knee of the throughput-delay curve.

use super::common::{falling, window, Memory};
use super::{LossDifferentiator, Verdict};
use crate::estimate::{Backlog, BottleneckRate, QueueUsage, RoundRate};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss, Trigger};
use crate::{choices, settings};

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "ncpld",
    summary: "Takes a loss for congestion if the round-trip time is above that at the knee of the throughput-delay curve.",
    reference: "Samaraweera 1999",
    notes: Notes {
        idea: "Up to the knee a larger window brings more throughput, beyond it only more delay. A loss below the knee cannot come from a queue, for there \
               is none.",
        formula: "D_th = RTT_min + kappa S with S = MSS / B (R1); D_th = g RTT_min (R2); D_th = mean + deviations * standard deviation of RTT at the \
                  window with the largest throughput / RTT (R3); congestion if RTT >= D_th, else corruption",
        threshold: "`kappa` (R1), `g` (R2), `deviations` (R3): a larger one takes more losses for corruption, so A_w rises and A_c falls.",
        fails: "The knee of a single queue is RTT_min itself, so the threshold is nothing but tolerance: any queue of other flows, and any jitter beyond \
                it, makes every loss congestion.",
        errata: "The published threshold could not be recovered; all three are our readings. B is the largest rate between two acknowledgements in ten \
                 round trips. R3 groups rounds by window, a quarter of an octave each; groups of fewer than three rounds do not \
                 count.",
    },
    thresholds: &[Threshold::of_corruption("kappa", Cut::Falling), Threshold::of_corruption("g", Cut::Inverse), Threshold::of_corruption("deviations", Cut::Falling)],
    ..Part::of::<Settings>()
};

choices! {
    /// What the knee is.
    enum Reading {
        /// The smallest round-trip time plus service times.
        R1 = "r1",
        /// A multiple of it.
        R2 = "r2",
        /// The knee of the measured curve.
        R3 = "r3",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// The threshold: smallest round-trip time plus service times, a multiple of it, or the knee of the measured curve.
        reading: Reading;
        /// R1: service times of a segment above the smallest round-trip time.
        kappa: f64 = 2.0, 0.0..=1000.0;
        /// R2: multiple of the smallest round-trip time. 2 is where the power of an M/M/1 queue is largest.
        g: f64 = 2.0, 1.0..=100.0;
        /// R3: standard deviations above the mean round-trip time at the knee.
        deviations: f64 = 1.0, 0.0..=100.0;
        memory: Memory;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        let knee = match self.reading {
            Reading::R2 => Knee::Power { g: self.g },
            Reading::R3 => Knee::Curve { deviations: self.deviations, curve: Box::default() },
            Reading::R1 => Knee::Service { kappa: self.kappa, rate: Box::default() },
        };
        Box::new(Ncpld { knee, usage: self.memory.queue_usage() })
    }
}

/// The differentiator of Samaraweera 1999.
#[derive(Debug)]
pub struct Ncpld {
    /// Where the knee is sought.
    pub knee: Knee,
    /// The smallest and the latest round-trip time.
    pub usage: QueueUsage,
}

/// Where the knee is sought.
#[derive(Debug)]
pub enum Knee {
    /// R1: `RTT_min + kappa * MSS / B`.
    Service {
        /// Service times above the smallest round-trip time.
        kappa: f64,
        /// `B`, the bandwidth of the bottleneck.
        rate: Box<BottleneckRate>,
    },
    /// R2: `g * RTT_min`.
    Power {
        /// Multiple of the smallest round-trip time.
        g: f64,
    },
    /// R3: the measured curve.
    Curve {
        /// Standard deviations above the mean round-trip time at the knee.
        deviations: f64,
        /// What was measured of each window so far.
        curve: Box<Curve>,
    },
}

/// Rounds from which on a group of windows can be the knee.
const FEWEST: f64 = 3.0;

/// Throughput and delay of each window, from one measurement a round.
#[derive(Debug, Default)]
pub struct Curve {
    delay: Backlog,
    rate: RoundRate,
    /// The window in segments at the beginning of the round under way.
    window: f64,
    bins: Vec<Bin>,
}

/// The rounds of one group of windows.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    rounds: f64,
    rate: f64,
    rtt: f64,
    rtt_squared: f64,
}

impl Bin {
    fn mean(&self) -> f64 {
        self.rtt / self.rounds
    }

    fn deviation(&self) -> f64 {
        (self.rtt_squared / self.rounds - self.mean() * self.mean()).max(0.0).sqrt()
    }

    /// Throughput divided by delay.
    fn power(&self) -> f64 {
        if self.rounds >= FEWEST {
            self.rate / self.rtt
        } else {
            0.0
        }
    }
}

/// Groups of windows: one a segment up to eight, then four an octave.
fn bin_of(window: f64) -> usize {
    let segments = (window as u64).max(1);
    if segments < 8 {
        return segments as usize;
    }
    let octave = segments.ilog2();
    ((octave - 1) * 4 + ((segments >> (octave - 2)) & 3) as u32) as usize
}

impl Curve {
    fn on_ack(&mut self, ack: &Ack) {
        let over = self.delay.on_ack(ack);
        self.rate.on_ack(ack);
        if !over && self.window > 0.0 {
            return;
        }
        let now = std::mem::replace(&mut self.window, window(ack.path));
        let measured = self.rate.last().zip(self.delay.round().mean()).filter(|_| over);
        if let Some((rate, rtt)) = measured {
            let index = bin_of(now);
            if index >= self.bins.len() {
                self.bins.resize(index + 1, Bin::default());
            }
            let (bin, rtt) = (&mut self.bins[index], rtt.as_secs_f64());
            bin.rounds += 1.0;
            bin.rate += rate;
            bin.rtt += rtt;
            bin.rtt_squared += rtt * rtt;
        }
    }

    /// Mean and standard deviation of the round-trip time at the knee, in seconds.
    fn knee(&self) -> Option<(f64, f64)> {
        let best = self.bins.iter().max_by(|a, b| a.power().total_cmp(&b.power())).filter(|bin| bin.power() > 0.0)?;
        Some((best.mean(), best.deviation()))
    }
}

impl LossDifferentiator for Ncpld {
    fn on_ack(&mut self, ack: &Ack) {
        self.usage.on_ack(ack);
        match &mut self.knee {
            Knee::Service { rate, .. } => rate.on_ack(ack),
            Knee::Power { .. } => {}
            Knee::Curve { curve, .. } => curve.on_ack(ack),
        }
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let measured =
            self.usage.latest().zip(self.usage.waiting()).map(|(rtt, waiting)| (rtt.as_secs_f64(), waiting.as_secs_f64()));
        let min = self.usage.min().as_secs_f64();
        if loss.trigger == Trigger::Timeout {
            self.usage.on_timeout();
        }
        let Some((rtt, waiting)) = measured else { return Verdict::UNKNOWN };
        match &self.knee {
            Knee::Service { kappa, rate } => rate.service_time(loss.path.mss).map_or(Verdict::UNKNOWN, |service| {
                let service = service.as_secs_f64();
                Verdict::decided(waiting < kappa * service, falling(waiting / service))
            }),
            Knee::Power { g } => Verdict::decided(rtt < g * min, if rtt > 0.0 { min / rtt } else { 0.0 }),
            Knee::Curve { deviations, curve } => curve.knee().map_or(Verdict::UNKNOWN, |(mean, deviation)| {
                // Rounds of one length would make every sample infinitely far away.
                let above = (rtt - mean) / deviation.max(1e-9);
                Verdict::decided(above < *deviations, falling(above))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};
    use super::bin_of;

    #[test]
    fn two_service_times_above_the_minimum_is_the_knee() {
        let mut sender = Script::new(built("ncpld", &[]));
        sender.ack(100.0);
        assert_eq!(sender.judge().cause, Unknown, "no rate yet");
        for _ in 0..10 {
            sender.pause(5.0).ack(100.0); // a segment every 5 ms
        }
        for (rtt, cause) in [(109.9, Corruption), (110.0, Congestion), (100.0, Corruption), (150.0, Congestion)] {
            sender.pause(5.0).ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
        assert!((sender.judge().score - 1.0 / 11.0).abs() < 1e-9, "ten service times");
    }

    #[test]
    fn twice_the_minimum_is_the_knee_of_power() {
        let mut sender = Script::new(built("ncpld", &[("reading", "r2".into())]));
        assert_eq!(sender.judge().cause, Unknown);
        for (rtt, cause) in [(100.0, Corruption), (199.9, Corruption), (200.0, Congestion)] {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
        assert_eq!(sender.judge().score, 0.5);
    }

    #[test]
    fn the_measured_knee_is_where_throughput_stops_to_grow() {
        let mut sender = Script::new(built("ncpld", &[("reading", "r3".into())]));
        assert_eq!(sender.judge().cause, Unknown);
        // 100 ms and 10 segments of bandwidth-delay product: up to 10 the rate grows, then the delay.
        for window in [2, 4, 6, 8, 10, 12, 16, 20] {
            for rtt in [100.0, 102.0] {
                sender.window(window).rounds(3, if window > 10 { 10.0 * window as f64 } else { rtt });
            }
        }
        // At the knee: 101 +- 1 ms.
        for (rtt, cause) in [(100.0, Corruption), (101.5, Corruption), (104.0, Congestion), (160.0, Congestion)] {
            sender.ack(rtt);
            assert_eq!(sender.judge().cause, cause, "{rtt}");
        }
    }

    #[test]
    fn windows_fall_into_quarters_of_an_octave() {
        let windows = [1.0, 2.5, 7.9, 8.0, 9.9, 10.0, 12.0, 14.0, 15.9, 16.0, 19.0, 20.0, 1024.0];
        assert_eq!(windows.map(bin_of), [1, 2, 7, 8, 8, 9, 10, 11, 11, 12, 12, 13, 36]);
    }
}
