//! What middleboxes at a base station are worth: the golden table of one transfer to a mobile host, for each that helps.
//!
//! It is a snapshot. A change in a number is not a mistake by itself, but somebody has to look at it and say why.

use std::fmt::Write;
use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, Middlebox, MiddleboxKind, QueueLimit, Records, TcpFlow,
};
use whyloss_transport::scheme::Selection;
use whyloss_transport::{BitRate, Config, Duration, Instant};

/// A fixed host, its wired way of 40 ms there and back, a base station, and a mobile host 10 ms there and back from it.
#[derive(Clone, Copy, Debug)]
struct World {
    scheme: &'static str,
    middlebox: Option<&'static str>,
    /// Share of packets that the wireless link loses in the direction of the data.
    loss: f64,
    run: u64,
}

impl World {
    fn run(self) -> Records {
        let mut builder = Builder::new(7, self.run);
        let (fixed, station, mobile) = (builder.host("fixed"), builder.router("station"), builder.host("mobile"));
        let link = |mbps: u64, ms: u64, loss: f64| LinkSpec {
            rate: BitRate::from_bps(mbps * 1_000_000),
            delay: Duration::from_millis(ms),
            queue: QueueLimit::Packets(50),
            channel: ChannelSpec { errors: Errors::Packets { probability: loss }, effect: Effect::Erase },
            ..LinkSpec::default()
        };
        builder.link(fixed, station, link(10, 20, 0.0), link(10, 20, 0.0));
        let wireless = builder.link(station, mobile, link(2, 5, self.loss), link(2, 5, 0.0));
        if let Some(kind) = self.middlebox {
            let kind = MiddleboxKind::named(kind).expect("it is in the table");
            builder.middlebox(Middlebox::new(station, wireless, kind));
        }
        let end = || {
            let mut config = Config::modern();
            let parts = Selection::scheme(self.scheme).build(&mut config).expect("it is in the table");
            End { config, parts }
        };
        let (start, amount) = (Instant::ZERO, Amount::Unlimited);
        builder.tcp(TcpFlow { name: "flow".into(), from: fixed, to: mobile, start, amount, sender: end(), receiver: end() });
        let mut simulation = builder.build().expect("the network fits together");
        let limits = Limits { until: Some(start + Duration::from_secs(100)) };
        simulation.run(&limits, |_| ControlFlow::Continue(())).expect("it runs");
        simulation.into_records()
    }
}

/// Mean goodput in kbit/s over three runs, retransmissions and timeouts of the sender, and the most memory of a middlebox in octets.
fn outcome(world: World) -> (f64, u64, u64, u64) {
    let (mut goodput, mut resent, mut timeouts, mut memory) = (0.0, 0, 0, 0);
    for run in 0..3 {
        let records = World { run, ..world }.run();
        let sender = records.flows[0].sender.expect("it is TCP");
        goodput += records.flows[0].goodput_bps / 3000.0;
        resent += sender.retransmissions;
        timeouts += sender.timeouts;
        memory = memory.max(records.middleboxes.iter().map(|own| own.peak.octets).max().unwrap_or(0));
        assert!(records.packets.balanced());
    }
    (goodput, resent, timeouts, memory)
}

const KINDS: [Option<&str>; 3] = [None, Some("packet-control"), Some("snoop")];

#[test]
fn every_middlebox_keeps_its_worth() {
    for scheme in ["newreno", "sack"] {
        let mut out = format!(
            "{scheme} to a mobile host, 2 Mbit/s, 3 runs of 100 s\n  loss middlebox        kbit/s  resent timeouts  memory B"
        );
        for loss in [0.0, 0.005, 0.02, 0.05] {
            for middlebox in KINDS {
                let (goodput, resent, timeouts, memory) = outcome(World { scheme, middlebox, loss, run: 0 });
                let name = middlebox.unwrap_or("none");
                write!(out, "\n{:>5.1}% {name:<15} {goodput:>7.0} {resent:>7} {timeouts:>8} {memory:>9}", loss * 100.0).unwrap();
            }
        }
        insta::assert_snapshot!(format!("base_station_{scheme}"), out);
    }
}

#[test]
fn a_snoop_agent_hides_what_the_link_loses() {
    let world = World { scheme: "newreno", middlebox: None, loss: 0.02, run: 0 };
    let (plain, helped) = (world.run(), World { middlebox: Some("snoop"), ..world }.run());
    let sender = |records: &Records| records.flows[0].sender.expect("it is TCP");
    assert!(helped.flows[0].goodput_bps > 1.3 * plain.flows[0].goodput_bps);
    assert!(10 * sender(&helped).reductions < sender(&plain).reductions);
    // The agent sends again what was lost, and what it keeps back is no loss.
    assert!(helped.flows[0].forward.inserted > 100 && helped.flows[0].reverse.suppressed > 100);
    assert_eq!(helped.flows[0].reverse.dropped.total(), 0);
}
