//! The interfaces at which damaged segments are answered (`wl_answer`) and outgoing acknowledgements get room for reports (`wl_make_room`).
//!
//! A program at an interface is the only one that may change a packet, and it belongs to one interface of one network namespace. Where there are
//! none, reports wait until there is something to acknowledge and SACK blocks leave room.

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

/// A program for interfaces.
struct Program {
    /// Its name, under which it is kept.
    name: &'static str,
    /// Where at an interface it belongs.
    hook: libbpf_sys::bpf_attach_type,
    /// What stands behind the name of its link.
    suffix: &'static str,
}

const PROGRAMS: [Program; 2] = [
    Program { name: "wl_make_room", hook: libbpf_sys::BPF_TCX_EGRESS, suffix: "" },
    Program { name: "wl_answer", hook: libbpf_sys::BPF_TCX_INGRESS, suffix: "-in" },
];

/// Where the programs are kept, and where its links are.
pub(crate) const FOLDERS: [&str; 2] = ["programs", "interfaces"];

/// Keeps the programs of an object that has them, and attaches them to the interfaces of this thread's network namespace.
pub(crate) fn keep(root: &Path, loaded: &mut Loaded) -> Result<()> {
    for wanted in &PROGRAMS {
        let Some(mut program) = loaded.object.progs_mut().find(|program| program.name() == wanted.name) else { continue };
        for folder in FOLDERS {
            subfolder(root, folder)?;
        }
        said("keeping a program for interfaces", || program.pin(root.join(FOLDERS[0]).join(wanted.name)))?;
        // Reports are worth loading without it, too.
        let _ = attach_all(root, wanted, program.as_fd());
    }
    Ok(())
}

/// Attaches the programs to the interfaces of this thread's network namespace that do not have them; the loopback interface, which damages
/// nothing, is left out. Gives the names of those that have got one; none where no control that takes reports is loaded, or where the
/// kernel knows no such programs.
pub fn attach(place: &Place) -> Result<Vec<String>> {
    let root = Installed::own(place)?.root;
    let mut attached = Vec::new();
    for wanted in &PROGRAMS {
        let path = root.join(FOLDERS[0]).join(wanted.name);
        if !path.exists() {
            continue;
        }
        let path = c_path(&path)?;
        // SAFETY: the function reads a string with a zero at its end.
        let program =
            owned(unsafe { libbpf_sys::bpf_obj_get(path.as_ptr()) }).map_err(|error| failed("opening a program", error))?;
        for name in attach_all(&root, wanted, program.as_fd())? {
            if !attached.contains(&name) {
                attached.push(name);
            }
        }
    }
    Ok(attached)
}

/// Those interfaces of this thread's network namespace that have the programs; `None` where no control that takes reports is loaded.
pub(crate) fn attached(root: &Path) -> Result<Option<Vec<String>>> {
    if PROGRAMS.iter().any(|program| !root.join(FOLDERS[0]).join(program.name).exists()) {
        return Ok(None);
    }
    let namespace = network_namespace()?;
    let folder = root.join(FOLDERS[1]);
    let has = |index: u32| PROGRAMS.iter().all(|program| folder.join(program.link(&namespace, index)).exists());
    Ok(Some(interfaces()?.into_iter().filter(|(_, index)| has(*index)).map(|(name, _)| name).collect()))
}

/// The number of this thread's network namespace.
fn network_namespace() -> Result<String> {
    let link = fs::read_link("/proc/thread-self/ns/net").map_err(|error| failed("naming the network namespace", error))?;
    Ok(link.to_string_lossy().chars().filter(char::is_ascii_digit).collect())
}

impl Program {
    /// The name of its link to an interface.
    fn link(&self, namespace: &str, index: u32) -> String {
        format!("{namespace}-{index}{}", self.suffix)
    }
}

fn attach_all(root: &Path, wanted: &Program, program: BorrowedFd<'_>) -> Result<Vec<String>> {
    let mut attached = Vec::new();
    let namespace = network_namespace()?;
    for (name, index) in interfaces()? {
        // SAFETY: the function takes numbers, and no options.
        let link = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), index as i32, wanted.hook, std::ptr::null()) };
        let link = match owned(link) {
            Ok(link) => link,
            // It has it already, or is gone by now.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists || error.raw_os_error() == Some(NO_DEVICE) => continue,
            // Late reports are what there is before Linux 6.6, and where its configuration has no such programs.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => break,
            Err(error) => return Err(failed(&format!("attaching {} to {name}", wanted.name), error)),
        };
        let path = root.join(FOLDERS[1]).join(wanted.link(&namespace, index));
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
