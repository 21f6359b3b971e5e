//! System calls that open connections with data: `MSG_FASTOPEN`, `TCP_FASTOPEN_CONNECT`, and listeners with `TCP_FASTOPEN`.

use super::World;
use crate::descriptor::{Role, Seen};
use crate::errno::Errno;
use crate::outcome::Attempt;
use bytes::Bytes;
use nix::libc;
use std::net::SocketAddr;
use whyloss_testkit::settings::Settings;
use whyloss_transport::stack::FastOpenService;
use whyloss_transport::Payload;

/// Bits of `net.ipv4.tcp_fastopen`.
const CLIENT: u64 = 0x1;
const SERVER: u64 = 0x2;
const CLIENT_WITHOUT_COOKIE: u64 = 0x4;
const SERVER_WITHOUT_COOKIE: u64 = 0x200;
/// Every listener, whether it has set the option or not.
const ALL_LISTENERS: u64 = 0x400;

impl World {
    /// Whether connections can be opened fast at all.
    pub fn opens_fast(&self) -> bool {
        self.fast_open & CLIENT != 0
    }

    /// Sets up what a listener offers; `backlog` is that of `listen`.
    pub fn serve_fast(&mut self, fd: i32, local: SocketAddr, backlog: usize) -> Result<(), Errno> {
        let mask = self.fast_open;
        let options = &self.descriptor(fd)?.options;
        let pending = options.fast_open_backlog.or((mask & ALL_LISTENERS != 0).then_some(backlog));
        let key = options.fast_open_key;
        let service = pending.filter(|_| mask & SERVER != 0).map(|pending| FastOpenService {
            pending,
            cookie_required: mask & SERVER_WITHOUT_COOKIE == 0,
            key,
        });
        self.stack.serve_fast_open(local, service);
        Ok(())
    }

    /// `connect` of a socket with `TCP_FASTOPEN_CONNECT`: with a cookie at hand the connection is opened by the first write. Returns whether
    /// it is left to that.
    pub fn defers_connect(&mut self, fd: i32, remote: SocketAddr) -> bool {
        let ready = self.fast_open & CLIENT_WITHOUT_COOKIE != 0 || self.stack.has_cookie(remote.ip());
        let Some(descriptor) = self.descriptors.get_mut(&fd).filter(|_| ready) else { return false };
        descriptor.role = Role::Deferred(remote);
        true
    }

    /// Opens a connection with the first of `octets` in its SYN; returns how many went there.
    pub fn open_fast(&mut self, fd: i32, remote: SocketAddr, octets: &[u8]) -> Result<usize, Errno> {
        let now = self.now;
        let Settings { mut config, selection, .. } = self.descriptor(fd)?.settings.clone();
        config.ecn &= self.offers_ecn;
        let cookieless = self.fast_open & CLIENT_WITHOUT_COOKIE != 0;
        let data = Payload::Bytes(Bytes::copy_from_slice(octets));
        let (id, taken) = self
            .stack
            .connect_fast(now, remote, config, &selection, &data, cookieless)
            .map_err(|_| Errno(libc::EADDRNOTAVAIL))?;
        self.seen.insert(id, Seen { fast: true, ..Seen::default() });
        self.descriptor(fd)?.role = Role::Connection(id);
        Ok(taken)
    }

    /// `sendto` with `MSG_FASTOPEN`: opens the connection to `to` and sends what is left of `octets` after `done`. `begun` is whether this
    /// call has opened it.
    pub fn send_fast(
        &mut self,
        fd: i32,
        to: Option<SocketAddr>,
        octets: &[u8],
        (done, begun): (&mut usize, &mut bool),
        (flags, nonblocking): (i32, bool),
    ) -> Attempt<usize> {
        let Some(descriptor) = self.descriptors.get(&fd) else { return Attempt::Done(Err(Errno(libc::EBADF))) };
        let nonblocking = nonblocking || descriptor.nonblocking;
        let remote = match descriptor.role {
            _ if !self.opens_fast() => return Attempt::Done(Err(Errno(libc::EOPNOTSUPP))),
            Role::Deferred(remote) => remote,
            Role::Fresh => match to {
                Some(to) => to,
                None => return Attempt::Done(Err(Errno(libc::EOPNOTSUPP))),
            },
            Role::Connection(id) if !*begun => {
                let opening = self.seen.get(&id).is_some_and(|seen| seen.fast && !seen.connected && seen.over.is_none());
                return if opening {
                    Attempt::Done(Err(Errno(libc::EALREADY)))
                } else {
                    self.send(fd, octets, done, flags, nonblocking)
                };
            }
            _ => return self.send(fd, octets, done, flags, nonblocking),
        };
        *begun = true;
        match self.open_fast(fd, remote, octets) {
            Err(error) => Attempt::Done(Err(error)),
            Ok(0) if nonblocking => Attempt::Done(Err(Errno(libc::EINPROGRESS))),
            Ok(taken) => {
                *done = taken;
                self.note_write(fd, flags);
                if nonblocking {
                    Attempt::Done(Ok(taken))
                } else {
                    Attempt::Waits(None)
                }
            }
        }
    }
}
