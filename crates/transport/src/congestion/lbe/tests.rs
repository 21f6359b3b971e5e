//! A bottleneck with a queue, losses that are forgiven and losses that are not.

use super::*;
use crate::segment::Options;
use proptest::prelude::*;

const MSS: u64 = 1000;
const BASE: Duration = Duration::from_millis(100);

/// A sender that fills its window over a path of 100 ms that serves a segment in 5 ms: 20 segments fit.
struct Rig {
    path: Path,
    window: Window,
    /// What others have in the queue.
    queue: Duration,
}

impl Rig {
    fn new(cwnd: u64, ssthresh: u64) -> Self {
        let path = Path { now: Instant::from_nanos(1), mss: MSS as u32, rto: BASE * 10, una: 1, nxt: 1, ..Path::default() };
        Self { path, window: Window::new(MSS as u32, cwnd * MSS, ssthresh * MSS), queue: Duration::ZERO }
    }

    /// A window of data crosses, a segment an acknowledgement.
    fn round(&mut self, cc: &mut dyn CongestionControl) {
        let acks = (self.window.cwnd() / MSS).max(1);
        let service = Duration::from_millis(5);
        let own = (service * acks).saturating_sub(BASE);
        let rtt = BASE + own + self.queue;
        let begin = self.path.now;
        for n in 0..acks {
            self.path.now = begin + (rtt / acks) * (n + 1);
            self.ack(cc, BASE + own + self.queue);
        }
    }

    fn ack(&mut self, cc: &mut dyn CongestionControl, delay: Duration) {
        self.path.una = self.path.nxt.min(self.path.una + MSS);
        self.path.nxt = self.path.una + self.window.cwnd();
        self.path.flight = self.window.cwnd();
        let options = Options::default();
        let ack = Ack { acked: MSS, delivered: MSS, delay: Some(delay), ..Ack::new(&self.path, &options) };
        cc.on_ack(&mut self.window, &ack);
    }

    fn forgive(&mut self, cc: &mut dyn CongestionControl) {
        cc.save();
        let cwnd = self.window.cwnd();
        cc.on_forgiven(&self.window, &Forgiven::new(&self.path, MSS, cwnd));
    }

    fn congest(&mut self, cc: &mut dyn CongestionControl) {
        cc.save();
        self.path.flight = self.window.cwnd();
        let threshold = cc.threshold(&self.window, &self.path);
        self.window.set_ssthresh(threshold);
        self.window.set_cwnd(self.window.ssthresh().min(self.window.cwnd()));
    }

    fn time_out(&mut self, cc: &mut dyn CongestionControl) {
        cc.save();
        self.path.flight = self.window.cwnd();
        let threshold = cc.timeout_threshold(&self.window, &self.path);
        self.window.set_ssthresh(threshold);
        self.window.set_cwnd(MSS);
        cc.on_timeout(&mut self.window, &self.path);
        // What was lost is sent again, and acknowledged with all that had arrived behind it.
        self.path.una = self.path.nxt;
    }

    fn segments(&self) -> f64 {
        self.window.segments()
    }
}

fn lbe() -> Lbe {
    Lbe::new(Box::new(NewReno::new(false)), 0.05, 1.0)
}

/// What the two parts have, in segments.
fn parts(cc: &Lbe) -> (f64, f64) {
    let split = cc.split.as_ref().expect("a loss was forgiven");
    (split.standard.segments(), split.filling() as f64 / MSS as f64)
}

#[test]
fn a_forgiven_loss_moves_half_of_the_standard_part_to_the_other() {
    let (mut cc, mut rig) = (lbe(), Rig::new(16, 2));
    rig.ack(&mut cc, BASE);
    rig.forgive(&mut cc);
    assert_eq!((parts(&cc), rig.segments()), ((8.0, 8.0), 16.0), "the window stays");
    rig.forgive(&mut cc);
    assert_eq!(parts(&cc), (8.0, 8.0), "half a loss is the standard part's");
    rig.forgive(&mut cc);
    assert_eq!(parts(&cc), (8.0, 8.0), "once a window of data");
    (0..3).for_each(|_| rig.round(&mut cc));
    let before = parts(&cc).0;
    (0..3).for_each(|_| rig.forgive(&mut cc));
    assert!(parts(&cc).0 < 0.7 * before, "{before} -> {:?}", parts(&cc));
}

