//! What became of each packet, for as long as a capture has to say so.

use super::comment::{Fate, Note};
use crate::address::{DirectionId, EndpointId};
use crate::truth::Cause;
use std::collections::BTreeMap;
use whyloss_transport::tcp::RetransmissionTrigger;

/// Marks the number of a packet that a link has made as a copy.
const COPY: u32 = 1 << 31;

/// A range of positions in a stream of sequence numbers.
type Range = (u64, u64);

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub from: EndpointId,
    /// What it takes of the sender's sequence numbers; nothing unless TCP sent it.
    pub range: Range,
    /// TCP sent it again, and why.
    pub trigger: Option<RetransmissionTrigger>,
}

/// How the journey of a packet ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Delivered,
    Lost(Cause, DirectionId),
    Suppressed,
}

/// A transmission: a packet, and the copies that links make of it.
#[derive(Clone, Copy, Debug)]
struct Journey {
    sending: Sending,
    /// Its place in the order of all that were sent.
    number: u64,
    /// Packets of it that have not ended.
    open: u32,
    /// Records that wait for its fate.
    held: u32,
    /// The first arrival or suppression, else the last loss.
    ended: Option<(u64, Ended)>,
    /// The receiver had no copy of all of it.
    needed: Option<bool>,
    /// What the transmission before it was lost by, when it left.
    repairs: Option<Cause>,
    /// Whether it was needed hangs on others.
    undecided: bool,
}

/// What one endpoint has sent.
#[derive(Debug, Default)]
struct Stream {
    /// What its peer has got undamaged.
    received: Ranges,
    /// What is under way, by the order in which it was sent.
    under_way: BTreeMap<u64, Range>,
    /// What was lost and has not arrived since, by its first position: where it ends, and by what it was lost last.
    lost: BTreeMap<u64, (u64, Cause)>,
    /// Retransmissions that were lost while something sent before was under way: what that may still bring.
    undecided: Vec<(u32, u64, Ranges)>,
}

/// All packets that are under way or that a record waits for.
#[derive(Debug, Default)]
pub(crate) struct Journeys {
    all: Vec<Journey>,
    free: Vec<u32>,
    sent: u64,
    streams: Vec<Stream>,
}

impl Journeys {
    /// Those of so many endpoints.
    pub fn new(endpoints: usize) -> Self {
        Self { streams: std::iter::repeat_with(Stream::default).take(endpoints).collect(), ..Self::default() }
    }

    /// A packet leaves. Returns the number that it is known by.
    pub fn begin(&mut self, sending: Sending) -> u32 {
        self.sent += 1;
        let number = self.sent;
        let mut repairs = None;
        if sending.range.0 < sending.range.1 {
            let stream = &mut self.streams[sending.from.index()];
            stream.under_way.insert(number, sending.range);
            repairs = sending.trigger.and_then(|_| stream.lost_before(sending.range));
        }
        let journey = Journey { sending, number, open: 1, held: 0, ended: None, needed: None, repairs, undecided: false };
        if let Some(free) = self.free.pop() {
            self.all[free as usize] = journey;
            return free;
        }
        self.all.push(journey);
        self.all.len() as u32 - 1
    }

    /// A link has made a copy of a packet. Returns the number of the copy.
    pub fn copy(&mut self, id: u32) -> u32 {
        self.all[(id & !COPY) as usize].open += 1;
        id | COPY
    }

    /// A packet has come to its end at `now`.
    pub fn end(&mut self, id: u32, now: u64, how: Ended) {
        let index = (id & !COPY) as usize;
        let journey = &mut self.all[index];
        journey.open -= 1;
        let over = journey.open == 0;
        match (journey.ended, how) {
            (Some((_, Ended::Delivered | Ended::Suppressed)), _) => {}
            (_, Ended::Lost(..)) if !over => {}
            _ => journey.ended = Some((now, how)),
        }
        let Journey { sending: Sending { from, range, trigger }, number, ended, .. } = *journey;
        if range.0 < range.1 {
            let stream = &mut self.streams[from.index()];
            if over {
                stream.under_way.remove(&number);
            }
            match ended {
                Some((_, Ended::Lost(cause, _))) if over && !stream.received.covers(range) => {
                    stream.lost.insert(range.0, (range.1, cause));
                }
                _ => {}
            }
            match how {
                Ended::Delivered => {
                    let journey = &mut self.all[index];
                    if trigger.is_some() && journey.needed.is_none() {
                        journey.needed = Some(!stream.received.covers(range));
                    }
                    stream.received.add(range);
                    stream.forget_losses(range);
                    for (_, later, missing) in &mut stream.undecided {
                        if *later > number {
                            missing.remove(range);
                        }
                    }
                }
                Ended::Lost(..) if over && trigger.is_some() && journey.needed.is_none() => {
                    let missing = stream.received.missing(range);
                    journey.undecided = true;
                    stream.undecided.push((index as u32, number, missing));
                }
                _ => {}
            }
            // One that is decided here and now has its last reader in this call.
            self.all[index].held += 1;
            self.decide(from);
            self.all[index].held -= 1;
        }
        self.forget_if_done(index);
    }

