//! No congestion control: a window that never moves.

use super::{CongestionControl, Window};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, Path};
use crate::settings;

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "none",
    summary: "A window that never moves.",
    reference: "for experiments",
    notes: Notes::NONE,
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// The window in segments.
        segments: u64 = 10, 1..=1_000_000;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(None::new(self.segments))
    }
}

/// A fixed window, through losses and timeouts. For experiments on a path that the sender has to itself.
#[derive(Debug)]
pub struct None {
    segments: u64,
}

impl None {
    /// A window of `segments` segments.
    pub fn new(segments: u64) -> Self {
        Self { segments }
    }

    fn restore(&self, window: &mut Window) {
        window.set_cwnd(self.octets(window));
    }

    fn octets(&self, window: &Window) -> u64 {
        self.segments * u64::from(window.mss())
    }
}

impl CongestionControl for None {
    fn on_established(&mut self, window: &mut Window, _path: &Path) {
        self.restore(window);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if !ack.in_recovery {
            self.restore(window);
        }
    }

    fn threshold(&mut self, window: &Window, _path: &Path) -> u64 {
        self.octets(window)
    }

    fn on_timeout(&mut self, window: &mut Window, _path: &Path) {
        self.restore(window);
    }
}
