//! What both versions share, by hand.

use super::*;
use crate::congestion::{CongestionControl, Window};
use crate::path::LostSegment;
use crate::segment::Options;

#[test]
fn a_pipe_is_full_after_three_rounds_with_little_growth() {
    let mut full = FullPipe::default();
    let rounds = [100, 200, 249, 250, 300, 310, 312];
    assert_eq!(
        rounds.map(|rate| full.on_round(rate)),
        [false, false, false, false, false, false, true],
        "250 is a quarter more than 200"
    );
}

#[test]
fn a_round_ends_with_what_left_after_its_beginning() {
    let mut rounds = Rounds::default();
    let mut over = |prior_delivered, delivered| {
        rounds.on_sample(&RateSample { prior_delivered, ..RateSample::default() }, delivered);
        rounds.over
    };
    assert!(over(0, 1000));
    assert!(!over(0, 2000) && !over(999, 3000));
    assert!(over(1000, 4000));
    assert!(!over(3999, 5000));
}

#[test]
fn the_pace_only_grows_until_the_pipe_is_full() {
    let mut pace = Pace::default();
    pace.begin(10_000, 2.0, Some(Duration::from_millis(100)));
    assert_eq!(pace.rate, 200_000);
    pace.set(50_000, 1.0, false);
    assert_eq!(pace.rate, 200_000);
    pace.set(50_000, 1.0, true);
    assert_eq!((pace.rate, pace.separation(990)), (49_500, Some(Duration::from_millis(20))));
    assert_eq!((pace.quantum(1000), Pace { rate: 3_000_000, ..pace }.quantum(1000)), (1000, 3000));
}

#[test]
fn what_comes_together_counts_beyond_what_the_bandwidth_delivers() {
    let mut together = Together::default();
    let mut path = Path { cwnd: 100_000, ..Path::default() };
    let mut ack = |ms, delivered, round| {
        path.now = Instant::ZERO + Duration::from_millis(ms);
        let options = Options::default();
        together.on_ack(&Ack { delivered, ..Ack::new(&path, &options) }, 100_000, round, true);
        together.extra()
    };
    assert_eq!(ack(100, 5000, false), 5000);
    // 100 octets a millisecond: 1000 of the 3000 were to be expected.
    assert_eq!(ack(110, 3000, false), 7000);
    // After 90 ms more than that was to be expected: it begins anew.
    assert_eq!(ack(200, 1000, true), 7000);
    for _ in 0..8 {
        assert_eq!(ack(300, 0, true), 7000);
    }
    assert_eq!(ack(300, 0, true), 1000, "ten rounds later");
}

#[test]
fn chances_are_even_and_those_of_the_connection() {
    let of = |random| Chances::new(&Path { random, ..Path::default() });
    let mut counts = [0; 7];
    let mut chances = of(3);
    for _ in 0..70_000 {
        counts[chances.below(7) as usize] += 1;
    }
    // Four standard deviations of a count with p = 1/7.
    assert!(counts.iter().all(|n: &i32| (n - 10_000).abs() < 371), "{counts:?}");
    let draws = |mut chances: Chances| [(); 4].map(|()| chances.draw());
    assert_eq!(draws(of(3)), draws(of(3)));
    assert_ne!(draws(of(3)), draws(of(4)));
}

/// A path of 100 ms that delivers 100 segments of 1000 octets a second, told to a sender acknowledgement by acknowledgement.
struct Told<C> {
    control: C,
    window: Window,
    path: Path,
    lost: u64,
}

const SEGMENT: u64 = 1000;
const TRIP: Duration = Duration::from_millis(100);

impl<C: CongestionControl> Told<C> {
    fn new(mut control: C) -> Self {
        let path = Path { srtt: Some(TRIP), mss: SEGMENT as u32, random: 7, pipe: 10 * SEGMENT, ..Path::default() };
        let mut window = Window::new(SEGMENT as u32, 10 * SEGMENT, u64::MAX);
        control.on_established(&mut window, &path);
        Self { control, window, path, lost: 0 }
    }

    /// A round trip goes by, at whose end a segment that left at its beginning is acknowledged, with this rate and so much outstanding before. So much
    /// was lost in it.
    fn round(&mut self, rate: u64, outstanding: u64, lost: u64) {
        self.round_of(rate, outstanding, lost, TRIP);
    }

