//! A world that several threads make system calls in, and the passing of time in it.

use crate::errno::Errno;
use crate::layout;
use crate::outcome::{unsupported, Attempt};
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use whyloss_transport::{Duration, Instant};

/// How long to wait for a packet, in virtual time, before concluding that none will leave.
const PATIENCE: Duration = Duration::from_secs(7200);
/// What a look at the clock takes: packetdrill waits for the last microseconds by looking at it.
const LOOK: Duration = Duration::from_micros(1);
/// For a thread whose call has just returned to note when, in real time.
const MOMENT: std::time::Duration = std::time::Duration::from_micros(300);

/// A world that several threads make system calls in. One of them lets time pass.
#[derive(Debug)]
pub struct Shared {
    state: Mutex<State>,
    /// The world has changed: calls that wait try again.
    changed: Condvar,
    /// A call that waits has tried again.
    looked: Condvar,
}

/// The world, and the calls that wait for a change of it.
#[derive(Debug)]
struct State {
    world: World,
    /// Calls that wait, with the time at which they give up.
    waiting: BTreeMap<u64, Option<Instant>>,
    tickets: u64,
    /// Changes so far of which calls that wait were told.
    generation: u64,
    /// Calls that wait and have not tried again since the last change.
    unaware: usize,
    /// A call that had waited has returned.
    returned: bool,
}

impl State {
    fn next_due(&self) -> Option<Instant> {
        self.world.stack.poll_timeout().into_iter().chain(self.waiting.values().copied().flatten()).min()
    }
}

impl Shared {
    /// A host as `flags` say: what packetdrill's scripts do with `sysctl` before they begin, and `address=`, `profile=` and other
    /// settings of the scripts in this repository, separated by blanks or lines. The error says what of it is not supported.
    pub fn new(flags: &str) -> Result<Self, String> {
        let world = World::new(flags)?;
        let state = State { world, waiting: BTreeMap::new(), tickets: 0, generation: 0, unaware: 0, returned: false };
        Ok(Self { state: Mutex::new(state), changed: Condvar::new(), looked: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, with what the script's shell commands have changed.
    fn obedient(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if let Err(what) = state.world.obey_news() {
            unsupported(&what);
        }
        state
    }

    /// Does something that never waits.
    pub fn with<T>(&self, job: impl FnOnce(&mut World) -> T) -> T {
        let mut state = self.obedient();
        let result = job(&mut state.world);
        drop(self.act(state));
        result
    }

    /// Makes a system call that may wait.
    pub fn wait<T>(&self, mut attempt: impl FnMut(&mut World) -> Attempt<T>) -> Result<T, Errno> {
        let mut state = self.obedient();
        let mut ticket = None;
        loop {
            let outcome = attempt(&mut state.world);
            state.world.drain_stack();
            match outcome {
                Attempt::Done(result) => {
                    if let Some(ticket) = ticket {
                        state.waiting.remove(&ticket);
                        state.returned = true;
                        self.looked.notify_all();
                    } else {
                        drop(self.tell(state));
                    }
                    return result;
                }
                Attempt::Waits(until) => {
                    let ticket = *ticket.get_or_insert_with(|| {
                        state.tickets += 1;
                        state.tickets
                    });
                    state.waiting.insert(ticket, until);
                    self.looked.notify_all();
                    let seen = state.generation;
                    while state.generation == seen {
                        state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                    state.unaware -= 1;
                }
            }
        }
    }

    /// Tells waiting calls of the stack's notices, and lets only then leave what is due: data that these calls send leaves with it.
    fn act<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.world.take_notices();
        state = self.tell(state);
        state.world.drain_stack();
        self.tell(state)
    }

    /// Has all calls that wait try again, and returns when each has.
    fn tell<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.waiting.is_empty() {
            return state;
        }
        state.generation += 1;
        state.unaware += state.waiting.len();
        self.changed.notify_all();
        // The last one counts itself off before it looks; it holds the lock until it has.
        while state.unaware > 0 {
            state = self.looked.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// Hands in a packet, IP header first, that reaches the host now.
    pub fn arrive(&self, packet: &[u8]) {
        self.with(|world| world.arrive(packet));
    }

    /// Lets `span` of virtual time pass; what is due meanwhile is done at its time.
    pub fn pass(&self, span: Duration) {
        let state = self.after_returns();
        let until = state.world.now + span;
        drop(self.advance(state, until));
    }

    /// The time; looking at it takes some.
    pub fn look(&self) -> Instant {
        let state = self.lock();
        let until = state.world.now + LOOK;
        self.advance(state, until).world.now
    }

    /// The next packet that leaves, however long that takes; `None` if there will be none.
    pub fn departure(&self) -> Option<(Instant, Vec<u8>)> {
        let mut state = self.after_returns();
        let patience = state.world.now + PATIENCE;
        loop {
            state.world.drain_stack();
            while let Some((at, datagram)) = state.world.departures.take() {
                if let Ok(packet) = layout::packet(datagram.addresses, &datagram.segment) {
                    return Some((at, packet));
                }
            }
            let next = state.next_due().filter(|due| *due <= patience)?;
            state = self.advance(state, next);
        }
    }

    /// The state, once a thread whose call has returned has had a moment to say so.
    fn after_returns(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if std::mem::take(&mut state.returned) {
            drop(state);
            thread::sleep(MOMENT);
            state = self.lock();
        }
        state
    }

    fn advance<'a>(&'a self, mut state: MutexGuard<'a, State>, until: Instant) -> MutexGuard<'a, State> {
        while let Some(due) = state.next_due().filter(|due| *due <= until) {
            let now = state.world.now.max(due);
            state.world.now = now;
            state.world.stack.handle_timeout(now);
            for limit in state.waiting.values_mut() {
                // Whoever waited this long looks once more and gives up by itself.
                *limit = limit.filter(|limit| *limit > now);
            }
            state = self.act(state);
        }
        state.world.now = state.world.now.max(until);
        state
    }
}
