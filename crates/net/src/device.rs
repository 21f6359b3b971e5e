//! The kernel's side of a TUN device: whether it exists, and how one that we make gets its addresses.

use crate::error::SetupError;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::io;
use std::net::IpAddr;
use std::process::Command;

/// Packets that wait for us in a device that we make: a window of the default profile, so that a fast sender in the kernel does not
/// overrun a queue that is no link's.
const QUEUE: u16 = 4000;

/// A network device as the calling thread's network namespace shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether it is up.
    pub up: bool,
}

/// The device `name`, if it exists.
pub fn state(name: &str) -> io::Result<Option<State>> {
    let found = getifaddrs()?.find(|entry| entry.interface_name == name);
    Ok(found.map(|entry| State { up: entry.flags.contains(InterfaceFlags::IFF_UP) }))
}

/// Gives a new device its MTU, the `kernel`'s addresses and routes to the addresses of the host behind it, and brings it up.
pub fn configure(name: &str, mtu: u16, hosts: &[IpAddr], kernel: &[IpAddr]) -> Result<(), SetupError> {
    ip(&["link", "set", "dev", name, "mtu", &mtu.to_string(), "txqueuelen", &QUEUE.to_string(), "up"])?;
    for own in kernel {
        let mut peers = hosts.iter().filter(|host| host.is_ipv4() == own.is_ipv4());
        let Some(first) = peers.next() else { continue };
        let mut address = vec!["address".to_owned(), "add".to_owned(), own.to_string(), "peer".to_owned(), first.to_string()];
        address.extend(["dev".to_owned(), name.to_owned()]);
        if own.is_ipv6() {
            address.push("nodad".to_owned());
        }
        ip(&address.iter().map(String::as_str).collect::<Vec<_>>())?;
        for other in peers {
            ip(&["route", "add", &other.to_string(), "dev", name])?;
        }
    }
    Ok(())
}

fn ip(arguments: &[&str]) -> Result<(), SetupError> {
    let command = arguments.join(" ");
    let output = Command::new("ip").args(arguments).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SetupError::Unavailable(
            "`ip` is not installed (Debian package iproute2); without it, make and configure the device yourself".to_owned(),
        ),
        _ => SetupError::Io(error),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(SetupError::Unavailable(format!("`ip {command}`: {}", said.trim())))
}
