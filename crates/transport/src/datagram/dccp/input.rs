//! What an endpoint makes of a packet (RFC 4340, 8.5).

use super::ccid::Feedback;
use super::ccid3_receiver::Receiver;
use super::endpoint::{Endpoint, State};
use super::history::PacketFate;
use super::received::Received;
use super::Mode;
use crate::datagram::words::Datagram;
use crate::segment::Ecn;
use crate::tcp::{Closing, Judgement};
use crate::time::{Duration, Instant};
use crate::wire::dccp::{Data, DropCode, Feature, FeatureOption, Kind, Opt, Packet, Seq48};

/// Syncs in a second, at most (RFC 4340, 7.5.4).
const MAX_SYNCS: u32 = 8;
/// Reset codes (RFC 4340, 5.6).
const CLOSED: u8 = 1;
const NO_CONNECTION: u8 = 3;
const MANDATORY_ERROR: u8 = 6;

impl Endpoint {
    pub(super) fn on_packet(&mut self, now: Instant, packet: &Packet, data: Data) {
        self.stats.segments_received += 1;
        self.stats.damaged_received += u64::from(data == Data::Damaged);
        match self.state {
            State::Closed => self.on_stray(now, packet),
            State::Listen => {
                if let Kind::Request { .. } = packet.kind {
                    self.on_request(now, packet);
                }
            }
            State::Request => self.on_response(now, packet),
            _ => self.on_known(now, packet, data),
        }
    }

    /// RFC 4340, 8.3.1: what comes after the end is answered with a Reset, so that a lost one does not keep the other side waiting.
    fn on_stray(&mut self, now: Instant, packet: &Packet) {
        let had_connection = self.isr > 0;
        if had_connection && !matches!(packet.kind, Kind::Reset { .. }) && self.may_sync(now) {
            self.control.push_back(Kind::Reset { ack: packet.seq, code: NO_CONNECTION, data: [0; 3] });
        }
    }

    fn on_request(&mut self, now: Instant, packet: &Packet) {
        self.state = State::Respond;
        self.start_receiving(packet.seq);
        if self.on_features(packet) {
            self.respond(now);
        }
    }

    fn respond(&mut self, now: Instant) {
        self.control.push_back(Kind::Response { ack: self.ack(), service: self.config.service });
        self.retry_from(now, self.config.max_rto);
    }

    fn start_receiving(&mut self, seq: Seq48) {
        self.isr = seq.near(self.iss);
        self.received = Received::new(self.isr);
    }

    /// In REQUEST only a Response or a Reset to what we sent counts.
    fn on_response(&mut self, now: Instant, packet: &Packet) {
        let Some(ack) = packet.kind.ack().map(|ack| ack.near(self.gss)) else { return };
        if !(self.iss..=self.gss).contains(&ack) {
            return;
        }
        match packet.kind {
            Kind::Response { .. } => {
                self.start_receiving(packet.seq);
                self.gar = ack;
                if !self.on_features(packet) {
                    return;
                }
                self.state = State::PartOpen;
                self.ack_now = true;
                self.retry_from(now, Duration::from_millis(200));
                self.established(now);
                if ack == self.gss {
                    self.sender.prime(now, now.since(self.request_at));
                }
            }
            Kind::Reset { .. } => self.over(Closing::Refused),
            _ => {}
        }
    }

