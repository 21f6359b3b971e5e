//! What a part in Python sees of a connection, and what it answers. Nothing here but the window can be changed, and that only where a congestion control is
//! asked to.
//!
//! Times are whole nanoseconds, as in the tables of results, so that a part in Python computes what the same part in Rust does.

mod answers;
mod events;
mod numbers;
mod window;

pub use answers::{Assessment, Response, TimeoutResponse, Verdict};
pub use events::{Ack, AfterTimeout, Loss, PathInfo, Sent, Timeout};
pub use numbers::octets;
pub use window::Window;
