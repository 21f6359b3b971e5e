//! The error queue of a socket: what has become of octets that were sent (`MSG_ZEROCOPY`, `SO_TIMESTAMPING`).

use std::collections::VecDeque;
use whyloss_transport::Instant;

/// From Linux's `linux/socket.h`.
pub const MSG_ZEROCOPY: i32 = 0x0400_0000;
/// Messages that an error queue holds; further ones are lost.
const MOST: usize = 1024;

/// Where a message of the error queue comes from (`linux/errqueue.h` and `linux/net_tstamp.h`).
pub const ORIGIN_TIMESTAMPING: u8 = 4;
pub const ORIGIN_ZEROCOPY: u8 = 5;
pub const CODE_ZEROCOPY_COPIED: u8 = 1;
const SENT: u32 = 0;
const SCHEDULED: u32 = 1;
const ACKNOWLEDGED: u32 = 2;
pub const TX_SOFTWARE: u32 = 1 << 1;
pub const TX_SCHED: u32 = 1 << 8;
pub const TX_ACK: u32 = 1 << 9;

/// One message of the error queue (`MSG_ERRQUEUE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// These sends, counted from 0, need their memory no more.
    ZeroCopy { first: u32, last: u32 },
    /// The last octet of a write, at this offset, has come so far.
    Timestamp { at: Instant, stage: u32, offset: u32 },
}

/// The error queue, and what will come to it.
#[derive(Debug, Default)]
pub struct ErrorQueue {
    messages: VecDeque<Message>,
    writes: VecDeque<Write>,
    zero_copies: u32,
}

/// Octets of a write whose release or transmission the application asked to be told of.
#[derive(Debug)]
struct Write {
    /// Where they end, as an offset.
    end: u64,
    zero_copy: Option<u32>,
    /// Flags `SOF_TIMESTAMPING_…`: the stages to tell of.
    stamps: u32,
    sent: bool,
}

impl ErrorQueue {
    pub fn take(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// A write that ends at offset `end`.
    pub fn note_write(&mut self, end: u64, zero_copy: bool, stamps: u32) {
        if (zero_copy || stamps != 0) && self.writes.len() < MOST {
            let number = zero_copy.then_some(self.zero_copies);
            self.zero_copies += u32::from(zero_copy);
            self.writes.push_back(Write { end, zero_copy: number, stamps, sent: false });
        }
    }

    fn add(&mut self, message: Message) {
        if let (Some(Message::ZeroCopy { last, .. }), Message::ZeroCopy { first, last: new }) =
            (self.messages.back_mut(), message)
        {
            if *last + 1 == first {
                *last = new;
                return;
            }
        }
        if self.messages.len() < MOST {
            self.messages.push_back(message);
        }
    }

    /// Everything up to offset `sent` has left and up to `acknowledged` has arrived; returns whether there are new messages.
    pub fn advance(&mut self, now: Instant, sent: u64, acknowledged: u64) -> bool {
        let before = (self.messages.len(), self.messages.back().copied());
        let mut news = Vec::new();
        for write in self.writes.iter_mut().filter(|write| !write.sent && write.end <= sent) {
            write.sent = true;
            for (flag, stage) in [(TX_SCHED, SCHEDULED), (TX_SOFTWARE, SENT)] {
                if write.stamps & flag != 0 {
                    news.push(Message::Timestamp { at: now, stage, offset: write.end as u32 - 1 });
                }
            }
        }
        while self.writes.front().is_some_and(|write| write.end <= acknowledged) {
            let Some(write) = self.writes.pop_front() else { break };
            if write.stamps & TX_ACK != 0 {
                news.push(Message::Timestamp { at: now, stage: ACKNOWLEDGED, offset: write.end as u32 - 1 });
            }
            if let Some(number) = write.zero_copy {
                news.push(Message::ZeroCopy { first: number, last: number });
            }
        }
        for message in news {
            self.add(message);
        }
        before != (self.messages.len(), self.messages.back().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_completions_are_one_message_until_it_is_taken() {
        let mut queue = ErrorQueue::default();
        for end in [100, 200, 300] {
            queue.note_write(end, true, 0);
        }
        assert!(!queue.advance(Instant::ZERO, 300, 99));
        assert!(queue.advance(Instant::ZERO, 300, 200));
        assert_eq!(queue.take(), Some(Message::ZeroCopy { first: 0, last: 1 }));
        assert!(queue.advance(Instant::ZERO, 300, 300));
        assert_eq!((queue.take(), queue.take()), (Some(Message::ZeroCopy { first: 2, last: 2 }), None));
    }

    #[test]
    fn stamps_tell_of_leaving_and_arriving() {
        let mut queue = ErrorQueue::default();
        queue.note_write(1000, false, TX_SCHED | TX_SOFTWARE | TX_ACK);
        let (sent, acknowledged) = (Instant::from_nanos(1), Instant::from_nanos(2));
        queue.advance(sent, 999, 0);
        assert!(queue.is_empty());
        queue.advance(sent, 1000, 0);
        queue.advance(acknowledged, 1000, 1000);
        let stages: Vec<_> = std::iter::from_fn(|| queue.take()).collect();
        let stamp = |at, stage| Message::Timestamp { at, stage, offset: 999 };
        assert_eq!(stages, [stamp(sent, SCHEDULED), stamp(sent, SENT), stamp(acknowledged, ACKNOWLEDGED)]);
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut queue = ErrorQueue::default();
        for end in 1..3 * MOST as u64 {
            queue.note_write(end, false, TX_ACK);
            queue.advance(Instant::ZERO, end, end);
        }
        assert_eq!(std::iter::from_fn(|| queue.take()).count(), MOST);
    }
}
