//! Test beds: hosts, routers and links between them.

mod support;

use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::skip::skip;
use whyloss_net::bulk::{BulkTransfer, Load};
use whyloss_net::emulate::{Options, Stretch};
use whyloss_net::testbed::{Plan, Testbed, TestbedError, WireLink, WireNode};
use whyloss_net::Host;
use whyloss_sim::{ChannelSpec, LinkSpec, QueueLimit};
use whyloss_transport::scheme::Selection;
use whyloss_transport::stack::Settings;
use whyloss_transport::tcp::Config;
use whyloss_transport::{self as transport, BitRate};

fn hop(from: &str, to: &str, delay_ms: u64) -> Stretch {
    let (rate, delay) = (BitRate::from_bps(100_000_000), transport::Duration::from_millis(delay_ms));
    let spec = LinkSpec { rate, delay, queue: QueueLimit::Packets(100), channel: ChannelSpec::default(), ..LinkSpec::default() };
    Stretch { name: format!("{from}>{to}"), spec }
}

/// a, the router r, b: 2 ms and 3 ms.
fn plan() -> Plan {
    let node = |name: &str, router| WireNode { name: name.to_owned(), router };
    let link = |ends, [a, b]: [&str; 2], delay| WireLink {
        ends,
        ways: [vec![hop(a, b, delay)], vec![hop(b, a, delay)]],
        ..WireLink::default()
    };
    let links = vec![link([0, 1], ["a", "r"], 2), link([1, 2], ["r", "b"], 3)];
    Plan { nodes: vec![node("a", false), node("r", true), node("b", false)], links, mtu: 1400 }
}

