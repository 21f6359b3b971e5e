//! TCP-Real's receiver: measures the rate at which waves arrive (Tsaoussidis & Zhang 2002).

use super::{Arrival, ReceiveView, ReceiverAgent};
use crate::estimate::{Extremes, Remembered};
use crate::kit::{Build, Notes, Part};
use crate::segment::{RateReport, Report, Wave, WaveRate};
use crate::time::{Duration, Instant};
use crate::{choices, settings};

pub(super) const PART: Part<dyn ReceiverAgent> = Part {
    name: "waves",
    summary: "Reports the rate at which the last complete wave arrived.",
    reference: "Tsaoussidis & Zhang 2002",
    notes: Notes {
        idea: "What leaves in a row arrives as densely as the path allows. The published size counts, not what arrived, so that random losses do not \
               change the rate.",
        formula: "rate = size / (t_last - t_first); the report carries round(255 rate / highest rate), at least 1",
        threshold: "",
        fails: "Pacing and segmentation offload; waves whose first or last segments are lost, which look faster.",
        errata: "A wave of k segments spans k - 1 intervals (`intervals`). `extrapolate` measures between the segments that came. The highest rate grows \
                 once for all, so that one compressed wave makes all later ones look slow: `scale = windowed` remembers it for 60 s. A wave is complete \
                 when as many segments have come as it has or one of a later wave; there is no timer. If the place of the later one shows that the \
                 sender ended the wave before its published size, what left in it counts, lost segments included. `code = 16-bit` reports the rate as \
                 it is, which no new highest rate distorts; the layout is ours.",
    },
    ..Part::of::<Settings>()
};

choices! {
    /// How long the highest rate is remembered.
    enum Scale {
        /// As long as the connection lasts.
        Lifetime = "lifetime",
        /// For 60 s.
        Windowed = "windowed",
    }
}

choices! {
    /// How a report says a rate.
    pub enum Code {
        /// As a part of the highest one.
        Scaled = "8-bit",
        /// As it is.
        Measured = "16-bit",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// Measure between the first and the last segment that came, by their places, instead of with the published size.
        extrapolate: bool = false;
        /// Count the intervals between segments instead of the segments.
        intervals: bool = false;
        /// The rate that 255 stands for: the highest of the connection, or of the last 60 s.
        scale: Scale;
        /// How a report says a rate: as a part of that highest one in 8 bits, as published, or as it is in 16 bits.
        code: Code;
    }
}

impl Build<dyn ReceiverAgent> for Settings {
    fn build(self) -> Box<dyn ReceiverAgent> {
        let scale = match self.scale {
            Scale::Windowed => Extremes::Windowed(Duration::from_secs(60)),
            Scale::Lifetime => Extremes::Lifetime,
        };
        Box::new(Waves::new(self.extrapolate, self.intervals, scale, self.code))
    }
}

/// Measures waves and repeats the rate of the last complete one on every acknowledgement.
#[derive(Debug)]
pub struct Waves {
    extrapolate: bool,
    intervals: bool,
    code: Code,
    /// Rates in segments per 10⁶ s.
    rates: Remembered,
    current: Option<Current>,
    report: Option<RateReport>,
    /// The end of what has come of any wave.
    end: Option<u64>,
}

/// The wave that is arriving.
#[derive(Clone, Copy, Debug)]
struct Current {
    wave: Wave,
    arrived: u32,
    /// Where it begins: at the end of what came before it.
    start: u64,
    first: (Instant, u64),
    last: (Instant, u64),
}

impl Waves {
    /// See the row's parameters.
    pub fn new(extrapolate: bool, intervals: bool, scale: Extremes, code: Code) -> Self {
        Self { extrapolate, intervals, code, rates: Remembered::new(scale), current: None, report: None, end: None }
    }

