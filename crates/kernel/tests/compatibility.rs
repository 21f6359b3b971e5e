//! `wl_checksum` beside what else connections meet: offloads and large packets, options that want the same place, SYN cookies, address
//! translation, and applications that set options or hand sockets on. Between hosts on a virtual Ethernet, as containers have it.
#![cfg(feature = "bpf")]

mod support;

use libbpf_rs::{MapCore as _, MapHandle};
use nix::libc;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use support::middlebox::bed;
use support::path::{sample, watch, Link};
use support::traffic::{carry, connect_across, connect_from, control_of, set_control, Group};
use support::{skip, Loaded};
use whyloss_kernel::load;
use whyloss_kernel::select::{self, Match};
use whyloss_kernel::stat::{stat, Connection, Counts};
use whyloss_net::namespace::Namespace;

/// Hosts in a row, each with a virtual Ethernet to the next. The last has the address [`SERVER`].
struct Hosts(Vec<Namespace>);

const SERVER: &str = "10.77.9.2";

impl Hosts {
    /// Two hosts.
    fn pair(mtu: u32) -> Self {
        let hosts = [Namespace::new(), Namespace::new()].map(|host| host.expect("a namespace"));
        wire(&hosts[0], "10.77.9.1/24", &hosts[1], "10.77.9.2/24", mtu);
        Self(hosts.into())
    }

    /// Two hosts with one between them that translates the first one's address.
    fn behind_translation() -> io::Result<Self> {
        let hosts = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
        wire(&hosts[0], "10.77.8.1/24", &hosts[1], "10.77.8.2/24", 1500);
        wire(&hosts[1], "10.77.9.1/24", &hosts[2], "10.77.9.2/24", 1500);
        hosts[0].ip("route add default via 10.77.8.2")?;
        hosts[1].sysctl("ipv4/ip_forward", "1")?;
        let rules = "table ip t { chain c { type nat hook postrouting priority 100; ip saddr 10.77.8.0/24 masquerade; }; }";
        let status = hosts[1].run(|| Command::new("nft").arg(rules).stderr(Stdio::null()).status());
        let status = status.map_err(|error| io::Error::other(format!("`nft` (package nftables) cannot be started: {error}")))?;
        if !status.success() {
            return Err(io::Error::other("nft cannot translate addresses here"));
        }
        Ok(Self(hosts.into()))
    }

    /// Two hosts with routers between them, whose link carries less than those to the hosts.
    fn over_a_tunnel(mtu: u32) -> Self {
        let hosts =
            [Namespace::new(), Namespace::new(), Namespace::new(), Namespace::new()].map(|host| host.expect("a namespace"));
        wire(&hosts[0], "10.77.7.1/24", &hosts[1], "10.77.7.2/24", 1500);
        wire(&hosts[1], "10.77.8.1/24", &hosts[2], "10.77.8.2/24", mtu);
        wire(&hosts[2], "10.77.9.1/24", &hosts[3], "10.77.9.2/24", 1500);
        let routes =
            ["default via 10.77.7.2", "10.77.9.0/24 via 10.77.8.2", "10.77.7.0/24 via 10.77.8.1", "default via 10.77.9.1"];
        for (host, route) in hosts.iter().zip(routes) {
            host.ip(&format!("route add {route}")).expect("a route");
            host.sysctl("ipv4/ip_forward", "1").expect("forwards");
        }
        Self(hosts.into())
    }

    fn client(&self) -> &Namespace {
        &self.0[0]
    }

    fn server(&self) -> &Namespace {
        self.0.last().expect("hosts")
    }

    fn listen(&self, port: u16) -> (TcpListener, SocketAddr) {
        let to = SocketAddr::new(SERVER.parse().expect("an address"), port);
        (self.server().run(|| TcpListener::bind(to)).expect("a port"), to)
    }
}

