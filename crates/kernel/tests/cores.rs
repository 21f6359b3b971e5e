//! The integer cores beside the transport engine's algorithms: the same random events into both, compared after each.
//!
//! `WHYLOSS_SEQUENCES` says how many connections each control sees (`make cores`: a million).

#[path = "cores/auto.rs"]
mod auto;
#[path = "support/parts.rs"]
mod parts;
#[path = "cores/reference.rs"]
mod reference;
#[path = "cores/world.rs"]
mod world;

use reference::{number, trigger, Reference};
use whyloss_kernel::controls::CONTROLS;
use whyloss_kernel::cores::{self, Aware, Core, Prr, Spike, Trust, Window, ONE, UNLIMITED};
use whyloss_transport::congestion;
use whyloss_transport::differentiation::{Gap, GapDifferentiator as _, SpikeSettings, Verdict};
use whyloss_transport::estimate::{Extremes, PeerClock};
use whyloss_transport::path::{Ack, Loss, Path};
use whyloss_transport::receiver::{Arrival, ReceiveView};
use whyloss_transport::segment::{Options, Segment, Timestamps};
use whyloss_transport::timeout::{AfterTimeout, Assessment, Timeout};
use whyloss_transport::{Config, Duration, Instant};
use world::World;

/// Events of a connection.
const EVENTS: u32 = 100;
/// Above every window: what a threshold is before the first loss.
const INFINITE: u32 = 0x7fff_ffff;

fn sequences() -> u64 {
    std::env::var("WHYLOSS_SEQUENCES").map_or(20_000, |count| count.parse().expect("WHYLOSS_SEQUENCES is a number"))
}

/// How far a core may be from the engine.
#[derive(Clone, Copy)]
struct Bounds {
    /// How far windows may be apart, in segments.
    window: f64,
    /// Share of the events after which windows may be more than one segment apart.
    windows: f64,
    /// How far scores may be apart.
    score: f64,
    /// Share of the losses whose scores may be farther apart.
    scores: f64,
    /// Share of the losses on which verdicts may differ.
    verdicts: f64,
}

/// Equal windows, equal verdicts, and scores that differ by no more than their own unit.
const EQUAL: Bounds = Bounds { window: 0.0, windows: 0.0, score: 1.0 / 65536.0, scores: 0.0, verdicts: 0.0 };

/// What the comparison of a core with the engine has counted.
#[derive(Debug, Default)]
struct Seen {
    window: f64,
    /// Events after which windows are more than one segment apart.
    windows: u64,
    score: f64,
    /// Losses whose scores are farther apart than the bound.
    scores: u64,
    verdicts: u64,
    differing: u64,
    corruption: u64,
    congestion: u64,
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// A connection that both see.
struct Pair<'a> {
    world: World,
    engine: Reference,
    core: Core,
    window: Window,
    saved: Window,
    path: Path,
    /// The engine's differentiator for Spike, which has none for the sender.
    spike: Option<SpikeReference>,
    /// Acknowledgements until recovery is over; the window was kept in it.
    recovery: u32,
    kept: bool,
    undoable: bool,
    repairing: bool,
    bounds: Bounds,
    seen: &'a mut Seen,
}

impl<'a> Pair<'a> {
    fn new(control: &str, seed: u64, bounds: Bounds, seen: &'a mut Seen) -> Self {
        let mut world = World::new(seed);
        let mss = u64::from(world.mss);
        let cwnd = 1 + world.below(60);
        let ssthresh = if world.chance(0.5) { INFINITE } else { 2 + world.below(200) };
        let window = Window { cwnd, ssthresh };
        let una = (1 << 40) + u64::from(world.below(u32::MAX));
        let mut path = Path::default();
        (path.mss, path.una, path.nxt) = (world.mss, una, una);
        Self {
            engine: Reference::new(control, congestion::Window::new(world.mss, u64::from(cwnd) * mss, u64::from(ssthresh) * mss)),
            // The engine's limits of RFC 3465.
            core: Core::new(control, 2, 1).expect("a core"),
            path,
            spike: (control == "spike").then(|| SpikeReference::new(micros(1000))),
            window,
            saved: window,
            world,
            recovery: 0,
            kept: false,
            undoable: false,
            repairing: false,
            bounds,
            seen,
        }
    }

