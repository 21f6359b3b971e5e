//! The end of a run: the books are balanced and the records put together.

use crate::build::Way;
use crate::direction::Line;
use crate::hosts::{File, Flow, Socket};
use crate::network::{Network, Protocol};
use crate::passing::Copies;
use crate::record::{DropRecord, FlowRecord, LinkRecord, LossRow, PacketCounts, Records, StripedRecord, TimeoutRow};
use crate::simulation::{RunError, Simulation};
use crate::truth::Truth;
use std::collections::{BTreeMap, HashMap, HashSet};
use whyloss_transport::differentiation::{self, Verdict};
use whyloss_transport::tcp::{GapRecord, LossRecord};
use whyloss_transport::{Duration, Instant};

impl Simulation {
    /// Counts the packets under way and checks that none is missing and none came from nothing.
    pub(crate) fn check(&mut self) -> Result<(), RunError> {
        let unbalanced = |item: String, counts: String| Err(RunError::NotConserved { item, counts });
        let net = &mut self.net;
        let mut under_way = vec![0; net.outlets.len()];
        for id in net.under_way() {
            under_way[net.packets.get(id).origin as usize] += 1;
        }
        for (outlet, in_flight) in net.outlets.iter_mut().zip(&under_way) {
            outlet.counts.in_flight = *in_flight;
            if !outlet.counts.balanced() {
                let flow = &self.hosts.flows[outlet.flow as usize].name;
                return unbalanced(format!("flow {flow}, {}", outlet.way.name()), format!("{:?}", outlet.counts));
            }
        }
        let all: u64 = under_way.iter().sum();
        if all != net.packets.len() as u64 {
            return unbalanced("all flows".to_owned(), format!("{all} under way, {} kept", net.packets.len()));
        }
        let in_flight = net.in_flight();
        for ((direction, in_flight), name) in net.directions.iter().zip(in_flight).zip(&self.link_names) {
            let traffic = &direction.traffic;
            let ended = traffic.delivered + traffic.dropped.total() + in_flight;
            if traffic.offered + traffic.duplicated != ended {
                let (offered, duplicated) = (traffic.offered, traffic.duplicated);
                let counts = format!("{offered} offered, {duplicated} duplicated, {ended} delivered, dropped or under way");
                return unbalanced(format!("link {name}"), counts);
            }
        }
        Ok(())
    }

    /// What happened.
    pub fn into_records(mut self) -> Records {
        let now = Instant::from_nanos(self.net.now);
        let mut records = std::mem::take(&mut self.records);
        records.ended_at = now;
        records.events = self.events;
        let losses = std::mem::take(&mut self.hosts.losses);
        let timeouts = std::mem::take(&mut self.hosts.timeouts);
        let gaps = GapIndex::new(std::mem::take(&mut self.hosts.gaps));
        let fates = Fates::new(&self.net);
        records.losses = self.losses(losses, &gaps, &fates);
        records.timeouts = timeouts
            .into_iter()
            .map(|row| TimeoutRow { truth: fates.truth(row.flow, row.record.offset, row.record.sent_at), ..row })
            .collect();
        records.flows = self.hosts.flows.iter().map(|flow| self.flow(flow, now)).collect();
        records.striped = self.hosts.files.iter().map(|file| striped(file, now)).collect();
        let in_flight = self.net.in_flight();
        records.links = in_flight.into_iter().enumerate().map(|(number, in_flight)| self.link(number, in_flight)).collect();
        self.net.outlets.iter().for_each(|outlet| records.packets.add(&outlet.counts));
        records.drops = self.net.drops;
        records
    }

    /// Puts what senders noticed beside what really happened.
    fn losses(&self, losses: Vec<(u32, LossRecord)>, gaps: &GapIndex, fates: &Fates<'_>) -> Vec<LossRow> {
        let judges: Vec<_> = self.hosts.flows.iter().map(|flow| self.hosts.receiver_shadows(flow).len()).collect();
        let rows = losses.into_iter().map(|(flow, mut record)| {
            let flow = flow as usize;
            gaps.join(flow, judges[flow], &mut record);
            let drop = fates.drop(flow, record.offset, record.sent_at);
            let truth = fates.truth(flow, record.offset, record.sent_at);
            LossRow { flow, record, truth, dropped: drop.map(|drop| (drop.at, drop.link, drop.link_way)) }
        });
        rows.collect()
    }

