//! Wires that vary, in a simulation: their events, and packets that come twice.

use crate::build::Way;
use crate::channel::Fate;
use crate::direction::{Direction, Line};
use crate::events::{Event, Target};
use crate::link::{Load, QueueFull};
use crate::network::Network;
use crate::packet::PacketId;
use crate::truth::Cause;
use crate::varying::{Landing, Parts, Step};

/// The copies of one transmission of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies {
    /// The packet that was sent, and those that links made of it.
    pub made: u32,
    /// Those that were lost.
    lost: u32,
}

impl Network {
    /// A packet comes to a wire that varies.
    pub(crate) fn enqueue_varying(&mut self, direction: u32, load: Load) -> Result<(), QueueFull> {
        let Direction { traffic, channel, line, .. } = &mut self.directions[direction as usize];
        let Line::Varying(varying) = line else { return Ok(()) };
        let taken = varying.offer(&mut Parts { traffic, channel, goods: &mut self.packets }, self.now, load);
        self.arm(direction);
        taken
    }

    /// Something may happen on a wire that varies. Returns the packet that arrives at a host by that.
    pub(crate) fn happen(&mut self, direction: u32) -> Option<PacketId> {
        let link = &mut self.directions[direction as usize];
        let Line::Varying(varying) = &mut link.line else { return None };
        // Something has come in between: its event stands where this one stood.
        if varying.armed != self.now {
            return None;
        }
        varying.armed = u64::MAX;
        let arrived = match link.step(self.now, &mut self.packets) {
            Some(Step::Landed(landing)) => self.touch_down(direction, landing),
            Some(Step::Dropped { load, .. }) => {
                self.drop_from_queue(direction, load.packet, Cause::Aqm);
                None
            }
            None => None,
        };
        self.arm(direction);
        arrived
    }

    /// Sees to it that the event of a wire that varies comes in time. One that has become too late is found out when it comes.
    fn arm(&mut self, direction: u32) {
        let Line::Varying(varying) = &mut self.directions[direction as usize].line else { return };
        if let Some(at) = varying.next_at().filter(|at| *at < varying.armed) {
            varying.armed = at;
            let event = Event::new(at, self.events.next_order(), Target::Direction(direction));
            self.events.push(event);
        }
    }

    /// A packet comes to the end of a wire that varies, or would.
    fn touch_down(&mut self, direction: u32, landing: Landing) -> Option<PacketId> {
        let Landing { mut load, crossed, last, .. } = landing;
        let (fate, flips) = match crossed {
            Err(Cause::LinkDown) => {
                self.lose(direction, load.packet, Cause::LinkDown, "lost: the link is down");
                return None;
            }
            Err(_) => (Fate::Erased, Box::default()),
            Ok(flips) if flips.is_empty() => (Fate::Intact, flips),
            Ok(flips) => (Fate::Damaged, flips),
        };
        if !last {
            load.packet = self.copy(direction, load.packet);
        }
        load.packet = self.settle(direction, load.packet, fate, &flips)?;
        self.land(direction, load)
    }

    /// A link makes two of a packet. Returns the new one.
    fn copy(&mut self, direction: u32, id: PacketId) -> PacketId {
        let (offset, len) = self.data(id);
        let packet = self.packets.get(id);
        let from = &mut self.outlets[packet.origin as usize];
        from.counts.duplicated += 1;
        self.directions[direction as usize].traffic.duplicated += 1;
        if from.way == Way::Forward && len > 0 {
            let transmission = (from.flow as usize, offset, packet.sent_at);
            self.copies.entry(transmission).or_insert(Copies { made: 1, lost: 0 }).made += 1;
        }
        self.packets.copy(id)
    }

    /// A packet is lost. Returns whether its transmission is, with all copies that links have made.
    pub(crate) fn is_last_copy(&mut self, id: PacketId) -> bool {
        if self.copies.is_empty() {
            return true;
        }
        let offset = self.data(id).0;
        let packet = self.packets.get(id);
        let transmission = (self.outlets[packet.origin as usize].flow as usize, offset, packet.sent_at);
        self.copies.get_mut(&transmission).is_none_or(|copies| {
            copies.lost += 1;
            copies.lost == copies.made
        })
    }
}
