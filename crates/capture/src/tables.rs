//! An analysis as Arrow tables. Times are seconds since the first packet of the capture.

use crate::cause::Cause;
use crate::detail::{Detail, Details, Sample};
use crate::half::Unneeded;
use crate::join::{End, Sent};
use crate::replay::Says;
use crate::report::{Analysis, Flow, Loss, SentAgain, Spent, Stalled};
use std::fmt::Write;
use whyloss_tables::arrow_array::RecordBatch;
use whyloss_tables::{batch, describe, table, Column};
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};

/// A row, and when the capture began.
type Row<'a, T> = (&'a T, Instant);

fn seconds(at: Instant, began: Instant) -> f64 {
    // A clock may go back to before the first packet.
    if at >= began {
        at.since(began).as_secs_f64()
    } else {
        -began.since(at).as_secs_f64()
    }
}

fn length(duration: Option<Duration>) -> Option<f64> {
    duration.map(Duration::as_secs_f64)
}

table! {
    /// One row a direction of a connection.
    Flows |r: Row<'a, Flow>| {
        connection: always u64 = r.0.connection, "Number of the connection in the capture, from 0, in the order of first packets; one without data is not counted.";
        side: always text = r.0.side.name(), "Who sent the data: `client`, the end that opened the connection or was seen first, or `server`.";
        sender: always text = r.0.sender.to_string(), "Address and port that sent the data.";
        receiver: always text = r.0.receiver.to_string(), "Address and port that it was for.";
        began_s: always f64 = seconds(r.0.began, r.1), "When the first packet of the connection was captured, either way.";
        ended_s: always f64 = seconds(r.0.ended, r.1), "When the latest was.";
        opened: always flag = r.0.opened, "The capture has the connection's SYN.";
        reset: always flag = r.0.reset, "The connection was reset.";
        place: always text = r.0.place.name(), "Where the capture was taken, seen from this sender: `sender`, `receiver`, `middle` or `unknown`.";
        segments: always u64 = r.0.counts.segments, "Segments with data.";
        octets: always u64 = r.0.counts.octets, "Octets of data in them, what was sent again included; of segments that IP has cut, as far as the stream tells what the other fragments carry.";
        acknowledged_octets: always u64 = r.0.acknowledged, "Octets that the receiver acknowledged.";
        goodput_bps: maybe f64 = goodput(r.0), "Octets acknowledged over the time from first to latest packet.";
        mss_octets: always u32 = r.0.mss, "The largest segment's octets of data; of one that IP has cut, those of its first fragment.";
        rtt_min_s: maybe f64 = length(r.0.shortest_trip), "The shortest round trip, as its sender sees it.";
        rtt_s: maybe f64 = length(r.0.smoothed_trip), "The smoothed round trip at the end (RFC 6298).";
        ack_delay_max_s: maybe f64 = length(r.0.longest_trip), "The longest time from data in the capture to its acknowledgement.";
        retransmissions: always u64 = r.0.counts.retransmissions, "Segments that were sent again.";
        unneeded: always u64 = r.0.counts.unneeded, "Those for which something shows that they were not needed.";
        out_of_order: always u64 = r.0.counts.out_of_order, "Segments that were overtaken on the way to the capture.";
        duplicates: always u64 = r.0.counts.duplicates, "Packets that the network or the capture doubled.";
        damaged: always u64 = r.0.counts.damaged, "Segments that came to the capture with a wrong checksum, or in a frame that a radio found damaged.";
        holes: always u64 = r.0.counts.holes, "Stretches of data that were acknowledged though the capture did not see them.";
        unseen_octets: always u64 = r.0.counts.unseen_octets, "Octets in them.";
        unseen_acks: always u64 = r.0.counts.unseen_acks, "Times at which the sender echoed a timestamp of an acknowledgement that the capture did not see.";
        unanswered: always u64 = r.0.counts.unanswered, "Segments that were neither acknowledged nor sent again, though there was time for it.";
        probes: always u64 = r.0.counts.probes, "Keep-alives and probes of a closed window.";
        marked: always u64 = r.0.counts.marked, "Segments marked \"congestion experienced\".";
        closed_windows: always u64 = r.0.counts.closed_windows, "Times at which the receiver closed its window.";
    }
}

fn goodput(flow: &Flow) -> Option<f64> {
    let time = if flow.ended > flow.began { flow.ended.since(flow.began).as_secs_f64() } else { return None };
    Some(flow.acknowledged as f64 * 8.0 / time)
}

