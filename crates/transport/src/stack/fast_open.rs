//! TCP Fast Open (RFC 7413) on a host: the cookies that it gives, and those that it was given.

use super::{ConnectionId, FourTuple, Stack, StackError};
use crate::scheme::Selection;
use crate::segment::{Cookie, FastOpen, Payload, Segment};
use crate::tcp::{Command, Config, FastOpenAnswer, FastOpenRequest, Input};
use crate::time::{Duration, Instant};
use siphasher::sip::SipHasher24;
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// Peers whose cookies are remembered. The one that was not used for longest goes first.
const PEERS: usize = 1024;
/// After more than one SYN lost with Fast Open the next ones go without, for this long at first and twice as long each further time.
const PAUSE: Duration = Duration::from_secs(60);
/// The pause is not doubled more often.
const DOUBLINGS: u32 = 10;

/// What a listener offers to those who open fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenService {
    /// Connections that may have been accepted before their handshakes ended, at a time (RFC 7413, 5.1); further ones open as ever.
    pub pending: usize,
    /// Take the data of those only who show a valid cookie. Without, anybody can have it taken in another's name.
    pub cookie_required: bool,
    /// The key of the cookies; `None`: the host's.
    pub key: Option<[u8; 16]>,
}

/// The cookie of a peer: a keyed hash over both addresses (RFC 7413, 4.1.2; SipHash-2-4, so that no one without the key makes one).
pub(super) fn cookie(key: &[u8; 16], tuple: &FourTuple) -> Cookie {
    let mut hasher = SipHasher24::new_with_key(key);
    for address in [tuple.remote.ip(), tuple.local.ip()] {
        match address {
            IpAddr::V4(v4) => hasher.write(&v4.octets()),
            IpAddr::V6(v6) => hasher.write(&v6.octets()),
        }
    }
    Cookie::new(&hasher.finish().to_le_bytes()).expect("eight octets make a cookie")
}

/// What to do with a SYN: whether its data is taken, and the option of the SYN-ACK.
pub(super) fn judge(keys: &[[u8; 16]], service: &FastOpenService, tuple: &FourTuple, syn: &Segment) -> (bool, Option<FastOpen>) {
    let shown = syn.options.rare.as_ref().and_then(|rare| rare.fast_open);
    let data = !syn.payload.is_empty();
    if !service.cookie_required && data {
        return (true, None);
    }
    let Some(shown) = shown else { return (false, None) };
    let fresh = cookie(&keys[0], tuple);
    let reply = Some(FastOpen { cookie: Some(fresh), ..shown });
    match shown.cookie {
        Some(old) if old == fresh => (true, None),
        // Made with a key of before: good, and to be replaced.
        Some(old) if keys[1..].iter().any(|key| old == cookie(key, tuple)) => (true, reply),
        _ => (false, reply),
    }
}

impl Stack {
    /// Offers Fast Open to those who connect to the listener at `local`, or no more; harmless if nobody listens there.
    pub fn serve_fast_open(&mut self, local: SocketAddr, service: Option<FastOpenService>) {
        let early = self.services.remove(&local).map_or(0, |(_, early)| early);
        if let Some(service) = service.filter(|_| self.listeners.contains_key(&local)) {
            self.services.insert(local, (service, early));
        }
    }

    /// Changes the key of our cookies. Those made with the one before stay valid and are replaced when they are shown.
    pub fn set_cookie_key(&mut self, key: [u8; 16]) {
        if self.cookie_keys[0] != key {
            self.cookie_keys.insert(0, key);
            self.cookie_keys.truncate(2);
        }
    }

    /// Forgets what peers have given.
    pub fn forget_cookies(&mut self) {
        self.peers.clear();
    }

