//! The mount namespace in which what is loaded has its names: that of the machine's first process, or of the first ancestor that can be seen.
//!
//! A command can run in one of its own, as under `ip netns exec`, `unshare --mount` or in a service with private mounts. A BPF file system that
//! is mounted there goes with the command, and with it all that was loaded; nor need control groups be mounted there.

use crate::{check, Error, Result};
use rustix::thread::{move_into_link_name_space, unshare_unsafe, LinkNameSpaceType, UnshareFlags};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;

/// Does `job` in that mount namespace, whose mounts last: on a thread of its own if this one is in another. The network namespace stays.
pub(crate) fn in_lasting<T: Send>(job: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    match lasting() {
        Ok(None) => job(),
        Ok(Some(namespace)) => std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&namespace).map_err(|error| away(&error))?;
                job()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }),
        // Who may do nothing at all is told so.
        Err(error) => check::permitted().and(Err(away(&error))),
    }
}

/// The namespace to go to; `None` if this thread is in it.
fn lasting() -> io::Result<Option<File>> {
    let own = fs::read_link("/proc/thread-self/ns/mnt")?;
    let mut namespaces = ancestors().into_iter().rev().map(|process| format!("/proc/{process}/ns/mnt"));
    // In a container the first process may belong to somebody else, and not be seen.
    let first = namespaces.find_map(|path| Some((fs::read_link(&path).ok()?, path)));
    first.filter(|(namespace, _)| *namespace != own).map(|(_, path)| File::open(path)).transpose()
}

/// This process, its parent, and so on, as far as they can be seen.
fn ancestors() -> Vec<u32> {
    let mut found = vec![std::process::id()];
    let parent = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse::<u32>().ok()
    };
    while let Some(next) = found.last().and_then(parent).filter(|process| *process > 0) {
        found.push(next);
    }
    found
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: this thread is about to end; that it shares root and working directory with no other any more breaks no code of ours.
    unsafe { unshare_unsafe(UnshareFlags::FS) }?;
    Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount))?)
}

fn away(error: &io::Error) -> Error {
    Error::NotHere(format!(
        "this command runs in a mount namespace of its own (a container, `unshare --mount`?) and cannot enter the \
         machine's ({error}): what it loads would be gone with it; run it outside"
    ))
}
