//! CCID 2: TCP-like congestion control (RFC 4341). The window counts packets.

use super::ccid::{Expiry, Feedback, Permit, Sender};
use super::history::{PacketFate, Sent};
use super::rtt::Rtt;
use super::{Combination, Config, Mode};
use crate::datagram::words::View;
use crate::tcp::Judgement;
use crate::time::{Duration, Instant};
use crate::wire::dccp::{DropCode, Opt};

/// RFC 3390 (RFC 4341, 5): four packets, less if they are long.
const fn initial_window(packet: u32) -> u32 {
    match packet {
        0..=1095 => 4,
        1096..=2190 => 3,
        _ => 2,
    }
}

#[derive(Debug)]
pub(super) struct Ccid2 {
    mode: Mode,
    combination: Combination,
    packet: u32,
    cwnd: u32,
    ssthresh: u32,
    /// Packets acknowledged since the window grew last.
    acked: u32,
    /// The newest packet when the window was reduced last: losses up to it belong to that congestion event.
    recover: u64,
    /// Whether the window has held the sender up since the last acknowledgement.
    limited: bool,
    /// The receiver is slow: the window does not grow before this time (RFC 4341, 5.2).
    slow_until: Instant,
    rtt: Rtt,
    timer: Option<Instant>,
    expiries: u32,
    last_sent: Option<Instant>,
    acks: AckControl,
}

impl Ccid2 {
    pub fn new(config: &Config) -> Self {
        Self {
            mode: config.mode,
            combination: config.combination,
            packet: config.packet,
            cwnd: initial_window(config.packet),
            ssthresh: u32::MAX,
            acked: 0,
            recover: 0,
            limited: false,
            slow_until: Instant::ZERO,
            rtt: Rtt::new(config),
            timer: None,
            expiries: 0,
            last_sent: None,
            acks: AckControl::default(),
        }
    }

    /// Whether a fate counts as congestion.
    fn congests(&self, fate: PacketFate) -> bool {
        match fate {
            PacketFate::Received => false,
            PacketFate::Lost | PacketFate::Marked => true,
            // RFC 4340, 11.7.2: codes 3 and above as if the packet had been marked. Differentiating, damage is no congestion.
            PacketFate::Dropped(code) => code.counts_as_mark() && !(self.mode == Mode::Differentiating && code.is_corruption()),
        }
    }

    fn respond(&mut self, feedback: &Feedback) -> (Vec<Judgement>, bool) {
        let before = self.cwnd;
        let mut refused = 0;
        let mut judgements = Vec::new();
        for (sent, fate) in feedback.fates.iter().filter(|(_, fate)| *fate != PacketFate::Received) {
            if let PacketFate::Dropped(code) = fate {
                // RFC 4341, 5.2: any Data Dropped ends slow start; each full receive buffer costs one packet.
                self.ssthresh = self.ssthresh.min(self.cwnd.max(2));
                refused += u32::from(*code == DropCode::RECEIVE_BUFFER);
            }
            judgements.push(if !self.congests(*fate) {
                Judgement::Kept
            } else if sent.seq <= self.recover {
                Judgement::Covered
            } else {
                self.recover = feedback.newest;
                self.cwnd = (self.cwnd / 2).max(1);
                self.ssthresh = self.cwnd.max(2);
                self.acked = 0;
                Judgement::Reduced
            });
        }
        let reduced = judgements.contains(&Judgement::Reduced);
        // RFC 4340, 11.7.2: the window with the losses alone, and with the dropped data alone.
        let (by_loss, by_drop) = (self.cwnd, before.saturating_sub(refused));
        self.cwnd = match self.combination {
            Combination::Minimum => by_loss.min(by_drop),
            Combination::Sum => by_loss.saturating_sub(refused),
        }
        .max(1);
        (judgements, reduced || refused > 0)
    }

    fn grow(&mut self, packets: u32) {
        // RFC 4341, 5: in slow start one packet for two that are acknowledged, at most half the Ack Ratio for an acknowledgement.
        let mut most = u32::from(self.acks.ratio).div_ceil(2);
        for _ in 0..packets {
            self.acked += 1;
            if self.cwnd < self.ssthresh {
                if self.acked >= 2 && most > 0 {
                    self.cwnd += 1;
                    most -= 1;
                    self.acked = 0;
                }
            } else if self.acked >= self.cwnd {
                self.cwnd += 1;
                self.acked = 0;
            }
        }
    }
}