    fn refresh(&mut self) {
        let (mss, flight) = (u64::from(self.world.mss), u64::from(self.flight()));
        let path = &mut self.path;
        path.now = Instant::ZERO + micros(self.world.now);
        path.cwnd = u64::from(self.window.cwnd) * mss;
        path.nxt = path.nxt.max(path.una + flight * mss);
        path.flight = flight * mss;
        path.srtt = (self.world.srtt > 0).then(|| micros(self.world.srtt));
    }

    /// The window, most of the time.
    fn flight(&self) -> u32 {
        self.window.cwnd.saturating_sub(u32::from(self.world.now % 7 == 0))
    }

    fn ack(&mut self) {
        let acked = self.world.ack(self.window.cwnd);
        let mss = u64::from(self.world.mss);
        self.path.una += u64::from(acked.acked) * mss;
        self.path.delivered += u64::from(acked.delivered) * mss;
        self.refresh();
        let now = self.world.now;
        let tsval = self.world.tick.map(|tick| (now / tick) as u32);
        let options = Options { timestamps: tsval.map(|value| Timestamps { value, echo: 0 }), ..Options::default() };
        let delay = acked.delay.map(micros);
        let in_recovery = self.recovery > 0;
        let path = self.path.clone();
        let mut ack = Ack::new(&path, &options);
        (ack.acked, ack.delivered) = (u64::from(acked.acked) * mss, u64::from(acked.delivered) * mss);
        (ack.rtt, ack.delay, ack.newest_sent_at) = (delay, delay, delay.map(|delay| path.now - delay));
        (ack.duplicate, ack.in_recovery, ack.window_limited) = (acked.duplicate, in_recovery, acked.limited);
        let told = cores::Ack {
            now: now as u32,
            una: path.una as u32,
            nxt: path.nxt as u32,
            cwnd: self.window.cwnd,
            acked: acked.acked,
            delivered: acked.delivered,
            delay: acked.delay.map_or(-1, |delay| delay as i32),
            srtt: self.world.srtt as u32,
            tsval: tsval.unwrap_or(0),
            stamped: u8::from(tsval.is_some()),
            duplicate: u8::from(acked.duplicate),
            in_recovery: u8::from(in_recovery),
            limited: u8::from(acked.limited),
        };
        self.engine.acknowledge(&ack);
        self.core.ack(&told);
        if let Some(spike) = &mut self.spike {
            spike.ack(path.now, tsval, delay);
        }
        if in_recovery {
            self.recovery -= 1;
        }
        self.engine.grow(&ack);
        self.core.grow(&mut self.window, &told);
    }

    /// Both judge a loss; the engine's cause counts.
    fn judge(&mut self, timeout: bool, first: bool) -> (Verdict, cores::Loss) {
        self.refresh();
        let path = self.path.clone();
        let told = cores::Loss {
            now: self.world.now as u32,
            cwnd: self.window.cwnd,
            flight: self.flight(),
            srtt: self.world.srtt as u32,
            timeout: u8::from(timeout),
            first: u8::from(first),
        };
        let loss = self.loss(&path, timeout, first);
        let theirs = self.spike.as_mut().map_or_else(|| self.engine.judge(&loss), SpikeReference::judge);
        let ours = self.core.judge(&told);
        if first && !timeout {
            self.core.episode(told.now);
        }
        let apart = (f64::from(ours.score) / f64::from(ONE) - theirs.score).abs();
        self.seen.score = self.seen.score.max(apart);
        self.seen.scores += u64::from(apart > self.bounds.score);
        self.seen.verdicts += 1;
        self.seen.differing += u64::from(ours.cause != number(theirs.cause));
        self.seen.congestion += u64::from(ours.cause == 1);
        self.seen.corruption += u64::from(ours.cause == 2);
        (theirs, told)
    }

