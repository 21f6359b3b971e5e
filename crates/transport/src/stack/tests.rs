use super::*;
use crate::segment::{Ecn, Flags};
use crate::seq::Seq;
use crate::time::Duration;

const OURS: [u8; 4] = [192, 0, 2, 1];
const THEIRS: [u8; 4] = [192, 0, 2, 2];

fn v6(address: [u8; 4]) -> IpAddr {
    [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(address[3])].into()
}

fn stack(address: [u8; 4]) -> Stack {
    Stack::new(Settings { addresses: vec![address.into(), v6(address)], mtu: 1500, key: [7; 16] })
}

fn arriving() -> Addresses {
    Addresses::new(THEIRS.into(), OURS.into()).unwrap()
}

fn segment(flags: Flags) -> Segment {
    let payload = Payload::Synthetic { offset: 0, len: 10 };
    Segment { src_port: 5000, dst_port: 80, seq: Seq(1000), ack: Seq(77), flags, payload, ..Segment::default() }
}

fn listener(backlog: usize) -> Listener {
    let config = Config { time_wait: Duration::from_secs(1), ..Config::modern() };
    Listener { config, selection: Selection::default(), backlog }
}

fn answer(stack: &mut Stack, segment: &Segment, integrity: Integrity) -> Option<Segment> {
    stack.handle(Instant::ZERO, arriving(), segment, integrity);
    stack.poll_transmit(Instant::ZERO).map(|datagram| {
        assert_eq!(datagram.addresses, arriving().reversed());
        datagram.segment
    })
}

/// RFC 9293, 3.10.7.1.
#[test]
fn segments_of_no_connection_are_reset_with_numbers_that_they_accept() {
    let mut stack = stack(OURS);
    let reset = answer(&mut stack, &segment(Flags::SYN), Integrity::Intact).unwrap();
    assert_eq!((reset.flags, reset.seq, reset.ack), (Flags::RST | Flags::ACK, Seq(0), Seq(1011)));
    assert_eq!((reset.src_port, reset.dst_port, reset.ecn), (80, 5000, Ecn::NotCapable));
    let reset = answer(&mut stack, &segment(Flags::FIN | Flags::ACK), Integrity::Intact).unwrap();
    assert_eq!((reset.flags, reset.seq), (Flags::RST, Seq(77)));
    assert_eq!(stack.stats().resets, 2);
}

#[test]
fn nobody_answers_a_reset_a_damaged_segment_or_a_wrong_address() {
    let mut stack = stack(OURS);
    assert_eq!(answer(&mut stack, &segment(Flags::RST), Integrity::Intact), None);
    assert_eq!(answer(&mut stack, &segment(Flags::ACK), Integrity::HeaderSuspect), None);
    assert_eq!(stack.stats().damaged_unmatched, 1);
    for (from, to) in [(OURS, OURS), (THEIRS, THEIRS), ([0; 4], OURS), ([224, 0, 0, 1], OURS), ([255; 4], OURS)] {
        stack.handle(Instant::ZERO, Addresses::new(from.into(), to.into()).unwrap(), &segment(Flags::SYN), Integrity::Intact);
        assert_eq!(stack.poll_transmit(Instant::ZERO), None, "{from:?} to {to:?}");
    }
    assert_eq!(stack.stats().misaddressed, 5);
}

/// RFC 9293, 3.10.7.2.
#[test]
fn a_listener_resets_acknowledgements_and_ignores_what_is_no_syn() {
    let mut stack = stack(OURS);
    stack.listen("0.0.0.0:80".parse().unwrap(), listener(1)).unwrap();
    assert_eq!(answer(&mut stack, &segment(Flags::SYN | Flags::ACK), Integrity::Intact).unwrap().flags, Flags::RST);
    assert_eq!(answer(&mut stack, &segment(Flags::FIN), Integrity::Intact), None);
    assert_eq!(answer(&mut stack, &segment(Flags::SYN), Integrity::HeaderSuspect), None);
    assert_eq!(stack.connections(), 0);
}

