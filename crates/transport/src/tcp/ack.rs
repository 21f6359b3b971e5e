//! Acknowledgements: what they deliver, teach and set in motion.

use super::rack::TailProbe;
use super::record::{Event, State};
use super::recovery::{Recovery, Timeout};
use super::scoreboard::{Delivered, Order};
use super::{Endpoint, FastRecovery, ReportResponse};
use crate::path::{Ack, Reported, ReportedSegment, Trigger};
use crate::segment::{CorruptionReport, Flags, PositionBasis, RareOptions, Report, ReportedPosition, Segment};
use crate::seq::Seq;
use crate::time::{Duration, Instant};
use crate::verdict::Cause;
use crate::wire::report::COMPACT_ECHO_MASK;

/// What one acknowledgement said, besides its number.
#[derive(Debug, Default)]
pub(super) struct News {
    pub acked: u64,
    pub delivered: Delivered,
    duplicate: bool,
    /// The range of a D-SACK block, as positions in the stream (RFC 2883).
    pub dsack: Option<(u64, u64)>,
    /// For how long no segment of the peer had arrived.
    pub silence: Duration,
    /// It carries a report that had not arrived before.
    new_report: bool,
    /// It asks for what is missing.
    asks: bool,
    flight_before: u64,
    /// Duplicate acknowledgements in a row before this one.
    duplicates_before: u32,
    rtt: Option<Duration>,
    delay: Option<Duration>,
}

impl Endpoint {
    #[inline]
    pub(super) fn process_ack(&mut self, now: Instant, segment: &Segment, ack: u64, start: u64) {
        let silence = now.since(self.snd.quiet_since);
        self.snd.quiet_since = now;
        self.snd.persist.unanswered = 0;
        let bare_options = segment.options.sack.is_empty() && segment.options.rare.is_none();
        if self.snd.flight() == 0 && bare_options && !segment.flags.contains(Flags::ECE) {
            // With nothing outstanding, as at an end that only receives, it tells of the window alone.
            let window_changed = self.update_window(now, segment, ack, start);
            if self.snd.rack.tail_probe.is_some() && !window_changed {
                self.close_needless_probe(segment);
            }
        } else {
            self.take_news(now, segment, ack, start, silence);
        }
    }

