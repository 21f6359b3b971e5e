//! Data on its way to the mobile host: what is kept of it, and when it is sent again.

use super::Settings;
use crate::middlebox::hop::{repeats, HopTimer};
use std::collections::{BTreeMap, BTreeSet};
use whyloss_transport::segment::RareOptions;
use whyloss_transport::{Instant, Segment};

/// Data on its way to the mobile host.
#[derive(Debug)]
pub(super) struct Down {
    /// The end of the data that has come farthest.
    pub highest: u64,
    /// The most data of a segment: what SNACKs count in.
    block: u32,
    /// What the mobile host has acknowledged, and its window with it.
    acked: Option<(u64, u16)>,
    /// Duplicates of that acknowledgement.
    duplicates: u32,
    /// Duplicates that are still to be expected, because of what was on the link when its data was sent again.
    expected: u64,
    /// By the first octet.
    pub kept: BTreeMap<u64, Kept>,
    pub octets: u64,
    timer: HopTimer,
    /// When the mobile host acknowledged something new last.
    advanced: Instant,
}

#[derive(Debug)]
pub(super) struct Kept {
    pub segment: Segment,
    end: u64,
    sent: Instant,
    repairs: u32,
    timeouts: u32,
    /// It was lost or late before it came here: its sender is to know.
    senders: bool,
}

/// A timeout doubles so often at most.
pub(super) const DOUBLINGS: u32 = 6;

/// Memory for a segment that is kept.
pub(super) fn octets(segment: &Segment) -> u64 {
    segment.len() as u64 + size_of::<Kept>() as u64
}

impl Down {
    pub fn new(start: u64, acked: Option<(u64, u16)>) -> Self {
        Self {
            highest: start,
            block: 0,
            acked,
            duplicates: 0,
            expected: 0,
            kept: BTreeMap::new(),
            octets: 0,
            timer: HopTimer::default(),
            advanced: Instant::ZERO,
        }
    }

    /// Data of the fixed host passes; `room` says whether it may be kept.
    pub fn passes(&mut self, now: Instant, segment: &Segment, room: bool) {
        let start = segment.seq.near(self.highest);
        let end = start + u64::from(segment.seq_len());
        let in_order = start >= self.highest;
        self.highest = self.highest.max(end);
        self.block = self.block.max(segment.payload.len() as u32);
        if self.acked.is_some_and(|(acked, _)| end <= acked) {
            return;
        }
        self.forget(start);
        if room {
            self.octets += octets(segment);
            let kept = Kept { segment: segment.clone(), end, sent: now, repairs: 0, timeouts: 0, senders: !in_order };
            self.kept.insert(start, kept);
        }
    }

    pub fn forget(&mut self, start: u64) {
        if let Some(kept) = self.kept.remove(&start) {
            self.octets -= octets(&kept.segment);
        }
    }

    /// What the SNACKs of an acknowledgement ask for, if all of it is kept.
    fn asked(&mut self, now: Instant, ack: &Segment, settings: &Settings) -> Option<Vec<Segment>> {
        let snacks = &ack.options.rare.as_ref()?.snacks;
        let una = ack.ack.near(self.highest);
        let mut asked = BTreeSet::new();
        for (from, to) in snacks.iter().flat_map(|snack| snack.holes(una, self.block)) {
            let mut at = from;
            while at < to.min(self.highest) {
                let (&start, kept) = self.kept.range(..=at).next_back()?;
                if kept.end <= at || kept.senders || kept.repairs + kept.timeouts > settings.timeouts {
                    return None;
                }
                asked.insert(start);
                at = kept.end;
            }
        }
        let trip = self.timer.smoothed();
        let mut again = Vec::new();
        for start in asked {
            let Some(kept) = self.kept.get_mut(&start) else { continue };
            // What was sent again a moment ago cannot have arrived.
            if kept.repairs + kept.timeouts == 0 || now.since(kept.sent) >= trip {
                kept.repairs += 1;
                kept.sent = now;
                again.push(kept.segment.clone());
            }
        }
        Some(again)
    }

    /// The mobile host acknowledges, and may ask with SNACKs if they are to be answered. Returns whether the acknowledgement goes on, and
    /// what is to be sent again.
    pub fn hears(&mut self, now: Instant, ack: &mut Segment, settings: &Settings, answers: bool) -> (bool, Vec<Segment>) {
        let repeats = repeats(ack, self.acked, self.highest);
        if !answers || ack.options.rare.as_ref().is_none_or(|rare| rare.snacks.is_empty()) {
            let (goes_on, again) = self.acknowledged(now, ack, settings);
            return (goes_on, again.into_iter().collect());
        }
        if !repeats {
            self.acknowledged(now, ack, settings);
        }
        let Some(again) = self.asked(now, ack, settings) else { return (true, Vec::new()) };
        take_snacks(ack);
        (!repeats, again)
    }

