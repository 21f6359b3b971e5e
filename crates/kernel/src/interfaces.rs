//! The interfaces at which outgoing acknowledgements get room for a report (`wl_make_room`).
//!
//! A program at an interface is the only one that may change a packet, and it belongs to one interface of one network namespace. Where there is
//! none, reports wait until SACK blocks leave room.

use crate::installed::Installed;
use crate::object::{said, Loaded};
use crate::place::{remove, subfolder, Place};
use crate::{Error, Result};
use rustix::net::{netdevice, AddressFamily, SocketType};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The program's name, under which it is kept.
const PROGRAM: &str = "wl_make_room";
/// Where the program is kept, and where its links are.
pub(crate) const FOLDERS: [&str; 2] = ["programs", "interfaces"];

/// Keeps the program of an object that has it, and attaches it to the interfaces of this thread's network namespace.
pub(crate) fn keep(root: &Path, loaded: &mut Loaded) -> Result<()> {
    let Some(mut program) = loaded.object.progs_mut().find(|program| program.name() == PROGRAM) else { return Ok(()) };
    for folder in FOLDERS {
        subfolder(root, folder)?;
    }
    said("keeping the program for interfaces", || program.pin(root.join(FOLDERS[0]).join(PROGRAM)))?;
    // Reports are worth loading without it, too.
    let _ = attach_all(root, program.as_fd());
    Ok(())
}

/// Attaches the program to the interfaces of this thread's network namespace that do not have it; the loopback interface, which damages
/// nothing, is left out. Gives the names of those that have got it; none where no control that takes reports is loaded, or where the
/// kernel knows no such programs.
pub fn attach(place: &Place) -> Result<Vec<String>> {
    let root = Installed::own(place)?.root;
    let path = root.join(FOLDERS[0]).join(PROGRAM);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let path = c_path(&path)?;
    // SAFETY: the function reads a string with a zero at its end.
    let program =
        owned(unsafe { libbpf_sys::bpf_obj_get(path.as_ptr()) }).map_err(|error| failed("opening the program", error))?;
    attach_all(&root, program.as_fd())
}

/// Those interfaces of this thread's network namespace that have the program; `None` where no control that takes reports is loaded.
pub(crate) fn attached(root: &Path) -> Result<Option<Vec<String>>> {
    if !root.join(FOLDERS[0]).join(PROGRAM).exists() {
        return Ok(None);
    }
    let namespace = network_namespace()?;
    let folder = root.join(FOLDERS[1]);
    let has = |index: u32| folder.join(format!("{namespace}-{index}")).exists();
    Ok(Some(interfaces()?.into_iter().filter(|(_, index)| has(*index)).map(|(name, _)| name).collect()))
}

/// The number of this thread's network namespace.
fn network_namespace() -> Result<String> {
    let link = fs::read_link("/proc/thread-self/ns/net").map_err(|error| failed("naming the network namespace", error))?;
    Ok(link.to_string_lossy().chars().filter(char::is_ascii_digit).collect())
}

fn attach_all(root: &Path, program: BorrowedFd<'_>) -> Result<Vec<String>> {
    let mut attached = Vec::new();
    let namespace = network_namespace()?;
    for (name, index) in interfaces()? {
        let kind = libbpf_sys::BPF_TCX_EGRESS;
        // SAFETY: the function takes numbers, and no options.
        let link = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), index as i32, kind, std::ptr::null()) };
        let link = match owned(link) {
            Ok(link) => link,
            // It has it already, or is gone by now.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists || error.raw_os_error() == Some(NO_DEVICE) => continue,
            // Acknowledgements without room are what there is before Linux 6.6, and where its configuration has no such programs.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => break,
            Err(error) => return Err(failed(&format!("attaching {PROGRAM} to {name}"), error)),
        };
        let path = root.join(FOLDERS[1]).join(format!("{namespace}-{index}"));
        // That of an interface which is gone and whose number was given again.
        remove(&path)?;
        let path = c_path(&path)?;
        // SAFETY: the function takes a number and reads a string with a zero at its end.
        let pinned = unsafe { libbpf_sys::bpf_obj_pin(link.as_raw_fd(), path.as_ptr()) };
        if pinned < 0 {
            return Err(failed("naming the link of an interface", io::Error::from_raw_os_error(-pinned)));
        }
        attached.push(name);
    }
    Ok(attached)
}

/// `ENODEV`.
const NO_DEVICE: i32 = 19;

/// Names and numbers of the interfaces of this thread's network namespace, but for the loopback's.
fn interfaces() -> Result<Vec<(String, u32)>> {
    let text = fs::read_to_string("/proc/thread-self/net/dev").map_err(|error| failed("listing interfaces", error))?;
    let names = text.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim().to_owned());
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::DGRAM, None);
    let socket = socket.map_err(|error| failed("listing interfaces", error.into()))?;
    let index = |name: &String| netdevice::name_to_index(&socket, name).ok();
    Ok(names
        .filter(|name| name != "lo")
        .filter_map(|name| Some((index(&name)?, name)))
        .map(|(index, name)| (name, index))
        .collect())
}

/// What libbpf gives: a descriptor, or the negative of an error's number.
fn owned(descriptor: i32) -> io::Result<OwnedFd> {
    if descriptor < 0 {
        return Err(io::Error::from_raw_os_error(-descriptor));
    }
    // SAFETY: it is new, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn c_path(path: &Path) -> Result<std::ffi::CString> {
    std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|error| failed("naming a link", error.into()))
}

fn failed(doing: &str, source: io::Error) -> Error {
    Error::Io { doing: doing.to_owned(), source }
}
