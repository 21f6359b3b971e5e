//! Loading and unloading: everything or nothing.
//!
//! What is loaded are names in a BPF file system (see [`crate::place`]):
//!
//! | name | is |
//! | --- | --- |
//! | `about`, `owner` | maps that say which package and who loaded, see [`crate::installed`] |
//! | `controls/NAME` | the link that keeps a control registered |
//! | `links/NAME` | the link that keeps another program attached |
//! | `programs/NAME`, `interfaces/NAMESPACE-INDEX` | a program for interfaces, and the links that keep it attached, see [`crate::interfaces`] |
//! | `maps/wl_NAME` | a map |
//! | `use/CGROUP/` | rules of one control group, see [`crate::select`] |

use crate::cgroup::{Cgroups, NO_CGROUPS};
use crate::installed::{self, known, About};
use crate::object::{said, Loaded, Options, OBJECTS};
use crate::owner::Owner;
use crate::place::{names, remove, subfolder, Draft, Lock, Place};
use crate::reassign::Reassignment;
use crate::{check, interfaces, select, Error, Result};
use libbpf_rs::{Link, ProgramType};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a name that is taken may stay so before it is somebody else's; a busy kernel takes seconds to give one up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Loads the controls `wanted`, all if it is empty, and what they need beside them. Gives the names that they have in the kernel.
pub fn load(place: &Place, wanted: &[String]) -> Result<Vec<String>> {
    let lock = prepare(place, wanted)?;
    let loaded = assemble(place, wanted).and_then(|(controls, draft)| {
        draft.publish(&lock)?;
        Ok(controls)
    });
    if loaded.is_err() {
        lock.tidy();
    }
    loaded
}

/// Programs that are loaded for as long as this value lives. They go with the process, however that ends: nobody else has a name for them.
#[derive(Debug)]
pub struct Held {
    /// The names that the controls have in the kernel.
    pub controls: Vec<String>,
    /// There until it is dropped.
    draft: Option<Draft>,
}

/// As [`load`], for this process only; refused, as that is, where something is loaded already.
pub fn hold(place: &Place, wanted: &[String]) -> Result<Held> {
    let lock = prepare(place, wanted)?;
    let held = assemble(place, wanted);
    lock.tidy();
    held.map(Held::new)
}

/// As [`hold`], but where all other commands find it, as if it were loaded: until what this gives goes.
pub fn lend(place: &Place, wanted: &[String]) -> Result<Held> {
    let lock = prepare(place, wanted)?;
    let lent = assemble(place, wanted).and_then(|(controls, draft)| {
        draft.lend(&lock)?;
        Ok(Held::new((controls, draft)))
    });
    if lent.is_err() {
        lock.tidy();
    }
    lent
}

impl Held {
    fn new((controls, draft): (Vec<String>, Draft)) -> Self {
        Self { controls, draft: Some(draft) }
    }

    /// Whether nobody has unloaded it meanwhile.
    pub fn is_there(&self) -> bool {
        self.draft.as_ref().is_some_and(|draft| draft.root().join("about").exists())
    }
}

impl Drop for Held {
    /// When this returns the kernel does not have the controls any more. By itself it would take them out a little after their last name has gone, and
    /// whoever looked for them before that would find what is about to vanish.
    fn drop(&mut self) {
        let Some(draft) = self.draft.take() else { return };
        let folder = draft.root().join("controls");
        // Older kernels cannot.
        let cannot = |name: &&String| Link::open(folder.join(name)).is_ok_and(|link| link.detach().is_err());
        let left: Vec<_> = self.controls.iter().filter(cannot).collect();
        drop(draft);
        for control in left {
            is_taken(control);
        }
    }
}

