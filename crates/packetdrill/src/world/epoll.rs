//! `epoll` on the sockets of a host.

use super::World;
use crate::epoll::Epoll;
use crate::errno::Errno;
use crate::outcome::Attempt;
use nix::libc;

impl World {
    /// `epoll_create`.
    pub fn epoll_create(&mut self) -> i32 {
        let fd = self.number();
        self.epolls.insert(fd, Epoll::default());
        fd
    }

    /// `epoll_ctl`.
    pub fn epoll_control(&mut self, instance: i32, operation: i32, fd: i32, event: Option<(u32, u64)>) -> Result<(), Errno> {
        if !self.descriptors.contains_key(&fd) {
            return Err(Errno(libc::EBADF));
        }
        self.epolls.get_mut(&instance).ok_or(Errno(libc::EBADF))?.control(operation, fd, event)
    }

    /// `epoll_wait` for up to `most` events.
    pub fn epoll_wait(&mut self, instance: i32, most: usize) -> Attempt<Vec<(u32, u64)>> {
        let Some(mut epoll) = self.epolls.remove(&instance) else { return Attempt::Done(Err(Errno(libc::EBADF))) };
        let ready = epoll.report(most, |fd| (u32::from(self.readiness(fd) as u16), self.edges(fd)));
        self.epolls.insert(instance, epoll);
        if ready.is_empty() {
            Attempt::Waits(None)
        } else {
            Attempt::Done(Ok(ready))
        }
    }

    /// Edges (`EPOLLET`) on a socket so far: events after which it may be ready again.
    fn edges(&self, fd: i32) -> u64 {
        self.connection(fd).ok().and_then(|id| self.seen.get(&id)).map_or(0, |seen| seen.edges)
    }

    /// Forgets a socket that is closed.
    pub fn epoll_forget(&mut self, fd: i32) {
        self.epolls.remove(&fd);
        for epoll in self.epolls.values_mut() {
            epoll.forget(fd);
        }
    }
}
