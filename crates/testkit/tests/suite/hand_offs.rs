//! What schemes are worth to a mobile host whose link goes down again and again: the golden table of one transfer.
//!
//! It is a snapshot. A change in a number is not a mistake by itself, but somebody has to look at it and say why.

use std::fmt::Write;
use std::ops::ControlFlow;
use whyloss_sim::{Amount, Builder, End, Limits, LinkSpec, Outage, QueueLimit, Records, TcpFlow};
use whyloss_transport::scheme::{Selection, Value};
use whyloss_transport::{BitRate, Config, Duration, Instant};

/// A fixed host, its wired way of 40 ms there and back, a base station, and a mobile host 10 ms there and back from it, whose link is down
/// every 10 s.
#[derive(Clone, Debug)]
struct World {
    sender: Selection,
    receiver: Selection,
    lasts: Duration,
    run: u64,
}

impl World {
    fn of(selection: Selection, lasts: Duration) -> Self {
        Self { sender: selection.clone(), receiver: selection, lasts, run: 0 }
    }

    fn run(&self) -> Records {
        let mut builder = Builder::new(11, self.run);
        let (fixed, station, mobile) = (builder.host("fixed"), builder.router("station"), builder.host("mobile"));
        let link = |mbps: u64, ms: u64, queue: u32| LinkSpec {
            rate: BitRate::from_bps(mbps * 1_000_000),
            delay: Duration::from_millis(ms),
            queue: QueueLimit::Packets(queue),
            ..LinkSpec::default()
        };
        builder.link(fixed, station, link(100, 20, 100), link(100, 20, 100));
        // Not in step with the second, so that runs differ by where in a round trip it begins.
        let at = Instant::ZERO + Duration::from_millis(10_000 + 37 * self.run);
        let outage = Outage { every: Some(Duration::from_secs(10)), ..Outage::once(at, self.lasts) };
        let air = || LinkSpec { outage: vec![outage], ..link(4, 5, 25) };
        builder.link(station, mobile, air(), air());
        let end = |selection: &Selection| {
            let mut config = Config::modern();
            let parts = selection.build(&mut config).expect("it is in the table");
            End::new(config, parts)
        };
        let (start, amount) = (Instant::ZERO, Amount::Unlimited);
        let (sender, receiver) = (end(&self.sender), end(&self.receiver));
        builder.tcp(TcpFlow { name: "flow".into(), from: fixed, to: mobile, start, amount, sender, receiver });
        let mut simulation = builder.build().expect("the network fits together");
        let limits = Limits { until: Some(start + Duration::from_secs(100)) };
        simulation.run(&limits, |_| ControlFlow::Continue(())).expect("it runs");
        simulation.into_records()
    }

    /// Mean goodput in kbit/s over three runs, retransmissions and timeouts of the sender.
    fn outcome(&self) -> (f64, u64, u64) {
        let (mut goodput, mut resent, mut timeouts) = (0.0, 0, 0);
        for run in 0..3 {
            let records = Self { run, ..self.clone() }.run();
            let sender = records.flows[0].sender.expect("it is TCP");
            goodput += records.flows[0].goodput_bps / 3000.0;
            resent += sender.retransmissions;
            timeouts += sender.timeouts;
            assert!(records.packets.balanced());
        }
        (goodput, resent, timeouts)
    }
}

fn freeze(warning_ms: f64) -> Selection {
    let mut selection = Selection::scheme("freeze-tcp");
    selection.parameters.entry("freeze".into()).or_default().insert("warning_ms".into(), Value::Number(warning_ms));
    selection
}

#[test]
fn every_scheme_for_hand_offs_keeps_its_worth() {
    let scheme = |name: &str| (String::from(name), World::of(Selection::scheme(name), Duration::ZERO));
    let mut rows = vec![scheme("newreno"), scheme("sack"), scheme("tcp-probing"), scheme("freeze-tcp")];
    for ms in [150.0, 500.0] {
        rows.push((format!("freeze-tcp {ms} ms"), World::of(freeze(ms), Duration::ZERO)));
    }
    let stock = World { sender: Selection::scheme("sack"), ..World::of(freeze(150.0), Duration::ZERO) };
    rows.push(("150 ms, stock sender".to_owned(), stock));
    let mut out = "a transfer over 4 Mbit/s that are away every 10 s, 3 runs of 100 s\n   away scheme                 kbit/s  resent timeouts".to_owned();
    for lasts in [100, 500, 2000, 5000].map(Duration::from_millis) {
        for (name, world) in &rows {
            let (goodput, resent, timeouts) = World { lasts, ..world.clone() }.outcome();
            let away = lasts.as_millis();
            write!(out, "\n{away:>4} ms {name:<20} {goodput:>7.0} {resent:>7} {timeouts:>8}").unwrap();
        }
    }
    insta::assert_snapshot!("hand_offs", out);
}

/// The sender needs no change, but for the case that the warning was too short.
#[test]
fn a_receiver_that_warns_in_time_spares_a_stock_sender_its_timeouts() {
    let lasts = Duration::from_secs(2);
    let stock = World::of(Selection::scheme("sack"), lasts);
    let helped = World { receiver: freeze(150.0), ..stock.clone() };
    let ((alone, _, timeouts), (goodput, _, helped_timeouts)) = (stock.outcome(), helped.outcome());
    assert!(timeouts >= 3 * 9 && 10 * helped_timeouts < timeouts, "{timeouts} and {helped_timeouts} timeouts");
    assert!(goodput > 1.05 * alone, "{goodput} against {alone} kbit/s");
}
