//! Transmissions of data that did not arrive, for as long as somebody may ask what became of them.

use super::Network;
use crate::address::{FlowId, Way};
use crate::packet::SentData;
use crate::record::DropRecord;
use crate::truth::Truth;
use std::collections::{HashMap, HashSet};

/// The transmissions of data of which a copy was lost: the last copy, and how many were lost.
#[derive(Debug, Default)]
pub(crate) struct Dropped {
    of: HashMap<SentData, (DropRecord, u32)>,
    /// How many of [`Network::drops`] are in it.
    seen: usize,
}

impl Network {
    /// Takes in what has been dropped since the last time.
    pub fn note_drops(&mut self) {
        let Self { drops, dropped, .. } = self;
        for drop in drops.iter().skip(dropped.seen) {
            if drop.way == Way::Forward && drop.len > 0 {
                let transmission = SentData { flow: FlowId::new(drop.flow), offset: drop.offset, sent_at: drop.sent_at };
                let entry = dropped.of.entry(transmission).or_insert((*drop, 0));
                *entry = (*drop, entry.1 + 1);
            }
        }
        dropped.seen = drops.len();
    }

    /// The records of drops; whose transmissions are lost stays known.
    pub fn take_drops(&mut self) -> Vec<DropRecord> {
        self.note_drops();
        self.dropped.seen = 0;
        std::mem::take(&mut self.drops)
    }

    /// The loss of a transmission, of its last copy if there were several; `None` while there is one that was not lost. What was dropped has to
    /// be [noted](Self::note_drops) before.
    pub fn drop_of(&self, transmission: &SentData) -> Option<&DropRecord> {
        let (drop, lost) = self.dropped.of.get(transmission)?;
        let made = self.copies.get(transmission).map_or(1, |copies| copies.made);
        (*lost >= made).then_some(drop)
    }

    /// The transmissions under way.
    pub fn transmissions_under_way(&self) -> HashSet<SentData> {
        let sent = |id| {
            let packet = self.packets.get(id);
            SentData { flow: packet.origin.flow(), offset: self.data(id).0, sent_at: packet.sent_at }
        };
        self.under_way().map(sent).collect()
    }

    /// What became of a transmission.
    pub fn truth(&self, under_way: &HashSet<SentData>, transmission: &SentData) -> Truth {
        match self.drop_of(transmission) {
            Some(drop) => Truth::Lost(drop.cause),
            None if under_way.contains(transmission) => Truth::InFlight,
            None if self.suppressed.contains(transmission) => Truth::Suppressed,
            None => Truth::Arrived,
        }
    }

    /// Forgets what became of transmissions that nobody will ask for.
    pub fn forget_fates(&mut self, asked_for: impl Fn(&SentData) -> bool) {
        self.dropped.of.retain(|transmission, _| asked_for(transmission));
        self.suppressed.retain(&asked_for);
        self.copies.retain(|transmission, _| asked_for(transmission));
        // A table that was large once is walked through as a large one.
        self.dropped.of.shrink_to(2 * self.dropped.of.len());
        self.suppressed.shrink_to(2 * self.suppressed.len());
        self.copies.shrink_to(2 * self.copies.len());
    }
}
