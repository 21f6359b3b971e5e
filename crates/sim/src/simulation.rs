//! Letting time pass.

use crate::build::{BuildError, Builder};
use crate::events::Target;
use crate::hosts::Hosts;
use crate::network::{way, Network, Protocol};
use crate::record::{FlowSample, LinkSample, Records};
use crate::{assemble, LinkId};
use std::ops::ControlFlow;
use whyloss_transport::{Duration, Instant};

/// Events between two reports of progress.
const STRETCH: u32 = 1 << 16;

/// When a run ends, apart from the completion of all transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Ends at this time at the latest; what would happen at this very time does not happen any more.
    pub until: Option<Instant>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All transfers are complete, or have failed for good.
    Completed,
    /// The time limit came first.
    TimeLimit,
    /// The caller asked to stop.
    Cancelled,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Time in the simulation.
    pub now: Instant,
    /// Events so far.
    pub events: u64,
    /// Transfers that are over.
    pub transfers_over: usize,
    /// Transfers in all.
    pub transfers: usize,
}

/// What can go wrong in a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing ends the run: no transfer and no time limit.
    #[error("the run would never end: set a time limit or give some flow a number of octets")]
    NeverEnds,
    /// Nothing will ever happen again, but flows are not complete.
    #[error("at {at} nothing was left to happen, but not complete were: {}", .flows.join(", "))]
    Stalled {
        /// When.
        at: Instant,
        /// Names of the flows.
        flows: Vec<String>,
    },
    /// Packets went missing or came from nothing: a mistake in the simulator.
    #[error("{item}: packets are not conserved: {counts}")]
    NotConserved {
        /// The flow or link.
        item: String,
        /// The numbers.
        counts: String,
    },
    /// A capture could not be written.
    #[error("capture of link {link}: {source}")]
    Capture {
        /// The link.
        link: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A network in time.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) net: Network,
    pub(crate) hosts: Hosts,
    pub(crate) sampling: Option<Duration>,
    pub(crate) next_sample: u64,
    pub(crate) events: u64,
    pub(crate) link_names: Vec<String>,
    /// What is known from the start, and the samples.
    pub(crate) records: Records,
}

/// Why events stopped.
enum Pause {
    /// The next event lies at or beyond the horizon, or there is none.
    Horizon,
    /// All transfers are over.
    Completed,
    /// Many events have passed.
    Stretch,
}

impl Simulation {
    pub(crate) fn new(builder: Builder) -> Result<Self, BuildError> {
        assemble::assemble(builder)
    }

    /// Lets time pass until all transfers are over or a limit is reached. `on_progress` is called now and then (at least every
    /// 65,536 events) and may stop the run. A run that was stopped can be continued.
    pub fn run(
        &mut self,
        limits: &Limits,
        mut on_progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Outcome, RunError> {
        if limits.until.is_none() && self.hosts.transfers == 0 {
            return Err(RunError::NeverEnds);
        }
        let until = limits.until.map_or(u64::MAX, Instant::as_nanos);
        let outcome = loop {
            let horizon = until.min(self.next_sample);
            match self.advance(horizon) {
                Pause::Completed => break Outcome::Completed,
                Pause::Stretch => {}
                Pause::Horizon => {
                    if self.net.events.next_at().is_none() {
                        let flows = self.hosts.stalled();
                        if !flows.is_empty() {
                            return Err(RunError::Stalled { at: Instant::from_nanos(self.net.now), flows });
                        }
                    }
                    if horizon == until {
                        self.net.now = until;
                        break Outcome::TimeLimit;
                    }
                    self.sample();
                }
            }
            let progress = Progress {
                now: Instant::from_nanos(self.net.now),
                events: self.events,
                transfers_over: self.hosts.transfers_over,
                transfers: self.hosts.transfers,
            };
            if on_progress(&progress).is_break() {
                break Outcome::Cancelled;
            }
        };
        self.check()?;
        for capture in &mut self.net.captures {
            capture.finish().map_err(|source| RunError::Capture { link: capture.link.clone(), source })?;
        }
        Ok(outcome)
    }

    /// Lets events happen that are due before `horizon`.
    fn advance(&mut self, horizon: u64) -> Pause {
        let Self { net, hosts, events, .. } = self;
        let all = if hosts.transfers == 0 { usize::MAX } else { hosts.transfers };
        for _ in 0..STRETCH {
            if hosts.transfers_over >= all {
                return Pause::Completed;
            }
            let Some(event) = net.events.take_before(horizon) else { return Pause::Horizon };
            net.now = event.at();
            *events += 1;
            match event.target() {
                Target::Direction(direction) => {
                    if let Some(packet) = net.arrive(direction) {
                        hosts.deliver(net, packet);
                    }
                }
                Target::Timer(socket) => hosts.timer(net, socket),
                Target::Source(source) => hosts.emit(net, source),
                Target::Outlet(outlet) => net.release(outlet),
                Target::Station(_) | Target::Transmission(_) => {
                    if let Some(packet) = net.on_air(event.target()) {
                        hosts.deliver(net, packet);
                    }
                }
            }
            for (outlet, fate) in net.fates.drain(..) {
                hosts.sockets[outlet as usize].tcp.reveal(&fate);
            }
        }
        Pause::Stretch
    }

    /// Looks at every flow and queue, at the time of the next sample and before anything that happens then.
    fn sample(&mut self) {
        let Some(interval) = self.sampling else { return };
        let now = self.next_sample;
        let at = Instant::from_nanos(now);
        self.next_sample = now.saturating_add(interval.as_nanos());
        for (number, flow) in self.hosts.flows.iter().enumerate() {
            match flow.protocol {
                Protocol::Tcp => {}
                Protocol::Dccp => {
                    self.records.flow_samples.push(self.hosts.dccp_sample(at, number));
                    continue;
                }
                Protocol::Udp => continue,
            }
            let tcp = &self.hosts.sockets[flow.outlet as usize].tcp;
            self.records.flow_samples.push(FlowSample {
                at,
                flow: number,
                cwnd: tcp.window().cwnd(),
                ssthresh: tcp.window().ssthresh(),
                srtt: tcp.path().srtt,
                pipe: tcp.pipe(),
                octets_delivered: flow.octets,
            });
        }
        for (number, direction) in self.net.directions.iter_mut().enumerate() {
            let (queue_packets, queue_octets) = direction.waiting(now);
            let (link, way) = (LinkId(number as u32 / 2), way(number as u32));
            self.records.link_samples.push(LinkSample { at, link, way, queue_packets, queue_octets });
        }
    }
}
