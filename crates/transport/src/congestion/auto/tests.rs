//! What delay and losses tell, by hand.

use super::losses::Losses;
use super::queue::{Others, Queue};
use super::{Auto, Mode, Settings, ALONE, FAST_PACE, LOOK, PACE};
use crate::congestion::{CongestionControl as _, Window};
use crate::path::{Ack, LostSegment, Path, RateSample};
use crate::segment::Options;
use crate::time::{Duration, Instant};

fn told(queue: &mut Queue, delays_ms: &[u64]) {
    let options = Options::default();
    for &ms in delays_ms {
        let path = Path { now: Instant::ZERO + Duration::from_secs(1), ..Path::default() };
        queue.on_ack(&Ack { delay: Some(Duration::from_millis(ms)), ..Ack::new(&path, &options) });
    }
}

const UNIT: Duration = Duration::from_millis(1);

#[test]
fn a_loss_at_a_full_queue_speaks_for_congestion_and_one_at_an_empty_queue_does_not() {
    let mut queue = Queue::new(Duration::from_secs(30));
    assert!(queue.on_lost(UNIT, Others::Unseen), "nothing is known: it yields");
    told(&mut queue, &[20; 20]);
    told(&mut queue, &[40; 20]);
    // The mean is 30, the longest 40: full from 35 on.
    assert!(queue.on_lost(UNIT, Others::Unseen));
    told(&mut queue, &[34; 8]);
    assert!(!queue.on_lost(UNIT, Others::Unseen));
    told(&mut queue, &[37; 8]);
    assert!(queue.on_lost(UNIT, Others::Unseen));
    assert!(!queue.on_lost(UNIT * 9, Others::Unseen), "17 ms are less than two segments of 9 ms");
}

#[test]
fn beside_others_a_loss_at_a_queue_longer_than_its_mean_speaks_for_congestion() {
    let mut queue = Queue::new(Duration::from_secs(30));
    told(&mut queue, &[20; 20]);
    told(&mut queue, &[40; 20]);
    told(&mut queue, &[33; 8]);
    assert!(!queue.on_lost(UNIT, Others::Unseen) && queue.on_lost(UNIT, Others::Seen), "the mean is 31, the longest 40");
    told(&mut queue, &[29; 8]);
    assert!(!queue.on_lost(UNIT, Others::Seen));
}

#[test]
fn where_others_are_suspected_one_loss_at_a_full_queue_is_enough() {
    let mut queue = Queue::new(Duration::from_secs(30));
    told(&mut queue, &[20; 40]);
    told(&mut queue, &[40; 40]);
    for _ in 0..8 {
        told(&mut queue, &[30; 8]);
        assert!(!queue.on_lost(UNIT, Others::Suspected), "at the mean");
    }
    told(&mut queue, &[34; 8]);
    assert!(!queue.on_lost(UNIT, Others::Suspected), "above the mean, but not full");
    told(&mut queue, &[40; 8]);
    assert!(!queue.on_lost(UNIT, Others::Unseen) && queue.on_lost(UNIT, Others::Suspected));
}

#[test]
fn losses_that_come_at_any_queue_are_not_believed_when_one_meets_a_full_one() {
    let mut queue = Queue::new(Duration::from_secs(30));
    told(&mut queue, &[20; 40]);
    told(&mut queue, &[40; 40]);
    for _ in 0..8 {
        told(&mut queue, &[30; 8]);
        assert!(!queue.on_lost(UNIT, Others::Unseen), "at the mean");
    }
    told(&mut queue, &[40; 8]);
    assert!(!queue.on_lost(UNIT, Others::Unseen), "one of nine says little");
    assert!((0..9).any(|_| queue.on_lost(UNIT, Others::Unseen)), "(7/8)^9 = 0.3: ten in a row do");
}

#[test]
fn a_round_has_its_least_delay_and_eight_samples_show_what_stands() {
    let mut queue = Queue::new(Duration::from_secs(30));
    told(&mut queue, &[30, 20, 40]);
    assert_eq!((queue.standing(), queue.end_round(), queue.end_round()), (None, Some(Duration::from_millis(20)), None));
    told(&mut queue, &[50, 40, 60, 50, 50, 50, 50, 50]);
    assert_eq!((queue.standing(), queue.base()), (Some(Duration::from_millis(40)), Some(Duration::from_millis(20))));
}

