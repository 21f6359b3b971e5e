//! What a retransmission timeout does. One file a policy.

mod aware;
mod blackout;
mod eifel;
mod fixed_rto;
mod frto;
mod judged;
mod nrt;
mod original;
mod probing;
mod regain;
mod standard;
#[cfg(test)]
mod tests;

pub use aware::Aware;
pub use blackout::Blackout;
pub use eifel::Eifel;
pub use fixed_rto::FixedRto;
pub use frto::FRto;
pub use judged::{Judged, Resumption};
pub use nrt::Nrt;
pub use probing::Probing;
pub use regain::Regain;
pub use standard::Standard;

use crate::choices;
use crate::kit::Part;
use crate::path::{Ack, Path, Probed};
use crate::time::Duration;
use crate::verdict::Verdict;
use std::fmt;

/// Decides what an expired retransmission timer does, and whether it was right.
pub trait TimeoutPolicy: fmt::Debug + Send {
    /// What the retransmission timeout exceeds SRTT by at least, unless SRTT itself is more; the configuration's least timeout where it says nothing or
    /// that is shorter. Asked once, when the connection is made.
    fn margin(&self) -> Option<Duration> {
        None
    }

    /// Whether it is to be told of acknowledgements at any time. Asked once, when the connection is made; false spares each packet a call in vain.
    fn listens(&self) -> bool {
        true
    }

    /// An acknowledgement arrived, at any time: what is to be measured is measured here. Called before [`assess`](Self::assess).
    fn on_ack(&mut self, _ack: &Ack) {}

    /// Whether an expired timer sets off a probe cycle, during which data waits, and the factor by which the probe timer grows with each probe in a row
    /// that is lost.
    fn probes(&self) -> Option<f64> {
        None
    }

    /// The probe cycle is over; [`on_timeout`](Self::on_timeout) comes next, unless everything has arrived by now.
    fn on_probed(&mut self, _probed: &Probed) {}

    /// The timer expired with data outstanding.
    fn on_timeout(&mut self, timeout: &Timeout) -> TimeoutResponse;

    /// An acknowledgement arrived while the timeout is not yet assessed for good.
    fn assess(&mut self, ack: &AfterTimeout) -> Assessment;

    /// The timeout was taken back: it was assessed as spurious, or duplicates that the receiver reports prove it (RFC 3708). Nothing is left
    /// to assess.
    fn on_undone(&mut self) {}
}

/// An expired retransmission timer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Timeout<'a> {
    /// The path before any reaction.
    pub path: &'a Path,
    /// Number of expiries in a row without progress, this one included: 1 for the first.
    pub consecutive: u32,
    /// For how long no segment of the peer has arrived while data was outstanding.
    pub silence: Duration,
    /// The ruling differentiator's verdict on the first outstanding segment.
    pub verdict: &'a Verdict,
    /// Whether SACK is in use.
    pub sack: bool,
    /// Whether timestamps are in use.
    pub timestamps: bool,
    /// Whether the connection was already repairing an earlier timeout.
    pub in_recovery: bool,
}

impl<'a> Timeout<'a> {
    /// A first expiry after no silence, without SACK and timestamps.
    pub const fn new(path: &'a Path, verdict: &'a Verdict) -> Self {
        Self { path, consecutive: 1, silence: Duration::ZERO, verdict, sack: false, timestamps: false, in_recovery: false }
    }
}

/// What to do about an expired timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeoutResponse {
    /// What becomes of the window.
    pub window: TimeoutWindow,
    /// Whether the timer backs off (RFC 6298, 5.5).
    pub back_off: bool,
    /// Whether only the first segment is taken for lost until the timeout has been assessed (RFC 5682), instead of everything.
    pub head_only: bool,
}

choices! {
    /// What an expired timer does to the window.
    pub enum TimeoutWindow {
        /// One segment; the threshold is the congestion control's (RFC 5681, 3.1).
        Collapse = "collapse",
        /// One segment; the threshold is the window that there was, so that slow start regains it.
        Regain = "regain",
        /// Window and threshold stay. Acknowledgements lead back to the window from one segment more than is in the network.
        Keep = "keep",
        /// Window and threshold stay. One segment after the other leads back to the window over one smoothed round-trip time.
        KeepPaced = "keep-paced",
        /// Window and threshold stay. All of the window may leave at once.
        KeepAtOnce = "keep-at-once",
    }
}

