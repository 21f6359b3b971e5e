//! What can go wrong, in sentences for whoever typed the command.

/// Why the kernel part did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The package was built on a machine without clang or without libelf's headers.
    #[error(
        "this whyloss was built without its kernel part: where it is built, clang and the headers of libelf and zlib are needed"
    )]
    NotBuilt,
    /// Programs cannot be loaded by this user, or not into this kernel.
    #[error("{0}")]
    NotHere(String),
    /// There is no object of this name in the package.
    #[error("the package has no object `{0}`")]
    NoObject(String),
    /// There is no control of this name.
    #[error("there is no control `{name}`; there are: {known}")]
    NoControl {
        /// The name that was given.
        name: String,
        /// All names that are allowed, separated by commas.
        known: String,
    },
    /// An argument cannot be taken.
    #[error("{0}")]
    Input(String),
    /// Something is loaded already.
    #[error("loaded already by {by}: {controls} (whyloss {version}); `whyloss kernel unload` takes it out")]
    AlreadyLoaded {
        /// Who loaded them.
        by: String,
        /// The names of the controls.
        controls: String,
        /// The version of the package that loaded them.
        version: String,
    },
    /// No programs of ours are loaded.
    #[error("nothing is loaded; `whyloss kernel load` does it")]
    NotLoaded,
    /// What is to be taken out belongs to somebody else.
    #[error("the controls were loaded by {0}; `whyloss kernel unload --force` takes them out all the same")]
    OfAnother(String),
    /// Somebody has made one of the controls the usual one.
    #[error(
        "{0} is the system's default control: give it another first, as with `sysctl -w net.ipv4.tcp_congestion_control=cubic`"
    )]
    IsDefault(String),
    /// What is loaded is not what this package would load.
    #[error(
        "what is loaded comes from whyloss {loaded} and other programs than those of this package ({own}): \
         `whyloss kernel unload`, then `load`"
    )]
    Mismatch {
        /// The package version that loaded it.
        loaded: String,
        /// The version of this package.
        own: String,
    },
    /// A name in the kernel belongs to somebody else.
    #[error(
        "the kernel has a control `{0}` already, and it was not loaded here: was it loaded in a container or by another tool?"
    )]
    NameTaken(String),
    /// A file operation failed.
    #[error("{doing}: {source}")]
    Io {
        /// The operation and its path, as in `opening /run/whyloss`.
        doing: String,
        /// The system call's error.
        source: std::io::Error,
    },
    /// The kernel or libbpf refused.
    #[error("{doing}: {cause}{said}")]
    Bpf {
        /// The operation, as in `loading checksum`.
        doing: String,
        /// The call's `errno` as text.
        cause: String,
        /// What libbpf or the verifier said, on lines of its own; may be empty.
        said: String,
    },
}

impl Error {
    /// Whether the command could not have succeeded on this machine or with these arguments, as opposed to having failed.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::NotBuilt | Self::NotHere(_) | Self::NoObject(_) | Self::NoControl { .. } | Self::Input(_) | Self::OfAnother(_)
        )
    }
}

/// What this crate's operations return.
pub type Result<T> = std::result::Result<T, Error>;
