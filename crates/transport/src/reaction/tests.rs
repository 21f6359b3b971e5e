//! What each reaction makes of a verdict.

use super::{Bandwidth, BulkRepeat, Graded, Keep, LimdH, Probabilistic, Reaction, Reduce, Repair, Response, Scale};
use crate::estimate::Filter;
use crate::path::{Ack, Loss, Path, Trigger};
use crate::segment::Options;
use crate::time::{Duration, Instant};
use crate::verdict::{Cause, Verdict};

fn verdict(cause: Cause, score: f64) -> Verdict {
    Verdict { cause, score }
}

/// The answer to the loss of the `nth` segment.
fn respond_to(reaction: &mut dyn Reaction, verdict: Verdict, nth: u64, first_of_episode: bool) -> Response {
    let path = Path { now: Instant::from_nanos(1_000_000_000), mss: 1000, ..Path::default() };
    let loss = Loss {
        path: &path,
        start: nth * 1000,
        len: 1000,
        transmission: 0,
        sent_at: Instant::from_nanos(nth),
        trigger: Trigger::DuplicateAcks,
        first_of_episode,
    };
    reaction.respond(&verdict, &loss)
}

fn respond(reaction: &mut dyn Reaction, cause: Cause, score: f64) -> Response {
    respond_to(reaction, verdict(cause, score), 7, true)
}

#[test]
fn only_corruption_is_answered_mildly() {
    for (mut reaction, mild) in [
        (Box::new(Reduce) as Box<dyn Reaction>, Response::Reduce),
        (Box::new(Keep), Response::Keep),
        (Box::new(Scale::new(0.8)), Response::Scale(0.8)),
        (Box::new(BulkRepeat), Response::Keep),
        (Box::new(LimdH::new(0.1)), Response::Keep),
    ] {
        assert_eq!(respond(&mut *reaction, Cause::Corruption, 1.0), mild);
        assert_eq!(respond(&mut *reaction, Cause::Congestion, 0.0), Response::Reduce);
        assert_eq!(respond(&mut *reaction, Cause::Unknown, 0.0), Response::Reduce);
    }
}

#[test]
fn limd_h_steps_back_where_congestion_is_not_certain() {
    let mut reaction = LimdH::new(0.1);
    assert_eq!(respond(&mut reaction, Cause::Congestion, 0.5), Response::Scale(0.9));
    assert_eq!(respond(&mut reaction, Cause::Unknown, 0.5), Response::Reduce);
}

#[test]
fn only_bulk_repeat_repeats_what_is_not_known_to_be_lost() {
    let corruption = verdict(Cause::Corruption, 1.0);
    assert_eq!(BulkRepeat.repair(&corruption), Repair::Bulk);
    assert_eq!(BulkRepeat.repair(&verdict(Cause::Congestion, 0.0)), Repair::Lost);
    assert_eq!(Keep.repair(&corruption), Repair::Lost);
}

#[test]
fn graded_gives_up_half_of_what_congestion_is_likely() {
    let mut graded = Graded::new(1.0);
    // CETEN_A with a share of congestion of 0.612: 1 - 0.612 / 2.
    let Response::Scale(factor) = respond(&mut graded, Cause::Congestion, 0.388) else { panic!("not scaled") };
    assert!((factor - 0.694).abs() < 1e-12, "{factor}");
    assert_eq!(respond(&mut graded, Cause::Congestion, 0.0), Response::Scale(0.5));
    assert_eq!(respond(&mut graded, Cause::Corruption, 1.0), Response::Keep);
    assert_eq!(respond(&mut graded, Cause::Unknown, 0.0), Response::Reduce);
    assert_eq!(respond(&mut Graded::new(2.0), Cause::Corruption, 0.5), Response::Scale(0.875));
}

#[test]
fn probabilistic_reduces_as_often_as_congestion_is_likely() {
    let reductions = |score, least, seed| {
        let mut reaction = Probabilistic::new(least, seed);
        let all = (0..10_000).map(|nth| respond_to(&mut reaction, verdict(Cause::Corruption, score), nth, true));
        all.filter(|response| *response == Response::Reduce).count()
    };
    // Four standard deviations of a binomial distribution.
    assert!(reductions(0.388, 0.05, 0).abs_diff(6120) < 195);
    assert!(reductions(1.0, 0.05, 0).abs_diff(500) < 88, "never less than 1 in 20");
    assert_eq!((reductions(1.0, 0.0, 0), reductions(0.0, 0.0, 0)), (0, 10_000));
    assert_eq!(reductions(0.5, 0.05, 3), reductions(0.5, 0.05, 3), "the same losses, the same coins");
    assert_ne!(reductions(0.5, 0.05, 3), reductions(0.5, 0.05, 4));
}

#[test]
fn probabilistic_throws_one_coin_an_episode() {
    let mut reaction = Probabilistic::new(0.0, 0);
    let half = verdict(Cause::Congestion, 0.5);
    for episode in 0..50 {
        let first = respond_to(&mut reaction, half, episode * 100, true);
        assert!((1..20).all(|nth| respond_to(&mut reaction, half, episode * 100 + nth, false) == first));
    }
}

#[test]
fn bandwidth_limits_the_window_to_what_the_path_holds() {
    let mut reaction = Bandwidth::new(Filter::WestwoodPlus { gain: 0.9, least: Duration::from_millis(50) });
    assert_eq!(respond(&mut reaction, Cause::Corruption, 1.0), Response::Reduce, "nothing is known yet");
    let round_trip = Duration::from_millis(80);
    for n in 0..1000 {
        let path = Path { now: Instant::from_nanos(n * 1_000_000), srtt: Some(round_trip), mss: 1000, ..Path::default() };
        reaction.on_ack(&Ack {
            path: &path,
            acked: 1000,
            delivered: 1000,
            rtt: None,
            delay: Some(round_trip),
            newest_sent_at: None,
            duplicate: false,
            ece: false,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &Options::default(),
        });
    }
    // 1000 octets a millisecond for 80 ms.
    let Response::Limit(octets) = respond(&mut reaction, Cause::Corruption, 1.0) else { panic!("not limited") };
    assert!(octets.abs_diff(80_000) <= 80, "{octets}");
    assert_eq!(respond(&mut reaction, Cause::Congestion, 0.0), Response::Reduce);
}
