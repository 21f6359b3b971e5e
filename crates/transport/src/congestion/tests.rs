//! Window growth on a scripted acknowledgement clock, against closed forms.

use super::{CongestionControl, Cubic, Gaimd, NewReno, None, Reno, SantaCruz, Vegas, Veno, Westwood, Window};
use crate::estimate::Filter;
use crate::kit::Arguments;
use crate::path::{Ack, Path, Sent};
use crate::segment::Options;
use crate::time::{Duration, Instant};

mod queues;

const MSS: u32 = 1000;

/// A lossless path of constant round-trip time whose sender always fills its window.
struct Clock {
    path: Path,
    rtt: Duration,
    window: Window,
    /// Segments that one acknowledgement acknowledges.
    per_ack: u64,
    window_limited: bool,
}

impl Clock {
    fn new(rtt_ms: u64, cwnd: u64, ssthresh: u64) -> Self {
        let rtt = Duration::from_millis(rtt_ms);
        let path = Path { srtt: Some(rtt), min_rtt: Some(rtt), mss: MSS, now: Instant::from_nanos(1), ..Path::default() };
        let octets = u64::from(MSS);
        Self {
            path,
            rtt,
            window: Window::new(MSS, cwnd * octets, ssthresh.saturating_mul(octets)),
            per_ack: 1,
            window_limited: true,
        }
    }

    fn segments(&self) -> f64 {
        self.window.cwnd() as f64 / f64::from(MSS)
    }

    /// Acknowledges one segment after another round-trip time.
    fn ack(&mut self, cc: &mut dyn CongestionControl) {
        let acked = self.per_ack * u64::from(MSS);
        self.path.una += acked;
        self.path.nxt = self.path.una + self.window.cwnd();
        self.path.flight = self.window.cwnd();
        self.path.cwnd = self.window.cwnd();
        self.path.ssthresh = self.window.ssthresh();
        let ack = Ack {
            path: &self.path,
            acked,
            delivered: acked,
            rtt: Some(self.rtt),
            delay: Some(self.rtt),
            newest_sent_at: Option::None,
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: self.window_limited,
            sample: Option::None,
            options: &Options::default(),
        };
        cc.on_ack(&mut self.window, &ack);
    }

    /// One round trip: as many acknowledgements as the window holds, evenly spaced.
    fn round(&mut self, cc: &mut dyn CongestionControl) {
        let acks = (self.window.cwnd() / (self.per_ack * u64::from(MSS))).max(1);
        let end = self.path.now + self.rtt;
        for _ in 0..acks {
            self.path.now += self.rtt / acks;
            self.ack(cc);
        }
        self.path.now = end;
    }

    /// One round trip over a bottleneck of `rate` segments a second and `base` delay, with a queue for whatever does not fit.
    fn queued_round(&mut self, cc: &mut dyn CongestionControl, rate: f64, base: Duration) {
        self.rtt = Duration::from_secs_f64(self.segments() / rate).max(base);
        self.round(cc);
    }

    /// A loss that fast recovery repairs at once.
    fn lose(&mut self, cc: &mut dyn CongestionControl) {
        self.path.flight = self.window.cwnd();
        let threshold = cc.threshold(&self.window, &self.path);
        self.window.set_ssthresh(threshold);
        self.window.set_cwnd(threshold.min(self.window.cwnd()));
    }

    fn time_out(&mut self, cc: &mut dyn CongestionControl) {
        self.path.flight = self.window.cwnd();
        let threshold = cc.timeout_threshold(&self.window, &self.path);
        self.window.set_ssthresh(threshold);
        self.window.set_cwnd(u64::from(MSS));
        cc.on_timeout(&mut self.window, &self.path);
    }
}

fn cubic() -> Cubic {
    Cubic::new(0.4, 0.7, true, false)
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected, "found {found}, expected {expected} within {tolerance}");
}

#[test]
fn reno_doubles_a_round_and_then_adds_one() {
    let mut clock = Clock::new(100, 2, 16);
    let windows: Vec<_> = (0..6)
        .map(|_| {
            clock.round(&mut Reno);
            clock.segments()
        })
        .collect();
    assert_eq!(windows[..3], [4.0, 8.0, 16.0]);
    near(windows[5], 19.0, 0.01);
}

