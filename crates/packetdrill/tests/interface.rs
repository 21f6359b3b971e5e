//! The shared object driven as packetdrill drives it: through the C interface, from a table of function pointers.

use nix::libc::{self, c_int, c_void};
use std::ffi::CString;
use std::mem::{size_of, zeroed};
use std::net::Ipv4Addr;
use std::ptr::null_mut;
use std::thread;
use whyloss_packetdrill::ffi::{packetdrill_interface_init, Interface};
use whyloss_transport::segment::{Flags, Options, Payload, Segment};
use whyloss_transport::seq::Seq;
use whyloss_transport::wire::ip::{Addresses, Header};
use whyloss_transport::wire::{emit, parse};

const OURS: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const THEIRS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PORT: u16 = 8080;

/// The interface with what a script's remote host knows.
struct Script {
    interface: Interface,
}

// SAFETY: packetdrill calls from two threads as well; what is behind the pointer is shared by design.
unsafe impl Sync for Script {}

impl Script {
    fn new(flags: &str) -> Self {
        let flags = CString::new(flags).unwrap();
        // SAFETY: an all-zero interface is one without functions; it is filled at once.
        unsafe {
            let mut interface: Interface = zeroed();
            packetdrill_interface_init(flags.as_ptr(), &raw mut interface);
            Self { interface }
        }
    }

    fn micros(&self) -> i64 {
        // SAFETY: the pointers are those of the interface.
        unsafe {
            let mut time: libc::timeval = zeroed();
            assert_eq!(self.interface.gettimeofday.unwrap()(self.interface.userdata, &raw mut time, null_mut()), 0);
            time.tv_sec * 1_000_000 + time.tv_usec
        }
    }

    fn sleep(&self, micros: u32) {
        // SAFETY: as above.
        unsafe { self.interface.usleep.unwrap()(self.interface.userdata, micros) };
    }

    /// A segment of the remote host arrives.
    fn arrive(&self, segment: &Segment) {
        let header = Header { addresses: Addresses::V4 { src: THEIRS, dst: OURS }, hop_limit: 64 };
        let segment = Segment { src_port: 40_000, dst_port: PORT, window: 20_000, ..segment.clone() };
        let mut octets = Vec::new();
        emit(&header, &segment, &mut octets).unwrap();
        // SAFETY: as above.
        let taken = unsafe { self.interface.netdev_send.unwrap()(self.interface.userdata, octets.as_ptr().cast(), octets.len()) };
        assert_eq!(taken, 0);
    }

    /// The next packet that leaves and when; `None` if there will be none.
    fn departs(&self) -> Option<(i64, Segment)> {
        let mut buffer = vec![0u8; 65_536];
        let (mut length, mut at) = (buffer.len(), 0);
        // SAFETY: as above.
        let got = unsafe {
            self.interface.netdev_receive.unwrap()(
                self.interface.userdata,
                buffer.as_mut_ptr().cast(),
                &raw mut length,
                &raw mut at,
            )
        };
        assert_eq!(got, 0);
        buffer.truncate(length);
        (length > 0).then(|| (at, parse(&buffer.into()).unwrap().segment))
    }

    fn listener(&self) -> c_int {
        let own = self.interface.userdata;
        // SAFETY: as above; the address lives through the call.
        unsafe {
            let fd = self.interface.socket.unwrap()(own, libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP);
            assert!(fd > 2);
            let mut at: libc::sockaddr_in = zeroed();
            at.sin_family = libc::AF_INET as libc::sa_family_t;
            at.sin_port = PORT.to_be();
            at.sin_addr.s_addr = u32::from(OURS).to_be();
            assert_eq!(self.interface.bind.unwrap()(own, fd, (&raw const at).cast(), size_of::<libc::sockaddr_in>() as u32), 0);
            assert_eq!(self.interface.listen.unwrap()(own, fd, 1), 0);
            fd
        }
    }

    fn accept(&self, fd: c_int) -> c_int {
        // SAFETY: as above; nobody wants to know the peer.
        unsafe { self.interface.accept.unwrap()(self.interface.userdata, fd, null_mut(), null_mut()) }
    }

    fn write(&self, fd: c_int, octets: &[u8]) -> isize {
        // SAFETY: as above.
        unsafe { self.interface.write.unwrap()(self.interface.userdata, fd, octets.as_ptr().cast(), octets.len()) }
    }

    fn read(&self, fd: c_int, room: usize) -> Result<Vec<u8>, c_int> {
        let mut buffer = vec![0u8; room];
        // SAFETY: as above.
        let length = unsafe {
            self.interface.recv.unwrap()(
                self.interface.userdata,
                fd,
                buffer.as_mut_ptr().cast::<c_void>(),
                room,
                libc::MSG_DONTWAIT,
            )
        };
        let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        usize::try_from(length).map_or(Err(error), |length| Ok(buffer[..length].to_vec()))
    }

