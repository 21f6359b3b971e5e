//! The probe cycle: after a loss data waits while two exchanges of probes measure the path (Tsaoussidis & Badr 2000).
//!
//! What set it off, duplicates or the timer, takes its course when the cycle has ended; who wanted the cycle knows the two round trips then.
//! A probe that is not answered within the retransmission timeout begins the cycle anew, so that it lasts as long as nothing passes.
//!
//! A peer may know the reports that it permits, and no probes. Until one has been answered, some give their place to the first segment, ever fewer as
//! a retransmission timer backs off. If that arrives and probes still find no answer, they end: what set them off takes its course.

use super::record::Closing;
use super::retransmission::RetransmissionTrigger;
use super::scoreboard::Sent;
use super::Endpoint;
use crate::path::Probed;
use crate::segment::{Flags, Probe, ProbeStep, Segment};
use crate::time::{Duration, Instant};

/// So many probes in a row are not lost by chance where the path works.
const UNANSWERED: u8 = 3;

/// What an endpoint keeps of probes.
#[derive(Debug, Default)]
pub(super) struct Probing {
    cycle: Option<Box<Cycle>>,
    /// The answer to a probe of the peer, to be sent.
    answer: Option<Probe>,
    /// Number of the latest cycle.
    number: u8,
    /// The cycle has ended: what set it off takes its course.
    concluded: bool,
    /// Whether the peer answers probes, if that is known.
    answers: Option<bool>,
    /// What speaks against it: probes that found no answer though data passed, and cycles that data ended.
    ignored: u8,
}

/// What sets off a probe cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Duplicate acknowledgements, or what SACK and RACK make of them.
    Duplicates,
    /// The retransmission timer.
    Timeout,
}

/// A probe cycle under way.
#[derive(Debug)]
struct Cycle {
    sign: Sign,
    began: Instant,
    /// The probe that is out, or to be sent.
    step: ProbeStep,
    /// When it left; `None` if it has not yet.
    sent_at: Option<Instant>,
    /// The first round trip.
    first: Duration,
    /// The timer of the next probe.
    interval: Duration,
    growth: f64,
    /// The best and the latest round trip before the cycle.
    before: (Option<Duration>, Option<Duration>),
    /// How long after the beginning the first segment leaves in the place of a probe, if none was ever answered.
    repeats_after: Duration,
    /// The first segment is to leave in the place of the next probe.
    repeats: bool,
    /// The segment that has left so, as it was before.
    repeated: Option<Sent>,
    /// It has arrived.
    passed: bool,
}

impl Probing {
    /// Whether data waits for the end of a cycle.
    pub const fn suspends(&self) -> bool {
        self.cycle.is_some()
    }

    /// Whether there is neither a cycle nor an answer.
    pub const fn is_idle(&self) -> bool {
        self.cycle.is_none() && self.answer.is_none()
    }

    /// Whether a probe or an answer has to leave.
    pub fn is_due(&self) -> bool {
        self.answer.is_some() || self.cycle.as_ref().is_some_and(|cycle| cycle.sent_at.is_none())
    }

    /// The peer has answered no probe though it might have; returns whether it is taken for one that answers none.
    fn is_ignored(&mut self) -> bool {
        self.ignored = self.ignored.saturating_add(1);
        if self.answers.is_none() && self.ignored >= UNANSWERED {
            self.answers = Some(false);
        }
        self.answers == Some(false)
    }

    /// Whether that is the first segment in the place of a probe.
    fn is_repetition_due(&self) -> bool {
        self.answer.is_none() && self.cycle.as_ref().is_some_and(|cycle| cycle.repeats)
    }
}

impl Endpoint {
    /// Whether what has been noticed has to wait for the end of a probe cycle, which it may begin.
    pub(super) fn defers(&mut self, now: Instant, sign: Sign) -> bool {
        if self.snd.probing.suspends() {
            return true;
        }
        let probing = &self.snd.probing;
        if !self.agreed.reports || probing.concluded || probing.answers == Some(false) || !self.may_transmit_data() {
            return false;
        }
        let growth = match sign {
            Sign::Duplicates if self.snd.recovery.is_open() => self.parts.reaction.probes(),
            Sign::Duplicates => None,
            Sign::Timeout => self.parts.timeout.probes(),
        };
        let Some(growth) = growth else { return false };
        self.timers.cancel_retransmission();
        self.stats.probe_cycles += 1;
        let probing = &mut self.snd.probing;
        probing.number = probing.number.wrapping_add(1);
        probing.cycle = Some(Box::new(Cycle {
            sign,
            began: now,
            step: ProbeStep::First,
            sent_at: None,
            first: Duration::ZERO,
            interval: self.snd.rtt.base_rto(),
            growth,
            before: (self.snd.rtt.min(), self.snd.rtt.latest()),
            repeats_after: self.snd.rtt.base_rto() * u64::from(UNANSWERED),
            repeats: false,
            repeated: None,
            passed: false,
        }));
        true
    }