    /// The wave is over; `next` is where a later one was seen first.
    fn complete(&mut self, now: Instant, full: u32, next: Option<u64>) {
        let Some(Current { wave, arrived, start, first, last }) = self.current.take() else { return };
        let span = last.0.since(first.0);
        if span == Duration::ZERO || arrived < if self.extrapolate { 3 } else { 2 } {
            return;
        }
        let full = u64::from(full.max(1));
        let left = next.map_or(u64::MAX, |next| next.saturating_sub(start).div_ceil(full).max(u64::from(arrived)));
        let segments = if self.extrapolate { (last.1 - first.1) / full + 1 } else { u64::from(wave.size).min(left) };
        let counted = segments - u64::from(self.intervals && segments > 1);
        let rate = counted * 1_000_000_000_000_000 / span.as_nanos();
        self.rates.insert(rate, now);
        let rate = match self.code {
            Code::Scaled => {
                let highest = self.rates.extent().max().max(1);
                let code = (255.0 * rate as f64 / highest as f64 + 0.5) as u64;
                WaveRate::Scaled(code.clamp(1, 255) as u8)
            }
            Code::Measured => WaveRate::measured(rate),
        };
        self.report = Some(RateReport { wave: wave.number, rate });
    }
}

impl ReceiverAgent for Waves {
    fn wants_reports(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        let Some(wave) = arrival.segment.options.wave.filter(|wave| wave.size > 0) else { return };
        let Arrival { view, start, len, duplicate, .. } = *arrival;
        let (now, full) = (view.now, view.full_segment);
        if let Some(current) = &self.current {
            let ahead = wave.number.wrapping_sub(current.wave.number);
            if ahead >= 128 {
                return; // reordered
            }
            if ahead > 0 {
                self.complete(now, full, Some(start));
            }
        }
        // A retransmission belongs to no wave.
        if duplicate || start + u64::from(len) != view.islands.last().map_or(view.next, |island| island.1) {
            return;
        }
        let seen = (now, start);
        let begins = self.end.replace(start + u64::from(len)).unwrap_or(start);
        let current = self.current.get_or_insert(Current { wave, arrived: 0, start: begins, first: seen, last: seen });
        current.arrived += 1;
        current.last = seen;
        if current.arrived >= u32::from(current.wave.size) {
            self.complete(now, full, None);
        }
    }

