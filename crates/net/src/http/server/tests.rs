//! The server against clients that push against its limits, in virtual time.

use super::*;
use whyloss_transport::scheme::Selection;
use whyloss_transport::stack::{Listener, Settings};
use whyloss_transport::tcp::{Config, State};
use whyloss_transport::Integrity;

const SERVER: [u8; 4] = [192, 0, 2, 1];
/// Octets of the file that is offered.
const FILE: u64 = 32 << 20;

/// A server, and hosts whose clients do as they are told. Packets take no time.
struct World {
    _folder: tempfile::TempDir,
    now: Instant,
    stack: Stack,
    server: Server,
    hosts: Vec<Stack>,
}

impl World {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        File::create(folder.path().join("big")).unwrap().set_len(FILE).unwrap();
        std::fs::write(folder.path().join("small"), "small").unwrap();
        let mut stack = host(SERVER);
        let config = Config { receive_buffer: 64 << 10, ..Config::modern() };
        let listener = Listener { config, selection: Selection::default(), backlog: 128 };
        stack.listen("192.0.2.1:80".parse().unwrap(), listener).unwrap();
        let server = Server::new(Files::at(folder.path()).unwrap(), None, limits);
        Self { _folder: folder, now: Instant::ZERO, stack, server, hosts: vec![host([192, 0, 2, 2]), host([192, 0, 2, 3])] }
    }

    /// A connection from a host that reads at most `buffer` octets ahead, and what it says first.
    fn connect(&mut self, from: usize, buffer: u64, says: &str) -> ConnectionId {
        let config = Config { receive_buffer: buffer, time_wait: Duration::from_millis(1), ..Config::modern() };
        let to = SocketAddr::new(SERVER.into(), 80);
        let id = self.hosts[from].connect(self.now, to, config, &Selection::default()).unwrap();
        self.exchange();
        self.say(from, id, says);
        id
    }

    fn say(&mut self, from: usize, id: ConnectionId, text: &str) {
        let octets = Payload::Bytes(Bytes::copy_from_slice(text.as_bytes()));
        self.hosts[from].command(self.now, id, Command::Send(octets));
        self.exchange();
    }

    /// Carries packets and notices until there are none.
    fn exchange(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(notice) = self.stack.poll_notice() {
                self.server.notice(self.now, &mut self.stack, notice);
                quiet = false;
            }
            while let Some(datagram) = self.stack.poll_transmit(self.now) {
                let to = datagram.addresses.dst();
                if let Some(host) = self.hosts.iter_mut().find(|host| host.addresses().contains(&to)) {
                    host.handle(self.now, datagram.addresses, &datagram.segment, Integrity::Intact);
                }
                quiet = false;
            }
            for host in &mut self.hosts {
                while let Some(datagram) = host.poll_transmit(self.now) {
                    self.stack.handle(self.now, datagram.addresses, &datagram.segment, Integrity::Intact);
                    quiet = false;
                }
            }
            if quiet {
                return;
            }
        }
    }

    /// Lets time pass, with what the server does several times a second.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now = end.min(self.now + Duration::from_millis(100));
            self.stack.handle_timeout(self.now);
            self.hosts.iter_mut().for_each(|host| host.handle_timeout(self.now));
            self.server.sweep(self.now, &mut self.stack);
            self.exchange();
        }
    }

    /// What a client has got so far.
    fn read(&mut self, from: usize, id: ConnectionId) -> String {
        let mut got = Vec::new();
        while let Some(data) = self.hosts[from].read(self.now, id, 1 << 20) {
            data.write_to(&mut got);
        }
        self.exchange();
        String::from_utf8(got).unwrap()
    }

    fn is_open(&self, from: usize, id: ConnectionId) -> bool {
        self.hosts[from].endpoint(id).is_some_and(|endpoint| endpoint.state() == State::Established)
    }

    /// Octets of requests and of responses that the server and its TCP hold.
    fn held(&self) -> (u64, u64) {
        let sessions = self.server.sessions.iter().map(|(id, session)| (session, self.stack.endpoint(*id).unwrap()));
        sessions.fold((0, 0), |(asked, answered), (session, endpoint)| {
            (asked + session.asked.len() as u64, answered + session.sent - endpoint.octets_acknowledged())
        })
    }
}