#[test]
fn delayed_acknowledgements_slow_reno_down_but_not_newreno() {
    let rounds = |cc: &mut dyn CongestionControl| {
        let mut clock = Clock::new(100, 4, u64::MAX);
        clock.per_ack = 2;
        (0..3).for_each(|_| clock.round(cc));
        clock.segments()
    };
    assert_eq!(rounds(&mut Reno), 13.0); // 4, 6, 9, 13
    assert_eq!(rounds(&mut NewReno::new(false)), 32.0);
}

#[test]
fn newreno_adds_exactly_one_segment_for_a_window_of_octets() {
    let mut cc = NewReno::new(false);
    let mut clock = Clock::new(100, 10, 2);
    for expected in [11.0, 12.0, 13.0] {
        clock.round(&mut cc);
        assert_eq!(clock.segments(), expected);
    }
}

#[test]
fn newreno_limits_its_growth_by_one_acknowledgement() {
    let mut cc = NewReno::new(false);
    let mut clock = Clock::new(100, 20, u64::MAX);
    clock.per_ack = 10;
    clock.ack(&mut cc);
    assert_eq!(clock.segments(), 22.0, "L = 2");
    clock.time_out(&mut cc);
    clock.ack(&mut cc);
    assert_eq!(clock.segments(), 2.0, "L = 1 after a timeout");
    while clock.window.in_slow_start() {
        clock.ack(&mut cc);
    }
    clock.round(&mut cc);
    clock.window.set_ssthresh(u64::MAX);
    let before = clock.segments();
    clock.ack(&mut cc);
    assert_eq!(clock.segments(), before + 2.0, "L = 2 again once congestion avoidance was reached");
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    for ssthresh in [2, u64::MAX] {
        for cc in [&mut Reno as &mut dyn CongestionControl, &mut NewReno::new(false), &mut cubic()] {
            let mut clock = Clock::new(100, 10, ssthresh);
            clock.window_limited = false;
            (0..5).for_each(|_| clock.round(cc));
            assert_eq!(clock.segments(), 10.0, "{cc:?}");
        }
    }
}

#[test]
fn cubic_follows_its_curve_after_a_loss() {
    let mut cc = cubic();
    let mut clock = Clock::new(100, 1000, 1000);
    clock.lose(&mut cc);
    assert_eq!(clock.segments(), 700.0);
    let begin = clock.path.now;
    let k = libm::cbrt(1000.0 * 0.3 / 0.4); // RFC 9438, eq. 2: 9.09 s
    let mut passed_plateau = false;
    for _ in 0..160 {
        clock.round(&mut cc);
        let t = clock.path.now.since(begin).as_secs_f64();
        let expected = 0.4 * (t - k) * (t - k) * (t - k) + 1000.0;
        near(clock.segments(), expected, 0.015);
        passed_plateau |= t > k;
    }
    assert!(passed_plateau);
    assert!(clock.segments() > 1050.0);
}

#[test]
fn delayed_acknowledgements_do_not_bend_the_curve() {
    let run = |per_ack| {
        let mut cc = cubic();
        let mut clock = Clock::new(100, 1000, 1000);
        clock.per_ack = per_ack;
        clock.lose(&mut cc);
        (0..80).for_each(|_| clock.round(&mut cc));
        clock.segments()
    };
    near(run(2), run(1), 0.01);
}

#[test]
fn cubic_is_not_slower_than_reno_on_a_short_path() {
    // 10 ms, 20 segments: W(t) needs 2.5 s back to 20, Reno with alpha = 0.529 needs 6 / 0.529 round trips, and 1 a round trip then.
    let mut cc = cubic();
    let mut clock = Clock::new(10, 20, 20);
    clock.lose(&mut cc);
    assert_eq!(clock.segments(), 14.0);
    let alpha = 3.0 * 0.3 / 1.7;
    for round in 1..=10 {
        clock.round(&mut cc);
        near(clock.segments(), 14.0 + alpha * f64::from(round), 0.03);
    }
    while clock.segments() < 20.0 {
        clock.round(&mut cc);
    }
    let before = clock.segments();
    (0..5).for_each(|_| clock.round(&mut cc));
    near(clock.segments(), before + 5.0, 0.02);
}

