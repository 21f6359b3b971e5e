//! The network namespaces of the machine, and work in them.

use crate::cgroup::mounts_of_type;
use crate::{Error, Result};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long what was found is good for; and as many times as long as it took to find, so that a machine of many descriptors is not busy with it.
const GOOD_FOR: Duration = Duration::from_secs(2);
const GOOD_FOR_TIMES: u32 = 50;
/// What leads to a namespace may be gone when it is needed: a descriptor is closed, a thread goes on to the next namespace, as ours does. So many
/// ways are remembered for each.
const WAYS: usize = 8;

/// The network namespaces that have a name, that a thread is in, or that a descriptor of a process leads to.
#[derive(Debug)]
pub(crate) struct Namespaces {
    /// By number, what leads to it: what lasts comes first.
    found: BTreeMap<u32, Vec<PathBuf>>,
    at: Instant,
    took: Duration,
}

impl Namespaces {
    /// Looks for them.
    pub fn find() -> Self {
        let at = Instant::now();
        let mut found: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
        let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
        let named = mounts_of_type(&mounts, "nsfs").filter_map(|path| Some((named(&path)?, path)));
        let processes: Vec<_> = entries(Path::new("/proc")).filter(|path| is_number(path)).collect();
        let of_processes = processes.iter().map(|process| process.join("ns/net"));
        let of_threads = processes.iter().flat_map(|process| entries(&process.join("task"))).map(|thread| thread.join("ns/net"));
        let of_descriptors = processes.iter().flat_map(|process| entries(&process.join("fd")));
        // None by a name that means another in another thread, as /proc/thread-self does.
        let linked = of_processes.chain(of_descriptors).chain(of_threads);
        for (number, path) in named.chain(linked.filter_map(|path| Some((linked_to(&path)?, path)))) {
            let ways = found.entry(number).or_default();
            if ways.len() < WAYS {
                ways.push(path);
            }
        }
        Self { found, at, took: at.elapsed() }
    }

    /// Looks for them again, if that was long ago or one has gone.
    fn refresh(&mut self) {
        let age = self.at.elapsed();
        let leads_to = |number: u32| move |path: &PathBuf| number_of(path) == Some(number);
        let has_gone = || self.found.iter().any(|(number, ways)| !ways.iter().any(leads_to(*number)));
        if age >= GOOD_FOR_TIMES * self.took && (age >= GOOD_FOR || has_gone()) {
            *self = Self::find();
        }
    }

    /// Does `work` in each of them, in a thread of its own: this one stays where it is. A namespace that goes meanwhile is left out.
    pub fn in_each(&mut self, mut work: impl FnMut() -> Result<()> + Send) -> Result<()> {
        self.refresh();
        let worker = std::thread::Builder::new().name("namespaces".to_owned());
        std::thread::scope(|scope| {
            let handle = worker.spawn_scoped(scope, || {
                for number in self.found.keys() {
                    if self.open(*number).is_some_and(|file| enter(&file).is_ok()) {
                        work()?;
                    }
                }
                Ok(())
            });
            let handle = handle.map_err(|source| Error::Io { doing: "starting a thread".to_owned(), source })?;
            handle.join().expect("the work does not panic")
        })
    }

    /// The one of the number, if it is still there.
    pub fn open(&self, number: u32) -> Option<File> {
        // The number of a process may be another's now.
        let is_it = |file: &File| file.metadata().is_ok_and(|metadata| metadata.ino() == u64::from(number));
        self.found.get(&number)?.iter().filter_map(|path| File::open(path).ok()).find(is_it)
    }
}

/// Brings this thread into a network namespace.
pub(crate) fn enter(namespace: &File) -> io::Result<()> {
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_number(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.parse::<u32>().is_ok())
}

/// The number of the network namespace that a path leads to.
fn number_of(path: &Path) -> Option<u32> {
    linked_to(path).or_else(|| named(path))
}

/// The number of the network namespace that a link of /proc stands for.
fn linked_to(path: &Path) -> Option<u32> {
    fs::read_link(path).ok()?.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// The number of the namespace, of any kind, that is mounted there. One of another kind cannot be entered as one of the network.
fn named(path: &Path) -> Option<u32> {
    fs::metadata(path).ok()?.ino().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn the_own_namespace_is_one_of_them() {
        let own = linked_to(Path::new("/proc/thread-self/ns/net")).expect("Linux");
        let namespaces = Namespaces::find();
        assert_eq!(namespaces.open(own).expect("is there").metadata().expect("a file").ino(), u64::from(own));
    }

    #[test]
    fn work_is_done_in_all_of_them_with_the_own_one_wherever_it_stands() {
        let visitor = std::thread::spawn(|| {
            // SAFETY: it changes this thread's namespace, and the thread ends.
            unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) }.ok()?;
            let here = || linked_to(Path::new("/proc/thread-self/ns/net")).expect("Linux");
            let mut visited = Vec::new();
            let visit = || {
                visited.push(here());
                Ok(())
            };
            Namespaces::find().in_each(visit).expect("no work fails");
            Some((here(), visited))
        });
        let Some((own, visited)) = visitor.join().expect("ends") else {
            return eprintln!("skipped: no right to make a namespace");
        };
        let of_process = linked_to(Path::new("/proc/self/ns/net")).expect("Linux");
        assert!([own, of_process].iter().all(|number| visited.contains(number)), "{visited:?}");
    }

    /// A thread that is in one when they are looked for may have gone on to the next before it is needed.
    #[test]
    fn one_that_a_thread_has_left_is_found_by_what_else_leads_there() {
        let (to_test, from_thread) = channel();
        let (leave, left) = channel::<()>();
        let visitor = std::thread::spawn(move || {
            // SAFETY: it changes this thread's namespace, and the thread ends.
            let entered = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) };
            let _ = to_test.send(entered.ok().and_then(|()| File::open("/proc/thread-self/ns/net").ok()));
            let _ = left.recv();
        });
        let Some(file) = from_thread.recv().expect("an answer") else {
            return eprintln!("skipped: no right to make a namespace");
        };
        let number = u32::try_from(file.metadata().expect("a file").ino()).expect("of 32 bits");
        let namespaces = Namespaces::find();
        drop(leave);
        visitor.join().expect("ends");
        assert!(namespaces.open(number).is_some());
    }

    /// The way of a library that keeps a namespace by a descriptor alone.
    #[test]
    fn one_that_only_a_descriptor_leads_to_is_found_and_forgotten() {
        let (to_test, from_thread) = channel();
        let maker = std::thread::spawn(move || {
            // SAFETY: it changes this thread's namespace, and the thread ends.
            let left = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) };
            let _ = to_test.send(left.ok().and_then(|()| File::open("/proc/thread-self/ns/net").ok()));
        });
        maker.join().expect("ends");
        let Some(file) = from_thread.recv().expect("an answer") else {
            return eprintln!("skipped: no right to make a namespace");
        };
        let number = u32::try_from(file.metadata().expect("a file").ino()).expect("of 32 bits");
        let mut namespaces = Namespaces::find();
        assert!(namespaces.open(number).is_some());
        drop(file);
        assert!(namespaces.open(number).is_none());
        std::thread::sleep(GOOD_FOR_TIMES * namespaces.took);
        namespaces.refresh();
        assert!(!namespaces.found.contains_key(&number));
    }
}
