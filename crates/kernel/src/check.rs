//! What this kernel and this user can do.

use crate::cgroup::{mount_of_type, Cgroups};
use crate::object::{said, Loaded, Options, OBJECTS, OPTIONAL};
use crate::{Error, Result};
use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Struct, Typedef};
use libbpf_rs::btf::{Btf, ReferencesType as _};
use serde::Serialize;
use std::fs;
use std::path::Path;

const BTF: &str = "/sys/kernel/btf/vmlinux";

/// `CAP_SYS_ADMIN` and `CAP_NET_ADMIN` of capability.h: with them the kernel takes every program of ours.
const CAPABILITIES: [(u32, &str); 2] = [(21, "CAP_SYS_ADMIN"), (12, "CAP_NET_ADMIN")];

/// The controls that the kernel has.
pub fn available() -> Vec<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// The control that connections get by themselves.
pub fn usual() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(name.trim().to_owned())
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

/// The oldest kernel that tells `cong_control` of the acknowledgement and its flags (Linux 6.10).
const OLDEST: (u32, u32) = (6, 10);

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Item {
    /// What was looked at, in words for the user.
    pub name: &'static str,
    /// Whether it is there; `None` where this cannot be told.
    pub holds: Option<bool>,
    /// Whether nothing works without it.
    pub needed_by_all: bool,
    /// What it is for.
    pub purpose: &'static str,
    /// What was found, and what helps if it is missing.
    pub found: String,
}

/// Looks at everything that the kernel part needs.
pub fn items() -> Vec<Item> {
    let mut items = vec![version(), rights(), btf_item(), jit(), lockdown(), file_system(), cgroups()];
    let btf = said("reading BTF", Btf::from_vmlinux).ok();
    items.extend(features(btf.as_ref()));
    items.extend(names());
    if loadable().is_ok() {
        items.extend(OBJECTS.iter().map(|object| verified(object.name)));
    }
    items
}

fn version() -> Item {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|number| number.trim().parse::<u32>().ok());
    let holds = numbers.next().zip(numbers.next()).map(|found| found >= OLDEST);
    let found = format!("{}; {}.{} or newer is needed", release.trim(), OLDEST.0, OLDEST.1);
    Item { name: "kernel version", holds, needed_by_all: true, purpose: "controls that are kept by links", found }
}

fn rights() -> Item {
    let missing = missing_capabilities();
    let found =
        if missing.is_empty() { "root's".to_owned() } else { format!("{} missing: run it as root", missing.join(" and ")) };
    let holds = Some(missing.is_empty());
    Item { name: "rights", holds, needed_by_all: true, purpose: "loading and listing", found }
}

fn btf_item() -> Item {
    let holds = Path::new(BTF).exists();
    let found = if holds { BTF.to_owned() } else { format!("{BTF} is missing: a kernel with CONFIG_DEBUG_INFO_BTF is needed") };
    Item { name: "BTF", holds: Some(holds), needed_by_all: true, purpose: "fitting the programs to this kernel", found }
}

fn jit() -> Item {
    let value = fs::read_to_string("/proc/sys/net/core/bpf_jit_enable").ok();
    let holds = value.as_deref().map(|value| value.trim() != "0");
    let found = match holds {
        Some(true) => "on".to_owned(),
        Some(false) => "off: `sysctl net.core.bpf_jit_enable=1` turns it on".to_owned(),
        None => "net.core.bpf_jit_enable cannot be read".to_owned(),
    };
    Item { name: "BPF compiler", holds, needed_by_all: true, purpose: "controls in BPF", found }
}

fn lockdown() -> Item {
    let value = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let holds = !value.contains("[confidentiality]");
    let found = if holds { "programs may read the kernel" } else { "confidentiality: programs may not read the kernel" };
    Item { name: "lockdown", holds: Some(holds), needed_by_all: true, purpose: "controls in BPF", found: found.to_owned() }
}

fn file_system() -> Item {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let holds = known.lines().any(|line| line.split_whitespace().last() == Some("bpf"));
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
    let found = match (holds, mount_of_type(&mounts, "bpf")) {
        (false, _) => "this kernel has none (CONFIG_BPF_SYSCALL)".to_owned(),
        (true, None) => "known; `load` mounts one of its own".to_owned(),
        (true, Some(path)) => format!("mounted on {}; `load` mounts one of its own", path.display()),
    };
    Item { name: "BPF file system", holds: Some(holds), needed_by_all: true, purpose: "what stays when the command ends", found }
}

