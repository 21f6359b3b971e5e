//! CCID 3, the sender: a rate that follows the TCP equation (RFC 4342, RFC 5348, 4).

use super::ccid::{Expiry, Feedback, Permit, Sender};
use super::history::{PacketFate, Sent};
use super::{Config, Mode};
use crate::datagram::tfrc::{self, LossIntervals, RateControl, Rules, Told};
use crate::datagram::words::View;
use crate::tcp::Judgement;
use crate::time::{Duration, Instant};
use crate::wire::dccp::{LossInterval, Opt};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Ccid3 {
    mode: Mode,
    size: f64,
    rules: Rules,
    round_trip_events: bool,
    control: RateControl,
    losses: Losses,
    counter: Counter,
}

impl Ccid3 {
    pub fn new(config: &Config) -> Self {
        Self {
            mode: config.mode,
            size: f64::from(config.packet),
            rules: config.rules,
            round_trip_events: config.round_trip_events,
            control: RateControl::new(config.packet, config.rules),
            losses: Losses::default(),
            counter: Counter::default(),
        }
    }
}

impl Sender for Ccid3 {
    fn permit(&self, now: Instant, _outstanding: usize) -> Permit {
        match self.control.due() {
            Some(due) if due > now => Permit::At(due),
            _ => Permit::Now,
        }
    }

    fn prime(&mut self, now: Instant, rtt: Duration) {
        self.control.sample(now, rtt);
    }

    fn on_sent(&mut self, now: Instant, sent: &Sent, _outstanding: usize, more: bool) {
        self.control.on_sent(now, more);
        self.counter.sent.push_back((sent.seq, self.counter.value));
    }

    fn ccval(&mut self, now: Instant) -> u8 {
        self.counter.at(now, self.control.rtt())
    }

    fn on_feedback(&mut self, feedback: &Feedback) -> Vec<Judgement> {
        let Feedback { now, ack, .. } = *feedback;
        self.counter.acknowledged(ack);
        let received = feedback.options.iter().find_map(|option| match option {
            Opt::ReceiveRate(rate) => Some(f64::from(*rate)),
            _ => None,
        });
        let intervals = feedback.options.iter().find_map(|option| match option {
            Opt::LossIntervals { skip, intervals } => Some((*skip, intervals)),
            _ => None,
        });
        let mut new_events = 0;
        if let (Some(received), Some((skip, intervals))) = (received, intervals) {
            if let Some(rtt) = feedback.rtt {
                self.control.sample(now, rtt);
            }
            let rtt = self.control.rtt().unwrap_or(1.0);
            let first = || tfrc::first_interval(self.rules.version, self.size, rtt, received);
            let newest = self.round_trip_events.then_some(feedback.newest);
            let discounting = self.rules.history_discounting;
            new_events = self.losses.update(ack, skip, intervals, discounting, newest, first);
            let p = self.losses.intervals.rate(discounting);
            let sent = feedback.fates.iter().find(|(sent, _)| sent.seq == ack).map(|(sent, _)| sent.at);
            self.control.on_feedback(&Told { now, received, p, event: new_events > 0, sent });
        }
        let mut left = new_events;
        let bad = feedback.fates.iter().filter(|(_, fate)| *fate != PacketFate::Received);
        bad.map(|(_, fate)| match fate {
            // The receiver does not count these as losses.
            PacketFate::Dropped(code) if !code.counts_as_mark() => Judgement::Kept,
            PacketFate::Dropped(code) if code.is_corruption() && self.mode == Mode::Differentiating => Judgement::Kept,
            _ if left > 0 => {
                left -= 1;
                Judgement::Reduced
            }
            _ => Judgement::Covered,
        })
        .collect()
    }

    fn timeout(&self) -> Option<Instant> {
        self.control.timeout()
    }

    /// The no-feedback timer (RFC 5348, 4.4).
    fn on_timeout(&mut self, now: Instant, _newest: u64) -> Expiry {
        let (after, consecutive) = self.control.on_timeout(now);
        let late = Duration::from_secs_f64(4.0 * self.control.rtt().unwrap_or(0.5));
        let abandon_before = Instant::from_nanos(now.as_nanos().saturating_sub(late.as_nanos()));
        Expiry { after, consecutive, abandon_before, collapsed: false }
    }

    fn srtt(&self) -> Option<Duration> {
        self.control.rtt().map(Duration::from_secs_f64)
    }

