//! How probable each cause is: what shows by itself and the rarer causes by rules, links that were down and corruption against congestion as [`learned`].

use super::{blackout_expected, by_timer, fullness, learned};
use crate::cause::{Cause, Probabilities};
use crate::evidence::Evidence;
use crate::half::{Trigger, Unneeded};

/// How probable each cause is.
pub fn probabilities(evidence: &Evidence) -> Probabilities {
    if evidence.damaged {
        return Probabilities::certain(Cause::Corruption);
    }
    if let Some(unneeded) = evidence.unneeded {
        return Probabilities::from_weights(arrived(evidence, unneeded));
    }
    // Without a history of acknowledgements there is nothing that the models know of.
    let modelled = evidence.live.is_some();
    let silent = if modelled { learned::link_down(evidence) } else { silent(evidence) };
    let mut weights = Vec::with_capacity(8);
    let mut left = 1.0;
    let mut take = |cause, share: f64| {
        weights.push((cause, left * share));
        left *= 1.0 - share;
    };
    if evidence.beyond {
        take(Cause::Receiver, 0.9);
    } else if evidence.reneged {
        take(Cause::Receiver, 0.6);
    }
    take(Cause::LinkDown, silent);
    if let Some(policer) = &evidence.policer {
        // It drops what finds no tokens; other losses of its direction are as frequent as those that found some.
        take(Cause::Policer, policer.empty.clamp(0.0, 0.98));
    }
    take(Cause::Unknown, ignorance(evidence));
    let corruption = if modelled { learned::corruption(evidence) } else { corruption(evidence) };
    weights.extend([(Cause::Corruption, left * corruption), (Cause::Congestion, left * (1.0 - corruption))]);
    Probabilities::from_weights(weights)
}

/// It was not lost: overtaken, late, or its acknowledgement was lost.
fn arrived(evidence: &Evidence, unneeded: Unneeded) -> Vec<(Cause, f64)> {
    // A report of doubled data that came a whole round trip later answers the repair; nothing had answered the original.
    let answered_late = evidence.answered.is_some_and(|answered| answered >= 0.75 * evidence.range.0);
    match evidence.trigger {
        Trigger::TailProbe => vec![(Cause::AckLoss, 0.8), (Cause::SpuriousTimeout, 0.2)],
        trigger if by_timer(trigger) && unneeded == Unneeded::Dsack && answered_late => {
            vec![(Cause::AckLoss, 0.7), (Cause::SpuriousTimeout, 0.3)]
        }
        trigger if by_timer(trigger) => vec![(Cause::SpuriousTimeout, 0.95), (Cause::AckLoss, 0.05)],
        _ => vec![(Cause::Reordering, 0.95), (Cause::AckLoss, 0.05)],
    }
}

/// The probability that nothing passed at all.
fn silent(evidence: &Evidence) -> f64 {
    let Some((row, expected)) = evidence.blackout.zip(blackout_expected(evidence)) else { return 0.0 };
    // Some ten that should have passed are as likely a burst of errors; a full queue hardly refuses five.
    let mut logit = 2.5 * (expected.ln_1p() - 2.4);
    // Lost again after a timeout: the queue had long been empty.
    logit += if row.again > 0 { 1.5 } else { 0.0 };
    let trip = evidence.trips.0.unwrap_or(evidence.range.0).max(1e-4);
    if let Some(onset) = row.onset().filter(|_| evidence.seen) {
        // Where only data is lost, acknowledgements of what was sent before go on for a round trip.
        logit += if (0.9..1.1).contains(&(onset / trip)) { -1.0 } else { 0.5 };
    }
    logit += if evidence.rerouted { 2.0 } else { 0.0 };
    1.0 / (1.0 + (-logit).exp())
}

/// How little the capture knows, from 0 to 1.
fn ignorance(evidence: &Evidence) -> f64 {
    match (fullness(evidence), evidence.live) {
        (None, None) => 0.9,
        (None, Some(_)) => 0.5,
        (Some(_), _) if evidence.fuller.1 < 4 => 0.2,
        _ => 0.0,
    }
}

