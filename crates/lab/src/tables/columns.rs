//! The columns of every table.

use super::series::{Drops, Losses, Names, Queues, Samples, Segments, Timeouts, SERIES};
use super::set::{Tables, NAMES};
use crate::flows::FlowConfig;
use crate::format::Traffic;
use crate::network::{Network, Transfer};
use arrow_array::RecordBatch;
use std::collections::HashMap;
use whyloss_sim::{
    Cause, CauseCounts, FlowRecord, LinkId, LinkRecord, MiddleboxRecord, PageCounts, PlaybackCounts, Records, RunOutcome,
};
use whyloss_tables::{table, Column};
use whyloss_transport::tcp::{Closing, Stats};
use whyloss_transport::Instant;

/// A run: its records and what the scenario knows beside them.
#[derive(Debug)]
pub struct Origin<'a> {
    run: u32,
    network: &'a Network,
    schemes: &'a [String],
    outcome: RunOutcome,
    records: &'a Records,
    /// The transfer of each flow.
    transfer_of: Vec<usize>,
    /// What became of each transfer.
    outlines: Vec<Outline>,
    /// The transfers of each scheme.
    protocols: Vec<Protocol<'a>>,
}

/// Transfers of one scheme.
#[derive(Clone, Debug)]
pub struct Protocol<'a> {
    scheme: &'a str,
    /// What each got, in bit/s.
    goodputs: Vec<f64>,
}

impl<'a> Protocol<'a> {
    /// Those of every scheme, in the order in which the schemes come first.
    fn all(schemes: &'a [String], outlines: &[Outline]) -> Vec<Self> {
        let mut protocols: Vec<Self> = Vec::new();
        for (scheme, outline) in schemes.iter().zip(outlines) {
            match protocols.iter_mut().find(|protocol| protocol.scheme == scheme) {
                Some(protocol) => protocol.goodputs.push(outline.goodput_bps),
                None => protocols.push(Self { scheme, goodputs: vec![outline.goodput_bps] }),
            }
        }
        protocols
    }
}

/// What became of a transfer, over however many connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outline {
    connections: u32,
    octets: Option<u64>,
    octets_delivered: u64,
    start_ns: u64,
    finished_ns: Option<u64>,
    goodput_bps: f64,
    max_reordered: Option<u64>,
    playback: Option<PlaybackCounts>,
    pages: Option<PageCounts>,
}

impl<'a> Origin<'a> {
    /// `schemes` says for each transfer which parts it uses, `sizes` how many octets it was to move.
    pub fn new(
        names: &Names<'a>,
        schemes: &'a [String],
        sizes: &[Option<u64>],
        outcome: RunOutcome,
        records: &'a Records,
    ) -> Self {
        let &Names { run, network, .. } = names;
        let by_name: HashMap<&str, usize> =
            network.transfers.iter().enumerate().map(|(index, transfer)| (transfer.name.as_str(), index)).collect();
        let mut outlines: Vec<_> = sizes.iter().map(|octets| Outline { octets: *octets, ..Outline::default() }).collect();
        let mut transfer_of = Vec::with_capacity(records.flows.len());
        for flow in &records.flows {
            let name = flow.striped.map_or(&flow.name, |striped| &records.striped[striped].name);
            let transfer = by_name[name.as_str()];
            transfer_of.push(transfer);
            let outline = &mut outlines[transfer];
            outline.connections += 1;
            match flow.striped.map(|striped| &records.striped[striped]) {
                None => {
                    outline.octets_delivered = flow.octets_delivered;
                    outline.start_ns = flow.start.as_nanos();
                    outline.finished_ns = flow.finished.map(Instant::as_nanos);
                    outline.goodput_bps = flow.goodput_bps;
                    outline.playback = flow.playback;
                    outline.pages = flow.pages;
                }
                Some(striped) => {
                    outline.octets_delivered = striped.octets_delivered;
                    outline.start_ns = striped.start.as_nanos();
                    outline.finished_ns = striped.finished.map(Instant::as_nanos);
                    outline.goodput_bps = striped.goodput_bps;
                    outline.max_reordered = Some(striped.max_reordered);
                }
            }
        }
        let protocols = Protocol::all(schemes, &outlines);
        Self { run, network, schemes, outcome, records, transfer_of, outlines, protocols }
    }

