//! Transfers whose receiver reports damaged segments.

use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, QueueLimit, Records, RunOutcome, TcpFlow, Truth,
};
use whyloss_transport::path::Trigger;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::{Config, ReportResponse};
use whyloss_transport::{BitRate, Duration, Instant};

const OCTETS: u64 = 100_000;

fn end(mut config: Config, scheme: &str) -> End {
    let parts = Selection::scheme(scheme).build(&mut config).unwrap();
    End::new(config, parts)
}

fn link(ber: f64) -> LinkSpec {
    LinkSpec {
        rate: BitRate::from_bps(1_000_000),
        delay: Duration::from_millis(10),
        queue: QueueLimit::Packets(100),
        channel: ChannelSpec { errors: Errors::Bits { ber }, effect: Effect::Damage },
        ..LinkSpec::default()
    }
}

/// Moves [`OCTETS`] over a link with bit errors in the direction of the data.
fn transfer(config: &Config, scheme: &str, ber: f64, run: u64) -> Records {
    let mut builder = Builder::new(1, run);
    let (from, to) = (builder.host("a"), builder.host("b"));
    builder.link(from, to, link(ber), link(0.0));
    builder.tcp(TcpFlow {
        name: "f".to_owned(),
        from,
        to,
        start: Instant::ZERO,
        amount: Amount::Octets(OCTETS),
        sender: end(config.clone(), scheme),
        receiver: end(config.clone(), scheme),
    });
    let mut simulation = builder.build().unwrap();
    let limits = Limits { until: Some(Instant::from_nanos(600_000_000_000)) };
    assert_eq!(simulation.run(&limits, |_| ControlFlow::Continue(())).unwrap(), RunOutcome::Completed);
    simulation.into_records()
}

#[test]
fn what_a_report_has_repaired_is_not_repaired_again() {
    let config = Config { report_response: ReportResponse::Immediate, ..Config::freebsd45() };
    let mut repaired = 0;
    for run in 0..20 {
        let records = transfer(&config, "checksum-ld", 1e-5, run);
        let by = |trigger| move |loss: &&whyloss_sim::LossRow| loss.record.trigger == trigger;
        repaired += records.losses.iter().filter(by(Trigger::Report)).count();
        for trigger in [Trigger::PartialAck, Trigger::DuplicateAcks] {
            let wrong = records.losses.iter().filter(by(trigger)).find(|loss| loss.truth == Truth::Arrived);
            assert_eq!(wrong, None, "run {run}");
        }
    }
    assert!(repaired > 50);
}
