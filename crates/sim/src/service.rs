//! How long transmissions take where that is not always the same.

use crate::outage::{Downtime, WhileDown, PATIENCE};
use crate::shape::LinkSpec;
use crate::trace::Opportunities;
use std::collections::VecDeque;

/// A value that changes at known times, asked for in the order of time.
#[derive(Debug)]
pub(crate) struct Schedule<T> {
    current: T,
    later: VecDeque<(u64, T)>,
}

impl<T> Schedule<T> {
    pub fn new(first: T, later: impl Iterator<Item = (u64, T)>) -> Self {
        Self { current: first, later: later.collect() }
    }

    /// The value at `now`.
    pub fn at(&mut self, now: u64) -> &mut T {
        while self.later.front().is_some_and(|(from, _)| *from <= now) {
            self.current = self.later.pop_front().expect("it was there").1;
        }
        &mut self.current
    }

    /// Another value from `now` on, until the next change that was known.
    pub fn set(&mut self, now: u64, value: T) {
        *self.at(now) = value;
    }

    /// When it changes next.
    fn next_change(&self) -> u64 {
        self.later.front().map_or(u64::MAX, |(from, _)| *from)
    }
}

/// The transmitter of a link that is held now and then, or changes its rate, or sends by opportunity.
#[derive(Debug)]
pub(crate) struct Service {
    pace: Pace,
    held: Downtime,
}

#[derive(Debug)]
enum Pace {
    /// Bits per second, and the remainder of the last division: see [`BitRate::serialise`](whyloss_transport::BitRate::serialise).
    Rate(Schedule<u64>, u64),
    Trace(Opportunities),
}

impl Service {
    /// That of a direction with these outages.
    pub fn new(spec: &LinkSpec, outages: &Downtime) -> Self {
        let rates = spec.change.iter().filter_map(|change| Some((change.at.as_nanos(), change.rate?.as_bps())));
        let pace = match &spec.trace {
            Some(trace) => Pace::Trace(Opportunities::new(trace.clone(), spec.trace_octets)),
            None => Pace::Rate(Schedule::new(spec.rate.as_bps(), rates), 0),
        };
        Self { pace, held: outages.clone().of(WhileDown::Held) }
    }

    /// Whether there is a rate, not a trace.
    pub const fn has_rate(&self) -> bool {
        matches!(self.pace, Pace::Rate(..))
    }

    /// Another rate from `now` on, for transmissions to come; not of a trace.
    pub fn set_rate(&mut self, now: u64, bps: u64) {
        if let Pace::Rate(rates, carried) = &mut self.pace {
            rates.set(now, bps);
            *carried = 0;
        }
    }

    /// When a transmission can begin, at `now` at the earliest; `u64::MAX` for never.
    pub fn ready(&mut self, now: u64) -> u64 {
        self.held.pass(now);
        match &mut self.pace {
            Pace::Trace(opportunities) => opportunities.ready(now, &mut self.held),
            Pace::Rate(..) => self.held.down_until(now).unwrap_or(now),
        }
    }

    /// Transmits so many octets from `start` on, when it is [`ready`](Self::ready); when it is done.
    pub fn transmit(&mut self, start: u64, octets: u32) -> u64 {
        let (rates, carried) = match &mut self.pace {
            Pace::Trace(opportunities) => return opportunities.transmit(start, octets, &mut self.held),
            Pace::Rate(rates, carried) => (rates, carried),
        };
        // In units of a bit per second for a nanosecond.
        let mut work = u64::from(octets) * 8_000_000_000 + *carried;
        let mut now = start;
        for _ in 0..PATIENCE {
            if let Some(until) = self.held.down_until(now) {
                now = until;
            }
            let rate = *rates.at(now);
            let stretch = rates.next_change().min(self.held.next(now)).saturating_sub(now);
            let span = work / rate;
            if span <= stretch {
                *carried = work % rate;
                return now.saturating_add(span);
            }
            work -= rate * stretch;
            now += stretch;
        }
        u64::MAX
    }

    /// How many octets could be sent in `idle` nanoseconds from `now` on.
    pub fn octets_in(&mut self, idle: u64, now: u64) -> f64 {
        let rate = match &mut self.pace {
            Pace::Trace(opportunities) => opportunities.mean_bps(),
            Pace::Rate(rates, _) => *rates.at(now) as f64,
        };
        idle as f64 * rate / 8e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Transmitter;
    use crate::outage::Outage;
    use crate::shape::Change;
    use whyloss_transport::{BitRate, Duration, Instant};

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * MS)
    }

    fn service(rate: u64, changes: &[(u64, u64)], outage: &[Outage]) -> Service {
        let change =
            changes.iter().map(|&(ms, rate)| Change { at: at(ms), rate: Some(BitRate::from_bps(rate)), ..Change::default() });
        let (rate, change) = (BitRate::from_bps(rate), change.collect());
        let outages = Downtime::new(outage, 1, 0, "a>b");
        Service::new(&LinkSpec { rate, change, ..LinkSpec::default() }, &outages)
    }

    fn held(ms: u64, lasts: u64, every: Option<u64>) -> Outage {
        let every = every.map(Duration::from_millis);
        Outage { every, packets: WhileDown::Held, ..Outage::once(at(ms), Duration::from_millis(lasts)) }
    }

    #[test]
    fn a_constant_rate_takes_as_long_as_on_a_plain_link() {
        let rate = 3_000_001;
        let (mut service, mut plain) = (service(rate, &[], &[]), Transmitter::new(BitRate::from_bps(rate)));
        let mut now = 0;
        for n in 0..10_000 {
            let octets = 40 + n % 1461;
            let end = service.transmit(now, octets);
            assert_eq!(end - now, plain.serialise(octets));
            now = end;
        }
    }

    #[test]
    fn a_packet_in_transmission_goes_on_at_the_new_rate() {
        // 1000 octets at 1 Mbit/s take 8 ms: 4000 bits by 4 ms, 2000 more by 5 ms at 2 Mbit/s, the last 2000 at 4 Mbit/s in 0.5 ms.
        let mut service = service(1_000_000, &[(4, 2_000_000), (5, 4_000_000)], &[]);
        assert_eq!(service.transmit(0, 1000), 5 * MS + MS / 2);
        assert_eq!(service.transmit(6 * MS, 1000), 8 * MS);
    }

    #[test]
    fn an_outage_stops_a_transmission_where_it_is() {
        let mut service = service(1_000_000, &[(25, 2_000_000)], &[held(10, 20, None)]);
        assert_eq!(service.ready(9 * MS), 9 * MS);
        // 1 ms before, 7 ms after at 1 Mbit/s; but from 25 ms on it is 2 Mbit/s, which halves them.
        assert_eq!(service.transmit(9 * MS, 1000), 33 * MS + MS / 2);
        assert_eq!(service.ready(12 * MS), 30 * MS);
    }

    #[test]
    fn a_link_that_is_always_down_never_sends() {
        let mut service = service(1_000_000, &[], &[held(0, 6, Some(10)), held(5, 6, Some(10))]);
        assert_eq!(service.ready(0), u64::MAX);
    }
}
