//! Selective-TCP's sender: takes the window from the bandwidth that the receiver reports (Paul 2006).

use super::{Reaction, Response};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Loss, Reported};
use crate::segment::Report;
use crate::time::Duration;
use crate::verdict::Verdict;
use crate::{choices, settings};

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "selective",
    summary: "Reduces for every loss, and sets the window to what the receiver reports of its bandwidth, times the base round-trip time.",
    reference: "Paul 2006",
    notes: Notes {
        idea: "What the receiver was getting when packets were dropped is what the path carries; a halved window may be less.",
        formula: "cwnd = congestion_info * base_rtt",
        threshold: "",
        fails: "Anything that holds the receiver's arrivals up: the bandwidth is that of some ten segments. `raw` is eight windows with segments of 1000 \
                octets: where a queue overflows each report brings the window back that overflowed it, until the timer ends it.",
        errata: "kbit/s times seconds are kbit, but the window is in packets; the publication multiplies \"to increase the congestion window\". `raw` takes \
                 the product for packets as published, `bdp` for what it is (two segments at least), `ms` multiplies by milliseconds. The base round-trip \
                 time is the first one of data. The window never becomes larger than the connection has had it before: a report can take back what a loss \
                 took, so a receiver that lies makes nobody faster than a path without losses.",
    },
    ..Part::of::<Settings>()
};

choices! {
    /// What the product of bandwidth and round-trip time is.
    enum Reading {
        /// kbit/s times seconds, taken for packets.
        Raw = "raw",
        /// Bandwidth times delay, two segments at least.
        Bdp = "bdp",
        /// kbit/s times milliseconds, taken for packets.
        Ms = "ms",
    }
}

choices! {
    /// The base round-trip time.
    enum Base {
        /// The first one of data.
        First = "first",
        /// The smallest of data so far.
        Least = "least",
    }
}

settings! {
    /// What can be set.
    struct Settings {
        /// What the product of bandwidth and round-trip time is: kbit/s times seconds taken for packets, the product of bandwidth and delay, or kbit/s
        /// times milliseconds taken for packets.
        reading: Reading;
        /// The base round-trip time: the first one of data, or the smallest so far.
        base_rtt: Base;
    }
}

impl Build<dyn Reaction> for Settings {
    fn build(self) -> Box<dyn Reaction> {
        Box::new(Selective { settings: self, base_rtt: None, largest: 0 })
    }
}

/// Paul 2006, algorithm 3.
#[derive(Debug)]
pub struct Selective {
    settings: Settings,
    base_rtt: Option<Duration>,
    /// The largest window so far in octets.
    largest: u64,
}

impl Reaction for Selective {
    fn on_ack(&mut self, ack: &Ack) {
        self.largest = self.largest.max(ack.path.cwnd);
        self.base_rtt = match (self.base_rtt, ack.delay) {
            (Some(base), Some(delay)) if self.settings.base_rtt == Base::Least => Some(base.min(delay)),
            (base, delay) => base.or(delay),
        };
    }

    fn on_report(&mut self, reported: &Reported) -> Option<u64> {
        let (Report::Bandwidth(report), Some(base)) = (reported.report, self.base_rtt) else { return None };
        let mss = f64::from(reported.path.mss);
        let kbits = f64::from(report.kbps) * base.as_secs_f64();
        let octets = match self.settings.reading {
            Reading::Raw => kbits * mss,
            Reading::Bdp => (kbits * 1000.0 / 8.0).max(2.0 * mss),
            Reading::Ms => kbits * 1000.0 * mss,
        };
        (report.kbps > 0).then_some((octets as u64).min(self.largest))
    }

    fn respond(&mut self, _verdict: &Verdict, _loss: &Loss) -> Response {
        Response::Reduce
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::{Arguments, Value};
    use crate::path::Path;
    use crate::segment::{BandwidthReport, Options};
    use std::collections::BTreeMap;

    fn told(reading: &str, base: &str, kbps: u32, largest: u64) -> Option<u64> {
        let given = [("reading", reading), ("base_rtt", base)];
        let given: BTreeMap<_, _> =
            given.into_iter().map(|(name, word)| (name.to_owned(), Value::Word(word.to_owned()))).collect();
        let mut reaction = PART.build(&Arguments::check(&PART, &given).unwrap());
        let options = Options::default();
        for (ms, cwnd) in [(31.0, largest), (62.0, 2000), (15.5, 1000)] {
            let path = Path { cwnd, ..Path::default() };
            reaction.on_ack(&Ack { delay: Some(Duration::from_secs_f64(ms / 1000.0)), ..Ack::new(&path, &options) });
        }
        let path = Path { mss: 1000, ..Path::default() };
        let report = Report::Bandwidth(BandwidthReport { kbps });
        reaction.on_report(&Reported::new(&path, &report))
    }

    #[test]
    fn the_product_is_read_in_three_ways() {
        const MUCH: u64 = 1 << 30;
        // 962 kbit/s and 31 ms: 29.8 kbit, or packets; 3.7 segments of 1000 octets; 29,822 packets.
        assert_eq!(told("raw", "first", 962, MUCH), Some(29_822));
        assert_eq!(told("bdp", "first", 962, MUCH), Some(3727));
        assert_eq!(told("ms", "first", 962, MUCH), Some(29_822_000));
        assert_eq!(told("bdp", "least", 962, MUCH), Some(2000), "1.9 segments");
        assert_eq!(told("raw", "least", 962, MUCH), Some(14_911));
        assert_eq!(told("raw", "first", 0, MUCH), None, "nothing measured");
    }

    #[test]
    fn a_report_gives_back_what_there_was_and_no_more() {
        assert_eq!(told("raw", "first", 962, 20_000), Some(20_000));
        assert_eq!(told("ms", "first", u32::MAX, 20_000), Some(20_000));
    }

    #[test]
    fn without_a_round_trip_nothing_is_set() {
        let mut reaction = PART.build(&Arguments::check(&PART, &BTreeMap::new()).unwrap());
        let (path, report) = (Path::default(), Report::Bandwidth(BandwidthReport { kbps: 900 }));
        assert_eq!(reaction.on_report(&Reported::new(&path, &report)), None);
    }
}
