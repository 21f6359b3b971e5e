//! A window that the peer has closed: what it keeps back, how it is probed, and what leaves when it opens (RFC 9293, 3.8.6.1).

use super::record::Closing;
use super::retransmission::RetransmissionTrigger;
use super::{ClosedWindow, Endpoint};
use crate::segment::Segment;
use crate::time::{Duration, Instant};

impl Endpoint {
    /// Whether the closed window keeps back what is outstanding, too.
    pub(super) fn withholds(&self) -> bool {
        self.config.closed_window == ClosedWindow::Persist && self.snd.peer.octets() == 0
    }

    /// Whether a duplicate acknowledgement may answer a probe of the window.
    pub(super) fn is_answer_to_window_probe(&self) -> bool {
        self.snd.persist.outstanding || self.withholds()
    }

    /// What the peer takes next, as far as it is known: what lies behind in a closed window would be dropped.
    pub(super) fn acceptable_position(&self) -> u64 {
        if self.is_answer_to_window_probe() {
            self.snd.una
        } else {
            self.snd.nxt
        }
    }

    /// The peer announces that it takes nothing.
    #[inline(never)]
    pub(super) fn on_window_closed(&mut self, now: Instant) {
        self.snd.expiries = 0; // a peer that is alive but has no room is not given up (RFC 9293, 3.8.6.1)
        if self.withholds() && self.snd.board.len() > 0 {
            self.snd.rtt.reset_backoff();
            self.snd.rack.tail_probe = None;
            self.snd.due.tail_probe = false;
            self.persist(now);
        }
    }

    /// The peer announces that it takes something; the window `was_closed`. The announcement is `current` if it acknowledges all that is known
    /// to have arrived.
    #[inline(never)]
    pub(super) fn on_window_open(&mut self, now: Instant, was_closed: bool, current: bool) {
        let probed = self.snd.persist.probes > 0;
        if self.timers.persist_armed() {
            self.timers.cancel_persist();
            self.snd.persist.probes = 0;
            self.snd.due.window_probe = false;
        }
        if !was_closed {
            return;
        }
        match self.config.closed_window {
            ClosedWindow::Persist => {
                self.snd.last_sent = now; // the peer kept the data back, not the application: the window does not begin anew
                self.send_outstanding_again(now, probed);
            }
            ClosedWindow::Retransmit if current && self.snd.persist.outstanding && self.snd.board.len() > 0 => {
                // The octet that probed the window was refused: send it again now that there is room.
                self.snd.board.mark_lost(0);
                self.snd.persist.outstanding = false;
                self.guard_outstanding(now);
            }
            ClosedWindow::Retransmit => {}
        }
    }

    /// Everything outstanding is to leave again, but for what may still be on its way: so a peer that closes and opens its window all the
    /// time gets no more than a window a round trip. Why it is missing nobody asks, and the congestion window stays.
    fn send_outstanding_again(&mut self, now: Instant, probed: bool) {
        self.snd.persist.outstanding = false;
        if self.snd.board.len() == 0 {
            return;
        }
        let trip = self.snd.rtt.srtt().unwrap_or(Duration::ZERO);
        for index in 0..self.snd.board.len() {
            let sent = self.snd.board.get(index);
            let old = now.since(sent.last_at) >= trip || index == 0 && probed;
            if old && sent.may_be_missing() {
                self.snd.board.mark_lost(index);
            }
        }
        // What had arrived after all is answered by duplicates.
        self.snd.recovery.ignore_duplicates(self.snd.nxt);
        self.guard_outstanding(now);
    }

    /// The timer that probes the window takes the place of the one that retransmits.
    pub(super) fn persist(&mut self, now: Instant) {
        self.timers.cancel_retransmission();
        if !self.timers.persist_armed() {
            self.arm_persist(now);
        }
    }

    fn arm_persist(&mut self, now: Instant) {
        self.timers.arm_persist(self.snd.rtt.clock().after(now, self.persist_interval()));
    }

