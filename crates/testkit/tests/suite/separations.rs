//! WTCP at work: a rate that the receiver computes, alone, beside its like, over errors and through blackouts.

use crate::common::Bulk;
use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, ChannelSpec, End, Errors, Limits, LinkSpec, Middlebox, MiddleboxKind, Outage, QueueLimit, Records, TcpFlow,
};
use whyloss_transport::scheme::Selection;
use whyloss_transport::{BitRate, Config, Duration, Instant};

fn bulk(scheme: &str, kbps: u64, rtt_ms: u64, loss: f64) -> Bulk {
    Bulk {
        config: Config::modern(),
        selection: Selection::scheme(scheme),
        rate: BitRate::from_bps(kbps * 1000),
        rtt: Duration::from_millis(rtt_ms),
        queue: 50,
        loss,
        lasts: Duration::from_secs(100),
    }
}

#[test]
fn over_errors_it_beats_a_sender_that_takes_them_for_congestion() {
    for (kbps, rtt_ms, loss) in [(2000, 100, 0.01), (2000, 100, 0.02), (2000, 100, 0.05), (10_000, 80, 0.01), (10_000, 80, 0.02)]
    {
        let [wtcp, newreno, sack] =
            ["wtcp", "newreno", "sack"].map(|scheme| bulk(scheme, kbps, rtt_ms, loss).goodput(3) / 1000.0);
        println!("{kbps} kbit/s, {rtt_ms} ms, {loss}: wtcp {wtcp:.0}, newreno {newreno:.0}, sack {sack:.0}");
        assert!(wtcp > 1.3 * newreno && wtcp > 1.3 * sack, "{kbps} {rtt_ms} {loss}: {wtcp:.0}, {newreno:.0}, {sack:.0}");
    }
}

#[test]
fn alone_on_a_clean_path_it_fills_most_of_it() {
    // The second is a wide-area radio of its time.
    for (kbps, rtt_ms) in [(2000, 100), (19, 800), (10_000, 20), (10_000, 300)] {
        let flow = bulk("wtcp", kbps, rtt_ms, 0.0).run(0);
        let (sender, share) = (flow.sender.expect("it is TCP"), flow.goodput_bps / 1000.0 / kbps as f64);
        println!("{kbps} kbit/s, {rtt_ms} ms: {share:.3}, {} retransmissions", sender.retransmissions);
        assert!(share > 0.75 && share < 1.0, "{kbps} kbit/s, {rtt_ms} ms: {share}");
    }
}

/// Flows between two hosts of their own each, over 4 Mbit/s and 80 ms, the second begins 20 s after the first.
fn shared(schemes: [&str; 2], tamper: impl FnOnce(&mut Builder, whyloss_sim::NodeId, whyloss_sim::LinkId)) -> Records {
    let mut builder = Builder::new(5, 0);
    let (left, right) = (builder.router("left"), builder.router("right"));
    let link = |mbps: u64, ms: u64| LinkSpec {
        rate: BitRate::from_bps(mbps * 1_000_000),
        delay: Duration::from_millis(ms),
        queue: QueueLimit::Packets(50),
        ..LinkSpec::default()
    };
    let middle = builder.link(left, right, link(4, 35), link(4, 35));
    for (nth, scheme) in schemes.into_iter().enumerate() {
        let (from, to) = (builder.host(format!("from{nth}")), builder.host(format!("to{nth}")));
        builder.link(from, left, link(100, 3), link(100, 3));
        builder.link(right, to, link(100, 2), link(100, 2));
        let end = || {
            let mut config = Config::modern();
            let parts = Selection::scheme(scheme).build(&mut config).expect("it is in the table");
            End::new(config, parts)
        };
        let start = Instant::ZERO + Duration::from_secs(20 * nth as u64);
        let (name, amount) = (format!("flow{nth}"), Amount::Unlimited);
        builder.tcp(TcpFlow { name, from, to, start, amount, sender: end(), receiver: end() });
    }
    tamper(&mut builder, left, middle);
    builder.sample_every(Duration::from_secs(1));
    let mut simulation = builder.build().expect("the network fits together");
    let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(320)) };
    simulation.run(&limits, |_| ControlFlow::Continue(())).expect("it runs");
    simulation.into_records()
}

/// Goodput of both from 120 s to the end in kbit/s.
fn settled(records: &Records) -> [f64; 2] {
    let delivered = |flow: usize, second: u64| {
        let mut samples = records.flow_samples.iter().filter(|sample| sample.flow == flow);
        let at = Instant::ZERO + Duration::from_secs(second);
        samples.find(|sample| sample.at >= at).expect("it is sampled").octets_delivered
    };
    [0, 1].map(|flow| (delivered(flow, 319) - delivered(flow, 120)) as f64 * 8.0 / 199_000.0)
}

#[test]
fn two_of_them_share_a_link() {
    let [one, other] = settled(&shared(["wtcp", "wtcp"], |_, _, _| ()));
    let jain = (one + other).powi(2) / (2.0 * (one * one + other * other));
    println!("{one:.0} and {other:.0} kbit/s, fairness {jain:.3}");
    assert!(one + other > 0.75 * 4000.0 && jain > 0.9, "{one:.0} and {other:.0} kbit/s: {jain:.3}");
}

#[test]
fn beside_newreno_neither_starves() {
    let [wtcp, newreno] = settled(&shared(["wtcp", "newreno"], |_, _, _| ()));
    println!("wtcp {wtcp:.0}, newreno {newreno:.0} kbit/s");
    assert!(wtcp > 200.0 && newreno > 200.0, "{wtcp:.0} and {newreno:.0} kbit/s");
}

/// A firewall takes the options out of SYNs too: both sides are plain TCP.
#[test]
fn where_its_options_do_not_come_through_it_is_plain_tcp() {
    let strip = |builder: &mut Builder, left, middle| {
        let kind = MiddleboxKind::named("strip").expect("it is in the table");
        builder.middlebox(Middlebox::new(left, middle, kind));
    };
    let [one, other] = settled(&shared(["wtcp", "wtcp"], strip));
    let plain = settled(&shared(["sack", "sack"], |_, _, _| ()));
    assert_eq!([one, other], plain, "octet for octet");
}

#[test]
fn after_a_blackout_it_goes_on_where_it_was() {
    let goodput = |scheme: &str| {
        let records = bulk(scheme, 2000, 100, 0.0).records(0, |forward| {
            let (at, lasts, every) =
                (Instant::ZERO + Duration::from_secs(5), Duration::from_secs(2), Some(Duration::from_secs(10)));
            forward.outage = vec![Outage { every, ..Outage::once(at, lasts) }];
            forward.channel = ChannelSpec { errors: Errors::None, ..ChannelSpec::default() };
        });
        let sender = records.flows[0].sender.expect("it is TCP");
        println!("{scheme}: {:.0} bit/s, {} timeouts", records.flows[0].goodput_bps, sender.timeouts);
        records.flows[0].goodput_bps
    };
    let (wtcp, newreno) = (goodput("wtcp"), goodput("newreno"));
    assert!(wtcp > newreno, "{wtcp:.0} against {newreno:.0}");
}