/// What Linux's CUBIC adds in each of `rounds` round trips after a loss at `cwnd` segments, and what RFC 9438's does.
fn growths(rtt_ms: u64, cwnd: u64, rounds: usize) -> [Vec<f64>; 2] {
    ["linux", "rfc9438"].map(|growth| {
        let part = super::TABLE.iter().find(|part| part.name == "cubic").expect("it is in the table");
        let arguments = Arguments::check(part, &[("growth".to_owned(), growth.into())].into()).expect("the part has it");
        let mut cc = part.build(&arguments);
        let mut clock = Clock::new(rtt_ms, cwnd, cwnd);
        clock.lose(&mut *cc);
        let from = clock.segments();
        let mut grown = Vec::new();
        for _ in 0..rounds {
            clock.round(&mut *cc);
            grown.push(clock.segments() - from);
        }
        grown
    })
}

#[test]
fn in_linux_cubic_follows_reno_by_whole_segments_and_behind() {
    // By hand, from 14 segments: looks that find the estimate larger are at the 45th acknowledgement (26 make a segment of it), the 92nd (28, and two of
    // them) and the 161st (31); the window follows at once, and by the second segment 15 acknowledgements later.
    let [linux, _] = growths(10, 20, 11);
    assert_eq!(linux, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 4.0]);
    for (rtt_ms, cwnd) in [(10, 20), (5, 40), (20, 12)] {
        // As long as a look holds, and a segment of the estimate's and of the window's.
        let most = 8.0 / 15.0 * (31.25 / rtt_ms as f64) + 1.5;
        let [linux, rfc] = growths(rtt_ms, cwnd, 10);
        let behind: Vec<_> = rfc.iter().zip(&linux).map(|(rfc, linux)| rfc - linux).collect();
        assert!(behind.iter().all(|segments| (-0.1..most).contains(segments)), "{rtt_ms} ms, {cwnd}: {behind:?}");
        assert!(behind.iter().sum::<f64>() > 4.0, "{rtt_ms} ms, {cwnd}: {behind:?}");
        assert!(linux.iter().all(|grown| grown.fract() == 0.0));
    }
}

#[test]
fn in_linux_the_estimate_of_reno_never_grows_by_one_a_round_trip() {
    let [linux, rfc] = growths(10, 20, 60);
    near(linux[59] - linux[29], 30.0 * 8.0 / 15.0, 0.07);
    near(rfc[59] - rfc[29], 30.0, 0.03);
}

#[test]
fn in_linux_cubic_follows_the_same_curve() {
    let [linux, rfc] = growths(100, 1000, 160);
    for (linux, rfc) in linux.iter().zip(&rfc) {
        assert!((linux - rfc).abs() < 15.0, "{linux} beside {rfc}");
    }
    assert!(linux[159] > 340.0);
}

#[test]
fn fast_convergence_aims_lower_after_a_second_loss() {
    for (fast, expected) in [(true, 700.0 * 1.7 / 2.0), (false, 700.0)] {
        let mut cc = Cubic::new(0.4, 0.7, fast, false);
        let mut clock = Clock::new(100, 1000, 1000);
        clock.lose(&mut cc);
        clock.lose(&mut cc);
        near(clock.segments(), 490.0, 0.0001);
        // The curve is flat at W_max: after K seconds the window is there.
        let k = libm::cbrt((expected - 490.0) / 0.4);
        let begin = clock.path.now;
        while clock.path.now.since(begin).as_secs_f64() < k {
            clock.round(&mut cc);
        }
        near(clock.segments(), expected, 0.02);
    }
}

#[test]
fn after_a_timeout_cubic_starts_from_where_slow_start_ended() {
    let mut cc = cubic();
    let mut clock = Clock::new(100, 1000, 1000);
    clock.time_out(&mut cc);
    while clock.window.in_slow_start() {
        clock.round(&mut cc);
    }
    // K = 0: convex from the beginning.
    let (begin, start) = (clock.path.now, clock.segments());
    (0..60).for_each(|_| clock.round(&mut cc));
    let t = clock.path.now.since(begin).as_secs_f64();
    near(clock.segments(), start + 0.4 * t * t * t, 0.02);
}

