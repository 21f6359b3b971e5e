//! What the sender is repairing: a state machine. What exists only during a repair lives in its state, so that it ends with it, and nobody
//! outside of this file can put the machine into another state.
//!
//! ```text
//!              begin_fast                    expire
//!     Open ──────────────────▶ Fast ─────────────────────▶ Timeout
//!       ▲ │◀───────────────────┘ end           ▲ │ ▲ │ expire
//!       │ └────────────────────────────────────┘ │ └─┘
//!       └────────────────────────────────────────┘ end
//! ```

use super::prr::Prr;
use super::retransmission::RetransmissionTrigger;
use crate::path::Trigger;

/// The state of loss recovery.
#[derive(Debug)]
pub(super) struct Recovery {
    state: State,
    /// Duplicate acknowledgements in a row.
    dup_acks: u32,
    /// Duplicates up to here begin no fast recovery: `SND.NXT` at the latest entry into any (RFC 6582's `recover`).
    guard: u64,
    /// Number of episodes that have begun.
    episodes: u32,
}

#[derive(Debug)]
enum State {
    /// Nothing is being repaired.
    Open {
        /// Octets that left on duplicate acknowledgements (RFC 3042).
        limited: u64,
    },
    /// Fast recovery: a loss is repaired on the acknowledgement clock.
    Fast(Box<Fast>),
    /// Slow start after a timeout.
    Timeout(Box<Timeout>),
}

/// The state of one fast recovery.
#[derive(Debug)]
pub(super) struct Fast {
    /// `SND.NXT` at its start: when everything below is acknowledged, it is over.
    recover: u64,
    /// The window was reduced.
    reduced: bool,
    /// The window to leave behind.
    exit_cwnd: u64,
    /// A partial acknowledgement has already restarted the timer.
    partial_seen: bool,
    /// Octets by which duplicates inflate the window without SACK (RFC 5681, 3.2).
    inflation: u64,
    /// Meters the way down, with SACK.
    prr: Option<Prr>,
    /// Octets in the network by a count of what leaves and what comes, if the scoreboard is not asked.
    counted: Option<u64>,
    /// Everything below is sent again ([`Repair::Bulk`](crate::reaction::Repair::Bulk)); 0: only what is lost.
    repeat_until: u64,
    /// The one rescue retransmission was made (RFC 6675's `RescueRxt`).
    rescued: bool,
    /// `TSval` of its first retransmission, and where that ended.
    first_repetition: Option<(u32, u64)>,
    /// What its next retransmission is due to.
    trigger: RetransmissionTrigger,
}

/// What a fast recovery begins with.
#[derive(Debug)]
pub(super) struct FastStart {
    /// `SND.NXT` at the start: what ends the recovery when it is acknowledged.
    pub recover: u64,
    /// The window was reduced.
    pub reduced: bool,
    /// The window to leave behind.
    pub exit_cwnd: u64,
    /// Octets by which the duplicates so far inflate the window.
    pub inflation: u64,
    /// What meters the way down.
    pub prr: Option<Prr>,
    /// What a count of the octets in the network begins with.
    pub counted: Option<u64>,
    /// Everything outstanding is sent again.
    pub repeats: bool,
}

/// The time after a timeout.
#[derive(Debug)]
pub(super) struct Timeout {
    /// `SND.NXT` at the timeout.
    recover: u64,
    /// How far its assessment has come.
    stage: Stage,
    /// End of the segment that was retransmitted first.
    head_end: u64,
    /// `TSval` of the first retransmission, and where that ended, also if the timer has expired again since.
    first_repetition: Option<(u32, u64)>,
    /// What its next retransmission is due to.
    trigger: RetransmissionTrigger,
    /// What those behind that one are due to.
    further: RetransmissionTrigger,
}

/// How far the assessment of a timeout has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Only the first segment is repaired.
    Awaiting {
        /// Acknowledgements since the timeout.
        acks: u32,
        /// New segments that F-RTO lets out meanwhile (RFC 5682, 2.1 step 2b).
        credit: u32,
    },
    /// The repair goes on, after so many acknowledgements.
    Repairing(u32),
    /// The timeout was found to be due to congestion.
    Genuine,
    /// It was a loss, but not congestion.
    Forgiven,
}

impl Stage {
    /// Acknowledgements since the timeout, if it is not decided yet.
    pub const fn undecided(self) -> Option<u32> {
        match self {
            Self::Awaiting { acks, .. } | Self::Repairing(acks) => Some(acks),
            Self::Genuine | Self::Forgiven => None,
        }
    }
}