/// Sees to it that nothing is loaded at the place, and that there is what is wanted.
fn prepare(place: &Place, wanted: &[String]) -> Result<Lock> {
    check::loadable()?;
    let known = known(place)?;
    for name in wanted {
        if known.iter().all(|control| control.name != *name) {
            let known = known.iter().map(|control| control.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(Error::NoControl { name: name.clone(), known });
        }
    }
    let lock = place.lock()?;
    if let Some(about) = About::read(&place.mounted_on()) {
        let controls = names(&place.mounted_on().join("controls")).join(", ");
        let by = installed::owner(&place.mounted_on()).map_or_else(|| "another version".to_owned(), |owner| owner.to_string());
        return Err(Error::AlreadyLoaded { by, controls, version: about.version });
    }
    if place.is_mounted() {
        // Not by a `load` that we know.
        unmount_all(&lock)?;
    }
    Ok(lock)
}

/// The names of the controls, and where the programs have theirs.
fn assemble(place: &Place, wanted: &[String]) -> Result<(Vec<String>, Draft)> {
    let draft = Draft::new()?;
    let root = draft.root();
    let maps = subfolder(&root, "maps")?;
    let (controls, links) = (subfolder(&root, "controls")?, subfolder(&root, "links")?);
    subfolder(&root, "use")?;
    let cgroups = Cgroups::find().ok();
    // First, because programs of one control group run in the order of their coming: whoever looks at a connection's control should
    // see the one that was chosen for it.
    if let Some(cgroups) = &cgroups {
        select::attach(&root, cgroups.root())?;
    }
    let mut names = Vec::new();
    for object in OBJECTS {
        let mut in_object = crate::object::controls(object, &place.prefix)?;
        in_object.retain(|control| wanted.is_empty() || wanted.contains(&control.name));
        if in_object.is_empty() {
            continue;
        }
        let options = Options {
            controls: Some(in_object.iter().map(|control| control.name.clone()).collect()),
            prefix: place.prefix.clone(),
            maps: Some(maps.clone()),
        };
        let mut loaded = Loaded::new(object.name, &options)?;
        // Kept until they have their names: a link goes with its last reference.
        let mut attached = attach_programs(&loaded, cgroups.as_ref())?;
        for control in in_object {
            let taken = is_taken(&control.kernel_name);
            let link = loaded.register(&control.name).map_err(|error| {
                if taken {
                    Error::NameTaken(control.kernel_name.clone())
                } else {
                    error
                }
            })?;
            attached.push((controls.join(&control.kernel_name), link));
            names.push(control.kernel_name);
        }
        for (path, link) in &mut attached {
            let path = if path.is_absolute() { path.clone() } else { links.join(&path) };
            said(&format!("naming {}", path.display()), || link.pin(&path))?;
        }
        interfaces::keep(&root, &mut loaded)?;
    }
    About::own().pin(&root)?;
    installed::pin_owner(&root, &Owner::this())?;
    names.sort();
    Ok((names, draft))
}

/// Whether the kernel has a control of this name and goes on having it: what an `unload` that was killed has unmounted goes a little later.
fn is_taken(name: &str) -> bool {
    let end = Instant::now() + PATIENCE;
    while check::available().iter().any(|known| known == name) {
        if Instant::now() > end {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Attaches what an object has beside its controls: programs of the root control group and of the kernel's tracepoints.
fn attach_programs(loaded: &Loaded, cgroups: Option<&Cgroups>) -> Result<Vec<(PathBuf, Link)>> {
    let mut links = Vec::new();
    for program in loaded.object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        let doing = format!("attaching {name}");
        let link = match program.prog_type() {
            ProgramType::SockOps => {
                let cgroups = cgroups.ok_or_else(|| Error::NotHere(NO_CGROUPS.to_owned()))?;
                let folder = cgroups.open(cgroups.root())?;
                said(&doing, || program.attach_cgroup(folder.as_raw_fd()))?
            }
            ProgramType::Tracing if program.section().to_string_lossy().starts_with("tp_btf/") => {
                said(&doing, || program.attach_trace())?
            }
            _ => continue,
        };
        links.push((name.into(), link));
    }
    Ok(links)
}

/// What [`unload`] has removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unloaded {
    /// The controls' names in the kernel.
    pub controls: Vec<String>,
    /// How many open connections had one of them and go on with the control that is usual in their network namespace.
    pub moved: usize,
    /// How many could not be reached: they keep theirs until they end.
    pub kept: usize,
}

/// Takes everything out. Open connections go on.
pub fn unload(place: &Place) -> Result<Unloaded> {
    check::permitted()?;
    let lock = place.lock()?;
    if !place.is_mounted() {
        lock.tidy();
        return Err(Error::NotLoaded);
    }
    let root = place.mounted_on();
    let controls = names(&root.join("controls"));
    if let Some(usual) = check::usual().filter(|usual| controls.contains(usual)) {
        return Err(Error::IsDefault(usual));
    }
    // Programs of another version may not have what it takes; theirs is to be taken out all the same.
    let reassignment = Reassignment::prepare(&root).ok();
    unmount_all(&lock)?;
    lock.tidy();
    let (moved, kept) = reassignment.map_or(Ok((0, 0)), |mut reassignment| reassignment.run())?;
    Ok(Unloaded { controls, moved, kept })
}

/// Unmounts, at which everything ends at once, and then removes every name, so that a mount namespace that has copied the mount keeps
/// none.
fn unmount_all(lock: &Lock) -> Result<()> {
    let unmounted = lock.unmount()?;
    remove_all(&unmounted.root())
}

fn remove_all(root: &Path) -> Result<()> {
    remove(&root.join("about"))?;
    remove(&root.join("owner"))?;
    for cgroup in names(&root.join("use")) {
        select::detach(root, &cgroup)?;
    }
    for folder in ["interfaces", "links", "controls"] {
        for name in names(&root.join(folder)) {
            let path = root.join(folder).join(name);
            if let Ok(link) = Link::open(&path) {
                // Whoever else may hold it. Links of tracepoints know no detaching: they go with their last reference.
                let _ = link.detach();
            }
            remove(&path)?;
        }
    }
    for folder in ["programs", "maps"] {
        for name in names(&root.join(folder)) {
            remove(&root.join(folder).join(name))?;
        }
    }
    for folder in ["use", "interfaces", "links", "controls", "programs", "maps"] {
        remove(&root.join(folder))?;
    }
    Ok(())
}
