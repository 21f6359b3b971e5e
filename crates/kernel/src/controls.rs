//! The controls: what each is called, and of which parts of the engine it is made.
//!
//! The one place where names of the kernel and names of the engine meet. Tests hold the BPF objects, the integer cores, the engine's tables and
//! the pages of `docs` to it.

/// What a control is made of, in the names of the engine (`whyloss schemes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// As the scheme of this name.
    Of(&'static str),
    /// Of single parts that no scheme puts together.
    From {
        /// How the window grows.
        congestion: &'static str,
        /// What judges losses; `None` if nothing does.
        differentiator: Option<&'static str>,
        /// What a verdict does to the window; `None` if there is no verdict.
        reaction: Option<&'static str>,
    },
}

/// One of the package's congestion controls for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// What users call it: the name of its variable in BPF.
    pub name: &'static str,
    /// What the kernel calls it: at most 15 octets.
    pub kernel_name: &'static str,
    /// Its integer core in `bpf/core`, where a single one computes all of it.
    pub core: Option<&'static str>,
    /// Which parts of the engine it stands for.
    pub made: Made,
    /// The engine's schemes that it carries out where a scenario runs on the kernel.
    pub carries: &'static [&'static str],
    /// Whether it sets the least retransmission timeout of its connections.
    pub sets_rto_min: bool,
}

/// NewReno's window with a differentiator that keeps it for corruption.
const fn keeping(congestion: &'static str, differentiator: &'static str) -> Made {
    Made::From { congestion, differentiator: Some(differentiator), reaction: Some("keep") }
}

/// A control whose integer core is called as it is.
const fn cored(name: &'static str, core: &'static str, made: Made, carries: &'static [&'static str]) -> Control {
    Control { name, kernel_name: name, core: Some(core), made, carries, sets_rto_min: false }
}

/// All controls that the package has.
pub const CONTROLS: &[Control] = &[
    // Its core is compared as a whole: it is more than a way to grow and a verdict.
    Control {
        name: "wl_auto",
        kernel_name: "wl_auto",
        core: None,
        made: Made::Of("auto"),
        carries: &["auto"],
        sets_rto_min: true,
    },
    cored("wl_cerl", "cerl", Made::Of("cerl"), &["cerl"]),
    Control {
        name: "wl_checksum",
        kernel_name: "wl_checksum",
        core: None,
        made: Made::Of("checksum-ld-hardened"),
        carries: &["checksum-ld", "checksum-ld+reno"],
        sets_rto_min: false,
    },
    // Its window is the kernel's alone.
    Control {
        name: "wl_checksum_delay",
        kernel_name: "wl_checksum_del",
        core: None,
        made: Made::Of("checksum-ld-hardened"),
        carries: &[],
        sets_rto_min: false,
    },
    cored("wl_cubic_ld", "cubic_ld", keeping("cubic", "lda-eq"), &[]),
    cored("wl_jtcp", "jtcp", Made::Of("jtcp"), &["jtcp"]),
    cored("wl_ldaeq", "ldaeq", Made::Of("lda-eq"), &["lda-eq"]),
    cored("wl_ncpld", "ncpld", Made::Of("ncpld"), &["ncpld"]),
    // For `newreno` the kernel has its own.
    cored("wl_newreno", "newreno", Made::From { congestion: "newreno", differentiator: None, reaction: None }, &[]),
    cored("wl_spike", "spike", keeping("newreno", "spike"), &["spike"]),
    cored("wl_veno", "veno", Made::Of("veno"), &["veno"]),
    cored("wl_westwood", "westwood", Made::Of("westwood"), &["westwood"]),
];

/// Controls that every kernel has, and the engine's schemes that they carry out.
pub const BUILT_IN: &[(&str, &[&str])] =
    &[("reno", &["newreno", "newreno+reno", "sack"]), ("cubic", &["cubic"]), ("bbr", &["bbr"])];

/// The control `name` of the package, if there is one.
pub fn control(name: &str) -> Option<&'static Control> {
    CONTROLS.iter().find(|control| control.name == name)
}

/// Each scheme of the engine that a control carries out, with the control's name.
pub fn by_scheme() -> impl Iterator<Item = (&'static str, &'static str)> {
    let ours = CONTROLS.iter().map(|control| (control.name, control.carries));
    BUILT_IN.iter().copied().chain(ours).flat_map(|(name, schemes)| schemes.iter().map(move |&scheme| (scheme, name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_fit_into_the_kernel_and_a_scheme_has_one_control() {
        assert!(CONTROLS.iter().all(|control| control.kernel_name.len() <= 15 && control.name.starts_with("wl_")));
        assert!(CONTROLS.is_sorted_by_key(|control| control.name));
        let schemes: Vec<_> = by_scheme().map(|(scheme, _)| scheme).collect();
        assert_eq!(schemes.iter().collect::<BTreeSet<_>>().len(), schemes.len(), "{schemes:?}");
    }
}
