//! Rules of conduct that every segment on the wire must keep, whatever the algorithms do.

use super::stream::Stream;
use whyloss_transport::segment::{Ecn, Flags, Segment};
use whyloss_transport::Seq;

/// What an observer on one host's wire knows of it.
///
/// Positions are octets from the initial sequence number: the SYN is 0, the first octet of data 1.
#[derive(Debug, Default)]
pub(super) struct Conduct {
    own_isn: Option<Seq>,
    peer_isn: Option<Seq>,
    offered: Offer,
    peer_offer: Option<Offer>,
    /// End of the highest sequence space sent.
    sent: u64,
    /// End of the highest sequence space that arrived intact.
    received: u64,
    /// Highest right edge that the peer granted and that arrived.
    granted: u64,
    /// Highest acknowledgement sent.
    acked: u64,
    /// Highest right edge announced.
    announced: u64,
    /// Last `TSval` sent.
    clock: Option<u32>,
    established: bool,
}

/// What a SYN offers.
#[derive(Clone, Copy, Debug, Default)]
struct Offer {
    mss: Option<u16>,
    window_scale: Option<u8>,
    sack: bool,
    timestamps: bool,
    ecn: bool,
}

impl Offer {
    fn of(syn: &Segment) -> Self {
        let ece = syn.flags.contains(Flags::ECE);
        let cwr = syn.flags.contains(Flags::CWR);
        // RFC 3168, 6.1.1: a SYN offers with ECE and CWR, a SYN-ACK agrees with ECE alone.
        let ecn = if syn.flags.contains(Flags::ACK) { ece && !cwr } else { ece && cwr };
        Self {
            mss: syn.options.mss,
            window_scale: syn.options.window_scale,
            sack: syn.options.sack_permitted,
            timestamps: syn.options.timestamps.is_some(),
            ecn,
        }
    }
}

/// The MSS of a peer that does not announce one (RFC 9293, 3.7.1).
const DEFAULT_MSS: u16 = 536;

impl Conduct {
    pub(super) fn origin(&self) -> crate::trace::Origin {
        crate::trace::Origin { own: self.own_isn.unwrap_or_default(), peer: self.peer_isn.unwrap_or_default() }
    }

    fn agreed(&self, what: fn(&Offer) -> bool) -> bool {
        what(&self.offered) && self.peer_offer.as_ref().is_some_and(what)
    }

    /// The shift of the windows in segments that the offerer of `shift` sends.
    fn shift(&self, shift: Option<u8>) -> u8 {
        if self.agreed(|offer| offer.window_scale.is_some()) {
            shift.unwrap_or(0).min(14)
        } else {
            0
        }
    }

    /// An intact segment reached the host.
    pub(super) fn arrived(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let syn = segment.flags.contains(Flags::SYN);
        if syn && self.peer_offer.is_none() {
            self.peer_isn = Some(segment.seq);
            self.peer_offer = Some(Offer::of(segment));
        }
        let Some(peer_isn) = self.peer_isn else { return };
        let start = position(segment.seq, peer_isn, self.received);
        self.received = self.received.max(start + u64::from(segment.seq_len()));
        if let (true, Some(own_isn)) = (segment.flags.contains(Flags::ACK), self.own_isn) {
            let shift = if syn { 0 } else { self.shift(self.peer_offer.and_then(|offer| offer.window_scale)) };
            let ack = position(segment.ack, own_isn, self.sent);
            self.granted = self.granted.max(ack + (u64::from(segment.window) << shift));
            self.established |= ack > 0;
        }
    }

