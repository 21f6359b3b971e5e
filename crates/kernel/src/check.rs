//! What this kernel and this user can do.

use crate::{Error, Result};
use std::fs;
use std::path::Path;

pub(crate) const NO_CGROUPS: &str =
    "no control groups of version 2 are mounted: programs that look at connections have no place to be attached";

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` of capability.h: with them the kernel takes every program of ours.
const CAPABILITIES: [(u32, &str); 2] = [(21, "CAP_SYS_ADMIN"), (12, "CAP_NET_ADMIN")];

/// The controls that the kernel has.
pub fn available() -> Vec<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// The capabilities that are needed and that this process does not have.
fn missing_capabilities() -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    CAPABILITIES.iter().filter(|(bit, _)| mask & (1 << bit) == 0).map(|&(_, name)| name).collect()
}

/// Whether this process may do what the commands do.
pub fn permitted() -> Result<()> {
    match missing_capabilities().as_slice() {
        [] => Ok(()),
        missing => Err(Error::NotHere(format!("this needs root: {} missing", missing.join(" and ")))),
    }
}

/// Whether programs of ours can be loaded.
pub fn loadable() -> Result<()> {
    permitted()?;
    if !Path::new(BTF).exists() {
        let reason = format!("this kernel does not describe itself: {BTF} is missing (CONFIG_DEBUG_INFO_BTF)");
        return Err(Error::NotHere(reason));
    }
    Ok(())
}