/// Puts a virtual Ethernet between two hosts.
fn wire(one: &Namespace, address: &str, other: &Namespace, other_address: &str, mtu: u32) {
    let netns = format!("/proc/{}/fd/{}", std::process::id(), other.as_fd().as_raw_fd());
    let near = address.rsplit_once('.').map(|(net, _)| net.replace('.', "_")).expect("an IPv4 address");
    let commands = format!(
        "link add v{near} mtu {mtu} type veth peer name w{near} mtu {mtu} netns {netns}\n\
         address add {address} dev v{near}\nlink set v{near} up"
    );
    one.ip(&commands).expect("a virtual Ethernet");
    other.ip(&format!("address add {other_address} dev w{near}\nlink set w{near} up")).expect("its other end");
}

const CONTROL: &str = "c1_checksum";

fn load() -> Option<Loaded> {
    Loaded::new("c1_", &["wl_checksum", "wl_checksum_delay"])
}

fn reports(loaded: &Loaded) -> Counts {
    stat(&loaded.place).expect("counts").reports
}

/// By how much a count has grown. The machine may have other connections: never less than those of the test.
fn grown(loaded: &Loaded, before: &Counts, name: &str) -> u64 {
    reports(loaded)[name] - before[name]
}

/// How many ends of open connections of these hosts have agreed on reports.
fn agreed(loaded: &Loaded) -> usize {
    let map = MapHandle::from_pinned_path(loaded.place.mounted_on().join("maps/wl_flows")).expect("a map");
    let of_hosts = |key: &Vec<u8>| {
        let remote = key.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).to_canonical());
        matches!(remote, Some(IpAddr::V4(address)) if matches!(address.octets(), [10, 77, 8 | 9, _]))
    };
    map.keys().filter(of_hosts).count()
}

fn own(loaded: &Loaded, socket: &TcpStream) -> Option<Connection> {
    let local = socket.local_addr().expect("an address");
    stat(&loaded.place).expect("counts").connections.into_iter().find(|connection| connection.local == local)
}

#[test]
fn with_offloads_and_large_packets_all_arrives_and_nothing_is_taken_for_damage() {
    let Some(loaded) = load() else { return };
    for (mtu, port) in [(1500, 6001), (9000, 6002)] {
        let hosts = Hosts::pair(mtu);
        for (control, port) in [(CONTROL, port), ("c1_checksum_del", port + 10)] {
            let before = reports(&loaded);
            let (listener, to) = hosts.listen(port);
            let sender = connect_from(hosts.client(), to, control);
            let receiver = listener.accept().expect("accepts").0;
            carry((&sender, &receiver), 20_000_000);
            let found = own(&loaded, &sender).expect("is listed");
            // Time stamps and the nonce lie in each segment.
            assert!((mtu - 70..=mtu - 52).contains(&found.mss_bytes), "{mtu}: {found:?}");
            // A busy machine may lose packets in front of the receiver, and who goes by delay too sees no queue then.
            let kept = if control == CONTROL { found.counts["kept"] } else { 0 };
            let taken = [found.counts["damaged"], found.counts["heard"], found.counts["timeouts_kept"], kept];
            assert_eq!(taken, [0; 4], "{control} at {mtu}: {found:?}");
            assert!(agreed(&loaded) >= 2 && grown(&loaded, &before, "nonces") > 100);
            // Packets of many segments leave as one, with one nonce.
            let (segments, nonces) = (20_000_000 / u64::from(found.mss_bytes), grown(&loaded, &before, "nonces"));
            println!("{control}, MTU {mtu}: {segments} segments, {nonces} nonces");
            assert!(mtu > 1500 || nonces < segments, "{control}: nothing left in large packets");
        }
    }
}

