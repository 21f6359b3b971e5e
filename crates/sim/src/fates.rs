//! What became of the transmissions that senders take for lost, while the run goes on.

use crate::address::FlowId;
use crate::hosts::Hosts;
use crate::network::Network;
use crate::packet::SentData;
use crate::truth::Truth;
use std::collections::HashSet;
use whyloss_transport::Instant;

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
    /// Losses that have been looked at.
    seen: usize,
    /// Taken for lost, but still under way.
    open: Vec<(SentData, Instant)>,
}

impl LossWatch {
    /// The losses whose truth has become known since the last time. The time it takes grows with what is new, and, if a sender took a
    /// packet for lost that was not dropped, with the packets under way.
    pub(crate) fn news(&mut self, net: &mut Network, hosts: &Hosts) -> Vec<NoticedLoss> {
        net.note_drops();
        let (losses, taken) = (&hosts.flows.losses, hosts.flows.losses_taken);
        let new = losses.iter().skip(self.seen.saturating_sub(taken));
        let sent = |flow: FlowId, offset, sent_at| SentData { flow, offset, sent_at };
        self.open.extend(new.map(|(flow, record)| (sent(*flow, record.offset, record.sent_at), record.at)));
        self.seen = taken + losses.len();
        let known = |(transmission, _): &(SentData, Instant)| net.drop_of(transmission).is_some();
        let flying = if self.open.iter().all(known) { HashSet::new() } else { net.transmissions_under_way() };
        let mut news = Vec::new();
        self.open.retain(|(transmission, at)| match net.truth(&flying, transmission) {
            Truth::InFlight => true,
            truth => {
                news.push(NoticedLoss { flow: transmission.flow.index(), at: *at, truth });
                false
            }
        });
        news
    }
}
