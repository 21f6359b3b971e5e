//! Socket options.

use super::octets::{octets, put};
use super::{done, shared, unsupported, Own};
use crate::descriptor::Role;
use crate::errno::{self, Errno};
use crate::info::{self, TcpInfo};
use crate::world::World;
use nix::libc::{self, c_int, c_void, socklen_t};
use std::slice;
use whyloss_transport::tcp::Command;
use whyloss_transport::{Config, Duration};

/// linux/tcp.h.
const TCP_CC_INFO: c_int = 26;
const TCP_INQ: c_int = 36;
const TCP_FASTOPEN: c_int = 23;
const TCP_FASTOPEN_CONNECT: c_int = 30;
const TCP_FASTOPEN_KEY: c_int = 33;
const TCP_NOTSENT_LOWAT: c_int = 25;
const TCP_USER_TIMEOUT: c_int = 18;
const TCP_SYNCNT: c_int = 7;
/// asm-generic/socket.h.
const SO_MEMINFO: c_int = 55;
const SO_ZEROCOPY: c_int = 60;
const SO_TIMESTAMPING: c_int = 37;

pub(super) unsafe extern "C" fn getsockopt(
    own: Own,
    fd: c_int,
    level: c_int,
    name: c_int,
    out: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: the pointer is ours.
    let value = unsafe { shared(own) }.with(|world| {
        world.advance_limits();
        option(world, fd, level, name)
    });
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
            let seen = id.and_then(|id| world.seen.get(&id));
            let info =
                endpoint.zip(seen).map_or(TcpInfo::default(), |(endpoint, seen)| info::of(endpoint, &seen.limits, world.now));
            // SAFETY: a C structure of integers without padding (its layout is asserted beside it) is so many octets.
            Ok(unsafe { slice::from_raw_parts((&raw const info).cast::<u8>(), size_of::<TcpInfo>()) }.to_vec())
        }
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => {
            int(endpoint.map_or(i64::from(config.mss), |endpoint| i64::from(endpoint.path().mss)))
        }
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => int(i64::from(!config.nagle)),
        (libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT) => int(i64::from(world.descriptor(fd)?.options.notsent_low)),
        // Linux doubles what is asked for, to have room for its own records.
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => {
            let set = world.descriptor(fd)?.options.send_buffer;
            int(set.map_or(world.send_buffer, |set| 2 * set) as i64)
        }
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

pub(super) unsafe extern "C" fn setsockopt(
    own: Own,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
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
    let (id, now, opens_fast) = (world.connection(fd).ok(), world.now, world.opens_fast());
    let descriptor = world.descriptor(fd)?;
    let config = &mut descriptor.settings.config;
    let seconds = Duration::from_secs(number.max(0) as u64);
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            descriptor.resets_on_close = number != 0 && ints.get(1) == Some(&0);
        }
        (libc::IPPROTO_TCP, libc::TCP_NODELAY) => {
            config.nagle = number == 0;
            if let Some(id) = id {
                world.stack.command(now, id, Command::Nagle(number == 0));
            }
        }
        (libc::IPPROTO_TCP, libc::TCP_CORK) if id.is_some() => {
            world.stack.command(now, id.expect("just looked"), Command::Cork(number != 0));
        }
        (libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT) => descriptor.options.notsent_low = number as u32,
        (libc::IPPROTO_TCP, TCP_INQ) => descriptor.options.inquire = number != 0,
        (libc::SOL_SOCKET, SO_ZEROCOPY) => descriptor.options.zero_copy = number != 0,
        (libc::SOL_SOCKET, SO_TIMESTAMPING) => descriptor.options.timestamping = number as u32,
        (libc::IPPROTO_TCP, TCP_FASTOPEN_CONNECT) => {
            if !opens_fast {
                return Err(Errno(libc::EOPNOTSUPP));
            }
            descriptor.options.fast_open_connect = number != 0;
        }
        (libc::IPPROTO_TCP, TCP_FASTOPEN) => descriptor.options.fast_open_backlog = (number > 0).then_some(number as usize),
        (libc::IPPROTO_TCP, TCP_FASTOPEN_KEY) => {
            descriptor.options.fast_open_key = Some(value.try_into().map_err(|_| Errno(libc::EINVAL))?);
        }
        (libc::IPPROTO_TCP, TCP_USER_TIMEOUT) => {
            let limit = (number > 0).then(|| Duration::from_millis(number as u64));
            config.user_timeout = limit;
            if let Some(id) = id {
                world.stack.command(now, id, Command::UserTimeout(limit));
            }
        }
        (libc::IPPROTO_TCP, TCP_SYNCNT) => {
            let most = Some(number.max(1) as u32);
            config.max_syn_retransmissions = most;
            if let Some(id) = id {
                world.stack.command(now, id, Command::SynRetransmissions(most));
            }
        }
        // What other sockets, routers and routes would heed; there are none.
        (libc::SOL_SOCKET, libc::SO_REUSEADDR | libc::SO_REUSEPORT | libc::SO_MARK)
        | (libc::IPPROTO_IP, libc::IP_TOS | libc::IP_MTU_DISCOVER | libc::IP_FREEBIND) => {}
        (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_SNDBUFFORCE) => {
            descriptor.options.send_buffer = Some(number.max(1) as u64);
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
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => config.mss = number.clamp(Config::MIN_MSS.into(), 65_495) as u16,
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
