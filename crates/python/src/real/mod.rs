//! Real packets for Python: test beds, bridges, and the engine as a host.

mod bridge;
mod bulk;
mod emulation;
mod testbed;
mod wire;

pub use bridge::Bridge;
pub use bulk::BulkTransfer;
pub use testbed::Bed;
pub use wire::WireHost;
