//! Delivery traces: when a link could send, as measured on real cellular links.
//!
//! The format is that of mahimahi (Netravali et al. 2015): one line for each opportunity to deliver a packet of full length (1504
//! octets), with its time in whole milliseconds since the start, ascending. At the end the trace begins again, its last time being
//! the length of a round. Several lines with one time are several opportunities. Empty lines and lines that begin with `#` are skipped.

use crate::outage::{Downtime, PATIENCE};
use crate::text::{FileError, Lines};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

const MILLISECOND: u64 = 1_000_000;

/// Times at which a link can deliver, as mahimahi's trace files list them, repeated without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Nanoseconds from the beginning of a round, ascending; the last one is the length of a round.
    times: Vec<u64>,
}

impl Trace {
    /// Octets that an opportunity of mahimahi carries.
    pub const OCTETS: u64 = 1504;

    /// Opportunities at these milliseconds, ascending, the last above zero; the trace begins again at the last.
    pub fn new(millis: &[u64]) -> Option<Self> {
        let ascending = millis.windows(2).all(|pair| pair[0] <= pair[1]);
        let fits = millis.last().is_some_and(|last| (1..=MAX_MILLIS).contains(last));
        let times = || millis.iter().map(|millis| millis * MILLISECOND).collect();
        (ascending && fits).then(|| Self { times: times() })
    }

    /// The mean rate in bit/s if every opportunity is used and each carries so many octets.
    pub fn mean_bps(&self, octets: u64) -> f64 {
        let round = self.times.last().copied().unwrap_or(1);
        self.times.len() as f64 * octets as f64 * 8e9 / round as f64
    }

    /// Reads a trace file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| FileError::Io { path: path.to_owned(), source })?;
        Self::parse(BufReader::new(file), path)
    }

    /// Reads a trace in the format of its files; `path` is only for messages.
    pub fn parse(input: impl BufRead, path: &Path) -> Result<Self, FileError> {
        let mut lines = Lines::new(input, path);
        let mut millis: Vec<u64> = Vec::new();
        while let Some(text) = lines.next_or_end()? {
            let at_least = millis.last().copied().unwrap_or(0);
            match text.parse() {
                Ok(time) if (at_least..=MAX_MILLIS).contains(&time) => millis.push(time),
                _ => {
                    let found = format!("`{text}`");
                    let allowed = format!("whole milliseconds, {at_least} or more (ascending), below 2^40");
                    return Err(lines.unfit("time", found, allowed));
                }
            }
        }
        let found = if millis.is_empty() { "no time at all" } else { "0 as the last time" };
        Self::new(&millis).ok_or_else(|| lines.unfit("trace", found.to_owned(), "at least one time above 0".to_owned()))
    }

    /// When the opportunity of this number is, counted over all rounds.
    fn time(&self, number: u64) -> u64 {
        let count = self.times.len() as u64;
        let round = self.times.last().copied().unwrap_or(1);
        (number / count).saturating_mul(round).saturating_add(self.times[(number % count) as usize])
    }

    /// The first opportunity at or after `at`.
    fn first_from(&self, at: u64) -> u64 {
        let count = self.times.len() as u64;
        let round = self.times.last().copied().unwrap_or(1);
        // The last opportunity of a round is at the very time at which the next begins.
        let full = (at / round).saturating_sub(1);
        let rest = at - full * round;
        let first = self.times.partition_point(|time| *time < rest) as u64;
        if first < count {
            return full * count + first;
        }
        (full + 1) * count + self.times.partition_point(|time| *time < rest - round) as u64
    }
}

/// Below 2^40, some 35 years: nanoseconds fit 64 bits.
const MAX_MILLIS: u64 = (1 << 40) - 1;

/// A trace in use.
#[derive(Debug)]
pub(crate) struct Opportunities {
    trace: Arc<Trace>,
    /// Octets that each carries.
    octets: u32,
    /// The next one that has not been taken.
    next: u64,
    /// Time of the one in hand, and what it can still carry.
    current: (u64, u32),
}

impl Opportunities {
    /// The opportunities of a trace, each carrying so many octets, at least 1.
    pub fn new(trace: Arc<Trace>, octets: u64) -> Self {
        Self { trace, octets: octets.clamp(1, 1 << 30) as u32, next: 0, current: (0, 0) }
    }

    /// The mean rate if every opportunity is used.
    pub fn mean_bps(&self) -> f64 {
        self.trace.mean_bps(u64::from(self.octets))
    }

    /// When a transmission can begin, at `now` at the earliest.
    pub fn ready(&mut self, now: u64, held: &mut Downtime) -> u64 {
        if self.current.1 > 0 && self.current.0 == now {
            return now;
        }
        self.next = self.next.max(self.trace.first_from(now));
        self.skip(held)
    }

