//! What a receiver remembers of packets until the other side knows of it, and its reports (RFC 4340, 11.4, 11.7 and appendix A).

use crate::wire::dccp::{Block, DropCode, Opt, Run, State};
use std::collections::VecDeque;

/// The most octets of runs or blocks in a report. What is older is not reported any more.
const MAX_REPORT: usize = 400;
/// Octets of data in one option.
const MAX_OPTION: usize = 253;
/// Changes from one packet to the next, since the last report, that a report has to tell soon: half of what fits, so that it tells each
/// of them twice before it has to leave it out.
const PRESSING: usize = MAX_REPORT / 2;
/// The most packets to remember.
const MAX_CELLS: usize = 1 << 14;

#[derive(Clone, Copy, Debug)]
struct Cell {
    state: State,
    dropped: Option<DropCode>,
}

impl Cell {
    const MISSING: Self = Self { state: State::Missing, dropped: None };
}

/// Packets from the newest on back.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// The newest packet first.
    cells: VecDeque<Cell>,
    newest: u64,
    /// Reports under way: the sequence number of the packet that carried it, and the newest packet that it reported.
    reports: VecDeque<(u64, u64)>,
    /// How often the state changed from packet to packet since the last report: about the octets that it takes to tell.
    changes: usize,
}

impl Received {
    /// Nothing up to `newest` is to be reported.
    pub fn new(newest: u64) -> Self {
        Self { newest, ..Self::default() }
    }

    pub const fn newest(&self) -> u64 {
        self.newest
    }

    /// A packet arrived. Returns whether it is new: not a duplicate, and not so old that its fate was reported for good.
    pub fn insert(&mut self, seq: u64, marked: bool, dropped: Option<DropCode>) -> bool {
        let cell = Cell { state: if marked { State::Marked } else { State::Received }, dropped };
        if seq > self.newest {
            let gap = (seq - self.newest - 1).min(MAX_CELLS as u64);
            let same =
                gap == 0 && self.cells.front().is_some_and(|last| last.state == cell.state && last.dropped == cell.dropped);
            self.changes += usize::from(gap > 0) + usize::from(!same);
            (0..gap).for_each(|_| self.cells.push_front(Cell::MISSING));
            self.cells.push_front(cell);
            self.newest = seq;
            self.cells.truncate(MAX_CELLS);
            return true;
        }
        match self.cells.get_mut((self.newest - seq) as usize) {
            Some(known) if known.state == State::Missing => {
                *known = cell;
                self.changes += 2;
                true
            }
            _ => false,
        }
    }

    /// Whether a report has to leave soon, because a later one could not tell everything.
    pub const fn is_pressing(&self) -> bool {
        self.changes >= PRESSING
    }

    /// A packet with the options of [`Received::report`] leaves.
    pub fn reported(&mut self, carrier: u64) {
        self.changes = 0;
        self.reports.push_back((carrier, self.newest));
        if self.reports.len() > MAX_CELLS {
            self.reports.pop_front();
        }
    }

    /// The other side has the packet `carrier`: what it reported needs no other report.
    pub fn acknowledged(&mut self, carrier: u64) {
        let Ok(position) = self.reports.binary_search_by_key(&carrier, |(carrier, _)| *carrier) else { return };
        let (_, reported) = self.reports[position];
        self.reports.drain(..=position);
        self.cells.truncate((self.newest - reported) as usize);
    }

    /// The options that report everything, for a packet that acknowledges the newest.
    pub fn report(&self, out: &mut Vec<Opt>) {
        let mut runs: Vec<Run> = Vec::new();
        for cell in &self.cells {
            match runs.last_mut() {
                Some(run) if run.state == cell.state && run.packets < Run::MAX => run.packets += 1,
                _ => runs.push(Run { state: cell.state, packets: 1 }),
            }
            if runs.len() > MAX_REPORT {
                runs.pop();
                break;
            }
        }
        // All nonces are ECT(0), so their sum is 0.
        out.extend(runs.chunks(MAX_OPTION).map(|runs| Opt::AckVector { nonce: false, runs: runs.to_vec() }));
        let blocks = self.blocks();
        out.extend(blocks.chunks(MAX_OPTION).map(|blocks| Opt::DataDropped(blocks.to_vec())));
    }

