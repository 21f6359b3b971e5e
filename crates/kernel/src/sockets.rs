//! Programs that run over the TCP sockets of the machine: `wl_of_namespace` and `wl_of_files` of an object (`bpf/include/sockets.h`).

use crate::namespaces::Namespaces;
use crate::object::{said, Loaded};
use crate::{Error, Result};
use libbpf_rs::{Iter, Link};
use std::io::Read as _;

/// Both programs, which write a row for each connection that they tell of.
#[derive(Debug)]
pub(crate) struct Sockets {
    of_namespace: Link,
    of_files: Link,
    namespaces: Namespaces,
}

impl Sockets {
    /// Of an object that has both programs.
    pub fn of(loaded: &Loaded) -> Result<Self> {
        Ok(Self {
            of_namespace: attach(loaded, "wl_of_namespace")?,
            of_files: attach(loaded, "wl_of_files")?,
            namespaces: Namespaces::find(),
        })
    }

    /// The rows of the connections in every network namespace that can be entered.
    pub fn of_namespaces(&mut self) -> Result<Vec<u8>> {
        let mut octets = Vec::new();
        self.namespaces.in_each(|| run(&self.of_namespace, &mut octets))?;
        Ok(octets)
    }

    /// The rows of the connections that a process holds, in whatever network namespace: one for every descriptor.
    pub fn of_files(&self) -> Result<Vec<u8>> {
        let mut octets = Vec::new();
        run(&self.of_files, &mut octets)?;
        Ok(octets)
    }
}

/// Attaches the program `name`.
pub(crate) fn attach(loaded: &Loaded, name: &str) -> Result<Link> {
    let program = loaded.object.progs_mut().find(|program| program.name() == name);
    let program = program.ok_or_else(|| Error::NoObject(name.to_owned()))?;
    said(&format!("attaching {name}"), || program.attach())
}

/// Runs an iterator to its end; `into` gets what it writes. It sees the network namespace of the thread that calls.
pub(crate) fn run(link: &Link, into: &mut Vec<u8>) -> Result<()> {
    let mut iterator = said("beginning to read connections", || Iter::new(link))?;
    iterator.read_to_end(into).map_err(|source| Error::Io { doing: "reading connections".to_owned(), source })?;
    Ok(())
}
