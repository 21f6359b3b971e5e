//! Control groups of version 2: where programs that look at connections are attached.

use crate::{Error, Result};
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What stands in the way where there are none.
pub(crate) const NO_CGROUPS: &str =
    "no control groups of version 2 are mounted: programs that look at connections have no place to be attached";

/// The hierarchy of version 2 that is mounted here.
#[derive(Debug, Clone)]
pub struct Cgroups {
    root: PathBuf,
}

impl Cgroups {
    /// Finds where it is mounted: `/sys/fs/cgroup` on most machines, a folder beside those of version 1 on others.
    pub fn find() -> Result<Self> {
        let mounts = fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
        let root = mount_of_type(&mounts, "cgroup2").ok_or_else(|| Error::NotHere(NO_CGROUPS.to_owned()))?;
        Ok(Self { root })
    }

    /// The group that holds all others.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the group that a user means by `path`: a folder, or a path from the root of the hierarchy, as `/proc/PID/cgroup`
    /// has it.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf> {
        let from_root = self.root.join(path.strip_prefix("/").unwrap_or(path));
        for candidate in [path.to_owned(), from_root] {
            let Ok(candidate) = candidate.canonicalize() else { continue };
            if candidate.starts_with(&self.root) && candidate.is_dir() {
                return Ok(candidate);
            }
        }
        let (path, root) = (path.display(), self.root.display());
        Err(Error::Input(format!("cgroup: there is no control group `{path}` of version 2; a folder below {root} is allowed")))
    }

    /// Opens a group's folder, as attaching to it wants.
    pub fn open(&self, group: &Path) -> Result<File> {
        File::open(group).map_err(|source| Error::Io { doing: format!("opening {}", group.display()), source })
    }

    /// The number by which the kernel knows the group of a folder.
    pub fn id(&self, group: &Path) -> Result<u64> {
        let found =
            fs::metadata(group).map_err(|source| Error::Io { doing: format!("looking at {}", group.display()), source })?;
        Ok(found.ino())
    }

    /// The path of the group `id` from the root of the hierarchy; `None` if it has gone.
    pub fn path_of(&self, id: u64) -> Option<PathBuf> {
        let mut waiting = vec![self.root.clone()];
        while let Some(folder) = waiting.pop() {
            if fs::metadata(&folder).is_ok_and(|found| found.ino() == id) {
                return Some(Path::new("/").join(folder.strip_prefix(&self.root).unwrap_or(&folder)));
            }
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            waiting.extend(entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()));
        }
        None
    }
}

/// The paths of groups that are asked for again and again: to find one is to walk the hierarchy, and one that has gone is told as it was.
#[derive(Debug)]
pub(crate) struct Paths {
    cgroups: Option<Cgroups>,
    /// By the group's number, and whether it was asked for since others were forgotten.
    known: HashMap<u64, (String, bool)>,
}

impl Paths {
    /// In the hierarchy that is mounted here.
    pub fn find() -> Self {
        Self { cgroups: Cgroups::find().ok(), known: HashMap::new() }
    }

    /// That of the group `id`; empty if it had gone before it was first asked for.
    pub fn of(&mut self, id: u64) -> &str {
        let cgroups = self.cgroups.as_ref();
        let find = || cgroups.and_then(|cgroups| cgroups.path_of(id)).map(|path| path.to_string_lossy().into_owned());
        let (path, asked) = self.known.entry(id).or_insert_with(|| (find().unwrap_or_default(), true));
        *asked = true;
        path
    }

    /// Forgets those that nobody has asked for since this was last called.
    pub fn forget_others(&mut self) {
        self.known.retain(|_, (_, asked)| std::mem::take(asked));
    }
}

/// Where a file system of type `wanted` is mounted, by `/proc/thread-self/mountinfo`.
pub(crate) fn mount_of_type(mountinfo: &str, wanted: &str) -> Option<PathBuf> {
    mounts_of_type(mountinfo, wanted).next()
}

/// All places where file systems of type `wanted` are mounted, by `/proc/thread-self/mountinfo`.
pub(crate) fn mounts_of_type<'text>(mountinfo: &'text str, wanted: &'text str) -> impl Iterator<Item = PathBuf> + 'text {
    // "42 27 0:39 / /mount/point rw,relatime shared:1 - type source options", where the fields before the dash vary in number.
    mountinfo.lines().filter_map(move |line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let point = mount.split(' ').nth(4)?;
        (file_system.split(' ').next()? == wanted).then(|| unescape(point).into())
    })
}

/// A path as `/proc/thread-self/mountinfo` writes it, with blanks and the like in octal.
fn unescape(path: &str) -> String {
    let mut parts = path.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(octet) = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            plain.push(octet as char);
            plain.push_str(&part[3..]);
        } else {
            plain.push('\\');
            plain.push_str(part);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_type() {
        let text = "40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n\
                    41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_of_type(text, "cgroup2"), Some("/sys/fs/cgroup/uni fied".into()));
        assert_eq!(mount_of_type(text, "bpf"), None);
        assert_eq!(unescape("a\\x\\134b"), "a\\x\\b");
    }

    #[test]
    fn paths_are_kept_while_they_are_asked_for() {
        let root = std::env::temp_dir().join(format!("whyloss-paths-{}", std::process::id()));
        let cgroups = Cgroups { root: root.clone() };
        let ids = ["one", "two"].map(|name| {
            fs::create_dir_all(root.join(name)).expect("a folder");
            cgroups.id(&root.join(name)).expect("is there")
        });
        let mut paths = Paths { cgroups: Some(cgroups), known: HashMap::new() };
        assert_eq!(ids.map(|id| paths.of(id).to_owned()), ["/one", "/two"]);
        fs::remove_dir_all(&root).expect("is taken away");
        for _ in 0..2 {
            paths.forget_others();
            assert_eq!(paths.of(ids[0]), "/one", "has gone since");
        }
        assert_eq!(paths.known.keys().collect::<Vec<_>>(), [&ids[0]]);
        assert_eq!(paths.of(ids[1]), "");
    }
}
