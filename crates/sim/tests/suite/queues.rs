//! Managed queues in front of TCP: what they hold, whom they tell, whom they drop.

use std::ops::ControlFlow;
use whyloss_sim::{
    AdaptiveRed, Amount, Builder, Cause, CbrFlow, CoDel, DelayEstimate, Discipline, End, FqCoDel, Limits, LinkRecord, LinkSpec,
    LogSpec, Pie, QueueLimit, Records, Red, Rhythm, TcpFlow, Truth, Way,
};
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Octets of data in a full segment.
const MSS: u64 = 1448;

/// A bottleneck and what it is used for.
struct World {
    mbps: f64,
    queue: u32,
    discipline: Option<Discipline>,
    /// Round-trip times without queues, in milliseconds, one a flow.
    round_trips: Vec<u64>,
    /// Megabits per second of datagrams beside them, from 1 s on.
    datagrams: Option<f64>,
    ecn: bool,
    seconds: u64,
}

impl World {
    /// Flows of a round-trip time of 40 ms.
    fn new(mbps: f64, flows: usize, discipline: Discipline) -> Self {
        Self {
            mbps,
            queue: 1000,
            discipline: Some(discipline),
            round_trips: vec![40; flows],
            datagrams: None,
            ecn: false,
            seconds: 60,
        }
    }

    fn run(&self) -> Records {
        let mut builder = Builder::new(11, 0);
        let (left, right) = (builder.router("left"), builder.router("right"));
        let bottleneck = LinkSpec {
            rate: BitRate::from_bps((self.mbps * 1e6) as u64),
            queue: QueueLimit::Packets(self.queue),
            ..LinkSpec::default()
        };
        builder.link(left, right, LinkSpec { discipline: self.discipline, ..bottleneck.clone() }, bottleneck);
        for (n, &round_trip) in self.round_trips.iter().enumerate() {
            let (from, to) = (builder.host(format!("a{n}")), builder.host(format!("b{n}")));
            let access = LinkSpec { rate: BitRate::from_bps(1_000_000_000), delay: ms(round_trip) / 4, ..LinkSpec::default() };
            builder.link(from, left, access.clone(), access.clone());
            builder.link(right, to, access.clone(), access);
            let end = || {
                let mut config = Config { ecn: self.ecn, ..Config::modern() };
                let parts = Selection::scheme("newreno").build(&mut config).unwrap();
                End::new(config, parts)
            };
            let start = Instant::ZERO + ms(37 * n as u64);
            let (sender, receiver) = (end(), end());
            builder.tcp(TcpFlow { name: format!("f{n}"), from, to, start, amount: Amount::Unlimited, sender, receiver });
        }
        if let Some(mbps) = self.datagrams {
            let (from, to) = (builder.host("datagrams"), builder.host("sink"));
            let access = LinkSpec { rate: BitRate::from_bps(1_000_000_000), delay: ms(10), ..LinkSpec::default() };
            builder.link(from, left, access.clone(), access.clone());
            builder.link(right, to, access.clone(), access);
            let (start, stop) = [1, self.seconds].map(|at| Instant::ZERO + Duration::from_secs(at)).into();
            let rate = BitRate::from_bps((mbps * 1e6) as u64);
            builder.cbr(CbrFlow {
                name: "datagrams".to_owned(),
                from,
                to,
                start,
                stop,
                rate,
                octets: 500,
                rhythm: Rhythm::default(),
            });
        }
        builder.sample_every(ms(1));
        if self.ecn || self.datagrams.is_some() {
            builder.log_packets(LogSpec { from: Instant::ZERO, until: Instant::MAX, at_most: usize::MAX });
        }
        let mut simulation = builder.build().unwrap();
        let until = Some(Instant::ZERO + Duration::from_secs(self.seconds));
        simulation.run(&Limits { until }, |_| ControlFlow::Continue(())).unwrap();
        simulation.into_records()
    }
}

/// Mean time in milliseconds that packets waited, by Little's law.
fn mean_wait(records: &Records) -> f64 {
    let link: &LinkRecord = &records.links[0];
    link.mean_queue_packets * records.ended_at.as_secs_f64() / link.delivered as f64 * 1e3
}

/// Share of the bottleneck's rate that the flows got.
fn utilisation(records: &Records) -> f64 {
    records.links[0].busy.as_secs_f64() / records.ended_at.as_secs_f64()
}

