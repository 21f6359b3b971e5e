//! M-TCP (Brown & Singh 1997): the base station keeps a sender from timing out while its mobile host is away.
//!
//! Of what the mobile host acknowledges, the last octet is held back. When the link goes down, or nothing has come from the mobile host for
//! long, the base station acknowledges that octet with a window of zero: the sender stops, and probes. When the mobile host is back, it is
//! told the true window. Nothing is acknowledged that has not arrived, and no data is kept.
//!
//! Our reading: duplicates and the acknowledgement of a FIN are not held back, nor is the last octet for long when nothing follows: a
//! sender would repair what is not broken.

use super::agent::{Agent, Handed, Handling, Outbox, Side, Transit};
use super::deadlines::Deadlines;
use super::table::Table;
use crate::address::{EndpointId, FlowId};
use crate::record::Held;
use std::any::Any;
use whyloss_transport::kit::{Build, Notes, Part};
use whyloss_transport::segment::{Flags, SackBlocks};
use whyloss_transport::{settings, Duration, Instant, Payload, Segment};

pub(super) const PART: Part<dyn Agent> = Part {
    name: "m-tcp",
    summary: "Holds back the last octet's acknowledgement, and closes the sender's window with it while the mobile host is away.",
    reference: "Brown & Singh 1997",
    notes: Notes {
        idea: "A sender whose window is closed waits and probes; one that hears nothing times out, backs off and begins anew.",
        fails: "Where a sender's retransmission timer runs on while the window is closed (tcp.closed_window = \"retransmit\", as in Linux): then only its backoff is shorter. It repairs nothing that the link loses.",
        errata: "The original splits the connection and repairs over the wireless half; here the acknowledgements alone are its own.",
        ..Notes::NONE
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What it waits for.
    pub(super) struct Settings {
        /// Milliseconds without a segment of the mobile host, with data outstanding, after which it is taken for gone; 0: only the link tells.
        silence_ms: f64 = 1000.0, 0.0..=600_000.0;
        /// Milliseconds after which the last octet is acknowledged if nothing follows.
        hold_ms: f64 = 50.0, 1.0..=10_000.0;
        /// How often the sender is told that the mobile host is back.
        copies: u32 = 1, 1..=10;
        /// Flows that are remembered; the one that was quiet for longest makes room.
        flows: usize = 1024, 1..=1_000_000;
        /// Octets that a flow's state takes from station to station when the mobile host moves.
        state_octets: u64 = 200, 1..=1_000_000;
    }
}

impl Build<dyn Agent> for Settings {
    fn build(self) -> Box<dyn Agent> {
        Box::new(MTcp { settings: self, flows: Table::new(self.flows), timers: Deadlines::default(), away: false })
    }
}

/// Closes and opens the windows of senders.
#[derive(Debug)]
pub(super) struct MTcp {
    settings: Settings,
    flows: Table<MtcpFlow>,
    timers: Deadlines,
    /// The link is down.
    away: bool,
}

/// A flow, with data on its way to the mobile host.
#[derive(Debug)]
struct MtcpFlow {
    /// The fixed host's end.
    fixed: EndpointId,
    /// The end of the data that has come from the fixed host, and of its FIN.
    sent: Option<u64>,
    fin: Option<u64>,
    last: Option<Last>,
    /// Since when data has been outstanding without a word of the mobile host.
    waiting: Instant,
    /// The sender's window is closed.
    closed: bool,
}

/// What the mobile host has acknowledged.
#[derive(Debug)]
struct Last {
    ack: u64,
    /// What the fixed host knows of it.
    told: u64,
    at: Instant,
    /// Its latest segment, without its data.
    latest: Box<Segment>,
}

const FLOW_OCTETS: u64 = (size_of::<MtcpFlow>() + size_of::<Segment>()) as u64;

fn span(milliseconds: f64) -> Duration {
    Duration::from_nanos((milliseconds * 1e6) as u64)
}

impl MtcpFlow {
    fn new(now: Instant, fixed: EndpointId) -> Self {
        Self { fixed, sent: None, fin: None, last: None, waiting: now, closed: false }
    }

    /// A segment of the fixed host passes.
    fn sends(&mut self, now: Instant, segment: &Segment) {
        let start = segment.seq.near(self.sent.unwrap_or((1 << 32) | u64::from(segment.seq.0)));
        let end = start + u64::from(segment.seq_len());
        if self.sent.is_none_or(|sent| self.last.as_ref().is_some_and(|last| last.ack >= sent)) {
            self.waiting = now;
        }
        self.sent = Some(self.sent.unwrap_or(end).max(end));
        if segment.flags.contains(Flags::FIN) {
            self.fin = Some(end);
        }
    }

    /// A segment of the mobile host passes; its last octet may be held back.
    fn acknowledges(&mut self, now: Instant, segment: &mut Segment) {
        self.waiting = now;
        self.closed = false;
        let Some(sent) = self.sent.filter(|_| segment.flags.contains(Flags::ACK)) else { return };
        let ack = segment.ack.near(sent);
        if ack > sent || self.last.as_ref().is_some_and(|last| ack < last.ack) {
            return;
        }
        let mut latest = Segment { payload: Payload::Empty, flags: Flags::ACK, ..segment.clone() };
        latest.seq = segment.seq + segment.seq_len();
        latest.options.sack = SackBlocks::default();
        latest.options.rare = None;
        let before = self.last.as_ref().map(|last| (last.ack, last.told));
        let control = segment.flags.intersects(Flags::SYN | Flags::FIN | Flags::RST);
        // Something remains that is news, and something that is not.
        let hold = before.is_some_and(|(acked, told)| ack > acked && ack - 1 > told)
            && segment.is_empty()
            && !control
            && self.fin != Some(ack);
        let told = if hold { ack - 1 } else { ack };
        segment.ack = whyloss_transport::Seq::from(told);
        self.last = Some(Last { ack, told, at: now, latest: Box::new(latest) });
    }

    /// An acknowledgement of everything, with this window.
    fn tell(&mut self, window: Option<u16>) -> Option<Segment> {
        let last = self.last.as_mut()?;
        last.told = last.ack;
        let mut segment = (*last.latest).clone();
        segment.ack = whyloss_transport::Seq::from(last.ack);
        segment.window = window.unwrap_or(segment.window);
        Some(segment)
    }

    /// The mobile host has gone.
    fn close(&mut self, out: &mut Outbox) {
        if let Some(segment) = self.tell(Some(0)) {
            self.closed = true;
            out.send(self.fixed.peer(), segment);
        }
    }

    /// The mobile host is back, or there is another station: the sender is told its true window.
    fn open(&mut self, now: Instant, copies: u32, out: &mut Outbox) {
        self.closed = false;
        self.waiting = now;
        for _ in 0..copies {
            if let Some(segment) = self.tell(None) {
                out.send(self.fixed.peer(), segment);
            }
        }
    }

    /// When something is due.
    fn due(&self, settings: &Settings) -> Option<Instant> {
        let last = self.last.as_ref()?;
        let held = (last.told < last.ack).then(|| last.at + span(settings.hold_ms));
        let outstanding = self.sent.is_some_and(|sent| sent > last.ack) && !self.closed && settings.silence_ms > 0.0;
        let gone = outstanding.then(|| self.waiting + span(settings.silence_ms));
        held.into_iter().chain(gone).min()
    }
}

impl Agent for MTcp {
    fn pass(&mut self, transit: &Transit, segment: &mut Segment, out: &mut Outbox) -> Handling {
        let id = transit.from.flow();
        if segment.flags.contains(Flags::RST) {
            self.flows.remove(id);
            self.timers.set(id, None);
            return Handling::Forward;
        }
        let fixed = if transit.side == Side::Fixed { transit.from } else { transit.from.peer() };
        let (flow, gone) = self.flows.get_or_insert(id, || MtcpFlow::new(transit.now, fixed));
        if segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK) {
            *flow = MtcpFlow::new(transit.now, fixed);
        }
        match transit.side {
            Side::Mobile => flow.acknowledges(transit.now, segment),
            Side::Fixed => {
                flow.sends(transit.now, segment);
                // A probe, or what was under way: the window is still closed.
                if (flow.closed || self.away) && segment.seq_len() > 0 {
                    flow.close(out);
                }
            }
        }
        let due = flow.due(&self.settings);
        if let Some((gone, _)) = gone {
            self.timers.set(gone, None);
        }
        self.timers.set(id, due);
        Handling::Forward
    }

    fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn on_timer(&mut self, now: Instant, out: &mut Outbox) {
        while let Some(id) = self.timers.take(now) {
            let Some(flow) = self.flows.get_mut(id) else { continue };
            let gone = self.settings.silence_ms > 0.0 && now >= flow.waiting + span(self.settings.silence_ms);
            if gone || self.away {
                flow.close(out);
            } else if let Some(segment) = flow.tell(None) {
                out.send(flow.fixed.peer(), segment);
            }
            let due = flow.due(&self.settings);
            self.timers.set(id, due);
        }
    }

    fn on_link(&mut self, now: Instant, up: bool, out: &mut Outbox) {
        self.away = !up;
        for (id, flow) in self.flows.iter_mut() {
            if up {
                flow.open(now, self.settings.copies, out);
            } else {
                flow.close(out);
            }
            let due = flow.due(&self.settings);
            self.timers.set(id, due);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        self.flows.remove(flow);
        self.timers.set(flow, None);
    }

    fn hand_over(&mut self, flow: FlowId) -> Option<Handed> {
        let state = self.flows.remove(flow)?;
        self.timers.set(flow, None);
        Some(Handed { octets: self.settings.state_octets, ahead: false, state: Box::new(state) })
    }

    /// What has passed here meanwhile is newer than what comes.
    fn take_over(&mut self, now: Instant, id: FlowId, state: Box<dyn Any + Send>, out: &mut Outbox) {
        let Ok(state) = state.downcast::<MtcpFlow>() else { return };
        let (flow, gone) = self.flows.get_or_insert(id, || MtcpFlow::new(now, state.fixed));
        if flow.last.is_none() {
            *flow = MtcpFlow { sent: flow.sent.max(state.sent), ..*state };
        }
        if !self.away {
            flow.open(now, self.settings.copies, out);
        }
        let due = flow.due(&self.settings);
        if let Some((gone, _)) = gone {
            self.timers.set(gone, None);
        }
        self.timers.set(id, due);
    }

    fn restart(&mut self) {
        self.flows.clear();
        self.timers.clear();
    }

    fn held(&self) -> Held {
        let flows = self.flows.len() as u64;
        Held { flows, segments: 0, octets: flows * FLOW_OCTETS, flow_octets: flows.min(1) * FLOW_OCTETS }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middlebox::testing::{ack, at, crossing, data, FIXED};
    use whyloss_transport::Seq;

    struct Station(Box<dyn Agent>);

    /// Acknowledgement numbers and windows of what is sent to the fixed host.
    fn told(out: &mut Outbox) -> Vec<(u32, u16)> {
        out.take()
            .into_iter()
            .map(|outgoing| {
                assert_eq!(outgoing.from, FIXED.peer());
                (outgoing.segment.ack.0, outgoing.segment.window)
            })
            .collect()
    }

    impl Station {
        /// One that has forwarded segments 0 to 9 at 0 ms.
        fn begun(settings: Settings) -> Self {
            let mut station = Self(settings.build());
            for n in 0..10 {
                assert_eq!(station.down(0, &data(n)), []);
            }
            station
        }

        fn pass(&mut self, ms: u64, side: Side, mut segment: Segment) -> (Segment, Vec<(u32, u16)>) {
            let mut out = Outbox::default();
            assert_eq!(self.0.pass(&crossing(ms, side), &mut segment, &mut out), Handling::Forward);
            (segment, told(&mut out))
        }

        fn down(&mut self, ms: u64, segment: &Segment) -> Vec<(u32, u16)> {
            let (passed, told) = self.pass(ms, Side::Fixed, segment.clone());
            assert_eq!(passed, *segment);
            told
        }

        /// What the fixed host gets of an acknowledgement.
        fn up(&mut self, ms: u64, segment: Segment) -> u32 {
            let (passed, told) = self.pass(ms, Side::Mobile, segment);
            assert_eq!(told, []);
            passed.ack.0
        }

        fn due(&self) -> Option<u64> {
            self.0.next_timer().map(|at| at.as_nanos() / 1_000_000)
        }

        fn expire(&mut self) -> Vec<(u32, u16)> {
            let mut out = Outbox::default();
            self.0.on_timer(self.0.next_timer().expect("a timer runs"), &mut out);
            told(&mut out)
        }

        fn link(&mut self, ms: u64, up: bool) -> Vec<(u32, u16)> {
            let mut out = Outbox::default();
            self.0.on_link(at(ms), up, &mut out);
            told(&mut out)
        }
    }

    #[test]
    fn the_last_octet_is_held_back_until_something_follows() {
        let mut station = Station::begun(Settings::default());
        assert_eq!(station.up(10, ack(1)), 100, "nothing to compare with");
        assert_eq!(station.up(11, ack(2)), 199);
        assert_eq!(station.up(12, ack(3)), 299);
        assert_eq!(station.up(13, ack(3)), 300, "a duplicate asks for what follows");
        assert_eq!(station.up(14, ack(4)), 399);
        assert_eq!(station.due(), Some(64));
        assert_eq!(station.expire(), [(400, 900)]);
        assert_eq!(station.due(), Some(1014), "six segments are outstanding");
    }

    #[test]
    fn the_end_of_the_stream_is_not_held_back() {
        let mut station = Station::begun(Settings::default());
        station.up(10, ack(1));
        station.down(11, &Segment { flags: Flags::ACK | Flags::FIN, ..data(10) });
        assert_eq!(station.up(12, Segment { ack: Seq(1101), ..ack(0) }), 1101);
        assert_eq!(station.due(), None);
    }

    #[test]
    fn a_link_that_goes_down_closes_the_window_with_the_octet_that_was_held_back() {
        let mut station = Station::begun(Settings { copies: 3, ..Settings::default() });
        station.up(10, ack(1));
        assert_eq!(station.up(11, ack(2)), 199);
        assert_eq!(station.link(20, false), [(200, 0)]);
        assert_eq!(station.due(), None, "the sender waits");
        assert_eq!(station.down(30, &data(10)), [(200, 0)], "a probe is answered");
        assert_eq!(station.link(500, true), [(200, 900); 3]);
        assert_eq!(station.down(501, &data(11)), []);
        assert_eq!(station.due(), Some(1500));
    }

    #[test]
    fn another_station_opens_the_window_with_what_it_is_told_or_knows_better() {
        for knows_better in [false, true] {
            let mut old = Station::begun(Settings::default());
            old.up(10, ack(1));
            assert_eq!(old.up(11, ack(2)), 199);
            assert_eq!(old.link(20, false), [(200, 0)]);
            let handed = old.0.hand_over(FIXED.flow()).expect("it knows the flow");
            assert_eq!((handed.octets, handed.ahead, old.0.held().flows, old.due()), (200, false, 0, None));
            let mut new = Station(Settings::default().build());
            if knows_better {
                assert_eq!(new.down(250, &data(9)), []);
                assert_eq!(new.up(290, ack(5)), 500);
            }
            let mut out = Outbox::default();
            new.0.take_over(at(300), FIXED.flow(), handed.state, &mut out);
            assert_eq!(told(&mut out), [(if knows_better { 500 } else { 200 }, 900)]);
            assert_eq!(new.due(), Some(1300), "data is outstanding");
        }
    }

    #[test]
    fn silence_closes_the_window_and_the_first_word_opens_it() {
        let mut station = Station::begun(Settings::default());
        station.up(10, ack(1));
        assert_eq!(station.up(11, ack(2)), 199);
        assert_eq!(station.expire(), [(200, 900)], "first the octet is let go");
        assert_eq!((station.due(), station.expire()), (Some(1011), vec![(200, 0)]));
        assert_eq!(station.due(), None);
        assert_eq!(station.up(5000, ack(3)), 299);
        assert_eq!(station.down(5001, &data(10)), []);
        let mut deaf = Station::begun(Settings { silence_ms: 0.0, ..Settings::default() });
        deaf.up(10, ack(1));
        assert_eq!(deaf.due(), None);
    }

    #[test]
    fn an_acknowledgement_of_what_was_not_sent_changes_nothing() {
        let mut station = Station::begun(Settings::default());
        station.up(10, ack(1));
        assert_eq!(station.up(11, ack(11)), 1100);
        assert_eq!(station.up(12, ack(2)), 199);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_forgotten() {
        let mut agent = Settings { flows: 3, ..Settings::default() }.build();
        for flow in 0..9 {
            let from = EndpointId::new(2 * flow);
            let down = Transit { now: at(0), from, side: Side::Fixed, crowded: false, corruption: 0.0 };
            let up = Transit { from: from.peer(), side: Side::Mobile, ..down };
            for n in 0..3 {
                agent.pass(&down, &mut data(n), &mut Outbox::default());
            }
            agent.pass(&up, &mut ack(1), &mut Outbox::default());
            agent.pass(&up, &mut ack(2), &mut Outbox::default());
            assert!(agent.held().flows <= 3);
        }
        let mut out = Outbox::default();
        agent.on_timer(at(50), &mut out);
        assert_eq!(out.take().len(), 3, "of the flows that had to go no timer is left");
        agent.restart();
        assert_eq!((agent.held(), agent.next_timer()), (Held::default(), None));
    }
}
