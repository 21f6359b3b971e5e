//! Connections inside a network namespace, in a control group of their own.
#![allow(dead_code)]

use nix::sys::socket::sockopt::TcpCongestion;
use nix::sys::socket::{getsockopt, setsockopt, socket, AddressFamily, SockFlag, SockType, SockaddrStorage};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _};
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