    fn rows<T>(&'a self, items: &'a [T]) -> impl ExactSizeIterator<Item = Row<'a, T>> {
        items.iter().enumerate().map(move |(index, item)| Row { of: self, item, index })
    }

    /// Goodputs of the transfers that are not plain datagrams, in bit/s.
    fn goodputs(&self) -> impl Iterator<Item = f64> + '_ {
        let plain = |transfer: usize| self.network.flows[self.network.transfers[transfer].flow] == FlowConfig::Cbr;
        self.outlines.iter().enumerate().filter(move |(index, _)| !plain(*index)).map(|(_, outline)| outline.goodput_bps)
    }

    /// Goodputs of the transfers on one side, in bit/s.
    fn goodputs_of(&self, side: Traffic) -> impl Iterator<Item = f64> + '_ {
        let outlines = self.outlines.iter().zip(&self.network.transfers);
        outlines.filter(move |(_, transfer)| transfer.traffic == Some(side)).map(|(outline, _)| outline.goodput_bps)
    }

    /// Average traffic goodput ratio (Tsaoussidis & Zhang 2002, 4.3); `None` where a side is missing or the cross traffic got nothing.
    fn atgr(&self) -> Option<f64> {
        let (main, cross) = (mean(self.goodputs_of(Traffic::Main))?, mean(self.goodputs_of(Traffic::Cross))?);
        (cross > 0.0).then(|| main / cross)
    }

    fn transfer(&self, flow: usize) -> &'a Transfer {
        &self.network.transfers[self.transfer_of[flow]]
    }

    fn link(&self, link: LinkId) -> &'a str {
        &self.network.links[link.index()].name
    }

    fn node(&self, node: usize) -> &'a str {
        &self.network.nodes[node].name
    }
}

/// An item of the records and the run that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a, T> {
    of: &'a Origin<'a>,
    item: &'a T,
    index: usize,
}

const fn closing_name(closing: Closing) -> &'static str {
    match closing {
        Closing::Normal => "normal",
        Closing::Aborted => "aborted",
        Closing::Reset => "reset",
        Closing::Refused => "refused",
        Closing::TimedOut => "timed-out",
    }
}

/// Jain's index (Jain, Chiu & Hawe 1984); `None` if all values are 0.
fn jain(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum, squares) =
        values.fold((0.0, 0.0, 0.0), |(n, sum, squares), value| (n + 1.0, sum + value, squares + value * value));
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// The mean; `None` if there is no value.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum) = values.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value));
    (n > 0.0).then(|| sum / n)
}

/// Packets that queues dropped, because they were full or early.
const fn queued(dropped: &CauseCounts) -> u64 {
    dropped.get(Cause::QueueFull) + dropped.get(Cause::Aqm)
}

/// Packets that channels took, or that were lost while a link was down.
fn other(dropped: &CauseCounts) -> u64 {
    dropped.total() - queued(dropped) - dropped.get(Cause::Policer) - dropped.get(Cause::Collision)
}

impl Row<'_, FlowRecord> {
    fn sender(&self, counter: fn(&Stats) -> u64) -> Option<u64> {
        self.item.sender.as_ref().map(counter)
    }

    fn receiver(&self, counter: fn(&Stats) -> u64) -> Option<u64> {
        self.item.receiver.as_ref().map(counter)
    }
}