impl Sender for Ccid2 {
    fn permit(&self, _now: Instant, outstanding: usize) -> Permit {
        if outstanding < self.cwnd as usize {
            Permit::Now
        } else {
            Permit::Later
        }
    }

    fn prime(&mut self, _now: Instant, rtt: Duration) {
        self.rtt.sample(rtt);
    }

    fn on_sent(&mut self, now: Instant, _sent: &Sent, outstanding: usize, more: bool) {
        // RFC 4341, 5.1 with RFC 2861: after an idle period the window is no longer known to be right.
        let idle = self.last_sent.is_some_and(|last| outstanding == 1 && now.since(last) > self.rtt.rto());
        if idle && self.expiries == 0 {
            self.ssthresh = self.ssthresh.max(self.cwnd / 4 * 3);
            self.cwnd = self.cwnd.min(initial_window(self.packet));
        }
        self.last_sent = Some(now);
        self.limited |= more && outstanding >= self.cwnd as usize;
        if self.timer.is_none() {
            self.timer = Some(now + self.rtt.rto());
        }
    }

    fn on_feedback(&mut self, feedback: &Feedback) -> Vec<Judgement> {
        if let Some(rtt) = feedback.rtt {
            self.rtt.sample(rtt);
        }
        if feedback.options.contains(&Opt::SlowReceiver) {
            self.slow_until = feedback.now + self.rtt.smoothed().unwrap_or(self.rtt.rto());
        }
        let (judgements, reduced) = self.respond(feedback);
        let news = feedback.fates.iter().any(|(_, fate)| *fate != PacketFate::Lost);
        let good = feedback.fates.iter().filter(|(_, fate)| *fate != PacketFate::Lost && !self.congests(*fate)).count();
        if !reduced && self.limited && feedback.now >= self.slow_until {
            self.grow(good as u32);
        }
        if news {
            self.expiries = 0;
            self.limited = feedback.outstanding >= self.cwnd as usize;
            self.timer = (feedback.outstanding > 0).then(|| feedback.now + self.rtt.rto());
        }
        self.acks.on_feedback(feedback, self.cwnd);
        judgements
    }

    fn timeout(&self) -> Option<Instant> {
        self.timer
    }

    fn on_timeout(&mut self, now: Instant, newest: u64) -> Expiry {
        let after = self.rtt.rto();
        self.timer = None;
        self.expiries += 1;
        self.ssthresh = (self.cwnd / 2).max(2);
        self.cwnd = 1;
        self.acked = 0;
        self.recover = newest;
        self.limited = true;
        self.rtt.back_off();
        self.acks.limit(self.cwnd);
        Expiry { after, consecutive: self.expiries, abandon_before: now, collapsed: true }
    }

    fn ack_ratio(&self) -> Option<u16> {
        Some(self.acks.ratio)
    }

    fn srtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    fn view(&self, outstanding: usize) -> View {
        let octets = |packets: u32| if packets == u32::MAX { u64::MAX } else { u64::from(packets) * u64::from(self.packet) };
        View {
            cwnd: octets(self.cwnd),
            ssthresh: octets(self.ssthresh),
            srtt: self.rtt.smoothed(),
            pipe: octets(outstanding as u32),
        }
    }
}

/// How many data packets the other side acknowledges at once (RFC 4341, 6.1.2).
#[derive(Debug)]
struct AckControl {
    ratio: u16,
    /// The newest packet that the other side sent.
    newest: Option<u64>,
    /// The window of data that is being watched ends with this packet.
    end: u64,
    lost: bool,
    /// Windows in a row without a lost acknowledgement.
    clean: u32,
}

impl Default for AckControl {
    fn default() -> Self {
        Self { ratio: 2, newest: None, end: 0, lost: false, clean: 0 }
    }
}

impl AckControl {
    fn on_feedback(&mut self, feedback: &Feedback, cwnd: u32) {
        self.lost |= self.newest.is_some_and(|newest| feedback.seq > newest + 1);
        self.newest = self.newest.max(Some(feedback.seq));
        if feedback.ack >= self.end {
            let ratio = u32::from(self.ratio);
            if self.lost {
                self.ratio = self.ratio.saturating_mul(2);
                self.clean = 0;
            } else {
                self.clean += 1;
                if ratio > 1 && self.clean >= cwnd / (ratio * ratio - ratio) {
                    self.ratio -= 1;
                    self.clean = 0;
                }
            }
            self.lost = false;
            self.end = feedback.newest + 1;
        }
        self.limit(cwnd);
    }