    /// RFC 9293, 3.8.6.1: the first probe after a retransmission timeout, the next ones ever later.
    fn persist_interval(&self) -> Duration {
        let doubled = self.snd.rtt.base_rto() * (1 << self.snd.persist.probes.min(16));
        doubled.min(self.config.max_rto)
    }

    pub(super) fn on_persist_timeout(&mut self, now: Instant) {
        if self.snd.board.len() == 0 && self.snd.unsent() == 0 {
            return;
        }
        let persist = &mut self.snd.persist;
        let silence = if persist.unanswered > 0 { now.since(self.snd.quiet_since) } else { Duration::ZERO };
        if self.config.max_retransmissions.is_some_and(|max| persist.unanswered > max)
            || self.config.user_timeout.is_some_and(|limit| silence >= limit)
        {
            return self.finish(Closing::TimedOut);
        }
        persist.unanswered += 1;
        persist.probes += 1;
        self.snd.due.window_probe = true;
        self.arm_persist(now);
    }

    /// The peer's window keeps data back and nothing is outstanding that would bring news: see to it that a probe goes out.
    pub(super) fn mind_zero_window(&mut self, now: Instant) {
        if self.snd.board.len() == 0 && !self.timers.persist_armed() {
            self.arm_persist(now);
        }
    }

