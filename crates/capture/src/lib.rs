//! Packet captures: what TCP sent again in them, and why.
//!
//! A capture is read once, from its beginning to its end ([`source`], [`records`]); the IP packets in it are found behind any link layer or tunnel
//! ([`link`]), their TCP headers read ([`headers`]), and each direction of each connection is followed ([`half`]),
//! which says of each segment what it was. Nothing is kept that is not needed for what comes later, and all that is kept is bounded.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod annotate;
pub mod cause;
pub mod causes;
pub mod clock;
pub mod connections;
mod cut;
pub mod departures;
pub mod detail;
mod error;
pub mod evidence;
pub mod half;
pub mod headers;
pub mod join;
pub mod limits;
pub mod link;
pub mod losses;
pub mod order;
mod overlaps;
pub mod pieces;
pub mod place;
pub mod policer;
pub mod records;
pub mod replay;
pub mod report;
pub mod rounds;
pub mod score;
pub mod scoreboard;
pub mod segments;
pub mod sender;
pub mod series;
pub mod shards;
pub mod source;
pub mod stream;
pub mod tables;
pub mod taken;
pub mod trigger;
pub mod trips;
pub mod truth;
pub mod unseen;

pub use error::{CaptureError, Remark};
