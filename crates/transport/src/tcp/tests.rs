//! Two endpoints joined by a delay and a list of lost transmissions.

use super::*;
use crate::path::Trigger;
use crate::scheme::{Selection, Value};
use crate::segment::{synthetic_octet, Flags, Payload, Segment};
use crate::time::{Duration, Instant};
use crate::timeout::{AfterTimeout, Assessment, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::Integrity;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

pub(super) struct Pair {
    pub ends: [Endpoint; 2],
    /// Segments under way by arrival time and order.
    under_way: BTreeMap<(Instant, u64), (usize, Segment)>,
    order: u64,
    pub now: Instant,
    delay: Duration,
    /// Data transmissions of the client to lose, by order of sending.
    pub lost: BTreeSet<u64>,
    pub data_sent: u64,
    pub trace: Vec<(Instant, usize, Segment)>,
    /// The largest packet that the client's router passes on, in octets, and whether it says so.
    pub router: (usize, bool),
    /// The MSS that a middlebox puts into every offer of one.
    offers: Option<u16>,
    /// What the server sends before this time is lost.
    mute_until: Instant,
    /// Nothing passes, from [`cut`](Self::cut) on.
    pub down: bool,
    /// The server does not know the option that carries probes.
    pub deaf_to_probes: bool,
}

impl Pair {
    pub fn new(scheme: &str, config: &Config, lost: &[u64]) -> Self {
        let end = |ports| {
            let mut config = config.clone();
            let parts = Selection::scheme(scheme).build(&mut config).unwrap();
            Endpoint::new(config, parts, ports)
        };
        let mut pair = Self {
            ends: [end(Ports { local: 1, remote: 2 }), end(Ports { local: 2, remote: 1 })],
            under_way: BTreeMap::new(),
            order: 0,
            now: Instant::ZERO,
            delay: Duration::from_millis(50),
            lost: lost.iter().copied().collect(),
            data_sent: 0,
            offers: None,
            mute_until: Instant::ZERO,
            down: false,
            deaf_to_probes: false,
            trace: Vec::new(),
            router: (usize::MAX, false),
        };
        pair.ends[1].handle(Instant::ZERO, Input::Command(Command::Listen));
        pair.ends[0].handle(Instant::ZERO, Input::Command(Command::Connect));
        pair
    }

    /// The client's application asks for something.
    pub fn tell(&mut self, command: Command) {
        self.ends[0].handle(self.now, Input::Command(command));
    }

    /// The link goes down, and what is under way is lost.
    pub fn cut(&mut self) {
        self.down = true;
        self.under_way.clear();
    }

    /// What leaves from now on is under way for so long.
    pub fn delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    fn flush(&mut self) {
        for who in 0..2 {
            while let Some(segment) = self.ends[who].poll_transmit(self.now) {
                let mut segment = segment;
                segment.options.mss = segment.options.mss.map(|mss| self.offers.unwrap_or(mss));
                self.trace.push((self.now, who, segment.clone()));
                let data = who == 0 && !segment.payload.is_empty();
                self.data_sent += u64::from(data);
                if who == 0 && self.too_big(&segment) {
                    continue;
                }
                if !(data && self.lost.contains(&self.data_sent) || who == 1 && self.now < self.mute_until || self.down) {
                    if let Some(rare) = segment.options.rare.as_mut().filter(|_| who == 0 && self.deaf_to_probes) {
                        rare.probe = None;
                    }
                    self.order += 1;
                    self.under_way.insert((self.now + self.delay, self.order), (1 - who, segment));
                }
            }
        }
    }

    /// Whether the client's router drops the segment.
    fn too_big(&mut self, segment: &Segment) -> bool {
        let (mtu, tells) = self.router;
        let too_big = segment.len() + usize::from(self.ends[0].config().ip_header) > mtu;
        if too_big && tells {
            self.ends[0].handle(self.now, Input::PacketTooBig { seq: segment.seq, mtu: Some(mtu as u16) });
        }
        too_big
    }

    /// Runs until nothing happens any more or `until` has come.
    pub fn run(&mut self, until: Instant) {
        loop {
            self.flush();
            let timeouts = self.ends.iter().filter_map(Endpoint::poll_timeout);
            let arrival = self.under_way.keys().next().map(|key| key.0);
            let Some(next) = timeouts.chain(arrival).min() else { return };
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            while self.under_way.keys().next().is_some_and(|key| key.0 <= self.now) {
                let (_, (who, segment)) = self.under_way.pop_first().unwrap();
                self.ends[who].handle(self.now, Input::Segment(&segment, Integrity::Intact));
                self.flush();
            }
            for end in &mut self.ends {
                end.handle_timeout(self.now);
            }
        }
    }

    pub fn received(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while let Some(piece) = self.ends[1].read(self.now, usize::MAX) {
            piece.write_to(&mut out);
        }
        out
    }
}

pub(super) fn secs(secs: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(secs)
}

pub(super) fn data(octets: usize) -> Vec<u8> {
    (0..octets).map(|i| (i * 31 % 251) as u8).collect()
}

#[test]
fn every_profile_and_scheme_delivers_over_losses() {
    for (name, profile) in PROFILES {
        for scheme in ["tahoe", "reno", "newreno", "sack"] {
            let config = Config { auto_read: false, ..profile() };
            let mut pair = Pair::new(scheme, &config, &[5, 6, 20, 21, 22, 40, 60, 61, 75]);
            let sent = data(200_000);
            pair.run(secs(1));
            assert_eq!(pair.ends[0].state(), State::Established, "{name} {scheme}");
            let (mut written, mut got) = (0, Vec::new());
            for second in 2..600 {
                let room = pair.ends[0].send_space() as usize;
                let end = sent.len().min(written + room);
                let chunk = Payload::Bytes(Bytes::copy_from_slice(&sent[written..end]));
                pair.ends[0].handle(pair.now, Input::Command(Command::Send(chunk)));
                written = end;
                pair.run(secs(second));
                got.extend(pair.received());
                if got.len() == sent.len() {
                    break;
                }
            }
            assert_eq!(got.len(), sent.len(), "{name} {scheme}: {:?}", pair.ends[0]);
            assert!(got == sent, "{name} {scheme}");
            for end in &mut pair.ends {
                end.handle(pair.now, Input::Command(Command::Close));
            }
            pair.run(secs(1000));
            assert_eq!([pair.ends[0].state(), pair.ends[1].state()], [State::Closed; 2], "{name} {scheme}");
        }
    }
}

#[test]
fn one_loss_is_one_fast_retransmit_and_one_reduction() {
    for scheme in ["reno", "newreno", "sack"] {
        let mut pair = Pair::new(scheme, &Config { auto_read: true, ..Config::modern() }, &[30]);
        pair.run(secs(1));
        pair.ends[0].handle(pair.now, Input::Command(Command::Produce(200_000)));
        pair.run(secs(20));

        let stats = pair.ends[0].stats();
        assert_eq!(pair.ends[1].stats().octets_delivered, 200_000);
        assert_eq!((stats.fast_retransmits, stats.reductions, stats.retransmissions, stats.timeouts), (1, 1, 1, 0), "{scheme}");
    }
}

#[test]
fn a_skimming_end_is_shown_what_it_does_not_expect() {
    let mut pair = Pair::new("sack", &Config { auto_read: false, ..Config::modern() }, &[5]);
    pair.ends[1].skim();
    pair.run(secs(1));
    pair.tell(Command::Produce(30_000));
    pair.run(secs(10));
    // What came before the hole went by. What waited behind it did not come in order.
    let shown = pair.received();
    let from = 30_000 - shown.len() as u64;
    assert!(!shown.is_empty() && from >= 4 * 1448, "{from}");
    assert_eq!(shown, (from..30_000).map(synthetic_octet).collect::<Vec<_>>());
    let readable = |end: &mut Endpoint| std::iter::from_fn(|| end.poll_event()).filter(|event| *event == Event::Readable).count();
    assert!(readable(&mut pair.ends[1]) > 0);

    pair.tell(Command::Produce(10_000));
    pair.run(secs(20));
    assert_eq!((pair.ends[1].stats().octets_delivered, pair.ends[1].readable(), readable(&mut pair.ends[1])), (40_000, 0, 0));
    pair.tell(Command::Send(Payload::Bytes(data(1000).into())));
    pair.tell(Command::Produce(1000));
    pair.run(secs(30));
    assert_eq!((pair.ends[1].stats().octets_delivered, pair.ends[1].readable()), (42_000, 2000));
    assert_eq!(pair.received()[..1000], data(1000));
}

/// A client whose losses are all taken for corruption.
fn forgiving(timeout: &str, reaction: &str, config: &Config, lost: &[u64]) -> Pair {
    let mut pair = Pair::new("newreno", config, lost);
    let selection = Selection {
        differentiator: Some("coin".to_owned()),
        reaction: Some(reaction.to_owned()),
        timeout: Some(timeout.to_owned()),
        parameters: BTreeMap::from([("coin".to_owned(), BTreeMap::from([("p".to_owned(), Value::Number(1.0))]))]),
        ..Selection::scheme("newreno")
    };
    let mut config = config.clone();
    let parts = selection.build(&mut config).unwrap();
    pair.ends[0] = Endpoint::new(config, parts, Ports { local: 1, remote: 2 });
    pair.ends[0].handle(Instant::ZERO, Input::Command(Command::Connect));
    pair.run(secs(1));
    pair
}

#[test]
fn slow_start_regains_the_window_after_a_timeout_without_congestion() {
    let config = Config { auto_read: true, initial_ssthresh: Some(16 * 1448), ..Config::freebsd45() };
    let windows = ["standard", "regain"].map(|timeout| {
        let lost: Vec<u64> = (40..=80).collect();
        let mut pair = forgiving(timeout, "keep", &config, &lost);
        pair.ends[0].handle(pair.now, Input::Command(Command::Produce(10_000_000)));
        while pair.ends[0].stats().timeouts == 0 {
            pair.run(pair.now + Duration::from_millis(10));
        }
        assert_eq!(pair.ends[0].window().cwnd(), 1448, "{timeout}");
        pair.ends[0].window().ssthresh()
    });
    assert!(windows[1] > 16 * 1448 && windows[1] >= windows[0] + windows[0] / 2, "{windows:?}");
}

/// Losses at regular distances in one window, all taken for corruption, without SACK.
fn scattered_losses(reaction: &str) -> (Instant, Stats) {
    let config = Config { auto_read: true, ..Config::freebsd45() };
    let mut pair = forgiving("standard", reaction, &config, &[60, 64, 68, 72, 76]);
    pair.ends[0].handle(pair.now, Input::Command(Command::Produce(300_000)));
    while pair.ends[0].octets_acknowledged() < 300_000 {
        assert!(pair.now < secs(60));
        pair.run(pair.now + Duration::from_millis(10));
    }
    (pair.now, *pair.ends[0].stats())
}

#[test]
fn bulk_repeat_repairs_a_window_in_one_round_trip() {
    let (end, one_by_one) = scattered_losses("keep");
    assert_eq!((one_by_one.retransmissions, one_by_one.timeouts, one_by_one.reductions), (5, 0, 0));
    let (bulk_end, bulk) = scattered_losses("bulk-repeat");
    assert_eq!((bulk.timeouts, bulk.reductions), (0, 0));
    // What was outstanding, each once: at most the window of 64 KiB.
    assert!((20..=45).contains(&bulk.retransmissions), "{}", bulk.retransmissions);
    // Four of five round trips of 100 ms are saved, but for what the repetitions take.
    assert!(bulk_end + Duration::from_millis(200) < end, "{bulk_end:?} against {end:?}");
}

#[test]
fn a_lost_tail_is_probed_instead_of_timing_out() {
    let mut pair = Pair::new("sack", &Config { auto_read: true, ..Config::modern() }, &[10]);
    pair.run(secs(1));
    pair.ends[0].handle(pair.now, Input::Command(Command::Produce(10 * 1448)));
    pair.run(secs(20));
    let stats = pair.ends[0].stats();
    assert_eq!(pair.ends[1].stats().octets_delivered, 14_480);
    assert_eq!((stats.tail_probes, stats.timeouts, stats.reductions), (1, 0, 0), "the tail may have been late");
    // No duplicate has come before this is acknowledged, so the tail was lost.
    let before = pair.ends[0].window().cwnd();
    pair.tell(Command::Produce(1448));
    pair.run(secs(40));
    let stats = pair.ends[0].stats();
    assert_eq!((stats.tail_probes, stats.losses, stats.reductions), (1, 1, 1));
    assert_eq!(pair.ends[0].window().ssthresh(), before / 2, "not of the little that is outstanding now");
}

/// A router marks one segment, and the tail of the same window is lost: they reduce the window once, in whatever order the sender learns of them.
#[test]
fn a_mark_and_a_probed_tail_of_one_window_reduce_it_once() {
    /// When acknowledgements tell of the mark, in milliseconds after the tail was lost, and for how long.
    type Told = Option<(u64, u64)>;
    let run = |told: Told| {
        let mut pair = Pair::new("sack", &Config { ecn: true, auto_read: true, ..Config::modern() }, &[10]);
        pair.run(secs(1));
        pair.tell(Command::Produce(10 * 1448));
        let began = pair.now;
        let at = |ms: u64| began + Duration::from_millis(ms);
        // The first nine segments are acknowledged after 100 ms, the probe after some 400. Then comes the rest, which shows that the tail was lost.
        for ms in 1..2000 {
            if ms == 1000 {
                pair.tell(Command::Produce(1448));
            }
            pair.run(at(ms));
            pair.ends[1].rcv.echo_ce = told.is_some_and(|(from, lasts)| (from..from + lasts).contains(&ms));
        }
        let losses = std::iter::from_fn(|| pair.ends[0].poll_event());
        let judged: Vec<_> = losses
            .filter_map(|event| if let Event::Loss(loss) = event { Some((loss.trigger, loss.judgement)) } else { None })
            .collect();
        let stats = *pair.ends[0].stats();
        assert_eq!((stats.tail_probes, stats.timeouts, pair.ends[1].stats().octets_delivered), (1, 0, 11 * 1448), "{told:?}");
        let [(trigger, judgement)] = judged[..] else { panic!("{judged:?}") };
        assert_eq!(trigger, Trigger::TailProbe);
        (stats.ecn_reductions, stats.reductions, judgement, pair.ends[0].window().ssthresh() / 1448)
    };
    let alone = run(None);
    assert_eq!((alone.0, alone.1, alone.2), (0, 1, Judgement::Reduced));
    // With the segments before the tail, with the probe: nothing falls for the tail any more.
    for told in [(1, 200), (200, 600)] {
        let once = run(Some(told));
        assert_eq!((once.0, once.1, once.2), (1, 0, Judgement::Covered), "{told:?}");
    }
    // With what shows that the tail was lost.
    let once = run(Some((1000, 60)));
    assert_eq!((once.0 + once.1, once.3), (1, alone.3), "{once:?}");
}

#[test]
fn a_late_tail_that_was_probed_is_no_loss() {
    for dsack in [true, false] {
        let config = Config { auto_read: true, ..Config::modern() };
        let mut pair = Pair::new("sack", &config, &[]);
        let mut of_peer = Config { dsack, ..config };
        let parts = Selection::scheme("sack").build(&mut of_peer).unwrap();
        pair.ends[1] = Endpoint::new(of_peer, parts, pair.ends[1].ports());
        pair.ends[1].handle(Instant::ZERO, Input::Command(Command::Listen));
        pair.tell(Command::Produce(100_000));
        pair.run(secs(5));
        let before = pair.ends[0].window().cwnd();
        pair.delay(Duration::from_millis(125));
        for _ in 0..2 {
            pair.tell(Command::Produce(2 * 1448));
            pair.run(pair.now + Duration::from_secs(5));
        }
        let stats = pair.ends[0].stats();
        assert_eq!((pair.ends[1].stats().duplicates_received, stats.timeouts), (1, 0), "D-SACK {dsack}");
        assert_eq!((stats.tail_probes, stats.losses, stats.reductions), (1, 0, 0), "D-SACK {dsack}");
        assert!(pair.ends[0].window().cwnd() >= before, "D-SACK {dsack}");
    }
}

/// The probe shows that the segment before the tail is missing: the recovery answers for both.
#[test]
fn a_probed_tail_is_not_answered_for_again_after_the_recovery_that_it_began() {
    let mut pair = Pair::new("sack", &Config { auto_read: true, ..Config::modern() }, &[9, 10]);
    pair.run(secs(1));
    pair.tell(Command::Produce(10 * 1448));
    pair.run(secs(20));
    let stats = *pair.ends[0].stats();
    assert_eq!((stats.tail_probes, stats.fast_retransmits, stats.timeouts, stats.reductions), (1, 1, 0, 1));
    pair.tell(Command::Produce(4 * 1448));
    pair.run(secs(40));
    let after = pair.ends[0].stats();
    assert_eq!((after.losses, after.reductions), (stats.losses, 1));
}

/// A client whose tail was lost, probed and acknowledged, and the acknowledgements that it got, in order.
fn probed_pair() -> (Pair, Vec<Segment>) {
    // Timestamps would tell which are old (PAWS).
    let mut pair = Pair::new("sack", &Config { auto_read: true, timestamps: false, ..Config::modern() }, &[10]);
    pair.run(secs(1));
    pair.tell(Command::Produce(10 * 1448));
    pair.run(secs(20));
    let acks = pair.trace.iter().filter(|(_, who, s)| *who == 1 && !s.flags.contains(Flags::SYN));
    let acks = acks.map(|(_, _, segment)| segment.clone()).collect();
    (pair, acks)
}

#[test]
fn only_a_duplicate_tells_that_a_probe_was_needless() {
    for (late, reductions) in [(true, 1), (false, 0)] {
        let (mut pair, acks) = probed_pair();
        // An acknowledgement from before the tail that was overtaken is none.
        let told = if late { &acks[acks.len() - 2] } else { &acks[acks.len() - 1] };
        let told = Segment { window: acks[acks.len() - 1].window, ..told.clone() };
        pair.ends[0].handle(pair.now, Input::Segment(&told, Integrity::Intact));
        pair.tell(Command::Produce(4 * 1448));
        pair.run(secs(40));
        assert_eq!(pair.ends[0].stats().reductions, reductions, "late: {late}");
    }
}

/// Segments have become smaller since the tail left: its end is what goes again, and what a D-SACK tells of.
#[test]
fn a_tail_that_is_too_large_by_now_is_probed_with_its_end() {
    let mut pair = Pair::new("sack", &Config { auto_read: true, ..Config::modern() }, &[]);
    pair.run(secs(1));
    pair.tell(Command::Produce(2 * 1448));
    pair.run(pair.now + Duration::from_millis(1));
    let end = crate::seq::Seq::from(pair.ends[0].snd.nxt);
    // The acknowledgements are late.
    pair.mute_until = pair.now + Duration::from_millis(150);
    pair.ends[0].snd.mss = 1000;
    pair.run(secs(3));
    assert_eq!((pair.ends[0].stats().tail_probes, pair.ends[1].stats().duplicates_received), (1, 1));
    let (_, _, probe) = pair.trace.iter().filter(|(_, who, s)| *who == 0 && !s.payload.is_empty()).nth(2).expect("a probe");
    assert_eq!((probe.payload.len(), probe.seq + 448), (448, end));
    pair.tell(Command::Produce(1000));
    pair.run(secs(9));
    let stats = pair.ends[0].stats();
    assert_eq!((stats.tail_probes, stats.losses, stats.reductions), (1, 0, 0));
}

/// The answer to the SYN takes longer than the first timeout. With timestamps it is known which SYN was answered.
#[test]
fn a_path_slower_than_the_first_timeout_is_not_repeated_over() {
    for (timestamps, round_trip) in [(true, 1200), (true, 2900), (false, 1200), (false, 2900)] {
        let mut pair = Pair::new("newreno", &Config { auto_read: true, timestamps, ..Config::modern() }, &[]);
        pair.delay(Duration::from_millis(round_trip / 2));
        pair.tell(Command::Produce(1448 * 8));
        pair.run(secs(40));
        let stats = pair.ends[0].stats();
        assert_eq!(pair.ends[1].stats().octets_delivered, 1448 * 8);
        assert_eq!((stats.timeouts, stats.retransmissions), (1, 0), "{timestamps}, {round_trip} ms");
        assert!(pair.ends[0].path().rto > Duration::from_millis(round_trip));
    }
}

#[test]
fn a_lone_lost_segment_is_probed_sooner_where_the_scheme_says_so() {
    let took = ["cubic", "auto"].map(|scheme| {
        let mut pair = Pair::new(scheme, &Config { auto_read: true, ..Config::linux() }, &[1]);
        pair.delay(Duration::from_millis(10));
        pair.run(secs(1));
        let start = pair.now;
        pair.tell(Command::Produce(1000));
        while pair.ends[1].stats().octets_delivered < 1000 && pair.now < secs(20) {
            pair.run(pair.now + Duration::from_millis(1));
        }
        let stats = pair.ends[0].stats();
        assert_eq!((stats.tail_probes, stats.timeouts), (1, 0), "{scheme}");
        pair.now.since(start).as_millis()
    });
    // 20 ms and the least that the timer adds, then half a round trip.
    assert_eq!(took, [230, 90]);
}

#[test]
fn simultaneous_open_meets_in_the_middle() {
    let mut pair = Pair::new("newreno", &Config::modern(), &[]);
    let parts = Selection::scheme("newreno").build(&mut Config::modern()).unwrap();
    pair.ends[1] = Endpoint::new(Config::modern(), parts, Ports { local: 2, remote: 1 });
    pair.ends[1].handle(Instant::ZERO, Input::Command(Command::Connect));
    pair.run(secs(3));
    assert_eq!([pair.ends[0].state(), pair.ends[1].state()], [State::Established; 2]);
    assert!(pair.trace.iter().filter(|(_, _, s)| s.flags.contains(Flags::SYN | Flags::ACK)).count() >= 2);
}

#[test]
fn a_closed_window_is_probed_until_it_opens() {
    let config = Config { receive_buffer: 10_000, ..Config::modern() };
    let mut pair = Pair::new("newreno", &config, &[]);
    pair.run(secs(1));
    pair.ends[0].handle(pair.now, Input::Command(Command::Send(Payload::Bytes(Bytes::from(data(30_000))))));
    pair.run(secs(30));

    let mut got = pair.received();
    assert!((9_000..=10_000).contains(&got.len()), "{}", got.len());
    for second in 31..60 {
        pair.run(secs(second));
        got.extend(pair.received());
    }
    assert_eq!(got, data(30_000));
    assert_eq!(pair.ends[0].stats().timeouts, 0);
}

#[test]
fn the_window_restarts_when_data_can_leave_and_not_while_the_peer_takes_none() {
    let config = Config { receive_buffer: 60_000, bare_window_probes: true, ..Config::modern() };
    let mut pair = Pair::new("newreno", &config, &[]);
    pair.run(secs(1));
    pair.tell(Command::Produce(1_000_000));
    for _ in 0..16 {
        pair.run(pair.now + Duration::from_millis(50));
        pair.received();
    }
    pair.run(secs(4)); // nobody reads any more
    let (full, initial) = (pair.ends[0].window().cwnd(), 10 * 1448);
    assert!(full > 2 * initial && pair.ends[0].path().flight == 0, "{full}");
    pair.run(secs(20));
    assert_eq!(pair.ends[0].window().cwnd(), full, "the peer's window is closed");

    pair.received();
    let left = pair.data_sent;
    pair.run(pair.now + Duration::from_millis(60));
    assert_eq!((pair.data_sent - left, pair.ends[0].window().cwnd()), (10, initial), "RFC 5681, 4.1");
}

/// A reset has to have the number that the peer expects next, or it is not believed (RFC 5961, 3). Our FIN, which was lost, is beyond it.
#[test]
fn data_for_nobody_is_answered_by_a_reset_that_is_believed() {
    let mut pair = Pair::new("newreno", &Config::modern(), &[]);
    pair.run(secs(1));
    pair.tell(Command::StopReading);
    pair.tell(Command::Close);
    let fin = pair.ends[0].poll_transmit(pair.now).unwrap();
    assert!(fin.flags.contains(Flags::FIN));
    pair.ends[1].handle(pair.now, Input::Command(Command::Send(Payload::Bytes(data(100).into()))));
    pair.run(secs(2));
    let (_, _, reset) = pair.trace.iter().find(|(_, who, segment)| *who == 0 && segment.flags.contains(Flags::RST)).unwrap();
    assert_eq!((reset.seq, reset.flags), (fin.seq, Flags::RST));
    let told: Vec<_> = std::iter::from_fn(|| pair.ends[1].poll_event()).collect();
    assert!(told.contains(&Event::Closed(Closing::Reset)), "{told:?}");
    assert_eq!((pair.ends[0].state(), pair.ends[1].stats().challenge_acks), (State::Closed, 0));
}

/// The octet that probes a closed window lies outside of it, and a reset behind it would, too.
#[test]
fn a_reset_while_a_closed_window_is_probed_is_believed() {
    let mut pair = Pair::new("newreno", &Config { receive_buffer: 10_000, ..Config::modern() }, &[]);
    pair.run(secs(1));
    pair.tell(Command::Send(Payload::Bytes(data(30_000).into())));
    pair.run(secs(30));
    assert_eq!(pair.ends[0].outstanding().segments, 1, "the probe");
    pair.tell(Command::Abort);
    pair.run(secs(31));
    let told: Vec<_> = std::iter::from_fn(|| pair.ends[1].poll_event()).collect();
    assert!(told.contains(&Event::Closed(Closing::Reset)), "{told:?}");
}

/// Data that carries the acknowledgement of the SYN-ACK answers it: the connection is interactive, and acknowledgements wait for data.
#[test]
fn an_answer_to_the_handshake_ends_quick_acknowledgements() {
    let answered = |answers: bool| {
        let mut pair = Pair::new("newreno", &Config::linux(), &[]);
        let request = Command::Send(Payload::Bytes(data(100).into()));
        if answers {
            pair.tell(request);
        }
        pair.run(secs(1));
        pair.now = secs(1);
        pair.ends[1].handle(pair.now, Input::Command(Command::Send(Payload::Bytes(data(100).into()))));
        pair.run(secs(2));
        let (at, _, _) = pair.trace.iter().find(|(at, who, _)| *who == 0 && *at > secs(1)).unwrap();
        at.since(secs(1))
    };
    assert_eq!((answered(false), answered(true)), (Duration::from_millis(50), Duration::from_millis(90)));
}

/// Tells nothing for as long as it is asked, and counts what it is told.
#[derive(Debug)]
struct Wonders {
    undone: Arc<AtomicU32>,
}

impl TimeoutPolicy for Wonders {
    fn on_timeout(&mut self, _timeout: &Timeout) -> TimeoutResponse {
        TimeoutResponse { window: TimeoutWindow::Collapse, back_off: true, head_only: false }
    }

    fn assess(&mut self, _after: &AfterTimeout) -> Assessment {
        Assessment::Repairing
    }

    fn on_undone(&mut self) {
        self.undone.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_policy_hears_that_duplicates_prove_its_timeout_spurious() {
    let config = Config { auto_read: true, tlp: false, ..Config::modern() };
    // Of eight segments four arrive, but the acknowledgements do not. That of the repetition says so, and that it came twice.
    let mut pair = Pair::new("sack", &config, &[5, 6, 7, 8]);
    let undone = Arc::new(AtomicU32::new(0));
    pair.ends[0].parts.timeout = Box::new(Wonders { undone: undone.clone() });
    pair.run(secs(1));
    pair.ends[0].handle(pair.now, Input::Command(Command::Produce(8 * 1448)));
    pair.mute_until = pair.now + Duration::from_millis(250);
    pair.run(pair.now + Duration::from_millis(500));
    let stats = pair.ends[0].stats();
    assert_eq!((stats.timeouts, stats.spurious_timeouts, stats.undos), (1, 1, 1), "{stats:?}");
    assert_eq!(undone.load(Ordering::Relaxed), 1);
}

#[test]
fn no_segment_size_is_too_small_for_a_handshake() {
    for (own, offered) in [(1, 1460), (39, 1460), (63, 64), (1460, 0), (1460, 1), (1460, 40), (1, 0)] {
        let mut pair = Pair::new("checksum-ld-hardened", &Config { mss: own, auto_read: true, ..Config::modern() }, &[]);
        pair.offers = Some(offered);
        pair.run(secs(3));
        pair.ends[0].handle(pair.now, Input::Command(Command::Produce(100)));
        pair.run(secs(20));
        assert_eq!(pair.ends[1].stats().octets_delivered, 100, "{own} and {offered}");
        // What is offered counts as 64 at least, less at most 40 octets of options.
        assert!(own < 64 || pair.ends[0].stats().data_segments_sent <= 5, "{own} and {offered}");
    }
}

/// An agent of ns-2 with a window of so many segments, as `change` has it, after it has sent so many without `lost`.
fn agent(scheme: &str, segments: u32, change: impl Fn(&mut Config), produced: u64, lost: &[u64]) -> Pair {
    let mut config =
        Config { initial_window: segments, initial_ssthresh: None, receive_buffer: 1 << 20, auto_read: true, ..Config::ns2() };
    change(&mut config);
    let mut pair = Pair::new(scheme, &config, lost);
    pair.run(secs(1));
    pair.ends[0].handle(pair.now, Input::Command(Command::Produce(produced * 1000)));
    pair
}

/// What the client has sent of data since `from`, in segments from 0.
fn sent_since(pair: &Pair, from: Instant) -> Vec<i32> {
    let first = pair.trace.iter().find(|(_, who, segment)| *who == 0 && !segment.payload.is_empty()).unwrap().2.seq;
    let data = pair.trace.iter().filter(|(at, who, segment)| *who == 0 && *at >= from && !segment.payload.is_empty());
    data.map(|(_, _, segment)| (segment.seq - first) / 1000).collect()
}

#[test]
fn ns_2_counts_duplicates_where_rfc_6675_counts_what_they_report() {
    for (count_duplicates, fast_retransmits) in [(false, 1), (true, 0)] {
        let mut pair = agent("sack", 5, |config| config.count_duplicates = count_duplicates, 4, &[1]);
        // Three duplicates are lost on their way back; the fourth reports four segments.
        pair.mute_until = pair.now + Duration::from_millis(60);
        pair.run(pair.now + Duration::from_millis(70));
        pair.ends[0].handle(pair.now, Input::Command(Command::Produce(1000)));
        pair.run(pair.now + Duration::from_millis(110));
        assert_eq!(pair.ends[0].stats().fast_retransmits, fast_retransmits, "count_duplicates = {count_duplicates}");
    }
}

#[test]
fn ns_2_repairs_a_hole_before_it_counts_as_lost() {
    // Of eight segments the first and the seventh are lost; one is reported above the seventh.
    for (count_pipe, next) in [(false, [0, 8, 9]), (true, [0, 8, 6])] {
        let mut pair = agent("sack", 8, |config| (config.count_pipe, config.limited_transmit) = (count_pipe, false), 20, &[1, 7]);
        let begin = pair.now;
        pair.run(begin + Duration::from_millis(110));
        assert_eq!(sent_since(&pair, begin)[8..][..3], next, "count_pipe = {count_pipe}");
    }
}

#[test]
fn ns_2_sends_everything_again_after_a_timeout() {
    // The first and the third segment are lost, and what is sent again before the timer expires.
    for (forget_sacks, again) in [(false, vec![0, 2]), (true, vec![0, 2, 3])] {
        let mut pair = agent("sack", 6, |config| config.forget_sacks = forget_sacks, 6, &[1, 3, 7, 8, 9]);
        let begin = pair.now;
        pair.run(secs(10));
        assert_eq!(pair.ends[0].stats().timeouts, 1);
        assert_eq!(sent_since(&pair, begin)[9..], again, "forget_sacks = {forget_sacks}");
    }
}

#[test]
fn ns_2_lets_the_whole_window_go_when_recovery_ends() {
    for (window_at_once, cwnd) in [(false, 2000), (true, 8000)] {
        let mut pair = agent("reno", 16, |config| config.window_at_once = window_at_once, 16, &[1]);
        pair.run(pair.now + Duration::from_millis(250));
        assert_eq!(pair.ends[0].window().cwnd(), cwnd, "window_at_once = {window_at_once}");
    }
}

#[test]
fn ns_2_halves_a_window_below_two_segments() {
    for (least_cwnd, cwnd) in [(2, 2000), (1, 1500)] {
        let mut pair = agent("sack", 3, |config| (config.least_cwnd, config.dup_threshold) = (least_cwnd, 2), 3, &[1]);
        pair.run(pair.now + Duration::from_millis(250));
        let window = pair.ends[0].window();
        assert_eq!((window.cwnd(), window.ssthresh()), (cwnd, 2000), "least_cwnd = {least_cwnd}");
    }
}

/// A client in the middle of a transfer with ECN, and the latest acknowledgement that it got, as of `una`.
fn marked_pair() -> (Pair, Segment) {
    let config = Config { ecn: true, auto_read: true, initial_ssthresh: Some(60_000), ..Config::modern() };
    let mut pair = Pair::new("newreno", &config, &[]);
    pair.tell(Command::Produce(u64::MAX));
    pair.run(Instant::ZERO + Duration::from_millis(1220));
    let (_, _, latest) = pair.trace.iter().rev().find(|(_, who, _)| *who == 1).expect("an acknowledgement");
    let mut ack = latest.clone();
    ack.options.sack = <_>::default();
    ack.ack = crate::seq::Seq::from(pair.ends[0].path().una);
    (pair, ack)
}

#[test]
fn marks_on_the_window_that_was_reduced_for_reduce_it_no_more() {
    let (mut pair, mut ack) = marked_pair();
    ack.flags |= Flags::ECE;
    pair.ends[0].handle(pair.now, Input::Segment(&ack, Integrity::Intact));
    let reduced = pair.ends[0].window().cwnd();
    // The receiver has the last segment of that window, and has not heard of the reduction.
    ack.ack = crate::seq::Seq::from(pair.ends[0].path().nxt);
    for _ in 0..3 {
        pair.ends[0].handle(pair.now, Input::Segment(&ack, Integrity::Intact));
    }
    assert_eq!(pair.ends[0].stats().ecn_reductions, 1);
    assert!(pair.ends[0].window().cwnd() >= reduced);
    let next = pair.ends[0].poll_transmit(pair.now).expect("new data");
    assert!(next.flags.contains(Flags::CWR));
}

/// An application that sends ten segments and waits: a mark halves those, not the nothing that is outstanding afterwards.
#[test]
fn a_mark_on_all_that_was_outstanding_halves_it() {
    let config = Config { ecn: true, auto_read: true, ..Config::modern() };
    let mut pair = Pair::new("newreno", &config, &[]);
    pair.run(secs(1));
    pair.tell(Command::Produce(10 * 1448));
    while pair.ends[0].path().flight < 10 * 1448 {
        pair.run(pair.now + Duration::from_millis(1));
        pair.ends[0].refresh_path(pair.now);
    }
    let (_, _, last) = pair.trace.iter().rev().find(|(_, who, _)| *who == 1).expect("a SYN-ACK");
    let mut ack = Segment { flags: Flags::ACK | Flags::ECE, ..last.clone() };
    ack.options.mss = None;
    ack.seq = ack.seq + 1;
    ack.ack = crate::seq::Seq::from(pair.ends[0].path().nxt);
    pair.ends[0].handle(pair.now, Input::Segment(&ack, Integrity::Intact));
    assert_eq!((pair.ends[0].stats().ecn_reductions, pair.ends[0].window().cwnd()), (1, 5 * 1448));
}

#[test]
fn a_timeout_is_a_reduction_of_which_the_receiver_hears() {
    let (mut pair, _) = marked_pair();
    pair.cut();
    pair.run(Instant::ZERO + Duration::from_millis(2500));
    pair.down = false;
    let before = pair.trace.len();
    pair.run(Instant::ZERO + Duration::from_millis(8000));
    let told = pair.trace[before..].iter().filter(|(_, who, segment)| *who == 0 && segment.flags.contains(Flags::CWR)).count();
    assert!(pair.ends[0].stats().timeouts > 0 && told == 1, "{} timeouts, told {told} times", pair.ends[0].stats().timeouts);
}

/// A segment was marked, then all of the window is lost. Repetitions carry no CWR, so every acknowledgement of them has ECE.
#[test]
fn the_window_comes_back_after_a_timeout_before_the_receiver_has_heard_of_it() {
    let (mut pair, _) = marked_pair();
    pair.ends[1].rcv.echo_ce = true;
    pair.cut();
    pair.run(Instant::ZERO + Duration::from_millis(1500));
    pair.down = false;
    let outstanding = pair.ends[0].outstanding().segments;
    // From one segment by doubling: six round trips of 100 ms for fifty, where one at a time would take five seconds.
    pair.run(pair.now + Duration::from_millis(1600));
    assert!(outstanding > 20 && pair.ends[0].stats().timeouts > 0);
    assert!(pair.ends[0].snd.recovery.is_open(), "{} of {outstanding} are left", pair.ends[0].outstanding().segments);
}

/// Segments that came late were taken for lost; before a D-SACK says so, a router has marked one.
#[test]
fn what_was_marked_meanwhile_is_not_taken_back() {
    let undone = |marked: bool| {
        let (mut pair, ack) = marked_pair();
        let (una, mss) = (pair.ends[0].path().una, u64::from(pair.ends[0].path().mss));
        let at = |position: u64| crate::seq::Seq::from(position);
        for n in 2..8 {
            let mut told = ack.clone();
            told.options.sack.push(at(una + mss), at(una + mss * n));
            if marked && n > 5 {
                told.flags |= Flags::ECE;
            }
            let later = pair.now + Duration::from_millis(30 + n);
            pair.ends[0].handle(later, Input::Segment(&told, Integrity::Intact));
            while pair.ends[0].poll_transmit(later).is_some() {}
        }
        assert_eq!(pair.ends[0].stats().fast_retransmits, 1);
        let mut told = ack.clone();
        told.ack = at(una + 7 * mss);
        told.options.sack.push(at(una), at(una + mss));
        pair.ends[0].handle(pair.now + Duration::from_millis(45), Input::Segment(&told, Integrity::Intact));
        pair.ends[0].stats().undos
    };
    assert_eq!((undone(false), undone(true)), (1, 0));
}

/// A receiver that drops what it has SACKed, or forgets to acknowledge it: when that came is known no more.
#[test]
fn what_was_sacked_before_a_timeout_forgot_that_is_no_sample() {
    let config = Config { timestamps: false, auto_read: true, initial_ssthresh: Some(60_000), ..Config::modern() };
    let mut pair = Pair::new("sack", &config, &[]);
    pair.tell(Command::Produce(u64::MAX));
    pair.run(Instant::ZERO + Duration::from_millis(1220));
    let (_, _, latest) = pair.trace.iter().rev().find(|(_, who, _)| *who == 1).expect("an acknowledgement");
    let mut told = latest.clone();
    let una = pair.ends[0].path().una;
    let at = |segments: u64| crate::seq::Seq::from(una + segments * 1460);
    told.ack = at(0);
    told.options.sack.push(at(0), at(6));
    pair.ends[0].handle(pair.now, Input::Segment(&told, Integrity::Intact));
    pair.cut();
    while pair.ends[0].stats().timeouts == 0 {
        pair.run(pair.now + Duration::from_millis(1));
    }
    pair.run(pair.now + Duration::from_millis(90));
    let before = (pair.ends[0].path().max_rtt, pair.ends[0].path().srtt);
    told.ack = at(6);
    told.options.sack = <_>::default();
    pair.ends[0].handle(pair.now, Input::Segment(&told, Integrity::Intact));
    assert_eq!((pair.ends[0].path().max_rtt, pair.ends[0].path().srtt), before);
    assert_eq!(pair.ends[0].path().una, una + 6 * 1460);
}

#[test]
fn the_clock_of_timestamps_starts_again_at_one() {
    let (pair, _) = marked_pair();
    let end = |after: u64| Instant::ZERO + Duration::from_millis((1 << 32) - 1 + after);
    assert_eq!([0, 1, 2].map(|after| pair.ends[0].timestamp(end(after))), [1, 1, 2]);
}
