//! The engine behind packetdrill's interface for shared objects (`packetdrill --so_filename=libwhyloss_packetdrill.so`).
//!
//! packetdrill (Cardwell et al., USENIX ATC 2013) runs a script: it makes the system calls of an application, puts segments on the wire
//! and expects others. Here both ends of that are the engine's, and so is the clock: time is virtual and passes only when packetdrill
//! waits, so that a script takes no time and always gives the same result.
//!
//! The interface is C. This crate declares what it needs of it on its own; [`ffi`] is the only part with `unsafe`.
#![deny(unsafe_code)]

mod commands;
mod descriptor;
mod epoll;
pub mod errno;
mod errors;
mod fast_open;
pub mod ffi;
mod info;
mod layout;
mod limits;
mod offload;
mod outcome;
mod send_queue;
mod shared;
mod world;

pub use shared::Shared;
pub use world::World;