table! {
    /// One row a run.
    Runs |r: Row<'a, Records>| {
        run: always u32 = r.of.run, "Number of the run.";
        seed: always u64 = r.item.seed, "Seed of the scenario; seed and run decide all random numbers.";
        outcome: always text = match r.of.outcome {
            RunOutcome::Completed => "completed",
            RunOutcome::TimeLimit => "time-limit",
            RunOutcome::Cancelled => "cancelled",
        }, "How the run ended: `completed` (every transfer of a given size is over), `time-limit`, or `cancelled` by whoever ran it: then the tables have what was simulated until then.";
        ended_at_ns: always u64 = r.item.ended_at.as_nanos(), "Simulated time at the end of the run.";
        send_overhead_ns: always u64 = r.item.send_overhead.as_nanos(), "Upper bound of the random delay before each packet leaves its host; 0 if there was none.";
        system_goodput_bps: always f64 = r.of.goodputs().sum(), "Sum of the goodputs of all transfers but those of plain datagrams (`cbr`).";
        fairness: maybe f64 = jain(r.of.goodputs()), "Jain's index of these goodputs, (Σg)² / (n Σg²): 1 if all are equal, 1/n if one has all; null if there are none, or all are 0.";
        atgr: maybe f64 = r.of.atgr(), "Average traffic goodput ratio: mean goodput of the transfers with `traffic = \"main\"` over that of those with `\"cross\"`; 1 is fair, below 1 unfair to the main traffic. Null if there are none of one kind, or the cross traffic got nothing.";
        smoothness_bin_ns: always u64 = r.item.smoothness_bin.as_nanos(), "Length of the bins of `smoothness` in `flows`: `output.smoothness.bin`.";
        events: always u64 = r.item.events, "Events that the simulator took.";
        segments_left_out: always u64 = r.item.log_left_out, "Packets for which `segments` had no room: see `output.segments.at_most`.";
        packets_sent: always u64 = r.item.packets.sent, "Packets that left an endpoint.";
        packets_delivered: always u64 = r.item.packets.delivered, "Packets that reached the endpoint that they were meant for.";
        packets_damaged_unnoticed: always u64 = r.item.packets.damaged_unnoticed, "Of those, packets damaged in a way that no checksum noticed. With them DCCP packets whose damaged data was discarded while their damaged header was believed.";
        packets_duplicated: always u64 = r.item.packets.duplicated, "Packets that a link made two of.";
        packets_in_flight: always u64 = r.item.packets.in_flight, "Packets under way at the end. Sent + duplicated = delivered + suppressed + dropped + in flight.";
        packets_suppressed: always u64 = r.item.packets.suppressed, "Packets that ended at a middlebox that answers for them: no losses.";
        packets_inserted: always u64 = r.item.packets.inserted, "Of the packets sent, those that a middlebox sent in the name of an endpoint.";
        packets_dropped: always u64 = r.item.packets.dropped.total(), "Packets that did not arrive, by any cause.";
        packets_dropped_queue: always u64 = queued(&r.item.packets.dropped), "Packets that a queue dropped.";
        packets_dropped_policer: always u64 = r.item.packets.dropped.get(Cause::Policer), "Packets for which a policer had no tokens.";
        packets_dropped_collision: always u64 = r.item.packets.dropped.get(Cause::Collision), "Packets that a radio station gave up after its retry limit.";
    }
}

