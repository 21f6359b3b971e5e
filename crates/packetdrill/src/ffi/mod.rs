//! The C face: packetdrill's interface for shared objects, in its own order of members.
//!
//! Every function gets the pointer that [`packetdrill_interface_init`] stored, and pointers that packetdrill vouches for, as the system
//! calls of the same names do.
#![allow(unsafe_code)]

mod device;
mod epoll;
mod octets;
mod options;
mod sockets;

use crate::errno::Errno;
use crate::outcome::unsupported;
use crate::shared::Shared;
use device::{gettimeofday, netdev_receive, netdev_send, usleep};
use epoll::{epoll_create, epoll_ctl, epoll_wait};
use nix::libc::{
    self, c_char, c_int, c_longlong, c_uint, c_ulong, c_void, epoll_event, iovec, msghdr, nfds_t, pollfd, size_t, sockaddr,
    socklen_t, ssize_t, timeval,
};
use octets::{read, readv, recv, recvfrom, recvmsg, send, sendmsg, sendto, write, writev};
use options::{getsockopt, setsockopt};
use sockets::{accept, bind, close, connect, fcntl, ioctl, listen, poll, shutdown, socket};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

type Own = *mut c_void;
/// A member that is not provided.
type Absent = Option<unsafe extern "C" fn()>;

