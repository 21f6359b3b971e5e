//! The rates of waves that a receiver reports (Tsaoussidis & Zhang 2002).

use crate::path::{Ack, Formation, Sent};
use crate::segment::Report;
use crate::settings;

/// Waves of so many segments or fewer say nothing. (The publication's text has "less than four", its figures "larger than 4".)
const TOO_SMALL: u8 = 4;

settings! {
    /// What can be set of a sender of waves.
    pub(crate) struct Forming {
        /// What forms a wave: a run of segments that leave without a pause, of a window and a round trip at most; as many segments as the window holds
        /// when it begins, whenever they leave; what leaves at one moment; or the window, held back until all of it can leave in a row.
        pub waves: Formation;
    }
}

/// The latest rates, and the highest and lowest of an epoch. Rates are what reports carry, whose unit does not matter here: parts of the highest that
/// the receiver has seen, or segments in 10^6 s.
#[derive(Clone, Debug)]
pub struct WaveRates {
    /// Segments that left in each wave, by its number, which may be fewer than it published; 0 for those that were not sent.
    sizes: [u8; 256],
    latest: Option<u8>,
    reported: Option<u8>,
    previous: Option<f64>,
    current: Option<f64>,
    lowest: f64,
    highest: f64,
    updates: u32,
}

impl Default for WaveRates {
    fn default() -> Self {
        Self {
            sizes: [0; 256],
            latest: None,
            reported: None,
            previous: None,
            current: None,
            lowest: f64::INFINITY,
            highest: 0.0,
            updates: 0,
        }
    }
}

impl WaveRates {
    /// A segment with data left.
    pub fn on_sent(&mut self, sent: &Sent) {
        let Some(wave) = sent.wave.filter(|_| sent.transmission == 0) else { return };
        let size = &mut self.sizes[usize::from(wave.number)];
        // Numbers come again after 256 waves.
        *size = if self.latest.replace(wave.number) == Some(wave.number) { size.saturating_add(1) } else { 1 };
    }

