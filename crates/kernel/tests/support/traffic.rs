//! Connections inside a network namespace, in a control group of their own.
#![allow(dead_code)]

use nix::libc;
use nix::sys::socket::sockopt::TcpCongestion;
use nix::sys::socket::{getsockopt, sendto, setsockopt, socket, AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use whyloss_kernel::cgroup::Cgroups;
use whyloss_net::namespace::Namespace;

/// A control group that this process is in; sockets made meanwhile belong to it for good.
pub struct Group {
    pub folder: PathBuf,
    before: PathBuf,
}

impl Group {
    pub fn enter(name: &str) -> Self {
        let cgroups = Cgroups::find().expect("control groups");
        let own = fs::read_to_string("/proc/self/cgroup").expect("a process is in a group");
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).expect("and in one of version 2");
        let before = cgroups.root().join(own);
        let folder = cgroups.root().join(format!("whyloss-test-{name}-{}", std::process::id()));
        fs::create_dir(&folder).expect("a group");
        join(&folder);
        Self { folder, before }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        join(&self.before);
        let _ = fs::remove_dir(&self.folder);
    }
}

fn join(group: &Path) {
    fs::write(group.join("cgroup.procs"), std::process::id().to_string()).expect("a process may change its group");
}

/// The control that a socket has.
pub fn control_of(socket: &impl AsFd) -> String {
    let name = getsockopt(socket, TcpCongestion).expect("every TCP socket has a control");
    name.to_string_lossy().trim_end_matches('\0').to_owned()
}

/// Asks for a control as an application does.
pub fn set_control(socket: &impl AsFd, name: &str) -> nix::Result<()> {
    setsockopt(socket, TcpCongestion, &name.into())
}

/// Both ends of a new connection: who connected, who accepted.
pub fn connect(inside: &Namespace, listen: &str, to: &str) -> io::Result<(TcpStream, TcpStream)> {
    inside.run(|| {
        let listener = TcpListener::bind(listen)?;
        let to: SocketAddr = to.parse().expect("an address");
        let connected = TcpStream::connect(SocketAddr::new(to.ip(), listener.local_addr()?.port()))?;
        let (accepted, _) = listener.accept()?;
        Ok((connected, accepted))
    })
}

/// A new connection from `near` to `to`; it asks for `control` before the first SYN.
pub fn connect_from(near: &Namespace, to: SocketAddr, control: &str) -> TcpStream {
    near.run(|| {
        let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
        set_control(&socket, control).unwrap_or_else(|error| panic!("{control}: {error}"));
        nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(to)).expect("connects");
        TcpStream::from(socket)
    })
}

/// Both ends of a new connection from one namespace to `to` in another, under `control`.
pub fn connect_across((near, far): (&Namespace, &Namespace), to: SocketAddr, control: &str) -> (TcpStream, TcpStream) {
    let listener = far.run(|| TcpListener::bind(to)).expect("a port");
    let connected = connect_from(near, to, control);
    (connected, listener.accept().expect("accepts").0)
}

/// Takes the connection away from a socket, by an address of no family.
pub fn disconnect(socket: &TcpStream) {
    // SAFETY: a structure of integers, for which zeros are valid.
    let none: libc::sockaddr = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of_val(&none) as libc::socklen_t;
    // SAFETY: the kernel reads `size` octets of the address, which has as many; all zeros are AF_UNSPEC.
    let done = unsafe { libc::connect(socket.as_raw_fd(), &raw const none, size) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Sends a packet that a program has made: with its IPv4 header if `protocol` is `IPPROTO_RAW`.
fn send_raw(inside: &Namespace, protocol: i32, to: Ipv4Addr, octets: &[u8]) {
    inside.run(|| {
        // SAFETY: numbers in, a descriptor out.
        let raw = unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        assert!(raw >= 0, "{}", io::Error::last_os_error());
        // SAFETY: it is open, and nobody else has it.
        let raw = unsafe { OwnedFd::from_raw_fd(raw) };
        let to = SockaddrStorage::from(SocketAddr::new(to.into(), 0));
        let sent = sendto(raw.as_raw_fd(), octets, &to, MsgFlags::empty()).expect("sends");
        assert_eq!(sent, octets.len());
    });
}

/// The checksum of the Internet over `octets`.
fn checksum(octets: &[u8]) -> [u8; 2] {
    let sum: u32 = octets.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = (sum & 0xFFFF) + (sum >> 16);
    (!(sum + (sum >> 16)) as u16).to_be_bytes()
}

fn ipv4(address: SocketAddr) -> (Ipv4Addr, [u8; 2]) {
    match address {
        SocketAddr::V4(address) => (*address.ip(), address.port().to_be_bytes()),
        SocketAddr::V6(_) => panic!("no IPv4 address: {address}"),
    }
}

/// An IPv4 header without options, for `len` octets of TCP.
fn ipv4_header(from: Ipv4Addr, to: Ipv4Addr, len: u8) -> Vec<u8> {
    let mut header = [&[0x45, 0, 0, 20 + len, 0, 0, 0x40, 0, 64, 6, 0, 0][..], &from.octets(), &to.octets()].concat();
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    header
}

/// Tells the host of `socket` as a router does that the path carries packets of `mtu` octets only. `seq` has to be outstanding.
pub fn shorten_path(host: &Namespace, socket: &TcpStream, seq: u32, mtu: u16) {
    let [(from, source), (to, destination)] =
        [socket.local_addr(), socket.peer_addr()].map(|address| ipv4(address.expect("an address")));
    let mut message = [&[3, 4, 0, 0, 0, 0][..], &mtu.to_be_bytes(), &ipv4_header(from, to, 100)].concat();
    message.extend([&source[..], &destination, &seq.to_be_bytes()].concat());
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    send_raw(host, libc::IPPROTO_ICMP, from, &message);
}

/// Sends a segment within `inside` whose checksum does not hold.
pub fn send_damaged(inside: &Namespace, from: SocketAddr, to: SocketAddr) {
    let [(from, source), (to, destination)] = [from, to].map(ipv4);
    let tcp = [&source[..], &destination, &[0; 8], &[0x50, 0x10, 0, 1, 0xDE, 0xAD, 0, 0]].concat();
    send_raw(inside, libc::IPPROTO_RAW, to, &[ipv4_header(from, to, 20), tcp].concat());
}

/// Sends `count` octets through a connection and checks that they come, in order.
pub fn carry((mut from, mut to): (&TcpStream, &TcpStream), count: usize) {
    let octet = |position: usize| (position % 251) as u8;
    thread::scope(|scope| {
        scope.spawn(move || {
            let octets: Vec<u8> = (0..count).map(octet).collect();
            from.write_all(&octets).expect("sends");
        });
        let mut octets = vec![0; count];
        to.read_exact(&mut octets).expect("receives");
        assert!(octets.iter().enumerate().all(|(position, &found)| found == octet(position)), "not what was sent");
    });
}

/// A thread that carries data through `connection` until told to stop. Gives how many rounds it was.
pub struct Traffic {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Traffic {
    pub fn over(connection: (TcpStream, TcpStream)) -> Self {
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let told = stop.clone();
        let thread = thread::spawn(move || {
            let mut rounds = 0;
            while !told.load(std::sync::atomic::Ordering::Relaxed) {
                carry((&connection.0, &connection.1), 1 << 16);
                rounds += 1;
                // The machine has other things to do too.
                thread::sleep(std::time::Duration::from_micros(500));
            }
            rounds
        });
        Self { stop, thread }
    }

    pub fn stop(self) -> usize {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.thread.join().expect("traffic flows to the end")
    }
}
