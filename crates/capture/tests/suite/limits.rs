//! What limits a transfer, when it is known what does.

use crate::engine::{run, Plan};
use proptest::prelude::*;
use std::collections::BTreeMap;
use whyloss_capture::connections::{Connection, Connections, Observer, Side};
use whyloss_capture::limits::{Limit, Stall};
use whyloss_transport::{Config, Duration, Instant};

#[derive(Default)]
struct Seen {
    stalls: Vec<(Side, Stall)>,
    ended: Vec<Connection>,
}

impl Observer for Seen {
    fn on_stall(&mut self, _: u64, side: Side, stall: Stall) {
        self.stalls.push((side, stall));
    }

    fn on_end(&mut self, connection: Connection) {
        self.ended.push(connection);
    }
}

fn follow(plan: &Plan) -> Seen {
    let mut seen = Seen::default();
    let mut connections = Connections::default();
    for segment in &run(plan).segments {
        connections.on_segment(segment, &mut seen);
    }
    connections.finish(&mut seen);
    seen
}

/// The share of the time at each limit, of the sender's direction.
fn shares(seen: &Seen) -> BTreeMap<Limit, f64> {
    let connection = &seen.ended[0];
    let all = connection.ended.since(connection.began).as_secs_f64();
    connection.half(Side::Client).limits.spent().map(|(limit, time, _)| (limit, time.as_secs_f64() / all)).collect()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn fast(place: usize, octets: u64) -> Plan {
    let mut plan = Plan::new(7, &Config::linux(), octets, place, ms(40));
    plan.far().bottleneck = Some((1_000_000_000, 2000));
    plan
}

fn most(plan: &Plan, limits: &[Limit], least: f64) -> Seen {
    let seen = follow(plan);
    let shares = shares(&seen);
    let share: f64 = limits.iter().map(|limit| shares[limit]).sum();
    assert!(share >= least, "{share:.2} of {limits:?}; {shares:?}");
    seen
}

#[test]
fn a_small_receive_window_limits() {
    for place in 0..3 {
        let mut plan = fast(place, 1_000_000);
        plan.receiver.receive_buffer = 40_000;
        most(&plan, &[Limit::ReceiveWindow], 0.7);
    }
}

#[test]
fn a_window_that_is_small_for_a_long_path_limits_though_data_comes_evenly() {
    for place in 0..3 {
        let mut plan = Plan::new(7, &Config::linux(), 3_000_000, place, ms(300));
        plan.far().bottleneck = Some((20_000_000, 2000));
        plan.receiver.receive_buffer = 200_000;
        most(&plan, &[Limit::ReceiveWindow], 0.6);
    }
}

#[test]
fn a_small_send_buffer_limits() {
    for place in 0..3 {
        let mut plan = fast(place, 4_000_000);
        plan.sender.send_buffer = 60_000;
        most(&plan, &[Limit::SendBuffer], 0.4);
        most(&plan, &[Limit::SendBuffer, Limit::CongestionWindow], 0.7);
    }
}

#[test]
fn an_application_that_writes_now_and_then_limits() {
    for place in 0..3 {
        let mut plan = fast(place, 500_000);
        plan.writes = Some((5_000, ms(200)));
        most(&plan, &[Limit::Application], 0.9);
    }
}

#[test]
fn a_full_path_limits() {
    for place in 0..3 {
        let mut plan = fast(place, 3_000_000);
        plan.far().bottleneck = Some((5_000_000, 5_000));
        most(&plan, &[Limit::PathRate], 0.7);
    }
}

#[test]
fn a_reader_that_is_slow_closes_the_window() {
    for place in 0..3 {
        let mut plan = fast(place, 900_000);
        plan.receiver.receive_buffer = 30_000;
        plan.receiver.auto_read = false;
        plan.reads = Some((15_000, ms(400)));
        most(&plan, &[Limit::ZeroWindow, Limit::ReceiveWindow], 0.7);
    }
}

#[test]
fn an_outage_is_time_of_the_retransmission_timer() {
    for place in 0..2 {
        let mut plan = fast(place, 3_000_000);
        plan.far().bottleneck = Some((20_000_000, 200));
        plan.far().outage = Some((Instant::ZERO + ms(500), Instant::ZERO + ms(6500)));
        let seen = most(&plan, &[Limit::RetransmissionTimer], 0.6);
        assert!(seen.stalls.iter().any(|(side, stall)| *side == Side::Client && stall.limit == Limit::RetransmissionTimer));
    }
}

#[test]
fn losses_on_a_fast_path_leave_the_congestion_window() {
    for place in 0..2 {
        let mut plan = fast(place, 3_000_000);
        plan.far().loss = 0.01;
        most(&plan, &[Limit::CongestionWindow, Limit::Recovering], 0.7);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn the_time_is_divided_without_a_rest(
        seed in 0..1000_u64,
        place in 0..3_usize,
        loss in 0.0..0.05,
        delay in 1..100_u64,
        writes in prop::option::of((2_000..50_000_u64, 1..1500_u64)),
        missed in 0.0..0.02,
        cut in 0.0..0.5,
    ) {
        let mut plan = Plan::new(seed, &Config::linux(), 200_000, place, ms(delay));
        plan.far().loss = loss;
        plan.writes = writes.map(|(octets, pause)| (octets, ms(pause)));
        plan.missed = missed;
        let segments = run(&plan).segments;
        let from = (segments.len() as f64 * cut) as usize;
        let mut seen = Seen::default();
        let mut connections = Connections::default();
        for segment in &segments[from..] {
            connections.on_segment(segment, &mut seen);
        }
        connections.finish(&mut seen);
        for connection in &seen.ended {
            for side in [Side::Client, Side::Server] {
                let sum: Duration = connection.half(side).limits.spent().fold(Duration::ZERO, |sum, (_, time, _)| sum + time);
                prop_assert_eq!(sum, connection.ended.since(connection.began));
            }
        }
        for (_, stall) in &seen.stalls {
            prop_assert!(stall.limit != Limit::Idle && stall.lasted >= ms(100));
        }
    }
}
