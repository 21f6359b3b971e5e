//! Errors of system calls.

use nix::libc;
use whyloss_transport::tcp::Closing;

/// A number of `errno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// The error that an application sees of a connection that ended so.
pub const fn of(closing: Closing) -> Option<Errno> {
    match closing {
        Closing::Normal => None,
        Closing::Aborted => Some(Errno(libc::ECONNABORTED)),
        Closing::Reset => Some(Errno(libc::ECONNRESET)),
        Closing::Refused => Some(Errno(libc::ECONNREFUSED)),
        Closing::TimedOut => Some(Errno(libc::ETIMEDOUT)),
    }
}
