use super::down::octets;
use super::*;
use crate::middlebox::testing::{ack, at, crossing, data, keeps_no_longer_than_it_should, DOWN, FIXED, UP};
use whyloss_transport::segment::SackBlocks;
use whyloss_transport::{Payload, Seq};

/// An agent and the time.
struct Station {
    agent: Snoop,
    now: u64,
}

/// What became of a segment: whether it went on, and which data was sent again.
type Outcome = (bool, Vec<u32>);

impl Station {
    fn new(settings: Settings) -> Self {
        Self { agent: Snoop::new(settings), now: 0 }
    }

    /// One that has forwarded segments 0 to 9, a millisecond apart, of which the first has come 5 ms after the last was sent.
    fn begun(settings: Settings) -> Self {
        let mut station = Self::new(settings);
        for n in 0..10 {
            assert_eq!(station.down(data(n)), (true, vec![]));
            station.now += 1;
        }
        station.now += 4;
        assert_eq!(station.up(ack(1)), (true, vec![]));
        station
    }

    fn cross(&mut self, side: Side, crowded: bool, mut segment: Segment) -> (Outcome, Segment) {
        let transit = Transit { crowded, ..crossing(self.now, side) };
        let mut out = Outbox::default();
        let handling = self.agent.pass(&transit, &mut segment, &mut out);
        assert_ne!(handling, Handling::Accept);
        ((handling == Handling::Forward, resent(&mut out)), segment)
    }

    fn down(&mut self, segment: Segment) -> Outcome {
        self.cross(Side::Fixed, false, segment).0
    }

    fn up(&mut self, segment: Segment) -> Outcome {
        self.cross(Side::Mobile, false, segment).0
    }

    /// When the timer is due, in milliseconds.
    fn due(&self) -> Option<f64> {
        self.agent.next_timer().map(|at| at.as_nanos() as f64 / 1e6)
    }

    /// Waits for the timer; what is sent again.
    fn expire(&mut self) -> Vec<u32> {
        self.now = self.due().expect("a timer runs").ceil() as u64;
        let mut out = Outbox::default();
        self.agent.on_timer(at(self.now), &mut out);
        resent(&mut out)
    }
}

fn resent(out: &mut Outbox) -> Vec<u32> {
    out.take()
        .into_iter()
        .map(|outgoing| {
            assert!(outgoing.urgent && outgoing.from == FIXED && !outgoing.if_taken);
            assert_eq!(outgoing.segment, data(outgoing.segment.seq.0 / 100));
            outgoing.segment.seq.0 / 100
        })
        .collect()
}

#[test]
fn a_loss_on_the_link_is_repaired_by_the_first_duplicate_and_the_sender_hears_none() {
    let mut station = Station::begun(Settings::default());
    assert_eq!(station.up(ack(2)), (true, vec![]));
    // Segment 2 is lost, 3 to 9 arrive.
    assert_eq!(station.up(ack(2)), (false, vec![2]));
    for _ in 0..6 {
        assert_eq!(station.up(ack(2)), (false, vec![]));
    }
    assert_eq!(station.up(ack(10)), (true, vec![]));
    assert_eq!(station.agent.held().segments, 0);
    assert_eq!(station.due(), None);
}

#[test]
fn a_repair_that_is_lost_is_repaired_when_more_duplicates_come_than_there_were_packets() {
    let mut station = Station::begun(Settings::default());
    station.up(ack(2));
    let outcomes: Vec<_> = (0..16).map(|_| station.up(ack(2))).collect();
    assert!(outcomes.iter().all(|(goes_on, _)| !goes_on));
    // 3 to 9 make seven duplicates; the eighth says that the first repair has not come, and the second is the last.
    let when: Vec<_> = (0..16).filter(|&nth| !outcomes[nth].1.is_empty()).collect();
    assert_eq!(when, [0, 7]);
}