#[test]
fn a_listener_keeps_as_many_handshakes_as_its_backlog_holds() {
    let mut stack = stack(OURS);
    stack.listen("192.0.2.1:80".parse().unwrap(), listener(2)).unwrap();
    for src_port in 5000..5003 {
        let syn = Segment { src_port, payload: Payload::Empty, ..segment(Flags::SYN) };
        let reply = answer(&mut stack, &syn, Integrity::Intact);
        assert_eq!(reply.map(|segment| segment.flags), Some(Flags::SYN | Flags::ACK));
        assert_eq!(stack.connections(), (src_port as usize - 4999).min(2), "the third one is answered and forgotten");
    }
    assert_eq!(stack.stats().cookies_sent, 1);
    // A reset of a handshake makes room again.
    stack.handle(Instant::ZERO, arriving(), &Segment { seq: Seq(1001), ..segment(Flags::RST) }, Integrity::Intact);
    assert_eq!(stack.poll_transmit(Instant::ZERO), None);
    assert_eq!(stack.connections(), 1);
    assert_eq!(stack.poll_notice(), None);
}

#[test]
fn listening_is_refused_with_a_reason() {
    let mut stack = stack(OURS);
    let local: SocketAddr = "192.0.2.1:80".parse().unwrap();
    stack.listen(local, listener(1)).unwrap();
    assert_eq!(stack.listen(local, listener(1)), Err(StackError::ListenerExists(local)));
    assert_eq!(
        stack.listen("192.0.2.9:80".parse().unwrap(), listener(1)),
        Err(StackError::ForeignAddress([192, 0, 2, 9].into()))
    );
    let unknown = Listener { selection: Selection::scheme("no-such-scheme"), ..listener(1) };
    assert!(matches!(stack.listen("192.0.2.1:81".parse().unwrap(), unknown), Err(StackError::Selection(_))));
    let v6 = "[2001:db8::9]:80".parse().unwrap();
    let mut stack = Stack::new(Settings { addresses: vec![OURS.into()], mtu: 1500, key: [7; 16] });
    let error = stack.connect(Instant::ZERO, v6, Config::modern(), &Selection::default()).unwrap_err();
    assert_eq!(error, StackError::NoSource(v6.ip()));
}

#[test]
fn every_connection_gets_a_port_and_sequence_numbers_of_its_own() {
    let mut stack = stack(OURS);
    let remote = "192.0.2.2:80".parse().unwrap();
    let mut tuples: Vec<_> = (0..300)
        .map(|_| {
            let id = stack.connect(Instant::ZERO, remote, Config::modern(), &Selection::default()).unwrap();
            stack.tuple(id).unwrap()
        })
        .collect();
    tuples.sort();
    tuples.dedup();
    assert_eq!(tuples.len(), 300);
    assert!(tuples.iter().all(|tuple| tuple.local.port() >= 49_152));
    let identity = Identity::new([7; 16]);
    let mut numbers: Vec<_> = tuples.iter().map(|tuple| identity.initial_seq(tuple, Instant::ZERO)).collect();
    let later = identity.initial_seq(&tuples[0], Instant::ZERO + Duration::from_secs(1));
    assert_eq!(later.wrapping_sub(numbers[0]), 250_000, "a tick is 4 us");
    numbers.sort_unstable();
    assert!(numbers.windows(2).any(|pair| pair[1] - pair[0] > 1 << 20), "they are not a sequence");
}

/// Two stacks with a link of 1 ms between them.
struct Pair {
    now: Instant,
    stacks: [Stack; 2],
    flying: VecDeque<(Instant, usize, Datagram)>,
}

impl Pair {
    fn new() -> Self {
        Self { now: Instant::ZERO, stacks: [stack(OURS), stack(THEIRS)], flying: VecDeque::new() }
    }

    /// Moves on to the next event by `until`; whether there was one.
    fn step(&mut self, until: Instant) -> bool {
        for side in 0..2 {
            while let Some(datagram) = self.stacks[side].poll_transmit(self.now) {
                self.flying.push_back((self.now + Duration::from_millis(1), 1 - side, datagram));
            }
        }
        let timers = self.stacks.iter().filter_map(Stack::poll_timeout);
        let Some(next) = timers.chain(self.flying.front().map(|flying| flying.0)).min().filter(|next| *next <= until) else {
            return false;
        };
        self.now = self.now.max(next);
        while self.flying.front().is_some_and(|flying| flying.0 <= self.now) {
            let (_, side, datagram) = self.flying.pop_front().unwrap();
            self.stacks[side].handle(self.now, datagram.addresses, &datagram.segment, Integrity::Intact);
        }
        self.stacks.iter_mut().for_each(|stack| stack.handle_timeout(self.now));
        true
    }

    fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        while self.step(until) {}
        self.now = until;
    }

    fn accepted(&mut self, side: usize) -> Option<ConnectionId> {
        std::iter::from_fn(|| self.stacks[side].poll_notice()).find_map(|notice| match notice {
            Notice::Accepted(id) => Some(id),
            Notice::Event(..) => None,
        })
    }

    fn connected() -> (Self, ConnectionId, ConnectionId) {
        let mut pair = Self::new();
        pair.stacks[1].listen("0.0.0.0:80".parse().unwrap(), listener(1)).unwrap();
        let config = listener(1).config;
        let client = pair.stacks[0].connect(pair.now, "192.0.2.2:80".parse().unwrap(), config, &Selection::default()).unwrap();
        pair.run_for(Duration::from_millis(10));
        let server = pair.accepted(1).expect("a connection");
        (pair, client, server)
    }
}

#[test]
fn connections_are_forgotten_when_both_sides_are_done_and_time_wait_is_over() {
    let (mut pair, client, server) = Pair::connected();
    assert_eq!(pair.stacks[1].tuple(server).unwrap().remote, pair.stacks[0].tuple(client).unwrap().local);
    pair.stacks[0].command(pair.now, client, Command::Close);
    pair.run_for(Duration::from_millis(10));
    pair.stacks[1].command(pair.now, server, Command::Close);
    pair.stacks[0].release(client);
    pair.stacks[1].release(server);
    pair.run_for(Duration::from_millis(500));
    assert_eq!([pair.stacks[0].connections(), pair.stacks[1].connections()], [1, 0], "TIME-WAIT is the first closer's");
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.stacks[0].connections(), 0);
    assert_eq!(pair.stacks[0].endpoint(client).map(Endpoint::state), None);
}

#[test]
fn received_data_survives_the_end_of_its_connection() {
    let (mut pair, client, server) = Pair::connected();
    pair.stacks[0].command(pair.now, client, Command::Send(Payload::Synthetic { offset: 0, len: 5000 }));
    pair.stacks[0].command(pair.now, client, Command::Close);
    pair.stacks[1].command(pair.now, server, Command::Close);
    pair.run_for(Duration::from_secs(3));
    let mut got = Vec::new();
    while let Some(data) = pair.stacks[1].read(pair.now, server, 1000) {
        data.write_to(&mut got);
    }
    assert_eq!(got, Payload::Synthetic { offset: 0, len: 5000 }.to_bytes());
    pair.stacks[1].release(server);
    assert_eq!(pair.stacks[1].poll_transmit(pair.now), None);
    assert_eq!(pair.stacks[1].connections(), 0);
}

#[test]
fn a_damaged_segment_reaches_its_connection_and_no_other() {
    let (mut pair, client, server) = Pair::connected();
    let FourTuple { local, remote } = pair.stacks[1].tuple(server).unwrap();
    let damaged = Segment { src_port: remote.port(), dst_port: local.port(), ..segment(Flags::RST) };
    let addresses = Addresses::new(remote.ip(), local.ip()).unwrap();
    pair.stacks[1].handle(pair.now, addresses, &damaged, Integrity::HeaderSuspect);
    assert_eq!(pair.stacks[1].endpoint(server).unwrap().stats().damaged_received, 1);
    let stranger = Segment { src_port: remote.port() ^ 1, ..damaged };
    pair.stacks[1].handle(pair.now, addresses, &stranger, Integrity::HeaderSuspect);
    assert_eq!(pair.stacks[1].stats().damaged_unmatched, 1);
    pair.run_for(Duration::from_millis(10));
    assert_eq!(pair.stacks[0].endpoint(client).unwrap().state(), crate::tcp::State::Established);
    assert_eq!(pair.stacks[1].endpoint(server).unwrap().state(), crate::tcp::State::Established);
}

