//! WTCP (Sinha et al. 1999): the sender goes by the rate that its receiver computes.

use super::{CongestionControl, NewReno, Window};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path};
use crate::segment::Report;
use crate::settings;
use crate::time::{Duration, Instant};

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "wtcp",
    summary: "Sends at the rate that the receiver asks for (`separation`), after a packet pair; without such a receiver it is NewReno.",
    reference: "Sinha et al. 1999",
    notes: Notes {
        idea: "Acknowledgements of a slow and asymmetric path come in bursts and say little of it. How far apart segments leave and arrive says \
               more, and is known at the receiver.",
        formula: "separation = what the receiver asks for, within its bounds; W = rounds * SRTT / separation segments",
        threshold: "",
        fails: "It believes the receiver. Where reports stop coming it is NewReno again.",
        errata: "Our readings: the window (`rounds`) bounds what is out while nothing is heard, and never the rate; the first rate is bounded \
                 (`start`), since what makes a pair arrive close together need not be the bottleneck; so is the growth (`growth`), so that a \
                 receiver that lies gains no more than a slow start without an end. Tables count its losses as `reduced`, since no verdict excuses \
                 them; the window stays.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// How far the receiver is believed.
    pub(super) struct Settings {
        /// Round trips at the rate that may be outstanding.
        rounds: f64 = 2.0, 1.0..=16.0;
        /// Segments a round trip of the highest rate that a packet pair can set.
        start: u32 = 64, 2..=65_535;
        /// By which factor the rate may grow in a round trip.
        growth: f64 = 2.0, 1.01..=16.0;
        /// The longest time between segments in milliseconds.
        slowest_ms: f64 = 2000.0, 1.0..=60_000.0;
        /// Round trips without a report after which acknowledgements let segments out, as NewReno's.
        patience: f64 = 8.0, 1.0..=1000.0;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(Wtcp::new(self))
    }
}

/// Goes by a rate.
#[derive(Debug)]
pub struct Wtcp {
    settings: Settings,
    /// Without a rate.
    plain: NewReno,
    rated: Option<Rated>,
}

#[derive(Clone, Copy, Debug)]
struct Rated {
    separation: Duration,
    /// The separation when this round trip began, and when it ends.
    round: (Duration, Instant),
    /// When the receiver said anything of it last.
    heard: Instant,
}

/// A round trip that nobody has measured (RFC 6298, 2.1).
const UNMEASURED: Duration = Duration::from_secs(1);

impl Wtcp {
    fn new(settings: Settings) -> Self {
        Self { settings, plain: NewReno::new(false), rated: None }
    }

    /// The receiver asks for a separation.
    fn heed(&mut self, asked: Duration, path: &Path) {
        let (now, trip) = (path.now, path.srtt.unwrap_or(UNMEASURED));
        let slowest = Duration::from_secs_f64(self.settings.slowest_ms / 1000.0);
        let within = |shortest: Duration| asked.min(slowest).max(shortest).max(Duration::from_micros(1));
        self.rated = Some(match self.rated {
            None => {
                let separation = within(trip / u64::from(self.settings.start));
                Rated { separation, round: (separation, now + trip), heard: now }
            }
            Some(Rated { separation, round, .. }) => {
                let round = if now >= round.1 { (separation, now + trip) } else { round };
                let shortest = Duration::from_secs_f64(round.0.as_secs_f64() / self.settings.growth);
                Rated { separation: within(shortest), round, heard: now }
            }
        });
    }

    fn window(&self, separation: Duration, window: &Window, path: &Path) -> u64 {
        let trip = path.srtt.unwrap_or(UNMEASURED).as_secs_f64();
        let segments = (self.settings.rounds * trip / separation.as_secs_f64()).max(4.0);
        (segments * f64::from(window.mss())) as u64
    }
}

impl CongestionControl for Wtcp {
    fn wants_separations(&self) -> bool {
        true
    }

    fn separation(&self, _octets: u32) -> Option<Duration> {
        self.rated.map(|rated| rated.separation)
    }