#[test]
fn unexplained_losses_are_forgiven_up_to_a_twentieth_of_those_explained() {
    let mut losses = Losses::new(0.05);
    losses.on_delivered(1_000_000);
    (0..40).for_each(|_| losses.on_excused(1000));
    losses.on_lost(1000, true);
    losses.on_lost(1000, true);
    assert!(!losses.congested(true, 0), "2000 of 40,000");
    assert!(losses.corruption_prevails());
    losses.on_lost(1000, true);
    assert!(losses.congested(true, 0) && !losses.congested(false, 0), "but not before the answer before has had its effect");
    losses.answered();
    assert!(!losses.congested(true, 0) && losses.corruption_prevails(), "42 corrupted are not forgotten at once");
    (0..5).for_each(|_| losses.answered());
    assert!(!losses.corruption_prevails(), "half of them at each answer: 42 / 64");
}

#[test]
fn a_fifth_of_a_round_lost_is_congestion_whatever_the_delay() {
    let mut losses = Losses::new(0.05);
    losses.on_delivered(80_000);
    losses.on_lost(20_000, false);
    assert!(!losses.congested(true, 0), "20 % and no more");
    losses.on_lost(1000, false);
    assert!(losses.congested(true, 0));
    losses.age();
    losses.on_delivered(1000);
    losses.on_lost(11_000, false);
    assert!(!losses.congested(true, 0), "a few segments say nothing");
}

#[test]
fn most_of_what_a_round_has_told_so_far_may_be_one_burst_of_errors() {
    let mut losses = Losses::new(0.05);
    losses.on_delivered(23_000);
    losses.on_lost(59_000, false);
    assert!(!losses.congested(true, 1_200_000), "5 % of the window");
    assert!(losses.congested(true, 290_000), "20.3 %");
}

#[test]
fn three_losses_in_a_row_are_one_in_a_small_window_and_an_eighth_of_it_in_a_large_one() {
    let mut losses = Losses::new(0.05);
    (0..2).for_each(|_| losses.on_lost(1000, false));
    losses.on_excused(1000);
    assert!(!losses.in_a_row(10_000, 1000), "what is explained is none of them");
    losses.on_delivered(8000);
    (0..2).for_each(|_| losses.on_lost(1000, false));
    assert!(!losses.in_a_row(10_000, 1000), "eight that arrived make two lost a matter of chance");
    losses.on_lost(1000, false);
    assert!(losses.in_a_row(24_000, 1000) && !losses.in_a_row(32_000, 1000));
    losses.answered();
    assert!(!losses.in_a_row(10_000, 1000));
}

/// Of what a window of a thousand segments sends one in ten is lost at random, and then every second one.
#[test]
fn a_tenth_lost_at_random_is_never_in_a_row_and_a_half_soon_is() {
    let mut losses = Losses::new(0.05);
    let mut state = 1u64;
    for _ in 0..100_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if state >> 33 < (1 << 31) / 10 {
            losses.on_lost(1000, false);
        } else {
            losses.on_delivered(1000);
        }
        assert!(!losses.in_a_row(1_000_000, 1000));
    }
    let sent = (1..).step_by(2).find(|_| {
        losses.on_delivered(1000);
        losses.on_lost(1000, false);
        losses.in_a_row(1_000_000, 1000)
    });
    // Of two segments 1 - 1/4 is too much.
    assert!(sent.is_some_and(|sent| (300..350).contains(&sent)), "{sent:?}");
}

#[test]
fn slow_start_goes_on_through_stray_losses_and_ends_where_many_are_lost_in_a_row() {
    let mut control = Auto::new(Settings::default());
    let mut window = Window::new(1000, 20_000, u64::MAX);
    let options = Options::default();
    let mut path = Path { mss: 1000, una: 1, nxt: 100_001, flight: 20_000, ..Path::default() };
    control.on_established(&mut window, &path);
    for (lost, goes_on) in [(0, true), (1, true), (2, true), (8, false)] {
        (0..lost).for_each(|_| control.losses.on_lost(1000, false));
        path.una += 10_000;
        control.on_ack(&mut window, &Ack { acked: 10_000, delivered: 10_000, ..Ack::new(&path, &options) });
        assert_eq!(control.threshold(&window, &path) > window.cwnd(), goes_on, "{lost} lost at once");
    }
}

