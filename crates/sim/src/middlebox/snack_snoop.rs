//! SNACK-Snoop (Sun, Li & Liew 2004): the mobile host says which segments the wireless link has lost, and the base station sends them.
//!
//! As [`snoop`](super::snoop), but a SNACK of the mobile host has all holes that it names sent again at once, and ends here. If one of them
//! is not kept, the SNACK goes on as it is, and the sender answers it.

use super::agent::Agent;
use super::snoop::{Settings as Kept, Snoop};
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::settings;

/// Its row.
pub(super) const PART: Part<dyn Agent> = Part {
    name: "snack-snoop",
    summary: "A snoop agent that answers the mobile host's SNACKs itself, with all that they ask for.",
    reference: "Sun, Li & Liew 2004",
    notes: Notes {
        idea: "Duplicates tell of one hole at a time; a SNACK tells of all that one burst of errors has torn.",
        fails: "Where the mobile host sends no SNACKs it is a snoop agent, and fails where that fails.",
        errata: "The base station makes no SNACKs for data of the mobile host: it names holes as `eln` does.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// As of `snoop`.
    pub(super) struct Settings {
        /// As of `snoop`.
        kept: Kept;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(Snoop::answering_snacks(self.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::EndpointId;
    use crate::middlebox::{Handling, Outbox, Side, Transit};
    use whyloss_transport::segment::{Flags, RareOptions, Snack};
    use whyloss_transport::{Duration, Instant, Payload, Segment, Seq};

    const FIXED: EndpointId = EndpointId::new(0);

    struct Station(Box<dyn Agent>);

    fn data(n: u32) -> Segment {
        let payload = Payload::Synthetic { offset: u64::from(n) * 100, len: 100 };
        Segment { seq: Seq(n * 100), flags: Flags::ACK, window: 500, payload, ..Segment::default() }
    }

    fn ack(n: u32) -> Segment {
        Segment { ack: Seq(n * 100), flags: Flags::ACK, window: 900, ..Segment::default() }
    }

    /// An acknowledgement of the first `n` segments that has received `islands` beyond them.
    fn snack(n: u32, islands: &[(u64, u64)]) -> Segment {
        let islands: Vec<_> = islands.iter().map(|(from, to)| (from * 100, to * 100)).collect();
        let snacks = vec![Snack::with_bits(u64::from(n) * 100, &islands, 100, 8).unwrap()];
        let mut segment = ack(n);
        segment.options.rare = Some(Box::new(RareOptions { snacks, ..RareOptions::default() }));
        segment
    }

    impl Station {
        /// One that has forwarded segments 0 to 9 at 0 ms, of which the first has come after 20 ms.
        fn begun() -> Self {
            let mut station = Self(Settings::default().build());
            for n in 0..10 {
                station.pass(0, Side::Fixed, data(n));
            }
            station.pass(20, Side::Mobile, ack(1));
            station
        }

        /// What goes on of a segment, and which data is sent again.
        fn pass(&mut self, ms: u64, side: Side, mut segment: Segment) -> (Option<Segment>, Vec<u32>) {
            let from = if side == Side::Fixed { FIXED } else { FIXED.peer() };
            let now = Instant::ZERO + Duration::from_millis(ms);
            let transit = Transit { now, from, side, crowded: false, corruption: 0.0 };
            let mut out = Outbox::default();
            let forward = self.0.pass(&transit, &mut segment, &mut out) == Handling::Forward;
            let again = out.take().into_iter().map(|outgoing| {
                assert!(outgoing.urgent && outgoing.from == FIXED);
                outgoing.segment.seq.0 / 100
            });
            (forward.then_some(segment), again.collect())
        }
    }

    #[test]
    fn all_holes_are_filled_at_once_and_the_sender_hears_of_none() {
        let mut station = Station::begun();
        assert_eq!(station.pass(21, Side::Mobile, ack(2)), (Some(ack(2)), vec![]));
        assert_eq!(station.pass(22, Side::Mobile, snack(2, &[(3, 5), (6, 8), (9, 10)])), (None, vec![2, 5, 8]));
        assert_eq!(station.pass(23, Side::Mobile, ack(10)), (Some(ack(10)), vec![]));
    }

    #[test]
    fn what_a_snack_acknowledges_goes_on_without_it() {
        let mut station = Station::begun();
        assert_eq!(station.pass(22, Side::Mobile, snack(2, &[(3, 4), (5, 6)])), (Some(ack(2)), vec![2, 4]));
    }

    #[test]
    fn a_hole_is_filled_again_only_after_a_round_trip() {
        let mut station = Station::begun();
        let asks = snack(1, &[(2, 10)]);
        assert_eq!(station.pass(22, Side::Mobile, asks.clone()), (None, vec![1]));
        assert_eq!(station.pass(41, Side::Mobile, asks.clone()), (None, vec![]));
        assert_eq!(station.pass(42, Side::Mobile, asks), (None, vec![1]));
    }

    #[test]
    fn what_is_not_kept_the_sender_is_asked_for() {
        let mut station = Station(Settings::default().build());
        for n in [0, 1, 2, 3, 5, 6] {
            station.pass(0, Side::Fixed, data(n));
        }
        station.pass(20, Side::Mobile, ack(1));
        // 1 is kept, 4 has never come here.
        let asks = snack(1, &[(2, 4), (5, 7)]);
        assert_eq!(station.pass(22, Side::Mobile, asks.clone()), (Some(asks), vec![]));
        let kept = snack(1, &[(2, 4)]);
        assert_eq!(station.pass(23, Side::Mobile, kept), (None, vec![1]));
    }

    #[test]
    fn a_snack_of_everything_is_bounded_by_what_is_kept() {
        let mut station = Station::begun();
        let mut asks = ack(1);
        let snacks = vec![Snack { hole1_offset: 0, hole1_size: u16::MAX, bits: bytes::Bytes::new() }; 6];
        asks.options.rare = Some(Box::new(RareOptions { snacks, ..RareOptions::default() }));
        assert_eq!(station.pass(22, Side::Mobile, asks), (None, vec![1, 2, 3, 4, 5, 6, 7, 8, 9]));
    }

    #[test]
    fn without_snacks_it_is_a_snoop_agent() {
        let mut station = Station::begun();
        assert_eq!(station.pass(22, Side::Mobile, ack(1)), (None, vec![1]));
    }
}
