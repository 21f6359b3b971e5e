use super::*;
use crate::middlebox::testing::{ack, data, keeps_no_longer_than_it_should, FIXED};
use whyloss_transport::segment::Timestamps;
use whyloss_transport::Seq;

/// An agent and the time in milliseconds.
struct Station {
    agent: Proxy,
    now: u64,
}

/// What became of a segment: whether it went on, and which data was sent.
type Outcome = (bool, Vec<u32>);

fn numbers(out: &mut Outbox) -> Vec<u32> {
    let sent = out.take().into_iter().map(|outgoing| {
        assert!(!outgoing.urgent && outgoing.from == FIXED);
        outgoing.segment.seq.0 / 100
    });
    sent.collect()
}

impl Station {
    fn new(settings: Settings) -> Self {
        Self { agent: Proxy::new(settings), now: 0 }
    }

    /// One that has forwarded segments 0 to 9 at 0 ms, of which the first has come after 20 ms.
    fn begun(settings: Settings) -> Self {
        let mut station = Self::new(settings);
        for n in 0..10 {
            assert_eq!(station.down(data(n)), (true, vec![]));
        }
        station.now = 20;
        assert_eq!(station.up(ack(1)), (true, vec![]));
        station
    }

    fn at(&self) -> Instant {
        Instant::from_nanos(self.now * 1_000_000)
    }

    fn cross(&mut self, side: Side, crowded: bool, mut segment: Segment) -> (Handling, Segment, Outbox) {
        let from = if side == Side::Fixed { FIXED } else { FIXED.peer() };
        let transit = Transit { now: self.at(), from, side, crowded, corruption: 0.0 };
        let mut out = Outbox::default();
        let handling = self.agent.pass(&transit, &mut segment, &mut out);
        (handling, segment, out)
    }

    fn down(&mut self, segment: Segment) -> Outcome {
        let (handling, _, mut out) = self.cross(Side::Fixed, false, segment);
        assert_ne!(handling, Handling::Suppress, "it answers for what it keeps back");
        (handling == Handling::Forward, numbers(&mut out))
    }

    fn up(&mut self, segment: Segment) -> Outcome {
        let (handling, _, mut out) = self.cross(Side::Mobile, false, segment);
        assert_ne!(handling, Handling::Accept);
        (handling == Handling::Forward, numbers(&mut out))
    }

    fn due(&self) -> Option<u64> {
        self.agent.next_timer().map(|at| at.as_nanos() / 1_000_000)
    }

    /// Waits for the timer; what is sent.
    fn expire(&mut self) -> Vec<u32> {
        self.now = self.now.max(self.due().expect("a timer runs"));
        let mut out = Outbox::default();
        self.agent.on_timer(self.at(), &mut out);
        numbers(&mut out)
    }
}

#[test]
fn a_duplicate_acknowledgement_is_answered_here_and_closes_no_window() {
    let mut station = Station::begun(Settings::default());
    assert_eq!(station.up(ack(2)), (true, vec![]));
    // Segment 2 is lost: seven more are on their way behind it, each of which makes a duplicate.
    assert_eq!(station.up(ack(2)), (false, vec![2]));
    assert_eq!(station.down(data(10)), (true, vec![]), "the window is open");
    for _ in 0..6 {
        assert_eq!(station.up(ack(2)), (false, vec![]));
    }
    // The duplicate of segment 10, which left behind the repair.
    assert_eq!(station.up(ack(2)), (false, vec![2]));
    assert_eq!(station.up(ack(11)), (true, vec![]));
    assert_eq!(station.agent.held().segments, 0);
}

