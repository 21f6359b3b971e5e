//! TCP-Real's waves at work: what forms them decides whether it measures the path or itself.

use crate::common::Bulk;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, ChannelSpec, End, Errors, Limits, LinkSpec, Middlebox, MiddleboxKind, NodeId, QueueLimit, Records, Reorder,
    TcpFlow,
};
use whyloss_transport::scheme::{Selection, Value};
use whyloss_transport::{BitRate, Config, Duration, Instant};

/// What TCP-Real, with these waves and this reaction, or Reno gets out of 10 Mbit/s in Mbit/s, by ns-2's TCP with a window of 200 segments.
fn goodput(scheme: &str, waves: Option<&str>, reaction: Option<&str>, rtt_ms: u64, loss: f64) -> f64 {
    let parameters = waves.map(|waves| BTreeMap::from([("waves".to_owned(), Value::Word(waves.to_owned()))]));
    let bulk = Bulk {
        config: Config { receive_buffer: 200_000, ..Config::ns2() },
        selection: Selection {
            scheme: Some(scheme.to_owned()),
            reaction: reaction.map(str::to_owned),
            parameters: parameters.map(|given| ("tcp-real".to_owned(), given)).into_iter().collect(),
            ..Selection::default()
        },
        rate: BitRate::from_bps(10_000_000),
        rtt: Duration::from_millis(rtt_ms),
        queue: 50,
        loss,
        lasts: Duration::from_secs(60),
    };
    bulk.goodput(2) / 1e6
}

/// On a path of its own the rate of a wave is the link's, whatever the window: nothing slows the window's growth. That is only so if a wave
/// does not span the time in which nothing leaves.
#[test]
fn alone_and_without_errors_waves_come_at_the_rate_of_the_link() {
    for rtt in [20, 40, 70, 200] {
        // What is dropped at the end of a full queue halves the window as Reno's, so that the waves alone make the difference.
        let real = |waves| goodput("tcp-real", waves, Some("reduce"), rtt, 0.0);
        let (reno, train) = (goodput("reno", None, None, rtt, 0.0), real(None));
        assert!(train > 0.95 * reno, "{rtt} ms: {train:.2} of {reno:.2} Mbit/s");
        if rtt > 50 {
            let window = real(Some("cwnd"));
            assert!(
                window < 0.5 * reno,
                "{rtt} ms: a window that takes a round trip measures throughput: {window:.2} of {reno:.2} Mbit/s"
            );
        }
    }
}

/// A whole window that leaves at once and waits for all of its acknowledgements carries W in a round trip and W transmissions: of 26 to 51 segments,
/// where the queue overflows, 38 in 20 ms + 38 * 0.8 ms, or 6 Mbit/s, less what repairs cost.
#[test]
fn waves_that_are_held_cost_the_idle_part_of_a_round_trip() {
    let hold = goodput("tcp-real", Some("hold"), Some("reduce"), 20, 0.0);
    assert!((4.0..6.5).contains(&hold), "{hold:.2} Mbit/s");
}

#[test]
fn waves_tell_errors_from_congestion_unless_they_are_too_small() {
    let reno = goodput("reno", None, None, 70, 0.01);
    let [train, burst] = [None, Some("burst")].map(|waves| goodput("tcp-real", waves, None, 70, 0.01));
    assert!(train > 2.0 * reno, "{train:.2}, Reno {reno:.2} Mbit/s");
    assert!(burst < 1.25 * reno, "without five segments a wave it is Reno: {burst:.2}, Reno {reno:.2} Mbit/s");
}

/// One flow of ns-2's agents of 2001 over 10 Mbit/s and 70 ms that loses so many of its packets there and back, and with `reorder` leaves the order.
fn crossing(selection: &Selection, lost: [f64; 2], reorder: Option<Reorder>, secs: u64, run: u64) -> Records {
    crossing_past(|_, _, to| to, selection, lost, reorder, secs, run)
}

/// The same with something between the path and the receiver: `past` gets the receiver, and gives what the path ends at.
fn crossing_past(
    past: impl FnOnce(&mut Builder, NodeId, NodeId) -> NodeId,
    selection: &Selection,
    [there, back]: [f64; 2],
    reorder: Option<Reorder>,
    secs: u64,
    run: u64,
) -> Records {
    let mut builder = Builder::new(11, run);
    let (from, to) = (builder.host("from"), builder.host("to"));
    let way = |probability: f64, reorder| LinkSpec {
        rate: BitRate::from_bps(10_000_000),
        delay: Duration::from_millis(35),
        queue: QueueLimit::Packets(50),
        channel: ChannelSpec { errors: Errors::Packets { probability }, ..ChannelSpec::default() },
        reorder,
        ..LinkSpec::default()
    };
    let last = past(&mut builder, from, to);
    builder.link(from, last, way(there, reorder), way(back, None));
    let end = || {
        let mut config = Config::ns2_2001();
        let parts = selection.build(&mut config).unwrap();
        End::new(config, parts)
    };
    let (start, amount) = (Instant::ZERO, Amount::Unlimited);
    builder.tcp(TcpFlow { name: "flow".to_owned(), from, to, start, amount, sender: end(), receiver: end() });
    let mut simulation = builder.build().unwrap();
    simulation.run(&Limits { until: Some(Instant::ZERO + Duration::from_secs(secs)) }, |_| ControlFlow::Continue(())).unwrap();
    simulation.into_records()
}