impl TimeoutWindow {
    /// Whether window and threshold stay.
    pub const fn keeps(self) -> bool {
        matches!(self, Self::Keep | Self::KeepPaced | Self::KeepAtOnce)
    }
}

/// An acknowledgement after a timeout.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AfterTimeout<'a> {
    /// The acknowledgement as congestion controls see it.
    pub ack: &'a Ack<'a>,
    /// Which acknowledgement since the timeout this is: 1 for the first.
    pub number: u32,
    /// For how long no segment of the peer had arrived before it.
    pub silence: Duration,
    /// `SND.NXT` at the timeout.
    pub recover: u64,
    /// End of the segment that the timeout retransmitted first (RFC 5682, 2.1 step 2a).
    pub head_end: u64,
    /// Whether it acknowledges, cumulatively or selectively, data beyond `recover` (RFC 5682, 3.1 step 3a).
    pub beyond_recover: bool,
    /// Whether it newly acknowledges, cumulatively or selectively, data that was sent before the timeout and not retransmitted since.
    pub original_delivered: bool,
    /// Whether new data was or can be sent (RFC 5682, 2.1 step 2b needs it).
    pub new_data_possible: bool,
    /// `TSval` of the retransmission that began the repair: the first one, also if the timer has expired again since.
    pub retransmission_tsval: Option<u32>,
    /// Whether the acknowledgement carries a D-SACK for the retransmitted segment.
    pub dsack: bool,
}

impl<'a> AfterTimeout<'a> {
    /// The first acknowledgement, which came at once and proves nothing, of a repair of all that is outstanding.
    pub const fn new(ack: &'a Ack<'a>) -> Self {
        Self {
            ack,
            number: 1,
            silence: Duration::ZERO,
            recover: ack.path.nxt,
            head_end: ack.path.una,
            beyond_recover: false,
            original_delivered: false,
            new_data_possible: true,
            retransmission_tsval: None,
            dsack: false,
        }
    }
}

/// What is known of a timeout after an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assessment {
    /// Not yet decided: retransmit nothing more and wait for the next acknowledgement. If this one advanced `SND.UNA`, up to two new
    /// segments may leave meanwhile (RFC 5682, 2.1 step 2b); if it did not, nothing does (RFC 5682, 3.1 step 2).
    Undecided,
    /// Something was lost, and why is not yet known: go on as for congestion, and ask again with the next acknowledgement. If the
    /// repair ends first, it was congestion.
    Repairing,
    /// Something was lost, to congestion for all that is known: go on with the retransmissions.
    Genuine,
    /// Something was lost, but not to congestion: window and threshold come back. Only what is missing is sent again: with SACK what
    /// was not reported, without it one segment for each acknowledgement that advances.
    Forgiven(Pardon),
    /// Nothing was lost: undo.
    Spurious,
}

/// How far a timeout is forgiven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pardon {
    /// How often the window is halved on its way back.
    pub halvings: u32,
    /// Whether the timer's back-off is taken back too, instead of with the next sample of the round-trip time.
    pub timer: bool,
    /// How the window comes back.
    pub exit: Exit,
}

choices! {
    /// How a forgiven window comes back without a burst: nothing clocks out what it would let go at once.
    pub enum Exit {
        /// What is in the network and an initial window; then slow start up to the old window (as RFC 4015, 3.2).
        SlowStart = "slow-start",
        /// One segment after the other over one smoothed round-trip time.
        Paced = "paced",
    }
}

/// What became of a timeout in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutOutcome {
    /// Not known: no acknowledgement decided it before the connection or the run was over.
    Undecided,
    /// Taken for congestion.
    Genuine,
    /// Taken for a loss without congestion.
    Forgiven,
    /// Nothing was lost.
    Spurious,
}

impl TimeoutOutcome {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Genuine => "genuine",
            Self::Forgiven => "forgiven",
            Self::Spurious => "spurious",
        }
    }
}

/// The built-in timeout policies, which scenarios can name.
pub static TABLE: &[Part<dyn TimeoutPolicy>] = &[
    standard::PART,
    frto::PART,
    eifel::PART,
    aware::PART,
    blackout::PART,
    nrt::PART,
    fixed_rto::PART,
    regain::PART,
    probing::PART,
    judged::PART,
];
