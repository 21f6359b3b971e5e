//! Passive opens: listeners, the connections that they accept, SYN cookies, and resets for segments of no connection.

use super::connections::FourTuple;
use super::{cookies, Datagram, Stack, StackError};
use crate::scheme::{Catalogue, Parts, Selection};
use crate::segment::{Flags, Integrity, Segment};
use crate::seq::Seq;
use crate::tcp::{Command, Config, Input};
use crate::time::Instant;
use crate::wire::ip::Addresses;
use std::net::{IpAddr, SocketAddr};

/// How connections of one listener shall be.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Their configuration. First sequence number, nonce key and IP header length are filled in, the segment size is limited to the
    /// MTU.
    pub config: Config,
    /// Algorithms of the connections.
    pub selection: Selection,
    /// Handshakes that are kept at a time. Further SYNs are answered with a cookie (RFC 4987) and take no memory.
    pub backlog: usize,
}

impl Listener {
    /// Configuration and algorithms of one more connection.
    fn build(&self, catalogue: &Catalogue) -> (Config, Parts) {
        let mut config = self.config.clone();
        let parts = self.selection.build_from(catalogue, &mut config).expect("checked when listening began");
        (config, parts)
    }
}

/// A listener at work.
#[derive(Debug)]
pub(super) struct Listening {
    listener: Listener,
    /// Handshakes that are kept.
    pub pending: usize,
    /// Cookies may come back until then.
    cookies_until: Instant,
}

impl Stack {
    /// Accepts connections to `local`, from now on. An unspecified address (`0.0.0.0`, `::`) stands for all of its family.
    pub fn listen(&mut self, local: SocketAddr, listener: Listener) -> Result<(), StackError> {
        if !local.ip().is_unspecified() && !self.settings.addresses.contains(&local.ip()) {
            return Err(StackError::ForeignAddress(local.ip()));
        }
        if self.listeners.contains_key(&local) {
            return Err(StackError::ListenerExists(local));
        }
        // Wrong names, parameters and settings are told now and not when the first peer knocks.
        let mut config = listener.config.clone();
        listener.selection.build_from(&self.catalogue, &mut config)?;
        config.check()?;
        self.listeners.insert(local, Listening { listener, pending: 0, cookies_until: Instant::ZERO });
        Ok(())
    }

    /// Stops listening. Connections that were accepted go on.
    pub fn unlisten(&mut self, local: SocketAddr) {
        self.listeners.remove(&local);
        self.services.remove(&local);
    }

    /// A segment of no connection: RFC 9293, 3.10.7.1 (CLOSED) and 3.10.7.2 (LISTEN). If it takes the place of a connection in
    /// TIME-WAIT, `predecessor` is where the sequence numbers of that one ended.
    pub(super) fn handle_unmatched(&mut self, now: Instant, addresses: Addresses, segment: &Segment, predecessor: Option<Seq>) {
        let tuple = FourTuple::of_received(addresses, segment);
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let Some(address) = self.listener_for(tuple.local) else { return self.reset(addresses, segment) };
        if segment.flags.contains(Flags::ACK) {
            if !self.take_cookie(now, address, tuple, segment) {
                self.reset(addresses, segment);
            }
            return;
        }
        // Nobody begins and ends at once: what does looks for a way past a filter.
        if !segment.flags.contains(Flags::SYN) || segment.flags.contains(Flags::FIN) {
            return;
        }
        let listening = self.listeners.get_mut(&address).expect("just found");
        if listening.pending >= listening.listener.backlog {
            return self.answer_with_cookie(now, address, addresses, segment);
        }
        listening.pending += 1;
        let (mut config, parts) = listening.listener.build(&self.catalogue);
        config.initial_seq = self.identity.initial_seq(&tuple, now);
        if let Some(end) = predecessor.filter(|end| !end.precedes(Seq(config.initial_seq))) {
            // RFC 9293, 3.10.7.4: beyond everything that the old connection used.
            config.initial_seq = (end + 0x1_0000).0;
        }
        let index = self.open(tuple, config, parts, Some(address));
        self.deliver(now, index, Input::Command(Command::Listen));
        let accepted = self.answer_fast_open(now, index, address, segment);
        self.deliver(now, index, Input::Segment(segment, Integrity::Intact));
        self.connections.at(index).early = accepted.then_some(address);
    }

    /// Answers a SYN and forgets it: all that is needed to go on comes back with the third packet.
    fn answer_with_cookie(&mut self, now: Instant, listener: SocketAddr, addresses: Addresses, syn: &Segment) {
        let tuple = FourTuple::of_received(addresses, syn);
        let listening = self.listeners.get_mut(&listener).expect("the caller has found it");
        listening.cookies_until = now + cookies::LIFETIME;
        let (mut config, parts) = listening.listener.build(&self.catalogue);
        let syn = cookies::plain(syn, config.timestamps);
        config.initial_seq = cookies::bake(&self.identity, &tuple, &syn, now);
        let mut endpoint = self.endpoint_of(tuple, config, parts);
        endpoint.handle(now, Input::Command(Command::Listen));
        endpoint.handle(now, Input::Segment(&syn, Integrity::Intact));
        if let Some(mut segment) = endpoint.poll_transmit(now) {
            cookies::mark(&mut segment, &syn);
            self.stats.cookies_sent += 1;
            self.replies.push_back(Datagram { addresses: addresses.reversed(), segment });
        }
    }

    /// Opens the connection that `segment` completes with a cookie of ours, if it does.
    fn take_cookie(&mut self, now: Instant, listener: SocketAddr, tuple: FourTuple, segment: &Segment) -> bool {
        let listening = self.listeners.get_mut(&listener).expect("the caller has found it");
        if segment.flags.contains(Flags::SYN) || now >= listening.cookies_until {
            return false;
        }
        let Some((syn, initial_seq)) = cookies::redeem(&self.identity, &tuple, segment, now) else { return false };
        listening.pending += 1;
        let (config, parts) = listening.listener.build(&self.catalogue);
        let index = self.open(tuple, Config { initial_seq, ..config }, parts, Some(listener));
        self.stats.cookies_taken += 1;
        self.deliver(now, index, Input::Command(Command::Listen));
        for segment in [&syn, segment] {
            self.deliver(now, index, Input::Segment(segment, Integrity::Intact));
        }
        true
    }

    /// The address of the listener that connections to `local` belong to.
    pub(super) fn listener_for(&self, local: SocketAddr) -> Option<SocketAddr> {
        let any: IpAddr = if local.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
        [local, SocketAddr::new(any, local.port())].into_iter().find(|address| self.listeners.contains_key(address))
    }

    /// Answers a segment of no connection with a reset (RFC 9293, 3.10.7.1).
    fn reset(&mut self, addresses: Addresses, to: &Segment) {
        let (seq, ack, flags) = if to.flags.contains(Flags::ACK) {
            (to.ack, Seq(0), Flags::RST)
        } else {
            (Seq(0), to.seq + to.seq_len(), Flags::RST | Flags::ACK)
        };
        let segment = Segment { src_port: to.dst_port, dst_port: to.src_port, seq, ack, flags, ..Segment::default() };
        self.stats.resets += 1;
        self.replies.push_back(Datagram { addresses: addresses.reversed(), segment });
    }
}
