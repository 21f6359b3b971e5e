//! Opening and closing.

use super::pacer::Pacer;
use super::pmtu::PathMtu;
use super::record::{Closing, Event, State};
use super::recovery::Recovery;
use super::sides::first_position;
use super::{Config, Endpoint, Parts};
use crate::congestion::Window;
use crate::segment::{Flags, Options, RareOptions, ScpsCapabilities, Segment, Separation, Wave};
use crate::seq::Seq;
use crate::time::Instant;

impl Endpoint {
    pub(super) fn connect(&mut self, now: Instant) {
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.active = true;
            self.send_syn(now);
        }
    }

    pub(super) fn listen(&mut self) {
        if self.state == State::Closed {
            self.state = State::Listen;
        }
    }

    pub(super) fn send_syn(&mut self, now: Instant) {
        self.syn_due = true;
        self.snd.nxt = self.snd.nxt.max(self.snd.iss + 1);
        self.timers.arm_retransmission(self.snd.rtt.expiry(now));
    }

    pub(super) fn close(&mut self) {
        self.snd.closing = true;
        match self.state {
            State::Listen | State::SynSent => self.finish(Closing::Normal),
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            // SYN-RECEIVED: the FIN follows once the connection is established (RFC 9293, 3.10.4).
            _ => {}
        }
    }

    pub(super) fn abort(&mut self, now: Instant) {
        let synchronised = !matches!(self.state, State::Closed | State::Listen | State::SynSent | State::TimeWait);
        if synchronised {
            self.control = Some(Box::new(Segment {
                seq: Seq::from(self.acceptable_position()),
                ack: Seq::from(self.rcv.next),
                flags: Flags::RST | Flags::ACK,
                options: self.usual_options(now), // RFC 7323, 5.2
                ..self.blank()
            }));
        }
        // In TIME-WAIT both sides have closed already; only the waiting is cut short.
        self.finish(if self.state == State::TimeWait { Closing::Normal } else { Closing::Aborted });
    }

    /// Whether this endpoint is in TIME-WAIT and `syn` opens the next connection between the same ports: then it may go at once (RFC 9293,
    /// 3.10.7.4; with timestamps RFC 6191).
    pub fn gives_way_to(&self, syn: &Segment) -> bool {
        let kind = syn.flags.0 & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN).0;
        if self.state != State::TimeWait || kind != Flags::SYN.0 {
            return false;
        }
        let beyond = syn.seq.near(self.rcv.next) > self.rcv.next;
        match syn.options.timestamps.filter(|_| self.agreed.timestamps) {
            None => beyond,
            Some(timestamps) => match timestamps.value.wrapping_sub(self.rcv.ts_recent) as i32 {
                0 => beyond,
                later => later > 0,
            },
        }
    }

    /// A segment with our ports and nothing else.
    pub(super) fn blank(&self) -> Segment {
        Segment { src_port: self.ports.local, dst_port: self.ports.remote, ..Segment::default() }
    }

    /// The reset that answers an unacceptable segment (RFC 9293, 3.10.7.1).
    pub(super) fn reset_in_answer_to(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let blank = self.blank();
        let reset = if segment.flags.contains(Flags::ACK) {
            Segment { seq: segment.ack, flags: Flags::RST, ..blank }
        } else {
            Segment { ack: segment.seq + segment.seq_len(), flags: Flags::RST | Flags::ACK, ..blank }
        };
        self.control = Some(Box::new(reset));
    }

    /// The options of our SYN or SYN-ACK.
    pub(super) fn syn_options(&self) -> Options {
        let answering = self.state == State::SynReceived;
        let offer = |wanted: bool, agreed: bool| if answering { agreed } else { wanted };
        let reports = offer(self.wants_reports(), self.agreed.reports);
        // Never offered: what is simulated stays as small as it was.
        let words_permitted = answering && self.agreed.words;
        let scaling = self.config.window_scaling && (!answering || self.rcv.shift_agreed);
        // RFC 7413, 4.1.3.1: a SYN that is sent again goes without, in case something on the path objects.
        let requested = self.fast.request.as_ref().filter(|_| self.snd.syn_expiries == 0).and_then(|request| request.option);
        let fast_open = if answering { self.fast.reply.as_deref().copied() } else { requested };
        let snacks = offer(self.parts.receiver.wants_snacks(), self.agreed.snack_block.is_some());
        let scps = snacks.then_some(ScpsCapabilities { flags: ScpsCapabilities::SNACK, connection: 0 });
        let rare = RareOptions { reports_permitted: reports, words_permitted, scps, fast_open, ..RareOptions::default() };
        Options {
            mss: Some(self.config.mss),
            window_scale: scaling.then_some(self.own_shift()),
            sack_permitted: offer(self.config.sack, self.agreed.sack),
            timestamps: offer(self.config.timestamps, self.agreed.timestamps).then(|| self.timestamps(self.path.now)),
            rare: (rare != RareOptions::default()).then(|| Box::new(rare)),
            ..Options::default()
        }
    }

    fn wants_reports(&self) -> bool {
        let Parts { receiver, differentiators, congestion, reaction, timeout, .. } = &self.parts;
        let probes = reaction.probes().is_some() || timeout.probes().is_some();
        let marks = congestion.wants_waves().is_some() || congestion.wants_separations();
        probes || marks || receiver.wants_reports() || differentiators.ruling.wants_reports()
    }

    fn own_shift(&self) -> u8 {
        (0..14).find(|shift| self.config.receive_buffer >> shift <= 0xffff).unwrap_or(14)
    }

    /// LISTEN (RFC 9293, 3.10.7.2).
    #[inline(never)]
    pub(super) fn on_segment_in_listen(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            return self.reset_in_answer_to(segment);
        }
        if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::FIN) {
            self.take_syn(now, segment);
            self.state = State::SynReceived;
            if self.fast.accept {
                self.accept_early(now, segment);
            }
            self.send_syn(now);
        }
    }

    /// SYN-SENT (RFC 9293, 3.10.7.3).
    #[inline(never)]
    pub(super) fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let acks = segment.flags.contains(Flags::ACK);
        let ack = segment.ack.near(self.snd.una);
        if acks && (!self.acknowledges_syn(ack) || !self.echoes_syn(now, segment)) {
            return self.reset_in_answer_to(segment);
        }
        if segment.flags.contains(Flags::RST) {
            if acks {
                self.finish(Closing::Refused);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.take_syn(now, segment);
        if acks {
            self.rcv.ack_now = true;
            self.rcv.quick_acks.on_syn_ack();
            self.establish(now, segment);
            self.settle_syn_data(segment, ack);
            if !segment.payload.is_empty() || segment.flags.contains(Flags::FIN) {
                let start = self.rcv.next;
                self.process_data(now, segment, start);
            }
        } else {
            self.state = State::SynReceived;
            self.send_syn(now);
        }
    }

    /// Whether the timestamp that an answer to our SYN echoes can be ours: from the first SYN on until now.
    fn echoes_syn(&self, now: Instant, segment: &Segment) -> bool {
        let echo = segment.options.timestamps.filter(|_| self.config.timestamps).map_or(0, |timestamps| timestamps.echo);
        let Some(since) = self.timers.syn_sent_at.map(|at| self.timestamp(at)) else { return true };
        echo == 0 || echo.wrapping_sub(since) <= self.timestamp(now).wrapping_sub(since)
    }

    /// Takes over what the peer's SYN says.
    fn take_syn(&mut self, now: Instant, segment: &Segment) {
        let options = &segment.options;
        self.rcv.irs = first_position(segment.seq.0);
        self.rcv.next = self.rcv.irs + 1;
        self.rcv.announced = self.rcv.next + self.config.receive_buffer.min(0xffff);
        self.rcv.last_ack = self.rcv.next;
        self.rcv.assembler.start_at(self.rcv.next);

        self.agreed.timestamps = self.config.timestamps && options.timestamps.is_some();
        self.agreed.sack = self.config.sack && options.sack_permitted;
        let peer_reports = options.rare.as_ref().is_some_and(|rare| rare.reports_permitted);
        self.agreed.reports = peer_reports && self.wants_reports();
        self.path.reports = self.agreed.reports;
        let peer_words = options.rare.as_ref().is_some_and(|rare| rare.words_permitted);
        self.agreed.words = self.agreed.reports && peer_words;
        let tells = self.agreed.reports && self.parts.congestion.wants_separations();
        let models = self.parts.congestion.is_model_based();
        let (burst, unpaced) = (self.config.pacing_burst, self.config.unpaced_segments);
        self.snd.pacer = (tells || models).then(|| Box::new(if tells { Pacer::telling() } else { Pacer::new(burst, unpaced) }));
        self.snd.rates = models.then(Box::default);
        self.rcv.shift_agreed = self.config.window_scaling && options.window_scale.is_some();
        if self.rcv.shift_agreed {
            self.snd.peer.scale_by(options.window_scale.unwrap_or(0));
            self.rcv.shift = self.own_shift();
        }
        // RFC 3168, 6.1.1: a SYN asks with ECE and CWR, a SYN-ACK agrees with ECE alone.
        let ecn_bits = segment.flags.0 & (Flags::ECE | Flags::CWR).0;
        let asked = ecn_bits == (Flags::ECE | Flags::CWR).0 && !segment.flags.contains(Flags::ACK);
        let granted = ecn_bits == Flags::ECE.0 && segment.flags.contains(Flags::ACK);
        self.agreed.ecn = self.config.ecn && (asked || granted);
        if let (true, Some(timestamps)) = (self.agreed.timestamps, options.timestamps) {
            if let Some(arrivals) = &mut self.rcv.arrivals {
                arrivals.expect_tick(self.config.timestamp_tick);
                arrivals.on_timestamp(now, timestamps.value);
            }
            self.rcv.ts_recent = timestamps.value;
            self.rcv.ts_recent_at = now;
        }
        let peer_mss = u32::from(options.mss.unwrap_or(if self.config.ip_header == 40 { 1220 } else { 536 }))
            .max(u32::from(Config::MIN_MSS));
        let smss = u32::from(self.config.mss).min(peer_mss);
        self.snd.smss = smss;
        let peer_scps = options.rare.as_ref().and_then(|rare| rare.scps);
        let peer_snacks = peer_scps.is_some_and(|scps| scps.flags & ScpsCapabilities::SNACK != 0);
        let block = smss.saturating_sub(if self.agreed.timestamps { 12 } else { 0 }).max(1);
        self.agreed.snack_block = (peer_snacks && self.parts.receiver.wants_snacks()).then_some(block);
        let mut options = self.usual_options(now);
        if self.agreed.reports {
            options.wave = self.wave_formation().map(|_| Wave::default());
            options.nonce = self.nonces().then_some(0);
            self.add_marks(&mut options);
            if self.snd.pacer.as_ref().is_some_and(|pacer| pacer.tells) {
                options.rare.get_or_insert_default().separation = Some(Separation::default());
            }
        }
        // A configuration that nobody has checked may leave less room than the options take.
        self.snd.mss = smss.saturating_sub(options.encoded_len() as u32).max(1);
        self.snd.path_mtu = PathMtu::new(self.snd.mss, u32::from(self.config.ip_header) + 20 + smss.saturating_sub(self.snd.mss));
        self.snd.peer.begin(segment.window);
        self.snd.peer.heed_from(self.rcv.irs, self.snd.iss);
    }

    /// Whether our data segments carry nonces.
    pub(super) fn nonces(&self) -> bool {
        self.agreed.reports && self.parts.differentiators.ruling.wants_nonce()
    }

    /// Whether our data segments carry a field for the probability to survive the path.
    pub(super) fn survivals(&self) -> bool {
        self.agreed.reports && self.parts.differentiators.ruling.wants_survival()
    }

    /// Our SYN has been acknowledged and the peer's has come.
    #[inline(never)]
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment) {
        self.state = State::Established;
        self.syn_due = false;
        self.snd.una = self.snd.iss + 1;
        self.snd.peer.heed_from(self.rcv.next, self.snd.una);
        self.snd.recovery = Recovery::new(self.snd.iss);
        let retried = self.snd.syn_expiries > 0;
        self.sample_handshake(now, segment, retried);
        self.timers.cancel_retransmission();
        self.touch_keep_alive(now);
        if self.fast.accepted {
            // The window was opened with the SYN, and data may be outstanding.
            if self.snd.board.len() > 0 {
                self.guard_outstanding(now);
            }
        } else {
            // RFC 5681, 3.1: after the loss of a SYN the initial window is one segment.
            let whole = self.snd.syn_expiries <= self.config.forgiven_syn_losses;
            self.begin_window(now, if whole { self.config.initial_window } else { 1 });
            self.events.push_back(Event::Connected);
        }
        if self.snd.closing {
            self.state = State::FinWait1;
        }
    }

    /// The first window for data, of so many segments.
    pub(super) fn begin_window(&mut self, now: Instant, initial: u32) {
        let mss = self.snd.mss;
        self.window = Window::new(mss, u64::from(initial) * u64::from(mss), self.config.initial_ssthresh.unwrap_or(u64::MAX));
        self.window.set_slow_start_limit(self.config.slow_start_limit);
        self.window.set_whole_thresholds(self.config.whole_thresholds);
        if let Some(cap) = self.config.max_window {
            self.window.set_cap(cap);
        }
        self.snd.last_sent = now;
        self.snd.quiet_since = now;
        self.path.random = self.chance();
        self.refresh_path(now);
        self.parts.congestion.on_established(&mut self.window, &self.path);
    }

    fn sample_handshake(&mut self, now: Instant, segment: &Segment, retried: bool) {
        // Which of the SYNs was answered the timestamp tells.
        let echo = segment.options.timestamps.filter(|_| self.agreed.timestamps).map(|timestamps| timestamps.echo);
        let echoed = echo.filter(|echo| *echo != 0).and_then(|echo| self.since_timestamp(now, echo));
        let rtt = &mut self.snd.rtt;
        rtt.reset_backoff();
        if let Some(sent) = self.timers.syn_sent_at.filter(|_| !retried) {
            let sample = rtt.measure(sent, now);
            rtt.sample(sample, 1);
        } else if retried {
            match echoed {
                Some(sample) => rtt.sample(sample.max(self.config.timestamp_tick), 1),
                None => rtt.after_syn_loss(), // RFC 6298, 5.7
            }
        }
    }
}