    /// Opens a connection with TCP Fast Open: the SYN asks for a cookie or, if the peer has given one before, carries it and the first
    /// octets of `data`. Returns how many; the rest is sent as ever once the connection is open. `cookieless`: data goes without a cookie, for
    /// networks whose servers ask for none.
    pub fn connect_fast(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        config: Config,
        selection: &Selection,
        data: &Payload,
        cookieless: bool,
    ) -> Result<(ConnectionId, usize), StackError> {
        let index = self.prepare(now, remote, config, selection)?;
        let mss = self.connections.at(index).endpoint.config().mss;
        let request = if cookieless {
            let room = FastOpenRequest::room(mss, Some(self.peers.mss(remote.ip()).unwrap_or(mss)));
            Some(FastOpenRequest { option: None, room })
        } else {
            self.peers.request(now, remote.ip(), mss)
        };
        let taken = request.map_or(0, |request| data.len().min(request.room as usize));
        if taken > 0 {
            self.deliver(now, index, Input::Command(Command::Send(data.slice(0, taken))));
        }
        self.connections.at(index).request = request;
        self.deliver(now, index, Input::Command(request.map_or(Command::Connect, Command::ConnectFast)));
        Ok((self.connections.id(index), taken))
    }

    /// Whether a connection to `remote` that is opened fast could carry data in its SYN.
    pub fn has_cookie(&self, remote: IpAddr) -> bool {
        self.peers.has_cookie(remote)
    }

    /// What the listener at `address` does with a SYN, told to the connection that takes it; returns whether it opens that.
    pub(super) fn answer_fast_open(&mut self, now: Instant, index: u32, address: SocketAddr, syn: &Segment) -> bool {
        let tuple = self.connections.at(index).tuple;
        let Some((service, early)) = self.services.get_mut(&address) else { return false };
        let own = service.key.map(|key| [key]);
        let keys = own.as_ref().map_or(self.cookie_keys.as_slice(), |own| own.as_slice());
        let (accept, reply) = judge(keys, service, &tuple, syn);
        let accept = accept && *early < service.pending;
        *early += usize::from(accept);
        self.deliver(now, index, Input::Command(Command::AnswerFastOpen { accept, reply }));
        accept
    }
}

/// What is known of a peer.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    option: Option<FastOpen>,
    mss: Option<u16>,
    /// How requests in the format of RFC 7413 that brought no cookie have gone on: 1: the experimental format is to be tried next; 2: it
    /// was of no use either.
    experiments: u8,
    /// SYNs lost in a row, and when the last one was known to be.
    lost: (u32, Instant),
    used: u64,
}

/// The cookies that peers have given.
#[derive(Debug, Default)]
pub(super) struct Peers {
    known: BTreeMap<IpAddr, Known>,
    uses: u64,
}

impl Peers {
    /// How to open a connection to `peer` with segments of up to `mss` octets; `None` if it is better not to.
    pub fn request(&mut self, now: Instant, peer: IpAddr, mss: u16) -> Option<FastOpenRequest> {
        self.uses += 1;
        let Some(known) = self.known.get_mut(&peer) else {
            return Some(FastOpenRequest { option: Some(FastOpen::default()), room: 0 });
        };
        known.used = self.uses;
        let (lost, since) = known.lost;
        if lost > 1 && now.since(since) < PAUSE * (1 << lost.min(DOUBLINGS)) {
            return None;
        }
        let option = known.option.unwrap_or(FastOpen { cookie: None, experimental: known.experiments == 1 });
        let room = if option.cookie.is_some() { FastOpenRequest::room(mss, known.mss) } else { 0 };
        Some(FastOpenRequest { option: Some(option), room })
    }

