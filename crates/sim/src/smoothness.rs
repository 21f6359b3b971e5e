//! How evenly flows send, counted in bins of time.
//!
//! Nothing is done for a packet: at the end of each bin the counters of all senders are looked at.

use crate::error::Flaw;
use whyloss_transport::{Duration, Instant};

/// Over which bins of time it is counted how evenly flows send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Smoothness {
    /// Length of a bin, at least 1 ms. It should be a round-trip time or more. Bins are those of the run: from 0 on, from `bin` on, and so on.
    pub bin: Duration,
    /// Bins that begin earlier do not count: slow start is not smooth.
    pub from: Duration,
}

impl Default for Smoothness {
    /// Bins of a second, from the beginning.
    fn default() -> Self {
        Self { bin: Duration::from_secs(1), from: Duration::ZERO }
    }
}

impl Smoothness {
    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        (self.bin < Duration::from_millis(1)).then(|| ("bin", self.bin.to_string(), "1 ms or more"))
    }
}

/// What all flows have sent in the bins that are over.
#[derive(Debug)]
pub(crate) struct Bins {
    /// Length of a bin in nanoseconds.
    bin: u64,
    /// Bins that are over and counted.
    over: u64,
    /// When the counters have to be looked at next.
    due: u64,
    flows: Vec<Sent>,
}

/// What a flow has sent in bins that count for it.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// Its first bin: the first whole one after its start.
    first: u64,
    /// Octets sent until the last look.
    counter: u64,
    bins: u64,
    octets: u64,
    /// Sum of the squares of each bin's octets.
    squares: u128,
}

impl Bins {
    /// Those of flows that start at these times.
    pub fn new(spec: &Smoothness, starts: impl Iterator<Item = Instant>) -> Self {
        let bin = spec.bin.as_nanos();
        let first = |start: Instant| start.as_nanos().max(spec.from.as_nanos()).div_ceil(bin);
        Self { bin, over: 0, due: bin, flows: starts.map(|start| Sent { first: first(start), ..Sent::default() }).collect() }
    }

    /// When the counters have to be looked at, before any event of that time.
    pub const fn due(&self) -> u64 {
        self.due
    }

    /// Looks at the counters when they are due, or at the end of the run. `sender` says how many octets a flow's sender has sent, and when
    /// everything was at its receiver, if it is: bins that were not over then do not count.
    pub fn look(&mut self, now: u64, sender: impl Fn(usize) -> (u64, Option<Instant>)) {
        let over = now / self.bin;
        for (number, flow) in self.flows.iter_mut().enumerate().filter(|_| over > self.over) {
            let (counter, finished) = sender(number);
            let last = finished.map_or(over, |at| over.min(at.as_nanos() / self.bin));
            flow.bins += last.saturating_sub(flow.first.max(self.over));
            // Until the bin before this time all was quiet. If nothing was due, the run ends within a bin, which does not count.
            if now == self.due && last == over && over > flow.first {
                let octets = counter - flow.counter;
                flow.octets += octets;
                flow.squares += u128::from(octets).pow(2);
            }
            flow.counter = counter;
        }
        self.over = self.over.max(over);
    }

    /// Nothing happens before `next`; nothing any more if there is no such time. So long nobody needs to look.
    pub fn rest_until(&mut self, next: Option<Instant>) {
        self.due = next.map_or(u64::MAX, |at| (at.as_nanos() / self.bin).saturating_add(1).saturating_mul(self.bin));
    }

