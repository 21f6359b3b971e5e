//! What the comments of our own captures say: what really became of each packet. `docs/captures.md` has the clauses.

use crate::cause::Cause;
use crate::half::Trigger;
use whyloss_transport::time::{Duration, Instant};

/// What really became of a captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth {
    /// What became of it.
    pub fate: Fate,
    /// TCP sent it again.
    pub again: Option<Again>,
    /// It had been damaged before it came to the capture.
    pub damaged: bool,
    /// A link has made it, as a copy.
    pub copy: bool,
}

/// How a packet's journey ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reached its receiver.
    Delivered(Instant),
    /// It was lost.
    Lost(Instant, Cause),
    /// A middlebox or an operating system ended its journey.
    Taken(Instant),
    /// It was under way when everything ended, or nobody knew in time.
    Open,
}

/// A segment that was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// Why; [`Trigger::Unknown`] for what is none of a loss recovery: a probe of a closed window, an answer to a wish of the receiver.
    pub trigger: Trigger,
    /// Whether the receiver had no undamaged copy of it, if that is known.
    pub needed: Option<bool>,
    /// What the transmission before it was lost by, if it was.
    pub repairs: Option<Cause>,
}

impl Truth {
    /// Reads a comment; `None` if it is none of ours.
    pub fn read(comment: &str) -> Option<Self> {
        let mut clauses = comment.split("; ");
        let mut truth = Self { fate: fate(clauses.next()?)?, again: None, damaged: false, copy: false };
        for clause in clauses {
            if let Some(said) = clause.strip_prefix("retransmission: ") {
                let (trigger, needed) = match said.split_once(", ") {
                    Some((trigger, "needed")) => (trigger, Some(true)),
                    Some((trigger, "not needed")) => (trigger, Some(false)),
                    Some(_) => return None,
                    None => (said, None),
                };
                truth.again = Some(Again { trigger: self::trigger(trigger)?, needed, repairs: None });
            } else if let Some(cause) = clause.strip_prefix("repairs: ") {
                truth.again.as_mut()?.repairs = Some(self::cause(cause)?);
            } else if clause.starts_with("damaged by ") {
                truth.damaged = true;
            } else if clause == "copy made by a link" {
                truth.copy = true;
            } else if clause != "marked by a queue" && !clause.contains(" by the agent ") {
                return None;
            }
        }
        Some(truth)
    }
}

fn fate(clause: &str) -> Option<Fate> {
    if matches!(clause, "under way at the end" | "fate not known in time") {
        return Some(Fate::Open);
    }
    let (word, rest) = clause.split_once(" at ")?;
    let (at, rest) = rest.split_once(" s")?;
    let at = time(at)?;
    match (word, rest) {
        ("delivered", "") => Some(Fate::Delivered(at)),
        ("suppressed" | "refused", "") => Some(Fate::Taken(at)),
        ("lost", rest) => Some(Fate::Lost(at, cause(rest.strip_prefix(" on ")?.rsplit_once(": ")?.1)?)),
        _ => None,
    }
}

/// Seconds with nine decimals.
fn time(text: &str) -> Option<Instant> {
    let (seconds, nanos) = text.split_once('.')?;
    if nanos.len() != 9 {
        return None;
    }
    let nanos: u64 = nanos.parse().ok()?;
    let all = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    Some(Instant::ZERO + Duration::from_nanos(all))
}

/// What a simulator's cause is called here: a channel that erases or damages is corruption, stations that contend for the air are congestion.
fn cause(name: &str) -> Option<Cause> {
    Some(match name {
        "queue-full" | "aqm" | "collision" => Cause::Congestion,
        "policer" => Cause::Policer,
        "link-down" => Cause::LinkDown,
        "erased" | "ip-header-damaged" | "transport-header-damaged" | "payload-damaged" | "no-flow" | "no-route" => {
            Cause::Corruption
        }
        _ => return None,
    })
}

fn trigger(name: &str) -> Option<Trigger> {
    const ALL: [Trigger; 7] = [
        Trigger::Fast,
        Trigger::Recovery,
        Trigger::TailProbe,
        Trigger::Timeout,
        Trigger::BackedOff,
        Trigger::AfterTimeout,
        Trigger::Handshake,
    ];
    let found = ALL.into_iter().find(|trigger| trigger.name() == name);
    found.or_else(|| matches!(name, "window-probe" | "other").then_some(Trigger::Unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_sim::{Cause as Ended, Damage, Fate as Noted, Note};
    use whyloss_transport::tcp::RetransmissionTrigger;

    #[test]
    fn every_comment_that_is_written_is_read() {
        let at = 3_000_000_007;
        let link = "a: b>c";
        let lost = Ended::ALL.map(|cause| Noted::Lost { at, link, cause });
        let others = [Noted::Delivered { at }, Noted::Suppressed { at }, Noted::Refused { at }, Noted::UnderWay];
        let triggers = RetransmissionTrigger::ALL
            .into_iter()
            .flat_map(|trigger| [None, Some(true), Some(false)].map(|needed| (trigger, needed)));
        let again: Vec<_> = std::iter::once(None).chain(triggers.map(Some)).collect();
        for fate in lost.into_iter().chain(others).map(Some).chain([None]) {
            for retransmission in &again {
                for (damage, copy, marked) in [(None, false, false), (Some(Damage { link, bits: 2, first: 7 }), true, true)] {
                    let repairs = retransmission.filter(|_| copy).map(|_| Ended::Aqm);
                    let agent = copy.then_some(("made", "snoop"));
                    let note = Note { fate, retransmission: *retransmission, repairs, damage, copy, marked, agent };
                    let truth = Truth::read(&note.to_string()).unwrap_or_else(|| panic!("{note}"));
                    let needed = retransmission.and_then(|(_, needed)| needed);
                    assert_eq!((truth.damaged, truth.copy), (copy, copy));
                    assert_eq!(truth.again.is_some(), retransmission.is_some());
                    assert_eq!(truth.again.and_then(|again| again.needed), needed);
                    assert_eq!(truth.again.and_then(|again| again.repairs), repairs.map(|_| Cause::Congestion));
                    let named = |trigger: RetransmissionTrigger| trigger.name();
                    if let (Some((said, _)), Some(read)) = (retransmission, truth.again) {
                        assert!(read.trigger == Trigger::Unknown || read.trigger.name() == named(*said));
                    }
                    match (fate, truth.fate) {
                        (Some(Noted::Lost { at, .. }), Fate::Lost(read, cause)) => {
                            assert_eq!(read.as_nanos(), at);
                            assert!(matches!(cause, Cause::Congestion | Cause::Policer | Cause::Corruption | Cause::LinkDown));
                        }
                        (Some(Noted::Delivered { at }), Fate::Delivered(read))
                        | (Some(Noted::Suppressed { at } | Noted::Refused { at }), Fate::Taken(read)) => {
                            assert_eq!(read.as_nanos(), at);
                        }
                        (Some(Noted::UnderWay) | None, Fate::Open) => {}
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
    }

    #[test]
    fn other_comments_are_not_ours() {
        for text in [
            "",
            "slow here",
            "lost at home",
            "lost at 1.5 s on a>b: queue-full",
            "lost at 1.500000000 s on a>b: bad luck",
            "delivered at 1.500000000 s, I think",
            "delivered at 99999999999999.500000000 s",
            "delivered at 1.500000000 s; retransmission: why",
            "delivered at 1.500000000 s; repairs: aqm",
            "delivered at 1.500000000 s; and more",
        ] {
            assert_eq!(Truth::read(text), None, "{text}");
        }
    }
}
