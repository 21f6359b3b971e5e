//! What two captures know together, and how the analysis of the first one alone stands beside it.

use super::{Fate, Joined, Pair};
use crate::cause::Cause;
use serde::Serialize;
use std::collections::BTreeMap;

/// Translations that are listed; further ones are counted.
const MAX_TRANSLATIONS: usize = 32;

/// Counts by what became of packets: `arrived`, `damaged`, `lost`, `unseen` or `outside`.
type ByFate<T> = BTreeMap<&'static str, T>;

/// What two captures know together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BothEnds {
    /// How far the second clock was ahead at the first packet in common, in seconds; `None` if there is none.
    pub ahead_s: Option<f64>,
    /// How much faster it goes: 1 is a microsecond a second. 0 if that is within the error.
    pub skew_ppm: Option<f64>,
    /// The skew is right within so much.
    pub skew_error_ppm: Option<f64>,
    /// The offset is right within so many seconds.
    pub ahead_error_s: Option<f64>,
    /// Directions of connections that are in both files.
    pub flows: u64,
    /// Addresses that were translated: as the first file has them, and as the second.
    pub translations: Vec<[String; 2]>,
    /// Further translations that are not listed.
    pub more_translations: u64,
    /// What became of the packets that left at the first capture.
    pub from_first: ByFate<u64>,
    /// Of those that left at the second.
    pub from_second: ByFate<u64>,
    /// What became of the packets that the analysis of the first capture suspects to be lost, by the cause that it gives.
    pub suspected: ByFate<BTreeMap<&'static str, u64>>,
    /// Segments with data that were lost or came damaged, and that it does not suspect.
    pub not_suspected: u64,
    /// Share of the suspected packets of which it says rightly whether they arrived.
    pub arrival_accuracy: Option<f64>,
    /// What was noticed.
    pub remarks: Vec<String>,
}

impl Fate {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Arrived { .. } => "arrived",
            Self::Damaged { .. } => "damaged",
            Self::Lost => "lost",
            Self::Unseen => "unseen",
            Self::Outside => "outside",
        }
    }

    /// Its record in the other capture.
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::Arrived { number, .. } | Self::Damaged { number } => Some(number),
            _ => None,
        }
    }

    /// How long it was on the way, in seconds.
    pub fn delay_s(self) -> Option<f64> {
        match self {
            Self::Arrived { delay_ns, .. } => Some(delay_ns as f64 / 1e9),
            _ => None,
        }
    }

    /// Whether its receiver got it, if that is known.
    pub const fn came(self) -> Option<bool> {
        match self {
            Self::Arrived { .. } | Self::Unseen => Some(true),
            Self::Damaged { .. } | Self::Lost => Some(false),
            Self::Outside => None,
        }
    }
}

impl BothEnds {
    /// `suspected` are the records of the first capture that an analysis of it alone takes for lost, or knows to have been taken for lost by
    /// their sender, and the likeliest causes.
    pub fn new(joined: &Joined, suspected: impl Iterator<Item = (u64, Cause)>) -> Self {
        let clocks = joined.clocks;
        let mut both = Self {
            ahead_s: clocks.map(|clocks| clocks.offset_ns as f64 / 1e9),
            skew_ppm: clocks.map(|clocks| clocks.skew * 1e6),
            skew_error_ppm: clocks.map(|clocks| clocks.skew_error * 1e6),
            ahead_error_s: clocks.and_then(|clocks| clocks.error_ns).map(|error| error as f64 / 1e9),
            flows: joined.pairs.len() as u64,
            remarks: joined.remarks.clone(),
            ..Self::default()
        };
        for pair in joined.pairs.iter().filter(|pair| pair.is_translated()) {
            if both.translations.len() < MAX_TRANSLATIONS {
                let Pair { first, second, .. } = pair;
                both.translations.push([first, second].map(|(from, to)| format!("{from} > {to}")));
            } else {
                both.more_translations += 1;
            }
        }
        for (counts, sent) in [&mut both.from_first, &mut both.from_second].into_iter().zip(&joined.sent) {
            for packet in sent {
                *counts.entry(packet.fate.name()).or_default() += 1;
            }
        }
        let suspected: BTreeMap<u64, Cause> = suspected.collect();
        let (mut told, mut right) = (0u64, 0u64);
        for (number, cause) in &suspected {
            let Some(fate) = joined.fate(super::End::First, *number) else { continue };
            *both.suspected.entry(fate.name()).or_default().entry(cause.name()).or_default() += 1;
            if let (Some(came), true) = (fate.came(), *cause != Cause::Unknown) {
                told += 1;
                right += u64::from(came == cause.arrived());
            }
        }
        both.arrival_accuracy = (told > 0).then(|| right as f64 / told as f64);
        let missed = joined.sent[0].iter().filter(|sent| sent.len > 0 && sent.fate.came() == Some(false));
        both.not_suspected = missed.filter(|sent| !suspected.contains_key(&sent.number)).count() as u64;
        both
    }
}