    /// An acknowledgement that may tell of more than the window, after so long a `silence` of the peer.
    #[inline(never)]
    fn take_news(&mut self, now: Instant, segment: &Segment, ack: u64, start: u64, silence: Duration) {
        self.note_app_limited();
        let una = self.snd.una;
        let delivered = Delivered {
            order: self.uses_rack().then(Order::default),
            watch: self.snd.recovery.timeout().map_or(0, Timeout::recover),
            ..Delivered::default()
        };
        let mut news = News {
            flight_before: self.snd.flight(),
            duplicates_before: self.snd.recovery.dup_acks(),
            silence,
            delivered,
            ..News::default()
        };
        if ack > una {
            news.acked = ack - una;
            self.snd.una = ack;
            self.snd.board.acknowledge(ack, &mut news.delivered);
            self.snd.expiries = 0;
            self.snd.persist.outstanding = false;
            self.snd.buffer.release(ack);
            self.snd.hold.on_progress();
            if self.snd.crowded && self.has_ample_send_space() {
                self.snd.crowded = false;
                self.events.push_back(Event::Writable);
            }
        }
        if self.agreed.sack && !segment.options.sack.is_empty() {
            let heeded = !(self.config.forget_sacks && self.snd.recovery.timeout().is_some());
            if heeded {
                self.take_sack_blocks(segment, ack, &mut news);
            }
        }
        let window_changed = self.update_window(now, segment, ack, start);
        news.new_report = self.take_report_count(segment);
        news.asks = self.asks(segment);
        if news.acked > 0 {
            self.snd.echoes.on_advance(ack, self.snd.nxt, news.delivered.retransmitted);
        } else {
            news.duplicate = ack == una && self.is_duplicate(segment, &news, window_changed);
            // A copy of an acknowledgement that carries nothing more than compact reports, which have no count.
            let compact = |rare: &RareOptions| matches!(rare.report, Some(Report::Compact(_) | Report::List(_)));
            let reports = news.new_report || segment.options.rare.as_deref().is_some_and(compact);
            let silent = !news.duplicate && news.dsack.is_none() && !reports && !news.asks;
            if silent && news.delivered.octets == 0 {
                if self.snd.rack.tail_probe.is_some() && !window_changed {
                    self.close_needless_probe(segment);
                }
                if segment.flags.contains(Flags::ECE) && self.agreed.ecn {
                    self.refresh_path(now);
                    self.on_ecn_echo();
                }
                return;
            }
        }
        self.learn(now, segment, &mut news);
        if self.listeners.acks {
            self.tell_observers(segment, &news);
        }
        match segment.options.rare.as_ref().and_then(|rare| rare.report.as_ref()) {
            Some(Report::List(list)) => {
                for &compact in list.as_slice() {
                    self.on_report(now, &Report::Compact(compact), ack, news.new_report);
                }
            }
            Some(report) => self.on_report(now, report, ack, news.new_report),
            None => {}
        }
        if news.asks {
            self.on_snacks(now, segment, ack);
        }
        if segment.flags.contains(Flags::ECE) && self.agreed.ecn {
            // What was marked was outstanding; where the application sends little, nothing is any more.
            self.path.flight = news.flight_before;
            self.on_ecn_echo();
            self.refresh_path(now);
        }
        // The acknowledgement that ends fast recovery does not grow the window that it leaves behind (RFC 6582, 3.2).
        let repairing = self.snd.recovery.fast().is_some();
        self.detect_and_recover(now, segment, &news);
        self.grow(now, segment, &news, repairing);
        if news.acked > 0 {
            self.rearm(now);
        }
    }

    /// Whether an acknowledgement of nothing new is a duplicate (RFC 5681, 2), or with SACK one that only adds information.
    #[inline(never)]
    fn is_duplicate(&mut self, segment: &Segment, news: &News, window_changed: bool) -> bool {
        if self.agreed.sack {
            return news.delivered.octets > 0;
        }
        let bare = segment.payload.is_empty() && !segment.flags.intersects(Flags::SYN | Flags::FIN);
        let probe = segment.options.rare.as_ref().is_some_and(|rare| rare.probe.is_some());
        let ordinary = bare && !window_changed && !news.new_report && !news.asks && !probe;
        if news.flight_before == 0 || !ordinary || self.is_answer_to_window_probe() {
            return false;
        }
        let echo = self.snd.echoes.take_echo();
        !(echo && self.snd.recovery.is_open())
    }

    #[inline(never)]
    fn take_sack_blocks(&mut self, segment: &Segment, ack: u64, news: &mut News) {
        let blocks = segment.options.sack.as_slice();
        for (nth, &(left, right)) in blocks.iter().enumerate() {
            let (left, right) = (left.near(self.snd.una), right.near(self.snd.una));
            if left >= right || right > self.snd.nxt {
                continue;
            }
            // RFC 2883, 4: the first block reports a duplicate if it lies below the acknowledgement or inside the second block.
            let inside_second =
                nth == 0 && blocks.get(1).is_some_and(|(l, r)| l.near(self.snd.una) <= left && right <= r.near(self.snd.una));
            if nth == 0 && (right <= ack || inside_second) {
                news.dsack = Some((left, right));
            } else {
                self.snd.board.sack(left, right, &mut news.delivered);
            }
        }
    }

    /// Takes over the window that the peer announces; returns whether it changed.
    #[inline]
    fn update_window(&mut self, now: Instant, segment: &Segment, ack: u64, start: u64) -> bool {
        let Some(change) = self.snd.peer.update(segment.window, start, ack) else { return false };
        if change.from == change.to && change.to > 0 && !self.timers.persist_armed() {
            return false; // as nearly always
        }
        if change.to == 0 {
            self.on_window_closed(now);
        } else {
            self.on_window_open(now, change.from == 0, ack == self.snd.una);
        }
        change.from != change.to
    }

