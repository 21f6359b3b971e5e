//! A host in user space: a TUN device, a clock and the engine's TCP in one loop.

use crate::clock::Clock;
use crate::echo;
use crate::train::Train;
use crate::tun::{Tun, VIRTIO_HEADER};
use bytes::{Bytes, BytesMut};
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::AsFd;
use whyloss_transport::scheme::Catalogue;
use whyloss_transport::stack::{Datagram, Notice, Settings, Stack};
use whyloss_transport::wire::damage::{examine, Arrival};
use whyloss_transport::wire::fragments::Reassembler;
use whyloss_transport::wire::{emit, icmp, ip, Error};
use whyloss_transport::{Duration, Instant, Integrity};

/// Hop limit of our packets (RFC 1122, 3.2.1.7).
const HOP_LIMIT: u8 = 64;
/// Packets handed to the device before anything else gets its turn. The peer answers meanwhile: its acknowledgements, at most half as
/// many, have to fit the queue of the device (500 unless somebody changed it).
const SEND_BATCH: usize = 256;
/// Packets taken from the device before anything else gets its turn: above all before they are acknowledged, all at once then.
const RECEIVE_BATCH: usize = 256;
/// Packets between two looks at the clock: a look costs as much as a part of a packet, and in this time no more than 50 us pass.
const PER_LOOK: usize = 16;
/// Packets are read into pieces of memory of this many octets; what the engine keeps of them is not copied.
const CHUNK: usize = 1 << 17;

/// What uses the connections of a [`Host`].
pub trait Application {
    /// Called with each notice of the stack: a connection was accepted, or has an event.
    fn notice(&mut self, now: Instant, stack: &mut Stack, notice: Notice);

    /// Whether the application has come to its end.
    fn is_done(&self, stack: &Stack) -> bool;
}

/// What went through the device. Packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Read from the device.
    pub received: u64,
    /// Of those, TCP segments with a broken checksum.
    pub damaged: u64,
    /// Of those, dropped: no TCP, broken headers, what routers say of other packets than ours.
    pub discarded: u64,
    /// Of those, fragments of IP packets.
    pub fragments: u64,
    /// Of those, messages of routers that a packet of ours is too big.
    pub too_big: u64,
    /// Of those, pings answered.
    pub pings: u64,
    /// Written to the device.
    pub sent: u64,
    /// Not taken by the device, so lost.
    pub refused: u64,
}

/// An internet host behind a TUN device.
#[derive(Debug)]
pub struct Host {
    tun: Tun,
    clock: Clock,
    stack: Stack,
    inbound: BytesMut,
    outbound: Vec<u8>,
    train: Train,
    fragments: Reassembler,
    /// What is received is copied out of the memory that it shares with other packets.
    copies: bool,
    largest: usize,
    stats: HostStats,
}

impl Host {
    /// A host with the addresses and MTU in `settings`.
    pub fn new(tun: Tun, settings: Settings) -> Self {
        Self::with_catalogue(tun, settings, Catalogue::default())
    }

    /// The same with the algorithms that `catalogue` has.
    pub fn with_catalogue(tun: Tun, settings: Settings, catalogue: Catalogue) -> Self {
        let largest = usize::from(settings.mtu) + VIRTIO_HEADER;
        let stack = Stack::with_catalogue(settings, catalogue);
        let (inbound, outbound) = (BytesMut::new(), Vec::new());
        let (train, fragments, stats) = (Train::default(), Reassembler::default(), HostStats::default());
        Self { tun, clock: Clock::start(), stack, inbound, outbound, train, fragments, copies: false, largest, stats }
    }

    /// From now on what is received takes memory of its own. Where peers send little that is not trusted to be read soon, they cannot keep the
    /// memory of other packets with it.
    pub fn copy_received(&mut self) {
        self.copies = true;
    }

