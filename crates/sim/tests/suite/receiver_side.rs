//! What differentiators at the receiver are worth where the truth is known.

use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, QueueLimit, Records, RunOutcome, TcpFlow, Truth,
};
use whyloss_transport::differentiation::Cause;
use whyloss_transport::path::Trigger;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant};

/// One flow over one link with a long queue that erases packets in both directions.
fn over_one_link(selection: &Selection, erased: [f64; 2], seconds: u64) -> Records {
    let mut builder = Builder::new(11, 0);
    let (from, to) = (builder.host("a"), builder.host("b"));
    let link = |probability| LinkSpec {
        rate: BitRate::from_bps(10_000_000),
        delay: Duration::from_millis(10),
        queue: QueueLimit::Packets(10_000),
        channel: ChannelSpec { errors: Errors::Packets { probability }, effect: Effect::Erase },
        ..LinkSpec::default()
    };
    builder.link(from, to, link(erased[0]), link(erased[1]));
    let end = || {
        let mut config = Config { max_window: Some(200_000), ..Config::modern() };
        let parts = selection.build(&mut config).unwrap();
        End::new(config, parts)
    };
    let amount = Amount::Unlimited;
    builder.tcp(TcpFlow { name: "f".into(), from, to, start: Instant::ZERO, amount, sender: end(), receiver: end() });
    let mut simulation = builder.build().unwrap();
    let until = Some(Instant::ZERO + Duration::from_secs(seconds));
    simulation.run(&Limits { until }, |_| ControlFlow::Continue(())).unwrap();
    simulation.into_records()
}

/// Of the lost first transmissions, how many the ruling differentiator took for corruption, and how many there are.
fn corrupted(records: &Records) -> (u32, u32) {
    let first = records.losses.iter().filter(|loss| loss.record.transmission == 0 && loss.truth != Truth::Arrived);
    first.fold((0, 0), |(right, all), loss| (right + u32::from(loss.record.verdict.cause == Cause::Corruption), all + 1))
}

/// The scheme over a link with bit errors in both directions, each packet damaged with the probability of `ber` a bit.
fn over_bit_errors(scheme: &str, config: &Config, run: u64) -> Records {
    let mut builder = Builder::new(5, run);
    let (from, to) = (builder.host("a"), builder.host("b"));
    let link = LinkSpec {
        rate: BitRate::from_bps(1_000_000),
        delay: Duration::from_millis(20),
        queue: QueueLimit::Packets(1000),
        channel: ChannelSpec { errors: Errors::Bits { ber: 1e-5 }, effect: Effect::Damage },
        ..LinkSpec::default()
    };
    builder.link(from, to, link.clone(), link);
    let end = || {
        let mut config = config.clone();
        let parts = Selection::scheme(scheme).build(&mut config).unwrap();
        End::new(config, parts)
    };
    let amount = Amount::Octets(1_000_000);
    builder.tcp(TcpFlow { name: "f".into(), from, to, start: Instant::ZERO, amount, sender: end(), receiver: end() });
    let mut simulation = builder.build().unwrap();
    let until = Some(Instant::ZERO + Duration::from_secs(600));
    assert_eq!(simulation.run(&Limits { until }, |_| ControlFlow::Continue(())).unwrap(), RunOutcome::Completed);
    simulation.into_records()
}

#[test]
fn hack_knows_damaged_payloads() {
    let (mut known, mut damaged) = (0, 0);
    for config in [Config::modern(), Config::freebsd45()] {
        for run in 0..5 {
            let records = over_bit_errors("hack", &config, run);
            for loss in &records.losses {
                let verdict = loss.record.verdict.cause;
                match loss.truth {
                    // Reports are damaged too, and timer or RACK may come before them.
                    Truth::Lost(whyloss_sim::Cause::PayloadDamaged) if loss.record.trigger != Trigger::Timeout => {
                        damaged += 1;
                        known += u32::from(verdict == Cause::Corruption);
                    }
                    // Which of several transmissions a report means is a guess, whether there was damage is not.
                    Truth::Arrived if loss.record.transmission == 0 => {
                        assert_ne!(verdict, Cause::Corruption, "run {run}: {loss:?}");
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(damaged > 500 && f64::from(known) > 0.95 * f64::from(damaged), "{known} of {damaged}");
}

#[test]
fn casablanca_recognises_three_of_four() {
    // One packet in four is marked, and a marked one that the channel takes is mistaken for congestion (Biaz & Vaidya 2005: A_w > 75 %).
    // A gap of two is right with probability 1/2, but at this rate there are few.
    for (n, expected) in [(4.0, 0.75), (8.0, 0.875)] {
        let mut selection = Selection::scheme("casablanca");
        selection
            .parameters
            .entry("casablanca".into())
            .or_default()
            .insert("n".into(), whyloss_transport::scheme::Value::Number(n));
        let (right, all) = corrupted(&over_one_link(&selection, [0.005, 0.0], 300));
        let share = f64::from(right) / f64::from(all);
        let deviation = (expected * (1.0 - expected) / f64::from(all)).sqrt();
        assert!((share - expected).abs() < 3.0 * deviation + 0.01, "{right} of {all} is not {expected}");
    }
}

/// The share of lost first transmissions on which the sender heard what the receiver thought.
fn heard(acknowledgements_lost: f64) -> f64 {
    let selection = Selection { shadows: vec!["casablanca".into()], ..Selection::scheme("casablanca") };
    let records = over_one_link(&selection, [0.003, acknowledgements_lost], 300);
    let first = records.losses.iter().filter(|loss| loss.record.transmission == 0 && loss.truth != Truth::Arrived);
    let (same, all) = first
        .fold((0, 0), |(same, all), loss| (same + u32::from(loss.record.verdict.cause == loss.record.shadows[0].cause), all + 1));
    assert!(all > 300, "{all}");
    f64::from(same) / f64::from(all)
}

#[test]
fn verdicts_survive_the_loss_of_acknowledgements() {
    let (none_lost, third_lost) = (heard(0.0), heard(0.3));
    assert!(none_lost > 0.98 && third_lost > 0.95, "{none_lost} with all acknowledgements, {third_lost} with two of three");
}
