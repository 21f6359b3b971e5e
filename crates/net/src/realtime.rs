//! Threads that are woken on time.

use nix::libc;
use serde::Serialize;
use std::io;

/// How a thread is scheduled, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scheduling {
    /// Priority among the real-time threads of the system (`SCHED_FIFO`, 1 to 99); `None` for an ordinary thread.
    pub fifo: Option<u8>,
    /// Why it is an ordinary one although more was wanted.
    pub refused: Option<String>,
}

/// Has the timers of the calling thread expire without slack and gives it real-time `priority`, where that is permitted: it takes root,
/// `CAP_SYS_NICE` or a limit on real-time priority (`ulimit -r`).
pub fn prepare(priority: Option<u8>) -> Scheduling {
    // Without it the kernel may put a wake-up off by 50 us. A kernel that refuses is only less exact, and the audit shows that.
    let _ = nix::sys::prctl::set_timerslack(1);
    let Some(priority) = priority else { return Scheduling { fifo: None, refused: None } };
    match set_fifo(priority) {
        Ok(()) => Scheduling { fifo: Some(priority), refused: None },
        Err(error) => {
            let refused =
                format!("the system does not give this process real-time priority ({error}): timing will be less exact");
            Scheduling { fifo: None, refused: Some(refused) }
        }
    }
}

#[allow(unsafe_code)]
fn set_fifo(priority: u8) -> io::Result<()> {
    // The kernel's `sched_param`. Its own call, because musl's function refuses everything.
    let parameters = libc::c_int::from(priority);
    // Children shall not inherit it.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameters live for the duration of the call; 0 is the calling thread.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How long the calling thread has been ready to run and had to wait for a processor, in nanoseconds, if the kernel counts that.
pub fn waited_for_processor() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}
