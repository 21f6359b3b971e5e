//! Arriving segments (RFC 9293, 3.10.7).

use super::arrivals::Timing;
use super::assembler::Arrived;
use super::record::{Closing, Event, GapRecord, State};
use super::{AckPolicy, Config, Endpoint};
use crate::arrival::{Arrival, Damaged, LinkHint};
use crate::path::Passed;
use crate::receiver::Answer;
use crate::segment::{Ecn, Flags, HopNotice, Integrity, Payload, Segment};
use crate::time::{Duration, Instant};

/// RFC 7323, 5.5: after this long without a segment the remembered timestamp proves nothing.
const PAWS_IDLE_LIMIT: Duration = Duration::from_secs(24 * 24 * 3600);

impl Endpoint {
    pub(super) fn on_segment(&mut self, now: Instant, segment: &Segment) {
        self.stats.segments_received += 1;
        self.path.now = now;
        if let Some(notice) = segment.options.rare.as_ref().and_then(|rare| rare.notices.hop) {
            if !segment.flags.contains(Flags::ACK) {
                return self.on_hop_notice(notice);
            }
        }
        match self.state {
            State::Closed => {}
            State::Listen => self.on_segment_in_listen(now, segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            _ => self.on_segment_synchronised(now, segment),
        }
    }

    /// A segment whose checksum is broken: only the receiver agent looks at it.
    pub(super) fn on_damaged(&mut self, now: Instant, segment: &Segment, integrity: Integrity) {
        self.stats.segments_received += 1;
        self.stats.damaged_received += 1;
        let receiving = matches!(self.state, State::Established | State::FinWait1 | State::FinWait2);
        // The handshake's last segment can come with the first data, and be damaged with it: what comes next is acknowledged.
        if !receiving && self.state != State::SynReceived {
            return;
        }
        let view = self.rcv.view(now, self.agreed, self.snd.rtt.srtt());
        if self.parts.receiver.on_damaged(&Damaged { view, segment, integrity }) {
            self.rcv.ack_now |= receiving;
            self.rcv.damage_seen = true;
        }
    }

    /// What the receiver agent makes of the link.
    pub(super) fn on_link(&mut self, now: Instant, hint: LinkHint) {
        let view = self.rcv.view(now, self.agreed, self.snd.rtt.srtt());
        let copies = self.parts.receiver.on_link(hint, &view);
        // Before there is a connection nothing is due: the first data sets the timer.
        if matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            self.timers.set_receiver(self.parts.receiver.poll_timeout());
            self.rcv.ack_now |= copies > 0;
            self.rcv.copies = copies.saturating_sub(1);
        }
    }

    /// A control segment of a base station. It acknowledges nothing: only differentiators are told of it.
    #[inline(never)]
    fn on_hop_notice(&mut self, notice: HopNotice) {
        let start = notice.seq.near(self.snd.una);
        if start + u64::from(notice.len) <= self.snd.una || start >= self.snd.nxt {
            return;
        }
        self.refresh_path(self.path.now);
        let passed = Passed { path: &self.path, hop: notice.hop, start, len: u32::from(notice.len) };
        self.parts.differentiators.on_passed(&passed);
    }

    fn on_segment_synchronised(&mut self, now: Instant, segment: &Segment) {
        let start = segment.seq.near(self.rcv.next);
        if self.state == State::SynReceived {
            if start == self.rcv.irs && segment.flags.0 & 0x17 == Flags::SYN.0 {
                self.syn_due = true; // our SYN-ACK was lost
                return;
            }
            if self.completes_simultaneous_open(start, segment) {
                self.rcv.ack_now |= self.fast.request.is_some();
                self.establish(now, segment);
                return self.settle_syn_data(segment, segment.ack.near(self.snd.una));
            }
        }
        let len = segment.payload.len() as u64;
        let refused = self.lacks_room_for(start, segment);
        if self.is_old_by_timestamp(now, segment) || !refused && !self.is_acceptable(start, len, segment.flags) {
            return self.on_unacceptable(now, start, segment);
        }
        if segment.flags.0 & (Flags::RST | Flags::SYN | Flags::ACK).0 != Flags::ACK.0 {
            if segment.flags.contains(Flags::RST) {
                self.on_reset(now, start);
            } else if segment.flags.contains(Flags::SYN) {
                // RFC 5961, 4. A SYN that opens simultaneously comes before the connection is synchronised.
                self.challenge(now);
            }
            return;
        }
        let ack = segment.ack.near(self.snd.una);
        if self.state == State::SynReceived {
            if !self.acknowledges_syn(ack) {
                return self.reset_in_answer_to(segment);
            }
            self.snd.peer.begin_scaled(segment.window);
            self.establish(now, segment);
            if self.active {
                self.settle_syn_data(segment, ack);
            }
        }
        // RFC 5961, 5
        if ack > self.snd.nxt || ack + self.snd.peer.largest().max(1) < self.snd.una {
            return self.challenge(now);
        }
        self.remember_timestamp(now, start, segment);
        self.touch_keep_alive(now);
        self.process_ack(now, segment, ack, start);
        if segment.options.rare.is_some() {
            self.heed_probe(now, segment);
        }
        if self.state == State::Closed {
            return;
        }
        if refused {
            self.rcv.ack_now = true;
        } else if len > 0 || segment.flags.contains(Flags::FIN) {
            self.process_data(now, segment, start);
        } else if segment.flags.contains(Flags::CWR) {
            self.rcv.echo_ce = false;
        }
        if self.snd.fin_acked() {
            self.advance_closing(now);
        }
    }