table! {
    /// One row a transfer.
    Transfers |r: Row<'a, Outline>| {
        run: always u32 = r.of.run, "Number of the run.";
        transfer: always text = &r.of.network.transfers[r.index].name, "Name of the transfer: that of its `[[flow]]`, with `.0`, `.1`, … if it has a `count`.";
        entry: always u32 = r.of.network.transfers[r.index].flow as u32, "Position of its `[[flow]]` in the scenario.";
        scheme: always text = &r.of.schemes[r.index], "Scheme or parts, as the scenario names them; `cbr` for datagrams.";
        from: always text = r.of.node(r.of.network.transfers[r.index].from), "The sending host.";
        to: always text = r.of.node(r.of.network.transfers[r.index].to), "The receiving host.";
        traffic: maybe text = r.of.network.transfers[r.index].traffic.map(Traffic::name), "`main` or `cross`, if its `[[flow]]` says so: see `atgr` in `runs`.";
        connections: always u32 = r.item.connections, "Number of connections that carried it.";
        octets: maybe u64 = r.item.octets, "Octets that it was to move; null if without end.";
        octets_delivered: always u64 = r.item.octets_delivered, "Octets that arrived in order.";
        start_ns: always u64 = r.item.start_ns, "When it was to start.";
        finished_ns: maybe u64 = r.item.finished_ns, "When its last octet was in order at the receiver; null if it was not by the end of the run.";
        goodput_bps: always f64 = r.item.goodput_bps, "Octets delivered times 8, per second from the start to the finish, or to the end of the run if it did not finish.";
        max_reordered_octets: maybe u64 = r.item.max_reordered, "The most octets of a striped transfer that ever waited at the receiver for earlier ones; null if not striped.";
        playback_slots: maybe u64 = r.item.playback.map(|counts| counts.slots), "Slots of time that the player at the receiver played; this and the next are null without `playback`.";
        playback_met: maybe u64 = r.item.playback.map(|counts| counts.met), "Of those, the successes: slots in which enough arrived.";
        playback_met_buffered: maybe u64 = r.item.playback.map(|counts| counts.met_buffered), "Slots in which enough was there, with what waited in the buffer from earlier ones.";
        pages: maybe u64 = r.item.pages.map(|counts| counts.pages), "Pages that the web user at the receiver got whole; null without `web`.";
        mean_page_time_ns: maybe f64 = r.item.pages.filter(|counts| counts.pages > 0).map(|counts| counts.took.as_nanos() as f64 / counts.pages as f64), "Mean time from the request of a page until all of it was in order at the receiver; null without a whole page.";
    }
}

table! {
    /// One row a scheme of a run.
    Protocols |r: Row<'a, Protocol<'a>>| {
        run: always u32 = r.of.run, "Number of the run.";
        scheme: always text = r.item.scheme, "Scheme or parts, as the scenario names them; `cbr` for datagrams.";
        transfers: always u32 = r.item.goodputs.len() as u32, "Number of its transfers.";
        protocol_goodput_bps: always f64 = r.item.goodputs.iter().sum(), "Aggregated protocol goodput: the sum of the goodputs of its transfers.";
        mean_goodput_bps: always f64 = r.item.goodputs.iter().sum::<f64>() / r.item.goodputs.len() as f64, "Their mean.";
        fairness: maybe f64 = jain(r.item.goodputs.iter().copied()), "Jain's index of them alone; null if all are 0.";
    }
}

