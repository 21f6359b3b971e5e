//! Processor time, which other work on the machine disturbs less than wall time.

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeValLike;

/// Processor seconds that this process has used.
pub fn own() -> f64 {
    of(UsageWho::RUSAGE_SELF)
}

/// Processor seconds that finished child processes have used.
pub fn children() -> f64 {
    of(UsageWho::RUSAGE_CHILDREN)
}

fn of(who: UsageWho) -> f64 {
    let usage = getrusage(who).expect("the system knows its own processes");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}
