//! The engine's differentiators over a capture: they hear, through the same traits, what they would hear in a connection.

use crate::half::Kind;
use crate::headers::Segment;
use crate::scoreboard::{Piece, Scoreboard};
use std::collections::{BTreeMap, VecDeque};
use whyloss_transport::arrival::{Arrival, Gap, ReceiveView};
use whyloss_transport::differentiation::{self, GapDifferentiator, LossDifferentiator, Verdict};
use whyloss_transport::estimate::OneWay;
use whyloss_transport::kit::{Arguments, Part};
use whyloss_transport::path::{Ack, Loss, Sent};
use whyloss_transport::segment::Timestamps;
use whyloss_transport::time::Instant;
use whyloss_transport::{Segment as Parsed, Seq};

/// Differentiators that judge by what a capture does not have: the truth, chance, or what the receiver, the routers or the engine's own
/// connections would have to say in options.
const LEFT_OUT: [&str; 11] =
    ["none", "oracle", "coin", "reported", "hack", "tcp-real", "tcp-real-2004", "eln", "ack-hop", "ceten", "syndrome"];
/// Gaps whose verdicts are remembered until a repair shows that they were losses.
const MAX_GAPS: usize = 64;

/// What a differentiator said of a loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Says {
    /// Its name.
    pub name: &'static str,
    /// Its verdict.
    pub verdict: Verdict,
}

/// The differentiator that is made for captures, and knows what came later.
pub const OFFLINE: &str = "learned-offline";

/// The names of all differentiators that can judge a capture.
pub fn names() -> impl Iterator<Item = &'static str> {
    at_ends().chain([OFFLINE])
}

/// Those of the engine.
fn at_ends() -> impl Iterator<Item = &'static str> {
    let at_sender = differentiation::TABLE.iter().map(|part| part.name);
    let at_receiver = differentiation::AT_RECEIVER.iter().map(|part| part.name);
    at_sender.chain(at_receiver).filter(|name| !LEFT_OUT.contains(name))
}

/// Which differentiators judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judges {
    /// None of them.
    #[default]
    None,
    /// The one of this name.
    One(&'static str),
    /// All that can.
    All,
}

impl Judges {
    /// The one called `name`; `None` if it is none of [`names`].
    pub fn named(name: &str) -> Option<Self> {
        names().find(|known| *known == name).map(Self::One)
    }

    /// Whether the one called `name` is among them.
    pub fn include(self, name: &str) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => one == name,
            Self::All => !LEFT_OUT.contains(&name),
        }
    }
}

