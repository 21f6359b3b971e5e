//! Whether anything is to be sent, at a glance: drivers ask until there is nothing more, so that every other answer is no.

use super::Endpoint;

impl Endpoint {
    /// Whether it is plain to see that nothing leaves now. If it is not, something may.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        let snd = &self.snd;
        let called =
            self.rcv.ack_now | self.syn_due | snd.closing | self.control.is_some() | snd.due.any() | !snd.probing.is_idle();
        if called || !snd.recovery.is_open() || snd.board.needs_repair() || !snd.asked.is_empty() {
            return false;
        }
        let unsent = snd.unsent();
        unsent == 0 || self.lacks_room(unsent)
    }

    /// Whether what is outstanding, all of it in the network, leaves no room in the congestion window for a full segment, which the peer and
    /// the application would let out.
    fn lacks_room(&self, unsent: u64) -> bool {
        let snd = &self.snd;
        let (mss, flight) = (u64::from(snd.mss), snd.flight());
        let (end, window) = (flight + mss, snd.peer.octets().min(self.config.send_buffer));
        end > self.window.cwnd()
            && end <= window
            && unsent >= mss
            && snd.recovery.dup_acks() == 0
            && snd.board.absent() == 0
            && snd.board.len() > 0
            && snd.nxt >= self.fast.again_until
            && snd.pacer.is_none()
            && !snd.buffer.has_records()
    }
}
