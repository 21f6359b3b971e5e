//! Stations on a radio channel, with constant-rate datagrams: what does not depend on a transport protocol.

use std::ops::ControlFlow;
use whyloss_sim::{
    Builder, Cause, CbrFlow, ChannelScope, ChannelSpec, Effect, Errors, Limits, Locking, NodeId, QueueLimit, RadioSpec, Records,
    Rhythm, RunOutcome, Spacing, Way,
};
use whyloss_transport::{BitRate, Duration, Instant};

const SECOND: u64 = 1_000_000_000;

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

/// Datagrams of `octets` octets at `bps` bit/s from time 0 on.
fn cbr(from: NodeId, to: NodeId, bps: u64, octets: u32, seconds: u64) -> CbrFlow {
    let name = format!("{from:?}-{to:?}");
    let (start, stop) = (Instant::ZERO, Instant::from_nanos(seconds * SECOND));
    CbrFlow { name, from, to, start, stop, rate: BitRate::from_bps(bps), octets, rhythm: Rhythm::default() }
}

fn run(builder: Builder, seconds: u64) -> Records {
    let mut simulation = builder.build().unwrap();
    let limits = Limits { until: Some(Instant::from_nanos(seconds * SECOND)) };
    assert_eq!(simulation.run(&limits, |_| ControlFlow::Continue(())).unwrap(), RunOutcome::TimeLimit);
    simulation.into_records()
}

/// Hosts at these positions, all on one radio channel.
fn hosts(run: u64, spec: RadioSpec, positions: &[[f64; 2]]) -> (Builder, Vec<NodeId>) {
    let mut builder = Builder::new(1, run);
    let nodes: Vec<_> = (0..positions.len()).map(|number| builder.host(format!("s{number}"))).collect();
    let stations: Vec<_> = nodes.iter().copied().zip(positions.iter().copied()).collect();
    builder.radio(spec, &stations);
    (builder, nodes)
}

#[test]
fn an_exchange_takes_the_time_of_its_frames() {
    // Without a backoff, a 1064-octet packet takes DIFS 50, RTS 352, CTS 304, data 192 + 1100 * 8 / 2 = 4592, ACK 304 and three
    // SIFS of 10 us: 5632 us. Each of the four frames flies 200 m, which takes 667 ns.
    let spec = RadioSpec { cw_min: 0, cw_max: 0, ..RadioSpec::default() };
    let (mut builder, nodes) = hosts(0, spec, &[[0.0, 0.0], [200.0, 0.0]]);
    builder.cbr(cbr(nodes[0], nodes[1], 10_000_000, 1064, 100));
    let records = run(builder, 1);
    let flow = &records.flows[0];
    // The first needs no DIFS: the medium was idle. It is there after 352 + 10 + 304 + 10 + 4592 us and three flights.
    assert_eq!(flow.first_data, Some(Instant::from_nanos(5_268_000 + 3 * 667)));
    let cycle = 5_632_000 + 4 * 667;
    let last = flow.forward.delivered - 1;
    assert_eq!(flow.last_data, Some(Instant::from_nanos(5_268_000 + 3 * 667 + last * cycle)));
    assert_eq!(last, (SECOND - 5_268_000 - 3 * 667) / cycle);
    assert_eq!(records.links[0].max_queue_packets, 50);
}

#[test]
fn without_rts_the_data_comes_first() {
    let spec = RadioSpec { cw_min: 0, cw_max: 0, rts: None, ..RadioSpec::default() };
    let (mut builder, nodes) = hosts(0, spec, &[[0.0, 0.0], [200.0, 0.0]]);
    builder.cbr(cbr(nodes[0], nodes[1], 10_000_000, 1064, 100));
    let flow = &run(builder, 1).flows[0];
    // 50 + 4592 + 10 + 304 us and two flights.
    let cycle = 4_956_000 + 2 * 667;
    assert_eq!(flow.last_data, Some(Instant::from_nanos(4_592_667 + (flow.forward.delivered - 1) * cycle)));
}

/// Saturation throughput of the distributed coordination function (Bianchi 2000), as the fraction of time that carries payload.
struct Bianchi {
    stations: u32,
    window: f64,
    stages: u32,
    slot: f64,
    payload: f64,
    success: f64,
    collision: f64,
}

