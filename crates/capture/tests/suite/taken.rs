//! What a capture is: where it was taken, what it missed, and what was recorded twice.

use crate::engine::{run, Captured, Plan};
use whyloss_capture::connections::{Connection, Connections, Observer, Place, Side};
use whyloss_capture::half::{Hole, Retransmission};
use whyloss_capture::headers::Segment;
use whyloss_transport::{Config, Duration};

#[derive(Default)]
struct Seen {
    holes: Vec<Hole>,
    sent: Vec<Retransmission>,
    ended: Vec<Connection>,
}

impl Observer for Seen {
    fn on_retransmission(&mut self, _: u64, _: Side, sent: Retransmission) {
        self.sent.push(sent);
    }

    fn on_hole(&mut self, _: u64, side: Side, hole: Hole) {
        if side == Side::Client {
            self.holes.push(hole);
        }
    }

    fn on_end(&mut self, connection: Connection) {
        self.ended.push(connection);
    }
}

fn follow(segments: &[Segment]) -> Seen {
    let mut seen = Seen::default();
    let mut connections = Connections::default();
    for segment in segments {
        connections.on_segment(segment, &mut seen);
    }
    connections.finish(&mut seen);
    seen
}

fn plan(seed: u64, place: usize) -> Plan {
    let mut plan = Plan::new(seed, &Config::linux(), 600_000, place, Duration::from_millis(10 + 9 * seed));
    plan.far().loss = 0.01;
    plan.far().bottleneck = Some((20_000_000, 100));
    plan
}

#[test]
fn the_place_is_known_from_delays() {
    for (index, place) in [Place::Sender, Place::Middle, Place::Receiver].into_iter().enumerate() {
        for seed in 1..8 {
            let seen = follow(&run(&plan(seed, index)).segments);
            assert_eq!(seen.ended[0].place(Side::Client), place, "seed {seed}");
        }
    }
}

#[test]
fn what_was_recorded_twice_counts_once() {
    for place in 0..3 {
        for counts_ids in [true, false] {
            let plan = Plan { counts_ids, ..plan(3, place) };
            let captured = run(&plan);
            let once = follow(&captured.segments);
            let mut doubled = Vec::new();
            for segment in &captured.segments {
                let later = Segment { at: segment.at + Duration::from_micros(15), hop_limit: 63, ..*segment };
                doubled.extend([*segment, later]);
            }
            let twice = follow(&doubled);
            let (a, b) = (&once.ended[0], &twice.ended[0]);
            assert_eq!(b.doubles.taken_out, captured.segments.len() as u64, "place {place}, numbers {counts_ids}");
            assert_eq!(a.half(Side::Client).counts, b.half(Side::Client).counts);
            assert_eq!(once.sent, twice.sent);
        }
    }
}

#[test]
fn what_the_network_doubles_now_and_then_is_left_in() {
    let mut plan = plan(2, 2);
    plan.far().double = 0.02;
    let seen = follow(&run(&plan).segments);
    let connection = &seen.ended[0];
    assert!(connection.half(Side::Client).counts.duplicates > 0);
    assert!(connection.doubles.taken_out <= 1);
}

/// Acknowledgements that the sender of this capture had and that are not in it.
fn unseen_acks(mut segments: Vec<Segment>) -> u64 {
    segments.sort_by_key(|segment| segment.at);
    let seen = follow(&segments);
    [Side::Client, Side::Server].map(|side| seen.ended[0].half(side).counts.unseen_acks).iter().sum()
}

#[test]
fn an_acknowledgement_recorded_after_what_it_let_out_was_seen() {
    let plan = plan(4, 0);
    let segments = run(&plan).segments;
    let server = segments.iter().find(|segment| segment.len > 0).map(|data| data.src).unwrap();
    assert_eq!(unseen_acks(segments.clone()), 0);
    let late = |by| {
        segments
            .iter()
            .map(move |segment| Segment { at: segment.at + if segment.src == server { Duration::ZERO } else { by }, ..*segment })
    };
    assert_eq!(unseen_acks(late(Duration::from_micros(300)).collect()), 0);
    // It would have to be later than records are out of order.
    assert!(unseen_acks(late(Duration::from_millis(5)).collect()) > 20);
}

/// Stretches of the stream that arrived though no record has them, in octets.
fn unseen(captured: &Captured) -> Vec<bool> {
    let mut state = vec![(false, false); 600_000];
    for &(offset, len, came, recorded) in captured.sendings.iter().filter(|sending| sending.0 < 600_000) {
        for octet in &mut state[offset as usize..(offset + u64::from(len)) as usize] {
            *octet = (octet.0 || came, octet.1 || recorded);
        }
    }
    state.into_iter().map(|(came, recorded)| came && !recorded).collect()
}

#[test]
fn holes_of_the_capture_are_told_from_losses() {
    let (mut right, mut missed, mut wrong, mut lost) = (0, 0, 0, 0);
    for place in 0..3 {
        for seed in 1..6 {
            for config in
                [Config::linux(), Config { sack: false, rack: false, tlp: false, timestamps: false, ..Config::modern() }]
            {
                let mut plan = plan(seed, place);
                (plan.sender, plan.receiver, plan.missed) = (config.clone(), config, 0.02);
                let captured = run(&plan);
                let truth = unseen(&captured);
                lost += captured.sendings.iter().filter(|sending| !sending.2).count();
                let mut said = vec![false; truth.len()];
                for hole in follow(&captured.segments).holes {
                    // The SYN takes the first place of the stream if it was captured.
                    let from = (hole.start - hole.first) as usize - usize::from(captured.segments[0].len == 0);
                    let to = (from + hole.len as usize).min(said.len());
                    said[from.min(to)..to].fill(true);
                }
                for (really, said) in truth.into_iter().zip(said) {
                    match (really, said) {
                        (true, true) => right += 1,
                        (true, false) => missed += 1,
                        (false, true) => wrong += 1,
                        (false, false) => {}
                    }
                }
            }
        }
    }
    println!("octets of holes found {right}, missed {missed}, invented {wrong}; segments lost {lost}");
    assert!(right > 100_000 && lost > 100);
    assert!(missed * 100 <= right && wrong * 100 <= right, "{right} {missed} {wrong}");
}
