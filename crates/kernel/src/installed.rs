//! What is loaded at a place, and by which package.

use crate::object::{self, said, Control, DIGEST, OBJECTS};
use crate::owner::Owner;
use crate::place::{names, Lock, Place};
use crate::{check, Error, Result};
use libbpf_rs::query::{LinkInfoIter, ProgInfoIter};
use libbpf_rs::{Link, MapCore as _, MapFlags, MapHandle, MapType};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The octets of each of the two texts in the map `about`.
const TEXT: usize = 32;

/// Which package's programs are loaded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct About {
    /// The version of the package that loaded it.
    pub version: String,
    /// The digest over its objects.
    pub digest: String,
}

impl About {
    /// What this package would load.
    pub fn own() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), digest: DIGEST.to_owned() }
    }

    /// Leaves a note of it in the BPF file system `root`.
    pub(crate) fn pin(&self, root: &Path) -> Result<()> {
        let mut value = [0; 2 * TEXT];
        for (text, field) in [&self.version, &self.digest].into_iter().zip(value.chunks_mut(TEXT)) {
            field[..text.len().min(TEXT)].copy_from_slice(&text.as_bytes()[..text.len().min(TEXT)]);
        }
        note(root, "about", &value)
    }

    /// The note in the BPF file system `root`, if there is one.
    pub(crate) fn read(root: &Path) -> Option<Self> {
        let value = noted(root, "about")?;
        let text = |at: usize| text(value.get(at..at + TEXT).unwrap_or_default());
        Some(Self { version: text(0), digest: text(TEXT) })
    }
}

/// Leaves a note of who loads in the BPF file system `root`.
pub(crate) fn pin_owner(root: &Path, owner: &Owner) -> Result<()> {
    note(root, "owner", owner.to_note().as_bytes())
}

/// Who loaded what is in the BPF file system `root`; `None` if a version did that noted nobody.
pub(crate) fn owner(root: &Path) -> Option<Owner> {
    Owner::from_note(&text(&noted(root, "owner")?))
}

/// Leaves octets under a name in a BPF file system, which takes maps, links and programs: in a map of one value.
fn note(root: &Path, name: &str, octets: &[u8]) -> Result<()> {
    let mut options = libbpf_rs::libbpf_sys::bpf_map_create_opts::default();
    options.sz = std::mem::size_of_val(&options) as _;
    said("saying what is loaded", || {
        let map_name = format!("wl_{name}");
        let mut map = MapHandle::create(MapType::Array, Some(&map_name), 4, octets.len() as u32, 1, &options)?;
        map.update(&0_u32.to_ne_bytes(), octets, MapFlags::ANY)?;
        map.freeze()?;
        map.pin(root.join(name))
    })
}

fn noted(root: &Path, name: &str) -> Option<Vec<u8>> {
    let map = MapHandle::from_pinned_path(root.join(name)).ok()?;
    map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()?
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).trim_end_matches('\0').to_owned()
}

/// The programs that are loaded at a place.
#[derive(Debug)]
pub struct Installed {
    /// The place, which nobody else changes meanwhile.
    pub lock: Lock,
    /// The mount point of the BPF file system that names them.
    pub root: PathBuf,
    /// What was noted of them when they were loaded.
    pub about: About,
    /// Who loaded them; `None` if a version did that noted nobody.
    pub owner: Option<Owner>,
}

impl Installed {
    /// What is loaded at `place`, by whatever version.
    pub fn any(place: &Place) -> Result<Self> {
        check::permitted()?;
        let lock = place.lock()?;
        let root = place.mounted_on();
        let Some(about) = About::read(&root) else {
            lock.tidy();
            return Err(Error::NotLoaded);
        };
        let owner = owner(&root);
        Ok(Self { lock, root, about, owner })
    }

    /// What is loaded at `place`, which must be what this package loads.
    pub fn own(place: &Place) -> Result<Self> {
        let found = Self::any(place)?;
        let own = About::own();
        if found.about != own {
            return Err(Error::Mismatch { loaded: found.about.version, own: own.version });
        }
        Ok(found)
    }

    /// The names that the controls have in the kernel.
    pub fn controls(&self) -> Vec<String> {
        names(&self.root.join("controls"))
    }

    /// How many other sets of programs are attached that write options into the same segments, if this one does: loaded under another prefix, or
    /// in a container.
    pub fn sets_beside(&self) -> usize {
        let Ok(own) = Link::open(self.root.join("links").join(OPTIONS)).and_then(|link| link.info()) else { return 0 };
        let like: Vec<u32> =
            ProgInfoIter::default().filter(|program| program.name == OPTIONS).map(|program| program.id).collect();
        let attached: BTreeSet<u32> = LinkInfoIter::default().map(|link| link.prog_id).filter(|id| like.contains(id)).collect();
        attached.into_iter().filter(|id| *id != own.prog_id).count()
    }

    /// The names of the other programs that are attached.
    pub fn programs(&self) -> Vec<String> {
        names(&self.root.join("links"))
    }
}

/// The program that sees the options of all connections.
const OPTIONS: &str = "wl_options";

/// The name that every control of the package has, in the package and at a place.
pub fn known(place: &Place) -> Result<Vec<Control>> {
    let mut known = Vec::new();
    for object in OBJECTS {
        known.extend(object::controls(object, &place.prefix)?);
    }
    known.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(known)
}
