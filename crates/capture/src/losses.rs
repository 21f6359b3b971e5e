//! From what was sent again to what was lost, and why.

use crate::cause::{Cause, Probabilities};
use crate::causes;
use crate::connections::{Place, Side};
use crate::evidence::Suspect;
use crate::half::{Hole, Retransmission, Trigger, Unanswered, Unneeded};
use crate::replay::{Judges, Says, OFFLINE};
use crate::report::Loss;
use whyloss_transport::differentiation::Verdict;
use whyloss_transport::time::{Duration, Instant};

/// Losses of other connections are compared with what this time around would bring by chance.
const SURROUNDINGS: Duration = Duration::from_secs(5);
/// The longest time that counts as the same.
const SAME: Duration = Duration::from_millis(100);

/// The packet that `sent` repairs, of which only the repair itself tells.
pub fn repaired_by(connection: u64, side: Side, sent: &Retransmission) -> Loss {
    let (cause, evidence) = certain(sent);
    Loss {
        connection,
        side,
        packet: sent.before,
        at: Instant::from_nanos(sent.at.as_nanos().saturating_sub(sent.after.as_nanos())),
        offset: sent.start.saturating_sub(sent.first),
        octets: sent.len,
        repair: Some((sent.number, sent.at)),
        probabilities: Probabilities::certain(cause),
        evidence: evidence.into_iter().collect(),
        known: None,
        says: Vec::new(),
    }
}

/// A suspected loss of which more is known; its causes come with [`conclude`].
pub fn suspected(connection: u64, side: Side, suspect: Suspect) -> Loss {
    Loss {
        packet: suspect.number,
        at: suspect.at,
        known: Some(Box::new(suspect.evidence)),
        says: suspect.says,
        ..repaired_by(connection, side, &suspect.repair)
    }
}

/// What the capture has missed: data that it never saw, and that the receiver acknowledged.
pub fn missed(connection: u64, side: Side, hole: &Hole) -> Loss {
    Loss {
        connection,
        side,
        packet: None,
        at: hole.at,
        offset: hole.start.saturating_sub(hole.first),
        octets: hole.len.min(u64::from(u32::MAX)) as u32,
        repair: None,
        probabilities: Probabilities::certain(Cause::Capture),
        evidence: vec![format!("packet {} acknowledges it, and it never came to the capture", hole.number)],
        known: None,
        says: Vec::new(),
    }
}

/// What was sent, and neither acknowledged nor sent again.
pub fn unanswered(connection: u64, side: Side, left: &Unanswered) -> Loss {
    Loss {
        connection,
        side,
        packet: Some(left.number),
        at: left.at,
        offset: left.start.saturating_sub(left.first),
        octets: left.len.min(u64::from(u32::MAX)) as u32,
        repair: None,
        probabilities: Probabilities::certain(Cause::Unknown),
        evidence: vec![format!("nothing came in answer, though the capture goes on for {:.1} s", left.waited.as_secs_f64())],
        known: None,
        says: Vec::new(),
    }
}

fn certain(sent: &Retransmission) -> (Cause, Option<String>) {
    if sent.damaged {
        let packet = sent.before.unwrap_or_default();
        return (Cause::Corruption, Some(format!("packet {packet} came to the capture with a wrong checksum")));
    }
    let Some(unneeded) = sent.unneeded else { return (Cause::Unknown, None) };
    let shown = match unneeded {
        Unneeded::Dsack => "the receiver reported that it got the data twice",
        Unneeded::Echo => "the acknowledgement echoed the timestamp of the first copy",
        Unneeded::Acknowledged => "its data had been acknowledged before it came by",
        Unneeded::Behind => "the acknowledgement of what was sent again before it covered it, too: the receiver had it, and cannot say so without SACK",
        Unneeded::TooSoon => "the acknowledgement came too soon to be that of the second copy",
    };
    let cause = match sent.trigger {
        Trigger::Timeout | Trigger::BackedOff | Trigger::AfterTimeout => Cause::SpuriousTimeout,
        Trigger::TailProbe => Cause::AckLoss,
        _ => Cause::Reordering,
    };
    (cause, Some(shown.to_owned()))
}

/// Judges all losses of a capture, with what each connection shows and what others lost meanwhile. They are in the order of time afterwards.
///
/// `place` says where the capture was taken, seen from the sender of a direction.
pub fn conclude(losses: &mut [Loss], judges: Judges, place: &dyn Fn(u64, Side) -> Place) {
    losses.sort_by_key(|loss| (loss.at, loss.connection, loss.offset, loss.repair.map(|(number, _)| number)));
    let times: Vec<(Instant, u64, bool)> = losses
        .iter()
        .map(|loss| {
            (loss.at, loss.connection, loss.known.as_ref().is_some_and(|known| known.unneeded.is_none() && !known.damaged))
        })
        .collect();
    for (index, loss) in losses.iter_mut().enumerate() {
        let Some(known) = &mut loss.known else { continue };
        known.place = place(loss.connection, loss.side);
        let span = Duration::from_secs_f64(known.range.0).min(SAME);
        known.others = others(&times, index, span);
        known.others_close = others(&times, index, span.min(CLOSE)).0;
        loss.probabilities = causes::probabilities(known);
        loss.evidence = causes::words(known, &loss.probabilities);
        if judges.include(OFFLINE) {
            let verdict = Verdict::by_threshold(causes::learned::corruption(known), 0.5);
            loss.says.push(Says { name: OFFLINE, verdict });
        }
    }
}

/// The time in which a full queue refuses several.
const CLOSE: Duration = Duration::from_millis(5);

/// Losses of other connections within `span` of one, and how many there would be if they had nothing to do with it.
fn others(times: &[(Instant, u64, bool)], index: usize, span: Duration) -> (u32, f64) {
    /// So many of each side are looked at.
    const MOST: usize = 2000;
    let (at, connection, _) = times[index];
    let apart = |other: Instant| if other > at { other.since(at) } else { at.since(other) };
    let before = times[..index].iter().rev().take(MOST).take_while(|(other, ..)| apart(*other) <= SURROUNDINGS);
    let after = times[index + 1..].iter().take(MOST).take_while(|(other, ..)| apart(*other) <= SURROUNDINGS);
    let (mut near, mut around) = (0_u32, 0_u32);
    for (other, of, lost) in before.chain(after) {
        if *of == connection || !lost {
            continue;
        }
        if apart(*other) <= span {
            near += 1;
        } else {
            around += 1;
        }
    }
    let rest = SURROUNDINGS.as_secs_f64() - span.as_secs_f64();
    (near, f64::from(around) * span.as_secs_f64() / rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_others_at_the_same_time_are_more_than_chance() {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let times =
            [(at(9000), 1, true), (at(10_000), 0, true), (at(10_004), 1, true), (at(10_005), 2, true), (at(10_006), 0, true)];
        let (near, by_chance) = others(&times, 1, Duration::from_millis(20));
        assert_eq!(near, 2);
        assert!(by_chance > 0.0 && by_chance < 0.01, "{by_chance}");
    }
}