impl Bianchi {
    fn throughput(&self) -> f64 {
        let others = f64::from(self.stations) - 1.0;
        // Equations 7 and 9 of the paper: the transmission probability falls with the collision probability, which rises with it.
        let tau = |p: f64| {
            let twice = 2.0 * p;
            let growth: f64 = (0..self.stages).map(|stage| libm::pow(twice, f64::from(stage))).sum();
            2.0 / (1.0 + self.window + p * self.window * growth)
        };
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let p = f64::midpoint(low, high);
            if 1.0 - libm::pow(1.0 - tau(p), others) > p {
                low = p;
            } else {
                high = p;
            }
        }
        let tau = tau(low);
        let n = f64::from(self.stations);
        let any = 1.0 - libm::pow(1.0 - tau, n);
        let one = n * tau * libm::pow(1.0 - tau, others);
        // Equation 13.
        one * self.payload / ((1.0 - any) * self.slot + one * self.success + (any - one) * self.collision)
    }
}

/// The frequency-hopping parameters of Bianchi 2000, table II: everything at 1 Mbit/s, 8184 bits of payload.
fn bianchi_radio(window: u32, stages: u32, rts: bool) -> RadioSpec {
    RadioSpec {
        rate: BitRate::from_bps(1_000_000),
        basic_rate: BitRate::from_bps(1_000_000),
        preamble: micros(128),
        slot: micros(50),
        sifs: micros(28),
        difs: micros(128),
        // What the model leaves out: longer spaces after a collision, packets that are given up, and frames that survive one.
        eifs: micros(128),
        short_retries: None,
        long_retries: None,
        capture: 1e6,
        cw_min: window - 1,
        cw_max: (window << stages) - 1,
        rts: rts.then_some(1),
        header_octets: 34,
        llc_octets: 0,
        ..RadioSpec::default()
    }
}

fn saturation(stations: u32, window: u32, stages: u32, rts: bool) -> (f64, f64) {
    // MAC and PHY headers 400 us, payload 8184 us, ACK and CTS 240 us, RTS 288 us, SIFS 28 us, DIFS 128 us.
    let (success, collision) = if rts {
        (288.0 + 28.0 + 240.0 + 28.0 + 400.0 + 8184.0 + 28.0 + 240.0 + 128.0, 288.0 + 128.0)
    } else {
        (400.0 + 8184.0 + 28.0 + 240.0 + 128.0, 400.0 + 8184.0 + 128.0)
    };
    let window_slots = f64::from(window);
    let model = Bianchi { stations, window: window_slots, stages, slot: 50.0, payload: 8184.0, success, collision };
    let mut positions = vec![[0.0, 0.0]];
    positions.extend((0..stations).map(|number| [f64::from(number % 5), f64::from(number / 5 + 1)]));
    let (mut builder, nodes) = hosts(0, bianchi_radio(window, stages, rts), &positions);
    let seconds = 200;
    for &node in &nodes[1..] {
        builder.cbr(cbr(node, nodes[0], 1_100_000, 1023, seconds));
    }
    let records = run(builder, seconds);
    (records.packets.delivered as f64 * 8184e-6 / seconds as f64, model.throughput())
}

#[test]
fn saturated_stations_share_the_air_as_bianchi_says() {
    for (window, stages) in [(32, 3), (32, 5), (128, 3)] {
        for rts in [false, true] {
            for stations in [2, 5, 10, 20] {
                let (measured, model) = saturation(stations, window, stages, rts);
                assert!(
                    (measured / model - 1.0).abs() < 0.03,
                    "W {window} m {stages} rts {rts} n {stations}: {measured} {model}"
                );
            }
        }
    }
}

/// Two senders that do not hear each other, 200 m on either side of their receiver.
fn hidden(rts: bool) -> Records {
    let base = RadioSpec::default();
    let spec = RadioSpec { sense_w: base.receive_w, floor_w: base.receive_w, rts: rts.then_some(1), ..base };
    let (mut builder, nodes) = hosts(0, spec, &[[0.0, 0.0], [200.0, 0.0], [400.0, 0.0]]);
    builder.cbr(cbr(nodes[0], nodes[1], 2_000_000, 1064, 20));
    builder.cbr(cbr(nodes[2], nodes[1], 2_000_000, 1064, 20));
    run(builder, 20)
}

#[test]
fn hidden_senders_collide_and_a_handshake_saves_most_of_it() {
    let (bare, guarded) = (hidden(false), hidden(true));
    let given_up = |records: &Records| records.packets.dropped.get(Cause::Collision);
    let share = |records: &Records| given_up(records) as f64 / (given_up(records) + records.packets.delivered) as f64;
    // A data frame lasts 4.6 ms, longer than any backoff of the first three attempts: both senders meet nearly always. An RTS frame
    // lasts 0.35 ms, and the answer to it silences the other.
    assert!(share(&bare) > 0.2, "{:?}", bare.packets);
    assert!(share(&guarded) < 0.04, "{:?}", guarded.packets);
    assert!(guarded.packets.delivered > 2 * bare.packets.delivered, "{:?} {:?}", bare.packets, guarded.packets);
    for records in [&bare, &guarded] {
        assert_eq!(records.packets.dropped.total(), records.packets.dropped.get(Cause::QueueFull) + given_up(records));
        let dropped: u64 = records.links.iter().map(|link| link.dropped.get(Cause::Collision)).sum();
        assert_eq!(dropped, given_up(records));
        assert!(records
            .drops
            .iter()
            .filter(|drop| drop.cause == Cause::Collision)
            .all(|drop| drop.link_way == drop.way || drop.link.index() == 1));
        let air = records.links[0].air.unwrap();
        assert!(air.collided > 0 && air.noise == 0 && air.retries < air.frames, "{air:?}");
    }
}

