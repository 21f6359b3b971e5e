//! Which data is acknowledged at once although acknowledgements are delayed.

use crate::time::{Duration, Instant};

/// Acknowledgements that do not wait: at the beginning, and after a pause, the peer's window is small and each acknowledgement lets it
/// grow. Where our own data answers the peer's, that carries the acknowledgement, and waiting for it is worth while.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QuickAcks {
    /// How many are left.
    left: u32,
    last_data: Option<Instant>,
    /// Our data has answered the peer's.
    interactive: bool,
    /// The peer's SYN-ACK is not yet acknowledged.
    handshake_open: bool,
}

impl QuickAcks {
    /// Data has arrived. After a pause longer than `pause`, and at first, `quota` acknowledgements are quick.
    pub fn on_data(&mut self, now: Instant, quota: u32, pause: Duration) {
        if self.last_data.replace(now).is_none_or(|last| now.since(last) > pause) {
            self.left = quota;
        }
    }

    /// Data leaves; it is an answer if the peer's came less than `delay` ago.
    pub fn on_data_sent(&mut self, now: Instant, delay: Duration) {
        self.interactive |= self.handshake_open || self.last_data.is_some_and(|last| now.since(last) < delay);
    }

    /// The peer's SYN-ACK has come. Data that carries its acknowledgement answers it.
    pub fn on_syn_ack(&mut self) {
        self.handshake_open = true;
    }

    /// An acknowledgement leaves, alone or with data.
    pub fn on_ack_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.handshake_open = false;
    }

    /// An acknowledgement has waited in vain for data to go with.
    pub fn on_delay_over(&mut self) {
        self.interactive = false;
    }

    /// Whether data that arrives now is acknowledged at once.
    pub const fn apply(&self) -> bool {
        self.left > 0 && !self.interactive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_end_by_number_and_by_an_answer_and_begin_after_a_pause() {
        let ms = |n: u64| Instant::ZERO + Duration::from_millis(n);
        let (pause, delay) = (Duration::from_millis(200), Duration::from_millis(40));
        let mut quick = QuickAcks::default();
        assert!(!quick.apply());
        quick.on_data(ms(0), 2, pause);
        assert!(quick.apply());
        quick.on_ack_sent();
        quick.on_ack_sent();
        quick.on_data(ms(100), 2, pause);
        assert!(!quick.apply(), "used up");
        quick.on_data(ms(301), 2, pause);
        assert!(quick.apply(), "after a pause");
        quick.on_data_sent(ms(341), delay);
        assert!(quick.apply(), "not an answer");
        quick.on_data_sent(ms(340), delay);
        assert!(!quick.apply(), "an answer");
        quick.on_delay_over();
        assert!(quick.apply());
    }
}
