//! Watching work and stopping it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use whyloss_sim::{FlowSample, LinkSample, NoticedLoss};

/// A flag that stops runs and sweeps, to be set from any thread or signal handler. Its clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks everything that holds this flag to stop. It does within about 100 ms.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far the work is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Runs that are done, those found in the store included.
    pub done: usize,
    /// Number of runs in all.
    pub total: usize,
    /// Runs found in the store.
    pub found: usize,
    /// What is done, in `[0, 1]`.
    pub fraction: f64,
    /// Time since the beginning.
    pub elapsed: Duration,
    /// Estimate of the time to the end; `None` as long as nothing is known.
    pub left: Option<Duration>,
}

impl Progress {
    pub(crate) fn within_one_run(fraction: f64, elapsed: Duration) -> Self {
        let done = usize::from(fraction >= 1.0);
        Self { done, total: 1, found: 0, fraction, elapsed, left: left(fraction, elapsed) }
    }

    /// Of a sweep: `done` of `total` runs, `found` of them in the store.
    pub fn of_sweep(done: usize, total: usize, found: usize, elapsed: Duration) -> Self {
        let (computed, to_compute) = (done.saturating_sub(found), total.saturating_sub(found));
        let computed_fraction = if to_compute == 0 { 1.0 } else { computed as f64 / to_compute as f64 };
        let fraction = if total == 0 { 1.0 } else { done as f64 / total as f64 };
        Self { done, total, found, fraction, elapsed, left: left(computed_fraction, elapsed) }
    }
}

fn left(fraction: f64, elapsed: Duration) -> Option<Duration> {
    (fraction > 0.0).then(|| elapsed.mul_f64(((1.0 - fraction) / fraction).clamp(0.0, 1e9)))
}

/// What a run has sampled, and what it lost, since somebody was told last.
#[derive(Clone, Copy, Debug)]
pub struct Sampled<'a> {
    /// Names of all flows, by the index that samples have.
    pub flows: &'a [String],
    /// The senders.
    pub senders: &'a [FlowSample],
    /// The queues.
    pub queues: &'a [LinkSample],
    /// The losses that senders noticed and whose truth has become known.
    pub losses: &'a [NoticedLoss],
}

/// Who watches and who may stop.
///
/// The callback is called on the thread that called [`run`](crate::run) or [`execute`](crate::execute()): after every run of a sweep, and
/// otherwise about ten times a second. It may set the flag itself.
#[derive(Default)]
pub struct Control<'a> {
    /// The flag that asks the work to stop.
    pub cancel: Cancel,
    /// Is told how far the work is.
    pub progress: Option<&'a mut dyn FnMut(&Progress)>,
    /// Is told, in a single run, what has been sampled (with `output.sample`) and lost since it was told last.
    pub samples: Option<&'a mut dyn FnMut(&Sampled<'_>)>,
    /// So many simulated seconds a second at most, in a single run: for whoever wants to look at it.
    pub pace: Option<f64>,
    /// Is called on each thread that a sweep starts, and has to call what it is given: for a language whose parts want a thread prepared.
    pub around: Option<fn(&mut (dyn FnMut() + Send))>,
}

impl<'a> Control<'a> {
    /// Nobody watches; `cancel` stops.
    pub fn new(cancel: Cancel) -> Self {
        Self { cancel, ..Self::default() }
    }

    /// Ends early when `cancel` says so, and tells `progress` how far the work is.
    pub fn watched(cancel: Cancel, progress: &'a mut dyn FnMut(&Progress)) -> Self {
        Self { cancel, progress: Some(progress), ..Self::default() }
    }

    pub(crate) fn tell(&mut self, progress: &Progress) {
        if let Some(callback) = &mut self.progress {
            callback(progress);
        }
    }
}

impl fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_counts_only_what_is_computed() {
        let progress = Progress::of_sweep(60, 100, 50, Duration::from_secs(10));
        assert_eq!((progress.left, progress.fraction), (Some(Duration::from_secs(40)), 0.6));
        assert_eq!(Progress::of_sweep(50, 100, 50, Duration::from_secs(1)).left, None);
        assert_eq!(Progress::of_sweep(0, 0, 0, Duration::ZERO).fraction, 1.0);
    }
}