/// Entering and leaving the states.
impl Recovery {
    /// Nothing to repair, and no duplicates to heed up to `guard`.
    pub const fn new(guard: u64) -> Self {
        Self { state: State::Open { limited: 0 }, dup_acks: 0, guard, episodes: 0 }
    }

    /// Fast recovery begins, a new episode.
    pub fn begin_fast(&mut self, FastStart { recover, reduced, exit_cwnd, inflation, prr, counted, repeats }: FastStart) {
        let repeat_until = if repeats { recover } else { 0 };
        self.begin_episode(recover);
        self.state = State::Fast(Box::new(Fast {
            recover,
            reduced,
            exit_cwnd,
            partial_seen: false,
            inflation,
            prr,
            counted,
            repeat_until,
            rescued: false,
            first_repetition: None,
            trigger: RetransmissionTrigger::Fast,
        }));
    }

    /// Fast retransmit without fast recovery: slow start as after a timeout, a new episode (Tahoe).
    pub fn begin_slow_start(&mut self, recover: u64, head_end: u64) {
        self.begin_episode(recover);
        self.state = State::Timeout(Box::new(Timeout {
            recover,
            stage: Stage::Genuine,
            head_end,
            first_repetition: None,
            trigger: RetransmissionTrigger::Fast,
            further: RetransmissionTrigger::Recovery,
        }));
    }

    /// The retransmission timer has expired, for the `expiries`-th time without progress. `repeated`: the repair of an earlier timeout is still
    /// under way, and its episode goes on.
    pub fn expire(&mut self, recover: u64, head_end: u64, expiries: u32, repeated: bool) {
        let first_repetition = match &self.state {
            State::Timeout(timeout) if repeated => timeout.first_repetition,
            _ => None,
        };
        if repeated {
            self.guard = recover;
        } else {
            self.begin_episode(recover);
        }
        self.dup_acks = 0;
        let stage = Stage::Awaiting { acks: 0, credit: 0 };
        let trigger = if expiries > 1 { RetransmissionTrigger::BackedOff } else { RetransmissionTrigger::Timeout };
        let further = RetransmissionTrigger::AfterTimeout;
        self.state = State::Timeout(Box::new(Timeout { recover, stage, head_end, first_repetition, trigger, further }));
    }

    /// The repair is over, or proved unnecessary.
    pub fn end(&mut self) {
        self.state = State::Open { limited: 0 };
        self.dup_acks = 0;
    }

    /// An episode that needs no repair of its own: a tail loss probe has made it.
    pub fn count_episode(&mut self) {
        self.episodes += 1;
    }

    fn begin_episode(&mut self, recover: u64) {
        self.episodes += 1;
        self.guard = recover;
    }
}

/// Events within a state.
impl Recovery {
    /// Counts a duplicate acknowledgement.
    pub fn note_duplicate(&mut self) {
        self.dup_acks += 1;
    }

    /// An acknowledgement that advances.
    pub fn note_progress(&mut self) {
        self.dup_acks = 0;
        if let State::Open { limited } = &mut self.state {
            *limited = 0;
        }
    }

    /// New data has left.
    pub fn note_sent(&mut self, octets: u64) {
        match &mut self.state {
            State::Open { limited } if self.dup_acks > 0 => *limited += octets,
            State::Fast(fast) => fast.on_sent(octets),
            State::Timeout(timeout) => {
                if let Stage::Awaiting { credit, .. } = &mut timeout.stage {
                    *credit = credit.saturating_sub(1);
                }
            }
            State::Open { .. } => {}
        }
    }

    /// Something has been sent again, with this `TSval` and up to this position. Returns what that was due to.
    pub fn note_repetition(&mut self, octets: u64, stamp: Option<(u32, u64)>) -> RetransmissionTrigger {
        match &mut self.state {
            State::Open { .. } => RetransmissionTrigger::Other,
            State::Fast(fast) => {
                fast.first_repetition = fast.first_repetition.or(stamp);
                fast.on_sent(octets);
                std::mem::replace(&mut fast.trigger, RetransmissionTrigger::Recovery)
            }
            State::Timeout(timeout) => {
                timeout.first_repetition = timeout.first_repetition.or(stamp);
                std::mem::replace(&mut timeout.trigger, timeout.further)
            }
        }
    }

    /// Duplicates up to `position` begin no fast recovery, those so far included.
    pub fn ignore_duplicates(&mut self, position: u64) {
        self.guard = self.guard.max(position);
        self.dup_acks = 0;
    }

    /// Duplicates beyond `position` may begin a fast recovery again.
    pub fn heed_duplicates_beyond(&mut self, position: u64) {
        self.guard = position;
    }

    /// The assessment of a timeout has come so far.
    pub fn assess(&mut self, to: Stage) {
        if let State::Timeout(timeout) = &mut self.state {
            timeout.stage = to;
        }
    }
}

