//! Loss differentiation in a stock Linux kernel: congestion controls in BPF, and what loads, selects and watches them.
//!
//! The programs are compiled when this crate is built and lie inside it; where it runs, neither a compiler nor a library is needed.
//! Without the feature `bpf` the crate has no programs, and everything it can do is to say so ([`Error::NotBuilt`]).

#[cfg(feature = "bpf")]
pub mod cgroup;
#[cfg(feature = "bpf")]
pub mod check;
#[cfg_attr(not(feature = "bpf"), path = "absent.rs")]
pub mod commands;
#[cfg(feature = "bpf")]
pub mod consequences;
pub mod controls;
#[cfg(feature = "cores")]
pub mod cores;
mod error;
#[cfg(feature = "bpf")]
pub mod installed;
#[cfg(feature = "bpf")]
pub mod interfaces;
#[cfg(feature = "bpf")]
pub mod load;
#[cfg(feature = "bpf")]
mod mount_namespace;
#[cfg(feature = "bpf")]
mod namespaces;
#[cfg(feature = "bpf")]
pub mod object;
#[cfg(feature = "bpf")]
pub mod owner;
#[cfg(feature = "bpf")]
pub mod place;
#[cfg(feature = "bpf")]
mod reassign;
#[cfg(feature = "bpf")]
pub mod select;
#[cfg(feature = "bpf")]
mod sockets;
#[cfg(feature = "bpf")]
pub mod stat;
#[cfg(feature = "bpf")]
pub mod top;

pub use error::{Error, Result};
