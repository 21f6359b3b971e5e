//! The end of a run: the books are balanced and the records put together.

use crate::address::{DirectionId, EndpointId, FileId, FlowId, NodeId, Way};
use crate::direction::Line;
use crate::error::RunError;
use crate::hosts::{FileState, Hosts};
use crate::middlebox::{Attached, Counts};
use crate::network::Network;
use crate::packet::SentData;
use crate::record::{FlowRecord, LinkRecord, LossRow, MiddleboxRecord, Records, StripedRecord, TimeoutRow};
use crate::smoothness::Bins;
use crate::traffic::Mishaps;
use std::collections::HashSet;
use whyloss_transport::tcp::LossRecord;
use whyloss_transport::{Duration, Instant};

/// Counts the packets under way and checks that none is missing and none came from nothing.
pub(crate) fn check(net: &mut Network, hosts: &Hosts, link_names: &[String]) -> Result<(), RunError> {
    let unbalanced = |item: String, counts: String| Err(RunError::NotConserved { item, counts });
    let mut under_way = vec![0; net.egress.len()];
    for id in net.under_way() {
        under_way[net.packets.get(id).origin.index()] += 1;
    }
    for (number, (egress, in_flight)) in net.egress.iter_mut().zip(&under_way).enumerate() {
        egress.counts.in_flight = *in_flight;
        if !egress.counts.balanced() {
            let end = EndpointId::new(number);
            let flow = &hosts.flows.all[end.flow().index()].name;
            return unbalanced(format!("flow {flow}, {}", end.way().name()), format!("{:?}", egress.counts));
        }
    }
    let all: u64 = under_way.iter().sum();
    if all != net.packets.len() as u64 {
        return unbalanced("all flows".to_owned(), format!("{all} under way, {} kept", net.packets.len()));
    }
    let in_flight = net.in_flight();
    for ((direction, in_flight), name) in net.directions.iter().zip(in_flight).zip(link_names) {
        let traffic = &direction.traffic;
        let Mishaps { duplicated, dropped, .. } = traffic.mishaps();
        let offered = traffic.offered;
        let ended = traffic.delivered + dropped.total() + in_flight;
        if offered + duplicated != ended {
            let counts = format!("{offered} offered, {duplicated} duplicated, {ended} delivered, dropped or under way");
            return unbalanced(format!("link {name}"), counts);
        }
    }
    Ok(())
}

/// Puts the records of a run together.
pub(crate) fn fill(records: &mut Records, mut net: Network, mut hosts: Hosts, bins: &Bins, link_names: &[String]) {
    let now = Instant::from_nanos(net.now);
    records.ended_at = now;
    (records.log, records.log_left_out) = net.log.take().map(|log| log.into_rows()).unwrap_or_default();
    let losses = std::mem::take(&mut hosts.flows.losses);
    let timeouts = std::mem::take(&mut hosts.flows.timeouts);
    net.note_drops();
    let under_way = net.transmissions_under_way();
    records.losses = losses.into_iter().map(|(flow, record)| loss(flow, record, &hosts, &net, &under_way)).collect();
    let with_truth = |row: TimeoutRow| TimeoutRow { truth: net.truth(&under_way, &timed_out(&row)), ..row };
    records.timeouts = timeouts.into_iter().map(with_truth).collect();
    let in_flight = net.in_flight().into_iter().enumerate().zip(link_names);
    records.links = in_flight.map(|((number, in_flight), name)| link(DirectionId::new(number), name, in_flight, &net)).collect();
    records.middleboxes = middleboxes(&net);
    records.drops = std::mem::take(&mut net.drops);
    // With many flows, links take as much memory as the records that follow.
    net.directions = Vec::new();
    records.flows = (0..hosts.flows.all.len()).map(|number| flow(FlowId::new(number), &hosts, &net, bins, now)).collect();
    records.striped = hosts.flows.files.iter().map(|file| striped(file, now)).collect();
    net.egress.iter().for_each(|egress| records.packets.add(&egress.counts));
}

