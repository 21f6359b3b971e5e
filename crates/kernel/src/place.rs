//! Where the loaded programs are kept while no process of ours runs.
//!
//! A BPF object lives as long as something refers to it: a descriptor, or a name in a BPF file system. All names are made in a BPF file
//! system of our own that is not mounted yet and that only our descriptor holds. Mounting it is one call, and only then the programs
//! outlive the process: a loader that is killed before leaves nothing, one that is killed after leaves everything.
//!
//! What is to go with its process is not mounted. A symbolic link leads to the process's descriptor instead, so that others find it; it leads
//! nowhere when the process has ended.

use crate::{Error, Result};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The folder that [`Place::default`] names.
const FOLDER: &str = "/run/whyloss";

/// Names another folder than [`FOLDER`], and so a second set of programs.
const FOLDER_VARIABLE: &str = "WHYLOSS_KERNEL_FOLDER";

/// Names another prefix of controls than [`crate::PREFIX`].
const PREFIX_VARIABLE: &str = "WHYLOSS_KERNEL_PREFIX";

/// A folder for one set of programs, and what their names in the kernel begin with.
#[derive(Debug, Clone)]
pub struct Place {
    /// Made when it is needed, gone when nothing is loaded.
    pub folder: PathBuf,
    /// See [`crate::object::Options::prefix`].
    pub prefix: String,
}

impl Default for Place {
    /// `/run/whyloss` and `wl_`, or what `WHYLOSS_KERNEL_FOLDER` and `WHYLOSS_KERNEL_PREFIX` say: two sets of programs beside each other,
    /// as tests want them.
    fn default() -> Self {
        let folder = std::env::var_os(FOLDER_VARIABLE).map_or_else(|| FOLDER.into(), PathBuf::from);
        let prefix = std::env::var(PREFIX_VARIABLE).unwrap_or_else(|_| crate::object::PREFIX.to_owned());
        Self { folder, prefix }
    }
}

impl Place {
    /// The folder that the BPF file system is mounted on, or a link to one that goes with its process.
    pub fn mounted_on(&self) -> PathBuf {
        self.folder.join("bpf")
    }

    /// Whether a BPF file system is mounted there, or lent by a process that runs.
    pub fn is_mounted(&self) -> bool {
        // Where a link leads after its process has ended and another has the number, it is not for us.
        let is_bpf = rustix::fs::statfs(self.mounted_on()).is_ok_and(|found| found.f_type == BPF_FS_MAGIC);
        let above = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        let (outside, inside) = (above(&self.folder), above(&self.mounted_on()));
        is_bpf && inside.is_some() && inside != outside
    }

    /// Whether it is lent: a link, wherever it leads.
    fn is_lent(&self) -> bool {
        fs::symlink_metadata(self.mounted_on()).is_ok_and(|found| found.is_symlink())
    }

    /// Waits until no other command changes the place, and keeps others out until the lock goes.
    pub fn lock(&self) -> Result<Lock> {
        loop {
            match fs::create_dir_all(&self.folder) {
                // It was there, and may be gone by now.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed("making", &self.folder, &error)),
                _ => (),
            }
            let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
            let folder = match rustix::fs::open(&self.folder, flags, Mode::empty()) {
                Ok(folder) => folder,
                Err(rustix::io::Errno::NOENT) => continue,
                Err(error) => return Err(failed("opening", &self.folder, &error.into())),
            };
            rustix::fs::flock(&folder, FlockOperation::LockExclusive)
                .map_err(|error| failed("locking", &self.folder, &error.into()))?;
            // Whoever had the lock may have taken the folder away with the last program.
            let ours = rustix::fs::fstat(&folder).map(|found| found.st_ino).ok();
            if ours.is_some() && fs::metadata(&self.folder).map(|found| found.ino()).ok() == ours {
                return Ok(Lock { place: self.clone(), _folder: folder });
            }
        }
    }
}

/// The type of BPF file systems (`BPF_FS_MAGIC` of linux/magic.h).
const BPF_FS_MAGIC: rustix::fs::FsWord = 0xcafe_4a11;

/// The right to change a [`Place`]. It ends with the process, however that ends.
#[derive(Debug)]
pub struct Lock {
    place: Place,
    _folder: OwnedFd,
}

impl Lock {
    /// The place that is locked.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Takes the empty folders away, and with them what other mount namespaces have mounted there.
    pub fn tidy(&self) {
        if !self.place.is_mounted() {
            self.clear();
            let _ = fs::remove_dir(&self.place.folder);
        }
    }

    /// Takes away what leads nowhere: an empty folder, or a link to what has gone with its process. Whatever else stands in the way is not
    /// ours.
    fn clear(&self) {
        let on = self.place.mounted_on();
        let _ = if self.place.is_lent() { fs::remove_file(on) } else { fs::remove_dir(on) };
    }

