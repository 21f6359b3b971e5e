//! Real packets for the whyloss engine.
//!
//! A [`Host`] is an internet host in user space behind a TUN device: the kernel on the other side of the device sees a machine with
//! its own addresses, whose TCP is the engine.
#![deny(unsafe_code)]

pub mod bulk;
pub mod clock;
pub mod deliver;
pub mod device;
pub mod digest;
pub mod echo;
pub mod emulate;
mod error;
pub mod exchange;
pub mod host;
pub mod http;
pub mod losses;
pub mod namespace;
pub mod proxy;
pub mod realtime;
pub mod report;
pub mod setup;
pub mod testbed;
pub mod train;
pub mod tun;

pub use clock::Clock;
pub use emulate::Emulator;
pub use error::SetupError;
pub use host::{Application, Host, HostStats};
pub use losses::Losses;
pub use setup::Setup;
pub use testbed::Testbed;
pub use tun::Tun;