/// A receiver that one sender reaches with 16 dB more than the other, which it does not hear.
fn near_and_far(locking: Locking) -> [u64; 2] {
    let base = RadioSpec { rts: None, locking, ..RadioSpec::default() };
    let spec = RadioSpec { sense_w: base.receive_w, ..base };
    // 100 m and 250 m: (250 / 100)^4 = 39.
    let (mut builder, nodes) = hosts(0, spec, &[[0.0, 0.0], [100.0, 0.0], [350.0, 0.0]]);
    builder.cbr(cbr(nodes[0], nodes[1], 2_000_000, 1064, 20));
    builder.cbr(cbr(nodes[2], nodes[1], 2_000_000, 1064, 20));
    let records = run(builder, 20);
    [records.flows[0].forward.delivered, records.flows[1].forward.delivered]
}

#[test]
fn the_stronger_sender_captures_the_receiver() {
    let [near, far] = near_and_far(Locking::Sensed);
    assert!(near > 2 * far, "{near} {far}");
    // A receiver that changes over to the stronger frame loses none of them: a cycle is DIFS, 15.5 slots, data, SIFS, ACK: 5266 us.
    let [near, far] = near_and_far(Locking::Strongest);
    assert!((3700..3850).contains(&near), "{near}");
    assert!(far < near / 20, "{far}");
}

#[test]
fn noise_costs_retries_and_at_last_the_packet() {
    // Each frame is lost with 0.3, so that an exchange of data and acknowledgement fails with 0.51.
    let channel = ChannelSpec { errors: Errors::Packets { probability: 0.3 }, effect: Effect::Erase };
    let spec = RadioSpec { rts: None, short_retries: Some(3), channel: Some(channel), ..RadioSpec::default() };
    let (mut builder, nodes) = hosts(0, spec, &[[0.0, 0.0], [200.0, 0.0]]);
    builder.cbr(cbr(nodes[0], nodes[1], 300_000, 500, 100));
    let records = run(builder, 101);
    let forward = &records.flows[0].forward;
    assert_eq!(forward.sent, 7500);
    assert_eq!(forward.dropped.total(), forward.dropped.get(Cause::Erased));
    // 0.3^3 of 7500 never arrive: 202, standard deviation 14. Losing acknowledgements loses no packet.
    assert!((150..260).contains(&forward.dropped.get(Cause::Erased)), "{forward:?}");
    let air = records.links[0].air.unwrap();
    assert_eq!(air.collided, 0);
    // 0.51 of the first and of the second attempts are tried again.
    let expected = 7500.0 * (0.51 + 0.51 * 0.51);
    assert!((air.retries as f64 / expected - 1.0).abs() < 0.05, "{} {expected}", air.retries);
    let lost = air.noise as f64 / air.frames as f64;
    assert!((lost / 0.3 - 1.0).abs() < 0.05, "{lost}");
}

#[test]
fn frames_share_a_channel_as_its_scope_says() {
    // Directions 0 to 1, 1 to 0, 0 to 2 and 2 to 0. Station 0 alone has data, so that nothing collides.
    let scopes: [(ChannelScope, &[&[usize]]); 4] = [
        (ChannelScope::Pair, &[&[0], &[1], &[2], &[3]]),
        (ChannelScope::Receiver, &[&[0], &[1, 3], &[2]]),
        (ChannelScope::Sender, &[&[0, 2], &[1], &[3]]),
        (ChannelScope::Medium, &[&[0, 1, 2, 3]]),
    ];
    let mut seen = Vec::new();
    for (channel_scope, groups) in scopes {
        let errors = Errors::Spaced { rate: 0.2, spacing: Spacing::Deterministic };
        let channel = Some(ChannelSpec { errors, effect: Effect::Erase });
        let spec = RadioSpec { rts: None, channel, channel_scope, ..RadioSpec::default() };
        let (mut builder, nodes) = hosts(0, spec, &[[0.0, 0.0], [200.0, 0.0], [-200.0, 0.0]]);
        builder.cbr(cbr(nodes[0], nodes[1], 200_000, 500, 20));
        builder.cbr(cbr(nodes[0], nodes[2], 90_000, 500, 20));
        let airs: Vec<_> = run(builder, 21).links.iter().map(|link| link.air.unwrap()).collect();
        assert!(airs.iter().all(|air| air.collided == 0), "{channel_scope:?}: {airs:?}");
        for group in groups {
            let (frames, noise) = group.iter().fold((0, 0), |sum, &at| (sum.0 + airs[at].frames, sum.1 + airs[at].noise));
            assert!(frames > 400, "{channel_scope:?} {group:?}: {frames}");
            assert_eq!(noise, frames / 5, "{channel_scope:?} {group:?}: every fifth frame through a channel is hit");
        }
        seen.push(airs[..4].iter().map(|air| (air.frames, air.noise)).collect::<Vec<_>>());
    }
    let distinct: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "each scope is another channel: {seen:?}");
}

