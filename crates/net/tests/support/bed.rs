//! The test bed: on each side of a bad path a kernel host, and behind it a TUN device for an engine.
//!
//! ```text
//!  namespace "peer"                                      namespace "near"
//!  far engine ── kernel TCP, forwards ── path ── relay ── path ── kernel forwards, TCP ── engine
//!  10.7.2.2      10.7.0.1                                         10.7.1.1                10.7.1.2
//!  fd00:7:2::2   fd00:7::1                                        fd00:7:1::1             fd00:7:1::2
//! ```

use super::relay::{Counts, Impairment, Relay};
use super::skip::skip;
use serde_json::Value;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whyloss_net::namespace::{missing_capability, Namespace};
use whyloss_net::Tun;

/// Longer than anything takes that works.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Which version of IP a test uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    /// The kernel host across the bad path.
    pub fn peer(self) -> IpAddr {
        self.address(0, 1)
    }

    /// Address of the engine.
    pub fn engine(self) -> IpAddr {
        self.address(1, 2)
    }

    /// Another engine, across the bad path.
    pub fn far_engine(self) -> IpAddr {
        self.address(2, 2)
    }

    fn address(self, subnet: u8, host: u8) -> IpAddr {
        match self {
            Self::V4 => [10, 7, subnet, host].into(),
            Self::V6 => [0xfd00, 7, subnet.into(), 0, 0, 0, 0, host.into()].into(),
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
            skip(&reason);
            return None;
        }
        let (peer, near) = (Namespace::new().expect("a namespace"), Namespace::new().expect("a namespace"));
        let ends = [&peer, &near].map(|namespace| namespace.run(|| Tun::open("path")).expect("a TUN device"));
        for namespace in [&peer, &near] {
            namespace.ip("link set path up").unwrap();
        }
        peer.ip("addr add 10.7.0.1/24 dev path").unwrap();
        peer.ip("addr add fd00:7::1/64 dev path nodad").unwrap();
        for (namespace, own, others) in [(&near, 1, [0, 2]), (&peer, 2, [1, 1])] {
            for other in others {
                namespace.ip(&format!("route replace 10.7.{other}.0/24 dev path")).unwrap();
                namespace.ip(&format!("route replace fd00:7:{other}::/64 dev path")).unwrap();
            }
            namespace.ip("tuntap add engine mode tun").unwrap();
            namespace.ip("link set engine up").unwrap();
            namespace.ip(&format!("addr add 10.7.{own}.1/24 dev engine")).unwrap();
            namespace.ip(&format!("addr add fd00:7:{own}::1/64 dev engine nodad")).unwrap();
            namespace.sysctl("ipv4/ip_forward", "1").unwrap();
            namespace.sysctl("ipv6/conf/all/forwarding", "1").unwrap();
        }
        let [a, b] = ends;
        Some(Self { peer, near, relay: Relay::start(a, b, impairments, seed) })
    }

    /// Starts `whyloss-peer` on our side of the path with `arguments` (separated by blanks) and waits until it has taken its device.
    pub fn engine(&self, arguments: &str) -> Engine {
        Engine::start(&self.near, Family::engine, arguments)
    }

    /// As [`Bed::engine`], across the path.
    pub fn far_engine(&self, arguments: &str) -> Engine {
        Engine::start(&self.peer, Family::far_engine, arguments)
    }

    /// How many SYN-ACKs from across the path have permitted reports so far. The kernel of a machine on which `wl_checksum` is loaded permits them.
    pub fn permits(&self) -> u64 {
        self.relay.permits()
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

/// A running `whyloss-peer`; killed when dropped.
#[derive(Debug)]
pub struct Engine {
    child: Child,
}

impl Engine {
    fn start(namespace: &Namespace, address: fn(Family) -> IpAddr, arguments: &str) -> Self {
        let child = namespace.run(|| {
            Command::new(env!("CARGO_BIN_EXE_whyloss-peer"))
                .args(["--tun", "engine", "--timeout", "50"])
                .args(["--address", &address(Family::V4).to_string(), "--address", &address(Family::V6).to_string()])
                .args(arguments.split_whitespace())
                .stdout(Stdio::piped())
                .spawn()
                .expect("whyloss-peer can be started")
        });
        let mut engine = Self { child };
        let start = Instant::now();
        while !namespace.run(|| has_carrier("engine")) {
            assert!(start.elapsed() < PATIENCE, "whyloss-peer does not take its device");
            if engine.child.try_wait().expect("a child of ours").is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        engine
    }

    /// Waits for its end and gives its report and whether it did everything that it was asked for.
    pub fn report(mut self) -> (Value, bool) {
        let mut text = String::new();
        self.child.stdout.take().expect("its output is ours").read_to_string(&mut text).expect("text");
        let status = self.child.wait().expect("a child of ours");
        let report = serde_json::from_str(&text).unwrap_or_else(|error| panic!("whyloss-peer ({status}) said {text:?}: {error}"));
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

/// Connects by the kernel's TCP of `namespace`.
pub fn connect(namespace: &Namespace, to: SocketAddr) -> io::Result<TcpStream> {
    namespace.run(|| TcpStream::connect_timeout(&to, PATIENCE))
}