    /// The host sends `segment`, whose data should come from `stream`; says what is wrong with it.
    pub(super) fn check(&mut self, segment: &Segment, stream: &Stream) -> Result<(), String> {
        let syn = segment.flags.contains(Flags::SYN);
        if segment.flags.contains(Flags::RST) {
            return Ok(());
        }
        if syn {
            let isn = *self.own_isn.get_or_insert(segment.seq);
            if isn != segment.seq {
                return Err(format!("the initial sequence number changes from {isn} to {}", segment.seq));
            }
            let offer = Offer::of(segment);
            // A SYN-ACK may only repeat what the SYN offered (RFC 7323, 2.2 and 3.2; RFC 2018, 2).
            if let (true, Some(peer)) = (segment.flags.contains(Flags::ACK), self.peer_offer) {
                let refuses = (offer.window_scale.is_some() && peer.window_scale.is_none())
                    || (offer.timestamps && !peer.timestamps)
                    || (offer.sack && !peer.sack)
                    || (offer.ecn && !peer.ecn);
                // In a simultaneous open the SYN-ACK repeats our own SYN, which offered before anything was peer.
                if refuses && self.sent == 0 {
                    return Err("the SYN-ACK has an option that the SYN did not offer".to_owned());
                }
            }
            if offer.window_scale.is_some_and(|shift| shift > 14) {
                return Err("a window scale above 14 (RFC 7323, 2.3)".to_owned());
            }
            if self.sent == 0 {
                self.offered = offer;
            }
        }
        let Some(own_isn) = self.own_isn else { return Err("a segment before any SYN".to_owned()) };
        let start = position(segment.seq, own_isn, self.sent);
        self.check_size(segment)?;
        self.check_options(segment, syn)?;
        self.check_ecn(segment, start)?;
        self.check_data(segment, start, stream)?;
        self.check_acknowledgement(segment, syn)?;
        self.sent = self.sent.max(start + u64::from(segment.seq_len()));
        Ok(())
    }

    fn check_size(&self, segment: &Segment) -> Result<(), String> {
        if segment.header_len() > 60 {
            return Err(format!("a header of {} octets", segment.header_len()));
        }
        let limit = self.peer_offer.and_then(|offer| offer.mss).unwrap_or(DEFAULT_MSS);
        // RFC 6691: the MSS counts options as data.
        let size = segment.payload.len() + segment.options.encoded_len();
        if !segment.payload.is_empty() && size > usize::from(limit) {
            return Err(format!("{size} octets of options and data exceed the peer's MSS of {limit}"));
        }
        Ok(())
    }

    fn check_options(&mut self, segment: &Segment, syn: bool) -> Result<(), String> {
        let options = &segment.options;
        if !syn {
            if options.mss.is_some() || options.window_scale.is_some() || options.sack_permitted {
                return Err("an option that belongs on a SYN".to_owned());
            }
            if options.timestamps.is_some() != self.agreed(|offer| offer.timestamps) {
                return Err("timestamps on every segment if agreed, on none if not (RFC 7323, 3.2)".to_owned());
            }
            if !options.sack.is_empty() && !self.agreed(|offer| offer.sack) {
                return Err("SACK blocks without agreement (RFC 2018, 3)".to_owned());
            }
        }
        if let Some(timestamps) = options.timestamps {
            if self.clock.is_some_and(|clock| (timestamps.value.wrapping_sub(clock) as i32) < 0) {
                return Err("the timestamp clock runs backwards (RFC 7323, 4)".to_owned());
            }
            self.clock = Some(timestamps.value);
        }
        Ok(())
    }

    fn check_ecn(&self, segment: &Segment, start: u64) -> Result<(), String> {
        if segment.ecn == Ecn::NotCapable {
            return Ok(());
        }
        if !self.agreed(|offer| offer.ecn) {
            return Err("ECN-capable without agreement (RFC 3168, 6.1.1)".to_owned());
        }
        if segment.payload.is_empty() {
            return Err("a segment without data is ECN-capable (RFC 3168, 6.1.4)".to_owned());
        }
        if start < self.sent {
            return Err("a retransmission is ECN-capable (RFC 3168, 6.1.5)".to_owned());
        }
        Ok(())
    }

    fn check_data(&self, segment: &Segment, start: u64, stream: &Stream) -> Result<(), String> {
        let len = segment.payload.len() as u64;
        if len == 0 {
            return Ok(());
        }
        if !self.established {
            return Err("data before the peer has answered".to_owned());
        }
        // One octet beyond the window is a probe (RFC 9293, 3.8.6.1).
        if start + len > self.granted && len > 1 {
            return Err(format!("data up to {} beyond the window's edge at {}", start + len, self.granted));
        }
        if !stream.matches(start - 1, &segment.payload) {
            return Err(format!("the data at offset {} is not what the application wrote", start - 1));
        }
        Ok(())
    }