#[test]
fn flows_count_their_duplicates_each_for_itself() {
    let mut station = Station::begun(Settings { duplicates: 2, ..Settings::default() });
    let other = EndpointId::new(2);
    for n in 0..5 {
        station.agent.pass(&Transit { from: other, ..DOWN }, &mut data(n), &mut Outbox::default());
    }
    let acks = |station: &mut Station| {
        let mut out = Outbox::default();
        station.agent.pass(&Transit { from: other.peer(), ..UP }, &mut ack(1), &mut out);
        out.take().len()
    };
    assert_eq!(acks(&mut station), 0, "new");
    assert_eq!((station.up(ack(1)), acks(&mut station)), ((false, vec![]), 0), "the first of either");
    assert_eq!((station.up(ack(1)), acks(&mut station)), ((false, vec![1]), 1), "the second of either");
}

#[test]
fn of_what_was_lost_before_the_station_the_sender_hears() {
    let mut station = Station::new(Settings::default());
    for n in [0, 1, 3, 4, 5, 6] {
        station.down(data(n));
    }
    station.up(ack(1));
    assert_eq!(station.up(ack(2)), (true, vec![]));
    for _ in 0..3 {
        assert_eq!(station.up(ack(2)), (true, vec![]), "it is not here");
    }
    // The sender's retransmission, and what it brings back.
    assert_eq!(station.down(data(2)), (true, vec![]));
    assert_eq!(station.up(ack(2)), (true, vec![]), "a duplicate that was under way");
    assert_eq!(station.due(), None, "the sender has a timer for it");
    assert_eq!(station.up(ack(7)), (true, vec![]));
}

#[test]
fn what_the_sender_repeats_it_repeats_for_a_reason() {
    let mut station = Station::begun(Settings::default());
    station.up(ack(2));
    assert_eq!(station.up(ack(2)), (false, vec![2]));
    assert_eq!(station.down(data(2)), (true, vec![]));
    assert_eq!(station.up(ack(2)), (true, vec![]));
    // Nor is old data kept again.
    let before = station.agent.held();
    assert_eq!(station.down(data(0)), (true, vec![]));
    assert_eq!(station.agent.held(), before);
}

#[test]
fn the_timer_follows_the_round_trip_of_the_hop() {
    // Segment 0 has taken 14 ms: SRTT 14, RTTVAR 7, timeout 42.
    let mut station = Station::begun(Settings { min_timeout_ms: 1.0, ..Settings::default() });
    assert_eq!(station.due(), Some(14.0 + 42.0));
    // Segment 1 takes 15 ms: SRTT (7 * 14 + 15) / 8, RTTVAR (3 * 7 + 1) / 4.
    station.now = 16;
    station.up(ack(2));
    assert_eq!(station.due(), Some(16.0 + 14.125 + 4.0 * 5.5));
    assert_eq!(Station::begun(Settings::default()).due(), Some(114.0));
}

#[test]
fn what_nothing_follows_is_repaired_by_the_timer_a_bounded_number_of_times() {
    let mut station = Station::begun(Settings { timeouts: 3, ..Settings::default() });
    station.up(ack(9));
    let mut times = Vec::new();
    while station.due().is_some() {
        assert_eq!(station.expire(), [9]);
        times.push(station.now);
    }
    assert_eq!(times, [114, 314, 714]);
    // What was sent twice gives no sample.
    station.up(ack(10));
    for n in 10..12 {
        station.down(data(n));
    }
    station.up(ack(11));
    assert_eq!(station.due(), Some(station.now as f64 + 100.0));
}

#[test]
fn what_it_has_given_up_it_does_not_hide() {
    // The mobile host refuses what is kept, so it asks for the same again and again.
    let mut station = Station::begun(Settings { timeouts: 2, ..Settings::default() });
    assert_eq!(station.up(ack(2)), (true, vec![]));
    assert_eq!(station.up(ack(2)), (false, vec![2]));
    assert_eq!((station.expire(), station.expire()), (vec![2], vec![2]));
    assert_eq!(station.due(), None);
    let again: Vec<Outcome> = (0..4).map(|_| station.up(ack(2))).collect();
    assert!(again.contains(&(false, vec![2])), "its second repair: {again:?}");
    assert_eq!(again.last(), Some(&(true, vec![])), "the sender hears: {again:?}");
}

