//! Evidence in words and numbers.

use super::{blackout_expected, fullness};
use crate::cause::{Cause, Probabilities};
use crate::evidence::Evidence;
use crate::half::Unneeded;
use std::fmt::Write;

/// Parts of the evidence with how much each weighs.
type Parts = Vec<(f64, String)>;

/// What the evidence for the likeliest cause is, the weightiest first; what is missing, if that cause is none.
pub fn words(evidence: &Evidence, probabilities: &Probabilities) -> Vec<String> {
    let mut parts = Parts::new();
    let cause = probabilities.likeliest();
    if evidence.damaged {
        parts.push((10.0, "this copy of it came to the capture damaged".to_owned()));
    } else if evidence.damaged_elsewhere > 0 {
        parts.push((1.0, format!("{} other segments of this direction came damaged", evidence.damaged_elsewhere)));
    }
    if let Some(unneeded) = evidence.unneeded {
        parts.push((10.0, unneeded_words(unneeded, evidence)));
    } else {
        queue(evidence, &mut parts);
        flight(evidence, &mut parts);
        others(evidence, &mut parts);
        rest(evidence, &mut parts);
    }
    if cause == Cause::Unknown {
        parts.push((5.0, missing(evidence)));
    }
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    parts.into_iter().map(|(_, words)| words).collect()
}

fn unneeded_words(unneeded: Unneeded, evidence: &Evidence) -> String {
    match (unneeded, evidence.answered) {
        (Unneeded::Acknowledged, _) => "its data had been acknowledged before it came by".to_owned(),
        (Unneeded::Dsack, _) => "the receiver reported that it got the data twice".to_owned(),
        (Unneeded::Echo, _) => "the acknowledgement echoed the timestamp of the first copy".to_owned(),
        (Unneeded::Behind, _) => {
            "the acknowledgement of what was sent again before it covered it, too: the receiver had it, and cannot say so without SACK"
                .to_owned()
        }
        (Unneeded::TooSoon, Some(answered)) => format!(
            "the acknowledgement came {} after the second copy, too soon to be its own: the shortest round trip is {}",
            time(answered),
            time(evidence.range.0)
        ),
        (Unneeded::TooSoon, None) => "the acknowledgement came too soon to be that of the second copy".to_owned(),
    }
}

fn queue(evidence: &Evidence, parts: &mut Parts) {
    let (shortest, longest) = evidence.range;
    if let (Some(before), Some(fullness)) = (evidence.trips.0, fullness(evidence)) {
        let mut said =
            format!("round trip {} when it was sent, {} at best and {} at worst", time(before), time(shortest), time(longest));
        if let (Some(rate), true) = (evidence.rates.1, before > shortest * 1.05) {
            write!(said, ": about {} were queued", octets((before - shortest) * rate)).expect("a string takes all");
        }
        parts.push((2.0 + 4.0 * (fullness - 0.5).abs(), said));
        if let Some(relieved) = evidence.relieved.filter(|relieved| *relieved < before - (longest - shortest) * 0.2) {
            parts.push((2.0, format!("it fell to {} once the sender had noticed", time(relieved))));
        }
    }
    let (fuller, rounds) = evidence.fuller;
    if rounds >= 4 && evidence.trips.0.is_some() {
        let share = f64::from(fuller) / f64::from(rounds);
        parts.push((1.0 + 2.0 * share, format!("the delay went higher in {fuller} of {rounds} rounds without loss")));
    }
    if let (Some(usual), Some(before)) = (evidence.usual, evidence.trips.0) {
        if (usual - before).abs() > (longest - shortest) * 0.2 {
            parts.push((1.0, format!("the direction's other losses came at {} in the median", time(usual))));
        }
    }
}

fn flight(evidence: &Evidence, parts: &mut Parts) {
    let segments = (evidence.flight as f64 / f64::from(evidence.mss.max(1))).ceil().max(1.0);
    let lost = f64::from(evidence.together).min(segments.max(1.0));
    parts.push((1.5, format!("lost {lost} of {segments} in this flight")));
    if let Some(row) = &evidence.blackout {
        let mut said = format!("{} were lost one after the other", row.count);
        let weight = match blackout_expected(evidence) {
            Some(expected) if expected >= 2.0 => {
                write!(said, " in {}, in which the path passes {expected:.0}", time(row.span().as_secs_f64()))
                    .expect("a string takes all");
                4.0
            }
            _ => 1.0,
        };
        parts.push((weight, said));
    }
    if let Some(usual) = evidence.usual_flight {
        let share = evidence.flight as f64 / usual.max(1.0);
        if !(0.67..=1.5).contains(&share) {
            let (flight, usual) = (octets(evidence.flight as f64), octets(usual));
            parts.push((1.2, format!("{flight} were under way, at its other losses {usual} in the median")));
        }
    }
}

