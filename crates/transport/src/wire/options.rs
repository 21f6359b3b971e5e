//! TCP options: their lengths, how they fit, parsing and emission.
//!
//! | kind | option | octets | source |
//! | ---: | --- | ---: | --- |
//! | 2 | maximum segment size | 4 | RFC 9293, 3.2 |
//! | 3 | window scale | 3 | RFC 7323, 2.2 |
//! | 4 | SACK permitted | 2 | RFC 2018, 2 |
//! | 5 | SACK of *n* ≤ 4 blocks | 2 + 8 *n* | RFC 2018, 3 |
//! | 8 | timestamps | 10 | RFC 7323, 3.2 |
//! | 34 | Fast Open cookie of *n* octets | 2 + *n* | RFC 7413, 4.1.1 |
//! | 254 | the same, before it had a kind | 4 + *n* | RFC 6994 |
//! | 20 | SCPS capabilities | 4 | CCSDS 714.0-B |
//! | 21 | SNACK with *v* octets of bits; a header can have several | 6 + *v* | CCSDS 714.0-B |
//! | 253, 254 | our experiment: see [`super::report`] | 4 to 40 | RFC 6994 |
//! | 253, 254 | rate of a wave, wave; not on a SYN: see [`super::report`] | 4 | Tsaoussidis & Zhang 2002, 3.3 |
//!
//! An option of another kind, or of one of these kinds with another length, is kept in [`RareOptions::unknown`] and not acted upon.
//!
//! Options stand packed: nothing but the whole is aligned to 32 bits. The padding is no-operations. In the header of a SYN it
//! follows the options, in any other it precedes them, so that timestamps alone stand as RFC 7323, appendix A shows them.

use super::{notices, probe, report};
use crate::segment::{Cookie, FastOpen, Notices, Options, RareOptions, ScpsCapabilities, Snack, Timestamps, Wave};
use crate::seq::Seq;
use bytes::Bytes;
use std::ops::Range;

/// Octets that a TCP header has for options.
pub const MAX_LEN: usize = 40;

/// Octets of a SNACK without bits.
pub const SNACK_LEN: usize = 6;
const SCPS_LEN: usize = 4;

const END_OF_OPTIONS: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const SCPS: u8 = 20;
const SNACK: u8 = 21;
const FAST_OPEN: u8 = 34;
const EXPERIMENT: u8 = 254;
const FAST_OPEN_EXPERIMENT: [u8; 2] = [0xF9, 0x89];

/// An option whose length makes no sense: below 2, or more than the header has left. What follows it cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "option kind {kind} at octet {at} of the options claims {claimed} octets of the {left} that are left; at least 2 are needed"
)]
pub struct Malformed {
    /// Kind of the option.
    pub kind: u8,
    /// Where it begins in the options.
    pub at: usize,
    /// The length that it claims; 0 if its length octet is missing.
    pub claimed: u8,
    /// Octets from its beginning to the end of the options.
    pub left: usize,
}

