//! The golden table: what each congestion control gets out of a 10 Mbit/s link, for every combination of loss, queue and delay.
//!
//! It is a snapshot. A change in a number is not a mistake by itself, but somebody has to look at it and say why.

mod common;

use common::Bulk;
use std::fmt::Write;
use whyloss_transport::scheme::Selection;
use whyloss_transport::{congestion, BitRate, Config, Duration};

const LOSSES: [f64; 4] = [0.0, 0.001, 0.01, 0.05];
const QUEUES: [u32; 2] = [10, 60];
const RTTS_MS: [u64; 3] = [10, 80, 300];

fn table(name: &str, selection: &Selection) -> String {
    let mut out = format!("goodput of {name} in kbit/s over 10 Mbit/s, 20 s\n  loss  queue |");
    for rtt in RTTS_MS {
        write!(out, " {rtt:>4} ms").unwrap();
    }
    for loss in LOSSES {
        for queue in QUEUES {
            write!(out, "\n{:>5.1}% {queue:>6} |", loss * 100.0).unwrap();
            for rtt in RTTS_MS {
                let bulk = Bulk {
                    config: Config::modern(),
                    selection: selection.clone(),
                    rate: BitRate::from_bps(10_000_000),
                    rtt: Duration::from_millis(rtt),
                    queue,
                    loss,
                    lasts: Duration::from_secs(20),
                };
                write!(out, " {:>7.0}", bulk.goodput(1) / 1000.0).unwrap();
            }
        }
    }
    out
}

#[test]
fn every_congestion_control_keeps_its_goodput() {
    for part in congestion::TABLE {
        let selection = Selection { congestion: Some(part.name.to_owned()), ..Selection::default() };
        insta::assert_snapshot!(format!("goodput_{}", part.name), table(part.name, &selection));
    }
}

/// What depends on how the receiver answers shows in whole schemes only.
#[test]
fn schemes_whose_receiver_answers_in_its_own_way_keep_their_goodput() {
    for name in ["snack", "selective", "selective-reno", "selective-sack", "selective-cubic", "tcp-probing", "wtcp"] {
        insta::assert_snapshot!(format!("scheme_{name}"), table(name, &Selection::scheme(name)));
    }
}

/// What any table must look like, whatever its numbers: never more than the link, never more with more loss by more than chance.
#[test]
fn losses_cost() {
    for congestion in ["reno", "newreno", "cubic"] {
        let goodput = |loss| {
            let bulk = Bulk {
                config: Config::modern(),
                selection: Selection { congestion: Some(congestion.to_owned()), ..Selection::default() },
                rate: BitRate::from_bps(10_000_000),
                rtt: Duration::from_millis(80),
                queue: 60,
                loss,
                lasts: Duration::from_secs(20),
            };
            bulk.goodput(3)
        };
        let goodputs = LOSSES.map(goodput);
        // Of 1500 octets at least 40 are headers.
        assert!(goodputs[0] < 10e6 * 1460.0 / 1500.0 && goodputs[0] > 9e6, "{congestion}: {goodputs:?}");
        assert!(goodputs.is_sorted_by(|more, less| more > less), "{congestion}: {goodputs:?}");
    }
}
