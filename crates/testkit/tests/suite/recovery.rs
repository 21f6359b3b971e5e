//! Fast recovery and what ends it: what must not be taken for lost, and how a window comes back.

use crate::common::Bulk;
use proptest::prelude::*;
use proptest::sample::select;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use whyloss_sim::{Outage, Records, WhileDown};
use whyloss_testkit::ring::{Closes, Fault, Link, Ring, Setup, Side};
use whyloss_transport::scheme::{Selection, Value};
use whyloss_transport::tcp::Repair;
use whyloss_transport::{BitRate, Config, Duration, Instant};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Twenty seconds over a link that holds all packets for `outage_ms` after three seconds.
fn held(timeout: &str, timestamps: bool, megabits: u64, rtt_ms: u64, outage_ms: u64) -> Records {
    let bulk = Bulk {
        config: Config { timestamps, ..Config::linux() },
        selection: Selection { timeout: Some(timeout.to_owned()), ..Selection::scheme("sack") },
        rate: BitRate::from_bps(megabits * 1_000_000),
        rtt: ms(rtt_ms),
        queue: 100,
        loss: 0.0,
        lasts: Duration::from_secs(20),
    };
    let outage = Outage { packets: WhileDown::Held, ..Outage::once(Instant::ZERO + ms(3000), ms(outage_ms)) };
    bulk.records(0, |link| link.outage.push(outage))
}

/// How often a transmission was taken for lost that had arrived or was still to arrive.
fn needless(records: &Records) -> usize {
    records.losses.iter().filter(|loss| loss.dropped.is_none()).count()
}

