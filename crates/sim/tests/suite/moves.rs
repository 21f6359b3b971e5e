//! A mobile host goes from one base station to another and takes its connection along, with what the agents there know of it.

use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, Cause, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, Middlebox, MiddleboxKind, Move, QueueLimit,
    Records, RunOutcome, TcpFlow,
};
use whyloss_transport::kit::Value;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Closing;
use whyloss_transport::{BitRate, Config, Duration, Instant};

/// A fixed host 20 ms from a router, two base stations behind it, and a mobile host that goes from one to the other.
#[derive(Clone, Debug)]
struct World {
    kind: Option<&'static str>,
    parameters: Vec<(&'static str, Value)>,
    /// There is an agent at the second station too.
    both: bool,
    /// When it leaves a station, in milliseconds, the other one each time.
    moves: Vec<u64>,
    away_ms: u64,
    state_delay_ms: u64,
    state_kbps: Option<u64>,
    octets: u64,
    /// The mobile host sends.
    up: bool,
    loss: f64,
    flows: usize,
    run: u64,
}

impl Default for World {
    fn default() -> Self {
        Self {
            kind: None,
            parameters: vec![],
            both: true,
            moves: vec![3000],
            away_ms: 100,
            state_delay_ms: 0,
            state_kbps: None,
            octets: 1_500_000,
            up: false,
            loss: 0.0,
            flows: 1,
            run: 0,
        }
    }
}

impl World {
    fn of(kind: &'static str) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    fn run(&self) -> (Records, RunOutcome) {
        let mut builder = Builder::new(3, self.run);
        let (fixed, core) = (builder.host("fixed"), builder.router("core"));
        let stations = ["a", "b"].map(|name| builder.router(name));
        let mobile = builder.host("mobile");
        let link = |mbps: u64, ms: u64, loss: f64| LinkSpec {
            rate: BitRate::from_bps(mbps * 1_000_000),
            delay: Duration::from_millis(ms),
            queue: QueueLimit::Packets(100),
            channel: ChannelSpec { errors: Errors::Packets { probability: loss }, effect: Effect::Erase },
            ..LinkSpec::default()
        };
        builder.link(fixed, core, link(10, 20, 0.0), link(10, 20, 0.0));
        for station in stations {
            builder.link(core, station, link(10, 1, 0.0), link(10, 1, 0.0));
        }
        let air = stations.map(|station| builder.link(station, mobile, link(2, 2, self.loss), link(2, 2, 0.0)));
        if let Some(kind) = self.kind {
            let kind = MiddleboxKind::named(kind).expect("it is in the table");
            for (station, link) in stations.into_iter().zip(air).take(1 + usize::from(self.both)) {
                let parameters = self.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
                builder.middlebox(Middlebox { parameters, ..Middlebox::new(station, link, kind) });
            }
        }
        let step = |(nth, &ms): (usize, &u64)| Move {
            at: at(ms),
            link: air[1 - nth % 2],
            away: Duration::from_millis(self.away_ms),
            state_delay: Duration::from_millis(self.state_delay_ms),
            state_rate: self.state_kbps.map(|kbps| BitRate::from_bps(kbps * 1000)),
        };
        builder.moves(mobile, self.moves.iter().enumerate().map(step).collect());
        let end = || {
            let mut config = Config { max_retransmissions: None, ..Config::modern() };
            let parts = Selection::scheme("newreno").build(&mut config).expect("it is in the table");
            End::new(config, parts)
        };
        for nth in 0..self.flows {
            let (from, to) = if self.up { (mobile, fixed) } else { (fixed, mobile) };
            let (name, amount) = (format!("flow{nth}"), Amount::Octets(self.octets));
            builder.tcp(TcpFlow { name, from, to, start: Instant::ZERO, amount, sender: end(), receiver: end() });
        }
        let mut simulation = builder.build().expect("the network fits together");
        let limits = Limits { until: Some(at(600_000)) };
        let outcome = simulation.run(&limits, |_| ControlFlow::Continue(())).expect("it runs");
        let records = simulation.into_records();
        assert!(records.packets.balanced());
        (records, outcome)
    }