impl Options {
    /// Octets that the options take in a header, padded to a multiple of four.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        self.packed_len().next_multiple_of(4)
    }

    /// Octets without padding. What has more than [`MAX_LEN`] does not fit a header.
    #[inline]
    pub fn packed_len(&self) -> usize {
        let mut len = self.sack_len();
        len += if self.timestamps.is_some() { 10 } else { 0 };
        len += if self.nonce.is_some() { report::NONCE_LEN } else { 0 };
        len += if self.wave.is_some() { report::WAVE_LEN } else { 0 };
        len += if self.header_check { report::HEADER_CHECK_LEN } else { 0 };
        len += if self.mss.is_some() { 4 } else { 0 };
        len += if self.window_scale.is_some() { 3 } else { 0 };
        len += if self.sack_permitted { 2 } else { 0 };
        if let Some(rare) = &self.rare {
            len += rare.packed_len();
        }
        len
    }

    #[inline]
    fn sack_len(&self) -> usize {
        if self.sack.is_empty() {
            0
        } else {
            2 + 8 * self.sack.len()
        }
    }

    /// Drops what a header has no room for, the least useful first: unknown options and notices; SACK blocks from the last on; of SNACKs the bits
    /// of the last, then the last; the loss report; the Fast Open cookie and the separation; the wave; the header checksum; the nonce. What opens a connection and timestamps always stay, and fit.
    ///
    /// A SACK block that does not fit now is repeated later (RFC 2018, 4); a loss report is worth more the earlier it comes.
    pub fn fit(&mut self) {
        if self.packed_len() <= MAX_LEN {
            return;
        }
        if let Some(rare) = &mut self.rare {
            rare.unknown.clear();
            rare.notices = Notices::default();
        }
        let others = self.packed_len() - self.sack_len();
        self.sack.truncate(MAX_LEN.saturating_sub(others + 2) / 8);
        if let Some(mut rare) = self.rare.take() {
            let others = self.packed_len();
            loop {
                let excess = (others + rare.packed_len()).saturating_sub(MAX_LEN);
                let Some(snack) = rare.snacks.last_mut().filter(|_| excess > 0) else { break };
                if excess > snack.bits.len() {
                    rare.snacks.pop();
                } else {
                    snack.bits.truncate(snack.bits.len() - excess);
                }
            }
            if others + rare.packed_len() > MAX_LEN {
                rare.report = None;
                if others + rare.packed_len() > MAX_LEN {
                    rare.short_nonce = None;
                }
            }
            self.rare = (*rare != RareOptions::default()).then_some(rare);
        }
        if self.packed_len() > MAX_LEN {
            if let Some(mut rare) = self.rare.take() {
                rare.fast_open = None;
                rare.separation = None;
                self.rare = (*rare != RareOptions::default()).then_some(rare);
            }
        }
        if self.packed_len() > MAX_LEN {
            self.wave = None;
        }
        if self.packed_len() > MAX_LEN {
            self.header_check = false;
        }
        if self.packed_len() > MAX_LEN {
            self.nonce = None;
        }
    }

    /// The options that stand in `octets`, of a SYN or of another segment, and where reading had to stop if a length makes no sense. Of an option
    /// that comes twice the last counts, but for SNACKs.
    pub fn parse(octets: &Bytes, syn: bool) -> (Self, Option<Malformed>) {
        let mut options = Self::default();
        let malformed = options.read(octets, 0..octets.len(), syn);
        (options, malformed)
    }

    /// Reads the options that stand in `range` of `octets`.
    pub(super) fn read(&mut self, octets: &Bytes, range: Range<usize>, syn: bool) -> Option<Malformed> {
        let mut at = range.start;
        while at < range.end {
            let (kind, left) = (octets[at], range.end - at);
            match kind {
                END_OF_OPTIONS => break,
                NO_OPERATION => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let claimed = if left < 2 { 0 } else { octets[at + 1] };
            let len = usize::from(claimed);
            if len < 2 || len > left {
                return Some(Malformed { kind, at: at - range.start, claimed, left });
            }
            let data = at + 2..at + len;
            if !self.read_known(kind, &octets[data.clone()], syn, || octets.slice(at + 6..at + len)) {
                self.rare.get_or_insert_default().unknown.push((kind, octets.slice(data)));
            }
            at += len;
        }
        None
    }

    /// Reads one option, if it is known. `bits` slices the bits of a SNACK out of the packet.
    fn read_known(&mut self, kind: u8, data: &[u8], syn: bool, bits: impl FnOnce() -> Bytes) -> bool {
        let u32_at = |at: usize| u32::from_be_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
        match (kind, data) {
            (TIMESTAMPS, _) if data.len() == 8 => self.timestamps = Some(Timestamps { value: u32_at(0), echo: u32_at(4) }),
            (SACK, _) if matches!(data.len(), 8 | 16 | 24 | 32) => {
                self.sack.truncate(0);
                for at in (0..data.len()).step_by(8) {
                    self.sack.push(Seq(u32_at(at)), Seq(u32_at(at + 4)));
                }
            }
            (MSS, &[a, b]) => self.mss = Some(u16::from_be_bytes([a, b])),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (SNACK, &[a, b, c, d, ..]) => {
                let (hole1_offset, hole1_size) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
                self.rare.get_or_insert_default().snacks.push(Snack { hole1_offset, hole1_size, bits: bits() });
            }
            (SCPS, &[flags, connection]) => {
                self.rare.get_or_insert_default().scps = Some(ScpsCapabilities { flags, connection });
            }
            (FAST_OPEN, cookie) => return self.read_fast_open(cookie, false),
            (report::WORDS_KIND, data) if syn && *data == report::EXPERIMENT_ID.to_be_bytes() => {
                self.rare.get_or_insert_default().words_permitted = true;
            }
            (report::WAVE_KIND, &[number, size]) if !syn => self.wave = Some(Wave { number, size }),
            (EXPERIMENT, &[a, b, ref cookie @ ..]) if [a, b] == FAST_OPEN_EXPERIMENT => return self.read_fast_open(cookie, true),
            (report::KIND, data) => return report::read(self, data, syn),
            _ => return false,
        }
        true
    }

    fn read_fast_open(&mut self, octets: &[u8], experimental: bool) -> bool {
        let cookie = Cookie::new(octets);
        let known = octets.is_empty() || cookie.is_some();
        if known {
            self.rare.get_or_insert_default().fast_open = Some(FastOpen { cookie, experimental });
        }
        known
    }

    /// Appends the options with their padding. They fit, and no unknown option has a kind without a length.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let packed = self.packed_len();
        let padding = &[NO_OPERATION; 3][..packed.next_multiple_of(4) - packed];
        let opens = self.mss.is_some();
        if !opens {
            out.extend_from_slice(padding);
        }
        if let Some(mss) = self.mss {
            let [a, b] = mss.to_be_bytes();
            out.extend_from_slice(&[MSS, 4, a, b]);
        }
        if self.sack_permitted {
            out.extend_from_slice(&[SACK_PERMITTED, 2]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            let mut option = [TIMESTAMPS, 10, 0, 0, 0, 0, 0, 0, 0, 0];
            option[2..6].copy_from_slice(&value.to_be_bytes());
            option[6..10].copy_from_slice(&echo.to_be_bytes());
            out.extend_from_slice(&option);
        }
        if let Some(shift) = self.window_scale {
            out.extend_from_slice(&[WINDOW_SCALE, 3, shift]);
        }
        if !self.sack.is_empty() {
            out.extend_from_slice(&[SACK, self.sack_len() as u8]);
            for (left, right) in self.sack.as_slice() {
                out.extend_from_slice(&left.0.to_be_bytes());
                out.extend_from_slice(&right.0.to_be_bytes());
            }
        }
        report::write(self, out);
        if let Some(rare) = &self.rare {
            rare.write(out);
        }
        if opens {
            out.extend_from_slice(padding);
        }
    }
}