    /// A segment that lies outside of the window or is old. It teaches the peer where we stand.
    #[cold]
    fn on_unacceptable(&mut self, now: Instant, start: u64, segment: &Segment) {
        if !segment.flags.contains(Flags::RST) {
            self.rcv.ack_now = true;
            if !segment.payload.is_empty() {
                self.note_duplicate(start, segment);
            }
        }
        if self.state == State::TimeWait && segment.flags.contains(Flags::FIN) {
            self.timers.start_time_wait(self.snd.rtt.clock().after(now, self.config.time_wait));
        }
    }

    /// The peer's SYN again, now with an acknowledgement of ours (RFC 9293, 3.5, figure 8, line 6).
    fn completes_simultaneous_open(&self, start: u64, segment: &Segment) -> bool {
        self.active
            && segment.flags.contains(Flags::SYN | Flags::ACK)
            && !segment.flags.contains(Flags::RST)
            && start + 1 == self.rcv.next
            && segment.payload.is_empty()
            && self.acknowledges_syn(segment.ack.near(self.snd.una))
    }

    /// PAWS (RFC 7323, 5.3).
    fn is_old_by_timestamp(&self, now: Instant, segment: &Segment) -> bool {
        if !self.agreed.timestamps || segment.flags.contains(Flags::RST) {
            return false;
        }
        segment.options.timestamps.is_some_and(|timestamps| self.is_older(now, timestamps.value))
    }

    /// Whether a timestamp is from before the one that is remembered.
    fn is_older(&self, now: Instant, value: u32) -> bool {
        (value.wrapping_sub(self.rcv.ts_recent) as i32) < 0 && now.since(self.rcv.ts_recent_at) < PAWS_IDLE_LIMIT
    }

    /// The acceptability test of RFC 9293, 3.10.7.4, of a segment with so much data.
    fn is_acceptable(&self, start: u64, len: u64, flags: Flags) -> bool {
        let (next, end) = (self.rcv.next, self.rcv.announced);
        let marks = (flags.0 & (Flags::SYN | Flags::FIN).0).count_ones();
        let last = start + len + u64::from(marks);
        if start == last {
            // A peer that has filled the window acknowledges from its right edge: without these, lost data could keep all of its
            // acknowledgements from being taken.
            let on_edge = start == end && !flags.contains(Flags::RST);
            return start >= next && start < end || start == next || on_edge;
        }
        start < end && last > next && (end > next)
    }

    /// Whether a segment brings what is expected while our window is closed. What it acknowledges counts (RFC 9293, 3.10.7.4): else a peer
    /// that probes the window would say nothing by it.
    fn lacks_room_for(&self, start: u64, segment: &Segment) -> bool {
        let next = self.rcv.next;
        start == next
            && next == self.rcv.announced
            && segment.seq_len() > 0
            && segment.flags.0 & (Flags::RST | Flags::SYN | Flags::ACK).0 == Flags::ACK.0
    }

    /// Only a reset at exactly the next expected position counts (RFC 5961, 3).
    #[inline(never)]
    fn on_reset(&mut self, now: Instant, start: u64) {
        if start != self.rcv.next {
            return self.challenge(now);
        }
        match self.state {
            State::SynReceived if self.active => self.finish(Closing::Refused),
            State::SynReceived => {
                self.finish(Closing::Reset);
            }
            State::TimeWait | State::LastAck | State::Closing => self.finish(Closing::Normal),
            _ => self.finish(Closing::Reset),
        }
    }

    /// A challenge ACK, as many as RFC 5961, 7 allows.
    #[inline(never)]
    fn challenge(&mut self, now: Instant) {
        let (count, since) = &mut self.rcv.challenges;
        if now.since(*since) >= self.config.challenge_ack_window {
            (*count, *since) = (0, now);
        }
        if *count < self.config.challenge_ack_limit {
            *count += 1;
            self.stats.challenge_acks += 1;
            self.rcv.ack_now = true;
        }
    }

