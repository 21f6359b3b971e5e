//! How the congestion window moves. One file an algorithm.

mod auto;
mod bbr;
mod cubic;
mod gaimd;
mod hystart;
mod jersey;
mod lbe;
mod newreno;
mod none;
mod reno;
mod santa_cruz;
mod slow_start;
mod tcp_real;
#[cfg(test)]
mod tests;
mod vegas;
mod veno;
mod westwood;
mod westwood_plus;
mod wtcp;

pub use auto::Auto;
pub use bbr::v1::Bbr;
pub use bbr::v3::Bbr3;
pub use cubic::Cubic;
pub use gaimd::Gaimd;
pub use lbe::Lbe;
pub use newreno::NewReno;
pub use none::None;
pub use reno::Reno;
pub use santa_cruz::SantaCruz;
pub use tcp_real::TcpReal;
pub use vegas::Vegas;
pub use veno::Veno;
pub use westwood::Westwood;
pub use wtcp::Wtcp;

use crate::kit::Part;
use crate::path::{Ack, Forgiven, Formation, LostSegment, Path, Sent};
use crate::time::Duration;
use std::fmt;

/// Decides how the window grows, and how far it shrinks when it has to.
///
/// *Whether* it has to shrink is not decided here: that is for the differentiator's verdict and the reaction.
pub trait CongestionControl: fmt::Debug + Send {
    /// Whether each data segment has to carry the wave that it belongs to, and what forms waves.
    fn wants_waves(&self) -> Option<Formation> {
        Option::None
    }

    /// Whether each data segment has to say how it left, so that the receiver can tell the sender its rate.
    fn wants_separations(&self) -> bool {
        false
    }

    /// Whether it goes by a model of the path. It is then told delivery rates ([`Ack::sample`]) and losses ([`on_lost`](Self::on_lost)), sends at a rate, and sets
    /// the window itself whatever happens: the engine's rules for recovery, undoing and restart after idling leave it alone, a timeout alone sets it
    /// to one segment.
    fn is_model_based(&self) -> bool {
        false
    }

    /// The time from a data segment of so many octets to the next, for senders that go by a rate ([`wants_separations`](Self::wants_separations),
    /// [`is_model_based`](Self::is_model_based)); `None` while there is none and acknowledgements let segments out.
    fn separation(&self, _octets: u32) -> Option<Duration> {
        Option::None
    }

    /// Segments that leave at once at least where a rate keeps them apart, as `min_tso_segs` of a control in Linux. `None`: what the configuration lets
    /// go, of which two are the least if it is a burst (`pacing_burst`).
    fn least_burst(&self) -> Option<u32> {
        Option::None
    }

    /// The connection is established and `window` holds the initial window.
    fn on_established(&mut self, _window: &mut Window, _path: &Path) {}

    /// A segment with data left.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// An acknowledgement arrived. Growth belongs here; recovery's own arithmetic is the engine's. Called for every acknowledgement,
    /// with [`Ack::in_recovery`] saying whether loss recovery holds the window.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// Data was lost that the reaction, or the timeout policy, did not answer with a reduction.
    fn on_forgiven(&mut self, _window: &Window, _forgiven: &Forgiven) {}

    /// The window in octets that loss recovery is to leave behind, for algorithms that are moved by more than losses: while recovery holds the window they
    /// cannot change it. Asked after each acknowledgement then; a recovery that has reduced the window leaves no more than it has reduced it to.
    fn recovery_window(&self) -> Option<u64> {
        Option::None
    }

    /// A segment is taken for lost, and no verdict excuses it. Told to those that go by a model, before the acknowledgement that showed it.
    fn on_lost(&mut self, _window: &Window, _lost: &LostSegment, _path: &Path) {}

    /// `octets` are taken for lost that a verdict excuses. Told to those that go by a model, as [`on_lost`](Self::on_lost).
    fn on_excused(&mut self, _octets: u64) {}

    /// The engine notes the window, in case what follows proves wrong: note what [`on_undo`](Self::on_undo) will need. Called once
    /// before the reductions of an episode, of which there may be several.
    fn save(&mut self) {}

    /// A congestion signal (loss, timeout or ECN): the slow-start threshold in octets. The window falls to it; where it is above the
    /// window, the window stays and may grow to it in slow start.
    fn threshold(&mut self, window: &Window, path: &Path) -> u64;

    /// The threshold to fall to when the retransmission timer has expired, for algorithms that take that for worse than a single loss.
    fn timeout_threshold(&mut self, window: &Window, path: &Path) -> u64 {
        self.threshold(window, path)
    }