fn bed() -> Option<Testbed> {
    match Testbed::new(plan(), &Options::new(1, 0)) {
        Ok(bed) => Some(bed),
        Err(TestbedError::Unavailable(reason)) => {
            skip(&reason);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn shell(bed: &Testbed, node: usize, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = bed.spawn(node, command).unwrap().wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn hosts_reach_each_other_by_name_and_version_and_nobody_speaks_unasked() {
    let Some(bed) = bed() else { return };
    std::thread::sleep(Duration::from_millis(1200));
    for audit in bed.audit() {
        assert_eq!(audit.received, 0, "{} is quiet", audit.name);
    }
    let names = shell(&bed, 0, "getent ahostsv4 b; getent ahostsv6 b");
    for v6 in [false, true] {
        let to = bed.plan().address(2, v6);
        assert!(names.contains(&to.to_string()), "{names}");
        let there = bed.namespace(2).run(|| UdpSocket::bind((to, 7))).unwrap();
        let here = bed.namespace(0).run(|| UdpSocket::bind((bed.plan().address(0, v6), 0))).unwrap();
        for _ in 0..3 {
            let start = Instant::now();
            here.send_to(&[1; 100], (to, 7)).unwrap();
            let (_, from) = there.recv_from(&mut [0; 200]).unwrap();
            there.send_to(&[1; 100], from).unwrap();
            here.recv(&mut [0; 200]).unwrap();
            // There and back over both links.
            assert!(start.elapsed() >= Duration::from_millis(10), "{:?}", start.elapsed());
        }
    }
    for audit in bed.stop().unwrap() {
        assert_eq!((audit.received, audit.sent, audit.refused), (6, 6, 0), "{}", audit.name);
    }
}

#[test]
fn a_process_finds_itself_on_its_host() {
    let Some(bed) = bed() else { return };
    assert_eq!(shell(&bed, 2, "hostname; pwd"), format!("b\n{}\n", std::env::current_dir().unwrap().display()));
    let devices = shell(&bed, 1, "ip -o link | cut -d' ' -f2,4,5");
    assert!(devices.contains("to-a: mtu 1400") && devices.contains("to-b: mtu 1400"), "{devices}");
    // It sees processes of the bed and no others, and what it starts and leaves behind is among them.
    let processes = shell(&bed, 0, "sleep 97 > /dev/null & echo /proc/[0-9]* | wc -w");
    assert!(processes.trim().parse::<u32>().unwrap() < 8, "{processes}");
    let seen = shell(&bed, 2, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
    assert!(seen.contains("sleep 97"), "{seen}");
    let outside = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    assert!(!outside.contains("10.77.0.1"), "the bed's names are the bed's alone");
}

fn is_gone(pid: u32) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(5) {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        if state.map_or(true, |text| text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn processes_end_with_their_bed() {
    let Some(bed) = bed() else { return };
    let mut command = Command::new("sh");
    command.args(["-c", "setsid sleep 98 & echo; wait"]).stdout(Stdio::piped());
    let mut child = bed.spawn(0, command).unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let orphan = orphan("sleep\098");
    let own = child.id();
    drop(bed);
    assert!(is_gone(own) && is_gone(orphan));
    child.wait().unwrap();
}

/// The process with this command line.
fn orphan(command: &str) -> u32 {
    let start = Instant::now();
    loop {
        let found = std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
            (line.trim_end_matches('\0') == command).then_some(pid)
        });
        if let Some(pid) = found {
            return pid;
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{command:?} does not run");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The second half of the next test: a process that has a bed and is killed.
#[test]
#[ignore = "is started by another test, which kills it"]
fn victim() {
    let Some(bed) = bed() else { return };
    let mut command = Command::new("sh");
    command.args(["-c", "setsid sleep 99 & wait"]);
    let mut child = bed.spawn(0, command).unwrap();
    let orphan = orphan("sleep\099");
    println!("\nready {} {orphan} {}", child.id(), bed.namespace_path(0).display());
    child.wait().unwrap();
}

#[test]
fn nothing_is_left_of_a_process_that_is_killed() {
    if bed().is_none() {
        return;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "victim", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let line = lines.map_while(Result::ok).find(|line| line.starts_with("ready")).expect("a bed in another process");
    let words: Vec<_> = line.split(' ').collect();
    let pids = [1, 2].map(|at| words[at].parse::<u32>().unwrap());
    let inode = std::fs::metadata(words[3]).map(|metadata| std::os::unix::fs::MetadataExt::ino(&metadata)).unwrap();
    kill(Pid::from_raw(victim.id() as i32), Signal::SIGKILL).unwrap();
    victim.wait().unwrap();
    assert!(pids.into_iter().all(is_gone), "processes of the bed");
    // No process is left in its namespace, so that the kernel has taken it away.
    let left = std::fs::read_dir("/proc").unwrap().flatten().find(|entry| {
        std::fs::metadata(entry.path().join("ns/net"))
            .is_ok_and(|metadata| std::os::unix::fs::MetadataExt::ino(&metadata) == inode)
    });
    assert!(left.is_none(), "{left:?}");
}

#[test]
fn plans_that_make_no_bed_are_refused() {
    let mut named = plan();
    named.nodes[0].name = "a b".to_owned();
    let error = Testbed::new(named, &Options::new(1, 0)).unwrap_err();
    assert!(error.to_string().starts_with("a node is called `a b`"), "{error}");
    let error = Testbed::new(Plan { mtu: 500, ..plan() }, &Options::new(1, 0)).unwrap_err();
    assert!(error.to_string().starts_with("the MTU is 500 octets"), "{error}");
}

#[test]
fn guests_reach_each_other_across_the_links() {
    let Some(bed) = bed() else { return };
    let guest = |node| {
        let (tun, address) = bed.add_guest(node, 1).expect("a guest");
        (Host::new(tun, Settings { addresses: vec![address], mtu: 1400, key: [7; 16] }), address)
    };
    let ((sender, _), (receiver, address)) = (guest(0), guest(2));
    let config = Config::profile("linux").expect("a profile");
    let load = Load { octets: Some(100_000), connections: 1, chunk: 16_384, selection: Selection::default(), config };
    let transfer = BulkTransfer::new(sender, receiver, SocketAddr::new(address, 80), load);
    transfer.start(0).expect("a transfer");
    let began = Instant::now();
    while transfer.finished_ns().is_none() {
        assert!(began.elapsed() < Duration::from_secs(30), "{} octets arrived", transfer.delivered());
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = transfer.finished_ns().expect("it is finished") - transfer.started_ns();
    assert!(took > 20_000_000, "the handshake and the data take a round trip of 10 ms each: {took} ns");
}