    /// Decides which lost retransmissions were needed, as far as that is clear.
    fn decide(&mut self, from: EndpointId) {
        let Stream { under_way, undecided, .. } = &mut self.streams[from.index()];
        let is_open = |(_, number, missing): &(u32, u64, Ranges)| {
            !missing.is_empty() && under_way.range(..number).any(|(_, range)| missing.overlaps(*range))
        };
        if undecided.iter().all(is_open) {
            return;
        }
        let (open, decided): (Vec<_>, Vec<_>) = std::mem::take(undecided).into_iter().partition(is_open);
        *undecided = open;
        for (index, _, missing) in decided {
            let journey = &mut self.all[index as usize];
            (journey.needed, journey.undecided) = (Some(!missing.is_empty()), false);
            self.forget_if_done(index as usize);
        }
    }

    /// A record waits for the fate of the packet.
    pub fn hold(&mut self, id: u32) {
        self.all[(id & !COPY) as usize].held += 1;
    }

    /// Whether everything is known that a record has to say.
    pub fn is_settled(&self, id: u32) -> bool {
        let journey = &self.all[(id & !COPY) as usize];
        journey.open == 0 && !journey.undecided
    }

    /// What is known for a record of the packet, which waits no longer. `over`: there is nothing to wait for any more. `links` are the names of
    /// link directions.
    pub fn release<'a>(&mut self, id: u32, links: &'a [String], over: bool) -> Note<'a> {
        let index = (id & !COPY) as usize;
        let journey = &mut self.all[index];
        journey.held -= 1;
        let fate = match journey.ended {
            Some((at, Ended::Delivered)) => Some(Fate::Delivered { at }),
            Some((at, Ended::Suppressed)) => Some(Fate::Suppressed { at }),
            Some((at, Ended::Lost(cause, direction))) => Some(Fate::Lost { at, link: &links[direction.index()], cause }),
            None => over.then_some(Fate::UnderWay),
        };
        let retransmission = journey.sending.trigger.map(|trigger| (trigger, journey.needed));
        let note = Note { fate, retransmission, repairs: journey.repairs, copy: id & COPY != 0, ..Note::default() };
        self.forget_if_done(index);
        note
    }

    fn forget_if_done(&mut self, index: usize) {
        let journey = &self.all[index];
        if journey.open == 0 && journey.held == 0 && !journey.undecided {
            self.free.push(index as u32);
        }
    }
}

impl Stream {
    /// What a transmission of some of this was lost by, if it has not arrived since.
    fn lost_before(&self, (start, end): Range) -> Option<Cause> {
        let (_, (last, cause)) = self.lost.range(..end).next_back()?;
        (*last > start).then_some(*cause)
    }

    /// This has arrived: what was lost of it is repaired.
    fn forget_losses(&mut self, (start, end): Range) {
        while let Some((&first, &(last, cause))) = self.lost.range(..end).next_back().filter(|(_, (last, _))| *last > start) {
            self.lost.remove(&first);
            if first < start {
                self.lost.insert(first, (start, cause));
            }
            if last > end {
                self.lost.insert(end, (last, cause));
            }
        }
    }
}

