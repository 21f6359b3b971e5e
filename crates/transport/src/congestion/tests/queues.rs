//! Those that watch the queue: Vegas, Veno, Santa Cruz.

use super::*;

fn vegas() -> Vegas {
    Vegas::new([2.0, 4.0, 1.0], false)
}

#[test]
fn vegas_decides_by_its_backlog() {
    // 20 * 10 / 110 = 1.8 < alpha, 20 * 20 / 120 = 3.3, 20 * 26 / 126 = 4.1 > beta.
    for (rtt_ms, expected) in [(110, Some(21.0)), (120, Option::None), (126, Some(19.0))] {
        let mut cc = vegas();
        let mut clock = Clock::new(100, 20, 2);
        clock.round(&mut cc);
        clock.rtt = Duration::from_millis(rtt_ms);
        let mut decisions = Vec::new();
        for ack in 0..100 {
            clock.window.set_cwnd(20_000);
            clock.ack(&mut cc);
            // The round in which the delay began is over by then.
            if ack > 60 && clock.segments() != 20.0 {
                decisions.push(clock.segments());
            }
        }
        assert_eq!(decisions.first().copied(), expected, "{rtt_ms}: {decisions:?}");
    }
}

#[test]
fn vegas_settles_between_alpha_and_beta() {
    let (rate, base) = (1000.0, Duration::from_millis(100));
    for start in [20, 103, 180] {
        let mut cc = vegas();
        let mut clock = Clock::new(100, 50, 2);
        clock.queued_round(&mut cc, rate, base); // it has seen the empty path
        clock.window.set_cwnd(start * u64::from(MSS));
        (0..100).for_each(|_| clock.queued_round(&mut cc, rate, base));
        for _ in 0..50 {
            clock.queued_round(&mut cc, rate, base);
            let queued = clock.segments() - 100.0;
            assert!((2.0..=4.0).contains(&queued), "from {start}: {queued}");
        }
    }
}

#[test]
fn vegas_doubles_every_other_round_and_leaves_slow_start_by_the_backlog() {
    let (rate, base) = (1000.0, Duration::from_millis(100));
    let mut cc = vegas();
    let mut clock = Clock::new(100, 4, u64::MAX);
    let mut rounds = 0;
    while clock.window.in_slow_start() {
        let before = clock.segments();
        clock.queued_round(&mut cc, rate, base);
        assert!(clock.segments() <= 2.0 * before);
        rounds += 1;
    }
    // From 4 beyond 100 are five doublings with a rest after each; what exceeds it by less than a doubling loses an eighth.
    assert!((9..=13).contains(&rounds), "{rounds}");
    assert!((100.0 * 0.875..200.0 * 0.875).contains(&clock.segments()), "{}", clock.segments());
}

#[test]
fn vegas_gives_up_a_quarter_for_a_loss_and_half_for_a_timeout() {
    let mut cc = vegas();
    let mut clock = Clock::new(100, 40, 2);
    clock.lose(&mut cc);
    assert_eq!(clock.segments(), 30.0);
    clock.time_out(&mut cc);
    assert_eq!((clock.segments(), clock.window.ssthresh()), (1.0, 15_000));
}

#[test]
fn veno_grows_at_half_the_pace_with_a_queue() {
    // 20 * 17 / 117 = 2.906 < beta, 20 * 18 / 118 = 3.051.
    for (rtt_ms, growth) in [(117, 1.0), (118, 0.5)] {
        let mut cc = Veno::new(3.0);
        let mut clock = Clock::new(100, 20, 2);
        let mut hundred_acks = |clock: &mut Clock| {
            let mut grown = 0.0;
            for _ in 0..100 {
                clock.window.set_cwnd(20_000);
                clock.ack(&mut cc);
                grown += (clock.window.cwnd() - 20_000) as f64;
            }
            grown / 5000.0
        };
        near(hundred_acks(&mut clock), 1.0, 0.001);
        clock.rtt = Duration::from_millis(rtt_ms);
        hundred_acks(&mut clock);
        near(hundred_acks(&mut clock), growth, 0.001);
        clock.window.set_cwnd(20_000);
        clock.lose(&mut cc);
        assert_eq!(clock.segments(), 10.0, "congestion halves: what is random is the reaction's");
    }
}

