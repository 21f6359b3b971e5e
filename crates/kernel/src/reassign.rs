//! Gives open connections that have one of our controls the default control of their network namespace, when `unload` takes ours out. A connection that cannot be reached keeps its control, and the kernel the program, until it ends.

use crate::namespaces::Namespaces;
use crate::object::{Loaded, Options};
use crate::sockets::{attach, run};
use crate::stat::Listing;
use crate::Result;
use libbpf_rs::Link;
use std::path::Path;

/// The programs and the maps that they read, which they keep open while their names are removed.
#[derive(Debug)]
pub(crate) struct Reassignment {
    reassign: Link,
    listing: Listing,
    _loaded: Loaded,
}

impl Reassignment {
    /// Opens programs and maps under `root`, the BPF file system, while the maps still have their names.
    pub(crate) fn prepare(root: &Path) -> Result<Self> {
        let maps = root.join("maps");
        let listing = Listing::of(&maps)?;
        let loaded = Loaded::new("reassign", &Options { maps: Some(maps), ..Options::default() })?;
        Ok(Self { reassign: attach(&loaded, "wl_reassign")?, listing, _loaded: loaded })
    }

    /// Reassigns all connections and listeners that can be reached; call it when our controls are unregistered. Returns how many connections were
    /// moved, and how many were not.
    pub(crate) fn run(&mut self) -> Result<(usize, usize)> {
        let mut moved = Vec::new();
        // In all namespaces: what counts connections knows no listeners.
        Namespaces::find().in_each(|| run(&self.reassign, &mut moved))?;
        Ok((moved.len(), self.listing.read()?.len()))
    }
}