    fn take_report_count(&mut self, segment: &Segment) -> bool {
        if !self.agreed.reports {
            return false;
        }
        let new = match segment.options.rare.as_ref().and_then(|rare| rare.report.as_ref()) {
            Some(Report::Corruption(report)) => self.snd.reports.last.replace(report.count) != Some(report.count),
            Some(Report::HeaderIntact(report)) => self.snd.reports.of_headers.is_new(report.count),
            Some(Report::Bandwidth(_)) => true,
            _ => false,
        };
        self.stats.reports_received += u64::from(new);
        new
    }

    /// Round-trip time, RACK, D-SACK and the path.
    fn learn(&mut self, now: Instant, segment: &Segment, news: &mut News) {
        let unambiguous = self.agreed.sack || news.delivered.retransmitted == 0;
        news.delay = news.delivered.once.filter(|_| unambiguous).map(|(sent, _)| now.since(sent));
        news.rtt = self.rtt_sample(now, segment, news);
        if let Some(rtt) = news.rtt {
            // RFC 7323, appendix G: a sample for every second segment of the window
            let expected = (news.flight_before / (2 * u64::from(self.snd.mss))).max(1);
            self.snd.rtt.sample(rtt, expected);
        }
        if let Some(order) = news.delivered.order {
            self.tell_rack(now, segment, news.delivered.once, &order);
        }
        if let Some((left, right)) = news.dsack {
            self.on_dsack(left, right);
        }
        self.note_sizes(now, news.delivered.largest);
        self.path.delivered += news.delivered.octets;
        if let Some(rates) = &mut self.snd.rates {
            let newest = news.delivered.once.max(news.delivered.again);
            rates.on_ack(now, news.delivered.octets, self.snd.una, newest, news.delay);
        }
        self.stats.segments_delivered += news.delivered.segments;
        self.refresh_path(now);
    }

    /// Whether losses are looked for by time (RFC 8985).
    pub(super) fn uses_rack(&self) -> bool {
        self.config.rack && self.agreed.sack
    }

    /// What RACK may take for delivered.
    #[inline(never)]
    fn tell_rack(&mut self, now: Instant, segment: &Segment, newest_once: Option<(Instant, u64)>, order: &Order) {
        let believed = |sent: Instant, cumulatively: bool| {
            // RFC 8985, 6.2 step 2. Of what lies above a hole the echo says nothing (RFC 7323, 4.3).
            let echo = segment.options.timestamps.filter(|_| self.agreed.timestamps && cumulatively).map(|t| t.echo);
            let older = echo.is_some_and(|echo| (echo.wrapping_sub(self.timestamp(sent)) as i32) < 0);
            let too_soon = self.snd.rtt.min().is_some_and(|min| now.since(sent) < min);
            // Which transmission arrived is just what the assessment of a timeout is to find out.
            let assessed = self.snd.recovery.awaiting().is_some();
            !(older || too_soon || assessed)
        };
        let again = order.again.filter(|&(sent, _, cumulatively)| believed(sent, cumulatively));
        let last_again = order.last_again.filter(|last| believed(last.left, last.cumulatively));
        let last = order.last_once.max(last_again).filter(|_| self.config.rack_rtt_by_sequence);
        let rack = &mut self.snd.rack;
        if let Some(lowest) = order.lowest_once {
            rack.note_order(lowest);
        }
        if let Some(newest) = newest_once {
            rack.on_delivered(now, newest);
        }
        if let Some((sent, end, _)) = again {
            rack.on_delivered(now, (sent, end));
        }
        if let Some(last) = last {
            rack.take_rtt(now.since(last.left));
        }
    }