    /// One that brings everything to its end, unchanged.
    fn completes(&self) -> Records {
        let (records, outcome) = self.run();
        assert_eq!(outcome, RunOutcome::Completed, "{self:?}: {:?}", records.flows);
        for flow in &records.flows {
            assert_eq!((flow.octets_delivered, flow.octets_corrupted), (self.octets, 0), "{self:?}: {flow:?}");
        }
        records
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// When everything had arrived, in milliseconds.
fn finished(records: &Records) -> u64 {
    records.flows.iter().filter_map(|flow| flow.finished).max().expect("it has finished").as_nanos() / 1_000_000
}

#[test]
fn what_was_on_the_old_link_is_lost_and_the_rest_takes_the_new_one() {
    let records = World::default().completes();
    let link = |name: &str| records.links.iter().find(|link| link.name == name).expect("it is there");
    let lost = link("a>mobile").dropped.get(Cause::LinkDown);
    assert!(lost > 5 && link("b>mobile").dropped.get(Cause::LinkDown) == 0, "{lost}");
    assert!(records.drops.iter().filter(|drop| drop.cause == Cause::LinkDown).all(|drop| drop.at >= at(3000)));
    let [old, new] = ["a>mobile", "b>mobile"].map(|name| link(name).delivered);
    // 3 s at 2 Mbit/s are 500 packets of 1500 octets, of 1036 and those that are lost.
    assert!((400..520).contains(&old) && old + new >= 1036, "{old} and {new}");
    assert!(finished(&records) > finished(&World { moves: vec![], ..World::default() }.completes()));
    // With no move there is no way over the second station.
    let still = World { moves: vec![], ..World::default() }.completes();
    assert_eq!(still.links.iter().find(|link| link.name == "b>mobile").map(|link| link.offered), Some(0));
}

#[test]
fn every_agent_lets_its_mobile_host_go_and_come_back() {
    for kind in MiddleboxKind::all().map(MiddleboxKind::name) {
        for up in [false, true] {
            for (away_ms, state_delay_ms, state_kbps) in [(0, 0, None), (300, 50, Some(1000)), (20, 2000, Some(500))] {
                let moves = vec![1000, 1900, 2500, 4000];
                let loss = if up { 0.0 } else { 0.01 };
                World { moves, away_ms, state_delay_ms, state_kbps, up, loss, flows: 2, ..World::of(kind) }.completes();
            }
        }
    }
}

#[test]
fn a_split_connection_moves_with_all_that_its_buffers_hold() {
    let buffer = 65_536_u64;
    let world = World { parameters: vec![("buffer", (buffer as f64).into())], ..World::of("i-tcp") };
    let records = world.completes();
    let [old, new] = &records.middleboxes[..] else { panic!("two stations") };
    // The wired half is faster: what the station has acknowledged waits for the wireless one.
    let octets = old.moved_octets;
    assert!(old.moved_flows == 1 && octets > buffer / 2 && octets < 4 * buffer + 1000, "{octets}");
    assert_eq!((new.moved_flows, new.moved_octets, old.longest_move), (0, 0, Duration::ZERO));
    // 20 ms, and then 8 bits an octet at 100 kbit/s.
    let slow = World { state_delay_ms: 20, state_kbps: Some(100), ..world.clone() }.completes();
    let took = slow.middleboxes[0].longest_move;
    assert_eq!(slow.middleboxes[0].moved_octets, octets, "the same until then");
    assert_eq!(took, Duration::from_millis(20) + Duration::from_nanos(octets * 80_000));
    assert!(finished(&slow) > finished(&records) + took.as_millis() / 2);
}

#[test]
fn without_an_agent_at_the_new_station_a_split_connection_is_lost() {
    let (records, _) = World { both: false, ..World::of("i-tcp") }.run();
    let flow = &records.flows[0];
    // The mobile host misses what the old station had acknowledged, and says so to a sender that does not believe it.
    assert!(flow.octets_delivered < 1_500_000 && flow.octets_corrupted == 0 && flow.closing != Some(Closing::Normal), "{flow:?}");
    assert!(flow.last_data < Some(at(4000)), "{flow:?}");
    for kind in ["snoop", "m-tcp"] {
        World { both: false, ..World::of(kind) }.completes();
    }
}

#[test]
fn flows_follow_one_another_at_the_rate_between_the_stations() {
    let world = World { state_delay_ms: 5, state_kbps: Some(800), flows: 3, ..World::of("m-tcp") };
    let records = world.completes();
    // 200 octets each, 2 ms.
    let old = &records.middleboxes[0];
    assert_eq!((old.moved_flows, old.moved_octets, old.longest_move), (3, 600, Duration::from_millis(5 + 6)));
}

#[test]
fn who_moves_on_before_its_state_has_come_has_it_sent_after() {
    // The state is on its way to the second station for 2 s; after 500 ms the host is back at the first.
    let world = World { moves: vec![3000, 3500], away_ms: 50, state_delay_ms: 2000, ..World::of("i-tcp") };
    let records = world.completes();
    assert_eq!(
        records.middleboxes.iter().map(|station| station.moved_flows).collect::<Vec<_>>(),
        [1, 0],
        "it was never at the second"
    );
    assert!(finished(&records) > 3050 + 4000);
}

#[test]
fn a_snoop_agent_begins_anew_unless_its_data_was_sent_to_both_stations() {
    let lossy = |on_arrival: &str| World {
        parameters: vec![("on_arrival", Value::Word(on_arrival.to_owned()))],
        loss: 0.01,
        away_ms: 30,
        moves: (1..6).map(|second| 1000 * second).collect(),
        ..World::of("snoop")
    };
    let (empty, multicast) = (lossy("empty").completes(), lossy("multicast").completes());
    let moved = |records: &Records| records.middleboxes.iter().map(|station| station.moved_octets).sum::<u64>();
    assert_eq!(moved(&empty), 0);
    assert!(moved(&multicast) > 10_000);
    assert!(multicast.middleboxes.iter().all(|station| station.longest_move == Duration::ZERO), "it was there before");
    let timeouts = |records: &Records| records.flows[0].sender.expect("it is TCP").timeouts;
    assert!(timeouts(&multicast) < timeouts(&empty) && finished(&multicast) < finished(&empty));
}

#[test]
fn senseless_moves_are_refused() {
    let build = |moves: fn([whyloss_sim::LinkId; 3]) -> Vec<Move>| {
        let mut builder = Builder::new(1, 0);
        let [a, b] = ["a", "b"].map(|name| builder.router(name));
        let mobile = builder.host("mobile");
        let link = || LinkSpec { rate: BitRate::from_bps(1_000_000), ..LinkSpec::default() };
        let links = [(a, mobile), (b, mobile), (a, b)].map(|(from, to)| builder.link(from, to, link(), link()));
        builder.moves(mobile, moves(links));
        builder.build().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(build(|[_, b, _]| vec![Move::new(at(1), b)]), Ok(()));
    for (moves, word) in [
        ((|[.., between]| vec![Move::new(at(1), between)]) as fn([_; 3]) -> Vec<Move>, "a link of this host"),
        (|[a, ..]| vec![Move::new(at(1), a)], "another one"),
        (|[a, b, _]| vec![Move::new(at(2), b), Move::new(at(1), a)], "a time at which the move before is over"),
    ] {
        let message = build(moves).expect_err(word);
        assert!(message.contains("moves of mobile") && message.contains(word), "{message}");
    }
}
