//! The C face: packetdrill's interface for shared objects, in its own order of members.
//!
//! Every function gets the pointer that [`packetdrill_interface_init`] stored, and pointers that packetdrill vouches for, as the system
//! calls of the same names do.
#![allow(unsafe_code)]

use crate::descriptor::Role;
use crate::errno::{self, Errno};
use crate::info::{self, TcpInfo};
use crate::world::{Attempt, Shared, World};
use nix::libc::{
    self, c_char, c_int, c_longlong, c_uint, c_ulong, c_void, iovec, msghdr, nfds_t, pollfd, size_t, sockaddr, socklen_t,
    ssize_t, timeval,
};
use std::ffi::CStr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};
use whyloss_transport::tcp::Command;
use whyloss_transport::{Duration, Instant};

/// linux/tcp.h.
const TCP_CC_INFO: c_int = 26;
/// asm-generic/socket.h.
const SO_MEMINFO: c_int = 55;

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
    pub epoll_create: Absent,
    pub epoll_ctl: Absent,
    pub epoll_wait: Absent,
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
        epoll_create: Some(absent),
        epoll_ctl: Some(absent),
        epoll_wait: Some(absent),
        pipe: Some(absent),
        splice: Some(absent),
    };
    // SAFETY: the caller vouches for the memory.
    unsafe { interface.write(filled) };
}

/// Says what a script asks for that there is not, in words that the runner of scripts looks for.
fn unsupported(what: &str) {
    eprintln!("whyloss: not supported: {what}");
}