    /// A sample of the round-trip time, if Karn's rule allows one.
    fn rtt_sample(&mut self, now: Instant, segment: &Segment, news: &News) -> Option<Duration> {
        let echo = segment.options.timestamps.filter(|_| self.agreed.timestamps && news.acked > 0).map(|t| t.echo);
        if !self.snd.rtt.is_fine() {
            return match echo {
                Some(echo) => self.since_timestamp(now, echo),
                None if self.agreed.timestamps => None,
                None => self.snd.rtt.take_timed(self.snd.una, now),
            };
        }
        match news.delay {
            Some(delay) => Some(delay),
            _ if news.delivered.retransmitted > 0 => {
                echo.and_then(|echo| self.since_timestamp(now, echo)).map(|rtt| rtt.max(self.config.timestamp_tick))
            }
            _ => None,
        }
    }

    pub(super) fn since_timestamp(&self, now: Instant, echo: u32) -> Option<Duration> {
        let ticks = self.timestamp(now).wrapping_sub(echo);
        // An echo from the future or of long ago is not ours.
        (ticks < 1 << 24).then(|| self.config.timestamp_tick * u64::from(ticks))
    }

    #[inline(never)]
    fn on_dsack(&mut self, left: u64, right: u64) {
        self.snd.rack.on_dsack(self.snd.una, self.snd.nxt);
        if self.snd.rack.tail_probe.as_ref().is_some_and(|probe| probe.lost.is_some() && right == probe.end) {
            self.snd.rack.tail_probe = None; // RFC 8985, 7.4.2: the probe was unnecessary, the original had arrived
        }
        if let Some(undo) = &mut self.snd.undo {
            if left >= undo.una && right <= undo.recover {
                undo.unproven = undo.unproven.saturating_sub(1);
            }
        }
    }

    #[inline(never)]
    fn tell_observers(&mut self, segment: &Segment, news: &News) {
        let ack = make_ack(&self.path, segment, news, &self.snd.recovery);
        self.parts.differentiators.on_ack(&ack);
        self.parts.reaction.on_ack(&ack);
        self.parts.timeout.on_ack(&ack);
    }

    /// The outstanding segment that a report names.
    fn reported_segment(&self, report: &Report) -> Option<usize> {
        let (index, start) = match report {
            Report::Corruption(corruption) => {
                let position = corruption.position?.seq.near(self.snd.una);
                (self.snd.board.find(position)?, Some(position))
            }
            Report::HeaderIntact(report) => {
                let position = report.seq.near(self.snd.una);
                (self.snd.board.find(position)?, Some(position))
            }
            Report::Compact(_)
            | Report::List(_)
            | Report::Bandwidth(_)
            | Report::Rate(_)
            | Report::Survival(_)
            | Report::Pace(_) => return None,
            Report::Cause(report) => (self.snd.board.find(report.seq.near(self.snd.una).max(self.snd.una))?, None),
        };
        let sent = self.snd.board.get(index);
        (start.is_none_or(|start| start == sent.start) && !sent.is_sacked()).then_some(index)
    }

    /// A compact report as the full one that it stands for; its echo is completed from the transmission that it fits.
    fn in_full(&self, report: &Report, ack: u64) -> Report {
        let Report::Compact(compact) = report else { return *report };
        let start = ack + u64::from(compact.offset);
        let low = u32::from(compact.echo);
        let echo = self.nonces().then(|| {
            let sent = self.snd.board.find(start).map(|index| self.snd.board.get(index));
            let transmissions = sent.map_or(0, |sent| u32::from(sent.transmissions));
            (0..transmissions)
                .rev()
                .map(|nth| self.nonce(start, nth))
                .find(|nonce| nonce & COMPACT_ECHO_MASK == low)
                .unwrap_or(low)
        });
        Report::Corruption(CorruptionReport {
            count: self.snd.reports.last.unwrap_or(0),
            congestion_experienced: compact.congestion_experienced,
            rate_limited: false,
            position: Some(ReportedPosition { seq: Seq::from(start), len: 0, basis: PositionBasis::SeqConfirmed }),
            echo,
        })
    }

