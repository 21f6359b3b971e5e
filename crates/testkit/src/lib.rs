//! What the tests of whyloss stand on; nothing that ships depends on it.
#![forbid(unsafe_code)]
