//! Evidence as numbers without units, as the trained model takes it.
//!
//! How many were lost together is not among those that tell corruption from congestion: a full queue refuses several in a row, but so does a fading radio. A model that learns the one
//! from worlds without the other is worse than chance there.

use super::{between, blackout_expected, by_timer, fullness};
use crate::connections::Place;
use crate::evidence::Evidence;
use whyloss_transport::differentiation::learned::features as live;

/// Numbers of this module's own.
const OWN: usize = 46;
/// Numbers in a vector: these, then those of the live learned differentiator.
pub const COUNT: usize = OWN + live::COUNT;
/// Numbers of the row of losses that a loss is in.
const ROW: usize = 6;
/// Those of the vector and of the row.
pub const ALL: usize = COUNT + ROW;

const OWN_NAMES: [&str; OWN] = [
    "fullness",
    "fullness_after",
    "rise_over_loss",
    "queue_over_shortest",
    "relief",
    "relieved_fullness",
    "share_of_fuller_rounds",
    "rounds",
    "usual_fullness",
    "above_usual",
    "longer_elsewhere",
    "flight",
    "flight_over_usual",
    "flight_over_largest",
    "position",
    "rate_share",
    "rate_after",
    "slots_in_row",
    "since",
    "irregularity",
    "loss_rate",
    "length",
    "marked",
    "markable",
    "silence",
    "timer",
    "transmission",
    "others",
    "others_by_chance",
    "at_sender",
    "at_receiver",
    "seen",
    "room_left",
    "room_left_after",
    "hazard_here",
    "hazard_below",
    "corruption_by_hazards",
    "place_in_surroundings",
    "surroundings_low",
    "surroundings_high",
    "others_close",
    "segments_of_range",
    "rank",
    "mean_rank",
    "quarter_rank",
    "losses_compared",
];

const ROW_NAMES: [&str; ROW] = ["row", "row_expected", "row_again", "row_silence", "row_onset", "row_of_flight"];

/// Says that something is not known; no measured value is as low.
const NONE: f64 = -5.0;

/// The names of all numbers, in their order.
pub fn names() -> impl Iterator<Item = String> {
    let live = live::NAMES.into_iter().map(|name| format!("live_{name}"));
    OWN_NAMES.into_iter().map(str::to_owned).chain(live).chain(ROW_NAMES.into_iter().map(str::to_owned))
}

/// The numbers that tell corruption from congestion, and behind them those of the row of losses.
pub fn all(evidence: &Evidence) -> [f32; ALL] {
    let e = evidence;
    let or = |value: Option<f64>| value.unwrap_or(NONE);
    let row = e.blackout;
    let trip = e.trips.0.unwrap_or(e.range.0).max(1e-4);
    let segments = (e.flight as f64 / f64::from(e.mss.max(1))).max(1.0);
    let row: [f64; ROW] = [
        or(row.map(|row| f64::from(row.count).ln())),
        or(blackout_expected(e).map(f64::ln_1p)),
        or(row.map(|row| f64::from(row.again.min(8)))),
        or(row.and_then(|row| row.silence()).map(|silence| (silence.as_secs_f64() / trip).ln_1p())),
        or(row.and_then(|row| row.onset()).map(|onset| (onset / trip).clamp(-4.0, 4.0))),
        or(row.map(|row| (f64::from(row.count) / segments).min(4.0))),
    ];
    let mut all = [NONE as f32; ALL];
    all[..COUNT].copy_from_slice(&vector(evidence));
    all[COUNT..].copy_from_slice(&row.map(finite));
    all
}

fn finite(value: f64) -> f32 {
    if value.is_finite() {
        value.clamp(-1e6, 1e6) as f32
    } else {
        NONE as f32
    }
}

