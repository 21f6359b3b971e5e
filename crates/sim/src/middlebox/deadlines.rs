//! When flows want to be looked at.

use crate::address::FlowId;
use std::collections::{BTreeMap, BTreeSet};
use whyloss_transport::Instant;

/// At most one time for each flow.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    due: BTreeSet<(Instant, FlowId)>,
    of: BTreeMap<FlowId, Instant>,
}

impl Deadlines {
    /// From now on it is this time for a flow, or none.
    pub fn set(&mut self, flow: FlowId, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.of.insert(flow, at),
            None => self.of.remove(&flow),
        };
        if before != at {
            if let Some(before) = before {
                self.due.remove(&(before, flow));
            }
            if let Some(at) = at {
                self.due.insert((at, flow));
            }
        }
    }

    /// The next time of all.
    pub fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The flow whose time comes first, if it has come; it has none then.
    pub fn take(&mut self, now: Instant) -> Option<FlowId> {
        let &(at, flow) = self.due.first()?;
        if at > now {
            return None;
        }
        self.set(flow, None);
        Some(flow)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.due.clear();
        self.of.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_has_one_time_and_the_first_comes_first() {
        let mut deadlines = Deadlines::default();
        let (flow, at) = (FlowId::new, Instant::from_nanos);
        deadlines.set(flow(1), Some(at(30)));
        deadlines.set(flow(2), Some(at(20)));
        deadlines.set(flow(1), Some(at(10)));
        assert_eq!(deadlines.next(), Some(at(10)));
        assert_eq!([deadlines.take(at(9)), deadlines.take(at(25)), deadlines.take(at(25))], [None, Some(flow(1)), Some(flow(2))]);
        assert_eq!(deadlines.next(), None);
        deadlines.set(flow(3), Some(at(5)));
        deadlines.set(flow(3), None);
        assert_eq!((deadlines.next(), deadlines.take(at(9))), (None, None));
    }
}