/// A path that loses acknowledgements makes timers expire. The timer has to allow for that, the window has not: it is a matter of the way there
/// (Tsaoussidis & Zhang 2002, the end of 3.2).
#[test]
fn lost_acknowledgements_do_not_take_the_window_of_tcp_real() {
    let (real, reno) = (Selection::scheme("tcp-real"), Selection::scheme("reno"));
    let coupled = Selection { timeout: Some("standard".to_owned()), ..real.clone() };
    // Mbit/s, timeouts, and those of them that took the window, of four runs.
    let measured = |selection: &Selection, back| {
        let runs: Vec<_> = (0..4).map(|run| crossing(selection, [0.005, back], None, 120, run)).collect();
        let goodput = runs.iter().map(|run| run.flows[0].goodput_bps / 4e6).sum::<f64>();
        let timeouts = || runs.iter().flat_map(|run| &run.timeouts);
        (goodput, timeouts().count(), timeouts().filter(|timeout| timeout.record.collapsed).count())
    };
    for back in [0.05, 0.2, 0.4] {
        let [real, coupled, reno] = [&real, &coupled, &reno].map(|selection| measured(selection, back));
        assert!(real.0 > 1.2 * reno.0, "{back} back: {real:?} and {reno:?}");
        assert_eq!((coupled.2, reno.2), (coupled.1, reno.1), "the standard timeout takes the window");
        assert!(real.2 * 10 < real.1 * 9, "{back} back: of {} timeouts {} took the window", real.1, real.2);
        // What that is worth is little beside what the rates of waves are: 4 to 7 % here.
        assert!(real.0 > coupled.0, "{back} back: {real:?}, with the standard timeout {coupled:?}");
    }
}

/// A firewall that takes out what it does not know leaves neither waves nor reports: each loss is congestion, as it is to
/// NewReno, whose recovery it has here.
#[test]
fn without_its_options_it_is_newreno() {
    let firewall = |builder: &mut Builder, _, to| {
        let router = builder.router("firewall");
        let fast = || LinkSpec { rate: BitRate::from_bps(1_000_000_000), ..LinkSpec::default() };
        let link = builder.link(router, to, fast(), fast());
        builder.middlebox(Middlebox::new(router, link, MiddleboxKind::named("strip").expect("it is in the table")));
        router
    };
    let goodput = |scheme: &str, firewalled: bool| -> f64 {
        let selection = Selection::scheme(scheme);
        let run = |run| {
            if firewalled {
                crossing_past(firewall, &selection, [0.01, 0.0], None, 60, run)
            } else {
                crossing(&selection, [0.01, 0.0], None, 60, run)
            }
        };
        (0..4).map(|number| run(number).flows[0].goodput_bps / 4e6).sum()
    };
    let [whole, stripped, newreno] = [goodput("tcp-real", false), goodput("tcp-real", true), goodput("newreno", true)];
    println!("with them {whole:.3}, without {stripped:.3}, NewReno {newreno:.3} Mbit/s");
    assert!(whole > 1.5 * newreno, "with them {whole:.2}, NewReno {newreno:.2} Mbit/s");
    assert!((0.95..1.05).contains(&(stripped / newreno)), "without them {stripped:.2}, NewReno {newreno:.2} Mbit/s");
}

/// Waves are numbered by eight bits, and carried by options that are lost with their packets or come out of order. Over many times 256 waves, a flow carries as much
/// at the end as in the beginning, and more than Reno.
#[test]
fn waves_outlive_reordering_losses_of_options_and_the_wrap_of_their_numbers() {
    let reorder = Some(Reorder { share: 0.01, late: Some(Duration::from_millis(10)), early: None });
    let real = Selection::scheme("tcp-real");
    for (there, back, reorder) in [(0.01, 0.0, None), (0.01, 0.2, None), (0.005, 0.0, reorder)] {
        let carried = |secs| crossing(&real, [there, back], reorder, secs, 0).flows[0].octets_delivered as f64;
        // 256 waves of at most a round trip each take 18 s at most: here are more than ten times as many.
        let (early, late) = (carried(60) / 60.0, (carried(240) - carried(60)) / 180.0);
        let reno = crossing(&Selection::scheme("reno"), [there, back], reorder, 240, 0).flows[0].octets_delivered as f64 / 240.0;
        assert!(late > 0.8 * early, "{there} there, {back} back, {reorder:?}: {early} octets a second, then {late}");
        assert!(late > 1.1 * reno, "{there} there, {back} back, {reorder:?}: {late} beside {reno} octets a second");
    }
}