/// Four of ten segments that left at once are lost; then four of those after them.
#[test]
fn losses_of_what_left_before_the_first_acknowledgement_do_not_end_slow_start() {
    let mut control = Auto::new(Settings::default());
    let mut window = Window::new(1000, 10_000, u64::MAX);
    let options = Options::default();
    let mut path = Path { mss: 1000, una: 1, nxt: 1, ..Path::default() };
    control.on_established(&mut window, &path);
    path.nxt = 20_001;
    let mut lose_from = |start: u64| {
        for n in 0..4 {
            let lost = LostSegment { start: start + 1000 * n, octets: 1000, ..LostSegment::default() };
            control.on_lost(&window, &lost, &path);
        }
        control.on_ack(&mut window, &Ack { delivered: 1000, ..Ack::new(&path, &options) });
        (window.in_slow_start(), window.cwnd())
    };
    assert_eq!(lose_from(6001), (true, 7000));
    assert!(!lose_from(11_001).0);
}

#[test]
fn what_is_corrupted_counts_as_carried() {
    let mut losses = Losses::new(0.05);
    losses.on_delivered(80_000);
    losses.on_excused(15_000);
    losses.on_lost(5000, false);
    assert!((losses.corrupted_share() - 0.25).abs() < 1e-9);
    assert!((losses.explained_share() - 0.1875).abs() < 1e-9);
}

#[test]
fn a_mark_reduces_the_window_once_a_round_trip() {
    let mut control = Auto::new(Settings::default());
    let mut window = Window::new(1000, 100_000, 100_000);
    let options = Options::default();
    let mut path = Path { mss: 1000, una: 1, nxt: 100_001, flight: 100_000, ..Path::default() };
    control.on_established(&mut window, &path);
    control.on_ack(&mut window, &Ack { ece: true, ..Ack::new(&path, &options) });
    assert_eq!(window.cwnd(), 70_000);
    path.una = 50_001;
    control.on_ack(&mut window, &Ack { ece: true, ..Ack::new(&path, &options) });
    assert_eq!(window.cwnd(), 70_000, "the answer is still on its way");
    (path.una, path.nxt, path.flight) = (100_001, 170_001, 70_000);
    control.on_ack(&mut window, &Ack { ece: true, ..Ack::new(&path, &options) });
    assert_eq!(window.cwnd(), 49_000);
}

/// A control of a connection whose path of 50 ms carries a segment every 12 ms, with so many segments in its window: it ends rounds of this delay and
/// tells the window after each.
fn rounds_at(segments: u64, delay_ms: u64, rounds: u64) -> (Auto, Vec<u64>) {
    const MSS: u64 = 1000;
    let mut control = Auto::new(Settings::default());
    let mut window = Window::new(MSS as u32, segments * MSS, segments * MSS);
    let options = Options::default();
    let mut path = Path { mss: MSS as u32, una: 1, nxt: 1, ..Path::default() };
    control.on_established(&mut window, &path);
    let mut told = Vec::new();
    for round in 0..=rounds {
        let acked = path.nxt - path.una;
        path.una = path.nxt;
        path.nxt += window.cwnd();
        path.flight = window.cwnd();
        path.now += Duration::from_millis(delay_ms);
        path.srtt = Some(Duration::from_millis(delay_ms));
        let delay = Duration::from_millis(if round == 0 { 50 } else { delay_ms });
        let rate = if round == 0 { MSS * 1000 / 12 } else { acked * 1000 / delay_ms };
        let sample = RateSample { rate, prior_delivered: path.delivered, ..RateSample::default() };
        path.delivered += acked;
        let ack = Ack {
            acked,
            delivered: acked,
            delay: Some(delay),
            sample: Some(&sample),
            window_limited: true,
            ..Ack::new(&path, &options)
        };
        control.on_ack(&mut window, &ack);
        told.push(window.cwnd() / MSS);
    }
    (control, told)
}

#[test]
fn a_window_of_a_few_segments_grows_whatever_the_delay_and_delay_does_not_bring_it_back() {
    // A lone segment waits 40 ms for its acknowledgement.
    let (_, told) = rounds_at(2, 90, 30);
    assert!(told[1] == 2 && told[10..].iter().all(|&segments| segments == 4), "{told:?}");
    let (_, told) = rounds_at(9, 200, 30);
    assert!(told[2] < 9 && told.iter().all(|&segments| segments >= 4), "{told:?}");
}

