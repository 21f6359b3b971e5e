//! TCP Fast Open (RFC 7413): data in the SYN. The host decides who may ([`Stack`](crate::stack::Stack) keeps the cookies), here is what
//! a connection does then.

use super::record::{FastOpenAnswer, FastOpenRequest, State};
use super::Endpoint;
use crate::segment::{FastOpen, Payload, Segment};
use crate::time::Instant;

/// A connection's part in it.
#[derive(Debug, Default)]
pub(super) struct FastOpening {
    /// What the first SYN carries.
    pub request: Option<Box<FastOpenRequest>>,
    /// What the SYN-ACK carries.
    pub reply: Option<Box<FastOpen>>,
    /// The data of the peer's SYN is to be taken.
    pub accept: bool,
    /// It was, and ours may leave before the handshake has ended.
    pub accepted: bool,
    /// Octets that went with our SYN.
    pub carried: u64,
    /// Below this position data is sent again that went with our SYN in vain.
    pub again_until: u64,
    pub answer: Option<Box<FastOpenAnswer>>,
    /// All data of a SYN, ours or the peer's, has arrived with it.
    pub worked: bool,
}

impl FastOpening {
    /// Octets that a segment from `position` on may have: data of a SYN is sent again as it was, without what follows it. It counts as a
    /// retransmission.
    #[inline]
    pub const fn repeats_from(&self, position: u64) -> u64 {
        match self.again_until.saturating_sub(position) {
            0 => u64::MAX,
            again => again,
        }
    }
}

impl Endpoint {
    /// What the peer's SYN-ACK said to our Fast Open, once it has come.
    pub fn fast_open_answer(&self) -> Option<FastOpenAnswer> {
        self.fast.answer.as_deref().copied()
    }

    /// Whether the SYN, ours or the peer's, carried data and all of it arrived.
    pub fn opened_with_data(&self) -> bool {
        self.fast.worked
    }

    /// Whether this connection was accepted before its handshake has ended, and that has not ended yet.
    pub fn is_half_open(&self) -> bool {
        self.fast.accepted && self.state == State::SynReceived
    }

    /// The data that goes with our SYN. Only the first one carries any (RFC 7413, 4.1.3).
    pub(super) fn take_syn_data(&mut self) -> Payload {
        let Some(request) = self.fast.request.as_ref().filter(|_| self.snd.syn_expiries == 0) else { return Payload::Empty };
        let start = self.snd.iss + 1;
        let len = u64::from(request.room).min(self.snd.buffer.end() - start) as u32;
        self.fast.carried = u64::from(len);
        self.snd.nxt = start + u64::from(len);
        if len > 0 {
            self.stats.data_segments_sent += 1;
            self.stats.data_octets_sent += u64::from(len);
        }
        self.snd.buffer.slice(start, len)
    }

    /// Whether the number that acknowledges our SYN is one that it can have: with some of the data, all or none.
    pub(super) fn acknowledges_syn(&self, ack: u64) -> bool {
        ack > self.snd.iss && ack <= self.snd.iss + 1 + self.fast.carried
            || self.fast.accepted && ack > self.snd.iss && ack <= self.snd.nxt
    }

    /// The peer has answered our SYN. What it did not take of the data goes again, at once: the handshake shows that nothing is congested.
    pub(super) fn settle_syn_data(&mut self, segment: &Segment, ack: u64) {
        let carried = self.fast.carried;
        if self.fast.request.is_some() {
            self.fast.answer = Some(Box::new(FastOpenAnswer {
                option: segment.options.rare.as_ref().and_then(|rare| rare.fast_open),
                mss: segment.options.mss,
                retried: self.snd.syn_expiries > 0,
                took_data: (carried > 0).then_some(ack > self.snd.iss + 1),
            }));
        }
        if carried == 0 {
            return;
        }
        let taken = ack - (self.snd.iss + 1);
        self.fast.again_until = self.snd.nxt;
        self.fast.worked = taken == carried;
        self.snd.una = ack;
        self.snd.nxt = ack;
        self.snd.buffer.release(ack);
        self.path.delivered += taken;
    }

    /// What has just been put on the scoreboard went with our SYN before.
    pub(super) fn note_repeated_syn_data(&mut self, now: Instant) {
        let index = self.snd.board.len() - 1;
        self.snd.board.mark_lost(index);
        self.snd.board.on_retransmit(index, now);
        self.snd.rtt.on_retransmit();
        self.stats.retransmissions += 1;
    }

    /// A listener's host has let the peer's SYN open the connection: its data is taken, and ours may leave.
    pub(super) fn accept_early(&mut self, now: Instant, segment: &Segment) {
        self.fast.accepted = true;
        // As if our SYN was acknowledged: what counts from here on is data.
        self.snd.una = self.snd.iss + 1;
        self.snd.nxt = self.snd.una;
        self.snd.peer.heed_from(self.rcv.next, self.snd.una);
        self.begin_window(now, self.config.initial_window);
        let start = self.rcv.next;
        self.process_data(now, segment, start);
        self.fast.worked = !segment.payload.is_empty();
        self.events.push_back(super::Event::Connected);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{data, secs, Pair};
    use super::super::{Command, Config, Input};
    use super::*;
    use crate::scheme::Selection;
    use crate::segment::Cookie;
    use bytes::Bytes;

    /// The server takes no data with the SYN, and smaller segments than that had. The first one is lost, and the window lets nothing follow it.
    #[test]
    fn a_tail_probe_ends_where_the_data_of_the_syn_did() {
        let mut pair = Pair::new("sack", &Config { mss: 536, ..Config::modern() }, &[2]);
        let mut config = Config { initial_window: 1, ..Config::modern() };
        let parts = Selection::scheme("sack").build(&mut config).unwrap();
        pair.ends[0] = Endpoint::new(config, parts, pair.ends[0].ports());
        let option = Some(FastOpen { cookie: Cookie::new(&[1; 8]), experimental: false });
        pair.ends[0].handle(Instant::ZERO, Input::Command(Command::ConnectFast(FastOpenRequest { option, room: 900 })));
        pair.tell(Command::Send(Payload::Bytes(Bytes::from(data(3000)))));
        pair.run(secs(20));
        let sent = pair.trace.iter().filter(|(_, who, segment)| *who == 0 && !segment.payload.is_empty());
        let lengths: Vec<usize> = sent.map(|(_, _, segment)| segment.payload.len()).take(3).collect();
        assert_eq!(lengths, [900, 524, 376]);
        assert_eq!((pair.ends[0].stats().tail_probes, pair.received() == data(3000)), (1, true));
    }
}
