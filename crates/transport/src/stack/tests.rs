use super::*;
use crate::segment::Ecn;
use crate::time::Duration;

const OURS: [u8; 4] = [192, 0, 2, 1];
const THEIRS: [u8; 4] = [192, 0, 2, 2];

fn stack(address: [u8; 4]) -> Stack {
    Stack::new(Settings { addresses: vec![address.into()], mtu: 1500, key: [7; 16] })
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
fn strangers_are_reset_with_numbers_that_they_accept() {
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
    assert_eq!(stack.stats().damaged_strangers, 1);
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
    let v6 = "[2001:db8::1]:80".parse().unwrap();
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