/// RFC 9293, 3.10.7.4 and RFC 6191.
#[test]
fn a_new_connection_takes_the_place_of_one_in_time_wait() {
    let (mut pair, client, server) = Pair::connected();
    let tuple = pair.stacks[1].tuple(server).unwrap();
    pair.stacks[1].command(pair.now, server, Command::Send(Payload::Synthetic { offset: 0, len: 3_000_000 }));
    for (stack, id) in [(1, server), (0, client)] {
        pair.stacks[stack].command(pair.now, id, Command::Close);
        pair.run_for(Duration::from_millis(200));
    }
    let old = pair.stacks[1].endpoint(server).unwrap();
    assert_eq!(old.state(), crate::tcp::State::TimeWait);
    let ended_at = Seq::from(old.path().nxt);

    let addresses = Addresses::new(tuple.remote.ip(), tuple.local.ip()).unwrap();
    let flags = Flags::SYN;
    let mut syn = Segment { src_port: tuple.remote.port(), dst_port: 80, seq: Seq(0), flags, ..Segment::default() };
    // The clock of its timestamps runs behind: an old duplicate.
    syn.options.timestamps = Some(crate::segment::Timestamps { value: 1, echo: 0 });
    pair.stacks[1].handle(pair.now, addresses, &syn, Integrity::Intact);
    assert_eq!(pair.stacks[1].endpoint(server).unwrap().state(), crate::tcp::State::TimeWait);
    while pair.stacks[1].poll_transmit(pair.now).is_some() {}

    syn.options.timestamps = Some(crate::segment::Timestamps { value: 1 << 20, echo: 0 });
    pair.stacks[1].handle(pair.now, addresses, &syn, Integrity::Intact);
    let answer = pair.stacks[1].poll_transmit(pair.now).unwrap().segment;
    assert_eq!((answer.flags, answer.ack), (Flags::SYN | Flags::ACK, Seq(1)));
    assert!(ended_at.precedes(answer.seq), "{ended_at} precedes {}", answer.seq);
    let closed = Notice::Event(server, Event::Closed(crate::tcp::Closing::Normal));
    assert!(std::iter::from_fn(|| pair.stacks[1].poll_notice()).any(|notice| notice == closed));
}

/// SYNs from `count` addresses that never send a third packet.
fn flood(pair: &mut Pair, to: IpAddr, count: u32) {
    for number in 0..count {
        let from: IpAddr = match to {
            IpAddr::V4(_) => (0x0A00_0001 + number).to_be_bytes().into(),
            IpAddr::V6(_) => (0x2001_0db8_ffff_u128 << 80 | u128::from(number)).to_be_bytes().into(),
        };
        let syn = Segment { seq: Seq(number), payload: Payload::Empty, ..segment(Flags::SYN) };
        pair.stacks[1].handle(pair.now, Addresses::new(from, to).unwrap(), &syn, Integrity::Intact);
        while pair.stacks[1].poll_transmit(pair.now).is_some() {}
    }
}

/// RFC 4987, 3.6.
#[test]
fn a_flood_of_syns_keeps_nobody_out() {
    for to in [THEIRS.into(), v6(THEIRS)] {
        for timestamps in [true, false] {
            let mut pair = Pair::new();
            let server = Listener { config: Config { ecn: true, ..listener(16).config }, ..listener(16) };
            pair.stacks[1].listen(SocketAddr::new(to, 80), server).unwrap();
            flood(&mut pair, to, 10_000);
            assert_eq!(pair.stacks[1].connections(), 16);
            let config = Config { timestamps, ecn: true, mss: 1400, ..listener(1).config };
            let remote = SocketAddr::new(to, 80);
            let client = pair.stacks[0].connect(pair.now, remote, config, &Selection::default()).unwrap();
            for _ in 0..40 {
                flood(&mut pair, to, 20);
                pair.run_for(Duration::from_millis(1));
            }
            let server = pair.accepted(1).expect("a connection");
            assert_eq!(pair.stacks[1].stats().cookies_taken, 1);
            let ends = [(0, client), (1, server)].map(|(side, id)| pair.stacks[side].endpoint(id).unwrap());
            for end in ends {
                // Where timestamps carry them, the other options are agreed upon as ever.
                assert_eq!(end.agreed(), (timestamps, timestamps, timestamps), "{to}");
                assert_eq!(end.window_scales(), timestamps.then_some((7, 7)));
                assert_eq!(end.path().mss, if timestamps { 1388 } else { 1400 });
            }
            for (side, id) in [(0, client), (1, server)] {
                pair.stacks[side].command(pair.now, id, Command::Send(Payload::Synthetic { offset: 0, len: 60_000 }));
            }
            pair.run_for(Duration::from_secs(2));
            for (side, id) in [(0, client), (1, server)] {
                let end = pair.stacks[side].endpoint(id).unwrap();
                assert_eq!((end.octets_acknowledged(), end.stats().octets_delivered), (60_000, 60_000), "{to}");
                assert_eq!(end.stats().timeouts, 0);
            }
        }
    }
}

