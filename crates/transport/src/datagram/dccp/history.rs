//! What a sender remembers of its data packets until their fate is known.

use crate::time::{Duration, Instant};
use crate::wire::dccp::{DropCode, Opt, State};
use std::collections::VecDeque;

/// A packet is lost when this many that were sent later are acknowledged (`NUMDUPACK`, RFC 4341, 5; RFC 5348, 5.1).
const LATER: usize = 3;

/// A data packet that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub seq: u64,
    /// Offset of its first octet in the data that was sent so far.
    pub offset: u64,
    pub len: u32,
    pub at: Instant,
    /// Its acknowledgement has come.
    received: bool,
}

impl Sent {
    pub const fn new(seq: u64, offset: u64, len: u32, at: Instant) -> Self {
        Self { seq, offset, len, at, received: false }
    }
}

/// What an acknowledgement says of a packet that was outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketFate {
    /// An Ack Vector reported it as received.
    Received,
    /// It arrived with a CE mark.
    Marked,
    /// It arrived, its data was dropped.
    Dropped(DropCode),
    /// Enough later ones arrived.
    Lost,
}

/// What one acknowledgement brought to light.
#[derive(Debug, Default)]
pub(super) struct AckOutcome {
    /// Packets whose fate is new, in the order in which they were sent.
    pub fates: Vec<(Sent, PacketFate)>,
    /// A round-trip time sample: from the packet that the acknowledgement number names.
    pub rtt: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct History {
    packets: VecDeque<Sent>,
    outstanding: usize,
}

impl History {
    pub fn push(&mut self, sent: Sent) {
        self.packets.push_back(sent);
        self.outstanding += 1;
    }

    /// Packets of which nothing is known: `pipe` of RFC 4341.
    pub const fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// The oldest of them.
    pub fn first(&self) -> Option<&Sent> {
        self.packets.front()
    }

    /// Takes in an acknowledgement of `ack` at `now`.
    pub fn acknowledge(&mut self, now: Instant, ack: u64, options: &[Opt]) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        let dropped = dropped(ack, options);
        let code = |seq: u64| dropped.iter().find(|(low, high, _)| (*low..=*high).contains(&seq)).map(|(_, _, code)| *code);
        let elapsed = options.iter().find_map(|option| match option {
            Opt::ElapsedTime(units) => Some(Duration::from_micros(u64::from(*units) * 10)),
            _ => None,
        });
        for (low, high, state) in vector(ack, options) {
            let end = self.packets.partition_point(|sent| sent.seq <= high);
            let start = self.packets.partition_point(|sent| sent.seq < low);
            for sent in self.packets.range_mut(start..end).filter(|sent| !sent.received) {
                sent.received = true;
                self.outstanding -= 1;
                let fate = match code(sent.seq) {
                    Some(code) => PacketFate::Dropped(code),
                    None if state == State::Marked => PacketFate::Marked,
                    None => PacketFate::Received,
                };
                if sent.seq == ack {
                    outcome.rtt = Some(now.since(sent.at).saturating_sub(elapsed.unwrap_or_default()));
                }
                outcome.fates.push((*sent, fate));
            }
        }
        if !outcome.fates.is_empty() {
            self.find_losses(&mut outcome);
        }
        outcome.fates.sort_unstable_by_key(|(sent, _)| sent.seq);
        outcome
    }

    /// Packets before the third-last that arrived and did not arrive themselves are lost.
    fn find_losses(&mut self, outcome: &mut AckOutcome) {
        let third = self.packets.iter().rev().filter(|sent| sent.received).nth(LATER - 1).map(|sent| sent.seq);
        if let Some(third) = third {
            let lost = &mut outcome.fates;
            let outstanding = &mut self.outstanding;
            // What arrived before it proves nothing more: all of the earlier packets are judged.
            self.packets.retain(|sent| {
                if sent.seq < third && !sent.received {
                    lost.push((*sent, PacketFate::Lost));
                    *outstanding -= 1;
                }
                sent.seq >= third
            });
        }
        while self.packets.front().is_some_and(|sent| sent.received) {
            self.packets.pop_front();
        }
    }

    /// Gives up what left at `before` or earlier and is outstanding.
    pub fn abandon(&mut self, before: Instant) -> Vec<Sent> {
        let end = self.packets.partition_point(|sent| sent.at <= before);
        let given_up: Vec<_> = self.packets.drain(..end).filter(|sent| !sent.received).collect();
        self.outstanding -= given_up.len();
        given_up
    }
}

