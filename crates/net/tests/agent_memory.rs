//! How much memory a split connection takes when its far end takes nothing, by the allocator's count, and what the agent says of it.

use bytes::Bytes;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use whyloss_sim::middlebox::{Agent, Handling, Middlebox, Outbox, Side, Transit};
use whyloss_sim::{EndpointId, MiddleboxKind};
use whyloss_transport::segment::{Flags, Options};
use whyloss_transport::{Instant, Payload, Segment, Seq};

static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counted.
struct Counted;

// SAFETY: the system's allocator does all the work.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const OPENER: EndpointId = EndpointId::new(0);
const BUFFER: usize = 262_144;

fn pass(agent: &mut dyn Agent, from: EndpointId, mut segment: Segment) -> Vec<Segment> {
    let side = if from == OPENER { Side::Fixed } else { Side::Mobile };
    let (src, dst) = if from == OPENER { (1000, 80) } else { (80, 1000) };
    (segment.src_port, segment.dst_port) = (src, dst);
    let transit = Transit { now: Instant::ZERO, from, side, crowded: false, corruption: 0.0 };
    let mut out = Outbox::default();
    assert_eq!(agent.pass(&transit, &mut segment, &mut out), Handling::Accept);
    out.take().into_iter().filter(|outgoing| outgoing.from != OPENER).map(|outgoing| outgoing.segment).collect()
}

/// Sends data in pieces until nothing more is taken; gives the octets taken and the agent.
fn fill(piece: usize) -> (usize, Box<dyn Agent>) {
    let kind = MiddleboxKind::named("i-tcp").expect("it is in the table");
    let mut agent = Middlebox::new(0, 0, kind).agent().expect("the usual values");
    let options = Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, ..Options::default() };
    let syn = Segment { seq: Seq(0), flags: Flags::SYN, window: 64_000, options: options.clone(), ..Segment::default() };
    pass(&mut *agent, OPENER, syn);
    let flags = Flags::SYN | Flags::ACK;
    let answer = Segment { seq: Seq(0), ack: Seq(1), flags, window: 10_000, options, ..Segment::default() };
    pass(&mut *agent, OPENER.peer(), answer);
    pass(&mut *agent, OPENER, Segment { seq: Seq(1), ack: Seq(1), flags: Flags::ACK, window: 500, ..Segment::default() });
    let (mut taken, mut refused) = (0, 0);
    while refused < 3 {
        // As it comes: a slice of its packet.
        let payload = Payload::Bytes(Bytes::from(vec![7; 52 + piece]).slice(52..));
        let seq = Seq(1 + taken as u32);
        let data = Segment { seq, ack: Seq(1), flags: Flags::ACK, window: 500, payload, ..Segment::default() };
        pass(&mut *agent, OPENER, data);
        // It may acknowledge late, or nothing at all where it has refused: a probe below the window tells how far it is.
        let probe = Segment { seq: Seq(0), ack: Seq(1), flags: Flags::ACK, window: 500, ..Segment::default() };
        let told = pass(&mut *agent, OPENER, probe).last().map_or(taken, |answer| answer.ack.0 as usize - 1);
        refused = if told > taken { 0 } else { refused + 1 };
        taken = told;
    }
    (taken, agent)
}

#[test]
fn a_connection_whose_far_end_takes_nothing_is_bounded_in_memory() {
    // At most a piece for each 64 octets of a receive buffer waits; in the send buffer small ones are joined.
    for (piece, most) in [(1448, 3 * BUFFER), (100, 5 * BUFFER), (1, 6 * BUFFER)] {
        let before = IN_USE.load(Ordering::Relaxed);
        let (taken, agent) = fill(piece);
        let used = IN_USE.load(Ordering::Relaxed) - before;
        let held = agent.held();
        println!("pieces of {piece}: {taken} octets taken, {used} octets of memory, {held:?}");
        assert!(taken > BUFFER, "the send buffer of one half is full, and {taken} octets were taken");
        assert!(used < most, "{used} octets of memory for {taken}");
        assert!(held.octets as usize >= taken && (held.octets as usize) < 2 * BUFFER + 20_000);
        drop(agent);
        assert!(IN_USE.load(Ordering::Relaxed) < before + 10_000, "what is left of a connection");
    }
}
