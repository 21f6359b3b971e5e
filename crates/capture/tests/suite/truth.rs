//! The analysis of captures of random worlds, beside what the simulator knows of them.

use crate::worlds::{run, Family, Outcome, Taking, PLACES};
use proptest::prelude::*;
use std::collections::HashSet;
use std::io::Cursor;
use std::ops::ControlFlow;
use whyloss_capture::analysis::{analyse, Settings};
use whyloss_capture::connections::Side;
use whyloss_capture::half::Trigger;
use whyloss_capture::report::Analysis;
use whyloss_capture::score::{score, Score};
use whyloss_capture::source::Source;

fn source(capture: &[u8]) -> Source {
    Source::new("world".to_owned(), Box::new(Cursor::new(capture.to_vec()))).unwrap()
}

fn explain(capture: &[u8]) -> (Analysis, Score) {
    let settings = Settings { workers: 1, ..Settings::default() };
    let analysis = analyse(vec![source(capture)], &settings, &mut |_| ControlFlow::Continue(())).unwrap();
    let score = score(vec![source(capture)], &analysis, &mut |_| ControlFlow::Continue(())).unwrap();
    (analysis, score)
}

/// What has to hold wherever and however a capture was taken.
fn check_rows(about: &str, analysis: &Analysis, score: &Score) {
    for flow in &analysis.flows {
        let own = analysis.retransmissions.iter().filter(|sent| (sent.connection, sent.side) == (flow.connection, flow.side));
        assert_eq!(own.count() as u64, flow.counts.retransmissions, "{about}: rows and counts");
    }
    let mut numbers = HashSet::new();
    assert!(
        analysis.retransmissions.iter().all(|sent| numbers.insert(sent.what.number)),
        "{about}: a packet is one retransmission"
    );
    let mut lost = HashSet::new();
    for loss in &analysis.losses {
        // Several repairs in vain may belong to one packet that arrived; one that did not has one.
        if let Some(packet) = loss.packet.filter(|_| !loss.probabilities.likeliest().arrived()) {
            assert!(lost.insert((packet, loss.offset)), "{about}: packet {packet} is lost twice");
        }
        let sum: f64 = whyloss_capture::cause::Cause::ALL.into_iter().map(|cause| loss.probabilities.of(cause)).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{about}: probabilities sum to {sum}");
    }
    for flow in &analysis.flows {
        let counts = flow.counts;
        let others = counts.out_of_order + counts.duplicates + counts.probes;
        assert!(counts.retransmissions + others <= counts.segments + 2, "{about}: {counts:?}");
    }
    assert!(score.found <= score.sent_again && score.left_out == 0, "{about}");
    assert_eq!(score.triggers.values().sum::<u64>(), score.sent_again, "{about}: each has one verdict");
}

/// At the sender nothing is hidden: what it made is what is found.
fn check_at_sender(outcome: &Outcome, analysis: &Analysis) {
    let about = &outcome.about;
    // Flow by flow, in the order of their first packets, which is that of the records; those that others send pass elsewhere.
    let own = outcome.records.flows.iter().filter(|flow| ["main", "third"].contains(&flow.name.as_str()));
    let (mut segments, mut again) = (0, 0);
    for flow in own {
        let stats = flow.sender.unwrap();
        segments += stats.data_segments_sent;
        again += stats.retransmissions;
    }
    let counted: u64 = analysis.flows.iter().filter(|flow| flow.side == Side::Client).map(|flow| flow.counts.segments).sum();
    assert_eq!(counted, segments, "{about}: segments");
    let found =
        analysis.retransmissions.iter().filter(|sent| sent.side == Side::Client && sent.what.trigger != Trigger::Handshake);
    // Where packets have no numbers, the same octets sent twice within a moment are the same packet to whoever looks.
    let alike: u64 = analysis.flows.iter().filter(|flow| flow.side == Side::Client).map(|flow| flow.counts.duplicates).sum();
    assert_eq!(found.count() as u64 + alike, again, "{about}: retransmissions");
    assert!(alike <= 1 + again / 100, "{about}: {alike} of {again} retransmissions like what was sent just before");
}