#[test]
fn data_in_the_syn_and_the_offer_of_reports_go_together() {
    let Some(loaded) = load() else { return };
    let hosts = Hosts::pair(1500);
    for host in &hosts.0 {
        host.sysctl("ipv4/tcp_fastopen", "3").expect("TCP Fast Open");
    }
    let (listener, to) = hosts.listen(6101);
    set_option(&listener, libc::TCP_FASTOPEN, 16);
    for round in 0..3 {
        let opened = hosts.client().run(|| {
            let socket = socket(libc::IPPROTO_TCP);
            set_control(&socket, CONTROL).expect("is loaded");
            // The connection is opened by the first write.
            set_option(&socket, libc::TCP_FASTOPEN_CONNECT, 1);
            nix::sys::socket::connect(socket.as_raw_fd(), &nix::sys::socket::SockaddrStorage::from(to)).expect("connects");
            TcpStream::from(socket)
        });
        (&opened).write_all(b"early").expect("sends");
        let accepted = listener.accept().expect("accepts").0;
        let mut early = [0; 5];
        (&accepted).read_exact(&mut early).expect("receives");
        assert_eq!(&early, b"early");
        carry((&opened, &accepted), 1_000_000);
        carry((&accepted, &opened), 100_000);
        // Known since the first connection: the cookie, which the next SYN carries beside the offer.
        assert_eq!(tcp_options(&opened) & SYN_DATA != 0, round > 0, "round {round}");
        assert_eq!((control_of(&opened).as_str(), agreed(&loaded) >= 2), (CONTROL, true), "round {round}");
    }
}

#[test]
fn where_the_server_keeps_no_syn_the_connection_is_plain_tcp() {
    let Some(loaded) = load() else { return };
    let hosts = Hosts::pair(1500);
    // Cookies for every connection, whether or not there is a flood.
    hosts.server().sysctl("ipv4/tcp_syncookies", "2").expect("SYN cookies");
    let (listener, to) = hosts.listen(6201);
    set_control(&listener, CONTROL).expect("is loaded");
    let connected = connect_from(hosts.client(), to, CONTROL);
    let accepted = listener.accept().expect("accepts").0;
    carry((&connected, &accepted), 2_000_000);
    carry((&accepted, &connected), 2_000_000);
    let both = [&connected, &accepted].map(|socket| own(&loaded, socket).expect("is listed"));
    assert_eq!(agreed(&loaded), 0, "an end believes that the other has agreed");
    assert!(both.iter().all(|end| end.counts["losses"] == 0), "{both:?}");
}

#[test]
fn translated_addresses_change_nothing() {
    let Some(loaded) = load() else { return };
    let hosts = match Hosts::behind_translation() {
        Ok(hosts) => hosts,
        Err(reason) => return skip(&reason.to_string()),
    };
    let (listener, to) = hosts.listen(6301);
    let before = reports(&loaded);
    let connected = connect_from(hosts.client(), to, CONTROL);
    let accepted = listener.accept().expect("accepts").0;
    assert_ne!(accepted.peer_addr().expect("a peer").ip(), connected.local_addr().expect("an address").ip());
    carry((&connected, &accepted), 2_000_000);
    carry((&accepted, &connected), 2_000_000);
    assert_eq!(agreed(&loaded), 2);
    assert!(grown(&loaded, &before, "nonces") > 10);
}

#[test]
fn a_small_segment_size_of_the_application_holds() {
    let Some(loaded) = load() else { return };
    let hosts = Hosts::pair(1500);
    let (listener, to) = hosts.listen(6401);
    let connected = hosts.client().run(|| {
        let socket = socket(libc::IPPROTO_TCP);
        set_control(&socket, CONTROL).expect("is loaded");
        set_option(&socket, libc::TCP_MAXSEG, 536);
        nix::sys::socket::connect(socket.as_raw_fd(), &nix::sys::socket::SockaddrStorage::from(to)).expect("connects");
        TcpStream::from(socket)
    });
    let accepted = listener.accept().expect("accepts").0;
    carry((&connected, &accepted), 2_000_000);
    carry((&accepted, &connected), 2_000_000);
    let found = own(&loaded, &connected).expect("is listed");
    assert!((450..=524).contains(&found.mss_bytes), "{found:?}");
    assert_eq!(found.counts["kept"], 0, "{found:?}");
    assert_eq!(agreed(&loaded), 2);
}

