//! The network device and the clock, which is virtual.

use super::octets::{octets, put};
use super::{shared, Own};
use nix::libc::{self, c_int, c_longlong, c_uint, c_void, size_t, timeval};
use whyloss_transport::{Duration, Instant};

pub(super) unsafe extern "C" fn netdev_send(own: Own, packet: *const c_void, len: size_t) -> c_int {
    // SAFETY: packetdrill vouches for pointer and packet.
    unsafe { octets(packet, len).map(|packet| shared(own).arrive(packet)) }.map_or(-1, |()| 0)
}

pub(super) unsafe extern "C" fn netdev_receive(own: Own, buffer: *mut c_void, len: *mut size_t, at: *mut c_longlong) -> c_int {
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

pub(super) unsafe extern "C" fn usleep(own: Own, micros: c_uint) -> c_int {
    // SAFETY: the pointer is ours.
    unsafe { shared(own) }.pass(Duration::from_micros(u64::from(micros)));
    0
}

pub(super) unsafe extern "C" fn gettimeofday(own: Own, out: *mut timeval, _zone: *mut c_void) -> c_int {
    // SAFETY: the pointer is ours, and packetdrill vouches for the place of the result.
    unsafe {
        let micros = shared(own).look().as_nanos() / 1000;
        out.write(timeval { tv_sec: (micros / 1_000_000) as libc::time_t, tv_usec: (micros % 1_000_000) as libc::suseconds_t });
    }
    0
}
