//! Fast recovery and what ends it: what must not be taken for lost, and how a window comes back.

mod common;

use common::Bulk;
use proptest::prelude::*;
use proptest::sample::select;
use whyloss_sim::{Outage, Records, WhileDown};
use whyloss_transport::scheme::Selection;
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
    let outage = Outage { at: Instant::ZERO + ms(3000), lasts: ms(outage_ms), every: None, packets: WhileDown::Held };
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