/// The probability of corruption, if it was this or congestion, by plain weights.
pub fn corruption(evidence: &Evidence) -> f64 {
    let mut logit = 0.0;
    if let Some(fullness) = fullness(evidence) {
        logit += 4.0 * (0.5 - fullness);
    }
    let (fuller, rounds) = evidence.fuller;
    if rounds > 0 {
        logit += 3.0 * (f64::from(fuller) / f64::from(rounds) - 0.25);
    }
    if let Some(longer) = evidence.longer_elsewhere {
        logit += 1.0 * (longer - 0.5);
    }
    if let Some(slots) = evidence.slots {
        // A segment that was lost behind the bottleneck leaves its place in the row empty (Biaz & Vaidya 1999).
        logit += 1.5 * (slots - 0.5).clamp(-1.0, 1.0);
    }
    if let Some(usual) = evidence.usual_flight.filter(|usual| *usual > 0.0) {
        logit += 1.5 * (1.0 - evidence.flight as f64 / usual).clamp(-1.0, 1.0);
    }
    let (others, by_chance) = evidence.others;
    logit -= (f64::from(others) - by_chance).clamp(0.0, 3.0);
    if evidence.marked {
        logit -= 1.5;
    } else if evidence.markable {
        logit += 1.0;
    }
    if evidence.damaged_elsewhere > 0 {
        logit += 1.5;
    }
    1.0 / (1.0 + (-logit).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::blackouts::{tests::lost, Blackouts};
    use crate::evidence::tests::plain;
    use crate::policer::Policer;
    use whyloss_transport::time::{Duration, Instant};

    fn likeliest(evidence: &Evidence) -> Cause {
        probabilities(evidence).likeliest()
    }

    #[test]
    fn a_full_queue_is_congestion_and_an_empty_one_corruption() {
        let mut evidence = plain();
        evidence.trips = (Some(0.058), Some(0.059));
        evidence.fuller = (1, 40);
        assert_eq!(likeliest(&evidence), Cause::Congestion);
        evidence.trips = (Some(0.021), Some(0.021));
        evidence.fuller = (35, 40);
        assert_eq!(likeliest(&evidence), Cause::Corruption);
        let alone = probabilities(&evidence).of(Cause::Congestion);
        evidence.others = (6, 0.2);
        assert!(probabilities(&evidence).of(Cause::Congestion) > alone + 0.2, "others lost at the same time");
    }

    #[test]
    fn what_arrived_is_no_loss() {
        let mut evidence = plain();
        evidence.unneeded = Some(Unneeded::Echo);
        evidence.trigger = Trigger::Timeout;
        assert_eq!(likeliest(&evidence), Cause::SpuriousTimeout);
        evidence.trigger = Trigger::Fast;
        assert_eq!(likeliest(&evidence), Cause::Reordering);
        evidence.trigger = Trigger::Timeout;
        evidence.unneeded = Some(Unneeded::Dsack);
        evidence.answered = Some(0.022);
        assert_eq!(likeliest(&evidence), Cause::AckLoss);
    }

    #[test]
    fn a_damaged_copy_a_policer_an_outage_and_a_window_say_it_themselves() {
        let mut evidence = plain();
        evidence.damaged = true;
        assert_eq!(probabilities(&evidence), Probabilities::certain(Cause::Corruption));
        let mut evidence = plain();
        evidence.policer = Some(Policer { rate: 1e6, bucket: 1e5, losses: 40, empty: 0.95 });
        assert_eq!(likeliest(&evidence), Cause::Policer);
        let mut evidence = plain();
        evidence.rates.1 = Some(100.0 * 1448.0);
        let row = |apart| {
            let mut blackouts = Blackouts::default();
            for order in 0..20 {
                let at = Instant::from_nanos(order * apart);
                let piece = lost(order, at);
                blackouts.on_lost(&piece, at, Duration::from_millis(40));
            }
            blackouts.of(&lost(3, Instant::ZERO))
        };
        // Two segments were to pass meanwhile: a queue does that.
        evidence.blackout = row(1_000_000);
        assert_ne!(likeliest(&evidence), Cause::LinkDown);
        evidence.blackout = row(20_000_000);
        assert_eq!(likeliest(&evidence), Cause::LinkDown);
        let mut evidence = plain();
        evidence.beyond = true;
        assert_eq!(likeliest(&evidence), Cause::Receiver);
    }

    #[test]
    fn who_knows_nothing_says_so() {
        let mut evidence = plain();
        evidence.trips = (None, None);
        assert_eq!(likeliest(&evidence), Cause::Unknown);
    }
}