/// What packetdrill hands over to be filled. `fcntl` and `ioctl` are variadic in C; their one further argument is passed as it would be to
/// a function that declares it.
#[repr(C)]
#[allow(missing_docs)]
pub struct Interface {
    pub userdata: Own,
    pub free: Option<unsafe extern "C" fn(Own)>,
    pub socket: Option<unsafe extern "C" fn(Own, c_int, c_int, c_int) -> c_int>,
    pub bind: Option<unsafe extern "C" fn(Own, c_int, *const sockaddr, socklen_t) -> c_int>,
    pub listen: Option<unsafe extern "C" fn(Own, c_int, c_int) -> c_int>,
    pub accept: Option<unsafe extern "C" fn(Own, c_int, *mut sockaddr, *mut socklen_t) -> c_int>,
    pub connect: Option<unsafe extern "C" fn(Own, c_int, *const sockaddr, socklen_t) -> c_int>,
    pub read: Option<unsafe extern "C" fn(Own, c_int, *mut c_void, size_t) -> ssize_t>,
    pub readv: Option<unsafe extern "C" fn(Own, c_int, *const iovec, c_int) -> ssize_t>,
    pub recv: Option<unsafe extern "C" fn(Own, c_int, *mut c_void, size_t, c_int) -> ssize_t>,
    pub recvfrom: Option<unsafe extern "C" fn(Own, c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t>,
    pub recvmsg: Option<unsafe extern "C" fn(Own, c_int, *mut msghdr, c_int) -> ssize_t>,
    pub write: Option<unsafe extern "C" fn(Own, c_int, *const c_void, size_t) -> ssize_t>,
    pub writev: Option<unsafe extern "C" fn(Own, c_int, *const iovec, c_int) -> ssize_t>,
    pub send: Option<unsafe extern "C" fn(Own, c_int, *const c_void, size_t, c_int) -> ssize_t>,
    pub sendto: Option<unsafe extern "C" fn(Own, c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t>,
    pub sendmsg: Option<unsafe extern "C" fn(Own, c_int, *const msghdr, c_int) -> ssize_t>,
    pub fcntl: Option<unsafe extern "C" fn(Own, c_int, c_int, c_ulong) -> c_int>,
    pub ioctl: Option<unsafe extern "C" fn(Own, c_int, c_ulong, *mut c_int) -> c_int>,
    pub close: Option<unsafe extern "C" fn(Own, c_int) -> c_int>,
    pub shutdown: Option<unsafe extern "C" fn(Own, c_int, c_int) -> c_int>,
    pub getsockopt: Option<unsafe extern "C" fn(Own, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int>,
    pub setsockopt: Option<unsafe extern "C" fn(Own, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int>,
    pub poll: Option<unsafe extern "C" fn(Own, *mut pollfd, nfds_t, c_int) -> c_int>,
    pub netdev_send: Option<unsafe extern "C" fn(Own, *const c_void, size_t) -> c_int>,
    pub netdev_receive: Option<unsafe extern "C" fn(Own, *mut c_void, *mut size_t, *mut c_longlong) -> c_int>,
    pub usleep: Option<unsafe extern "C" fn(Own, c_uint) -> c_int>,
    pub gettimeofday: Option<unsafe extern "C" fn(Own, *mut timeval, *mut c_void) -> c_int>,
    pub epoll_create: Option<unsafe extern "C" fn(Own, c_int) -> c_int>,
    pub epoll_ctl: Option<unsafe extern "C" fn(Own, c_int, c_int, c_int, *mut epoll_event) -> c_int>,
    pub epoll_wait: Option<unsafe extern "C" fn(Own, c_int, *mut epoll_event, c_int, c_int) -> c_int>,
    pub pipe: Absent,
    pub splice: Absent,
}

/// The world that was made last, for [`getsockopt`].
static LATEST: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

mod preloaded {
    use super::{getsockopt as ours, libc, shared, Ordering, LATEST};
    use nix::libc::{c_int, c_void, socklen_t};

    /// The C library's `getsockopt` for a process that has this library preloaded: packetdrill's assertions on `tcp_info` ask the system,
    /// not the interface. Sockets that are not ours go to the system.
    ///
    /// # Safety
    /// As for the system's.
    #[no_mangle]
    pub unsafe extern "C" fn getsockopt(fd: c_int, level: c_int, name: c_int, out: *mut c_void, len: *mut socklen_t) -> c_int {
        let own = LATEST.load(Ordering::Acquire);
        // SAFETY: the caller vouches for the pointers as for the system's call; the world lives until packetdrill ends.
        unsafe {
            if !own.is_null() && shared(own).with(|world| world.descriptors.contains_key(&fd)) {
                return ours(own, fd, level, name, out, len);
            }
            libc::syscall(libc::SYS_getsockopt, fd, level, name, out, len) as c_int
        }
    }
}

/// Fills `interface`. `flags` is the text of `--so_flags`: see [`Shared::new`].
///
/// # Safety
/// `flags` is null or a C string, `interface` points to memory for an [`Interface`].
#[no_mangle]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, interface: *mut Interface) {
    // SAFETY: the caller vouches for the string.
    let flags = if flags.is_null() { "".into() } else { unsafe { CStr::from_ptr(flags) }.to_string_lossy() };
    let shared = Shared::new(&flags).unwrap_or_else(|what| {
        unsupported(&what);
        // There is no other way to refuse.
        std::process::exit(2);
    });
    let own: Own = Box::into_raw(Box::new(shared)).cast();
    LATEST.store(own, Ordering::Release);
    let filled = Interface {
        userdata: own,
        free: Some(free),
        socket: Some(socket),
        bind: Some(bind),
        listen: Some(listen),
        accept: Some(accept),
        connect: Some(connect),
        read: Some(read),
        readv: Some(readv),
        recv: Some(recv),
        recvfrom: Some(recvfrom),
        recvmsg: Some(recvmsg),
        write: Some(write),
        writev: Some(writev),
        send: Some(send),
        sendto: Some(sendto),
        sendmsg: Some(sendmsg),
        fcntl: Some(fcntl),
        ioctl: Some(ioctl),
        close: Some(close),
        shutdown: Some(shutdown),
        getsockopt: Some(getsockopt),
        setsockopt: Some(setsockopt),
        poll: Some(poll),
        netdev_send: Some(netdev_send),
        netdev_receive: Some(netdev_receive),
        usleep: Some(usleep),
        gettimeofday: Some(gettimeofday),
        epoll_create: Some(epoll_create),
        epoll_ctl: Some(epoll_ctl),
        epoll_wait: Some(epoll_wait),
        pipe: Some(absent),
        splice: Some(absent),
    };
    // SAFETY: the caller vouches for the memory.
    unsafe { interface.write(filled) };
}

unsafe extern "C" fn absent() {
    unsupported("pipe and splice");
    std::process::exit(2);
}

/// The world behind the pointer that packetdrill keeps for us.
///
/// # Safety
/// `own` comes from [`packetdrill_interface_init`] and was not freed.
unsafe fn shared<'a>(own: Own) -> &'a Shared {
    // SAFETY: as above; it is only ever used by shared reference.
    unsafe { &*own.cast::<Shared>() }
}

unsafe extern "C" fn free(own: Own) {
    let _ = LATEST.compare_exchange(own, std::ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed);
    // SAFETY: packetdrill frees what it got from us, once.
    drop(unsafe { Box::from_raw(own.cast::<Shared>()) });
}

/// The result of a call, with `errno` set if it failed.
fn returned<T>(result: Result<T, Errno>, value: impl FnOnce(T) -> isize) -> isize {
    match result {
        Ok(result) => value(result),
        Err(Errno(number)) => {
            // SAFETY: the location belongs to this thread.
            unsafe { *libc::__errno_location() = number };
            -1
        }
    }
}

fn done(result: Result<(), Errno>) -> c_int {
    returned(result, |()| 0) as c_int
}
