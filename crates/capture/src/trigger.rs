//! Why a sender sent a segment again.

use whyloss_transport::time::Duration;

/// Duplicate acknowledgements from which on a sender repairs (RFC 5681, 3.2).
pub const DUPLICATES: u32 = 3;

/// Why a sender sent a segment again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trigger {
    /// Duplicate acknowledgements or SACK blocks: the first repair of a recovery.
    Fast,
    /// A further repair of that recovery, for what SACK blocks leave out or a partial acknowledgement asks for.
    Recovery,
    /// A timer sent the last segment of a flight again, to provoke an acknowledgement (RFC 8985, 7).
    TailProbe,
    /// The retransmission timer expired.
    Timeout,
    /// The retransmission timer expired again for the same data.
    BackedOff,
    /// A further repair of a recovery that a timeout began.
    AfterTimeout,
    /// A SYN that was not answered.
    Handshake,
    /// The capture does not tell.
    Unknown,
}

impl Trigger {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Recovery => "recovery",
            Self::TailProbe => "tail-probe",
            Self::Timeout => "timeout",
            Self::BackedOff => "backed-off-timeout",
            Self::AfterTimeout => "after-timeout",
            Self::Handshake => "handshake",
            Self::Unknown => "unknown",
        }
    }

    /// The retransmission timer expired.
    pub const fn is_expiry(self) -> bool {
        matches!(self, Self::Timeout | Self::BackedOff)
    }
}

/// What the capture shows of a segment that was sent again, and of what its sender knew then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clues {
    /// It begins with what the sender has to repair first.
    pub head: bool,
    /// It ends with the newest octet.
    pub tail: bool,
    /// Duplicate acknowledgements that the sender had.
    pub duplicates: u32,
    /// Something above it was selectively acknowledged.
    pub sacked: bool,
    /// It had been sent again before, since the recovery that is under way began.
    pub repeated: bool,
    /// The sender knows that something arrived that it had sent later than this was sent before (RFC 8985).
    pub overtaken: bool,
    /// It knows so by the latest acknowledgements.
    pub overtaken_now: bool,
    /// The third duplicate is so long ago that nothing followed from it, and there are no SACK blocks.
    pub stale: bool,
    /// Time since the retransmission timer was started anew, as far as the capture tells.
    pub waited: Duration,
    /// Time since the sender received an acknowledgement.
    pub quiet: Duration,
    /// Time since it did or sent anything.
    pub idle: Duration,
    /// How exactly that is known.
    pub blur: Duration,
    /// The sender's smoothed round trip.
    pub trip: Option<Duration>,
    /// The shortest time after which its timer expires.
    pub timeout: Duration,
    /// A recovery is under way that began with duplicates (`Some(false)`) or with a timeout (`Some(true)`).
    pub recovery: Option<bool>,
    /// The timer has expired since the sender last heard of progress.
    pub expired: bool,
    /// The sender may use tail loss probes: both ends can do SACK, and nothing speaks against it.
    pub probes: bool,
    /// One is out.
    pub probed: bool,
}

impl Clues {
    /// What they say.
    pub fn trigger(&self) -> Trigger {
        let clocked = self.quiet <= self.blur;
        let evidence = self.duplicates >= DUPLICATES && !self.stale || self.sacked;
        // Timers end a little late, and estimates of them are a little wrong.
        let overdue = self.waited >= self.timeout - self.timeout / 10;
        let open = self.recovery.is_none();
        // A probe stands for the timer as long as nothing else is known; its time is at most that of the timer (RFC 8985, 7.2).
        let probe = self.tail && open && !self.probed && !self.sacked && self.duplicates == 0 && self.probes;
        if probe && !clocked && self.trip.is_some_and(|trip| self.idle >= trip + trip / 2) {
            return Trigger::TailProbe;
        }
        // What acknowledgements ask for now and did not before is a repair, however long the timer has run.
        let asked = clocked && evidence && (!self.repeated || self.overtaken_now) && self.recovery != Some(true);
        // Nothing but the timer repairs a repair before something later has arrived.
        let alone = self.repeated && !self.overtaken;
        if self.head && (overdue && !asked || alone || self.stale && self.recovery != Some(true)) {
            return if self.expired { Trigger::BackedOff } else { Trigger::Timeout };
        }
        match self.recovery {
            Some(true) => return Trigger::AfterTimeout,
            Some(false) => return Trigger::Recovery,
            None => {}
        }
        if evidence || clocked && self.duplicates > 0 {
            Trigger::Fast
        } else if self.head && !clocked && self.trip.is_none_or(|trip| self.waited > trip * 2) {
            Trigger::Timeout
        } else if clocked {
            Trigger::Fast
        } else {
            Trigger::Unknown
        }
    }
}