/// Milliseconds beyond every test.
const NEVER: u64 = 1 << 40;

/// A first-in first-out bottleneck, segment by segment: what remains in its queue after `seconds`, least and most over the second half. One
/// acknowledgement acknowledges `per_ack` segments. After `lost_at` milliseconds losses empty the path and leave a window of two segments.
fn queue_of(cc: &mut dyn CongestionControl, seconds: u64, per_ack: usize, lost_at: u64) -> (u64, u64) {
    let (service, base) = (Duration::from_millis(1), Duration::from_millis(100));
    let octets = u64::from(MSS);
    let mut window = Window::new(MSS, 2 * octets, u64::MAX);
    let mut path = Path { mss: MSS, srtt: Some(base), ..Path::default() };
    let mut under_way = std::collections::VecDeque::new();
    let mut lost = false;
    let (mut free_at, mut least, mut most) = (Instant::ZERO, u64::MAX, 0);
    let end = Instant::ZERO + Duration::from_secs(seconds);
    while path.now < end {
        while path.nxt + octets <= path.una + window.cwnd() {
            free_at = free_at.max(path.now) + service;
            under_way.push_back((path.now, free_at + base - service));
            path.nxt += octets;
        }
        if path.now >= Instant::ZERO + Duration::from_secs(seconds / 2) {
            let waiting = free_at.since(path.now).as_nanos() / service.as_nanos();
            (least, most) = (least.min(waiting), most.max(waiting));
        }
        if !lost && path.now >= Instant::ZERO + Duration::from_millis(lost_at) {
            lost = true;
            window.set_ssthresh(2 * octets);
            window.set_cwnd(2 * octets);
            under_way.clear();
            path.now += Duration::from_secs(1);
            path.una = path.nxt;
            continue;
        }
        let acknowledged = per_ack.min(under_way.len());
        let (sent, acked) = under_way.drain(..acknowledged).next_back().unwrap();
        let delivered = acknowledged as u64 * octets;
        path.now = acked;
        path.una += delivered;
        path.delivered += delivered;
        (path.flight, path.cwnd, path.ssthresh) = (path.nxt - path.una, window.cwnd(), window.ssthresh());
        let rtt = acked.since(sent);
        let ack = Ack {
            path: &path,
            acked: delivered,
            delivered,
            rtt: Some(rtt),
            delay: Some(rtt),
            newest_sent_at: Some(sent),
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: Option::None,
            options: &Options::default(),
        };
        cc.on_ack(&mut window, &ack);
    }
    (least, most)
}

#[test]
fn who_watches_the_queue_keeps_it_short() {
    let (least, most) = queue_of(&mut vegas(), 60, 1, NEVER);
    assert!(least >= 1 && most <= 5, "vegas: {least} to {most}");
    for n_op in [3.0, 8.0] {
        let (least, most) = queue_of(&mut SantaCruz::new(n_op, 0.5), 60, 1, NEVER);
        let target = n_op as u64;
        // One more is in service, and the first segment has none to be compared with.
        assert!(least >= target && most <= target + 3, "santa-cruz for {n_op}: {least} to {most}");
    }
    let (_, most) = queue_of(&mut Veno::new(3.0), 60, 1, NEVER);
    assert!(most > 100, "veno fills it: {most}");
}

/// With delayed acknowledgements a window of two segments has one acknowledgement a round.
#[test]
fn santa_cruz_grows_again_from_two_segments() {
    for per_ack in [1, 2] {
        for lost_at in [500, 600, 700, 1000, 5000, 40_000] {
            let (least, most) = queue_of(&mut SantaCruz::new(3.0, 0.5), 120, per_ack, lost_at);
            assert!(least >= 3 && most <= 6, "{per_ack} an acknowledgement, losses after {lost_at} ms: {least} to {most}");
        }
    }
}