/// A socket that another process inherits keeps control, agreement and counts; whose group that process is in does not matter.
#[test]
fn a_socket_in_other_hands_keeps_its_control() {
    let Some(loaded) = load() else { return };
    let hosts = Hosts::pair(1500);
    let group = Group::enter("c1_");
    let (listener, to) = hosts.listen(6501);
    select::add(&loaded.place, "wl_checksum", &Match { port: Some(6501), prefix: None }, Some(&group.folder)).expect("a rule");
    let connected = hosts.client().run(|| TcpStream::connect(to)).expect("connects");
    drop(group);
    let accepted = listener.accept().expect("accepts").0;
    assert_eq!(control_of(&connected), CONTROL);
    let ends = || File::from(connected.as_fd().try_clone_to_owned().expect("a descriptor"));
    let mut echo = Command::new("cat").stdin(ends()).stdout(ends()).spawn().expect("cat");
    let before = own(&loaded, &connected).expect("is listed");
    drop(connected);
    carry((&accepted, &accepted), 1_000_000);
    let after = stat(&loaded.place).expect("counts").connections;
    let after = after.into_iter().find(|connection| connection.cookie == before.cookie).expect("is listed still");
    // The last acknowledgements may still be under way.
    assert!(after.control == CONTROL && after.acked_bytes >= before.acked_bytes + 900_000, "{after:?}");
    drop(accepted);
    echo.wait().expect("ends");
}

/// Looks again where a busy machine has had a SYN repeated, or answered late. What is wrong is so three times in a row.
fn thrice<E>(look: impl FnMut() -> Result<(), E>) -> Result<(), Vec<E>> {
    let failures: Vec<_> = std::iter::repeat_with(look).take(3).map_while(Result::err).collect();
    if failures.len() < 3 {
        Ok(())
    } else {
        Err(failures)
    }
}

/// The kernel takes its least timeout for RTTVAR at the first sample of the round trip. A short transfer ends before that has come down.
#[test]
fn the_timer_of_auto_is_short_from_the_first_segment_on() {
    let Some(_loaded) = Loaded::new("c2_", &["wl_auto"]) else { return };
    let hosts = Hosts::pair(1500);
    let to = SocketAddr::new(SERVER.parse().expect("an address"), 6701);
    let listener = listen(hosts.server(), to, "c2_auto");
    for (control, allowed_ms) in [("c2_auto", 55..110), ("reno", 190..260)] {
        let look = || {
            let connected = connect_from(hosts.client(), to, control);
            let accepted = listener.accept().expect("accepts").0;
            assert_eq!(control_of(&accepted), "c2_auto");
            let ms = [connected, accepted].map(|socket| sample(&socket, Duration::ZERO).rto_us / 1000);
            (allowed_ms.contains(&ms[0]) && (55..110).contains(&ms[1])).then_some(()).ok_or(ms)
        };
        assert_eq!(thrice(look), Ok(()), "{control}, in milliseconds");
    }
}

/// A connection that is accepted gets its control by a rule when it is established, but its timer before. That of the others stays as it is.
#[test]
fn the_timer_of_auto_is_short_where_a_rule_gives_it_to_what_is_accepted() {
    let Some(loaded) = Loaded::new("c8_", &["wl_auto"]) else { return };
    let group = Group::enter("c8_");
    let inner = group.folder.join("inner");
    std::fs::create_dir(&inner).expect("a group");
    let rules = [("wl_auto", 6705, &group.folder), ("wl_auto", 6706, &group.folder), ("reno", 6706, &inner)];
    for (control, port, folder) in rules {
        select::add(&loaded.place, control, &Match { port: Some(port), prefix: None }, Some(folder)).expect("a rule");
    }
    let groups = loaded.place.mounted_on().join("use").read_dir().expect("groups with rules");
    let hooks = std::fs::read_to_string("/sys/kernel/security/lsm");
    let asks = hooks.map_or(true, |names| names.trim().split(',').any(|name| name == "bpf"));
    if !asks || !groups.flatten().all(|group| group.path().join("accept").exists()) {
        return skip("this kernel takes no programs at its security hooks (CONFIG_BPF_LSM)");
    }
    let hosts = Hosts::pair(1500);
    for host in [hosts.client(), hosts.server()] {
        host.sysctl("ipv4/tcp_no_metrics_save", "1").expect("no metrics");
    }
    let process = std::process::id().to_string();
    std::fs::write(inner.join("cgroup.procs"), &process).expect("moves");
    let accepts = |port, control: &str, allowed_ms: std::ops::Range<u32>| {
        let (listener, to) = hosts.listen(port);
        let look = || {
            let _connected = connect_from(hosts.client(), to, "reno");
            let accepted = listener.accept().expect("accepts").0;
            let found = (control_of(&accepted), sample(&accepted, Duration::ZERO).rto_us / 1000);
            (found.0 == control && allowed_ms.contains(&found.1)).then_some(()).ok_or(found)
        };
        assert_eq!(thrice(look), Ok(()), "on port {port}, in milliseconds");
    };
    hosts.server().sysctl("ipv4/tcp_congestion_control", "reno").expect("every kernel has it");
    accepts(6705, "c8_auto", 55..110);
    accepts(6706, "reno", 190..260);
    accepts(6707, "reno", 190..260);
    std::fs::write(group.folder.join("cgroup.procs"), &process).expect("moves back");
    std::fs::remove_dir(&inner).expect("is empty");
}

