//! A virtual-time runner for scripts in packetdrill's language.

mod parse;
pub mod script;

pub use parse::{parse, SyntaxError};
