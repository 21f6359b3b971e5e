//! What comes of what a script asks for.

use crate::errno::Errno;
use whyloss_transport::Instant;

/// What an attempt at a system call came to.
pub enum Attempt<T> {
    /// The call returns this.
    Done(Result<T, Errno>),
    /// It has to wait; until then, if at all limited.
    Waits(Option<Instant>),
}

/// Says what a script asks for that there is not, in words that the runner of scripts looks for.
pub fn unsupported(what: &str) {
    eprintln!("whyloss: not supported: {what}");
}
