//! Calls that send and receive octets.

use super::sockets::address;
use super::{returned, shared, unsupported, Own};
use crate::descriptor::{Descriptor, Role};
use crate::errno::Errno;
use crate::errors::{Message, CODE_ZEROCOPY_COPIED, MSG_ZEROCOPY, ORIGIN_TIMESTAMPING, ORIGIN_ZEROCOPY};
use nix::libc::{self, c_int, c_void, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use std::net::SocketAddr;
use std::slice;

/// # Safety
/// As for [`shared`].
unsafe fn send_octets(own: Own, fd: c_int, octets: Option<&[u8]>, flags: c_int, to: Option<SocketAddr>) -> ssize_t {
    let Some(octets) = octets else { return returned(Err(Errno(libc::EFAULT)), |()| 0) };
    let known = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | libc::MSG_FASTOPEN | libc::MSG_MORE | libc::MSG_EOR | MSG_ZEROCOPY;
    if flags & !known != 0 {
        unsupported(&format!("flags {flags:#x} of send"));
        return returned(Err(Errno(libc::EOPNOTSUPP)), |()| 0);
    }
    let (mut sent, mut begun) = (0, false);
    let nonblocking = flags & libc::MSG_DONTWAIT != 0;
    // SAFETY: the pointer is ours.
    let result = unsafe { shared(own) }.wait(|world| {
        let deferred = matches!(world.descriptors.get(&fd), Some(Descriptor { role: Role::Deferred(_), .. }));
        if begun || deferred || flags & libc::MSG_FASTOPEN != 0 {
            world.send_fast(fd, to, octets, (&mut sent, &mut begun), (flags, nonblocking))
        } else {
            world.send(fd, octets, &mut sent, flags, nonblocking)
        }
    });
    returned(result, |count| count as isize)
}

/// Puts what arrives where `place` says, up to `len` octets.
///
/// # Safety
/// As for [`shared`].
unsafe fn receive_octets(own: Own, fd: c_int, len: usize, flags: c_int, place: impl FnOnce(&[u8])) -> ssize_t {
    if flags & !libc::MSG_DONTWAIT != 0 {
        unsupported(&format!("flags {flags:#x} of recv"));
        return returned(Err(Errno(libc::EOPNOTSUPP)), |()| 0);
    }
    let nonblocking = flags & libc::MSG_DONTWAIT != 0;
    // SAFETY: the pointer is ours.
    let result = unsafe { shared(own) }.wait(|world| world.receive(fd, len, nonblocking));
    returned(result, |octets| {
        place(&octets);
        octets.len() as isize
    })
}

/// `None` if there are octets at no address.
///
/// # Safety
/// `buffer` is null or points to `len` octets.
pub(super) unsafe fn octets<'a>(buffer: *const c_void, len: size_t) -> Option<&'a [u8]> {
    match (len, buffer.is_null()) {
        (0, _) => Some(&[]),
        (_, true) => None,
        // SAFETY: the caller vouches for it.
        _ => Some(unsafe { slice::from_raw_parts(buffer.cast(), len) }),
    }
}

/// # Safety
/// As for [`shared`]; `buffer` is null or points to room for `len` octets.
unsafe fn receive_into(own: Own, fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    if buffer.is_null() && len > 0 {
        return returned(Err(Errno(libc::EFAULT)), |()| 0);
    }
    // SAFETY: the caller vouches for it.
    unsafe { receive_octets(own, fd, len, flags, |octets| put(octets, buffer)) }
}

/// # Safety
/// `buffer` points to room for `octets`.
pub(super) unsafe fn put(octets: &[u8], buffer: *mut c_void) {
    // SAFETY: the caller vouches for the room; ours and packetdrill's memory do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(octets.as_ptr(), buffer.cast(), octets.len()) };
}

/// The buffers of a vector.
///
/// # Safety
/// `vector` points to `count` of them.
unsafe fn buffers<'a>(vector: *const iovec, count: usize) -> &'a [iovec] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for it.
    unsafe { slice::from_raw_parts(vector, count) }
}

/// # Safety
/// As for [`shared`] and [`octets`], for all buffers.
unsafe fn gather(own: Own, fd: c_int, vector: &[iovec], flags: c_int, to: Option<SocketAddr>) -> ssize_t {
    // SAFETY: the caller vouches for the buffers.
    unsafe {
        let parts: Option<Vec<_>> = vector.iter().map(|part| octets(part.iov_base, part.iov_len)).collect();
        send_octets(own, fd, parts.map(|parts| parts.concat()).as_deref(), flags, to)
    }
}

/// # Safety
/// As for [`shared`] and [`put`], for all buffers.
unsafe fn scatter(own: Own, fd: c_int, vector: &[iovec], flags: c_int) -> ssize_t {
    let room = vector.iter().map(|part| part.iov_len).sum();
    // SAFETY: the caller vouches for the buffers.
    unsafe {
        receive_octets(own, fd, room, flags, |mut rest| {
            for part in vector {
                let (head, tail) = rest.split_at(part.iov_len.min(rest.len()));
                put(head, part.iov_base);
                rest = tail;
            }
        })
    }
}

pub(super) unsafe extern "C" fn read(own: Own, fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { receive_into(own, fd, buffer, len, 0) }
}

pub(super) unsafe extern "C" fn readv(own: Own, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffers.
    unsafe { scatter(own, fd, buffers(vector, count.max(0) as usize), 0) }
}

