//! Measures the engine on the wire beside smoltcp: bulk data between the Linux kernel and a stack in user space, over a TUN device.
//!
//! The engine sends with and without segmentation offload; smoltcp has none. All are measured in turns, in both directions, each on a thread of its own that is bound to the first processor, the kernel's
//! end to the second. What counts is the ratio within one run. Beside the rate by the clock stands the rate by the processor time of the
//! stack's thread: what one processor of its own would give, which other work on the machine disturbs less.
#![forbid(unsafe_code)]

#[path = "../report.rs"]
mod report;

use clap::Parser;
use nix::sched::{sched_setaffinity, CpuSet};
use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeValLike;
use nix::time::{clock_gettime, ClockId};
use nix::unistd::Pid;
use report::Entry;
use smoltcp::iface::{Config as InterfaceConfig, Interface, SocketSet};
use smoltcp::phy::{self, Device, Medium, TunTapInterface};
use smoltcp::socket::tcp as smol;
use smoltcp::wire::{HardwareAddress, IpCidr};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use whyloss_net::namespace::{missing_capability, Namespace};
use whyloss_net::{Application, Host, Tun};
use whyloss_transport::scheme::Selection;
use whyloss_transport::stack::{ConnectionId, Listener, Notice, Settings, Stack};
use whyloss_transport::tcp::{Command, Config, Event};
use whyloss_transport::Payload;

const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const STACK: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const PORT: u16 = 6001;
const DEVICE: &str = "bench";
/// Data moves in pieces of this many octets.
const PIECE: usize = 1 << 18;

/// Speed of the engine on the wire.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where the results go as JSON.
    #[arg(long, default_value = "bench-wire.json")]
    out: PathBuf,
    /// Seconds of each measurement, after a warm-up of a quarter as much.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// How often each is measured; the median counts.
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// Octets of each buffer.
    #[arg(long, default_value_t = 1 << 20)]
    buffer: usize,
    /// The largest IP packet, in octets.
    #[arg(long, default_value_t = 1500)]
    mtu: u16,
    /// Measure this stack only, and this direction.
    #[arg(long, num_args = 2)]
    only: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Sending,
    Receiving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Engine,
    /// Each segment in a packet of its own.
    EngineSingly,
    Smoltcp,
}

impl Subject {
    const fn name(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::EngineSingly => "engine-singly",
            Self::Smoltcp => "smoltcp",
        }
    }

    /// Those that differ in this direction.
    const fn all(direction: Direction) -> &'static [Self] {
        match direction {
            Direction::Sending => &[Self::Engine, Self::EngineSingly, Self::Smoltcp],
            Direction::Receiving => &[Self::Engine, Self::Smoltcp],
        }
    }
}

/// Bits of data a second.
#[derive(Clone, Copy, Debug)]
struct Rates {
    /// By the wall clock.
    wall: f64,
    /// By the processor time of the stack's thread.
    cpu: f64,
    /// The share of that time that passed outside of system calls.
    own: f64,
}

/// What the threads of one measurement share.
#[derive(Debug, Default)]
struct Board {
    stop: AtomicBool,
    ready: AtomicBool,
    /// Octets that have arrived.
    arrived: AtomicU64,
}

