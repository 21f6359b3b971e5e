//! First-hop and last-hop acknowledgements (Cobb & Agrawal 1995): the base station tells the sender what it has seen.

use super::agent::{Agent, Handling, Outbox, Side, Transit};
use whyloss_transport::kit::{Notes, Part};
use whyloss_transport::segment::{Flags, Hop, HopNotice, Notices, Options, RareOptions};
use whyloss_transport::Segment;

pub(super) const PART: Part<dyn Agent> = Part {
    name: "ack-hop",
    summary: "Acknowledges to the sender what came over the link and what is about to leave over it; the differentiator `ack-hop` hears it.",
    reference: "Cobb & Agrawal 1995",
    notes: Notes {
        idea: "What the base station has seen was not lost before it, and what it has not seen was not lost behind it.",
        fails: "Where its options are stripped, and where a notice is itself lost. It doubles the packets on the way back.",
        ..Notes::NONE
    },
    ..Part::fixed(|_| Box::new(HopNotices))
};

/// Answers each data segment that comes over the link, or leaves over it, with a notice.
#[derive(Debug)]
pub(super) struct HopNotices;

impl Agent for HopNotices {
    /// A control segment has no ACK flag, and its sequence number is the one that the sender expects: a TCP that does not know it
    /// drops it without an answer (RFC 9293, 3.10.7.4).
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, out: &mut Outbox) -> Handling {
        if segment.is_empty() {
            return Handling::Forward;
        }
        let hop = match transit.side {
            Side::Mobile => Hop::First,
            Side::Fixed => Hop::Last,
        };
        let notice = HopNotice { hop, seq: segment.seq, len: segment.payload.len().min(usize::from(u16::MAX)) as u16 };
        let notices = Notices { hop: Some(notice), ..Notices::default() };
        let rare = Some(Box::new(RareOptions { notices, ..RareOptions::default() }));
        let answer = Segment {
            src_port: segment.dst_port,
            dst_port: segment.src_port,
            seq: segment.ack,
            flags: Flags::default(),
            options: Options { rare, ..Options::default() },
            ..Segment::default()
        };
        // In the name of the endpoint that the segment goes to.
        match hop {
            Hop::First => out.send(transit.from.peer(), answer),
            Hop::Last => out.send_if_taken(transit.from.peer(), answer),
        }
        Handling::Forward
    }

    fn restart(&mut self) {}
}
