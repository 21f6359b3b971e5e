//! What the thread of a direction shares with its owner and with the other direction.

use super::super::audit::Audit;
use super::super::lock;
use super::super::station::Made;
use nix::sys::eventfd::EventFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;
use whyloss_sim::Change;

/// Packets of an agent that wait for a direction to take them; further ones are lost.
const MOST_MADE: usize = 4096;
/// How long the owner waits for the thread to say what it has done; then the older numbers do.
const PATIENCE: Duration = Duration::from_millis(500);

/// What the thread and its owner share.
#[derive(Debug)]
pub(in super::super) struct Shared {
    pub stopped: AtomicBool,
    pub wake: EventFd,
    /// An audit is wanted. Making one takes as long as several packets, so none is made unasked.
    pub wanted: AtomicBool,
    pub audit: Mutex<Audit>,
    pub published: Condvar,
    /// What is to be different, by number of the link.
    pub changes: Mutex<Vec<(usize, Change)>>,
    /// There is something of that.
    pub has_changes: AtomicBool,
    /// What an agent has made for this direction.
    pub made: Mutex<Vec<Made>>,
    /// There is something of that.
    pub has_made: AtomicBool,
}

impl Shared {
    pub fn new(wake: EventFd) -> Self {
        let [stopped, wanted, has_changes, has_made] = [const { AtomicBool::new(false) }; 4];
        let (audit, published) = (Mutex::default(), Condvar::new());
        let (changes, made) = (Mutex::default(), Mutex::default());
        Self { stopped, wake, wanted, audit, published, changes, has_changes, made, has_made }
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake();
    }

    /// Asks for something to be different from now on.
    pub fn change(&self, hop: usize, change: Change) {
        lock(&self.changes).push((hop, change));
        self.has_changes.store(true, Ordering::Release);
        self.wake();
    }

    /// Hands over what an agent has made.
    pub fn insert(&self, made: Vec<Made>) {
        let mut waiting = lock(&self.made);
        let room = MOST_MADE.saturating_sub(waiting.len());
        waiting.extend(made.into_iter().take(room));
        self.has_made.store(true, Ordering::Release);
    }

    pub fn wake(&self) {
        // The counter of an event descriptor is far from full.
        let _ = self.wake.write(1);
    }

    /// What the thread has done. If it has ended, what it had done then.
    pub fn latest(&self, running: bool) -> Audit {
        let mut audit = lock(&self.audit);
        if running {
            self.wanted.store(true, Ordering::Release);
            self.wake();
            let waited = self.published.wait_timeout_while(audit, PATIENCE, |_| self.wanted.load(Ordering::Acquire));
            audit = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        audit.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_an_agent_makes_only_so_much_waits() {
        let shared = Shared::new(EventFd::new().unwrap());
        let made = |number: usize| (0..number).map(|_| Made { octets: vec![0; 40], urgent: false }).collect::<Vec<_>>();
        shared.insert(made(MOST_MADE - 1));
        assert_eq!(lock(&shared.made).len(), MOST_MADE - 1);
        for _ in 0..3 {
            shared.insert(made(MOST_MADE));
            assert_eq!(lock(&shared.made).len(), MOST_MADE);
        }
        assert!(shared.has_made.load(Ordering::Acquire));
        // The direction takes them, and there is room again.
        lock(&shared.made).clear();
        shared.insert(made(2));
        assert_eq!(lock(&shared.made).len(), 2);
    }
}