#[test]
fn others_are_seen_with_a_window_of_a_few_segments_too() {
    let (mut control, _) = rounds_at(4, 300, 3);
    assert!(!control.competes(), "three rounds say nothing yet");
    // A queue that no cut shortens: the delay goes on to grow.
    let mut window = Window::new(1000, 4000, 4000);
    let options = Options::default();
    let mut path = Path { mss: 1000, una: 1 << 20, nxt: (1 << 20) + 1, ..Path::default() };
    for round in 0..20u64 {
        path.una = path.nxt;
        path.nxt += window.cwnd();
        path.now = Instant::ZERO + Duration::from_millis(2000 + 400 * round);
        let delay = Some(Duration::from_millis(300 + 10 * round));
        let sample = RateSample { rate: 13_000, prior_delivered: path.delivered, ..RateSample::default() };
        path.delivered += 4000;
        let sample = Some(&sample);
        let ack = Ack { acked: 4000, delivered: 4000, delay, sample, window_limited: true, ..Ack::new(&path, &options) };
        control.on_ack(&mut window, &ack);
    }
    assert!(control.competes());
}

#[test]
fn a_pair_is_no_queue_as_long_as_the_window_does_not_fill_the_path() {
    // 62 ms carry 5.2 segments: 50 ms of the path, and 12 for the first of a pair.
    let (_, told) = rounds_at(4, 62, 12);
    assert!(matches!(told.last(), Some(6 | 7)), "grows at a segment of delay, by the step of the moment: {told:?}");
    let (_, told) = rounds_at(6, 62, 12);
    assert!(told.iter().all(|&segments| segments == 6), "and no more once the path is full: {told:?}");
}

/// After a timeout there is no delay that tells of a queue until segments have come through the path anew: the retransmissions give none.
#[test]
fn delays_from_before_a_timeout_do_not_end_the_slow_start_after_it() {
    let (mut control, _) = rounds_at(40, 50, 3);
    let mut window = Window::new(1000, 40_000, 40_000);
    let options = Options::default();
    let mut path =
        Path { mss: 1000, una: 1 << 20, nxt: (1 << 20) + 40_000, now: Instant::ZERO + Duration::from_secs(1), ..Path::default() };
    for _ in 0..8 {
        control.queue.on_ack(&Ack { delay: Some(Duration::from_millis(150)), ..Ack::new(&path, &options) });
    }
    let threshold = control.timeout_threshold(&window, &path);
    window.set_ssthresh(threshold);
    window.set_cwnd(1000);
    control.on_timeout(&mut window, &path);
    for _ in 0..15 {
        path.una += 1000;
        control.on_ack(&mut window, &Ack { acked: 1000, delivered: 1000, ..Ack::new(&path, &options) });
    }
    assert_eq!((window.cwnd(), window.ssthresh()), (16_000, threshold));
}

/// With losses it takes round trips until everything is acknowledged in order, but what arrives tells how large the window may be.
#[test]
fn the_window_grows_while_a_hole_is_repaired() {
    const MSS: u64 = 1000;
    let mut control = Auto::new(Settings::default());
    let mut window = Window::new(MSS as u32, 20 * MSS, 20 * MSS);
    let options = Options::default();
    let mut path = Path { mss: MSS as u32, una: 1, nxt: 1 + 20 * MSS, ..Path::default() };
    control.on_established(&mut window, &path);
    for _ in 0..20 {
        path.now += Duration::from_millis(50);
        path.srtt = Some(Duration::from_millis(50));
        let sample = RateSample { rate: 20 * window.cwnd(), prior_delivered: path.delivered, ..RateSample::default() };
        let delivered = window.cwnd();
        path.delivered += delivered;
        path.nxt += delivered;
        path.flight = delivered;
        let delay = Some(Duration::from_millis(50));
        let ack = Ack { delivered, delay, sample: Some(&sample), window_limited: true, ..Ack::new(&path, &options) };
        control.on_ack(&mut window, &ack);
    }
    assert!(window.cwnd() > 100 * MSS, "{}", window.cwnd());
}

/// A path of 50 ms that carries a segment a millisecond, and whose queue has no end.
struct Shared {
    control: Auto,
    window: Window,
    path: Path,
    /// The application uses the window.
    limited: bool,
}