    fn report(&mut self, view: &ReceiveView) -> Option<Report> {
        self.report.filter(|_| view.reports_negotiated).map(Report::Rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Options, Segment};

    const FULL: u64 = 1000;

    struct Line {
        waves: Waves,
        next: u64,
        now: Instant,
    }

    impl Line {
        fn new(extrapolate: bool, intervals: bool) -> Self {
            let waves = Waves::new(extrapolate, intervals, Extremes::Lifetime, Code::Scaled);
            Self { waves, next: 0, now: Instant::ZERO }
        }

        /// Segment `n` of the stream, in wave `number` of `size`, arrives at `ms`; what is then reported.
        fn segment(&mut self, n: u64, number: u8, size: u8, ms: u64) -> Option<(u8, u8)> {
            self.now = Instant::ZERO + Duration::from_millis(ms);
            let segment =
                Segment { options: Options { wave: Some(Wave { number, size }), ..Options::default() }, ..Segment::default() };
            self.next = self.next.max(FULL * (n + 1));
            let view = ReceiveView {
                first: 0,
                window_end: self.next,
                islands: &[],
                full_segment: FULL as u32,
                ..ReceiveView::new(self.now, self.next)
            };
            let (start, len) = (FULL * n, FULL as u32);
            let arrival = Arrival { view, start, len, duplicate: false, spacing: None, trip: None, gap: None, segment: &segment };
            self.waves.on_arrival(&arrival);
            self.waves.report(&view).map(|report| match report {
                Report::Rate(RateReport { wave, rate }) => (wave, rate.value() as u8),
                other => panic!("{other:?}"),
            })
        }
    }

    #[test]
    fn rates_are_relative_to_the_highest() {
        let mut line = Line::new(false, false);
        // Five in 40 ms: 125/s.
        assert_eq!((0..4).find_map(|n| line.segment(n, 7, 5, 10 * n)), None);
        assert_eq!(line.segment(4, 7, 5, 40), Some((7, 255)));
        // Five in 80 ms: half of it; said only when the wave is complete.
        assert_eq!((5..9).map(|n| line.segment(n, 8, 5, 100 + 20 * (n - 5))).last(), Some(Some((7, 255))));
        assert_eq!(line.segment(9, 8, 5, 180), Some((8, 128)));
        // Five in 20 ms are the new measure, after which 40 ms are only half.
        for n in 10..15 {
            line.segment(n, 9, 5, 200 + 5 * (n - 10));
        }
        let last = (15..20).map(|n| line.segment(n, 10, 5, 300 + 10 * (n - 15))).last();
        assert_eq!(last, Some(Some((10, 128))));
    }

    #[test]
    fn a_rate_that_means_itself_is_not_distorted_by_a_new_highest_one() {
        let rates = |code| {
            let mut line = Line::new(false, false);
            line.waves.code = code;
            // 125/s, 250/s and 125/s again.
            let mut told = Vec::new();
            for (wave, gap) in [(1, 10), (2, 5), (3, 10)] {
                let from = u64::from(wave - 1) * 5;
                for n in 0..5 {
                    line.segment(from + n, wave, 5, 100 * u64::from(wave) + gap * n);
                }
                told.push(line.waves.report.unwrap().rate);
            }
            told
        };
        assert_eq!(rates(Code::Scaled), [255, 255, 128].map(WaveRate::Scaled), "the same 125/s are 255, then 128");
        assert_eq!(rates(Code::Measured), [125, 250, 125].map(|rate| WaveRate::measured(rate * 1_000_000)));
    }

    #[test]
    fn numbers_of_waves_wrap() {
        let mut line = Line::new(false, false);
        for wave in 0..600_u64 {
            for n in 0..3 {
                line.segment(3 * wave + n, wave as u8, 3, 30 * wave + 10 * n);
            }
            assert_eq!(line.waves.report.unwrap().wave, wave as u8, "{wave}");
            // One of the wave before comes late, and one without its option.
            line.segment(3 * wave + 2, (wave as u8).wrapping_sub(1), 3, 30 * wave + 20);
            line.segment(3 * wave + 2, 0, 0, 30 * wave + 20);
        }
    }

    #[test]
    fn a_wave_ends_with_the_next_and_losses_count_as_published() {
        for (extrapolate, intervals, code) in [(false, false, 255), (true, false, 204), (false, true, 255), (true, true, 191)] {
            let mut line = Line::new(extrapolate, intervals);
            // Five in 40 ms: 125/s, of intervals 100/s.
            for n in 0..5 {
                line.segment(n, 1, 5, 10 * n);
            }
            // Of the next five the last is lost: 5 in 30 ms as published, 4 as measured by places, of which one in the middle is lost, too.
            // As published that is faster than ever. By places it is as fast.
            line.segment(5, 2, 5, 100);
            line.segment(6, 2, 5, 113);
            line.segment(8, 2, 5, 140);
            let report = line.segment(10, 3, 5, 200);
            assert_eq!(report, Some((2, code)), "extrapolate {extrapolate}, intervals {intervals}");
        }
    }

    #[test]
    fn a_wave_that_was_cut_short_counts_as_what_left_in_it() {
        let mut line = Line::new(false, false);
        // Five in 40 ms: 125/s.
        for n in 0..5 {
            line.segment(n, 1, 5, 10 * n);
        }
        // Twenty were announced. The seventh belongs to another wave, so six left, of which one was lost: 6 in 48 ms are as fast.
        for (n, ms) in [(5, 100), (6, 110), (8, 130), (9, 138), (10, 148)] {
            line.segment(n, 2, 20, ms);
        }
        assert_eq!(line.segment(11, 3, 5, 200), Some((2, 255)));
        let last = (12..16).map(|n| line.segment(n, 3, 5, 200 + 10 * (n - 11))).last();
        assert_eq!(last, Some(Some((3, 255))), "20 in 48 ms would have been the highest rate");
    }

    #[test]
    fn what_belongs_to_no_wave_is_not_measured() {
        let mut line = Line::new(false, false);
        line.segment(0, 1, 3, 0);
        line.segment(3, 1, 3, 10);
        assert_eq!(line.segment(1, 1, 3, 20), None, "a repair");
        assert_eq!(line.segment(4, 200, 9, 20), None, "long ago");
        assert_eq!(line.segment(5, 1, 0, 25), None, "nonsense");
        line.segment(6, 2, 3, 30);
        line.segment(7, 3, 3, 30);
        assert_eq!(line.segment(8, 4, 3, 40).map(|(wave, _)| wave), Some(1), "waves of which one came add nothing");
    }
}