    fn round_of(&mut self, rate: u64, outstanding: u64, lost: u64, trip: Duration) {
        let prior_delivered = self.path.delivered;
        self.path.now = self.path.now + trip + Duration::from_nanos(1);
        self.path.delivered += SEGMENT;
        self.path.pipe = outstanding - SEGMENT;
        self.path.cwnd = self.window.cwnd();
        self.lost += lost;
        let sample = RateSample {
            rate,
            delivered: SEGMENT,
            prior_delivered,
            in_flight_when_sent: outstanding,
            lost_when_sent: self.lost - lost,
            lost: self.lost,
            newly_lost: lost,
            app_limited: false,
        };
        let options = Options::default();
        let ack = Ack { delivered: SEGMENT, delay: Some(trip), sample: Some(&sample), ..Ack::new(&self.path, &options) };
        self.control.on_ack(&mut self.window, &ack);
    }

    /// Segments a second.
    fn pace(&self) -> f64 {
        1.0 / self.control.separation(SEGMENT as u32).unwrap().as_secs_f64()
    }

    /// How much faster than `rate` segments leave, margin aside.
    fn gain(&self, rate: u64) -> f64 {
        (self.pace() * SEGMENT as f64 / rate as f64 / 0.99 * 1000.0).round() / 1000.0
    }
}

const RATE: u64 = 100_000;

