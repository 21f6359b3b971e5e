//! Bytes of heap per connection.

use crate::worlds::W2;
use std::ops::ControlFlow;
use whyloss_sim::Limits;
use whyloss_transport::scheme::Selection;
use whyloss_transport::{Command, Config, Duration, Endpoint, Input, Instant, Integrity, Ports};

const IDLE: usize = 10_000;

/// Bytes of an established connection on which nothing moves, by the heap profiler, over 10,000 connections.
pub fn idle_connection() -> f64 {
    let mut ends = Vec::with_capacity(2 * IDLE);
    let empty = dhat::HeapStats::get().curr_bytes;
    for i in 0..IDLE {
        let port = (i % 60_000) as u16;
        let end = |local, remote| {
            let mut config = Config::modern();
            let parts = Selection::scheme("cubic").build(&mut config).expect("the scheme exists");
            Endpoint::new(config, parts, Ports { local, remote })
        };
        let (mut client, mut server) = (end(port, 80), end(80, port));
        let now = Instant::ZERO;
        server.handle(now, Input::Command(Command::Listen));
        client.handle(now, Input::Command(Command::Connect));
        exchange(now, &mut client, &mut server);
        // A little traffic, so that buffers exist that a fresh connection would not have.
        client.handle(now, Input::Command(Command::Produce(20_000)));
        for step in 1..20 {
            let now = Instant::ZERO + Duration::from_millis(step * 50);
            client.handle_timeout(now);
            server.handle_timeout(now);
            exchange(now, &mut client, &mut server);
            while server.read(now, usize::MAX).is_some() {}
        }
        ends.push(client);
        ends.push(server);
    }
    let held = dhat::HeapStats::get().curr_bytes - empty;
    held as f64 / ends.len() as f64 + std::mem::size_of::<Endpoint>() as f64
}

fn exchange(now: Instant, a: &mut Endpoint, b: &mut Endpoint) {
    loop {
        let mut quiet = true;
        while let Some(segment) = a.poll_transmit(now) {
            quiet = false;
            b.handle(now, Input::Segment(&segment, Integrity::Intact));
        }
        while let Some(segment) = b.poll_transmit(now) {
            quiet = false;
            a.handle(now, Input::Segment(&segment, Integrity::Intact));
        }
        while a.poll_event().is_some() || b.poll_event().is_some() {}
        if quiet {
            return;
        }
    }
}

/// Bytes of the whole world W2 per flow at its busiest, both ends, packets under way and links included.
pub fn busy_flow() -> f64 {
    let before = dhat::HeapStats::get().curr_bytes;
    let mut world = W2.build(&[]);
    let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(2)) };
    world.run(&limits, |_| ControlFlow::Continue(())).expect("the run ends");
    let held = dhat::HeapStats::get().curr_bytes - before;
    drop(world);
    held as f64 / f64::from(W2.flows)
}