    fn flow(&self, flow: &Flow, now: Instant) -> FlowRecord {
        let number = flow.outlet as usize;
        let sockets = if flow.protocol == Protocol::Tcp { self.hosts.sockets.get(number..number + 2) } else { None };
        let dccp = if flow.protocol == Protocol::Dccp { self.hosts.dccp_pair(flow.outlet) } else { None };
        let udp = flow.protocol == Protocol::Udp;
        let reverse = if udp { PacketCounts::default() } else { self.net.outlets[number + 1].counts };
        let stats = |end: usize| match (sockets, dccp) {
            (Some(sockets), _) => Some(*sockets[end].tcp.stats()),
            (None, Some(dccp)) => Some(*dccp[end].end.stats()),
            (None, None) => None,
        };
        let corrupted = dccp.map_or(0, |dccp| dccp[1].corrupted);
        let names = |sockets: &[Socket]| {
            let at_receiver = self.hosts.receiver_shadows(flow).iter().map(|(name, _)| name.clone());
            sockets[0].tcp.parts().shadows.iter().map(|(name, _)| name.clone()).chain(at_receiver).collect()
        };
        FlowRecord {
            name: flow.name.clone(),
            striped: flow.striped.map(|file| file as usize),
            start: flow.start,
            connected: flow.connected,
            first_data: flow.first_data,
            last_data: flow.last_data,
            finished: flow.finished,
            closing: flow.closing,
            octets_delivered: flow.octets,
            octets_corrupted: sockets.map_or(corrupted, |sockets| sockets[1].corrupted),
            goodput_bps: goodput(flow.octets, flow.start, flow.finished.unwrap_or(now)),
            sender: stats(0),
            receiver: stats(1),
            shadows: sockets.map_or_else(Vec::new, names),
            forward: self.net.outlets[number].counts,
            reverse,
        }
    }

    fn link(&self, number: usize, in_flight: u64) -> LinkRecord {
        let direction = &self.net.directions[number];
        let traffic = &direction.traffic;
        let now = self.net.now;
        // Waiting that lies beyond the end does not count, and what still waits in a station's queue has not been counted yet.
        let (mut waited, mut waited_octets) = (traffic.waited, traffic.waited_octets);
        let (busy, air) = match &direction.line {
            Line::Wire(wire) => {
                for (beyond, octets) in wire.waiting_beyond(now) {
                    waited -= u128::from(beyond);
                    waited_octets -= u128::from(beyond) * u128::from(octets);
                }
                (traffic.busy - wire.busy_beyond(now), None)
            }
            Line::Varying(varying) => {
                for (span, octets) in varying.waited(now) {
                    waited += u128::from(span);
                    waited_octets += u128::from(span) * u128::from(octets);
                }
                (traffic.busy - varying.busy_beyond(now), None)
            }
            Line::Air(hop) => {
                for (span, octets) in self.net.radio.waiting(number as u32, now) {
                    waited += u128::from(span);
                    waited_octets += u128::from(span) * u128::from(octets);
                }
                (traffic.busy - self.net.radio.busy_beyond(number as u32, now), Some(hop.counts))
            }
        };
        let mean = |waited: u128| if now == 0 { 0.0 } else { waited as f64 / now as f64 };
        LinkRecord {
            name: self.link_names[number].clone(),
            offered: traffic.offered,
            offered_octets: traffic.offered_octets,
            delivered: traffic.delivered,
            delivered_octets: traffic.delivered_octets,
            damaged: traffic.damaged,
            duplicated: traffic.duplicated,
            dropped: traffic.dropped,
            in_flight,
            busy: Duration::from_nanos(busy),
            mean_queue_packets: mean(waited),
            mean_queue_octets: mean(waited_octets),
            max_queue_packets: traffic.max_packets,
            max_queue_octets: traffic.max_octets,
            pattern_ends: direction.pattern_ends(),
            air,
        }
    }
}

