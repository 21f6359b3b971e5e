//! What agents remember of flows, within bounds.

use crate::address::FlowId;
use std::collections::BTreeMap;

/// State by flow. When it is full, the flow that was quiet for longest makes room for a new one.
#[derive(Debug)]
pub(super) struct Table<T> {
    most: usize,
    flows: BTreeMap<FlowId, (u64, T)>,
    /// Flows by when they were used last.
    used: BTreeMap<u64, FlowId>,
    uses: u64,
}

impl<T> Table<T> {
    /// A table of at most `most` flows, at least 1.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), flows: BTreeMap::new(), used: BTreeMap::new(), uses: 0 }
    }

    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// The state of a flow, which is now the one used last.
    pub fn get(&mut self, flow: FlowId) -> Option<&mut T> {
        let (used, state) = self.flows.get_mut(&flow)?;
        self.used.remove(used);
        *used = self.uses;
        self.used.insert(self.uses, flow);
        self.uses += 1;
        Some(state)
    }

    /// The same, without using it.
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut T> {
        self.flows.get_mut(&flow).map(|(_, state)| state)
    }

    /// All flows, in the order of their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FlowId, &mut T)> {
        self.flows.iter_mut().map(|(flow, (_, state))| (*flow, state))
    }

    /// The state of a flow, without using it.
    pub fn peek(&self, flow: FlowId) -> Option<&T> {
        self.flows.get(&flow).map(|(_, state)| state)
    }

    /// The flow that was quiet for longest among those whose state `counts`.
    pub fn oldest_of(&self, counts: impl Fn(&T) -> bool) -> Option<FlowId> {
        self.used.values().copied().find(|flow| self.peek(*flow).is_some_and(&counts))
    }

    /// The state of a flow; that of a new one is made by `state`. Returns the flow that had to go for it, too.
    pub fn get_or_insert(&mut self, flow: FlowId, state: impl FnOnce() -> T) -> (&mut T, Option<(FlowId, T)>) {
        let mut gone = None;
        if !self.flows.contains_key(&flow) {
            if self.flows.len() >= self.most {
                let oldest = self.used.first_key_value().map(|(_, flow)| *flow);
                gone = oldest.and_then(|oldest| Some((oldest, self.remove(oldest)?)));
            }
            self.used.insert(self.uses, flow);
            self.flows.insert(flow, (self.uses, state()));
            self.uses += 1;
        }
        (self.get(flow).expect("it is there"), gone)
    }

    /// Forgets a flow.
    pub fn remove(&mut self, flow: FlowId) -> Option<T> {
        let (used, state) = self.flows.remove(&flow)?;
        self.used.remove(&used);
        Some(state)
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        self.flows.clear();
        self.used.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flow_that_was_quiet_for_longest_makes_room() {
        let mut table = Table::new(2);
        let flow = FlowId::new;
        assert_eq!(*table.get_or_insert(flow(7), || 70).0, 70);
        assert_eq!(*table.get_or_insert(flow(8), || 80).0, 80);
        assert_eq!(table.get(flow(7)), Some(&mut 70));
        assert_eq!(table.oldest_of(|_| true), Some(flow(8)));
        assert_eq!([table.oldest_of(|state| *state < 80), table.oldest_of(|state| *state < 70)], [Some(flow(7)), None]);
        assert_eq!(table.get_mut(flow(8)), Some(&mut 80));
        assert_eq!(table.iter_mut().map(|(flow, state)| (flow, *state)).collect::<Vec<_>>(), [(flow(7), 70), (flow(8), 80)]);
        let (new, gone) = table.get_or_insert(flow(9), || 90);
        assert_eq!((*new, gone), (90, Some((flow(8), 80))));
        assert_eq!((table.len(), table.get(flow(8))), (2, None));
        assert_eq!(table.get(flow(7)), Some(&mut 70));
        assert_eq!(table.remove(flow(7)), Some(70));
        assert_eq!((table.len(), table.get(flow(7))), (1, None));
    }
}
