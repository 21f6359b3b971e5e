//! Long work off the interpreter's thread: other Python threads go on, Ctrl-C is honoured, progress is told.

use crate::error::raise;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use whyloss_lab::{Cancel, Control, Error, Sampled};

/// How long Ctrl-C and progress wait at most.
const TICK: Duration = Duration::from_millis(100);

/// A sender at a moment: name of its flow, nanoseconds, window, slow-start threshold and smoothed round-trip time if there are such, octets
/// delivered, losses and timeouts so far.
type Sender = (String, u64, u64, Option<u64>, Option<u64>, u64, u64, u64);

/// A loss that a sender noticed: name of its flow, nanoseconds, and what really happened: "congestion", "corruption", or `None` if the segment
/// was not lost.
type Loss = (String, u64, Option<&'static str>);

/// How far the work is.
#[pyclass(frozen, get_all, module = "whyloss")]
#[derive(Clone)]
pub struct Progress {
    /// Runs that are done, those found in the store included.
    done: usize,
    /// Number of runs in all.
    total: usize,
    /// Runs found in the store.
    found: usize,
    /// What is done, from 0 to 1.
    fraction: f64,
    /// Seconds since the beginning.
    elapsed_s: f64,
    /// Estimate of the seconds to the end; `None` as long as nothing is known.
    left_s: Option<f64>,
    /// Of a single run with `output.sample`: the senders at each sample since the last time.
    senders: Vec<Sender>,
    /// Of such a run: nanoseconds, and packets in the longest queue then.
    queues: Vec<(u64, u64)>,
    /// Of a single run: the losses whose true cause has become known since the last time.
    losses: Vec<Loss>,
}

impl From<&whyloss_lab::Progress> for Progress {
    fn from(progress: &whyloss_lab::Progress) -> Self {
        Self {
            done: progress.done,
            total: progress.total,
            found: progress.found,
            fraction: progress.fraction,
            elapsed_s: progress.elapsed.as_secs_f64(),
            left_s: progress.left.map(|left| left.as_secs_f64()),
            senders: Vec::new(),
            queues: Vec::new(),
            losses: Vec::new(),
        }
    }
}

#[pymethods]
impl Progress {
    /// Of a sweep that is computed elsewhere: `done` of `total` runs, `found` of them in the store, after so many seconds.
    #[new]
    fn new(done: usize, total: usize, found: usize, elapsed_s: f64) -> Self {
        let elapsed = Duration::try_from_secs_f64(elapsed_s).unwrap_or_default();
        Self::from(&whyloss_lab::Progress::of_sweep(done, total, found, elapsed))
    }
}

/// What is new since the watcher was told last.
#[derive(Default)]
struct News {
    progress: Option<Progress>,
    senders: Vec<Sender>,
    queues: Vec<(u64, u64)>,
    losses: Vec<Loss>,
}

impl News {
    fn add(&mut self, sampled: &Sampled<'_>) {
        self.senders.extend(sampled.senders.iter().map(|sample| {
            let threshold = Some(sample.ssthresh).filter(|octets| *octets < u64::MAX / 2);
            let srtt = sample.srtt.map(whyloss_transport::Duration::as_nanos);
            let name = sampled.flows[sample.flow].clone();
            (name, sample.at.as_nanos(), sample.cwnd, threshold, srtt, sample.octets_delivered, sample.losses, sample.timeouts)
        }));
        for sample in sampled.queues {
            let at = sample.at.as_nanos();
            match self.queues.last_mut().filter(|(last, _)| *last == at) {
                Some((_, most)) => *most = (*most).max(sample.queue_packets),
                None => self.queues.push((at, sample.queue_packets)),
            }
        }
        let of = |loss: &whyloss_lab::NoticedLoss| (sampled.flows[loss.flow].clone(), loss.at.as_nanos(), loss.truth.class());
        self.losses.extend(sampled.losses.iter().map(of));
    }

    /// The latest, with all that was sampled meanwhile.
    fn take(&mut self) -> Option<Progress> {
        let latest = self.progress.take()?;
        let (senders, queues) = (std::mem::take(&mut self.senders), std::mem::take(&mut self.queues));
        Some(Progress { senders, queues, losses: std::mem::take(&mut self.losses), ..latest })
    }
}

/// Does `work` on a thread of its own while this one listens for signals and calls `watcher(progress)`.
///
/// An exception in a signal handler or in `watcher` cancels the work, waits for it to stop, and is raised.
pub fn run<T: Send>(
    py: Python<'_>,
    watcher: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&mut Control<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let cancel = Cancel::default();
    let news = Mutex::new(News::default());
    let finished = AtomicBool::new(false);
    let listener = thread::current();
    let watching = watcher.is_some();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let work = || {
                let mut note = |progress: &whyloss_lab::Progress| lock(&news).progress = Some(Progress::from(progress));
                let mut sampled = |sampled: &Sampled<'_>| lock(&news).add(sampled);
                let watched = Control::watched(cancel.clone(), &mut note);
                let samples: Option<&mut dyn FnMut(&Sampled<'_>)> = if watching { Some(&mut sampled) } else { None };
                work(&mut Control { around: Some(known_to_python), samples, ..watched })
            };
            let result = Python::attach(|py| py.detach(work));
            finished.store(true, Ordering::Release);
            listener.unpark();
            result
        });
        let listen = || -> PyResult<()> {
            py.check_signals()?;
            let latest = lock(&news).take();
            if let (Some(watcher), Some(progress)) = (watcher, latest) {
                watcher.call1((progress,))?;
            }
            Ok(())
        };
        let mut listened = Ok(());
        while listened.is_ok() && !worker.is_finished() && !finished.load(Ordering::Acquire) {
            py.detach(|| thread::park_timeout(TICK));
            listened = listen();
        }
        if listened.is_err() {
            cancel.cancel();
        }
        let result = py.detach(|| worker.join());
        listened?;
        match result {
            Ok(result) => result.map_err(|error| raise(&error)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Does `work` on a thread that stays known to the interpreter: else it would set the thread up each time that a part in Python is asked something.
fn known_to_python(work: &mut (dyn FnMut() + Send)) {
    Python::attach(|py| py.detach(work));
}

/// The value: it is replaced whole, so a panic elsewhere cannot have left it half done.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
