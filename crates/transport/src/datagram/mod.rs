//! Transports that carry datagrams.

pub mod dccp;
pub mod tfrc;

use crate::kit::Part;

/// All datagram transports with congestion control: a flow takes one as its scheme.
pub static TABLE: &[Part<dccp::Config>] = &[dccp::CCID_2, dccp::CCID_3];
