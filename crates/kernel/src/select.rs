//! Rules that choose the control of new connections, as `whyloss kernel use` makes them.

use crate::cgroup::Cgroups;
use crate::installed::{known, Installed};
use crate::object::{name_field, said, Loaded, Options, OPTIONAL};
use crate::place::{names, remove, subfolder, Place};
use crate::{check, Error, Result};
use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle};
use serde::Serialize;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The bits of a rule's key after the length: port and address.
const PORT_BITS: u32 = 16;

/// Addresses with a common beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl FromStr for Prefix {
    type Err = Error;

    /// Reads `10.0.0.0/8`, `2001:db8::/32`, or one address.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |why: &str| Error::Input(format!("prefix: found `{text}`; {why}"));
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address
            .parse()
            .map_err(|_| wrong("an address such as 192.0.2.1, or a prefix such as 192.0.2.0/24 or 2001:db8::/32, is allowed"))?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => all,
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|&bits| bits <= all)
                .ok_or_else(|| wrong(&format!("after the slash 0 to {all} is allowed")))?,
        };
        let prefix = Self { address, bits };
        let first = Self { address: prefix.first(), bits };
        if first.address != address {
            return Err(wrong(&format!("bits after the prefix are set: do you mean {first}?")));
        }
        Ok(prefix)
    }
}

impl Prefix {
    /// The network address: host bits are 0.
    fn first(&self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                IpAddr::V4((u32::from(address) & u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0)).into())
            }
            IpAddr::V6(address) => {
                IpAddr::V6((u128::from(address) & u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0)).into())
            }
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// What connections a rule is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Match {
    /// The port of the service, at whichever end it is.
    pub port: Option<u16>,
    /// Addresses of the remote end.
    pub prefix: Option<Prefix>,
}

/// The octets of a `struct wl_match`.
type Key = [u8; 22];

impl Match {
    fn key(&self) -> Key {
        let (address, bits) = match self.prefix {
            None => (Ipv6Addr::UNSPECIFIED, 0),
            Some(Prefix { address: IpAddr::V4(address), bits }) => (address.to_ipv6_mapped(), 96 + u32::from(bits)),
            Some(Prefix { address: IpAddr::V6(address), bits }) => (address, u32::from(bits)),
        };
        let mut key = [0; 22];
        key[..4].copy_from_slice(&(PORT_BITS + bits).to_ne_bytes());
        key[4..6].copy_from_slice(&self.port.unwrap_or(0).to_be_bytes());
        key[6..].copy_from_slice(&address.octets());
        key
    }

    fn from_key(key: &[u8]) -> Option<Self> {
        let key: &Key = key.try_into().ok()?;
        let bits = u32::from_ne_bytes(key[..4].try_into().ok()?).checked_sub(PORT_BITS)?;
        let port = u16::from_be_bytes(key[4..6].try_into().ok()?);
        let address = Ipv6Addr::from(<[u8; 16]>::try_from(&key[6..]).ok()?);
        let prefix = match address.to_ipv4_mapped() {
            _ if bits == 0 => None,
            Some(address) if bits >= 96 => Some(Prefix { address: address.into(), bits: (bits - 96) as u8 }),
            _ => Some(Prefix { address: address.into(), bits: bits as u8 }),
        };
        Some(Self { port: (port != 0).then_some(port), prefix })
    }
}

/// A rule as `whyloss kernel list` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The control's name in the kernel.
    pub control: String,
    /// The port of the service; `None` is any.
    pub port: Option<u16>,
    /// The remote addresses; `None` is any.
    pub prefix: Option<String>,
    /// The path of the control group from the root of the hierarchy.
    pub cgroup: PathBuf,
    /// How many connections it has chosen the control of.
    pub connections: u64,
}

/// `struct wl_rule`: the name, then the count.
const RULE_SIZE: usize = 24;

fn rules_of(folder: &Path) -> Result<MapHandle> {
    said("reading rules", || MapHandle::from_pinned_path(folder.join("rules")))
}

