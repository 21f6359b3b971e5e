//! Records that nothing can change any more, taken out of a run while it goes on: so a long run needs no more memory than a short one.

use crate::address::{EndpointId, FlowId, Way};
use crate::finish;
use crate::hosts::{Flows, Hosts};
use crate::network::Network;
use crate::packet::SentData;
use crate::record::{FlowSample, LinkSample, LossRow, Records, Settled, TimeoutRow};
use std::collections::{HashMap, HashSet};

/// Rows that are worth the look at everything under way that settling them takes.
const WORTH: usize = 1 << 14;

/// How a run is relieved of its records.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// Samples of flows and of links that were taken.
    samples_taken: (usize, usize),
    /// Rows that could not be taken when the others were.
    unsettled: usize,
}

impl Settling {
    /// Whether so many rows wait that it is worth while to settle them. What cannot be settled yet does not make it so again.
    pub fn is_full(&self, net: &Network, hosts: &Hosts, records: &Records) -> bool {
        rows(net, hosts, records) >= WORTH.max(2 * self.unsettled)
    }

    /// Takes what is settled.
    pub fn settle(&mut self, net: &mut Network, hosts: &mut Hosts, records: &mut Records) -> Settled {
        let drops = net.take_drops();
        let under_way = net.transmissions_under_way();
        let flows = (0..hosts.flows.all.len()).map(FlowId::new);
        let told_below: Vec<u64> = flows.map(|flow| hosts.losses_told_below(EndpointId::of(flow, Way::Forward))).collect();
        let settled = Settled {
            losses: losses(net, hosts, &under_way, &told_below),
            timeouts: timeouts(net, &mut hosts.flows, &under_way, &told_below),
            drops,
            log: net.log.as_mut().map(|log| log.take_ended()).unwrap_or_default(),
            flow_samples: std::mem::take(&mut records.flow_samples),
            link_samples: std::mem::take(&mut records.link_samples),
        };
        self.samples_taken.0 += settled.flow_samples.len();
        self.samples_taken.1 += settled.link_samples.len();
        forget(net, &mut hosts.flows, &under_way, &told_below);
        self.unsettled = rows(net, hosts, records);
        settled
    }

    /// What has been sampled since there were `seen` samples, which is brought up to date.
    pub fn samples_since<'a>(&self, records: &'a Records, seen: &mut (usize, usize)) -> (&'a [FlowSample], &'a [LinkSample]) {
        let (flows, links, taken) = (&records.flow_samples, &records.link_samples, self.samples_taken);
        let new = (&flows[seen.0.saturating_sub(taken.0)..], &links[seen.1.saturating_sub(taken.1)..]);
        *seen = (taken.0 + flows.len(), taken.1 + links.len());
        new
    }
}

/// Rows that wait to be taken.
fn rows(net: &Network, hosts: &Hosts, records: &Records) -> usize {
    let samples = records.flow_samples.len() + records.link_samples.len();
    let log = net.log.as_ref().map_or(0, |log| log.rows());
    samples + hosts.flows.losses.len() + hosts.flows.timeouts.len() + net.drops.len() + log
}

/// A loss is settled when its transmission has ended and, if somebody at the receiver judges gaps, none will be found there any more.
fn losses(net: &Network, hosts: &mut Hosts, under_way: &HashSet<SentData>, told_below: &[u64]) -> Vec<LossRow> {
    let flying: HashSet<FlowId> = under_way.iter().map(|transmission| transmission.flow).collect();
    let no_more_gaps = |flow: FlowId, offset: u64| {
        let over = told_below[flow.index()] == u64::MAX && !flying.contains(&flow);
        over || hosts.flows.all[flow.index()].octets > offset || hosts.receiver_shadows(flow).is_empty()
    };
    let settled = hosts
        .flows
        .losses
        .iter()
        .take_while(|(flow, record)| !under_way.contains(&finish::lost(*flow, record)) && no_more_gaps(*flow, record.offset));
    let settled = settled.count();
    let losses: Vec<_> = hosts.flows.losses.drain(..settled).collect();
    hosts.flows.losses_taken += settled;
    losses.into_iter().map(|(flow, record)| finish::loss(flow, record, hosts, net, under_way)).collect()
}

/// A timeout is settled when its transmission has ended and the sender has made up its mind, or never will.
fn timeouts(net: &Network, flows: &mut Flows, under_way: &HashSet<SentData>, told_below: &[u64]) -> Vec<TimeoutRow> {
    let settled = flows.timeouts.iter().enumerate().take_while(|(index, row)| {
        let waits = flows.all[row.flow].unassessed.contains(&(flows.timeouts_taken + index));
        (!waits || told_below[row.flow] == u64::MAX) && !under_way.contains(&finish::timed_out(row))
    });
    let settled = settled.count();
    flows.timeouts_taken += settled;
    let rows = flows.timeouts.drain(..settled);
    rows.map(|row| TimeoutRow { truth: net.truth(under_way, &finish::timed_out(&row)), ..row }).collect()
}

/// Forgets what no later record will need.
fn forget(net: &mut Network, flows: &mut Flows, under_way: &HashSet<SentData>, told_below: &[u64]) {
    let waiting = flows.losses.iter().map(|(flow, record)| finish::lost(*flow, record));
    let waiting: HashSet<SentData> = waiting.chain(flows.timeouts.iter().map(finish::timed_out)).collect();
    let mut lowest: HashMap<FlowId, u64> = HashMap::new();
    for (flow, record) in &flows.losses {
        let known = lowest.entry(*flow).or_insert(u64::MAX);
        *known = record.offset.min(*known);
    }
    flows.gaps.forget(|flow| told_below[flow.index()].min(lowest.get(&flow).copied().unwrap_or(u64::MAX)));
    net.forget_fates(|sent| sent.offset >= told_below[sent.flow.index()] || under_way.contains(sent) || waiting.contains(sent));
}
