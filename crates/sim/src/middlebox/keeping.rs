//! What agents have of the flows of which they keep segments: the state of each, when it wants to be looked at, and the books of all.

use super::deadlines::Deadlines;
use super::table::Table;
use crate::address::FlowId;
use crate::record::Held;
use whyloss_transport::Instant;

/// The state of a flow.
pub(super) trait Keeps {
    /// Segments and pieces that it keeps, and their octets.
    fn weight(&self) -> (u64, u64);
}

/// States by flow, within bounds. Whatever changes one changes its time and the books with it.
#[derive(Debug)]
pub(super) struct Keeping<F> {
    flows: Table<F>,
    timers: Deadlines,
    held: Held,
}

impl<F: Keeps> Keeping<F> {
    /// Octets of a flow of which nothing is kept.
    pub const FLOW: u64 = size_of::<F>() as u64;

    /// Of at most `most` flows, at least 1.
    pub fn new(most: usize) -> Self {
        Self { flows: Table::new(most), timers: Deadlines::default(), held: Held::default() }
    }

    /// Changes the state of a flow; that of a new one is made by `state`, and the flow that was quiet for longest goes if there is no room.
    /// `change` says when the flow is to be looked at next, beside what it tells.
    pub fn change<T>(&mut self, id: FlowId, state: impl FnOnce() -> F, change: impl FnOnce(&mut F) -> (T, Option<Instant>)) -> T {
        let (flow, gone) = self.flows.get_or_insert(id, state);
        let mut before = flow.weight();
        let (told, due) = change(flow);
        let after = flow.weight();
        if let Some((gone, state)) = gone {
            self.timers.set(gone, None);
            let weight = state.weight();
            before = (before.0 + weight.0, before.1 + weight.1);
        }
        self.timers.set(id, due);
        self.note(before, after);
        told
    }

    /// Changes the state of a flow that is known; `change` says when it is to be looked at next, or that nothing is to change.
    pub fn change_known(&mut self, id: FlowId, change: impl FnOnce(&mut F) -> Option<Option<Instant>>) {
        let Some(flow) = self.flows.get(id) else { return };
        let before = flow.weight();
        let Some(due) = change(flow) else { return };
        let after = flow.weight();
        self.timers.set(id, due);
        self.note(before, after);
    }

    /// Forgets a flow.
    pub fn remove(&mut self, id: FlowId) {
        let before = self.flows.remove(id).map_or((0, 0), |flow| flow.weight());
        self.timers.set(id, None);
        self.note(before, (0, 0));
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.timers.clear();
        self.held = Held::default();
    }

    /// When the next flow wants to be looked at.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The flow whose time comes first, if it has come; it has none then.
    pub fn take_due(&mut self, now: Instant) -> Option<FlowId> {
        self.timers.take(now)
    }

    /// Octets of segments that are kept.
    pub const fn kept_octets(&self) -> u64 {
        self.held.octets - self.held.flows * Self::FLOW
    }

    /// All that is remembered.
    pub const fn held(&self) -> Held {
        self.held
    }

    /// A flow has now `after` segments and octets where there were `before`, with those of one that had to go for it.
    fn note(&mut self, before: (u64, u64), after: (u64, u64)) {
        let flows = self.flows.len() as u64;
        let octets = self.kept_octets() + after.1 - before.1;
        self.held = Held {
            flows,
            segments: self.held.segments + after.0 - before.0,
            octets: flows * Self::FLOW + octets,
            flow_octets: Self::FLOW + after.1,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Keeps for u64 {
        fn weight(&self) -> (u64, u64) {
            (u64::from(*self > 0), *self)
        }
    }

    #[test]
    fn whatever_changes_a_flow_changes_its_time_and_the_books() {
        let mut keeping = Keeping::<u64>::new(2);
        let (flow, at) = (FlowId::new, Instant::from_nanos);
        let put = |keeping: &mut Keeping<u64>, id: FlowId, octets: u64, due: u64| {
            keeping.change(id, || 0, |state| (std::mem::replace(state, octets), Some(at(due))))
        };
        assert_eq!([put(&mut keeping, flow(1), 100, 30), put(&mut keeping, flow(2), 50, 20)], [0, 0]);
        assert_eq!((keeping.kept_octets(), keeping.held().segments, keeping.next_timer()), (150, 2, Some(at(20))));
        assert_eq!(put(&mut keeping, flow(1), 70, 10), 100);
        assert_eq!((keeping.kept_octets(), keeping.held().flow_octets, keeping.next_timer()), (120, 8 + 70, Some(at(10))));
        // The second was quiet for longest: the third takes its room, and it wants nothing any more.
        put(&mut keeping, flow(3), 5, 40);
        assert_eq!((keeping.kept_octets(), keeping.held().flows, keeping.held().octets), (75, 2, 75 + 16));
        assert_eq!([keeping.take_due(at(25)), keeping.take_due(at(25))], [Some(flow(1)), None]);
        keeping.change_known(flow(3), |_| None);
        assert_eq!(keeping.next_timer(), Some(at(40)));
        keeping.change_known(flow(3), |state| {
            *state = 0;
            Some(None)
        });
        assert_eq!((keeping.kept_octets(), keeping.held().segments, keeping.next_timer()), (70, 1, None));
        keeping.remove(flow(1));
        assert_eq!((keeping.held().flows, keeping.kept_octets()), (1, 0));
        keeping.clear();
        assert_eq!(keeping.held(), Held::default());
    }
}
