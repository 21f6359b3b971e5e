//! What an endpoint sends.

use super::ccid::Permit;
use super::endpoint::{Endpoint, State};
use super::history::Sent;
use crate::segment::{Ecn, Payload};
use crate::time::{Duration, Instant};
use crate::wire::dccp::{Feature, Kind, Opt, Packet, Seq48};

impl Endpoint {
    /// The next packet to send, if there is one.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if let Some(kind) = self.control.pop_front() {
            if let Kind::Request { .. } = kind {
                self.request_at = now;
            }
            return Some(self.packet(now, kind, Payload::Empty));
        }
        if self.is_open() {
            if self.has_data() && self.sender.permit(now, self.history.outstanding()) == Permit::Now {
                return Some(self.data(now));
            }
            if self.ack_now || self.ack_of_ack_is_late(now) {
                let ack = self.ack();
                return Some(self.packet(now, Kind::Ack { ack }, Payload::Empty));
            }
        }
        None
    }

    /// The acknowledgement number of a packet that leaves now.
    pub(super) fn ack(&self) -> Seq48 {
        Seq48::new(self.received.newest())
    }

    /// The other side's reports grow until it is told that they arrive (RFC 4341, 6.2). About once in a round-trip time is enough.
    fn ack_of_ack_is_due(&self, now: Instant) -> bool {
        self.ack_of_ack && now.since(self.ack_of_ack_at) >= self.sender.srtt().unwrap_or_default()
    }

    /// Without data to carry it, it is a packet of its own.
    fn ack_of_ack_is_late(&self, now: Instant) -> bool {
        self.ack_of_ack
            && now.since(self.ack_of_ack_at) >= self.sender.srtt().unwrap_or_default() * 4 + Duration::from_millis(100)
    }

    fn data(&mut self, now: Instant) -> Packet {
        let payload = self.queue.pop_front().unwrap_or_else(|| {
            let (len, left) = &mut self.produce;
            if *left != u64::MAX {
                *left -= 1;
            }
            Payload::Synthetic { offset: self.offset, len: *len }
        });
        // RFC 4340, 8.1.5: everything that a client sends in PARTOPEN carries an acknowledgement.
        let acks =
            self.state == State::PartOpen || self.ack_now || self.ack_of_ack_is_due(now) || self.negotiation.is_urgent(now);
        let ack = self.ack();
        let kind = if acks { Kind::DataAck { ack } } else { Kind::Data };
        let sent = Sent::new(self.gss + 1, self.offset, payload.len() as u32, now);
        self.offset += u64::from(sent.len);
        self.stats.data_segments_sent += 1;
        self.stats.data_octets_sent += u64::from(sent.len);
        let packet = self.packet(now, kind, payload);
        self.history.push(sent);
        let more = self.has_data();
        self.sender.on_sent(now, &sent, self.history.outstanding(), more);
        self.close_if_done(now);
        packet
    }

    fn packet(&mut self, now: Instant, kind: Kind, payload: Payload) -> Packet {
        self.gss += 1;
        let mut options = Vec::new();
        if !matches!(kind, Kind::Data | Kind::Reset { .. }) {
            let opens = matches!(kind, Kind::Request { .. } | Kind::Response { .. });
            self.negotiation.options(now, opens, &mut options);
        }
        if matches!(kind, Kind::Ack { .. } | Kind::DataAck { .. }) {
            self.acknowledge(now, &mut options);
        }
        let coverage = if payload.is_empty() { 0 } else { self.coverage(payload.len()) };
        if !payload.is_empty() && self.config.data_checksum && self.negotiation.remote(Feature::CHECK_DATA_CHECKSUM) == 1 {
            options.push(Opt::DataChecksum);
        }
        self.stats.segments_sent += 1;
        let capable = !payload.is_empty() && self.config.ecn && self.negotiation.remote(Feature::ECN_INCAPABLE) == 0;
        Packet {
            seq: Seq48::new(self.gss),
            ccval: self.sender.ccval(now),
            coverage,
            ecn: if capable { Ecn::Capable0 } else { Ecn::NotCapable },
            options,
            payload,
            ..Packet::new(self.ports.local, self.ports.remote, kind)
        }
    }

    /// The coverage that we want, if the other side accepts it and there is that much data (RFC 4340, 9.2.1).
    fn coverage(&self, len: usize) -> u8 {
        let least = self.negotiation.remote(Feature::MINIMUM_COVERAGE);
        let wanted = self.config.coverage;
        let fits = usize::from(wanted.saturating_sub(1)) * 4 <= len;
        if least > 0 && u64::from(wanted) >= least && fits {
            wanted
        } else {
            0
        }
    }

    /// Options of a packet that acknowledges.
    fn acknowledge(&mut self, now: Instant, options: &mut Vec<Opt>) {
        self.ack_of_ack = false;
        self.ack_of_ack_at = now;
        (self.ack_now, self.ack_at, self.unacked) = (false, None, 0);
        if !self.receives_data {
            return;
        }
        if let Some(rate) = self.rate.as_mut().filter(|rate| rate.has_news()) {
            rate.report(now, options);
        }
        if self.negotiation.local(Feature::SEND_ACK_VECTOR) == 1 {
            self.received.report(options);
            self.received.reported(self.gss);
            let reports = options.iter().any(|option| matches!(option, Opt::DataDropped(_)));
            self.stats.reports_sent += u64::from(reports);
        }
    }
}
