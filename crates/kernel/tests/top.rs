//! The observer on connections across an emulated link, whose truth is known.
#![cfg(feature = "bpf")]

mod support;

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};
use nix::sys::socket::{bind, setsockopt, socket, sockopt, AddressFamily, SockFlag, SockType, SockaddrStorage};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use support::traffic::{connect, disconnect, send_damaged, set_control};
use support::{can_load, job_of_child, private_place, skip, soon, start_child, within};
use whyloss_kernel::load;
use whyloss_kernel::place::Place;
use whyloss_kernel::stat::stat;
use whyloss_kernel::top::{Connection, Observer, Snapshot, Tally, CAUSES};
use whyloss_net::emulate::{Options, Stretch};
use whyloss_net::namespace::{missing_capability, Namespace};
use whyloss_net::testbed::{Plan, Testbed, WireLink, WireNode};
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
    let hop = |queue, channel| Stretch {
        name: "link".to_owned(),
        spec: LinkSpec {
            rate: BitRate::from_bps(10_000_000),
            delay: transport::Duration::from_millis(10),
            queue: QueueLimit::Packets(queue),
            channel,
            ..LinkSpec::default()
        },
    };
    let nodes = ["a", "b"].map(|name| WireNode { name: name.to_owned(), router: false });
    let ways = [vec![hop(queue, ChannelSpec { errors, effect })], vec![hop(1000, ChannelSpec::default())]];
    let plan = Plan { nodes: nodes.into(), links: vec![WireLink { ends: [0, 1], ways, ..WireLink::default() }], mtu: 1500 };
    Testbed::new(plan, &Options::new(1, 0)).expect("a test bed")
}

/// Sends from the first host to the second what `send` writes, under `control`; gives what is seen of the sender and of the receiver just
/// before the end.
fn transfer(bed: &Testbed, observer: &mut Observer, control: &str, send: impl FnOnce(&mut TcpStream)) -> [Connection; 2] {
    let to = bed.plan().address(1, false);
    let listener = bed.namespace(1).run(|| TcpListener::bind((to, 0))).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let receiver = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        while socket.read(&mut [0; 16384]).expect("receives") > 0 {}
    });
    let mut socket = bed.namespace(0).run(|| TcpStream::connect((to, port))).expect("connects");
    set_control(&socket, control).expect("it is there");
    send(&mut socket);
    let snapshot = observer.snapshot().expect("a snapshot");
    drop(socket);
    receiver.join().expect("receives");
    [find(&snapshot, |seen| seen.remote_port == port), find(&snapshot, |seen| seen.local_port == port)]
}

/// Writes as much as there is room for, for so many seconds.
fn bulk(seconds: u64) -> impl FnOnce(&mut TcpStream) {
    move |socket| {
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            socket.write_all(&[7; 16384]).expect("sends");
        }
    }
}

fn find(snapshot: &Snapshot, which: impl Fn(&Connection) -> bool) -> Connection {
    let mut found = snapshot.connections.iter().filter(|seen| which(seen));
    let seen = found.next().unwrap_or_else(|| panic!("not among {:?}", snapshot.connections)).clone();
    assert!(found.next().is_none());
    seen
}