    /// Never more than half the window, rounded up; at least two from a window of four packets on.
    fn limit(&mut self, cwnd: u32) {
        let most = cwnd.div_ceil(2).min(u32::from(u16::MAX)) as u16;
        self.ratio = self.ratio.max(if cwnd >= 4 { 2 } else { 1 }).min(most.max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ccid(mode: Mode, cwnd: u32) -> Ccid2 {
        let mut ccid = Ccid2::new(&Config { mode, packet: 1000, ..Config::default() });
        ccid.cwnd = cwnd;
        ccid.limited = true;
        ccid
    }

    fn fates(fates: &[(u64, PacketFate)]) -> Vec<(Sent, PacketFate)> {
        fates.iter().map(|(seq, fate)| (Sent::new(*seq, 0, 1000, Instant::ZERO), *fate)).collect()
    }

    fn feed(ccid: &mut Ccid2, newest: u64, found: &[(u64, PacketFate)]) -> Vec<Judgement> {
        let fates = fates(found);
        ccid.limited = true;
        let (now, outstanding) = (Instant::from_nanos(1), ccid.cwnd as usize);
        let feedback = Feedback { now, seq: newest, ack: newest, newest, fates: &fates, rtt: None, options: &[], outstanding };
        ccid.on_feedback(&feedback)
    }

    const CORRUPT: PacketFate = PacketFate::Dropped(DropCode::CORRUPT);

    #[test]
    fn the_initial_window_is_that_of_rfc_3390() {
        assert_eq!([500, 1095, 1096, 1460, 2190, 2191].map(initial_window), [4, 4, 3, 3, 3, 2]);
    }

    #[test]
    fn slow_start_grows_by_one_for_two_and_avoidance_by_one_for_a_window() {
        let mut ccid = ccid(Mode::Rfc, 4);
        feed(&mut ccid, 10, &[(1, PacketFate::Received), (2, PacketFate::Received)]);
        assert_eq!(ccid.cwnd, 5);
        // At most half the Ack Ratio of 2 for one acknowledgement.
        feed(&mut ccid, 10, &[3, 4, 5, 6].map(|seq| (seq, PacketFate::Received)));
        assert_eq!(ccid.cwnd, 6);
        ccid.ssthresh = 6;
        ccid.acked = 0;
        for seq in 0..5 {
            feed(&mut ccid, 20, &[(seq, PacketFate::Received)]);
        }
        assert_eq!(ccid.cwnd, 6);
        feed(&mut ccid, 20, &[(9, PacketFate::Received)]);
        assert_eq!(ccid.cwnd, 7);
    }

    #[test]
    fn one_window_is_reduced_once() {
        let mut ccid = ccid(Mode::Rfc, 20);
        assert_eq!(
            feed(&mut ccid, 30, &[(11, PacketFate::Lost), (13, PacketFate::Marked)]),
            [Judgement::Reduced, Judgement::Covered]
        );
        assert_eq!((ccid.cwnd, ccid.ssthresh), (10, 10));
        assert_eq!(feed(&mut ccid, 35, &[(30, PacketFate::Lost)]), [Judgement::Covered]);
        assert_eq!(feed(&mut ccid, 36, &[(31, PacketFate::Lost)]), [Judgement::Reduced]);
        assert_eq!((ccid.cwnd, ccid.ssthresh), (5, 5));
    }

    #[test]
    fn damage_counts_as_a_mark_or_as_arrival() {
        let mut conformant = ccid(Mode::Rfc, 20);
        assert_eq!(feed(&mut conformant, 30, &[(11, CORRUPT)]), [Judgement::Reduced]);
        assert_eq!((conformant.cwnd, conformant.ssthresh), (10, 10));
        let mut differentiating = ccid(Mode::Differentiating, 20);
        let delivered = PacketFate::Dropped(DropCode::DELIVERED_CORRUPT);
        assert_eq!(feed(&mut differentiating, 30, &[(11, CORRUPT), (12, delivered)]), [Judgement::Kept; 2]);
        // Slow start ends in both modes.
        assert_eq!((differentiating.cwnd, differentiating.ssthresh), (20, 20));
        // Reserved codes count as marks in both.
        assert_eq!(feed(&mut differentiating, 30, &[(13, PacketFate::Dropped(DropCode(5)))]), [Judgement::Reduced]);
    }

    #[test]
    fn a_full_receive_buffer_costs_a_packet_each_and_combines_with_losses() {
        let buffer = PacketFate::Dropped(DropCode::RECEIVE_BUFFER);
        let mut ccid2 = ccid(Mode::Rfc, 20);
        assert_eq!(feed(&mut ccid2, 30, &[(1, buffer), (2, buffer), (3, buffer)]), [Judgement::Kept; 3]);
        assert_eq!(ccid2.cwnd, 17);
        let both = [(1, PacketFate::Lost), (2, buffer), (3, buffer)];
        let mut minimum = ccid(Mode::Rfc, 20);
        feed(&mut minimum, 30, &both);
        let mut sum = Ccid2 { combination: Combination::Sum, ..ccid(Mode::Rfc, 20) };
        feed(&mut sum, 30, &both);
        // By loss 10, by drop 18: the smaller, or 20 - 10 - 2.
        assert_eq!((minimum.cwnd, sum.cwnd), (10, 8));
        let mut least = ccid(Mode::Rfc, 1);
        feed(&mut least, 30, &[(1, buffer)]);
        assert_eq!(least.cwnd, 1);
    }

    #[test]
    fn a_timeout_leaves_one_packet_and_backs_off() {
        let mut ccid = ccid(Mode::Rfc, 20);
        let sent = Sent::new(1, 0, 1000, Instant::ZERO);
        ccid.on_sent(Instant::ZERO, &sent, 1, false);
        assert_eq!(ccid.timeout(), Some(Instant::ZERO + Duration::from_secs(1)));
        let now = Instant::ZERO + Duration::from_secs(1);
        let expiry = ccid.on_timeout(now, 7);
        assert_eq!(expiry, Expiry { after: Duration::from_secs(1), consecutive: 1, abandon_before: now, collapsed: true });
        assert_eq!((ccid.cwnd, ccid.ssthresh, ccid.recover), (1, 10, 7));
        ccid.on_sent(Instant::ZERO + Duration::from_secs(1), &sent, 1, false);
        assert_eq!(ccid.timeout(), Some(Instant::ZERO + Duration::from_secs(3)));
    }

    #[test]
    fn a_slow_receiver_stops_growth_for_a_round_trip() {
        let mut ccid = ccid(Mode::Rfc, 10);
        ccid.rtt.sample(Duration::from_millis(100));
        let fates = fates(&[(1, PacketFate::Received), (2, PacketFate::Received)]);
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        for (ms, options, cwnd) in [(0, &[Opt::SlowReceiver][..], 10), (99, &[], 10), (101, &[], 11)] {
            let feedback =
                Feedback { now: at(ms), seq: 1, ack: 9, newest: 9, fates: &fates, rtt: None, options, outstanding: 10 };
            ccid.on_feedback(&feedback);
            assert_eq!(ccid.cwnd, cwnd, "{ms} ms");
        }
    }

    /// RFC 4341, 6.1.2: lost acknowledgements double the ratio; after `cwnd / (R^2 - R)` clean windows it falls by one.
    #[test]
    fn the_ack_ratio_follows_lost_acknowledgements() {
        let mut acks = AckControl::default();
        let mut seq = 0;
        let mut window = |acks: &mut AckControl, gap: u64| {
            seq += 1 + gap;
            let ack = acks.end;
            let feedback =
                Feedback { now: Instant::ZERO, seq, ack, newest: ack + 24, fates: &[], rtt: None, options: &[], outstanding: 24 };
            acks.on_feedback(&feedback, 24);
            acks.ratio
        };
        assert_eq!(window(&mut acks, 0), 2);
        assert_eq!([window(&mut acks, 3), window(&mut acks, 1), window(&mut acks, 1)], [4, 8, 12]);
        acks.ratio = 4;
        assert_eq!([window(&mut acks, 0), window(&mut acks, 0)], [4, 3], "24 / (16 - 4) = 2 windows");
        acks.limit(3);
        assert_eq!(acks.ratio, 2);
        acks.limit(1);
        assert_eq!(acks.ratio, 1);
    }
}