    /// Takes over the peer's timestamp if the segment covers what was acknowledged last (RFC 7323, 4.3).
    #[inline]
    fn remember_timestamp(&mut self, now: Instant, start: u64, segment: &Segment) {
        if let (true, Some(timestamps)) = (self.agreed.timestamps, segment.options.timestamps) {
            if let Some(arrivals) = &mut self.rcv.arrivals {
                arrivals.on_timestamp(now, timestamps.value);
            }
            if start <= self.rcv.last_ack && !self.is_older(now, timestamps.value) {
                self.rcv.ts_recent = timestamps.value;
                self.rcv.ts_recent_at = now;
            }
        }
    }

    /// Data that was all received before: report it by D-SACK (RFC 2883).
    #[inline(never)]
    fn note_duplicate(&mut self, start: u64, segment: &Segment) {
        let end = start + segment.payload.len() as u64;
        if end <= self.rcv.next {
            self.stats.duplicates_received += 1;
            if self.agreed.sack && self.config.dsack {
                self.rcv.dsack = Some((start, end));
            }
        }
    }

    #[inline]
    pub(super) fn process_data(&mut self, now: Instant, segment: &Segment, start: u64) {
        if matches!(self.state, State::CloseWait | State::Closing | State::LastAck | State::TimeWait) {
            return; // everything up to the peer's FIN has already come
        }
        let len = segment.payload.len() as u64;
        if self.rcv.deaf && start + len > self.rcv.next && len > 0 {
            self.reset_in_answer_to(segment);
            return self.finish(Closing::Aborted);
        }
        self.note_ecn(segment);
        let window_end = self.rcv.announced;
        let end = (start + len).min(window_end);
        let fits = start + len <= window_end;
        let ends = segment.flags.contains(Flags::FIN) && fits && self.rcv.fin_at.is_none();
        if segment.flags.contains(Flags::FIN) && fits {
            self.rcv.fin_at = self.rcv.fin_at.or(Some(start + len));
            self.rcv.ack_now = true; // in order or not (RFC 5681, 4.2)
        }
        if len > 0 && end > start {
            self.take_payload(now, segment, (start, end), end - start == len);
        }
        if ends {
            let view = self.rcv.view(now, self.agreed, self.snd.rtt.srtt());
            self.parts.receiver.on_end(&view);
            self.timers.set_receiver(self.parts.receiver.poll_timeout());
        }
        if self.rcv.fin_at == Some(self.rcv.assembler.next()) && !self.rcv.fin_received {
            self.rcv.fin_received = true;
            self.rcv.next = self.rcv.assembler.next() + 1;
            self.rcv.announced = self.rcv.announced.max(self.rcv.next);
            self.rcv.ack_now = true;
            self.events.push_back(Event::PeerClosed);
            match self.state {
                State::Established => self.state = State::CloseWait,
                State::FinWait1 => self.state = State::Closing,
                State::FinWait2 => self.enter_time_wait(now),
                _ => {}
            }
        }
    }

    /// Data `[start, end)` of `segment` fits the window: `whole`, or but the beginning of what it carries.
    fn take_payload(&mut self, now: Instant, segment: &Segment, (start, end): (u64, u64), whole: bool) {
        if self.rcv.assembler.refuses(start, self.config.receive_buffer) {
            self.rcv.ack_now = true; // as if it had not come
            return;
        }
        let len = (end - start) as u32;
        self.note_full_segment(len, segment.flags.contains(Flags::PSH));
        if let AckPolicy::Delayed(_) = self.config.ack_policy {
            self.rcv.quick_acks.on_data(now, self.config.quick_acks, self.snd.rtt.rto());
        }
        let cut;
        let payload = if whole {
            &segment.payload
        } else {
            cut = segment.payload.slice(0, len as usize);
            &cut
        };
        let skimmed = self.rcv.skims && self.is_expected(start, payload);
        let arrived = self.rcv.assembler.insert((start, end), payload, skimmed || self.config.auto_read);
        if let Arrived::InOrder { octets, .. } = arrived {
            self.rcv.next = self.rcv.assembler.next();
            self.stats.octets_delivered += octets;
            self.rcv.unacked += octets;
            if !skimmed && !self.config.auto_read {
                self.events.push_back(Event::Readable);
            }
        }
        if arrived == Arrived::Duplicate {
            self.stats.duplicates_received += 1;
            if self.agreed.sack && self.config.dsack {
                self.rcv.dsack = Some((start, end));
            }
        }
        let due = self.rcv.ack_now;
        self.schedule_ack(now, arrived);
        if let Some(arrivals) = &mut self.rcv.arrivals {
            let timestamp = segment.options.timestamps.filter(|_| self.agreed.timestamps);
            let timestamp = timestamp.map(|timestamps| timestamps.value);
            let timing = arrivals.note(now, (start, end), self.rcv.irs + 1, self.rcv.full_segment, timestamp);
            let duplicate = arrived == Arrived::Duplicate;
            if self.tell_of_arrival(now, segment, (start, len), duplicate, timing) == Answer::None {
                self.rcv.ack_now = due;
            }
        }
        if skimmed {
            self.announce_opened_window();
        }
    }