#[test]
fn what_the_sender_made_is_what_is_found() {
    let mut by_place = [Score::default(), Score::default(), Score::default()];
    for family in Family::ALL {
        for number in 0..3 {
            let outcome = run(family, number, Taking::default());
            for (place, (capture, sum)) in outcome.captures.iter().zip(&mut by_place).enumerate() {
                let (analysis, score) = explain(capture);
                let about = format!("{} at the {}", outcome.about, PLACES[place]);
                assert_eq!(score.truths, analysis.facts.packets, "{about}: every packet has its truth");
                check_rows(&about, &analysis, &score);
                if place == 0 {
                    check_at_sender(&outcome, &analysis);
                }
                sum.add(&score);
            }
        }
    }
    for (sum, (place, least)) in by_place.iter().zip(PLACES.iter().zip([0.93, 0.9, 0.83])) {
        assert!(sum.sent_again > 1000, "{place}: {}", sum.sent_again);
        let right = sum.trigger_accuracy().unwrap();
        assert!(right > least, "{place}: triggers right {right}\n{}", sum.lines().join("\n"));
        assert!(sum.false_finds * 200 < sum.sent_again, "{place}: {} false of {}", sum.false_finds, sum.sent_again);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn thin_captures_are_read_without_a_contradiction(
        family in 0..Family::ALL.len(),
        number in 1000_u64..1_000_000,
        holes in prop_oneof![Just(0.0), Just(0.01), Just(0.2)],
        snaplen in prop_oneof![Just(0_u32), Just(64), Just(96)],
    ) {
        let outcome = run(Family::ALL[family], number, Taking { snaplen, holes, ..Taking::default() });
        for (capture, place) in outcome.captures.iter().zip(PLACES) {
            let (analysis, score) = explain(capture);
            let about = format!("{} at the {place}, {holes} missed", outcome.about);
            check_rows(&about, &analysis, &score);
            if place == PLACES[0] && holes == 0.0 {
                check_at_sender(&outcome, &analysis);
            }
            let missed = analysis.facts.missed.unwrap_or_default();
            prop_assert!(if holes > 0.1 { missed > 0 } else { holes > 0.0 || missed == 0 }, "{}: {} missed", about, missed);
        }
    }
}

/// Senders whose timer expired within a moment of a repair, and whose packets have no numbers.
#[test]
fn what_is_sent_twice_within_a_moment_is_one_packet() {
    for family in [Family::Spikes, Family::Flows] {
        let outcome = run(family, 152_859, Taking::default());
        check_at_sender(&outcome, &explain(&outcome.captures[0]).0);
    }
}

/// As Linux takes captures: behind the queues of the hosts.
#[test]
fn behind_the_queues_of_hosts_verdicts_are_as_right() {
    for place in [0, 2] {
        let [mut front, mut behind] = [Score::default(), Score::default()];
        for family in [Family::DropTail, Family::Corruption, Family::Bursts, Family::Reordering, Family::Mixed] {
            for number in 0..3 {
                for (sum, behind_queue) in [(&mut front, false), (&mut behind, true)] {
                    let outcome = run(family, number, Taking { behind_queue, ..Taking::default() });
                    let (analysis, score) = explain(&outcome.captures[place]);
                    check_rows(&outcome.about, &analysis, &score);
                    if place == 0 {
                        check_at_sender(&outcome, &analysis);
                    }
                    sum.add(&score);
                }
            }
        }
        let shares = |score: &Score| [score.trigger_accuracy(), score.need_accuracy(), score.mean_accuracy()].map(Option::unwrap);
        assert_eq!(front.sent_again, behind.sent_again);
        assert!(shares(&front).iter().zip(shares(&behind)).all(|(front, behind)| behind > front - 0.01));
    }
}

#[test]
fn what_a_policer_dropped_is_compared_with_what_is_said_of_policers() {
    let mut score = Score::default();
    for number in 0..6 {
        let outcome = run(Family::Policed, number, Taking::default());
        score.add(&explain(&outcome.captures[0]).1);
    }
    let of = |said: &dyn Fn(&str) -> bool| -> u64 {
        score.causes.iter().filter(|((truth, was), _)| *truth == "policer" && said(was)).map(|(_, count)| count).sum()
    };
    let (all, named) = (of(&|_| true), of(&|said| said == "policer"));
    assert!(all > 500 && named > 0, "{:?}", score.causes);
    let wrongly: u64 =
        score.causes.iter().filter(|((truth, said), _)| *said == "policer" && *truth != "policer").map(|(_, n)| n).sum();
    assert_eq!(wrongly, 0, "{:?}", score.causes);
    let (congestion, corruption) = score.accuracies();
    assert!(congestion.is_some() && corruption.is_none(), "what a policer drops counts as congestion");
}