    /// Data Dropped blocks down to the oldest packet whose data was dropped.
    fn blocks(&self) -> Vec<Block> {
        let Some(oldest) = self.cells.iter().rposition(|cell| cell.dropped.is_some()) else { return Vec::new() };
        let mut blocks: Vec<Block> = Vec::new();
        for cell in self.cells.range(..=oldest) {
            match (blocks.last_mut(), cell.dropped) {
                (Some(Block::Normal(packets)), None) if *packets < Block::MAX_NORMAL => *packets += 1,
                (Some(Block::Dropped(code, packets)), Some(own)) if *code == own && *packets < Block::MAX_DROPPED => {
                    *packets += 1;
                }
                (_, None) => blocks.push(Block::Normal(1)),
                (_, Some(code)) => blocks.push(Block::Dropped(code, 1)),
            }
            if blocks.len() > MAX_REPORT {
                blocks.pop();
                break;
            }
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(received: &Received) -> (Vec<u8>, Vec<u8>) {
        let mut options = Vec::new();
        received.report(&mut options);
        let mut found = (Vec::new(), Vec::new());
        for option in &options {
            match option {
                Opt::AckVector { runs, .. } => found.0.extend(runs.iter().map(|run| run.octet())),
                Opt::DataDropped(blocks) => found.1.extend(blocks.iter().map(|block| block.octet())),
                other => panic!("{other:?}"),
            }
        }
        found
    }

    #[test]
    fn the_examples_of_rfc_4340_are_what_is_reported() {
        // 11.4: 100 received, 99 not, 98 to 93 received.
        let mut received = Received::new(92);
        (93..=98).chain([100]).for_each(|seq| assert!(received.insert(seq, false, None)));
        assert_eq!(report(&received).0, [0, 0xC0, 5]);
        // 11.7: 100 delivered, 99 dropped for code 2, 98 to 95 delivered, 94 to 92 dropped for code 2.
        let mut received = Received::new(91);
        for seq in 92..=100 {
            let dropped = matches!(seq, 99 | 92..=94).then_some(DropCode::RECEIVE_BUFFER);
            received.insert(seq, false, dropped);
        }
        assert_eq!(report(&received), (vec![8], vec![0, 160, 3, 162]));
    }

    #[test]
    fn late_packets_fill_holes_and_duplicates_are_known() {
        let mut received = Received::new(0);
        assert!(received.insert(5, true, None) && received.insert(3, false, None));
        assert!(!received.insert(5, false, None) && !received.insert(3, false, None));
        assert_eq!(report(&received).0, [0x40, 0xC0, 0, 0xC1]);
    }

    #[test]
    fn what_the_other_side_knows_is_not_reported_again() {
        let mut received = Received::new(0);
        received.insert(1, false, Some(DropCode::CORRUPT));
        received.insert(3, false, None);
        received.reported(50);
        received.insert(4, false, None);
        received.reported(51);
        received.acknowledged(49);
        assert_eq!(report(&received), (vec![1, 0xC0, 0], vec![2, 0xB0]));
        received.acknowledged(50);
        assert_eq!(report(&received), (vec![0], vec![]));
        assert!(!received.insert(2, false, None), "its loss was reported for good");
        received.acknowledged(51);
        assert_eq!(report(&received), (vec![], vec![]));
    }

    #[test]
    fn a_report_is_asked_for_before_it_would_be_cut() {
        let mut received = Received::new(0);
        let mut reports = 0;
        // Every second packet is missing: two octets a packet.
        for n in 1..=4000 {
            received.insert(2 * n, false, None);
            if received.is_pressing() {
                assert!(report(&received).0.len() >= PRESSING);
                received.reported(n);
                reports += 1;
            }
        }
        assert_eq!(reports, 2 * 4000 / PRESSING);
        (8001..100_000).for_each(|seq| assert!(received.insert(seq, false, None)));
        assert!(!received.is_pressing(), "a long run takes few octets");
    }

    #[test]
    fn long_runs_are_split_and_a_long_report_is_cut() {
        let mut received = Received::new(0);
        received.insert(101, false, None);
        assert_eq!(report(&received).0, [0, 0xFF, 0xE3]);
        (1..1000).for_each(|n| assert!(received.insert(101 + 2 * n, false, Some(DropCode::CORRUPT))));
        let (runs, blocks) = report(&received);
        assert_eq!((runs.len(), blocks.len()), (MAX_REPORT, MAX_REPORT));
    }
}