    /// The coefficient of variation of what a flow sent in a bin: standard deviation over mean (Floyd, Handley, Padhye & Widmer 2000). `None`
    /// if it sent nothing, or in fewer than two bins.
    pub fn variation(&self, flow: usize) -> Option<f64> {
        let Sent { bins, octets, squares, .. } = self.flows[flow];
        // n² times the variance, exactly.
        let spread = squares.saturating_mul(bins.into()).saturating_sub(u128::from(octets).pow(2));
        (bins > 1 && octets > 0).then(|| (spread as f64).sqrt() / octets as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: f64) -> Instant {
        Instant::from_nanos((seconds * 1e9) as u64)
    }

    /// What is said of one flow that starts at `start`, finishes at `finished` if it does, and has sent so many octets by each of these times; the
    /// run goes to `end`.
    fn variation(spec: &Smoothness, start: f64, finished: Option<f64>, sent: &[(f64, u64)], end: f64) -> Option<f64> {
        let mut bins = Bins::new(spec, std::iter::once(at(start)));
        let mut events = sent.iter().map(|(time, octets)| (at(*time).as_nanos(), *octets)).peekable();
        let (mut counter, finished, end) = (0, finished.map(at), at(end).as_nanos());
        let mut looks = 0;
        loop {
            while let Some((_, octets)) = events.next_if(|(time, _)| *time < bins.due().min(end)) {
                counter = octets;
            }
            let now = bins.due().min(end);
            bins.look(now, |_| (counter, finished.filter(|at| at.as_nanos() <= now)));
            looks += 1;
            if now == end {
                assert!(looks <= sent.len() + 2, "{looks} looks at {} events", sent.len());
                return bins.variation(0);
            }
            bins.rest_until(events.peek().map(|(time, _)| Instant::from_nanos(*time)));
        }
    }

    fn seconds(start: f64, finished: Option<f64>, sent: &[(f64, u64)], end: f64) -> Option<f64> {
        variation(&Smoothness::default(), start, finished, sent, end)
    }

    #[test]
    fn equal_amounts_do_not_vary_and_all_in_one_bin_vary_most() {
        assert_eq!(seconds(0.0, None, &[(0.5, 7), (1.5, 14), (2.5, 21)], 3.0), Some(0.0));
        // 0, 0, 0 and 8: mean 2, variance 48 / 4 = 12; the square root of n - 1 = 3.
        assert_eq!(seconds(0.0, None, &[(3.0, 8)], 4.0), Some(3.0_f64.sqrt()));
        // 10 and 20: mean 15, deviation 5.
        assert_eq!(seconds(0.0, None, &[(0.0, 10), (1.0, 30)], 2.0), Some(5.0 / 15.0));
    }

    #[test]
    fn only_bins_between_start_and_end_count() {
        let sent = [(1.2, 5), (2.5, 15), (3.5, 35), (4.4, 99)];
        // The bin from 1 s on has begun before the flow, that from 4 s on is not over: 10 and 20.
        assert_eq!(seconds(1.1, None, &sent, 4.5), Some(5.0 / 15.0));
        assert_eq!(seconds(1.1, Some(4.4), &sent, 60.0), Some(5.0 / 15.0));
        // What is sent after everything has arrived does not count either.
        assert_eq!(seconds(1.1, Some(4.0), &sent, 60.0), Some(5.0 / 15.0));
        assert_eq!(seconds(1.1, Some(3.9), &sent, 60.0), None, "one bin");
    }

    #[test]
    fn a_quiet_time_is_many_empty_bins_and_no_work() {
        // 1000 bins, one with 3 octets: the square root of n - 1. `variation` counts the looks.
        assert_eq!(seconds(0.0, None, &[(700.5, 3)], 1000.0), Some(999.0_f64.sqrt()));
        assert_eq!(seconds(0.0, None, &[(700.5, 3)], 700.9), None, "it was sent in a bin that is not over");
        assert_eq!(seconds(0.0, None, &[], 1000.0), None, "nothing was sent");
    }

    #[test]
    fn a_warm_up_does_not_count() {
        let spec = Smoothness { bin: Duration::from_millis(500), from: Duration::from_millis(1200) };
        // From 1.5 s on: 10 and 20; before, 1000 in one bin.
        assert_eq!(variation(&spec, 0.0, None, &[(0.2, 1000), (1.4, 1001), (1.6, 1011), (2.1, 1031)], 2.5), Some(5.0 / 15.0));
    }

    #[test]
    fn large_counts_lose_nothing() {
        let large = 1_u64 << 50;
        assert_eq!(seconds(0.0, None, &[(0.5, large), (1.5, 2 * large + 1)], 2.0), Some(0.5 / (large as f64 + 0.5)));
    }

    #[test]
    fn a_bin_has_a_length() {
        let spec = Smoothness { bin: Duration::from_micros(999), ..Smoothness::default() };
        assert_eq!(spec.flaw().map(|(field, ..)| field), Some("bin"));
        assert_eq!(Smoothness::default().flaw(), None);
        let bins = Bins::new(&Smoothness::default(), std::iter::empty());
        assert_eq!(bins.due(), SECOND);
    }
}
