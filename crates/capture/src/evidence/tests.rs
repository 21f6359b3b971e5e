use super::*;

/// A loss like many.
pub(crate) fn plain() -> Evidence {
    Evidence {
        place: Place::Sender,
        seen: true,
        damaged: false,
        trigger: Trigger::Fast,
        unneeded: None,
        answered: None,
        reneged: false,
        beyond: false,
        octets: 1448,
        mss: 1448,
        trips: (Some(0.04), Some(0.04)),
        range: (0.02, 0.06),
        relieved: None,
        fuller: (10, 40),
        usual: None,
        hazards: None,
        ranks: None,
        around: (0.02, 0.06),
        longer_elsewhere: None,
        flight: 40 * 1448,
        usual_flight: None,
        largest_flight: 40 * 1448,
        position: 0.5,
        together: 1,
        blackout: None,
        rates: (None, None, None),
        slots: None,
        since: None,
        irregular: None,
        loss_rate: 0.01,
        damaged_elsewhere: 0,
        marked: false,
        markable: false,
        silence: None,
        rerouted: false,
        transmission: 0,
        policer: None,
        live: None,
        others: (0, 0.0),
        others_close: 0,
    }
}

use crate::connections::{Connection, Connections, Observer, Side};
use crate::headers::Options;
use crate::replay::Judges;
use std::collections::BTreeMap;
use whyloss_transport::differentiation::Verdict;

const MSS: u32 = 1000;
/// Between two segments.
const STEP: u64 = 1_000_000;
const SHORTEST: u64 = 20_000_000;

struct Listener {
    trail: Trail,
    suspects: Vec<Suspect>,
}

impl Observer for Listener {
    fn on_segment(&mut self, _: &Connection, side: Side, segment: &Segment, kind: Kind) {
        match side {
            Side::Client => self.trail.on_segment(segment, kind, &mut |suspect| self.suspects.push(suspect)),
            Side::Server => self.trail.on_ack(segment),
        }
    }

    fn on_retransmission(&mut self, _: u64, _: Side, sent: Retransmission) {
        assert!(self.trail.on_settled(&sent), "the scoreboard knows it");
    }

    fn on_end(&mut self, _: Connection) {
        self.trail.finish(&mut |suspect| self.suspects.push(suspect));
    }
}

fn segment(at: u64, client: bool, (seq, ack): (u32, u32), len: u32, sack: Option<(u32, u32)>) -> Segment {
    let (a, b) = ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
    let mut octets = Vec::new();
    if let Some((left, right)) = sack {
        octets = [vec![5, 10], left.to_be_bytes().to_vec(), right.to_be_bytes().to_vec()].concat();
    }
    let ends = if client { [a, b] } else { [b, a] };
    Segment { at: Instant::from_nanos(at), ack, options: Options::read(&octets), ..Segment::plain(ends, seq, len) }
}

/// A segment every millisecond over a queue that fills with 150 of them and drains with 50; `lost` are lost, and sent again after the
/// third acknowledgement that shows it. The capture is so long after the sender.
fn run(lost: &[u32], after_sender: u64) -> Vec<Suspect> {
    run_with(Trail::default(), lost, after_sender)
}

fn run_with(trail: Trail, lost: &[u32], after_sender: u64) -> Vec<Suspect> {
    let queue = |number: u32| match u64::from(number % 200) {
        rising @ ..150 => rising * 260_000,
        falling => (200 - falling) * 780_000,
    };
    let mut events: BTreeMap<(u64, u64), Segment> = BTreeMap::new();
    let mut order = 0;
    let mut put = |segment: Segment| {
        order += 1;
        events.insert((segment.at.as_nanos(), order), segment);
    };
    let mut arrivals: BTreeMap<u64, u32> = BTreeMap::new();
    for number in 0..2000_u32 {
        let sent = u64::from(number) * STEP;
        put(segment(sent + after_sender, true, (1 + number * MSS, 1), MSS, None));
        if lost.contains(&number) {
            let again = u64::from(number + 3) * STEP + SHORTEST + queue(number + 3) + 100;
            put(segment(again + after_sender, true, (1 + number * MSS, 1), MSS, None));
            arrivals.insert(again + SHORTEST + queue(number), number);
        } else {
            arrivals.insert(sent + SHORTEST + queue(number) + u64::from(number % 7), number);
        }
    }
    let mut have = std::collections::BTreeSet::new();
    let mut next = 0;
    for (at, number) in arrivals {
        have.insert(number);
        while have.remove(&next) {
            next += 1;
        }
        let sack = have.contains(&number).then(|| {
            let (mut left, mut right) = (number, number + 1);
            while left > 0 && have.contains(&(left - 1)) {
                left -= 1;
            }
            while have.contains(&right) {
                right += 1;
            }
            (1 + left * MSS, 1 + right * MSS)
        });
        // To the sender, and by the capture before.
        put(segment(at - after_sender.min(SHORTEST / 2), false, (1, 1 + next * MSS), 0, sack));
    }
    let mut connections = Connections::default();
    let mut listener = Listener { trail, suspects: Vec::new() };
    for (number, (_, mut segment)) in events.into_iter().enumerate() {
        segment.number = number as u64 + 1;
        connections.on_segment(&segment, &mut listener);
    }
    connections.finish(&mut listener);
    listener.suspects
}