    /// The probe that leaves with an acknowledgement: the answer to one of the peer's, or one of ours.
    pub(super) fn take_probe(&mut self, now: Instant) -> Option<Probe> {
        let probing = &mut self.snd.probing;
        if let Some(answer) = probing.answer.take() {
            return Some(answer);
        }
        let cycle = probing.cycle.as_mut().filter(|cycle| cycle.sent_at.is_none())?;
        cycle.sent_at = Some(now);
        self.timers.set_probe(Some(self.snd.rtt.clock().after(now, cycle.interval)));
        Some(Probe { step: cycle.step, cycle: probing.number })
    }

    /// What leaves for a probe cycle: a probe, an answer, or the first segment in the place of a probe.
    #[inline(never)]
    pub(super) fn transmit_probe(&mut self, now: Instant) -> Segment {
        if !self.snd.probing.is_repetition_due() {
            return self.acknowledgement(now);
        }
        if let Some(cycle) = &mut self.snd.probing.cycle {
            (cycle.sent_at, cycle.repeats) = (Some(now), false);
            cycle.repeated = cycle.repeated.or(self.snd.board.first().copied());
            self.timers.set_probe(Some(self.snd.rtt.clock().after(now, cycle.interval)));
        }
        let segment = self.retransmit(now, 0);
        self.note_retransmission(RetransmissionTrigger::Timeout);
        segment
    }

    /// Data has arrived during a cycle. If that is what was sent in the place of a probe, the path works, and probes tell whether the peer answers.
    pub(super) fn probe_after_progress(&mut self) {
        let rto = self.snd.rtt.base_rto();
        let Probing { cycle: Some(cycle), number, .. } = &mut self.snd.probing else { return };
        if cycle.repeated.is_some() && !cycle.passed {
            *number = number.wrapping_add(1);
            (cycle.step, cycle.sent_at, cycle.interval) = (ProbeStep::First, None, rto);
            (cycle.repeats, cycle.passed) = (false, true);
            self.timers.set_probe(None);
        }
    }

    /// A segment that may carry a probe has been processed.
    #[inline(never)]
    pub(super) fn heed_probe(&mut self, now: Instant, segment: &Segment) {
        let Some(probe) = segment.options.rare.as_ref().and_then(|rare| rare.probe) else { return };
        let bare = segment.payload.is_empty() && !segment.flags.intersects(Flags::SYN | Flags::FIN);
        if !self.agreed.reports || !bare {
            return;
        }
        if let Some(step) = probe.step.answer() {
            self.snd.probing.answer = Some(Probe { step, ..probe });
            return;
        }
        let Probing { cycle: Some(cycle), number, answers, .. } = &mut self.snd.probing else { return };
        let Some(sent_at) = cycle.sent_at.filter(|_| probe.cycle == *number && cycle.step.answer() == Some(probe.step)) else {
            return;
        };
        let trip = now.since(sent_at);
        *answers = Some(true);
        self.timers.set_probe(None);
        if cycle.step == ProbeStep::First {
            (cycle.step, cycle.sent_at, cycle.first) = (ProbeStep::Second, None, trip);
        } else {
            self.take_its_course(now, Some(trip));
        }
    }

    /// A probe or its answer was lost: the cycle begins anew.
    pub(super) fn on_probe_timeout(&mut self, now: Instant) {
        let patience = self.patience();
        let unanswered = self.snd.board.first().map_or(Duration::ZERO, |head| now.since(head.first_at));
        let outstanding = self.snd.board.len() > 0 && !self.withholds();
        let Probing { cycle: Some(cycle), number, answers, .. } = &mut self.snd.probing else { return };
        if patience.is_some_and(|patience| now.since(cycle.began) >= patience)
            || self.config.user_timeout.is_some_and(|limit| unanswered >= limit)
        {
            return self.finish(Closing::TimedOut);
        }
        *number = number.wrapping_add(1);
        (cycle.step, cycle.sent_at) = (ProbeStep::First, None);
        cycle.interval = cycle.interval.mul_f64(cycle.growth).min(self.config.max_rto);
        if answers.is_some() {
            return;
        }
        let waited = now.since(cycle.began);
        if cycle.passed {
            if self.snd.probing.is_ignored() {
                self.take_its_course(now, None);
            }
        } else if waited >= cycle.repeats_after && outstanding {
            (cycle.repeats, cycle.repeats_after) = (true, waited * 2);
        }
    }