    fn on_established(&mut self, window: &mut Window, path: &Path) {
        if path.reports {
            // A pair, whose separation on arrival is the first rate.
            window.set_cwnd(2 * u64::from(window.mss()));
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let path = ack.path;
        let report = ack.options.rare.as_ref().filter(|_| path.reports).and_then(|rare| rare.report.as_ref());
        if let Some(Report::Pace(micros)) = report {
            self.heed(Duration::from_micros(u64::from(*micros)), path);
        } else if let Some(rated) = self.rated {
            let patience = self.settings.patience * path.srtt.unwrap_or(UNMEASURED).as_secs_f64();
            if path.now.since(rated.heard).as_secs_f64() > patience {
                self.rated = None;
            }
        }
        match self.rated {
            Some(_) if ack.in_recovery => {}
            Some(rated) => {
                window.set_cwnd(self.window(rated.separation, window, path));
                window.set_ssthresh(window.cwnd());
            }
            None => self.plain.on_ack(window, ack),
        }
    }

    fn save(&mut self) {
        self.plain.save();
    }

    /// What a loss means for the rate the receiver says.
    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        if self.rated.is_some() {
            window.cwnd()
        } else {
            self.plain.threshold(window, path)
        }
    }

    fn on_timeout(&mut self, window: &mut Window, path: &Path) {
        self.plain.on_timeout(window, path);
    }

    fn on_undo(&mut self, window: &mut Window, path: &Path) {
        self.plain.on_undo(window, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Options, RareOptions};

    const MSS: u64 = 1000;

    struct Sender {
        control: Wtcp,
        window: Window,
        path: Path,
    }

    impl Sender {
        fn new(reports: bool) -> Self {
            let path = Path { srtt: Some(Duration::from_millis(100)), flight: 10 * MSS, reports, ..Path::default() };
            let mut sender =
                Self { control: Wtcp::new(Settings::default()), window: Window::new(MSS as u32, 10 * MSS, u64::MAX), path };
            sender.control.on_established(&mut sender.window, &sender.path);
            sender
        }

        /// An acknowledgement of a segment at `ms` that asks for a separation; the one that is kept then.
        fn ack(&mut self, ms: u64, asks_us: Option<u32>) -> Option<u64> {
            self.path.now = Instant::ZERO + Duration::from_millis(ms);
            let report = asks_us.map(Report::Pace);
            let options =
                Options { rare: Some(Box::new(RareOptions { report, ..RareOptions::default() })), ..Options::default() };
            self.control.on_ack(&mut self.window, &Ack { acked: MSS, ..Ack::new(&self.path, &options) });
            self.control.separation(1000).map(|separation| separation.as_nanos() / 1000)
        }
    }

    #[test]
    fn a_pair_begins_and_the_receiver_sets_the_rate() {
        let mut sender = Sender::new(true);
        assert_eq!((sender.window.cwnd(), sender.control.separation(1000)), (2 * MSS, None));
        assert_eq!(sender.ack(100, Some(5000)), Some(5000));
        // Two round trips of 100 ms at 5 ms each.
        assert_eq!((sender.window.cwnd(), sender.window.in_slow_start()), (40 * MSS, false));
        assert_eq!(sender.ack(150, Some(8000)), Some(8000));
        assert_eq!(sender.window.cwnd(), 25 * MSS);
        let threshold = sender.control.threshold(&sender.window, &sender.path);
        assert_eq!(threshold, 25 * MSS, "a loss does not reduce");
        assert_eq!(sender.ack(160, Some(4_000_000_000)), Some(2_000_000), "no receiver silences a sender");
        assert_eq!(sender.window.cwnd(), 4 * MSS);
    }

    #[test]
    fn a_receiver_is_believed_within_bounds() {
        let mut sender = Sender::new(true);
        // 100 ms / 64.
        assert_eq!(sender.ack(100, Some(0)), Some(1562));
        // Twice the rate within a round trip, whatever is asked and how often.
        for ms in [101, 150, 199] {
            assert_eq!(sender.ack(ms, Some(1)), Some(781));
        }
        assert_eq!(sender.ack(200, Some(1)), Some(390));
        assert_eq!(sender.ack(299, Some(1)), Some(390));
    }

    #[test]
    fn without_reports_it_is_new_reno() {
        let mut sender = Sender::new(false);
        assert_eq!(sender.window.cwnd(), 10 * MSS);
        assert_eq!(sender.ack(100, Some(5000)), None, "nobody has agreed on that");
        assert_eq!(sender.window.cwnd(), 11 * MSS);
        assert_eq!(sender.control.threshold(&sender.window, &sender.path), 5 * MSS);
    }

    #[test]
    fn a_rate_of_which_nothing_is_heard_any_more_is_forgotten() {
        let mut sender = Sender::new(true);
        sender.ack(100, Some(5000));
        assert_eq!(sender.ack(900, None), Some(5000));
        assert_eq!(sender.ack(901, None), None);
        assert_eq!(sender.control.threshold(&sender.window, &sender.path), 5 * MSS);
        assert_eq!(sender.ack(950, Some(6000)), Some(6000));
    }
}