    /// Learns from the answer to `request`.
    pub fn learn(&mut self, now: Instant, peer: IpAddr, request: &FastOpenRequest, answer: &FastOpenAnswer) {
        self.uses += 1;
        if !self.known.contains_key(&peer) && self.known.len() >= PEERS {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.used).map(|(peer, _)| *peer);
            oldest.and_then(|peer| self.known.remove(&peer));
        }
        let known = self.known.entry(peer).or_default();
        known.used = self.uses;
        known.mss = answer.mss.or(known.mss);
        // What was not asked for is not believed.
        let given = answer.option.filter(|option| request.option.is_some() && option.cookie.is_some());
        if let Some(given) = given {
            known.option = Some(given);
        } else if !answer.retried && request.room == 0 && known.option.is_none() {
            let tried = if request.option.is_some_and(|option| option.experimental) { 2 } else { 1 };
            known.experiments = known.experiments.max(tried);
        }
        let dropped = answer.retried && given.is_none() && answer.took_data == Some(false);
        known.lost = if dropped { (known.lost.0.saturating_add(1), now) } else { (0, now) };
    }

    /// The segment size that the peer last announced.
    pub fn mss(&self, peer: IpAddr) -> Option<u16> {
        self.known.get(&peer).and_then(|known| known.mss)
    }

    pub fn has_cookie(&self, peer: IpAddr) -> bool {
        self.known.get(&peer).is_some_and(|known| known.option.is_some())
    }

    /// Forgets all peers.
    pub fn clear(&mut self) {
        self.known.clear();
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::{Flags, Integrity, RareOptions};
    use crate::stack::{Listener, Notice, Settings};
    use crate::tcp::Event;
    use crate::wire::ip::Addresses;
    use bytes::Bytes;

    const SERVER: [u8; 4] = [192, 0, 2, 1];
    const CLIENT: [u8; 4] = [192, 0, 2, 2];
    const SERVICE: FastOpenService = FastOpenService { pending: 1, cookie_required: true, key: None };

    fn stack(address: [u8; 4]) -> Stack {
        Stack::new(Settings { addresses: vec![address.into()], mtu: 1500, key: [7; 16] })
    }

    fn port() -> SocketAddr {
        (SERVER, 80).into()
    }

    fn server(service: FastOpenService) -> Stack {
        let mut server = stack(SERVER);
        server.listen(port(), Listener { config: Config::modern(), selection: Selection::default(), backlog: 8 }).unwrap();
        server.serve_fast_open(port(), Some(service));
        server
    }

    fn open(client: &mut Stack, data: &[u8]) -> (ConnectionId, usize) {
        let data = Payload::Bytes(Bytes::copy_from_slice(data));
        client.connect_fast(Instant::ZERO, port(), Config::modern(), &Selection::default(), &data, false).unwrap()
    }

    /// Hands all that waits to the other side; returns it.
    fn pass(from: &mut Stack, to: &mut Stack) -> Vec<Segment> {
        let mut passed = Vec::new();
        while let Some(datagram) = from.poll_transmit(Instant::ZERO) {
            to.handle(Instant::ZERO, datagram.addresses, &datagram.segment, Integrity::Intact);
            passed.push(datagram.segment);
        }
        passed
    }

    fn converse(client: &mut Stack, server: &mut Stack) {
        while !pass(client, server).is_empty() || !pass(server, client).is_empty() {}
    }

    fn accepted(server: &mut Stack) -> Option<ConnectionId> {
        let mut found = None;
        while let Some(notice) = server.poll_notice() {
            if let Notice::Accepted(id) = notice {
                found = Some(id);
            }
        }
        found
    }

    #[test]
    fn the_first_connection_fetches_a_cookie_and_the_second_carries_data() {
        let (mut client, mut server) = (stack(CLIENT), server(SERVICE));
        let (first, taken) = open(&mut client, b"hello");
        assert_eq!((taken, client.has_cookie(port().ip())), (0, false));
        converse(&mut client, &mut server);
        assert!(client.has_cookie(port().ip()) && !client.endpoint(first).unwrap().opened_with_data());
        accepted(&mut server).unwrap();

        let (second, taken) = open(&mut client, b"hello");
        assert_eq!(taken, 5);
        let syn = pass(&mut client, &mut server).remove(0);
        assert_eq!((syn.flags, syn.payload.len()), (Flags::SYN, 5));
        // Accepted and answered before the handshake has ended.
        let id = accepted(&mut server).unwrap();
        assert!(server.endpoint(id).unwrap().is_half_open());
        assert_eq!(server.read(Instant::ZERO, id, 100).unwrap().to_bytes(), Bytes::from_static(b"hello"));
        server.command(Instant::ZERO, id, Command::Send(Payload::Bytes(Bytes::from_static(b"world"))));
        let answer = pass(&mut server, &mut client);
        assert_eq!(answer[0].ack, syn.seq + 6);
        assert_eq!(answer.iter().map(|segment| segment.payload.len()).sum::<usize>(), 5);
        converse(&mut client, &mut server);
        assert!(client.endpoint(second).unwrap().opened_with_data() && server.endpoint(id).unwrap().opened_with_data());
        assert!(!server.endpoint(id).unwrap().is_half_open());
        assert_eq!(client.read(Instant::ZERO, second, 100).unwrap().to_bytes(), Bytes::from_static(b"world"));
    }

    #[test]
    fn data_that_is_not_taken_is_sent_again_at_once() {
        let (mut client, mut server) = (stack(CLIENT), server(SERVICE));
        open(&mut client, b"");
        converse(&mut client, &mut server);
        server.serve_fast_open(port(), None);
        let (id, taken) = open(&mut client, b"hello");
        assert_eq!(taken, 5);
        let syn = pass(&mut client, &mut server).remove(0);
        assert_eq!(pass(&mut server, &mut client)[0].ack, syn.seq + 1);
        let again = pass(&mut client, &mut server).into_iter().find(|segment| !segment.is_empty()).unwrap();
        assert_eq!((again.seq, again.payload.to_bytes()), (syn.seq + 1, Bytes::from_static(b"hello")));
        converse(&mut client, &mut server);
        let endpoint = client.endpoint(id).unwrap();
        assert!(!endpoint.opened_with_data());
        assert_eq!(endpoint.stats().retransmissions, 1);
        let id = accepted(&mut server).unwrap();
        assert_eq!(server.read(Instant::ZERO, id, 100).unwrap().to_bytes(), Bytes::from_static(b"hello"));
    }

    #[test]
    fn a_syn_that_is_sent_again_carries_neither_data_nor_cookie() {
        let (mut client, mut server) = (stack(CLIENT), server(SERVICE));
        open(&mut client, b"");
        converse(&mut client, &mut server);
        open(&mut client, b"hello");
        client.poll_transmit(Instant::ZERO).unwrap();
        let later = Instant::ZERO + Duration::from_secs(2);
        client.handle_timeout(later);
        let syn = client.poll_transmit(later).unwrap().segment;
        assert_eq!((syn.flags, syn.is_empty(), syn.options.rare), (Flags::SYN, true, None));
    }

    fn syn(from: [u8; 4], src_port: u16, cookie: Option<Cookie>) -> (Addresses, Segment) {
        let rare = RareOptions { fast_open: Some(FastOpen { cookie, experimental: false }), ..RareOptions::default() };
        let mut segment = Segment {
            src_port,
            dst_port: 80,
            flags: Flags::SYN,
            payload: Payload::Bytes(Bytes::from_static(b"x")),
            ..Segment::default()
        };
        segment.options.rare = Some(Box::new(rare));
        (Addresses::new(from.into(), SERVER.into()).unwrap(), segment)
    }

    fn answer(server: &mut Stack, (addresses, segment): (Addresses, Segment)) -> Segment {
        server.handle(Instant::ZERO, addresses, &segment, Integrity::Intact);
        server.poll_transmit(Instant::ZERO).unwrap().segment
    }

    #[test]
    fn a_cookie_is_good_for_its_address_only_and_one_of_the_old_key_is_replaced() {
        let mut server = server(FastOpenService { pending: 9, ..SERVICE });
        let given = |answer: &Segment| answer.options.rare.as_ref().and_then(|rare| rare.fast_open?.cookie);
        let first = answer(&mut server, syn(CLIENT, 1, None));
        let cookie = given(&first).unwrap();
        assert_eq!(first.ack.0, 1, "nothing is taken without a cookie");
        assert_eq!(answer(&mut server, syn(CLIENT, 2, Some(cookie))).ack.0, 2);
        let stolen = answer(&mut server, syn([192, 0, 2, 3], 3, Some(cookie)));
        assert_eq!(stolen.ack.0, 1);
        assert!(given(&stolen).is_some_and(|other| other != cookie));
        server.set_cookie_key([9; 16]);
        let replaced = answer(&mut server, syn(CLIENT, 4, Some(cookie)));
        assert_eq!(replaced.ack.0, 2);
        assert!(given(&replaced).is_some_and(|other| other != cookie));
        server.set_cookie_key([10; 16]);
        assert_eq!(answer(&mut server, syn(CLIENT, 5, Some(cookie))).ack.0, 1, "two keys later it is good no more");
    }

    #[test]
    fn as_many_are_accepted_early_as_the_service_says() {
        let mut server = server(SERVICE);
        let cookie = Cookie::new(&[0; 8]);
        let cookie = answer(&mut server, syn(CLIENT, 1, cookie)).options.rare.and_then(|rare| rare.fast_open?.cookie);
        assert_eq!(answer(&mut server, syn(CLIENT, 2, cookie)).ack.0, 2);
        assert_eq!(answer(&mut server, syn(CLIENT, 3, cookie)).ack.0, 1, "one is half open already");
        let id = accepted(&mut server).unwrap();
        server.command(Instant::ZERO, id, Command::Abort);
        assert!(server.poll_transmit(Instant::ZERO).unwrap().segment.flags.contains(Flags::RST));
        assert_eq!(answer(&mut server, syn(CLIENT, 4, cookie)).ack.0, 2);
    }

    #[test]
    fn peers_are_remembered_up_to_a_number() {
        let mut peers = Peers::default();
        let option = Some(FastOpen { cookie: Cookie::new(&[1; 8]), experimental: false });
        let answer = FastOpenAnswer { option, mss: Some(1000), retried: false, took_data: None };
        let request = FastOpenRequest { option: Some(FastOpen::default()), room: 0 };
        let peer = |n: u32| IpAddr::from(n.to_be_bytes());
        for n in 0..2 * PEERS as u32 {
            peers.learn(Instant::ZERO, peer(n), &request, &answer);
            peers.request(Instant::ZERO, peer(0), 1460);
        }
        assert_eq!(peers.len(), PEERS);
        assert_eq!(peers.request(Instant::ZERO, peer(0), 1460).unwrap().room, 960, "what is in use stays");
        assert!(!peers.has_cookie(peer(1)));
    }

    #[test]
    fn losses_of_syns_suspend_it() {
        let mut peers = Peers::default();
        let peer: IpAddr = SERVER.into();
        let asked = FastOpenRequest { option: Some(FastOpen::default()), room: 100 };
        let dropped = FastOpenAnswer { option: None, mss: None, retried: true, took_data: Some(false) };
        for _ in 0..2 {
            assert!(peers.request(Instant::ZERO, peer, 1460).is_some());
            peers.learn(Instant::ZERO, peer, &asked, &dropped);
        }
        assert_eq!(peers.request(Instant::ZERO, peer, 1460), None);
        assert!(peers.request(Instant::ZERO + PAUSE * 4, peer, 1460).is_some());
    }

    #[test]
    fn a_connection_that_nobody_takes_early_is_told_once() {
        let (mut client, mut server) = (stack(CLIENT), server(SERVICE));
        for _ in 0..2 {
            open(&mut client, b"x");
            converse(&mut client, &mut server);
            let mut told = 0;
            while let Some(notice) = server.poll_notice() {
                told += usize::from(matches!(notice, Notice::Accepted(_)));
                assert!(!matches!(notice, Notice::Event(_, Event::Closed(_))));
            }
            assert_eq!(told, 1);
        }
    }
}