    fn loss<'b>(&self, path: &'b Path, timeout: bool, first: bool) -> Loss<'b> {
        let mut loss = Loss::new(path, path.una, self.world.mss, path.now, trigger(timeout));
        loss.first_of_episode = first;
        loss
    }

    fn lose(&mut self) {
        let first = self.recovery == 0;
        if !first && !self.kept {
            return;
        }
        let (verdict, told) = self.judge(false, first);
        let corruption = number(verdict.cause) == 2;
        if !first && corruption {
            return;
        }
        let path = self.path.clone();
        let loss = self.loss(&path, false, first);
        let reduced = self.engine.respond(&verdict, &loss);
        if first {
            self.core.save();
            self.saved = self.window;
        }
        let threshold = if corruption { self.core.corrupted(&told) } else { Some(self.core.threshold(&told)) };
        assert_eq!(threshold.is_some(), reduced);
        if let Some(threshold) = threshold {
            self.window.ssthresh = threshold;
            self.window.cwnd = self.window.cwnd.min(threshold);
        }
        self.kept = corruption;
        self.undoable = reduced;
        if first {
            self.recovery = 1 + self.world.below(12);
        }
    }

    fn time_out(&mut self) {
        let (_, told) = self.judge(true, true);
        let path = self.path.clone();
        self.engine.time_out(&path);
        self.core.save();
        self.saved = self.window;
        self.window = Window { cwnd: 1, ssthresh: self.core.threshold(&told) };
        self.core.timeout();
        self.recovery = 0;
        self.kept = false;
        self.undoable = true;
        self.repairing = true;
    }

    fn take_back(&mut self) {
        self.refresh();
        let path = self.path.clone();
        self.undoable = false;
        if std::mem::take(&mut self.repairing) && self.world.chance(0.7) {
            let pipe = self.world.below(4);
            self.engine.forgive(&path, u64::from(pipe * self.world.mss));
            let (now, saved) = (self.window, self.saved);
            let target = saved.cwnd.max(now.cwnd);
            self.window = Window { cwnd: target.min(pipe + 10).max(now.cwnd), ssthresh: saved.ssthresh.max(target) };
        } else {
            self.engine.undo(&path);
            self.window.cwnd = self.window.cwnd.max(self.saved.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(self.saved.ssthresh);
        }
        self.recovery = 0;
        self.core.undo();
    }

    fn run(&mut self) {
        for _ in 0..EVENTS {
            match self.world.below(1000) {
                0..30 => self.lose(),
                30..36 => self.time_out(),
                36..46 if self.undoable => self.take_back(),
                _ => self.ack(),
            }
            let apart = (self.engine.segments() - f64::from(self.window.cwnd)).abs();
            self.seen.window = self.seen.window.max(apart);
            self.seen.windows += u64::from(apart > 1.0);
        }
    }
}

/// The engine's Spike, told of trips as the sender can measure them.
struct SpikeReference {
    spike: whyloss_transport::differentiation::Spike,
    clock: PeerClock,
    settings: SpikeSettings,
    /// When the first segment left whose trip counts, the ticks then, and what a tick was.
    origin: Option<(Instant, u64, Duration)>,
    samples: u64,
    range: (i64, i64),
}

impl SpikeReference {
    fn new(range: Duration) -> Self {
        let settings = SpikeSettings { alpha: 0.5, beta: 1.0 / 3.0, samples: 20, range, extremes: Extremes::Lifetime };
        Self {
            spike: whyloss_transport::differentiation::Spike::new(settings),
            clock: PeerClock::default(),
            settings,
            origin: None,
            samples: 0,
            range: (0, 0),
        }
    }

    fn ack(&mut self, now: Instant, stamp: Option<u32>, delay: Option<Duration>) {
        let Some(stamp) = stamp else { return };
        let ticks = self.clock.on_timestamp(now, stamp);
        let (Some(tick), Some(delay)) = (self.clock.tick(), delay) else { return };
        let sent = now - delay;
        let (origin, first, _) = match self.origin {
            Some(origin) if origin.2 == tick => origin,
            _ => {
                self.spike = whyloss_transport::differentiation::Spike::new(self.settings);
                self.samples = 0;
                *self.origin.insert((sent, ticks, tick))
            }
        };
        let arrived = ((ticks - first) * tick.as_nanos()) as i64;
        let left = sent.as_nanos() as i64 - origin.as_nanos() as i64;
        self.trip(now, arrived - left);
    }