/// What has been SACKed counts in the flight, which may be twice the window where one loss follows another (RFC 9438, 4.6).
#[test]
fn cubic_gives_up_a_part_of_the_window_whatever_the_flight() {
    let mut clock = Clock::new(100, 1000, 1000);
    for (flight, threshold) in [(1000, 700), (2000, 700), (500, 350)] {
        clock.path.flight = flight * u64::from(MSS);
        assert_eq!(cubic().threshold(&clock.window, &clock.path), threshold * u64::from(MSS), "{flight}");
    }
}

#[test]
fn undo_puts_cubic_back_on_its_old_curve() {
    let (mut undone, mut untouched) = (cubic(), cubic());
    let mut clocks = [Clock::new(100, 1000, 1000), Clock::new(100, 1000, 1000)];
    for (clock, cc) in clocks.iter_mut().zip([&mut undone, &mut untouched]) {
        clock.lose(cc);
        (0..40).for_each(|_| clock.round(cc));
    }
    let before = clocks[0].window.clone();
    undone.save();
    clocks[0].lose(&mut undone);
    // A second segment times out within the repair of the first: its threshold must not become what undo returns to.
    clocks[0].time_out(&mut undone);
    clocks[0].window = before;
    undone.on_undo(&mut clocks[0].window, &clocks[0].path);
    for (clock, cc) in clocks.iter_mut().zip([&mut undone, &mut untouched]) {
        (0..40).for_each(|_| clock.round(cc));
    }
    assert_eq!(clocks[0].window.cwnd(), clocks[1].window.cwnd());
}

#[test]
fn the_curve_waits_for_an_application_that_pauses() {
    let mut cc = cubic();
    let mut clock = Clock::new(100, 1000, 1000);
    clock.lose(&mut cc);
    (0..20).for_each(|_| clock.round(&mut cc));
    let before = clock.segments();
    // 5 s of trickling, 5 s of silence: neither counts.
    clock.window_limited = false;
    (0..50).for_each(|_| clock.round(&mut cc));
    clock.path.now += Duration::from_secs(5);
    cc.on_sent(&Sent { now: clock.path.now, start: 0, len: MSS, transmission: 0, was_idle: true, wave: Option::None });
    clock.window_limited = true;
    assert_eq!(clock.segments(), before);
    (0..20).for_each(|_| clock.round(&mut cc));
    let k = libm::cbrt(1000.0 * 0.3 / 0.4);
    near(clock.segments(), 0.4 * (4.0 - k) * (4.0 - k) * (4.0 - k) + 1000.0, 0.015);
}

#[test]
fn hystart_leaves_slow_start_when_round_trips_grow() {
    for cc in [&mut NewReno::new(true) as &mut dyn CongestionControl, &mut Cubic::new(0.4, 0.7, true, true)] {
        let mut clock = Clock::new(40, 10, u64::MAX);
        (0..3).for_each(|_| clock.round(cc));
        let before = clock.segments();
        assert!((75.0..=80.0).contains(&before), "slow start doubles while round trips are steady: {before}");
        clock.rtt = Duration::from_millis(46); // more than an eighth above
        let mut rounds = 0;
        while clock.window.in_slow_start() {
            clock.round(cc);
            rounds += 1;
            assert!(rounds < 10);
        }
        // Up to five rounds with a quarter of the growth.
        assert!((4..=6).contains(&rounds), "{rounds}");
        assert!(clock.segments() < before * 4.5, "{}", clock.segments());
    }
}

#[test]
fn hystart_goes_back_to_slow_start_when_the_delay_was_a_spike() {
    let mut cc = NewReno::new(true);
    let mut clock = Clock::new(40, 10, u64::MAX);
    (0..3).for_each(|_| clock.round(&mut cc));
    clock.rtt = Duration::from_millis(46);
    clock.round(&mut cc);
    clock.rtt = Duration::from_millis(40);
    clock.round(&mut cc);
    let before = clock.segments();
    (0..6).for_each(|_| clock.round(&mut cc));
    assert!(clock.window.in_slow_start());
    assert!(clock.segments() > before * 60.0, "{before} -> {}", clock.segments());
}

