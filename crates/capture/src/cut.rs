//! Records that need no parser: cut out of octets that were read, in the two layouts in which nearly all records stand.
//!
//! What does not look exactly so is left to the parser.

/// The options of a packet whose end is marked, and a comment on it.
const END: u16 = 0;
const COMMENT: u16 = 1;

/// How the records of a file stand in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Not known, or in a variant that the parser is left to.
    #[default]
    Other,
    /// pcap: four numbers and the octets.
    Classic(Order),
    /// pcapng: enhanced packet blocks.
    Blocks(Order),
}

/// The order of the octets of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Most significant first.
    Big,
    /// Least significant first.
    Little,
}

impl Order {
    pub(crate) const fn of(big_endian: bool) -> Self {
        if big_endian {
            Self::Big
        } else {
            Self::Little
        }
    }

    pub(crate) fn u32(self, octets: &[u8], at: usize) -> Option<u32> {
        let four = *octets.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u32::from_be_bytes(four),
            Self::Little => u32::from_le_bytes(four),
        })
    }

    fn u16(self, octets: &[u8], at: usize) -> Option<u16> {
        let two = *octets.get(at..)?.first_chunk()?;
        Some(match self {
            Self::Big => u16::from_be_bytes(two),
            Self::Little => u16::from_le_bytes(two),
        })
    }
}

/// A record as it stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut<'a> {
    /// Octets that it takes in the file.
    pub size: usize,
    /// The interface on which it was captured.
    pub interface: u32,
    /// Upper and lower half of its time; seconds and their fraction in pcap.
    pub time: (u32, u32),
    /// What was captured.
    pub octets: &'a [u8],
    /// Octets that it had.
    pub original_len: u32,
    /// What somebody wrote at it.
    pub comment: Option<&'a str>,
}

impl Layout {
    /// The record at the beginning of `octets`, if it is a plain one and all of it is there.
    pub fn cut(self, octets: &[u8]) -> Option<Cut<'_>> {
        match self {
            Self::Other => None,
            Self::Classic(order) => classic(order, octets),
            Self::Blocks(order) => enhanced(order, octets),
        }
    }
}

fn classic(order: Order, octets: &[u8]) -> Option<Cut<'_>> {
    const HEADER: usize = 16;
    let header = octets.get(..HEADER)?;
    let size = HEADER + order.u32(header, 8)? as usize;
    Some(Cut {
        size,
        interface: 0,
        time: (order.u32(header, 0)?, order.u32(header, 4)?),
        octets: octets.get(HEADER..size)?,
        original_len: order.u32(header, 12)?,
        comment: None,
    })
}

/// draft-ietf-opsawg-pcapng, 4.3.
fn enhanced(order: Order, octets: &[u8]) -> Option<Cut<'_>> {
    const KIND: u32 = 6;
    const HEADER: usize = 28;
    const TRAILER: usize = 4;
    let header = octets.get(..HEADER)?;
    let size = order.u32(header, 4)?;
    let (body_end, captured) = ((size as usize).checked_sub(TRAILER)?, order.u32(header, 20)? as usize);
    let data_end = HEADER + captured;
    let options_at = data_end.next_multiple_of(4);
    let plain = order.u32(header, 0)? == KIND && size % 4 == 0 && options_at <= body_end;
    if !plain || order.u32(octets, body_end)? != size {
        return None;
    }
    let comment = comment(order, octets.get(options_at..body_end)?).ok()?;
    Some(Cut {
        size: size as usize,
        interface: order.u32(header, 8)?,
        time: (order.u32(header, 12)?, order.u32(header, 16)?),
        octets: octets.get(HEADER..data_end)?,
        original_len: order.u32(header, 24)?,
        comment,
    })
}

/// Options are not as they should be.
struct Odd;

/// The comment among options; several are for the parser.
fn comment(order: Order, mut options: &[u8]) -> Result<Option<&str>, Odd> {
    let mut found = None;
    while !options.is_empty() {
        let (code, len) = (order.u16(options, 0).ok_or(Odd)?, usize::from(order.u16(options, 2).ok_or(Odd)?));
        let value = options.get(4..4 + len).ok_or(Odd)?;
        match code {
            END => break,
            COMMENT if found.is_some() => return Err(Odd),
            COMMENT => found = std::str::from_utf8(value).ok(),
            _ => {}
        }
        options = options.get(4 + len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(found)
}