    /// Unmounts the BPF file system: what only its names keep alive is gone. Gives the file system, for what a copy of the mount in
    /// another mount namespace may still show.
    pub fn unmount(&self) -> Result<Unmounted> {
        let on = self.place.mounted_on();
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        let root = rustix::fs::open(&on, flags, Mode::empty()).map_err(|error| failed("opening", &on, &error.into()))?;
        if self.place.is_lent() {
            fs::remove_file(&on).map_err(|error| failed("removing", &on, &error))?;
        } else {
            rustix::mount::unmount(&on, UnmountFlags::DETACH).map_err(|error| failed("unmounting", &on, &error.into()))?;
        }
        Ok(Unmounted { root })
    }
}

/// A BPF file system that is mounted here no more.
#[derive(Debug)]
pub struct Unmounted {
    root: OwnedFd,
}

impl Unmounted {
    /// Its root, as long as this value lives.
    pub fn root(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.root.as_raw_fd()).into()
    }
}

/// A BPF file system that nobody sees yet.
#[derive(Debug)]
pub struct Draft {
    mount: OwnedFd,
}

impl Draft {
    /// A new, empty one.
    pub fn new() -> Result<Self> {
        let make = || {
            let context = rustix::mount::fsopen("bpf", FsOpenFlags::FSOPEN_CLOEXEC)?;
            rustix::mount::fsconfig_set_string(&context, "source", "whyloss")?;
            rustix::mount::fsconfig_set_string(&context, "mode", "0700")?;
            rustix::mount::fsconfig_create(&context)?;
            rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOSUID)
        };
        let mount = make()
            .map_err(|error: rustix::io::Errno| Error::Io { doing: "making a BPF file system".into(), source: error.into() })?;
        Ok(Self { mount })
    }

    /// Its root, as long as this value lives.
    pub fn root(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.mount.as_raw_fd()).into()
    }

    /// Mounts it: from now on what is in it outlives the process.
    pub fn publish(self, lock: &Lock) -> Result<()> {
        lock.clear();
        let on = lock.place.mounted_on();
        fs::create_dir_all(&on).map_err(|error| failed("making", &on, &error))?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(&self.mount, "", rustix::fs::CWD, &on, flags)
            .map_err(|error| failed("mounting a BPF file system on", &on, &error.into()))
    }

    /// Lets others find it for as long as this value lives.
    pub fn lend(&self, lock: &Lock) -> Result<()> {
        lock.clear();
        let on = lock.place.mounted_on();
        // The number that processes see who see this folder: this process may have others.
        let here = fs::read_link("/proc/self").map_err(|error| failed("reading", Path::new("/proc/self"), &error))?;
        let descriptor = Path::new("/proc").join(here).join("fd").join(self.mount.as_raw_fd().to_string());
        std::os::unix::fs::symlink(descriptor, &on).map_err(|error| failed("making", &on, &error))
    }
}

/// Makes the folder `name` in a BPF file system and gives its path.
pub fn subfolder(root: &Path, name: &str) -> Result<PathBuf> {
    let path = root.join(name);
    match fs::create_dir(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed("making", &path, &error)),
        _ => Ok(path),
    }
}

/// The names in a folder of a BPF file system, in order; none if there is no such folder. Those that the kernel puts there itself have
/// a dot, which no other can have.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.contains('.'));
    names.sort();
    names
}

/// Removes a name, which may be gone already.
pub fn remove(path: &Path) -> Result<()> {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match rustix::fs::unlinkat(rustix::fs::CWD, path, flags) {
        Err(error) if error != rustix::io::Errno::NOENT => Err(failed("removing", path, &error.into())),
        _ => Ok(()),
    }
}

fn failed(doing: &str, path: &Path, error: &io::Error) -> Error {
    Error::Io { doing: format!("{doing} {}", path.display()), source: io::Error::new(error.kind(), error.to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    #[test]
    fn a_lock_is_had_while_others_make_the_folder_and_take_it_away() {
        let folder = std::env::temp_dir().join(format!("whyloss-place-{}", std::process::id()));
        let place = Place { folder: folder.clone(), prefix: "p_".to_owned() };
        let over = AtomicBool::new(false);
        let failure = thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = fs::create_dir(&folder);
                    let _ = fs::remove_dir(&folder);
                }
            });
            let failure = (0..20_000).find_map(|_| place.lock().err());
            over.store(true, Ordering::Relaxed);
            failure
        });
        let _ = fs::remove_dir(&folder);
        assert!(failure.is_none(), "{failure:?}");
    }
}