#[test]
fn version_1_starts_drains_and_cycles() {
    let mut told = Told::new(v1::Bbr::new(v1::Settings::default()));
    // Ten segments in 100 ms.
    assert_eq!(told.pace().floor(), 288.0, "2.885 times 100");
    told.round(RATE, 20 * SEGMENT, 0);
    assert_eq!(told.gain(RATE), 2.914, "it does not fall before the pipe is full: 2.885 / 0.99");
    for round in 0..3 {
        assert!(told.gain(RATE) > 2.8, "round {round}");
        told.round(RATE, 20 * SEGMENT, 0);
    }
    assert_eq!(told.gain(RATE), 0.347, "three rounds without growth: drain by 1 / 2.885");
    told.round(RATE, 18 * SEGMENT, 0);
    assert_eq!(told.gain(RATE), 0.347, "17 segments are more than 10 and three quanta, an even number");
    told.round(RATE, 11 * SEGMENT, 0);
    // A phase of a round trip each, from where chance has it begin.
    let mut gains = Vec::new();
    for _ in 0..16 {
        gains.push(told.gain(RATE));
        let outstanding = if told.gain(RATE) > 1.0 { 22 } else { 20 };
        told.round(RATE, outstanding * SEGMENT, 0);
    }
    let first = gains.iter().position(|gain| *gain > 1.0).unwrap();
    assert_eq!(gains[first..first + 8], [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "{gains:?}");
    assert_ne!(gains[0], 0.75, "it never begins there");
    assert_eq!(told.window.cwnd(), 25 * SEGMENT, "twice 10 and three quanta, an even number, and the one that comes at once");
    // More bandwidth is taken up at once, and remembered for ten rounds.
    told.round(2 * RATE, 20 * SEGMENT, 0);
    for round in 0..9 {
        assert!(told.gain(2 * RATE) >= 0.75, "round {round}");
        told.round(RATE, 20 * SEGMENT, 0);
    }
    told.round(RATE, 20 * SEGMENT, 0);
    assert!(told.gain(RATE) <= 1.25);
}

#[test]
fn version_1_keeps_its_window_small_for_a_round_trip() {
    let mut told = Told::new(v1::Bbr::new(v1::Settings { rtt_window: 2.0, ..v1::Settings::default() }));
    told.round(RATE, 20 * SEGMENT, 0);
    // A longer one for two seconds.
    let longer = Duration::from_millis(120);
    let before = loop {
        let before = told.window.cwnd();
        told.round_of(RATE, 11 * SEGMENT, 0, longer);
        if told.window.cwnd() == 4 * SEGMENT {
            break before;
        }
        assert!(told.path.now < Instant::ZERO + Duration::from_secs(3));
    };
    assert!(told.path.now > Instant::ZERO + Duration::from_secs(2));
    // 200 ms and a round after no more than four are outstanding.
    for _ in 0..2 {
        told.round_of(RATE, 5 * SEGMENT, 0, longer);
        assert_eq!(told.window.cwnd(), 4 * SEGMENT);
    }
    told.round_of(RATE, 5 * SEGMENT, 0, longer);
    assert!(told.window.cwnd() >= before, "{} of {before}", told.window.cwnd());
}

#[test]
fn version_1_replaces_what_arrives_in_the_first_round_of_a_repair() {
    let mut told = Told::new(v1::Bbr::new(v1::Settings::default()));
    for _ in 0..4 {
        told.round(RATE, 20 * SEGMENT, 0);
    }
    let before = told.window.cwnd();
    let threshold = told.control.threshold(&told.window, &told.path);
    assert_eq!(threshold, before, "no loss lowers it");
    let repair = |told: &mut Told<v1::Bbr>, pipe: u64, lost: u64, in_recovery: bool, prior_delivered: u64| {
        told.path.delivered += SEGMENT;
        told.path.pipe = pipe * SEGMENT;
        let sample = RateSample { prior_delivered, newly_lost: lost * SEGMENT, ..RateSample::default() };
        let options = Options::default();
        let ack = Ack { delivered: SEGMENT, sample: Some(&sample), in_recovery, ..Ack::new(&told.path, &options) };
        told.control.on_ack(&mut told.window, &ack);
        told.window.cwnd() / SEGMENT
    };
    let began = told.path.delivered;
    assert_eq!(repair(&mut told, 12, 2, true, 0), 13, "what is outstanding, and what was delivered");
    assert_eq!(repair(&mut told, 12, 0, true, began), 13);
    assert_eq!(repair(&mut told, 12, 1, true, began), 13, "one more is lost, one leaves for what arrives");
    assert_eq!(repair(&mut told, 13, 0, true, began + 2 * SEGMENT), 14, "after a round it grows");
    assert!(repair(&mut told, 13, 0, false, began + 2 * SEGMENT) * SEGMENT >= before, "and is back at the end");
}

#[test]
fn version_3_cycles_and_keeps_below_what_lost_too_much() {
    let mut told = Told::new(v3::Bbr3::new(v3::Settings::default()));
    for _ in 0..4 {
        told.round(RATE, 20 * SEGMENT, 0);
    }
    assert_eq!(told.gain(RATE), 0.5, "drain");
    told.round(RATE, 10 * SEGMENT, 0);
    assert_eq!(told.gain(RATE), 1.0, "the queue is gone, so that down is cruise at once");
    // Ten segments fill the path: after ten rounds Reno would have grown as much.
    let mut rounds = 0;
    while told.gain(RATE) < 1.2 {
        told.round(RATE, 10 * SEGMENT, 0);
        rounds += 1;
    }
    assert!((8..=12).contains(&rounds), "{rounds} until up");
    told.round(RATE, 12 * SEGMENT, 0);
    assert_eq!(told.gain(RATE), 1.25);
    // One of twelve is 8 %.
    let lost = LostSegment {
        start: 1,
        octets: SEGMENT,
        in_flight_when_sent: 12 * SEGMENT,
        lost_since_sent: SEGMENT,
        app_limited: false,
    };
    told.control.on_lost(&told.window, &lost, &told.path);
    told.round(RATE, 12 * SEGMENT, SEGMENT);
    assert!(told.gain(RATE) <= 1.0, "it goes down: {}", told.gain(RATE));
    // Eleven before it, of which 2 % may be lost: 11,000 + 220 / 0.98.
    assert_eq!(told.window.cwnd(), 11_224);
    // Cruising leaves 15 % to others.
    for _ in 0..3 {
        told.round(RATE, 9 * SEGMENT, 0);
    }
    assert_eq!((told.gain(RATE), told.window.cwnd()), (1.0, 11_224 - 1683));
}

#[test]
fn version_3_yields_once_a_round_while_it_does_not_probe() {
    let mut told = Told::new(v3::Bbr3::new(v3::Settings::default()));
    for _ in 0..4 {
        told.round(RATE, 20 * SEGMENT, 0);
    }
    for _ in 0..4 {
        told.round(RATE, 10 * SEGMENT, 0);
    }
    assert_eq!(told.gain(RATE), 1.0);
    let before = told.window.cwnd();
    let lost = LostSegment {
        start: 1,
        octets: SEGMENT,
        in_flight_when_sent: 10 * SEGMENT,
        lost_since_sent: SEGMENT,
        app_limited: false,
    };
    told.control.on_lost(&told.window, &lost, &told.path);
    told.round(RATE / 2, 10 * SEGMENT, SEGMENT);
    let then = told.window.cwnd();
    // The largest rate of this round and of the one before is still the whole one.
    told.control.on_lost(&told.window, &LostSegment { start: 9001, ..lost }, &told.path);
    told.round(RATE / 2, 10 * SEGMENT, SEGMENT);
    assert_eq!(told.gain(RATE), 0.7, "no lower than beta of the bandwidth");
    assert!(told.window.cwnd() < before, "{} of {before}", told.window.cwnd());
    told.control.on_undo(&mut told.window, &told.path);
    assert!(told.window.cwnd() >= then, "what proves wrong comes back");
}
