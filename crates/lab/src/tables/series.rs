//! The columns of the tables whose rows come while a run goes on.

use crate::network::Network;
use arrow_array::builder::{Float64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use whyloss_sim::{DropRecord, FlowSample, LinkId, LinkSample, LossRow, PacketRecord, Settled, TimeoutRow};
use whyloss_tables::table;
use whyloss_transport::tcp::Judgement;
use whyloss_transport::{Duration, Instant};

/// Where these tables stand among all.
pub const SERIES: Range<usize> = 4..10;

/// A run, and what its rows call flows and differentiators.
#[derive(Debug)]
pub struct Names<'a> {
    pub run: u32,
    pub network: &'a Network,
    /// Names of all flows.
    pub flows: Vec<String>,
    /// For each flow, its differentiators in shadow.
    pub shadows: Vec<Vec<String>>,
}

impl Names<'_> {
    fn flow(&self, flow: usize) -> &str {
        &self.flows[flow]
    }

    fn link(&self, link: LinkId) -> &str {
        &self.network.links[link.index()].name
    }

    fn rows<'a, T>(&'a self, items: &'a [T]) -> impl ExactSizeIterator<Item = Entry<'a, T>> {
        items.iter().map(move |item| Entry { of: self, item })
    }
}

/// A record and the run that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a, T> {
    of: &'a Names<'a>,
    item: &'a T,
}

const fn judgement_name(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Reduced => "reduced",
        Judgement::Kept => "kept",
        Judgement::Covered => "covered",
    }
}

table! {
    /// One row a loss that a sender noticed.
    Losses |r: Entry<'a, LossRow>| {
        run: always u32 = r.of.run, "Number of the run.";
        flow: always text = r.of.flow(r.item.flow), "Name of the connection.";
        at_ns: always u64 = r.item.record.at.as_nanos(), "When the sender noticed the loss.";
        offset: always u64 = r.item.record.offset, "Offset of the segment's first octet in the data stream.";
        octets: always u32 = r.item.record.len, "Length of the segment's data.";
        transmission: always u32 = r.item.record.transmission, "Which transmission is taken for lost: 0 is the first.";
        sent_at_ns: always u64 = r.item.record.sent_at.as_nanos(), "When that transmission left.";
        trigger: always text = r.item.record.trigger.name(), "Why it is taken for lost: `duplicate-acks`, `partial-ack`, `rack`, `report`, `snack` (the receiver asked for it), `tail-probe`, `timeout`.";
        episode: always u32 = r.item.record.episode, "Number of the recovery episode, from 0 in each flow; the rows of an episode come in the order in which they were noticed.";
        true_cause: always text = r.item.truth.name(), "What really happened: `queue-full`, `erased`, `ip-header-damaged`, `transport-header-damaged`, `payload-damaged`, `no-flow`, `no-route`, `collision`, `aqm` (a queue dropped it before it was full), `link-down` (it was transmitted while the link was down), `policer` (a token bucket was empty); `arrived` if the sender was wrong; `suppressed` if a middlebox took it out of the way, because its receiver had no need of it; `in-flight` if still under way at the end.";
        true_class: maybe text = r.item.truth.class(), "`congestion` or `corruption`; null if the segment was not lost.";
        dropped_at_ns: maybe u64 = r.item.dropped.map(|(at, _, _)| at.as_nanos()), "When it was really lost.";
        dropped_link: maybe text = r.item.dropped.map(|(_, link, _)| r.of.link(link)), "Link on which it was lost.";
        verdict: always text = r.item.record.verdict.cause.name(), "Verdict of the ruling differentiator: `congestion`, `corruption`, `unknown`.";
        score: always f64 = r.item.record.verdict.score, "Its score: larger is more like corruption.";
        judgement: always text = judgement_name(r.item.record.judgement), "What the loss did to the window: `reduced`, `kept`, or `covered` by an earlier loss of its episode.";
    }
}