    /// The TCP of the host, to listen and to connect.
    pub fn stack(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// Time since the host was made, as its stack counts it.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// What was counted since the host was made.
    pub fn stats(&self) -> &HostStats {
        &self.stats
    }

    /// Runs until `application` is done or `deadline` has passed; whether it is done.
    pub fn run(&mut self, application: &mut impl Application, deadline: Instant) -> io::Result<bool> {
        let mut more = false;
        loop {
            let now = self.clock.now();
            while let Some(notice) = self.stack.poll_notice() {
                application.notice(now, &mut self.stack, notice);
            }
            let drained = self.transmit()?;
            if drained && application.is_done(&self.stack) {
                return Ok(true);
            }
            if self.clock.now() >= deadline {
                return Ok(false);
            }
            if drained && !more {
                self.wait(deadline)?;
            }
            more = self.receive()?;
            self.stack.handle_timeout(self.clock.now());
        }
    }

    /// Sends a batch of what is ready; whether that was all.
    fn transmit(&mut self) -> io::Result<bool> {
        let mut now = self.clock.now();
        let mut drained = true;
        for count in 1..=SEND_BATCH {
            let Some(datagram) = self.stack.poll_transmit(now) else { break };
            self.send(datagram)?;
            drained = count < SEND_BATCH;
            if count % PER_LOOK == 0 {
                now = self.clock.now();
            }
        }
        self.send_train()?;
        Ok(drained)
    }

    /// Hands a segment to the device, or has it wait for those that follow it if the device takes them in one piece.
    fn send(&mut self, datagram: Datagram) -> io::Result<()> {
        if self.tun.offloads() {
            if !self.train.takes(&datagram) {
                self.send_train()?;
            }
            self.train.add(datagram);
            return Ok(());
        }
        let Datagram { addresses, segment } = datagram;
        self.outbound.clear();
        // The payload is copied, since the system takes longer for a packet in two parts than a copy takes.
        match emit(&ip::Header { addresses, hop_limit: HOP_LIMIT }, &segment, &mut self.outbound) {
            Ok(()) => note(self.tun.send(&self.outbound)?, 1, &mut self.stats),
            Err(_) => self.stats.refused += 1,
        }
        Ok(())
    }

    fn send_train(&mut self) -> io::Result<()> {
        match self.train.take(HOP_LIMIT) {
            Ok(Some((octets, segments))) => note(self.tun.send_cut(octets)?, segments, &mut self.stats),
            Ok(None) => {}
            Err(_) => self.stats.refused += 1,
        }
        Ok(())
    }

    /// Sleeps until a packet arrives or a timer is due, at most until `deadline`.
    fn wait(&self, deadline: Instant) -> io::Result<()> {
        let due = self.stack.poll_timeout().map_or(deadline, |due| due.min(deadline));
        let span = due.since(self.clock.now()).min(Duration::from_secs(3600));
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(span.as_nanos()));
        match ppoll(&mut [PollFd::new(self.tun.as_fd(), PollFlags::POLLIN)], Some(timeout), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a batch of packets from the device; whether there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        let mut now = self.clock.now();
        for count in 1..=RECEIVE_BATCH {
            if self.inbound.capacity() < self.largest && !self.inbound.try_reclaim(CHUNK) {
                self.inbound = BytesMut::with_capacity(CHUNK.max(self.largest));
            }
            if self.tun.receive_to(&mut self.inbound)?.is_none() {
                return Ok(false);
            }
            let packet = self.inbound.split().freeze();
            self.take(now, &packet)?;
            if count % PER_LOOK == 0 {
                now = self.clock.now();
            }
        }
        Ok(true)
    }

    fn take(&mut self, now: Instant, packet: &Bytes) -> io::Result<()> {
        self.stats.received += 1;
        match examine(packet) {
            Arrival::Discarded(Error::Fragment) => {
                self.stats.fragments += 1;
                match self.fragments.take(now, packet, self.stack.addresses()) {
                    Some(whole) => self.deliver(now, &whole, examine(&whole)),
                    None => Ok(()),
                }
            }
            arrival => self.deliver(now, packet, arrival),
        }
    }

    /// Hands a whole packet to whom it concerns.
    fn deliver(&mut self, now: Instant, packet: &Bytes, arrival: Arrival) -> io::Result<()> {
        match arrival {
            Arrival::Intact(mut arrived) => {
                if self.copies {
                    arrived.segment.payload.detach();
                }
                self.stack.handle(now, arrived.header.addresses, &arrived.segment, Integrity::Intact);
            }
            Arrival::Damaged(arrived) => {
                self.stats.damaged += 1;
                self.stack.handle(now, arrived.header.addresses, &arrived.segment, arrived.integrity);
            }
            Arrival::Unattributable { .. } | Arrival::Discarded(_) => {
                let fits = |echo: &echo::Echo| echo.reply.len() + VIRTIO_HEADER <= self.largest;
                if let Some(echo) = echo::echo(packet).filter(|echo| self.stack.addresses().contains(&echo.to) && fits(echo)) {
                    self.stats.pings += 1;
                    note(self.tun.send(&echo.reply)?, 1, &mut self.stats);
                } else if let Some(message) = icmp::too_big(packet) {
                    self.stats.too_big += 1;
                    self.stack.handle_too_big(now, &message);
                } else {
                    self.stats.discarded += 1;
                }
            }
        }
        Ok(())
    }
}

/// Counts packets that the device took, or did not.
fn note(taken: bool, packets: u64, stats: &mut HostStats) {
    if taken {
        stats.sent += packets;
    } else {
        stats.refused += packets;
    }
}
