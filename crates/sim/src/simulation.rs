//! Letting time pass.

use crate::address::{DirectionId, EndpointId, FlowId, Way};
use crate::ahead::Lookahead;
use crate::error::RunError;
use crate::events::Target;
use crate::fates::{LossWatch, NoticedLoss};
use crate::finish;
use crate::hosts::Hosts;
use crate::network::Network;
use crate::packet::PacketId;
use crate::record::{FlowSample, LinkSample, Records, Settled};
use crate::settle::Settling;
use crate::smoothness::Bins;
use std::ops::ControlFlow;
use whyloss_transport::{Duration, Instant};

/// Events between two reports of progress.
const STRETCH: u32 = 1 << 16;

/// When a run ends, apart from the completion of all transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Ends at this time at the latest; events of this very time are not handled any more.
    pub until: Option<Instant>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// All transfers are complete, or have failed for good.
    Completed,
    /// The time limit came first.
    TimeLimit,
    /// The caller asked to stop.
    Cancelled,
}

/// How far a run is, and what is inside.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Time in the simulation.
    pub now: Instant,
    /// Events that the run has taken so far.
    pub events: u64,
    /// Transfers that are over.
    pub transfers_over: usize,
    /// Transfers that the run has, over or not.
    pub transfers: usize,
    simulation: &'a mut Simulation,
}

impl Progress<'_> {
    /// The losses that senders noticed and whose truth has become known since `watch`, which follows this run alone, was asked last. A
    /// transmission that is still under way comes when it has ended.
    pub fn losses(&mut self, watch: &mut LossWatch) -> Vec<NoticedLoss> {
        watch.news(&mut self.simulation.net, &self.simulation.hosts)
    }

    /// The senders and the queues at every sample since there were `seen` of them, which is brought up to date.
    pub fn samples(&self, seen: &mut (usize, usize)) -> (&[FlowSample], &[LinkSample]) {
        let Simulation { settling, records, .. } = &*self.simulation;
        settling.samples_since(records, seen)
    }

    /// Whether so many records are there that they should be taken by whoever wants no run to take more memory the longer it is.
    pub fn is_full(&self) -> bool {
        let Simulation { settling, net, hosts, records, .. } = &*self.simulation;
        settling.is_full(net, hosts, records)
    }

    /// Takes the records that will not change any more: [`into_records`](Simulation::into_records) gives the others, and all together are those of a
    /// run from which nothing was taken. Whoever follows losses or samples has to look at them before.
    pub fn take_settled(&mut self) -> Settled {
        let Simulation { settling, net, hosts, records, .. } = &mut *self.simulation;
        settling.settle(net, hosts, records)
    }
}

/// A network in time.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) net: Network,
    pub(crate) hosts: Hosts,
    pub(crate) sampling: Option<Duration>,
    pub(crate) next_sample: u64,
    pub(crate) bins: Bins,
    pub(crate) events: u64,
    pub(crate) ahead: Lookahead,
    pub(crate) link_names: Vec<String>,
    /// What is known from the start, and the samples.
    pub(crate) records: Records,
    pub(crate) settling: Settling,
}

/// Why the loop over the events returned.
enum Pause {
    /// The next event lies at or beyond the horizon, or there is none.
    Horizon,
    /// All transfers are over.
    Completed,
    /// Many events have passed.
    Stretch,
}