table! {
    /// One row a connection or stream of datagrams.
    Flows |r: Row<'a, FlowRecord>| {
        run: always u32 = r.of.run, "Number of the run.";
        flow: always text = &r.item.name, "Name of the connection: that of its transfer, with `/0`, `/1`, … if striped.";
        transfer: always text = &r.of.transfer(r.index).name, "Name of the transfer that it belongs to.";
        entry: always u32 = r.of.transfer(r.index).flow as u32, "Position of its `[[flow]]` in the scenario.";
        scheme: always text = &r.of.schemes[r.of.transfer_of[r.index]], "Scheme or parts, as the scenario names them; `cbr` for datagrams.";
        start_ns: always u64 = r.item.start.as_nanos(), "When it was to start.";
        connected_ns: maybe u64 = r.item.connected.map(Instant::as_nanos), "When the sender's connection was established.";
        first_data_ns: maybe u64 = r.item.first_data.map(Instant::as_nanos), "When the first data was in order at the receiver.";
        last_data_ns: maybe u64 = r.item.last_data.map(Instant::as_nanos), "When the last data was in order at the receiver.";
        finished_ns: maybe u64 = r.item.finished.map(Instant::as_nanos), "When everything was in order at the receiver; null if it was not by the end of the run.";
        closing: maybe text = r.item.closing.map(closing_name), "How the sender's connection ended: `normal`, `aborted`, `reset`, `refused`, `timed-out`; null if it did not.";
        octets_delivered: always u64 = r.item.octets_delivered, "Octets that arrived in order.";
        octets_corrupted: always u64 = r.item.octets_corrupted, "Octets that reached the application with another value than they were sent with.";
        goodput_bps: always f64 = r.item.goodput_bps, "Octets delivered times 8, per second from the start to the finish, or to the end of the run if it did not finish.";
        sending_rate_bps: maybe f64 = r.item.sending_rate_bps, "Octets of data sent, retransmissions included, times 8, per second over the same time as the goodput; null for datagrams without congestion control.";
        smoothness: maybe f64 = r.item.smoothness, "How unevenly the sender sent: the coefficient of variation of the octets of data that it sent, retransmissions included, in each bin of `output.smoothness.bin`; 0 is perfectly smooth. Bins that lie wholly between start and finish, or the end of the run, count. Null for datagrams without congestion control, for fewer than two bins, and if nothing was sent in them.";
        segments_sent: maybe u64 = r.sender(|s| s.segments_sent), "Segments that the sender sent. This and all counters below are null for datagrams.";
        data_segments_sent: maybe u64 = r.sender(|s| s.data_segments_sent), "Segments with data, retransmissions included.";
        data_octets_sent: maybe u64 = r.sender(|s| s.data_octets_sent), "Octets of data sent, retransmissions included.";
        retransmissions: maybe u64 = r.sender(|s| s.retransmissions), "Segments retransmitted.";
        retransmitted_octets: maybe u64 = r.sender(|s| s.retransmitted_octets), "Octets of data retransmitted.";
        losses: maybe u64 = r.sender(|s| s.losses), "Segments taken for lost.";
        fast_retransmits: maybe u64 = r.sender(|s| s.fast_retransmits), "Episodes of fast retransmit.";
        reductions: maybe u64 = r.sender(|s| s.reductions), "Of those, how many reduced the window.";
        ecn_reductions: maybe u64 = r.sender(|s| s.ecn_reductions), "Reductions for ECN.";
        timeouts: maybe u64 = r.sender(|s| s.timeouts), "Retransmission timeouts.";
        spurious_timeouts: maybe u64 = r.sender(|s| s.spurious_timeouts), "Repairs after a timeout that the sender itself found spurious.";
        forgiven_timeouts: maybe u64 = r.sender(|s| s.forgiven_timeouts), "Repairs after a timeout that the sender itself put down to a loss without congestion.";
        undos: maybe u64 = r.sender(|s| s.undos), "Reductions undone.";
        tail_probes: maybe u64 = r.sender(|s| s.tail_probes), "Tail loss probes.";
        duplicate_acks: maybe u64 = r.sender(|s| s.duplicate_acks), "Duplicate acknowledgements received.";
        reports_received: maybe u64 = r.sender(|s| s.reports_received), "Reports of damage received from the receiver.";
        snacks_received: maybe u64 = r.sender(|s| s.snacks_received), "Selective negative acknowledgements (SNACK options) received, from the receiver or a base station.";
        snack_retransmissions: maybe u64 = r.sender(|s| s.snack_retransmissions), "Of the retransmissions, those that they asked for.";
        receiver_segments_sent: maybe u64 = r.receiver(|s| s.segments_sent), "Segments that the receiver sent: acknowledgements.";
        receiver_segments_received: maybe u64 = r.receiver(|s| s.segments_received), "Segments that reached the receiver, damaged ones included.";
        receiver_damaged: maybe u64 = r.receiver(|s| s.damaged_received), "Damaged segments that reached the receiver's connection.";
        receiver_duplicates: maybe u64 = r.receiver(|s| s.duplicates_received), "Segments with data that brought nothing new.";
        receiver_reports_sent: maybe u64 = r.receiver(|s| s.reports_sent), "Reports of damage sent.";
        receiver_snacks_sent: maybe u64 = r.receiver(|s| s.snacks_sent), "Selective negative acknowledgements sent, each with one hole or several.";
        receiver_snack_holes: maybe u64 = r.receiver(|s| s.snack_holes_sent), "Holes that these asked for; one that is asked for again counts again.";
        forward_dropped_queue: always u64 = queued(&r.item.forward.dropped), "Packets from sender to receiver that a queue dropped.";
        forward_dropped_policer: always u64 = r.item.forward.dropped.get(Cause::Policer), "Packets from sender to receiver for which a policer had no tokens.";
        forward_dropped_collision: always u64 = r.item.forward.dropped.get(Cause::Collision), "Packets from sender to receiver that a radio station gave up after its retry limit.";
        forward_dropped_other: always u64 = other(&r.item.forward.dropped), "Packets from sender to receiver that a channel took, or that were lost while a link was down.";
        reverse_dropped_queue: always u64 = queued(&r.item.reverse.dropped), "Packets from receiver to sender that a queue dropped.";
        reverse_dropped_policer: always u64 = r.item.reverse.dropped.get(Cause::Policer), "Packets from receiver to sender for which a policer had no tokens.";
        reverse_dropped_collision: always u64 = r.item.reverse.dropped.get(Cause::Collision), "Packets from receiver to sender that a radio station gave up after its retry limit.";
        reverse_dropped_other: always u64 = other(&r.item.reverse.dropped), "Packets from receiver to sender that a channel took, or that were lost while a link was down.";
    }
}

