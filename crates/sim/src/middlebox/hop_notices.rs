//! First-hop and last-hop acknowledgements (Cobb & Agrawal 1995): the base station tells the sender what it has seen.

use super::agent::{Agent, Answer, Transit};
use whyloss_transport::segment::{Flags, Hop, HopNotice, Notices, Options, RareOptions};
use whyloss_transport::Segment;

/// Answers each data segment that comes over the link, or leaves over it, with a notice.
#[derive(Debug)]
pub(crate) struct HopNotices;

impl Agent for HopNotices {
    fn pass(&mut self, _transit: &Transit, _segment: &mut Segment) {}

    /// A control segment has no ACK flag, and its sequence number is the one that the sender expects: a TCP that does not know it
    /// drops it without an answer (RFC 9293, 3.10.7.4).
    fn answer(&mut self, transit: &Transit, segment: &Segment) -> Option<Answer> {
        let hop = match transit {
            Transit { arrived: true, .. } => Hop::First,
            Transit { leaves: true, .. } => Hop::Last,
            _ => return None,
        };
        if segment.is_empty() {
            return None;
        }
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
        Some(match hop {
            Hop::First => Answer::Always(answer),
            Hop::Last => Answer::IfTaken(answer),
        })
    }
}
