//! Work in every network namespace of the machine.

use crate::{Error, Result};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// The network namespaces that a process is in, or that have a name: inode and file.
fn all() -> BTreeMap<u64, PathBuf> {
    let entries = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten();
    let of_processes = entries("/proc").filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    let of_processes = of_processes.map(|entry| entry.path().join("ns/net"));
    let named = entries("/run/netns").map(|entry| entry.path());
    // A process may be gone by now, and so may be its namespace.
    of_processes.chain(named).filter_map(|path| Some((fs::metadata(&path).ok()?.ino(), path))).collect()
}

/// Does `work` in each of them, in a thread of its own: this one stays where it is. A namespace that goes meanwhile is left out.
pub fn in_each(work: impl Fn() -> Result<()> + Send) -> Result<()> {
    let worker = std::thread::Builder::new().name("namespaces".to_owned());
    std::thread::scope(|scope| {
        let handle = worker.spawn_scoped(scope, move || {
            for path in all().values() {
                let Ok(file) = File::open(path) else { continue };
                if move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).is_ok() {
                    work()?;
                }
            }
            Ok(())
        });
        let handle = handle.map_err(|source| Error::Io { doing: "starting a thread".to_owned(), source })?;
        handle.join().expect("the work does not panic")
    })
}

#[cfg(test)]
mod tests {
    use super::all;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn the_own_namespace_is_one_of_them() {
        let own = std::fs::metadata("/proc/self/ns/net").expect("Linux").ino();
        assert!(all().contains_key(&own));
    }
}
