//! TCP options: their lengths, parsing and emission.

use crate::segment::Options;

impl Options {
    /// Octets that the options take in a header, padded to a multiple of four.
    pub fn encoded_len(&self) -> usize {
        let mut len = 0;
        len += if self.mss.is_some() { 4 } else { 0 };
        len += if self.window_scale.is_some() { 3 } else { 0 };
        len += if self.sack_permitted { 2 } else { 0 };
        len += if self.timestamps.is_some() { 10 } else { 0 };
        len += if self.sack.is_empty() { 0 } else { 2 + 8 * self.sack.len() };
        len.div_ceil(4) * 4
    }
}