/// A listener lives longer than most connections, and its namespace may have none. Of open connections the kernel lifts RTTVAR by variation alone.
#[test]
fn what_listeners_accept_after_unload_has_the_usual_timer() {
    let Some(loaded) = Loaded::new("c3_", &["wl_auto"]) else { return };
    let hosts = Hosts::pair(1500);
    let [at_client, at_server] = ["10.77.9.1", SERVER].map(|host| SocketAddr::new(host.parse().expect("an address"), 6702));
    let idle = listen(hosts.client(), at_client, "c3_auto");
    let busy = listen(hosts.server(), at_server, "c3_auto");
    for host in [hosts.client(), hosts.server()] {
        host.sysctl("ipv4/tcp_congestion_control", "reno").expect("every kernel has it");
    }
    let connected = connect_from(hosts.client(), at_server, "reno");
    let accepted = busy.accept().expect("accepts").0;
    let removed = load::unload(&loaded.place).expect("unloads");
    assert_eq!((removed.moved, removed.kept), (1, 0), "listeners are no connections");
    assert_eq!(control_of(&accepted), "reno");
    carry((&accepted, &connected), 100_000);
    for (near, to, listener) in [(hosts.server(), at_client, idle), (hosts.client(), at_server, busy)] {
        assert_eq!(control_of(&listener), "reno");
        let _connected = connect_from(near, to, "reno");
        let accepted = listener.accept().expect("accepts").0;
        assert_eq!(control_of(&accepted), "reno");
        let timeout_ms = sample(&accepted, Duration::ZERO).rto_us / 1000;
        assert!((190..260).contains(&timeout_ms), "{timeout_ms} ms");
    }
}

/// An administrator may have set less than `wl_auto` asks for.
#[test]
fn auto_keeps_a_shorter_timer() {
    let Some(loaded) = Loaded::new("c4_", &["wl_auto"]) else { return };
    let hosts = Hosts::pair(1500);
    if [hosts.client(), hosts.server()].iter().any(|host| host.sysctl("ipv4/tcp_rto_min_us", "20000").is_err()) {
        return skip("this kernel has no tcp_rto_min_us");
    }
    // What one attempt has measured is not to be what the next begins with.
    for host in [hosts.client(), hosts.server()] {
        host.sysctl("ipv4/tcp_no_metrics_save", "1").expect("no metrics");
    }
    let to = SocketAddr::new(SERVER.parse().expect("an address"), 6704);
    let listener = listen(hosts.server(), to, "c4_auto");
    // The timers of who connects with `control`, and of who accepts, have to be short at `ends`.
    let are_short = |control: &str, ends: std::ops::Range<usize>| {
        thrice(|| {
            let connected = connect_from(hosts.client(), to, control);
            let accepted = listener.accept().expect("accepts").0;
            let ms = [connected, accepted].map(|socket| sample(&socket, Duration::ZERO).rto_us / 1000);
            ms[ends.clone()].iter().all(|timeout| (15..40).contains(timeout)).then_some(()).ok_or(ms)
        })
    };
    assert_eq!(are_short("c4_auto", 0..2), Ok(()), "in milliseconds");
    load::unload(&loaded.place).expect("unloads");
    assert_eq!(are_short("reno", 1..2), Ok(()), "accepted after unload, in milliseconds");
}

