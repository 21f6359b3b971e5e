//! A host in virtual time: its sockets, its clock, and the packets that leave it.

use crate::descriptor::{Descriptor, Role, Seen};
use crate::errno::{self, Errno};
use crate::layout;
use bytes::Bytes;
use nix::libc;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::IntoRawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use whyloss_testkit::packetdrill::apply_sysctls;
use whyloss_testkit::settings::Settings;
use whyloss_transport::segment::Flags;
use whyloss_transport::seq::Seq;
use whyloss_transport::stack::{ConnectionId, Datagram, Listener, Notice, Settings as HostSettings, Stack};
use whyloss_transport::tcp::{Closing, Command, Event};
use whyloss_transport::wire::damage::{examine, Arrival};
use whyloss_transport::{Duration, Endpoint, Instant, Integrity, Payload, Segment};

/// When a script starts: not at 0, so that a clock that starts at 0 is seen running.
const START: Instant = Instant::from_nanos(100_000_000_000);
/// How long nothing has to happen until nothing more is waited for.
const PATIENCE: Duration = Duration::from_secs(7200);
/// What a look at the clock takes: packetdrill waits for the last microseconds by looking at it.
const LOOK: Duration = Duration::from_micros(1);
/// For a thread whose call has just returned to note when, in real time.
const MOMENT: std::time::Duration = std::time::Duration::from_micros(300);

/// Handshakes that a listener lets be under way once its options were changed.
const BACKLOG: usize = 128;

/// What an attempt at a system call came to.
pub enum Attempt<T> {
    /// It is done.
    Done(Result<T, Errno>),
    /// It has to wait; until then, if at all limited.
    Waits(Option<Instant>),
}

/// A world that several threads make system calls in. One of them lets time pass.
#[derive(Debug)]
pub struct Shared {
    world: Mutex<World>,
    /// Something has happened: who waits shall look.
    changed: Condvar,
    /// Somebody who waited has looked.
    looked: Condvar,
}

/// The host.
#[derive(Debug)]
pub struct World {
    pub(crate) now: Instant,
    pub(crate) stack: Stack,
    pub(crate) defaults: Settings,
    pub(crate) descriptors: BTreeMap<i32, Descriptor>,
    pub(crate) seen: BTreeMap<ConnectionId, Seen>,
    /// Packets with the time at which they leave and the number of segments in them.
    leaving: VecDeque<(Instant, Datagram, u32)>,
    /// The last of `leaving` can still grow.
    open: bool,
    /// Where the new data of each connection begins: repetitions leave one by one.
    fresh: BTreeMap<(u16, u16), Seq>,
    /// Calls that wait, with the time at which they give up.
    waiting: BTreeMap<u64, Option<Instant>>,
    tickets: u64,
    /// Counts what has happened.
    generation: u64,
    /// Of those who wait, how many have not looked since.
    unaware: usize,
    /// A call that had waited has returned.
    returned: bool,
}

