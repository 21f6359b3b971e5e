//! A virtual-time runner for scripts in packetdrill's language (Cardwell et al., USENIX ATC 2013).
//!
//! The script's application makes system calls, its remote host sends segments, and the engine's segments have to leave as the script
//! says. A comment `// whyloss: profile=modern sack=false` chooses the configuration (see [`Settings`](crate::settings::Settings));
//! with such a comment the runner is strict: segments that are left over at the end are a failure too (`strict=false` takes that
//! back). Scripts without it run as they are, with the engine's Linux profile.
//!
//! Not supported, and said so: several connections at a time, packets that are not TCP, `tcp_info` assertions and other code, shell
//! commands other than a few `sysctl`s, TCP options beyond MSS, window scale, SACK and timestamps. Options are compared as a set.

mod numbers;
mod parse;
mod run;
pub mod script;
mod sockets;
mod sysctl;

pub use parse::{parse, SyntaxError};
pub use run::{run, ScriptOutcome};
pub use sysctl::apply as apply_sysctls;

use crate::settings::Settings;
use std::path::{Path, PathBuf};

/// Reads and runs a script.
///
/// A text that we cannot read may well be a dialect that we do not know, so it is not supported rather than failed.
pub fn run_text(text: &str, defaults: &Settings) -> ScriptOutcome {
    match parse(text) {
        Ok(script) => run(&script, defaults),
        Err(error) => ScriptOutcome::NotSupported { line: error.line, what: format!("syntax: {error}") },
    }
}

/// All scripts named by `paths`: files as they are, folders with every `*.pkt` below them, in order.
///
/// # Errors
/// If a path cannot be read; the message names it.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        collect(path, true, &mut found)?;
    }
    Ok(found)
}

fn collect(path: &Path, named: bool, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let problem = |error: std::io::Error| format!("{}: {error}", path.display());
    if path.metadata().map_err(problem)?.is_dir() {
        let entries = path.read_dir().and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(problem)?;
        let mut children: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
        children.sort();
        return children.iter().try_for_each(|child| collect(child, false, found));
    }
    if named || path.extension().is_some_and(|extension| extension == "pkt") {
        found.push(path.to_owned());
    }
    Ok(())
}