#[test]
fn marks_of_a_queue_halve_the_window_once_a_round_and_nothing_is_lost() {
    for discipline in [
        Discipline::Red(Red { mark: true, ..Red::default() }),
        Discipline::AdaptiveRed(AdaptiveRed { mark: true, target: ms(20), ..AdaptiveRed::default() }),
        Discipline::CoDel(CoDel { mark: true, ..CoDel::default() }),
        Discipline::FqCoDel(FqCoDel { mark: true, ..FqCoDel::default() }),
        Discipline::Pie(Pie { mark: true, ..Pie::default() }),
    ] {
        let name = discipline.name();
        let records = World { ecn: true, ..World::new(10.0, 2, discipline) }.run();
        // Slow start may bring the average to where everything is dropped; then it is over.
        let settled = Instant::ZERO + Duration::from_secs(5);
        assert!(records.drops.iter().all(|drop| drop.at < settled), "{name}: {:?}", records.drops.last());
        for flow in 0..2 {
            let samples: Vec<_> =
                records.flow_samples.iter().filter(|sample| sample.flow == flow && sample.at >= settled).collect();
            let falls: Vec<_> =
                samples.windows(2).filter(|pair| pair[1].cwnd * 4 < pair[0].cwnd * 3).map(|pair| (pair[0], pair[1])).collect();
            let reductions = records.flows[flow].sender.unwrap().ecn_reductions;
            assert!(reductions >= 10, "{name}: {reductions}");
            // The first are left out, and one that changes nothing is not seen: at the smallest window of two segments.
            assert!(
                (reductions * 8 / 10..=reductions).contains(&(falls.len() as u64)),
                "{name}: {} of {reductions}",
                falls.len()
            );
            for (before, after) in &falls {
                // Half of the flight (RFC 3168, 6.1.2; RFC 5681, 3.1), which falls by what is acknowledged in the millisecond between.
                let half = (after.pipe / 2).max(2 * MSS)..=(before.pipe / 2).max(2 * MSS);
                assert!(half.contains(&after.ssthresh), "{name}: {before:?}, {after:?}");
            }
            // Not before all that was sent until one reduction is acknowledged comes the next.
            let packets = |way| records.log.iter().filter(move |packet| (packet.flow, packet.way) == (flow, way));
            for pair in falls.windows(2) {
                let [first, second] = [pair[0].0.at, pair[1].1.at];
                let sent = packets(Way::Forward).filter(|packet| packet.sent_at <= first);
                let sent = sent.map(|packet| packet.offset + u64::from(packet.len)).max();
                let acks = packets(Way::Reverse).filter(|packet| packet.ended.is_some_and(|at| at <= second));
                assert!(acks.filter_map(|packet| packet.ack).max() >= sent, "{name}: {first} and {second}");
            }
        }
    }
}

#[test]
fn adaptive_red_holds_its_target_whatever_the_number_of_flows() {
    for (mbps, flows) in [(10.0, 10), (10.0, 40), (50.0, 50)] {
        let records =
            World::new(mbps, flows, Discipline::AdaptiveRed(AdaptiveRed { target: ms(20), ..AdaptiveRed::default() })).run();
        println!("{mbps} Mbit/s, {flows} flows: {:.1} ms, {:.3}", mean_wait(&records), utilisation(&records));
        assert!((14.0..26.0).contains(&mean_wait(&records)), "{mbps} {flows}: {}", mean_wait(&records));
        assert!(utilisation(&records) > 0.95, "{}", utilisation(&records));
    }
}

#[test]
fn pie_holds_its_target_with_few_and_with_many() {
    for estimate in [DelayEstimate::DepartureRate, DelayEstimate::Timestamps] {
        for (mbps, flows) in [(5.0, 1), (10.0, 1), (50.0, 1), (5.0, 10), (10.0, 10), (50.0, 10), (10.0, 50), (50.0, 50)] {
            let records = World::new(mbps, flows, Discipline::Pie(Pie { estimate, ..Pie::default() })).run();
            let (wait, used) = (mean_wait(&records), utilisation(&records));
            println!("{estimate:?} {mbps} Mbit/s, {flows} flows: {wait:.1} ms, {used:.3}");
            // 15 ms; one flow's sawtooth goes above and below, and at 5 Mbit/s a packet takes 2.4 ms.
            let around = if flows >= 10 && mbps >= 10.0 { 13.0..23.0 } else { 8.0..28.0 };
            assert!(around.contains(&wait) && used > 0.92, "{estimate:?}, {mbps} Mbit/s, {flows} flows: {wait} ms, {used}");
        }
    }
}

