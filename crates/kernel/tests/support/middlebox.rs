//! Somebody on the way, who sees every packet and may change it, drop it, or send more in somebody else's name.
#![allow(dead_code)]

use super::path::Link;
use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags};
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use whyloss_net::emulate::{Options, FIFO_PRIORITY};
use whyloss_net::namespace::Namespace;
use whyloss_net::testbed::{Plan, Testbed, WireLink, WireNode};
use whyloss_net::{realtime, Tun};
use whyloss_transport::wire::damage::{examine, flip_bits, Arrival, Damaged};
use whyloss_transport::wire::{self, ip, Packet};
use whyloss_transport::Segment;

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the host behind the middlebox.
    In,
    /// From it.
    Out,
}

/// A segment in somebody else's name: its addresses are those of the packet that its maker has just seen.
#[derive(Clone, Debug)]
pub struct Forged {
    pub way: Way,
    pub segment: Segment,
    /// Its checksum shall not hold.
    pub damaged: bool,
}

/// What somebody on the way does.
pub trait Meddler: Send + 'static {
    /// An intact segment has come. It goes on as it is left, behind what is put into `forged`, if this gives `true`.
    fn meddle(&mut self, way: Way, segment: &mut Segment, forged: &mut Vec<Forged>) -> bool;

    /// A damaged segment has come, of which this can be read. It goes on as it is left, and damaged.
    fn mend(&mut self, _segment: &mut Segment) {}
}

/// A meddler at work between two devices.
#[derive(Debug)]
pub struct Middlebox<M> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<M>>,
}

impl<M: Meddler> Middlebox<M> {
    /// Puts `meddler` between the world and a host.
    pub fn start(world: Tun, host: Tun, mut meddler: M) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            realtime::prepare(Some(FIFO_PRIORITY));
            let mut buffer = vec![0; 1 << 16];
            while !told.load(Ordering::Relaxed) {
                let mut waiting = [&world, &host].map(|device| PollFd::new(device.as_fd(), PollFlags::POLLIN));
                match poll(&mut waiting, 20_u16) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(error) => panic!("waiting for packets: {error}"),
                }
                for (way, from) in [(Way::In, &world), (Way::Out, &host)] {
                    // A few, so that neither way has to wait.
                    for _ in 0..64 {
                        let Some(length) = from.receive(&mut buffer).expect("a device to read from") else { break };
                        let send = |way, octets: &[u8]| {
                            let to = if way == Way::In { &host } else { &world };
                            // What the kernel has no room for is lost, as on any way.
                            to.send(octets).expect("a device to write to");
                        };
                        pass(&mut meddler, way, &buffer[..length], send);
                    }
                }
            }
            meddler
        });
        Self { stop, thread: Some(thread) }
    }

    /// Ends it and gives the meddler back.
    pub fn stop(mut self) -> M {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it stops once").join().expect("a meddler that does not panic")
    }
}

impl<M> Drop for Middlebox<M> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One packet; what is no TCP goes on untouched.
fn pass(meddler: &mut impl Meddler, way: Way, octets: &[u8], send: impl Fn(Way, &[u8])) {
    let mut forged = Vec::new();
    let (header, seen, left) = match examine(&Bytes::copy_from_slice(octets)) {
        Arrival::Intact(Packet { header, segment: seen, .. }) => {
            let mut left = seen.clone();
            let goes_on = meddler.meddle(way, &mut left, &mut forged);
            (header, seen, goes_on.then_some((left, false)))
        }
        Arrival::Damaged(Damaged { header, segment: seen, .. }) => {
            let mut left = seen.clone();
            meddler.mend(&mut left);
            (header, seen, Some((left, true)))
        }
        _ => return send(way, octets),
    };
    for Forged { way: to, segment, damaged } in forged {
        let addresses = if to == way { header.addresses } else { header.addresses.reversed() };
        send(to, &emitted(ip::Header { addresses, ..header }, &segment, damaged));
    }
    match left {
        Some((left, _)) if left == seen => send(way, octets),
        Some((left, damaged)) => send(way, &emitted(header, &left, damaged)),
        None => {}
    }
}

fn emitted(header: ip::Header, segment: &Segment, damaged: bool) -> Vec<u8> {
    let mut octets = Vec::new();
    wire::emit(&header, segment, &mut octets).expect("a segment that fits");
    if damaged {
        let last = octets.len() as u64 * 8 - 1;
        flip_bits(&mut octets, [last]);
    }
    octets
}

/// Two of the kernel's hosts with a link between them, `near` and `far`; both have an IPv4 and an IPv6 address.
pub fn bed(link: &Link) -> Testbed {
    let nodes = ["near", "far"].map(|name| WireNode { name: name.to_owned(), router: false });
    let links = vec![WireLink { ends: [0, 1], ways: link.chains(), ..WireLink::default() }];
    Testbed::new(Plan { nodes: nodes.into(), links, mtu: 1500 }, &Options::new(link.seed, 0)).expect("a test bed")
}

/// A link between two of the kernel's hosts with a meddler before the second.
#[derive(Debug)]
pub struct Meddled<M> {
    // Ends before its devices do.
    pub middlebox: Middlebox<M>,
    pub bed: Testbed,
    /// The host behind the meddler.
    pub behind: Namespace,
    pub address: IpAddr,
}

impl<M: Meddler> Meddled<M> {
    pub fn new(link: &Link, meddler: M) -> Self {
        let bed = bed(link);
        let (world, address) = bed.add_guest(1, 1).expect("a device");
        let behind = Namespace::new().expect("a namespace");
        let host = behind.run(|| Tun::open("wire")).expect("a TUN device");
        behind.sysctl("ipv6/conf/wire/disable_ipv6", "1").expect("no IPv6");
        behind
            .ip(&format!("addr add {address}/32 dev wire\nlink set wire up multicast off\nroute add default dev wire"))
            .expect("an address");
        Self { middlebox: Middlebox::start(world, host, meddler), bed, behind, address }
    }
}