impl Board {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

fn main() -> io::Result<()> {
    let arguments = Arguments::parse();
    if let Some(reason) = missing_capability() {
        eprintln!("wire: skipped: {reason}");
        return Ok(());
    }
    eprintln!("wire: kernel <-> stack over TUN, MTU {}, buffers of {} octets", arguments.mtu, arguments.buffer);
    let mut entries = Vec::new();
    for direction in [Direction::Sending, Direction::Receiving] {
        let subjects = Subject::all(direction);
        let way = format!("{direction:?}").to_lowercase();
        let mut rates = vec![Vec::new(); subjects.len()];
        for _ in 0..arguments.repetitions.max(1) {
            for (subject, rates) in subjects.iter().zip(&mut rates) {
                let name = subject.name();
                if arguments.only.as_ref().is_none_or(|only| *only == [name, way.as_str()]) {
                    let rate = measure(*subject, direction, &arguments)?;
                    let Rates { wall, cpu, own } = rate;
                    eprintln!(
                        "  {name} {way}: {:.3} Gbit/s, {:.3} a core, {:.0} % of its time outside of system calls",
                        wall / 1e9,
                        cpu / 1e9,
                        own * 100.0
                    );
                    rates.push(rate);
                }
            }
        }
        for (what, by) in [("", (|rates| rates.wall) as fn(&Rates) -> f64), ("-per-core", |rates| rates.cpu)] {
            let mut medians =
                subjects.iter().zip(&rates).map(|(subject, rates)| (subject, median(rates.iter().map(by).collect())));
            let Some((_, Some(engine))) = medians.next() else { continue };
            let entry = Entry::new(format!("wire/mtu-{}/{way}{what}", arguments.mtu), engine, "bit/s");
            let bar = if direction == Direction::Sending { 2.7e9 } else { 7e9 };
            let entry = if arguments.mtu == 1500 { entry.limit("target", bar) } else { entry };
            entries.push(medians.fold(entry, |entry, (subject, rate)| match rate {
                Some(rate) => entry.peer(subject.name(), rate),
                None => entry,
            }));
        }
    }
    report::print(&entries);
    std::fs::write(&arguments.out, serde_json::to_string_pretty(&entries)?)?;
    eprintln!("written to {}", arguments.out.display());
    Ok(())
}

fn median(mut rates: Vec<f64>) -> Option<f64> {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

fn measure(subject: Subject, direction: Direction, arguments: &Arguments) -> io::Result<Rates> {
    let namespace = Namespace::new()?;
    namespace.ip(&format!(
        "tuntap add {DEVICE} mode tun\nlink set {DEVICE} mtu {} txqueuelen 2000 up\naddr add {KERNEL}/24 dev {DEVICE}",
        arguments.mtu
    ))?;
    let board = Board::default();
    thread::scope(|scope| {
        // Named for profilers.
        let stack = thread::Builder::new().name("stack".to_owned()).spawn_scoped(scope, || {
            bind_to(0);
            namespace.enter()?;
            match subject {
                Subject::Engine if direction == Direction::Sending => {
                    engine(Tun::open_offloading(DEVICE)?, direction, &board, arguments)
                }
                Subject::Engine | Subject::EngineSingly => engine(Tun::open(DEVICE)?, direction, &board, arguments),
                Subject::Smoltcp => smoltcp(direction, &board, arguments),
            }?;
            let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
            let [user, system] = [usage.user_time(), usage.system_time()].map(|time| time.num_microseconds() as f64);
            io::Result::Ok((Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?), user / (user + system)))
        })?;
        let kernel = scope.spawn(|| {
            bind_to(1);
            namespace.enter()?;
            while !board.ready.load(Ordering::Acquire) && !board.stopped() {
                thread::sleep(Duration::from_millis(1));
            }
            kernel(direction, &board)
        });
        while !board.ready.load(Ordering::Acquire) && !stack.is_finished() {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_secs_f64(arguments.seconds / 4.0));
        let (start, before) = (Instant::now(), board.arrived.load(Ordering::Relaxed));
        thread::sleep(Duration::from_secs_f64(arguments.seconds));
        let octets = board.arrived.load(Ordering::Relaxed) - before;
        let wall = octets as f64 * 8.0 / start.elapsed().as_secs_f64();
        board.stop.store(true, Ordering::Relaxed);
        let (busy, own) = stack.join().expect("the stack's thread")?;
        kernel.join().expect("the kernel's thread")?;
        Ok(Rates { wall, cpu: board.arrived.load(Ordering::Relaxed) as f64 * 8.0 / busy.as_secs_f64(), own })
    })
}

/// Binds the calling thread to the processor with this number among those that there are.
fn bind_to(processor: usize) {
    let mut set = CpuSet::new();
    let count = thread::available_parallelism().map_or(1, usize::from);
    if set.set(processor % count).is_ok() {
        // Without it the measurement is only noisier.
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Connects to the stack. A SYN that leaves before the device is ready is lost, and the kernel's next would come a second later.
fn connect(board: &Board) -> io::Result<TcpStream> {
    loop {
        match TcpStream::connect_timeout(&(STACK, PORT).into(), Duration::from_millis(100)) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut && !board.stopped() => {}
            result => return result,
        }
    }
}

/// The kernel's end of the connection, until the measurement is over.
fn kernel(direction: Direction, board: &Board) -> io::Result<()> {
    let mut stream = connect(board)?;
    setsockopt(&stream, sockopt::TcpCongestion, &"cubic".into())?;
    // A look at the clock now and then is all that is needed to end.
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    stream.set_write_timeout(Some(Duration::from_millis(100)))?;
    let mut piece = vec![7; PIECE];
    while !board.stopped() {
        let moved = match direction {
            Direction::Sending => stream.read(&mut piece).map(|length| board.arrived.fetch_add(length as u64, Ordering::Relaxed)),
            Direction::Receiving => stream.write(&piece).map(|length| length as u64),
        };
        match moved {
            Err(error) if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) && !board.stopped() => {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sends without end, or takes whatever comes.
struct Bulk<'a> {
    direction: Direction,
    piece: Payload,
    board: &'a Board,
}

impl Bulk<'_> {
    fn pump(&mut self, now: whyloss_transport::Instant, stack: &mut Stack, id: ConnectionId) {
        let mut arrived = 0;
        while let Some(data) = stack.read(now, id, PIECE) {
            arrived += data.len() as u64;
        }
        if self.direction == Direction::Receiving {
            self.board.arrived.fetch_add(arrived, Ordering::Relaxed);
        }
    }

    fn fill(&mut self, now: whyloss_transport::Instant, stack: &mut Stack, id: ConnectionId) {
        if self.direction == Direction::Receiving {
            return;
        }
        loop {
            let room = stack.endpoint(id).map_or(0, whyloss_transport::Endpoint::send_space) as usize;
            if room == 0 {
                return;
            }
            stack.command(now, id, Command::Send(self.piece.slice(0, room.min(PIECE))));
        }
    }
}

impl Application for Bulk<'_> {
    fn notice(&mut self, now: whyloss_transport::Instant, stack: &mut Stack, notice: Notice) {
        match notice {
            Notice::Event(id, Event::Readable) => self.pump(now, stack, id),
            Notice::Event(id, Event::Connected | Event::Writable) => self.fill(now, stack, id),
            _ => {}
        }
    }

    fn is_done(&self, _stack: &Stack) -> bool {
        self.board.stopped()
    }
}

fn engine(tun: Tun, direction: Direction, board: &Board, arguments: &Arguments) -> io::Result<()> {
    let mut host = Host::new(tun, Settings { addresses: vec![STACK.into()], mtu: arguments.mtu, key: [7; 16] });
    let buffer = arguments.buffer as u64;
    let config = Config { mss: arguments.mtu - 40, receive_buffer: buffer, send_buffer: buffer, ..Config::modern() };
    assert!(config.sack && config.rack, "loss recovery is on");
    let listener = Listener { config, selection: Selection::scheme("cubic"), backlog: 1 };
    host.stack().listen(SocketAddr::new(STACK.into(), PORT), listener).map_err(io::Error::other)?;
    board.ready.store(true, Ordering::Release);
    let mut bulk = Bulk { direction, piece: Payload::Bytes(vec![7; PIECE].into()), board };
    while !board.stopped() {
        let until = host.now() + whyloss_transport::Duration::from_millis(50);
        host.run(&mut bulk, until)?;
    }
    Ok(())
}

fn smoltcp(direction: Direction, board: &Board, arguments: &Arguments) -> io::Result<()> {
    let mut device = TunTapInterface::new(DEVICE, Medium::Ip)?;
    assert_eq!(device.capabilities().max_transmission_unit, usize::from(arguments.mtu));
    let descriptor = device.as_raw_fd();
    let mut interface = Interface::new(InterfaceConfig::new(HardwareAddress::Ip), &mut device, smoltcp::time::Instant::now());
    interface.update_ip_addrs(|addresses| addresses.push(IpCidr::new(STACK.into(), 24)).expect("room for one"));
    let buffer = || smol::SocketBuffer::new(vec![0; arguments.buffer]);
    let mut socket = smol::Socket::new(buffer(), buffer());
    socket.set_congestion_control(smol::CongestionControl::Cubic);
    socket.listen(PORT).map_err(|error| io::Error::other(format!("{error:?}")))?;
    let mut sockets = SocketSet::new(Vec::new());
    let handle = sockets.add(socket);
    let piece = vec![7; PIECE];
    board.ready.store(true, Ordering::Release);
    while !board.stopped() {
        let now = smoltcp::time::Instant::now();
        interface.poll(now, &mut device, &mut sockets);
        let socket = sockets.get_mut::<smol::Socket<'_>>(handle);
        while direction == Direction::Receiving && socket.can_recv() {
            let length = socket.recv(|octets| (octets.len(), octets.len())).unwrap_or(0);
            board.arrived.fetch_add(length as u64, Ordering::Relaxed);
        }
        while direction == Direction::Sending && socket.can_send() {
            if socket.send_slice(&piece).unwrap_or(0) == 0 {
                break;
            }
        }
        let most = smoltcp::time::Duration::from_millis(50);
        let delay = interface.poll_delay(now, &sockets).unwrap_or(most).min(most);
        phy::wait(descriptor, Some(delay))?;
    }
    Ok(())
}