fn cgroups() -> Item {
    let (holds, found) = match Cgroups::find() {
        Ok(cgroups) => (true, format!("mounted on {}", cgroups.root().display())),
        Err(error) => (false, error.to_string()),
    };
    Item { name: "control groups v2", holds: Some(holds), needed_by_all: false, purpose: "`use`, wl_checksum", found }
}

/// What the kernel's description of itself tells of.
fn features(btf: Option<&Btf<'_>>) -> Vec<Item> {
    let item = |name, needed_by_all, purpose, what: &str, present: &dyn Fn(&Btf<'_>) -> bool| {
        let holds = btf.map(present);
        let found = match holds {
            Some(true) => what.to_owned(),
            Some(false) => format!("this kernel lacks {what}"),
            None => "cannot be told without BTF".to_owned(),
        };
        Item { name, holds, needed_by_all, purpose, found }
    };
    let function = |btf: &Btf<'_>, name: &str| btf.type_by_name::<Func<'_>>(name).is_some();
    vec![
        item("struct_ops", true, "controls in BPF", "bpf_struct_ops_tcp_congestion_ops", &|btf| {
            btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_some()
        }),
        item("cong_control", true, "controls in BPF", "cong_control with four arguments (Linux 6.10)", &|btf| {
            arguments_of_cong_control(btf) == Some(4)
        }),
        item("kernel functions", true, "controls in BPF", "tcp_slow_start and the like (CONFIG_DEBUG_INFO_BTF)", &|btf| {
            ["tcp_slow_start", "tcp_cong_avoid_ai", "tcp_reno_undo_cwnd"].iter().all(|name| function(btf, name))
        }),
        item("options of headers", false, "wl_checksum", "bpf_sock_ops_reserve_hdr_opt", &|btf| {
            function(btf, "bpf_sock_ops_reserve_hdr_opt")
        }),
        item("bad checksums", false, "wl_checksum", "the tracepoint tcp_bad_csum", &|btf| {
            btf.type_by_name::<Typedef<'_>>("btf_trace_tcp_bad_csum").is_some()
        }),
        item("socket iterators", false, "`stat`, `whyloss top`", "bpf_iter_tcp and bpf_iter_task_file", &|btf| {
            ["bpf_iter_tcp", "bpf_iter_task_file"].iter().all(|name| function(btf, name))
        }),
    ]
}

/// Linux 6.10 has told `cong_control` of the acknowledgement and its flags; before it had two arguments.
fn arguments_of_cong_control(btf: &Btf<'_>) -> Option<usize> {
    let operations = btf.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    let member = operations.iter().find(|member| member.name.is_some_and(|name| name == "cong_control"))?;
    let pointer = btf.type_by_id::<Ptr<'_>>(member.ty)?;
    Some(FuncProto::try_from(pointer.referenced_type()).ok()?.len())
}

/// Controls of our name that nothing at the place keeps.
fn names() -> Option<Item> {
    let place = crate::place::Place::default();
    let ours = crate::place::names(&place.mounted_on().join("controls"));
    let strange: Vec<_> =
        available().into_iter().filter(|name| name.starts_with(&place.prefix) && !ours.contains(name)).collect();
    (permitted().is_ok() && !strange.is_empty()).then(|| Item {
        name: "names",
        holds: Some(false),
        needed_by_all: true,
        purpose: "controls in BPF",
        found: format!("{} are there and were not loaded here: in a container, or by another tool?", strange.join(", ")),
    })
}

/// Whether the verifier takes an object.
fn verified(name: &'static str) -> Item {
    let loaded = Loaded::new(name, &Options::default());
    let found = match &loaded {
        Ok(loaded) if loaded.is_whole() => "the verifier takes every program".to_owned(),
        Ok(_) => format!("all but {OPTIONAL} (CONFIG_BPF_LSM): accepted connections begin with the usual timer"),
        Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
    };
    Item { name, holds: Some(loaded.is_ok()), needed_by_all: name == "controls", purpose: "programs", found }
}