/// A router whose next link carries less says so, and what was too large is sent again (RFC 1191). Nothing was lost.
#[test]
fn a_smaller_path_mtu_is_no_timeout() {
    let Some(loaded) = Loaded::new("c5_", &["wl_newreno", "wl_checksum", "wl_auto"]) else { return };
    let hosts = Hosts::over_a_tunnel(1280);
    for (port, control) in [(6801, "c5_newreno"), (6802, "c5_checksum"), (6803, "c5_auto")] {
        let (listener, to) = hosts.listen(port);
        // What it has learned of the path.
        hosts.client().ip("route flush cache").expect("flushes");
        let connected = connect_from(hosts.client(), to, control);
        let accepted = listener.accept().expect("accepts").0;
        // An initial window.
        carry((&connected, &accepted), 14_000);
        let after = sample(&connected, Duration::ZERO);
        assert!(after.retransmitted > 0, "{control}: {after:?}");
        let counts = &own(&loaded, &connected).expect("is listed").counts;
        assert_eq!(counts["timeouts"], 0, "{control}: {counts:?}");
        assert!(after.cwnd >= 10 && after.ssthresh > 1_000_000, "{control}: slow start is over: {after:?}");
    }
}

/// Both ends of a connection of several paths (MPTCP); nothing where the kernel has none.
fn multipath((near, far): (&Namespace, &Namespace), to: SocketAddr) -> Option<(TcpStream, TcpStream)> {
    const MPTCP: i32 = 262;
    if near.sysctl("mptcp/enabled", "1").is_err() || far.sysctl("mptcp/enabled", "1").is_err() {
        skip("this kernel has no MPTCP");
        return None;
    }
    let address = nix::sys::socket::SockaddrStorage::from(to);
    let listener = far.run(|| {
        let socket = socket(MPTCP);
        nix::sys::socket::bind(socket.as_raw_fd(), &address).expect("a port");
        nix::sys::socket::listen(&socket, nix::sys::socket::Backlog::new(4).expect("few")).expect("listens");
        TcpListener::from(socket)
    });
    let connected = near.run(|| {
        let socket = socket(MPTCP);
        nix::sys::socket::connect(socket.as_raw_fd(), &address).expect("connects");
        TcpStream::from(socket)
    });
    Some((connected, listener.accept().expect("accepts").0))
}

/// What a CUBIC connection has, of 4 Mbit/s, beside one that is opened between the hosts by `open` and that a rule gives `wl_auto`; nothing where it cannot
/// be opened here.
fn beside(open: impl Fn((&Namespace, &Namespace), SocketAddr) -> Option<(TcpStream, TcpStream)>) -> Option<f64> {
    let bed = bed(&Link { rate_bps: 4_000_000, queue_packets: 8, ..Link::default() });
    let to = |port| SocketAddr::new(bed.plan().address(1, false), port);
    let hosts = (bed.namespace(0), bed.namespace(1));
    let own = open(hosts, to(RULED))?;
    let other = connect_across(hosts, to(RULED + 1), "cubic");
    let runs = thread::scope(|scope| {
        let watch = |connection| scope.spawn(move || watch(connection, Duration::from_secs(6), (0, 0)));
        [&own, &other].map(watch).map(|thread| thread.join().expect("a transfer").mbps())
    });
    println!("{runs:?} Mbit/s");
    Some(runs[1])
}

/// A port of which a rule says that connections to it have `wl_auto`.
const RULED: u16 = 6602;

fn rule(loaded: &Loaded, group: &str) -> Group {
    let group = Group::enter(group);
    select::add(&loaded.place, "wl_auto", &Match { port: Some(RULED), prefix: None }, Some(&group.folder)).expect("a rule");
    group
}

