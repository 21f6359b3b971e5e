//! Proportional rate reduction (RFC 9937).

/// Meters out what may be sent in fast recovery so that the window falls smoothly to the threshold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prr {
    /// `RecoverFS`: octets outstanding at the start, less those already delivered.
    recover_fs: u64,
    delivered: u64,
    out: u64,
    /// The window to arrive at.
    target: u64,
}

impl Prr {
    pub fn new(recover_fs: u64, target: u64) -> Self {
        Self { recover_fs: recover_fs.max(1), delivered: 0, out: 0, target }
    }

    /// Changes the window to arrive at.
    pub fn retarget(&mut self, target: u64) {
        self.target = target;
    }

    /// The window after an acknowledgement that delivered `delivered` octets. `safe` means that the acknowledgement advanced
    /// `SND.UNA` and revealed no further loss.
    pub fn on_ack(&mut self, delivered: u64, pipe: u64, mss: u64, safe: bool) -> u64 {
        self.delivered += delivered;
        let mut count = if pipe > self.target {
            (self.delivered * self.target).div_ceil(self.recover_fs).saturating_sub(self.out)
        } else {
            let mut limit = self.delivered.saturating_sub(self.out).max(delivered);
            if safe {
                limit += mss;
            }
            limit.min(self.target - pipe)
        };
        if self.out == 0 {
            count = count.max(mss); // the first fast retransmit is never held back
        }
        pipe + count
    }

    pub fn on_sent(&mut self, octets: u64) {
        self.out += octets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_falls_in_proportion_to_what_is_delivered() {
        let (mss, flight, ssthresh) = (1000, 20_000, 10_000);
        let mut prr = Prr::new(flight, ssthresh);
        let (mut pipe, mut sent) = (19_000, 0);
        for _ in 0..18 {
            pipe -= mss;
            let cwnd = prr.on_ack(mss, pipe, mss, false);
            while pipe + mss <= cwnd {
                pipe += mss;
                sent += 1;
                prr.on_sent(mss);
            }
        }
        assert_eq!(sent, 9, "one segment for every two delivered");
        assert_eq!(pipe, ssthresh);
    }

    #[test]
    fn a_kept_window_sends_one_segment_for_each_delivered() {
        let mut prr = Prr::new(20_000, 20_000);
        prr.on_sent(1000);
        for _ in 0..10 {
            assert_eq!(prr.on_ack(1000, 19_000, 1000, false), 20_000);
            prr.on_sent(1000);
        }
    }
}