#[test]
fn a_loss_shows_the_queue_that_it_met_and_what_came_after() {
    let suspects = run(&[549, 1010], 0);
    assert_eq!(suspects.len(), 2, "{suspects:?}");
    let [full, empty] = [0, 1].map(|index| &suspects[index].evidence);
    let before = |evidence: &Evidence| evidence.trips.0.expect("there are round trips");
    assert!((before(full) - 0.0587).abs() < 1e-3, "{full:?}");
    assert!((before(empty) - 0.0223).abs() < 1e-3, "{empty:?}");
    assert!((full.range.0 - 0.02).abs() < 1e-4 && (full.range.1 - 0.059).abs() < 1e-3, "{:?}", full.range);
    assert!(full.relieved.expect("it was seen") < 0.045, "the queue was drained after it: {full:?}");
    assert!(full.fuller.0 < empty.fuller.0 && empty.fuller.0 * 2 > empty.fuller.1, "{:?} {:?}", full.fuller, empty.fuller);
    assert!((empty.longer_elsewhere, full.longer_elsewhere) == (Some(1.0), Some(0.0)), "{empty:?}");
    let cause = |index: usize| crate::causes::probabilities(&suspects[index].evidence).likeliest();
    assert_eq!((cause(0), cause(1)), (crate::cause::Cause::Congestion, crate::cause::Cause::Corruption));
}

#[test]
fn losses_of_one_flight_are_counted_together() {
    let suspects = run(&[548, 549, 550, 556, 1010], 0);
    let together: Vec<_> =
        suspects.iter().map(|suspect| (suspect.evidence.together, suspect.evidence.blackout.map(|row| row.count))).collect();
    assert_eq!(together, [(4, Some(3)), (4, Some(3)), (4, Some(3)), (4, None), (1, None)]);
}

#[test]
fn differentiators_judge_what_they_are_shown() {
    let suspects = run_with(Trail::new(Panel::of(Judges::All)), &[549, 800, 1149, 1749, 1810], 0);
    let score = |index: usize, name: &str| {
        let says: &Vec<Says> = &suspects[index].says;
        assert_eq!(says.len() + 1, crate::replay::names().count(), "all but the one that needs the whole capture");
        says.iter().find(|says| says.name == name).expect("all were asked").verdict.score
    };
    // The fourth met a full queue, the fifth an empty one.
    for name in ["learned", "ncpld"] {
        assert!(score(4, name) > score(3, name), "{name}: {} {}", score(4, name), score(3, name));
    }
    // Their Loss and Ack are those of a sender: without a gap in what the capture saw, those at the receiver have nothing to say.
    assert!(suspects[4].says.iter().any(|says| says.name == "biaz" && says.verdict == Verdict::UNKNOWN));
}

#[test]
fn memory_is_bounded_whatever_is_lost() {
    let lost: Vec<u32> = (10..1990).filter(|number| number % 2 == 0).collect();
    let mut trail = Trail::default();
    let mut out = 0;
    for number in 0..200_000_u32 {
        let kind = if number % 2 == 0 { Kind::New } else { Kind::Retransmission(Trigger::Fast) };
        let mut data = segment(u64::from(number) * 1000, true, (1 + number / 2 * MSS, 1), MSS, None);
        data.number = u64::from(number) + 1;
        trail.on_segment(&data, kind, &mut |_| out += 1);
    }
    assert!(trail.watch.noticed.len() <= MAX_HELD + 1 && trail.watch.episodes.len() <= MAX_HELD);
    assert!(run(&lost, 0).len() > 900);
}