/// Waits for the end of a connection and gives what is reported of it then.
fn end_of(cookie: u64, observer: &mut Observer) -> Connection {
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        let mut closed = observer.snapshot().expect("a snapshot").closed.into_iter().filter(|ended| ended.cookie == cookie);
        if let Some(ended) = closed.next() {
            assert!(closed.next().is_none(), "reported twice");
            return ended;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("no end was reported");
}

/// Losses that were judged congestion and corruption.
fn judged(seen: &Connection) -> [u32; 2] {
    ["congestion", "corruption"].map(|cause| seen.causes.get(cause).expect("a cause").losses)
}

#[test]
fn damage_is_seen_at_the_receiver_and_judged_corruption_at_the_sender() {
    let Some(_alone) = alone() else { return };
    let mut observer = Observer::new(Place::default()).expect("an observer");
    let bed = bed(50, Errors::Packets { probability: 0.01 }, Effect::Damage);
    let [sender, receiver] = transfer(&bed, &mut observer, "reno", bulk(8));
    let [congestion, corruption] = judged(&sender);
    assert!(sender.retransmissions >= 10 && sender.losses >= 10, "{sender:?}");
    // A busy machine delays acknowledgements, which looks like a queue.
    assert!(corruption > 2 * congestion, "{sender:?}");
    assert!(sender.min_rtt_us.is_some_and(|rtt| (20_000..60_000).contains(&rtt)), "{sender:?}");
    // Nearly all that was lost arrived damaged; a few hits in the addresses or ports name other connections.
    assert!(receiver.damaged_in * 10 >= sender.losses * 7 && receiver.damaged_in > 0, "{receiver:?} {sender:?}");
    assert_eq!(sender.damaged_in, 0);
    assert_eq!((sender.control.as_str(), sender.state, sender.closed), ("reno", "established", false));
    assert_eq!(sender.pid, Some(std::process::id()), "{sender:?}");
    assert!(sender.bytes_acked > 500_000 && receiver.bytes_received >= sender.bytes_acked, "{sender:?}");
}

#[test]
fn overflow_of_a_small_queue_is_judged_congestion() {
    let Some(_alone) = alone() else { return };
    let mut observer = Observer::new(Place::default()).expect("an observer");
    let bed = bed(10, Errors::None, Effect::Erase);
    let [sender, receiver] = transfer(&bed, &mut observer, "reno", bulk(8));
    let [congestion, corruption] = judged(&sender);
    assert!(sender.losses >= 10, "{sender:?}");
    assert!(congestion > 3 * corruption, "{sender:?}");
    assert_eq!(receiver.damaged_in, 0);
}

/// How often a tail loss probe has repaired a loss in the network of the calling thread, by the kernel's own count.
fn repaired_by_probes() -> u32 {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat").expect("Linux");
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let mut row = || rows.next().expect("names and counts").split(' ');
    let position = row().position(|name| name == "TCPLossProbeRecovery").expect("is counted");
    row().nth(position).and_then(|count| count.parse().ok()).expect("a count")
}

#[test]
fn what_a_tail_loss_probe_repairs_is_a_loss_and_judged() {
    let Some(_alone) = alone() else { return };
    // Which losses probes repair hangs on the kernel's timers: now and then there is none.
    for _ in 0..4 {
        let mut observer = Observer::new(Place::default()).expect("an observer");
        let bed = bed(50, Errors::Packets { probability: 0.1 }, Effect::Erase);
        let [sender, _] = transfer(&bed, &mut observer, "reno", |socket| {
            for _ in 0..100 {
                // No more than the smallest window, or the probe would be what had not found room.
                socket.write_all(&[7; 2 * 1448]).expect("sends");
                thread::sleep(Duration::from_millis(100));
            }
        });
        assert_eq!(sender.probed, bed.namespace(0).run(repaired_by_probes), "{sender:?}");
        let sum =
            |of: fn(&Tally) -> u32| -> u32 { CAUSES.iter().map(|cause| of(sender.causes.get(cause).expect("a cause"))).sum() };
        assert!(sum(|tally| tally.episodes) >= sender.probed, "{sender:?}");
        // Where a probe and a timeout meet, the kernel now and then counts a loss outside of any episode.
        let told = sum(|tally| tally.losses) + sender.pending_losses;
        assert!((sender.losses.saturating_sub(sender.timeouts)..=sender.losses).contains(&told), "{sender:?}");
        if sender.probed > 0 {
            return;
        }
    }
    panic!("no probe has repaired a loss in four connections");
}

#[test]
fn where_a_control_of_ours_judges_its_verdicts_are_told() {
    let Some(_alone) = alone() else { return };
    let place = private_place("o1_");
    let mut observer = Observer::new(place.clone()).expect("an observer");
    load::load(&place, &["wl_checksum".to_owned()]).expect("loads");
    let damaging = bed(50, Errors::Packets { probability: 0.01 }, Effect::Damage);
    let [sender, _] = transfer(&damaging, &mut observer, "o1_checksum", bulk(5));
    drop(damaging);
    let decided = sender.decided.as_ref().expect("is a control of ours");
    assert!(decided["heard"] >= 10 && decided["losses"] >= 5, "{decided:?}");
    assert!(2 * decided["kept"] > decided["losses"] + 2 * decided["cut_later"], "{decided:?}");

    let overflowing = bed(10, Errors::None, Effect::Erase);
    let [sender, _] = transfer(&overflowing, &mut observer, "o1_checksum", bulk(5));
    let decided = sender.decided.as_ref().expect("is a control of ours");
    assert!(decided["losses"] >= 3 && 4 * decided["kept"] < decided["losses"] + 4 * decided["cut_later"], "{decided:?}");
    assert_eq!(decided["heard"], 0);

    let ended = end_of(sender.cookie, &mut observer).decided.expect("what was last counted is told once more");
    assert!(ended["losses"] >= decided["losses"]);
    load::unload(&place).expect("unloads");
    let [other, _] = transfer(&overflowing, &mut observer, "reno", bulk(1));
    assert!(other.decided.is_none());
}

#[test]
fn connections_that_were_there_are_found_and_ended_ones_reported_once() {
    let Some(_alone) = alone() else { return };
    let inside = Namespace::new().expect("a namespace");
    let ends = connect(&inside, "127.0.0.1:0", "127.0.0.1:0").expect("connects");
    let port = ends.0.local_addr().expect("an address").port();
    let mut observer = Observer::new(Place::default()).expect("an observer");
    let before = observer.snapshot().expect("a snapshot");
    let seen = find(&before, |seen| seen.local_port == port);
    assert_eq!((seen.state, seen.closed, seen.pending), ("established", false, None));

    drop(ends);
    assert!(end_of(seen.cookie, &mut observer).closed);
    let after = observer.snapshot().expect("a snapshot");
    assert!(after.connections.iter().chain(&after.closed).all(|other| other.cookie != seen.cookie));
}

/// The way of a program that makes its sockets in a namespace and keeps nothing else of it.
#[test]
fn a_connection_is_seen_whose_namespace_only_its_sockets_lead_to() {
    let Some(_alone) = alone() else { return };
    let place = private_place("o2_");
    load::load(&place, &["wl_auto".to_owned()]).expect("loads");
    let inside = Namespace::new().expect("a namespace");
    let ends = connect(&inside, "127.0.0.1:0", "127.0.0.1:0").expect("connects");
    set_control(&ends.0, "o2_auto").expect("is loaded");
    drop(inside);
    let port = ends.0.local_addr().expect("an address").port();
    let mut observer = Observer::new(place.clone()).expect("an observer");
    // Processes are looked for every two seconds only; it is in each snapshot all the same.
    for _ in 0..5 {
        let seen = find(&observer.snapshot().expect("a snapshot"), |seen| seen.local_port == port);
        assert!(seen.pid == Some(std::process::id()) && seen.decided.is_some(), "{seen:?}");
    }
    let listed = stat(&place).expect("counts").connections;
    assert_eq!(
        listed.iter().map(|listed| (listed.local.port(), listed.control.as_str())).collect::<Vec<_>>(),
        [(port, "o2_auto")]
    );
}

#[test]
fn an_accepted_connection_keeps_its_port_and_its_damage_when_it_ends() {
    let Some(_alone) = alone() else { return };
    let mut observer = Observer::new(Place::default()).expect("an observer");
    let bed = bed(50, Errors::Packets { probability: 0.02 }, Effect::Damage);
    let [sender, receiver] = transfer(&bed, &mut observer, "reno", bulk(2));
    assert!(receiver.damaged_in > 0, "{receiver:?}");
    let mut closed = Vec::new();
    let both = within(Duration::from_secs(5), || {
        closed.extend(observer.snapshot().expect("a snapshot").closed);
        [&sender, &receiver].iter().all(|seen| closed.iter().any(|ended| ended.cookie == seen.cookie))
    });
    assert!(both, "{closed:?}");
    for seen in [sender, receiver] {
        let ended = closed.iter().find(|ended| ended.cookie == seen.cookie).expect("has ended");
        assert_eq!((ended.local_port, ended.remote_port), (seen.local_port, seen.remote_port), "{ended:?}");
        assert!(ended.damaged_in >= seen.damaged_in, "{} of {} damaged", ended.damaged_in, seen.damaged_in);
    }
}

/// A socket that has asked in vain for a connection has none that ends, whatever it had before.
#[test]
fn what_was_no_connection_is_not_told_as_one_that_ended() {
    let Some(_alone) = alone() else { return };
    let mut observer = Observer::new(Place::default()).expect("an observer");
    let inside = Namespace::new().expect("a namespace");
    let ends = connect(&inside, "127.0.0.1:0", "127.0.0.1:0").expect("connects");
    let port = ends.1.local_addr().expect("an address").port();
    let seen = find(&observer.snapshot().expect("a snapshot"), |seen| seen.remote_port == port);
    disconnect(&ends.0);
    assert!(end_of(seen.cookie, &mut observer).closed);
    let refused = SockaddrStorage::from(SocketAddr::from(([127, 0, 0, 1], 9)));
    let error = nix::sys::socket::connect(ends.0.as_raw_fd(), &refused);
    assert_eq!(error, Err(nix::errno::Errno::ECONNREFUSED));
    let after = observer.snapshot().expect("a snapshot");
    let its = after.connections.iter().chain(&after.closed).filter(|other| other.cookie == seen.cookie);
    assert_eq!(its.count(), 0, "{after:?}");
}

/// A new connection to `listener` in the namespace of the calling thread, from the port `from` if there is one. It is closed without more ado, so
/// that its port is free at once.
fn open(listener: &TcpListener, from: Option<SocketAddr>) -> (OwnedFd, TcpStream) {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    setsockopt(&socket, sockopt::Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 }).expect("lingers");
    if let Some(from) = from {
        bind(socket.as_raw_fd(), &SockaddrStorage::from(from)).expect("a port");
    }
    let to = listener.local_addr().expect("an address");
    nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(to)).expect("connects");
    (socket, listener.accept().expect("accepts").0)
}

