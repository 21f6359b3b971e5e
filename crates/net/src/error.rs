//! Why a host on a TUN device cannot be set up.

use std::io;
use whyloss_transport::scheme::SelectionError;

/// Why there is no host.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The user asks for what there is not.
    #[error("{0}")]
    Choice(String),
    /// This machine, or this user, cannot do it.
    #[error("{0}")]
    Unavailable(String),
    /// What the system said to anything else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<SelectionError> for SetupError {
    fn from(error: SelectionError) -> Self {
        Self::Choice(error.to_string())
    }
}
