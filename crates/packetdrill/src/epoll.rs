//! What an instance of `epoll` watches.

use crate::errno::Errno;
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
    /// Edges on the socket when it was last reported; `None` if it was not.
    reported: Option<u64>,
    /// One shot was made.
    spent: bool,
}

impl Epoll {
    /// `epoll_ctl`: begins to watch `fd`, changes for what, or ends.
    pub fn control(&mut self, operation: i32, fd: i32, event: Option<(u32, u64)>) -> Result<(), Errno> {
        let watched = &mut self.watched;
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

    /// Up to `most` events with their data, which are reported herewith; `state` tells what a socket is ready for, and how many edges
    /// (`EPOLLET`) there were on it so far.
    pub fn report(&mut self, most: usize, state: impl Fn(i32) -> (u32, u64)) -> Vec<(u32, u64)> {
        let mut ready = Vec::new();
        for (&fd, watch) in &mut self.watched {
            let (events, edges) = state(fd);
            let events = events & (watch.events | (libc::EPOLLERR | libc::EPOLLHUP) as u32);
            let stale = watch.events & libc::EPOLLET as u32 != 0 && watch.reported == Some(edges);
            if events != 0 && !watch.spent && !stale && ready.len() < most {
                ready.push((events, watch.data));
                watch.reported = Some(edges);
                watch.spent = watch.events & libc::EPOLLONESHOT as u32 != 0;
            }
        }
        ready
    }

    /// Watches a socket no more.
    pub fn forget(&mut self, fd: i32) {
        self.watched.remove(&fd);
    }
}