/// Octets per second that each TCP flow got.
fn rates(records: &Records) -> Vec<f64> {
    let tcp = records.flows.iter().filter(|flow| flow.sender.is_some());
    tcp.map(|flow| flow.octets_delivered as f64 / records.ended_at.as_secs_f64()).collect()
}

/// The longest and the mean time in milliseconds that datagrams took, and how many were lost.
fn datagrams(records: &Records) -> (f64, f64, u64) {
    let number = records.flows.iter().position(|flow| flow.sender.is_none()).unwrap();
    let took = records.log.iter().filter(|packet| packet.flow == number && packet.truth == Truth::Arrived);
    let took: Vec<_> = took.filter_map(|packet| Some(packet.ended?.since(packet.sent_at).as_secs_f64() * 1e3)).collect();
    let longest = took.iter().copied().fold(0.0, f64::max);
    (longest, took.iter().sum::<f64>() / took.len() as f64, records.flows[number].forward.dropped.total())
}

#[test]
fn a_sparse_flow_does_not_wait_for_greedy_ones() {
    let world = |discipline| World {
        discipline,
        datagrams: Some(0.1),
        queue: 200,
        seconds: 30,
        ..World::new(10.0, 4, Discipline::Biased)
    };
    let fair = datagrams(&world(Some(Discipline::FqCoDel(FqCoDel::default()))).run());
    let tail = datagrams(&world(None).run());
    println!("{fair:?} {tail:?}");
    // 20 ms of propagation; at most the packet in transmission and one of each flow are before it: 5 times 1.2 ms.
    assert!(fair.2 == 0 && fair.0 < 20.0 + 7.0, "{fair:?}");
    assert!(tail.1 > 100.0, "{tail:?}");
}

#[test]
fn round_trip_times_do_not_decide_who_gets_what() {
    let world =
        |discipline| World { discipline, round_trips: vec![20, 200], queue: 100, ..World::new(10.0, 2, Discipline::Biased) };
    let far = |records: &Records| {
        let rates = rates(records);
        rates[1] / (rates[0] + rates[1])
    };
    let fair = far(&world(Some(Discipline::FqCoDel(FqCoDel::default()))).run());
    let alone = far(&world(Some(Discipline::CoDel(CoDel::default()))).run());
    println!("{fair} {alone}");
    // A far flow by itself does not fill its half over so short a queue.
    assert!(fair > 0.35 && alone < 0.15, "{fair} and {alone}");
}

#[test]
fn what_a_flood_loses_is_its_own() {
    let flood =
        World { datagrams: Some(20.0), queue: 100, seconds: 20, ..World::new(10.0, 1, Discipline::FqCoDel(FqCoDel::default())) };
    let records = flood.run();
    let (tcp, datagrams) = (&records.flows[0], &records.flows[1]);
    // Each half, of which one flow uses nine tenths over so short a queue; it has 1448 of 1500 octets of data.
    assert!(tcp.goodput_bps > 0.8 * 5e6, "{}", tcp.goodput_bps);
    let link = &records.links[0];
    assert!(link.max_queue_packets <= 100, "{}", link.max_queue_packets);
    // What made room was the flood's; it stands so with the flow, with the link and in the list of drops.
    let dropped = [tcp, datagrams].map(|flow| flow.forward.dropped.get(Cause::QueueFull));
    assert!(dropped[0] == 0 && dropped[1] > 10_000, "{dropped:?}");
    assert_eq!(link.dropped.get(Cause::QueueFull), dropped[1]);
    let listed = records.drops.iter().filter(|drop| drop.cause == Cause::QueueFull);
    assert_eq!(listed.clone().count() as u64, dropped[1]);
    assert!(listed.clone().all(|drop| records.flows[drop.flow].sender.is_none()));
    // The victim is at the head: older than what comes, by what the queue holds of the flood.
    assert!(listed.clone().all(|drop| drop.at.since(drop.sent_at) > ms(20)));
    let of_log = records.log.iter().filter(|packet| packet.truth == Truth::Lost(Cause::QueueFull));
    assert_eq!(of_log.filter(|packet| packet.flow == 1).count() as u64, dropped[1]);
    // What the sender of the other noticed was CoDel's.
    assert!(records.losses.iter().all(|loss| loss.truth == Truth::Lost(Cause::Aqm)));
}