fn others(evidence: &Evidence, parts: &mut Parts) {
    let (others, by_chance) = evidence.others;
    if f64::from(others) > by_chance + 0.5 {
        let packets = if others == 1 { "packet" } else { "packets" };
        parts.push((
            2.5,
            format!("other connections lost {others} {packets} within a round trip of it (chance would bring {by_chance:.1})"),
        ));
    }
}

fn rest(evidence: &Evidence, parts: &mut Parts) {
    if let Some(policer) = &evidence.policer {
        parts.push((
            6.0,
            format!(
                "{:.0} % of {} losses found the bucket of a policer of {} empty, and nothing was late",
                policer.empty * 100.0,
                policer.losses,
                rate(policer.rate)
            ),
        ));
    }
    if let Some(silence) = evidence.silence {
        parts.push((3.0, format!("for {} nothing came back", time(silence))));
    }
    if evidence.rerouted {
        parts.push((3.0, "the hop limit changed around it: another way".to_owned()));
    }
    if evidence.beyond {
        parts.push((6.0, "it lay beyond the window that the receiver had announced".to_owned()));
    }
    if evidence.reneged {
        parts.push((4.0, "the receiver had acknowledged it selectively before".to_owned()));
    }
    if evidence.marked {
        parts.push((3.0, "routers marked congestion within a round trip".to_owned()));
    } else if evidence.markable {
        parts.push((1.0, "routers could have marked it and marked nothing near it".to_owned()));
    }
    if let Some(slots) = evidence.slots {
        if slots > 0.6 {
            parts.push((1.8, "its place in the row of arrivals was left empty".to_owned()));
        } else if slots < 0.3 {
            parts.push((1.8, "the next arrivals closed up: it left no place empty".to_owned()));
        }
    }
    if evidence.transmission > 0 {
        parts.push((0.8, format!("it had been sent {} times", evidence.transmission + 1)));
    }
}

fn missing(evidence: &Evidence) -> String {
    if evidence.trips.0.is_none() {
        "what is missing: a round trip measured before it".to_owned()
    } else if evidence.fuller.1 < 4 {
        "what is missing: a longer history of the connection".to_owned()
    } else {
        "what is missing: a delay that varies, or anything else that tells".to_owned()
    }
}

fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 9.95e-3 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

fn octets(count: f64) -> String {
    match count {
        _ if count < 1e3 => format!("{count:.0} B"),
        _ if count < 1e6 => format!("{:.0} kB", count / 1e3),
        _ => format!("{:.1} MB", count / 1e6),
    }
}

fn rate(octets: f64) -> String {
    match octets * 8.0 {
        bits if bits < 1e6 => format!("{:.0} kbit/s", bits / 1e3),
        bits => format!("{:.1} Mbit/s", bits / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::tests::plain;

    #[test]
    fn evidence_has_words_and_numbers() {
        let mut evidence = plain();
        evidence.trips = (Some(0.048), Some(0.049));
        evidence.range = (0.022, 0.05);
        evidence.rates.1 = Some(1.2e6);
        (evidence.flight, evidence.together, evidence.others) = (41 * 1448, 3, (2, 0.1));
        let said = words(&evidence, &Probabilities::certain(Cause::Congestion)).join("; ");
        for part in
            ["round trip 48 ms", "22 ms at best", "about 31 kB were queued", "lost 3 of 41", "other connections lost 2 packets"]
        {
            assert!(said.contains(part), "{part} is not in: {said}");
        }
    }

    #[test]
    fn unknown_says_what_is_missing() {
        let mut evidence = plain();
        evidence.trips = (None, None);
        let said = words(&evidence, &Probabilities::certain(Cause::Unknown));
        assert!(said[0].contains("missing: a round trip"), "{said:?}");
    }
}
