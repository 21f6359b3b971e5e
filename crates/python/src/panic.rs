//! What a user reads when code of ours has panicked: one sentence that says what to report.

use pyo3::prelude::*;
use std::panic::{set_hook, Location, PanicHookInfo};

/// Where such mistakes are reported.
const ISSUES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/issues");

/// From now on a panic on any thread says so in one line on standard error. `WHYLOSS_BACKTRACE=1` keeps what Rust says of itself.
pub fn explain_panics() {
    if std::env::var_os("WHYLOSS_BACKTRACE").is_none_or(|value| value == "0" || value.is_empty()) {
        set_hook(Box::new(|panic| eprintln!("{}", sentence(panic))));
    }
}

fn sentence(panic: &PanicHookInfo<'_>) -> String {
    let words = panic.payload().downcast_ref::<&str>().copied();
    let words = words
        .or_else(|| panic.payload().downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no words")
        .replace(char::is_control, " ");
    let place = panic.location().map_or_else(String::new, Location::to_string);
    format!(
        "error: this is a mistake in whyloss {}, not in your input: {words} ({place}); please report this line, the command and the \
         scenario or capture at {ISSUES}",
        env!("CARGO_PKG_VERSION")
    )
}

/// Panics, to see what a user then reads.
#[pyfunction]
pub fn panic(words: String) {
    panic!("{words}");
}
