//! The table says what was trained, and the features say what they are called.

use super::features::{Features, COUNT, NAMES};
use super::{model, probability, FOREST};
use crate::path::{Ack, Loss, Path, Trigger};
use crate::segment::Options;
use crate::time::{Duration, Instant};
use proptest::prelude::*;

const MSS: u64 = 1000;

#[test]
fn the_table_says_what_was_trained() {
    assert!(model::EXAMPLES.len() >= 20);
    for (features, expected) in model::EXAMPLES {
        // Leaf values are rounded to f32: the sum of 120 of them may be off by a few millionths.
        assert!((probability(features) - expected).abs() < 1e-4, "{} instead of {expected}", probability(features));
    }
}

#[test]
fn every_tree_ends() {
    assert!(FOREST.is_sound(COUNT));
}

/// A path on a script: each acknowledgement delivers a segment that took `delay_ms`, one millisecond after the one before.
struct Script {
    features: Features,
    path: Path,
}

impl Script {
    fn new() -> Self {
        let path = Path { mss: MSS as u32, cwnd: 10 * MSS, ssthresh: 5 * MSS, ..Path::default() };
        Self { features: Features::default(), path }
    }

    fn ack(&mut self, delay_ms: u64) -> &mut Self {
        self.path.now += Duration::from_millis(1);
        self.path.delivered += MSS;
        self.path.una += MSS;
        self.path.nxt = self.path.una + 10 * MSS;
        self.path.srtt = Some(Duration::from_millis(150));
        let path = self.path.clone();
        self.features.on_ack(&Ack {
            path: &path,
            acked: MSS,
            delivered: MSS,
            rtt: None,
            delay: Some(Duration::from_millis(delay_ms)),
            newest_sent_at: None,
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &Options::default(),
        });
        self
    }

    /// A loss of a segment sent `ago_ms` ago.
    fn lose(&mut self, ago_ms: u64) -> Option<[f32; COUNT]> {
        self.path.now += Duration::from_micros(1);
        let sent_at = Instant::from_nanos((self.path.now.as_nanos()).saturating_sub(ago_ms * 1_000_000));
        self.features.observe(&Loss {
            path: &self.path,
            start: self.path.una,
            len: MSS as u32,
            transmission: 0,
            sent_at,
            trigger: Trigger::DuplicateAcks,
            first_of_episode: true,
        })
    }
}

fn value(features: &[f32; COUNT], name: &str) -> f32 {
    features[NAMES.iter().position(|n| *n == name).unwrap()]
}

#[test]
fn nothing_is_known_before_the_first_delay() {
    assert_eq!(Script::new().lose(10), None);
}

#[test]
fn features_are_what_they_are_called() {
    let mut script = Script::new();
    script.path.now = Instant::ZERO + Duration::from_secs(10);
    for delay in [100, 200, 150, 150] {
        script.ack(delay);
    }
    // Sent 150 ms before the last acknowledgement, and half a millisecond later: the lost segment left between the last two samples.
    let seen = script.lose(150).unwrap();
    let near =
        |name: &str, expected: f32| assert!((value(&seen, name) - expected).abs() < 1e-4, "{name}: {}", value(&seen, name));
    near("usage_before", 0.5);
    near("peak_usage", 1.0);
    near("relative_queue", 0.5);
    // 10 segments, 50 of 150 ms in the queue.
    near("backlog", 10.0 * 50.0 / 150.0);
    near("losses_in_event", 1.0);
    near("usual_usage_at_loss", -1.0);
    near("rounds_since_loss", -1.0);
    near("slow_start", 0.0);
    script.ack(200);
    let seen = script.lose(200).unwrap();
    assert!((value(&seen, "usual_usage_at_loss") - 0.5).abs() < 1e-4);
    assert!((value(&seen, "since_loss") - 2_f32.ln()).abs() < 1e-4);
}

proptest! {
    #[test]
    fn features_stay_finite_and_probabilities_between_0_and_1(steps in prop::collection::vec((0_u64..5_000, prop::option::of(0_u64..10_000)), 1..200)) {
        let mut script = Script::new();
        for (delay, loss) in steps {
            script.ack(delay);
            if let Some(seen) = loss.and_then(|ago| script.lose(ago)) {
                prop_assert!(seen.iter().all(|value| value.is_finite()), "{seen:?}");
                prop_assert!((0.0..=1.0).contains(&probability(&seen)));
            }
        }
    }
}
