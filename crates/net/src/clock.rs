//! The real clock.

use whyloss_transport::Instant;

/// Turns the system's monotonic clock into the engine's time. The origin is when the clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// Time since the clock was made.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }
}