    /// Whether nobody need look at data from `start` on: it is the synthetic stream's own, and all before it was read.
    #[inline]
    fn is_expected(&self, start: u64, payload: &Payload) -> bool {
        let assembler = &self.rcv.assembler;
        matches!(payload, Payload::Synthetic { offset, .. } if self.rcv.irs + 1 + offset == start)
            && assembler.islands().is_empty()
            && assembler.unread() == 0
    }

    /// Tells the receiver agent of data that arrived, and the differentiators in shadow. Returns how the agent wants it to be acknowledged.
    #[inline(never)]
    fn tell_of_arrival(
        &mut self,
        now: Instant,
        segment: &Segment,
        (start, len): (u64, u32),
        duplicate: bool,
        Timing { spacing, trip, gap }: Timing,
    ) -> Answer {
        let view = self.rcv.view(now, self.agreed, self.snd.rtt.srtt());
        let arrival = Arrival { view, start, len, duplicate, spacing, trip, gap, segment };
        self.parts.receiver.on_arrival(&arrival);
        self.timers.set_receiver(self.parts.receiver.poll_timeout());
        let shadows = &mut self.parts.receiver_shadows;
        for (_, shadow) in shadows.iter_mut() {
            shadow.on_arrival(&arrival);
        }
        if let (Some(gap), false) = (&gap, shadows.is_empty()) {
            let verdicts = shadows.iter_mut().map(|(_, shadow)| shadow.judge(gap, &arrival)).collect();
            let offset = gap.start - (self.rcv.irs + 1);
            let len = gap.end - gap.start;
            self.events.push_back(Event::Gap(Box::new(GapRecord { at: now, offset, len, verdicts })));
        }
        self.parts.receiver.answer()
    }

    /// A segment with `len` octets has come. Two of one size in a row that end nothing (`pushed`) are full, though larger ones came before: the
    /// peer may send smaller segments because the path has become narrower. No path asks for smaller ones than the least MSS.
    fn note_full_segment(&mut self, len: u32, pushed: bool) {
        let again = len == self.rcv.last_segment && len >= u32::from(Config::MIN_MSS) && !pushed;
        if len > self.rcv.full_segment || again {
            self.rcv.full_segment = len;
        }
        self.rcv.last_segment = len;
    }

    /// When to acknowledge (RFC 5681, 4.2): at once if anything is out of the ordinary, else every second full segment or after a
    /// delay.
    fn schedule_ack(&mut self, now: Instant, arrived: Arrived) {
        let ordinary = matches!(arrived, Arrived::InOrder { filled_hole: false, .. }) && self.rcv.assembler.islands().is_empty();
        match self.config.ack_policy {
            AckPolicy::Delayed(delay) if ordinary => {
                if self.rcv.unacked >= 2 * u64::from(self.rcv.full_segment) || self.rcv.quick_acks.apply() {
                    self.rcv.ack_now = true;
                } else {
                    self.timers.arm_delayed_ack(self.snd.rtt.clock().after(now, delay));
                }
            }
            _ => self.rcv.ack_now = true,
        }
    }

    /// RFC 3168, 6.1.3: echo congestion experienced until the sender says that it has reduced its window.
    fn note_ecn(&mut self, segment: &Segment) {
        if !self.agreed.ecn {
            return;
        }
        if segment.flags.contains(Flags::CWR) {
            self.rcv.echo_ce = false;
        }
        if segment.ecn == Ecn::CongestionExperienced {
            self.rcv.echo_ce = true;
            self.rcv.ack_now = true;
        }
    }

    /// State changes that follow from the acknowledgement of our FIN, which has come.
    #[inline(never)]
    fn advance_closing(&mut self, now: Instant) {
        if !self.snd.finished_told {
            self.snd.finished_told = true;
            self.events.push_back(Event::SendFinished);
        }
        match self.state {
            State::FinWait1 if self.rcv.fin_received => self.enter_time_wait(now),
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.finish(Closing::Normal),
            _ => {}
        }
    }

    fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timers.start_time_wait(self.snd.rtt.clock().after(now, self.config.time_wait));
    }
}
