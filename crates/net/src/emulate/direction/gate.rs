//! Where an agent stands in a direction, and how its packets get there.

use super::super::lock;
use super::super::record::{PacketFate, Touch};
use super::super::station::{AgentOutcome, Made, Station, Work};
use super::{Direction, Shared, Slot};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use whyloss_sim::middlebox::Side;
use whyloss_transport::Instant;

/// Where an agent stands in a direction.
pub(in super::super) struct Gate {
    pub station: Arc<Station>,
    /// From which side of the agent's link packets of this direction come.
    pub side: Side,
    /// It stands in front of the link of this number; behind the last one, at the end.
    pub before: usize,
    /// The other direction.
    pub peer: Arc<Shared>,
}

impl Direction {
    /// A packet passes the agent. Returns whether it goes on.
    pub(super) fn meet(&mut self, hop: usize, slot: u32, at: Instant) -> bool {
        let Some(Gate { station, side, .. }) = &self.gate else { return true };
        let was_changed = self.slots[slot as usize].came.is_some();
        self.slots[slot as usize].before_change(self.chunk.keeps_octets());
        let Slot { octets, record, came } = &mut self.slots[slot as usize];
        let crowded = self.stages.get_mut(hop).is_some_and(|stage| !stage.crossing.has_room_for_two(at, record.octets));
        let (outcome, work) = station.pass(*side, at, crowded, octets);
        if outcome != AgentOutcome::Untouched {
            record.agent = Some(Touch { kind: station.kind, made: false });
            record.octets = octets.len() as u32;
        } else if !was_changed {
            *came = None;
        }
        if outcome == AgentOutcome::Ended {
            record.due = at.as_nanos();
            record.left = record.due;
            record.fate = PacketFate::Suppressed;
            self.finish(slot);
        }
        self.hand_over(work);
        outcome != AgentOutcome::Ended
    }

    /// Gives both directions what the agent has made for them.
    fn hand_over(&self, work: Work) {
        let Some(Gate { side, peer, .. }) = &self.gate else { return };
        let [away, back] = if *side == Side::Fixed { [&self.shared, peer] } else { [peer, &self.shared] };
        for (direction, made) in [away, back].into_iter().zip(work.made) {
            if !made.is_empty() {
                direction.insert(made);
                // This one looks for itself before it sleeps.
                if Arc::ptr_eq(direction, peer) {
                    direction.wake();
                }
            }
        }
        if work.wake && *side == Side::Mobile {
            away.wake();
        }
    }

    /// Does what is due at the agent, and takes what it has made for this direction.
    pub(super) fn tend(&mut self) -> io::Result<()> {
        let Some(Gate { station, side, before, .. }) = &self.gate else { return Ok(()) };
        let (kind, before) = (station.kind, *before);
        if *side == Side::Fixed {
            let work = station.advance(self.clock.now());
            self.hand_over(work);
        }
        while self.shared.has_made.swap(false, Ordering::Acquire) {
            self.insert(kind, before)?;
        }
        Ok(())
    }

    /// Takes what the agent has made for the link of number `before`.
    fn insert(&mut self, kind: &'static str, before: usize) -> io::Result<()> {
        let all = std::mem::take(&mut *lock(&self.shared.made));
        let now = self.clock.now();
        // What comes to the link from the one before it has come by then.
        self.advance(now)?;
        for Made { octets, urgent } in all {
            let record = self.record(now, &octets, before, Some(Touch { kind, made: true }));
            self.made += 1;
            let slot = self.store(&octets, record);
            let Some(stage) = self.stages.get_mut(before) else {
                self.hand_on(slot)?;
                continue;
            };
            let packet = self.slots[slot as usize].packet(slot);
            if urgent {
                stage.crossing.offer_first(now, packet);
            } else {
                stage.crossing.offer(now, packet);
            }
        }
        Ok(())
    }
}