#[test]
fn after_a_timeout_one_segment_leaves_at_a_time_and_what_comes_waits() {
    let mut station = Station::begun(Settings::default());
    assert_eq!(station.expire(), [1]);
    assert_eq!(station.now, 120, "100 ms after the last word of the mobile host");
    for n in 10..13 {
        assert_eq!(station.down(data(n)), (false, vec![]));
    }
    assert_eq!((station.expire(), station.now), (vec![1], 320));
    // The acknowledgement of the repair: what was on the link is lost, what has waited follows.
    station.now = 340;
    assert_eq!(station.up(ack(2)), (true, (2..13).collect()));
    assert_eq!(station.down(data(13)), (true, vec![]), "the link is good again");
    assert_eq!(station.up(ack(14)), (true, vec![]));
    assert_eq!((station.agent.held().segments, station.due()), (0, None));
}

#[test]
fn what_a_sack_block_says_has_come_does_not_go_again() {
    let mut station = Station::begun(Settings::default());
    station.expire();
    station.down(data(10));
    let mut acknowledgement = ack(2);
    assert!(acknowledgement.options.sack.push(Seq(400), Seq(700)));
    assert_eq!(station.up(acknowledgement), (true, vec![2, 3, 7, 8, 9, 10]));
}

#[test]
fn a_duplicate_acknowledgement_ends_an_outage_too() {
    let mut station = Station::begun(Settings::default());
    station.expire();
    assert_eq!(station.down(data(10)), (false, vec![]));
    assert_eq!(station.up(ack(1)), (false, vec![1, 10]));
    assert_eq!(station.down(data(11)), (true, vec![]));
}

#[test]
fn a_mobile_host_that_says_nothing_is_given_up_and_the_rest_is_the_sender_s() {
    let mut station = Station::begun(Settings { timeouts: 3, ..Settings::default() });
    assert_eq!(station.down(data(10)), (true, vec![]));
    let mut times = Vec::new();
    for _ in 0..3 {
        assert_eq!(station.expire(), [1]);
        times.push(station.now);
    }
    assert_eq!(times, [120, 320, 720]);
    // What the sender repeats meanwhile waits here, and does not begin the count anew.
    assert_eq!(station.down(data(1)), (false, vec![]));
    assert!(station.expire().is_empty());
    assert_eq!((station.agent.held().segments, station.due()), (0, None));
    assert_eq!(station.down(data(1)), (true, vec![]), "what the sender repeats passes");
}

#[test]
fn what_leaves_late_has_a_later_timestamp() {
    let stamped = |n: u32, value: u32| {
        let mut segment = data(n);
        segment.options.timestamps = Some(Timestamps { value, echo: 0 });
        segment
    };
    for hide in [true, false] {
        let mut station = Station::new(Settings { hide, ..Settings::default() });
        // The sender's clock ticks every 10 ms, and its segments need 30 ms to come here.
        for n in 0..200 {
            station.now = 30 + 10 * u64::from(n);
            let (handling, segment, _) = station.cross(Side::Fixed, false, stamped(n, n));
            assert_eq!((handling, segment), (Handling::Forward, stamped(n, n)), "in time");
            station.up(ack(n));
        }
        // Segment 199 came at 2020 ms. Its timer expires 100 ms after the last acknowledgement; segment 200 waits from 2050 ms on.
        station.now = 2050;
        assert_eq!(station.down(stamped(200, 202)), (true, vec![]));
        let value = |out: &mut Outbox| -> Vec<u32> {
            out.take().into_iter().map(|outgoing| outgoing.segment.options.timestamps.unwrap().value).collect()
        };
        assert_eq!(station.due(), Some(2120));
        station.now = 2120;
        let mut out = Outbox::default();
        station.agent.on_timer(station.at(), &mut out);
        assert_eq!(value(&mut out), [if hide { 209 } else { 199 }], "it was here for 10 ticks");
        station.now = 2140;
        let (_, _, mut out) = station.cross(Side::Mobile, false, ack(200));
        // 202 and 9 ticks, which is what the sender's clock said when what comes now has left.
        assert_eq!(value(&mut out), [if hide { 211 } else { 202 }]);
        let (_, late, _) = station.cross(Side::Fixed, false, stamped(201, 210));
        assert_eq!(late, stamped(201, if hide { 211 } else { 210 }), "never older than what has left");
    }
}

