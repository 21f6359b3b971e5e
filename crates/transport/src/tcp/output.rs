//! What leaves: retransmissions, new data, probes, acknowledgements.

use super::rack::TailProbe;
use super::record::State;
use super::recovery::Fast;
use super::retransmission::RetransmissionTrigger;
use super::waves::Leaving;
use super::{AckPolicy, Endpoint};
use crate::path::{Formation, Sent};
use crate::segment::{Dscp, Ecn, Flags, Notices, Options, Payload, RareOptions, Segment, Timestamps, Wave};
use crate::seq::Seq;
use crate::time::Instant;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;

/// The room for options in a TCP header, in octets.
const OPTION_SPACE: usize = 40;
/// What lists of holes leave of it to SACK.
const TWO_SACK_BLOCKS: usize = 18;

/// What every segment says to the data of the other direction.
struct Answer {
    flags: Flags,
    ack: Seq,
    window: u16,
}

impl Endpoint {
    /// The next segment to send, if there is one.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        self.path.now = now;
        if self.is_quiet() {
            debug_assert!(self.transmit(now).is_none(), "something leaves though nothing seemed to");
            return None;
        }
        self.transmit(now)
    }

    #[inline(never)]
    fn transmit(&mut self, now: Instant) -> Option<Segment> {
        if self.control.is_some() {
            self.stats.segments_sent += 1;
            return self.control.take().map(|control| *control);
        }
        let segment = match self.state {
            State::Closed | State::Listen => None,
            State::SynSent => self.transmit_syn(now),
            State::SynReceived if self.syn_due || !self.fast.accepted => self.transmit_syn(now),
            _ => self.transmit_established(now),
        };
        self.stats.segments_sent += u64::from(segment.is_some());
        segment
    }

    #[inline(never)]
    fn transmit_syn(&mut self, now: Instant) -> Option<Segment> {
        if !std::mem::take(&mut self.syn_due) {
            return std::mem::take(&mut self.rcv.ack_now).then(|| self.acknowledgement(now));
        }
        if self.stats.segments_sent > 0 {
            self.note_retransmission(RetransmissionTrigger::Handshake);
        }
        let answering = self.state == State::SynReceived;
        // A SYN that is sent again because it was too big was sent when the first one was: its answer may be the answer to that.
        if self.snd.syn_expiries == 0 && (answering || self.timers.syn_sent_at.is_none()) {
            self.timers.syn_sent_at = Some(now);
        }
        let mut flags = if answering { Flags::SYN | Flags::ACK } else { Flags::SYN };
        // RFC 3168, 6.1.1; retransmitted SYNs do without, in case something on the path objects (6.1.1.1).
        if answering && self.agreed.ecn {
            flags |= Flags::ECE;
        } else if !answering && self.config.ecn && self.snd.syn_expiries == 0 {
            flags |= Flags::ECE | Flags::CWR;
        }
        let options = self.syn_options();
        if answering {
            self.note_acknowledged(); // the data of the SYN, too
        }
        let payload = if answering { Payload::Empty } else { self.take_syn_data() };
        Some(Segment {
            seq: Seq::from(self.snd.iss),
            payload,
            ack: if answering { Seq::from(self.rcv.next) } else { Seq(0) },
            flags,
            window: self.config.receive_buffer.min(0xffff) as u16,
            options,
            ..self.blank()
        })
    }

    fn transmit_established(&mut self, now: Instant) -> Option<Segment> {
        if self.rcv.ack_now && self.has_news_of_losses() {
            return Some(self.acknowledgement(now));
        }
        if self.snd.probing.is_due() {
            return Some(self.transmit_probe(now));
        }
        let may_leave = self.has_new() || self.has_repair() || !self.snd.recovery.is_open();
        if may_leave && self.may_transmit_data() && !self.snd.probing.suspends() && self.has_turn(now) {
            let withheld = self.withholds();
            if !withheld && self.has_repair() {
                let repair = self.transmit_repair(now);
                if repair.is_some() {
                    return repair;
                }
            }
            if self.has_new() {
                if std::mem::take(&mut self.snd.due.window_probe) && (self.snd.unsent() > 0 || self.snd.board.len() > 0) {
                    return Some(self.send_window_probe(now));
                }
                if let Some(len) = self.new_to_send(now) {
                    return Some(self.send_new(now, len));
                }
            }
            if let Some(recover) = self.snd.recovery.fast().filter(|_| !withheld).map(Fast::recover) {
                let rescue = self.transmit_rescue(now, recover);
                if rescue.is_some() {
                    return rescue;
                }
            }
        }
        if std::mem::take(&mut self.snd.due.keep_alive) {
            return Some(self.bare_probe(now));
        }
        self.rcv.ack_now.then(|| self.acknowledgement(now))
    }

    fn has_repair(&self) -> bool {
        !self.snd.asked.is_empty() || self.snd.board.needs_repair() || self.snd.due.tail_probe || self.snd.due.head
    }

    fn has_new(&self) -> bool {
        self.snd.unsent() > 0 || self.snd.due.window_probe || self.snd.closing && !self.snd.fin_sent
    }

    /// Whether data may leave now, for all that the rate says. If it may not, the timer wakes for it.
    fn has_turn(&mut self, now: Instant) -> bool {
        let Some(turn) = self.snd.pacer.as_ref().map(|pacer| pacer.turn(now)).filter(|turn| *turn > now) else { return true };
        if self.has_repair() || self.has_new() {
            self.timers.set_pacing(turn);
        }
        false
    }

    /// Whether the acknowledgement that is due tells of holes, duplicates or damage. Then it leaves alone, ahead of any data: only a
    /// bare one counts as a duplicate acknowledgement, and only there the options surely fit.
    fn has_news_of_losses(&self) -> bool {
        self.rcv.damage_seen || self.rcv.dsack.is_some() || !self.rcv.assembler.islands().is_empty()
    }

    /// A segment that was taken for lost, or a tail loss probe.
    #[inline(never)]
    fn transmit_repair(&mut self, now: Instant) -> Option<Segment> {
        if let Some(asked) = self.transmit_asked(now) {
            return Some(asked);
        }
        if self.snd.board.needs_repair() {
            let index = self.snd.board.next_repair()?;
            let len = u64::from(self.snd.board.get(index).len);
            let room = self.window.cwnd() + self.snd.recovery.inflation();
            if self.snd.due.head || self.snd.pipe() + len <= room {
                self.snd.due.head = false;
                return Some(self.retransmit(now, index));
            }
            return None;
        }
        self.snd.due.head = false;
        if self.snd.due.tail_probe {
            self.snd.due.tail_probe = false;
            return self.transmit_tail_probe(now);
        }
        None
    }

    /// Nothing is known to be lost and nothing new can leave, but the pipe has room: rules 3 and 4 of RFC 6675's `NextSeg`.
    #[inline(never)]
    fn transmit_rescue(&mut self, now: Instant, recover: u64) -> Option<Segment> {
        if !self.agreed.sack || self.config.rack || self.snd.board.needs_repair() {
            return None;
        }
        let mss = u64::from(self.snd.mss);
        if self.snd.pipe() + mss > self.window.cwnd() {
            return None;
        }
        let highest = self.snd.board.highest_sacked();
        let hole = self.snd.board.iter().position(|sent| sent.in_network() && !sent.was_retransmitted() && sent.start < highest);
        if hole.is_none() && !self.snd.recovery.fast().is_some_and(Fast::may_rescue) {
            return None;
        }
        let index = hole.or_else(|| self.snd.board.iter().rposition(|sent| !sent.is_sacked() && sent.end() <= recover))?;
        if hole.is_none() {
            self.snd.recovery.fast_mut().map(Fast::rescue);
        }
        Some(self.retransmit(now, index))
    }

    /// RFC 8985, 7.3: new data if there is any, else the last segment again. Of new data a segment that fits the window, not what is left
    /// of that (RFC 9293, 3.8.6.2.1).
    fn transmit_tail_probe(&mut self, now: Instant) -> Option<Segment> {
        self.snd.board.last()?;
        self.stats.tail_probes += 1;
        let len = u64::from(self.snd.mss).min(self.snd.unsent_of_record()).min(self.fast.repeats_from(self.snd.nxt));
        if len > 0 && len <= self.snd.room_at_peer() {
            let segment = self.send_new(now, len as u32);
            self.snd.rack.tail_probe = Some(Box::new(TailProbe { end: self.snd.nxt, lost: None }));
            self.timers.arm_retransmission(self.snd.rtt.expiry(now));
            return Some(segment);
        }
        // What was sent in larger segments than are sent now goes again with its end, which alone tells of all before it.
        let mut index = self.snd.board.len() - 1;
        self.cut_to_size(index);
        while index + 1 < self.snd.board.len() {
            index += 1;
            self.cut_to_size(index);
        }
        let last = *self.snd.board.get(index);
        let segment = self.retransmit(now, index);
        self.note_retransmission(RetransmissionTrigger::TailProbe);
        self.snd.rack.tail_probe = Some(Box::new(TailProbe { end: last.end(), lost: Some(last) }));
        Some(segment)
    }

    pub(super) fn retransmit(&mut self, now: Instant, index: usize) -> Segment {
        self.cut_to_size(index);
        let sent = *self.snd.board.get(index);
        self.snd.board.on_retransmit(index, now);
        self.snd.rtt.on_retransmit();
        self.snd.last_sent = now;
        if let Some(undo) = &mut self.snd.undo {
            undo.retransmitted = true;
            undo.unproven += 1;
        }
        self.stats.retransmissions += 1;
        self.stats.retransmitted_octets += u64::from(sent.data_len());
        let segment = self.data_segment(now, sent.start, sent.data_len(), sent.is_fin(), u32::from(sent.transmissions));
        let value = segment.options.timestamps.map(|timestamps| timestamps.value);
        let trigger = self.snd.recovery.note_repetition(u64::from(sent.len), value.map(|value| (value, sent.end())));
        self.note_retransmission(trigger);
        if !self.timers.retransmission_armed() && !self.timers.persist_armed() {
            self.guard_outstanding(now);
        }
        segment
    }

    /// How many octets that were never sent may leave now; 0 if a FIN leaves without any.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "it has one place, which each new segment passes")]
    fn new_to_send(&mut self, now: Instant) -> Option<u32> {
        if self.snd.unsent() == 0 {
            let fin_due = self.snd.closing && !self.snd.fin_sent;
            return (fin_due && self.frto_permits()).then_some(0);
        }
        let mss = u64::from(self.snd.mss);
        let by_peer = (self.snd.una + self.snd.peer.octets().min(self.config.send_buffer)).saturating_sub(self.snd.nxt);
        // Data of a SYN is sent again as it was, without what follows it: it counts as a retransmission.
        let again = self.fast.again_until.saturating_sub(self.snd.nxt);
        let rest = self.snd.unsent_of_record();
        let len = mss.min(rest).min(by_peer).min(if again > 0 { again } else { mss });
        if len == 0 {
            self.mind_zero_window(now);
            return None;
        }
        if self.snd.board.len() == 0 {
            self.restart_after_idle(now);
        }
        if again == 0 && !self.is_worth_sending(len, rest) {
            if by_peer < mss || self.snd.hold.holds(self.snd.nxt + len) {
                self.mind_zero_window(now); // a window too small to use: the override timer (RFC 9293, 3.8.6.2.1)
            }
            return None;
        }
        let fits = match self.snd.recovery.awaiting() {
            Some(credit) => credit > 0,
            None => self.in_network() + len <= self.window.cwnd() + self.snd.recovery.inflation() && !self.holds_wave(),
        };
        if !fits {
            return None;
        }
        let len = self.size_to_send(now, len, by_peer.min(rest));
        if self.timers.persist_armed() {
            self.timers.cancel_persist(); // what has waited for more need wait no longer
            self.snd.persist.probes = 0;
        }
        Some(len as u32)
    }

    /// While a timeout is being assessed only F-RTO's credit lets new data out.
    fn frto_permits(&self) -> bool {
        self.snd.recovery.awaiting().is_none()
    }

    /// What counts against the window: everything outstanding, or in recovery what is believed to be in the network.
    fn in_network(&self) -> u64 {
        if !self.snd.recovery.is_open() || self.uses_rack() {
            return self.snd.pipe();
        }
        // RFC 3042: the first two duplicate acknowledgements each let one segment out.
        let limited = if self.config.limited_transmit { self.snd.recovery.dup_acks().min(2) } else { 0 };
        self.snd.flight().saturating_sub(u64::from(limited) * u64::from(self.snd.mss))
    }

    /// Nagle and silly-window avoidance (RFC 9293, 3.7.4 and 3.8.6.2.1).
    fn is_worth_sending(&self, len: u64, rest: u64) -> bool {
        if len == u64::from(self.snd.mss) {
            return true;
        }
        if len == rest {
            if rest < self.snd.unsent() {
                return true; // the end of a record, with more behind it: it gets no larger
            }
            if self.snd.hold.holds(self.snd.nxt + len) && !self.snd.closing {
                return false;
            }
            let waits = if self.config.nagle_for_small { self.snd.small_until > self.snd.una } else { self.snd.flight() > 0 };
            return !self.config.nagle || !waits || self.snd.closing;
        }
        len >= self.snd.peer.largest() / 2
    }

    /// RFC 5681, 4.1.
    #[inline(never)]
    fn restart_after_idle(&mut self, now: Instant) {
        if self.config.slow_start_after_idle && self.snd.rates.is_none() && now.since(self.snd.last_sent) > self.snd.rtt.rto() {
            let initial = u64::from(self.config.initial_window) * u64::from(self.snd.mss);
            if self.window.cwnd() > initial {
                self.stop_climbing();
                self.window.set_cwnd(initial);
            }
        }
    }

    /// A segment just below the window, which the peer has to acknowledge (RFC 9293, 3.8.4).
    pub(super) fn bare_probe(&mut self, now: Instant) -> Segment {
        let mut probe = self.acknowledgement(now);
        probe.seq = Seq::from(self.snd.una - 1);
        probe
    }

    /// Sends `len` octets from `SND.NXT` on, and the FIN if it follows them.
    #[inline(never)]
    pub(super) fn send_new(&mut self, now: Instant, len: u32) -> Segment {
        let was_idle = self.snd.board.len() == 0;
        let start = self.snd.nxt;
        let fin = self.snd.closing && !self.snd.fin_sent && start + u64::from(len) == self.snd.buffer.end();
        let seq_len = len + u32::from(fin);
        if len > 0 && len < self.snd.mss && start >= self.fast.again_until {
            self.snd.small_until = start + u64::from(len);
        }
        self.snd.fin_sent |= fin;
        self.snd.board.push(start, seq_len, fin, now);
        self.snd.nxt += u64::from(seq_len);
        self.snd.recovery.note_sent(u64::from(seq_len));
        self.snd.last_sent = now;
        self.snd.used.on_sent(self.snd.una, self.snd.nxt);
        self.snd.rtt.on_sent(self.snd.nxt, now);
        if start < self.fast.again_until {
            self.note_repeated_syn_data(now);
            self.note_retransmission(RetransmissionTrigger::Handshake);
        }
        if !self.timers.retransmission_armed() || self.config.tlp && self.agreed.sack && self.snd.recovery.is_open() {
            self.guard_outstanding(now);
        }
        self.data_segment_with(now, start, len, fin, 0, was_idle)
    }

    #[inline(never)] // repetitions are few, so the one below can be a part of what sends new data
    fn data_segment(&mut self, now: Instant, start: u64, len: u32, fin: bool, transmission: u32) -> Segment {
        self.data_segment_with(now, start, len, fin, transmission, false)
    }

    #[inline(always)]
    #[allow(clippy::inline_always, reason = "it has two places, and each new segment passes the one")]
    fn data_segment_with(&mut self, now: Instant, start: u64, len: u32, fin: bool, transmission: u32, was_idle: bool) -> Segment {
        let mut flags = Flags::ACK;
        if fin {
            flags |= Flags::FIN;
        }
        let marked = self.agreed.reports && len > 0;
        let wave = if marked { self.wave(now, start, len, transmission) } else { None };
        if len > 0 {
            let end = start + u64::from(len);
            let last = end == self.snd.buffer.end() && self.snd.hold.pushes();
            if last || end == self.fast.again_until || self.snd.buffer.ends_record(end) {
                flags |= Flags::PSH;
            }
            if let (AckPolicy::Delayed(delay), true) = (self.config.ack_policy, start >= self.fast.again_until) {
                self.rcv.quick_acks.on_data_sent(now, delay);
            }
            self.stats.data_segments_sent += 1;
            self.stats.data_octets_sent += u64::from(len);
            let sent = Sent { now, start, len, transmission, was_idle, wave };
            self.parts.congestion.on_sent(&sent);
            if self.listeners.differentiators {
                self.parts.differentiators.on_sent(&sent);
            }
            if self.snd.rates.is_some() {
                self.note_departure(now, start, len);
            }
        }
        let mut ecn = Ecn::NotCapable;
        if self.agreed.ecn && transmission == 0 && len > 0 && self.snd.peer.octets() > 0 {
            ecn = Ecn::Capable0; // RFC 3168, 6.1.5 and 6.1.6: neither on retransmissions nor on probes of a closed window
            if std::mem::take(&mut self.snd.ecn.cwr_due) {
                flags |= Flags::CWR;
            }
        }
        let mut options = Options { wave, ..self.usual_options(now) };
        if marked {
            options.nonce = self.nonces().then(|| self.nonce(start, transmission));
            self.add_marks(&mut options);
        }
        if let Some(pacer) = self.snd.pacer.as_mut().filter(|_| len > 0) {
            let congestion = &self.parts.congestion;
            let separation = pacer.on_sent(now, congestion.separation(len), congestion.least_burst(), self.snd.rtt.min());
            if pacer.tells {
                options.rare.get_or_insert_default().separation = Some(separation);
            }
        }
        let Answer { flags: answer, ack, window } = self.answer();
        Segment {
            src_port: self.ports.local,
            dst_port: self.ports.remote,
            seq: Seq::from(start),
            ack,
            flags: flags | answer,
            window,
            urgent: 0,
            ecn,
            dscp: self.drop_precedence(start, len),
            options,
            payload: self.snd.buffer.slice(start, len),
        }
    }

    /// Where delivery rates are measured: notes how a segment leaves.
    #[cold]
    fn note_departure(&mut self, now: Instant, start: u64, len: u32) {
        let in_flight = self.snd.pipe();
        if let Some(rates) = &mut self.snd.rates {
            rates.on_sent(now, start, start + u64::from(len), in_flight);
        }
    }

    /// What forms waves, if data segments carry them.
    pub(super) fn wave_formation(&self) -> Option<Formation> {
        if !self.agreed.reports {
            return None;
        }
        self.parts.differentiators.ruling.wants_waves().or_else(|| self.parts.congestion.wants_waves())
    }

    /// Whether new data waits until a whole wave of it can leave. Limited transmit and recovery go on as ever.
    fn holds_wave(&self) -> bool {
        let quiet = self.snd.recovery.is_open() && self.snd.recovery.dup_acks() == 0;
        quiet
            && self.wave_formation().is_some_and(|formation| {
                let waves = self.snd.waves.as_deref().copied().unwrap_or_default();
                waves.holds(formation, self.snd.flight() > 0)
            })
    }

    /// The wave of data that has just been put on the scoreboard.
    #[inline(never)]
    fn wave(&mut self, now: Instant, start: u64, len: u32, transmission: u32) -> Option<Wave> {
        let formation = self.wave_formation()?;
        let waves = self.snd.waves.get_or_insert_default();
        if transmission > 0 {
            return Some(waves.current());
        }
        let own = u64::from(len);
        let room = match formation {
            Formation::Train | Formation::Window | Formation::Hold => self.window.cwnd().min(self.snd.peer.octets()),
            Formation::Burst => (self.window.cwnd() + self.snd.recovery.inflation()).saturating_sub(self.in_network()) + own,
        };
        let mss = u64::from(self.snd.mss);
        let segments = (room / mss).min((self.snd.unsent() + own).div_ceil(mss));
        let leaving = Leaving { now, start, una: self.snd.una, segments };
        Some(self.snd.waves.get_or_insert_default().next(formation, &leaving))
    }

    /// The mark of the data at `start`. It depends on the position alone, not on the transmission: the receiver has to know the mark of
    /// what did not arrive (our reading of Biaz & Vaidya 2005).
    fn drop_precedence(&self, start: u64, len: u32) -> Dscp {
        match self.config.drop_precedence {
            Some(n) if len > 0 => match (start - (self.snd.iss + 1)) / u64::from(self.snd.mss) % u64::from(n.max(1)) {
                0 => Dscp::AF12,
                _ => Dscp::AF11,
            },
            _ => Dscp::DEFAULT,
        }
    }

    /// The options that every segment carries.
    #[inline]
    pub(super) fn usual_options(&self, now: Instant) -> Options {
        Options { timestamps: self.agreed.timestamps.then(|| self.timestamps(now)), ..Options::default() }
    }

    /// What the ruling differentiator wants data segments to carry beside a nonce. Asked where reports are agreed upon.
    #[inline(never)]
    pub(super) fn add_marks(&self, options: &mut Options) {
        options.header_check = self.parts.differentiators.ruling.wants_header_check();
        if self.survivals() {
            let notices = Notices { survival: Some(u16::MAX), ..Notices::default() };
            options.rare = Some(Box::new(RareOptions { notices, ..RareOptions::default() }));
        }
    }

    pub(super) fn timestamps(&self, now: Instant) -> Timestamps {
        Timestamps { value: self.timestamp(now), echo: self.rcv.ts_recent }
    }

    pub(super) fn acknowledgement(&mut self, now: Instant) -> Segment {
        let mut options = self.usual_options(now);
        if let Some(probe) = self.take_probe(now) {
            options.rare.get_or_insert_default().probe = Some(probe);
        }
        if self.listeners.receiver {
            self.add_reports(now, &mut options);
        }
        if self.agreed.sack && (self.rcv.dsack.is_some() || !self.rcv.assembler.islands().is_empty()) {
            self.add_sack_blocks(&mut options);
        }
        let Answer { flags, ack, window } = self.answer();
        Segment {
            src_port: self.ports.local,
            dst_port: self.ports.remote,
            seq: Seq::from(self.acceptable_position()),
            ack,
            flags,
            window,
            urgent: 0,
            ecn: Ecn::NotCapable,
            dscp: Dscp::DEFAULT,
            options,
            payload: Payload::Empty,
        }
    }

    /// Adds what the receiver agent has to report and to ask for.
    #[inline(never)]
    fn add_reports(&mut self, now: Instant, options: &mut Options) {
        let view = self.rcv.view(now, self.agreed, self.snd.rtt.srtt());
        if let Some(report) = self.parts.receiver.report(&view).filter(|_| self.agreed.reports) {
            options.rare.get_or_insert_default().report = Some(report);
            self.stats.reports_sent += 1;
        }
        if view.snack_block.is_some() {
            let taken = options.packed_len() + if self.agreed.sack { TWO_SACK_BLOCKS } else { 0 };
            let snacks = self.parts.receiver.snacks(&view, OPTION_SPACE.saturating_sub(taken));
            if let Some(block) = view.snack_block.filter(|_| !snacks.is_empty()) {
                self.stats.snacks_sent += snacks.len() as u64;
                let holes = snacks.iter().map(|snack| snack.holes(view.next, block).count() as u64);
                self.stats.snack_holes_sent += holes.sum::<u64>();
                options.rare.get_or_insert_default().snacks = snacks;
            }
        }
    }

    #[inline(never)]
    fn add_sack_blocks(&mut self, options: &mut Options) {
        let dsack = self.rcv.dsack.take();
        let room = (OPTION_SPACE - options.encoded_len()).saturating_sub(4) / 8;
        if let Some((left, right)) = dsack.filter(|_| room > 0) {
            options.sack.push(Seq::from(left), Seq::from(right));
        }
        self.rcv.assembler.sack_blocks(&mut options.sack, room);
        if let Some(from) = self.parts.receiver.conceals_from() {
            let next = self.rcv.next;
            options.sack.retain(|_, right| right.near(next) <= from);
        }
    }

    /// What the segment that leaves now says to the peer's data; an acknowledgement that was due is due no more.
    fn answer(&mut self) -> Answer {
        self.open_window();
        self.note_acknowledged();
        let flags = if self.rcv.echo_ce { Flags::ACK | Flags::ECE } else { Flags::ACK };
        let closed = self.listeners.receiver && self.parts.receiver.closes_window();
        let room = if closed { 0 } else { self.rcv.announced - self.rcv.next };
        Answer { flags, ack: Seq::from(self.rcv.next), window: (room >> self.rcv.shift).min(0xffff) as u16 }
    }

    /// An acknowledgement of everything leaves.
    fn note_acknowledged(&mut self) {
        self.rcv.ack_now = self.rcv.copies > 0;
        self.rcv.copies = self.rcv.copies.saturating_sub(1);
        self.rcv.quick_acks.on_ack_sent();
        self.rcv.damage_seen = false;
        self.rcv.unacked = 0;
        self.rcv.last_ack = self.rcv.next;
        self.timers.cancel_delayed_ack();
    }

    /// Moves the right edge of the window, but not by silly amounts (RFC 9293, 3.8.6.2.2).
    fn open_window(&mut self) {
        let largest = 0xffff << self.rcv.shift;
        let end = self.rcv.window_end(self.config.receive_buffer.min(largest));
        let gain = end - self.rcv.announced;
        let worth = u64::from(self.rcv.full_segment).min(self.config.receive_buffer / 2).max(1);
        if gain >= worth || end - self.rcv.next >= self.config.receive_buffer.min(largest) {
            self.rcv.announced = end;
        }
    }

    /// The application has read: tell the peer if that opens a window that was nearly closed.
    pub(super) fn announce_opened_window(&mut self) {
        if self.rcv.ack_now {
            return; // the acknowledgement that is due tells it
        }
        let buffer = self.config.receive_buffer.min(0xffff << self.rcv.shift);
        let gain = self.rcv.window_end(buffer) - self.rcv.announced;
        let worth = (2 * u64::from(self.rcv.full_segment)).min(buffer / 2).max(1);
        // The window of a SYN is small because it is not scaled (RFC 7323, 2.2), not because data was unread: the next segment opens it.
        let of_syn = buffer.min(0xffff);
        let full = if self.rcv.announced == self.rcv.irs + 1 + of_syn { of_syn } else { buffer };
        if gain >= worth && self.rcv.announced - self.rcv.next < full / 2 {
            self.rcv.ack_now = true;
        }
    }

    /// A number that only who knows the key of the nonces can foresee, and that tells nothing of it.
    pub(super) fn chance(&self) -> u64 {
        let mut hasher = SipHasher13::new_with_keys(self.nonce_key, u64::MAX);
        hasher.write_u16(self.ports.local);
        hasher.write_u16(self.ports.remote);
        hasher.finish()
    }

    /// The nonce of a transmission: a keyed hash of where and the how-manieth it is.
    pub(super) fn nonce(&self, start: u64, transmission: u32) -> u32 {
        let mut hasher =
            SipHasher13::new_with_keys(self.nonce_key, u64::from(self.ports.local) << 16 | u64::from(self.ports.remote));
        hasher.write_u64(start);
        hasher.write_u32(transmission);
        hasher.finish() as u32
    }
}