/// What is asked of it.
impl Recovery {
    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    pub const fn fast(&self) -> Option<&Fast> {
        match &self.state {
            State::Fast(fast) => Some(fast),
            _ => None,
        }
    }

    pub fn fast_mut(&mut self) -> Option<&mut Fast> {
        match &mut self.state {
            State::Fast(fast) => Some(fast),
            _ => None,
        }
    }

    pub const fn timeout(&self) -> Option<&Timeout> {
        match &self.state {
            State::Timeout(timeout) => Some(timeout),
            _ => None,
        }
    }

    /// Duplicate acknowledgements in a row.
    pub const fn dup_acks(&self) -> u32 {
        self.dup_acks
    }

    /// Whether duplicates at `una` may begin a fast recovery (RFC 6582, 3.2 step 1).
    pub const fn heeds_duplicates_at(&self, una: u64) -> bool {
        una > self.guard
    }

    /// Octets that limited transmit let out.
    pub const fn limited(&self) -> u64 {
        match self.state {
            State::Open { limited } => limited,
            _ => 0,
        }
    }

    /// Octets by which fast recovery without SACK inflates the window.
    pub const fn inflation(&self) -> u64 {
        match &self.state {
            State::Fast(fast) => fast.inflation,
            _ => 0,
        }
    }

    /// Octets in the network, if fast recovery counts them.
    pub const fn counted(&self) -> Option<u64> {
        match &self.state {
            State::Fast(fast) => fast.counted,
            _ => None,
        }
    }

    /// Whether only the first segment is repaired while a timeout is assessed, and how many new segments may leave meanwhile.
    pub const fn awaiting(&self) -> Option<u32> {
        match self.timeout() {
            Some(Timeout { stage: Stage::Awaiting { credit, .. }, .. }) => Some(*credit),
            _ => None,
        }
    }

    /// `TSval` of the first retransmission of the episode, and the position up to which it went.
    pub const fn first_repetition(&self) -> Option<(u32, u64)> {
        match &self.state {
            State::Open { .. } => None,
            State::Fast(fast) => fast.first_repetition,
            State::Timeout(timeout) => timeout.first_repetition,
        }
    }

    /// The episode that a loss noticed now belongs to: the one under way, if that is of its kind, else the next.
    pub const fn episode_of(&self, trigger: Trigger) -> u32 {
        let begins = match trigger {
            Trigger::TailProbe => true,
            Trigger::Timeout => self.timeout().is_none(),
            _ => self.is_open(),
        };
        if begins {
            self.episodes
        } else {
            self.episodes.saturating_sub(1)
        }
    }
}

impl Fast {
    pub const fn recover(&self) -> u64 {
        self.recover
    }

    pub const fn reduced(&self) -> bool {
        self.reduced
    }

    pub const fn exit_cwnd(&self) -> u64 {
        self.exit_cwnd
    }

    pub const fn repeat_until(&self) -> u64 {
        self.repeat_until
    }

    pub const fn meters(&self) -> bool {
        self.prr.is_some()
    }

    /// The window to leave behind becomes `target`.
    pub fn reduce_to(&mut self, target: u64) {
        self.reduced = true;
        self.leave_with(target);
    }

    /// The window to leave behind becomes `octets`, whether it was reduced or not.
    pub fn leave_with(&mut self, octets: u64) {
        self.exit_cwnd = octets;
        if let Some(prr) = &mut self.prr {
            prr.retarget(octets);
        }
    }

    /// The window that proportional rate reduction allows; see [`Prr::on_ack`].
    pub fn metered(&mut self, delivered: u64, pipe: u64, mss: u64, safe: bool) -> Option<u64> {
        self.prr.as_mut().map(|prr| prr.on_ack(delivered, pipe, mss, safe))
    }

    fn on_sent(&mut self, octets: u64) {
        if let Some(prr) = &mut self.prr {
            prr.on_sent(octets);
        }
        if let Some(counted) = &mut self.counted {
            *counted += octets;
        }
    }

    /// So much has arrived, or is taken for lost.
    pub const fn count_in(&mut self, octets: u64) {
        if let Some(counted) = &mut self.counted {
            *counted = counted.saturating_sub(octets);
        }
    }

    pub fn inflate(&mut self, octets: u64) {
        self.inflation += octets;
    }

    /// A partial acknowledgement deflates by what it acknowledges, less one segment for the retransmission (RFC 6582, 3.2 step 4).
    /// Returns what the inflation does not cover and the window has to give, if it is used up.
    pub fn deflate(&mut self, acked: u64, mss: u64) -> Option<u64> {
        let (rest, used_up) = (acked.saturating_sub(self.inflation), self.inflation <= acked);
        self.inflation = self.inflation.saturating_sub(acked) + mss.min(acked);
        used_up.then_some(rest)
    }

