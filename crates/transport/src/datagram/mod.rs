//! Transports that carry datagrams.

pub mod dccp;