/// The ranges of packets that an acknowledgement reports as received, the newest first. Without an Ack Vector that is the packet that
/// the acknowledgement number names.
fn vector(ack: u64, options: &[Opt]) -> Vec<(u64, u64, State)> {
    let runs = || {
        options.iter().filter_map(|option| match option {
            Opt::AckVector { runs, .. } => Some(runs),
            _ => None,
        })
    };
    if runs().next().is_none() {
        return vec![(ack, ack, State::Received)];
    }
    let mut next = ack;
    let mut ranges = Vec::new();
    for run in runs().flatten() {
        let high = next;
        next = next.saturating_sub(u64::from(run.packets));
        if matches!(run.state, State::Received | State::Marked) && high > 0 {
            ranges.push((next + 1, high, run.state));
        }
    }
    ranges
}

/// The ranges of packets whose data was dropped.
fn dropped(ack: u64, options: &[Opt]) -> Vec<(u64, u64, DropCode)> {
    let mut next = ack;
    let mut ranges = Vec::new();
    for option in options {
        let Opt::DataDropped(blocks) = option else { continue };
        for block in blocks {
            let high = next;
            next = next.saturating_sub(u64::from(block.packets()));
            if let Some(code) = block.code() {
                ranges.push((next + 1, high, code));
            }
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::dccp::{Block, Run};

    fn history(packets: std::ops::RangeInclusive<u64>) -> History {
        let mut history = History::default();
        packets.for_each(|seq| history.push(Sent::new(seq, seq * 100, 100, Instant::from_nanos(seq))));
        history
    }

    fn acked(history: &mut History, ack: u64, octets: &[u8], blocks: &[u8]) -> Vec<(u64, PacketFate)> {
        let options = [
            Opt::AckVector { nonce: false, runs: octets.iter().map(|octet| Run::read(*octet)).collect() },
            Opt::DataDropped(blocks.iter().map(|octet| Block::read(*octet)).collect()),
        ];
        let outcome = history.acknowledge(Instant::from_nanos(1_000_000), ack, &options);
        outcome.fates.iter().map(|(sent, fate)| (sent.seq, *fate)).collect()
    }

    #[test]
    fn three_later_packets_make_a_loss() {
        use PacketFate::{Lost, Received};
        let mut history = history(10..=20);
        // 12 and 11 received, 10 not.
        assert_eq!(acked(&mut history, 12, &[1, 0xC0], &[]), [(11, Received), (12, Received)]);
        assert_eq!(history.outstanding(), 9);
        assert_eq!(acked(&mut history, 13, &[2, 0xC0], &[]), [(10, Lost), (13, Received)]);
        assert_eq!(history.outstanding(), 7);
        // An acknowledgement of what is known says nothing new.
        assert_eq!(acked(&mut history, 13, &[2, 0xC0], &[]), []);
        // 20 to 18 received, 17 to 14 not.
        assert_eq!(
            acked(&mut history, 20, &[2, 0xC3], &[]),
            [(14, Lost), (15, Lost), (16, Lost), (17, Lost), (18, Received), (19, Received), (20, Received)]
        );
        assert_eq!((history.outstanding(), history.first()), (0, None));
    }

    #[test]
    fn data_dropped_goes_with_what_is_received() {
        let mut history = history(92..=101);
        // Ack 100, everything received. Data Dropped as in RFC 4340, 11.7, with code 3 first.
        let found = acked(&mut history, 100, &[8], &[0, 0xB0, 3, 162]);
        let (corrupt, buffer) = (PacketFate::Dropped(DropCode::CORRUPT), PacketFate::Dropped(DropCode::RECEIVE_BUFFER));
        assert_eq!(found[..3], [(92, buffer), (93, buffer), (94, buffer)]);
        assert_eq!(found[6..], [(98, PacketFate::Received), (99, corrupt), (100, PacketFate::Received)]);
        assert_eq!(history.outstanding(), 1);
    }

    #[test]
    fn senseless_vectors_do_no_harm() {
        let mut history = history(1..=3);
        assert_eq!(acked(&mut history, 2, &[0x3F, 0x3F, 0xFF, 0x7F], &[0xFF, 0x80]).len(), 2);
        assert_eq!(history.abandon(Instant::MAX).len(), 1);
        assert_eq!(history.outstanding(), 0);
    }

    #[test]
    fn without_a_vector_one_packet_is_acknowledged_and_timed() {
        let mut history = history(1..=3);
        let outcome = history.acknowledge(Instant::from_nanos(50_002), 2, &[Opt::ElapsedTime(1)]);
        assert_eq!(outcome.rtt, Some(Duration::from_micros(40)));
        assert_eq!(outcome.fates.len(), 1);
    }
}