/// What differentiators at the receivers thought, by flow and by the offset of the gap.
struct GapIndex(BTreeMap<(usize, u64), GapRecord>);

impl GapIndex {
    fn new(gaps: Vec<(u32, GapRecord)>) -> Self {
        Self(gaps.into_iter().map(|(flow, gap)| ((flow as usize, gap.offset), gap)).collect())
    }

    /// Appends the receiver's verdicts to those of the sender. They are on the gap in which the loss lies, so only on first
    /// transmissions: a lost retransmission leaves no gap.
    fn join(&self, flow: usize, judges: usize, record: &mut LossRecord) {
        let unknown = Verdict { cause: differentiation::Cause::Unknown, score: 0.0 };
        let gap = self.0.range((flow, 0)..=(flow, record.offset)).next_back().map(|(_, gap)| gap);
        let gap = gap.filter(|gap| record.transmission == 0 && record.offset < gap.offset + gap.len);
        match gap {
            Some(gap) => record.shadows.extend_from_slice(&gap.verdicts),
            None => record.shadows.extend(std::iter::repeat_n(unknown, judges)),
        }
    }
}

/// What became of every transmission of data that did not simply arrive, by flow, offset and time of sending.
struct Fates<'a> {
    /// The last copy that was lost, and how many were.
    dropped: HashMap<(usize, u64, Instant), (&'a DropRecord, u32)>,
    under_way: HashSet<(usize, u64, Instant)>,
    copies: &'a HashMap<(usize, u64, Instant), Copies>,
}

impl<'a> Fates<'a> {
    fn new(net: &'a Network) -> Self {
        let mut dropped = HashMap::new();
        for drop in net.drops.iter().filter(|drop| drop.way == Way::Forward && drop.len > 0) {
            let entry = dropped.entry((drop.flow, drop.offset, drop.sent_at)).or_insert((drop, 0));
            *entry = (drop, entry.1 + 1);
        }
        let under_way = net.under_way().map(|id| {
            let packet = net.packets.get(id);
            (net.outlets[packet.origin as usize].flow as usize, net.data(id).0, packet.sent_at)
        });
        Self { dropped, under_way: under_way.collect(), copies: &net.copies }
    }

    /// The loss of a transmission, of its last copy if there were several; `None` while there is one that was not lost.
    fn drop(&self, flow: usize, offset: u64, sent_at: Instant) -> Option<&'a DropRecord> {
        let transmission = (flow, offset, sent_at);
        let (drop, lost) = *self.dropped.get(&transmission)?;
        let made = self.copies.get(&transmission).map_or(1, |copies| copies.made);
        (lost >= made).then_some(drop)
    }

    fn truth(&self, flow: usize, offset: u64, sent_at: Instant) -> Truth {
        match self.drop(flow, offset, sent_at) {
            Some(drop) => Truth::Lost(drop.cause),
            None if self.under_way.contains(&(flow, offset, sent_at)) => Truth::InFlight,
            None => Truth::Arrived,
        }
    }
}

fn striped(file: &File, now: Instant) -> StripedRecord {
    let octets_delivered = file.stripes.in_order();
    StripedRecord {
        name: file.name.clone(),
        octets: file.octets,
        start: file.start,
        finished: file.finished,
        octets_delivered,
        max_reordered: file.stripes.max_reordered,
        goodput_bps: goodput(octets_delivered, file.start, file.finished.unwrap_or(now)),
    }
}

/// Octets per time in bit/s; 0 if no time has passed.
fn goodput(octets: u64, start: Instant, end: Instant) -> f64 {
    match end.since(start) {
        Duration::ZERO => 0.0,
        span => octets as f64 * 8.0 / span.as_secs_f64(),
    }
}