    /// Transmits so many octets from `start` on, which is when it is [`ready`](Self::ready); when it is done.
    pub fn transmit(&mut self, start: u64, octets: u32, held: &mut Downtime) -> u64 {
        let mut rest = octets;
        if self.current.0 != start {
            self.current.1 = 0;
        }
        loop {
            let part = rest.min(self.current.1);
            self.current.1 -= part;
            rest -= part;
            if rest == 0 {
                return self.current.0;
            }
            let at = self.skip(held);
            if at == u64::MAX {
                return at;
            }
            self.next += 1;
            self.current = (at, self.octets);
        }
    }

    /// Lets opportunities pass that come while the link is down; when the next one is.
    fn skip(&mut self, held: &mut Downtime) -> u64 {
        for _ in 0..PATIENCE {
            let at = self.trace.time(self.next);
            match held.down_until(at) {
                None => return at,
                Some(until) => self.next = self.next.max(self.trace.first_from(until)),
            }
        }
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outage::{Outage, WhileDown};
    use whyloss_transport::{Duration, Instant};

    const MS: u64 = MILLISECOND;

    fn parse(text: &str) -> Result<Trace, String> {
        Trace::parse(text.as_bytes(), Path::new("t.up")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_has_one_time_a_line() {
        let trace = parse("# measured\n0\n3\n3\n\n10\n").unwrap();
        assert_eq!(trace, Trace::new(&[0, 3, 3, 10]).unwrap());
        // Four opportunities of 1504 octets in 10 ms.
        assert!((trace.mean_bps(Trace::OCTETS) - 4_812_800.0).abs() < 1e-6, "{}", trace.mean_bps(Trace::OCTETS));
    }

    #[test]
    fn bad_files_are_refused_with_line_and_value() {
        for (text, message) in [
            ("5\n3\n", "t.up, line 2: time is `3`; allowed is whole milliseconds, 5 or more (ascending), below 2^40"),
            ("1\n2.5\n", "t.up, line 2: time is `2.5`; allowed is whole milliseconds, 1 or more (ascending), below 2^40"),
            ("-1\n", "t.up, line 1: time is `-1`; allowed is whole milliseconds, 0 or more (ascending), below 2^40"),
            ("", "t.up, line 1: trace is no time at all; allowed is at least one time above 0"),
            ("0\n0\n", "t.up, line 3: trace is 0 as the last time; allowed is at least one time above 0"),
        ] {
            assert_eq!(parse(text).unwrap_err(), message);
        }
        assert!(Trace::read("/nonexistent/t.up").unwrap_err().to_string().starts_with("/nonexistent/t.up: "));
    }

    #[test]
    fn rounds_follow_each_other() {
        let trace = Trace::new(&[0, 3, 3, 10]).unwrap();
        let times: Vec<_> = (0..9).map(|number| trace.time(number) / MS).collect();
        assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20, 20]);
        for quarter in 0..200 {
            let at = quarter * MS / 4;
            let slow = (0..1000).find(|&number| trace.time(number) >= at).unwrap();
            assert_eq!(trace.first_from(at), slow, "{at}");
        }
    }

    #[test]
    fn packets_share_opportunities_and_long_ones_take_several() {
        let mut link = Opportunities::new(Arc::new(Trace::new(&[2, 4, 6, 20]).unwrap()), 1000);
        // At 1 ms there is nothing until 2 ms; 600 octets leave 400 for the next, which needs 200 of the opportunity at 4 ms.
        assert_eq!(link.ready(MS, &mut Downtime::default()), 2 * MS);
        assert_eq!(link.transmit(2 * MS, 600, &mut Downtime::default()), 2 * MS);
        assert_eq!(link.ready(2 * MS, &mut Downtime::default()), 2 * MS);
        assert_eq!(link.transmit(2 * MS, 600, &mut Downtime::default()), 4 * MS);
        // What is left at 4 ms is lost when nobody comes; 1500 octets take those at 6 and 20 ms.
        assert_eq!(link.ready(5 * MS, &mut Downtime::default()), 6 * MS);
        assert_eq!(link.transmit(6 * MS, 1500, &mut Downtime::default()), 20 * MS);
        // Another round: 22, 24, 26, 40.
        assert_eq!(link.ready(23 * MS, &mut Downtime::default()), 24 * MS);
    }

    #[test]
    fn opportunities_while_the_link_is_down_are_lost() {
        let mut link = Opportunities::new(Arc::new(Trace::new(&[1]).unwrap()), Trace::OCTETS);
        let at = Instant::from_nanos(10 * MS);
        let outage = Outage { packets: WhileDown::Held, ..Outage::once(at, Duration::from_millis(5)) };
        let mut down = Downtime::new(&[outage], 1, 0, "a>b");
        assert_eq!(link.ready(10 * MS, &mut down), 15 * MS);
        assert_eq!(link.ready(9 * MS, &mut Downtime::default()), 15 * MS, "they are gone");
        let mut link = Opportunities::new(Arc::new(Trace::new(&[1]).unwrap()), Trace::OCTETS);
        assert_eq!(link.ready(9 * MS, &mut down), 9 * MS);
        assert_eq!(link.transmit(9 * MS, 3000, &mut down), 15 * MS);
    }
}