    /// Everything has arrived after all: nothing is left to ask. What was sent again meanwhile had been lost.
    pub(super) fn end_probe_cycle(&mut self) {
        let Some(cycle) = self.snd.probing.cycle.take() else { return };
        self.timers.set_probe(None);
        let Some(lost) = cycle.repeated else { return };
        self.snd.probing.is_ignored();
        if self.snd.recovery.is_open() && lost.end() > self.snd.ecn.reduced_until {
            self.path.flight = self.window.cwnd();
            self.respond_to_repaired_tail(&lost);
            self.refresh_path(self.path.now);
        }
    }

    /// For how long retransmissions would go on before the connection is given up (RFC 9293, 3.8.3); `None`: for ever.
    fn patience(&self) -> Option<Duration> {
        let expiries = self.config.max_retransmissions?;
        let rto = |nth: u32| (self.snd.rtt.base_rto() * (1 << nth.min(16))).min(self.config.max_rto);
        Some((0..=expiries.min(100)).fold(Duration::ZERO, |sum, nth| sum + rto(nth)))
    }

    /// The cycle has ended, with this second round trip if the peer answers: what set it off takes its course.
    fn take_its_course(&mut self, now: Instant, second: Option<Duration>) {
        let Some(cycle) = self.snd.probing.cycle.take() else { return };
        let (best, last) = cycle.before;
        let probed = second.map(|second| Probed { trips: [cycle.first, second], best, last, lasted: now.since(cycle.began) });
        self.refresh_path(now);
        self.snd.probing.concluded = true;
        match cycle.sign {
            Sign::Duplicates => {
                if let Some(probed) = &probed {
                    self.parts.reaction.on_probed(probed);
                }
                if self.uses_rack() {
                    self.detect_by_rack(now);
                } else {
                    self.detect_by_duplicates(now);
                }
                self.reduce_in_proportion(0, false);
            }
            Sign::Timeout => {
                if let Some(probed) = &probed {
                    self.parts.timeout.on_probed(probed);
                }
                self.on_retransmission_timeout(now);
            }
        }
        self.snd.probing.concluded = false;
        if self.snd.board.len() > 0 && !self.timers.retransmission_armed() {
            self.guard_outstanding(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{data, secs, Pair};
    use super::super::{Command, Config, Event, Judgement, State};
    use super::*;
    use crate::segment::Payload;
    use bytes::Bytes;
    use std::collections::BTreeSet;

    const OCTETS: usize = 400_000;

    /// A transfer over 100 ms there and back.
    fn transfer(scheme: &str, lost: &[u64]) -> Pair {
        let config = Config { initial_ssthresh: Some(30_000), sack: false, ..Config::modern() };
        let mut pair = Pair::new(scheme, &config, lost);
        pair.tell(Command::Send(Payload::Bytes(Bytes::from(data(OCTETS)))));
        pair
    }

    /// Probes and answers as they left: when, by whom, which.
    fn probes(pair: &Pair) -> Vec<(u64, usize, ProbeStep)> {
        let of = |segment: &Segment| segment.options.rare.as_ref().and_then(|rare| rare.probe);
        let ms = |at: Instant| at.as_nanos() / 1_000_000;
        pair.trace.iter().filter_map(|(at, who, segment)| of(segment).map(|probe| (ms(*at), *who, probe.step))).collect()
    }

    fn judgements(pair: &mut Pair) -> Vec<Judgement> {
        let losses = std::iter::from_fn(|| pair.ends[0].poll_event());
        losses.filter_map(|event| if let Event::Loss(record) = event { Some(record.judgement) } else { None }).collect()
    }

    #[test]
    fn a_loss_on_an_empty_path_costs_two_round_trips_and_no_window() {
        let mut pair = transfer("tcp-probing", &[60]);
        pair.run(secs(60));
        let told = probes(&pair);
        let start = told[0].0;
        use ProbeStep::{First, FirstAnswer, Second, SecondAnswer};
        let cycle = [(0, 0, First), (50, 1, FirstAnswer), (100, 0, Second), (150, 1, SecondAnswer)];
        assert_eq!(told, cycle.map(|(ms, who, step)| (start + ms, who, step)));
        let data_at = |segment: &Segment| !segment.payload.is_empty();
        let ms = |at: &Instant| at.as_nanos() / 1_000_000;
        assert!(!pair
            .trace
            .iter()
            .any(|(at, who, s)| *who == 0 && data_at(s) && (start..start + 200).contains(&ms(at)) && ms(at) > start));
        assert_eq!(judgements(&mut pair), [Judgement::Kept]);
        let stats = *pair.ends[0].stats();
        assert_eq!((stats.probe_cycles, stats.fast_retransmits, stats.reductions, stats.timeouts), (1, 1, 0, 0));
        assert_eq!((stats.retransmissions, pair.received() == data(OCTETS)), (1, true));
    }

    /// With SACK proportional rate reduction meters what leaves after the cycle.
    #[test]
    fn selective_acknowledgements_are_probed_alike() {
        let config = Config { initial_ssthresh: Some(30_000), ..Config::modern() };
        let mut pair = Pair::new("tcp-probing", &config, &[60, 62, 65]);
        pair.tell(Command::Send(Payload::Bytes(Bytes::from(data(OCTETS)))));
        pair.run(secs(60));
        let stats = *pair.ends[0].stats();
        assert_eq!((stats.probe_cycles, stats.fast_retransmits, stats.reductions, stats.timeouts), (1, 1, 0, 0));
        assert_eq!((stats.retransmissions, pair.received() == data(OCTETS)), (3, true));
    }

    #[test]
    fn nothing_but_probes_is_sent_while_nothing_passes_and_then_the_window_is_there() {
        // The first loss shows that the peer answers.
        let mut pair = transfer("tcp-probing", &[15]);
        pair.run(Instant::ZERO + Duration::from_millis(1120));
        let before = pair.ends[0].window().cwnd();
        pair.cut();
        let answered = probes(&pair).len();
        pair.run(pair.now + Duration::from_secs(10));
        assert_eq!((pair.ends[0].window().cwnd(), pair.ends[0].stats().retransmissions), (before, 1));
        let asked = probes(&pair).len() - answered;
        assert!((20..60).contains(&asked), "{asked} probes, one an RTO of 200 ms or a little more");
        pair.down = false;
        pair.run(secs(60));
        let stats = *pair.ends[0].stats();
        assert_eq!((answered, stats.timeouts, stats.reductions, stats.probe_cycles), (4, 1, 0, 2));
        assert!(pair.ends[0].window().cwnd() >= before && pair.received() == data(OCTETS));
    }

    /// A peer that permits reports and knows no probes: before it is answered, what goes to it carries none.
    #[test]
    fn a_peer_that_answers_no_probe_does_not_hold_data_up() {
        // One loss, several in windows of their own, and all that is outstanding.
        for (lost, cycles, reduced) in [(vec![60], 1, 1), (vec![60, 100, 140, 180, 220], 3, 5), ((40..=62).collect(), 1, 1)] {
            let mut pair = transfer("tcp-probing", &lost);
            pair.deaf_to_probes = true;
            pair.run(secs(60));
            let stats = *pair.ends[0].stats();
            assert!(pair.received() == data(OCTETS), "{stats:?}");
            // Once it is clear, nothing is asked any more.
            assert_eq!((stats.probe_cycles, stats.reductions + stats.timeouts), (cycles, reduced), "{stats:?}");
            let asked = probes(&pair).len();
            assert!((3..20).contains(&asked), "{asked}");
        }
    }

    /// Until then the first segment leaves for a probe, ever more rarely: as many segments as there would be probes, and no timeout.
    #[test]
    fn a_dead_path_is_asked_by_probes_and_ever_fewer_repetitions() {
        let mut pair = transfer("tcp-probing", &[]);
        pair.run(Instant::ZERO + Duration::from_millis(720));
        pair.cut();
        pair.run(pair.now + Duration::from_secs(10));
        let begun =
            pair.trace.iter().skip_while(|(_, _, segment)| segment.options.rare.as_ref().is_none_or(|rare| rare.probe.is_none()));
        let sent: Vec<bool> = begun.map(|(_, _, segment)| !segment.payload.is_empty()).collect();
        let places: Vec<usize> = (0..sent.len()).filter(|nth| sent[*nth]).collect();
        assert_eq!(places[..3], [3, 6, 12], "after three timeouts, and twice as many each time");
        assert_eq!(pair.ends[0].stats().timeouts, 0);
        pair.down = false;
        pair.run(secs(60));
        let stats = *pair.ends[0].stats();
        assert_eq!((stats.timeouts, stats.reductions, stats.probe_cycles, pair.received() == data(OCTETS)), (1, 0, 1, true));
    }

    #[test]
    fn a_longer_round_trip_than_before_is_congestion() {
        let mut pair = transfer("tcp-probing", &[60]);
        while probes(&pair).is_empty() {
            pair.run(pair.now + Duration::from_millis(10));
        }
        pair.delay(Duration::from_millis(55));
        pair.run(secs(60));
        assert_eq!(judgements(&mut pair), [Judgement::Reduced]);
        assert!(pair.received() == data(OCTETS));
    }

    #[test]
    fn a_cycle_ends_when_everything_has_arrived() {
        let mut pair = transfer("tcp-probing", &[]);
        pair.run(Instant::ZERO + Duration::from_millis(720));
        pair.tell(Command::Close);
        pair.ends[1].handle(pair.now, super::super::Input::Command(Command::Close));
        // The acknowledgements are late, not lost: the timer expires, and they come.
        pair.delay(Duration::from_millis(600));
        pair.run(secs(200));
        assert!(pair.ends[0].stats().probe_cycles > 0);
        assert!(pair.received() == data(OCTETS));
        assert_eq!([pair.ends[0].state(), pair.ends[1].state()], [State::Closed; 2]);
    }

    /// Losses of all kinds, probes lost with them.
    #[test]
    fn everything_arrives_over_losses() {
        for every in [3, 7, 20] {
            let lost: BTreeSet<u64> = (1..2000).filter(|n| n % every == 0).collect();
            let mut pair = transfer("tcp-probing", &[]);
            pair.lost = lost;
            pair.run(secs(3000));
            assert!(pair.received() == data(OCTETS) && pair.ends[0].stats().probe_cycles > 3, "every {every}");
        }
    }

    #[test]
    fn a_peer_that_permits_no_reports_is_not_probed() {
        let mut pair = transfer("tcp-probing", &[60, 90]);
        let mut config = Config::modern();
        let parts = crate::scheme::Selection::scheme("newreno").build(&mut config).unwrap();
        pair.ends[1] = Endpoint::new(config, parts, pair.ends[1].ports());
        pair.ends[1].handle(Instant::ZERO, super::super::Input::Command(Command::Listen));
        pair.run(secs(60));
        let stats = *pair.ends[0].stats();
        assert_eq!((probes(&pair), stats.probe_cycles, stats.reductions), (vec![], 0, 2));
        assert!(pair.received() == data(OCTETS));
    }

    #[test]
    fn a_path_that_stays_dead_ends_the_connection_when_retransmissions_would() {
        let config = Config { max_retransmissions: Some(5), ..Config::modern() };
        let ended = |scheme| {
            let mut pair = Pair::new(scheme, &config, &[]);
            pair.tell(Command::Produce(u64::MAX));
            pair.run(secs(2));
            pair.cut();
            while pair.ends[0].state() != State::Closed {
                assert!(pair.now < secs(1000), "{scheme}");
                pair.run(pair.now + Duration::from_millis(100));
            }
            pair.now.as_nanos() / 1_000_000_000
        };
        assert!(ended("tcp-probing").abs_diff(ended("newreno")) <= 2);
    }

    /// Answers of no cycle, of an old one, out of step, and requests as many as come.
    #[test]
    fn probes_that_nobody_expects_do_nothing() {
        let mut pair = transfer("tcp-probing", &[]);
        pair.run(Instant::ZERO + Duration::from_millis(520));
        let (_, _, ack) = pair.trace.iter().rev().find(|(_, who, _)| *who == 1).unwrap();
        let mut forged = ack.clone();
        let before = pair.ends[0].window().clone();
        for step in [ProbeStep::FirstAnswer, ProbeStep::SecondAnswer] {
            for cycle in 0..=255 {
                forged.options.rare.get_or_insert_default().probe = Some(Probe { step, cycle });
                pair.ends[0].handle(pair.now, super::super::Input::Segment(&forged, crate::Integrity::Intact));
            }
        }
        assert_eq!(format!("{:?}", pair.ends[0].window()), format!("{before:?}"));
        assert_eq!(pair.ends[0].stats().duplicate_acks, 0);
        forged.options.rare.get_or_insert_default().probe = Some(Probe { step: ProbeStep::First, cycle: 3 });
        for _ in 0..1000 {
            pair.ends[0].handle(pair.now, super::super::Input::Segment(&forged, crate::Integrity::Intact));
        }
        let now = pair.now;
        let sent: Vec<_> = std::iter::from_fn(|| pair.ends[0].poll_transmit(now)).collect();
        let answers = sent.iter().filter(|s| s.options.rare.as_ref().is_some_and(|rare| rare.probe.is_some()));
        assert_eq!(answers.count(), 1, "the last one");
    }
}
