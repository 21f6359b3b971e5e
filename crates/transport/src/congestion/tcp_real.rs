//! TCP-Real: the window follows the rate at which waves arrive.

use super::slow_start::SlowStart;
use super::{CongestionControl, Window};
use crate::estimate::wave_rates::Forming;
use crate::estimate::WaveRates;
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Formation, Path, Sent};
use crate::settings;

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "tcp-real",
    summary: "Grows as Reno while waves arrive as fast as before, holds while they slow down, and yields a part when they slow down much.",
    reference: "Tsaoussidis & Zhang 2002",
    notes: Notes {
        idea: "The receiver sees a filling queue before it overflows: waves arrive more slowly.",
        formula: "r = rate / rate before; r >= 1: W += 1 a round trip; hold <= r < 1: W stays; r < hold: W *= 1 - gamma, once a wave",
        threshold: "",
        fails: "As the differentiator of that name.",
        errata: "The printed figure subtracts 1/8 where the text multiplies by 1 - 1/8; the text is followed. The figure has no slow start; here it is the \
                 standard one, and a falling rate ends it only with `gamma_in_slow_start`. After a reduction by gamma the threshold is the window, \
                 or it would grow back at once.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Let the rate rule growth at all: without, the window grows as Reno's.
        avoidance: bool = true;
        /// The part of the window that is yielded when the rate falls much.
        gamma: f64 = 0.125, 0.0..=0.9;
        /// The ratio of rates below which that happens.
        hold: f64 = 0.8, 0.0..=1.0;
        /// Let a falling rate end slow start.
        gamma_in_slow_start: bool = false;
        forming: Forming;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(TcpReal {
            gamma: self.gamma,
            hold: self.hold,
            avoidance: self.avoidance,
            in_slow_start: self.gamma_in_slow_start,
            formation: self.forming.waves,
            rates: WaveRates::default(),
            yielded: false,
            slow_start: SlowStart::new(false),
        })
    }
}

/// Tsaoussidis & Zhang 2002, figure 1.
#[derive(Debug)]
pub struct TcpReal {
    gamma: f64,
    hold: f64,
    avoidance: bool,
    in_slow_start: bool,
    formation: Formation,
    rates: WaveRates,
    /// The window was reduced for the latest wave.
    yielded: bool,
    slow_start: SlowStart,
}

impl CongestionControl for TcpReal {
    fn wants_waves(&self) -> Option<Formation> {
        Some(self.formation)
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.rates.on_sent(sent);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if self.rates.on_ack(ack) {
            self.yielded = false;
        }
        if ack.acked == 0 || ack.in_recovery {
            return;
        }
        let ratio = if self.avoidance { self.rates.ratio() } else { 1.0 };
        let slow_start = window.in_slow_start();
        if ratio < self.hold && (!slow_start || self.in_slow_start) {
            if !std::mem::replace(&mut self.yielded, true) {
                window.set_cwnd((window.cwnd() as f64 * (1.0 - self.gamma)) as u64);
                window.set_ssthresh(window.cwnd());
            }
            return;
        }
        if slow_start {
            self.slow_start.on_ack(window, ack);
            return;
        }
        self.slow_start.on_left();
        if ratio >= 1.0 && ack.window_limited {
            window.grow(f64::from(window.mss()) * ack.acked as f64 / window.cwnd() as f64);
        }
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        window.used(path) / 2
    }

    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {
        self.slow_start.on_timeout();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::wave_rates::tests::{self, ack, reporting};
    use crate::kit::Arguments;
    use std::collections::BTreeMap;

    #[test]
    fn the_window_follows_the_rate() {
        let mut cc = PART.build(&Arguments::check(&PART, &BTreeMap::new()).unwrap());
        let mut window = Window::new(1000, 16_000, 8_000);
        let path = Path::default();
        let mut report = |wave, rate| {
            tests::wave(wave, 16).for_each(|sent| cc.on_sent(&sent));
            cc.on_ack(&mut window, &ack(&path, &reporting(wave, rate)));
            window.cwnd()
        };
        assert_eq!(report(1, 200), 16_062, "the first rate: 1000 / 16 more");
        assert_eq!(report(2, 160), 16_062, "0.8: hold");
        assert_eq!(report(3, 159), 16_062);
        assert_eq!(report(4, 127), 14_054, "0.799: an eighth less");
        assert_eq!(report(4, 127), 14_054, "once a wave");
        assert_eq!(report(5, 127), 14_125, "1: 1000 / 14.054 more");
    }
}