table! {
    /// One row a segment that was sent again.
    Retransmissions |r: Row<'a, SentAgain>| {
        connection: always u64 = r.0.connection, "Number of the connection.";
        side: always text = r.0.side.name(), "Who sent it.";
        packet: always u64 = r.0.what.number, "Its number in the capture, from 1, as Wireshark counts.";
        time_s: always f64 = seconds(r.0.what.at, r.1), "When it was captured.";
        octets: always u32 = r.0.what.len, "Octets of data; of a segment that IP has cut, those of its first fragment.";
        trigger: always text = r.0.what.trigger.name(), "Why it was sent: `fast`, `recovery`, `tail-probe`, `timeout`, `backed-off-timeout`, `after-timeout`, `handshake` or `unknown`.";
        unneeded: maybe text = r.0.what.unneeded.map(Unneeded::name), "What shows that it was not needed: `d-sack`, `timestamp`, `too-soon`, `acknowledged` or `behind-gap`; null if nothing does.";
        before: maybe u64 = r.0.what.before, "The packet that it repeats; null if that never came to the capture.";
        after_s: always f64 = r.0.what.after.as_secs_f64(), "Time since that, or since the gap showed.";
        duplicate_acks: always u32 = r.0.what.duplicates, "Duplicate acknowledgements before it.";
        sacked_octets: always u64 = r.0.what.sacked, "Octets above it that were selectively acknowledged.";
        damaged: always flag = r.0.what.damaged, "The packet that it repeats came to the capture damaged.";
    }
}

table! {
    /// One row a packet that was lost, or that its sender took for lost.
    Losses |r: Row<'a, Loss>| {
        connection: always u64 = r.0.connection, "Number of the connection.";
        side: always text = r.0.side.name(), "Who sent the packet.";
        packet: maybe u64 = r.0.packet, "Its number in the capture; null if it was lost before it came there.";
        time_s: always f64 = seconds(r.0.at, r.1), "When it was captured; if it was not, about when it must have been.";
        offset_octets: always u64 = r.0.offset, "Octets of the stream before it.";
        octets: always u32 = r.0.octets, "Octets of data; of a segment that IP has cut, those of its first fragment.";
        repair: maybe u64 = r.0.repair.map(|repair| repair.0), "The packet that repaired it.";
        repaired_s: maybe f64 = r.0.repair.map(|repair| seconds(repair.1, r.1)), "When that was captured.";
        cause: always text = r.0.probabilities.likeliest().name(), "The likeliest cause.";
        p_congestion: always f64 = r.0.probabilities.of(Cause::Congestion), "Probability of `congestion`: a queue overflowed, or its manager dropped the packet.";
        p_policer: always f64 = r.0.probabilities.of(Cause::Policer), "Probability of `policer`: a token bucket was empty; no queue filled.";
        p_corruption: always f64 = r.0.probabilities.of(Cause::Corruption), "Probability of `corruption`: it was damaged on the way.";
        p_link_down: always f64 = r.0.probabilities.of(Cause::LinkDown), "Probability of `link-down`: nothing passed for a while.";
        p_receiver: always f64 = r.0.probabilities.of(Cause::Receiver), "Probability of `receiver`: its host had no room for it.";
        p_reordering: always f64 = r.0.probabilities.of(Cause::Reordering), "Probability of `reordering`: it was overtaken, and taken for lost.";
        p_spurious_timeout: always f64 = r.0.probabilities.of(Cause::SpuriousTimeout), "Probability of `spurious-timeout`: it was late, and the timer did not wait.";
        p_ack_loss: always f64 = r.0.probabilities.of(Cause::AckLoss), "Probability of `ack-loss`: it arrived, its acknowledgement did not.";
        p_capture: always f64 = r.0.probabilities.of(Cause::Capture), "Probability of `capture`: it arrived, the capture did not see it.";
        p_unknown: always f64 = r.0.probabilities.of(Cause::Unknown), "What the evidence leaves open.";
        evidence: always text = r.0.evidence.join("; "), "What speaks for it, the weightiest first.";
    }
}

/// A loss, what a differentiator says of it, and when the capture began.
type Opinion<'a> = (&'a Loss, &'a Says, Instant);

table! {
    /// One row a loss and differentiator that was asked.
    Verdicts |r: Opinion<'a>| {
        connection: always u64 = r.0.connection, "Number of the connection.";
        side: always text = r.0.side.name(), "Who sent the packet.";
        packet: maybe u64 = r.0.packet, "Its number in the capture; null if it was lost before it came there.";
        time_s: always f64 = seconds(r.0.at, r.2), "When it was captured; if it was not, about when it must have been.";
        repair: maybe u64 = r.0.repair.map(|repair| repair.0), "The packet that repaired it.";
        differentiator: always text = r.1.name, "The name of the differentiator.";
        verdict: always text = r.1.verdict.cause.name(), "What it takes for the cause: `congestion`, `corruption` or `unknown`.";
        score: always f64 = r.1.verdict.score, "Its score, from certain congestion (0) to certain corruption (1); only the order counts.";
    }
}

