//! Kind 253, continued: what routers on the way put into segments.
//!
//! Nobody negotiates these: a router cannot know what both ends agreed upon, and an end that does not expect one does not act upon it.
//!
//! **Explicit loss** (sub-type 5, length 11, on acknowledgements): octets 5–8 are the sequence number of the first octet that a wireless
//! link lost, octets 9–10 how many octets were lost from there on.
//!
//! **Forwarded** (sub-type 12, length 9, on data): octets 5–8 count the data segments that a base station has sent over its wireless link.
//!
//! **Hop** (sub-type 13, length 12, on control segments without data and without ACK): octet 5 is 0 for the first and 1 for the last hop,
//! octets 6–9 are the sequence number of the data that was seen, 10–11 its length.
//!
//! **Survival** (sub-type 10, length 7, on data): octets 5–6 are the probability to survive the links so far, in units of 1/65535.

use super::experiment::head;
use crate::segment::{ExplicitLoss, Hop, HopNotice, Notices, Options};
use crate::seq::Seq;

const EXPLICIT_LOSS: u8 = 5;
const FORWARDED: u8 = 12;
const HOP: u8 = 13;
const SURVIVAL: u8 = 10;

const EXPLICIT_LOSS_LEN: usize = 11;
const FORWARDED_LEN: usize = 9;
const HOP_LEN: usize = 12;
const SURVIVAL_LEN: usize = 7;

/// Octets of all notices.
pub(super) fn packed_len(notices: &Notices) -> usize {
    let mut len = if notices.explicit_loss.is_some() { EXPLICIT_LOSS_LEN } else { 0 };
    len += if notices.forwarded.is_some() { FORWARDED_LEN } else { 0 };
    len += if notices.hop.is_some() { HOP_LEN } else { 0 };
    len + if notices.survival.is_some() { SURVIVAL_LEN } else { 0 }
}

/// Reads the data of an option of our experiment behind its sub-type, if it is a notice.
pub(super) fn read(options: &mut Options, sub_type: u8, data: &[u8]) -> bool {
    let seq = |octets| Seq(u32::from_be_bytes(octets));
    match (sub_type, data) {
        (EXPLICIT_LOSS, &[a, b, c, d, high, low]) => {
            let loss = ExplicitLoss { seq: seq([a, b, c, d]), len: u16::from_be_bytes([high, low]) };
            of(options).explicit_loss = Some(loss);
        }
        (FORWARDED, &[a, b, c, d]) => of(options).forwarded = Some(u32::from_be_bytes([a, b, c, d])),
        (HOP, &[hop @ (0 | 1), a, b, c, d, high, low]) => {
            let hop = if hop == 0 { Hop::First } else { Hop::Last };
            let notice = HopNotice { hop, seq: seq([a, b, c, d]), len: u16::from_be_bytes([high, low]) };
            of(options).hop = Some(notice);
        }
        (SURVIVAL, &[high, low]) => of(options).survival = Some(u16::from_be_bytes([high, low])),
        _ => return false,
    }
    true
}

fn of(options: &mut Options) -> &mut Notices {
    &mut options.rare.get_or_insert_default().notices
}

/// Appends the notices to `out` as options.
pub(super) fn write(notices: &Notices, out: &mut Vec<u8>) {
    if let Some(loss) = &notices.explicit_loss {
        head(EXPLICIT_LOSS_LEN, out);
        out.push(EXPLICIT_LOSS);
        out.extend_from_slice(&loss.seq.0.to_be_bytes());
        out.extend_from_slice(&loss.len.to_be_bytes());
    }
    if let Some(count) = notices.forwarded {
        head(FORWARDED_LEN, out);
        out.push(FORWARDED);
        out.extend_from_slice(&count.to_be_bytes());
    }
    if let Some(notice) = &notices.hop {
        head(HOP_LEN, out);
        out.extend_from_slice(&[HOP, u8::from(notice.hop == Hop::Last)]);
        out.extend_from_slice(&notice.seq.0.to_be_bytes());
        out.extend_from_slice(&notice.len.to_be_bytes());
    }
    if let Some(survival) = notices.survival {
        head(SURVIVAL_LEN, out);
        out.push(SURVIVAL);
        out.extend_from_slice(&survival.to_be_bytes());
    }
}
