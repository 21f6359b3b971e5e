//! What `unload` would change, for whom: to be said before it is done.

use crate::installed::{About, Installed};
use crate::namespaces::{enter, Namespaces};
use crate::owner::Owner;
use crate::place::Place;
use crate::select::{self, Rule};
use crate::stat::{self, Connection};
use crate::{check, Result};
use serde::Serialize;
use std::collections::BTreeMap;

/// What `unload` would change now.
#[derive(Debug, Clone, Serialize)]
pub struct Consequences {
    /// Who loaded; `None` if a version did that noted nobody.
    pub owner: Option<Owner>,
    /// Whether that is another user than this one, or another process that still runs.
    pub of_another: bool,
    /// The controls that would go, by their names in the kernel.
    pub controls: Vec<String>,
    /// The rules of `use` that would go; none if another version made them.
    pub rules: Vec<Rule>,
    /// The open connections that would lose their control; `None` if they cannot be counted, as those of another version.
    pub connections: Option<Vec<Share>>,
}

/// The connections of one control in one network namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The control's name in the kernel.
    pub control: String,
    /// The number of the network namespace, as `/proc/PID/ns/net` shows it.
    pub network_namespace: u32,
    /// Whether it is that of this process.
    pub own_namespace: bool,
    /// How many they are.
    pub connections: usize,
    /// The control that they would get; `None` if the namespace cannot be entered, and they keep theirs until they end.
    pub becomes: Option<String>,
}

/// What [`crate::load::unload`] would change at `place`.
pub fn of_unload(place: &Place) -> Result<Consequences> {
    let installed = Installed::any(place)?;
    let rules = if installed.about == About::own() { select::list(&installed)? } else { Vec::new() };
    Ok(Consequences {
        of_another: installed.owner.as_ref().is_some_and(Owner::is_another),
        controls: installed.controls(),
        rules,
        connections: stat::connections(&installed).ok().map(|connections| shares(&connections)),
        owner: installed.owner,
    })
}

fn shares(connections: &[Connection]) -> Vec<Share> {
    let mut counts = BTreeMap::new();
    for connection in connections {
        *counts.entry((connection.network_namespace, connection.control.clone())).or_insert(0) += 1;
    }
    let own = std::fs::read_link("/proc/thread-self/ns/net").unwrap_or_default();
    let (namespaces, mut usual) = (Namespaces::find(), BTreeMap::new());
    let shares = counts.into_iter().map(|((network_namespace, control), connections)| Share {
        control,
        network_namespace,
        own_namespace: own.as_os_str() == format!("net:[{network_namespace}]").as_str(),
        connections,
        becomes: usual.entry(network_namespace).or_insert_with(|| usual_in(&namespaces, network_namespace)).clone(),
    });
    shares.collect()
}

/// The usual control of the network namespace of the number `id`, if it can be entered.
fn usual_in(namespaces: &Namespaces, id: u32) -> Option<String> {
    let namespace = namespaces.open(id)?;
    // The thread ends there.
    let inside = || enter(&namespace).ok().and_then(|()| check::usual());
    std::thread::scope(|scope| scope.spawn(inside).join().ok().flatten())
}
