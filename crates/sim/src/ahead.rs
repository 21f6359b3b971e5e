//! Looking ahead, so that memory is not waited for.
//!
//! With thousands of flows nothing that an event touches is in a cache, and each step to it waits for the one before: the link, its
//! packet, the socket, the link that is next. The events that come next are known. Taking the steps of many of them side by side, before
//! they are due, waits once for all. This reads, and changes nothing.

use crate::address::{DirectionId, EndpointId, Place};
use crate::direction::{Direction, Line};
use crate::events::{Event, Target};
use crate::hosts::{Hosts, Socket};
use crate::network::Network;
use std::hint::black_box;

/// In smaller networks everything is in the cache anyway.
const LARGE: usize = 2_000;

/// Packets that follow each other to a host on one link are looked at together, so many at most, if they arrive within so many
/// nanoseconds: only the first has an event.
const TRAIN: usize = 32;
const TOGETHER: u64 = 20_000;

/// What is looked at.
#[derive(Debug)]
pub(crate) struct Lookahead {
    /// Scratch space: the events, and where their steps have come to.
    news: Vec<Event>,
    ends: Vec<EndpointId>,
    exits: Vec<DirectionId>,
}

impl Lookahead {
    /// Has the events of a network announced, if it is large.
    pub fn new(net: &mut Network) -> Self {
        if net.directions.len() > LARGE {
            net.events.announce();
        }
        Self { news: Vec::new(), ends: Vec::new(), exits: Vec::new() }
    }

    /// Looks at what the next events will touch.
    #[inline(never)]
    pub fn look(&mut self, net: &mut Network, hosts: &Hosts) {
        let Self { news, ends, exits } = self;
        news.clear();
        ends.clear();
        exits.clear();
        net.events.news(news);
        let mut seen = 0;
        let mut see = |what: u64| seen ^= what;
        let directions =
            || news.iter().filter_map(|event| if let Target::Direction(id) = event.target() { Some(id) } else { None });
        for id in directions() {
            see(net.touch(id));
        }
        for id in directions() {
            if let Line::Wire(wire) = &net.directions[id.index()].line {
                see(wire.next().map_or(0, |entry| entry.arrival));
                see(wire.last().map_or(0, |entry| entry.arrival));
            }
        }
        for id in directions() {
            let Direction { line: Line::Wire(wire), place, .. } = &net.directions[id.index()] else { continue };
            let Some(first) = wire.next() else { continue };
            match *place {
                Place::Router(node) => exits.extend(net.routes.next(node, first.host())),
                Place::Host(_) => {
                    let end = first.arrival + TOGETHER;
                    for entry in wire.under_way().take(TRAIN).take_while(|entry| entry.arrival < end) {
                        see(net.packets.get(&entry.packet).touch());
                    }
                    ends.push(net.packets.get(&first.packet).origin.peer());
                }
                Place::Assisted(_) => {}
            }
        }
        ends.extend(news.iter().filter_map(|event| if let Target::Timer(id) = event.target() { Some(id) } else { None }));
        for &end in &*ends {
            let (own, peer) = (&net.egress[end.index()], &net.egress[end.peer().index()]);
            see(own.position ^ own.counts.sent ^ peer.counts.delivered);
            see(hosts.flows.all[end.flow().index()].octets);
            exits.push(own.exit);
        }
        for &exit in &*exits {
            see(net.touch(exit));
        }
        for &end in &*ends {
            if let Socket::Tcp(socket) = &hosts.sockets[end.index()] {
                see(socket.touch());
            }
        }
        black_box(seen);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, QueueLimit, Records, TcpFlow};
    use std::ops::ControlFlow;
    use whyloss_transport::{scheme::Selection, BitRate, Config, Duration, Instant};

    /// All that is recorded of flows that share a bottleneck with losses of both kinds.
    fn records(looks_ahead: bool) -> Records {
        let link = |mbps: u64, probability| LinkSpec {
            rate: BitRate::from_bps(mbps * 1_000_000),
            delay: Duration::from_millis(3),
            queue: QueueLimit::Packets(20),
            channel: ChannelSpec { errors: Errors::Packets { probability }, effect: Effect::Damage },
            ..LinkSpec::default()
        };
        let mut net = Builder::new(1, 0);
        let (left, right) = (net.router("left"), net.router("right"));
        net.link(left, right, link(20, 0.0), link(20, 0.0));
        for number in 0..8_u64 {
            let (from, to) = (net.host(format!("s{number}")), net.host(format!("d{number}")));
            net.link(from, left, link(10, 0.0), link(10, 0.0));
            net.link(right, to, link(10, 0.01), link(10, 0.01));
            let end = || {
                let mut config = Config::modern();
                let parts = Selection::scheme("sack").build(&mut config).unwrap();
                End::new(config, parts)
            };
            net.tcp(TcpFlow {
                name: format!("f{number}"),
                from,
                to,
                start: Instant::ZERO + Duration::from_millis(number * 7),
                amount: Amount::Unlimited,
                sender: end(),
                receiver: end(),
            });
        }
        let mut world = net.build().unwrap();
        if looks_ahead {
            world.net.events.announce();
        }
        let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(5)) };
        world.run(&limits, |_| ControlFlow::Continue(())).unwrap();
        let records = world.into_records();
        assert!(records.drops.len() > 100, "{} drops", records.drops.len());
        records
    }

    #[test]
    fn looking_ahead_changes_nothing() {
        assert!(records(true) == records(false));
    }
}
