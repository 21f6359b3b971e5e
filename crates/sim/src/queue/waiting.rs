//! A packet in a queue.

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    pub item: T,
    pub octets: u32,
    /// When it came, in nanoseconds.
    pub since: u64,
}