    /// An acknowledgement arrived; returns whether it reports a wave that says something and was not reported before.
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        let Some(Report::Rate(report)) = ack.options.rare.as_ref().and_then(|rare| rare.report.as_ref()) else { return false };
        // An acknowledgement that was overtaken reports an earlier wave.
        if self.reported.is_some_and(|reported| report.wave.wrapping_sub(reported).wrapping_sub(1) >= 127) {
            return false;
        }
        self.reported = Some(report.wave);
        self.previous = self.current;
        if self.sizes[usize::from(report.wave)] <= TOO_SMALL {
            return false;
        }
        let rate = report.rate.value();
        self.current = Some(rate);
        self.lowest = self.lowest.min(rate);
        self.highest = self.highest.max(rate);
        self.updates += 1;
        true
    }

    /// The latest rate by the one before; 1 if there are no two.
    pub fn ratio(&self) -> f64 {
        match (self.current, self.previous) {
            (Some(current), Some(previous)) => current / previous,
            _ => 1.0,
        }
    }

    /// The latest rate.
    pub const fn latest(&self) -> Option<f64> {
        self.current
    }

    /// Where the latest rate lies between the lowest and the highest of the epoch, from 0 to 1, which it is if they are one.
    pub fn level(&self) -> Option<f64> {
        let current = self.current.filter(|_| self.updates > 0)?;
        let range = self.highest - self.lowest;
        Some(if range > 0.0 { (current - self.lowest) / range } else { 1.0 })
    }

    /// Waves in this epoch.
    pub const fn updates(&self) -> u32 {
        self.updates
    }

    /// The highest rate of the epoch by the lowest, if the latest is nearer to the lowest.
    pub fn fall(&self) -> Option<f64> {
        let (current, lowest, highest) = (self.current.filter(|_| self.updates > 0)?, self.lowest, self.highest);
        (current - lowest < highest - current).then(|| highest / lowest)
    }

    /// Begins a new epoch.
    pub fn begin_epoch(&mut self) {
        (self.lowest, self.highest, self.updates) = (f64::INFINITY, 0.0, 0);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::path::Path;
    use crate::segment::{Options, RareOptions, RateReport, Wave, WaveRate};
    use crate::time::Instant;

    /// The segments of a wave.
    pub(crate) fn wave(number: u8, size: u8) -> impl Iterator<Item = Sent> {
        let wave = Some(Wave { number, size });
        let sent = Sent { now: Instant::ZERO, start: 0, len: 1000, transmission: 0, was_idle: false, wave };
        std::iter::repeat_n(sent, usize::from(size))
    }

    fn send(rates: &mut WaveRates, number: u8, size: u8) {
        wave(number, size).for_each(|sent| rates.on_sent(&sent));
    }

    /// The options of an acknowledgement that reports a rate.
    pub(crate) fn reporting(wave: u8, rate: u8) -> Options {
        let report = Some(Report::Rate(RateReport { wave, rate: WaveRate::Scaled(rate) }));
        Options { rare: Some(Box::new(RareOptions { report, ..RareOptions::default() })), ..Options::default() }
    }

    /// An acknowledgement of 1000 octets.
    pub(crate) fn ack<'a>(path: &'a Path, options: &'a Options) -> Ack<'a> {
        Ack {
            path,
            acked: 1000,
            delivered: 1000,
            rtt: None,
            delay: None,
            newest_sent_at: None,
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options,
        }
    }

    fn report(rates: &mut WaveRates, wave: u8, rate: u8) -> bool {
        rates.on_ack(&ack(&Path::default(), &reporting(wave, rate)))
    }

    #[test]
    fn each_wave_counts_once_and_small_ones_not() {
        let mut rates = WaveRates::default();
        for (number, size) in [(254, 10), (255, 4), (0, 5), (1, 5)] {
            send(&mut rates, number, size);
        }
        assert_eq!((report(&mut rates, 254, 200), rates.ratio()), (true, 1.0));
        assert!(!report(&mut rates, 254, 100), "again");
        assert_eq!((report(&mut rates, 255, 50), rates.ratio()), (false, 1.0), "too small: as if nothing had changed");
        assert_eq!((report(&mut rates, 0, 100), rates.ratio()), (true, 0.5));
        assert!(!report(&mut rates, 254, 10), "overtaken");
        assert!(!report(&mut rates, 7, 10), "never sent");
        assert_eq!((rates.updates(), rates.highest, rates.lowest), (2, 200.0, 100.0));
        rates.begin_epoch();
        assert_eq!((rates.updates(), rates.fall()), (0, None));
    }

    #[test]
    fn a_wave_is_as_large_as_what_left_in_it() {
        let mut rates = WaveRates::default();
        // Twenty were announced; a pause came after four, and two were sent again.
        let segments: Vec<_> = wave(1, 20).collect();
        segments[..4].iter().for_each(|sent| rates.on_sent(sent));
        segments[..2].iter().for_each(|sent| rates.on_sent(&Sent { transmission: 1, ..*sent }));
        assert!(!report(&mut rates, 1, 200), "too small");
        // The same number 256 waves later does not go on where that one ended.
        send(&mut rates, 2, 5);
        segments[..3].iter().for_each(|sent| rates.on_sent(sent));
        assert!(report(&mut rates, 2, 200));
        assert_eq!(rates.sizes[1], 3);
    }

    #[test]
    fn it_has_fallen_if_it_is_nearer_to_the_lowest() {
        for (latest, fall) in [(100, Some(4.0)), (200, None), (150, None), (149, Some(4.0))] {
            let mut rates = WaveRates::default();
            for (wave, rate) in (0u8..).zip([240, 60, latest]) {
                send(&mut rates, wave, 9);
                assert!(report(&mut rates, wave, rate));
            }
            assert_eq!(rates.fall(), fall);
        }
    }

    /// Each of 600 waves counts once, though its number comes again, some reports come twice or late and some never.
    #[test]
    fn numbers_wrap_and_reports_may_come_twice_late_or_never() {
        let mut rates = WaveRates::default();
        let mut counted = 0;
        for wave in 0..600_u32 {
            send(&mut rates, wave as u8, 9);
            if wave % 7 == 3 {
                continue;
            }
            assert!(report(&mut rates, wave as u8, 1 + (wave % 200) as u8), "{wave}");
            assert!(!report(&mut rates, wave as u8, 255), "{wave} again");
            assert!(wave < 20 || !report(&mut rates, (wave - 20) as u8, 255), "{wave}: one that was overtaken");
            counted += 1;
        }
        assert_eq!(rates.updates(), counted);
    }
}
