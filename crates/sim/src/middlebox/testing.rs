//! What the tests of agents share: a fixed host and a mobile host that exchange segments of 100 octets, one flow or several.

use super::{Agent, Handling, Outbox, Side, Transit};
use crate::address::EndpointId;
use crate::record::Held;
use whyloss_transport::segment::Flags;
use whyloss_transport::{Duration, Instant, Payload, Segment, Seq};

/// The fixed host's end of a flow; its peer is that of the mobile host.
pub(super) const FIXED: EndpointId = EndpointId::new(0);
/// From the fixed host to the mobile host.
pub(super) const DOWN: Transit = Transit { now: Instant::ZERO, from: FIXED, side: Side::Fixed, crowded: false, corruption: 0.0 };
/// From the mobile host to the fixed host.
pub(super) const UP: Transit = Transit { from: FIXED.peer(), side: Side::Mobile, ..DOWN };

/// So many milliseconds after the beginning.
pub(super) fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// From the host on this side, at this many milliseconds.
pub(super) fn crossing(ms: u64, side: Side) -> Transit {
    let transit = if side == Side::Fixed { DOWN } else { UP };
    Transit { now: at(ms), ..transit }
}

/// Segment number `n`, from 0.
pub(super) fn data(n: u32) -> Segment {
    let payload = Payload::Synthetic { offset: u64::from(n) * 100, len: 100 };
    Segment { seq: Seq(n * 100), flags: Flags::ACK, window: 500, payload, ..Segment::default() }
}

/// The acknowledgement of the first `n` segments.
pub(super) fn ack(n: u32) -> Segment {
    Segment { ack: Seq(n * 100), flags: Flags::ACK, window: 900, ..Segment::default() }
}

/// What agents that keep segments have in common: `begun` gives one that keeps some of the first ten, of which the mobile host has acknowledged the
/// first, at `now` milliseconds.
pub(super) fn keeps_no_longer_than_it_should<A: Agent>(begun: impl Fn() -> A, now: u64) {
    let pass = |agent: &mut A, side, mut segment| agent.pass(&crossing(now, side), &mut segment, &mut Outbox::default());
    let mut agent = begun();
    let before = agent.held();
    assert!(before.segments > 0);
    assert_eq!(pass(&mut agent, Side::Mobile, ack(11)), Handling::Forward);
    assert_eq!(agent.held(), before, "an acknowledgement of what was not sent frees nothing");
    agent.restart();
    assert_eq!((agent.held(), agent.next_timer()), (Held::default(), None));
    assert_eq!(pass(&mut agent, Side::Mobile, ack(1)), Handling::Forward);
    assert_eq!(pass(&mut agent, Side::Fixed, data(10)), Handling::Forward);
    let mut agent = begun();
    pass(&mut agent, Side::Fixed, Segment { flags: Flags::RST, ..data(0) });
    assert_eq!((agent.held().flows, agent.held().octets, agent.next_timer()), (0, 0, None));
    let mut agent = begun();
    pass(&mut agent, Side::Fixed, Segment { flags: Flags::SYN, payload: Payload::Empty, seq: Seq(77), ..data(0) });
    assert_eq!((agent.held().segments, agent.next_timer()), (0, None));
}