    fn check_acknowledgement(&mut self, segment: &Segment, syn: bool) -> Result<(), String> {
        if !segment.flags.contains(Flags::ACK) {
            return if syn { Ok(()) } else { Err("neither SYN nor ACK (RFC 9293, 3.10.7.4)".to_owned()) };
        }
        let Some(peer_isn) = self.peer_isn else { return Err("an acknowledgement of nothing".to_owned()) };
        let ack = position(segment.ack, peer_isn, self.received);
        if ack > self.received {
            return Err(format!("acknowledges {ack}, but only {} has arrived", self.received));
        }
        if ack < self.acked {
            return Err(format!("the acknowledgement goes back from {} to {ack}", self.acked));
        }
        self.acked = ack;
        let shift = if syn { 0 } else { self.shift(self.offered.window_scale) };
        let edge = ack + (u64::from(segment.window) << shift);
        // Rounding to the scale may take back less than one unit (RFC 7323, 2.4); the SYN's window is not scaled.
        if edge + (1 << shift) <= self.announced {
            return Err(format!("the window shrinks from {} to {edge} (RFC 9293, 3.8.6)", self.announced));
        }
        self.announced = self.announced.max(edge);
        Ok(())
    }
}

/// The position of `seq` in a stream that starts at `isn`, near the position `about`.
fn position(seq: Seq, isn: Seq, about: u64) -> u64 {
    let origin = 1u64 << 32 | u64::from(isn.0);
    seq.near(origin + about).saturating_sub(origin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::segment::{Options, Payload};

    fn talking() -> (Conduct, Stream) {
        let mut conduct = Conduct::default();
        let stream = Stream::synthetic(10_000);
        let syn = Segment { seq: Seq(u32::MAX), flags: Flags::SYN, window: 1000, ..Segment::default() };
        conduct.check(&syn, &stream).unwrap();
        conduct.arrived(&Segment {
            seq: Seq(7),
            ack: Seq(0),
            flags: Flags::SYN | Flags::ACK,
            window: 1000,
            options: Options { mss: Some(1000), ..Options::default() },
            ..Segment::default()
        });
        (conduct, stream)
    }

    fn data(start: u32, len: u32) -> Segment {
        let payload = Payload::Synthetic { offset: u64::from(start), len };
        Segment { seq: Seq(start), ack: Seq(8), flags: Flags::ACK, window: 1000, payload, ..Segment::default() }
    }

    #[test]
    fn good_conduct_passes() {
        let (mut conduct, stream) = talking();
        conduct.check(&data(0, 1000), &stream).unwrap();
        conduct.check(&data(1000, 1), &stream).unwrap();
    }

    #[test]
    fn each_rule_can_be_broken() {
        let breaks = |segment: Segment| {
            let (mut conduct, stream) = talking();
            conduct.check(&segment, &stream).unwrap_err()
        };
        assert!(breaks(data(500, 501)).contains("window's edge"));
        assert!(breaks(Segment { ack: Seq(9), ..data(0, 1) }).contains("only 1 has arrived"));
        assert!(breaks(Segment { payload: Payload::Synthetic { offset: 1, len: 5 }, ..data(0, 5) }).contains("not what"));
        assert!(breaks(Segment { ecn: Ecn::Capable0, ..data(0, 5) }).contains("without agreement"));
        let stamped = Options { timestamps: Some(whyloss_transport::segment::Timestamps::default()), ..Options::default() };
        assert!(breaks(Segment { options: stamped, ..data(0, 5) }).contains("timestamps"));
    }

    #[test]
    fn acknowledgements_and_windows_never_go_back() {
        let (mut conduct, stream) = talking();
        conduct.check(&data(0, 1), &stream).unwrap();
        let shrunk = Segment { window: 999, ..data(1, 1) };
        assert!(conduct.check(&shrunk, &stream).unwrap_err().contains("shrinks"));
    }
}