impl Shared {
    const MSS: u64 = 1000;

    fn new() -> Self {
        let window = Window::new(Self::MSS as u32, 10 * Self::MSS, u64::MAX);
        let path = Path { mss: Self::MSS as u32, una: 1, nxt: 1 + 10 * Self::MSS, ..Path::default() };
        let mut shared = Self { control: Auto::new(Settings::default()), window, path, limited: true };
        shared.control.on_established(&mut shared.window, &shared.path);
        shared
    }

    fn segments(&self) -> u64 {
        self.window.cwnd() / Self::MSS
    }

    /// A round, while others have so many segments under way.
    fn round(&mut self, others: u64) {
        let options = Options::default();
        let delay = Duration::from_millis((if self.limited { self.segments() } else { 1 } + others).max(50));
        let rate = (self.window.cwnd() as f64 / delay.as_secs_f64()) as u64;
        let Self { control, window, path, limited } = self;
        path.now += delay;
        path.srtt = Some(delay);
        let (end, prior_delivered) = (path.nxt, path.delivered);
        while path.una < end {
            path.una += Self::MSS;
            path.delivered += Self::MSS;
            path.flight = window.cwnd();
            path.nxt = path.nxt.max(path.una + window.cwnd());
            let sample = RateSample { rate, prior_delivered, ..RateSample::default() };
            let (delay, sample) = (Some(delay), Some(&sample));
            let ack = Ack {
                acked: Self::MSS,
                delivered: Self::MSS,
                delay,
                sample,
                window_limited: *limited,
                ..Ack::new(path, &options)
            };
            control.on_ack(window, &ack);
        }
    }

    /// They do not give way. Rounds until that is seen.
    fn meet(&mut self, others: u64) {
        let rounds = (0..20).find(|_| {
            self.round(others);
            self.control.competes()
        });
        assert!(rounds.is_some(), "{others} are not seen");
    }
}

