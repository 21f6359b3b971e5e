//! Takes the records of emulators while they come, on a thread of its own.

use super::record::{Chunk, Record};
use std::error::Error;
use std::io;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Chunks that wait for the sinks, together half a gigabyte at most: more than a million records without octets.
const MOST_WAITING: usize = 256;

/// What takes the records of emulated links: a file, a table.
pub trait Sink: Send {
    /// Takes the next records.
    fn take(&mut self, chunk: &Chunk) -> Result<(), SinkError>;

    /// There are no more. Without this call what was taken is not whole.
    fn finish(self: Box<Self>) -> Result<(), SinkError>;
}

/// Why a sink takes no more: whatever it says itself.
pub type SinkError = Box<dyn Error + Send + Sync>;

/// Hands the records of emulators to sinks and keeps them if wanted. What emulators send once a sink has failed goes nowhere.
#[derive(Debug)]
pub struct Collector {
    kept: Option<Arc<Mutex<Vec<Record>>>>,
    thread: JoinHandle<Result<(), SinkError>>,
}

impl Collector {
    /// Begins; gives what goes to [`Options::records`](super::Options::records). With `keep` all records stay in memory.
    ///
    /// Of sinks that are slower than the packets come, so many records wait; further ones are left out, and the emulator's audit tells.
    pub fn start(mut sinks: Vec<Box<dyn Sink>>, keep: bool) -> io::Result<(SyncSender<Chunk>, Self)> {
        let (sender, chunks) = sync_channel::<Chunk>(MOST_WAITING);
        let kept = keep.then(Arc::<Mutex<Vec<Record>>>::default);
        let own = kept.clone();
        let thread = std::thread::Builder::new().name("records".to_owned()).spawn(move || {
            // Until the last emulator has gone.
            for chunk in chunks {
                sinks.iter_mut().try_for_each(|sink| sink.take(&chunk))?;
                if let Some(kept) = &own {
                    lock(kept).extend(chunk.records);
                }
            }
            sinks.into_iter().try_for_each(Sink::finish)
        })?;
        Ok((sender, Self { kept, thread }))
    }

    /// Shows what has been kept so far, if anything is.
    pub fn look<T>(&self, show: impl FnOnce(&[Record]) -> T) -> Option<T> {
        self.kept.as_ref().map(|kept| show(&lock(kept)))
    }

    /// Waits for the last records, whose emulators have stopped and let go of their senders, and gives all, if they were kept.
    pub fn finish(self) -> Result<Option<Vec<Record>>, SinkError> {
        match self.thread.join() {
            Ok(written) => written?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(self.kept.map(|kept| std::mem::take(&mut *lock(&kept))))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;

    /// Counts what it takes, and fails when it has taken `most`.
    struct Counter {
        taken: Arc<Mutex<(usize, bool)>>,
        most: usize,
    }

    impl Sink for Counter {
        fn take(&mut self, chunk: &Chunk) -> Result<(), SinkError> {
            let mut taken = lock(&self.taken);
            taken.0 += chunk.records.len();
            if taken.0 > self.most {
                return Err("enough".into());
            }
            Ok(())
        }

        fn finish(self: Box<Self>) -> Result<(), SinkError> {
            lock(&self.taken).1 = true;
            Ok(())
        }
    }

    fn counted(most: usize, keep: bool) -> (Result<Option<usize>, String>, (usize, bool)) {
        let taken = Arc::default();
        let sink = Counter { taken: Arc::clone(&taken), most };
        let (sender, collector) = Collector::start(vec![Box::new(sink)], keep).unwrap();
        for number in 0..3 {
            let mut chunk = Chunk::new(0);
            chunk.push(record(number), &[], None);
            // A failed sink gets no more.
            let _ = sender.send(chunk);
        }
        drop(sender);
        let ended = collector.finish().map(|kept| kept.map(|kept| kept.len())).map_err(|error| error.to_string());
        let counts = *lock(&taken);
        (ended, counts)
    }

    #[test]
    fn sinks_get_everything_and_that_it_was_the_last() {
        assert_eq!(counted(3, false), (Ok(None), (3, true)));
        assert_eq!(counted(3, true), (Ok(Some(3)), (3, true)));
    }

    #[test]
    fn a_sink_that_fails_is_not_finished() {
        assert_eq!(counted(1, true), (Err("enough".to_owned()), (2, false)));
    }
}