    fn view(&self, outstanding: usize) -> View {
        View {
            cwnd: (self.control.rate() * self.control.rtt().unwrap_or(1.0)) as u64,
            ssthresh: u64::MAX,
            srtt: self.srtt(),
            pipe: outstanding as u64 * self.size as u64,
        }
    }
}

/// The window counter (RFC 4342, 8.1): it counts quarters of a round-trip time, so that the receiver, who does not know that time,
/// can tell which losses are one event.
#[derive(Debug, Default)]
struct Counter {
    value: u64,
    /// When it last went on.
    since: Instant,
    /// Outstanding packets with their counters.
    sent: VecDeque<(u64, u64)>,
}

impl Counter {
    fn at(&mut self, now: Instant, rtt: Option<f64>) -> u8 {
        if let Some(rtt) = rtt {
            let quarters = (now.since(self.since).as_secs_f64() / (rtt / 4.0)) as u64;
            if quarters > 0 {
                // At most by five, so that the receiver never takes a gap for a wrap.
                self.value += quarters.min(5);
                self.since = now;
            }
        }
        (self.value & 0x0F) as u8
    }

    /// What leaves after an acknowledgement is a round-trip time younger than what it acknowledges.
    fn acknowledged(&mut self, ack: u64) {
        while let Some((seq, value)) = self.sent.front().copied().filter(|(seq, _)| *seq <= ack) {
            self.sent.pop_front();
            if seq == ack {
                self.value = self.value.max(value + 4);
            }
        }
    }
}

/// Loss intervals as the receiver reports them (RFC 4342, 6.1 and 8.6; RFC 5348, 5).
#[derive(Debug, Default)]
struct Losses {
    intervals: LossIntervals,
    /// The first packet of the open interval, once there was a loss.
    start: Option<u64>,
    /// The last packet that left within a round-trip time, as it really was, of the first lost one.
    round_trip_end: u64,
}

impl Losses {
    /// Takes in a report; `first` makes the length of the interval before the first loss. Returns the number of new loss events.
    ///
    /// With the `newest` packet that has left, losses of one round trip are one event even if the window counter has run on by more
    /// than that: it follows an average that lags behind a queue that fills.
    fn update(
        &mut self,
        ack: u64,
        skip: u8,
        intervals: &[LossInterval],
        discounting: bool,
        newest: Option<u64>,
        first: impl Fn() -> f64,
    ) -> usize {
        // The open interval ends before the skipped packets.
        let mut end = (ack + 1).saturating_sub(u64::from(skip));
        let mut reported: Vec<(u64, f64, bool)> = Vec::with_capacity(intervals.len());
        // Whether the interval that was read last belongs to the event of the one before it in time.
        let mut joins = false;
        for interval in intervals {
            let start = end.saturating_sub(u64::from(interval.lossless) + u64::from(interval.lossy));
            let within = self.start.is_some_and(|known| known < start && start <= self.round_trip_end);
            match reported.last_mut() {
                Some((before, data, virgin)) if joins => {
                    (*before, *data, *virgin) = (start, *data + f64::from(interval.data), false);
                }
                _ => reported.push((start, f64::from(interval.data), interval.lossy == 0)),
            }
            joins = within;
            end = start;
        }
        let Some(&(start, open, virgin)) = reported.first() else { return 0 };
        if virgin {
            self.intervals.open = open;
            return 0;
        }
        if self.start.is_some_and(|known| start < known) {
            // An old report.
            return 0;
        }
        let events = match self.start {
            Some(known) => reported.iter().take_while(|(start, _, virgin)| *start > known && !virgin).count(),
            None => reported.iter().take_while(|(.., virgin)| !virgin).count(),
        };
        if events > 0 {
            self.intervals.age(discounting);
            // The intervals that these events closed: those behind each of the new ones.
            for (_, length, virgin) in reported[1..].iter().take(events).rev() {
                let length = if *virgin { first() } else { *length };
                self.intervals.close(length);
            }
            if reported.len() <= events && self.intervals.is_empty() {
                self.intervals.close(first());
            }
            self.start = Some(start);
            // As many packets have left since the one that is acknowledged as left between the lost one and that.
            self.round_trip_end = newest.map_or(0, |newest| newest.saturating_sub(ack.saturating_sub(start)));
        }
        self.intervals.open = open;
        events
    }
}