/// Puts what a sender noticed beside what really happened.
pub(crate) fn loss(flow: FlowId, mut record: LossRecord, hosts: &Hosts, net: &Network, under_way: &HashSet<SentData>) -> LossRow {
    hosts.flows.gaps.join(flow, hosts.receiver_shadows(flow).len(), &mut record);
    let transmission = lost(flow, &record);
    let drop = net.drop_of(&transmission);
    let truth = net.truth(under_way, &transmission);
    LossRow { flow: flow.index(), record, truth, dropped: drop.map(|drop| (drop.at, drop.link, drop.link_way)) }
}

/// The transmission that a sender took for lost.
pub(crate) fn lost(flow: FlowId, record: &LossRecord) -> SentData {
    SentData { flow, offset: record.offset, sent_at: record.sent_at }
}

/// The transmission whose acknowledgement did not come.
pub(crate) fn timed_out(row: &TimeoutRow) -> SentData {
    SentData { flow: FlowId::new(row.flow), offset: row.record.offset, sent_at: row.record.sent_at }
}

fn flow(id: FlowId, hosts: &Hosts, net: &Network, bins: &Bins, now: Instant) -> FlowRecord {
    let flow = &hosts.flows.all[id.index()];
    let ends = Way::BOTH.map(|way| EndpointId::of(id, way));
    let [sender, receiver] = ends.map(|end| hosts.stats(end));
    let [forward, reverse] = ends.map(|end| net.egress[end.index()].counts);
    let end = flow.finished.unwrap_or(now);
    FlowRecord {
        name: flow.name.clone(),
        striped: flow.file.map(FileId::index),
        start: flow.start,
        connected: flow.connected,
        first_data: flow.first_data,
        last_data: flow.last_data,
        finished: flow.finished,
        closing: flow.closing,
        octets_delivered: flow.octets,
        octets_corrupted: hosts.corrupted(id),
        goodput_bps: goodput(flow.octets, flow.start, end),
        sending_rate_bps: sender.map(|sender| goodput(sender.data_octets_sent, flow.start, end)),
        smoothness: bins.variation(id.index()),
        pages: flow.browser.as_ref().map(|(_, browser)| browser.counts),
        playback: flow.player.as_ref().map(|player| player.counts(end.min(flow.stop).as_nanos())),
        sender,
        receiver,
        shadows: hosts.shadow_names(id),
        forward,
        reverse,
    }
}

/// In the order in which they were added.
fn middleboxes(net: &Network) -> Vec<MiddleboxRecord> {
    let all = net.assisted.iter().flat_map(|router| router.agents.iter().map(move |attached| (router.node, attached)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(_, attached)| attached.number);
    let record = |(at, attached): (NodeId, &Attached)| {
        let Counts { seen, suppressed, sent, moved_flows, moved_octets, longest_move, peak } = attached.counts;
        let (link, kind, longest_move) = (attached.outgoing.link(), attached.name, Duration::from_nanos(longest_move));
        MiddleboxRecord { at, link, kind, seen, suppressed, sent, moved_flows, moved_octets, longest_move, peak }
    };
    all.into_iter().map(record).collect()
}

fn link(id: DirectionId, name: &str, in_flight: u64, net: &Network) -> LinkRecord {
    let direction = &net.directions[id.index()];
    let traffic = &direction.traffic;
    let Mishaps { damaged, duplicated, dropped } = traffic.mishaps();
    let now = net.now;
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
            for (span, octets) in net.radio.waiting(id, now) {
                waited += u128::from(span);
                waited_octets += u128::from(span) * u128::from(octets);
            }
            (traffic.busy - net.radio.busy_beyond(id, now), Some(hop.counts))
        }
    };
    let mean = |waited: u128| if now == 0 { 0.0 } else { waited as f64 / now as f64 };
    LinkRecord {
        name: name.to_owned(),
        offered: traffic.offered,
        offered_octets: traffic.offered_octets,
        delivered: traffic.delivered,
        delivered_octets: traffic.delivered_octets,
        damaged,
        duplicated,
        dropped,
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

fn striped(file: &FileState, now: Instant) -> StripedRecord {
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
