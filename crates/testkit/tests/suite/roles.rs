//! The inhabitants of the roles at work in whole connections, judged by what the path really did.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use whyloss_testkit::ring::{Fault, Link, Passing, Ring, Setup, Side};
use whyloss_transport::differentiation::Cause;
use whyloss_transport::path::Trigger;
use whyloss_transport::scheme::Selection;
use whyloss_transport::{BitRate, Config, Duration, Instant, Integrity};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentFate {
    Dropped,
    Damaged,
}

/// What happened to which transmission of the data at which offset.
type SegmentFates = Arc<Mutex<HashMap<(u64, u32), SegmentFate>>>;

/// A path of 5 Mbps and 60 ms that drops and damages data segments.
struct Path {
    drop_one_in: u64,
    damage_one_in: u64,
}

/// A repeatable coin: true once in `one_in`, never for zero.
fn hit(index: u64, salt: u64, one_in: u64) -> bool {
    let mut z = (index ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    one_in > 0 && (z ^ (z >> 27)) % one_in == 0
}

struct RunOutcome {
    ring: Ring,
    fates: HashMap<(u64, u32), SegmentFate>,
}

impl Path {
    fn carry(&self, seed: u64, selection: &Selection, config: &Config, octets: u64) -> RunOutcome {
        let fates = SegmentFates::default();
        let watch = |fate, one_in, salt: u64| {
            let fates = fates.clone();
            move |passing: &Passing| {
                let (Some(index), Some(offset)) = (passing.data_index, passing.offset) else { return false };
                let key = (offset, passing.transmission);
                let mut fates = fates.lock().unwrap();
                let hit = hit(index, seed.wrapping_mul(977) ^ salt, one_in) && !fates.contains_key(&key);
                if hit {
                    fates.insert(key, fate);
                }
                hit
            }
        };
        let forward = Link::new(Duration::from_millis(30))
            .bottleneck(BitRate::from_bps(5_000_000), 200)
            .fault(Fault::Drop, watch(SegmentFate::Dropped, self.drop_one_in, 1 << 40))
            .fault(Fault::Damage(Integrity::HeaderSuspect), watch(SegmentFate::Damaged, self.damage_one_in, 1 << 50));
        let sender = Setup::sender(config.clone(), octets).with(selection.clone());
        let receiver = Setup::receiver(config.clone()).with(selection.clone());
        let mut ring = Ring::new(seed, sender, receiver, forward, Link::new(Duration::from_millis(30))).unwrap();
        ring.run_until(Instant::from_nanos(600_000_000_000), |ring| ring.host(Side::Server).received() == octets).unwrap();
        assert_eq!(ring.host(Side::Server).received(), octets);
        let fates = fates.lock().unwrap().clone();
        RunOutcome { ring, fates }
    }
}

/// How many of the losses that were found with this fate were judged corruption, and how many there were.
fn judged_corruption(outcome: &RunOutcome, fate: SegmentFate) -> (usize, usize) {
    let losses = outcome.ring.host(Side::Client).told.losses.iter();
    let of_fate: Vec<_> = losses.filter(|loss| outcome.fates.get(&(loss.offset, loss.transmission)) == Some(&fate)).collect();
    (of_fate.iter().filter(|loss| loss.verdict.cause == Cause::Corruption).count(), of_fate.len())
}

fn profiles() -> Vec<(&'static str, Config)> {
    ["modern", "freebsd45", "ns2"].into_iter().map(|name| (name, Config::profile(name).unwrap())).collect()
}

const OCTETS: u64 = 1_000_000;

#[test]
fn corruption_is_recognised_and_does_not_cost_the_window() {
    let path = Path { drop_one_in: 0, damage_one_in: 25 };
    for (name, config) in profiles() {
        for scheme in ["checksum-ld", "checksum-ld-hardened"] {
            let (mut corruption, mut all) = (0, 0);
            let (mut with, mut without) = (0, 0);
            for seed in 0..5 {
                let outcome = path.carry(seed, &Selection::scheme(scheme), &config, OCTETS);
                let (right, of) = judged_corruption(&outcome, SegmentFate::Damaged);
                corruption += right;
                all += of;
                with += outcome.ring.now().as_nanos();
                without += path.carry(seed, &Selection::scheme("newreno"), &config, OCTETS).ring.now().as_nanos();
            }
            assert!(all > 100, "{name} {scheme}: {all}");
            // One damage in six hits the sequence number. The hardened form infers nothing from the order then.
            let least = if scheme.ends_with("hardened") { 75 } else { 82 };
            assert!(corruption * 100 > all * least, "{name} {scheme}: {corruption} of {all}");
            assert!(with < without, "{name} {scheme}: {with} against {without}");
        }
    }
}

#[test]
fn the_first_segment_is_reported_although_it_ends_the_handshake() {
    for (name, config) in profiles() {
        let first = |passing: &Passing| passing.data_index == Some(0);
        let forward = Link::new(Duration::from_millis(30)).fault(Fault::Damage(Integrity::HeaderSuspect), first);
        let selection = Selection::scheme("checksum-ld-hardened");
        let sender = Setup::sender(config.clone(), 20_000).with(selection.clone());
        let receiver = Setup::receiver(config.clone()).with(selection);
        let mut ring = Ring::new(1, sender, receiver, forward, Link::new(Duration::from_millis(30))).unwrap();
        ring.run_until(Instant::from_nanos(60_000_000_000), |ring| ring.host(Side::Server).received() == 20_000).unwrap();
        let losses = &ring.host(Side::Client).told.losses;
        assert!(losses.len() == 1 && losses[0].verdict.cause == Cause::Corruption, "{name}: {losses:?}");
    }
}

#[test]
fn a_dropped_segment_is_never_excused_on_a_path_that_only_drops() {
    let path = Path { drop_one_in: 25, damage_one_in: 0 };
    for (name, config) in profiles() {
        for scheme in ["checksum-ld", "checksum-ld-hardened"] {
            let outcome = path.carry(1, &Selection::scheme(scheme), &config, OCTETS);
            let (corruption, all) = judged_corruption(&outcome, SegmentFate::Dropped);
            assert!(corruption == 0 && all > 20, "{name} {scheme}: {corruption} of {all}");
        }
    }
}

#[test]
fn among_drops_and_damage_the_hardened_form_excuses_only_damage() {
    let path = Path { drop_one_in: 30, damage_one_in: 30 };
    for (name, config) in profiles() {
        for scheme in ["checksum-ld", "checksum-ld-hardened"] {
            let ([mut wrong, mut drops], [mut right, mut damages]) = ([0, 0], [0, 0]);
            for seed in 0..5 {
                let outcome = path.carry(seed, &Selection::scheme(scheme), &config, OCTETS);
                let (of_dropped, dropped) = judged_corruption(&outcome, SegmentFate::Dropped);
                let (of_damaged, damaged) = judged_corruption(&outcome, SegmentFate::Damaged);
                (wrong, drops, right, damages) = (wrong + of_dropped, drops + dropped, right + of_damaged, damages + damaged);
            }
            assert!(right * 10 > damages * 7, "{name} {scheme}: {right} of {damages}");
            if scheme.ends_with("hardened") {
                assert_eq!(wrong, 0, "{name}");
            } else {
                assert!(wrong * 10 < drops, "{name} {scheme}: {wrong} of {drops}");
            }
        }
    }
}

/// Long enough that there is new data to send when the timer expires.
const LONG: u64 = 2_000_000;

/// Everything that enters in the middle of the transfer is held up for two seconds; nothing is lost.
fn through_a_delay_spike(timeout: &str, config: &Config) -> Ring {
    let selection = Selection { timeout: Some(timeout.to_owned()), ..Selection::default() };
    let spike = Instant::from_nanos(700_000_000);
    let resume = spike + Duration::from_secs(2);
    // Without a rate everything happens at whole milliseconds, and steps of one keep the order.
    let mut forward = Link::new(Duration::from_millis(30));
    for step in 0..2000 {
        let at = spike + Duration::from_millis(step);
        let hold = Fault::Delay(resume.since(at));
        forward = forward.fault(hold, move |passing| at <= passing.now && passing.now < at + Duration::from_millis(1));
    }
    let sender = Setup::sender(config.clone(), LONG).with(selection.clone());
    let receiver = Setup::receiver(config.clone()).with(selection);
    let mut ring = Ring::new(7, sender, receiver, forward, Link::new(Duration::from_millis(30))).unwrap();
    ring.run_until(Instant::from_nanos(60_000_000_000), |ring| ring.host(Side::Server).received() == LONG).unwrap();
    assert_eq!(ring.host(Side::Server).received(), LONG);
    ring
}

#[test]
fn a_spurious_timeout_is_found_and_taken_back() {
    let base = Config { rack: false, tlp: false, undo: false, ..Config::modern() };
    let no_sack = Config { sack: false, dsack: false, ..base.clone() };
    // One expiry only: F-RTO takes a second one for genuine.
    for (sack, config) in [(true, base), (false, no_sack)] {
        let config = Config { min_rto: Duration::from_millis(1200), max_window: Some(100_000), ..config };
        let standard = through_a_delay_spike("standard", &config);
        let stats = standard.host(Side::Client).endpoint.stats();
        assert_eq!((stats.timeouts, stats.spurious_timeouts), (1, 0), "sack {sack}");
        assert!(stats.retransmissions > 10, "go-back-N resends what had arrived: {}", stats.retransmissions);
        for policy in ["f-rto", "eifel"] {
            let ring = through_a_delay_spike(policy, &config);
            let client = ring.host(Side::Client);
            let stats = client.endpoint.stats();
            assert_eq!((stats.timeouts, stats.spurious_timeouts, stats.retransmissions), (1, 1, 1), "{policy}, sack {sack}");
            assert_eq!(client.told.undone.len(), 1);
            assert!(ring.now() < standard.now(), "{policy}, sack {sack}");
        }
    }
}

#[test]
fn a_genuine_timeout_is_not_taken_back() {
    for policy in ["f-rto", "eifel"] {
        for sack in [true, false] {
            let config = Config { rack: false, tlp: false, undo: false, sack, dsack: sack, ..Config::modern() };
            let selection = Selection { timeout: Some(policy.to_owned()), ..Selection::default() };
            let down = Instant::from_nanos(700_000_000);
            let forward = Link::new(Duration::from_millis(30))
                .bottleneck(BitRate::from_bps(5_000_000), 200)
                .down(down, down + Duration::from_millis(400));
            let sender = Setup::sender(config.clone(), OCTETS).with(selection.clone());
            let receiver = Setup::receiver(config.clone()).with(selection);
            let mut ring = Ring::new(7, sender, receiver, forward, Link::new(Duration::from_millis(30))).unwrap();
            ring.run_until(Instant::from_nanos(60_000_000_000), |ring| ring.host(Side::Server).received() == OCTETS).unwrap();
            let client = ring.host(Side::Client);
            assert_eq!(ring.host(Side::Server).received(), OCTETS);
            assert!(client.endpoint.stats().timeouts > 0, "{policy} {sack}");
            assert!(client.told.losses.iter().any(|loss| loss.trigger == Trigger::Timeout));
            assert_eq!(client.endpoint.stats().spurious_timeouts, 0, "{policy} {sack}");
        }
    }
}

#[test]
fn every_scheme_and_congestion_control_delivers() {
    let path = Path { drop_one_in: 60, damage_one_in: 60 };
    for scheme in whyloss_transport::scheme::SCHEMES {
        path.carry(3, &Selection::scheme(scheme.name), &Config::modern(), OCTETS);
    }
    for congestion in whyloss_transport::congestion::TABLE {
        let selection = Selection { congestion: Some(congestion.name.to_owned()), ..Selection::default() };
        path.carry(3, &selection, &Config::modern(), OCTETS);
    }
}
