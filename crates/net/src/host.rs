//! A host in user space: a TUN device, a clock and the engine's TCP in one loop.

use crate::{icmp, Clock, Tun};
use bytes::{Bytes, BytesMut};
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::AsFd;
use whyloss_transport::stack::{Datagram, Notice, Settings, Stack};
use whyloss_transport::wire::damage::{examine, Arrival};
use whyloss_transport::wire::{emit, ip};
use whyloss_transport::{Duration, Instant, Integrity};

/// Hop limit of our packets (RFC 1122, 3.2.1.7).
const HOP_LIMIT: u8 = 64;
/// Packets taken from the device, or handed to it, before anything else gets its turn.
const BATCH: usize = 64;
/// Packets are read into pieces of memory of this many octets; what the engine keeps of them is not copied.
const CHUNK: usize = 1 << 17;

/// What uses the connections of a [`Host`].
pub trait Application {
    /// Something happened.
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
    /// Of those, dropped: no TCP, fragments, broken headers.
    pub discarded: u64,
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
    largest: usize,
    stats: HostStats,
}

impl Host {
    /// A host with the addresses and MTU in `settings`.
    pub fn new(tun: Tun, settings: Settings) -> Self {
        let largest = usize::from(settings.mtu);
        let stack = Stack::new(settings);
        let (inbound, outbound) = (BytesMut::new(), Vec::new());
        Self { tun, clock: Clock::start(), stack, inbound, outbound, largest, stats: HostStats::default() }
    }

    /// The engine's TCP.
    pub fn stack(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// The time.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The counters.
    pub fn stats(&self) -> &HostStats {
        &self.stats
    }

    /// Runs until `application` is done or `deadline` has passed; whether it is done.
    pub fn run(&mut self, application: &mut impl Application, deadline: Instant) -> io::Result<bool> {
        loop {
            while let Some(notice) = self.stack.poll_notice() {
                application.notice(self.clock.now(), &mut self.stack, notice);
            }
            let drained = self.transmit()?;
            if drained && application.is_done(&self.stack) {
                return Ok(true);
            }
            if self.clock.now() >= deadline {
                return Ok(false);
            }
            if drained {
                self.wait(deadline)?;
            }
            self.receive()?;
            self.stack.handle_timeout(self.clock.now());
        }
    }

    /// Sends a batch of what is ready; whether that was all. The peer answers meanwhile, and the device's queue is short.
    fn transmit(&mut self) -> io::Result<bool> {
        for _ in 0..BATCH {
            let Some(Datagram { addresses, segment }) = self.stack.poll_transmit(self.clock.now()) else { return Ok(true) };
            self.outbound.clear();
            if emit(&ip::Header { addresses, hop_limit: HOP_LIMIT }, &segment, &mut self.outbound).is_ok() {
                send(&self.tun, &self.outbound, &mut self.stats)?;
            } else {
                self.stats.refused += 1;
            }
        }
        Ok(false)
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

    /// Takes a batch of packets from the device.
    fn receive(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            if self.inbound.len() < self.largest {
                self.inbound = BytesMut::zeroed(CHUNK.max(self.largest));
            }
            let Some(length) = self.tun.receive(&mut self.inbound)? else { break };
            let packet = self.inbound.split_to(length).freeze();
            self.take(&packet)?;
        }
        Ok(())
    }

    fn take(&mut self, packet: &Bytes) -> io::Result<()> {
        self.stats.received += 1;
        let now = self.clock.now();
        match examine(packet) {
            Arrival::Intact(arrived) => {
                self.stack.handle(now, arrived.header.addresses, &arrived.segment, Integrity::Intact);
            }
            Arrival::Damaged(arrived) => {
                self.stats.damaged += 1;
                self.stack.handle(now, arrived.header.addresses, &arrived.segment, arrived.integrity);
            }
            Arrival::Unattributable { .. } | Arrival::Discarded(_) => {
                match icmp::echo(packet).filter(|echo| self.stack.addresses().contains(&echo.to)) {
                    Some(echo) => {
                        self.stats.pings += 1;
                        send(&self.tun, &echo.reply, &mut self.stats)?;
                    }
                    None => self.stats.discarded += 1,
                }
            }
        }
        Ok(())
    }
}

fn send(tun: &Tun, packet: &[u8], stats: &mut HostStats) -> io::Result<()> {
    if tun.send(packet)? {
        stats.sent += 1;
    } else {
        stats.refused += 1;
    }
    Ok(())
}
