//! TFRC's packets: what UDP carries. RFC 5348, 3.2 names the fields and leaves the layout open; this one is ours.
//!
//! | octets | data | feedback |
//! | ---: | --- | --- |
//! | 0 | 1 | 2 |
//! | 1–3 | 0 | 0 |
//! | 4–7 | sequence number | sender's clock of the newest data packet |
//! | 8–11 | sender's clock | time since that packet arrived |
//! | 12–15 | round-trip time, 0 if not known | octets per second that arrive |
//! | 16–19 | data from here on | loss event rate in units of 2^-32 |
//!
//! Times are in microseconds, all numbers in network order.

use crate::segment::{Ecn, Payload};
use bytes::Bytes;

/// Octets before the data.
pub const DATA_HEADER: usize = 16;
/// Octets of feedback.
pub const FEEDBACK_LEN: usize = 20;

const DATA: u8 = 1;
const FEEDBACK: u8 = 2;

static NOTHING: Payload = Payload::Empty;

/// A packet with the ECN field of its IP header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// What it says.
    pub body: Body,
}

/// What a packet says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Data of the application.
    Data(Data, Payload),
    /// How data arrives.
    Feedback(Feedback),
}

/// The header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Number of the packet, from 1 on.
    pub seq: u32,
    /// The sender's clock in microseconds.
    pub sent_us: u32,
    /// What the sender takes for the round-trip time, in microseconds; 0 if it does not know it.
    pub rtt_us: u32,
}

/// Feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The sender's clock that the newest data packet carried, in microseconds.
    pub sent_us: u32,
    /// Time since that packet arrived, in microseconds.
    pub delay_us: u32,
    /// Octets of data per second that arrive.
    pub rate: u32,
    /// The loss event rate in units of 2^-32.
    pub loss: u32,
}

impl Packet {
    /// Octets that UDP carries.
    pub fn len(&self) -> usize {
        match &self.body {
            Body::Data(_, payload) => DATA_HEADER + payload.len(),
            Body::Feedback(_) => FEEDBACK_LEN,
        }
    }

    /// Whether it is empty: no packet is.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The application's data.
    pub fn payload(&self) -> &Payload {
        match &self.body {
            Body::Data(_, payload) => payload,
            Body::Feedback(_) => &NOTHING,
        }
    }

    /// Appends its octets.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (kind, words) = match &self.body {
            Body::Data(data, _) => (DATA, [data.seq, data.sent_us, data.rtt_us, 0]),
            Body::Feedback(feedback) => (FEEDBACK, [feedback.sent_us, feedback.delay_us, feedback.rate, feedback.loss]),
        };
        out.extend_from_slice(&[kind, 0, 0, 0]);
        let words = if kind == DATA { &words[..3] } else { &words };
        for word in words {
            out.extend_from_slice(&word.to_be_bytes());
        }
        self.payload().write_to(out);
    }

    /// The packet in these octets; `None` if they are none of ours.
    pub fn read(octets: &Bytes, ecn: Ecn) -> Option<Self> {
        let word = |at: usize| octets.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
        let body = match *octets.first()? {
            DATA => {
                let data = Data { seq: word(4)?, sent_us: word(8)?, rtt_us: word(12)? };
                let payload = octets.slice(DATA_HEADER..);
                Body::Data(data, if payload.is_empty() { Payload::Empty } else { Payload::Bytes(payload) })
            }
            FEEDBACK if octets.len() == FEEDBACK_LEN => {
                Body::Feedback(Feedback { sent_us: word(4)?, delay_us: word(8)?, rate: word(12)?, loss: word(16)? })
            }
            _ => return None,
        };
        Some(Self { ecn, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets(packet: &Packet) -> Bytes {
        let mut out = Vec::new();
        packet.write(&mut out);
        assert_eq!(out.len(), packet.len());
        out.into()
    }

    #[test]
    fn packets_survive_the_wire() {
        let data = Data { seq: 7, sent_us: 0x0102_0304, rtt_us: 40_000 };
        let feedback = Feedback { sent_us: 0x0102_0304, delay_us: 9, rate: 125_000, loss: u32::MAX / 100 };
        for body in [
            Body::Data(data, Payload::Bytes(Bytes::from_static(b"data"))),
            Body::Data(data, Payload::Empty),
            Body::Feedback(feedback),
        ] {
            let packet = Packet { ecn: Ecn::Capable0, body };
            assert_eq!(Packet::read(&octets(&packet), Ecn::Capable0), Some(packet));
        }
        let packet = Packet { ecn: Ecn::NotCapable, body: Body::Data(data, Payload::Bytes(Bytes::from_static(&[9]))) };
        assert_eq!(octets(&packet)[..], [1, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4, 0, 0, 0x9C, 0x40, 9]);
    }

    #[test]
    fn what_is_none_of_ours_is_refused() {
        for octets in [&[][..], &[0; 20], &[3; 20], &[1; 15], &[2; 19], &[2; 21]] {
            assert_eq!(Packet::read(&Bytes::copy_from_slice(octets), Ecn::NotCapable), None, "{octets:?}");
        }
    }
}
