//! The transport engine's algorithms, driven as its endpoint drives them, but without an endpoint.

use crate::parts;
use whyloss_transport::congestion::Window;
use whyloss_transport::differentiation::{Cause, Verdict};
use whyloss_transport::path::{Ack, Loss, Path, Trigger};
use whyloss_transport::reaction::Response;
use whyloss_transport::scheme::Selection;
use whyloss_transport::{Config, Parts};

/// A scheme's parts and the window that they move.
pub struct Reference {
    parts: Parts,
    pub window: Window,
    saved: (u64, u64),
}

/// The parts that a core is compared with.
fn selection(control: &str) -> Selection {
    let parts = parts::selection(control);
    // Spike's differentiator works at the receiver; the rest is that of the others.
    let differentiator = parts.differentiator.clone().filter(|name| name != "spike");
    Selection { differentiator, ..parts }
}

impl Reference {
    pub fn new(control: &str, window: Window) -> Self {
        let parts = selection(control).build(&mut Config::modern()).expect("a scheme");
        Self { parts, saved: (window.cwnd(), window.ssthresh()), window }
    }

    /// The window in segments.
    pub fn segments(&self) -> f64 {
        self.window.segments()
    }

    pub fn acknowledge(&mut self, ack: &Ack) {
        self.parts.differentiators.ruling.on_ack(ack);
    }

    pub fn grow(&mut self, ack: &Ack) {
        self.parts.congestion.on_ack(&mut self.window, ack);
    }

    pub fn judge(&mut self, loss: &Loss) -> Verdict {
        self.parts.differentiators.ruling.judge(loss)
    }

    fn save(&mut self) {
        self.saved = (self.window.cwnd(), self.window.ssthresh());
        self.parts.congestion.save();
    }

    /// Reacts to a loss; returns whether the window was reduced.
    pub fn respond(&mut self, verdict: &Verdict, loss: &Loss) -> bool {
        let response = self.parts.reaction.respond(verdict, loss);
        if loss.first_of_episode {
            self.save();
        }
        let threshold = match response {
            Response::Keep => return false,
            Response::Reduce => self.parts.congestion.threshold(&self.window, loss.path),
            Response::Scale(factor) => (self.window.cwnd() as f64 * factor) as u64,
            Response::Limit(octets) => octets,
        };
        self.reduce_to(threshold);
        true
    }

    /// The kernel's threshold is one of whole segments. An octet short of one is the rounding of octets.
    fn reduce_to(&mut self, threshold: u64) {
        let (before, mss) = (self.window.cwnd(), u64::from(self.window.mss()));
        self.window.set_ssthresh((threshold + 1) / mss * mss);
        if self.window.ssthresh() < before {
            self.window.set_cwnd(self.window.ssthresh());
        }
    }

    pub fn time_out(&mut self, path: &Path) {
        self.save();
        let threshold = self.parts.congestion.timeout_threshold(&self.window, path);
        self.reduce_to(threshold);
        self.window.set_cwnd(u64::from(path.mss));
        self.parts.congestion.on_timeout(&mut self.window, path);
    }

    /// A timeout is forgiven with `pipe` octets in the network: slow start from there and an initial window of ten segments.
    pub fn forgive(&mut self, path: &Path, pipe: u64) {
        let before = self.window.cwnd();
        let target = self.saved.0.max(before);
        self.window.set_ssthresh(self.saved.1.max(target));
        self.window.set_cwnd(target.min(pipe + 10 * u64::from(path.mss)).max(before));
        self.parts.congestion.on_undo(&mut self.window, path);
    }

    pub fn undo(&mut self, path: &Path) {
        self.window.set_cwnd(self.saved.0.max(self.window.cwnd()));
        self.window.set_ssthresh(self.saved.1.max(self.window.ssthresh()));
        self.parts.congestion.on_undo(&mut self.window, path);
    }
}

/// `cause` as C counts it.
pub fn number(cause: Cause) -> u32 {
    match cause {
        Cause::Unknown => 0,
        Cause::Congestion => 1,
        Cause::Corruption => 2,
    }
}

pub fn trigger(timeout: bool) -> Trigger {
    if timeout {
        Trigger::Timeout
    } else {
        Trigger::DuplicateAcks
    }
}