    /// Steps 6 to 16 of RFC 4340, 8.5.
    fn on_known(&mut self, now: Instant, packet: &Packet, data: Data) {
        let seq = packet.seq.near(self.received.newest());
        let ack = packet.kind.ack().map(|ack| ack.near(self.gss));
        if !self.is_valid(&packet.kind, seq, ack) {
            // A Reset out of place is answered with what we know, so that its sender can repeat it in place.
            let about = if matches!(packet.kind, Kind::Reset { .. }) { self.ack() } else { packet.seq };
            self.sync(now, about);
            return;
        }
        let newest = seq > self.received.newest();
        if let (Some(ack), false) = (ack, matches!(packet.kind, Kind::Sync { .. })) {
            self.gar = self.gar.max(ack);
        }
        let misplaced = match packet.kind {
            Kind::CloseReq { .. } | Kind::Response { .. } => self.server,
            Kind::Request { .. } => !self.server || self.state != State::Respond,
            Kind::Data => self.state == State::Respond,
            _ => false,
        };
        if misplaced {
            self.sync(now, packet.seq);
            return;
        }
        // Options of reordered packets may be older than what is in force (6.6.4).
        if newest && !matches!(packet.kind, Kind::Data) && !self.on_features(packet) {
            return;
        }
        if let Kind::Reset { code, .. } = packet.kind {
            let expected = code == CLOSED || self.state == State::Closing;
            self.over(if expected { Closing::Normal } else { Closing::Reset });
            return;
        }
        self.advance(now, &packet.kind);
        self.take(now, packet, seq, data);
        if let Some(ack) = ack {
            self.on_ack(now, packet, seq, ack);
        }
        match packet.kind {
            Kind::Request { .. } => self.respond(now),
            Kind::Response { .. } => self.ack_now = true,
            Kind::CloseReq { .. } => {
                self.control.push_back(Kind::Close { ack: self.ack() });
                self.state = State::Closing;
                self.retry_from(now, self.sender.srtt().map_or(self.config.initial_rto, |srtt| srtt * 2));
            }
            Kind::Close { .. } => self.reset(CLOSED, Closing::Normal),
            Kind::Sync { .. } => self.control.push_back(Kind::SyncAck { ack: packet.seq }),
            _ => {}
        }
    }

    /// RFC 4340, 7.5.3: within the windows of sequence and acknowledgement numbers.
    fn is_valid(&self, kind: &Kind, seq: u64, ack: Option<u64>) -> bool {
        let newest = self.received.newest();
        let theirs = self.negotiation.remote(Feature::SEQUENCE_WINDOW);
        let ours = self.negotiation.local(Feature::SEQUENCE_WINDOW);
        let swl = (newest + 1).saturating_sub(theirs / 4).max(self.isr);
        let swh = newest + (3 * theirs).div_ceil(4);
        let awl = (self.gss + 1).saturating_sub(ours).max(self.iss);
        let in_window = |least: u64| ack.is_none_or(|ack| (least..=self.gss).contains(&ack));
        match kind {
            Kind::Sync { .. } | Kind::SyncAck { .. } => seq >= swl && in_window(awl),
            Kind::CloseReq { .. } | Kind::Close { .. } | Kind::Reset { .. } => {
                (newest + 1..=swh).contains(&seq) && in_window(self.gar)
            }
            _ => (swl..=swh).contains(&seq) && in_window(awl),
        }
    }

    fn sync(&mut self, now: Instant, about: Seq48) {
        if self.may_sync(now) {
            self.control.push_back(Kind::Sync { ack: about });
        }
    }

    /// Whether the rate limit admits another answer to a packet out of place.
    fn may_sync(&mut self, now: Instant) -> bool {
        if now.since(self.syncs.0) >= Duration::from_secs(1) {
            self.syncs = (now, 0);
        }
        self.syncs.1 += 1;
        self.syncs.1 <= MAX_SYNCS
    }

    /// The state after a valid packet.
    fn advance(&mut self, now: Instant, kind: &Kind) {
        match (self.state, kind) {
            (State::Respond, Kind::Ack { .. } | Kind::DataAck { .. } | Kind::SyncAck { .. }) => {
                self.state = State::Open;
                self.retry = None;
                self.established(now);
            }
            (State::PartOpen, Kind::Response { .. } | Kind::Sync { .. }) => {}
            (State::PartOpen, _) => {
                self.state = State::Open;
                self.retry = None;
            }
            _ => {}
        }
    }

    /// Takes feature options. Returns false if that ended the connection.
    fn on_features(&mut self, packet: &Packet) -> bool {
        let mut mandatory = false;
        for option in &packet.options {
            let fine = match option {
                Opt::Feature(option) => self.negotiation.receive(option, mandatory).is_ok(),
                Opt::Unknown(..) => !mandatory,
                _ => true,
            };
            if !fine {
                self.reset(MANDATORY_ERROR, Closing::Aborted);
                return false;
            }
            mandatory = *option == Opt::Mandatory;
        }
        let asked = packet
            .options
            .iter()
            .any(|option| matches!(option, Opt::Feature(FeatureOption::ChangeLocal(..) | FeatureOption::ChangeRemote(..))));
        // The answer goes with the next acknowledgement; that should not wait for the next window.
        if asked && self.is_open() {
            self.ack_now = true;
        }
        true
    }