    /// The mobile host acknowledges. Returns whether the acknowledgement goes on, and what is to be sent again.
    fn acknowledged(&mut self, now: Instant, ack: &Segment, settings: &Settings) -> (bool, Option<Segment>) {
        let una = ack.ack.near(self.highest);
        if una > self.highest {
            return (true, None);
        }
        let duplicate = repeats(ack, self.acked, self.highest);
        let before = self.acked.replace((una, ack.window));
        let Some((acked, window)) = before.filter(|(acked, _)| una <= *acked) else {
            self.advance(now, una);
            return (true, None);
        };
        if una < acked {
            self.acked = Some((acked, window));
            return (true, None);
        }
        let behind = self.kept.range(una + 1..).count() as u64;
        let Some(missing) = self.kept.get_mut(&una).filter(|kept| duplicate && !kept.senders) else { return (true, None) };
        // The receiver refuses what is kept, perhaps for its timestamp. The sender has to hear what is missing.
        if missing.repairs >= settings.repairs && missing.timeouts >= settings.timeouts {
            return (true, None);
        }
        self.duplicates += 1;
        if self.expected > 0 {
            self.expected -= 1;
        } else if self.duplicates >= settings.duplicates && missing.repairs < settings.repairs {
            missing.repairs += 1;
            missing.sent = now;
            self.expected = behind.saturating_sub(u64::from(self.duplicates));
            return (false, Some(missing.segment.clone()));
        }
        (false, None)
    }

    /// All before `una` has arrived.
    fn advance(&mut self, now: Instant, una: u64) {
        (self.duplicates, self.expected, self.advanced) = (0, 0, now);
        let mut sample = None;
        while let Some(first) = self.kept.first_entry().filter(|first| first.get().end <= una) {
            let kept = first.remove();
            self.octets -= octets(&kept.segment);
            // Of what was sent twice nobody knows which is acknowledged (Karn & Partridge 1987).
            sample = (kept.repairs + kept.timeouts == 0 && !kept.senders).then(|| now.since(kept.sent));
        }
        if let Some(sample) = sample {
            self.timer.sample(sample);
        }
    }

    /// The mobile host has come to another station, which has room for so many segments and octets. Returns all that is kept and was not lost
    /// before, which is sent there.
    pub fn moves(&mut self, now: Instant, segments: usize, room: u64) -> Vec<Segment> {
        while self.kept.len() > segments || self.octets > room {
            let Some((start, _)) = self.kept.last_key_value() else { break };
            self.forget(*start);
        }
        (self.duplicates, self.expected, self.timer, self.advanced) = (0, 0, HopTimer::default(), now);
        let own = self.kept.values_mut().filter(|kept| !kept.senders);
        // An acknowledgement may be of what the other station sent.
        own.for_each(|kept| (kept.sent, kept.repairs, kept.timeouts) = (now, 1, 0));
        self.kept.values().filter(|kept| !kept.senders).map(|kept| kept.segment.clone()).collect()
    }

    /// When the data that the mobile host waits for is to be sent again.
    pub fn due(&self, settings: &Settings) -> Option<Instant> {
        let missing = self.kept.get(&self.acked?.0)?;
        let timeout = self.timer.timeout(settings.min_timeout_ms, DOUBLINGS);
        (missing.timeouts < settings.timeouts && !missing.senders).then(|| missing.sent.max(self.advanced) + timeout)
    }

    /// The timer of the data that the mobile host waits for has expired.
    pub fn expires(&mut self, now: Instant) -> Option<Segment> {
        let missing = self.kept.get_mut(&self.acked?.0)?;
        missing.timeouts += 1;
        self.timer.back_off();
        missing.sent = now;
        // What was on the link has arrived or is lost.
        self.expected = 0;
        Some(missing.segment.clone())
    }
}

/// Takes the SNACKs out of an acknowledgement.
fn take_snacks(ack: &mut Segment) {
    if let Some(mut rare) = ack.options.rare.take() {
        rare.snacks.clear();
        ack.options.rare = (*rare != RareOptions::default()).then_some(rare);
    }
}