fn host(address: [u8; 4]) -> Stack {
    Stack::new(Settings { addresses: vec![address.into()], mtu: 1500, key: address.repeat(4).try_into().unwrap() })
}

fn get(name: &str) -> String {
    format!("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n")
}

#[test]
fn a_client_that_asks_and_does_not_listen_is_held_back_and_cut_off() {
    let mut world = World::new(Limits { requests: usize::MAX, ..Limits::default() });
    let id = world.connect(0, 4096, "");
    let asking = get("small").repeat(1000);
    for _ in 0..550 {
        world.say(0, id, &asking);
        world.pass(Duration::from_millis(100));
        let (asked, held) = world.held();
        assert!(asked <= 2 * MAX_HEAD as u64 && held <= 4 << 20, "{asked} {held}");
    }
    assert!(world.is_open(0, id));
    let [unread] = world.server.sessions.keys().copied().collect::<Vec<_>>()[..] else { panic!("one session") };
    assert!(world.stack.endpoint(unread).unwrap().stats().octets_delivered < 4 << 20, "the window is closed");
    world.pass(Duration::from_secs(10));
    assert!(!world.is_open(0, id), "asking is no progress");
}

#[test]
fn a_connection_makes_so_many_requests_and_no_more() {
    let mut world = World::new(Limits::default());
    let id = world.connect(0, 1 << 20, "");
    let long = get(&"x".repeat(4000));
    let mut got = String::new();
    for _ in 0..400 {
        world.say(0, id, &long);
        got += &world.read(0, id);
    }
    assert_eq!(got.matches("HTTP/1.1 404").count(), 256);
    assert_eq!(got.matches("Connection: close").count(), 1);
    world.hosts[0].command(world.now, id, Command::Close);
    world.pass(Duration::from_secs(1));
    let finished = world.server.take_finished();
    assert_eq!((finished.len(), finished[0].requests.len()), (1, 256));
    assert!(finished[0].requests.iter().all(|request| request.target.len() == TOLD_TARGET));
}

#[test]
fn slow_readers_share_what_may_be_held() {
    let limits = Limits { held_by_address: 3 << 20, held_in_all: 4 << 20, ..Limits::default() };
    let mut world = World::new(limits);
    let mut readers = Vec::new();
    for number in 0..200 {
        readers.push((number % 2, world.connect(number % 2, 4096, &get("big"))));
        let (_, held) = world.held();
        assert!(held <= limits.held_in_all, "{held} with {number}");
    }
    world.pass(Duration::from_secs(1));
    assert!(world.held().1 <= limits.held_in_all && world.held().1 > limits.held_in_all / 2);
    // The first one gives up being slow, and gets all of it.
    let (from, id) = readers[0];
    let mut got = 0;
    for _ in 0..100_000 {
        got += world.read(from, id).len() as u64;
        if got > FILE {
            break;
        }
        world.pass(Duration::from_millis(1));
    }
    assert!(got > FILE, "{got}");
    world.pass(Duration::from_secs(62));
    assert_eq!(
        (world.server.clients(), world.held()),
        (0, (0, 0)),
        "those that do not read at all are cut off, and all is given back"
    );
}

#[test]
fn one_address_gets_its_part_of_the_connections() {
    let mut world = World::new(Limits::default());
    let open = (0..200).map(|_| world.connect(0, 4096, "")).collect::<Vec<_>>();
    assert_eq!(open.iter().filter(|id| world.is_open(0, **id)).count(), 128);
    let other = world.connect(1, 1 << 16, &get("small"));
    assert!(world.read(1, other).ends_with("small"));
    world.hosts[0].command(world.now, open[0], Command::Close);
    world.exchange();
    let next = world.connect(0, 1 << 16, &get("small"));
    assert!(world.read(0, next).ends_with("small"), "a place that is given up is free");
}

