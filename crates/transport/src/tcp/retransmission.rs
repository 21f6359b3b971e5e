//! Why a segment left again: what a driver may tell of it beside the segment. It is not on the wire, and the engine itself does not go by it.

/// What made a sender send a segment again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RetransmissionTrigger {
    /// Duplicate acknowledgements, SACK blocks or RACK's timing: the first repair of a recovery.
    Fast,
    /// A further repair of that recovery.
    Recovery,
    /// A tail loss probe (RFC 8985, 7).
    TailProbe,
    /// The retransmission timer expired (RFC 6298, 5.4).
    Timeout,
    /// It expired again, without progress in between.
    BackedOff,
    /// A further repair of the slow start that a timeout began.
    AfterTimeout,
    /// A SYN or SYN-ACK, or data that had left with one.
    Handshake,
    /// A probe of a window that the peer has closed.
    WindowProbe,
    /// Outside of any recovery: the receiver asked for it, the path carries smaller packets only, the peer's window opened again.
    Other,
}

impl RetransmissionTrigger {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Fast,
        Self::Recovery,
        Self::TailProbe,
        Self::Timeout,
        Self::BackedOff,
        Self::AfterTimeout,
        Self::Handshake,
        Self::WindowProbe,
        Self::Other,
    ];

    /// The name in comments and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Recovery => "recovery",
            Self::TailProbe => "tail-probe",
            Self::Timeout => "timeout",
            Self::BackedOff => "backed-off-timeout",
            Self::AfterTimeout => "after-timeout",
            Self::Handshake => "handshake",
            Self::WindowProbe => "window-probe",
            Self::Other => "other",
        }
    }
}

/// The latest retransmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latest {
    /// How many segments had left with it.
    pub number: u64,
    /// What it was due to.
    pub trigger: RetransmissionTrigger,
}