/// A set of positions, as ranges that do not touch.
#[derive(Clone, Debug, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last of those that begin before `position`.
    fn before(&self, position: u64) -> Option<Range> {
        self.0.range(..position).next_back().map(|(start, end)| (*start, *end))
    }

    fn covers(&self, (start, end): Range) -> bool {
        self.before(start + 1).is_some_and(|(_, covered)| covered >= end)
    }

    fn overlaps(&self, (start, end): Range) -> bool {
        self.before(end).is_some_and(|(_, last)| last > start)
    }

    fn add(&mut self, (mut start, mut end): Range) {
        while let Some(other) = self.before(end + 1).filter(|other| other.1 >= start) {
            self.0.remove(&other.0);
            (start, end) = (start.min(other.0), end.max(other.1));
        }
        self.0.insert(start, end);
    }

    fn remove(&mut self, (start, end): Range) {
        while let Some(other) = self.before(end).filter(|other| other.1 > start) {
            self.0.remove(&other.0);
            if other.0 < start {
                self.0.insert(other.0, start);
            }
            if other.1 > end {
                self.0.insert(end, other.1);
            }
        }
    }

    /// What of `range` is not in it.
    fn missing(&self, range: Range) -> Self {
        let mut missing = Self::default();
        missing.add(range);
        let mut at = range.1;
        while let Some(other) = self.before(at).filter(|other| other.1 > range.0) {
            missing.remove(other);
            at = other.0;
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{FlowId, LinkId, Way};

    const FROM: EndpointId = EndpointId::of(FlowId::new(0), Way::Forward);

    fn lost() -> Ended {
        Ended::Lost(Cause::QueueFull, DirectionId::of(LinkId::new(0), Way::Forward))
    }

    fn begin(journeys: &mut Journeys, range: Range, again: bool) -> u32 {
        let trigger = again.then_some(RetransmissionTrigger::Fast);
        let id = journeys.begin(Sending { from: FROM, range, trigger });
        journeys.hold(id);
        id
    }

    fn needed(journeys: &mut Journeys, id: u32) -> Option<bool> {
        assert!(journeys.is_settled(id));
        journeys.release(id, &["a>b".to_owned()], false).retransmission.unwrap().1
    }

    #[test]
    fn ranges_join_and_part() {
        let mut ranges = Ranges::default();
        ranges.add((10, 20));
        ranges.add((30, 40));
        assert!(ranges.covers((12, 20)) && !ranges.covers((12, 21)) && !ranges.covers((5, 11)));
        assert_eq!(ranges.missing((5, 35)).0.into_iter().collect::<Vec<_>>(), [(5, 10), (20, 30)]);
        ranges.add((20, 30));
        assert!(ranges.covers((10, 40)));
        ranges.remove((15, 35));
        assert_eq!(ranges.0.into_iter().collect::<Vec<_>>(), [(10, 15), (35, 40)]);
    }

    #[test]
    fn a_retransmission_was_needed_if_the_receiver_had_no_copy() {
        let mut journeys = Journeys::new(2);
        let first = begin(&mut journeys, (0, 100), false);
        let second = begin(&mut journeys, (100, 200), false);
        journeys.end(first, 5, lost());
        journeys.end(second, 6, Ended::Delivered);
        let again = [begin(&mut journeys, (0, 100), true), begin(&mut journeys, (100, 200), true)];
        for id in again {
            journeys.end(id, 9, Ended::Delivered);
        }
        let links = ["a>b".to_owned()];
        let notes = again.map(|id| journeys.release(id, &links, false));
        assert_eq!(notes.map(|note| note.retransmission.unwrap().1), [Some(true), Some(false)]);
        assert_eq!(notes.map(|note| note.repairs), [Some(Cause::QueueFull), None]);
        assert_eq!(begin(&mut journeys, (0, 50), true), again[1], "its number is free");
        assert_eq!(journeys.all[again[1] as usize].repairs, None, "it has arrived since");
    }

    #[test]
    fn one_that_is_lost_was_needed_unless_what_was_sent_before_arrives() {
        let mut journeys = Journeys::new(2);
        let originals = [(0, 100), (100, 200)].map(|range| begin(&mut journeys, range, false));
        let again = [(0, 100), (100, 200)].map(|range| begin(&mut journeys, range, true));
        for id in again {
            journeys.end(id, 3, lost());
        }
        assert!(!journeys.is_settled(again[0]) && !journeys.is_settled(again[1]));
        // What is sent later and arrives says nothing of it.
        let later = begin(&mut journeys, (0, 100), true);
        journeys.end(later, 4, Ended::Delivered);
        assert!(!journeys.is_settled(again[0]));
        journeys.end(originals[0], 5, lost());
        journeys.end(originals[1], 5, Ended::Delivered);
        assert_eq!(again.map(|id| needed(&mut journeys, id)), [Some(true), Some(false)]);
    }

    #[test]
    fn a_transmission_has_one_fate_however_many_copies_there_are() {
        let mut journeys = Journeys::new(2);
        let id = begin(&mut journeys, (0, 100), false);
        let copy = journeys.copy(id);
        assert_ne!(copy, id);
        journeys.end(id, 4, lost());
        assert!(!journeys.is_settled(id));
        journeys.end(copy, 5, Ended::Delivered);
        assert!(journeys.is_settled(id));
        assert_eq!(journeys.release(id, &["a>b".to_owned()], false).fate, Some(Fate::Delivered { at: 5 }));
        // Its number is used again.
        assert_eq!(begin(&mut journeys, (0, 100), false), id);
    }
}
