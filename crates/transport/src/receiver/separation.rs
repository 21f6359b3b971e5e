//! WTCP's receiver (Sinha et al. 1999): how far apart segments leave and arrive tells the rate that the sender shall keep.

use super::{Arrival, ReceiveView, ReceiverAgent};
use crate::kit::{Build, Notes, Part};
use crate::segment::{Report, Separation};
use crate::settings;
use crate::time::{Duration, Instant};

pub(super) const PART: Part<dyn ReceiverAgent> = Part {
    name: "separation",
    summary: "Compares how far apart segments leave and arrive, in the short and in the long run, and asks the sender for a rate.",
    reference: "Sinha et al. 1999",
    notes: Notes {
        idea: "Segments that arrive farther apart than they left have filled a queue. Losses that come as often as they always do while no queue \
               grows are the channel's.",
        formula: "q = mean separation of leaving / of arriving, over few and over many segments; both below `congested`, or more losses in an epoch \
                  than mean + deviations * mean deviation: rate = (1 - decrease) * rate of arrival; both at least `free`: rate += increase / RTT; \
                  else the rate stays; at first, and until there was congestion at least, the separation of a pair that left at once",
        threshold: "",
        fails: "Where separations are not kept: senders or links that send in bursts. A queue that neither grows nor shrinks is not seen.",
        errata: "From recollections of the publication, which we could not read again; all numbers and these points are our readings. Averages are of the \
                 separations, not of their ratio, whose mean is too large where they vary. They begin anew when the sender slows down. \
                 A change of the rate is waited for before the next one, so that the rate rises by `increase` segments a round trip in a \
                 round trip, as Reno's, and falls once. The first epoch has no history and counts as random; those in which a queue grows \
                 are no part of it.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What is compared, and what follows.
    pub(super) struct Settings {
        /// Weight of a separation in the average of the short run.
        short_gain: f64 = 0.25, 0.01..=1.0;
        /// Weight of a separation in the average of the long run.
        long_gain: f64 = 0.0625, 0.001..=1.0;
        /// Separations at a rate before anything is made of them.
        samples: u32 = 8, 1..=1000;
        /// Ratio of separations below which a queue grows.
        congested: f64 = 0.95, 0.1..=1.0;
        /// Ratio of separations from which on there is room for more.
        free: f64 = 0.98, 0.1..=2.0;
        /// The part of the rate that is given up on congestion.
        decrease: f64 = 0.25, 0.01..=0.9;
        /// Segments a round trip by which the rate grows.
        increase: f64 = 1.0, 0.01..=100.0;
        /// Segments over which losses are counted.
        epoch: u32 = 32, 4..=10_000;
        /// Mean deviations above the mean from which on losses are congestion.
        deviations: f64 = 1.0, 0.0..=10.0;
        /// Weight of an epoch in the history of losses.
        loss_gain: f64 = 0.125, 0.01..=1.0;
    }
}

impl Build<dyn ReceiverAgent> for Settings {
    fn build(self) -> Box<dyn ReceiverAgent> {
        Box::new(Separations::new(self))
    }
}

/// Asks for a rate.
#[derive(Debug)]
pub struct Separations {
    settings: Settings,
    /// The latest transmission that arrived: its number, and when.
    last: Option<(u8, Instant)>,
    /// Separation of the first pair in microseconds, until there was congestion: a sender that has not dared to go by it gets there.
    pair: Option<u32>,
    /// Of the sender, in microseconds; 0 while it has no rate.
    rate: u32,
    /// Segments at this rate that say something.
    samples: u32,
    short: Mean,
    long: Mean,
    losses: Losses,
    /// What the sender is asked for, in microseconds.
    asked: Option<u32>,
    /// Until when the sender is given time to follow.
    waits: Option<Instant>,
    /// The sender's shortest round trip, if it has said one.
    trip: Option<Duration>,
}

/// Averages of separations in microseconds, as they left and as they arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    count: u32,
    left: f64,
    arrived: f64,
}

impl Mean {
    /// At first all count alike. What one segment waits too long the next one waits less, so that the error of a mean of n falls with n;
    /// a first one that counts for long would keep its error for as long.
    fn take(&mut self, gain: f64, left: f64, arrived: f64) {
        self.count = self.count.saturating_add(1);
        let gain = gain.max(1.0 / f64::from(self.count));
        self.left += gain * (left - self.left);
        self.arrived += gain * (arrived - self.arrived);
    }