#[test]
fn a_request_takes_no_longer_than_it_may() {
    let mut world = World::new(Limits::default());
    let slow = world.connect(0, 1 << 16, "G");
    let silent = world.connect(0, 1 << 16, "");
    let idle = world.connect(0, 1 << 16, &get("small"));
    for _ in 0..2 {
        world.pass(Duration::from_secs(9));
        world.say(0, slow, "E");
    }
    assert_eq!([slow, silent, idle].map(|id| world.is_open(0, id)), [true; 3]);
    world.pass(Duration::from_secs(3));
    assert_eq!([slow, silent, idle].map(|id| world.is_open(0, id)), [false, false, true]);
    world.say(0, idle, &get("small"));
    assert_eq!(world.read(0, idle).matches("\r\n\r\nsmall").count(), 2);
    world.pass(Duration::from_secs(59));
    assert!(world.is_open(0, idle));
    world.pass(Duration::from_secs(2));
    assert!(!world.is_open(0, idle));
}

#[test]
fn those_who_wait_make_way() {
    let mut world = World::new(Limits { connections: 100, connections_by_address: 100, ..Limits::default() });
    let waiting: Vec<_> = (0..100).map(|_| world.connect(0, 4096, "G")).collect();
    world.pass(Duration::from_secs(2));
    let other = world.connect(1, 1 << 16, &get("small"));
    assert!(world.read(1, other).ends_with("small"));
    assert_eq!(waiting.iter().filter(|id| world.is_open(0, **id)).count(), 99);
    assert_eq!(world.server.clients(), 100);
}

#[test]
fn a_reader_that_takes_an_octet_now_and_then_is_cut_off() {
    let mut world = World::new(Limits::default());
    let id = world.connect(0, 4096, &get("big"));
    let mut seconds = 0;
    while world.is_open(0, id) && seconds < 600 {
        world.pass(Duration::from_secs(10));
        let _ = world.hosts[0].read(world.now, id, 100);
        seconds += 10;
    }
    assert!((60..=130).contains(&seconds), "{seconds}");
}

#[test]
fn those_in_time_wait_count_and_make_way_the_oldest_first() {
    let mut world = World::new(Limits { connections: 12, connections_by_address: 8, ..Limits::default() });
    let last = "GET /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let mut visit = |from: usize| {
        let id = world.connect(from, 1 << 16, last);
        assert!(world.read(from, id).ends_with("small"), "nobody is turned away for them");
        world.hosts[from].command(world.now, id, Command::Close);
        world.pass(Duration::from_millis(200));
        (world.server.waiting.iter().map(|(id, _)| world.stack.tuple(*id).unwrap().remote).collect(), world.stack.connections())
    };
    let address = |from: u8| IpAddr::from([192, 0, 2, 2 + from]);
    let mut all = Vec::new();
    for number in 1..=30 {
        let (waiting, connections): (Vec<SocketAddr>, _) = visit(0);
        assert_eq!((waiting.len(), connections), (number.min(8), number.min(8)), "of one address");
        all.push(waiting[waiting.len() - 1]);
        assert_eq!(waiting, all[all.len() - waiting.len()..], "the oldest are gone");
    }
    for number in 1..=30 {
        let (waiting, connections) = visit(1);
        assert_eq!((waiting.len(), connections), ((8 + number).min(12), (8 + number).min(12)), "in all");
        let of_first = waiting.iter().filter(|client| client.ip() == address(0)).count();
        assert_eq!(of_first, 8 - number.saturating_sub(4).min(4));
    }
    // Open ones count as well.
    let open: Vec<_> = (0..8).map(|_| world.connect(0, 1 << 16, "")).collect();
    assert_eq!((world.stack.connections(), world.server.waiting.len()), (12, 4));
    assert!(open.iter().all(|id| world.is_open(0, *id)));
    world.pass(Duration::from_secs(70));
    assert_eq!((world.stack.connections(), world.server.waiting.len()), (0, 0));
}
