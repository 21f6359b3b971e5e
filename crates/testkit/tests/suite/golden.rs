//! The golden table: what each congestion control gets out of a 10 Mbit/s link, for every combination of loss, queue and delay.
//!
//! It is a snapshot. A change in a number is not a mistake by itself, but somebody has to look at it and say why.

use crate::common::Bulk;
use std::fmt::Write;
use whyloss_transport::scheme::{Selection, Value};
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

/// The agents of ns-2.1b8 on the dumbbell of Tsaoussidis & Zhang 2002: 10 Mbit/s, 70 ms, a queue of 50. How often timers expired stands beside the
/// goodput: with ticks of 100 ms and a minimum of 1 s that is what loss costs.
#[test]
fn the_agents_of_2001_keep_their_goodput() {
    let mut gaimd = Selection::scheme("gaimd");
    gaimd.parameters.entry("gaimd".to_owned()).or_default().insert("halve_first".to_owned(), Value::Flag(true));
    let schemes = [
        ("reno", Selection::scheme("reno")),
        ("newreno", Selection::scheme("newreno")),
        ("sack", Selection::scheme("sack")),
        ("gaimd", gaimd),
    ];
    let mut out = "kbit/s (timeouts) over 10 Mbit/s, 70 ms, queue 50, 60 s\n  loss |".to_owned();
    for (name, _) in &schemes {
        write!(out, " {name:>12}").unwrap();
    }
    for loss in LOSSES {
        write!(out, "\n{:>5.1}% |", loss * 100.0).unwrap();
        for (_, selection) in &schemes {
            let bulk = Bulk {
                config: Config::ns2_2001(),
                selection: selection.clone(),
                rate: BitRate::from_bps(10_000_000),
                rtt: Duration::from_millis(70),
                queue: 50,
                loss,
                lasts: Duration::from_secs(60),
            };
            let flow = bulk.run(1);
            write!(out, " {:>6.0} ({:>3})", flow.goodput_bps / 1000.0, flow.sender.map_or(0, |sender| sender.timeouts)).unwrap();
        }
    }
    insta::assert_snapshot!("agents_of_2001", out);
}

/// What a congestion control makes of losses that are no congestion shows only where somebody says so.
#[test]
fn what_is_lent_keeps_its_goodput() {
    for congestion in ["newreno", "lbe"] {
        let selection = Selection {
            congestion: Some(congestion.to_owned()),
            differentiator: Some("oracle".to_owned()),
            reaction: Some("keep".to_owned()),
            ..Selection::default()
        };
        insta::assert_snapshot!(format!("oracle_{congestion}"), table(&format!("{congestion} that knows"), &selection));
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