table! {
    /// One row a direction of a connection and what limited it for some time.
    Limits |r: Row<'a, Spent>| {
        connection: always u64 = r.0.connection, "Number of the connection.";
        side: always text = r.0.side.name(), "Who sent the data.";
        limit: always text = r.0.limit.name(), "What data waited for: `handshake`; `application`, which had nothing to send; `idle`, when nobody sent anything for a second or longer; `receive-window`, `zero-window`, `congestion-window`, `send-buffer`; `recovering` from losses; `retransmission-timer`, `probe-timer` or `delayed-ack`, timers that had to expire; `path-rate`, when the path was full.";
        time_s: always f64 = r.0.time.as_secs_f64(), "How long, in seconds. The rows of a direction add up to the time from the connection's first packet to its latest.";
        stalls: always u32 = r.0.stalls, "How often nothing went on in this direction for more than two round trips and a tenth of a second meanwhile.";
    }
}

table! {
    /// One row a time in which nothing went on in a direction, though it was not idle.
    Stalls |r: Row<'a, Stalled>| {
        connection: always u64 = r.0.connection, "Number of the connection.";
        side: always text = r.0.side.name(), "Who sent the data, or should have.";
        began_s: always f64 = seconds(r.0.what.at, r.1), "When the stall began.";
        time_s: always f64 = r.0.what.lasted.as_secs_f64(), "How long it was.";
        limit: always text = r.0.what.limit.name(), "What was waited for, as in `limits`.";
        outstanding_octets: always u64 = r.0.what.outstanding, "Octets of data that were not acknowledged meanwhile.";
    }
}

table! {
    /// One row a segment of a chosen connection.
    Segments |r: Row<'a, Detail>| {
        connection: always u64 = r.0.connection, "Number of the connection.";
        side: always text = r.0.side.name(), "Who sent it.";
        packet: always u64 = r.0.number, "Its number in the capture, from 1, as Wireshark counts.";
        time_s: always f64 = seconds(r.0.at, r.1), "When it was captured.";
        kind: always text = r.0.kind.name(), "What it was: `new`, `retransmission`, `out-of-order`, `duplicate`, `keep-alive` or `window-probe`.";
        offset_octets: maybe u64 = r.0.offset, "Octets of its sender's stream before it, counted from where the capture begins to know it.";
        octets: always u32 = r.0.octets, "Octets of data; of a segment that IP has cut, those of its first fragment.";
        flags: always text = control_bits(r.0.flags), "Control bits that are set, of `S` (SYN), `F` (FIN), `R` (RST), `P` (PSH), `E` (ECE) and `W` (CWR).";
        damaged: always flag = r.0.damaged, "It came to the capture with a wrong checksum, or in a frame that a radio found damaged.";
        ack_octets: maybe u64 = r.0.ack, "Octets of the other stream that it acknowledges.";
        window_octets: maybe u64 = r.0.window, "The window that it offers, scaled as far as the scale is known.";
        sack: maybe text = blocks(&r.0.sack), "SACK blocks as `start-end`, octets of the other stream, with blanks between them.";
    }
}

table! {
    /// One row a round trip of a chosen connection.
    Samples |r: Row<'a, Sample>| {
        connection: always u64 = r.0.connection, "Number of the connection.";
        side: always text = r.0.side.name(), "Who sent the data.";
        packet: always u64 = r.0.number, "The acknowledgement's number in the capture.";
        time_s: always f64 = seconds(r.0.at, r.1), "When that was captured.";
        rtt_s: always f64 = r.0.trip.as_secs_f64(), "Time from data to its acknowledgement, and the shortest time between its sender and the capture.";
        outstanding_octets: always u64 = r.0.outstanding, "Octets that were sent and are not acknowledged after it, as the capture sees them.";
        window_octets: maybe u64 = r.0.window, "The receiver's window.";
    }
}

