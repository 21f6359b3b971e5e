//! Calls that make, join and end connections, and those that look at a descriptor.

use super::{done, returned, shared, unsupported, Own};
use crate::errno::Errno;
use crate::outcome::Attempt;
use nix::libc::{self, c_int, c_ulong, nfds_t, pollfd, sockaddr, socklen_t};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::slice;
use whyloss_transport::{Duration, Instant};

/// # Safety
/// `address` points to `len` octets of a socket address.
pub(super) unsafe fn address(address: *const sockaddr, len: socklen_t) -> Option<SocketAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: the family says which it is, the length that all of it is there; C does not promise alignment.
    unsafe {
        match c_int::from((*address).sa_family) {
            libc::AF_INET if len as usize >= size_of::<libc::sockaddr_in>() => {
                let v4 = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some((Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)), u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 if len as usize >= size_of::<libc::sockaddr_in6>() => {
                let v6 = address.cast::<libc::sockaddr_in6>().read_unaligned();
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let port = u16::from_be(v6.sin6_port);
                Some(ip.to_ipv4_mapped().map_or(SocketAddr::from((ip, port)), |v4| (v4, port).into()))
            }
            _ => None,
        }
    }
}

/// # Safety
/// `out` is null or points to `*len` octets, and `len` is null only if `out` is.
unsafe fn tell_address(peer: SocketAddr, out: *mut sockaddr, len: *mut socklen_t) {
    if out.is_null() || len.is_null() {
        return;
    }
    // SAFETY: all-zero octets are valid socket addresses; never more is copied than there is room for.
    unsafe {
        let room = *len as usize;
        match peer {
            SocketAddr::V4(v4) => {
                let mut raw: libc::sockaddr_in = std::mem::zeroed();
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_port = v4.port().to_be();
                raw.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
                let size = size_of_val(&raw);
                std::ptr::copy_nonoverlapping((&raw const raw).cast::<u8>(), out.cast(), room.min(size));
                *len = size as socklen_t;
            }
            SocketAddr::V6(v6) => {
                let mut raw: libc::sockaddr_in6 = std::mem::zeroed();
                raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                raw.sin6_port = v6.port().to_be();
                raw.sin6_addr.s6_addr = v6.ip().octets();
                let size = size_of_val(&raw);
                std::ptr::copy_nonoverlapping((&raw const raw).cast::<u8>(), out.cast(), room.min(size));
                *len = size as socklen_t;
            }
        }
    }
}

pub(super) unsafe extern "C" fn socket(own: Own, domain: c_int, kind: c_int, _protocol: c_int) -> c_int {
    if kind & 0xf != libc::SOCK_STREAM || !matches!(domain, libc::AF_INET | libc::AF_INET6) {
        unsupported("sockets other than TCP's");
        return done(Err(Errno(libc::EPROTONOSUPPORT)));
    }
    // SAFETY: the pointer is ours.
    unsafe { shared(own) }.with(|world| world.socket(domain == libc::AF_INET6, kind & libc::SOCK_NONBLOCK != 0))
}

pub(super) unsafe extern "C" fn bind(own: Own, fd: c_int, at: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the address.
    unsafe {
        let Some(at) = address(at, len) else { return done(Err(Errno(libc::EINVAL))) };
        done(shared(own).with(|world| world.bind(fd, at)))
    }
}

pub(super) unsafe extern "C" fn listen(own: Own, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: the pointer is ours.
    done(unsafe { shared(own) }.with(|world| world.listen(fd, backlog.max(0) as usize)))
}

pub(super) unsafe extern "C" fn accept(own: Own, fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the room for an address.
    unsafe {
        let result = shared(own).wait(|world| world.accept(fd));
        returned(result, |(fd, peer)| {
            tell_address(peer, at, len);
            fd as isize
        }) as c_int
    }
}

pub(super) unsafe extern "C" fn connect(own: Own, fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the address.
    unsafe {
        let Some(to) = address(to, len) else { return done(Err(Errno(libc::EINVAL))) };
        done(shared(own).wait(|world| world.connect(fd, to)))
    }
}

pub(super) unsafe extern "C" fn close(own: Own, fd: c_int) -> c_int {
    // SAFETY: the pointer is ours.
    done(unsafe { shared(own) }.with(|world| world.close(fd)))
}

pub(super) unsafe extern "C" fn shutdown(own: Own, fd: c_int, how: c_int) -> c_int {
    // SAFETY: the pointer is ours.
    done(unsafe { shared(own) }.with(|world| world.shutdown(fd, how)))
}

pub(super) unsafe extern "C" fn fcntl(own: Own, fd: c_int, command: c_int, argument: c_ulong) -> c_int {
    // SAFETY: the pointer is ours.
    unsafe { shared(own) }.with(|world| {
        let result = world.descriptor(fd).and_then(|descriptor| match command {
            libc::F_GETFL => Ok(libc::O_RDWR | if descriptor.nonblocking { libc::O_NONBLOCK } else { 0 }),
            libc::F_SETFL => {
                descriptor.nonblocking = argument as c_int & libc::O_NONBLOCK != 0;
                Ok(0)
            }
            other => {
                unsupported(&format!("command {other} of fcntl"));
                Err(Errno(libc::EINVAL))
            }
        });
        returned(result, |value| value as isize) as c_int
    })
}

pub(super) unsafe extern "C" fn ioctl(own: Own, fd: c_int, request: c_ulong, out: *mut c_int) -> c_int {
    /// `SIOCOUTQNSD` of linux/sockios.h: octets that were never sent.
    const UNSENT: c_ulong = 0x894B;
    // SAFETY: the pointer is ours, and packetdrill vouches for the place of the result.
    unsafe {
        let result = shared(own).with(|world| {
            let id = world.connection(fd)?;
            let endpoint = world.stack.endpoint(id).ok_or(Errno(libc::ENOTCONN))?;
            match request {
                libc::FIONREAD => Ok(world.unread(id)),
                libc::TIOCOUTQ => Ok(endpoint.path().flight + endpoint.unsent()),
                UNSENT => Ok(endpoint.unsent()),
                other => {
                    unsupported(&format!("request {other:#x} of ioctl"));
                    Err(Errno(libc::EINVAL))
                }
            }
        });
        done(result.map(|value| out.write(value as c_int)))
    }
}

pub(super) unsafe extern "C" fn poll(own: Own, entries: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the entries.
    unsafe {
        let entries = if count == 0 { &mut [][..] } else { slice::from_raw_parts_mut(entries, count as usize) };
        let mut limit = None;
        let result = shared(own).wait(|world| {
            let limit = *limit.get_or_insert_with(|| match u64::try_from(timeout) {
                Ok(millis) => world.now + Duration::from_millis(millis),
                Err(_) => Instant::MAX,
            });
            let mut ready = 0;
            for entry in entries.iter_mut() {
                let always = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
                entry.revents = world.readiness(entry.fd) & (entry.events | always);
                ready += isize::from(entry.revents != 0);
            }
            if ready > 0 || world.now >= limit {
                Attempt::Done(Ok(ready))
            } else {
                Attempt::Waits((limit != Instant::MAX).then_some(limit))
            }
        });
        returned(result, |ready| ready) as c_int
    }
}