#[test]
fn both_parts_grow_while_the_path_is_idle_and_the_second_stops_at_the_target() {
    let (mut cc, mut rig) = (lbe(), Rig::new(8, 2));
    rig.round(&mut cc);
    rig.forgive(&mut cc);
    let before = parts(&cc);
    (0..4).for_each(|_| rig.round(&mut cc));
    let after = parts(&cc);
    // A segment a round trip each; the first one is over before the standard part's episode is.
    assert!(
        (2.0..=3.0).contains(&(after.0 - before.0)) && (3.0..=4.0).contains(&(after.1 - before.1)),
        "{before:?} -> {after:?}"
    );
    for round in 0..200 {
        rig.round(&mut cc);
        if round % 5 == 4 {
            (0..4).for_each(|_| rig.forgive(&mut cc)); // or the standard part alone would fill the path
        }
        if round > 20 {
            // A twentieth of 100 ms is the service time of one segment.
            assert!((14.0..24.0).contains(&rig.segments()), "round {round}: {}", rig.segments());
        }
    }
}

#[test]
fn the_second_part_leaves_when_a_queue_stands_and_the_first_does_not() {
    let (mut cc, mut rig) = (lbe(), Rig::new(16, 2));
    rig.round(&mut cc);
    rig.forgive(&mut cc);
    let (standard, filling) = parts(&cc);
    rig.queue = Duration::from_millis(40);
    (0..8).for_each(|_| rig.round(&mut cc));
    let (kept, left) = parts(&cc);
    assert!(left < filling / 20.0, "{filling} -> {left}");
    assert!((kept - standard - 8.0).abs() < 1.5, "it grows by a segment a round trip: {standard} -> {kept}");
    rig.queue = Duration::ZERO;
    (0..2).for_each(|_| rig.forgive(&mut cc));
    (0..8).for_each(|_| rig.round(&mut cc));
    assert!(parts(&cc).1 > 3.0, "idle capacity is filled again: {:?}", parts(&cc));
}

#[test]
fn recovery_is_told_what_to_leave_behind() {
    let (mut cc, mut rig) = (lbe(), Rig::new(16, 2));
    rig.ack(&mut cc, BASE);
    assert_eq!(cc.recovery_window(), None);
    rig.forgive(&mut cc);
    assert_eq!(cc.recovery_window(), Some(16 * MSS));
    for _ in 0..40 {
        let options = Options::default();
        let delay = Some(BASE * 2);
        let ack = Ack { delivered: MSS, delay, in_recovery: true, ..Ack::new(&rig.path, &options) };
        cc.on_ack(&mut rig.window, &ack);
    }
    assert_eq!(rig.segments(), 16.0, "the window is recovery's");
    let limit = cc.recovery_window().unwrap();
    assert!((8 * MSS..12 * MSS).contains(&limit), "{limit}");
    rig.path.flight = 16 * MSS;
    for _ in 0..40 {
        let options = Options::default();
        let ack = Ack { delivered: MSS, delay: Some(BASE), in_recovery: true, ..Ack::new(&rig.path, &options) };
        cc.on_ack(&mut rig.window, &ack);
    }
    assert!(cc.recovery_window().unwrap() > limit + 2 * MSS, "the path is idle again");
    let unmeasured = cc.recovery_window();
    for _ in 0..40 {
        let options = Options::default();
        cc.on_ack(&mut rig.window, &Ack { delivered: MSS, in_recovery: true, ..Ack::new(&rig.path, &options) });
    }
    assert_eq!(cc.recovery_window(), unmeasured, "nothing grows blindly");
}

#[test]
fn congestion_halves_both_and_a_timeout_leaves_one_segment() {
    let (mut cc, mut rig) = (lbe(), Rig::new(16, 2));
    rig.round(&mut cc);
    rig.forgive(&mut cc);
    (0..2).for_each(|_| rig.round(&mut cc));
    let (standard, filling) = parts(&cc);
    rig.congest(&mut cc);
    rig.round(&mut cc);
    let halved = parts(&cc);
    assert!(
        (halved.0 - standard / 2.0).abs() < 1.6 && (halved.1 - filling / 2.0).abs() < 1.6,
        "{standard} + {filling} -> {halved:?}"
    );
    rig.time_out(&mut cc);
    assert_eq!((parts(&cc), rig.segments()), ((1.0, 0.0), 1.0));
    (0..12).for_each(|_| rig.round(&mut cc));
    assert!(rig.segments() > 12.0, "{}", rig.segments());
}

#[test]
fn without_anything_lent_congestion_makes_the_window_one_again() {
    let (mut cc, mut rig) = (lbe(), Rig::new(16, 2));
    rig.round(&mut cc);
    rig.forgive(&mut cc);
    rig.queue = Duration::from_millis(100);
    (0..20).for_each(|_| rig.round(&mut cc));
    rig.congest(&mut cc);
    assert!(cc.split.is_none());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Round,
    Forgive,
    Congest,
    TimeOut,
    Queue(u64),
}

fn steps(forgiven: u32) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => Just(Step::Round),
        forgiven => Just(Step::Forgive),
        2 => Just(Step::Congest),
        1 => Just(Step::TimeOut),
        5 => (0..100u64).prop_map(Step::Queue),
    ];
    prop::collection::vec(step, 1..120)
}

