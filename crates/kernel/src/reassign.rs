//! Gives open connections that have one of our controls the default control of their network namespace, when `unload` takes ours out. A connection that cannot be reached keeps its control, and the kernel the program, until it ends.

use crate::namespaces::{enter, Namespaces};
use crate::object::{Loaded, Options};
use crate::sockets::{attach, run};
use crate::stat::Listing;
use crate::{Error, Result};
use libbpf_rs::Link;
use std::collections::BTreeSet;
use std::fs::File;
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

    /// Reassigns all connections that can be reached; call it when our controls are unregistered. Returns how many connections were moved, and how
    /// many were not.
    pub(crate) fn run(&mut self) -> Result<(usize, usize)> {
        let wanted: BTreeSet<u32> = self.listing.read()?.iter().map(|connection| connection.network_namespace).collect();
        let namespaces = Namespaces::find();
        let mut moved = 0;
        for namespace in wanted.into_iter().filter_map(|number| namespaces.open(number)) {
            moved += self.run_in(&namespace)?;
        }
        Ok((moved, self.listing.read()?.len()))
    }

    fn run_in(&self, namespace: &File) -> Result<usize> {
        let inside = || -> Result<usize> {
            let doing = || "moving connections to another control".to_owned();
            enter(namespace).map_err(|source| Error::Io { doing: doing(), source })?;
            let mut moved = Vec::new();
            run(&self.reassign, &mut moved)?;
            Ok(moved.len())
        };
        std::thread::scope(|scope| scope.spawn(inside).join().unwrap_or(Ok(0)))
    }
}
