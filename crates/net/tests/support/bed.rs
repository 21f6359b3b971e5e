//! The test bed: a kernel host, a bad path, a router, and behind it the engine.
//!
//! ```text
//!  namespace "peer"                      namespace "near"
//!  kernel TCP ── path ── relay ── path ── kernel forwards ── engine (TUN) ── whyloss-tun
//!  10.7.0.1, fd00:7::1                   10.7.1.1, fd00:7:1::1              10.7.1.2, fd00:7:1::2
//! ```

use super::namespace::{missing_capability, Namespace};
use super::relay::{Counts, Impairment, Relay};
use serde_json::Value;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whyloss_net::Tun;

/// Longer than anything takes that works.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// An IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    /// The kernel host across the bad path.
    pub fn peer(self) -> IpAddr {
        self.pick([10, 7, 0, 1], 0x0)
    }

    /// The kernel host next to the engine.
    pub fn near(self) -> IpAddr {
        self.pick([10, 7, 1, 1], 0x1)
    }

    /// The engine.
    pub fn engine(self) -> IpAddr {
        match self {
            Self::V4 => [10, 7, 1, 2].into(),
            Self::V6 => [0xfd00, 7, 1, 0, 0, 0, 0, 2].into(),
        }
    }

    fn pick(self, v4: [u8; 4], subnet: u16) -> IpAddr {
        match self {
            Self::V4 => v4.into(),
            Self::V6 => [0xfd00, 7, subnet, 0, 0, 0, 0, 1].into(),
        }
    }
}

/// Two namespaces and the path between them.
#[derive(Debug)]
pub struct Bed {
    pub peer: Namespace,
    pub near: Namespace,
    relay: Relay,
}

impl Bed {
    /// Sets everything up; says why and gives `None` where this machine cannot. `impairments[0]` is for packets from the peer.
    pub fn new(impairments: [Impairment; 2], seed: u64) -> Option<Self> {
        if let Some(reason) = missing_capability() {
            println!("skipped: {reason}");
            return None;
        }
        let (peer, near) = (Namespace::new().expect("a namespace"), Namespace::new().expect("a namespace"));
        let ends = [&peer, &near].map(|namespace| namespace.run(|| Tun::open("path")).expect("a TUN device"));
        for namespace in [&peer, &near] {
            namespace.ip("link set path up");
        }
        peer.ip("addr add 10.7.0.1/24 dev path");
        peer.ip("addr add fd00:7::1/64 dev path nodad");
        peer.ip("route add 10.7.1.0/24 dev path");
        peer.ip("route add fd00:7:1::/64 dev path");
        near.ip("route add 10.7.0.0/24 dev path");
        near.ip("route add fd00:7::/64 dev path");
        near.ip("tuntap add engine mode tun");
        near.ip("link set engine up");
        near.ip("addr add 10.7.1.1/24 dev engine");
        near.ip("addr add fd00:7:1::1/64 dev engine nodad");
        near.sysctl("ipv4/ip_forward", "1");
        near.sysctl("ipv6/conf/all/forwarding", "1");
        let [a, b] = ends;
        Some(Self { peer, near, relay: Relay::start(a, b, impairments, seed) })
    }

    /// Starts `whyloss-tun` with `arguments` (separated by blanks) and waits until it has taken its device.
    pub fn engine(&self, arguments: &str) -> Engine {
        let child = self.near.run(|| {
            Command::new(env!("CARGO_BIN_EXE_whyloss-tun"))
                .args(["--tun", "engine", "--timeout", "50"])
                .args(["--address", &Family::V4.engine().to_string(), "--address", &Family::V6.engine().to_string()])
                .args(arguments.split_whitespace())
                .stdout(Stdio::piped())
                .spawn()
                .expect("whyloss-tun can be started")
        });
        let mut engine = Engine { child };
        let start = Instant::now();
        while !self.near.run(|| has_carrier("engine")) {
            assert!(start.elapsed() < PATIENCE, "whyloss-tun does not take its device");
            if engine.child.try_wait().expect("a child of ours").is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        engine
    }

    /// Stops the path and says what it did.
    pub fn finish(self) -> [Counts; 2] {
        self.relay.stop()
    }
}

fn has_carrier(device: &str) -> bool {
    let output = Command::new("ip").args(["link", "show", device]).output().expect("ip can be started");
    String::from_utf8_lossy(&output.stdout).contains("LOWER_UP")
}

/// A running `whyloss-tun`; killed when dropped.
#[derive(Debug)]
pub struct Engine {
    child: Child,
}

impl Engine {
    /// Waits for its end and gives its report and whether it did everything that it was asked for.
    pub fn report(mut self) -> (Value, bool) {
        let mut text = String::new();
        self.child.stdout.take().expect("its output is ours").read_to_string(&mut text).expect("text");
        let status = self.child.wait().expect("a child of ours");
        let report = serde_json::from_str(&text).unwrap_or_else(|error| panic!("whyloss-tun ({status}) said {text:?}: {error}"));
        (report, status.success())
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Accepts one connection, but does not wait for ever.
pub fn accept(listener: &TcpListener) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let start = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && start.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Listens on `port` of `address` in `namespace`.
pub fn listen(namespace: &Namespace, address: IpAddr, port: u16) -> TcpListener {
    namespace.run(|| TcpListener::bind(SocketAddr::new(address, port))).expect("a free port")
}

/// Connects from `namespace`.
pub fn connect(namespace: &Namespace, to: SocketAddr) -> io::Result<TcpStream> {
    namespace.run(|| TcpStream::connect_timeout(&to, PATIENCE))
}
