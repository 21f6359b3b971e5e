//! SNACK-Snoop (Sun, Li & Liew 2004): the mobile host says which segments the wireless link has lost, and the base station sends them.
//!
//! As [`snoop`](super::snoop), but a SNACK of the mobile host has all holes that it names sent again at once, and ends here. If one of them
//! is not kept, the SNACK goes on as it is, and the sender answers it. Of data on its way from the mobile host, the base station says what the link
//! has lost: it sends SNACKs itself, if both ends have agreed to them.

use super::agent::Agent;
use super::snoop::{Settings as Kept, Snoop};
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::settings;

pub(super) const PART: Part<dyn Agent> = Part {
    name: "snack-snoop",
    summary: "A snoop agent that answers the mobile host's SNACKs itself, with all that they ask for, and asks for what it misses of the mobile host's data.",
    reference: "Sun, Li & Liew 2004",
    notes: Notes {
        idea: "Duplicates tell of one hole at a time; a SNACK tells of all that one burst of errors has torn.",
        fails: "Where the mobile host sends no SNACKs it is a snoop agent, and fails where that fails. What the mobile host's own queue drops is to the base station no other than what the link loses: a sender that answers SNACKs without reducing then never learns of it.",
        errata: "The paper lies before us by its abstract only. Our reading: the base station asks as soon as it sees a hole, because its link keeps the order, and again when `min_timeout_ms` has passed, doubled with every expiry; duplicates of the fixed host that such a hole explains end here as those of the mobile host do. Both ends have to agree to SNACKs, not only the mobile host: the base station changes no SYN.",
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
        Box::new(Snoop::speaking_snack(self.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middlebox::testing::{ack, crossing, data, FIXED};
    use crate::middlebox::{Handling, Outbox, Side};
    use whyloss_transport::segment::{Flags, RareOptions, ScpsCapabilities, Snack};
    use whyloss_transport::{Segment, Seq};

    struct Station(Box<dyn Agent>);

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
            let mut out = Outbox::default();
            let forward = self.0.pass(&crossing(ms, side), &mut segment, &mut out) == Handling::Forward;
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

    /// One whose mobile host sends: the first segment has come and is acknowledged, and both ends have agreed to SNACKs.
    fn sending(agreed: bool) -> Station {
        let mut station = Station(Settings::default().build());
        let scps = agreed.then_some(ScpsCapabilities { flags: ScpsCapabilities::SNACK, connection: 0 });
        let mut syn = Segment { seq: Seq(u32::MAX), flags: Flags::SYN, ..Segment::default() };
        syn.options.rare = Some(Box::new(RareOptions { scps, ..RareOptions::default() }));
        assert_eq!(station.pass(0, Side::Mobile, syn.clone()), (Some(syn.clone()), vec![]));
        syn.flags |= Flags::ACK;
        station.pass(0, Side::Fixed, syn);
        assert_eq!(station.send(1, 0), []);
        assert_eq!(station.pass(2, Side::Fixed, ack(1)), (Some(ack(1)), vec![]));
        station
    }

    /// The holes, in segments, that an acknowledgement in the fixed host's name asks for, if there is one.
    fn holes(out: &mut Outbox) -> Vec<(u64, u64)> {
        let sent = out.take();
        assert!(sent.len() <= 1, "{sent:?}");
        let lists = sent.into_iter().flat_map(|outgoing| {
            let segment = outgoing.segment;
            assert!(outgoing.urgent && outgoing.from == FIXED && segment.is_empty() && segment.flags == Flags::ACK);
            assert_eq!(segment.window, 900);
            let una = u64::from(segment.ack.0);
            let snacks = segment.options.rare.map_or_else(Vec::new, |rare| rare.snacks);
            snacks.into_iter().flat_map(move |snack| snack.holes(una, 100).collect::<Vec<_>>())
        });
        lists.map(|(from, to)| (from / 100, to / 100)).collect()
    }

    impl Station {
        /// The mobile host sends segment `n`, which goes on; what is asked for thereupon.
        fn send(&mut self, ms: u64, n: u32) -> Vec<(u64, u64)> {
            let mut out = Outbox::default();
            assert_eq!(self.0.pass(&crossing(ms, Side::Mobile), &mut data(n), &mut out), Handling::Forward);
            holes(&mut out)
        }

        /// Whether an acknowledgement of the fixed host goes on; what else it says does not count.
        fn acknowledges(&mut self, ms: u64, n: u32) -> bool {
            self.pass(ms, Side::Fixed, ack(n)).0.is_some()
        }

        /// Waits for the timer; when it comes, and what is asked for.
        fn expire(&mut self) -> (u64, Vec<(u64, u64)>) {
            let due = self.0.next_timer().expect("a timer runs");
            let mut out = Outbox::default();
            self.0.on_timer(due, &mut out);
            (due.as_nanos() / 1_000_000, holes(&mut out))
        }
    }

    #[test]
    fn holes_in_what_the_mobile_host_sends_are_asked_for_at_once_and_the_duplicates_end_here() {
        let mut station = sending(true);
        assert_eq!([1, 2].map(|n| station.send(3, n).len()), [0, 0]);
        assert_eq!(station.send(4, 4), [(3, 4)], "counted from the acknowledgement of the first segment");
        assert_eq!(station.send(5, 5), [], "once");
        assert_eq!(station.send(6, 8), [(6, 8)], "another hole by itself");
        // The first comes again; the second is still open.
        assert_eq!(station.send(14, 3), []);
        assert!(station.acknowledges(50, 3));
        // Segments 4, 5 and 8 were beyond a hole, and bring a duplicate each.
        assert_eq!([0; 4].map(|_| station.acknowledges(51, 3)), [false, false, false, true]);
        assert!(station.acknowledges(52, 6), "that is news");
    }

    #[test]
    fn what_does_not_come_is_asked_for_again_and_then_left_to_the_ends() {
        let mut station = sending(true);
        assert_eq!(station.send(10, 2), [(1, 2)]);
        assert_eq!(station.send(10, 5), [(3, 5)]);
        assert!(!station.acknowledges(20, 1));
        // Both in one list, at 100 ms, then 200 ms later and so on: ten times as parameters have it.
        assert_eq!(station.expire(), (110, vec![(1, 2), (3, 5)]));
        for n in 6..20 {
            station.send(120, n);
        }
        assert!(!station.acknowledges(150, 1), "the second time of asking may have been heard");
        assert_eq!(station.expire(), (310, vec![(1, 2), (3, 5)]));
        assert!(station.acknowledges(350, 1), "it is of no use: the sender may know");
        let mut times = vec![];
        while station.0.next_timer().is_some() {
            times.push(station.expire().0);
        }
        assert_eq!((times.len(), times[0]), (8, 710));
        assert_eq!(station.send(100_000, 1), []);
        assert_eq!(
            station.0.next_timer().map(|at| at.as_nanos() / 1_000_000),
            Some(100_100),
            "something came: it may be worth while again"
        );
    }

    #[test]
    fn who_has_not_agreed_is_not_asked() {
        let mut station = sending(false);
        assert_eq!(station.send(10, 2), []);
        assert_eq!(station.0.next_timer(), None);
        assert!(station.acknowledges(20, 1));
    }

    #[test]
    fn what_was_filled_by_the_fixed_host_s_word_is_not_asked_for() {
        let mut station = sending(true);
        assert_eq!(station.send(10, 2), [(1, 2)]);
        assert!(station.acknowledges(20, 3), "it came another way");
        assert_eq!(station.0.next_timer(), None);
        assert!(station.acknowledges(21, 3), "a duplicate of nothing that is ours");
    }
}
