//! Calls that send and receive octets.

use super::{returned, shared, unsupported, Own};
use crate::errno::Errno;
use nix::libc::{self, c_int, c_void, iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};
use std::slice;

/// # Safety
/// As for [`shared`].
unsafe fn send_octets(own: Own, fd: c_int, octets: Option<&[u8]>, flags: c_int) -> ssize_t {
    let Some(octets) = octets else { return returned(Err(Errno(libc::EFAULT)), |()| 0) };
    if flags & !(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) != 0 {
        unsupported(&format!("flags {flags:#x} of send"));
        return returned(Err(Errno(libc::EOPNOTSUPP)), |()| 0);
    }
    let mut sent = 0;
    let nonblocking = flags & libc::MSG_DONTWAIT != 0;
    // SAFETY: the pointer is ours.
    let result = unsafe { shared(own) }.wait(|world| world.send(fd, octets, &mut sent, nonblocking));
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
unsafe fn gather(own: Own, fd: c_int, vector: &[iovec], flags: c_int) -> ssize_t {
    // SAFETY: the caller vouches for the buffers.
    unsafe {
        let parts: Option<Vec<_>> = vector.iter().map(|part| octets(part.iov_base, part.iov_len)).collect();
        send_octets(own, fd, parts.map(|parts| parts.concat()).as_deref(), flags)
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
        (*message).msg_controllen = 0;
        (*message).msg_flags = 0;
        scatter(own, fd, buffers((*message).msg_iov, (*message).msg_iovlen), flags)
    }
}

pub(super) unsafe extern "C" fn write(own: Own, fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { send_octets(own, fd, octets(buffer, len), 0) }
}

pub(super) unsafe extern "C" fn writev(own: Own, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffers.
    unsafe { gather(own, fd, buffers(vector, count.max(0) as usize), 0) }
}

pub(super) unsafe extern "C" fn send(own: Own, fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { send_octets(own, fd, octets(buffer, len), flags) }
}

pub(super) unsafe extern "C" fn sendto(
    own: Own,
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    _to: *const sockaddr,
    _to_len: socklen_t,
) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer. A connected socket ignores the address.
    unsafe { send_octets(own, fd, octets(buffer, len), flags) }
}

pub(super) unsafe extern "C" fn sendmsg(own: Own, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer, message and buffers.
    unsafe {
        if (*message).msg_controllen != 0 {
            unsupported("control messages of sendmsg");
            return returned(Err(Errno(libc::EOPNOTSUPP)), |()| 0);
        }
        gather(own, fd, buffers((*message).msg_iov, (*message).msg_iovlen), flags)
    }
}