#[test]
fn where_others_had_the_queue_first_the_window_grows_to_two_fifths_of_the_link() {
    for others in [100, 200, 400] {
        let mut path = Shared::new();
        path.round(0);
        // Their queue ends slow start.
        path.round(others);
        let had = path.segments();
        path.meet(others);
        let rounds = (0..20).take_while(|_| {
            path.round(others);
            path.control.probe.is_some()
        });
        let rounds = rounds.count();
        // From there on by CUBIC's rules.
        let share = path.segments() as f64 / (path.segments() + others) as f64;
        assert!(had < others / 4 && rounds < 20 && (0.37..0.43).contains(&share), "{others}: {had}, {share} after {rounds}");
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow_beside_others() {
    let mut path = Shared::new();
    (0..2).for_each(|_| path.round(0));
    path.meet(60);
    while path.window.in_slow_start() {
        path.round(60);
    }
    let had = path.segments();
    path.limited = false;
    // The delay does not follow what is not sent.
    (0..30).for_each(|_| path.round(60));
    assert_eq!(path.segments(), had);
}

/// Whether it grows beyond what losses left, when the queue overflows in so many rounds from where it first has so many segments.
fn goes_on_after_overflows(times: u32, segments: u64) -> bool {
    let mut path = Shared::new();
    (0..2).for_each(|_| path.round(0));
    path.meet(60);
    while path.segments() < segments {
        path.round(60);
    }
    for round in 0..times {
        (0..round).for_each(|_| path.round(60));
        path.control.reduce(&mut path.window, &path.path, true);
    }
    let left = path.segments();
    (0..12).for_each(|_| path.round(60));
    assert!(left >= 8, "{left}");
    path.segments() > 2 * left + 10
}

#[test]
fn where_the_queue_of_others_overflows_before_it_has_grown_the_window_goes_on_after_the_repair() {
    assert!(goes_on_after_overflows(1, 14), "on the way back");
    assert!(goes_on_after_overflows(1, 21), "at what it had");
    assert!(goes_on_after_overflows(2, 21), "for longer than a round");
    assert!(!goes_on_after_overflows(1, 28), "beyond that");
}

#[test]
fn where_it_had_the_path_first_the_window_goes_back_to_what_it_was() {
    let mut path = Shared::new();
    (0..20).for_each(|_| path.round(0));
    let had = path.segments();
    assert!((45..60).contains(&had), "{had}");
    path.meet(60);
    (0..6).for_each(|_| path.round(60));
    // CUBIC's growth, and no step of a half.
    assert!((had..had * 4 / 3).contains(&path.segments()), "{had}, {}", path.segments());
}

#[test]
fn where_corruption_prevails_it_grows_no_further_than_it_had() {
    let mut path = Shared::new();
    path.round(0);
    path.round(200);
    let had = path.segments();
    path.meet(200);
    for _ in 0..40 {
        path.control.on_excused(2 * Shared::MSS);
        path.round(200);
    }
    // Neither to two thirds of what they have nor as CUBIC.
    assert!(path.segments() <= had + 1, "{had}, {}", path.segments());
    (0..40).for_each(|_| path.round(200));
    assert!(path.segments() > had + 10, "once it is rare it grows: {had}, {}", path.segments());
}

#[test]
fn the_latest_delay_sets_the_pace_where_srtt_remembers_a_longer_queue() {
    let mut shared = Shared::new();
    (0..4).for_each(|_| shared.round(0));
    let Shared { control, window, path, .. } = &mut shared;
    let options = Options::default();
    path.srtt = Some(Duration::from_millis(200));
    // Told, and what the window is paced over, in milliseconds.
    for (told, over) in [(Some(60), 60), (Some(300), 200), (None, 200)] {
        let delay = told.map(Duration::from_millis);
        control.on_ack(window, &Ack { acked: Shared::MSS, delivered: Shared::MSS, delay, ..Ack::new(path, &options) });
        let window_s = control.separation(window.cwnd() as u32).expect("it paces").as_secs_f64() * PACE;
        assert!((window_s * 1e3 - f64::from(over)).abs() < 0.1, "{told:?}: {window_s} s");
    }
}

#[test]
fn beside_others_on_a_slow_link_it_goes_by_acknowledgements_and_in_pairs() {
    let mut shared = Shared::new();
    (0..4).for_each(|_| shared.round(0));
    let Shared { control, window, path, .. } = &mut shared;
    assert!(!window.in_slow_start());
    // A millisecond holds three segments of the faster pace where the round trip has two thirds of a millisecond for each of the window.
    let between = window.cwnd() * 2000 / 3 / Shared::MSS;
    let (slow, fast) = (between + 50, between - 50);
    for (others, trip_us, pace, least) in
        [(Others::Seen, slow, FAST_PACE, Some(2)), (Others::Seen, fast, PACE, Some(2)), (Others::Suspected, slow, PACE, None)]
    {
        control.mode = Mode::Competing { others, left: LOOK, quiet: 0 };
        path.srtt = Some(Duration::from_micros(trip_us));
        control.set_pace(window, path, None);
        let window_us = control.separation(window.cwnd() as u32).expect("it paces").as_secs_f64() * 1e6;
        assert!((window_us * pace - trip_us as f64).abs() < 1.0, "{others:?}, {trip_us} us: {window_us}");
        assert_eq!(control.least_burst(), least, "{others:?}");
    }
    control.mode = ALONE;
    assert_eq!(control.least_burst(), None);
}

#[test]
fn an_episode_that_took_nothing_gives_nothing_back() {
    let mss = 1000;
    let mut window = Window::new(mss, 100_000, 100_000);
    let mut auto = Auto::new(Settings::default());
    let options = Options::default();
    let path = Path { mss, nxt: 100_000, flight: 100_000, now: Instant::ZERO + Duration::from_secs(1), ..Path::default() };
    auto.save();
    auto.on_ack(&mut window, &Ack { ece: true, ..Ack::new(&path, &options) });
    let reduced = window.cwnd();
    assert!(reduced < 100_000, "a mark is congestion");
    let later = Path { una: 200_000, nxt: 300_000, now: Instant::ZERO + Duration::from_secs(9), ..path.clone() };
    auto.save();
    auto.on_undo(&mut window, &later);
    assert_eq!(window.cwnd(), reduced);
    // Of that which took something it does.
    auto.save();
    auto.on_ack(&mut window, &Ack { ece: true, ..Ack::new(&later, &options) });
    assert!(window.cwnd() < reduced);
    auto.on_undo(&mut window, &later);
    assert_eq!(window.cwnd(), reduced);
}