/// A chain of five hops, 200 m each, with datagrams both ways.
fn chain(run_number: u64, rts: bool) -> Records {
    let spec = RadioSpec { rts: rts.then_some(1), queue: QueueLimit::Octets(20_000), ..RadioSpec::default() };
    let mut builder = Builder::new(1, run_number);
    let last = 5;
    let nodes: Vec<_> = (0..=last)
        .map(|i| if i == 0 || i == last { builder.host(format!("n{i}")) } else { builder.router(format!("n{i}")) })
        .collect();
    let stations: Vec<_> = nodes.iter().enumerate().map(|(i, node)| (*node, [200.0 * i as f64, 0.0])).collect();
    assert_eq!(builder.radio(spec, &stations).len(), last);
    builder.cbr(cbr(nodes[0], nodes[last], 400_000, 1000, 30));
    builder.cbr(cbr(nodes[last], nodes[0], 100_000, 200, 30));
    run(builder, 30)
}

#[test]
fn a_chain_is_conserved_and_repeats_itself() {
    for rts in [false, true] {
        let records = chain(0, rts);
        assert!(records.packets.delivered > 0 && records.packets.dropped.get(Cause::QueueFull) > 0, "{:?}", records.packets);
        assert!(records.packets.balanced());
        for link in &records.links {
            assert_eq!(link.offered, link.delivered + link.dropped.total() + link.in_flight, "{}", link.name);
            assert!(link.mean_queue_packets <= link.max_queue_packets as f64);
            assert!(link.max_queue_octets <= 20_000);
        }
        assert_eq!(records, chain(0, rts));
        assert_ne!(records.packets, chain(1, rts).packets);
    }
}

#[test]
fn unfit_radios_are_named() {
    let message = |spec: RadioSpec, positions: &[[f64; 2]]| hosts(0, spec, positions).0.build().unwrap_err().to_string();
    let base = RadioSpec::default;
    let two = [[0.0, 0.0], [200.0, 0.0]];
    assert_eq!(message(RadioSpec { slot: Duration::ZERO, ..base() }, &two), "radio: slot is 0 s; allowed is a time above zero");
    assert_eq!(message(RadioSpec { capture: 0.0, ..base() }, &two), "radio: capture is 0; allowed is a ratio above 0");
    let far = [[0.0, f64::NAN], [200.0, 0.0]];
    assert_eq!(message(base(), &far), "station s0: position is [0.0, NaN]; allowed is coordinates up to 10,000 km");
}

#[test]
fn errors_at_a_host_are_not_repaired_by_the_stations() {
    let (mut builder, nodes) = hosts(0, RadioSpec::default(), &[[0.0, 0.0], [200.0, 0.0]]);
    builder.cbr(cbr(nodes[0], nodes[1], 300_000, 500, 100));
    builder.cbr(cbr(nodes[1], nodes[0], 300_000, 500, 100));
    let errors = Errors::Spaced { rate: 0.04, spacing: Spacing::Deterministic };
    builder.input(nodes[1], Way::Forward, ChannelSpec { errors, effect: Effect::Erase });
    let records = run(builder, 101);
    let [there, back] = [&records.flows[0].forward, &records.flows[1].forward];
    // Every 25th of 7500 packets, and none of those that the other host receives.
    assert_eq!((there.sent, there.dropped.get(Cause::Erased), there.dropped.total()), (7500, 300, 300));
    assert_eq!((back.delivered, back.dropped.total()), (7500, 0));
    assert_eq!((records.links[0].delivered, records.links[0].dropped.total()), (7500, 0));
    assert!(records.drops.iter().all(|drop| drop.link.index() == 0 && drop.link_way == Way::Forward));
}
