//! TCP transfers of a given size.

use std::ops::ControlFlow;
use whyloss_sim::{Amount, Builder, ChannelSpec, End, Limits, LinkSpec, Outcome, QueueLimit, TcpFlow};
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::{Closing, Config};
use whyloss_transport::{BitRate, Duration, Instant};

const OCTETS: u64 = 100_000;

fn end() -> End {
    let mut config = Config::modern();
    let parts = Selection::scheme("newreno").build(&mut config).unwrap();
    End { config, parts }
}

fn link() -> LinkSpec {
    let (rate, delay) = (BitRate::from_bps(1_000_000), Duration::from_millis(10));
    LinkSpec { rate, delay, queue: QueueLimit::Packets(100), channel: ChannelSpec::default() }
}

#[test]
fn a_transfer_arrives_whole_and_closes() {
    let mut builder = Builder::new(1, 0);
    let (from, to) = (builder.host("a"), builder.host("b"));
    builder.link(from, to, link(), link());
    let flow = TcpFlow {
        name: "f".to_owned(),
        from,
        to,
        start: Instant::ZERO,
        amount: Amount::Octets(OCTETS),
        sender: end(),
        receiver: end(),
    };
    builder.tcp(flow);
    let mut simulation = builder.build().unwrap();
    let limits = Limits { until: Some(Instant::from_nanos(60_000_000_000)) };
    assert_eq!(simulation.run(&limits, |_| ControlFlow::Continue(())).unwrap(), Outcome::Completed);
    let records = simulation.into_records();
    let flow = &records.flows[0];
    assert_eq!((flow.octets_delivered, flow.octets_corrupted), (OCTETS, 0));
    assert!(flow.finished > flow.connected);
    assert!(matches!(flow.closing, None | Some(Closing::Normal)));
}
