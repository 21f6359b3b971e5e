//! System calls of sockets, as a host in virtual time answers them.

use super::World;
use crate::descriptor::{Descriptor, Options, Role, Seen};
use crate::errno::{self, Errno};
use crate::outcome::Attempt;
use bytes::Bytes;
use nix::libc;
use std::collections::VecDeque;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::IntoRawFd;
use whyloss_testkit::settings::Settings;
use whyloss_transport::stack::{ConnectionId, Listener};
use whyloss_transport::tcp::{Closing, Command};
use whyloss_transport::Payload;

/// Handshakes that a listener lets be under way once its options were changed.
const BACKLOG: usize = 128;

impl World {
    /// `socket`: returns the descriptor.
    pub fn socket(&mut self, v6: bool, nonblocking: bool) -> i32 {
        let settings = self.defaults.clone();
        self.add(Descriptor {
            nonblocking,
            resets_on_close: false,
            v6,
            bound: None,
            settings,
            keep_alive: false,
            options: Options { notsent_low: 0, ..Options::default() },
            role: Role::Fresh,
        })
    }

    /// A number for a socket. The system knows it too, as a file that gives nothing: packetdrill closes what a script leaves open with the
    /// system's own call.
    pub fn number(&mut self) -> i32 {
        File::open("/dev/null").map_or_else(|_| self.descriptors.keys().max().map_or(3, |last| last + 1), File::into_raw_fd)
    }

    fn add(&mut self, descriptor: Descriptor) -> i32 {
        let fd = self.number();
        self.descriptors.insert(fd, descriptor);
        fd
    }

    /// `bind`: takes note of the local address; whether another socket has it is not looked at.
    pub fn bind(&mut self, fd: i32, address: SocketAddr) -> Result<(), Errno> {
        self.descriptor(fd)?.bound = Some(address);
        Ok(())
    }

    /// `listen`.
    pub fn listen(&mut self, fd: i32, backlog: usize) -> Result<(), Errno> {
        let descriptor = self.descriptor(fd)?;
        let Some(local) = descriptor.bound else { return Err(Errno(libc::EINVAL)) };
        descriptor.role = Role::Listener(VecDeque::new());
        self.offer(local, fd, backlog)
    }

    /// What was set for a listener counts for the connections that come from now on.
    pub fn renew_listener(&mut self, fd: i32) -> Result<(), Errno> {
        let descriptor = self.descriptor(fd)?;
        match (&descriptor.role, descriptor.bound) {
            (Role::Listener(_), Some(local)) => {
                self.stack.unlisten(local);
                self.offer(local, fd, BACKLOG)
            }
            _ => Ok(()),
        }
    }

    fn offer(&mut self, local: SocketAddr, fd: i32, backlog: usize) -> Result<(), Errno> {
        let Settings { config, selection, .. } = self.descriptor(fd)?.settings.clone();
        let listener = Listener { config, selection, backlog: backlog.max(1) };
        self.stack.listen(local, listener).map_err(|_| Errno(libc::EADDRINUSE))?;
        self.serve_fast(fd, local, backlog)
    }

