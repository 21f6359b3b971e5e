//! Two hosts of the kernel's with an emulated link between them, and transfers whose window is watched.
#![allow(dead_code)]

use super::traffic::{carry, connect_across};
use nix::libc;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use whyloss_net::emulate::{Audit, Options, Stretch};
use whyloss_net::namespace::Namespace;
use whyloss_net::{Emulator, Tun};
use whyloss_sim::{ChannelSpec, Discipline, LinkSpec, QueueLimit};
use whyloss_transport::{self as transport, BitRate};

/// A link, the same in both directions but for what it does to data.
#[derive(Clone, Debug)]
pub struct Link {
    pub rate_bps: u64,
    pub delay_ms: u64,
    pub queue_packets: u32,
    /// Errors of the packets from the sender.
    pub channel: ChannelSpec,
    /// Errors of those to the sender.
    pub channel_back: ChannelSpec,
    /// How the queue on that way drops or marks; with one, both hosts use ECN.
    pub discipline: Option<Discipline>,
    /// When the application pauses, from and to, in milliseconds.
    pub pause_ms: (u64, u64),
    /// What the application sets by `SO_MAX_PACING_RATE`.
    pub max_pacing_bps: Option<u64>,
    /// The largest window that the sender's route allows, in segments.
    pub cwnd_clamp: Option<u32>,
    pub seed: u64,
}

impl Default for Link {
    /// 10 Mbit/s, 20 ms there and back, a queue of three bandwidth-delay products.
    fn default() -> Self {
        Self {
            rate_bps: 10_000_000,
            delay_ms: 10,
            queue_packets: 50,
            channel: ChannelSpec::default(),
            channel_back: ChannelSpec::default(),
            discipline: None,
            pause_ms: (0, 0),
            max_pacing_bps: None,
            cwnd_clamp: None,
            seed: 1,
        }
    }
}

impl Link {
    /// For an emulator: what packets from the sender cross, and what those back to it do.
    pub fn chains(&self) -> [Vec<Stretch>; 2] {
        let chain = |name: &str, channel: &ChannelSpec, discipline| {
            let spec = LinkSpec {
                rate: BitRate::from_bps(self.rate_bps),
                delay: transport::Duration::from_millis(self.delay_ms),
                queue: QueueLimit::Packets(self.queue_packets),
                discipline,
                channel: channel.clone(),
                ..LinkSpec::default()
            };
            vec![Stretch { name: name.to_owned(), spec }]
        };
        [chain("there", &self.channel, self.discipline), chain("back", &self.channel_back, None)]
    }
}

/// What the sender's kernel said of its window at one time.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub at: Duration,
    pub cwnd: u32,
    pub ssthresh: u32,
    /// 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub state: u8,
    pub rtt_us: u32,
    pub rto_us: u32,
    pub retransmitted: u32,
    /// In octets a second.
    pub pacing_rate: u64,
}

impl Sample {
    /// Windows that are paced over an SRTT, of segments of 1448 octets.
    pub fn paced_windows(&self) -> f64 {
        self.pacing_rate as f64 * f64::from(self.rtt_us) * 1e-6 / 1448.0 / f64::from(self.cwnd)
    }
}

/// A transfer that is over.
#[derive(Debug)]
pub struct Run {
    pub received: u64,
    pub seconds: f64,
    pub samples: Vec<Sample>,
    /// Of the direction of the data.
    pub audit: Audit,
}

impl Run {
    pub fn mbps(&self) -> f64 {
        self.received as f64 * 8e-6 / self.seconds
    }

    /// Packets that the queue had no room for.
    pub fn dropped(&self) -> u64 {
        self.audit.hops[0].dropped.iter().filter(|(cause, _)| *cause == "queue-full").map(|(_, count)| count).sum()
    }

    /// Segments by which the window grew in a round trip of congestion avoidance, outside recovery.
    pub fn growth(&self) -> f64 {
        let (mut grown, mut rounds) = (0.0, 0.0);
        for pair in self.samples.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            let open = |sample: &Sample| sample.state == 0 && sample.cwnd >= sample.ssthresh;
            if open(before) && open(after) && after.cwnd >= before.cwnd && after.retransmitted == before.retransmitted {
                grown += f64::from(after.cwnd - before.cwnd);
                rounds += after.at.saturating_sub(before.at).as_secs_f64() * 1e6 / f64::from(before.rtt_us);
            }
        }
        grown / rounds
    }

    /// Mean window in segments.
    pub fn mean_cwnd(&self) -> f64 {
        self.samples.iter().map(|sample| f64::from(sample.cwnd)).sum::<f64>() / self.samples.len() as f64
    }
}

/// Two hosts with `link` between them.
struct Hosts {
    near: Namespace,
    far: Namespace,
    emulator: Emulator,
}