    /// A partial acknowledgement takes all inflation back.
    pub fn deflate_at_once(&mut self) {
        self.inflation = 0;
    }

    /// An acknowledgement restarts the timer; returns whether one had done so before.
    pub fn restarts_timer(&mut self) -> bool {
        std::mem::replace(&mut self.partial_seen, true)
    }

    pub const fn may_rescue(&self) -> bool {
        !self.rescued
    }

    pub fn rescue(&mut self) {
        self.rescued = true;
    }
}

impl Timeout {
    pub const fn recover(&self) -> u64 {
        self.recover
    }

    pub const fn stage(&self) -> Stage {
        self.stage
    }

    pub const fn head_end(&self) -> u64 {
        self.head_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(recover: u64) -> FastStart {
        FastStart { recover, reduced: true, exit_cwnd: 5000, inflation: 3000, prr: None, counted: None, repeats: false }
    }

    #[test]
    fn what_a_state_holds_ends_with_it() {
        let mut recovery = Recovery::new(1000);
        assert!(recovery.heeds_duplicates_at(1001) && !recovery.heeds_duplicates_at(1000));
        recovery.note_sent(1000);
        recovery.note_duplicate();
        recovery.note_sent(1000);
        assert_eq!((recovery.dup_acks(), recovery.limited()), (1, 1000), "only what left on a duplicate");
        recovery.begin_fast(start(9000));
        recovery.note_repetition(1000, Some((7, 1000)));
        recovery.note_repetition(1000, Some((8, 2000)));
        assert_eq!((recovery.inflation(), recovery.limited(), recovery.first_repetition()), (3000, 0, Some((7, 1000))));
        assert!(!recovery.heeds_duplicates_at(9000));
        recovery.expire(12_000, 2000, 1, false);
        assert_eq!((recovery.inflation(), recovery.first_repetition(), recovery.awaiting()), (0, None, Some(0)));
        recovery.end();
        assert_eq!((recovery.dup_acks(), recovery.awaiting(), recovery.is_open()), (0, None, true));
    }

    #[test]
    fn a_second_expiry_goes_on_with_the_episode() {
        let mut recovery = Recovery::new(0);
        assert_eq!(recovery.episode_of(Trigger::Timeout), 0);
        recovery.expire(9000, 2000, 1, false);
        recovery.note_repetition(1000, Some((7, 1000)));
        recovery.expire(9000, 2000, 2, true);
        recovery.note_repetition(1000, Some((8, 2000)));
        assert_eq!((recovery.episode_of(Trigger::Timeout), recovery.first_repetition()), (0, Some((7, 1000))));
        recovery.end();
        assert_eq!(recovery.episode_of(Trigger::Timeout), 1);
    }

    #[test]
    fn credit_is_used_by_new_data() {
        let mut recovery = Recovery::new(0);
        recovery.expire(9000, 2000, 1, false);
        recovery.assess(Stage::Awaiting { acks: 1, credit: 2 });
        recovery.note_sent(1000);
        assert_eq!(recovery.awaiting(), Some(1));
        recovery.assess(Stage::Genuine);
        assert_eq!((recovery.awaiting(), Stage::Repairing(3).undecided()), (None, Some(3)));
    }

    #[test]
    fn a_count_of_the_pipe_goes_by_what_leaves_and_what_comes() {
        let mut recovery = Recovery::new(0);
        assert_eq!(recovery.counted(), None);
        recovery.begin_fast(FastStart { counted: Some(4000), ..start(9000) });
        recovery.note_repetition(1000, None);
        recovery.note_sent(1000);
        recovery.fast_mut().unwrap().count_in(2000);
        assert_eq!(recovery.counted(), Some(4000));
        recovery.fast_mut().unwrap().count_in(5000);
        assert_eq!(recovery.counted(), Some(0));
        recovery.end();
        assert_eq!(recovery.counted(), None);
    }

    #[test]
    fn partial_acknowledgements_deflate_first_and_then_take_from_the_window() {
        let mut recovery = Recovery::new(0);
        recovery.begin_fast(start(9000));
        let fast = recovery.fast_mut().unwrap();
        assert_eq!((fast.deflate(2000, 1000), fast.inflation), (None, 2000));
        assert_eq!((fast.deflate(5000, 1000), fast.inflation), (Some(3000), 1000));
        assert_eq!((fast.deflate(1000, 1000), fast.inflation), (Some(0), 1000));
        fast.inflate(4000);
        fast.deflate_at_once();
        assert_eq!(fast.inflation, 0);
    }
}