/// Connections in two namespaces may have the same addresses and ports.
#[test]
fn damage_counts_for_the_connection_of_the_namespace_where_it_came() {
    let Some(_alone) = alone() else { return };
    let [server, client] = [7, 8].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let insides = [(), ()].map(|()| Namespace::new().expect("a namespace"));
    let mut observer = Observer::new(Place::default()).expect("an observer");
    let numbers =
        insides.each_ref().map(|inside| inside.run(|| std::fs::metadata("/proc/thread-self/ns/net").expect("Linux").ino()));
    let [one, two] = insides.each_ref().map(|inside| {
        inside.run(|| {
            let listener = TcpListener::bind(server).expect("a port");
            open(&listener, Some(client))
        })
    });
    let receivers = |observer: &mut Observer| {
        let snapshot = observer.snapshot().expect("a snapshot");
        numbers.map(|number| find(&snapshot, |seen| u64::from(seen.netns) == number && seen.local_port == 7))
    };
    send_damaged(&insides[0], client, server);
    let [hit, spared] = receivers(&mut observer);
    assert_eq!((hit.local, hit.remote_port), (spared.local, spared.remote_port));
    assert_eq!((hit.damaged_in, spared.damaged_in), (1, 0), "{hit:?} {spared:?}");
    send_damaged(&insides[1], client, server);
    drop(one);
    assert_eq!(end_of(hit.cookie, &mut observer).damaged_in, 1);
    let snapshot = observer.snapshot().expect("a snapshot");
    assert_eq!(find(&snapshot, |seen| seen.cookie == spared.cookie).damaged_in, 1);
    drop(two);
}

