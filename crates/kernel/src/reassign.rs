//! Gives open connections that have one of our controls the default control of their network namespace, when `unload` takes ours out. A connection that cannot be reached keeps its control, and the kernel the program, until it ends.

use crate::object::{said, Loaded, Options};
use crate::stat::Listing;
use crate::{Error, Result};
use libbpf_rs::{Iter, MapHandle};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

/// The program and the maps that it reads, which it keeps open while their names are removed.
#[derive(Debug)]
pub(crate) struct Reassignment {
    program: Loaded,
    connections: MapHandle,
}

impl Reassignment {
    /// Opens program and maps under `root`, the BPF file system, while the maps still have their names.
    pub(crate) fn prepare(root: &Path) -> Result<Self> {
        let maps = root.join("maps");
        let options = Options { maps: Some(maps.clone()), ..Options::default() };
        let connections = said("opening counters", || MapHandle::from_pinned_path(maps.join("wl_connections")))?;
        Ok(Self { program: Loaded::new("reassign", &options)?, connections })
    }

    /// Reassigns all connections that can be reached; call it when our controls are unregistered. Returns how many connections were moved, and how
    /// many were not.
    pub(crate) fn run(&self) -> Result<(usize, usize)> {
        let listing = Listing::of(&self.connections)?;
        let wanted: BTreeSet<u32> = listing.read()?.iter().map(|connection| connection.network_namespace).collect();
        let mut moved = 0;
        for namespace in wanted.into_iter().filter_map(namespace) {
            moved += self.run_in(&namespace)?;
        }
        Ok((moved, listing.read()?.len()))
    }

    fn run_in(&self, namespace: &File) -> Result<usize> {
        let doing = "moving connections to another control";
        let inside = || -> Result<usize> {
            let failed = |source| Error::Io { doing: doing.to_owned(), source };
            // An iterator sees the namespace of the thread that makes it.
            enter(namespace).map_err(failed)?;
            let mut moved = Vec::new();
            for program in self.program.object.progs_mut() {
                let link = said(doing, || program.attach())?;
                let mut sockets = said(doing, || Iter::new(&link))?;
                sockets.read_to_end(&mut moved).map_err(failed)?;
            }
            Ok(moved.len())
        };
        std::thread::scope(|scope| scope.spawn(inside).join().unwrap_or(Ok(0)))
    }
}

/// Brings this thread into a network namespace.
pub(crate) fn enter(namespace: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// The network namespace of the number `id`, if any process or descriptor leads to it.
pub(crate) fn namespace(id: u32) -> Option<File> {
    let name = format!("net:[{id}]");
    let leads_there = |path: PathBuf| (fs::read_link(&path).ok()?.to_str()? == name).then(|| File::open(path).ok()).flatten();
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let processes = || entries("/proc".into()).filter(|path| path.join("ns").exists());
    processes()
        .find_map(|process| leads_there(process.join("ns/net")))
        .or_else(|| {
            processes().flat_map(|process| entries(process.join("task"))).find_map(|thread| leads_there(thread.join("ns/net")))
        })
        .or_else(|| processes().flat_map(|process| entries(process.join("fd"))).find_map(leads_there))
}
