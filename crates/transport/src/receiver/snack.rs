//! Asks for what is missing, some time after it was missed (CCSDS 714.0-B, SCPS-TP).

use super::{Arrival, ReceiveView, ReceiverAgent};
use crate::kit::{Build, Notes, Part};
use crate::segment::Snack as Holes;
use crate::time::{Duration, Instant};
use crate::{choices, settings};

pub(super) const PART: Part<dyn ReceiverAgent> = Part {
    name: "snack",
    summary: "Asks for every hole in what has come by a selective negative acknowledgement, once the hole has lasted.",
    reference: "CCSDS 714.0-B; Paul 2006",
    notes: Notes {
        idea: "Duplicate acknowledgements tell of one hole a round trip. One list of all holes has them repaired together, whatever the window is.",
        formula: "first after snack_delay, then every max(SRTT, snack_delay) while a hole is open; at once when the peer has ended its stream",
        threshold: "",
        fails: "Reordering that lasts longer than snack_delay: what comes late is sent twice.",
        errata: "The publications leave open how often a list is repeated, and what \"at once on FIN\" lists: here also what is missing right before it. \
                 Acknowledgements stay as they are, duplicate ones too. Holes that the bits of the first list cannot tell get lists of their own.",
    },
    ..Part::of::<Asking>()
};

choices! {
    /// How holes are listed.
    pub(super) enum Form {
        /// By the bits of one option.
        Bits = "bits",
        /// Each by an option of its own, as many as there is room for.
        Holes = "holes",
    }
}

settings! {
    /// When and how holes are asked for.
    pub(super) struct Asking {
        /// For how long a hole may be mere reordering, in milliseconds.
        snack_delay_ms: f64 = 50.0, 0.0..=60_000.0;
        /// How holes are listed: by the bits of one option, or each by an option of its own.
        form: Form;
    }
}

impl Build<dyn ReceiverAgent> for Asking {
    fn build(self) -> Box<dyn ReceiverAgent> {
        Box::new(Snack { asker: Asker::new(self) })
    }
}

/// Lists all holes. Acknowledges as any receiver does.
#[derive(Debug)]
pub struct Snack {
    asker: Asker,
}

impl ReceiverAgent for Snack {
    fn wants_snacks(&self) -> bool {
        true
    }

    fn on_arrival(&mut self, arrival: &Arrival) {
        self.asker.on_arrival(&arrival.view);
        if !arrival.view.islands.is_empty() {
            self.asker.wait(&arrival.view);
        }
    }

    fn on_end(&mut self, view: &ReceiveView) {
        self.asker.on_end(view);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.asker.deadline()
    }

    fn on_timeout(&mut self, view: &ReceiveView) -> bool {
        self.asker.on_timeout(view, true)
    }

    fn snacks(&mut self, view: &ReceiveView, room: usize) -> Vec<Holes> {
        self.asker.snacks(view, room)
    }
}

/// When to ask for what is missing.
#[derive(Debug)]
pub(super) struct Asker {
    delay: Duration,
    form: Form,
    deadline: Option<Instant>,
    due: bool,
}

/// Whether something is missing below what has come, or below the end of the stream if that is known.
fn is_open(view: &ReceiveView) -> bool {
    !view.islands.is_empty() || view.end.is_some_and(|end| view.next < end)
}

impl Asker {
    pub fn new(asking: Asking) -> Self {
        let delay = Duration::from_secs_f64(asking.snack_delay_ms / 1000.0);
        Self { delay, form: asking.form, deadline: None, due: false }
    }

    /// Something has come; perhaps nothing is missing any more.
    pub fn on_arrival(&mut self, view: &ReceiveView) {
        if !is_open(view) {
            (self.deadline, self.due) = (None, false);
        }
    }

    /// Something is missing: asks for it after a while.
    pub fn wait(&mut self, view: &ReceiveView) {
        if view.snack_block.is_some() {
            self.deadline.get_or_insert(view.now + self.delay);
        }
    }

    /// The peer has ended its stream, which is acknowledged at once.
    pub fn on_end(&mut self, view: &ReceiveView) {
        if view.snack_block.is_some() && is_open(view) {
            self.due = true;
            self.wait(view);
        }
    }

    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The deadline may have come. Returns whether to ask now; does so again later if `again` says so.
    pub fn on_timeout(&mut self, view: &ReceiveView, again: bool) -> bool {
        if self.deadline.is_none_or(|deadline| deadline > view.now) {
            return false;
        }
        self.deadline = None;
        self.due = view.snack_block.is_some() && is_open(view);
        if self.due && again {
            self.deadline = Some(view.now + self.delay.max(view.srtt.unwrap_or_default()).max(LEAST_REPETITION));
        }
        self.due
    }

