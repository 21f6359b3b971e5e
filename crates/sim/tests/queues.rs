//! Managed queues in front of TCP: what they hold, whom they tell, whom they drop.

use std::ops::ControlFlow;
use whyloss_sim::{
    AdaptiveRed, Amount, Builder, CoDel, Discipline, End, Limits, LinkRecord, LinkSpec, LogSpec, QueueLimit, Records, Red,
    TcpFlow, Way,
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
    ecn: bool,
    seconds: u64,
}

impl World {
    /// Flows of a round-trip time of 40 ms.
    fn new(mbps: f64, flows: usize, discipline: Discipline) -> Self {
        Self { mbps, queue: 1000, discipline: Some(discipline), round_trips: vec![40; flows], ecn: false, seconds: 60 }
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
                End { config, parts }
            };
            let start = Instant::ZERO + ms(37 * n as u64);
            let (sender, receiver) = (end(), end());
            builder.tcp(TcpFlow { name: format!("f{n}"), from, to, start, amount: Amount::Unlimited, sender, receiver });
        }
        builder.sample_every(ms(1));
        if self.ecn {
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
    ] {
        let name = discipline.name();
        let records = World { ecn: true, ..World::new(10.0, 2, discipline) }.run();
        // Slow start may bring the average to where everything is dropped; then it is over.
        let settled = Instant::ZERO + Duration::from_secs(5);
        assert!(records.drops.iter().all(|drop| drop.at < settled), "{name}: {:?}", records.drops.last());
        for flow in 0..2 {
            let samples: Vec<_> =
                records.flow_samples.iter().filter(|sample| sample.flow == flow && sample.at >= settled).collect();
            // Every reduction sets `ssthresh`.
            let falls: Vec<_> =
                samples.windows(2).filter(|pair| pair[1].ssthresh != pair[0].ssthresh).map(|pair| (pair[0], pair[1])).collect();
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
