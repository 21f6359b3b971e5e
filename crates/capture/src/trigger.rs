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
    /// It begins with that, and something above it was repaired in the recovery that is under way.
    pub passed: bool,
    /// The sender should know that it arrived: it has heard less than it seems.
    pub behind: bool,
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
    /// What the sender has to repair first was not seen repaired, and the capture may have been too late for that.
    pub skipped: bool,
    /// It belongs to a recovery that the sender could have taken back.
    pub withdrawn: bool,
    /// Time for which the sender had sent nothing.
    pub silent: Duration,
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
        let alone = self.repeated && !self.overtaken || self.passed && (self.recovery == Some(true) || !clocked || self.behind);
        if self.head && (overdue && !asked || alone || self.stale && self.recovery != Some(true)) {
            return if self.expired { Trigger::BackedOff } else { Trigger::Timeout };
        }
        match self.recovery {
            Some(true) => return Trigger::AfterTimeout,
            Some(false) => return Trigger::Recovery,
            None => {}
        }
        if self.skipped || self.withdrawn && self.head && !evidence && self.duplicates == 0 {
            // The first repair is that of what is missing first; it was lost before the capture. Or the sender goes on without a new reason.
            Trigger::Recovery
        } else if !evidence && clocked && self.silent >= self.timeout {
            // The timer's own repair was lost before the capture; what answers to it is the next.
            Trigger::AfterTimeout
        } else if evidence || clocked && self.duplicates > 0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of what is outstanding is sent again a round trip of 50 ms after progress, at once when an acknowledgement comes.
    fn head() -> Clues {
        let millis = Duration::from_millis;
        Clues {
            head: true,
            overtaken: true,
            waited: millis(50),
            blur: millis(2),
            trip: Some(millis(50)),
            timeout: millis(200),
            ..Clues::default()
        }
    }

    #[test]
    fn repairs_go_upwards_and_only_the_timer_goes_back() {
        let dupes = Clues { duplicates: 5, ..head() };
        assert_eq!(dupes.trigger(), Trigger::Fast);
        let again = Clues { recovery: Some(false), passed: true, quiet: Duration::from_millis(60), ..dupes };
        assert_eq!(again.trigger(), Trigger::Timeout, "no acknowledgement asks for it");
        assert_eq!(Clues { quiet: Duration::ZERO, ..again }.trigger(), Trigger::Recovery, "one does");
        assert_eq!(
            Clues { quiet: Duration::ZERO, behind: true, ..again }.trigger(),
            Trigger::Timeout,
            "it has not heard of that"
        );
        assert_eq!(Clues { recovery: Some(true), expired: true, ..again }.trigger(), Trigger::BackedOff);
        assert_eq!(Clues { passed: false, recovery: Some(true), ..again }.trigger(), Trigger::AfterTimeout);
    }

    #[test]
    fn a_recovery_whose_first_repair_was_lost_before_the_capture_is_known_by_the_second() {
        let second = Clues { head: false, sacked: true, skipped: true, ..head() };
        assert_eq!(second.trigger(), Trigger::Recovery);
        assert_eq!(Clues { head: true, skipped: false, ..second }.trigger(), Trigger::Fast);
        let silent = Clues { silent: Duration::from_millis(250), ..head() };
        assert_eq!(silent.trigger(), Trigger::AfterTimeout, "an acknowledgement lets it out, long after its sender's last");
        assert_eq!(Clues { silent: Duration::from_millis(50), ..head() }.trigger(), Trigger::Fast);
    }

    #[test]
    fn who_goes_on_without_new_evidence_has_not_taken_its_recovery_back() {
        let next = Clues { withdrawn: true, ..head() };
        assert_eq!(next.trigger(), Trigger::Recovery);
        assert_eq!(Clues { duplicates: 3, ..next }.trigger(), Trigger::Fast);
    }
}
