//! What became of the transmissions that senders take for lost: at the end of a run, and while it goes on.

use crate::address::{FlowId, Way};
use crate::network::Network;
use crate::packet::SentData;
use crate::record::DropRecord;
use crate::truth::Truth;
use std::collections::{HashMap, HashSet};
use whyloss_transport::tcp::LossRecord;
use whyloss_transport::Instant;

/// The transmissions of data of which a copy was lost: the last copy, by its number among all drops, and how many were lost.
#[derive(Clone, Debug, Default)]
struct Dropped {
    of: HashMap<SentData, (usize, u32)>,
    /// Drops that have been looked at.
    seen: usize,
}

impl Dropped {
    /// Takes in what has been dropped since the last time.
    fn update(&mut self, net: &Network) {
        for (number, drop) in net.drops.iter().enumerate().skip(self.seen) {
            if drop.way == Way::Forward && drop.len > 0 {
                let transmission = SentData { flow: FlowId::new(drop.flow), offset: drop.offset, sent_at: drop.sent_at };
                let entry = self.of.entry(transmission).or_insert((number, 0));
                *entry = (number, entry.1 + 1);
            }
        }
        self.seen = net.drops.len();
    }

    /// The loss of a transmission, of its last copy if there were several; `None` while there is one that was not lost.
    fn drop<'a>(&self, net: &'a Network, transmission: &SentData) -> Option<&'a DropRecord> {
        let (number, lost) = *self.of.get(transmission)?;
        let made = net.copies.get(transmission).map_or(1, |copies| copies.made);
        (lost >= made).then(|| &net.drops[number])
    }
}

/// What became of every transmission of data that did not simply arrive.
pub(crate) struct Fates<'a> {
    net: &'a Network,
    dropped: Dropped,
    under_way: HashSet<SentData>,
}

impl<'a> Fates<'a> {
    pub fn of(net: &'a Network) -> Self {
        let mut dropped = Dropped::default();
        dropped.update(net);
        Self { net, dropped, under_way: under_way(net) }
    }

    pub fn drop(&self, transmission: &SentData) -> Option<&'a DropRecord> {
        self.dropped.drop(self.net, transmission)
    }

    pub fn truth(&self, transmission: &SentData) -> Truth {
        truth(self.net, &self.dropped, &self.under_way, transmission)
    }
}

fn under_way(net: &Network) -> HashSet<SentData> {
    let sent = |id| {
        let packet = net.packets.get(id);
        SentData { flow: packet.origin.flow(), offset: net.data(id).0, sent_at: packet.sent_at }
    };
    net.under_way().map(sent).collect()
}

fn truth(net: &Network, dropped: &Dropped, under_way: &HashSet<SentData>, transmission: &SentData) -> Truth {
    match dropped.drop(net, transmission) {
        Some(drop) => Truth::Lost(drop.cause),
        None if under_way.contains(transmission) => Truth::InFlight,
        None if net.suppressed.contains(transmission) => Truth::Suppressed,
        None => Truth::Arrived,
    }
}

/// A loss that a sender has noticed, and what really happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoticedLoss {
    /// Index of the flow.
    pub flow: usize,
    /// When the sender noticed it.
    pub at: Instant,
    /// What became of the transmission; never [`Truth::InFlight`].
    pub truth: Truth,
}

/// Follows the losses of one run while it goes on: for [`Progress::losses`](crate::Progress::losses). What nobody follows costs nothing.
#[derive(Clone, Debug, Default)]
pub struct LossWatch {
    dropped: Dropped,
    /// Losses that have been looked at.
    seen: usize,
    /// Taken for lost, but still under way.
    open: Vec<(SentData, Instant)>,
}

impl LossWatch {
    /// The losses whose truth has become known since the last time. The time it takes grows with what is new, and, if a sender took a
    /// packet for lost that was not dropped, with the packets under way.
    pub(crate) fn news(&mut self, net: &Network, losses: &[(FlowId, LossRecord)]) -> Vec<NoticedLoss> {
        self.dropped.update(net);
        let new = losses[self.seen..].iter();
        let sent = |flow, offset, sent_at| SentData { flow, offset, sent_at };
        self.open.extend(new.map(|(flow, record)| (sent(*flow, record.offset, record.sent_at), record.at)));
        self.seen = losses.len();
        let known = |(transmission, _): &(SentData, Instant)| self.dropped.drop(net, transmission).is_some();
        let flying = if self.open.iter().all(known) { HashSet::new() } else { under_way(net) };
        let mut news = Vec::new();
        self.open.retain(|(transmission, at)| match truth(net, &self.dropped, &flying, transmission) {
            Truth::InFlight => true,
            truth => {
                news.push(NoticedLoss { flow: transmission.flow.index(), at: *at, truth });
                false
            }
        });
        news
    }
}
