//! What a capture says of a packet, in a line that people and programs can read.
//!
//! ```text
//! lost at 1.204311000 s on left>right: queue-full; retransmission: recovery, needed
//! delivered at 0.310000000 s; damaged by a>b: 2 bits, the first is bit 300
//! ```

use crate::truth::Cause;
use std::fmt;
use whyloss_transport::tcp::RetransmissionTrigger;

/// What is known of a packet in a capture. Its text has a clause for each thing, with semicolons between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note<'a> {
    /// What became of it; `None` if that was not known when it was written.
    pub fate: Option<Fate<'a>>,
    /// TCP sent it again: why, and whether its receiver had no undamaged copy of all of it, if that is known.
    pub retransmission: Option<(RetransmissionTrigger, Option<bool>)>,
    /// The transmission before it was lost, and by what.
    pub repairs: Option<Cause>,
    /// It had been damaged before it was captured.
    pub damage: Option<Damage<'a>>,
    /// A link has made it, as a copy of a packet.
    pub copy: bool,
    /// A queue has set "congestion experienced" on it.
    pub marked: bool,
    /// What an agent at a router did to it: `made` it or `changed` it, and the agent's name.
    pub agent: Option<(&'static str, &'static str)>,
}

/// What became of a packet. Times are nanoseconds of the capture's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate<'a> {
    /// It reached its receiver, of those that links have copied the first.
    Delivered {
        /// When.
        at: u64,
    },
    /// It was lost, of those that links have copied the last.
    Lost {
        /// When.
        at: u64,
        /// The direction of the link on which it was lost or damaged last.
        link: &'a str,
        /// Why.
        cause: Cause,
    },
    /// A middlebox ended its journey, because its receiver had no need of it.
    Suppressed {
        /// When.
        at: u64,
    },
    /// The operating system did not take it.
    Refused {
        /// When.
        at: u64,
    },
    /// It was under way when everything ended.
    UnderWay,
}

/// How a packet was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage<'a> {
    /// The direction of the link that did it last.
    pub link: &'a str,
    /// Bits flipped.
    pub bits: u32,
    /// The first of them, from the most significant of the first octet of the IP packet.
    pub first: u32,
}

/// Nanoseconds as seconds.
struct At(u64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: u64 = 1_000_000_000;
        write!(f, "at {}.{:09} s", self.0 / SECOND, self.0 % SECOND)
    }
}

impl fmt::Display for Fate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Delivered { at } => write!(f, "delivered {}", At(at)),
            Self::Lost { at, link, cause } => write!(f, "lost {} on {link}: {}", At(at), cause.name()),
            Self::Suppressed { at } => write!(f, "suppressed {}", At(at)),
            Self::Refused { at } => write!(f, "refused {}", At(at)),
            Self::UnderWay => f.write_str("under way at the end"),
        }
    }
}

impl fmt::Display for Note<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fate {
            Some(fate) => write!(f, "{fate}")?,
            None => f.write_str("fate not known in time")?,
        }
        if let Some((trigger, needed)) = self.retransmission {
            let needed = match needed {
                Some(true) => ", needed",
                Some(false) => ", not needed",
                None => "",
            };
            write!(f, "; retransmission: {}{needed}", trigger.name())?;
        }
        if let Some(cause) = self.repairs {
            write!(f, "; repairs: {}", cause.name())?;
        }
        if let Some(Damage { link, bits, first }) = self.damage {
            let plural = if bits == 1 { "" } else { "s" };
            write!(f, "; damaged by {link}: {bits} bit{plural}, the first is bit {first}")?;
        }
        if self.copy {
            f.write_str("; copy made by a link")?;
        }
        if self.marked {
            f.write_str("; marked by a queue")?;
        }
        if let Some((did, name)) = self.agent {
            write!(f, "; {did} by the agent {name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line() {
        let fate = Some(Fate::Lost { at: 1_204_311_000, link: "left>right", cause: Cause::QueueFull });
        let retransmission = Some((RetransmissionTrigger::Recovery, Some(true)));
        let lost = Note { fate, retransmission, repairs: Some(Cause::Erased), ..Note::default() };
        let said = "lost at 1.204311000 s on left>right: queue-full; retransmission: recovery, needed; repairs: erased";
        assert_eq!(lost.to_string(), said);
        let damage = Some(Damage { link: "a>b", bits: 1, first: 300 });
        let note = Note { fate: Some(Fate::Delivered { at: 5 }), damage, copy: true, ..Note::default() };
        assert_eq!(
            note.to_string(),
            "delivered at 0.000000005 s; damaged by a>b: 1 bit, the first is bit 300; copy made by a link"
        );
    }
}
