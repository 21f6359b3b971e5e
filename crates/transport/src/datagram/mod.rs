//! Transports that carry datagrams.

pub mod dccp;
pub mod tfrc;
