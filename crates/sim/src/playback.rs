//! An application that plays what it receives, and is content in a slot of time if enough has come.

use crate::error::Flaw;
use whyloss_transport::{BitRate, Duration};

/// What a player at a flow's receiver needs.
///
/// Time is cut in slots, counted from the beginning of the run; the player starts with the first whole one. At the end of each it reads as much as
/// it plays in a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playback {
    /// Rate at which it plays.
    pub rate: BitRate,
    /// Length of a slot, at least 1 ms.
    pub slot: Duration,
    /// Octets that can wait for the next slot. What comes beyond them is of no use.
    pub buffer: u64,
    /// A slot is a success if more than this share of what is played in it was there.
    pub enough: f64,
}

/// How a player fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaybackCounts {
    /// Whole slots that it played.
    pub slots: u64,
    /// Those in which enough arrived.
    pub met: u64,
    /// Those in which enough was there, with what waited from earlier slots.
    pub met_buffered: u64,
}

impl Playback {
    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        match self {
            Self { rate, .. } if rate.as_bps() == 0 => Some(("rate", "0 bps".to_owned(), "a rate above zero")),
            Self { slot, .. } if *slot < Duration::from_millis(1) => Some(("slot", slot.to_string(), "1 ms or more")),
            Self { enough, .. } if !(0.0..=1.0).contains(enough) => Some(("enough", enough.to_string(), "a number from 0 to 1")),
            _ => None,
        }
    }
}

/// A player at work.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    playback: Playback,
    /// End of the slot, in nanoseconds.
    slot_end: u64,
    /// Octets that have arrived in it.
    arrived: u64,
    /// Octets that wait from before.
    waiting: u64,
    counts: PlaybackCounts,
}

impl Player {
    /// That of a flow that starts at `start`.
    pub fn new(playback: Playback, start: u64) -> Self {
        let slot = playback.slot.as_nanos();
        let slot_end = start.div_ceil(slot).saturating_add(1).saturating_mul(slot);
        Self { playback, slot_end, arrived: 0, waiting: 0, counts: PlaybackCounts::default() }
    }

    /// So many octets arrive at `now`. What arrives at the end of a slot belongs to the next.
    pub fn take(&mut self, now: u64, octets: u64) {
        self.advance(now);
        if now < self.slot_end - self.playback.slot.as_nanos() {
            self.waiting = (self.waiting + octets).min(self.playback.buffer);
        } else {
            self.arrived += octets;
        }
    }

    /// How it fared in the slots that are over at `now`.
    pub fn counts(&self, now: u64) -> PlaybackCounts {
        let mut here = self.clone();
        here.advance(now);
        here.counts
    }

    fn advance(&mut self, now: u64) {
        let Playback { rate, slot, buffer, enough } = self.playback;
        let played = u128::from(rate.as_bps()) * u128::from(slot.as_nanos());
        let success = |octets: u64| octets as f64 * 8e9 > enough * played as f64;
        while self.slot_end <= now {
            let there = self.waiting + self.arrived;
            let read = there.min((played / 8_000_000_000) as u64);
            self.counts.slots += 1;
            self.counts.met += u64::from(success(self.arrived));
            self.counts.met_buffered += u64::from(success(read));
            (self.waiting, self.arrived) = ((there - read).min(buffer), 0);
            self.slot_end = self.slot_end.saturating_add(slot.as_nanos());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// 1 Mbit/s: 125,000 octets a slot.
    fn player(enough: f64, start: u64) -> Player {
        let playback = Playback { rate: BitRate::from_bps(1_000_000), slot: Duration::from_secs(1), buffer: 125_000, enough };
        Player::new(playback, start)
    }

    fn counts(slots: u64, met: u64, met_buffered: u64) -> PlaybackCounts {
        PlaybackCounts { slots, met, met_buffered }
    }

    #[test]
    fn a_slot_is_a_success_if_more_than_enough_came() {
        let mut player = player(0.9, 0);
        for (slot, octets) in [112_500, 112_501, 125_000, 0].into_iter().zip(0..).map(|(octets, slot)| (slot, octets)) {
            player.take(slot * SECOND + 5, octets);
        }
        // 90 % exactly are not more than 90 %.
        assert_eq!(player.counts(4 * SECOND), counts(4, 2, 2));
        assert_eq!(player.counts(4 * SECOND - 1), counts(3, 2, 2), "the last slot is not over");
    }

    #[test]
    fn what_is_too_much_for_a_slot_waits_for_the_next_as_far_as_there_is_room() {
        let mut player = player(0.9, 0);
        // 375,000: 125,000 are read, 125,000 wait, 125,000 are lost.
        player.take(0, 375_000);
        assert_eq!(player.counts(3 * SECOND), counts(3, 1, 2));
        // 100,000 are left of 225,000 and make up for a short slot, too.
        player.take(3 * SECOND, 225_000);
        player.take(4 * SECOND, 20_000);
        assert_eq!(player.counts(5 * SECOND), counts(5, 2, 4));
    }

    #[test]
    fn the_first_whole_slot_is_the_first() {
        let mut player = player(0.9, SECOND / 2);
        player.take(SECOND * 3 / 4, 60_000);
        player.take(SECOND, 60_000);
        // What came too early for any slot waits: 120,000 are there in the first one.
        assert_eq!(player.counts(2 * SECOND), counts(1, 0, 1));
        assert_eq!(player.counts(SECOND), counts(0, 0, 0));
    }

    #[test]
    fn what_comes_at_the_end_of_a_slot_belongs_to_the_next() {
        let mut player = player(0.5, 0);
        player.take(SECOND, 100_000);
        assert_eq!(player.counts(2 * SECOND), counts(2, 1, 1));
    }

    #[test]
    fn senseless_values_are_found() {
        let playback = player(0.9, 0).playback;
        for (playback, field) in [
            (Playback { rate: BitRate::from_bps(0), ..playback }, "rate"),
            (Playback { slot: Duration::from_micros(999), ..playback }, "slot"),
            (Playback { enough: 1.5, ..playback }, "enough"),
        ] {
            assert_eq!(playback.flaw().map(|(field, ..)| field), Some(field));
        }
        assert_eq!(playback.flaw(), None);
    }
}