    #[inline(never)]
    fn on_report(&mut self, now: Instant, report: &Report, ack: u64, new: bool) {
        if !self.agreed.reports {
            return;
        }
        let report = &self.in_full(report, ack);
        let index = self.reported_segment(report);
        let echo = match report {
            Report::Corruption(corruption) => corruption.echo,
            _ => None,
        };
        let segment = index.map(|index| {
            let sent = self.snd.board.get(index);
            let last = u32::from(sent.transmissions) - 1;
            let nonces = self.nonces();
            // The echo may belong to an earlier transmission that crossed the report on its way.
            let echoed = (0..=last).rev().find(|&nth| nonces && echo == Some(self.nonce(sent.start, nth)));
            let transmission = echoed.unwrap_or(last);
            ReportedSegment {
                start: sent.start,
                len: sent.data_len(),
                transmission,
                sent_at: sent.last_at,
                nonce: nonces.then(|| self.nonce(sent.start, transmission)),
            }
        });
        let reported = Reported { path: &self.path, report, news: new, segment };
        self.parts.differentiators.on_report(&reported);
        if let Some(octets) = self.parts.reaction.on_report(&reported) {
            self.take_window(octets);
        }
        if let (true, ReportResponse::Immediate, Some(index)) = (new, self.config.report_response, index) {
            let latest = segment.is_some_and(|s| s.transmission + 1 == u32::from(self.snd.board.get(index).transmissions));
            if latest && self.snd.board.get(index).in_network() && self.snd.recovery.timeout().is_none() {
                let judged = self.judge(&[index], Trigger::Report);
                if judged[0].1.verdict.cause == Cause::Corruption {
                    self.declare_lost(now, judged);
                }
            }
        }
    }

    /// Loss detection, and progress of whatever recovery is under way.
    fn detect_and_recover(&mut self, now: Instant, segment: &Segment, news: &News) {
        if news.duplicate {
            self.snd.recovery.note_duplicate();
            self.stats.duplicate_acks += 1;
        } else if news.acked > 0 {
            self.snd.recovery.note_progress();
        }
        if self.snd.undo.is_some() && self.config.undo {
            self.consider_undo(now, segment, news);
        }
        if self.snd.rack.tail_probe.is_some() {
            self.account_tail_probe();
        }
        let losses_before = self.stats.losses;
        if !self.snd.recovery.is_open() {
            self.advance_recovery(now, segment, news);
        }
        if self.uses_rack() {
            self.detect_by_rack(now);
        } else if self.snd.recovery.dup_acks() > 0 || self.snd.board.sacked() > 0 {
            self.detect_by_duplicates(now);
        }
        if !self.snd.recovery.is_open() {
            self.reduce_in_proportion(news.delivered.octets, news.acked > 0 && self.stats.losses == losses_before);
        }
    }

    /// Progress of the recovery that is under way.
    #[inline(never)]
    fn advance_recovery(&mut self, now: Instant, segment: &Segment, news: &News) {
        let mss = u64::from(self.snd.mss);
        let Some(fast) = self.snd.recovery.fast_mut() else { return self.on_ack_after_timeout(now, segment, news) };
        // One segment has arrived; a partial acknowledgement tells of another, whose repair it is.
        fast.count_in(if news.acked > 0 { 2 * mss } else { mss });
        let (recover, exit_cwnd) = (fast.recover(), fast.exit_cwnd());
        let reno = !self.agreed.sack && self.config.recovery == FastRecovery::Reno;
        if news.acked > 0 && (self.snd.una >= recover || reno) {
            self.leave_fast_recovery(now, exit_cwnd);
        } else if !self.agreed.sack {
            self.recover_without_sack(now, news);
        }
    }

