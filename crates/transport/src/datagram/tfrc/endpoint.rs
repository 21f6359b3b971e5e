//! One end: the sender of data, or the receiver that tells how it arrives.

use super::control::{RateControl, Told};
use super::receiver::Receiver;
use super::table::Config;
use crate::datagram::words::{Command, Datagram, Event, View};
use crate::segment::{Ecn, Payload};
use crate::tcp::{Closing, Stats, TimeoutRecord};
use crate::time::{Duration, Instant};
use crate::verdict::{Cause, Verdict};
use crate::wire::tfrc::{Body, Data, Feedback, Packet};
use std::collections::VecDeque;

/// One end of a flow. It begins with its first packet; nothing is negotiated.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    control: RateControl,
    receiver: Receiver,
    /// It may send data.
    open: bool,
    connected: bool,
    close_wanted: bool,
    queue: VecDeque<Payload>,
    /// Length and number of the datagrams still to be produced.
    produce: (u32, u64),
    /// Octets of data and packets sent so far.
    offset: u64,
    seq: u64,
    /// Packets of which no feedback has told: position and time.
    outstanding: VecDeque<(u64, Instant)>,
    arrived: VecDeque<Datagram>,
    events: VecDeque<Event>,
    stats: Stats,
    refused: u64,
}

impl Endpoint {
    /// An end that has not begun.
    pub fn new(config: Config) -> Self {
        Self {
            control: RateControl::new(config.packet, config.rules),
            receiver: Receiver::new(config.packet, config.rules),
            config,
            open: false,
            connected: false,
            close_wanted: false,
            queue: VecDeque::new(),
            produce: (0, 0),
            offset: 0,
            seq: 0,
            outstanding: VecDeque::new(),
            arrived: VecDeque::new(),
            events: VecDeque::new(),
            stats: Stats::default(),
            refused: 0,
        }
    }

    /// Takes in a command.
    pub fn command(&mut self, command: Command) {
        match command {
            Command::Connect => self.open = true,
            Command::Send(payload) if !self.close_wanted => {
                if self.queue.len() < self.config.send_queue {
                    self.queue.push_back(payload);
                } else {
                    self.refused += 1;
                }
            }
            Command::Produce { octets, packets } if !self.close_wanted => {
                if packets == u64::MAX {
                    self.produce = (octets, packets);
                } else {
                    let room = (self.config.send_queue as u64).saturating_sub(self.produce.1);
                    self.produce = (octets, self.produce.1 + packets.min(room));
                    self.refused += packets.saturating_sub(room);
                }
            }
            Command::Listen | Command::Send(_) | Command::Produce { .. } => {}
            Command::Close => {
                self.close_wanted = true;
                if self.produce.1 == u64::MAX {
                    self.produce.1 = 0;
                }
                self.close_if_done();
            }
            Command::Abort => self.over(Closing::Aborted),
        }
    }

    fn close_if_done(&mut self) {
        if self.close_wanted && !self.has_data() {
            self.over(Closing::Normal);
        }
    }

    fn over(&mut self, closing: Closing) {
        if std::mem::take(&mut self.open) {
            self.queue.clear();
            self.produce.1 = 0;
            self.outstanding.clear();
            self.events.push_back(Event::Closed(closing));
        }
    }

    fn has_data(&self) -> bool {
        self.produce.1 > 0 || !self.queue.is_empty()
    }

