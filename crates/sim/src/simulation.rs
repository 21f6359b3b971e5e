//! Letting time pass.

use crate::build::{BuildError, Builder};
use crate::record::Records;
use std::ops::ControlFlow;
use whyloss_transport::Instant;

/// When a run ends, apart from the completion of all transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Ends at this time at the latest.
    pub until: Option<Instant>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All transfers are complete, or have failed for good.
    Completed,
    /// The time limit came first.
    TimeLimit,
    /// The caller asked to stop.
    Cancelled,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Time in the simulation.
    pub now: Instant,
    /// Events so far.
    pub events: u64,
    /// Transfers that are over.
    pub transfers_over: usize,
    /// Transfers in all.
    pub transfers: usize,
}

/// What can go wrong in a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nothing ends the run: no transfer and no time limit.
    #[error("the run would never end: set a time limit or give some flow a number of octets")]
    NeverEnds,
    /// Nothing will ever happen again, but flows are not complete.
    #[error("at {at} nothing was left to happen, but not complete were: {}", .flows.join(", "))]
    Stalled {
        /// When.
        at: Instant,
        /// Names of the flows.
        flows: Vec<String>,
    },
    /// Packets went missing or came from nothing: a mistake in the simulator.
    #[error("{item}: packets are not conserved: {counts}")]
    NotConserved {
        /// The flow or link.
        item: String,
        /// The numbers.
        counts: String,
    },
    /// A capture could not be written.
    #[error("capture of link {link}: {source}")]
    Capture {
        /// The link.
        link: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A network in time.
#[derive(Debug)]
pub struct Simulation {
    records: Records,
}

impl Simulation {
    pub(crate) fn new(builder: Builder) -> Result<Self, BuildError> {
        Ok(Self { records: Records { seed: builder.seed, run: builder.run, ..Records::default() } })
    }

    /// Lets time pass until all transfers are over or a limit is reached. `on_progress` is called now and then (at least every
    /// 65,536 events) and may stop the run.
    pub fn run(
        &mut self,
        limits: &Limits,
        mut on_progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Outcome, RunError> {
        let progress = Progress { now: Instant::ZERO, events: 0, transfers_over: 0, transfers: 0 };
        if on_progress(&progress).is_break() {
            return Ok(Outcome::Cancelled);
        }
        if limits.until.is_none() {
            return Err(RunError::NeverEnds);
        }
        Ok(Outcome::TimeLimit)
    }

    /// What happened.
    pub fn into_records(self) -> Records {
        self.records
    }
}