    /// What to ask for on the acknowledgement that leaves now, in `room` octets.
    pub fn snacks(&mut self, view: &ReceiveView, room: usize) -> Vec<Holes> {
        let Some(block) = view.snack_block.filter(|_| std::mem::take(&mut self.due)) else { return Vec::new() };
        let last = view.islands.last().map_or(view.next, |island| island.1);
        // The FIN has come, and with it where the last hole ends.
        let end = view.end.filter(|end| *end > last).map(|end| (end, end + 1));
        let bits = self.form == Form::Bits;
        match end {
            Some(end) => Holes::several(view.next, &[view.islands, &[end]].concat(), block, room, bits),
            None => Holes::several(view.next, view.islands, block, room, bits),
        }
    }
}

/// Lists are not repeated faster than this, whatever the settings.
const LEAST_REPETITION: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;

    const FULL: u64 = 1000;
    const FIRST: u64 = 5000;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn view(ms: u64, islands: &[(u64, u64)]) -> ReceiveView<'_> {
        ReceiveView {
            islands,
            full_segment: FULL as u32,
            snack_block: Some(FULL as u32),
            srtt: Some(Duration::from_millis(80)),
            ..ReceiveView::new(at(ms), FIRST)
        }
    }

    fn arrive(agent: &mut Snack, view: ReceiveView) {
        let segment = Segment::default();
        agent.on_arrival(&Arrival::new(view, &segment, view.next, FULL as u32));
    }

    fn told(agent: &mut Snack, view: &ReceiveView) -> Vec<(u16, u16)> {
        agent.snacks(view, 30).iter().map(|hole| (hole.hole1_offset, hole.hole1_size)).collect()
    }

    fn agent(form: Form) -> Snack {
        Snack { asker: Asker::new(Asking { form, ..Asking::default() }) }
    }

    #[test]
    fn a_hole_is_asked_for_when_it_has_lasted_and_again_until_it_is_filled() {
        let mut agent = agent(Form::Bits);
        let islands = [(7000, 8000)];
        arrive(&mut agent, view(0, &islands));
        arrive(&mut agent, view(30, &islands));
        assert_eq!(agent.poll_timeout(), Some(at(50)), "the first arrival counts");
        assert!(!agent.on_timeout(&view(49, &islands)));
        assert_eq!(told(&mut agent, &view(49, &islands)), []);
        assert!(agent.on_timeout(&view(50, &islands)));
        assert_eq!(told(&mut agent, &view(50, &islands)), [(0, 2)]);
        assert_eq!(told(&mut agent, &view(50, &islands)), [], "on one acknowledgement only");
        assert_eq!(agent.poll_timeout(), Some(at(130)), "SRTT is longer than the delay");
        assert!(agent.on_timeout(&view(130, &islands)));
        arrive(&mut agent, view(140, &[]));
        assert_eq!(agent.poll_timeout(), None);
        assert_eq!(told(&mut agent, &view(140, &[])), [], "nothing is missing any more");
    }

    #[test]
    fn what_reordering_explains_is_not_asked_for() {
        let mut agent = agent(Form::Bits);
        arrive(&mut agent, view(0, &[(7000, 8000)]));
        arrive(&mut agent, view(40, &[]));
        arrive(&mut agent, view(45, &[(9000, 10_000)]));
        assert_eq!(agent.poll_timeout(), Some(at(95)), "another hole waits anew");
    }

    #[test]
    fn the_end_of_the_stream_asks_at_once_also_for_what_is_missing_before_it() {
        for form in [Form::Bits, Form::Holes] {
            let mut agent = agent(form);
            let islands = [(6000, 7000)];
            let ended = |ms| ReceiveView { end: Some(9500), ..view(ms, &islands) };
            agent.on_end(&ended(0));
            assert_eq!(told(&mut agent, &ended(0)), [(0, 1), (2, 3)], "{form:?}");
            assert_eq!(agent.poll_timeout(), Some(at(50)));
        }
        let mut agent = agent(Form::Bits);
        agent.on_end(&ReceiveView { end: Some(FIRST - 1), ..view(0, &[]) });
        assert_eq!(agent.poll_timeout(), None, "all has come");
    }

    #[test]
    fn without_agreement_nothing_is_asked_for() {
        let mut agent = agent(Form::Bits);
        let islands = [(7000, 8000)];
        let plain = ReceiveView { snack_block: None, ..view(0, &islands) };
        arrive(&mut agent, plain);
        agent.on_end(&plain);
        assert_eq!(agent.poll_timeout(), None);
        assert_eq!(told(&mut agent, &plain), []);
    }
}