impl Shared {
    /// A host as `flags` say: what packetdrill's scripts do with `sysctl` before they begin, and `address=`, `profile=` and other
    /// settings of the scripts in this repository, separated by blanks or lines. The error says what of it is not supported.
    pub fn new(flags: &str) -> Result<Self, String> {
        Ok(Self { world: Mutex::new(World::new(flags)?), changed: Condvar::new(), looked: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something that never waits.
    pub fn with<T>(&self, job: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.lock();
        let result = job(&mut world);
        world.settle();
        drop(self.tell(world));
        result
    }

    /// Makes a system call that may wait.
    pub fn wait<T>(&self, mut attempt: impl FnMut(&mut World) -> Attempt<T>) -> Result<T, Errno> {
        let mut world = self.lock();
        let mut ticket = None;
        loop {
            let outcome = attempt(&mut world);
            world.settle();
            match outcome {
                Attempt::Done(result) => {
                    if let Some(ticket) = ticket {
                        world.waiting.remove(&ticket);
                        world.returned = true;
                        self.looked.notify_all();
                    } else {
                        drop(self.tell(world));
                    }
                    return result;
                }
                Attempt::Waits(until) => {
                    let ticket = *ticket.get_or_insert_with(|| {
                        world.tickets += 1;
                        world.tickets
                    });
                    world.waiting.insert(ticket, until);
                    self.looked.notify_all();
                    let seen = world.generation;
                    while world.generation == seen {
                        world = self.changed.wait(world).unwrap_or_else(PoisonError::into_inner);
                    }
                    world.unaware -= 1;
                }
            }
        }
    }

    /// Lets everybody who waits look at what has happened, and waits until they have.
    fn tell<'a>(&'a self, mut world: MutexGuard<'a, World>) -> MutexGuard<'a, World> {
        if world.waiting.is_empty() {
            return world;
        }
        world.generation += 1;
        world.unaware += world.waiting.len();
        self.changed.notify_all();
        // The last one counts itself off before it looks; it holds the lock until it has.
        while world.unaware > 0 {
            world = self.looked.wait(world).unwrap_or_else(PoisonError::into_inner);
        }
        world
    }

    /// A packet arrives.
    pub fn arrive(&self, packet: &[u8]) {
        self.with(|world| world.arrive(packet));
    }

    /// Lets `span` pass.
    pub fn pass(&self, span: Duration) {
        let world = self.after_returns();
        let until = world.now + span;
        drop(self.advance(world, until));
    }

    /// The time; looking at it takes some.
    pub fn look(&self) -> Instant {
        let world = self.lock();
        let until = world.now + LOOK;
        self.advance(world, until).now
    }

    /// The next packet that leaves, however long that takes; `None` if there will be none.
    pub fn departure(&self) -> Option<(Instant, Vec<u8>)> {
        let mut world = self.after_returns();
        let patience = world.now + PATIENCE;
        loop {
            world.settle();
            while let Some((at, Datagram { addresses, mut segment }, segments)) = world.leaving.pop_front() {
                // As Linux does, so that the receiver hands a large packet on at once.
                if segments > 1 {
                    segment.flags |= Flags::PSH;
                }
                if let Ok(packet) = layout::packet(addresses, &segment) {
                    return Some((at, packet));
                }
            }
            let next = world.next_due().filter(|due| *due <= patience)?;
            world = self.advance(world, next);
        }
    }

    /// The world, once a thread whose call has returned has had a moment to say so.
    fn after_returns(&self) -> MutexGuard<'_, World> {
        let mut world = self.lock();
        if std::mem::take(&mut world.returned) {
            drop(world);
            thread::sleep(MOMENT);
            world = self.lock();
        }
        world
    }

    fn advance<'a>(&'a self, mut world: MutexGuard<'a, World>, until: Instant) -> MutexGuard<'a, World> {
        while let Some(due) = world.next_due().filter(|due| *due <= until) {
            world.now = world.now.max(due);
            let now = world.now;
            world.stack.handle_timeout(now);
            world.settle();
            for limit in world.waiting.values_mut() {
                // Whoever waited this long looks once more and gives up by itself.
                *limit = limit.filter(|limit| *limit > now);
            }
            world = self.tell(world);
        }
        world.now = world.now.max(until);
        world
    }
}

impl World {
    fn new(flags: &str) -> Result<Self, String> {
        let mut defaults = Settings::profile("linux").map_err(|error| error.to_string())?;
        defaults.set("congestion", "cubic").map_err(|error| error.to_string())?;
        let mut addresses: Vec<IpAddr> =
            vec![Ipv4Addr::new(192, 168, 0, 1).into(), Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1).into()];
        let mut commands = String::new();
        for line in flags.lines() {
            match line.trim().split_once('=').filter(|(key, _)| !key.contains([' ', '/', '.'])) {
                Some(("address", value)) => {
                    let address = value.parse().map_err(|_| format!("address={value}: no IP address"))?;
                    addresses.insert(0, address);
                }
                Some((key, value)) => defaults.set(key, value).map_err(|error| error.to_string())?,
                None => {
                    commands.push_str(line);
                    commands.push('\n');
                }
            }
        }
        apply_sysctls(&commands, &mut defaults)?;
        let stack = Stack::new(HostSettings { addresses, mtu: 1500, key: [7; 16] });
        Ok(Self {
            now: START,
            stack,
            defaults,
            descriptors: BTreeMap::new(),
            seen: BTreeMap::new(),
            leaving: VecDeque::new(),
            open: false,
            fresh: BTreeMap::new(),
            waiting: BTreeMap::new(),
            tickets: 0,
            generation: 0,
            unaware: 0,
            returned: false,
        })
    }

    fn next_due(&self) -> Option<Instant> {
        self.stack.poll_timeout().into_iter().chain(self.waiting.values().copied().flatten()).min()
    }

    fn arrive(&mut self, packet: &[u8]) {
        if let Arrival::Intact(arrived) = examine(&Bytes::copy_from_slice(packet)) {
            self.stack.handle(self.now, arrived.header.addresses, &arrived.segment, Integrity::Intact);
        }
    }

    /// Takes out of the stack what has happened and what leaves.
    fn settle(&mut self) {
        loop {
            let mut busy = false;
            while let Some(notice) = self.stack.poll_notice() {
                busy = true;
                self.hear(notice);
            }
            while let Some(datagram) = self.stack.poll_transmit(self.now) {
                busy = true;
                let Segment { src_port, dst_port, seq, .. } = datagram.segment;
                let end = seq + datagram.segment.seq_len();
                let fresh = self.fresh.entry((src_port, dst_port)).or_insert(seq);
                let repeated = seq.precedes(*fresh);
                *fresh = if fresh.precedes(end) { end } else { *fresh };
                match self.leaving.back_mut().filter(|_| self.open && !repeated) {
                    Some((at, last, segments))
                        if *at == self.now
                            && last.addresses == datagram.addresses
                            && layout::joins(&last.segment, &datagram.segment) =>
                    {
                        layout::join(&mut last.segment, &datagram.segment);
                        *segments += 1;
                    }
                    _ => self.leaving.push_back((self.now, datagram, 1)),
                }
                self.open = true;
            }
            if !busy {
                self.open = false;
                return;
            }
        }
    }

    fn hear(&mut self, notice: Notice) {
        let (id, event) = match notice {
            Notice::Accepted(id) => {
                let local = self.stack.tuple(id).map(|tuple| tuple.local);
                let listener =
                    self.descriptors.values_mut().find_map(|descriptor| match (&mut descriptor.role, descriptor.bound) {
                        (Role::Listener(queue), bound) if bound == local => Some(queue),
                        _ => None,
                    });
                if let Some(queue) = listener {
                    queue.push_back(id);
                }
                self.seen.insert(id, Seen { connected: true, ..Seen::default() });
                return;
            }
            Notice::Event(id, event) => (id, event),
        };
        let seen = self.seen.entry(id).or_default();
        match event {
            Event::Connected => seen.connected = true,
            Event::PeerClosed => seen.peer_closed = true,
            Event::Closed(how) => seen.over = Some(how),
            // Data for an application that has closed: RFC 9293, 3.6.1 asks for a reset.
            Event::Readable if seen.orphan => self.stack.command(self.now, id, Command::Abort),
            _ => {}
        }
    }

    pub(crate) fn descriptor(&mut self, fd: i32) -> Result<&mut Descriptor, Errno> {
        self.descriptors.get_mut(&fd).ok_or(Errno(libc::EBADF))
    }

    /// The connection behind a descriptor.
    pub(crate) fn connection(&self, fd: i32) -> Result<ConnectionId, Errno> {
        match self.descriptors.get(&fd).map(|descriptor| &descriptor.role) {
            Some(Role::Connection(id)) => Ok(*id),
            Some(_) => Err(Errno(libc::ENOTCONN)),
            None => Err(Errno(libc::EBADF)),
        }
    }

    /// A new socket.
    pub fn socket(&mut self, v6: bool, nonblocking: bool) -> i32 {
        let settings = self.defaults.clone();
        self.add(Descriptor {
            nonblocking,
            resets_on_close: false,
            v6,
            bound: None,
            settings,
            keep_alive: false,
            role: Role::Fresh,
        })
    }

    /// A number for a socket. The system knows it too, as a file that gives nothing: packetdrill closes what a script leaves open with the
    /// system's own call.
    fn add(&mut self, descriptor: Descriptor) -> i32 {
        let fd =
            File::open("/dev/null").map_or_else(|_| self.descriptors.keys().max().map_or(3, |last| last + 1), File::into_raw_fd);
        self.descriptors.insert(fd, descriptor);
        fd
    }

    /// `bind`.
    pub fn bind(&mut self, fd: i32, address: SocketAddr) -> Result<(), Errno> {
        self.descriptor(fd)?.bound = Some(address);
        Ok(())
    }

    /// `listen`.
    pub fn listen(&mut self, fd: i32, backlog: usize) -> Result<(), Errno> {
        let descriptor = self.descriptor(fd)?;
        let Some(local) = descriptor.bound else { return Err(Errno(libc::EINVAL)) };
        descriptor.role = Role::Listener(VecDeque::new());
        self.offer(local, fd, backlog)
    }

    /// What was set for a listener counts for the connections that come from now on.
    pub fn renew_listener(&mut self, fd: i32) -> Result<(), Errno> {
        let descriptor = self.descriptor(fd)?;
        match (&descriptor.role, descriptor.bound) {
            (Role::Listener(_), Some(local)) => {
                self.stack.unlisten(local);
                self.offer(local, fd, BACKLOG)
            }
            _ => Ok(()),
        }
    }

    fn offer(&mut self, local: SocketAddr, fd: i32, backlog: usize) -> Result<(), Errno> {
        let Settings { config, selection, .. } = self.descriptor(fd)?.settings.clone();
        let listener = Listener { config, selection, backlog: backlog.max(1) };
        self.stack.listen(local, listener).map_err(|_| Errno(libc::EADDRINUSE))
    }

    /// `accept`: the descriptor of the next connection and its peer.
    pub fn accept(&mut self, fd: i32) -> Attempt<(i32, SocketAddr)> {
        let descriptor = match self.descriptor(fd) {
            Ok(descriptor) => descriptor,
            Err(error) => return Attempt::Done(Err(error)),
        };
        let (nonblocking, v6, settings) = (descriptor.nonblocking, descriptor.v6, descriptor.settings.clone());
        let Role::Listener(queue) = &mut descriptor.role else { return Attempt::Done(Err(Errno(libc::EINVAL))) };
        let Some(id) = queue.pop_front() else {
            return if nonblocking { Attempt::Done(Err(Errno(libc::EAGAIN))) } else { Attempt::Waits(None) };
        };
        let remote = self.stack.tuple(id).map_or(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0), |tuple| tuple.remote);
        let role = Role::Connection(id);
        let fd = self.add(Descriptor {
            nonblocking: false,
            resets_on_close: false,
            v6,
            bound: None,
            settings,
            keep_alive: false,
            role,
        });
        Attempt::Done(Ok((fd, remote)))
    }