/// Where the checksum of the header stands among the options of a TCP header, if it is there: the last one, as for any option.
pub(super) fn header_check_at(options: &[u8]) -> Option<usize> {
    let mut found = None;
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        match kind {
            END_OF_OPTIONS => break,
            NO_OPERATION => at += 1,
            _ => {
                let len = usize::from(options.get(at + 1).copied().unwrap_or(0));
                if len < 2 {
                    break;
                }
                let Some(option) = options.get(at..at + len) else { break };
                if kind == report::KIND && report::is_header_check(&option[2..]) {
                    found = Some(at + len - 2);
                }
                at += len;
            }
        }
    }
    found
}

impl RareOptions {
    fn packed_len(&self) -> usize {
        let mut len = if self.reports_permitted { report::PERMITTED_LEN } else { 0 };
        len += if self.words_permitted { report::PERMITTED_LEN } else { 0 };
        len += report::report_and_nonce_len(self);
        len += notices::packed_len(&self.notices);
        len += if self.probe.is_some() { probe::LEN } else { 0 };
        len += if self.separation.is_some() { report::SEPARATION_LEN } else { 0 };
        len += if self.scps.is_some() { SCPS_LEN } else { 0 };
        len += self.snacks.iter().map(|snack| SNACK_LEN + snack.bits.len()).sum::<usize>();
        len += self.fast_open.as_ref().map_or(0, FastOpen::len);
        len + self.unknown.iter().map(|(_, data)| 2 + data.len()).sum::<usize>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        if let Some(probe) = self.probe {
            probe::write(probe, out);
        }
        if let Some(ScpsCapabilities { flags, connection }) = self.scps {
            out.extend_from_slice(&[SCPS, SCPS_LEN as u8, flags, connection]);
        }
        for snack in &self.snacks {
            out.extend_from_slice(&[SNACK, (SNACK_LEN + snack.bits.len()) as u8]);
            out.extend_from_slice(&snack.hole1_offset.to_be_bytes());
            out.extend_from_slice(&snack.hole1_size.to_be_bytes());
            out.extend_from_slice(&snack.bits);
        }
        if let Some(fast_open) = &self.fast_open {
            fast_open.write(out);
        }
        for (kind, data) in &self.unknown {
            out.extend_from_slice(&[*kind, 2 + data.len() as u8]);
            out.extend_from_slice(data);
        }
    }
}

impl FastOpen {
    fn len(&self) -> usize {
        2 + if self.experimental { FAST_OPEN_EXPERIMENT.len() } else { 0 }
            + self.cookie.map_or(0, |cookie| cookie.as_slice().len())
    }

    /// Appends the option to `out`, as RFC 7413 lays it out.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[if self.experimental { EXPERIMENT } else { FAST_OPEN }, self.len() as u8]);
        if self.experimental {
            out.extend_from_slice(&FAST_OPEN_EXPERIMENT);
        }
        out.extend_from_slice(self.cookie.as_ref().map_or(&[], Cookie::as_slice));
    }
}

#[cfg(test)]
mod tests;