#[test]
fn a_cookie_is_good_for_its_connection_and_for_two_minutes() {
    let arriving = Addresses::new(THEIRS.into(), OURS.into()).unwrap();
    let syn = Segment { payload: Payload::Empty, ..segment(Flags::SYN) };
    let flooded = || {
        let mut stack = stack(OURS);
        stack.listen("192.0.2.1:80".parse().unwrap(), listener(0)).unwrap();
        let answer = answer(&mut stack, &syn, Integrity::Intact).unwrap();
        let ack = Segment { seq: answer.ack, ack: answer.seq + 1, ..segment(Flags::ACK) };
        (stack, Segment { payload: Payload::Empty, ..ack })
    };
    let taken = |change: &dyn Fn(&mut Segment), from: [u8; 4], after: u64| {
        let (mut stack, mut ack) = flooded();
        change(&mut ack);
        let now = Instant::ZERO + Duration::from_secs(after);
        stack.handle(now, Addresses::new(from.into(), OURS.into()).unwrap(), &ack, Integrity::Intact);
        let answer = stack.poll_transmit(now).map(|datagram| datagram.segment.flags);
        let reset = answer == Some(Flags::RST);
        assert_eq!(stack.connections(), usize::from(!reset), "{answer:?}");
        !reset
    };
    assert!(taken(&|_| {}, THEIRS, 0) && taken(&|_| {}, THEIRS, 64));
    assert!(!taken(&|_| {}, THEIRS, 128), "it is too old");
    assert!(!taken(&|_| {}, [192, 0, 2, 77], 0), "it is another one's");
    assert!(!taken(&|ack| ack.src_port += 1, THEIRS, 0));
    assert!(!taken(&|ack| ack.seq = ack.seq + 1, THEIRS, 0));
    for bit in 0..32 {
        assert!(!taken(&|ack| ack.ack = Seq(ack.ack.0.wrapping_sub(1) ^ 1 << bit) + 1, THEIRS, 0), "bit {bit}");
    }
    // Who has sent no cookie takes none.
    let (_, ack) = flooded();
    let mut quiet = stack(OURS);
    quiet.listen("192.0.2.1:80".parse().unwrap(), listener(1)).unwrap();
    quiet.handle(Instant::ZERO, arriving, &ack, Integrity::Intact);
    assert_eq!((quiet.connections(), quiet.stats().resets), (0, 1));
}

#[test]
fn nobody_begins_and_ends_at_once() {
    let mut stack = stack(OURS);
    stack.listen("192.0.2.1:80".parse().unwrap(), listener(8)).unwrap();
    assert_eq!(answer(&mut stack, &segment(Flags::SYN | Flags::FIN), Integrity::Intact), None);
    assert_eq!(stack.connections(), 0);
}

/// What the program knows of the link reaches the connections that there are, and those to come.
#[test]
fn a_host_that_is_told_of_its_link_closes_and_opens_windows() {
    let mut stack = stack(OURS);
    let freezing = Listener { selection: Selection::scheme("freeze-tcp"), ..listener(1) };
    stack.listen("192.0.2.1:80".parse().unwrap(), freezing).unwrap();
    let windows = |stack: &mut Stack| {
        stack.handle_timeout(Instant::ZERO);
        std::iter::from_fn(|| stack.poll_transmit(Instant::ZERO)).map(|sent| sent.segment.window).collect::<Vec<_>>()
    };
    let syn = Segment { payload: Payload::Empty, ..segment(Flags::SYN) };
    let answered = answer(&mut stack, &syn, Integrity::Intact).unwrap();
    stack.tell_link(Instant::ZERO, LinkHint::GoesDown(Instant::ZERO));
    let ack = Segment { seq: Seq(1001), ack: answered.seq + 1, window: 1000, ..segment(Flags::ACK) };
    stack.handle(Instant::ZERO, arriving(), &ack, Integrity::Intact);
    assert_eq!(windows(&mut stack), [0]);
    stack.tell_link(Instant::ZERO, LinkHint::Up);
    let told = windows(&mut stack);
    assert!(told.len() == 3 && told.iter().all(|window| *window > 1000), "{told:?}");
}
