//! `epoll` on the sockets of a world.

use crate::errno::Errno;
use crate::shared::Attempt;
use crate::world::World;
use nix::libc;
use std::collections::BTreeMap;

/// Sockets that one instance watches at most.
const MOST: usize = 1024;

/// An instance: what it watches.
#[derive(Debug, Default)]
pub struct Epoll {
    watched: BTreeMap<i32, Watch>,
}

#[derive(Debug)]
struct Watch {
    events: u32,
    data: u64,
    /// How many things had happened on the socket when it was last reported; `None` if it was not.
    reported: Option<u64>,
    /// One shot was made.
    spent: bool,
}

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
        let watched = &mut self.epolls.get_mut(&instance).ok_or(Errno(libc::EBADF))?.watched;
        match (operation, event) {
            (libc::EPOLL_CTL_DEL, _) => watched.remove(&fd).map(drop).ok_or(Errno(libc::ENOENT)),
            (libc::EPOLL_CTL_ADD, _) if watched.contains_key(&fd) => Err(Errno(libc::EEXIST)),
            (libc::EPOLL_CTL_ADD, _) if watched.len() >= MOST => Err(Errno(libc::ENOSPC)),
            (libc::EPOLL_CTL_MOD, _) if !watched.contains_key(&fd) => Err(Errno(libc::ENOENT)),
            (libc::EPOLL_CTL_ADD | libc::EPOLL_CTL_MOD, Some((events, data))) => {
                watched.insert(fd, Watch { events, data, reported: None, spent: false });
                Ok(())
            }
            _ => Err(Errno(libc::EINVAL)),
        }
    }

    /// `epoll_wait` for up to `most` events.
    pub fn epoll_wait(&mut self, instance: i32, most: usize) -> Attempt<Vec<(u32, u64)>> {
        let Some(epoll) = self.epolls.get(&instance) else { return Attempt::Done(Err(Errno(libc::EBADF))) };
        let mut ready = Vec::new();
        for (&fd, watch) in &epoll.watched {
            let always = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
            let events = u32::from(self.readiness(fd) as u16) & (watch.events | always);
            let happened = self.happened(fd);
            let stale = watch.events & libc::EPOLLET as u32 != 0 && watch.reported == Some(happened);
            if events != 0 && !watch.spent && !stale && ready.len() < most {
                ready.push((fd, happened, events, watch.data));
            }
        }
        if ready.is_empty() {
            return Attempt::Waits(None);
        }
        let epoll = self.epolls.get_mut(&instance).expect("just looked");
        for (fd, happened, ..) in &ready {
            let watch = epoll.watched.get_mut(fd).expect("just looked");
            watch.reported = Some(*happened);
            watch.spent = watch.events & libc::EPOLLONESHOT as u32 != 0;
        }
        Attempt::Done(Ok(ready.into_iter().map(|(_, _, events, data)| (events, data)).collect()))
    }

    /// Counts what has happened on a socket that those who watch its edges want to hear.
    fn happened(&self, fd: i32) -> u64 {
        self.connection(fd).ok().and_then(|id| self.seen.get(&id)).map_or(0, |seen| seen.edges)
    }

    /// Forgets a socket that is closed.
    pub fn epoll_forget(&mut self, fd: i32) {
        self.epolls.remove(&fd);
        for epoll in self.epolls.values_mut() {
            epoll.watched.remove(&fd);
        }
    }
}
