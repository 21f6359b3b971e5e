//! BBR of the engine beside the kernel's, over the same links.

mod support;

use nix::sys::socket::{setsockopt, sockopt::TcpCongestion};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use support::skip::skip;
use whyloss_net::bulk::{BulkTransfer, Load};
use whyloss_net::emulate::{Options, Stretch};
use whyloss_net::testbed::{Plan, Testbed, TestbedError, WireLink, WireNode};
use whyloss_net::Host;
use whyloss_sim::{ChannelSpec, Errors, LinkSpec, QueueLimit};
use whyloss_transport::scheme::Selection;
use whyloss_transport::stack::Settings;
use whyloss_transport::tcp::Config;
use whyloss_transport::{self as transport, BitRate};

const MTU: u16 = 1500;
const LASTS: Duration = Duration::from_secs(8);

/// A link and its losses on the way there.
#[derive(Clone, Copy, Debug)]
struct Cell {
    mbps: u64,
    rtt_ms: u64,
    queue: u32,
    loss: f64,
}

impl Cell {
    fn plan(self) -> Plan {
        let stretch = |name: &str, probability| {
            let errors = if probability > 0.0 { Errors::Packets { probability } } else { Errors::None };
            let spec = LinkSpec {
                rate: BitRate::from_bps(self.mbps * 1_000_000),
                delay: transport::Duration::from_millis(self.rtt_ms) / 2,
                queue: QueueLimit::Packets(self.queue),
                channel: ChannelSpec { errors, ..ChannelSpec::default() },
                ..LinkSpec::default()
            };
            vec![Stretch { name: name.to_owned(), spec }]
        };
        let node = |name: &str| WireNode { name: name.to_owned(), router: false };
        let link = WireLink { ends: [0, 1], ways: [stretch("a>b", self.loss), stretch("b>a", 0.0)], ..WireLink::default() };
        Plan { nodes: vec![node("a"), node("b")], links: vec![link], mtu: MTU }
    }

    /// A fresh bed, where this machine can have one.
    fn bed(self) -> Option<Testbed> {
        match Testbed::new(self.plan(), &Options::new(1, 0)) {
            Ok(bed) => Some(bed),
            Err(TestbedError::Unavailable(reason)) => {
                skip(&reason);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Mbit/s of data that the kernel's control carries.
    fn by_kernel(self) -> Option<f64> {
        let bed = self.bed()?;
        let address = SocketAddr::new(bed.plan().address(1, false), 5001);
        let listener = bed.namespace(1).run(|| TcpListener::bind(address)).expect("a listener");
        let stream = bed.namespace(0).run(|| TcpStream::connect(address)).expect("a connection");
        if let Err(reason) = setsockopt(&stream, TcpCongestion, &"bbr".into()) {
            skip(&format!("this kernel has no bbr: {reason}"));
            return None;
        }
        let began = Instant::now();
        let octets = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("a connection");
                let (mut buffer, mut octets) = (vec![0; 1 << 16], 0);
                while began.elapsed() < LASTS {
                    match stream.read(&mut buffer) {
                        Ok(read) if read > 0 => octets += read,
                        _ => break,
                    }
                }
                octets
            });
            let mut writer = stream.try_clone().expect("a second handle");
            scope.spawn(move || {
                let data = vec![0; 1 << 16];
                while began.elapsed() < LASTS && writer.write_all(&data).is_ok() {}
                let _ = writer.shutdown(Shutdown::Both);
            });
            receiver.join().expect("a receiver")
        });
        Some(octets as f64 * 8.0 / began.elapsed().as_secs_f64() / 1e6)
    }

    /// The same of the engine's.
    fn by_engine(self) -> Option<f64> {
        let bed = self.bed()?;
        let guest = |node| {
            let (tun, address) = bed.add_guest(node, 1).expect("a guest");
            (Host::new(tun, Settings { addresses: vec![address], mtu: MTU, key: [7; 16] }), address)
        };
        let ((sender, _), (receiver, address)) = (guest(0), guest(1));
        let config = Config::profile("linux").expect("a profile");
        let load = Load { octets: None, connections: 1, chunk: 1 << 16, selection: Selection::scheme("bbr"), config };
        let transfer = BulkTransfer::new(sender, receiver, SocketAddr::new(address, 80), load);
        transfer.start(0).expect("a transfer");
        std::thread::sleep(LASTS);
        let octets = transfer.delivered();
        transfer.stop().expect("both hosts ran to their end");
        Some(octets as f64 * 8.0 / LASTS.as_secs_f64() / 1e6)
    }
}

/// Within a tenth, where a clean link, one that loses 1 % and one with a queue of less than a bandwidth-delay product limit them. A busy machine serves
/// either late: what differs is measured twice more.
#[test]
fn it_carries_what_the_kernel_s_carries() {
    let cells = [
        Cell { mbps: 10, rtt_ms: 20, queue: 60, loss: 0.0 },
        Cell { mbps: 10, rtt_ms: 50, queue: 80, loss: 0.01 },
        Cell { mbps: 20, rtt_ms: 30, queue: 25, loss: 0.0 },
    ];
    // Each waits for its link most of the time.
    std::thread::scope(|scope| {
        for cell in cells {
            scope.spawn(move || {
                let mut tries = Vec::new();
                let near = (0..3).any(|_| {
                    let (Some(kernel), Some(engine)) = (cell.by_kernel(), cell.by_engine()) else { return true };
                    tries.push((kernel, engine));
                    (engine / kernel - 1.0).abs() < 0.1
                });
                assert!(near, "{cell:?}: kernel and engine carry {tries:?} Mbit/s");
            });
        }
    });
}
