//! What the package's own controls have decided of their connections, where they are loaded.

use crate::installed::Installed;
use crate::place::Place;
use crate::stat::{Counts, Listing};
use crate::Result;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Reads the counters of the controls at a place, which may be loaded and unloaded meanwhile.
#[derive(Debug)]
pub struct Decisions {
    place: Place,
    /// Device and inode of the counters' name; others after the controls were loaded anew.
    opened: Option<(u64, u64)>,
    listing: Option<Listing>,
    known: HashMap<u64, Counts>,
    before: HashMap<u64, Counts>,
}

impl Decisions {
    /// Of the controls at `place`.
    pub fn of(place: Place) -> Self {
        Self { place, opened: None, listing: None, known: HashMap::new(), before: HashMap::new() }
    }

    /// Reads the counters of all connections.
    pub fn look(&mut self) -> Result<()> {
        let maps = self.place.mounted_on().join("maps");
        let there = fs::metadata(maps.join("wl_connections")).ok().map(|found| (found.dev(), found.ino()));
        if there != self.opened {
            self.listing = there.and_then(|_| self.open(&maps).ok());
            self.opened = there;
        }
        let rows = self.listing.as_mut().map_or(Ok(Vec::new()), Listing::read)?;
        let known = rows.into_iter().map(|row| (row.cookie, row.counts)).collect();
        self.before = std::mem::replace(&mut self.known, known);
        Ok(())
    }

    /// Controls that another version of the package has loaded may count in another way: of them nothing is told.
    fn open(&self, maps: &Path) -> Result<Listing> {
        let _own = Installed::own(&self.place)?;
        Listing::of(maps)
    }

    /// What is counted of the connection `cookie`; of one that has ended since the last look, what was counted at the look before.
    pub fn counts(&self, cookie: u64) -> Option<&Counts> {
        self.known.get(&cookie).or_else(|| self.before.get(&cookie))
    }
}