/// A rule is looked for before the kernel has chosen the first sequence number. Some of them lie before, some behind what the control may take for it.
#[test]
fn chosen_by_a_rule_auto_leaves_others_their_share() {
    let Some(loaded) = Loaded::new("c6_", &["wl_auto"]) else { return };
    let _group = rule(&loaded, "c6r_");
    let plain = |(near, far): (&Namespace, &Namespace), to| {
        let listener = far.run(|| TcpListener::bind(to)).expect("a port");
        let connected = near.run(|| TcpStream::connect(to)).expect("connects");
        assert_eq!(control_of(&connected), "c6_auto");
        Some((connected, listener.accept().expect("accepts").0))
    };
    let shares = thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| beside(plain))).collect();
        threads.into_iter().map(|thread| thread.join().expect("two transfers").expect("is opened")).collect::<Vec<_>>()
    });
    assert!(shares.iter().all(|&mbps| mbps > 0.8), "{shares:?} Mbit/s");
}

/// The options of MPTCP leave no room for nonces. Both ends agree on reports, but of what is lost nothing can be explained: it has to be heeded all the
/// same.
#[test]
fn over_several_paths_auto_leaves_others_their_share() {
    let Some(loaded) = Loaded::new("c7_", &["wl_auto"]) else { return };
    let _group = rule(&loaded, "c7m_");
    if let Some(mbps) = beside(multipath) {
        assert!(mbps > 0.8, "{mbps} Mbit/s");
        assert_eq!(reports(&loaded)["nonces"], 0, "there is room after all");
    }
}

/// Of connections of several paths (MPTCP) each path is a connection of its own with a control.
#[test]
fn multipath_connections_carry_data() {
    let Some(loaded) = load() else { return };
    let hosts = Hosts::pair(1500);
    let to = SocketAddr::new(SERVER.parse().expect("an address"), 6601);
    let group = Group::enter("c1m_");
    select::add(&loaded.place, "wl_checksum", &Match { port: Some(6601), prefix: None }, Some(&group.folder)).expect("a rule");
    let Some((connected, accepted)) = multipath((hosts.client(), hosts.server()), to) else { return };
    carry((&connected, &accepted), 2_000_000);
    carry((&accepted, &connected), 2_000_000);
    let paths = stat(&loaded.place).expect("counts").connections;
    let paths: Vec<_> = paths.iter().filter(|path| path.control == CONTROL && path.acked_bytes >= 2_000_000).collect();
    assert_eq!((paths.len(), agreed(&loaded)), (2, 2), "one path has two ends, which agree");
    let multipath = hosts.server().run(|| std::fs::read_to_string("/proc/thread-self/net/netstat")).expect("counters");
    let mut lines = multipath.lines().filter_map(|line| line.strip_prefix("MPTcpExt: "));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let count = |name: &str| names.split(' ').zip(values.split(' ')).find(|pair| pair.0 == name).map(|pair| pair.1);
    assert_eq!(count("MPCapableACKRX"), Some("1"), "it has fallen back to TCP: {names} {values}");
    assert!(paths.iter().all(|path| path.counts["losses"] == 0), "{paths:?}");
}

fn listen(host: &Namespace, at: SocketAddr, control: &str) -> TcpListener {
    host.run(|| {
        let socket = socket(libc::IPPROTO_TCP);
        set_control(&socket, control).expect("is loaded");
        nix::sys::socket::bind(socket.as_raw_fd(), &nix::sys::socket::SockaddrStorage::from(at)).expect("a port");
        nix::sys::socket::listen(&socket, nix::sys::socket::Backlog::MAXCONN).expect("listens");
        TcpListener::from(socket)
    })
}

fn socket(protocol: i32) -> OwnedFd {
    // SAFETY: a system call without pointers; what it gives is ours alone.
    unsafe {
        let number = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, protocol);
        assert!(number >= 0, "{}", io::Error::last_os_error());
        OwnedFd::from_raw_fd(number)
    }
}

fn set_option(socket: &impl std::os::fd::AsRawFd, option: i32, value: i32) {
    let length = std::mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: the value lives during the call, and its length is given.
    let done = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, (&raw const value).cast(), length) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

/// `TCPI_OPT_SYN_DATA` of linux/tcp.h: the peer has taken the data in the SYN.
const SYN_DATA: u8 = 32;

/// `tcpi_options`.
fn tcp_options(socket: &TcpStream) -> u8 {
    // The options are the sixth octet of `struct tcp_info` (linux/tcp.h).
    let mut info = [0_u8; 8];
    let mut length = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes no more than `length` octets.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut length)
    };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
    info[5]
}