    fn trip(&mut self, now: Instant, nanos: i64) {
        self.range = if self.samples == 0 { (nanos, nanos) } else { (self.range.0.min(nanos), self.range.1.max(nanos)) };
        self.samples += 1;
        self.spike.on_arrival(&arrival(now, nanos, &Segment::default()));
    }

    fn judge(&mut self) -> Verdict {
        // Four ticks of the receiver's clock are the least range.
        let tick = self.origin.map_or(Duration::ZERO, |(_, _, tick)| tick);
        if self.range.1 - self.range.0 < 4 * tick.as_nanos() as i64 || self.samples == 0 {
            return Verdict::UNKNOWN;
        }
        let gap = Gap::new(0, 1, 1);
        self.spike.judge(&gap, &arrival(Instant::ZERO, 0, &Segment::default()))
    }
}

fn arrival(now: Instant, trip: i64, segment: &Segment) -> Arrival<'_> {
    let mut arrival = Arrival::new(ReceiveView::new(now, 0), segment, 0, 0);
    arrival.trip = Some(trip);
    arrival
}

/// Runs a control's core beside the engine's parts.
fn compare(control: &str, bounds: Bounds) {
    let count = sequences();
    let mut seen = Seen::default();
    for seed in 0..count {
        Pair::new(control, seed, bounds, &mut seen).run();
        assert!(seen.window <= bounds.window, "{control}, sequence {seed}: windows are {} segments apart", seen.window);
    }
    println!("{control}: {count} sequences, {seen:?}");
    let losses = seen.verdicts as f64;
    assert!(seen.windows as f64 <= bounds.windows * count as f64 * f64::from(EVENTS), "{control}: {seen:?}");
    assert!(seen.scores as f64 <= (bounds.scores * losses).ceil(), "{control}: {seen:?}");
    assert!(seen.differing as f64 <= (bounds.verdicts * losses).ceil(), "{control}: {seen:?}");
    if !matches!(control, "newreno" | "westwood") {
        assert!(seen.corruption > count / 20 && seen.congestion > count / 20, "{control}: one-sided: {seen:?}");
    }
}

#[test]
fn newreno_is_the_engines() {
    compare("newreno", EQUAL);
}

/// Windows have a fraction in the engine; here a slow start may end, or a reduction arrive, one segment earlier or later.
#[test]
fn veno_is_the_engines() {
    compare("veno", Bounds { window: 5.0, windows: 0.005, ..EQUAL });
}

/// Rates are rounded to 1/256 segment a second.
#[test]
fn westwood_is_the_engines() {
    compare("westwood", Bounds { window: 4.0, windows: 0.001, ..EQUAL });
}

/// As Westwood's, and the engine's rates are rounded to whole octets a second, its service times to nanoseconds.
#[test]
fn ncpld_is_the_engines() {
    compare("ncpld", Bounds { score: 0.001, verdicts: 1e-4, ..EQUAL });
}

/// The score of a spike that goes on is half as much again of a rounded one.
#[test]
fn spike_is_the_engines() {
    compare("spike", Bounds { score: 3.0 / 65536.0, ..EQUAL });
}

#[test]
fn ldaeq_is_the_engines() {
    compare("ldaeq", EQUAL);
}

/// Whose clock measures a round is decided when the round ends; in the engine, when the loss is judged.
#[test]
fn jtcp_is_the_engines() {
    compare("jtcp", Bounds { scores: 1e-3, verdicts: 1e-4, ..EQUAL });
}

#[test]
fn cerl_is_the_engines() {
    compare("cerl", EQUAL);
}

/// As Veno's; the curve is computed in 1/1024 segments and 1/8192 seconds, and one that begins an acknowledgement earlier is steeper after a
/// pause.
#[test]
fn cubic_ld_is_the_engines() {
    compare("cubic_ld", Bounds { window: 16.0, windows: 0.005, ..EQUAL });
}