/// Attaches the program that follows rules to the group of the folder `cgroup`. The link is named last: before, nothing acts.
pub(crate) fn attach(root: &Path, cgroup: &Path) -> Result<PathBuf> {
    let cgroups = Cgroups::find()?;
    let folder = subfolder(&root.join("use"), &cgroups.id(cgroup)?.to_string())?;
    if folder.join("link").exists() {
        return Ok(folder);
    }
    let options = Options { maps: Some(root.join("maps")), ..Options::default() };
    let mut loaded = Loaded::new("select", &options)?;
    // Of one who was killed here.
    for name in ["accept", "rules"] {
        remove(&folder.join(name))?;
    }
    for mut map in loaded.object.maps_mut().filter(|map| map.name() == "rules") {
        said("naming rules", || map.pin(folder.join("rules")))?;
    }
    let group = cgroups.open(cgroup)?;
    let doing = format!("attaching to the control group {}", cgroup.display());
    let whole = loaded.is_whole();
    for program in loaded.object.progs_mut().filter(|program| whole && program.name() == OPTIONAL) {
        if let Ok(mut link) = said(&doing, || program.attach_cgroup(group.as_raw_fd())) {
            said(&doing, || link.pin(folder.join("accept")))?;
        }
    }
    for program in loaded.object.progs_mut().filter(|program| program.name() != OPTIONAL) {
        let mut link = said(&doing, || program.attach_cgroup(group.as_raw_fd()))?;
        said(&doing, || link.pin(folder.join("link")))?;
    }
    Ok(folder)
}

/// Takes the program that follows rules from the group of the number `cgroup`.
pub(crate) fn detach(root: &Path, cgroup: &str) -> Result<()> {
    let folder = root.join("use").join(cgroup);
    for name in ["link", "accept"] {
        if let Ok(link) = Link::open(folder.join(name)) {
            // A group that has gone has taken the program along.
            let _ = link.detach();
        }
    }
    for name in ["link", "accept", "rules"] {
        remove(&folder.join(name))?;
    }
    remove(&folder)
}

/// Takes away what belongs to groups that are gone, and what a command that was killed has left.
fn sweep(root: &Path) -> Result<()> {
    for cgroup in names(&root.join("use")) {
        let link = Link::open(root.join("use").join(&cgroup).join("link"));
        let attached = link.and_then(|link| link.info()).is_ok_and(|found| match found.info {
            LinkTypeInfo::Cgroup(found) => found.cgroup_id != 0,
            _ => false,
        });
        if !attached {
            detach(root, &cgroup)?;
        }
    }
    Ok(())
}

/// The name in the kernel of the control that a user calls `name`: one that is loaded, or one that the kernel has itself.
fn resolve(place: &Place, installed: &Installed, name: &str) -> Result<String> {
    let ours = known(place)?.into_iter().find(|control| control.name == name).map(|control| control.kernel_name);
    let loaded = installed.controls();
    let available = check::available();
    for candidate in ours.iter().map(String::as_str).chain([name]) {
        if loaded.iter().chain(&available).any(|known| known == candidate) {
            return Ok(candidate.to_owned());
        }
    }
    let mut known = loaded;
    known.extend(available);
    known.sort();
    known.dedup();
    Err(Error::NoControl { name: name.to_owned(), known: known.join(", ") })
}

/// From now on new connections of the group `cgroup` (all if there is none) that match take `control`.
pub fn add(place: &Place, control: &str, connections: &Match, cgroup: Option<&Path>) -> Result<()> {
    let installed = Installed::own(place)?;
    let control = resolve(place, &installed, control)?;
    let cgroups = Cgroups::find()?;
    let group = cgroup.map_or_else(|| Ok(cgroups.root().to_owned()), |path| cgroups.resolve(path))?;
    sweep(&installed.root)?;
    let folder = attach(&installed.root, &group)?;
    let mut rule = [0; RULE_SIZE];
    rule[..16].copy_from_slice(&name_field(&control));
    said("making a rule", || rules_of_raw(&folder)?.update(&connections.key(), &rule, MapFlags::ANY))
}