table! {
    /// One row a direction of a link.
    Links |r: Row<'a, LinkRecord>| {
        run: always u32 = r.of.run, "Number of the run.";
        link: always text = &r.of.network.links[r.index / 2].name, "Name of the link.";
        direction: always text = if r.index % 2 == 0 { "forward" } else { "reverse" }, "`forward` or `reverse`.";
        offered_packets: always u64 = r.item.offered, "Packets that wanted to cross.";
        offered_octets: always u64 = r.item.offered_octets, "Octets that wanted to cross.";
        delivered_packets: always u64 = r.item.delivered, "Packets that reached the other end, damaged ones included.";
        delivered_octets: always u64 = r.item.delivered_octets, "Octets that reached the other end.";
        damaged_packets: always u64 = r.item.damaged, "Packets that the channel damaged.";
        duplicated_packets: always u64 = r.item.duplicated, "Packets that came to the other end twice. Offered + duplicated = delivered + dropped + in flight.";
        dropped_queue: always u64 = queued(&r.item.dropped), "Packets that the queue dropped.";
        dropped_policer: always u64 = r.item.dropped.get(Cause::Policer), "Packets for which the policer had no tokens.";
        dropped_erased: always u64 = r.item.dropped.get(Cause::Erased), "Packets that the channel erased, or whose every attempt noise spoiled.";
        dropped_collision: always u64 = r.item.dropped.get(Cause::Collision), "Packets that a radio station gave up after its retry limit.";
        dropped_down: always u64 = r.item.dropped.get(Cause::LinkDown), "Packets that were transmitted while the link was down.";
        in_flight_packets: always u64 = r.item.in_flight, "Packets in the queue, in transmission or on the way at the end of the run.";
        busy_ns: always u64 = r.item.busy.as_nanos(), "Time spent transmitting.";
        mean_queue_packets: always f64 = r.item.mean_queue_packets, "Mean number of packets that waited.";
        mean_queue_octets: always f64 = r.item.mean_queue_octets, "Mean number of octets that waited.";
        max_queue_packets: always u64 = r.item.max_queue_packets, "Most packets that waited.";
        max_queue_octets: always u64 = r.item.max_queue_octets, "Most octets that waited.";
        pattern_ends: always u64 = r.item.pattern_ends, "How often an error pattern came to its end.";
        frames: maybe u64 = r.item.air.map(|air| air.frames), "Frames sent through the air in this direction, RTS, CTS and ACK frames included.";
        frames_collided: maybe u64 = r.item.air.map(|air| air.collided), "Of those, the ones that the other end could not decode because it heard something else or was sending itself.";
        frames_noise: maybe u64 = r.item.air.map(|air| air.noise), "Of those, the ones that noise spoiled.";
        retries: maybe u64 = r.item.air.map(|air| air.retries), "Exchanges for packets of this direction that failed and were tried again.";
    }
}