    /// `connect`.
    pub fn connect(&mut self, fd: i32, remote: SocketAddr) -> Attempt<()> {
        let now = self.now;
        let nonblocking = match self.descriptor(fd) {
            Ok(descriptor) => descriptor.nonblocking,
            Err(error) => return Attempt::Done(Err(error)),
        };
        if let Role::Fresh = self.descriptors[&fd].role {
            let Settings { config, selection, .. } = self.descriptors[&fd].settings.clone();
            let Ok(id) = self.stack.connect(now, remote, config, &selection) else {
                return Attempt::Done(Err(Errno(libc::EADDRNOTAVAIL)));
            };
            self.seen.insert(id, Seen::default());
            self.descriptors.get_mut(&fd).expect("just looked").role = Role::Connection(id);
            return if nonblocking { Attempt::Done(Err(Errno(libc::EINPROGRESS))) } else { Attempt::Waits(None) };
        }
        let Ok(id) = self.connection(fd) else { return Attempt::Done(Err(Errno(libc::EINVAL))) };
        let seen = self.seen.entry(id).or_default();
        match seen.over {
            Some(how) => {
                seen.reported = true;
                Attempt::Done(errno::of(how).map_or(Ok(()), Err))
            }
            // Linux tells the success of a connection that was begun before once.
            None if seen.connected => Attempt::Done(Ok(())),
            None if nonblocking => Attempt::Done(Err(Errno(libc::EALREADY))),
            None => Attempt::Waits(None),
        }
    }