pub(super) unsafe extern "C" fn recv(own: Own, fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { receive_into(own, fd, buffer, len, flags) }
}

pub(super) unsafe extern "C" fn recvfrom(
    own: Own,
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    _from: *mut sockaddr,
    _from_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer. TCP leaves the address alone.
    unsafe { receive_into(own, fd, buffer, len, flags) }
}

pub(super) unsafe extern "C" fn recvmsg(own: Own, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer, message and buffers.
    unsafe {
        if flags & libc::MSG_ERRQUEUE != 0 {
            return receive_error(own, fd, message);
        }
        (*message).msg_flags = 0;
        let octets = scatter(own, fd, buffers((*message).msg_iov, (*message).msg_iovlen), flags);
        let told = shared(own).with(|world| (octets >= 0).then(|| world.inquiry(fd)).flatten());
        put_control(message, &told.map_or(Vec::new(), |left| control(libc::IPPROTO_TCP, TCP_INQ, &left.to_ne_bytes())));
        octets
    }
}

/// `TCP_CM_INQ` of Linux's `linux/tcp.h`: the control message with what is left to read.
const TCP_INQ: c_int = 36;

/// A control message as it stands in memory.
fn control(level: c_int, kind: c_int, data: &[u8]) -> Vec<u8> {
    let mut octets = (size_of::<libc::cmsghdr>() + data.len()).to_ne_bytes().to_vec();
    octets.extend_from_slice(&level.to_ne_bytes());
    octets.extend_from_slice(&kind.to_ne_bytes());
    octets.extend_from_slice(data);
    octets.resize(octets.len().next_multiple_of(size_of::<usize>()), 0);
    octets
}

/// Hands over control messages, as far as there is room for them.
///
/// # Safety
/// `message` points to a message whose control buffer is as long as it says.
unsafe fn put_control(message: *mut msghdr, octets: &[u8]) {
    // SAFETY: the caller vouches for it.
    unsafe {
        let room = if (*message).msg_control.is_null() { 0 } else { (*message).msg_controllen };
        let fits = octets.len().min(room);
        put(&octets[..fits], (*message).msg_control);
        (*message).msg_controllen = fits as _;
    }
}

/// The next message of the error queue, as Linux lays it out.
///
/// # Safety
/// As for [`shared`] and [`put_control`].
unsafe fn receive_error(own: Own, fd: c_int, message: *mut msghdr) -> ssize_t {
    // SAFETY: the caller vouches for the pointers.
    unsafe {
        let (error, v6) = shared(own).with(|world| (world.take_error(fd), world.speaks_v6(fd)));
        let Some(error) = error else {
            put_control(message, &[]);
            return returned(Err(Errno(libc::EAGAIN)), |()| 0);
        };
        (*message).msg_flags = 0;
        let mut octets = Vec::new();
        let (number, origin, code, info, data) = match error {
            Message::ZeroCopy { first, last } => (0, ORIGIN_ZEROCOPY, CODE_ZEROCOPY_COPIED, first, last),
            Message::Timestamp { at, stage, offset } => {
                let nanos = at.as_nanos();
                let mut stamps = [0u8; 48];
                stamps[..8].copy_from_slice(&(nanos / 1_000_000_000).to_ne_bytes());
                stamps[8..16].copy_from_slice(&(nanos % 1_000_000_000).to_ne_bytes());
                octets = control(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &stamps);
                (*message).msg_flags = libc::MSG_TRUNC;
                (libc::ENOMSG as u32, ORIGIN_TIMESTAMPING, 0, stage, offset)
            }
        };
        (*message).msg_flags |= libc::MSG_ERRQUEUE;
        // struct sock_extended_err and the address of who reports: nobody.
        let mut report = number.to_ne_bytes().to_vec();
        report.extend_from_slice(&[origin, 0, code, 0]);
        report.extend_from_slice(&info.to_ne_bytes());
        report.extend_from_slice(&data.to_ne_bytes());
        let (level, kind, address) = if v6 {
            (libc::IPPROTO_IPV6, libc::IPV6_RECVERR, size_of::<libc::sockaddr_in6>())
        } else {
            (libc::IPPROTO_IP, libc::IP_RECVERR, size_of::<libc::sockaddr_in>())
        };
        report.resize(report.len() + address, 0);
        octets.extend(control(level, kind, &report));
        put_control(message, &octets);
    }
    0
}

pub(super) unsafe extern "C" fn write(own: Own, fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { send_octets(own, fd, octets(buffer, len), 0, None) }
}

pub(super) unsafe extern "C" fn writev(own: Own, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffers.
    unsafe { gather(own, fd, buffers(vector, count.max(0) as usize), 0, None) }
}

pub(super) unsafe extern "C" fn send(own: Own, fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { send_octets(own, fd, octets(buffer, len), flags, None) }
}

pub(super) unsafe extern "C" fn sendto(
    own: Own,
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer, buffer and address. A connected socket ignores the address.
    unsafe { send_octets(own, fd, octets(buffer, len), flags, address(to, to_len)) }
}

pub(super) unsafe extern "C" fn sendmsg(own: Own, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer, message and buffers.
    unsafe {
        if (*message).msg_controllen != 0 {
            unsupported("control messages of sendmsg");
            return returned(Err(Errno(libc::EOPNOTSUPP)), |()| 0);
        }
        let to = address((*message).msg_name.cast(), (*message).msg_namelen);
        gather(own, fd, buffers((*message).msg_iov, (*message).msg_iovlen), flags, to)
    }
}