unsafe extern "C" fn absent() {
    unsupported("epoll, pipe and splice");
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

/// # Safety
/// `address` points to `len` octets of a socket address.
unsafe fn address(address: *const sockaddr, len: socklen_t) -> Option<SocketAddr> {
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

unsafe extern "C" fn socket(own: Own, domain: c_int, kind: c_int, _protocol: c_int) -> c_int {
    if kind & 0xf != libc::SOCK_STREAM || !matches!(domain, libc::AF_INET | libc::AF_INET6) {
        unsupported("sockets other than TCP's");
        return done(Err(Errno(libc::EPROTONOSUPPORT)));
    }
    // SAFETY: the pointer is ours.
    unsafe { shared(own) }.with(|world| world.socket(domain == libc::AF_INET6, kind & libc::SOCK_NONBLOCK != 0))
}

unsafe extern "C" fn bind(own: Own, fd: c_int, at: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the address.
    unsafe {
        let Some(at) = address(at, len) else { return done(Err(Errno(libc::EINVAL))) };
        done(shared(own).with(|world| world.bind(fd, at)))
    }
}

unsafe extern "C" fn listen(own: Own, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: the pointer is ours.
    done(unsafe { shared(own) }.with(|world| world.listen(fd, backlog.max(0) as usize)))
}

unsafe extern "C" fn accept(own: Own, fd: c_int, at: *mut sockaddr, len: *mut socklen_t) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the room for an address.
    unsafe {
        let result = shared(own).wait(|world| world.accept(fd));
        returned(result, |(fd, peer)| {
            tell_address(peer, at, len);
            fd as isize
        }) as c_int
    }
}

unsafe extern "C" fn connect(own: Own, fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the address.
    unsafe {
        let Some(to) = address(to, len) else { return done(Err(Errno(libc::EINVAL))) };
        done(shared(own).wait(|world| world.connect(fd, to)))
    }
}

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
unsafe fn octets<'a>(buffer: *const c_void, len: size_t) -> Option<&'a [u8]> {
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
unsafe fn put(octets: &[u8], buffer: *mut c_void) {
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

unsafe extern "C" fn read(own: Own, fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { receive_into(own, fd, buffer, len, 0) }
}

unsafe extern "C" fn readv(own: Own, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffers.
    unsafe { scatter(own, fd, buffers(vector, count.max(0) as usize), 0) }
}

unsafe extern "C" fn recv(own: Own, fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { receive_into(own, fd, buffer, len, flags) }
}

unsafe extern "C" fn recvfrom(
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

unsafe extern "C" fn recvmsg(own: Own, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer, message and buffers.
    unsafe {
        (*message).msg_controllen = 0;
        (*message).msg_flags = 0;
        scatter(own, fd, buffers((*message).msg_iov, (*message).msg_iovlen), flags)
    }
}

unsafe extern "C" fn write(own: Own, fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { send_octets(own, fd, octets(buffer, len), 0) }
}

unsafe extern "C" fn writev(own: Own, fd: c_int, vector: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffers.
    unsafe { gather(own, fd, buffers(vector, count.max(0) as usize), 0) }
}

unsafe extern "C" fn send(own: Own, fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer and buffer.
    unsafe { send_octets(own, fd, octets(buffer, len), flags) }
}

unsafe extern "C" fn sendto(
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

unsafe extern "C" fn sendmsg(own: Own, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: packetdrill vouches for pointer, message and buffers.
    unsafe {
        if (*message).msg_controllen != 0 {
            unsupported("control messages of sendmsg");
            return returned(Err(Errno(libc::EOPNOTSUPP)), |()| 0);
        }
        gather(own, fd, buffers((*message).msg_iov, (*message).msg_iovlen), flags)
    }
}

unsafe extern "C" fn fcntl(own: Own, fd: c_int, command: c_int, argument: c_ulong) -> c_int {
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

unsafe extern "C" fn ioctl(own: Own, fd: c_int, request: c_ulong, out: *mut c_int) -> c_int {
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

unsafe extern "C" fn close(own: Own, fd: c_int) -> c_int {
    // SAFETY: the pointer is ours.
    done(unsafe { shared(own) }.with(|world| world.close(fd)))
}

unsafe extern "C" fn shutdown(own: Own, fd: c_int, how: c_int) -> c_int {
    // SAFETY: the pointer is ours.
    done(unsafe { shared(own) }.with(|world| world.shutdown(fd, how)))
}

unsafe extern "C" fn getsockopt(own: Own, fd: c_int, level: c_int, name: c_int, out: *mut c_void, len: *mut socklen_t) -> c_int {
    // SAFETY: the pointer is ours.
    let value = unsafe { shared(own) }.with(|world| option(world, fd, level, name));
    done(value.map(|value| {
        // SAFETY: packetdrill vouches for `*len` octets at `out`.
        unsafe {
            let fits = value.len().min(*len as usize);
            put(&value[..fits], out);
            *len = fits as socklen_t;
        }
    }))
}

/// The value of a socket option, as it stands in memory.
fn option(world: &mut World, fd: c_int, level: c_int, name: c_int) -> Result<Vec<u8>, Errno> {
    let int = |value: i64| Ok((value as c_int).to_ne_bytes().to_vec());
    let id = world.connection(fd).ok();
    let now_config = id.and_then(|id| world.stack.endpoint(id)).map(|endpoint| endpoint.config().clone());
    let config = match now_config {
        Some(config) => config,
        None => world.descriptor(fd)?.settings.config.clone(),
    };
    let endpoint = id.and_then(|id| world.stack.endpoint(id));
    match (level, name) {
        (libc::IPPROTO_TCP, libc::TCP_INFO) => {
            let info = endpoint.map_or(TcpInfo::default(), info::of);
            // SAFETY: a C structure of integers without padding (its layout is asserted beside it) is so many octets.
            Ok(unsafe { slice::from_raw_parts((&raw const info).cast::<u8>(), size_of::<TcpInfo>()) }.to_vec())
        }
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
            int(endpoint.map_or(i64::from(config.mss), |endpoint| i64::from(endpoint.path().mss)))
        }
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => int(i64::from(!config.nagle)),
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => {
            let settings = &world.descriptor(fd)?.settings;
            let mut name = settings.selection.congestion.clone().unwrap_or_else(|| "newreno".to_owned()).into_bytes();
            name.resize(16, 0);
            Ok(name)
        }
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            let seen = id.and_then(|id| world.seen.get_mut(&id));
            let error = seen.and_then(|seen| {
                let error = seen.over.and_then(errno::of)?;
                (!std::mem::replace(&mut seen.reported, true)).then_some(error.0)
            });
            int(i64::from(error.unwrap_or(0)))
        }
        // packetdrill asks for these with each assertion. There is nothing to tell: no control has state that Linux knows, and memory is
        // not accounted for.
        (libc::IPPROTO_TCP, TCP_CC_INFO) => Ok(Vec::new()),
        (libc::SOL_SOCKET, SO_MEMINFO) => Ok(vec![0; 9 * size_of::<u32>()]),
        _ => {
            unsupported(&format!("reading option {name} of level {level}"));
            Err(Errno(libc::ENOPROTOOPT))
        }
    }
}

unsafe extern "C" fn setsockopt(own: Own, fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the value.
    unsafe {
        let Some(value) = octets(value, len as usize) else { return done(Err(Errno(libc::EFAULT))) };
        done(shared(own).with(|world| set_option(world, fd, level, name, value)))
    }
}

fn set_option(world: &mut World, fd: c_int, level: c_int, name: c_int, value: &[u8]) -> Result<(), Errno> {
    let ints: Vec<i64> =
        value.chunks_exact(4).map(|word| i64::from(c_int::from_ne_bytes([word[0], word[1], word[2], word[3]]))).collect();
    let number = ints.first().copied().unwrap_or(0);
    let (id, now) = (world.connection(fd).ok(), world.now);
    let descriptor = world.descriptor(fd)?;
    let config = &mut descriptor.settings.config;
    let seconds = Duration::from_secs(number.max(0) as u64);
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_REUSEADDR | libc::SO_REUSEPORT) => {}
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            descriptor.resets_on_close = number != 0 && ints.get(1) == Some(&0);
        }
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {
            config.nagle = number == 0;
            if let Some(id) = id {
                world.stack.command(now, id, Command::Nagle(number == 0));
            }
        }
        (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_SNDBUFFORCE) => {
            config.send_buffer = number.max(1) as u64;
            if let Some(id) = id {
                let octets = number.max(1) as u64;
                world.stack.command(now, id, Command::SendBuffer(octets));
            }
        }
        // From here on: what an open connection cannot change any more.
        _ if matches!(descriptor.role, Role::Connection(_)) => {
            unsupported(&format!("option {name} of level {level} on an open connection"));
            return Err(Errno(libc::ENOPROTOOPT));
        }
        (libc::SOL_SOCKET, libc::SO_RCVBUF | libc::SO_RCVBUFFORCE) => config.receive_buffer = number.max(1) as u64,
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => {
            descriptor.keep_alive = number != 0;
            // RFC 9293, 3.8.4: not less than two hours unless the application says so.
            config.keep_alive = descriptor.keep_alive.then(|| config.keep_alive.unwrap_or(Duration::from_secs(7200)));
        }
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => config.keep_alive = descriptor.keep_alive.then_some(seconds),
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => config.mss = number.clamp(1, 65_495) as u16,
        (libc::IPPROTO_TCP, libc::TCP_CONGESTION) => {
            let text = value.split(|octet| *octet == 0).next().unwrap_or_default();
            let algorithm = String::from_utf8_lossy(text).replace("reno", "newreno");
            if descriptor.settings.set("congestion", &algorithm).is_err() {
                unsupported(&format!("congestion control {algorithm}"));
                return Err(Errno(libc::ENOENT));
            }
        }
        _ => {
            unsupported(&format!("option {name} of level {level}"));
            return Err(Errno(libc::ENOPROTOOPT));
        }
    }
    world.renew_listener(fd)
}

unsafe extern "C" fn poll(own: Own, entries: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
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

unsafe extern "C" fn netdev_send(own: Own, packet: *const c_void, len: size_t) -> c_int {
    // SAFETY: packetdrill vouches for pointer and packet.
    unsafe { octets(packet, len).map(|packet| shared(own).arrive(packet)) }.map_or(-1, |()| 0)
}

unsafe extern "C" fn netdev_receive(own: Own, buffer: *mut c_void, len: *mut size_t, at: *mut c_longlong) -> c_int {
    // SAFETY: packetdrill vouches for the pointer, for `*len` octets at `buffer` and for the places of the results.
    unsafe {
        // Nothing at all is what packetdrill takes for a broken packet: the script fails instead of hanging.
        let (when, packet) = shared(own).departure().unwrap_or((Instant::ZERO, Vec::new()));
        let fits = packet.len().min(*len);
        put(&packet[..fits], buffer);
        *len = fits;
        at.write((when.as_nanos() / 1000) as c_longlong);
    }
    0
}

unsafe extern "C" fn usleep(own: Own, micros: c_uint) -> c_int {
    // SAFETY: the pointer is ours.
    unsafe { shared(own) }.pass(Duration::from_micros(u64::from(micros)));
    0
}

unsafe extern "C" fn gettimeofday(own: Own, out: *mut timeval, _zone: *mut c_void) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the place of the result.
    unsafe {
        let micros = shared(own).look().as_nanos() / 1000;
        out.write(timeval { tv_sec: (micros / 1_000_000) as libc::time_t, tv_usec: (micros % 1_000_000) as libc::suseconds_t });
    }
    0
}