fn rules_of_raw(folder: &Path) -> libbpf_rs::Result<MapHandle> {
    MapHandle::from_pinned_path(folder.join("rules"))
}

/// Takes a rule back. Connections that it has chosen the control of keep it.
pub fn take_back(place: &Place, connections: &Match, cgroup: Option<&Path>) -> Result<()> {
    let installed = Installed::own(place)?;
    let cgroups = Cgroups::find()?;
    let group = cgroup.map_or_else(|| Ok(cgroups.root().to_owned()), |path| cgroups.resolve(path))?;
    sweep(&installed.root)?;
    let id = cgroups.id(&group)?.to_string();
    let folder = installed.root.join("use").join(&id);
    let missing = || Error::Input("there is no such rule; `whyloss kernel list` shows those that there are".to_owned());
    if !folder.exists() {
        return Err(missing());
    }
    let rules = rules_of(&folder)?;
    rules.delete(&connections.key()).map_err(|_| missing())?;
    if rules.keys().next().is_none() && group != cgroups.root() {
        detach(&installed.root, &id)?;
    }
    Ok(())
}

/// The rules of all cgroups.
pub fn list(installed: &Installed) -> Result<Vec<Rule>> {
    let Ok(cgroups) = Cgroups::find() else { return Ok(Vec::new()) };
    sweep(&installed.root)?;
    let mut found = Vec::new();
    for id in names(&installed.root.join("use")) {
        let cgroup = id.parse().ok().and_then(|id| cgroups.path_of(id)).unwrap_or_else(|| "(gone)".into());
        let rules = rules_of(&installed.root.join("use").join(&id))?;
        for key in rules.keys() {
            let Ok(Some(value)) = rules.lookup(&key, MapFlags::ANY) else { continue };
            let (Some(connections), true) = (Match::from_key(&key), value.len() == RULE_SIZE) else { continue };
            found.push(Rule {
                control: String::from_utf8_lossy(&value[..16]).trim_end_matches('\0').to_owned(),
                port: connections.port,
                prefix: connections.prefix.map(|prefix| prefix.to_string()),
                cgroup: cgroup.clone(),
                connections: u64::from_ne_bytes(value[16..].try_into().unwrap_or_default()),
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_strictly() {
        let read = |text: &str| text.parse::<Prefix>().map(|prefix| prefix.to_string()).map_err(|error| error.to_string());
        assert_eq!(read("192.0.2.1").as_deref(), Ok("192.0.2.1/32"));
        assert_eq!(read("10.0.0.0/8").as_deref(), Ok("10.0.0.0/8"));
        assert_eq!(read("0.0.0.0/0").as_deref(), Ok("0.0.0.0/0"));
        assert_eq!(read("2001:db8::/32").as_deref(), Ok("2001:db8::/32"));
        assert!(read("10.0.0.1/8").is_err_and(|error| error.contains("do you mean 10.0.0.0/8?")));
        assert!(read("10.0.0.0/33").is_err_and(|error| error.contains("0 to 32")));
        assert!(read("localhost").is_err_and(|error| error.contains("found `localhost`")));
    }

    #[test]
    fn matches_survive_the_way_through_the_map() {
        for (port, prefix) in [
            (None, None),
            (Some(443), None),
            (None, Some("10.0.0.0/8")),
            (Some(1), Some("0.0.0.0/0")),
            (None, Some("2001:db8::/32")),
        ] {
            let prefix = prefix.map(|text| text.parse().expect("a prefix"));
            let connections = Match { port, prefix };
            assert_eq!(Match::from_key(&connections.key()), Some(connections));
        }
    }

    #[test]
    fn an_ipv4_prefix_lies_in_the_mapped_range() {
        let key = Match { port: Some(0x1234), prefix: "10.1.0.0/16".parse().ok() }.key();
        assert_eq!(u32::from_ne_bytes(key[..4].try_into().expect("four octets")), 16 + 96 + 16);
        assert_eq!(key[4..], [0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0, 0]);
    }
}
