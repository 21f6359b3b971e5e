//! Octets on the wire.

mod options;