table! {
    /// One row an agent at a router.
    Middleboxes |r: Row<'a, MiddleboxRecord>| {
        run: always u32 = r.of.run, "Number of the run.";
        router: always text = r.of.node(r.of.network.middleboxes[r.index].at), "The router.";
        link: always text = r.of.link(r.item.link), "The link whose segments it sees.";
        kind: always text = r.item.kind, "What it is, as in the scenario.";
        segments_seen: always u64 = r.item.seen, "Segments that crossed the link and that it looked at.";
        segments_suppressed: always u64 = r.item.suppressed, "Of those, the ones whose journey it ended.";
        segments_sent: always u64 = r.item.sent, "Segments that it sent itself, in the name of an endpoint.";
        moved_flows: always u64 = r.item.moved_flows, "Flows of which it handed something over to the agent of another station, because their mobile host had moved there.";
        moved_octets: always u64 = r.item.moved_octets, "Octets of that: state and what buffers held.";
        longest_move_ns: always u64 = r.item.longest_move.as_nanos(), "The longest time for which a flow waited for what was handed over, from the arrival of its mobile host at the other station on.";
        peak_flows: always u64 = r.item.peak.flows, "Most flows of which it remembered something at a time.";
        peak_segments: always u64 = r.item.peak.segments, "Most segments, or pieces of data, of which it remembered something at a time.";
        peak_octets: always u64 = r.item.peak.octets, "Most octets of memory that it needed at a time, for flows and segments.";
        peak_flow_octets: always u64 = r.item.peak.flow_octets, "Most octets of memory that it needed for a single flow.";
    }
}

/// The tables of one run, of which `series` is what came while it went on.
pub fn batches(origin: &Origin<'_>, series: [RecordBatch; SERIES.end - SERIES.start]) -> Tables {
    let records = origin.records;
    let [runs, transfers, protocols, flows, links, middleboxes] = [
        Runs::batch(origin.rows(std::slice::from_ref(records))),
        Transfers::batch(origin.rows(&origin.outlines)),
        Protocols::batch(origin.rows(&origin.protocols)),
        Flows::batch(origin.rows(&records.flows)),
        Links::batch(origin.rows(&records.links)),
        Middleboxes::batch(origin.rows(&records.middleboxes)),
    ]
    .map(whyloss_tables::batch);
    let [losses, timeouts, drops, segments, samples, queues] = series;
    Tables { runs, transfers, protocols, flows, losses, timeouts, drops, segments, samples, queues, links, middleboxes }
}

/// The columns of every table, by name.
pub fn all() -> [(&'static str, Vec<Column>); NAMES.len()] {
    [
        ("runs", Runs::columns()),
        ("transfers", Transfers::columns()),
        ("protocols", Protocols::columns()),
        ("flows", Flows::columns()),
        ("losses", Losses::columns()),
        ("timeouts", Timeouts::columns()),
        ("drops", Drops::columns()),
        ("segments", Segments::columns()),
        ("samples", Samples::columns()),
        ("queues", Queues::columns()),
        ("links", Links::columns()),
        ("middleboxes", Middleboxes::columns()),
    ]
}