    /// How much closer they left than they arrived: below 1 a queue grows.
    fn ratio(&self) -> f64 {
        self.left / self.arrived.max(f64::MIN_POSITIVE)
    }
}

/// How many segments of an epoch are lost where no queue grows.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// Mean and mean deviation.
    usual: Option<(f64, f64)>,
    sent: u32,
    lost: u32,
}

impl Losses {
    /// `lost` segments, and one that came. Whether an epoch is over that had more losses than usual.
    fn count(&mut self, lost: u32, queue_grows: bool, settings: &Settings) -> bool {
        self.sent += lost + 1;
        self.lost += lost;
        if self.sent < settings.epoch {
            return false;
        }
        let found = f64::from(self.lost);
        (self.sent, self.lost) = (0, 0);
        let unusual = self.usual.is_some_and(|(mean, deviation)| found > mean + settings.deviations * deviation);
        if !queue_grows {
            let gain = settings.loss_gain;
            self.usual = Some(match self.usual {
                None => (found, found / 2.0),
                Some((mean, deviation)) => (mean + gain * (found - mean), deviation + gain * ((found - mean).abs() - deviation)),
            });
        }
        unusual
    }
}

/// A round trip that nobody has measured (RFC 6298, 2.1).
const UNMEASURED: Duration = Duration::from_secs(1);
/// Round trips that a sender is given to follow.
const PATIENCE: u64 = 4;

impl Separations {
    fn new(settings: Settings) -> Self {
        Self {
            settings,
            last: None,
            pair: None,
            rate: 0,
            samples: 0,
            short: Mean::default(),
            long: Mean::default(),
            losses: Losses::default(),
            asked: None,
            waits: None,
            trip: None,
        }
    }

    /// The sender has another rate.
    fn on_rate(&mut self, micros: u32) {
        if micros > self.rate {
            (self.short, self.long) = (Mean::default(), Mean::default());
        }
        (self.rate, self.samples, self.waits) = (micros, 0, None);
    }

    fn ask(&mut self, micros: f64, view: &ReceiveView) {
        self.asked = Some((micros as u32).max(1));
        let trip = self.trip.max(view.srtt).unwrap_or(UNMEASURED);
        self.waits = Some(view.now + trip * PATIENCE);
    }

    /// What the averages say, as soon as they say anything.
    fn ratios(&self) -> Option<(f64, f64)> {
        (self.samples >= self.settings.samples).then(|| (self.short.ratio(), self.long.ratio()))
    }

    fn queue_grows(&self) -> bool {
        self.ratios().is_some_and(|(short, long)| short.max(long) < self.settings.congested)
    }

    fn decide(&mut self, unusual: bool, view: &ReceiveView) {
        if self.waits.is_some_and(|until| view.now < until) {
            return;
        }
        let rate = f64::from(self.rate);
        if self.queue_grows() || unusual {
            self.pair = None;
            self.ask(self.short.arrived.max(rate) / (1.0 - self.settings.decrease), view);
        } else if self.ratios().is_some_and(|(short, long)| short.min(long) >= self.settings.free) {
            // Not what the handshake took, which is all that this side has measured: who comes when the queue is full would rise more slowly.
            let trip = self.trip.or(view.srtt).unwrap_or(UNMEASURED).as_secs_f64() * 1e6;
            let more = 1.0 / (1.0 / rate + self.settings.increase / trip);
            self.ask(self.pair.map_or(more, |pair| more.min(f64::from(pair))), view);
        }
    }
}

impl ReceiverAgent for Separations {
    fn wants_reports(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        let Some(said) = arrival.segment.options.rare.as_ref().and_then(|rare| rare.separation) else { return };
        let Separation { number, micros, kept, trip } = said;
        let view = &arrival.view;
        let Some((before, at)) = self.last else {
            (self.last, self.rate) = (Some((number, view.now)), micros);
            return;
        };
        let ahead = number.wrapping_sub(before);
        if !(1..128).contains(&ahead) {
            return; // twice, or reordered
        }
        self.last = Some((number, view.now));
        if trip > 0 {
            self.trip = Some(Duration::from_micros(100 * u64::from(trip)));
        }
        let next = ahead == 1 && kept;
        let apart = view.now.since(at).as_nanos() as f64 / 1000.0;
        if micros == 0 {
            if next && self.asked.is_none() && arrival.len == view.full_segment {
                self.asked = Some((apart as u32).max(1));
                self.pair = self.asked;
            }
            self.rate = 0;
            return;
        }
        if micros != self.rate {
            // It left by the turn of the rate before.
            self.on_rate(micros);
        } else if next {
            self.short.take(self.settings.short_gain, f64::from(micros), apart);
            self.long.take(self.settings.long_gain, f64::from(micros), apart);
            self.samples = self.samples.saturating_add(1);
        }
        let settings = self.settings;
        let unusual = self.losses.count(u32::from(ahead) - 1, self.queue_grows(), &settings);
        self.decide(unusual, view);
    }