    /// The window of proportional rate reduction, if that is under way, after `delivered` octets; see [`Prr::on_ack`](super::prr::Prr).
    pub(super) fn reduce_in_proportion(&mut self, delivered: u64, safe: bool) {
        let (mss, pipe) = (u64::from(self.snd.mss), self.snd.pipe());
        if let Some(cwnd) = self.snd.recovery.fast_mut().and_then(|fast| fast.metered(delivered, pipe, mss, safe)) {
            self.window.set_cwnd(cwnd);
        }
    }

    /// NewReno's fast recovery (RFC 6582, 3.2).
    fn recover_without_sack(&mut self, now: Instant, news: &News) {
        let mss = u64::from(self.snd.mss);
        let Some(fast) = self.snd.recovery.fast_mut() else { return };
        if news.duplicate {
            // What has left the network makes room for a repetition as long as there is one to make, then for new data.
            if !self.snd.board.mark_next_lost(fast.repeat_until()) {
                fast.inflate(mss);
            }
            return;
        }
        if news.acked == 0 {
            return;
        }
        if self.config.deflate_at_once {
            fast.deflate_at_once();
        } else if let Some(rest) = fast.deflate(news.acked, mss).filter(|_| self.snd.rates.is_none()) {
            self.window.set_cwnd(self.window.cwnd().saturating_sub(rest));
        }
        if !self.head_is_being_repaired() {
            let judged = self.judge(&[0], Trigger::PartialAck);
            self.declare_lost(now, judged);
            self.snd.due.head = true;
        }
    }

    /// Undoes a reduction that D-SACKs or timestamps prove wrong.
    #[inline(never)]
    fn consider_undo(&mut self, now: Instant, segment: &Segment, news: &News) {
        let Some(undo) = &self.snd.undo else { return };
        let by_dsack = news.dsack.is_some() && undo.is_proven();
        // RFC 3522, 3.2: an acknowledgement that advances and echoes a clock older than the retransmission's.
        let by_clock = news.acked > 0
            && self.snd.recovery.fast().is_some()
            && undo.is_told_by_clock()
            && match (self.snd.recovery.first_repetition(), segment.options.timestamps) {
                (Some((sent, end)), Some(echoed)) => self.snd.una >= end && (echoed.echo.wrapping_sub(sent) as i32) < 0,
                _ => false,
            };
        if by_dsack || by_clock {
            self.undo_reduction(now);
        }
    }

    /// Whether a tail loss probe repaired a loss (RFC 8985, 7.4.2): then that loss deserves its response. What acknowledges the repetition
    /// itself does not tell: the original may be late. A duplicate would, and comes before what was sent later is acknowledged.
    #[inline(never)]
    fn account_tail_probe(&mut self) {
        let una = self.snd.una;
        let over = |probe: &mut Box<TailProbe>| una > probe.end || una == probe.end && probe.lost.is_none();
        let Some(probe) = self.snd.rack.tail_probe.take_if(over) else { return };
        if let (Some(lost), true) = (probe.lost, self.snd.recovery.is_open()) {
            // What was in flight with the tail is not known any more, and what is now may be little: half of the window, as in Linux.
            self.path.flight = self.window.cwnd();
            self.respond_to_repaired_tail(&lost);
            self.refresh_path(self.path.now);
        }
    }

    /// A bare duplicate after everything probed was acknowledged: of a peer without D-SACK it tells that the tail had not been lost.
    #[inline(never)]
    fn close_needless_probe(&mut self, segment: &Segment) {
        let una = self.snd.una;
        // One that was overtaken acknowledges less.
        let duplicate = segment.ack == Seq::from(una) && segment.seq_len() == 0 && segment.options.sack.is_empty();
        self.snd.rack.tail_probe.take_if(|probe| duplicate && una == probe.end);
    }