/// After 72 minutes without a loss the clock in microseconds is where it was when the curve began.
#[test]
fn a_curve_that_outlives_the_clock_is_the_engines() {
    for seed in 0..20 {
        let mut seen = Seen::default();
        let mut pair = Pair::new("cubic_ld", seed, EQUAL, &mut seen);
        pair.time_out();
        let end = pair.world.now + (1 << 32) * 5 / 4;
        while pair.world.now < end {
            pair.world.now += 1_000_000;
            pair.ack();
        }
        let [theirs, ours] = [pair.engine.segments(), f64::from(pair.window.cwnd)];
        assert!(ours > 2000.0 && (theirs - ours).abs() <= 2.0, "sequence {seed}: {ours} instead of {theirs} segments");
    }
}

/// Every control has a test above.
#[test]
fn these_are_all() {
    let all = ["newreno", "veno", "westwood", "ncpld", "spike", "ldaeq", "jtcp", "cerl", "cubic_ld"];
    assert_eq!(cores::names(), all);
    for name in all {
        let core = Core::new(name, cores::UNLIMITED, cores::UNLIMITED).expect("a core");
        assert!(core.size() + cores::CONTROL_SIZE <= cores::PRIVATE_SIZE);
    }
}

#[test]
fn spikes_state_machine_is_the_engines() {
    let mut both = (0, 0);
    for seed in 0..sequences() {
        let mut world = World::new(seed);
        let (mut ours, mut theirs) = (Spike::default(), SpikeReference::new(micros(1000)));
        for _ in 0..EVENTS {
            let trip = world.below(5000) as i32 - 2500;
            ours.trip(trip);
            theirs.trip(Instant::ZERO, i64::from(trip) * 1000);
            let (ours, theirs) = (ours.verdict(1000), theirs.judge());
            assert_eq!(ours.cause, number(theirs.cause), "sequence {seed}");
            assert!((f64::from(ours.score) / f64::from(ONE) - theirs.score).abs() <= 3.0 / 65536.0);
            both.0 += u64::from(ours.cause == 1);
            both.1 += u64::from(ours.cause == 2);
        }
    }
    assert!(both.0 > 0 && both.1 > 0);
}

#[test]
fn forgiven_timeouts_are_the_engines() {
    let mut forgiven = 0;
    for seed in 0..sequences() {
        let mut world = World::new(seed);
        let parts = whyloss_transport::scheme::Selection {
            timeout: Some("aware".to_owned()),
            ..whyloss_transport::scheme::Selection::default()
        };
        let mut theirs = parts.build(&mut whyloss_transport::Config::modern()).expect("a policy").timeout;
        let mut ours = Aware::default();
        let rto = u64::from(200_000 + world.below(2_000_000));
        let (mut expiries, mut silence, mut repairing) = (0, 0, false);
        for _ in 0..EVENTS {
            let mut path = Path::default();
            (path.rto, path.una) = (micros(rto), 1);
            if world.chance(0.3) {
                let waited = rto << expiries.min(6);
                world.now += waited;
                silence += waited + u64::from(world.below(1000));
                expiries += 1;
                let verdict = if world.chance(0.8) { Verdict::decided(true, 1.0) } else { Verdict::UNKNOWN };
                path.now = Instant::ZERO + micros(world.now);
                let mut timeout = Timeout::new(&path, &verdict);
                (timeout.consecutive, timeout.silence) = (expiries, micros(silence));
                (timeout.sack, timeout.timestamps, timeout.in_recovery) = (true, true, repairing);
                theirs.on_timeout(&timeout);
                ours.timeout(world.now as u32, rto as u32, silence as u32, expiries, repairing, number(verdict.cause));
                repairing = true;
            } else {
                let acked = world.ack(10);
                silence += u64::from(world.below(100_000));
                world.now += silence % 3000;
                path.now = Instant::ZERO + micros(world.now);
                if repairing {
                    let options = Options::default();
                    let mut ack = Ack::new(&path, &options);
                    (ack.acked, ack.delivered) = (u64::from(acked.acked), u64::from(acked.delivered));
                    ack.duplicate = acked.duplicate;
                    let mut after = AfterTimeout::new(&ack);
                    (after.silence, after.recover, after.head_end) = (micros(silence), 100, 2);
                    let assessment = theirs.assess(&after);
                    // With timestamps the first acknowledgement that advances tells whether the timeout was spurious.
                    let genuine = assessment != Assessment::Undecided;
                    let back =
                        ours.ack(world.now as u32, rto as u32, silence as u32, acked.acked > 0, acked.acked > 0 || genuine);
                    assert_eq!(back, matches!(assessment, Assessment::Forgiven(_)), "sequence {seed}: {assessment:?}");
                    forgiven += u64::from(back);
                    repairing &= !back && world.chance(0.7);
                }
                silence = 0;
                expiries = 0;
            }
        }
    }
    assert!(forgiven > sequences() / 10, "{forgiven}");
}