/// Differentiators that judge the losses of one direction.
#[derive(Debug, Default)]
pub struct Panel {
    at_sender: Vec<(&'static str, Box<dyn LossDifferentiator>)>,
    at_receiver: Vec<(&'static str, Box<dyn GapDifferentiator>)>,
    gaps: VecDeque<(Gap, Vec<Says>)>,
    one_way: OneWay,
    last_arrival: Option<Instant>,
    first: Option<u64>,
}

impl Panel {
    /// With these.
    pub fn of(judges: Judges) -> Self {
        let at_sender = differentiation::TABLE.iter().filter(|part| judges.include(part.name));
        let at_receiver = differentiation::AT_RECEIVER.iter().filter(|part| judges.include(part.name));
        Self {
            at_sender: at_sender.map(|part| (part.name, with_defaults(part))).collect(),
            at_receiver: at_receiver.map(|part| (part.name, with_defaults(part))).collect(),
            ..Self::default()
        }
    }

    /// Octets that they take, about.
    pub fn octets(&self) -> usize {
        /// What a differentiator remembers of a connection.
        const ONE: usize = 1 << 10;
        let judges = self.at_sender.len() + self.at_receiver.len();
        let gap = size_of::<(Gap, Vec<Says>)>() + self.at_receiver.len() * size_of::<Says>();
        judges * ONE + self.gaps.capacity() * gap
    }

    /// Octets of what they say of a loss.
    pub fn octets_of_a_loss(&self) -> usize {
        (self.at_sender.len() + self.at_receiver.len()) * size_of::<Says>()
    }

    /// A segment of the direction came to the capture; the scoreboard does not know it yet.
    pub fn on_segment(&mut self, board: &Scoreboard, segment: &Segment, kind: Kind) {
        if self.at_receiver.is_empty() || segment.len == 0 || segment.is_damaged() {
            return;
        }
        let start = board.position(segment.seq);
        let path = board.path();
        let first = *self.first.get_or_insert(start);
        let full = path.mss.max(segment.len);
        let missing = start.saturating_sub(path.nxt);
        let gap = (kind == Kind::New && missing > 0 && path.nxt > first)
            .then(|| Gap::new(path.nxt, start, missing.div_ceil(u64::from(full)) as u32));
        let mut parsed = Parsed { seq: Seq(segment.seq), ..Parsed::default() };
        parsed.options.timestamps = segment.options.timestamps.map(|(value, echo)| Timestamps { value, echo });
        let mut view = ReceiveView::new(segment.at, path.una.max(first));
        (view.first, view.full_segment) = (first, full);
        let mut arrival = Arrival::new(view, &parsed, start, segment.len);
        arrival.duplicate = start + u64::from(segment.len) <= path.una;
        arrival.spacing =
            self.last_arrival.replace(segment.at).filter(|last| segment.at >= *last).map(|last| segment.at.since(last));
        if let Some((value, _)) = segment.options.timestamps {
            self.one_way.on_timestamp(segment.at, value);
            arrival.trip = self.one_way.trip(segment.at, value);
        }
        arrival.gap = gap;
        self.at_receiver.iter_mut().for_each(|(_, differentiator)| differentiator.on_arrival(&arrival));
        if let Some(gap) = gap {
            let says = self
                .at_receiver
                .iter_mut()
                .map(|(name, differentiator)| Says { name, verdict: differentiator.judge(&gap, &arrival) });
            let says = says.collect();
            if self.gaps.len() == MAX_GAPS {
                self.gaps.pop_front();
            }
            self.gaps.push_back((gap, says));
        }
    }

    /// A segment left.
    pub fn on_sent(&mut self, sent: &Sent) {
        self.at_sender.iter_mut().for_each(|(_, differentiator)| differentiator.on_sent(sent));
    }

    /// An acknowledgement came.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.at_sender.iter_mut().for_each(|(_, differentiator)| differentiator.on_ack(ack));
    }

    /// What each says of each of these, which are taken for lost at this moment.
    pub fn judge(&mut self, losses: &[(Loss, Piece)]) -> Vec<Vec<Says>> {
        if self.at_sender.is_empty() && self.at_receiver.is_empty() {
            return vec![Vec::new(); losses.len()];
        }
        let found: Vec<Loss> = losses.iter().map(|(loss, _)| *loss).collect();
        self.at_sender.iter_mut().for_each(|(_, differentiator)| differentiator.on_found(&found));
        let mut says: Vec<Vec<Says>> = Vec::with_capacity(found.len());
        for loss in &found {
            let mut own: Vec<Says> = self
                .at_sender
                .iter_mut()
                .map(|(name, differentiator)| Says { name, verdict: differentiator.judge(loss) })
                .collect();
            // A gap tells of the first transmission alone.
            let gap =
                self.gaps.iter().rev().find(|(gap, _)| loss.transmission == 0 && gap.start <= loss.start && loss.start < gap.end);
            match gap {
                Some((_, of_gap)) => own.extend(of_gap),
                None => own.extend(self.at_receiver.iter().map(|(name, _)| Says { name, verdict: Verdict::UNKNOWN })),
            }
            says.push(own);
        }
        says
    }
}

fn with_defaults<T: ?Sized>(part: &Part<T>) -> Box<T> {
    let defaults = Arguments::check(part, &BTreeMap::new()).expect("defaults are allowed");
    part.build(&defaults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_make_a_panel_and_no_other_does() {
        let panel = Panel::of(Judges::All);
        assert_eq!(panel.at_sender.len() + panel.at_receiver.len() + 1, names().count());
        assert!(panel.at_receiver.len() > 3 && panel.at_sender.iter().any(|(name, _)| *name == "learned"));
        assert!(Judges::named("oracle").is_none() && Judges::named("nothing").is_none());
        assert_eq!(Panel::of(Judges::named("veno").expect("it is one")).at_sender.len(), 1);
        assert!(Panel::of(Judges::None).at_sender.is_empty());
        let parts =
            differentiation::TABLE.iter().map(|part| part.name).chain(differentiation::AT_RECEIVER.iter().map(|part| part.name));
        let parts: Vec<_> = parts.collect();
        assert!(LEFT_OUT.iter().all(|name| parts.contains(name)), "{parts:?}");
    }
}