/// More connections end than there is room to tell. What came damaged for one of them is not what comes for the next between the same ends.
#[test]
fn damage_ends_with_its_connection_where_there_is_no_room_to_tell_of_it() {
    let Some(_alone) = alone() else { return };
    let inside = Namespace::new().expect("a namespace");
    let mut observer = Observer::new(Place::default()).expect("an observer");
    let [server, client] = [7, 8].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let listener = inside.run(|| TcpListener::bind(server)).expect("a port");
    let ends = inside.run(|| open(&listener, Some(client)));
    send_damaged(&inside, client, server);
    let its = |seen: &Connection| (seen.local_port, seen.remote_port) == (7, 8);
    let seen = find(&observer.snapshot().expect("a snapshot"), its);
    assert_eq!(seen.damaged_in, 1, "{seen:?}");
    inside.run(|| (0..20_000).for_each(|_| drop(open(&listener, None))));
    drop(ends);
    let told = observer.snapshot().expect("a snapshot");
    assert!(told.unreported > 0 && told.closed.iter().all(|ended| ended.cookie != seen.cookie), "{}", told.unreported);
    let ends = inside.run(|| open(&listener, Some(client)));
    let seen = find(&observer.snapshot().expect("a snapshot"), its);
    assert_eq!(seen.damaged_in, 0, "{seen:?}");
    drop(ends);
}