/// RFC 9937 with the numbers of the engine's own tests.
#[test]
fn the_window_falls_in_proportion_to_what_is_delivered() {
    let (before, target) = (20, 10);
    let (mut pipe, mut out) = (19, 0);
    for delivered in 1..=18 {
        pipe -= 1;
        let cwnd = Prr { before, target, delivered, out, pipe, newly: 1, safe: 0 }.window();
        while pipe < cwnd {
            pipe += 1;
            out += 1;
        }
    }
    assert_eq!((out, pipe), (9, target), "one segment for every two delivered");
    let kept = Prr { before: 20, target: 20, delivered: 10, out: 10, pipe: 19, newly: 1, safe: 0 };
    assert_eq!(kept.window(), 20, "a kept window sends one for each delivered");
}

#[test]
fn verdicts_count_while_no_more_than_a_quarter_is_sent_again() {
    let mut trust = Trust::default();
    let counters = [(63, 60), (64, 16), (128, 33), (190, 33), (192, 33), (256, 40)];
    let seen: Vec<_> = counters.into_iter().map(|(delivered, repeated)| trust.look(delivered, repeated)).collect();
    assert_eq!(seen, [true, true, false, false, true, true], "looks at 64 segments and more");
}

/// What the kernel's controls do with acknowledgements that were merged on their way.
#[test]
fn slow_start_without_a_limit_ends_at_the_threshold() {
    for control in ["newreno", "veno", "westwood", "cubic_ld"] {
        let mut core = Core::new(control, UNLIMITED, UNLIMITED).expect("a core");
        let mut window = Window { cwnd: 10, ssthresh: 25 };
        let ack = cores::Ack { acked: 12, delivered: 12, delay: -1, limited: 1, ..cores::Ack::default() };
        core.grow(&mut window, &ack);
        assert_eq!(window.cwnd, 22, "{control}");
        core.grow(&mut window, &ack);
        assert_eq!(window.cwnd, 25, "{control}");
        for _ in 0..3 {
            core.grow(&mut window, &ack);
        }
        assert!((25..=27).contains(&window.cwnd), "{control}: {window:?}");
        let idle = cores::Ack { limited: 0, ..ack };
        let before = window;
        core.grow(&mut window, &idle);
        assert_eq!(window, before, "{control}: what is not used does not grow");
    }
}

#[test]
fn cores_engine_and_pages_know_the_controls_by_the_names_of_the_table() {
    let mut cored: Vec<_> = CONTROLS.iter().filter_map(|control| control.core).collect();
    let mut known = cores::names();
    cored.sort_unstable();
    known.sort_unstable();
    assert_eq!(cored, known);
    for control in CONTROLS {
        let name = control.name.strip_prefix("wl_").expect("a prefix");
        parts::selection(name).build(&mut Config::modern()).unwrap_or_else(|error| panic!("{}: {error}", control.name));
    }
    let page = |name: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let [controls, checksum] = ["kernel-controls.md", "kernel-checksum.md"].map(page);
    for control in CONTROLS {
        let told = if control.core.is_some() {
            controls.contains(&format!("\n| `{}` | ", control.name))
        } else {
            checksum.contains(&format!("`{}`", control.name)) && checksum.contains(&format!("`{}`", control.kernel_name))
        };
        assert!(told, "{} is on no page", control.name);
    }
}