    fn grow(&mut self, now: Instant, segment: &Segment, news: &News, repairing: bool) {
        if news.acked == 0 && news.delivered.octets == 0 && !news.duplicate || self.snd.probing.suspends() {
            return;
        }
        let climbing = self.snd.ramp.is_some();
        if climbing && !repairing {
            self.climb_by_clock(news.acked);
        }
        self.refresh_path(now);
        let sample = self.snd.rates.as_mut().and_then(|rates| rates.take_sample());
        let mut ack = make_ack(&self.path, segment, news, &self.snd.recovery);
        ack.sample = sample.as_ref();
        // Who sets the window in recovery, too, has to see it end.
        ack.in_recovery |= repairing && self.snd.rates.is_none() || climbing;
        if self.config.slow_start_limit.is_none() {
            ack.acked = news.acked.min(self.newly_arrived(news)); // Linux grows by what it learns to have been delivered
        }
        // RFC 3168, 6.1.2: the usual growth is for acknowledgements without ECE. After a timeout only new data can end that by CWR: the window
        // comes back to the threshold all the same.
        let marked = ack.ece && self.agreed.ecn && self.snd.rates.is_none() && !self.window.in_slow_start();
        ack.window_limited = !marked && (!self.config.window_validation || self.snd.used.is_ample(self.window.cwnd()));
        self.parts.congestion.on_ack(&mut self.window, &ack);
        if ack.in_recovery {
            if let Some(octets) = self.parts.congestion.recovery_window() {
                self.redirect_recovery(octets);
            }
        }
    }

    /// Octets that this acknowledgement reports as arrived for the first time. Without SACK each duplicate before it has told of a segment.
    fn newly_arrived(&self, news: &News) -> u64 {
        if self.agreed.sack {
            return news.delivered.octets;
        }
        let mss = u64::from(self.snd.mss);
        news.acked.saturating_sub(u64::from(news.duplicates_before) * mss).max(mss.min(news.acked))
    }

    /// RFC 6298, 5.2 and 5.3.
    fn rearm(&mut self, now: Instant) {
        if self.snd.board.len() == 0 {
            self.timers.cancel_retransmission();
            self.end_probe_cycle();
            return;
        }
        if self.snd.probing.suspends() {
            self.probe_after_progress();
        }
        if let Some(fast) = self.snd.recovery.fast_mut() {
            // RFC 6582, 4: the impatient variant restarts the timer for the first partial acknowledgement only.
            let again = fast.restarts_timer();
            if again && !self.agreed.sack && self.config.impatient {
                return;
            }
        }
        self.guard_outstanding(now);
    }

    /// Where delivery rates are measured: notes whether it is the application that keeps the sender from sending.
    #[inline]
    pub(super) fn note_app_limited(&mut self) {
        if self.snd.rates.is_some() {
            self.consider_app_limited();
        }
    }

    #[cold]
    fn consider_app_limited(&mut self) {
        let (unsent, in_flight) = (self.snd.unsent(), self.snd.pipe());
        let Some(rates) = &mut self.snd.rates else { return };
        if unsent < u64::from(self.snd.mss) && in_flight < self.window.cwnd() && !self.snd.board.needs_repair() {
            rates.on_app_limited(in_flight);
        }
    }

    /// The clock of the timestamps option.
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        // One tick above zero, so that no echo of ours is ever zero.
        let ticks = (now.as_nanos() / self.config.timestamp_tick.as_nanos().max(1)) as u32;
        ticks.wrapping_add(1).max(1)
    }

    /// Whether the state lets data leave.
    pub(super) fn may_transmit_data(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck)
            || self.is_half_open()
    }
}

pub(super) fn make_ack<'a>(path: &'a crate::path::Path, segment: &'a Segment, news: &News, recovery: &Recovery) -> Ack<'a> {
    Ack {
        path,
        acked: news.acked,
        delivered: news.delivered.octets,
        rtt: news.rtt,
        delay: news.delay,
        newest_sent_at: news.delivered.once.map(|(sent, _)| sent),
        duplicate: news.duplicate,
        ece: segment.flags.contains(Flags::ECE),
        in_recovery: recovery.fast().is_some(),
        window_limited: true,
        sample: None,
        options: &segment.options,
    }
}