fn take(rig: &mut Rig, cc: &mut dyn CongestionControl, step: Step) {
    match step {
        Step::Round => rig.round(cc),
        Step::Forgive => rig.forgive(cc),
        Step::Congest => rig.congest(cc),
        Step::TimeOut => rig.time_out(cc),
        Step::Queue(ms) => rig.queue = Duration::from_millis(ms),
    }
}

proptest! {
    /// Where no loss is forgiven it is the standard control, to the octet.
    #[test]
    fn without_forgiven_losses_nothing_is_different(steps in steps(1), ssthresh in 2..100u64) {
        let mut ours = (lbe(), Rig::new(2, ssthresh));
        let mut theirs = (NewReno::new(false), Rig::new(2, ssthresh));
        for step in steps.into_iter().filter(|step| !matches!(step, Step::Forgive)) {
            take(&mut ours.1, &mut ours.0, step);
            take(&mut theirs.1, &mut theirs.0, step);
            prop_assert_eq!(ours.1.window.cwnd(), theirs.1.window.cwnd());
            prop_assert_eq!(ours.1.window.ssthresh(), theirs.1.window.ssthresh());
        }
    }

    /// The window is the sum of its parts, neither is negative, and the first has at least a segment.
    #[test]
    fn the_window_is_its_two_parts(steps in steps(6), ssthresh in 2..100u64) {
        let (mut cc, mut rig) = (lbe(), Rig::new(2, ssthresh));
        for step in steps {
            take(&mut rig, &mut cc, step);
            prop_assert!(rig.window.cwnd() >= MSS);
            if let (Some(split), Step::Round) = (&cc.split, step) {
                prop_assert_eq!(split.standard.cwnd() + split.filling(), rig.window.cwnd());
                prop_assert!(split.standard.cwnd() >= MSS);
            }
        }
    }

    /// Where a queue always stands, a loss that is forgiven wins nothing against one that is not: after some round trips of delay the window is a standard
    /// one that has obeyed.
    #[test]
    fn a_queue_takes_back_all_that_was_lent(steps in steps(6), ssthresh in 2..100u64) {
        let (mut cc, mut rig) = (lbe(), Rig::new(2, ssthresh));
        rig.round(&mut cc); // it has seen the empty path
        for step in steps {
            take(&mut rig, &mut cc, step);
        }
        rig.queue = Duration::from_millis(100);
        (0..30).for_each(|_| rig.round(&mut cc));
        if let Some(split) = &cc.split {
            prop_assert!(split.filling() < MSS, "{} of {}", split.filling(), split.whole);
        }
    }
}

/// With fewer segments than it takes to hear of a loss, a standard flow would wait for its timer.
#[test]
fn a_standard_part_that_is_too_small_to_hear_of_a_loss_waits() {
    for (fewest, waits) in [(2, false), (4, true)] {
        let (mut cc, mut rig) = (lbe(), Rig::new(12, 2));
        rig.ack(&mut cc, BASE);
        rig.forgive(&mut cc);
        cc.split.as_mut().unwrap().standard.set_cwnd(3 * MSS);
        (0..6).for_each(|_| {
            rig.ack(&mut cc, BASE);
        });
        cc.split.as_mut().unwrap().recover = 0;
        let cwnd = rig.window.cwnd();
        cc.on_forgiven(&rig.window, &Forgiven { fewest, ..Forgiven::new(&rig.path, 9 * MSS, cwnd) });
        assert_eq!(parts(&cc).0, if waits { 1.0 } else { 2.0 });
        let before = rig.segments();
        (0..4).for_each(|_| rig.round(&mut cc));
        assert!(rig.segments() > before, "the other part goes on");
        assert_eq!(parts(&cc).0 == 1.0, waits, "{:?}", parts(&cc));
        (0..10).for_each(|_| rig.round(&mut cc));
        assert!(parts(&cc).0 > 2.0, "after a timeout's time it goes on: {:?}", parts(&cc));
    }
}

#[test]
fn what_is_not_used_does_not_grow() {
    let (mut cc, mut rig) = (lbe(), Rig::new(16, 100));
    rig.ack(&mut cc, BASE);
    rig.forgive(&mut cc);
    let before = parts(&cc).1;
    for _ in 0..50 {
        rig.path.una += MSS;
        (rig.path.nxt, rig.path.flight) = (rig.path.una + 3 * MSS, 3 * MSS);
        let options = Options::default();
        let ack = Ack { acked: MSS, delivered: MSS, delay: Some(BASE), ..Ack::new(&rig.path, &options) };
        cc.on_ack(&mut rig.window, &ack);
    }
    assert!(parts(&cc).1 <= before, "{before} -> {:?}", parts(&cc));
}
