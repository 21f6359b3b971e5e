//! An emulation that several use and one ends.

use super::audit::Audit;
use super::collect::{Collector, SinkError};
use super::record::Record;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often it is looked whether others still use what is to be ended.
const POLL: Duration = Duration::from_millis(1);

/// An emulation, an [`Emulator`](super::Emulator) or a [`Testbed`](crate::Testbed), from its beginning to what is left of it. Any thread may ask it.
#[derive(Debug)]
pub struct Session<E> {
    running: Mutex<Option<Running<E>>>,
    ended: Mutex<Ended>,
}

#[derive(Debug)]
struct Running<E> {
    emulation: Arc<E>,
    collector: Option<Collector>,
}

/// What is left when it has ended.
#[derive(Debug, Default)]
struct Ended {
    audits: Vec<Audit>,
    /// If they were kept.
    records: Option<Vec<Record>>,
}

/// Why it did not end well.
#[derive(Debug, thiserror::Error)]
pub enum CloseError<X> {
    /// The emulation itself says so.
    #[error("{0}")]
    Emulation(X),
    /// What it recorded could not be written.
    #[error("{0}")]
    Records(SinkError),
}

impl<E> Session<E> {
    /// Of what is at work, and who collects its records.
    pub fn new(emulation: E, collector: Option<Collector>) -> Self {
        let running = Running { emulation: Arc::new(emulation), collector };
        Self { running: Mutex::new(Some(running)), ended: Mutex::default() }
    }

    /// What is at work; `None` once [`close`](Self::close) was called.
    pub fn get(&self) -> Option<Arc<E>> {
        lock(&self.running).as_ref().map(|running| Arc::clone(&running.emulation))
    }

    /// What each direction has done so far, as `ask` finds out, or had done at the end.
    pub fn audit(&self, ask: impl FnOnce(&E) -> Vec<Audit>) -> Vec<Audit> {
        match self.get() {
            Some(emulation) => ask(&emulation),
            None => lock(&self.ended).audits.clone(),
        }
    }

    /// Shows the records so far, in the order in which they were made in each direction; `None` if they are not kept.
    pub fn look<T>(&self, show: impl FnOnce(&[Record]) -> T) -> Option<T> {
        match &*lock(&self.running) {
            Some(running) => running.collector.as_ref()?.look(show),
            None => lock(&self.ended).records.as_deref().map(show),
        }
    }

    /// Ends it by `stop`, once others who use it at this moment have let go of it. Does nothing if that was done already.
    ///
    /// # Errors
    /// If `stop` fails, or a sink.
    pub fn close<X>(&self, stop: impl FnOnce(E) -> Result<Vec<Audit>, X>) -> Result<(), CloseError<X>> {
        let Some(Running { mut emulation, collector }) = lock(&self.running).take() else { return Ok(()) };
        let emulation = loop {
            match Arc::try_unwrap(emulation) {
                Ok(alone) => break alone,
                Err(shared) => emulation = shared,
            }
            std::thread::sleep(POLL);
        };
        let audits = stop(emulation).map_err(CloseError::Emulation)?;
        let records = collector.map(Collector::finish).transpose().map_err(CloseError::Records)?.flatten();
        *lock(&self.ended) = Ended { audits, records };
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::collect::Sink;
    use super::super::record::tests::record;
    use super::super::record::Chunk;
    use super::*;
    use std::sync::mpsc::SyncSender;

    /// Two records, then a sender that goes with it.
    fn session(keep: bool, sinks: Vec<Box<dyn Sink>>) -> Session<SyncSender<Chunk>> {
        let (sender, collector) = Collector::start(sinks, keep).unwrap();
        let mut chunk = Chunk::new(0);
        chunk.push(record(1), &[], None);
        chunk.push(record(2), &[], None);
        sender.send(chunk).unwrap();
        Session::new(sender, Some(collector))
    }

    #[expect(clippy::unnecessary_wraps, reason = "stands where an emulation is stopped, which can fail")]
    fn stop(sender: SyncSender<Chunk>) -> Result<Vec<Audit>, String> {
        drop(sender);
        Ok(vec![Audit::default(); 2])
    }

    #[test]
    fn what_it_did_and_recorded_stays_after_its_end() {
        let session = session(true, Vec::new());
        assert_eq!(session.audit(|_| Vec::new()).len(), 0);
        session.close(stop).unwrap();
        assert!(session.get().is_none());
        assert_eq!(session.audit(|_| unreachable!("it is at work no more")).len(), 2);
        assert_eq!(session.look(<[Record]>::len), Some(2));
        session.close(|_| -> Result<_, String> { unreachable!("it has ended already") }).unwrap();
    }

    #[test]
    fn records_that_are_not_kept_are_not_shown() {
        for session in [session(false, Vec::new()), Session::new(std::sync::mpsc::sync_channel(1).0, None)] {
            assert_eq!(session.look(<[Record]>::len), None);
            session.close(stop).unwrap();
            assert_eq!(session.look(<[Record]>::len), None);
        }
    }

    #[test]
    fn it_ends_when_the_last_user_lets_go_of_it() {
        let session = session(true, Vec::new());
        let user = session.get().unwrap();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| session.close(stop).map_err(|error| error.to_string()));
            while session.get().is_some() {
                std::thread::yield_now();
            }
            std::thread::sleep(20 * POLL);
            assert!(!closing.is_finished());
            drop(user);
            closing.join().unwrap().unwrap();
        });
        assert_eq!(session.look(<[Record]>::len), Some(2));
    }

    #[test]
    fn a_failure_is_told_with_whose_it_is() {
        struct Full;
        impl Sink for Full {
            fn take(&mut self, _chunk: &Chunk) -> Result<(), SinkError> {
                Err("no room".into())
            }

            fn finish(self: Box<Self>) -> Result<(), SinkError> {
                Ok(())
            }
        }
        let refused = session(true, Vec::new()).close(|_| Err("busy")).unwrap_err();
        assert!(matches!(refused, CloseError::Emulation("busy")));
        let unwritten = session(false, vec![Box::new(Full)]).close(stop).unwrap_err();
        assert!(matches!(&unwritten, CloseError::Records(_)));
        assert_eq!(unwritten.to_string(), "no room");
    }
}
