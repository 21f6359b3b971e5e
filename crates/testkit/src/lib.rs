//! What the tests of whyloss stand on; nothing that ships depends on it.
//!
//! - [`ring`]: two endpoints joined by a path in virtual time, with faults that a test asks for.
//! - [`worlds`]: random configurations on random paths, and what must hold in each.
//! - [`settings`]: configurations from words, for scripts and command lines.
//! - [`traffic`]: captures of any length, for speed and memory.
//! - [`packetdrill`]: a virtual-time runner for scripts in packetdrill's language.
#![forbid(unsafe_code)]

pub mod packetdrill;
pub mod ring;
pub mod settings;
pub mod trace;
pub mod traffic;
pub mod worlds;
