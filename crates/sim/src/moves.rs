//! Hosts that move from one of their links to another, as a mobile host from one base station to the next.

use crate::address::LinkId;
use crate::error::Flaw;
use crate::outage::Outage;
use whyloss_transport::{BitRate, Duration, Instant};

/// A host leaves the link that it is attached to and attaches to another of its own. It is attached to one at a time, before its first move to
/// the one that was added first; the others are down. Routes change everywhere at the moment in which it is attached to the new one.
// `L` is what names a link: its number, or its name in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Move"))]
pub struct Move<L = LinkId> {
    /// When it leaves the link that it is attached to. What that link still transmits is lost.
    pub at: Instant,
    /// The link that it attaches to.
    pub link: L,
    /// How long it is attached to none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub away: Duration,
    /// How long what an agent of the old link hands over is on its way to the agent of the same kind of the new one, beside `state_rate`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub state_delay: Duration,
    /// The rate at which it is sent there, one flow after the other; in no time if nothing is said.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub state_rate: Option<BitRate>,
}

/// The most moves of one host.
const MOST: usize = 10_000;

impl<L: PartialEq> Move<L> {
    /// A move in no time.
    pub const fn new(at: Instant, link: L) -> Self {
        Self { at, link, away: Duration::ZERO, state_delay: Duration::ZERO, state_rate: None }
    }

    /// The same to a link that is named in another way.
    pub fn placed<K>(&self, link: K) -> Move<K> {
        let Self { at, away, state_delay, state_rate, .. } = *self;
        Move { at, link, away, state_delay, state_rate }
    }

    /// When it is attached to its new link.
    pub fn attached(&self) -> Instant {
        self.at + self.away
    }

    /// What makes no sense in the moves of a host that is attached to `first` at the beginning, and in which of them.
    pub fn flaw(first: &L, moves: &[Self]) -> Option<(usize, Flaw)> {
        if moves.len() > MOST {
            return Some((MOST, ("move", moves.len().to_string(), "at most 10,000 moves of a host")));
        }
        let mut before = (first, Instant::ZERO);
        for (number, step) in moves.iter().enumerate() {
            let flaw = match step {
                _ if step.at < before.1 => ("at", step.at.to_string(), "a time at which the move before is over"),
                _ if step.link == *before.0 => ("link", "the link that it is attached to".to_owned(), "another one"),
                _ if step.state_rate == Some(BitRate::from_bps(0)) => ("state_rate", "0 bps".to_owned(), "a rate above 0 bps"),
                _ => {
                    before = (&step.link, step.attached());
                    continue;
                }
            };
            return Some((number, flaw));
        }
        None
    }
}

/// When each of a host's links is down because the host is attached to another.
pub(crate) fn outages(links: &[LinkId], moves: &[Move]) -> Vec<(LinkId, Outage)> {
    let mut found = Vec::new();
    let mut down = |link: LinkId, from: Instant, to: Instant| {
        if from < to {
            found.push((link, Outage::once(from, to.since(from))));
        }
    };
    let Some((&first, others)) = links.split_first() else { return Vec::new() };
    let mut left: Vec<_> = others.iter().map(|link| (*link, Instant::ZERO)).collect();
    let mut attached = first;
    for step in moves {
        left.push((attached, step.at));
        if let Some(place) = left.iter().position(|(link, _)| *link == step.link) {
            let (link, from) = left.swap_remove(place);
            down(link, from, step.attached());
        }
        attached = step.link;
    }
    for (link, from) in left {
        down(link, from, Instant::MAX);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn step(seconds: u64, link: usize) -> Move {
        Move { away: Duration::from_secs(2), ..Move::new(at(seconds), LinkId::new(link)) }
    }

    #[test]
    fn a_link_is_down_while_its_host_is_elsewhere() {
        let links = [3, 5, 7].map(LinkId::new);
        let mut found: Vec<_> = outages(&links, &[step(10, 5), step(20, 3)])
            .into_iter()
            .map(|(link, outage)| {
                (link.index(), outage.at.as_nanos() / 1_000_000_000, outage.lasts.mean().as_nanos() / 1_000_000_000)
            })
            .collect();
        found.sort_unstable();
        let end = u64::MAX / 1_000_000_000;
        assert_eq!(found, [(3, 10, 12), (5, 0, 12), (5, 20, end - 20), (7, 0, end)]);
    }

    #[test]
    fn a_move_at_the_very_beginning_leaves_no_outage_of_no_length() {
        let links = [0, 1].map(LinkId::new);
        let found = outages(&links, &[Move::new(Instant::ZERO, LinkId::new(1))]);
        assert_eq!(found.iter().map(|(link, _)| link.index()).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn senseless_moves_are_found() {
        let flaw = |moves: &[Move]| Move::flaw(&LinkId::new(0), moves).map(|(number, (field, ..))| (number, field));
        assert_eq!(flaw(&[step(10, 1), step(12, 0)]), None);
        assert_eq!(flaw(&[step(10, 1), step(11, 0)]), Some((1, "at")), "still on its way");
        assert_eq!(flaw(&[step(10, 0)]), Some((0, "link")));
        assert_eq!(flaw(&[step(10, 1), step(20, 1)]), Some((1, "link")));
        assert_eq!(flaw(&[Move { state_rate: Some(BitRate::from_bps(0)), ..step(1, 1) }]), Some((0, "state_rate")));
        let many: Vec<_> = (0..=MOST).map(|n| Move::new(at(n as u64), LinkId::new(1 - n % 2))).collect();
        assert_eq!((flaw(&many), flaw(&many[1..])), (Some((MOST, "move")), Some((0, "link"))));
        assert_eq!(flaw(&many[..MOST]), None);
    }
}