    fn report(&mut self, view: &ReceiveView) -> Option<Report> {
        self.asked.filter(|_| view.reports_negotiated).map(Report::Pace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Options, RareOptions, Segment};

    const FULL: u32 = 1000;

    /// A receiver whose handshake took 100 ms.
    struct Line {
        agent: Separations,
        now: f64,
        number: u8,
        /// The shortest one that the sender has measured.
        trip: u16,
    }

    impl Line {
        fn new(settings: Settings) -> Self {
            Self { agent: Separations::new(settings), now: 0.0, number: 0, trip: 0 }
        }

        /// The next transmission but `lost` arrives `apart` microseconds after what came last; what is asked for then.
        fn arrive(&mut self, micros: u32, apart: f64, lost: u8, kept: bool) -> Option<u32> {
            self.now += apart;
            self.number = self.number.wrapping_add(lost + 1);
            let separation = Some(Separation { number: self.number, micros, kept, trip: self.trip });
            let rare = Some(Box::new(RareOptions { separation, ..RareOptions::default() }));
            let segment = Segment { options: Options { rare, ..Options::default() }, ..Segment::default() };
            let now = Instant::from_nanos((self.now * 1000.0) as u64);
            let view = ReceiveView { full_segment: FULL, srtt: Some(Duration::from_millis(100)), ..ReceiveView::new(now, 0) };
            self.agent.on_arrival(&Arrival::new(view, &segment, 0, FULL));
            match self.agent.report(&view) {
                Some(Report::Pace(micros)) => Some(micros),
                None => None,
                other => panic!("{other:?}"),
            }
        }

        /// So many in a row; what is asked for in the end.
        fn row(&mut self, count: u32, micros: u32, apart: f64) -> Option<u32> {
            (0..count).map(|_| self.arrive(micros, apart, 0, true)).last().flatten()
        }
    }

    #[test]
    fn a_pair_that_left_at_once_sets_the_first_rate() {
        let mut line = Line::new(Settings::default());
        assert_eq!(line.arrive(0, 0.0, 0, false), None);
        assert_eq!(line.arrive(0, 5800.0, 0, true), Some(5800));
        assert_eq!(line.arrive(0, 900.0, 0, true), Some(5800), "the first one counts");
        let mut line = Line::new(Settings::default());
        line.arrive(0, 0.0, 0, false);
        assert_eq!(line.arrive(0, 5800.0, 0, false), None, "they left apart");
        assert_eq!(line.arrive(0, 5800.0, 1, true), None, "and here one between them was lost");
    }

    #[test]
    fn while_segments_arrive_as_they_left_the_rate_rises_by_one_segment_a_round_trip() {
        let mut line = Line::new(Settings::default());
        // The first two say nothing: where the row begins, and where the rate does.
        assert_eq!(line.row(8, 10_000, 10_000.0), None);
        // 100 a second and one more for each 100 ms are 110: 9091 us.
        assert_eq!(line.row(1, 10_000, 10_000.0), Some(9090));
        assert_eq!(line.row(30, 10_000, 10_000.0), Some(9090), "until the sender follows");
        // 10^6 / 9090 + 10 = 120.01.
        assert_eq!(line.row(9, 9090, 9090.0), Some(8332));
    }

    #[test]
    fn the_sender_s_shortest_round_trip_counts() {
        let mut line = Line { trip: 500, ..Line::new(Settings::default()) };
        assert_eq!(line.row(9, 10_000, 10_000.0), Some(8333), "100 a second and one more for each 50 ms");
    }

    #[test]
    fn a_sender_that_has_not_dared_to_go_by_the_pair_is_led_there_until_there_is_congestion() {
        let mut line = Line::new(Settings::default());
        line.arrive(0, 0.0, 0, false);
        assert_eq!(line.arrive(0, 1000.0, 0, true), Some(1000));
        assert_eq!(line.row(9, 20_000, 20_000.0), Some(1000), "and not 16.7 ms");
        assert_eq!(line.row(9, 10_000, 20_000.0), Some(26_666));
        assert_eq!(line.row(9, 26_666, 26_666.0), Some(21_052), "10^6 / 26666 + 10 = 47.5");
    }

    #[test]
    fn segments_that_arrive_farther_apart_than_they_left_lower_the_rate_once() {
        let mut line = Line::new(Settings::default());
        // What arrives every 12.5 ms, less a quarter of it: 16.67 ms.
        assert_eq!(line.row(40, 10_000, 12_500.0), Some(16_666));
        // The queue drains: what arrives still comes every 12.5 ms, which is no congestion at the new rate, but room for more in time.
        assert_eq!(line.row(8, 16_666, 12_500.0), Some(16_666));
        assert_eq!(line.row(1, 16_666, 12_500.0), Some(14_285), "10^6 / 16666 + 10 = 70");
    }

    #[test]
    fn between_the_thresholds_the_rate_stays() {
        let mut line = Line::new(Settings::default());
        assert_eq!(line.row(200, 10_000, 10_000.0 / 0.96), None);
        // One that comes late moves the short average alone.
        let mut line = Line::new(Settings { free: 1.5, ..Settings::default() });
        line.row(50, 10_000, 10_000.0);
        assert_eq!(line.arrive(10_000, 13_000.0, 0, true), None, "long: 10,188 us, short: 10,750 us");
    }

    #[test]
    fn what_did_not_keep_its_turn_is_no_sample() {
        let mut line = Line::new(Settings::default());
        for _ in 0..100 {
            assert_eq!(line.arrive(10_000, 40_000.0, 0, false), None);
        }
        // Nor is what follows a loss.
        let mut line = Line::new(Settings { deviations: 10.0, ..Settings::default() });
        for _ in 0..100 {
            assert_eq!(line.arrive(10_000, 20_000.0, 1, true), None);
        }
    }

    #[test]
    fn losses_as_usual_are_random_and_more_are_congestion() {
        let mut losses = Losses::default();
        let settings = Settings { epoch: 10, ..Settings::default() };
        let mut epoch = |lost: u32, grows: bool| {
            let found = (0..10 - lost - 1).any(|_| losses.count(0, grows, &settings));
            assert!(!found, "not before the epoch is over");
            losses.count(lost, grows, &settings)
        };
        // Without a history: mean 2, deviation 1.
        assert!(!epoch(2, false));
        // Up to 3 are usual; mean 2.125, deviation 1.
        assert!(!epoch(3, false));
        assert!(epoch(4, true));
        assert!(epoch(4, true), "what a growing queue drops is no part of the history");
        assert!(!epoch(3, false));
        assert_eq!(losses.usual, Some((2.234_375, 0.984_375)));
    }

    #[test]
    fn an_epoch_with_more_losses_than_usual_lowers_the_rate() {
        let mut line = Line::new(Settings { free: 2.0, ..Settings::default() });
        line.row(64, 10_000, 10_000.0);
        for _ in 0..3 {
            line.arrive(10_000, 30_000.0, 2, true);
        }
        assert_eq!(line.row(32, 10_000, 10_000.0), Some(13_333));
    }

    #[test]
    fn what_comes_twice_or_late_changes_nothing() {
        let mut line = Line::new(Settings::default());
        line.row(4, 10_000, 10_000.0);
        let before = format!("{:?}", line.agent);
        line.number = line.number.wrapping_sub(1);
        line.arrive(10_000, 0.0, 0, true);
        line.number = line.number.wrapping_sub(60);
        line.arrive(70_000, 0.0, 0, true);
        assert_eq!(format!("{:?}", line.agent), before);
    }

    #[test]
    fn no_separation_is_too_strange() {
        let mut line = Line::new(Settings::default());
        for (n, micros) in [1, u32::MAX >> 1, 0, 1, 7, u32::MAX >> 1].into_iter().cycle().take(600).enumerate() {
            let asked = line.arrive(micros, (n % 3) as f64 * 1e9, (n % 128) as u8, n % 2 == 0);
            assert!(asked.is_none_or(|asked| asked > 0));
        }
    }
}