impl Simulation {
    /// Lets time pass until all transfers are over or a limit is reached. `on_progress` is called now and then (at least every
    /// 65,536 events) and may stop the run. A run that was stopped can be continued.
    pub fn run(
        &mut self,
        limits: &Limits,
        mut on_progress: impl FnMut(&mut Progress<'_>) -> ControlFlow<()>,
    ) -> Result<RunOutcome, RunError> {
        if limits.until.is_none() && self.hosts.flows.transfers == 0 {
            return Err(RunError::NeverEnds);
        }
        let until = limits.until.map_or(u64::MAX, Instant::as_nanos);
        let outcome = loop {
            let horizon = until.min(self.next_sample).min(self.bins.due());
            match self.advance(horizon) {
                Pause::Completed => break RunOutcome::Completed,
                Pause::Stretch => {}
                Pause::Horizon => {
                    if self.net.events.next_at().is_none() {
                        let flows = self.hosts.flows.stalled();
                        if !flows.is_empty() {
                            return Err(RunError::Stalled { at: Instant::from_nanos(self.net.now), flows });
                        }
                    }
                    if horizon == until {
                        self.net.now = until;
                        break RunOutcome::TimeLimit;
                    }
                    if horizon == self.bins.due() {
                        self.close_bins(horizon);
                        self.bins.rest_until(self.net.events.next_at());
                    }
                    if horizon == self.next_sample {
                        self.sample();
                    }
                }
            }
            let mut progress = Progress {
                now: Instant::from_nanos(self.net.now),
                events: self.events,
                transfers_over: self.hosts.flows.transfers_over,
                transfers: self.hosts.flows.transfers,
                simulation: self,
            };
            if on_progress(&mut progress).is_break() {
                break RunOutcome::Cancelled;
            }
        };
        finish::check(&mut self.net, &self.hosts, &self.link_names)?;
        if let Some(watch) = &mut self.net.watch {
            watch.finish(self.net.now).map_err(|(name, source)| RunError::Capture { name, source })?;
        }
        Ok(outcome)
    }

    /// Names of all flows, by the index that records have.
    pub fn flow_names(&self) -> Vec<String> {
        self.hosts.flows.all.iter().map(|flow| flow.name.clone()).collect()
    }

    /// Names of each flow's differentiators in shadow, as [`FlowRecord::shadows`](crate::FlowRecord::shadows) has them.
    pub fn shadow_names(&self) -> Vec<Vec<String>> {
        (0..self.hosts.flows.all.len()).map(|flow| self.hosts.shadow_names(FlowId::new(flow))).collect()
    }

    /// Handles events that are due before `horizon`.
    fn advance(&mut self, horizon: u64) -> Pause {
        let Self { net, hosts, events, ahead, .. } = self;
        let all = if hosts.flows.transfers == 0 { usize::MAX } else { hosts.flows.transfers };
        for _ in 0..STRETCH {
            if hosts.flows.transfers_over >= all {
                return Pause::Completed;
            }
            if net.events.is_stale() && net.events.refresh() {
                ahead.look(net, hosts);
            }
            let Some(event) = net.events.take_before(horizon) else { return Pause::Horizon };
            net.now = event.at();
            *events += 1;
            let arrived = match event.direction() {
                Some(direction) => net.handle_direction(direction),
                None => Self::handle_other(net, hosts, event.target()),
            };
            if let Some(packet) = arrived {
                hosts.deliver(net, packet);
            }
            if !net.fates.is_empty() {
                for (sender, fate) in net.fates.drain(..) {
                    hosts.reveal(sender, &fate);
                }
            }
        }
        Pause::Stretch
    }

    /// Handles an event that concerns no direction of a link. Returns the packet that is to be delivered.
    #[inline(never)]
    fn handle_other(net: &mut Network, hosts: &mut Hosts, target: Target) -> Option<PacketId> {
        match target {
            Target::Station(_) | Target::Transmission(_) => return net.handle_air(target),
            Target::Timer(endpoint) => hosts.handle_timer(net, endpoint),
            Target::Source(source) => hosts.handle_source(net, source),
            Target::Egress(endpoint) => net.handle_egress(endpoint),
            Target::Router(router) => net.handle_router(router),
            Target::Moves => net.handle_moves(),
            Target::Direction(_) => {}
        }
        None
    }

    /// Looks at every flow and queue, at the time of the next sample and before any event of that time.
    fn sample(&mut self) {
        let Some(interval) = self.sampling else { return };
        let now = self.next_sample;
        let at = Instant::from_nanos(now);
        self.next_sample = now.saturating_add(interval.as_nanos());
        for flow in 0..self.hosts.flows.all.len() {
            self.records.flow_samples.extend(self.hosts.sample(at, FlowId::new(flow)));
        }
        for (number, direction) in self.net.directions.iter_mut().enumerate() {
            let (queue_packets, queue_octets) = direction.waiting(now);
            let direction = DirectionId::new(number);
            let (link, way) = (direction.link(), direction.way());
            self.records.link_samples.push(LinkSample { at, link, way, queue_packets, queue_octets });
        }
    }

    /// Looks at what every sender has sent until `now`.
    fn close_bins(&mut self, now: u64) {
        let hosts = &self.hosts;
        self.bins.look(now, |flow| {
            let stats = hosts.stats(EndpointId::of(FlowId::new(flow), Way::Forward));
            (stats.map_or(0, |stats| stats.data_octets_sent), hosts.flows.all[flow].finished)
        });
    }

    /// Ends the run; what was recorded of it and not [taken](Progress::take_settled).
    pub fn into_records(mut self) -> Records {
        let mut records = std::mem::take(&mut self.records);
        records.events = self.events;
        self.close_bins(self.net.now);
        finish::fill(&mut records, self.net, self.hosts, &self.bins, &self.link_names);
        records
    }
}