    /// Takes in a packet whose checksum holds.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) {
        self.stats.segments_received += 1;
        match &packet.body {
            Body::Data(data, payload) => {
                let marked = packet.ecn == Ecn::CongestionExperienced;
                if self.receiver.on_data(now, data, payload.len() as u32, marked) {
                    self.stats.octets_delivered += payload.len() as u64;
                    self.arrived.push_back(Datagram { payload: payload.clone(), corrupt: false });
                } else {
                    self.stats.duplicates_received += 1;
                }
            }
            Body::Feedback(feedback) if self.open => self.on_feedback(now, feedback),
            Body::Feedback(_) => {}
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        // Times that make no sense come from another flow, or from nobody.
        let passed = u64::from(microseconds(now).wrapping_sub(feedback.sent_us));
        let Some(rtt) = passed.checked_sub(u64::from(feedback.delay_us)).filter(|_| passed < 1 << 31) else { return };
        if self.seq == 0 {
            return;
        }
        if !std::mem::replace(&mut self.connected, true) {
            self.events.push_back(Event::Connected);
        }
        let sent = Instant::from_nanos(now.as_nanos().saturating_sub(1000 * passed));
        while self.outstanding.front().is_some_and(|(_, at)| *at <= sent) {
            self.outstanding.pop_front();
        }
        self.control.sample(now, Duration::from_micros(rtt));
        let (before, p) = (self.control.loss_event_rate(), f64::from(feedback.loss) / f64::from(u32::MAX));
        self.stats.reductions += u64::from(p > before);
        self.control.on_feedback(&Told { now, received: f64::from(feedback.rate), p, event: p > before, sent: Some(sent) });
    }

    /// The next packet to send, if there is one.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        let body = if let Some(feedback) = self.receiver.feedback(now) {
            Body::Feedback(feedback)
        } else if self.open && self.has_data() && self.control.due().is_none_or(|due| due <= now) {
            self.data(now)
        } else {
            return None;
        };
        self.stats.segments_sent += 1;
        let capable = self.config.ecn && matches!(body, Body::Data(..));
        Some(Packet { ecn: if capable { Ecn::Capable0 } else { Ecn::NotCapable }, body })
    }

    fn data(&mut self, now: Instant) -> Body {
        let payload = self.queue.pop_front().unwrap_or_else(|| {
            let (len, left) = &mut self.produce;
            if *left != u64::MAX {
                *left -= 1;
            }
            Payload::Synthetic { offset: self.offset, len: *len }
        });
        self.outstanding.push_back((self.offset, now));
        self.seq += 1;
        self.offset += payload.len() as u64;
        self.stats.data_segments_sent += 1;
        self.stats.data_octets_sent += payload.len() as u64;
        self.control.on_sent(now, self.has_data());
        let rtt_us = self.control.rtt().map_or(0, |rtt| (rtt * 1e6).clamp(1.0, f64::from(u32::MAX)) as u32);
        let data = Data { seq: self.seq as u32, sent_us: microseconds(now), rtt_us };
        self.close_if_done();
        Body::Data(data, payload)
    }

    /// When [`Endpoint::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let pace = if self.has_data() { self.control.due() } else { None };
        let sender = [self.control.timeout(), pace].into_iter().flatten().filter(|_| self.open);
        sender.chain(self.receiver.timeout()).min()
    }

    /// Lets timers expire. What they cause comes with [`Endpoint::poll_transmit`].
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.receiver.timeout().is_some_and(|due| due <= now) {
            self.receiver.on_timeout();
        }
        if self.open && self.control.timeout().is_some_and(|due| due <= now) {
            let (after, consecutive) = self.control.on_timeout(now);
            let Some((offset, sent_at)) = self.outstanding.pop_front() else { return };
            self.outstanding.clear();
            self.stats.timeouts += 1;
            self.events.push_back(Event::Timeout(Box::new(TimeoutRecord {
                at: now,
                consecutive,
                offset,
                sent_at,
                rto_ns: after.as_nanos(),
                verdict: Verdict { cause: Cause::Unknown, score: 0.0 },
                collapsed: false,
            })));
        }
    }

    /// The next event for the application and its driver. Losses are none: the receiver tells their rate alone.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Data that arrived, in the order of arrival.
    pub fn read(&mut self) -> Option<Datagram> {
        self.arrived.pop_front()
    }

    /// Counters. Nothing is ever retransmitted; `reductions` counts feedback with a higher loss event rate than before.
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Datagrams of the application that found the queue full.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// The loss event rate that the sender goes by.
    pub const fn loss_event_rate(&self) -> f64 {
        self.control.loss_event_rate()
    }

    /// The rate, as it is now.
    pub fn view(&self) -> View {
        View {
            cwnd: (self.control.rate() * self.control.rtt().unwrap_or(1.0)) as u64,
            ssthresh: u64::MAX,
            srtt: self.control.rtt().map(Duration::from_secs_f64),
            pipe: self.outstanding.front().map_or(0, |(offset, _)| self.offset - offset),
        }
    }

    /// The configuration it was made with.
    pub const fn config(&self) -> &Config {
        &self.config
    }
}

