//! The observer on connections across an emulated link, whose truth is known.
#![cfg(feature = "bpf")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use support::traffic::{connect, set_control};
use support::{can_load, skip};
use whyloss_kernel::top::{Connection, Observer, Snapshot};
use whyloss_net::emulate::{Hop, Options};
use whyloss_net::namespace::{missing_capability, Namespace};
use whyloss_net::testbed::{Link, Node, Plan, Testbed};
use whyloss_sim::{ChannelSpec, Effect, Errors, LinkSpec, QueueLimit};
use whyloss_transport::{self as transport, BitRate};

/// The link's clock and the transfer share the processors, so one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> Option<MutexGuard<'static, ()>> {
    if !can_load() {
        return None;
    }
    if let Some(reason) = missing_capability() {
        skip(&reason);
        return None;
    }
    Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// 10 Mbit/s and a round trip of 20 ms between two hosts, with a queue of so many packets towards the second.
fn bed(queue: u32, errors: Errors, effect: Effect) -> Testbed {
    let hop = |queue, channel| Hop {
        name: "link".to_owned(),
        spec: LinkSpec {
            rate: BitRate::from_bps(10_000_000),
            delay: transport::Duration::from_millis(10),
            queue: QueueLimit::Packets(queue),
            channel,
            ..LinkSpec::default()
        },
        discipline: None,
    };
    let nodes = ["a", "b"].map(|name| Node { name: name.to_owned(), router: false });
    let chains = [vec![hop(queue, ChannelSpec { errors, effect })], vec![hop(1000, ChannelSpec::default())]];
    let plan = Plan { nodes: nodes.into(), links: vec![Link { ends: [0, 1], chains }], mtu: 1500 };
    Testbed::new(plan, &Options::new(1, 0)).expect("a test bed")
}

/// Sends from the first host to the second for `time`, with Reno; gives what is seen of the sender and of the receiver just before the end.
fn transfer(bed: &Testbed, observer: &mut Observer, time: Duration) -> [Connection; 2] {
    let to = bed.plan().address(1, false);
    let listener = bed.namespace(1).run(|| TcpListener::bind((to, 0))).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let receiver = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        while socket.read(&mut [0; 16384]).expect("receives") > 0 {}
    });
    let mut socket = bed.namespace(0).run(|| TcpStream::connect((to, port))).expect("connects");
    set_control(&socket, "reno").expect("Reno is always there");
    let end = Instant::now() + time;
    while Instant::now() < end {
        socket.write_all(&[7; 16384]).expect("sends");
    }
    let snapshot = observer.snapshot().expect("a snapshot");
    drop(socket);
    receiver.join().expect("receives");
    [find(&snapshot, |seen| seen.remote_port == port), find(&snapshot, |seen| seen.local_port == port)]
}

fn find(snapshot: &Snapshot, which: impl Fn(&Connection) -> bool) -> Connection {
    let mut found = snapshot.connections.iter().filter(|seen| which(seen));
    let seen = found.next().unwrap_or_else(|| panic!("not among {:?}", snapshot.connections)).clone();
    assert!(found.next().is_none());
    seen
}

/// Losses that were judged congestion and corruption.
fn judged(seen: &Connection) -> [u32; 2] {
    ["congestion", "corruption"].map(|cause| seen.causes.get(cause).expect("a cause").losses)
}

#[test]
fn damage_is_seen_at_the_receiver_and_judged_corruption_at_the_sender() {
    let Some(_alone) = alone() else { return };
    let mut observer = Observer::new().expect("an observer");
    let bed = bed(50, Errors::Packets { probability: 0.01 }, Effect::Damage);
    let [sender, receiver] = transfer(&bed, &mut observer, Duration::from_secs(8));
    let [congestion, corruption] = judged(&sender);
    assert!(sender.retransmissions >= 10 && sender.losses >= 10, "{sender:?}");
    assert!(corruption > 3 * congestion, "{sender:?}");
    assert!(sender.min_rtt_us.is_some_and(|rtt| (20_000..60_000).contains(&rtt)), "{sender:?}");
    // Nearly all that was lost came in damaged; a few hits in the addresses or ports name other connections.
    assert!(receiver.damaged_in * 10 >= sender.losses * 7 && receiver.damaged_in > 0, "{receiver:?} {sender:?}");
    assert_eq!(sender.damaged_in, 0);
    assert_eq!((sender.control.as_str(), sender.state, sender.closed), ("reno", "established", false));
    assert_eq!(sender.pid, Some(std::process::id()), "{sender:?}");
    assert!(sender.bytes_acked > 500_000 && receiver.bytes_received >= sender.bytes_acked, "{sender:?}");
}

#[test]
fn overflow_of_a_small_queue_is_judged_congestion() {
    let Some(_alone) = alone() else { return };
    let mut observer = Observer::new().expect("an observer");
    let bed = bed(10, Errors::None, Effect::Erase);
    let [sender, receiver] = transfer(&bed, &mut observer, Duration::from_secs(8));
    let [congestion, corruption] = judged(&sender);
    assert!(sender.losses >= 10, "{sender:?}");
    assert!(congestion > 3 * corruption, "{sender:?}");
    assert_eq!(receiver.damaged_in, 0);
}

#[test]
fn connections_that_were_there_are_found_and_ended_ones_reported_once() {
    let Some(_alone) = alone() else { return };
    let inside = Namespace::new().expect("a namespace");
    let ends = connect(&inside, "127.0.0.1:0", "127.0.0.1:0").expect("connects");
    let port = ends.0.local_addr().expect("an address").port();
    let mut observer = Observer::new().expect("an observer");
    let before = observer.snapshot().expect("a snapshot");
    let seen = find(&before, |seen| seen.local_port == port);
    assert_eq!((seen.state, seen.closed, seen.pending), ("established", false, None));

    drop(ends);
    let end = Instant::now() + Duration::from_secs(5);
    let mut closed = Vec::new();
    while Instant::now() < end && closed.is_empty() {
        let now = observer.snapshot().expect("a snapshot");
        closed.extend(now.closed.into_iter().filter(|gone| gone.cookie == seen.cookie));
        thread::sleep(Duration::from_millis(20));
    }
    assert!(closed.len() == 1 && closed[0].closed, "{closed:?}");
    let after = observer.snapshot().expect("a snapshot");
    assert!(after.connections.iter().chain(&after.closed).all(|other| other.cookie != seen.cookie));
}

/// Programs, maps and links that this process holds; nothing is pinned, so they are in the kernel as long as it does.
fn held() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    let targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.filter(|target| ["bpf-", "bpf_"].iter().any(|kind| target.to_string_lossy().contains(kind))).count()
}

#[test]
fn nothing_is_left_when_the_observer_goes() {
    let Some(_alone) = alone() else { return };
    let before = held();
    let observer = Observer::new().expect("an observer");
    assert!(held() >= before + 7, "its programs are held by this process");
    drop(observer);
    assert_eq!(held(), before);
}