#[test]
fn nothing_moves_a_fixed_window() {
    let mut cc = None::new(25);
    let mut clock = Clock::new(100, 2, u64::MAX);
    cc.on_established(&mut clock.window, &clock.path);
    assert_eq!(clock.segments(), 25.0);
    clock.round(&mut cc);
    clock.lose(&mut cc);
    assert_eq!(clock.segments(), 25.0);
    clock.time_out(&mut cc);
    assert_eq!(clock.segments(), 25.0);
}

#[test]
fn gaimd_needs_as_many_rounds_as_its_constants_say() {
    let mut cc = Gaimd::new(0.31, 0.875);
    let mut clock = Clock::new(100, 248, 2);
    clock.lose(&mut cc);
    assert_eq!(clock.segments(), 217.0);
    // (1 - beta) W / alpha = 0.125 * 248 / 0.31 round trips back.
    (0..100).for_each(|_| clock.round(&mut cc));
    near(clock.segments(), 248.0, 0.001);
    let before = clock.window.cwnd();
    clock.time_out(&mut cc);
    assert_eq!((clock.segments(), clock.window.ssthresh()), (1.0, before / 2), "a timeout halves");
}

/// What the filters make of 100 segments every 100 ms.
fn westwoods() -> [Westwood; 3] {
    let least = Duration::from_millis(50);
    [Filter::Westwood { tau: 0.5, m: 2.0 }, Filter::WestwoodPlus { gain: 0.9, least }, Filter::WestwoodLinux { least }]
        .map(Westwood::new)
}

#[test]
fn westwood_keeps_what_the_path_holds() {
    for mut cc in westwoods() {
        let mut clock = Clock::new(100, 100, 2);
        clock.window.set_cap(100_000);
        (0..60).for_each(|_| clock.round(&mut cc));
        // A random loss costs nothing: 1 Mbyte/s for 100 ms are the 100 segments.
        clock.lose(&mut cc);
        near(clock.segments(), 100.0, 0.01);
        // With 150 ms of queue the window falls to what fits without it.
        clock.rtt = Duration::from_millis(250);
        clock.window.set_cap(250_000);
        clock.window.set_cwnd(250_000);
        (0..60).for_each(|_| clock.round(&mut cc));
        clock.lose(&mut cc);
        near(clock.segments(), 100.0, 0.01);
        clock.time_out(&mut cc);
        near(clock.window.ssthresh() as f64, 100_000.0, 0.01);
    }
}

#[test]
fn westwood_returns_to_the_threshold_in_slow_start() {
    for mut cc in westwoods() {
        let mut clock = Clock::new(100, 100, 2);
        clock.window.set_cap(100_000);
        (0..60).for_each(|_| clock.round(&mut cc));
        clock.window.set_cwnd(20_000);
        clock.lose(&mut cc);
        assert_eq!(clock.segments(), 20.0, "a threshold above the window does not raise it at once");
        (0..3).for_each(|_| clock.round(&mut cc));
        near(clock.segments(), 100.0, 0.03);
    }
}

#[test]
fn westwood_without_an_estimate_halves() {
    for mut cc in westwoods() {
        let mut clock = Clock::new(100, 100, 2);
        clock.lose(&mut cc);
        assert_eq!(clock.segments(), 50.0);
    }
}

#[test]
fn whole_thresholds_are_rounded_down_and_two_segments_at_least() {
    let mut window = Window::new(MSS, 4600, u64::MAX);
    window.set_ssthresh(2700);
    assert_eq!(window.ssthresh(), 2700);
    window.set_whole_thresholds(true);
    for (octets, ssthresh) in [(2700, 2000), (4000, 4000), (3999, 3000), (1999, 2000)] {
        window.set_ssthresh(octets);
        assert_eq!(window.ssthresh(), ssthresh);
    }
}