/// The numbers that tell corruption from congestion.
pub fn vector(evidence: &Evidence) -> [f32; COUNT] {
    let e = evidence;
    let (shortest, longest) = e.range;
    let width = (longest - shortest).max(1e-4);
    let or = |value: Option<f64>| value.unwrap_or(NONE);
    let flag = |yes: bool| f64::from(u8::from(yes));
    let (before, after) = e.trips;
    let share = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { NONE };
    let segments = (e.flight as f64 / f64::from(e.mss.max(1))).max(1.0);
    let relieved = before.zip(e.relieved);
    let (rate, plateau, rate_after) = e.rates;
    // Segments that the queue had room for, if this direction had the path for itself.
    let room = |trip: f64| plateau.map(|plateau| ((longest - trip).max(0.0) * plateau / f64::from(e.mss.max(1))).ln_1p());
    let hazard = |of: fn((f64, f64)) -> f64| or(e.hazards.map(|hazards| of(hazards).max(1e-4).ln()));
    let by_hazards = |(here, below): (f64, f64)| (below / here.max(1e-9)).min(1.0);
    let others = e.ranks.and_then(|ranks| ranks.others);
    let own: [f64; OWN] = [
        or(fullness(e)),
        or(after.and_then(|after| between(after, e.range))),
        or(before.zip(after).map(|(before, after)| (after - before) / width)),
        or(before.map(|before| (before - shortest) / shortest.max(1e-4))),
        or(relieved.map(|(before, relieved)| (before - relieved) / width)),
        or(e.relieved.and_then(|relieved| between(relieved, e.range))),
        share(f64::from(e.fuller.0), f64::from(e.fuller.1)),
        (1.0 + f64::from(e.fuller.1)).ln(),
        or(e.usual.and_then(|usual| between(usual, e.range))),
        or(before.zip(e.usual).map(|(before, usual)| (before - usual) / width)),
        or(e.longer_elsewhere),
        segments.ln(),
        or(e.usual_flight.map(|usual| (e.flight as f64 / usual.max(1.0)).min(20.0))),
        share(e.flight as f64, e.largest_flight as f64),
        e.position,
        or(rate.zip(plateau).map(|(rate, plateau)| share(rate, plateau))),
        or(rate_after.zip(plateau).map(|(rate, plateau)| share(rate, plateau))),
        or(e.slots),
        or(e.since.map(f64::ln_1p)),
        or(e.irregular),
        e.loss_rate,
        share(f64::from(e.octets), f64::from(e.mss)),
        flag(e.marked),
        flag(e.markable),
        or(e.silence.map(|silence| (silence / shortest.max(1e-3)).ln_1p())),
        flag(by_timer(e.trigger)),
        f64::from(e.transmission.min(8)),
        f64::from(e.others.0),
        e.others.1,
        flag(e.place == Place::Sender),
        flag(e.place == Place::Receiver),
        flag(e.seen),
        or(before.and_then(room)),
        or(after.and_then(room)),
        hazard(|(here, _)| here),
        hazard(|(_, below)| below),
        or(e.hazards.map(by_hazards)),
        or(before.and_then(|before| between(before, e.around))),
        or(between(e.around.0, e.range)),
        or(between(e.around.1, e.range)),
        f64::from(e.others_close),
        or(room(shortest)),
        or(e.ranks.map(|ranks| ranks.own)),
        or(others.map(|others| others.mean)),
        or(others.map(|others| others.quarter)),
        or(others.map(|others| (others.losses as f64).ln())),
    ];
    let mut all = [NONE as f32; COUNT];
    for (slot, value) in all.iter_mut().zip(own) {
        *slot = finite(value);
    }
    if let Some(live) = &e.live {
        all[OWN..].copy_from_slice(live);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::plain;

    #[test]
    fn every_number_has_a_name_and_is_finite() {
        assert_eq!(names().count(), ALL);
        let mut evidence = plain();
        assert!(all(&evidence).iter().all(|value| value.is_finite()));
        evidence.range = (f64::NAN, f64::INFINITY);
        evidence.rates = (Some(f64::INFINITY), Some(0.0), None);
        assert!(all(&evidence).iter().all(|value| value.is_finite()));
    }

    #[test]
    fn what_is_unknown_differs_from_what_is_nothing() {
        let mut evidence = plain();
        let known = vector(&evidence);
        evidence.trips = (None, None);
        let unknown = vector(&evidence);
        assert!((known[0] - 0.5).abs() < 1e-6 && (f64::from(unknown[0]) - NONE).abs() < 1e-6);
    }
}