/// The acknowledgement of the original must not pass for that of the repetition: RACK would find everything else late by then.
#[test]
fn a_spurious_timeout_is_the_only_needless_loss() {
    for timeout in ["eifel", "f-rto", "nrt", "aware"] {
        let records = held(timeout, true, 10, 20, 600);
        let stats = records.flows[0].sender.unwrap();
        assert_eq!((stats.timeouts, stats.spurious_timeouts, stats.undos), (1, 1, 1), "{timeout}");
        assert_eq!(needless(&records), 1, "{timeout}");
        assert_eq!(stats.retransmissions as usize, records.drops.len() + 1, "{timeout}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the path, and without timestamps too where F-RTO finds the timeout spurious.
    #[test]
    fn a_spurious_timeout_makes_no_losses(
        (timeout, timestamps) in select(vec![("eifel", true), ("f-rto", true), ("nrt", true), ("f-rto", false), ("nrt", false)]),
        megabits in 2..40u64,
        rtt_ms in 5..150u64,
        outage_ms in 300..1500u64,
    ) {
        let records = held(timeout, timestamps, megabits, rtt_ms, outage_ms);
        let stats = records.flows[0].sender.unwrap();
        prop_assert!(needless(&records) as u64 <= stats.timeouts, "{} needless: {stats:?}", needless(&records));
    }
}

/// Every loss is one, and nothing arrives twice: no acknowledgement proves a reduction wrong. One recovery may begin while repairs of the
/// one before are under way, whose acknowledgements echo clocks older than its own first repair.
#[test]
fn what_was_lost_is_not_undone() {
    for (scheme, timeout) in [("cubic", "standard"), ("sack", "standard"), ("cubic", "eifel")] {
        for run in 0..12 {
            let bulk = Bulk {
                config: Config::modern(),
                selection: Selection { timeout: Some(timeout.to_owned()), ..Selection::scheme(scheme) },
                rate: BitRate::from_bps(10_000_000),
                rtt: ms(44),
                queue: 100,
                loss: 0.02,
                lasts: Duration::from_secs(10),
            };
            let records = bulk.records(run, |_| ());
            let stats = records.flows[0].sender.unwrap();
            assert_eq!((needless(&records), stats.undos), (0, 0), "{scheme}, {timeout}, run {run}: {stats:?}");
        }
    }
}

/// The windows and the bursts of a sender that has lost every third of some segments of one window.
#[derive(Debug)]
struct Recovered {
    /// The window before the first loss, in segments.
    before: u64,
    /// The window twelve round trips after recovery.
    after: u64,
    /// The most segments that left at one moment from the end of recovery on.
    burst: usize,
    timeouts: u64,
}

const SEGMENT: u64 = 1000;

fn lose_and_recover(reaction: &str, config: &Config) -> Recovered {
    let config = Config { mss: 1000, timestamps: false, nagle: false, window_validation: false, ..config.clone() };
    // Congestion avoidance from 40 segments on. A hole soon fills the receiver's buffer, and the network runs empty.
    let config = Config { initial_ssthresh: Some(40 * SEGMENT), initial_window: 4, receive_buffer: 50 * SEGMENT, ..config };
    let coin = BTreeMap::from([("p".to_owned(), Value::Number(1.0))]);
    let selection = Selection {
        congestion: Some("newreno".to_owned()),
        differentiator: Some("coin".to_owned()),
        reaction: Some(reaction.to_owned()),
        parameters: BTreeMap::from([("coin".to_owned(), coin)]),
        ..Selection::default()
    };
    let left = Arc::new(Mutex::new(Vec::new()));
    let log = left.clone();
    let holes: Vec<u64> = (0..8).map(|nth| (400 + 3 * nth) * SEGMENT).collect();
    let forward = Link::new(ms(30)).bottleneck(BitRate::from_bps(16_000_000), 1000).fault(Fault::Drop, move |passing| {
        if passing.offset.is_some() {
            log.lock().unwrap().push(passing.now);
        }
        passing.offset.is_some_and(|offset| holes.contains(&offset)) && passing.transmission == 0
    });
    let sender = Setup { closes: Closes::Never, produces: true, ..Setup::sender(config.clone(), 1 << 40) };
    let receiver = Setup { closes: Closes::Never, ..Setup::receiver(config) };
    let mut ring = Ring::new(7, sender.with(selection), receiver, forward, Link::new(ms(30))).unwrap();
    let repair = |ring: &Ring| ring.host(Side::Client).endpoint.outstanding().repair;
    let cwnd = |ring: &Ring| ring.host(Side::Client).endpoint.window().cwnd() / SEGMENT;
    let end = Instant::ZERO + ms(60_000);
    let before = Cell::new(0);
    ring.run_until(end, |ring| {
        let repairing = repair(ring) != Repair::None;
        before.set(if repairing { before.get() } else { cwnd(ring) });
        repairing
    })
    .unwrap();
    ring.run_until(end, |ring| repair(ring) == Repair::None).unwrap();
    let over = ring.now();
    ring.run_until(over + ms(60 * 12), |_| false).unwrap();
    let left = left.lock().unwrap();
    let burst = left.chunk_by(|a, b| a == b).filter(|burst| burst[0] >= over).map(<[_]>::len).max().unwrap();
    Recovered { before: before.get(), after: cwnd(&ring), burst, timeouts: ring.host(Side::Client).endpoint.stats().timeouts }
}

#[test]
fn no_window_comes_back_in_a_burst() {
    let newreno = Config { impatient: false, ..Config::freebsd45() };
    let sack = Config { sack: true, ..newreno.clone() };
    for (name, config) in [("newreno", newreno), ("sack", sack), ("prr", Config::modern())] {
        for (reaction, part) in [("keep", 1.0), ("scale", 0.8), ("reduce", 0.5)] {
            let recovered = lose_and_recover(reaction, &config);
            assert_eq!(recovered.timeouts, 0, "{name} {reaction}");
            // The initial window, and what the acknowledgement of two segments makes room for.
            assert!(recovered.burst <= 6, "{name} {reaction}: {recovered:?}");
            let kept = recovered.before as f64 * part;
            assert!((kept - 3.0..=kept + 13.0).contains(&(recovered.after as f64)), "{name} {reaction}: {recovered:?}");
        }
    }
}

/// A queue of 20 under a window of 44 that no loss reduces. With 64 KiB at the receiver a hole stops the sender, and each costs a round
/// trip: what counts is how many segments the queue drops when the window comes back. All at once it lost 33 of 44 and carried 1.9
/// Mbit/s.
#[test]
fn a_sender_that_never_reduces_gets_on_without_sack() {
    let bulk = Bulk {
        config: Config::freebsd45(),
        selection: Selection::scheme("newreno-ff"),
        rate: BitRate::from_bps(10_000_000),
        rtt: ms(20),
        queue: 20,
        loss: 0.0,
        lasts: Duration::from_secs(20),
    };
    let flow = bulk.run(0);
    let stats = flow.sender.unwrap();
    assert_eq!(stats.reductions, 0);
    assert!(flow.goodput_bps > 4e6, "{}", flow.goodput_bps);
    assert!(stats.losses < 10 * stats.fast_retransmits, "{stats:?}");
}