#[test]
fn a_crowded_queue_leaves_the_loss_to_congestion_control() {
    let mut station = Station::begun(Settings::default());
    station.cross(Side::Fixed, true, data(10));
    station.down(data(11));
    station.agent.dropped(FIXED, &data(9));
    assert_eq!(station.agent.held().segments, 9, "1 to 8, and 11");
    for n in [9, 10] {
        station.up(ack(n));
        assert_eq!(station.up(ack(n)), (true, vec![]));
    }
}

#[test]
fn what_says_more_than_a_duplicate_goes_on() {
    let telling: [fn(&mut Segment); 5] = [
        |segment| segment.payload = Payload::Synthetic { offset: 0, len: 1 },
        |segment| segment.window = 901,
        |segment| segment.flags |= Flags::FIN,
        |segment| segment.flags |= Flags::ECE,
        |segment| segment.flags |= Flags::RST,
    ];
    for change in telling {
        let mut station = Station::begun(Settings::default());
        let mut segment = ack(1);
        change(&mut segment);
        assert_eq!(station.up(segment), (true, vec![]));
    }
    // With SACK too the sender need not hear of what is repaired here.
    let mut station = Station::begun(Settings::default());
    let mut segment = ack(1);
    let mut sack = SackBlocks::default();
    assert!(sack.push(Seq(200), Seq(300)));
    segment.options.sack = sack;
    assert_eq!(station.up(segment), (false, vec![1]));
    // Nothing is outstanding: somebody asks whether the other is there.
    station.up(ack(10));
    assert_eq!(station.up(ack(10)), (true, vec![]));
}

#[test]
fn holes_in_what_the_mobile_host_sends_are_named() {
    let mut station = Station::new(Settings::default());
    for n in [0, 1, 3] {
        assert_eq!(station.up(data(n)), (true, vec![]));
    }
    let named = |station: &mut Station| {
        let (outcome, ack) = station.cross(Side::Fixed, false, ack(2));
        assert_eq!(outcome, (true, vec![]));
        ack.options.rare.and_then(|rare| rare.notices.explicit_loss).map(|loss| (loss.seq, loss.len))
    };
    assert_eq!(named(&mut station), Some((Seq(200), 100)));
    station.up(data(2));
    assert_eq!(named(&mut station), None);
}

#[test]
fn sequence_numbers_wrap() {
    let mut station = Station::new(Settings::default());
    let at = |n: u32| Seq((u32::MAX - 149).wrapping_add(n * 100));
    for n in 0..6 {
        station.down(Segment { seq: at(n), ..data(0) });
    }
    let ack = |n| Segment { ack: at(n), ..ack(0) };
    assert_eq!(station.up(ack(1)), (true, vec![]));
    let mut out = Outbox::default();
    assert_eq!(station.agent.pass(&UP, &mut ack(1), &mut out), Handling::Suppress);
    assert_eq!(out.take().first().map(|outgoing| outgoing.segment.seq), Some(at(1)));
    assert_eq!(station.up(ack(6)), (true, vec![]));
    assert_eq!(station.agent.held().segments, 0);
}

#[test]
fn it_keeps_nothing_longer_than_it_should() {
    keeps_no_longer_than_it_should(|| Station::begun(Settings::default()).agent, 14);
}

#[test]
fn what_is_kept_is_bounded_by_flow_and_in_all() {
    let one = octets(&data(0));
    let settings = Settings { flows: 4, segments: 10, octets: 25 * one, ..Settings::default() };
    let mut agent = Snoop::new(settings);
    for flow in 0..7 {
        for n in 0..30 {
            let transit = Transit { from: EndpointId::new(2 * flow), ..DOWN };
            assert_eq!(agent.pass(&transit, &mut data(n), &mut Outbox::default()), Handling::Forward);
            let held = agent.held();
            assert!(
                held.flows <= 4 && held.segments <= 25 && held.flow_octets <= Keeping::<SnoopFlow>::FLOW + 10 * one,
                "{held:?}"
            );
            assert_eq!(held.octets, held.flows * Keeping::<SnoopFlow>::FLOW + held.segments * one);
        }
    }
    assert_eq!((agent.held().flows, agent.held().segments), (4, 25));
}
