//! What can go wrong, in sentences for whoever typed the command.

/// Why the kernel part did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The package was built on a machine without clang or without libelf's headers.
    #[error(
        "this whyloss was built without its kernel part: where it is built, clang and the headers of libelf and zlib are needed"
    )]
    NotBuilt,
    /// There is no object of this name in the package.
    #[error("the package has no object `{0}`")]
    NoObject(String),
    /// There is no control of this name.
    #[error("there is no control `{name}`; there are: {known}")]
    NoControl {
        /// What was asked for.
        name: String,
        /// What could have been.
        known: String,
    },
    /// The kernel or libbpf refused.
    #[error("{doing}: {cause}{said}")]
    Bpf {
        /// What was being done.
        doing: String,
        /// The error of the call.
        cause: String,
        /// What libbpf or the verifier said, on lines of its own; may be empty.
        said: String,
    },
}

/// What this crate's operations return.
pub type Result<T> = std::result::Result<T, Error>;