/// Eight segments, one each millisecond from the `start`-th on, come back at the same pace after `trip` milliseconds. Returns by how many segments
/// the window grew. Not `timed`: repetitions, whose acknowledgements may be those of the originals.
fn eight(cc: &mut SantaCruz, clock: &mut Clock, start: u64, trip: u64, timed: bool) -> f64 {
    let (before, octets) = (clock.segments(), u64::from(MSS));
    clock.path.nxt = clock.path.una + 8 * octets;
    for n in 0..8 {
        let sent = Instant::ZERO + Duration::from_millis(start + n);
        clock.path.now = sent + Duration::from_millis(trip);
        clock.path.una += octets;
        clock.path.delivered += octets;
        let delay = timed.then_some(Duration::from_millis(trip));
        let ack = Ack {
            path: &clock.path,
            acked: octets,
            delivered: octets,
            rtt: delay,
            delay,
            newest_sent_at: Some(sent),
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: Option::None,
            options: &Options::default(),
        };
        cc.on_ack(&mut clock.window, &ack);
    }
    clock.segments() - before
}

/// Each round decides on the one before.
#[test]
fn santa_cruz_decides_nothing_on_a_round_that_says_nothing() {
    let (mut cc, mut clock) = (SantaCruz::new(3.0, 0.5), Clock::new(50, 20, 2));
    let mut round = |start, trip, timed| eight(&mut cc, &mut clock, start, trip, timed);
    assert_eq!([round(0, 50, true), round(8, 50, true)], [0.0, 1.0], "an empty queue");
    // 20 ms longer, at a segment a millisecond: 20 wait.
    assert_eq!([round(16, 70, true), round(24, 70, false), round(32, 70, true)], [1.0, -1.0, 0.0]);
    assert_eq!(round(40, 70, true), -1.0);
}

/// A round before a timeout, with what waits then, and three after it, each of `trip` milliseconds: by how many segments the window grew in these.
fn over_a_timeout(before: [u64; 2], trip: u64) -> [f64; 3] {
    let (mut cc, mut clock) = (SantaCruz::new(3.0, 0.5), Clock::new(50, 20, 2));
    for (nth, trip) in [before[0], before[0], before[1], before[1]].into_iter().enumerate() {
        eight(&mut cc, &mut clock, 8 * nth as u64, trip, true);
    }
    clock.time_out(&mut cc);
    clock.window.set_cwnd(20 * u64::from(MSS));
    clock.window.set_ssthresh(0);
    [0, 1, 2].map(|nth| eight(&mut cc, &mut clock, 1000 + 8 * nth, trip, true))
}

#[test]
fn santa_cruz_does_not_measure_over_a_timeout() {
    // Others have filled the path meanwhile; none of these 50 ms is ours.
    assert_eq!(over_a_timeout([50, 50], 100), [0.0, 1.0, 1.0]);
    // The 20 segments that waited have drained.
    assert_eq!(over_a_timeout([50, 70], 50), [0.0, 1.0, 1.0]);
}

/// RFC 3465, 2.3: what is acknowledged after a timeout may have been sent before it, so that each acknowledgement grows the window by one
/// segment. Later slow starts grow by two again.
#[test]
fn santa_cruz_begins_again_one_segment_an_acknowledgement() {
    let (mut cc, mut clock) = (SantaCruz::new(3.0, 0.5), Clock::new(100, 4, u64::MAX));
    clock.per_ack = 2;
    let next = |cc: &mut SantaCruz, clock: &mut Clock| {
        clock.ack(cc);
        clock.segments()
    };
    assert_eq!([0; 2].map(|_| next(&mut cc, &mut clock)), [6.0, 8.0]);
    clock.time_out(&mut cc);
    assert_eq!((clock.segments(), clock.window.ssthresh()), (1.0, 4 * u64::from(MSS)));
    assert_eq!([0; 3].map(|_| next(&mut cc, &mut clock)), [2.0, 3.0, 4.0]);
    next(&mut cc, &mut clock);
    clock.window.set_ssthresh(u64::MAX);
    let reached = clock.segments();
    assert_eq!(next(&mut cc, &mut clock), reached + 2.0);
}