    /// As much as the window takes, at least one octet (RFC 9293, 3.8.6.1); of what is outstanding the first segment.
    #[inline(never)]
    pub(super) fn send_window_probe(&mut self, now: Instant) -> Segment {
        let by_peer = self.snd.room_at_peer();
        let bare = by_peer == 0 && self.config.bare_window_probes;
        if self.snd.board.len() > 0 {
            if bare {
                return self.bare_probe(now);
            }
            let probe = self.retransmit(now, 0);
            self.note_retransmission(RetransmissionTrigger::WindowProbe);
            return probe;
        }
        self.snd.hold.expire(self.snd.buffer.end());
        if bare {
            return self.bare_probe(now);
        }
        let len =
            by_peer.min(self.snd.unsent_of_record()).min(self.fast.repeats_from(self.snd.nxt)).clamp(1, u64::from(self.snd.mss));
        let segment = self.send_new(now, len as u32);
        if by_peer == 0 {
            // The persist timer repeats it for as long as the window stays closed.
            self.snd.persist.outstanding = true;
            self.timers.cancel_retransmission();
        }
        segment
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{data, secs, Pair};
    use super::super::{Command, Config, Event, Input, State};
    use super::*;
    use crate::segment::{Flags, Payload, SackBlocks};
    use crate::Integrity;
    use bytes::Bytes;

    const OCTETS: usize = 600_000;

    /// A transfer of which a window is outstanding, 2 s after its beginning.
    fn midway(scheme: &str, closed_window: ClosedWindow) -> Pair {
        let config = Config { closed_window, initial_ssthresh: Some(60_000), auto_read: false, ..Config::modern() };
        let mut pair = Pair::new(scheme, &config, &[]);
        pair.tell(Command::Send(Payload::Bytes(Bytes::from(data(OCTETS)))));
        pair.run(Instant::ZERO + Duration::from_millis(620));
        assert!(pair.ends[0].outstanding().segments > 20);
        pair
    }

    /// What the server acknowledges last reaches the client once more, with the window closed or as it was.
    fn announce(pair: &mut Pair, open: bool) {
        let (_, _, last) = pair.trace.iter().rev().find(|(_, who, _)| *who == 1).expect("it has acknowledged");
        let mut segment = last.clone();
        segment.options.sack = SackBlocks::default();
        segment.window = if open { segment.window } else { 0 };
        pair.ends[0].handle(pair.now, Input::Segment(&segment, Integrity::Intact));
    }

    /// The link goes down for 10 s, of which the client is told at the beginning. Returns window, threshold and how much had been sent then.
    fn away(pair: &mut Pair) -> ((u64, u64), u64) {
        pair.cut();
        announce(pair, false);
        let before = window(pair);
        let sent = pair.data_sent;
        pair.run(pair.now + Duration::from_secs(10));
        pair.down = false;
        (before, sent)
    }

    fn window(pair: &Pair) -> (u64, u64) {
        (pair.ends[0].window().cwnd(), pair.ends[0].window().ssthresh())
    }

    #[test]
    fn a_window_that_closes_over_outstanding_data_stops_the_timer_and_keeps_the_congestion_window() {
        for scheme in ["newreno", "reno", "sack"] {
            let mut pair = midway(scheme, ClosedWindow::Persist);
            let (before, sent) = away(&mut pair);
            // The first after a timeout, the others ever later: 0.2, 0.6, 1.4, 3.0 and 6.2 s.
            assert_eq!(pair.data_sent - sent, 5, "{scheme}");
            assert_eq!(window(&pair), before, "{scheme}");

            let (sent, segments) = (pair.data_sent, u64::from(pair.ends[0].outstanding().segments));
            announce(&mut pair, true);
            pair.run(pair.now + Duration::from_millis(40));
            let window = before.0 / u64::from(pair.ends[0].path().mss);
            assert!(segments <= window && pair.data_sent - sent == window, "{scheme}: {} of {window}", pair.data_sent - sent);
            pair.run(secs(30));
            let stats = *pair.ends[0].stats();
            assert_eq!((stats.timeouts, stats.fast_retransmits, stats.losses), (0, 0, 0), "{scheme}");
            assert!(pair.received() == data(OCTETS), "{scheme}");
        }
    }

    #[test]
    fn where_the_timer_runs_on_the_congestion_window_falls() {
        let mut pair = midway("newreno", ClosedWindow::Retransmit);
        away(&mut pair);
        assert!(pair.ends[0].stats().timeouts > 3 && pair.ends[0].window().cwnd() < 2000);
        announce(&mut pair, true);
        pair.run(secs(60));
        assert!(pair.received() == data(OCTETS));
    }

    #[test]
    fn what_is_selectively_acknowledged_is_not_sent_again() {
        let mut pair = midway("sack", ClosedWindow::Persist);
        pair.lost = [pair.data_sent + 1].into();
        let sack = loop {
            pair.run(pair.now + Duration::from_millis(5));
            if let Some((_, _, sack)) = pair.trace.last().filter(|(_, who, s)| *who == 1 && !s.options.sack.is_empty()) {
                break sack;
            }
        };
        let mut sack = sack.clone();
        sack.window = 0;
        pair.ends[0].handle(pair.now, Input::Segment(&sack, Integrity::Intact));
        pair.cut();
        pair.run(pair.now + Duration::from_secs(2));
        pair.down = false;
        let outstanding = pair.ends[0].outstanding();
        assert!(outstanding.sacked > 3);
        let resent = pair.ends[0].stats().retransmissions;
        announce(&mut pair, true);
        pair.run(secs(30));
        assert!(pair.ends[0].stats().retransmissions - resent <= u64::from(outstanding.segments - outstanding.sacked));
        assert!(pair.received() == data(OCTETS));
    }

    #[test]
    fn a_peer_that_opens_and_closes_gets_no_more_than_a_window_a_round_trip() {
        let mut pair = midway("newreno", ClosedWindow::Persist);
        pair.cut();
        let (sent, window) = (pair.data_sent, pair.ends[0].window().cwnd() / u64::from(pair.ends[0].path().mss));
        for _ in 0..500 {
            announce(&mut pair, false);
            announce(&mut pair, true);
            pair.run(pair.now + Duration::from_millis(1));
        }
        // Half a second: five round trips of 100 ms.
        assert!((1..=6 * window).contains(&(pair.data_sent - sent)), "{} of {window}", pair.data_sent - sent);
    }

    #[test]
    fn answers_to_probes_are_not_duplicates_that_tell_of_a_loss() {
        let mut pair = midway("newreno", ClosedWindow::Persist);
        pair.cut();
        for _ in 0..10 {
            announce(&mut pair, false);
            pair.run(pair.now + Duration::from_secs(1));
        }
        assert_eq!((pair.ends[0].stats().fast_retransmits, pair.ends[0].stats().duplicate_acks), (0, 0));
    }

    #[test]
    fn probes_that_nobody_answers_end_the_connection() {
        for closed_window in [ClosedWindow::Persist, ClosedWindow::Retransmit] {
            let config = Config { receive_buffer: 10_000, max_retransmissions: Some(4), closed_window, ..Config::modern() };
            let mut pair = Pair::new("newreno", &config, &[]);
            pair.tell(Command::Send(Payload::Bytes(Bytes::from(data(30_000)))));
            pair.run(secs(300));
            assert_eq!(pair.ends[0].state(), State::Established, "the peer answers");
            pair.cut();
            pair.run(secs(900));
            assert!(std::iter::from_fn(|| pair.ends[0].poll_event()).any(|event| event == Event::Closed(Closing::TimedOut)));
        }
    }

    /// The server reads nothing until a segment beyond its closed window acknowledges what it has sent.
    #[test]
    fn a_segment_without_room_acknowledges_all_the_same() {
        let config = Config { receive_buffer: 10_000, auto_read: false, ..Config::modern() };
        let mut pair = Pair::new("newreno", &config, &[]);
        pair.tell(Command::Send(Payload::Bytes(Bytes::from(data(30_000)))));
        pair.run(secs(2));
        pair.ends[1].handle(pair.now, Input::Command(Command::Produce(1000)));
        let answer = pair.ends[1].poll_transmit(pair.now).expect("data");
        assert_eq!((answer.window, answer.payload.len()), (0, 1000));
        let (_, _, last) = pair.trace.iter().rev().find(|(_, who, _)| *who == 0).expect("data");
        let mut probe = last.clone();
        (probe.seq, probe.ack) = (answer.ack, answer.seq + 1000);
        let delivered = pair.ends[1].stats().octets_delivered;
        pair.ends[1].handle(pair.now, Input::Segment(&probe, Integrity::Intact));
        assert_eq!(pair.ends[1].outstanding().segments, 0);
        assert_eq!(
            (pair.ends[1].stats().octets_delivered, pair.ends[1].octets_unread()),
            (delivered, 10_000),
            "the data is refused"
        );
        let refusal = pair.ends[1].poll_transmit(pair.now).expect("an acknowledgement");
        assert_eq!((refusal.ack, refusal.window), (answer.ack, 0));
    }

    #[test]
    fn a_probe_of_a_closed_window_is_not_marked_and_does_not_tell_of_a_reduction() {
        let config = Config { receive_buffer: 10_000, auto_read: false, ecn: true, ..Config::modern() };
        let mut pair = Pair::new("newreno", &config, &[]);
        pair.tell(Command::Send(Payload::Bytes(Bytes::from(data(30_000)))));
        pair.run(Instant::ZERO + Duration::from_millis(1500));
        pair.ends[0].snd.ecn.cwr_due = true;
        let before = pair.trace.len();
        pair.run(secs(20));
        let probes: Vec<_> = pair.trace[before..].iter().filter(|(_, who, s)| *who == 0 && !s.payload.is_empty()).collect();
        assert!(!probes.is_empty() && pair.ends[0].snd.ecn.cwr_due);
        assert!(probes.iter().all(|(_, _, s)| s.ecn == crate::segment::Ecn::NotCapable && !s.flags.contains(Flags::CWR)));
    }

    #[test]
    fn a_reset_into_a_closed_window_has_the_number_that_the_peer_expects() {
        let mut pair = midway("newreno", ClosedWindow::Persist);
        let una = pair.ends[0].path().una;
        announce(&mut pair, false);
        pair.tell(Command::Abort);
        let reset = pair.ends[0].poll_transmit(pair.now).expect("a reset");
        assert_eq!(reset.seq.near(una), pair.ends[0].path().una);
    }
}