fn control_bits(flags: Flags) -> String {
    let named =
        [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P'), (Flags::ECE, 'E'), (Flags::CWR, 'W')];
    named.into_iter().filter(|(bit, _)| flags.contains(*bit)).map(|(_, name)| name).collect()
}

fn blocks(sack: &[(u64, u64)]) -> Option<String> {
    let text: Vec<_> = sack.iter().map(|(start, end)| format!("{start}-{end}")).collect();
    (!text.is_empty()).then(|| text.join(" "))
}

/// The tables of chosen connections.
pub const DETAIL_NAMES: [&str; 2] = ["segments", "samples"];

/// The table of that name.
pub fn detail(details: &Details, name: &str) -> Option<RecordBatch> {
    let began = details.began;
    Some(match name {
        "segments" => batch(Segments::batch(details.segments.iter().map(|row| (row, began)))),
        "samples" => batch(Samples::batch(details.samples.iter().map(|row| (row, began)))),
        _ => return None,
    })
}

/// The clock of the end where a packet left, what became of it, and when the first capture began.
type Journey = (End, Sent, Instant);

table! {
    /// One row a packet that one of two captures saw leave.
    Fates |r: Journey| {
        end: always text = r.0.name(), "Where it left: at the `first` capture or the `second`.";
        packet: always u64 = r.1.number, "Its number in that capture; several rows have the same if it was several packets on the way.";
        time_s: always f64 = seconds(Instant::from_nanos(r.1.at_ns), r.2), "When it left, by the clock of that capture.";
        octets: always u32 = r.1.len, "Octets of data in it.";
        fate: always text = r.1.fate.name(), "`arrived`, `damaged`, `lost`, `unseen` (its receiver got it, the other capture did not) or `outside` (the other capture was not running).";
        other_packet: maybe u64 = r.1.fate.number(), "Its number in the other capture.";
        delay_s: maybe f64 = r.1.fate.delay_s(), "How long it was on the way, as exact as the clocks are known.";
    }
}

/// The names of the tables.
pub const NAMES: [&str; 7] = ["connections", "retransmissions", "losses", "verdicts", "limits", "stalls", "fates"];

/// The table of that name.
pub fn get(analysis: &Analysis, name: &str) -> Option<RecordBatch> {
    let began = Instant::from_nanos(analysis.facts.began_ns);
    Some(match name {
        "connections" => batch(Flows::batch(analysis.flows.iter().map(|row| (row, began)))),
        "retransmissions" => batch(Retransmissions::batch(analysis.retransmissions.iter().map(|row| (row, began)))),
        "losses" => batch(Losses::batch(analysis.losses.iter().map(|row| (row, began)))),
        "verdicts" => {
            let said: Vec<Opinion> =
                analysis.losses.iter().flat_map(|loss| loss.says.iter().map(move |says| (loss, says, began))).collect();
            batch(Verdicts::batch(said.into_iter()))
        }
        "limits" => batch(Limits::batch(analysis.limits.iter().map(|row| (row, began)))),
        "stalls" => batch(Stalls::batch(analysis.stalls.iter().map(|row| (row, began)))),
        "fates" => batch(Fates::batch(analysis.fates.iter().map(|(end, sent)| (*end, *sent, began)))),
        _ => return None,
    })
}

const INTRODUCTION: &str = "\
# What `whyloss explain` writes

<!-- Generated from the definitions of the tables: `UPDATE=1 cargo test -p whyloss-capture`. -->

`whyloss explain FILE --out FOLDER` leaves these tables as Parquet files, `--json` prints them. Times are seconds since the first packet
of the capture. `segments` and `samples` are there with `--out` for the connections that lost most time, or for the one of `--connection`.
";

/// The text of `docs/captures-tables.md`.
pub fn markdown() -> String {
    let tables: [(&str, &str, Vec<Column>); NAMES.len() + DETAIL_NAMES.len()] = [
        (NAMES[0], "One row a direction of a connection in which data was sent.", Flows::columns()),
        (NAMES[1], "One row a segment that was sent again.", Retransmissions::columns()),
        (NAMES[2], "One row a packet that was lost, or that its sender took for lost.", Losses::columns()),
        (
            NAMES[3],
            "One row a loss and differentiator of the engine that was asked for (`--differentiator`, `--all`).",
            Verdicts::columns(),
        ),
        (NAMES[4], "One row a direction of a connection and what limited it for some time.", Limits::columns()),
        (NAMES[5], "One row a time in which nothing went on in a direction, though it was not idle.", Stalls::columns()),
        (NAMES[6], "One row a packet, if there are captures of both ends (`--both-ends`).", Fates::columns()),
        (DETAIL_NAMES[0], "One row a segment of the connections that are shown in detail.", Segments::columns()),
        (DETAIL_NAMES[1], "One row a round trip of the connections that are shown in detail.", Samples::columns()),
    ];
    let mut text = INTRODUCTION.to_owned();
    for (name, title, columns) in tables {
        write!(text, "\n## `{name}`\n\n{title}\n\n| column | type | meaning |\n| --- | --- | --- |\n")
            .expect("a string takes all");
        describe(&mut text, &columns);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_says_what_the_tables_are() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/captures-tables.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, markdown()).expect("docs/ is there");
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == markdown(),
            "docs/captures-tables.md is not what the tables are: UPDATE=1 cargo test -p whyloss-capture"
        );
    }

    #[test]
    fn every_name_has_a_table() {
        assert!(NAMES.iter().all(|name| get(&Analysis::default(), name).is_some()));
        assert!(get(&Analysis::default(), "nothing").is_none());
        assert!(DETAIL_NAMES.iter().all(|name| detail(&Details::default(), name).is_some()));
    }
}
