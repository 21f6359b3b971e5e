//! What captures see of the network.

use super::{Network, Protocol};
use crate::address::{DirectionId, EndpointId};
use crate::capture::{Ended, Point, Seen, Sending};
use crate::packet::PacketId;
use whyloss_transport::segment::Flags;

impl Network {
    /// A packet leaves, and captures have to know what becomes of it.
    #[cold]
    pub(super) fn watch_sent(&mut self, from: EndpointId, id: &PacketId) {
        let Self { watch: Some(watch), packets, egress, .. } = self else { return };
        let packet = packets.get_mut(id);
        let egress = &egress[from.index()];
        let mut range = (0, 0);
        if egress.protocol == Protocol::Tcp {
            let segment = &packet.segment;
            let controls = [Flags::SYN, Flags::FIN].into_iter().filter(|flag| segment.flags.contains(*flag)).count();
            let start = segment.seq.near(egress.position);
            range = (start, start + (segment.payload.len() + controls) as u64);
        }
        packet.journey = watch.sent(Sending { from, range, trigger: None });
    }

    /// A link has made a copy of a packet.
    #[cold]
    pub(super) fn watch_copy(&mut self, copy: &PacketId) {
        let Some(watch) = &mut self.watch else { return };
        let packet = self.packets.get_mut(copy);
        packet.journey = watch.copied(packet.journey);
    }

    /// A packet has come to its end.
    #[cold]
    pub(super) fn watch_end(&mut self, id: &PacketId, how: Ended) {
        let Some(watch) = &mut self.watch else { return };
        watch.ended(self.packets.get(id).journey, self.now, how);
    }

    /// A packet passes there.
    #[cold]
    pub(super) fn watch_pass(&mut self, direction: DirectionId, point: Point, id: &PacketId) {
        if self.watch.as_ref().is_some_and(|watch| watch.watches(direction, point)) {
            let seen = self.seen(id, self.now);
            if let Some(watch) = &mut self.watch {
                watch.see(direction, point, &seen);
            }
        }
    }

    /// Something has happened in a link direction after which it may transmit another packet, now or as far as that is decided.
    #[cold]
    pub(super) fn watch_transmission(&mut self, direction: DirectionId) {
        if !self.watch.as_ref().is_some_and(|watch| watch.watches(direction, Point::Transmission)) {
            return;
        }
        let Some((at, id)) = self.directions[direction.index()].line.transmission() else { return };
        let seen = self.seen(id, at);
        if let Some(watch) = &mut self.watch {
            if watch.begins(direction, at) {
                watch.see(direction, Point::Transmission, &seen);
            }
        }
    }

    /// A packet as it is, at `at`.
    fn seen(&self, id: &PacketId, at: u64) -> Seen {
        let octets = self.octets(id);
        let packet = self.packets.get(id);
        let damage = packet.raw.as_ref().and_then(|raw| {
            let pairs = || raw.original.iter().zip(&raw.octets).enumerate();
            let bits = pairs().map(|(_, (before, now))| (before ^ now).count_ones()).sum();
            let (first, (before, now)) = pairs().find(|(_, (before, now))| before != now)?;
            Some((raw.direction, bits, first as u32 * 8 + (before ^ now).leading_zeros()))
        });
        Seen { at, journey: packet.journey, octets, damage }
    }
}