/// The clock that packets carry; it wraps after 71 minutes.
const fn microseconds(now: Instant) -> u32 {
    (now.as_nanos() / 1000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// A sender and a receiver 20 ms apart, over a path that loses what `loses` names, for `seconds`.
    fn run(seconds: u64, mut loses: impl FnMut(u64) -> bool) -> (Endpoint, Endpoint) {
        let config = Config { packet: 1000, ..Config::default() };
        let (mut from, mut to) = (Endpoint::new(config.clone()), Endpoint::new(config));
        from.command(Command::Connect);
        from.command(Command::Produce { octets: 1000, packets: u64::MAX });
        let mut way: VecDeque<(Instant, bool, Packet)> = VecDeque::new();
        let mut sent = 0;
        let mut now = at(0);
        while now < at(seconds * 1_000_000) {
            while way.front().is_some_and(|(due, ..)| *due <= now) {
                let (_, forward, packet) = way.pop_front().unwrap();
                if forward { &mut to } else { &mut from }.on_packet(now, &packet);
            }
            from.handle_timeout(now);
            to.handle_timeout(now);
            while let Some(packet) = from.poll_transmit(now) {
                sent += 1;
                if !loses(sent) {
                    way.push_back((now + Duration::from_millis(20), true, packet));
                }
            }
            while let Some(packet) = to.poll_transmit(now) {
                way.push_back((now + Duration::from_millis(20), false, packet));
            }
            while to.read().is_some() {}
            let next = [from.poll_timeout(), to.poll_timeout(), way.front().map(|(due, ..)| *due)].into_iter().flatten().min();
            now = next.unwrap().max(now + Duration::from_micros(1));
        }
        (from, to)
    }

    #[test]
    fn one_loss_in_a_hundred_gives_the_rate_of_the_equation() {
        // More than a round trip apart: each is a loss event of its own.
        let (from, to) = run(60, |nth| nth % 100 == 50);
        assert!((from.loss_event_rate() - 0.01).abs() < 1e-4, "{}", from.loss_event_rate());
        let expected = super::super::rate(1000.0, 0.04, 0.01);
        assert!((from.control.rate() / expected - 1.0).abs() < 0.01, "{} of {expected}", from.control.rate());
        assert_eq!(from.stats().retransmissions, 0);
        assert!(to.stats().octets_delivered > 55_000 * 250);
    }

    #[test]
    fn a_path_that_dies_slows_the_sender_down() {
        let (from, _) = run(60, |nth| nth > 500);
        assert!(from.stats().timeouts > 5, "{}", from.stats().timeouts);
        assert!(from.control.rate() < 1000.0, "{}", from.control.rate());
    }

    #[test]
    fn feedback_that_makes_no_sense_changes_nothing() {
        let mut end = Endpoint::new(Config::default());
        let feedback = |sent_us, delay_us| Packet {
            ecn: Ecn::NotCapable,
            body: Body::Feedback(Feedback { sent_us, delay_us, rate: u32::MAX, loss: 0 }),
        };
        end.on_packet(at(1000), &feedback(0, 0));
        end.command(Command::Connect);
        end.command(Command::Produce { octets: 1000, packets: 5 });
        assert!(end.poll_transmit(at(2000)).is_some());
        for (sent_us, delay_us) in [(5000, 0), (2000, 2000), (u32::MAX / 3, 0)] {
            end.on_packet(at(3000), &feedback(sent_us, delay_us));
            assert_eq!((end.control.rtt(), end.poll_event()), (None, None), "{sent_us} {delay_us}");
        }
        end.on_packet(at(42_000), &feedback(2000, 0));
        assert_eq!((end.control.rtt(), end.poll_event()), (Some(0.04), Some(Event::Connected)));
    }
}