table! {
    /// One row an expired retransmission timer.
    Timeouts |r: Entry<'a, TimeoutRow>| {
        run: always u32 = r.of.run, "Number of the run.";
        flow: always text = r.of.flow(r.item.flow), "Name of the connection.";
        at_ns: always u64 = r.item.record.at.as_nanos(), "When the timer expired.";
        consecutive: always u32 = r.item.record.consecutive, "Expiries in a row: 1 is the first.";
        offset: always u64 = r.item.record.offset, "Offset of the first outstanding octet in the data stream.";
        rto_ns: always u64 = r.item.record.rto_ns, "The timeout that expired, with back-off.";
        verdict: always text = r.item.record.verdict.cause.name(), "Verdict of the ruling differentiator on the first outstanding segment.";
        score: always f64 = r.item.record.verdict.score, "Its score.";
        collapsed: always flag = r.item.record.collapsed, "Whether the window collapsed.";
        outcome: always text = r.item.outcome.name(), "What the sender made of it in the end: `genuine` (congestion), `forgiven` (a loss, but not to congestion), `spurious` (nothing was lost); `undecided` if the connection or the run was over first.";
        assessed_ns: maybe u64 = r.item.assessed.map(Instant::as_nanos), "When it had made up its mind; null if undecided.";
        sent_at_ns: always u64 = r.item.record.sent_at.as_nanos(), "When the first outstanding segment last left.";
        true_cause: always text = r.item.truth.name(), "What really happened to that transmission; see `true_cause` of `losses`.";
        true_class: maybe text = r.item.truth.class(), "`congestion` or `corruption`; null if it was not lost.";
    }
}

table! {
    /// One row a packet that did not arrive.
    Drops |r: Entry<'a, DropRecord>| {
        run: always u32 = r.of.run, "Number of the run.";
        flow: always text = r.of.flow(r.item.flow), "Name of the connection.";
        direction: always text = r.item.way.name(), "`forward` from the flow's sender to its receiver, `reverse` back.";
        at_ns: always u64 = r.item.at.as_nanos(), "When it was discarded or erased.";
        cause: always text = r.item.cause.name(), "Why; see `true_cause` of `losses`.";
        link: always text = r.of.link(r.item.link), "Link on which it was lost, or which damaged it last.";
        link_direction: always text = r.item.link_way.name(), "Direction of that link.";
        sent_at_ns: always u64 = r.item.sent_at.as_nanos(), "When its endpoint sent it.";
        offset: always u64 = r.item.offset, "Offset of its first octet of data in the data stream.";
        data_octets: always u32 = r.item.len, "Octets of data; 0 for a bare acknowledgement.";
        packet_octets: always u32 = r.item.octets, "Octets of the whole packet.";
    }
}

table! {
    /// One row a packet that an endpoint sent.
    Segments |r: Entry<'a, PacketRecord>| {
        run: always u32 = r.of.run, "Number of the run.";
        flow: always text = r.of.flow(r.item.flow), "Name of the connection.";
        direction: always text = r.item.way.name(), "`forward` from the flow's sender to its receiver, `reverse` back.";
        sent_at_ns: always u64 = r.item.sent_at.as_nanos(), "When its endpoint sent it.";
        ended_at_ns: maybe u64 = r.item.ended.map(Instant::as_nanos), "When it arrived, was lost or suppressed; null if it was under way at the end. Of several copies the first that arrived counts, else the last that was lost.";
        fate: always text = r.item.truth.name(), "`arrived`, `suppressed` by a middlebox, `in-flight` at the end of the run, or why it was lost: see `true_cause` of `losses`.";
        link: maybe text = r.item.link.map(|link| r.of.link(link)), "Link on which it was lost, or which damaged it last; null if it was not lost.";
        offset: maybe u64 = Some(r.item.offset).filter(|_| r.item.len > 0), "Offset of its first octet of data in the data stream of its endpoint; null if it carries none.";
        data_octets: always u32 = r.item.len, "Octets of data.";
        packet_octets: always u32 = r.item.octets, "Octets of the whole packet.";
        retransmission: always flag = r.item.retransmission, "Its endpoint had sent the first octet of its data before.";
        inserted: always flag = r.item.inserted, "A middlebox sent it in the endpoint's name.";
        flags: maybe text = r.item.flags.map(|flags| format!("{flags:?}")), "Control bits as tcpdump shows them: `S` SYN, `F` FIN, `R` RST, `P` PSH, `U` URG, `E` ECE, `W` CWR, `.` ACK; this and the columns below are null if it is not TCP.";
        ack: maybe u64 = r.item.ack, "Octets of the other end's data stream that it acknowledges, one more once the FIN is; null without ACK.";
        window_octets: maybe u64 = r.item.window, "Octets beyond them that its endpoint is ready to take, after scaling; null without ACK.";
        sack: maybe text = sack_text(&r.item.sack), "Its SACK blocks, `start-end` in octets of the other end's data stream, in the order of the option; null if it has none.";
    }
}