    /// `send` of what is left of `octets` after `done`.
    pub fn send(&mut self, fd: i32, octets: &[u8], done: &mut usize, nonblocking: bool) -> Attempt<usize> {
        let id = match self.connection(fd) {
            Ok(id) => id,
            Err(error) => return Attempt::Done(Err(error)),
        };
        let nonblocking = nonblocking || self.descriptors[&fd].nonblocking;
        let seen = self.seen.entry(id).or_default();
        if let Some(how) = seen.over {
            let first = !std::mem::replace(&mut seen.reported, true);
            return Attempt::Done(Err(errno::of(how).filter(|_| first).unwrap_or(Errno(libc::EPIPE))));
        }
        if seen.shut {
            return Attempt::Done(Err(Errno(libc::EPIPE)));
        }
        let room = if seen.connected { self.stack.endpoint(id).map_or(0, Endpoint::send_space) } else { 0 } as usize;
        let part = &octets[*done..(*done + room).min(octets.len())];
        if !part.is_empty() {
            self.stack.command(self.now, id, Command::Send(Payload::Bytes(Bytes::copy_from_slice(part))));
            *done += part.len();
        }
        if *done == octets.len() || nonblocking && *done > 0 {
            Attempt::Done(Ok(*done))
        } else if nonblocking {
            Attempt::Done(Err(Errno(libc::EAGAIN)))
        } else {
            Attempt::Waits(None)
        }
    }