impl Hosts {
    fn across(link: &Link) -> Self {
        let (near, far) = (Namespace::new().expect("a namespace"), Namespace::new().expect("a namespace"));
        let ends = [(&near, 1, 2), (&far, 2, 1)].map(|(namespace, own, other)| {
            let tun = namespace.run(|| Tun::open("wire")).expect("a TUN device");
            namespace.sysctl("ipv6/conf/wire/disable_ipv6", "1").expect("no IPv6");
            namespace.sysctl("ipv4/tcp_ecn", if link.discipline.is_some() { "1" } else { "0" }).expect("ECN");
            namespace
                .ip(&format!("addr add 10.8.0.{own} peer 10.8.0.{other} dev wire\nlink set wire up multicast off"))
                .expect("an address");
            tun
        });
        let emulator = Emulator::start(ends, link.chains(), &Options::new(link.seed, 0)).expect("an emulator");
        Self { near, far, emulator }
    }

    fn connect(&self, port: u16, control: &str) -> (TcpStream, TcpStream) {
        connect_across((&self.near, &self.far), SocketAddr::new([10, 8, 0, 2].into(), port), control)
    }

    fn audit(self) -> Audit {
        self.emulator.stop().expect("an audit").remove(0)
    }
}

/// Sends over `link` under `control` for `time`.
pub fn transfer(control: &str, link: &Link, time: Duration) -> Run {
    let hosts = Hosts::across(link);
    if let Some(clamp) = link.cwnd_clamp {
        hosts.near.ip(&format!("route replace 10.8.0.2/32 dev wire cwnd lock {clamp}")).expect("a route");
        // The kernel takes it from what it remembers of a destination, and remembers with the first connection that ends.
        let first = hosts.connect(5200, "reno");
        carry((&first.0, &first.1), 1000);
        drop(first);
        thread::sleep(Duration::from_millis(100));
    }
    let connection = hosts.connect(5201, control);
    if let Some(rate) = link.max_pacing_bps {
        limit_pacing(&connection.0, rate / 8);
    }
    let run = watch(&connection, time, link.pause_ms);
    Run { audit: hosts.audit(), ..run }
}

/// Sends over `link` under both controls at once for `time`.
pub fn transfers_beside(controls: [&str; 2], link: &Link, time: Duration) -> [Run; 2] {
    let hosts = Hosts::across(link);
    let connections = [(5201, controls[0]), (5202, controls[1])].map(|(port, control)| hosts.connect(port, control));
    let runs = thread::scope(|scope| {
        let threads = connections.each_ref().map(|connection| scope.spawn(|| watch(connection, time, link.pause_ms)));
        threads.map(|thread| thread.join().expect("a transfer"))
    });
    let audit = hosts.audit();
    runs.map(|run| Run { audit: audit.clone(), ..run })
}

/// Sends from one end of a connection to the other for `time`, but not from `pause_ms.0` to `pause_ms.1`. Links are not audited.
pub fn watch((sender, receiver): &(TcpStream, TcpStream), time: Duration, pause_ms: (u64, u64)) -> Run {
    sender.set_write_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    receiver.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
    let (over, received) = (AtomicBool::new(false), AtomicU64::new(0));
    let start = Instant::now();
    let samples = thread::scope(|scope| {
        scope.spawn(|| {
            let (mut sender, octets) = (sender, vec![7; 1 << 14]);
            let pause = pause_ms.0..pause_ms.1;
            while !over.load(Ordering::Relaxed) {
                if pause.contains(&(start.elapsed().as_millis() as u64)) {
                    thread::sleep(Duration::from_millis(1));
                } else {
                    let _ = sender.write(&octets);
                }
            }
        });
        scope.spawn(|| {
            let (mut receiver, mut octets) = (receiver, vec![0; 1 << 16]);
            while !over.load(Ordering::Relaxed) {
                received.fetch_add(receiver.read(&mut octets).unwrap_or(0) as u64, Ordering::Relaxed);
            }
        });
        let mut samples = Vec::new();
        while start.elapsed() < time {
            samples.push(sample(sender, start.elapsed()));
            thread::sleep(Duration::from_millis(4));
        }
        over.store(true, Ordering::Relaxed);
        samples
    });
    Run { received: received.into_inner(), seconds: start.elapsed().as_secs_f64(), samples, audit: Audit::default() }
}

/// Sets `SO_MAX_PACING_RATE`, in octets a second.
fn limit_pacing(socket: &TcpStream, rate: u64) {
    let size = std::mem::size_of_val(&rate) as libc::socklen_t;
    // SAFETY: the kernel reads `size` octets of `rate`.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, (&raw const rate).cast(), size)
    };
    assert_eq!(result, 0, "SO_MAX_PACING_RATE");
}

/// What the kernel says of a connection; `at` is kept as it is.
pub fn sample(socket: &TcpStream, at: Duration) -> Sample {
    // SAFETY: a structure of integers, for which zeros are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut size = std::mem::size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` octets into `info`, which has as many.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &raw mut size) };
    assert_eq!(result, 0, "TCP_INFO");
    Sample {
        at,
        cwnd: info.tcpi_snd_cwnd,
        ssthresh: info.tcpi_snd_ssthresh,
        state: info.tcpi_ca_state,
        rtt_us: info.tcpi_rtt,
        rto_us: info.tcpi_rto,
        retransmitted: info.tcpi_total_retrans,
        pacing_rate: info.tcpi_pacing_rate,
    }
}
