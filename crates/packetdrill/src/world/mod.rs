//! A host in virtual time: its sockets, its clock, and the packets that leave it.

mod accounts;
mod calls;
mod epoll;
mod fast_open;
mod shell;

use crate::commands::CommandFile;
use crate::descriptor::{Descriptor, Role, Seen};
use crate::epoll::Epoll;
use crate::errno::Errno;
use crate::offload::{Departures, Offload};
use bytes::Bytes;
use nix::libc;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use whyloss_testkit::settings::Settings;
use whyloss_transport::stack::{ConnectionId, Notice, Settings as HostSettings, Stack};
use whyloss_transport::tcp::Event;
use whyloss_transport::wire::damage::{examine, Arrival};
use whyloss_transport::wire::icmp;
use whyloss_transport::{Instant, Integrity};

/// When a script starts: not at 0, so that a clock that starts at 0 is seen running.
const START: Instant = Instant::from_nanos(100_000_000_000);

/// The host that scripts make system calls on: its stack, its sockets, its settings and its clock.
#[derive(Debug)]
pub struct World {
    pub(crate) now: Instant,
    pub(crate) stack: Stack,
    pub(crate) defaults: Settings,
    pub(crate) descriptors: BTreeMap<i32, Descriptor>,
    pub(crate) seen: BTreeMap<ConnectionId, Seen>,
    pub(crate) departures: Departures,
    pub(crate) offload: Offload,
    /// Whether connections that are opened here offer ECN; those that are accepted follow the settings.
    pub(crate) offers_ecn: bool,
    pub(crate) commands: Option<CommandFile>,
    pub(crate) epolls: BTreeMap<i32, Epoll>,
    /// `net.ipv4.tcp_fastopen`: a mask that says who may open fast.
    pub(crate) fast_open: u64,
    /// `net.ipv4.tcp_notsent_lowat`, in octets.
    pub(crate) notsent_low: u32,
    /// `net.ipv4.tcp_wmem`: the usual send buffer, in octets.
    pub(crate) send_buffer: u64,
}

impl World {
    pub(crate) fn new(flags: &str) -> Result<Self, String> {
        let mut defaults = Settings::profile("linux").map_err(|error| error.to_string())?;
        defaults.set("congestion", "cubic").map_err(|error| error.to_string())?;
        let mut addresses: Vec<IpAddr> =
            vec![Ipv4Addr::new(192, 168, 0, 1).into(), Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1).into()];
        let (mut text, mut commands) = (String::new(), None);
        for line in flags.lines() {
            match line.trim().split_once('=').filter(|(key, _)| !key.contains([' ', '/', '.'])) {
                Some(("address", value)) => {
                    let address = value.parse().map_err(|_| format!("address={value}: no IP address"))?;
                    addresses.insert(0, address);
                }
                Some(("commands", path)) => commands = Some(CommandFile::new(path)),
                Some((key, value)) => defaults.set(key, value).map_err(|error| error.to_string())?,
                None => {
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        let stack = Stack::new(HostSettings { addresses, mtu: 1500, key: [7; 16] });
        // How much a write takes is for the send queue to say.
        defaults.config.send_buffer = 1 << 30;
        let mut world = Self {
            now: START,
            stack,
            defaults,
            descriptors: BTreeMap::new(),
            seen: BTreeMap::new(),
            departures: Departures::default(),
            offload: Offload::default(),
            offers_ecn: true,
            commands,
            epolls: BTreeMap::new(),
            fast_open: 1,
            notsent_low: u32::MAX,
            send_buffer: 16_384,
        };
        world.obey(&text)?;
        Ok(world)
    }

    pub(crate) fn arrive(&mut self, packet: &[u8]) {
        if let Some(message) = icmp::too_big(packet) {
            return self.stack.handle_too_big(self.now, &message);
        }
        if let Arrival::Intact(arrived) = examine(&Bytes::copy_from_slice(packet)) {
            self.stack.handle(self.now, arrived.header.addresses, &arrived.segment, Integrity::Intact);
        }
    }

    /// Takes the stack's notices; returns whether there were any.
    pub(crate) fn take_notices(&mut self) -> bool {
        let mut busy = false;
        while let Some(notice) = self.stack.poll_notice() {
            busy = true;
            self.on_notice(notice);
        }
        busy
    }

    /// Takes the stack's notices and datagrams until there are no more, then brings the accounts of queues and limits up to date.
    pub(crate) fn drain_stack(&mut self) {
        loop {
            let mut busy = self.take_notices();
            while let Some(datagram) = self.stack.poll_transmit(self.now) {
                busy = true;
                let (stack, seen, offload) = (&self.stack, &self.seen, &self.offload);
                self.departures.add(self.now, datagram, |tuple, repeated| {
                    let connection = seen.iter().find(|(id, _)| stack.tuple(**id).as_ref() == Some(tuple));
                    let endpoint = connection.and_then(|(id, seen)| Some((stack.endpoint(*id)?, seen)));
                    endpoint.map_or(1, |(endpoint, seen)| {
                        let piece = if repeated { u64::MAX } else { 1 + seen.queue.rest_of_piece(endpoint) };
                        offload.most_segments(endpoint).min(piece)
                    })
                });
            }
            if !busy {
                self.departures.close();
                self.advance_error_queues();
                self.advance_send_queues();
                self.advance_limits();
                return;
            }
        }
    }

    fn on_notice(&mut self, notice: Notice) {
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
        let edge = matches!(event, Event::Connected | Event::Readable | Event::Writable | Event::PeerClosed | Event::Closed(_));
        seen.edges += u64::from(edge);
        match event {
            Event::Connected => seen.connected = true,
            Event::PeerClosed => seen.peer_closed = true,
            Event::Closed(how) => seen.over = Some(how),
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
}