    /// `accept`: the descriptor of the next connection and its peer.
    pub fn accept(&mut self, fd: i32) -> Attempt<(i32, SocketAddr)> {
        let descriptor = match self.descriptor(fd) {
            Ok(descriptor) => descriptor,
            Err(error) => return Attempt::Done(Err(error)),
        };
        let (nonblocking, v6, settings) = (descriptor.nonblocking, descriptor.v6, descriptor.settings.clone());
        let options = descriptor.options.clone();
        let Role::Listener(queue) = &mut descriptor.role else { return Attempt::Done(Err(Errno(libc::EINVAL))) };
        let Some(id) = queue.pop_front() else {
            return if nonblocking { Attempt::Done(Err(Errno(libc::EAGAIN))) } else { Attempt::Waits(None) };
        };
        let remote = self.stack.tuple(id).map_or(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0), |tuple| tuple.remote);
        let role = Role::Connection(id);
        let fd = self.add(Descriptor {
            nonblocking: false,
            resets_on_close: false,
            v6,
            bound: None,
            settings,
            keep_alive: false,
            options,
            role,
        });
        Attempt::Done(Ok((fd, remote)))
    }

    /// `connect`: waits for the handshake, unless the socket does not block or opens fast.
    pub fn connect(&mut self, fd: i32, remote: SocketAddr) -> Attempt<()> {
        let now = self.now;
        let (nonblocking, fast) = match self.descriptor(fd) {
            Ok(descriptor) => (descriptor.nonblocking, descriptor.options.fast_open_connect),
            Err(error) => return Attempt::Done(Err(error)),
        };
        if let Role::Deferred(_) = self.descriptors[&fd].role {
            return Attempt::Done(Err(Errno(libc::EISCONN)));
        }
        if let (Role::Fresh, true) = (&self.descriptors[&fd].role, fast && self.opens_fast()) {
            if self.defers_connect(fd, remote) {
                return Attempt::Done(Ok(()));
            }
            return match self.open_fast(fd, remote, &[]) {
                Err(error) => Attempt::Done(Err(error)),
                Ok(_) if nonblocking => Attempt::Done(Err(Errno(libc::EINPROGRESS))),
                Ok(_) => Attempt::Waits(None),
            };
        }
        if let Role::Fresh = self.descriptors[&fd].role {
            let Settings { mut config, selection, .. } = self.descriptors[&fd].settings.clone();
            config.ecn &= self.offers_ecn;
            let Ok(id) = self.stack.connect(now, remote, config, &selection) else {
                return Attempt::Done(Err(Errno(libc::EADDRNOTAVAIL)));
            };
            self.seen.insert(id, Seen::default());
            self.descriptors.get_mut(&fd).expect("just looked").role = Role::Connection(id);
            return if nonblocking { Attempt::Done(Err(Errno(libc::EINPROGRESS))) } else { Attempt::Waits(None) };
        }
        let Ok(id) = self.connection(fd) else { return Attempt::Done(Err(Errno(libc::EINVAL))) };
        let seen = self.seen.entry(id).or_default();
        match seen.over {
            Some(how) => {
                seen.reported = true;
                Attempt::Done(errno::of(how).map_or(Ok(()), Err))
            }
            // Linux tells the success of a connection that was begun before once.
            None if seen.connected => Attempt::Done(Ok(())),
            None if nonblocking => Attempt::Done(Err(Errno(libc::EALREADY))),
            None => Attempt::Waits(None),
        }
    }

    /// `send` of what is left of `octets` after `done`.
    pub fn send(&mut self, fd: i32, octets: &[u8], done: &mut usize, flags: i32, nonblocking: bool) -> Attempt<usize> {
        let id = match self.connection(fd) {
            Ok(id) => id,
            // What was never connected is broken.
            Err(Errno(libc::ENOTCONN)) => return Attempt::Done(Err(Errno(libc::EPIPE))),
            Err(error) => return Attempt::Done(Err(error)),
        };
        let nonblocking = nonblocking || self.descriptors[&fd].nonblocking;
        let seen = self.seen.entry(id).or_default();
        if let Some(how) = seen.over {
            let first = !std::mem::replace(&mut seen.reported, true);
            return Attempt::Done(Err(errno::of(how).filter(|_| first).unwrap_or(Errno(libc::EPIPE))));
        }
        if seen.shut {
            return Attempt::Done(Err(Errno(libc::EPIPE)));
        }
        let connected = seen.connected;
        // A writer that waits is woken when there is room to speak of.
        let asleep = seen.queue.starved && *done > 0;
        while connected && !asleep && *done < octets.len() {
            let (room, begins) = self.room(fd, id);
            let part = &octets[*done..(*done + room as usize).min(octets.len())];
            if part.is_empty() {
                break;
            }
            let payload = Payload::Bytes(Bytes::copy_from_slice(part));
            let more = flags & libc::MSG_MORE != 0;
            let command = if more { Command::SendMore(payload) } else { Command::Send(payload) };
            self.stack.command(self.now, id, command);
            *done += part.len();
            self.note_queued(id, part.len() as u64, begins);
            self.drain_stack();
        }
        if *done == octets.len() && flags & libc::MSG_EOR != 0 {
            self.end_record(id);
        }
        if *done < octets.len() && connected {
            self.seen.entry(id).or_default().queue.starved = true;
        }
        if *done == octets.len() || nonblocking && *done > 0 {
            self.note_write(fd, flags);
            Attempt::Done(Ok(*done))
        } else if nonblocking {
            Attempt::Done(Err(Errno(libc::EAGAIN)))
        } else {
            Attempt::Waits(None)
        }
    }

    /// `recv` of up to `len` octets.
    pub fn receive(&mut self, fd: i32, len: usize, nonblocking: bool) -> Attempt<Vec<u8>> {
        let id = match self.connection(fd) {
            Ok(id) => id,
            Err(_) if matches!(self.descriptors.get(&fd), Some(Descriptor { role: Role::Deferred(_), .. })) => {
                return Attempt::Done(Err(Errno(libc::EAGAIN)));
            }
            Err(error) => return Attempt::Done(Err(error)),
        };
        let nonblocking = nonblocking || self.descriptors[&fd].nonblocking;
        let mut octets = Vec::new();
        while octets.len() < len {
            let Some(piece) = self.stack.read(self.now, id, len - octets.len()) else { break };
            octets.extend_from_slice(&piece.to_bytes());
        }
        let seen = self.seen.entry(id).or_default();
        seen.read += octets.len() as u64;
        if !octets.is_empty() || len == 0 || seen.peer_closed || seen.deaf {
            return Attempt::Done(Ok(octets));
        }
        match seen.over {
            Some(how) if !std::mem::replace(&mut seen.reported, true) => Attempt::Done(errno::of(how).map_or(Ok(octets), Err)),
            Some(_) => Attempt::Done(Ok(octets)),
            None if nonblocking => Attempt::Done(Err(Errno(libc::EAGAIN))),
            None => Attempt::Waits(None),
        }
    }

    /// What a read tells with `TCP_INQ`: what is left to read, or 1 for the end of the stream.
    pub fn inquiry(&self, fd: i32) -> Option<i32> {
        let id = self.connection(fd).ok()?;
        let seen = self.seen.get(&id).filter(|_| self.descriptors[&fd].options.inquire)?;
        Some((self.unread(id) as i32).max(i32::from(seen.peer_closed)))
    }

    /// Whether the connection runs over IPv6.
    pub fn speaks_v6(&self, fd: i32) -> bool {
        self.connection(fd).ok().and_then(|id| self.stack.tuple(id)).is_some_and(|tuple| tuple.local.is_ipv6())
    }

    /// Octets that can be read.
    pub fn unread(&self, id: ConnectionId) -> u64 {
        let delivered = self.stack.endpoint(id).map_or(0, |endpoint| endpoint.stats().octets_delivered);
        delivered.saturating_sub(self.seen.get(&id).map_or(0, |seen| seen.read))
    }

    /// `close`: ends the connection in order, or by a reset if received data is unread (RFC 1122, 4.2.2.13).
    pub fn close(&mut self, fd: i32) -> Result<(), Errno> {
        let watches = self.epolls.contains_key(&fd);
        self.epoll_forget(fd);
        let descriptor = match self.descriptors.remove(&fd) {
            Some(descriptor) => descriptor,
            None if watches => return nix::unistd::close(fd).map_err(|error| Errno(error as i32)),
            None => return Err(Errno(libc::EBADF)),
        };
        let _ = nix::unistd::close(fd);
        match descriptor.role {
            Role::Fresh | Role::Deferred(_) => {}
            Role::Listener(queue) => {
                if let Some(local) = descriptor.bound {
                    self.stack.unlisten(local);
                }
                for id in queue {
                    self.stack.command(self.now, id, Command::Abort);
                }
            }
            Role::Connection(id) => {
                // RFC 1122, 4.2.2.13: closing with unread data resets.
                let reset = descriptor.resets_on_close || self.unread(id) > 0;
                self.stack.command(self.now, id, Command::StopReading);
                self.stack.command(self.now, id, if reset { Command::Abort } else { Command::Close });
            }
        }
        Ok(())
    }

    /// `shutdown`.
    pub fn shutdown(&mut self, fd: i32, how: i32) -> Result<(), Errno> {
        let id = self.connection(fd)?;
        let seen = self.seen.entry(id).or_default();
        if !seen.connected || seen.over.is_some_and(|how| how != Closing::Normal) {
            return Err(Errno(libc::ENOTCONN));
        }
        seen.deaf |= how != libc::SHUT_WR;
        if how != libc::SHUT_RD && !seen.shut {
            seen.shut = true;
            self.stack.command(self.now, id, Command::Close);
        }
        Ok(())
    }

    /// The events of `poll` on a descriptor.
    pub fn readiness(&self, fd: i32) -> i16 {
        let id = match self.descriptors.get(&fd).map(|descriptor| &descriptor.role) {
            None => return libc::POLLNVAL,
            Some(Role::Fresh) => return libc::POLLOUT | libc::POLLHUP,
            Some(Role::Deferred(_)) => return libc::POLLOUT | libc::POLLWRNORM,
            Some(Role::Listener(queue)) => return if queue.is_empty() { 0 } else { libc::POLLIN | libc::POLLRDNORM },
            Some(Role::Connection(id)) => *id,
        };
        let Some(seen) = self.seen.get(&id) else { return 0 };
        let over = seen.over.is_some();
        let mut events = 0;
        if self.unread(id) > 0 || seen.peer_closed || over {
            events |= libc::POLLIN | libc::POLLRDNORM;
        }
        if over || seen.connected && !seen.shut && seen.queue.writable {
            events |= libc::POLLOUT | libc::POLLWRNORM;
        }
        if seen.peer_closed || over {
            events |= libc::POLLRDHUP;
        }
        if seen.over.is_some_and(|how| how != Closing::Normal) && !seen.reported || !seen.errors.is_empty() {
            events |= libc::POLLERR;
        }
        if over || seen.peer_closed && seen.shut {
            events |= libc::POLLHUP;
        }
        events
    }
}