#[test]
fn of_what_was_lost_before_the_station_the_sender_hears() {
    let mut station = Station::new(Settings::default());
    for n in [0, 1, 3, 4, 5] {
        station.down(data(n));
    }
    station.up(ack(1));
    assert_eq!(station.up(ack(2)), (true, vec![]));
    assert_eq!(station.up(ack(2)), (true, vec![]), "it is not here");
    assert_eq!(station.due(), None);
    // The sender's retransmission: its duplicates go on, but the timer of the hop guards it.
    station.now = 50;
    assert_eq!(station.down(data(2)), (true, vec![]));
    assert_eq!(station.up(ack(2)), (true, vec![]));
    assert_eq!((station.expire(), station.now), (vec![2], 150));
}

#[test]
fn a_crowded_queue_leaves_the_loss_to_congestion_control() {
    let mut station = Station::begun(Settings::default());
    assert_eq!(station.cross(Side::Fixed, true, data(10)).0, Handling::Forward);
    station.agent.dropped(FIXED, &data(9));
    assert_eq!(station.agent.held().segments, 8, "1 to 8");
    station.up(ack(9));
    assert_eq!(station.up(ack(9)), (true, vec![]));
}

#[test]
fn nothing_waits_for_a_segment_that_is_not_here() {
    let mut station = Station::begun(Settings::default());
    station.expire();
    assert_eq!(station.down(data(10)), (false, vec![]));
    // The repair found no room in the queue of the link.
    station.agent.dropped(FIXED, &data(1));
    assert_eq!(station.expire(), [10]);
    assert_eq!((station.now, station.due()), (120, None));
    assert_eq!(station.down(data(11)), (true, vec![]));
}

#[test]
fn sequence_numbers_wrap() {
    let mut station = Station::new(Settings::default());
    let at = |n: u32| Seq((u32::MAX - 149).wrapping_add(n * 100));
    for n in 0..6 {
        station.down(Segment { seq: at(n), ..data(0) });
    }
    assert_eq!(station.up(Segment { ack: at(1), ..ack(0) }), (true, vec![]));
    let mut out = station.cross(Side::Mobile, false, Segment { ack: at(1), ..ack(0) }).2;
    assert_eq!(out.take()[0].segment.seq, at(1));
    assert_eq!(station.up(Segment { ack: at(6), ..ack(0) }), (true, vec![]));
    assert_eq!(station.agent.held().segments, 0);
}

#[test]
fn it_keeps_nothing_longer_than_it_should() {
    keeps_no_longer_than_it_should(|| Station::begun(Settings::default()).agent, 20);
}

#[test]
fn what_is_kept_is_bounded_by_flow_and_in_all() {
    let one = octets(&data(0));
    let settings = Settings { flows: 4, segments: 10, octets: 25 * one, ..Settings::default() };
    let mut agent = Proxy::new(settings);
    for flow in 0..7 {
        for n in 0..30 {
            let from = EndpointId::new(2 * flow);
            let now = Instant::from_nanos(u64::from(n) * 100_000_000);
            let transit = |side| Transit { now, from, side, crowded: false, corruption: 0.0 };
            if n == 2 {
                let up = Transit { from: from.peer(), ..transit(Side::Mobile) };
                agent.pass(&up, &mut ack(1), &mut Outbox::default());
            }
            // From the third on, an outage: what does not fit passes.
            agent.pass(&transit(Side::Fixed), &mut data(n), &mut Outbox::default());
            agent.on_timer(now, &mut Outbox::default());
            let held = agent.held();
            assert!(
                held.flows <= 4 && held.segments <= 25 && held.flow_octets <= Keeping::<ProxyFlow>::FLOW + 10 * one,
                "{held:?}"
            );
            assert_eq!(held.octets, held.flows * Keeping::<ProxyFlow>::FLOW + held.segments * one);
        }
    }
    assert_eq!(agent.held().flows, 4);
}