/// Not a test: what [`start_child`] starts.
#[test]
#[ignore = "started by another test"]
fn child() {
    if job_of_child().as_deref() == Some("watch") {
        let _observer = Observer::new(Place::default()).expect("an observer");
        thread::sleep(Duration::from_secs(60));
    }
}

/// The kernel's numbers of the links, programs and maps that a process holds.
fn held(process: u32) -> [BTreeSet<u32>; 3] {
    let files = std::fs::read_dir(format!("/proc/{process}/fdinfo")).expect("the process").flatten();
    let texts: Vec<_> = files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect();
    ["link_id:", "prog_id:", "map_id:"].map(|key| {
        let numbers = texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        numbers.collect()
    })
}

/// How many of them there are still in the kernel.
fn left(held: &[BTreeSet<u32>; 3]) -> [usize; 3] {
    let [links, programs, maps] = held;
    [
        LinkInfoIter::default().filter(|link| links.contains(&link.id)).count(),
        ProgInfoIter::default().filter(|program| programs.contains(&program.id)).count(),
        MapInfoIter::default().filter(|map| maps.contains(&map.id)).count(),
    ]
}

#[test]
fn nothing_is_left_when_the_observer_goes_or_is_killed() {
    let Some(_alone) = alone() else { return };
    let before = held(std::process::id());
    let observer = Observer::new(Place::default()).expect("an observer");
    let own = held(std::process::id());
    assert!(
        own.iter().zip(&before).all(|(now, before)| now.len() > before.len()),
        "what it has is held by this process: {own:?}"
    );
    drop(observer);
    assert_eq!(held(std::process::id()), before);

    let mut watcher = start_child("watch", &Place::default());
    let end = Instant::now() + Duration::from_secs(20);
    while held(watcher.id())[0].len() < own[0].len() && Instant::now() < end {
        thread::sleep(Duration::from_millis(20));
    }
    let its = held(watcher.id());
    assert_eq!(left(&its), its.each_ref().map(BTreeSet::len));
    assert!(its.each_ref().map(BTreeSet::len) >= own.each_ref().map(BTreeSet::len), "{its:?}");
    // By SIGKILL: nothing of it runs any more.
    watcher.kill().expect("is killed");
    watcher.wait().expect("ends");
    assert!(soon(|| left(&its) == [0; 3]), "left: {:?}", left(&its));
}
