//! The window that the peer announces (RFC 9293, 3.8.6).

/// How much the peer takes, in octets, and which segment has said so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerWindow {
    octets: u64,
    largest: u64,
    /// `SND.WL1` and `SND.WL2`: position and acknowledgement of the segment that set it.
    set_by: (u64, u64),
    shift: u8,
}

/// What a segment did to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowChange {
    pub from: u64,
    pub to: u64,
}

impl PeerWindow {
    pub const fn octets(&self) -> u64 {
        self.octets
    }

    /// The largest that was ever announced.
    pub const fn largest(&self) -> u64 {
        self.largest
    }

    /// The peer's window scale.
    pub const fn shift(&self) -> u8 {
        self.shift
    }

    /// Windows are scaled by 2^`shift` from now on.
    pub fn scale_by(&mut self, shift: u8) {
        self.shift = shift.min(14); // RFC 7323, 2.3
    }

    /// The window of a SYN, which is never scaled.
    pub fn begin(&mut self, window: u16) {
        self.octets = u64::from(window);
        self.largest = self.octets;
    }

    /// The first scaled window, on the acknowledgement of a SYN-ACK.
    pub fn begin_scaled(&mut self, window: u16) {
        self.begin(window);
        self.octets <<= self.shift;
        self.largest = self.octets;
    }

    /// Segments from position `start` and with acknowledgement `ack` on are newer than what has set the window.
    pub fn heed_from(&mut self, start: u64, ack: u64) {
        self.set_by = (start, ack);
    }

    /// The window of the newest segment counts (RFC 9293, 3.10.7.4); `None`: this one is older. A retransmission can be newer than what it
    /// repeats: its acknowledgement then moves the window, which must not slide with an older size.
    pub fn update(&mut self, window: u16, start: u64, ack: u64) -> Option<WindowChange> {
        let (by_start, by_ack) = self.set_by;
        let newer = by_start < start || by_start == start && by_ack <= ack;
        if !newer && ack <= by_ack {
            return None;
        }
        let from = self.octets;
        self.octets = u64::from(window) << self.shift;
        self.largest = self.largest.max(self.octets);
        self.set_by = (by_start.max(start), ack.max(by_ack));
        Some(WindowChange { from, to: self.octets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_newer_segments_move_the_window() {
        let mut window = PeerWindow::default();
        window.begin(1000);
        window.scale_by(20);
        assert_eq!(window.shift(), 14);
        window.scale_by(2);
        window.heed_from(10, 100);
        assert_eq!(window.update(500, 10, 100), Some(WindowChange { from: 1000, to: 2000 }));
        assert_eq!(window.update(0, 9, 100), None, "an older segment");
        assert_eq!(
            window.update(0, 9, 101),
            Some(WindowChange { from: 2000, to: 0 }),
            "an older position, a newer acknowledgement"
        );
        assert_eq!(window.update(700, 9, 100), None);
        assert_eq!((window.octets(), window.largest()), (0, 2000));
    }
}