    /// The handshake of a remote host without options; the socket that is accepted, and where our sequence numbers begin.
    fn connected(&self) -> (c_int, Seq) {
        let fd = self.listener();
        self.arrive(&Segment {
            flags: Flags::SYN,
            options: Options { mss: Some(1000), ..Options::default() },
            ..Segment::default()
        });
        let (_, answer) = self.departs().expect("a SYN-ACK");
        assert_eq!((answer.flags, answer.ack), (Flags::SYN | Flags::ACK, Seq(1)));
        let first = answer.seq + 1;
        self.arrive(&Segment { seq: Seq(1), ack: first, flags: Flags::ACK, ..Segment::default() });
        (self.accept(fd), first)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // SAFETY: once, at the end.
        unsafe { self.interface.free.unwrap()(self.interface.userdata) };
    }
}

#[test]
fn data_goes_both_ways_and_a_burst_is_one_packet() {
    let script = Script::new("");
    let (fd, first) = script.connected();
    assert!(fd > 2);
    assert_eq!(script.write(fd, &[7; 4000]), 4000);
    let (_, burst) = script.departs().unwrap();
    assert_eq!((burst.seq, burst.payload.len(), burst.flags), (first, 4000, Flags::ACK | Flags::PSH));
    assert_eq!(script.read(fd, 100), Err(libc::EAGAIN));
    let payload = Payload::Bytes(b"hello".as_slice().into());
    script.arrive(&Segment { seq: Seq(1), ack: first + 4000, flags: Flags::ACK, payload, ..Segment::default() });
    assert_eq!(script.read(fd, 100), Ok(b"hello".to_vec()));
    // The first segments are acknowledged at once, as Linux does; `script.micros` itself takes a microsecond.
    let before = script.micros();
    let (at, ack) = script.departs().unwrap();
    assert_eq!((ack.ack, ack.payload.len()), (Seq(6), 0));
    assert!((-1..=0).contains(&(at - before)), "{}", at - before);
}

#[test]
fn time_is_virtual_and_timers_run_in_it() {
    let script = Script::new("");
    let began = std::time::Instant::now();
    let (fd, first) = script.connected();
    script.write(fd, &[1; 1000]);
    let (sent, segment) = script.departs().unwrap();
    assert_eq!(segment.seq, first);
    // RFC 6298, 2.1, and 5.5: one second, then two.
    let (again, segment) = script.departs().unwrap();
    assert_eq!(segment.seq, first);
    let (third, _) = script.departs().unwrap();
    assert!(third - again >= 2 * (again - sent) - 2000, "{sent} {again} {third}");
    script.sleep(3_000_000_000);
    assert!(script.micros() - third > 2_000_000_000);
    assert!(began.elapsed() < std::time::Duration::from_secs(60), "none of it took real time");
}

#[test]
fn a_call_that_waits_returns_when_its_packet_has_come() {
    let script = Script::new("");
    let fd = script.listener();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| script.accept(fd));
        script.sleep(100_000);
        script.arrive(&Segment { flags: Flags::SYN, ..Segment::default() });
        let (_, answer) = script.departs().unwrap();
        assert!(!waiting.is_finished());
        script.arrive(&Segment { seq: Seq(1), ack: answer.seq + 1, flags: Flags::ACK, ..Segment::default() });
        let accepted = waiting.join().unwrap();
        assert!(accepted > 2 && accepted != fd, "{accepted}");
    });
}

#[test]
fn tcp_info_tells_the_window_and_the_settings_are_followed() {
    let script = Script::new("../common/defaults.sh\nsysctl -q net.ipv4.tcp_timestamps=0\ninitial_window=4");
    let (fd, first) = script.connected();
    let info = |offset: usize| {
        let mut octets = [0u8; 280];
        let mut length = octets.len() as libc::socklen_t;
        // SAFETY: the pointers are those of the interface and of these locals.
        let result = unsafe {
            script.interface.getsockopt.unwrap()(
                script.interface.userdata,
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                octets.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        assert_eq!((result, length), (0, 280));
        u32::from_ne_bytes(octets[offset..offset + 4].try_into().unwrap())
    };
    const SND_MSS: usize = 16;
    const UNACKED: usize = 24;
    const SND_CWND: usize = 80;
    assert_eq!((info(SND_MSS), info(SND_CWND), info(UNACKED)), (1000, 4, 0));
    script.write(fd, &[1; 3000]);
    assert_eq!(info(UNACKED), 3);
    script.departs().unwrap();
    script.arrive(&Segment { seq: Seq(1), ack: first + 3000, flags: Flags::ACK, ..Segment::default() });
    // In slow start the window grows by all that is acknowledged, as in Linux.
    assert_eq!((info(SND_CWND), info(UNACKED)), (7, 0));
}

#[test]
fn what_does_not_exist_is_refused_as_by_the_system() {
    let script = Script::new("");
    assert_eq!(script.read(77, 10), Err(libc::EBADF));
    let fd = script.listener();
    assert_eq!(script.read(fd, 10), Err(libc::ENOTCONN));
    // SAFETY: the pointers are those of the interface; null is the point.
    let result = unsafe { script.interface.write.unwrap()(script.interface.userdata, fd, std::ptr::null(), 10) };
    assert_eq!((result, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EFAULT)));
}