    /// `recv` of up to `len` octets.
    pub fn receive(&mut self, fd: i32, len: usize, nonblocking: bool) -> Attempt<Vec<u8>> {
        let id = match self.connection(fd) {
            Ok(id) => id,
            Err(error) => return Attempt::Done(Err(error)),
        };
        let nonblocking = nonblocking || self.descriptors[&fd].nonblocking;
        let mut octets = Vec::new();
        while octets.len() < len {
            let Some(piece) = self.stack.read(self.now, id, len - octets.len()) else { break };
            octets.extend_from_slice(&piece.to_bytes());
        }
        let seen = self.seen.entry(id).or_default();
        seen.read += octets.len() as u64;
        if !octets.is_empty() || len == 0 || seen.peer_closed || seen.deaf {
            return Attempt::Done(Ok(octets));
        }
        match seen.over {
            Some(how) if !std::mem::replace(&mut seen.reported, true) => Attempt::Done(errno::of(how).map_or(Ok(octets), Err)),
            Some(_) => Attempt::Done(Ok(octets)),
            None if nonblocking => Attempt::Done(Err(Errno(libc::EAGAIN))),
            None => Attempt::Waits(None),
        }
    }

    /// Octets that can be read.
    pub fn unread(&self, id: ConnectionId) -> u64 {
        let delivered = self.stack.endpoint(id).map_or(0, |endpoint| endpoint.stats().octets_delivered);
        delivered.saturating_sub(self.seen.get(&id).map_or(0, |seen| seen.read))
    }

    /// `close`.
    pub fn close(&mut self, fd: i32) -> Result<(), Errno> {
        let descriptor = self.descriptors.remove(&fd).ok_or(Errno(libc::EBADF))?;
        let _ = nix::unistd::close(fd);
        match descriptor.role {
            Role::Fresh => {}
            Role::Listener(queue) => {
                if let Some(local) = descriptor.bound {
                    self.stack.unlisten(local);
                }
                for id in queue {
                    self.stack.command(self.now, id, Command::Abort);
                }
            }
            Role::Connection(id) => {
                // RFC 1122, 4.2.2.13: closing with unread data resets.
                let reset = descriptor.resets_on_close || self.unread(id) > 0;
                self.stack.command(self.now, id, if reset { Command::Abort } else { Command::Close });
                self.seen.entry(id).or_default().orphan = true;
            }
        }
        Ok(())
    }

    /// `shutdown`.
    pub fn shutdown(&mut self, fd: i32, how: i32) -> Result<(), Errno> {
        let id = self.connection(fd)?;
        let seen = self.seen.entry(id).or_default();
        if !seen.connected || seen.over.is_some_and(|how| how != Closing::Normal) {
            return Err(Errno(libc::ENOTCONN));
        }
        seen.deaf |= how != libc::SHUT_WR;
        if how != libc::SHUT_RD && !seen.shut {
            seen.shut = true;
            self.stack.command(self.now, id, Command::Close);
        }
        Ok(())
    }

    /// The events of `poll` on a descriptor.
    pub fn readiness(&self, fd: i32) -> i16 {
        let id = match self.descriptors.get(&fd).map(|descriptor| &descriptor.role) {
            None => return libc::POLLNVAL,
            Some(Role::Fresh) => return libc::POLLOUT | libc::POLLHUP,
            Some(Role::Listener(queue)) => return if queue.is_empty() { 0 } else { libc::POLLIN | libc::POLLRDNORM },
            Some(Role::Connection(id)) => *id,
        };
        let Some(seen) = self.seen.get(&id) else { return 0 };
        let over = seen.over.is_some();
        let mut events = 0;
        if self.unread(id) > 0 || seen.peer_closed || over {
            events |= libc::POLLIN | libc::POLLRDNORM;
        }
        if over || seen.connected && !seen.shut && self.stack.endpoint(id).is_some_and(|endpoint| endpoint.send_space() > 0) {
            events |= libc::POLLOUT | libc::POLLWRNORM;
        }
        if seen.peer_closed || over {
            events |= libc::POLLRDHUP;
        }
        if seen.over.is_some_and(|how| how != Closing::Normal) && !seen.reported {
            events |= libc::POLLERR;
        }
        if over || seen.peer_closed && seen.shut {
            events |= libc::POLLHUP;
        }
        events
    }
}
