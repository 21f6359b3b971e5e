//! Flows whose sequence numbers something on the way has changed.
//!
//! Firewalls that choose initial sequence numbers anew, and proxies that pass segments on, keep lengths, flags and as a rule timestamps and the
//! identification of IP packets. Packets that look the same in these, and by how far their numbers are apart, vote for the flows that they are
//! of. The numbers of the second file are then counted as the first one counts them.

use super::gather::{mixed, File, Packet};
use std::collections::HashMap;

/// Packets that have to agree on a flow.
const VOTES: u64 = 3;
/// A flow is known if one in so many of its packets is in the other file as it is.
const KNOWN: u64 = 10;

/// How numbers differ between the files: so much is added to those of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Shift {
    seq: u32,
    ack: u32,
}

/// By what packets are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// Their place behind the SYN, and the identification of the IP packet.
    PlaceAndId,
    /// Timestamps, and the identification of the IP packet.
    StampsAndId,
    /// Their place behind the SYN.
    Place,
    /// When they began, where several connections look the same.
    Order,
}

/// Counts the numbers of changed flows of the second file as the first does. Returns these flows of the first file.
pub(super) fn relate(files: &mut [File; 2]) -> Vec<u32> {
    let mut open = unknown(files);
    let mut changed = Vec::new();
    for by in [By::PlaceAndId, By::StampsAndId, By::Place, By::Order] {
        let found = if by == By::Order { in_order(files, &open) } else { votes(files, &open, by) };
        for (first, second, shift) in found {
            if !(open[0][first as usize] && open[1][second as usize]) {
                continue;
            }
            (open[0][first as usize], open[1][second as usize]) = (false, false);
            for packet in files[0].packets.iter_mut().filter(|packet| packet.flow == first) {
                packet.key = key(packet);
            }
            for packet in files[1].packets.iter_mut().filter(|packet| packet.flow == second) {
                packet.start = packet.start.wrapping_sub(u64::from(shift.seq));
                packet.ack = packet.ack.map(|ack| ack.wrapping_sub(shift.ack));
                packet.key = key(packet);
            }
            changed.push(first);
        }
    }
    changed
}

/// Without SACK blocks: what changes sequence numbers need not change these.
fn key(packet: &Packet) -> u64 {
    mixed(&(packet.looks, packet.start as u32, packet.ack))
}

/// For each flow of both files, whether its packets are not in the other one.
fn unknown(files: &[File; 2]) -> [Vec<bool>; 2] {
    let keys = files.each_ref().map(|file| {
        let mut keys: Vec<u64> = file.packets.iter().map(|packet| packet.key).collect();
        keys.sort_unstable();
        keys
    });
    [0, 1].map(|end| {
        let mut counts = vec![(0u64, 0u64); files[end].flows.len()];
        for packet in &files[end].packets {
            let (all, known) = &mut counts[packet.flow as usize];
            (*all, *known) = (*all + 1, *known + u64::from(keys[1 - end].binary_search(&packet.key).is_ok()));
        }
        counts.into_iter().map(|(all, known)| known * KNOWN < all).collect()
    })
}

/// What packets of flows that are not known say, those of which most packets say so first.
fn votes(files: &[File; 2], open: &[Vec<bool>; 2], by: By) -> Vec<(u32, u32, Shift)> {
    let keys = [0, 1].map(|end| {
        let of_open = files[end].packets.iter().enumerate().filter(|(_, packet)| open[end][packet.flow as usize]);
        let mut keys: Vec<(u64, u32)> =
            of_open.filter_map(|(number, packet)| Some((compared(&files[end], packet, by)?, number as u32))).collect();
        keys.sort_unstable();
        keys
    });
    let mut counts: HashMap<(u32, u32, Shift), u64> = HashMap::new();
    let mut rest = keys[1].as_slice();
    for group in keys[0].chunk_by(|a, b| a.0 == b.0) {
        rest = &rest[rest.partition_point(|other| other.0 < group[0].0)..];
        let there = &rest[..rest.partition_point(|other| other.0 == group[0].0)];
        if let ([(_, first)], [(_, second)]) = (group, there) {
            let (a, b) = (&files[0].packets[*first as usize], &files[1].packets[*second as usize]);
            if let (Some(acked), Some(acks)) = (a.ack, b.ack) {
                let shift = Shift { seq: (b.start as u32).wrapping_sub(a.start as u32), ack: acks.wrapping_sub(acked) };
                *counts.entry((a.flow, b.flow, shift)).or_default() += 1;
            }
        }
    }
    let mut found: Vec<_> = counts.into_iter().filter(|(_, count)| *count >= VOTES).collect();
    found.sort_unstable_by_key(|(what, count)| (std::cmp::Reverse(*count), *what));
    found.into_iter().map(|(what, _)| what).collect()
}

fn compared(file: &File, packet: &Packet, by: By) -> Option<u64> {
    let flow = &file.flows[packet.flow as usize];
    let place = || {
        let seq = (packet.start as u32).wrapping_sub(flow.first_seq?);
        let ack = packet.ack?.wrapping_sub(file.flows[flow.back? as usize].first_seq?);
        Some((seq, ack))
    };
    match by {
        By::PlaceAndId => Some(mixed(&(packet.looks, place()?, packet.ip_id?))),
        By::StampsAndId => packet.stamped.then(|| mixed(&(packet.looks, packet.ip_id))),
        By::Place => Some(mixed(&(packet.looks, place()?))),
        By::Order => None,
    }
}

/// Connections that were opened in both files, in the order in which they were, if there are as many; both directions of each.
fn in_order(files: &[File; 2], open: &[Vec<bool>; 2]) -> Vec<(u32, u32, Shift)> {
    let opened = [0, 1].map(|end| {
        let flows = &files[end].flows;
        let forward = |flow: &u32| {
            let (own, back) = (&flows[*flow as usize], flows[*flow as usize].back);
            let answered = back.is_some_and(|back| back > *flow && flows[back as usize].first_seq.is_some());
            open[end][*flow as usize] && own.first_seq.is_some() && answered
        };
        let mut opened: Vec<u32> = (0..flows.len() as u32).filter(forward).collect();
        opened.sort_by_key(|flow| flows[*flow as usize].began);
        opened
    });
    if opened[0].len() != opened[1].len() {
        return Vec::new();
    }
    let both = opened[0].iter().zip(&opened[1]).filter_map(|(&first, &second)| {
        let (back, other) = (files[0].flows[first as usize].back?, files[1].flows[second as usize].back?);
        let shift =
            |a: u32, b: u32| Some(files[1].flows[b as usize].first_seq?.wrapping_sub(files[0].flows[a as usize].first_seq?));
        let (seq, ack) = (shift(first, second)?, shift(back, other)?);
        Some([(first, second, Shift { seq, ack }), (back, other, Shift { seq: ack, ack: seq })])
    });
    both.flatten().collect()
}