    /// Takes the packet as such: its data, and that it arrived.
    fn take(&mut self, now: Instant, packet: &Packet, seq: u64, data: Data) {
        // A Sync may say nothing of what is to be acknowledged; its answer names it.
        if matches!(packet.kind, Kind::Sync { .. }) && seq < self.received.newest() {
            return;
        }
        let carries = packet.kind.carries_data() && !packet.payload.is_empty();
        let dropped = if carries { self.unfit(packet, data) } else { None };
        let marked = packet.ecn == Ecn::CongestionExperienced;
        if !self.received.insert(seq, marked, dropped) {
            self.stats.duplicates_received += u64::from(carries);
            return;
        }
        self.ack_now |= self.received.is_pressing() && self.is_open();
        let octets = if carries { packet.payload.len() as u32 } else { 0 };
        // What counts as a mark is a loss event (RFC 5348, 5.3; RFC 4340, 11.7.2).
        let bad = marked || dropped.is_some_and(|code| self.counts(code));
        let report_due = self.rate.as_mut().map(|rate| rate.on_packet(now, seq, packet.ccval, octets, bad));
        if !carries {
            return;
        }
        self.receives_data = true;
        if dropped.is_none_or(|code| code == DropCode::DELIVERED_CORRUPT) {
            self.stats.octets_delivered += packet.payload.len() as u64;
            self.arrived.push_back(Datagram { payload: packet.payload.clone(), corrupt: dropped.is_some() });
        }
        if let Some(report_due) = report_due {
            self.ack_now |= report_due;
            let patience = self.rate.as_ref().and_then(Receiver::round_trip).unwrap_or(self.config.delayed_ack);
            self.ack_at = self.ack_at.or(Some(now + patience.min(self.config.delayed_ack)));
            return;
        }
        self.unacked += 1;
        let ratio = self.negotiation.remote(Feature::ACK_RATIO);
        if ratio > 0 && u64::from(self.unacked) >= ratio {
            self.ack_now = true;
        } else if self.ack_at.is_none() {
            self.ack_at = Some(now + self.config.delayed_ack);
        }
    }

    /// Whether dropped data is congestion.
    fn counts(&self, code: DropCode) -> bool {
        code.counts_as_mark() && !(self.config.mode == Mode::Differentiating && code.is_corruption())
    }

    /// Why the data of a packet cannot be used as it is.
    fn unfit(&self, packet: &Packet, data: Data) -> Option<DropCode> {
        let least = self.negotiation.local(Feature::MINIMUM_COVERAGE);
        if packet.coverage > 0 && (least == 0 || u64::from(packet.coverage) < least) {
            return Some(DropCode::PROTOCOL);
        }
        (data == Data::Damaged).then_some(if self.config.accept_corrupt {
            DropCode::DELIVERED_CORRUPT
        } else {
            DropCode::CORRUPT
        })
    }

    /// Takes what a packet says of ours.
    fn on_ack(&mut self, now: Instant, packet: &Packet, seq: u64, ack: u64) {
        self.received.acknowledged(ack);
        if !matches!(packet.kind, Kind::Ack { .. } | Kind::DataAck { .. }) {
            return;
        }
        let has = |kind: fn(&Opt) -> bool| packet.options.iter().any(kind);
        self.ack_of_ack |= has(|option| matches!(option, Opt::AckVector { .. }));
        self.stats.reports_received += u64::from(has(|option| matches!(option, Opt::DataDropped(_))));
        let outcome = self.history.acknowledge(now, ack, &packet.options);
        let judgements = self.sender.on_feedback(&Feedback {
            now,
            seq,
            ack,
            newest: self.gss,
            fates: &outcome.fates,
            rtt: outcome.rtt,
            options: &packet.options,
            outstanding: self.history.outstanding(),
        });
        if let Some(ratio) = self.sender.ack_ratio() {
            self.negotiation.set_ack_ratio(ratio);
        }
        let bad = outcome.fates.iter().filter(|(_, fate)| *fate != PacketFate::Received);
        for ((sent, fate), judgement) in bad.zip(judgements) {
            let reduced = u64::from(judgement == Judgement::Reduced);
            self.stats.reductions += reduced;
            self.stats.ecn_reductions += reduced * u64::from(*fate == PacketFate::Marked);
            self.record_fate(now, sent, *fate, judgement);
        }
    }
}
