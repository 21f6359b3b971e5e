//! Whether there is room for what is asked for: in memory before the start, on the disk as soon as the first runs say how large they are.
//!
//! Memory is counted from below, so that only what cannot fit is refused.

use crate::error::Error;
use std::path::Path;
use sysinfo::{MemoryRefreshKind, System};

/// Octets of memory that a connection takes at least, with both ends, before it carries anything (measured, see docs/benchmarks.md).
const CONNECTION: u64 = 6_000;

/// Octets of memory that a transfer of a run takes in tables that are held (measured, 5,700 with those of the run itself).
const HELD: u64 = 5_000;

/// Octets that a sentence can speak of.
fn large(octets: u64) -> String {
    let (giga, mega) = (octets as f64 / 1e9, octets as f64 / 1e6);
    if giga >= 1.0 {
        format!("{giga:.1} GB")
    } else {
        format!("{mega:.0} MB")
    }
}

/// What takes memory.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Connections of the largest run.
    connections: u64,
    /// Runs at a time.
    at_a_time: u64,
    /// Transfers of all runs together, whose tables are held.
    held: u64,
}

impl Memory {
    const fn octets(self) -> u64 {
        let running = self.connections.saturating_mul(CONNECTION).saturating_mul(self.at_a_time);
        running.saturating_add(self.held.saturating_mul(HELD))
    }

    fn check(self, has: u64) -> Result<(), Error> {
        let needs = self.octets();
        if needs <= has {
            return Ok(());
        }
        let Self { connections, at_a_time, held } = self;
        let (what, way_out) = match (held, at_a_time) {
            (0, ..=1) => (format!("{connections} connections"), "fewer flows"),
            (0, _) => {
                (format!("{connections} connections in each of {at_a_time} runs at a time"), "fewer threads or fewer flows")
            }
            _ => (format!("the tables of {held} transfers"), "fewer runs, or tables that are written and not held"),
        };
        Err(Error::Room {
            what: format!("{what} take {} of memory at least", large(needs)),
            has: format!("{} are free", large(has)),
            way_out: way_out.to_owned(),
        })
    }
}

/// Refuses `at_a_time` runs that cannot fit into memory together; the largest has so many connections.
pub(crate) fn check_runs(connections: usize, at_a_time: usize) -> Result<(), Error> {
    Memory { connections: connections as u64, at_a_time: at_a_time as u64, held: 0 }.check(free_memory())
}

/// Refuses tables of so many transfers, of all runs together, that cannot be held in memory.
pub(crate) fn check_tables(transfers: usize) -> Result<(), Error> {
    Memory { connections: 0, at_a_time: 0, held: transfers as u64 }.check(free_memory())
}

/// Octets of memory that can be had, with what can be swapped out; where nothing says it, there is no limit.
fn free_memory() -> u64 {
    let mut system = System::new();
    system.refresh_memory_specifics(MemoryRefreshKind::everything());
    let machine = system.available_memory().saturating_add(system.free_swap());
    if machine == 0 {
        return u64::MAX;
    }
    // What a container may use. Files that are cached in it can be let go of.
    let container = system
        .cgroup_limits()
        .map_or(u64::MAX, |limits| limits.total_memory.saturating_sub(limits.rss).saturating_add(limits.free_swap));
    machine.min(container)
}

/// How large the runs of a plan get in the store: what has been written says what is to be written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    /// Octets that were written.
    octets: u64,
    /// Transfers in these: larger runs take more.
    transfers: u64,
    /// Transfers in the runs that are not written yet.
    left: u64,
}

impl Growth {
    /// Runs with so many transfers in all are to be written.
    pub fn expect(&mut self, transfers: usize) {
        self.left += transfers as u64;
    }

    /// Some of them have been written, to so many octets.
    pub fn wrote(&mut self, transfers: usize, octets: usize) {
        self.transfers += transfers as u64;
        self.left = self.left.saturating_sub(transfers as u64);
        self.octets += octets as u64;
    }

    /// Octets that are to be written.
    fn needs(self) -> u64 {
        (self.octets as f64 / self.transfers.max(1) as f64 * self.left as f64) as u64
    }

    /// Refuses to go on where the rest does not fit on the disk of `folder`.
    pub fn check(self, folder: &Path) -> Result<(), Error> {
        // Where the system does not say how much is free, the writing itself will.
        fs4::available_space(folder).map_or(Ok(()), |has| self.check_with(folder, has))
    }

    fn check_with(self, folder: &Path, has: u64) -> Result<(), Error> {
        if self.needs() <= has {
            return Ok(());
        }
        Err(Error::Room {
            what: format!("the runs that are left take about {} in {}", large(self.needs()), folder.display()),
            has: format!("{} are free", large(has)),
            way_out: "a folder with more room, or fewer runs; what is computed so far is kept".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_is_refused_and_what_just_fits_is_not() {
        let refused = |memory: Memory| {
            assert!(memory.check(memory.octets()).is_ok());
            let error = memory.check(memory.octets() - 1).unwrap_err();
            assert_eq!(error.exit_status(), 1);
            error.to_string()
        };
        assert_eq!(
            refused(Memory { connections: 1_000, at_a_time: 4, held: 0 }),
            "no room: 1000 connections in each of 4 runs at a time take 24 MB of memory at least, but 24 MB are free; allowed: fewer \
             threads or fewer flows"
        );
        assert!(refused(Memory { connections: 1_000_000, at_a_time: 1, held: 0 }).contains("1000000 connections take 6.0 GB"));
        let tables = refused(Memory { connections: 0, at_a_time: 0, held: 1_000_000 });
        assert!(tables.contains("the tables of 1000000 transfers take 5.0 GB"), "{tables}");
        let most = Memory { connections: u64::MAX, at_a_time: u64::MAX, held: u64::MAX };
        assert_eq!(most.octets(), u64::MAX);
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(free_memory() > 1 << 20);
    }

    #[test]
    fn what_is_written_says_what_is_to_come_by_the_size_of_the_runs() {
        let mut growth = Growth::default();
        growth.expect(1_000);
        assert_eq!(growth.needs(), 0, "nothing is known yet");
        growth.wrote(100, 200_000);
        assert_eq!(growth.needs(), 900 * 2_000);
        assert!(growth.check_with(Path::new("out"), 1_800_000).is_ok());
        let error = growth.check_with(Path::new("out"), 1_799_999).unwrap_err().to_string();
        assert!(error.contains("take about 2 MB in out, but 2 MB are free"), "{error}");
        growth.wrote(900, 1_800_000);
        assert!(growth.check_with(Path::new("out"), 0).is_ok(), "nothing is left to write");
    }
}
