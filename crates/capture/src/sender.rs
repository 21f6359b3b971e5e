//! What a sender knew when it sent a segment: acknowledgements that a capture shows reach it later.

use crate::trips::Reaction;
use std::collections::VecDeque;
use whyloss_transport::time::{Duration, Instant};
use whyloss_transport::Seq;

/// Acknowledgements on their way to the sender that are followed; of more, the oldest count as arrived.
const MAX_COMING: usize = 1024;

/// An acknowledgement on its way.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// When it was captured.
    pub at: Instant,
    /// Its own timestamp.
    pub timestamp: Option<u32>,
    /// What it acknowledges.
    pub ack: u64,
    /// Duplicates in a row, this included.
    pub duplicates: u32,
    /// Octets above the acknowledgement that are selectively acknowledged with this.
    pub sacked: u64,
    /// When the newest transmission passed that is known to have arrived with this.
    pub delivered: Instant,
}

/// The sender's knowledge, with times as at the capture.
#[derive(Debug, Default)]
pub struct Sender {
    /// What is acknowledged.
    pub una: u64,
    /// When the acknowledgement that said so passed the capture.
    pub una_at: Instant,
    /// Duplicate acknowledgements since.
    pub duplicates: u32,
    /// When the third of them passed.
    pub third_at: Instant,
    /// Octets that are selectively acknowledged.
    pub sacked: u64,
    /// When the newest transmission passed of which it knows that it arrived.
    pub delivered: Instant,
    /// The same before the acknowledgements that it received since it last sent.
    pub delivered_before: Instant,
    /// When the latest acknowledgement that it has passed the capture.
    pub heard: Instant,
    /// Of those that it received since it last sent: when the latest passed.
    pub fresh: Option<Instant>,
    /// The timestamp of that.
    echoed: Option<u32>,
    coming: VecDeque<Report>,
}

impl Sender {
    /// Octets for which it has room beside itself.
    pub fn octets(&self) -> usize {
        self.coming.capacity() * size_of::<Report>()
    }

    /// The stream begins.
    pub fn begin(&mut self, una: u64, at: Instant) {
        (self.una, self.una_at, self.heard) = (una, at, at);
    }

    /// An acknowledgement passes the capture.
    pub fn on_report(&mut self, report: Report) {
        if self.coming.len() == MAX_COMING {
            self.take_one();
        }
        self.coming.push_back(report);
    }

    fn take_one(&mut self) {
        let Some(report) = self.coming.pop_front() else { return };
        if report.ack > self.una {
            (self.una, self.una_at) = (report.ack, report.at);
        }
        if report.duplicates == 3 {
            self.third_at = report.at;
        }
        self.duplicates = report.duplicates;
        self.sacked = report.sacked;
        self.delivered = report.delivered;
        self.echoed = report.timestamp;
        self.heard = report.at;
        self.fresh = Some(report.at);
    }

    /// The sender sends at `at`, and echoes the timestamp `echo`: it has received what came up to that, or, without timestamps, what passed a
    /// reaction ago.
    pub fn sends(&mut self, at: Instant, echo: Option<u32>, reaction: &Reaction) {
        self.fresh = None;
        self.delivered_before = self.delivered;
        let (least, usual) = (reaction.least().unwrap_or_default(), reaction.usual());
        while let Some(front) = self.coming.front() {
            let age = if at >= front.at { at.since(front.at) } else { Duration::ZERO };
            let received = match (front.timestamp, echo) {
                (Some(its), Some(echo)) if its != echo => Seq(its).precedes(Seq(echo)),
                // The first with it has arrived, or the sender could not echo it.
                (Some(its), Some(_)) => self.echoed != Some(its) || age >= least - least / 8,
                _ => age >= usual - usual / 8,
            };
            if !received {
                return;
            }
            self.take_one();
        }
    }
}
