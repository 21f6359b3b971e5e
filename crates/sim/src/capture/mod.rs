//! Packet captures as they could be taken on real machines, and the truth about the packets in them.
//!
//! A capture stands at a place (`tap`): it sees the packets that pass there, when they pass and as they are then. What became of a packet
//! (`journeys`) is known only later, so its record waits until then; it is written (`file`) with a comment (`comment`) that says so.

mod comment;
mod file;
mod journeys;
mod tap;

pub use comment::{Damage, Fate, Note};
pub use file::{Capture, Captured};
pub(crate) use journeys::{Ended, Sending};
pub use tap::CaptureSpec;
pub(crate) use tap::{Point, Seen, Taps, Vantage};