    /// The retransmission timer has collapsed the window; `threshold` was asked before.
    fn on_timeout(&mut self, _window: &mut Window, _path: &Path) {}

    /// The reductions since [`save`](Self::save) proved wrong: the window comes back by itself, the algorithm takes back its own state.
    fn on_undo(&mut self, _window: &mut Window, _path: &Path) {}
}

/// Congestion window and slow-start threshold in octets.
///
/// Keeps the rules that no algorithm may break: `cwnd >= 1 MSS` and `ssthresh >= 2 MSS`.
#[derive(Clone, Debug)]
pub struct Window {
    cwnd: u64,
    /// Growth below one octet, carried to the next acknowledgement.
    fraction: f64,
    ssthresh: u64,
    mss: u32,
    cap: u64,
    /// Segments that an acknowledgement may grow the window by in slow start.
    slow_start_limit: Option<u32>,
    /// Thresholds are rounded down to whole segments.
    whole_thresholds: bool,
}

impl Window {
    /// A window of `initial` octets for segments of `mss` octets with a first threshold of `ssthresh`.
    pub fn new(mss: u32, initial: u64, ssthresh: u64) -> Self {
        let (cap, slow_start_limit) = (u64::MAX, Some(2));
        let mut window = Self { cwnd: 0, fraction: 0.0, ssthresh: 0, mss, cap, slow_start_limit, whole_thresholds: false };
        window.set_cwnd(initial);
        window.set_ssthresh(ssthresh);
        window
    }

    /// Never lets the window grow beyond `cap` octets.
    pub fn set_cap(&mut self, cap: u64) {
        self.cap = cap.max(u64::from(self.mss));
        self.cwnd = self.cwnd.min(self.cap);
    }

    /// Changes how many segments an acknowledgement may grow the window by in slow start: `L` of RFC 3465, 2.2, at first 2; `None`: as many as
    /// it acknowledges.
    pub fn set_slow_start_limit(&mut self, segments: Option<u32>) {
        self.slow_start_limit = segments;
    }

    /// See [`set_slow_start_limit`](Self::set_slow_start_limit).
    pub const fn slow_start_limit(&self) -> Option<u32> {
        self.slow_start_limit
    }

    /// Whether thresholds are rounded down to whole segments from now on; at first they are not.
    pub fn set_whole_thresholds(&mut self, whole: bool) {
        self.whole_thresholds = whole;
    }

    /// Congestion window in octets.
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// Slow-start threshold in octets.
    pub const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Congestion window in full segments, parts of one included.
    pub fn segments(&self) -> f64 {
        self.cwnd as f64 / f64::from(self.mss)
    }

    /// As much of the window as was used. The flight counts what has been SACKed: where one loss follows another it can exceed the
    /// window, and an algorithm that gives up less than half would give up nothing.
    pub fn used(&self, path: &Path) -> u64 {
        self.cwnd.min(path.flight)
    }

    /// Octets of a full segment.
    pub const fn mss(&self) -> u32 {
        self.mss
    }

    /// Whether the window is below the slow-start threshold.
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows the window by `octets`, which may be less than one.
    pub fn grow(&mut self, octets: f64) {
        let total = self.fraction + octets;
        let whole = total as u64;
        self.fraction = total - whole as f64;
        self.cwnd = (self.cwnd + whole).min(self.cap);
    }

    /// Sets the window; less than one segment becomes one segment.
    pub fn set_cwnd(&mut self, octets: u64) {
        self.fraction = 0.0;
        self.cwnd = octets.max(u64::from(self.mss)).min(self.cap);
    }

    /// Sets the threshold; less than two segments becomes two segments.
    pub fn set_ssthresh(&mut self, octets: u64) {
        let mss = u64::from(self.mss);
        let part = if self.whole_thresholds { octets % mss } else { 0 };
        self.ssthresh = (octets - part).max(2 * mss);
    }

    /// Changes the segment size (path MTU, options); the window keeps its octets.
    pub fn set_mss(&mut self, mss: u32) {
        self.mss = mss;
        self.set_cwnd(self.cwnd);
        self.set_ssthresh(self.ssthresh);
    }
}

/// The built-in congestion controls, which scenarios can name.
pub static TABLE: &[Part<dyn CongestionControl>] = &[
    reno::PART,
    newreno::PART,
    cubic::PART,
    gaimd::PART,
    vegas::PART,
    veno::PART,
    santa_cruz::PART,
    westwood::PART,
    westwood_plus::PART,
    auto::PART,
    bbr::v1::PART,
    bbr::v3::PART,
    wtcp::PART,
    jersey::PART,
    tcp_real::PART,
    lbe::PART,
    none::PART,
];
