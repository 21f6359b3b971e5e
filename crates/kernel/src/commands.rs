//! What the subcommands of `whyloss kernel` do, on the place that the environment names, wherever they are called.

use crate::check::Item;
use crate::consequences::{self, Consequences};
use crate::installed::{known, About, Installed};
use crate::mount_namespace::in_lasting;
use crate::owner::Owner;
use crate::place::Place;
use crate::select::{Match, Rule};
use crate::stat::Stat;
use crate::{check, interfaces, load as loading, select, stat as counting, Error, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};

pub use crate::load::Held;

/// Whether the kernel part can be used here.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Whether `load` would succeed.
    pub ready: bool,
    /// Everything that was looked at.
    pub items: Vec<Item>,
}

/// What was loaded or removed.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
    /// The controls' names in the kernel.
    pub controls: Vec<String>,
    /// The programs that are attached beside them, and see all connections of the machine.
    pub programs: Vec<String>,
    /// Where the names are that keep the programs alive.
    pub mounted_on: PathBuf,
    /// How many open connections had one of the controls and go on with the usual one.
    pub moved: usize,
    /// How many could not be reached and keep theirs until they end.
    pub kept: usize,
}

/// What there is and what of it is loaded.
#[derive(Debug, Clone, Serialize)]
pub struct Listing {
    /// Which package loaded; `None` if nothing is loaded.
    pub loaded: Option<About>,
    /// Who loaded; `None` if nothing is loaded, or by a version that noted nobody.
    pub owner: Option<Owner>,
    /// Whether the process that loaded still runs; with it goes what it loaded until it exits.
    pub owner_runs: bool,
    /// Whether it is what this package would load.
    pub matches: bool,
    /// All controls of the package, by name.
    pub controls: Vec<Row>,
    /// The other programs that are attached.
    pub programs: Vec<String>,
    /// Interfaces of this network namespace at which acknowledgements get room for reports; `None` where nothing that takes reports is loaded.
    pub interfaces: Option<Vec<String>>,
    /// How many other sets of programs write options into the same segments; both are disturbed by it.
    pub sets_beside: usize,
    /// The rules of `use`.
    pub rules: Vec<Rule>,
}

/// A control of the package, loaded or not.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What users call it, as `wl_checksum_delay`.
    pub name: String,
    /// What applications and `ss -ti` call it.
    pub kernel_name: String,
    /// Whether it is loaded.
    pub loaded: bool,
    /// How many open connections have it, in all network namespaces.
    pub connections: usize,
}

/// `whyloss kernel check`: looks at kernel, rights and mounts; changes nothing.
pub fn check() -> Result<Report> {
    let items = match in_lasting(|| Ok(check::items())) {
        Ok(items) => items,
        // A user without rights may look all the same.
        Err(_) if check::permitted().is_err() => check::items(),
        Err(error) => return Err(error),
    };
    Ok(Report { ready: items.iter().all(|item| !item.needed_by_all || item.holds != Some(false)), items })
}

/// `whyloss kernel load`: loads `controls` (names of this package, all if empty) so that they outlive this process.
pub fn load(controls: &[String]) -> Result<Change> {
    in_lasting(|| {
        let place = Place::default();
        let controls = loading::load(&place, controls)?;
        let programs = crate::place::names(&place.mounted_on().join("links"));
        Ok(Change { controls, programs, mounted_on: place.mounted_on(), moved: 0, kept: 0 })
    })
}

/// As `whyloss kernel load`, for as long as what it gives lives, and for this process alone.
pub fn hold(controls: &[String]) -> Result<Held> {
    in_lasting(|| loading::hold(&Place::default(), controls))
}

/// `whyloss kernel load --until-exit`: as `whyloss kernel load`, for as long as what it gives lives.
pub fn lend(controls: &[String]) -> Result<Held> {
    in_lasting(|| loading::lend(&Place::default(), controls))
}

/// What `whyloss kernel unload` would change, for whom.
pub fn consequences_of_unload() -> Result<Consequences> {
    in_lasting(|| consequences::of_unload(&Place::default()))
}

/// `whyloss kernel unload`: takes out what any version has loaded at the place. Without `force` refused where another user loaded it, or
/// another process that still runs.
pub fn unload(force: bool) -> Result<Change> {
    in_lasting(|| {
        let place = Place::default();
        let owner = if force { None } else { Installed::any(&place)?.owner };
        if let Some(owner) = owner.filter(Owner::is_another) {
            return Err(Error::OfAnother(owner.to_string()));
        }
        let programs = crate::place::names(&place.mounted_on().join("links"));
        let removed = loading::unload(&place)?;
        Ok(Change {
            controls: removed.controls,
            programs,
            mounted_on: place.mounted_on(),
            moved: removed.moved,
            kept: removed.kept,
        })
    })
}

/// `whyloss kernel list`: the package's controls, which are loaded, and the rules.
pub fn list() -> Result<Listing> {
    in_lasting(|| {
        let place = Place::default();
        let installed = match Installed::any(&place) {
            Ok(installed) => Some(installed),
            Err(Error::NotLoaded) => None,
            Err(error) => return Err(error),
        };
        let present = installed.as_ref().map(Installed::controls).unwrap_or_default();
        let controls = known(&place)?.into_iter();
        let matches = installed.as_ref().is_some_and(|installed| installed.about == About::own());
        let open = installed.as_ref().filter(|_| matches).map(counting::connections).transpose()?.unwrap_or_default();
        let owner = installed.as_ref().and_then(|installed| installed.owner.clone());
        Ok(Listing {
            controls: controls
                .map(|control| Row {
                    connections: open.iter().filter(|connection| connection.control == control.kernel_name).count(),
                    loaded: present.contains(&control.kernel_name),
                    name: control.name,
                    kernel_name: control.kernel_name,
                })
                .collect(),
            programs: installed.as_ref().map(Installed::programs).unwrap_or_default(),
            sets_beside: installed.as_ref().map(Installed::sets_beside).unwrap_or_default(),
            interfaces: match &installed {
                Some(installed) => interfaces::attached(&installed.root)?,
                None => None,
            },
            rules: installed.as_ref().filter(|_| matches).map_or_else(|| Ok(Vec::new()), select::list)?,
            loaded: installed.map(|installed| installed.about),
            owner_runs: owner.as_ref().is_some_and(Owner::runs),
            owner,
            matches,
        })
    })
}

/// `whyloss kernel use`: connections of the service `port` and with the remote addresses `prefix`, of the control group `cgroup`, get
/// `control`; none of the three is all connections. `None` takes the rule back.
pub fn choose(control: Option<&str>, port: Option<u16>, prefix: Option<&str>, cgroup: Option<&Path>) -> Result<()> {
    in_lasting(|| {
        let place = Place::default();
        let connections = Match { port, prefix: prefix.map(str::parse).transpose()? };
        match control {
            Some(control) => select::add(&place, control, &connections, cgroup),
            None => select::take_back(&place, &connections, cgroup),
        }
    })
}

/// `whyloss kernel stat`: counts by control since it was loaded, and by connection since it took the control.
pub fn stat() -> Result<Stat> {
    in_lasting(|| counting::stat(&Place::default()))
}

/// What each counter of a control counts.
pub fn counters() -> Vec<(&'static str, &'static str)> {
    counting::COUNTERS.to_vec()
}

/// What each counter of reports counts.
pub fn report_counters() -> Vec<(&'static str, &'static str)> {
    counting::REPORTS.to_vec()
}
