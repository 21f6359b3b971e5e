//! Two hosts in network namespaces and a bad path between them.
#![allow(dead_code, missing_docs)]

pub mod bed;
pub mod capture;
pub mod relay;
pub mod serve;
pub mod skip;
pub mod stream;
pub mod web;
