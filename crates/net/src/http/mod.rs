//! As much of HTTP/1.1 (RFC 9112) as it takes to offer files and to fetch them.

pub mod body;
pub mod client;
pub mod files;
pub mod limits;
pub mod output;
pub mod server;

/// The longest head of a request or response, in octets.
const MAX_HEAD: usize = 16 << 10;
/// The most header fields in one.
const MAX_FIELDS: usize = 64;
/// What we call ourselves.
const AGENT: &str = concat!("whyloss/", env!("CARGO_PKG_VERSION"));