/// SACK blocks in words.
fn sack_text(blocks: &[(u64, u64)]) -> Option<String> {
    let each = blocks.iter().map(|(start, end)| format!("{start}-{end}"));
    (!blocks.is_empty()).then(|| each.collect::<Vec<_>>().join(" "))
}

table! {
    /// Time series of the senders.
    Samples |r: Entry<'a, FlowSample>| {
        run: always u32 = r.of.run, "Number of the run.";
        flow: always text = r.of.flow(r.item.flow), "Name of the connection.";
        at_ns: always u64 = r.item.at.as_nanos(), "When.";
        cwnd_octets: always u64 = r.item.cwnd, "Congestion window.";
        ssthresh_octets: maybe u64 = Some(r.item.ssthresh).filter(|octets| *octets < u64::MAX / 2), "Slow-start threshold; null while unbounded.";
        srtt_ns: maybe u64 = r.item.srtt.map(Duration::as_nanos), "Smoothed round-trip time; null before the first sample.";
        pipe_octets: always u64 = r.item.pipe, "Octets believed to be in the network.";
        octets_delivered: always u64 = r.item.octets_delivered, "Octets in order at the receiver.";
        data_octets_sent: always u64 = r.item.data_octets_sent, "Octets of data that the sender has sent, retransmissions included.";
    }
}

table! {
    /// Time series of the queues.
    Queues |r: Entry<'a, LinkSample>| {
        run: always u32 = r.of.run, "Number of the run.";
        link: always text = r.of.link(r.item.link), "Name of the link.";
        direction: always text = r.item.way.name(), "`forward` or `reverse`.";
        at_ns: always u64 = r.item.at.as_nanos(), "When.";
        queue_packets: always u64 = r.item.queue_packets, "Packets that wait; the one in transmission is not counted.";
        queue_octets: always u64 = r.item.queue_octets, "Octets that wait.";
    }
}

/// These tables of what is settled, in the order of all; without drops if nobody asked for them.
pub fn series(names: &Names<'_>, settled: &Settled, with_drops: bool) -> [RecordBatch; SERIES.end - SERIES.start] {
    let drops = if with_drops { &settled.drops[..] } else { &[] };
    let mut losses = Losses::batch(names.rows(&settled.losses));
    add_shadows(names, &settled.losses, &mut losses);
    [
        losses,
        Timeouts::batch(names.rows(&settled.timeouts)),
        Drops::batch(names.rows(drops)),
        Segments::batch(names.rows(&settled.log)),
        Samples::batch(names.rows(&settled.flow_samples)),
        Queues::batch(names.rows(&settled.link_samples)),
    ]
    .map(whyloss_tables::batch)
}

/// How the columns of differentiators begin that listened in shadow.
pub const SHADOWS: [&str; 2] = ["verdict_", "score_"];

/// One column of verdicts and one of scores for each differentiator that listened in shadow, in any flow of the run.
fn add_shadows(names: &Names<'_>, losses: &[LossRow], (fields, arrays): &mut (Vec<Field>, Vec<ArrayRef>)) {
    let listening: BTreeSet<&str> = names.shadows.iter().flatten().map(String::as_str).collect();
    let [verdict_of, score_of] = SHADOWS;
    for name in listening {
        let mut verdicts = StringBuilder::with_capacity(losses.len(), 16 * losses.len());
        let mut scores = Float64Builder::with_capacity(losses.len());
        for loss in losses {
            let position = names.shadows[loss.flow].iter().position(|shadow| shadow == name);
            let verdict = position.and_then(|position| loss.record.shadows.get(position));
            verdicts.append_option(verdict.map(|verdict| verdict.cause.name()));
            scores.append_option(verdict.map(|verdict| verdict.score));
        }
        fields.push(Field::new(format!("{verdict_of}{name}"), DataType::Utf8, true));
        arrays.push(Arc::new(verdicts.finish()));
        fields.push(Field::new(format!("{score_of}{name}"), DataType::Float64, true));
        arrays.push(Arc::new(scores.finish()));
    }
}
